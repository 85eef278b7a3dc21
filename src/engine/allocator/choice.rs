//! Which series of the catalog serves a request, and the details of its refusal.
//!
//! Never gives a request to a series that it has not been proved for: a series that is set aside,
//! or deactivated, keeps its requests from others.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::{
    Explanation, Inputs, RuleError, Series, Told, choose_telling, comes_before, explain,
    naming_type_of,
};

use super::catalog::{Catalog, ServedSeries, SetAside};

impl Catalog {
    /// The active series that serves a request, which is dated `now` where it has no date. A series
    /// that would get it only because another was deactivated since it was saved has not been
    /// proved for it, and does not serve it.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub fn choose(&self, inputs: &Inputs, now: Timestamp) -> Result<&Arc<ServedSeries>, RuleError> {
        self.choose_telling(inputs, now, Told::InFull)
    }

    /// The same, with this much detail in a refusal.
    ///
    /// # Errors
    /// See [`RuleError`].
    pub(super) fn choose_telling(
        &self,
        inputs: &Inputs,
        now: Timestamp,
        told: Told,
    ) -> Result<&Arc<ServedSeries>, RuleError> {
        let may_take = |aside: &&SetAside| {
            let is_unread = aside.version.active && aside.served.is_none();
            is_unread && Series::may_serve(&aside.version.definition, inputs)
        };
        if let Some(SetAside { version, why, .. }) = self.set_aside.iter().find(may_take) {
            return Err(RuleError::set_aside(&version.definition.code, why, inputs));
        }
        // Those that are set aside take their turn like the others, and give nothing.
        let types = (told == Told::InFull).then_some(&self.types);
        let chosen = match choose_telling(self.offered(), inputs, now, types) {
            Ok(index) => self.active.get(index).ok_or_else(|| {
                let SetAside { version, why, .. } = self.read_aside(index - self.active.len());
                RuleError::set_aside(&version.definition.code, why, inputs)
            })?,
            Err(error) => return Err(self.know_inactive(error, inputs)),
        };
        let later = self.resting.iter().filter(|resting| {
            let code = &resting.from.last.definition.code;
            resting.from.since > chosen.version.stamp && *code != chosen.version.definition.code
        });
        let mut before = later.filter(|resting| {
            comes_before(&resting.series, &chosen.series, self.offered(), inputs, now)
        });
        match before.next() {
            None => Ok(chosen),
            Some(resting) => Err(RuleError::waiting(&resting.series, &chosen.series, inputs)),
        }
    }

    /// Which active series would serve a request, and why the others would not.
    #[must_use]
    pub fn explain(&self, inputs: &Inputs, now: Timestamp) -> Vec<Explanation> {
        explain(self.active.iter().map(|served| &served.series), inputs, now)
    }

    /// The series among which requests choose: those that are active, and behind them those that
    /// are set aside and can be read.
    pub(super) fn offered(&self) -> impl Iterator<Item = &Series> {
        let aside = self.set_aside.iter().filter_map(|aside| aside.served.as_ref());
        self.active.iter().chain(aside).map(|served| &served.series)
    }

    /// One of those that are set aside and can be read.
    fn read_aside(&self, index: usize) -> &SetAside {
        let mut read = self.set_aside.iter().filter(|aside| aside.served.is_some());
        read.nth(index).expect("only what was offered is chosen")
    }

    /// A type that only deactivated series serve is not unknown.
    fn know_inactive(&self, error: RuleError, inputs: &Inputs) -> RuleError {
        let RuleError::UnknownType { type_code, hint } = error else { return error };
        let inactive = self.inactive.iter().map(|served| &served.series);
        match naming_type_of(inactive, inputs) {
            Some(index) => {
                let code = &self.inactive[index].version.definition.code;
                let hint = format!("series {code} numbers it, and is not active");
                RuleError::TypeNotConfigured { type_code, hint }
            }
            None => RuleError::UnknownType { type_code, hint },
        }
    }
}

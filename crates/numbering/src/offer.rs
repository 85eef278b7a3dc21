//! How well each of some series fits a request. The request is read once for all of them, and each
//! looks up its types and projects: a ledger has thousands.

use std::cell::RefCell;

use jiff::Timestamp;

use super::names::Names;
use super::rules::Rank;
use super::served::{Asked, Said};
use super::{Inputs, Series};

/// Why a series does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    Type,
    Undetermined,
    Project,
    Originator,
    SubType,
    Date,
}

/// The series among which a request chooses, and the part of it that is read once for all of them.
pub(super) struct Offer<'o> {
    series: &'o [&'o Series],
    said: Said<'o>,
    inputs: &'o Inputs,
    now: Timestamp,
    /// The last type that was asked for, and whether any series leaves it undetermined.
    undetermined: RefCell<Option<(String, bool)>>,
}

impl<'o> Offer<'o> {
    pub(super) fn of(series: &'o [&'o Series], inputs: &'o Inputs, now: Timestamp) -> Self {
        Offer { series, said: Said::of(inputs), inputs, now, undetermined: RefCell::default() }
    }

    pub(super) fn series(&self) -> &'o [&'o Series] {
        self.series
    }

    /// How well a series fits a request, as it reads it.
    pub(super) fn fit(&self, series: &Series) -> Result<Rank, Misfit> {
        let (asked, served) = (Asked { series, said: &self.said }, &series.served);
        let type_code = asked.type_code().ok_or(Misfit::Type)?;
        let names_type = served.types.has(type_code);
        if !names_type {
            if served.undetermined_types.has(type_code) {
                return Err(Misfit::Undetermined);
            }
            let is_taken = served.any_type && served.types_shown.has(type_code);
            if !is_taken || self.is_undetermined(type_code) {
                return Err(Misfit::Type);
            }
        }
        let project = names(&served.projects, || asked.project()).ok_or(Misfit::Project)?;
        let originator =
            names(&served.originators, || asked.originator()).ok_or(Misfit::Originator)?;
        let sub_type = names(&served.sub_types, || asked.sub_type()).ok_or(Misfit::SubType)?;
        if !series.serves_day_of(self.inputs, self.now) {
            return Err(Misfit::Date);
        }
        let named = [project, originator, names_type, sub_type];
        Ok(Rank::new(series.definition.serves.default, named))
    }

    /// Whether any of them leaves a type undetermined.
    fn is_undetermined(&self, type_code: &str) -> bool {
        let mut last = self.undetermined.borrow_mut();
        if let Some((known, answer)) = &*last
            && known == type_code
        {
            return *answer;
        }
        let leaves = |other: &&Series| other.served.undetermined_types.has(type_code);
        let answer = self.series.iter().any(leaves);
        *last = Some((type_code.to_owned(), answer));
        answer
    }
}

/// Whether a list names a value; `None` if it names only others. An empty list takes any value, or
/// none.
fn names<'v>(codes: &Names, value: impl FnOnce() -> Option<&'v str>) -> Option<bool> {
    if codes.is_empty() {
        return Some(false);
    }
    codes.has(value()?).then_some(true)
}

//! Reads every row of the journal for `verify`: whether its number is what its column `mask` and
//! its values render, whether it has a counter, and whether numbers inside ranges occur twice. The
//! journal's key knows only the first number of a range.
//!
//! In pages, and with bounded memory: of the numbers inside ranges it remembers a digest each, up
//! to a bound; where there are more it reads the ranges again for the other parts.

use std::collections::hash_map::{Entry as Permit, HashMap};
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use numbering::{PartialNumber, Range, TakenRange, first_values};
use serde::Serialize;
use uuid::Uuid;

use super::claims::Claims;
use super::verify::FINDINGS_MAX;
use crate::ledger::{Counter, LedgerError, SharedLedger, ValueOf, Written, WrittenText};

/// Rows of the journal read at once.
const PAGE_ROWS: u32 = 2_000;

/// Numbers asked for at once.
const NUMBERS_PER_QUESTION: usize = 500;

/// Most numbers inside ranges that are remembered at once, each with some 40 bytes.
const REMEMBERED_MAX: usize = 1_000_000;

/// A row whose number is not what its column `mask` and its values render.
#[derive(Clone, Debug, Serialize)]
pub struct Misread {
    /// The counter of its first serial.
    pub counter_id: i64,
    /// Its first value.
    pub value: i64,
    /// The number in the journal.
    pub number: String,
    /// The allocation.
    pub allocation_id: Uuid,
}

/// The reading of a whole journal.
pub(super) struct Texts<'a> {
    ledger: &'a SharedLedger,
    /// All rows of counters up to this one are read.
    after_counter: i64,
    ranges: Ranges,
    pub(super) claims: Claims<'a>,
    pub(super) misread: Vec<Misread>,
    /// Rows of counters that the ledger does not have: of each counter the first.
    pub(super) counterless: Vec<ValueOf>,
}

/// Numbers inside ranges, except the first one of each: the place of each, by a digest of its text.
struct Ranges {
    permits: HashMap<u64, ValueOf>,
    /// Only digests of this part
    part: u64,
    /// of so many are remembered.
    parts: u64,
    places_max: usize,
}

impl<'a> Texts<'a> {
    pub(super) fn new(ledger: &'a SharedLedger) -> Self {
        let ranges = Ranges::new(REMEMBERED_MAX);
        let (misread, counterless) = (Vec::new(), Vec::new());
        let claims = Claims::new(ledger);
        Texts { ledger, after_counter: 0, ranges, claims, misread, counterless }
    }

    /// Reads the rows of counters up to one; `counters` are those that there are among them.
    pub(super) async fn read_upto(
        &mut self,
        upto: i64,
        counters: &[Counter],
    ) -> Result<(), LedgerError> {
        let known: HashSet<i64> = counters.iter().map(|counter| counter.counter_id).collect();
        let mut after = behind(self.after_counter);
        loop {
            let rows = self.ledger.audits().written(after, upto, false, PAGE_ROWS).await?;
            let Some(last) = rows.last() else { break };
            after = last.of;
            for row in &rows {
                self.claims.read(row).await?;
                if !known.contains(&row.of.counter_id) {
                    self.note_counterless(row.of).await?;
                }
                if let Some(text) = &row.text {
                    self.read(row, text, true).await?;
                }
            }
        }
        self.after_counter = upto;
        Ok(())
    }

    /// Reads the rows of a counter behind a value.
    pub(super) async fn read_behind(&mut self, of: ValueOf) -> Result<(), LedgerError> {
        let mut after = of;
        loop {
            let rows = self.ledger.audits().written(after, of.counter_id, false, PAGE_ROWS).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.of;
            for row in &rows {
                self.claims.read(row).await?;
                if let Some(text) = &row.text {
                    self.read(row, text, true).await?;
                }
            }
        }
    }

    /// Compares the numbers inside ranges that did not fit into memory together.
    pub(super) async fn finish(&mut self) -> Result<(), LedgerError> {
        for part in 1..self.ranges.parts {
            self.ranges.turn_to(part);
            let mut after = behind(0);
            loop {
                let rows = self.ledger.audits().written(after, i64::MAX, true, PAGE_ROWS).await?;
                let Some(last) = rows.last() else { break };
                after = last.of;
                for row in &rows {
                    if let Some(text) = &row.text {
                        self.read(row, text, false).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn note_counterless(&mut self, of: ValueOf) -> Result<(), LedgerError> {
        let is_noted = self.counterless.last().is_some_and(|one| one.counter_id == of.counter_id);
        if is_noted || self.counterless.len() >= FINDINGS_MAX as usize {
            return Ok(());
        }
        // It may have been made since the counters were read.
        let there = self.ledger.counters().page(of.counter_id - 1, 1).await?;
        if there.first().is_none_or(|counter| counter.counter_id != of.counter_id) {
            self.counterless.push(of);
        }
        Ok(())
    }

    /// Reads one row; on its first reading all of it.
    async fn read(
        &mut self,
        row: &Written,
        text: &WrittenText,
        is_first: bool,
    ) -> Result<(), LedgerError> {
        let Some((partial, taken)) = rendered(text) else {
            if is_first && self.misread.len() < FINDINGS_MAX as usize {
                let (ValueOf { counter_id, value }, allocation_id) = (row.of, row.allocation_id);
                let number = text.number.clone();
                self.misread.push(Misread { counter_id, value, number, allocation_id });
            }
            return Ok(());
        };
        let count = taken[0].range.count();
        let mut from = 1;
        while from < count {
            let to = count.min(from + NUMBERS_PER_QUESTION as u64);
            let mut inside = BTreeMap::new();
            for place in from..to {
                // A value that no longer fits was refused before it was taken.
                if let Ok(number) = partial.fill(&values_at(taken, place)) {
                    inside.insert((number, text.scope.clone()), place);
                }
            }
            self.compare(row, taken, inside, is_first).await?;
            from = to;
        }
        Ok(())
    }

    /// Compares numbers inside a range with the first numbers of others, and with those inside.
    async fn compare(
        &mut self,
        row: &Written,
        taken: &[TakenRange],
        inside: BTreeMap<(String, String), u64>,
        is_first: bool,
    ) -> Result<(), LedgerError> {
        if is_first {
            let asked: Vec<(String, String)> = inside.keys().cloned().collect();
            for (number, scope, other) in self.ledger.audits().holders(&asked).await? {
                let place = inside[&(number.clone(), scope)];
                self.note_twice(row, place, number, other).await?;
            }
        }
        for ((number, scope), place) in inside {
            let value = i64::try_from(values_at(taken, place)[0]).unwrap_or(i64::MAX);
            let of = ValueOf { counter_id: row.of.counter_id, value };
            let Some(there) = self.ranges.remember(&number, &scope, of) else { continue };
            if let Some(other) = self.holder_inside(there, &number, &scope).await? {
                self.note_twice(row, place, number, other).await?;
            }
        }
        Ok(())
    }

    /// The allocation of a number inside a range, if its text is this one: digests may be equal by
    /// chance.
    async fn holder_inside(
        &self,
        of: ValueOf,
        number: &str,
        scope: &str,
    ) -> Result<Option<Uuid>, LedgerError> {
        let value = u64::try_from(of.value).unwrap_or(u64::MAX);
        let Some(row) = self.ledger.register().row_of(of.counter_id, value).await? else {
            return Ok(None);
        };
        let (record, taken) = (&row.entry.record, &row.entry.taken);
        let Range { first, step, .. } = taken[0].range;
        let text = PartialNumber::parse(&record.mask).ok().and_then(|partial| {
            partial.fill(&values_at(taken, value.saturating_sub(first) / step)).ok()
        });
        let is_it = record.scope == scope && text.as_deref() == Some(number);
        Ok(is_it.then_some(record.allocation_id))
    }

    /// Records one number of a range among the collisions, which `verify` lists and an operator may
    /// acknowledge.
    async fn note_twice(
        &self,
        row: &Written,
        place: u64,
        number: String,
        other: Uuid,
    ) -> Result<(), LedgerError> {
        let first = u64::try_from(row.of.value).unwrap_or(u64::MAX);
        let Some(found) = self.ledger.register().row_of(row.of.counter_id, first).await? else {
            return Ok(());
        };
        let mut entry = found.entry;
        for taken in &mut entry.taken {
            let value = taken.range.first + place * taken.range.step;
            (taken.range.first, taken.range.last) = (value, value);
        }
        entry.number = number;
        self.ledger.note_twice(&entry, other).await
    }
}

/// Before the first row behind a counter's.
fn behind(counter_id: i64) -> ValueOf {
    ValueOf { counter_id, value: i64::MAX }
}

/// PartialNumber and values of a row whose number is what they render.
fn rendered(text: &WrittenText) -> Option<(PartialNumber, &[TakenRange])> {
    let taken = text.taken.as_deref()?;
    let count = taken.first()?.range.count();
    let partial = PartialNumber::parse(&text.mask).ok()?;
    let number = partial.fill(&first_values(taken)).ok()?;
    let is_sound = taken.iter().all(|taken| taken.range.count() == count);
    (is_sound && number == text.number).then_some((partial, taken))
}

/// The values of the number at a place of a range.
fn values_at(taken: &[TakenRange], place: u64) -> Vec<u64> {
    let value = |taken: &TakenRange| {
        taken.range.first.saturating_add(place.saturating_mul(taken.range.step))
    };
    taken.iter().map(value).collect()
}

impl Ranges {
    fn new(places_max: usize) -> Self {
        Ranges { permits: HashMap::new(), part: 0, parts: 1, places_max }
    }

    /// Remembers a number; the place of another one of the same digest. Where there are more than
    /// fit, only half of them are remembered from here on.
    fn remember(&mut self, number: &str, scope: &str, of: ValueOf) -> Option<ValueOf> {
        let mut digest = DefaultHasher::new();
        (number, scope).hash(&mut digest);
        let digest = digest.finish();
        if digest % self.parts != self.part {
            return None;
        }
        match self.permits.entry(digest) {
            Permit::Occupied(there) => return Some(*there.get()).filter(|there| *there != of),
            Permit::Vacant(empty) => empty.insert(of),
        };
        while self.part == 0 && self.permits.len() > self.places_max {
            self.parts *= 2;
            let parts = self.parts;
            self.permits.retain(|digest, _| digest % parts == 0);
        }
        None
    }

    fn turn_to(&mut self, part: u64) {
        self.permits.clear();
        self.part = part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_numbers_are_found_in_parts_however_few_fit_into_memory() {
        let mut ranges = Ranges::new(10);
        let numbers: Vec<String> = (0..200).map(|value| format!("X-{value:03}")).collect();
        let mut found = 0;
        let mut pass = |ranges: &mut Ranges| {
            for counter_id in [1, 2] {
                for (value, number) in (0..).zip(&numbers) {
                    let there = ranges.remember(number, "", ValueOf { counter_id, value });
                    found += usize::from(there == Some(ValueOf { counter_id: 1, value }));
                }
            }
        };
        pass(&mut ranges);
        assert!(ranges.parts > 1 && ranges.permits.len() <= 10);
        for part in 1..ranges.parts {
            ranges.turn_to(part);
            pass(&mut ranges);
        }
        assert_eq!(found, numbers.len());
    }
}

//! Series for the tests of this room.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::plausible::{PlausibleDates, YEARS_MAX};
use super::{
    Documents, Inputs, LookAlikes, Membership, Overflow, Policy, ReferenceRow, References, Reset,
    SerialDefinition, Series, SeriesDefinition, Serves, Style, TemplateError,
};

/// The present of tests that name no other.
pub(super) const NOW: Timestamp = Timestamp::constant(1_750_000_000, 0);

/// A definition with one serial and the type `T`, which takes every date.
pub(super) fn definition() -> SeriesDefinition {
    SeriesDefinition {
        code: "test".into(),
        name: "Test".into(),
        description: String::new(),
        prefix: None,
        serves: Serves { types: vec!["T".into()], ..Serves::default() },
        policy: Policy::Fast,
        once_per_document: None,
        documents: Documents::Series,
        chronology: false,
        by_hand: false,
        closed_before: None,
        document_date: None,
        dates: Some(PlausibleDates { years_back: YEARS_MAX, years_ahead: YEARS_MAX }),
        look_alikes: LookAlikes::default(),
        template: "{SEQ:3}".into(),
        timezone: None,
        fiscal_year_start: None,
        unique_within: Vec::new(),
        ambiguity_accepted: None,
        references: References::default(),
        variables: BTreeMap::new(),
        serials: vec![serial("SEQ")],
    }
}

/// A serial from 1 in steps of 1, never reset.
pub(super) fn serial(name: &str) -> SerialDefinition {
    SerialDefinition {
        name: name.into(),
        start: 1,
        step: 1,
        style: Style::Digits,
        overflow: Overflow::Refuse,
        max: None,
        counter: vec![],
        reset: Reset::None,
    }
}

/// Compiles an edited definition.
pub(super) fn compile(edit: impl FnOnce(&mut SeriesDefinition)) -> Result<Series, TemplateError> {
    let mut definition = definition();
    edit(&mut definition);
    Series::compile(definition)
}

/// Compiles an edited definition as one that was saved.
pub(super) fn restore(edit: impl FnOnce(&mut SeriesDefinition)) -> Result<Series, TemplateError> {
    let mut definition = definition();
    edit(&mut definition);
    Series::restore(definition)
}

/// Compiles an edited definition that is sound.
pub(super) fn series(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    compile(edit).unwrap()
}

/// A request.
pub(super) fn inputs(
    type_code: &str,
    project: &str,
    date: &str,
    context: &[(&str, &str)],
) -> Inputs {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Inputs {
        type_code: type_code.into(),
        project: some(project),
        date: some(date),
        phase: None,
        context: context.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
        ..Inputs::default()
    }
}

/// A row of a table, its name the same as its code.
pub(super) fn reference(table: &str, id: &str, code: &str, active: bool) -> ReferenceRow {
    let [table, id, code] = [table, id, code].map(str::to_owned);
    ReferenceRow { table, id, name: code.clone(), code, active, former_codes: Vec::new() }
}

/// An active membership: table and id of the member, and of what it belongs to.
pub(super) fn member(member: (&str, &str), of: (&str, &str)) -> Membership {
    let [table, id, of_table, of_id] = [member.0, member.1, of.0, of.1].map(str::to_owned);
    Membership { table, id, of_table, of_id, active: true }
}

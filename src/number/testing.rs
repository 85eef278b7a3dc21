//! Series for the tests of this room.

use std::collections::BTreeMap;

use super::{
    Inputs, Overflow, Policy, Reset, SerialDefinition, Series, SeriesDefinition, Serves, Style,
    TemplateError,
};

/// A definition with one serial and the type `T`.
pub(super) fn definition() -> SeriesDefinition {
    SeriesDefinition {
        code: "test".into(),
        name: "Test".into(),
        description: String::new(),
        prefix: None,
        serves: Serves { types: vec!["T".into()], ..Serves::default() },
        policy: Policy::Fast,
        chronology: false,
        closed_before: None,
        template: "{SEQ:3}".into(),
        timezone: None,
        fiscal_year_start: None,
        unique_within: Vec::new(),
        ambiguity_accepted: None,
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
    }
}

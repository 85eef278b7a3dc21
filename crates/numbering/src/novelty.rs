//! What is required of a new definition alone. A definition that was saved before may have issued
//! numbers: it is compiled as it is, so that no later rule takes a series out of service.

use super::definition::HIDDEN_SERIALS;
use super::draft::FORMULA_SIGNS;
use super::field::{at, syntax};
use super::series::Variable;
use super::template_error::FieldFlaw;
use super::{SerialDefinition, Series, TemplateError};

/// Refuses what compiles but is useless.
pub(super) fn check_new(series: &Series) -> Result<(), TemplateError> {
    check_ends(series)?;
    let hidden = |serial: &SerialDefinition| HIDDEN_SERIALS.contains(&&*serial.name);
    if let Some(index) = series.definition.serials.iter().position(hidden) {
        return at(&format!("serials[{index}].name"), FieldFlaw::Reserved);
    }
    let empty = series.variables.iter().find(|variable| !variable.rule.takes_something());
    empty.map_or(Ok(()), |Variable { name, .. }| {
        let declared = &series.definition.variables[name];
        let field = if declared.alphabet.is_some() { "alphabet" } else { "excluded" };
        at(&format!("variables.{name}.{field}"), FieldFlaw::NothingAllowed)
    })
}

/// A number that begins with a sign of formulas becomes one when opened in a spreadsheet, and a
/// blank at an end is lost when the number is copied.
fn check_ends(series: &Series) -> Result<(), TemplateError> {
    let [head, tail] = series.ends();
    let wrong = head.starts_with(|first| first == ' ' || FORMULA_SIGNS.contains(first));
    if wrong || tail.ends_with(' ') {
        let expected = "a template that begins with none of `=`, `+`, `@`, and neither begins nor \
                        ends with a blank";
        return syntax("template", &series.definition.template, expected);
    }
    Ok(())
}

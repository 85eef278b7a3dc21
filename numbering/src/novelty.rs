//! What is asked of a new definition alone. One that was saved before may have issued numbers: it is
//! compiled as it is, so that no rule that came later takes a series out of service.

use super::field::at;
use super::series::Variable;
use super::template_error::FieldFlaw;
use super::{Series, TemplateError};

/// Refuses what compiles and yet is of no use.
pub(super) fn check_new(series: &Series) -> Result<(), TemplateError> {
    let empty = series.variables.iter().find(|variable| !variable.rule.takes_something());
    empty.map_or(Ok(()), |Variable { name, .. }| {
        let declared = &series.definition.variables[name];
        let field = if declared.alphabet.is_some() { "alphabet" } else { "excluded" };
        at(&format!("variables.{name}.{field}"), FieldFlaw::NothingAllowed)
    })
}

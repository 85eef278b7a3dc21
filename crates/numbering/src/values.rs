//! Values that a variable declares: a value that is not among them is a typing error, and would
//! open a counter of its own. Checked for new requests only: issued numbers are read and rendered
//! as before, and the proof takes a variable by its characters and widths, whatever its values are.

use std::collections::BTreeSet;

use super::draft::Told;
use super::error::{InputError, excerpt};
use super::field::{at, check_count};
use super::names::{Names, listed};
use super::nearest::{Head, nearest};
use super::series::Variable;
use super::template_error::FieldFlaw;
use super::{SeriesDefinition, TemplateError};

/// Most values of one variable.
const VALUES_MAX: usize = 1_000;

/// The values, in normal form and in the order in which they were written; at least one.
#[derive(Clone, Debug)]
pub(super) struct DeclaredValues {
    values: Names,
    /// In the form in which they are compared with an unknown value.
    heads: Vec<Head>,
}

impl DeclaredValues {
    fn of(values: Vec<String>) -> Self {
        let heads = values.iter().map(|value| Head::of(value)).collect();
        DeclaredValues { values: values.into(), heads }
    }

    /// The first one.
    pub(super) fn first(&self) -> &str {
        &self.values[0]
    }

    /// Refuses a checked value that is not among these.
    pub(super) fn check(&self, field: &str, value: &str, told: Told) -> Result<(), InputError> {
        if self.values.has(value) {
            return Ok(());
        }
        let hint = match told {
            Told::InBrief => "send the request alone to be told the nearest".to_owned(),
            Told::InFull => match nearest(&self.heads, value) {
                Some(index) => format!("the nearest is {:?}", self.values[index]),
                None => format!("none is near; {}", listed("it takes", &[&self.values])),
            },
        };
        Err(InputError::UnknownValue { field: field.into(), value: excerpt(value), hint })
    }
}

/// Reads the values of all variables, once the template has defined their widths.
pub(super) fn compile(
    definition: &SeriesDefinition,
    variables: &mut [Variable],
) -> Result<(), TemplateError> {
    for variable in variables {
        let declared = definition.variables.get(&variable.name);
        let Some(values) = declared.and_then(|declared| declared.values.as_ref()) else { continue };
        let field = format!("variables.{}.values", variable.name);
        if variable.reference.is_some() {
            return at(&field, FieldFlaw::Contradiction { other: "reference" });
        }
        if values.is_empty() {
            return at(&field, FieldFlaw::Empty { what: "value" });
        }
        check_count(&field, values.len(), VALUES_MAX, "values")?;
        let (mut seen, mut normal) = (BTreeSet::new(), Vec::with_capacity(values.len()));
        for (index, value) in values.iter().enumerate() {
            let field = format!("{field}[{index}]");
            if value.is_empty() {
                return at(&field, FieldFlaw::Empty { what: "character" });
            }
            let value = match variable.rule.check("value", value) {
                Ok(value) => value,
                Err(reason) => return at(&field, FieldFlaw::Refused { reason: Box::new(reason) }),
            };
            if !seen.insert(value.clone()) {
                return at(&field, FieldFlaw::Repeated { value });
            }
            normal.push(value);
        }
        variable.values = Some(DeclaredValues::of(normal));
    }
    Ok(())
}

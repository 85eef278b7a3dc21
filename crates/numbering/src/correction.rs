//! Corrections: what a variable of an issued number should have been, where the number shows
//! nothing of it. Takes no value and renders nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use super::draft::{Told, missing, unknown};
use super::series::Dimension;
use super::{InputError, Series, resolve};

/// Why a variable of an issued number cannot be corrected. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CorrectionError {
    /// The number would be another one.
    #[error(
        "context.{name}: {why} {name}, so with another value it is another number: void it, and \
         take one that replaces it"
    )]
    Fixed {
        /// The variable.
        name: String,
        /// What depends on it.
        why: &'static str,
    },
    /// The series does not take the value.
    #[error(transparent)]
    Input(#[from] InputError),
}

impl CorrectionError {
    /// The field of the request that is wrong.
    #[must_use]
    pub fn field(&self) -> String {
        match self {
            CorrectionError::Fixed { name, .. } => format!("context.{name}"),
            CorrectionError::Input(error) => error.field(),
        }
    }
}

/// The values in codes and in normal form, each of a variable on which nothing of the number
/// depends.
pub(super) fn correct(
    series: &Series,
    values: &BTreeMap<String, String>,
    projects_within: Option<Arc<[String]>>,
) -> Result<BTreeMap<String, String>, CorrectionError> {
    let mut corrected = BTreeMap::new();
    for (name, given) in resolve::values_in_codes(series, values, projects_within)? {
        let index = series.variables.iter().position(|variable| variable.name == name);
        let Some(index) = index else { return Err(unknown(series, &name).into()) };
        if let Some(why) = dependent(series, index) {
            return Err(CorrectionError::Fixed { name, why });
        }
        let (variable, field) = (&series.variables[index], format!("context.{name}"));
        if given.is_empty() {
            return Err(missing(series, field).into());
        }
        let value = variable.rule.check(&field, &given)?;
        if let Some(values) = &variable.values {
            values.check(&field, &value, Told::InFull)?;
        }
        corrected.insert(name, value);
    }
    Ok(corrected)
}

/// What of a number depends on a variable, in words that go before its name.
fn dependent(series: &Series, index: usize) -> Option<&'static str> {
    let is_it = |dimension: &Dimension| *dimension == Dimension::Variable(index);
    if series.variables[index].shown {
        return Some("the number shows");
    }
    if series.counters.iter().any(|rule| rule.dimensions.iter().any(is_it)) {
        return Some("its counter counts by");
    }
    series.scope.iter().any(is_it).then_some("the number is unique within")
}

#[cfg(test)]
mod tests {
    use super::super::VariableDefinition;
    use super::super::testing::series;

    #[test]
    fn a_variable_is_corrected_where_nothing_of_the_number_depends_on_it() {
        let series = series(|definition| {
            definition.template = "{A}-{SEQ:4}".into();
            definition.serials[0].counter = vec!["A".into(), "B".into()];
            for name in ["A", "B", "NOTE"] {
                let width_max = Some(4);
                let variable = VariableDefinition { width_max, ..VariableDefinition::default() };
                definition.variables.insert(name.into(), variable);
            }
        });
        let correct = |name: &str, value: &str| {
            series.correct(&[(name.to_owned(), value.to_owned())].into(), None)
        };
        assert_eq!(correct("NOTE", "ก1").expect("free")["NOTE"], "ก1");
        for (name, value, field) in [
            ("A", "x", "context.A"),
            ("B", "x", "context.B"),
            ("NOTE", "", "context.NOTE"),
            ("NOTE", "longer", "context.NOTE"),
            ("OTHER", "x", "context.OTHER"),
        ] {
            let refused = correct(name, value).expect_err("refused");
            assert_eq!(refused.field(), field, "{refused}");
        }
        let fixed = correct("B", "x").expect_err("counted by").to_string();
        assert!(fixed.contains("counts by B") && fixed.contains("replaces"), "{fixed}");
    }
}

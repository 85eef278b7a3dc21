//! Values from outside: a variable with a `source` is not asked of the request but of the source of
//! that name in the settings. The value is judged like a value of a request. Which source is asked,
//! and how, does not concern the language.
//!
//! Nothing proves that a source gives no value twice. The ledger refuses the second number of one
//! text, and only with the policy `gapless` does it do so before the number is handed out.

use super::draft::Drafted;
use super::field::at;
use super::revision::REVISION;
use super::series::Variable;
use super::served::{ORIGINATORS, RECIPIENT, SUB_TYPE};
use super::template_error::FieldFlaw;
use super::{InputError, Inputs, Policy, Series, SeriesDefinition, TemplateError};

/// Longest name of a source, in characters.
const SOURCE_CHARS_MAX: usize = 32;

/// Variables that decide which series serves a request, or name a document's recipient, and the
/// label that a revision changes.
const ASKED_OF_REQUESTS: [&str; 3] = [SUB_TYPE, RECIPIENT, REVISION];

/// Whether a source can have this name: one that every kind of settings can write.
#[must_use]
pub fn is_source_name(name: &str) -> bool {
    (1..=SOURCE_CHARS_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The value that a source gives to each number of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourcedVariable<'s> {
    /// The variable.
    pub variable: &'s str,
    /// The source, by its name in the settings.
    pub source: &'s str,
}

impl SeriesDefinition {
    /// Whether a source gives a value to each of its numbers.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.variables.values().any(|variable| variable.source.is_some())
    }
}

impl Series {
    /// What a source gives to each number, if one does.
    #[must_use]
    pub fn sourced(&self) -> Option<SourcedVariable<'_>> {
        self.definition.variables.iter().find_map(|(variable, declared)| {
            Some(SourcedVariable { variable, source: declared.source.as_deref()? })
        })
    }
}

/// Refuses combinations that are impossible with a source. It is already known which variables the
/// template shows.
pub(super) fn check(
    definition: &SeriesDefinition,
    variables: &[Variable],
) -> Result<(), TemplateError> {
    let mut known: Option<&str> = None;
    for variable in variables {
        let name = variable.name.as_str();
        let Some(declared) = definition.variables.get(name) else { continue };
        let Some(source) = &declared.source else { continue };
        let field = format!("variables.{name}.source");
        let refuse = |reason| at(&field, FieldFlaw::Source { reason });
        if !is_source_name(source) {
            return refuse(
                "is no name of a source; write 1 to 32 of a-z, 0-9 and `-`, a letter first, as in \
                 the setting external.NAME.address",
            );
        }
        if ORIGINATORS.contains(&name) || ASKED_OF_REQUESTS.contains(&name) {
            return refuse(
                "a request says the value of this variable, which is looked at before any source \
                 is asked; give the variable another name",
            );
        }
        for (other, is_there) in [
            ("required", declared.required),
            ("default", declared.default.is_some()),
            ("values", declared.values.is_some()),
            ("reference", declared.reference.is_some()),
        ] {
            if is_there {
                return at(&field, FieldFlaw::Contradiction { other });
            }
        }
        if definition.policy != Policy::Gapless {
            return refuse(
                "only the ledger can refuse a value that the source gives twice, before its number \
                 is handed out: set `policy = \"gapless\"`",
            );
        }
        if !variable.shown {
            return refuse("no token of the template shows the value; add one, or remove this");
        }
        check_dimensions(definition, name)?;
        if known.replace(name).is_some() {
            return refuse(
                "another variable has a source already, and a number asks one; keep one",
            );
        }
    }
    Ok(())
}

/// Refuses to count, or to distinguish numbers, by what a source gives.
fn check_dimensions(definition: &SeriesDefinition, name: &str) -> Result<(), TemplateError> {
    let counters = definition.serials.iter().enumerate();
    let counters =
        counters.map(|(index, serial)| (format!("serials[{index}].counter"), &serial.counter));
    let scope = ("unique_within".to_owned(), &definition.unique_within);
    match counters.chain([scope]).find(|(_, names)| names.iter().any(|one| one == name)) {
        None => Ok(()),
        Some((field, _)) => {
            let reason = "names a variable whose value a source gives: each value would be a \
                          counter, or a scope, of its own; remove it there";
            at(&field, FieldFlaw::Source { reason })
        }
    }
}

/// A request with a placeholder for the value that its source gives later: as long as that may be,
/// so that any value of the source fits into the number. `None` if no source is asked.
///
/// # Errors
/// A request that brings the value itself.
pub(super) fn with_stand_in(
    series: &Series,
    inputs: &Inputs,
    what: Drafted,
) -> Result<Option<Inputs>, InputError> {
    let Some(SourcedVariable { variable: name, source }) = series.sourced() else {
        return Ok(None);
    };
    if what != Drafted::Asked {
        return Ok(None);
    }
    if inputs.context.contains_key(name) {
        let reason = format!("its value comes from the source {source}; leave it out");
        return Err(InputError::Form { field: format!("context.{name}"), reason });
    }
    let declared = series.variables.iter().find(|variable| variable.name == name);
    let rule = &declared.expect("it is one of them").rule;
    let begins = |sign: &char| rule.takes(*sign, true);
    let readable = ('0'..='9').chain('A'..='Z').find(begins);
    let sign = readable.or_else(|| rule.find(|sign| begins(&sign))).unwrap_or('0');
    let mut inputs = inputs.clone();
    inputs.context.insert(name.to_owned(), sign.to_string().repeat(rule.widths().1));
    Ok(Some(inputs))
}

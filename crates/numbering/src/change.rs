//! Whether a series that has issued numbers may be changed: no version may render again what an
//! earlier one has issued. A counter never gives a value twice, whatever happens to its start, its
//! step or the template; the checks here concern changes after which *another* counter, or another
//! scope, yields the same text.

use std::collections::BTreeMap;

use thiserror::Error;

use super::snowflake::SNOWFLAKE_DIGITS;
use super::template::Part;
use super::{Documents, SerialDefinition, Series, SeriesDefinition};

/// Why a series that has issued numbers cannot be changed in this way; `field` names the place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// Other counters would begin at their start and render what was issued before.
    #[error(
        "{field}: its numbers would come from other counters, which begin anew and could show an \
         issued number again; begin the template with another text (a new `prefix`, for example), \
         or keep name, `counter` and `reset` of the serials as they were"
    )]
    Counters {
        /// The serial that differs.
        field: String,
    },
    /// Counters or scopes would hold ids where they held codes, or ids of another table.
    #[error(
        "{field}: its counters would be named by the ids of a table in one version and not in the \
         other, and begin anew; begin the template with another text (a new `prefix`, for \
         example), or keep its table as it was"
    )]
    References {
        /// The field that names, or named, the table.
        field: String,
    },
    /// An id would name another document than before: a repeated request would get a second number.
    #[error(
        "{field}: an id would name another document than before, and a retry would get a second \
         number; save a successor, a series of another code and text that serves from a day on, or \
         keep it as it was"
    )]
    Documents {
        /// The field that differs.
        field: &'static str,
    },
    /// The journal compares numbers within their scope only.
    #[error(
        "unique_within: numbers to come would not be compared with those issued before; begin the \
         template with another text (a new `prefix`, for example), or keep the scope as it was"
    )]
    Scope,
}

impl ChangeError {
    /// Path of the field at fault within the definition.
    #[must_use]
    pub fn field(&self) -> &str {
        match self {
            ChangeError::Counters { field } | ChangeError::References { field } => field,
            ChangeError::Documents { field } => field,
            ChangeError::Scope => "unique_within",
        }
    }
}

/// Checks that a version may follow an earlier one that has issued numbers.
///
/// Either both take their numbers from the same counters and within the same scope, all named by
/// ids of the same tables or by codes, or no text can be a number of both: they begin or end with
/// different literals, or differ in length. And an id names the same document in both, whatever
/// their texts.
///
/// # Errors
/// See [`ChangeError`].
pub fn check_change(earlier: &Series, next: &Series) -> Result<(), ChangeError> {
    if let Some(field) = other_documents(&earlier.definition, &next.definition) {
        return Err(ChangeError::Documents { field });
    }
    let other_table = next.definition.refers_otherwise_than(&earlier.definition);
    let error = match (other_counters(earlier, next), other_table) {
        (Some(field), _) => ChangeError::Counters { field },
        (None, Some(field)) => ChangeError::References { field },
        (None, None) if other_scope(earlier, next) => ChangeError::Scope,
        (None, None) => return Ok(()),
    };
    if never_alike(earlier, next) { Ok(()) } else { Err(error) }
}

/// What happens to the counters of a version when another follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Succession {
    /// Serials of the next version that continue the counters of the earlier one.
    pub go_on: Vec<String>,
    /// Serials of the next version whose counters begin anew.
    pub begin_anew: Vec<String>,
}

/// Which serials continue the counters of an earlier version.
#[must_use]
pub fn succession(earlier: &Series, next: &Series) -> Succession {
    let is_kept = serials_kept(earlier, next);
    // A serial that counts by the ids of another table starts anew; reported for all serials.
    let has_other_tables = next.definition.refers_otherwise_than(&earlier.definition).is_some();
    let mut told = Succession::default();
    for (serial, is_kept) in next.definition.taken_serials().iter().zip(is_kept) {
        let goes_on = is_kept && !has_other_tables;
        let list = if goes_on { &mut told.go_on } else { &mut told.begin_anew };
        list.push(serial.name.clone());
    }
    told
}

/// The first serial that takes its values from other counters than before, or is new.
fn other_counters(earlier: &Series, next: &Series) -> Option<String> {
    let new = serials_kept(earlier, next).iter().position(|is_kept| !is_kept);
    new.map(|index| format!("serials[{index}]"))
}

/// Of each serial of the next version whether it takes its values from the counters of the earlier
/// one: counters are named by their serial's name, what it counts by, and its period.
fn serials_kept(earlier: &Series, next: &Series) -> Vec<bool> {
    let naming = |serial: &SerialDefinition| {
        // The rest, whatever it is, may name the counter.
        SerialDefinition { start: 1, step: 1, max: None, ..serial.clone() }
    };
    let known: Vec<_> = earlier.definition.taken_serials().iter().map(naming).collect();
    let next = next.definition.taken_serials();
    next.iter().map(|serial| known.contains(&naming(serial))).collect()
}

/// The field by which an id names another document than before.
fn other_documents(earlier: &SeriesDefinition, next: &SeriesDefinition) -> Option<&'static str> {
    if earlier.documents != next.documents {
        return Some("documents");
    }
    // A project of a table is known by its id.
    let is_other_table = earlier.references.project != next.references.project;
    (next.documents == Documents::Project && is_other_table).then_some("references.project")
}

fn other_scope(earlier: &Series, next: &Series) -> bool {
    earlier.definition.unique_within != next.definition.unique_within
}

/// Whether it is plain that no text is a number of both series. False does not prove the contrary.
fn never_alike(one: &Series, other: &Series) -> bool {
    let differ = |(a, b): (char, char)| a != b;
    let (head, other_head) = (literal(one.parts.iter()), literal(other.parts.iter()));
    let (tail, other_tail) = (literal(one.parts.iter().rev()), literal(other.parts.iter().rev()));
    let (least, most) = lengths(one);
    let (other_least, other_most) = lengths(other);
    head.chars().zip(other_head.chars()).any(differ)
        || tail.chars().rev().zip(other_tail.chars().rev()).any(differ)
        || most < other_least
        || other_most < least
}

/// The literal that the first part is; empty if it is none. Neighbouring literals are one part.
fn literal<'p>(mut parts: impl Iterator<Item = &'p Part>) -> &'p str {
    match parts.next() {
        Some(Part::Literal(text)) => text,
        _ => "",
    }
}

/// Least and most characters of a number.
fn lengths(series: &Series) -> (usize, usize) {
    let chars = |part: &Part| match part {
        Part::Literal(text) => (text.chars().count(), text.chars().count()),
        Part::Serial { format, .. } => (format.width, format.width_max()),
        Part::Variable(index) => series.variables[*index].rule.widths(),
        Part::Date(field) => (field.width(), field.width()),
        Part::Check(check) => (check.width(), check.width()),
        Part::Snowflake => (SNOWFLAKE_DIGITS, SNOWFLAKE_DIGITS),
        Part::Project | Part::Type(_) | Part::Phase => (1, super::TEXT_CHARS_MAX),
    };
    series.parts.iter().map(chars).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
}

impl SeriesDefinition {
    /// The dimensions of its counters and of its scope, each with the table whose ids represent its
    /// values there.
    fn tables(&self) -> BTreeMap<&str, Option<&String>> {
        let counted = self.serials.iter().flat_map(|serial| &serial.counter);
        let table = |name: &str| match name {
            "project" => self.references.project.as_ref(),
            "type" => self.references.type_code.as_ref(),
            _ => self.variables.get(name)?.reference.as_ref(),
        };
        self.unique_within.iter().chain(counted).map(|name| (&**name, table(name))).collect()
    }

    /// A dimension of counters or scopes of both that is known by ids of a table in one of them and
    /// by codes, or by another table, in the other: the same document has another counter there.
    /// The field that names the table.
    pub(super) fn refers_otherwise_than(&self, other: &Self) -> Option<String> {
        let there = other.tables();
        let differs =
            |(name, table): &(&str, Option<&String>)| there.get(name).is_some_and(|t| t != table);
        let (name, _) = self.tables().into_iter().find(differs)?;
        Some(match name {
            "project" | "type" => format!("references.{name}"),
            variable => format!("variables.{variable}.reference"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{serial, series};
    use super::super::{Documents, Reset, SeriesDefinition};
    use super::*;

    fn yearly(template: &str) -> SeriesDefinition {
        let mut definition = series(|_| {}).definition().clone();
        definition.template = template.into();
        definition.serials = vec![serial("SEQ")];
        definition.serials[0].counter = vec!["type".into()];
        definition.serials[0].reset = Reset::Year;
        definition
    }

    fn check(earlier: &SeriesDefinition, next: &SeriesDefinition) -> Result<(), ChangeError> {
        let compile = |definition: &SeriesDefinition| Series::compile(definition.clone()).unwrap();
        check_change(&compile(earlier), &compile(next))
    }

    fn changed(
        definition: &SeriesDefinition,
        edit: impl FnOnce(&mut SeriesDefinition),
    ) -> SeriesDefinition {
        let mut next = definition.clone();
        edit(&mut next);
        next
    }

    #[test]
    fn what_goes_on_with_the_same_counters_may_change_freely() {
        let earlier = yearly("{YEAR}-{SEQ:4}");
        for next in [
            changed(&earlier, |next| next.serials[0].start = 500),
            changed(&earlier, |next| next.serials[0].step = 5),
            changed(&earlier, |next| next.serials[0].max = Some(10)),
            changed(&earlier, |next| next.template = "{YEAR}-{SEQ:6}".into()),
            changed(&earlier, |next| next.timezone = Some("Asia/Bangkok".into())),
            changed(&earlier, |next| next.name = "another".into()),
        ] {
            assert_eq!(check(&earlier, &next), Ok(()), "{next:?}");
        }
    }

    #[test]
    fn other_counters_behind_the_same_text_are_refused() {
        let earlier = yearly("{DATE:yyyyMM}-{SEQ:4}");
        let wrong = |edit: fn(&mut SeriesDefinition)| check(&earlier, &changed(&earlier, edit));
        let counters = Err(ChangeError::Counters { field: "serials[0]".into() });
        assert_eq!(wrong(|next| next.serials[0].reset = Reset::Month), counters);
        assert_eq!(wrong(|next| next.serials[0].counter = Vec::new()), counters);
        assert_eq!(wrong(|next| next.serials[0].counter.push("project".into())), counters);
        assert_eq!(wrong(|next| next.unique_within = vec!["type".into()]), Err(ChangeError::Scope));
        let told = |edit: fn(&mut SeriesDefinition)| {
            let next = Series::compile(changed(&earlier, edit)).unwrap();
            succession(&Series::compile(earlier.clone()).unwrap(), &next)
        };
        let seq = || vec!["SEQ".to_owned()];
        let goes_on = Succession { go_on: seq(), begin_anew: Vec::new() };
        assert_eq!(told(|next| next.serials[0].start = 7), goes_on);
        let anew = Succession { go_on: Vec::new(), begin_anew: seq() };
        assert_eq!(told(|next| next.serials[0].reset = Reset::Month), anew);
    }

    #[test]
    fn serials_may_change_places_and_not_names() {
        let mut earlier = yearly("{YEAR}-{SEQ:4}-{SEQ:4:LOT}");
        earlier.serials.push(serial("LOT"));
        assert_eq!(check(&earlier, &changed(&earlier, |next| next.serials.reverse())), Ok(()));
        let renamed = changed(&earlier, |next| {
            next.template = "{YEAR}-{SEQ:4}-{SEQ:4:BOX}".into();
            next.serials[1].name = "BOX".into();
        });
        let error = ChangeError::Counters { field: "serials[1]".into() };
        assert_eq!(check(&earlier, &renamed), Err(error));
    }

    #[test]
    fn other_tables_behind_the_same_text_are_refused() {
        let mut earlier = yearly("{CORR_TYPE}-{SEQ:4}");
        earlier.references.type_code = Some("types".into());
        let field = "references.type".to_owned();
        let refused = Err(ChangeError::References { field });
        for table in [None, Some("kinds")] {
            let tables = |next: &mut SeriesDefinition| {
                next.references.type_code = table.map(str::to_owned);
            };
            assert_eq!(check(&earlier, &changed(&earlier, tables)), refused);
            let next = changed(&changed(&earlier, tables), |next| {
                next.template = "B-{CORR_TYPE}-{SEQ:4}-B".into();
            });
            let before = changed(&earlier, |next| next.template = "A-{CORR_TYPE}-{SEQ:4}".into());
            assert_eq!(check(&before, &next), Ok(()), "another text");
        }
        // A field that no counter and no scope counts by may refer to any table.
        let project = changed(&earlier, |next| next.references.project = Some("projects".into()));
        assert_eq!(check(&earlier, &project), Ok(()));
    }

    #[test]
    fn another_owner_of_documents_is_refused_behind_every_text() {
        let of_series = yearly("A-{YEAR}-{SEQ:4}");
        let of_projects = changed(&of_series, |next| next.documents = Documents::Project);
        let refused = |field| Err(ChangeError::Documents { field });
        for (earlier, next) in [(&of_series, &of_projects), (&of_projects, &of_series)] {
            assert_eq!(check(earlier, next), refused("documents"));
            let next = changed(next, |next| next.template = "B-{YEAR}-{SEQ:4}".into());
            assert_eq!(check(earlier, &next), refused("documents"), "another text");
        }
        let listed = changed(&of_projects, |next| next.references.project = Some("p".into()));
        assert_eq!(check(&of_projects, &listed), refused("references.project"));
        assert_eq!(check(&listed, &of_projects), refused("references.project"));
        let more = changed(&listed, |next| next.once_per_document = Some(true));
        assert_eq!(check(&listed, &more), Ok(()));
    }

    #[test]
    fn other_counters_behind_another_text_are_fine() {
        let earlier = yearly("A-{YEAR}-{SEQ:4}");
        for template in ["B-{YEAR}-{SEQ:4}", "A-{DATE:yyyyMM}-{SEQ:4}", "A-{YEAR}-{SEQ:4}x"] {
            let next = changed(&earlier, |next| {
                next.template = template.into();
                next.serials[0].reset = Reset::Month;
            });
            assert_eq!(check(&earlier, &next), Ok(()), "{template}");
        }
        let alike = changed(&earlier, |next| {
            next.template = "A-{DATE:MM}{SEQ:2}-{SEQ:4:LOT}".into();
            next.serials.push(serial("LOT"));
        });
        assert!(check(&earlier, &alike).is_err(), "A-1225-0001 may be a number of both");
    }
}

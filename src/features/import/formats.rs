//! Another system's configurations as series definitions, to be reviewed and applied like any
//! series file. Never saves one.
//!
//! Knows `com_no_config`, a rule expression for each type, and `document_number_formats`, a
//! template for each project and type. The series counts by everything that such a template shows,
//! so that no two of its counters write the same text.

use std::collections::BTreeSet;

use numbering::{Expression, Series, SeriesDefinition, is_reserved};
use serde_json::{Value, json};

use super::ImportError;
use super::codes::{Codes, REFERENCE_TABLES, TYPES_OF_RULES};
use super::counters::is_deleted;
use super::report::{Problem, ProblemKind};
use super::tables::{Source, TableRow};
use crate::ledger::SeriesVersion;

/// Tables of configurations.
const FORMAT_TABLES: [&str; 2] = ["com_no_config", "document_number_formats"];

/// Variables that a request may omit: 0 means that there is none.
const OPTIONAL: [&str; 4] = ["DISCIPLINE", "DISCIPLINE_CODE", "SUB_TYPE", "RFA_TYPE"];

/// The time zone of dates in the system with rules.
const RULE_ZONE: &str = "Asia/Shanghai";

/// The time zone of years in the system with formats.
const ZONE: &str = "Asia/Bangkok";

/// Most characters of an organization's or discipline's code.
const CODE_CHARS_MAX: usize = 20;

/// Most characters of a unit in a rule that would otherwise have the length of an exchange serial.
const UNIT_CHARS_MAX: usize = 10;

/// Codes of organizations. One of them in a number may contain the separator of its parts: that of
/// the recipient, if it is shown.
const ORGANIZATIONS: [&str; 3] = ["RECIPIENT", "ORIGINATOR", "ORG_CODE"];

/// The result for the configurations of another system.
#[derive(Clone, Debug, Default)]
pub struct Formats {
    /// Series, each of which compiles, of another code and for others than the rest.
    pub definitions: Vec<SeriesDefinition>,
    /// Where each of them comes from.
    places: Vec<String>,
    /// Configurations that become none.
    pub problems: Vec<Problem>,
}

impl Formats {
    /// Adds the series of a configuration, unless it conflicts with an earlier one.
    fn add(&mut self, place: String, definition: SeriesDefinition) {
        let meets = |before: &SeriesDefinition| {
            let serves =
                |one: &SeriesDefinition| (one.serves.types.clone(), one.serves.projects.clone());
            before.code == definition.code || serves(before) == serves(&definition)
        };
        let Some(index) = self.definitions.iter().position(meets) else {
            self.definitions.push(definition);
            self.places.push(place);
            return;
        };
        let (before, first) = (&self.definitions[index], &self.places[index]);
        if *before != (SeriesDefinition { code: before.code.clone(), ..definition }) {
            let types = before.serves.types.join(", ");
            let detail = format!("{first} numbers {types} already, otherwise; delete one of them");
            self.problem(place, ProblemKind::Twice, detail);
        }
    }

    /// Compares with the existing series, active or not: those that already give the same numbers
    /// from the same counters are left out; others of the same code are problems, because an import
    /// never replaces a series.
    pub fn beside(&mut self, there: &[SeriesVersion]) {
        let new = std::mem::take(&mut self.definitions).into_iter();
        for (definition, place) in new.zip(std::mem::take(&mut self.places)) {
            let known = there.iter().find(|known| known.definition.code == definition.code);
            match known {
                None => {
                    self.definitions.push(definition);
                    self.places.push(place);
                }
                Some(known) if gives_the_same(&known.definition, &definition) => {}
                Some(_) => {
                    let code = &definition.code;
                    let detail = format!(
                        "another series {code} is there already: print the configurations, and \
                         apply what you want of them by `series apply`"
                    );
                    self.problem(place, ProblemKind::SeriesTaken, detail);
                }
            }
        }
    }

    fn problem(&mut self, place: String, kind: ProblemKind, detail: String) {
        self.problems.push(Problem { place, number: None, kind, detail });
    }
}

/// Reads the configurations of another system from a PostgreSQL URL, a SQLite file or a MySQL dump.
///
/// # Errors
/// A source that cannot be read or has no row of such a table.
pub async fn read_formats(source: &str, mut codes: Codes) -> Result<Formats, ImportError> {
    let source = Source::of(source)?;
    let reference = REFERENCE_TABLES.map(|(table, _)| table);
    source.read(&reference, &mut |table_row| codes.add(&table_row)).await?;
    let (mut formats, mut rows) = (Formats::default(), 0);
    let there = source
        .read(&FORMAT_TABLES, &mut |table_row| {
            rows += 1;
            if is_deleted(&table_row) {
                return Ok(());
            }
            let definition = match table_row.table {
                "document_number_formats" => of_format(&table_row, &codes),
                _ => of_rule(&table_row, &codes),
            };
            match definition {
                Ok(definition) => formats.add(table_row.place(), definition),
                Err(detail) => formats.problem(table_row.place(), ProblemKind::NotMapped, detail),
            }
            Ok(())
        })
        .await?;
    source.must_have_rows(&FORMAT_TABLES, &there, rows)?;
    Ok(formats)
}

/// Whether two definitions write the same text for the same request, from the same counters: they
/// may be named otherwise, and take fewer or other values and dates.
fn gives_the_same(known: &SeriesDefinition, new: &SeriesDefinition) -> bool {
    let names = |of: &SeriesDefinition| of.variables.keys().cloned().collect::<Vec<_>>();
    let mut alike = SeriesDefinition {
        name: known.name.clone(),
        description: known.description.clone(),
        document_date: known.document_date,
        dates: known.dates,
        variables: known.variables.clone(),
        ..new.clone()
    };
    // A counter of several dimensions is named by all of them, in any order.
    let orders = std::iter::zip(&mut alike.serials, &known.serials);
    orders.for_each(|(one, other)| {
        let sorted = |of: &[String]| of.iter().cloned().collect::<BTreeSet<_>>();
        if sorted(&one.counter) == sorted(&other.counter) {
            one.counter.clone_from(&other.counter);
        }
    });
    names(known) == names(new) && alike == *known
}

/// A rule: an expression, or the address of a service that makes the numbers.
fn of_rule(table_row: &TableRow, codes: &Codes) -> Result<SeriesDefinition, String> {
    let needed = |column: &str| table_row.get(column).ok_or(format!("column {column} is empty"));
    let type_code = codes.code_or_id(TYPES_OF_RULES, needed("bill_type_id")?);
    let rule = needed("rule_value")?;
    if table_row.get("rule_type") == Some("1") {
        return Err(format!("the numbers of {type_code} come from {rule}; no series makes them"));
    }
    // The expression brings the template, the variables and the serials.
    let head = json!({
        "code": code_of(type_code.clone(), "RULE", table_row),
        "name": type_code,
        "serves": { "types": [type_code] },
        "template": "",
        "timezone": RULE_ZONE,
        "serials": [],
    });
    let head: SeriesDefinition = serde_json::from_value(head).map_err(|error| error.to_string())?;
    let expression = Expression::parse(rule).map_err(|error| error.to_string())?;
    let mut definition = expression.define(head).map_err(|error| error.to_string())?;
    for variable in definition.variables.values_mut() {
        variable.width_max.get_or_insert(UNIT_CHARS_MAX);
    }
    compiled(definition)
}

/// The code of a series, or one made from the row's id if no series may have that code.
fn code_of(code: String, kind: &str, table_row: &TableRow) -> String {
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if code.len() <= 64 && code.chars().all(is_code) {
        return code;
    }
    format!("{kind}-{}", table_row.get("id").unwrap_or("0"))
}

/// The definition, if it is one.
fn compiled(definition: SeriesDefinition) -> Result<SeriesDefinition, String> {
    match Series::compile(definition.clone()) {
        Ok(_) => Ok(definition),
        Err(error) => Err(format!("{:?}: {error}", definition.template)),
    }
}

fn of_format(table_row: &TableRow, codes: &Codes) -> Result<SeriesDefinition, String> {
    let needed = |column: &str| table_row.get(column).ok_or(format!("column {column} is empty"));
    let project = codes.code("projects", needed("project_id")?)?;
    let type_code = codes.code("correspondence_types", needed("correspondence_type_id")?)?;
    let template = needed("format_template")?;
    let tokens = tokens(template);
    let shows = |names: &[&str]| tokens.iter().any(|token| names.contains(token));
    let free = ORGANIZATIONS.into_iter().find(|name| tokens.contains(name));
    let mut variables = serde_json::Map::new();
    let mut counter = vec!["project"];
    for name in tokens.iter().filter(|name| !is_reserved(name)) {
        let is_new = variables.insert((*name).to_owned(), variable(name, template, free)).is_none();
        // Revisions of a document share its serial.
        if is_new && *name != "REV" {
            counter.push(name);
        }
    }
    counter.push("type");
    let code = code_of(format!("{project}-{type_code}"), "FORMAT", table_row);
    let definition = json!({
        "code": code,
        "name": format!("{type_code} of {project}"),
        "description": table_row.get("description").unwrap_or_default(),
        "serves": { "types": [type_code], "projects": [project] },
        "template": template,
        "timezone": ZONE,
        "unique_within": ["project", "type"],
        "variables": variables,
        "serials": [{
            "counter": counter,
            "reset": if shows(&["YEAR", "DATE"]) { "year" } else { "none" },
        }],
    });
    let definition: SeriesDefinition =
        serde_json::from_value(definition).map_err(|error| error.to_string())?;
    compiled(definition)
}

/// `free`: the variable that may contain the separator of the parts.
fn variable(name: &str, template: &str, free: Option<&str>) -> Value {
    let is_optional = OPTIONAL.contains(&name);
    let is_separated = template.contains('-') && free != Some(name);
    json!({
        "required": !is_optional,
        "default": is_optional.then_some("0"),
        // At most one of the parts of a number contains the separator.
        "excluded": is_separated.then_some("-"),
        "width_max": CODE_CHARS_MAX,
    })
}

/// Names of a template's tokens; the template itself is checked when it is compiled.
fn tokens(template: &str) -> Vec<&str> {
    let inner = template.split('{').skip(1).filter_map(|part| part.split_once('}'));
    inner.map(|(token, _)| token.split(':').next().unwrap_or(token)).collect()
}

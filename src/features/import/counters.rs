//! Plans the import of another system's counters: each row of its table becomes a counter here and
//! its highest issued value. Several rows may be the same counter here: the highest counts.
//!
//! Knows `document_sequence` (a counter for each type and day), `com_no_serial` (one for each text
//! around the serial), and `document_number_counters` with five key columns or with eight.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use numbering::{
    CounterKey, Inputs, NUMBER_MAX, Reset, Serial, SeriesDefinition, VariableDefinition,
};

use super::codes::{Codes, REFERENCE_TABLES, TYPES_OF_RULES};
use super::numbers::reader;
use super::reading::{Form, Misfit};
use super::report::{Plan, ProblemKind};
use super::rows::Row;
use super::tables::{Source, TableRow};
use super::tally::{Tally, plan_tables};
use super::{Import, ImportError};
use crate::engine::allocator::ServedSeries;

/// Tables of counters.
const COUNTER_TABLES: [&str; 3] =
    ["document_sequence", "com_no_serial", "document_number_counters"];

/// Columns of `document_number_counters` that are ids, with their reference tables and with the
/// variables that series call them by.
const ID_COLUMNS: [(&str, &str, &[&str]); 5] = [
    ("originator_organization_id", "organizations", &["ORIGINATOR", "ORG_CODE"]),
    ("recipient_organization_id", "organizations", &["RECIPIENT"]),
    ("sub_type_id", "correspondence_sub_types", &["SUB_TYPE"]),
    ("rfa_type_id", "rfa_types", &["RFA_TYPE"]),
    ("discipline_id", "disciplines", &["DISCIPLINE", "DISCIPLINE_CODE"]),
];

/// First day of a year.
const NEW_YEAR: &str = "01-01";

/// Last day of a year.
const NEW_YEARS_EVE: &str = "12-31";

/// Values for variables that are shown but not counted by: the first that the series takes.
const FILLERS: [&str; 3] = ["A", "0", "a"];

/// Reads the counters of another system from a PostgreSQL URL, a SQLite file or a MySQL dump, and
/// says which counters they become.
///
/// # Errors
/// A source that cannot be read or has no such table; a ledger that does not answer.
pub async fn plan_counters(
    import: &Import<'_>,
    source: &str,
    mut codes: Codes,
) -> Result<Plan, ImportError> {
    let source = Source::of(source)?;
    let mut rules = HashMap::new();
    let mut tables: Vec<&'static str> = REFERENCE_TABLES.iter().map(|(table, _)| *table).collect();
    tables.push("com_no_config");
    source
        .read(&tables, &mut |table_row| match table_row.get("bill_type_id") {
            Some(bill_type) if table_row.table == "com_no_config" => {
                let rule = (bill_type.to_owned(), is_deleted(&table_row));
                note_rule(&mut rules, &table_row, rule)
            }
            _ => codes.add(&table_row),
        })
        .await?;
    let mapping = Mapping { import, codes: &codes, rules: &rules };
    plan_tables(import, &source, &COUNTER_TABLES, |table_row, tally| {
        let counter = mapping.counter(table_row)?;
        if let Some(counter) = &counter {
            counter.note(tally);
        }
        Ok(counter.is_some())
    })
    .await
}

/// Notes a rule: its document type, and whether it is deleted.
///
/// # Errors
/// `Form` where its id is another rule's already.
fn note_rule(
    rules: &mut HashMap<String, (String, bool)>,
    table_row: &TableRow,
    rule: (String, bool),
) -> Result<(), ImportError> {
    let id = table_row.get("id").unwrap_or_default();
    if rules.get(id).is_some_and(|before| *before != rule) {
        let why = format!("rule {id} appears twice, otherwise: dump one database alone");
        return Err(ImportError::form(table_row.place(), why));
    }
    rules.insert(id.to_owned(), rule);
    Ok(())
}

/// Whether a row is marked as deleted: 1 yes, 2 no.
pub(super) fn is_deleted(table_row: &TableRow) -> bool {
    table_row.get("is_deleted") == Some("1")
}

/// A counter that another system has counted up to a place of its serial's step.
struct Counter {
    served: Arc<ServedSeries>,
    key: CounterKey,
    place: u64,
}

impl Counter {
    fn note(&self, tally: &mut Tally) {
        let serial = &self.served.series.serials()[0];
        tally.counted_upto(&self.served, serial, &self.key.to_string(), self.place);
    }
}

/// How rows become counters.
struct Mapping<'a> {
    import: &'a Import<'a>,
    codes: &'a Codes,
    /// Document type of each rule, and whether it is deleted.
    rules: &'a HashMap<String, (String, bool)>,
}

impl Mapping<'_> {
    /// The counter of a row; `None` if it has counted nothing, or is deleted and has no data.
    fn counter(&self, table_row: &TableRow) -> Result<Option<Counter>, Misfit> {
        match table_row.table {
            "document_sequence" => self.of_day(table_row),
            "com_no_serial" => self.of_text(table_row),
            _ => self.of_ids(table_row),
        }
    }

    fn of_day(&self, table_row: &TableRow) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(table_row, "current_no")? else { return Ok(None) };
        let inputs = Inputs {
            type_code: needed(table_row, "sequence_type")?.to_owned(),
            date: Some(day(needed(table_row, "sequence_date")?)?.to_owned()),
            ..Inputs::default()
        };
        let served = self.served(&inputs)?;
        let serial = served.version.definition.serials.first();
        if serial.is_none_or(|serial| serial.reset != Reset::Day) {
            return Err(other_period(&served, "days"));
        }
        let key = self.key(&served, &inputs)?;
        at(served, key, value)
    }

    /// The text around a serial, which has `%s` in its place. Numbers of deleted things are issued
    /// nevertheless, so such a row counts as far as it can be read.
    fn of_text(&self, table_row: &TableRow) -> Result<Option<Counter>, Misfit> {
        let rule = table_row.get("rule_id").and_then(|rule| self.rules.get(rule));
        let is_deleted = is_deleted(table_row) || rule.is_some_and(|(_, is_deleted)| *is_deleted);
        match self.of_rule_format(table_row) {
            Err(_) if is_deleted => Ok(None),
            read => read,
        }
    }

    fn of_rule_format(&self, table_row: &TableRow) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(table_row, "serial_no")? else { return Ok(None) };
        let rule = needed(table_row, "rule_id")?;
        let Some((bill_type, _)) = self.rules.get(rule) else {
            let detail = format!("rule {rule} is not in com_no_config");
            return Err(Misfit::new(ProblemKind::NotMapped, detail));
        };
        let text = needed(table_row, "rule_format")?;
        let type_code = Some(self.codes.code_or_id(TYPES_OF_RULES, bill_type));
        let row = Row { number: text.to_owned(), type_code, ..Row::default() };
        let reading = reader(self.import, Form::RuleFormat).read(&row);
        let reading = reading.map_err(|Misfit { kind, detail, .. }| match kind {
            ProblemKind::Missing => {
                let why = "does not show its counter; import its numbers instead";
                Misfit::new(ProblemKind::NotMapped, format!("{text:?} {why}: {detail}"))
            }
            kind => Misfit::new(kind, format!("{text:?}: {detail}")),
        })?;
        let served = of_one_serial(&reading.served)?;
        at(served, first(reading.draft.keys), value)
    }

    fn of_ids(&self, table_row: &TableRow) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(table_row, "last_number")? else { return Ok(None) };
        let coded = |table, id: &str| {
            let code = self.codes.code(table, id);
            code.map_err(|detail| Misfit::new(ProblemKind::NotMapped, detail))
        };
        let mut inputs = Inputs {
            type_code: coded("correspondence_types", needed(table_row, "correspondence_type_id")?)?,
            project: Some(coded("projects", needed(table_row, "project_id")?)?),
            ..Inputs::default()
        };
        let (mut known, mut lacking) = (Vec::new(), Vec::new());
        // Originator and sub type may decide which series it is; only that one knows their names.
        let mut asked = inputs.clone();
        for (column, table, names) in ID_COLUMNS {
            // 0 and NULL mean that there is none; a missing column means nothing.
            let Some(id) = table_row.get(column).filter(|id| *id != "0") else {
                if !table_row.has(column) {
                    lacking.push((column, names));
                }
                continue;
            };
            let code = coded(table, id);
            if let Ok(code) = &code {
                asked.context.extend(names.iter().map(|name| ((*name).to_owned(), code.clone())));
            }
            known.push((names, code));
        }
        let year = needed(table_row, "current_year")?;
        let on = |inputs: &Inputs, day: &str| {
            let date = Some(format!("{year:0>4}-{day}"));
            Inputs { date, ..inputs.clone() }
        };
        let served = self.served(&on(&asked, NEW_YEAR))?;
        let definition = &served.version.definition;
        let counted = |(_, names): &&(&str, &[&str])| names.iter().any(|n| counts(definition, n));
        if let Some((column, _)) = lacking.iter().find(counted) {
            let code = &definition.code;
            let detail = format!("the table has no column {column}, by which series {code} counts");
            return Err(Misfit::new(ProblemKind::NotMapped, detail));
        }
        let declared = &definition.variables;
        for (names, code) in known {
            if let Some(name) = names.iter().find(|name| declared.contains_key(**name)) {
                inputs.context.insert((*name).to_owned(), code?);
            }
        }
        let key = self.key(&served, &on(&inputs, NEW_YEAR))?;
        // A successor may take over within the year.
        let last = self.served(&on(&asked, NEW_YEARS_EVE))?;
        let is_same = served.version.series_id == last.version.series_id;
        if !is_same || key != self.key(&served, &on(&inputs, NEW_YEARS_EVE))? {
            return Err(other_period(&served, "calendar years"));
        }
        at(served, key, value)
    }

    /// The series that a request like this gets.
    fn served(&self, inputs: &Inputs) -> Result<Arc<ServedSeries>, Misfit> {
        let served = self.import.catalog.choose(inputs, self.import.now);
        let served =
            served.map_err(|error| Misfit::new(ProblemKind::NotRead, error.to_string()))?;
        of_one_serial(served)
    }

    /// The counter that a request like this takes from. Variables that the number shows but the
    /// counter does not count by are filled in.
    fn key(&self, served: &ServedSeries, inputs: &Inputs) -> Result<CounterKey, Misfit> {
        let definition = &served.version.definition;
        let open = definition.variables.iter().filter(|(name, variable)| {
            !counts(definition, name)
                && variable.default.is_none()
                && !inputs.context.contains_key(*name)
        });
        let open: BTreeMap<&String, &VariableDefinition> = open.collect();
        let mut refusal = None;
        for filler in FILLERS {
            let mut inputs = inputs.clone();
            for (name, variable) in &open {
                let text = filler.repeat(variable.width.unwrap_or(1));
                inputs.context.insert((*name).clone(), text);
            }
            match served.series.draft_issued(&inputs, self.import.now) {
                Ok(draft) => return Ok(first(draft.keys)),
                Err(error) => refusal = Some(error),
            }
        }
        let detail = refusal.map_or_else(String::new, |error| error.to_string());
        Err(Misfit::new(ProblemKind::NotMapped, format!("series {}: {detail}", definition.code)))
    }
}

/// Whether a value decides which counter it is, or in which scope its numbers are unique.
fn counts(definition: &SeriesDefinition, name: &str) -> bool {
    let mut dimensions = definition.serials.iter().flat_map(|serial| &serial.counter);
    dimensions.any(|dimension| dimension == name)
        || definition.unique_within.iter().any(|dimension| dimension == name)
}

/// A day. A database may write midnight after it; another time of day, or a zone, makes it an
/// instant, which may belong to the day before or after.
fn day(text: &str) -> Result<&str, Misfit> {
    let (day, rest) = text.split_at_checked(10).unwrap_or((text, ""));
    let is_midnight = |time: &str| {
        time.starts_with("00:00") && time.bytes().all(|byte| matches!(byte, b'0' | b':' | b'.'))
    };
    if rest.is_empty() || rest.strip_prefix([' ', 'T']).is_some_and(is_midnight) {
        return Ok(day);
    }
    let detail = format!(
        "column sequence_date is {text:?}, a moment and no day: it may be another day where the \
         series counts; give the column the type date"
    );
    Err(Misfit::new(ProblemKind::Value, detail))
}

/// The series, if it has one serial: a table has no data about further ones.
fn of_one_serial(served: &Arc<ServedSeries>) -> Result<Arc<ServedSeries>, Misfit> {
    if served.series.serials().len() == 1 {
        return Ok(Arc::clone(served));
    }
    let code = &served.version.definition.code;
    let detail = format!("series {code} has several serials; import its numbers instead");
    Err(Misfit::new(ProblemKind::NotMapped, detail))
}

/// A series that counts by another period than its table.
fn other_period(served: &ServedSeries, periods: &str) -> Misfit {
    let code = &served.version.definition.code;
    let detail = format!(
        "series {code} does not count by {periods} as the table does; import its numbers instead"
    );
    Misfit::new(ProblemKind::NotMapped, detail)
}

/// The key of the one serial.
fn first(keys: Vec<CounterKey>) -> CounterKey {
    keys.into_iter().next().unwrap_or(CounterKey { parts: Vec::new() })
}

/// The counter at a value. A value between two steps counts as the next: the number after it must
/// be above.
fn at(served: Arc<ServedSeries>, key: CounterKey, value: u64) -> Result<Option<Counter>, Misfit> {
    let Serial { start, step, max, name } = &served.series.serials()[0];
    if value < *start {
        return Ok(None);
    }
    let place = (value - start).div_ceil(*step);
    if place.checked_mul(*step).is_none_or(|distance| distance > max.saturating_sub(*start)) {
        let detail = format!("{value} is more than the highest of serial {name}, {max}");
        return Err(Misfit::new(ProblemKind::Value, detail));
    }
    Ok(Some(Counter { served, key, place }))
}

/// The value of a column that must be there.
pub(super) fn needed<'r>(table_row: &'r TableRow, column: &str) -> Result<&'r str, Misfit> {
    let none = || Misfit::new(ProblemKind::Missing, format!("column {column} is empty or missing"));
    table_row.get(column).ok_or_else(none)
}

/// The value of a column; `None` if nothing was counted.
fn value(table_row: &TableRow, column: &str) -> Result<Option<u64>, Misfit> {
    let Some(text) = table_row.get(column) else {
        return if table_row.has(column) {
            Ok(None)
        } else {
            needed(table_row, column).map(|_| None)
        };
    };
    let refused = |why: String| {
        Err(Misfit::new(ProblemKind::Value, format!("column {column} is {text:?}, {why}")))
    };
    // A column of numbers may come with empty decimals.
    let whole = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
    match whole.map_or(text, |(whole, _)| whole).parse::<u128>() {
        Ok(0) => Ok(None),
        Ok(value) => match u64::try_from(value).ok().filter(|value| *value <= NUMBER_MAX) {
            Some(value) => Ok(Some(value)),
            None => refused(format!("more than the highest value there is, {NUMBER_MAX}")),
        },
        Err(_) => refused("not a count".into()),
    }
}

//! Plans the import of another system's counters: each row of its table becomes a counter here and
//! the highest value that was issued of it. Several rows may meet in one counter: the highest
//! counts.
//!
//! Knows `document_sequence` (a counter for each type and day), `com_no_serial` (one for each text
//! that stands around the serial), and `document_number_counters` with five key columns or with
//! eight.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::codes::{Codes, REFERENCE_TABLES};
use super::numbers::reader;
use super::reading::{Form, Misfit};
use super::report::{Plan, ProblemKind};
use super::rows::Row;
use super::tables::{Record, Source};
use super::tally::{Tally, plan_tables};
use super::{Import, ImportError};
use crate::allocator::ServedSeries;
use crate::number::{CounterKey, Inputs, NUMBER_MAX, Reset, Serial, VariableDefinition};

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
        .read(&tables, &mut |record| {
            match record.get("bill_type_id") {
                Some(bill_type) if record.table == "com_no_config" => {
                    let rule = record.get("id").unwrap_or_default().to_owned();
                    rules.insert(rule, (bill_type.to_owned(), is_deleted(&record)));
                }
                _ => codes.add(&record),
            }
            Ok(())
        })
        .await?;
    let mapping = Mapping { import, codes: &codes, rules: &rules };
    plan_tables(import, &source, &COUNTER_TABLES, |record, tally| {
        let counter = mapping.counter(record)?;
        if let Some(counter) = &counter {
            counter.note(tally);
        }
        Ok(counter.is_some())
    })
    .await
}

/// Whether a row is marked as deleted: 1 yes, 2 no.
pub(super) fn is_deleted(record: &Record) -> bool {
    record.get("is_deleted") == Some("1")
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
    /// The counter of a row; `None` where it has counted nothing, or is deleted.
    fn counter(&self, record: &Record) -> Result<Option<Counter>, Misfit> {
        match record.table {
            "document_sequence" => self.of_day(record),
            "com_no_serial" => self.of_text(record),
            _ => self.of_ids(record),
        }
    }

    fn of_day(&self, record: &Record) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(record, "current_no")? else { return Ok(None) };
        let date = needed(record, "sequence_date")?;
        let inputs = Inputs {
            type_code: needed(record, "sequence_type")?.to_owned(),
            // A database may write midnight behind it.
            date: Some(date.get(..10).unwrap_or(date).to_owned()),
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

    /// The text around a serial, which has `%s` in its place.
    fn of_text(&self, record: &Record) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(record, "serial_no")? else { return Ok(None) };
        let rule = needed(record, "rule_id")?;
        let Some((bill_type, rule_is_deleted)) = self.rules.get(rule) else {
            let detail = format!("rule {rule} is not in com_no_config");
            return Err(Misfit::new(ProblemKind::NotMapped, detail));
        };
        if is_deleted(record) || *rule_is_deleted {
            return Ok(None);
        }
        let text = needed(record, "rule_format")?;
        let type_code = Some(self.codes.code_or_id("bill_types", bill_type));
        let row = Row { number: text.to_owned(), type_code, ..Row::default() };
        let reading = reader(self.import, Form::RuleFormat).read(&row);
        let reading = reading.map_err(|Misfit { kind, detail, .. }| match kind {
            ProblemKind::Missing => {
                let why = "does not tell its counter; import its numbers instead";
                Misfit::new(ProblemKind::NotMapped, format!("{text:?} {why}: {detail}"))
            }
            kind => Misfit::new(kind, format!("{text:?}: {detail}")),
        })?;
        let served = of_one_serial(&reading.served)?;
        at(served, first(reading.draft.keys), value)
    }

    fn of_ids(&self, record: &Record) -> Result<Option<Counter>, Misfit> {
        let Some(value) = value(record, "last_number")? else { return Ok(None) };
        let coded = |table, id: &str| {
            let code = self.codes.code(table, id);
            code.map_err(|detail| Misfit::new(ProblemKind::NotMapped, detail))
        };
        let mut inputs = Inputs {
            type_code: coded("correspondence_types", needed(record, "correspondence_type_id")?)?,
            project: Some(coded("projects", needed(record, "project_id")?)?),
            ..Inputs::default()
        };
        let mut known = Vec::new();
        // Originator and sub type may decide which series it is; only that one tells their names.
        let mut asked = inputs.clone();
        for (column, table, names) in ID_COLUMNS {
            // 0 and NULL say that there is none.
            let Some(id) = record.get(column).filter(|id| *id != "0") else { continue };
            let code = coded(table, id);
            if let Ok(code) = &code {
                asked.context.extend(names.iter().map(|name| ((*name).to_owned(), code.clone())));
            }
            known.push((names, code));
        }
        let served = self.served(&asked)?;
        let declared = &served.version.definition.variables;
        for (names, code) in known {
            if let Some(name) = names.iter().find(|name| declared.contains_key(**name)) {
                inputs.context.insert((*name).to_owned(), code?);
            }
        }
        let year = needed(record, "current_year")?;
        let on = |day: &str| {
            let date = Some(format!("{year:0>4}-{day}"));
            self.key(&served, &Inputs { date, ..inputs.clone() })
        };
        let key = on("01-01")?;
        if key != on("12-31")? {
            return Err(other_period(&served, "calendar years"));
        }
        at(served, key, value)
    }

    /// The series that a request like this gets.
    fn served(&self, inputs: &Inputs) -> Result<Arc<ServedSeries>, Misfit> {
        let served = self.import.catalog.choose(inputs);
        let served =
            served.map_err(|error| Misfit::new(ProblemKind::NotRead, error.to_string()))?;
        of_one_serial(served)
    }

    /// The counter that a request like this takes from. What the number shows but the counter does
    /// not count by is filled in.
    fn key(&self, served: &ServedSeries, inputs: &Inputs) -> Result<CounterKey, Misfit> {
        let definition = &served.version.definition;
        let counts = |name: &String| {
            definition.serials.iter().any(|serial| serial.counter.contains(name))
                || definition.unique_within.contains(name)
        };
        let open = definition.variables.iter().filter(|(name, variable)| {
            !counts(name) && variable.default.is_none() && !inputs.context.contains_key(*name)
        });
        let open: BTreeMap<&String, &VariableDefinition> = open.collect();
        let mut refusal = None;
        for filler in FILLERS {
            let mut inputs = inputs.clone();
            for (name, variable) in &open {
                let text = filler.repeat(variable.width.unwrap_or(1));
                inputs.context.insert((*name).clone(), text);
            }
            match served.series.draft(&inputs, self.import.now) {
                Ok(draft) => return Ok(first(draft.keys)),
                Err(error) => refusal = Some(error),
            }
        }
        let detail = refusal.map_or_else(String::new, |error| error.to_string());
        Err(Misfit::new(ProblemKind::NotMapped, format!("series {}: {detail}", definition.code)))
    }
}

/// The series, if it has one serial: a table says nothing of more.
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

/// The counter at a value. One that lies between two steps counts as the next: the number after it
/// must be above.
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
pub(super) fn needed<'r>(record: &'r Record, column: &str) -> Result<&'r str, Misfit> {
    let none = || Misfit::new(ProblemKind::Missing, format!("column {column} is empty or missing"));
    record.get(column).ok_or_else(none)
}

/// The value of a column; `None` where nothing was counted.
fn value(record: &Record, column: &str) -> Result<Option<u64>, Misfit> {
    let Some(text) = record.get(column) else {
        return if record.has(column) { Ok(None) } else { needed(record, column).map(|_| None) };
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

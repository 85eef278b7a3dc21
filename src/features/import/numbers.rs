//! Plans the import of a list: every row is read, and nothing is written.

use std::collections::BTreeSet;

use numbering::{InputError, Serial};

use super::exported::Extra;
use super::reading::{Form, Reader, Reading};
use super::report::{Plan, Problem, ProblemKind, Report};
use super::rows::{Row, Rows};
use super::tally::Tally;
use super::twice::Twice;
use super::{Import, ImportError, ListFile};

/// Numbers per query to the journal.
const ASKED_AT_ONCE: usize = 1_000;

/// Reads a list and reports what would be imported, and what prevents it.
///
/// # Errors
/// A file that cannot be read or whose head is not understood; a ledger that does not answer.
pub async fn plan_numbers(import: &Import<'_>, list: &ListFile) -> Result<Plan, ImportError> {
    let mut rows = open(import, list)?;
    let reader = reader(import, Form::Number);
    let mut planning = Planning { import, report: Report::default(), asked: Vec::new() };
    let mut twice = Twice::default();
    let mut with_documents = BTreeSet::new();
    planning.report.source = list.name().to_owned();
    let mut tally = Tally::default();
    while let Some(row) = rows.next()? {
        planning.report.rows += 1;
        (import.progress)(rows.metered().bytes());
        let row = match row {
            Ok(row) => row,
            Err(problem) => {
                planning.report.add(problem);
                continue;
            }
        };
        if row.extra.is_of_counter() {
            planning.report.skipped += 1;
            if let Err(problem) = note_counter(import, &mut tally, &row) {
                planning.report.add(problem);
            }
            continue;
        }
        match reader.read(&row) {
            Err(misfit) => {
                let (number, kind) = (Some(&*row.number), misfit.kind);
                planning.report.add(Problem::of_line(row.line, number, kind, misfit.detail));
            }
            Ok(reading) => {
                if let Some(closed) = reading.draft.closed.as_ref() {
                    if !import.choice.into_closed {
                        planning.report.add(closed_for(&row, closed));
                        continue;
                    }
                    planning.report.into_closed += 1;
                }
                // If only an earlier version can have issued it, only the journal is queried.
                if reading.outside.is_none() {
                    if let Some(met) = note(&mut tally, &reading)? {
                        twice.note(&mut planning.report, &reading, met, row.line);
                        continue;
                    }
                    planning.report.numbers += reading.count();
                    planning.report.assigned += row.extra.assigned;
                    if row.document_id.is_some() {
                        with_documents.insert(reading.served.version.partition);
                    }
                }
                planning.asked.push(Asked::of(reading, row.line));
                if planning.asked.len() == ASKED_AT_ONCE {
                    planning.ask().await?;
                }
            }
        }
    }
    planning.ask().await?;
    if rows.is_export() {
        tally.untold().into_iter().for_each(|counter| planning.report.add(untold(counter)));
    }
    planning.report.rows += rows.skipped;
    planning.report.skipped += rows.skipped;
    planning.report.sha256 = Some(rows.metered().sha256());
    twice.tell(open(import, list)?, &reader, &mut planning.report)?;
    let mut plan = tally.plan(import, planning.report).await?;
    // Redis would go on to take a document that it does not know for a new one (F29).
    plan.handed_over.extend(with_documents);
    Ok(plan)
}

/// Opens a list for this ledger's series.
pub(super) fn open(import: &Import<'_>, list: &ListFile) -> Result<Rows, ImportError> {
    if let Some(code) = &import.choice.series
        && import.catalog.all().all(|served| served.version.definition.code != *code)
    {
        let why = "there is no such series; `numerator series list` lists them";
        return Err(ImportError::form(format!("--series {code}"), why));
    }
    let variables: BTreeSet<String> = import
        .catalog
        .all()
        .flat_map(|served| served.version.definition.variables.keys().cloned())
        .collect();
    Rows::open(list, &variables)
}

/// A reader of texts of a form.
pub(super) fn reader<'a>(import: &Import<'a>, form: Form) -> Reader<'a> {
    Reader { catalog: import.catalog, choice: import.choice, now: import.now, form }
}

/// The problem of a number that is dated in a closed period.
fn closed_for(row: &Row, closed: &InputError) -> Problem {
    let detail = format!("{closed}; --into-closed adds it to that period all the same");
    Problem::of_line(row.line, Some(&row.number), ProblemKind::Closed, detail)
}

/// The problem of a counter of an export without a row of its own: its last value may be in no row.
fn untold((series, _, key): (String, String, String)) -> Problem {
    let detail = "no row says up to which value it has counted, and the last ones may have been \
                  archived, put aside or left out: write the list with `export --counters`";
    let place = format!("series {series}, counter {key}");
    Problem { place, number: None, kind: ProblemKind::Missing, detail: detail.into() }
}

/// Adds what an export says of a counter: it goes on above that.
fn note_counter(import: &Import<'_>, tally: &mut Tally, row: &Row) -> Result<(), Problem> {
    let Extra { series, serial, counter_key, ranges, .. } = &row.extra;
    let code = import.choice.series.as_ref().or(series.as_ref());
    let flawed = |detail: &str| Problem::of_line(row.line, None, ProblemKind::Missing, detail);
    let (Some(code), Some(key), Some(range)) = (code, counter_key, ranges.first()) else {
        return Err(flawed("a counter's row needs series, counter_key and serials"));
    };
    let mut all = import.catalog.all();
    let served = all.find(|served| served.version.definition.code == *code);
    let served = served.ok_or_else(|| flawed("there is no such series"))?;
    let named = |of: &&Serial| serial.as_ref().is_none_or(|name| *name == of.name);
    let serial = served.series.serials().iter().find(named);
    let serial = serial.ok_or_else(|| flawed("the series has no such serial"))?;
    let place = range.last.checked_sub(serial.start).map(|distance| distance / serial.step);
    tally.counted_upto(served, serial, key, place.unwrap_or(0));
    if row.extra.is_whole() {
        tally.tell(served, serial, key);
    }
    Ok(())
}

/// Adds the values of a number to their counters; the place of a serial, and a value of it that was
/// there before.
fn note(tally: &mut Tally, reading: &Reading) -> Result<Option<(usize, u64)>, ImportError> {
    let serials = reading.served.series.serials();
    // Chronology depends on the first serial.
    let mut family = reading.draft.family.as_deref();
    let taken = serials.iter().zip(&reading.draft.keys).take(reading.values.len());
    for (place, (serial, key)) in taken.enumerate() {
        let (key, values) = (key.to_string(), reading.range(place, serial.step));
        if let Some(value) = tally.number(&reading.served, serial, &key, values, family.take())? {
            return Ok(Some((place, value)));
        }
    }
    Ok(None)
}

/// A number that the journal is still to be queried for.
struct Asked {
    line: u64,
    number: String,
    scope: String,
    /// Why it is not imported, unless it was issued here.
    outside: Option<String>,
}

impl Asked {
    fn of(reading: Reading, line: u64) -> Self {
        let Reading { number, draft, outside, .. } = reading;
        Asked { line, number, scope: draft.scope, outside }
    }
}

/// A plan in the making.
struct Planning<'a> {
    import: &'a Import<'a>,
    report: Report,
    asked: Vec<Asked>,
}

impl Planning<'_> {
    /// Queries the journal for numbers that it already has.
    async fn ask(&mut self) -> Result<(), ImportError> {
        let (mut places, mut numbers) = (Vec::new(), Vec::new());
        for Asked { line, number, scope, outside } in self.asked.drain(..) {
            places.push((line, outside));
            numbers.push((number, scope));
        }
        let issued = self.import.ledger.imports().issued(&numbers).await?;
        for (((line, outside), (number, _)), issued) in places.into_iter().zip(numbers).zip(issued)
        {
            let (kind, detail) = match outside {
                _ if issued => (ProblemKind::Issued, "the journal has it already".to_owned()),
                None => continue,
                Some(outside) => {
                    let why = "an earlier version of the series could issue it, and has not";
                    (ProblemKind::Value, format!("{outside}; {why}"))
                }
            };
            self.report.add(Problem::of_line(line, Some(&number), kind, detail));
        }
        Ok(())
    }
}

//! Plans the import of a list: every row is read, and nothing is written.

use std::collections::BTreeSet;

use super::reading::{Form, Reader, Reading};
use super::report::{Plan, Problem, ProblemKind, Report};
use super::rows::Rows;
use super::tally::Tally;
use super::{Import, ImportError, ListFile};

/// Numbers that the journal is asked for at once.
const ASKED_AT_ONCE: usize = 1_000;

/// Reads a list and says what would be imported, and what keeps it from being so.
///
/// # Errors
/// A file that cannot be read or whose head is not understood; a ledger that does not answer.
pub async fn plan_numbers(import: &Import<'_>, list: &ListFile) -> Result<Plan, ImportError> {
    let mut rows = open(import, list)?;
    let reader = reader(import, Form::Number);
    let mut planning = Planning { import, report: Report::default(), asked: Vec::new() };
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
        match reader.read(&row) {
            Err(misfit) => {
                let number = Some(&*row.number);
                let problem = Problem::of_line(row.line, number, misfit.kind, misfit.detail);
                planning.report.add(problem);
            }
            Ok(reading) => {
                if let Some(problem) = note(&mut tally, &reading, row.line)? {
                    planning.report.add(problem);
                    continue;
                }
                planning.report.numbers += 1;
                if row.document_id.is_some() {
                    with_documents.insert(reading.served.version.partition);
                }
                planning.asked.push((row.line, reading.number, reading.draft.scope));
                if planning.asked.len() == ASKED_AT_ONCE {
                    planning.ask().await?;
                }
            }
        }
    }
    planning.ask().await?;
    planning.report.sha256 = Some(rows.metered().sha256());
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

/// Adds the values of a number to their counters; the problem where one is there before.
fn note(tally: &mut Tally, reading: &Reading, line: u64) -> Result<Option<Problem>, ImportError> {
    let serials = reading.served.series.serials();
    // Chronology goes by the first serial.
    let mut family = reading.draft.family.as_deref();
    for ((serial, key), value) in serials.iter().zip(&reading.draft.keys).zip(&reading.values) {
        let key = key.to_string();
        if !tally.number(&reading.served, serial, &key, *value, family.take())? {
            let code = reading.code();
            let detail = format!("value {value} of series {code}, counter {key}, is there before");
            let number = Some(&*reading.number);
            return Ok(Some(Problem::of_line(line, number, ProblemKind::Twice, detail)));
        }
    }
    Ok(None)
}

/// A plan in the making.
struct Planning<'a> {
    import: &'a Import<'a>,
    report: Report,
    /// Lines, numbers and scopes that the journal is still to be asked for.
    asked: Vec<(u64, String, String)>,
}

impl Planning<'_> {
    /// Asks the journal for numbers that it has already.
    async fn ask(&mut self) -> Result<(), ImportError> {
        let (mut lines, mut numbers) = (Vec::new(), Vec::new());
        for (line, number, scope) in self.asked.drain(..) {
            lines.push(line);
            numbers.push((number, scope));
        }
        let issued = self.import.ledger.issued(&numbers).await?;
        for ((line, (number, _)), issued) in lines.into_iter().zip(numbers).zip(issued) {
            if issued {
                let detail = "the journal has it already";
                let kind = ProblemKind::Issued;
                self.report.add(Problem::of_line(line, Some(&number), kind, detail));
            }
        }
        Ok(())
    }
}

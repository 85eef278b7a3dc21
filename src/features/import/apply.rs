//! Applies a plan of numbers: reads the list again, chunk by chunk, within one transaction of the
//! ledger. Never imports another file than the one that was planned.

use std::sync::Arc;

use numbering::TakenRange;
use uuid::Uuid;

use super::numbers::{open, reader};
use super::reading::{Form, Reader, Reading};
use super::report::Plan;
use super::rows::{Row, Rows};
use super::{Import, ImportError, ListFile};
use crate::ledger::{At, Entry, Imported, IssuePath, Record};
use crate::node::NodeId;

/// Rows in memory at a time.
const CHUNK_ROWS: usize = 500;

/// Imports a list as it was planned, all or nothing.
///
/// # Errors
/// `Form` where the plan has problems; whatever keeps the ledger from importing, see
/// [`crate::ledger::Imports::add`]. Nothing is written then, unless the ledger says otherwise.
pub async fn apply_numbers(
    import: &Import<'_>,
    list: &ListFile,
    plan: &Plan,
) -> Result<Imported, ImportError> {
    refuse_problems(plan)?;
    let mut chunks = Chunks {
        rows: Some(open(import, list)?),
        reader: reader(import, Form::Number),
        user_id: &import.choice.user_id,
        planned: plan,
        progress: import.progress,
    };
    Ok(import.ledger.imports().add(NodeId::random(), &plan.counters, &[], &mut chunks).await?)
}

/// Makes counters as they were planned, all or none; no numbers are imported.
///
/// # Errors
/// Like [`apply_numbers`].
pub async fn apply_counters(import: &Import<'_>, plan: &Plan) -> Result<Imported, ImportError> {
    refuse_problems(plan)?;
    let (node, chunks) = (NodeId::random(), &mut std::iter::empty());
    Ok(import.ledger.imports().add(node, &plan.counters, &plan.earlier, chunks).await?)
}

fn refuse_problems(plan: &Plan) -> Result<(), ImportError> {
    match plan.report.problems_total {
        0 => Ok(()),
        _ => Err(ImportError::form(&plan.report.source, "the plan has problems")),
    }
}

/// The entries of a list.
struct Chunks<'a> {
    /// None once they are all read.
    rows: Option<Rows>,
    reader: Reader<'a>,
    user_id: &'a str,
    planned: &'a Plan,
    progress: &'a (dyn Fn(u64) + Sync),
}

impl Iterator for Chunks<'_> {
    type Item = Result<Vec<Entry>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.rows.as_mut()?;
        let mut chunk = Vec::with_capacity(CHUNK_ROWS);
        while chunk.len() < CHUNK_ROWS {
            let changed = || Some(Err("the file has been changed meanwhile".to_owned()));
            match rows.next() {
                Err(error) => return Some(Err(error.to_string())),
                Ok(Some(Err(_))) => return changed(),
                Ok(Some(Ok(row))) if row.extra.is_of_counter() => {}
                Ok(Some(Ok(row))) => match self.reader.read(&row) {
                    Ok(reading) => chunk.push(entry(reading, row, self.user_id)),
                    Err(_) => return changed(),
                },
                Ok(None) => {
                    // The last check: nothing is committed before the chunks have ended well.
                    if Some(rows.metered().sha256()) != self.planned.report.sha256 {
                        return changed();
                    }
                    self.rows = None;
                    break;
                }
            }
        }
        if let Some(rows) = &self.rows {
            (self.progress)(rows.metered().bytes());
        }
        Some(Ok(chunk))
    }
}

/// The journal's entry of a number. The ledger names its counters and its place.
fn entry(reading: Reading, row: Row, user_id: &str) -> Entry {
    let steps = reading.served.series.serials().iter().map(|serial| serial.step).enumerate();
    let taken = steps.take(reading.values.len());
    let taken =
        taken.map(|(place, step)| TakenRange { counter_id: 0, range: reading.range(place, step) });
    let taken = taken.collect();
    let Reading { served, inputs, draft, number, issued_at_us, .. } = reading;
    let serials = served.series.serials();
    // As for a request: the journal is in codes, with the project that follows from the originator.
    let inputs = draft.resolved.unwrap_or(inputs);
    let documents = served.series.documents_of(&inputs);
    let record = Record {
        allocation_id: Uuid::now_v7(),
        series_id: served.version.series_id,
        version: served.version.version,
        type_code: inputs.type_code,
        project: documents.journaled(inputs.project),
        scope: draft.scope,
        mask: draft.partial.to_text(),
        document_id: row.document_id,
        document_date: draft.document_date,
        context: inputs.context,
        serials: serials.iter().map(|serial| serial.name.clone()).collect(),
        counter_keys: draft.keys.iter().map(ToString::to_string).collect(),
        user_id: row.user_id.unwrap_or_else(|| user_id.to_owned()),
        issued_at_us,
        // This service received no request for it.
        ..Record::default()
    };
    Entry {
        record: Arc::new(record),
        taken,
        number,
        at: At { partition: 0, epoch: 0 },
        retry_count: 0,
        path: IssuePath::Imported,
    }
}

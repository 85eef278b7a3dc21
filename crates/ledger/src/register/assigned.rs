//! The numbers of ranges that are assigned to documents, found by their documents. Writes nothing.

use sqlx_macros::FromRow;

use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::{AssignedNumber, Found, LedgerError, Projects, Question, document_hash};

/// Most numbers of one document that are found by it: one of each series at most, and of each
/// project where documents are of projects.
const OF_DOCUMENT_MAX: i64 = 1_000;

/// The beginning of every query for assignments.
const COLUMNS: &str = "select a.counter_id, a.value, a.row_first, a.series_id, a.project,
     a.user_id, a.number, a.document_id from assignment a ";

/// What assignments answer to questions: one statement, where any question is about a document that
/// is numbered once. Asked behind the names of the documents.
pub(crate) async fn answer(
    conn: &mut Conn,
    questions: &[Question],
    projects: &[Projects],
    found: &mut [Found],
) -> Result<(), LedgerError> {
    let asks = |question: &&Question| question.once_per_document && !question.again;
    let asked = questions.iter().filter(asks);
    let documents: Vec<&str> =
        asked.filter_map(|question| question.document_id.as_deref()).collect();
    if documents.is_empty() {
        return Ok(());
    }
    let assigned = of_documents(conn, &documents).await?;
    for ((question, of), found) in questions.iter().zip(projects).zip(found) {
        let is_its = |number: &&AssignedNumber| {
            (Some(&number.document_id), number.series_id)
                == (question.document_id.as_ref(), question.series_id)
                && of.have(number.project.as_deref())
        };
        if asks(&question) {
            found.assigned = assigned.iter().find(is_its).cloned().map(Box::new);
        }
    }
    Ok(())
}

/// The numbers that are assigned to documents, the oldest first.
pub(crate) async fn of_documents(
    conn: &mut Conn,
    documents: &[&str],
) -> Result<Vec<AssignedNumber>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where a.document_hash");
    query.push_among(documents.iter().map(|document| document_hash(document)).collect::<Vec<_>>());
    query.push(" order by a.assigned_at_us, a.counter_id, a.value limit ");
    let rows_max = OF_DOCUMENT_MAX.saturating_mul(i64::try_from(documents.len()).unwrap_or(1));
    query.push_bind(rows_max);
    let rows: Vec<AssignmentRow> = query.build().typed().fetch_all(conn).await?;
    let numbers = rows.into_iter().map(AssignedNumber::from);
    Ok(numbers.filter(|number| documents.contains(&number.document_id.as_str())).collect())
}

/// The columns of an assignment, as [`COLUMNS`] names them.
#[derive(FromRow)]
struct AssignmentRow {
    counter_id: i64,
    value: i64,
    row_first: i64,
    series_id: i64,
    project: Option<String>,
    user_id: String,
    number: String,
    document_id: String,
}

impl From<AssignmentRow> for AssignedNumber {
    fn from(row: AssignmentRow) -> Self {
        AssignedNumber {
            counter_id: row.counter_id,
            value: row.value,
            row_first: row.row_first,
            series_id: row.series_id,
            project: row.project,
            taken_by: row.user_id,
            number: row.number,
            document_id: row.document_id,
        }
    }
}

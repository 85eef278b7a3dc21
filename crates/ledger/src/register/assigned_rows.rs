//! The rows of ranges of which a number is assigned to a document, in the look-up of that document.

use crate::dialect::Conn;
use crate::register::found_aside::{place, place_of};
use crate::register::lookup::{journal_row_of, select_rows};
use crate::register::{assigned, shown};
use crate::{JournalRow, LedgerError, Position, RowVisibility};

/// Ranges that are read in one statement.
const ROWS_PER_SEARCH: usize = 200;

/// Adds the rows of ranges that have a number of a document after a position, as far as they are
/// visible, to rows of the journal, oldest first.
pub(crate) async fn add_of(
    conn: &mut Conn,
    document_id: &str,
    after: Option<Position>,
    shown: &RowVisibility,
    rows: &mut Vec<JournalRow>,
) -> Result<(), LedgerError> {
    let numbers = assigned::of_documents(&mut *conn, &[document_id]).await?;
    let mut ranges: Vec<(i64, i64)> =
        numbers.iter().map(|number| (number.counter_id, number.row_first)).collect();
    ranges.sort_unstable();
    ranges.dedup();
    if ranges.is_empty() {
        return Ok(());
    }
    for part in ranges.chunks(ROWS_PER_SEARCH) {
        let mut query = select_rows("journal_row");
        query.push(" where j.number is not null and (j.counter_id, j.first_value) in (");
        query.push_values(part, |mut row, (counter_id, first)| {
            row.push_bind(*counter_id).push_bind(*first);
        });
        query.push(")");
        shown::push_rows(&mut query, "j", shown);
        for row in query.build().once().fetch_all(&mut *conn).await? {
            let row = journal_row_of(&row)?;
            if after.is_none_or(|after| place(&row.entry) > place_of(after)) {
                rows.push(row);
            }
        }
    }
    rows.sort_by_key(|row| place(&row.entry));
    Ok(())
}

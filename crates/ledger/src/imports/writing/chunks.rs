//! Rows of the journal that an import brings, chunk by chunk. Never writes one beside a row, a
//! record put aside or a reservation that has its number or its values: all of the import is
//! refused then.

use std::collections::HashSet;

use uuid::Uuid;

use crate::dialect::Conn;
use crate::protocol::entries::{self, Verdict};
use crate::protocol::put_aside;
use crate::reservations::table;
use crate::seal::Writing;
use crate::{Entry, LedgerError};

/// Refuses a number that is kept as written, in whatever scope: no other number has its text (F48).
///
/// # Errors
/// `Refused` names it.
pub(super) fn must_not_be_kept(chunk: &[Entry], kept: &HashSet<String>) -> Result<(), LedgerError> {
    let Some(entry) = chunk.iter().find(|entry| kept.contains(&entry.number)) else {
        return Ok(());
    };
    let number = &entry.number;
    let why = "it is kept as written, with its document; leave it out; nothing is imported";
    Err(LedgerError::Refused(format!("number {number}: {why}")))
}

/// Writes the journal's rows of a chunk.
///
/// # Errors
/// `Refused` where a number or a value is in the journal already, or is reserved.
pub(super) async fn write(
    conn: &mut Conn,
    writing: &Writing,
    chunk: &[Entry],
) -> Result<(), LedgerError> {
    if chunk.is_empty() {
        return Ok(());
    }
    let chunk: Vec<&Entry> = chunk.iter().collect();
    let new_rows = entries::new_rows(&chunk)?;
    let mut verdicts = vec![Verdict::Written; chunk.len()];
    put_aside::judge(conn, &new_rows, &mut verdicts).await?;
    let is_any_reserved = table::is_any(conn).await?;
    let judged = entries::write(conn, writing, new_rows, verdicts, is_any_reserved).await?;
    let mut verdicts = judged.verdicts.iter().zip(&chunk);
    let Some((verdict, entry)) = verdicts.find(|(verdict, _)| **verdict != Verdict::Written) else {
        return Ok(());
    };
    let why = why_refused(conn, verdict, writing.now_us).await?;
    Err(LedgerError::Refused(format!("number {}: {why}; nothing is imported", entry.number)))
}

/// Why a number is not imported.
async fn why_refused(
    conn: &mut Conn,
    verdict: &Verdict,
    now_us: i64,
) -> Result<String, LedgerError> {
    let other = match verdict {
        Verdict::Collided { other: Some(other) } => Uuid::from_slice(other).ok(),
        _ => None,
    };
    let reserved = match other {
        Some(id) => table::by_id(conn, id, now_us).await?,
        None => None,
    };
    Ok(match reserved {
        None => "the journal has it already".to_owned(),
        Some(reserved) if reserved.is_confirmed() => {
            let id = reserved.id();
            format!("reservation {id} has it or its value and is confirmed")
        }
        Some(reserved) => {
            let id = reserved.id();
            match reserved.ends_at_us().map(jiff::Timestamp::from_microsecond) {
                Some(until) => {
                    let until = until.unwrap_or_default();
                    format!(
                        "reservation {id} holds it or its value until {until}, unless it is \
                         cancelled"
                    )
                }
                None => format!("it is in block {id}, which is not handed back"),
            }
        }
    })
}

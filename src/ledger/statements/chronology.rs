//! Chronology: of a family of counters, no number is dated before the last one.
//!
//! The family's row is the lock. It is asked for once all counters and names are held, families in
//! one order, so that nobody waits in a circle; dates are read only then.

use std::collections::BTreeMap;

use super::{Conn, Store};
use crate::ledger::{LedgerError, TakeOrder};

/// A family of counters: those of a series' first serial that differ in their period alone.
type Family = (i64, String);

/// The last dates of the families that a transaction takes from; empty where nothing was issued.
#[derive(Debug, Default)]
pub(super) struct LastDates(BTreeMap<Family, String>);

impl LastDates {
    /// Locks the families of the orders.
    pub(super) async fn lock(conn: &mut Conn, orders: &[TakeOrder]) -> Result<Self, LedgerError> {
        let mut dates = BTreeMap::new();
        for family in orders.iter().filter_map(family_of) {
            dates.insert(family, String::new());
        }
        for ((series_id, family), last) in &mut dates {
            *last = lock_or_create(conn, *series_id, family).await?;
        }
        Ok(LastDates(dates))
    }

    /// The last date, where an order is dated before it.
    pub(super) fn refuse(&self, order: &TakeOrder) -> Option<&str> {
        let last = self.0.get(&family_of(order)?)?;
        (order.record.document_date < *last).then_some(last)
    }

    /// Counts an order that takes its number; also where the number turns out to collide, since
    /// its value is spent.
    pub(super) fn note(&mut self, order: &TakeOrder) {
        if let Some(last) = family_of(order).and_then(|family| self.0.get_mut(&family)) {
            last.clone_from(&order.record.document_date);
        }
    }

    /// Writes what was noted.
    pub(super) async fn write(&self, conn: &mut Conn) -> Result<(), LedgerError> {
        for ((series_id, family), last) in &self.0 {
            sqlx::query(
                "update chronology set last_date = $3 \
                 where series_id = $1 and family = $2 and last_date < $3",
            )
            .bind(series_id)
            .bind(family)
            .bind(last)
            .execute(&mut *conn)
            .await?;
        }
        Ok(())
    }
}

fn family_of(order: &TakeOrder) -> Option<Family> {
    Some((order.record.series_id, order.family.clone()?))
}

/// Locks the row of a family; the first one to ask finds its date in the journal.
async fn lock_or_create(
    conn: &mut Conn,
    series_id: i64,
    family: &str,
) -> Result<String, LedgerError> {
    if let Some(last) = lock(conn, series_id, family).await? {
        return Ok(last);
    }
    let last = journaled(conn, series_id, family).await?.unwrap_or_default();
    // Somebody else may be creating it: the insert waits for that transaction, then does nothing.
    sqlx::query(
        "insert into chronology (series_id, family, last_date) values ($1, $2, $3) \
         on conflict do nothing",
    )
    .bind(series_id)
    .bind(family)
    .bind(&last)
    .execute(&mut *conn)
    .await?;
    let gone = || LedgerError::Conflict("chronology: created and gone".into());
    lock(conn, series_id, family).await?.ok_or_else(gone)
}

async fn lock(
    conn: &mut Conn,
    series_id: i64,
    family: &str,
) -> Result<Option<String>, LedgerError> {
    let last = sqlx::query_scalar(for_update!(
        "select last_date from chronology where series_id = $1 and family = $2"
    ))
    .bind(series_id)
    .bind(family)
    .fetch_optional(conn)
    .await?;
    Ok(last)
}

/// The latest date that the journal has of a family. A counter's key is its family's, with `;` and
/// the period behind it, or the period alone.
async fn journaled(
    conn: &mut Conn,
    series_id: i64,
    family: &str,
) -> Result<Option<String>, LedgerError> {
    let (from, to) = if family.is_empty() {
        (String::new(), "\u{10ffff}".to_owned())
    } else {
        // The sign after `;` is `<`.
        (format!("{family};"), format!("{family}<"))
    };
    let last = sqlx::query_scalar(
        "select max(j.document_date) from counter c join journal j on j.counter_id = c.counter_id \
         where c.series_id = $1 and c.serial = 0 \
         and (c.key = $2 or (c.key >= $3 and c.key < $4))",
    )
    .bind(series_id)
    .bind(family)
    .bind(from)
    .bind(to)
    .fetch_one(conn)
    .await?;
    Ok(last)
}

/// See [`crate::ledger::Documents::last_date`].
pub(super) async fn last_date(
    store: &Store,
    series_id: i64,
    family: &str,
) -> Result<Option<String>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let known: Option<String> =
        sqlx::query_scalar("select last_date from chronology where series_id = $1 and family = $2")
            .bind(series_id)
            .bind(family)
            .fetch_optional(&mut *conn)
            .await?;
    let last = match known {
        Some(last) => Some(last),
        None => journaled(&mut conn, series_id, family).await?,
    };
    Ok(last.filter(|last| !last.is_empty()))
}

/// Forgets the dates of a series whose chronology was switched: numbers may be issued unnoticed
/// while it is off, and the journal has their dates.
pub(super) async fn forget(conn: &mut Conn, series_id: i64) -> Result<(), LedgerError> {
    sqlx::query("delete from chronology where series_id = $1")
        .bind(series_id)
        .execute(conn)
        .await?;
    Ok(())
}

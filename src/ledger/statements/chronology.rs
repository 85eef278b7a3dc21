//! Chronology: of a family of counters, no number is dated before the last one.
//!
//! The family's row is the lock. It is asked for once all counters and names are held, families in
//! one order, so that nobody waits in a circle; dates are read only then.

use std::collections::BTreeMap;

use super::{Conn, Store};
use crate::ledger::{ImportedCounter, LedgerError, TakeOrder};

/// Counters that differ in their period alone, as `chronology` names them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family<'a> {
    pub(super) series_id: i64,
    /// Name of the series' first serial.
    pub(super) serial: &'a str,
    /// The counters' key but for the period.
    pub(super) key: &'a str,
}

impl<'a> Family<'a> {
    /// The family of an order whose series keeps chronology.
    fn of(order: &'a TakeOrder) -> Option<Self> {
        let (key, first) = (order.family.as_ref()?, order.serials.first()?);
        Some(Family { series_id: order.record.series_id, serial: &first.serial, key })
    }

    /// What orders families for locking.
    fn name(self) -> Name {
        (self.series_id, self.serial.to_owned(), self.key.to_owned())
    }
}

type Name = (i64, String, String);

/// The last dates of the families that a transaction takes from; empty where nothing was issued.
#[derive(Debug, Default)]
pub(super) struct LastDates(BTreeMap<Name, String>);

impl LastDates {
    /// Locks the families of the orders.
    pub(super) async fn lock(conn: &mut Conn, orders: &[TakeOrder]) -> Result<Self, LedgerError> {
        let mut dates = BTreeMap::new();
        for family in orders.iter().filter_map(Family::of) {
            dates.insert(family.name(), String::new());
        }
        for ((series_id, serial, key), last) in &mut dates {
            let family = Family { series_id: *series_id, serial, key };
            *last = lock_or_create(conn, family).await?;
        }
        Ok(LastDates(dates))
    }

    /// The last date, where an order is dated before it.
    pub(super) fn refuse(&self, order: &TakeOrder) -> Option<&str> {
        let last = self.0.get(&Family::of(order)?.name())?;
        (order.record.document_date < *last).then_some(last)
    }

    /// Counts an order that takes its number; also where the number turns out to collide, since
    /// its value is spent.
    pub(super) fn note(&mut self, order: &TakeOrder) {
        let name = Family::of(order).map(Family::name);
        if let Some(last) = name.and_then(|name| self.0.get_mut(&name)) {
            last.clone_from(&order.record.document_date);
        }
    }

    /// Writes what was noted.
    pub(super) async fn write(&self, conn: &mut Conn) -> Result<(), LedgerError> {
        for ((series_id, serial, key), last) in &self.0 {
            sqlx::query(
                "update chronology set last_date = $4 where series_id = $1 and serial = $2 \
                 and family = $3 and last_date < $4",
            )
            .bind(series_id)
            .bind(serial)
            .bind(key)
            .bind(last)
            .execute(&mut *conn)
            .await?;
        }
        Ok(())
    }
}

/// Counts the dates of numbers that an import has brought into the journal. Their families are
/// locked, not forgotten: who takes meanwhile would find the dates of before, and keep them.
pub(super) async fn catch_up(
    conn: &mut Conn,
    counters: &[ImportedCounter],
) -> Result<(), LedgerError> {
    let mut dates = BTreeMap::new();
    for ImportedCounter { series_id, serial, family, .. } in counters {
        if let Some(family) = family {
            dates.insert((*series_id, serial.clone(), family.clone()), String::new());
        }
    }
    for ((series_id, serial, key), last) in &mut dates {
        let family = Family { series_id: *series_id, serial, key };
        lock_or_create(conn, family).await?;
        *last = journaled(conn, family).await?.unwrap_or_default();
    }
    LastDates(dates).write(conn).await
}

/// Locks the row of a family; the first one to ask finds its date in the journal.
async fn lock_or_create(conn: &mut Conn, family: Family<'_>) -> Result<String, LedgerError> {
    if let Some(last) = lock(conn, family).await? {
        return Ok(last);
    }
    let last = journaled(conn, family).await?.unwrap_or_default();
    // Somebody else may be creating it: the insert waits for that transaction, then does nothing.
    sqlx::query(
        "insert into chronology (series_id, serial, family, last_date) values ($1, $2, $3, $4) \
         on conflict do nothing",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(&last)
    .execute(&mut *conn)
    .await?;
    let gone = || LedgerError::Conflict("chronology: created and gone".into());
    lock(conn, family).await?.ok_or_else(gone)
}

async fn lock(conn: &mut Conn, family: Family<'_>) -> Result<Option<String>, LedgerError> {
    let last = sqlx::query_scalar(for_update!(
        "select last_date from chronology where series_id = $1 and serial = $2 and family = $3"
    ))
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .fetch_optional(conn)
    .await?;
    Ok(last)
}

/// The latest date that the journal has of a family. A counter's key is its family's, with `;` and
/// the period behind it, or the period alone.
async fn journaled(conn: &mut Conn, family: Family<'_>) -> Result<Option<String>, LedgerError> {
    let (from, to) = match family.key {
        "" => (String::new(), char::MAX.to_string()),
        // The sign after `;` is `<`.
        key => (format!("{key};"), format!("{key}<")),
    };
    let last = sqlx::query_scalar(
        "select max(j.document_date) from counter c join journal j on j.counter_id = c.counter_id \
         where c.series_id = $1 and c.serial = $2 \
         and (c.key = $3 or (c.key >= $4 and c.key < $5))",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(from)
    .bind(to)
    .fetch_one(conn)
    .await?;
    Ok(last)
}

/// See [`crate::ledger::Documents::last_date`].
pub(super) async fn last_date(
    store: &Store,
    family: Family<'_>,
) -> Result<Option<String>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let known: Option<String> = sqlx::query_scalar(
        "select last_date from chronology where series_id = $1 and serial = $2 and family = $3",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .fetch_optional(&mut *conn)
    .await?;
    let last = match known {
        Some(last) => Some(last),
        None => journaled(&mut conn, family).await?,
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

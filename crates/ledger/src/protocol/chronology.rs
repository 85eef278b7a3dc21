//! Chronology: of a family of counters, no number is dated before the last one.
//!
//! The family's row is the lock. It is asked for once all counters and names are held, families in
//! one order, so that no transactions wait in a circle; dates are read only then.
//!
//! A family without a row finds its date in the journal, in slices that commit one by one (F31):
//! `chronology_search` says how far. Until then nothing of it is taken: its callers do a slice
//! each, and the service does the others in the background.

use std::collections::BTreeMap;

use sqlx_macros::FromRow;

use crate::dialect::Conn;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::store::Store;
use crate::{ImportedCounter, LedgerError, TakeRequest};

/// Rows of the journal that one caller looks at for the last date of a family.
const CALL_ROWS_MAX: u32 = 1_000;

/// In the place of a value: its counter has been looked through.
const WHOLE: i64 = i64::MAX;

/// Counters that differ in their period alone, as `chronology` names them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Family<'a> {
    pub(crate) series_id: i64,
    /// Name of the series' first serial.
    pub(crate) serial: &'a str,
    /// The counters' key but for the period.
    pub(crate) key: &'a str,
}

impl<'a> Family<'a> {
    /// The family of an order whose series keeps chronology.
    fn of(order: &'a TakeRequest) -> Option<Self> {
        let (key, first) = (order.family.as_ref()?, order.specs.first()?);
        Some(Family { series_id: order.record.series_id, serial: &first.serial, key })
    }

    /// What orders families for locking.
    fn name(self) -> CounterName {
        (self.series_id, self.serial.to_owned(), self.key.to_owned())
    }
}

type CounterName = (i64, String, String);

/// The last dates of the families that a transaction takes from; empty where nothing was issued.
#[derive(Debug, Default)]
pub(crate) struct LastDates {
    dates: BTreeMap<CounterName, String>,
    /// A counter of a family whose date is still being looked for.
    unknown: Option<String>,
}

impl LastDates {
    /// Locks the families of the orders.
    pub(crate) async fn lock(conn: &mut Conn, orders: &[TakeRequest]) -> Result<Self, LedgerError> {
        let mut known = LastDates::default();
        let mut names = BTreeMap::new();
        for order in orders {
            if let Some(family) = Family::of(order) {
                names.insert(family.name(), order);
            }
        }
        for ((series_id, serial, key), order) in names {
            let family = Family { series_id, serial: &serial, key: &key };
            match lock_or_search(conn, family).await? {
                Some(last) => {
                    known.dates.insert((series_id, serial, key), last);
                }
                None => known.unknown = order.specs.first().map(crate::CounterSpec::name),
            }
        }
        Ok(known)
    }

    /// What keeps the transaction from taking anything: a date that is still being looked for. What
    /// was looked at is to be committed all the same.
    pub(crate) fn unknown(&mut self) -> Option<LedgerError> {
        Some(still_searched(Some(self.unknown.take()?)))
    }

    /// The last date, where an order is dated before it.
    pub(crate) fn refuse(&self, order: &TakeRequest) -> Option<&str> {
        let last = self.dates.get(&Family::of(order)?.name())?;
        (order.record.document_date < *last).then_some(last)
    }

    /// Counts an order that takes its number; also where the number turns out to collide, since
    /// its value is spent.
    pub(crate) fn note(&mut self, order: &TakeRequest) {
        let name = Family::of(order).map(Family::name);
        if let Some(last) = name.and_then(|name| self.dates.get_mut(&name)) {
            last.clone_from(&order.record.document_date);
        }
    }

    /// Writes what was noted.
    pub(crate) async fn write(&self, conn: &mut Conn) -> Result<(), LedgerError> {
        for ((series_id, serial, key), last) in &self.dates {
            query(
                "update chronology set last_date = $4 where series_id = $1 and serial = $2
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
/// locked, not forgotten: a concurrent take would find the former dates, and keep them.
pub(crate) async fn catch_up(
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
        *last = journaled(conn, family).await?.unwrap_or_default();
        create(conn, family, last).await?;
    }
    LastDates { dates, unknown: None }.write(conn).await
}

/// Locks the row of a family. `None` where its date is still being looked for, by this caller too.
async fn lock_or_search(
    conn: &mut Conn,
    family: Family<'_>,
) -> Result<Option<String>, LedgerError> {
    if let Some(last) = lock(conn, family).await? {
        return Ok(Some(last));
    }
    query(
        "insert into chronology_search (series_id, serial, family, last_date, key, value)
         values ($1, $2, $3, '', $3, -1) on conflict do nothing",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .execute(&mut *conn)
    .await?;
    search_family(conn, family, CALL_ROWS_MAX).await?;
    lock(conn, family).await
}

/// How far a family's journal has been looked through, and the latest date up to there.
#[derive(FromRow)]
struct Search {
    last_date: String,
    /// Its last counter's key,
    key: String,
    /// and value.
    value: i64,
}

/// Looks through the next slice of a family; the last one gives it its row.
async fn search_family(
    conn: &mut Conn,
    family: Family<'_>,
    rows_max: u32,
) -> Result<(), LedgerError> {
    let row = query_as(
        "select last_date, key, value from chronology_search
         where series_id = $1 and serial = $2 and family = $3",
    )
    .for_update()
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .fetch_optional(&mut *conn)
    .await?;
    // Another transaction has done the last slice meanwhile.
    let Some(mut search) = row else { return Ok(()) };
    if look(conn, family, &mut search, rows_max).await? {
        return create(conn, family, &search.last_date).await;
    }
    query(
        "update chronology_search set last_date = $4, key = $5, value = $6
         where series_id = $1 and serial = $2 and family = $3",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(&search.last_date)
    .bind(&search.key)
    .bind(search.value)
    .execute(conn)
    .await?;
    Ok(())
}

/// Looks at about so many rows of a family, counter by counter; whether that was all.
async fn look(
    conn: &mut Conn,
    family: Family<'_>,
    search: &mut Search,
    rows_max: u32,
) -> Result<bool, LedgerError> {
    let mut left = i64::from(rows_max.max(1));
    while left > 0 {
        let Some((counter_id, key)) = next_counter(conn, family, search).await? else {
            return Ok(true);
        };
        let value = if key == search.key { search.value } else { -1 };
        let slice = query_as(
            "select count(*) as rows, max(document_date) as last_date,
             max(last_value) as last from (
             select document_date, last_value from journal_row
             where counter_id = $1 and last_value > $2 and first_value >= coalesce((
             select first_value from journal where counter_id = $1 and first_value <= $2
             order by first_value desc limit 1), $2) order by first_value limit $3) as slice",
        )
        .bind(counter_id)
        .bind(value)
        .bind(left)
        .fetch_one(&mut *conn)
        .await?;
        let (rows, date, last): (i64, Option<String>, Option<i64>) = slice;
        search.last_date = date.unwrap_or_default().max(std::mem::take(&mut search.last_date));
        search.key = key;
        search.value = last.filter(|_| rows == left).unwrap_or(WHOLE);
        // A counter without rows costs a look as well.
        left -= rows.max(1);
    }
    Ok(false)
}

/// The counter of a family at which a search goes on.
async fn next_counter(
    conn: &mut Conn,
    family: Family<'_>,
    search: &Search,
) -> Result<Option<(i64, String)>, LedgerError> {
    let (from, to) = periods(family);
    let mut query = QueryBuilder::new("select counter_id, key from counter ");
    query.push("where series_id = ").push_bind(family.series_id);
    query.push(" and serial = ").push_bind(family.serial);
    query.push(if search.value == WHOLE { " and key > " } else { " and key >= " });
    query.push_bind(search.key.clone()).push(" and key < ").push_bind(to);
    query.push(" and (key = ").push_bind(family.key).push(" or key >= ").push_bind(from);
    query.push(") order by key limit 1");
    Ok(query.build().typed().fetch_optional(conn).await?)
}

/// One slice for a family whose date is being looked for; false where there is none.
pub(crate) async fn search_slice(conn: &mut Conn, rows_max: u32) -> Result<bool, LedgerError> {
    let row: Option<CounterName> = query_as(
        "select series_id, serial, family from chronology_search
         order by series_id, serial, family limit 1",
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some((series_id, serial, key)) = row else { return Ok(false) };
    let family = Family { series_id, serial: &serial, key: &key };
    search_family(conn, family, rows_max).await?;
    Ok(true)
}

/// The refusal where a date is needed that is still being looked for; worth a retry.
fn still_searched(counter: Option<String>) -> LedgerError {
    let cause = "the last date of its family is still being looked for in the journal".to_owned();
    LedgerError::LockTimeout { cause, counter }
}

/// Gives a family its row, unless it has one, and locks it: its search is over.
async fn create(conn: &mut Conn, family: Family<'_>, last: &str) -> Result<(), LedgerError> {
    // Another transaction may be creating it: the insert waits for that one, then does nothing.
    query(
        "insert into chronology (series_id, serial, family, last_date) values ($1, $2, $3, $4)
         on conflict do nothing",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .bind(last)
    .execute(&mut *conn)
    .await?;
    let gone = || LedgerError::Conflict("chronology: created and gone".into());
    lock(conn, family).await?.ok_or_else(gone)?;
    query("delete from chronology_search where series_id = $1 and serial = $2 and family = $3")
        .bind(family.series_id)
        .bind(family.serial)
        .bind(family.key)
        .execute(conn)
        .await?;
    Ok(())
}

/// Locks the row of a family; its last date, where it has a row.
pub(crate) async fn lock(
    conn: &mut Conn,
    family: Family<'_>,
) -> Result<Option<String>, LedgerError> {
    let last = query_scalar(
        "select last_date from chronology where series_id = $1 and serial = $2 and family = $3",
    )
    .for_update()
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .fetch_optional(conn)
    .await?;
    Ok(last)
}

/// The keys of a family's counters lie between these, or are its own: a counter's key is its
/// family's, followed by `;` and the period, or the period alone.
pub(crate) fn periods(family: Family<'_>) -> (String, String) {
    match family.key {
        "" => (String::new(), char::MAX.to_string()),
        // The sign after `;` is `<`.
        key => (format!("{key};"), format!("{key}<")),
    }
}

/// The latest date that the journal has of a family, in one piece: for an import, which may take
/// as long.
async fn journaled(conn: &mut Conn, family: Family<'_>) -> Result<Option<String>, LedgerError> {
    let (from, to) = periods(family);
    let last = query_scalar(
        "select max(j.document_date) from counter c
         join journal_row j on j.counter_id = c.counter_id
         where c.series_id = $1 and c.serial = $2
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

/// See [`crate::Counters::last_date`].
pub(crate) async fn last_date(
    store: &Store,
    family: Family<'_>,
) -> Result<Option<String>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let known: Option<String> = query_scalar(
        "select last_date from chronology where series_id = $1 and serial = $2 and family = $3",
    )
    .bind(family.series_id)
    .bind(family.serial)
    .bind(family.key)
    .fetch_optional(&mut *conn)
    .await?;
    let last = match known {
        Some(last) => last,
        None => {
            let key = family.key.to_owned();
            let mut search = Search { last_date: String::new(), key, value: -1 };
            if !look(&mut *conn, family, &mut search, CALL_ROWS_MAX).await? {
                return Err(still_searched(None));
            }
            search.last_date
        }
    };
    Ok(Some(last).filter(|last| !last.is_empty()))
}

/// Forgets the dates of a series whose chronology was switched: numbers may be issued unnoticed
/// while it is off, and the journal has their dates.
pub(crate) async fn forget(conn: &mut Conn, series_id: i64) -> Result<(), LedgerError> {
    query("delete from chronology where series_id = $1")
        .bind(series_id)
        .execute(&mut *conn)
        .await?;
    query("delete from chronology_search where series_id = $1")
        .bind(series_id)
        .execute(conn)
        .await?;
    Ok(())
}

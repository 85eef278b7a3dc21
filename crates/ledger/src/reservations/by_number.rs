//! Reservations by the text of their number: the live ones, and those that have ended. A text that
//! is reserved is in no row of the journal. Has confirmed ones journaled for a caller that needs
//! their row; ends none by a rule of its own.

use numerator_runtime::node::NodeId;
use serde_json::Value;
use sqlx_macros::FromRow;
use uuid::Uuid;

use super::EndedRow;
use crate::calls::CALL;
use crate::query::QueryBuilder;
use crate::register::shown;
use crate::reservations::sweep::{DueIds, sweep_these};
use crate::reservations::table::{Kept, ReservationRow, push_columns};
use crate::reservations::{block_texts, memory};
use crate::store::Store;
use crate::{
    CodesWithin, EndedReservation, LedgerError, NO_END_US, Reservation, Reservations, RowVisibility,
};

/// Live reservations of one text that are read, at most, for those that are looked for: each has
/// the text in another scope of uniqueness.
const READ_MAX: usize = 1_000;

/// Live reservations of a statement.
const READ_AT_ONCE: u32 = 100;

/// Which reservations of a number are looked for. What is `None` restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedFilter {
    /// The text of the number.
    pub number: String,
    /// Of this series.
    pub series_id: Option<i64>,
    /// Of this project.
    pub project: Option<String>,
    /// Of this document.
    pub document_id: Option<String>,
    /// Those that the caller sees; the others count as missing.
    pub shown: RowVisibility,
    /// At most so many.
    pub limit: u32,
}

/// A live reservation with the code of its series.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedReservation {
    /// The reservation.
    pub reservation: Reservation,
    /// Code of its series.
    pub series: String,
}

/// A reservation that has ended, with the code of its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEnd {
    /// How it ended.
    pub ended: EndedReservation,
    /// Its series.
    pub series_id: i64,
    /// Code of the series.
    pub series: String,
    /// Until when it was reserved, in microseconds of UTC by the ledger's clock; nothing where the
    /// ledger does not say.
    pub expires_at_us: Option<i64>,
}

impl Reservations<'_> {
    /// Live reservations that are looked for, by id, each in a scope of uniqueness of its own; a
    /// block by each of its numbers. Of those with the text, the series and the document, at most
    /// 1,000 are read.
    ///
    /// # Errors
    /// `WentBack` where one shows less than what is known of it, its value or its document (L12).
    pub async fn named(
        self,
        filter: &ReservedFilter,
    ) -> Result<Vec<NamedReservation>, LedgerError> {
        self.write(async |store| {
            let upto = store.last_seen.takes().noted();
            let (mut found, mut read) = (Vec::new(), 0);
            let mut after = Vec::new();
            while read < READ_MAX {
                let (page, last) = page(store, filter, after).await?;
                let live = page.iter().map(|named| &named.reservation);
                memory::must_show_known(store, (None, upto), live)?;
                read += page.len();
                found.extend(page.into_iter().filter(|named| filter.has(named)));
                match last {
                    Some(last) if found.len() < filter.limit as usize => after = last,
                    _ => break,
                }
            }
            found.truncate(filter.limit as usize);
            memory::note_shown(store, None, found.iter().map(|named| &named.reservation))?;
            Ok(found)
        })
        .await
    }

    /// Reservations that are looked for and ended without being confirmed, the newest first. The
    /// ledger does not say for which project one was: none is of a project that is looked for, and
    /// a caller that is narrowed to projects sees its own.
    pub async fn ended_named(self, filter: &ReservedFilter) -> Result<Vec<NamedEnd>, LedgerError> {
        if filter.project.is_some() {
            return Ok(Vec::new());
        }
        self.read(async |reader| {
            let mut query = QueryBuilder::new(
                "select act, at_us, subject, number, document_id, user_id, reason, detail,
                 series_id, series from (select l.life_id, l.act, l.at_us, l.subject, l.number,
                 l.document_id, l.user_id, l.reason, l.detail, s.series_id, s.code as series
                 from life l join counter c on c.counter_id = l.counter_id
                 join series s on s.series_id = c.series_id
                 where l.act in ('cancelled', 'expired', 'lost', 'handed-back')
                 and l.number = ",
            );
            query.push_bind(filter.number.clone()).push(") as ended where 1 = 1");
            filter.push_columns(&mut query, "ended");
            shown::push_rows(&mut query, "ended", &of_no_project(&filter.shown));
            query.push(" order by life_id desc limit ").push_bind(i64::from(filter.limit));
            query.build().typed::<NamedEndRow>().fetch_all_into(reader).await
        })
        .await
    }

    /// Has a confirmed reservation of a counter journaled by a node, and nothing else. One that
    /// another transaction has locked, or the ledger refuses, is left to a later sweep. Safe to
    /// repeat.
    ///
    /// # Errors
    /// `LockTimeout` where the counter is held: worth a retry.
    pub async fn journal_confirmed(
        self,
        node: NodeId,
        (counter_id, id): (i64, Uuid),
    ) -> Result<(), LedgerError> {
        self.call(CALL, async |store| {
            sweep_these(store, node, DueIds::from([(counter_id, [id].into())])).await
        })
        .await
    }
}

impl ReservedFilter {
    /// Adds what columns show, of a table that a search calls `alias`.
    fn push_columns(&self, query: &mut QueryBuilder<'_>, alias: &str) {
        if let Some(series_id) = self.series_id {
            query.push(" and ").push(alias).push(".series_id = ").push_bind(series_id);
        }
        if let Some(document_id) = &self.document_id {
            query.push(" and ").push(alias).push(".document_id = ");
            query.push_bind(document_id.clone());
        }
    }

    /// Whether a reservation is looked for, by its project too.
    fn has(&self, NamedReservation { reservation, series }: &NamedReservation) -> bool {
        let record = &reservation.entry.record;
        (self.project.is_none() || self.project == record.project)
            && self.shown.has(&record.user_id, series, record.project.as_deref())
    }
}

/// What is visible of rows of any project: no column of `reservation` shows it.
pub(crate) fn of_any_project(shown: &RowVisibility) -> RowVisibility {
    within(shown, |within| Some(CodesWithin { projects: None, ..within }))
}

/// What is visible of rows of no project.
fn of_no_project(shown: &RowVisibility) -> RowVisibility {
    within(shown, |within| within.projects.is_none().then_some(within))
}

/// The same visibility, with what lies within changed.
fn within(
    shown: &RowVisibility,
    change: impl FnOnce(CodesWithin) -> Option<CodesWithin>,
) -> RowVisibility {
    match shown {
        RowVisibility::Everything => RowVisibility::Everything,
        RowVisibility::Part { within, own } => {
            RowVisibility::Part { within: within.clone().and_then(change), own: own.clone() }
        }
    }
}

/// A page of live reservations by what columns show of them, after the id of one; and the last id,
/// where there may be more.
async fn page(
    store: &Store,
    filter: &ReservedFilter,
    after: Vec<u8>,
) -> Result<(Vec<NamedReservation>, Option<Vec<u8>>), LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, &*conn, store.clock.now_us());
    query.push(
        ", (select s.code from series s where s.series_id = reservation.series_id)
         as series from reservation where reservation_id in (",
    );
    block_texts::push_holders(&mut query, &filter.number);
    query.push(") and reservation_id > ").push_bind(after);
    filter.push_columns(&mut query, "reservation");
    shown::push_rows(&mut query, "reservation", &of_any_project(&filter.shown));
    query.push(" order by reservation_id limit ").push_bind(i64::from(READ_AT_ONCE));
    let (mut page, mut last) = (Vec::new(), None);
    for row in query.build().fetch_all(&mut *conn).await? {
        let series: Option<String> = row.try_get("series")?;
        let kept: Kept = row.decode::<ReservationRow>()?.try_into()?;
        last = Some(kept.id);
        let reservation = kept.reservation;
        page.push(NamedReservation { reservation, series: series.unwrap_or_default() });
    }
    let is_full = page.len() >= READ_AT_ONCE as usize;
    Ok((page, last.filter(|_| is_full)))
}

/// The end of a reservation, and the series of its counter.
#[derive(FromRow)]
struct NamedEndRow {
    #[sqlx(flatten)]
    ended: EndedRow,
    series_id: i64,
    series: String,
}

impl TryFrom<NamedEndRow> for NamedEnd {
    type Error = LedgerError;

    fn try_from(row: NamedEndRow) -> Result<Self, LedgerError> {
        let detail: Option<Value> =
            row.ended.detail.as_deref().and_then(|text| serde_json::from_str(text).ok());
        let expires_at_us = detail.and_then(|detail| detail.get("expires_at_us")?.as_i64());
        let expires_at_us = expires_at_us.filter(|at_us| *at_us != NO_END_US);
        let (series_id, series) = (row.series_id, row.series);
        Ok(NamedEnd { ended: row.ended.try_into()?, series_id, series, expires_at_us })
    }
}

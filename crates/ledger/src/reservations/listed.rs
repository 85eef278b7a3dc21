//! Live reservations as their readers see them, by id. Changes none.

use uuid::Uuid;

use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::shown;
use crate::reservations::by_number::{NamedReservation, of_any_project};
use crate::reservations::memory;
use crate::reservations::table::{Kept, ReservationRow, push_clock, push_columns};
use crate::store::Store;
use crate::{LedgerError, LiveStatus, ReservationFilter, Reservations, document_hash};

/// Live reservations of a statement, at most. The first one reads as many as are asked for.
const READ_AT_ONCE: u32 = 1_000;

impl Reservations<'_> {
    /// Live reservations that are looked for, by id. Those that the reader does not see count as
    /// missing. No column shows of which project one is: those that are hidden for their project
    /// are read and left out.
    ///
    /// # Errors
    /// `WentBack` where one shows less than what is known of it, its value or its document (L12).
    pub async fn listed(
        self,
        filter: &ReservationFilter,
    ) -> Result<Vec<NamedReservation>, LedgerError> {
        self.write(async |store| {
            let upto = store.last_seen.takes().noted();
            let (mut found, mut after) = (Vec::new(), filter.after.unwrap_or_default());
            let mut rows = filter.limit.min(READ_AT_ONCE);
            while found.len() < filter.limit as usize {
                let page = page(store, filter, (after, rows)).await?;
                let live = page.iter().map(|named| &named.reservation);
                memory::must_show_known(store, (None, upto), live)?;
                let is_last = page.len() < rows as usize;
                // Many are hidden: fewer statements.
                rows = rows.saturating_mul(2).min(READ_AT_ONCE);
                after = page.last().map_or(after, |named| named.reservation.id());
                found.extend(page.into_iter().filter(|named| is_shown(filter, named)));
                if is_last {
                    break;
                }
            }
            found.truncate(filter.limit as usize);
            memory::note_shown(store, None, found.iter().map(|named| &named.reservation))?;
            Ok(found)
        })
        .await
    }
}

/// Whether the reader sees a reservation, and it is for the document: a hash stands for several.
fn is_shown(
    filter: &ReservationFilter,
    NamedReservation { reservation, series }: &NamedReservation,
) -> bool {
    let record = &reservation.entry.record;
    (filter.document_id.is_none() || filter.document_id == record.document_id)
        && filter.shown.has(&record.user_id, series, record.project.as_deref())
}

/// A page of so many rows by what columns show, after the id of one.
async fn page(
    store: &Store,
    filter: &ReservationFilter,
    (after, rows): (Uuid, u32),
) -> Result<Vec<NamedReservation>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let now_us = store.clock.now_us();
    let mut query = QueryBuilder::new("select ");
    push_columns(&mut query, &*conn, now_us);
    query.push(
        ", (select s.code from series s where s.series_id = reservation.series_id)
         as series from reservation where reservation_id > ",
    );
    query.push_bind(after.as_bytes().to_vec());
    push_wanted(&mut query, &*conn, (filter, now_us));
    shown::push_rows(&mut query, "reservation", &of_any_project(&filter.shown));
    query.push(" order by reservation_id limit ").push_bind(i64::from(rows));
    let mut page = Vec::new();
    for row in query.build().fetch_all(&mut *conn).await? {
        let series: Option<String> = row.try_get("series")?;
        let kept: Kept = row.decode::<ReservationRow>()?.try_into()?;
        page.push(NamedReservation {
            reservation: kept.reservation,
            series: series.unwrap_or_default(),
        });
    }
    Ok(page)
}

/// Adds what is looked for, as columns show it.
fn push_wanted(
    query: &mut QueryBuilder<'_>,
    conn: &Conn,
    (filter, now_us): (&ReservationFilter, i64),
) {
    if let Some(series_id) = filter.series_id {
        query.push(" and reservation.series_id = ").push_bind(series_id);
    }
    if let Some(document_id) = &filter.document_id {
        query.push(" and reservation.document_hash = ").push_bind(document_hash(document_id));
    }
    let (state, than) = match filter.status {
        None => return,
        Some(LiveStatus::Confirmed) => ("confirmed", None),
        Some(LiveStatus::Cancelled) => ("cancelled", None),
        Some(LiveStatus::Reserved) => ("reserved", Some(" > ")),
        Some(LiveStatus::Over) => ("reserved", Some(" <= ")),
    };
    query.push(" and reservation.state = ").push_bind(state);
    if let Some(than) = than {
        query.push(" and reservation.expires_at_us").push(than);
        push_clock(query, conn, now_us);
    }
}

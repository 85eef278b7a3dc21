//! Orders that reserve their number, and orders that may take one that came back.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use crate::columns::read_uuid;
use crate::dialect::Conn;
use crate::nodes;
use crate::query::QueryBuilder;
use crate::series::acceptance;
use crate::series::kept::Unreserved;
use crate::store::Store;
use crate::{
    BLOCK_MAX, BLOCK_MIN, LedgerError, NO_END_US, Record, TakeOutcome, TakeRequest, schema,
};

/// Whether an order may take a returned value: one number of one serial, where no order of dates
/// is kept.
pub(super) fn takes_returned(order: &TakeRequest) -> bool {
    order.count == 1 && order.specs.len() == 1 && order.family.is_none()
}

/// Whether an order reserves a block: several numbers, without an end by time.
fn is_block(order: &TakeRequest) -> bool {
    order.reserve_us.is_some() && order.count > 1
}

/// What an order hears whose counter has only so many values left.
pub(super) fn too_few(order: &TakeRequest, serial: u16, left: u64) -> TakeOutcome {
    match left {
        1.. if is_block(order) => TakeOutcome::TooFew { left },
        _ => TakeOutcome::Exhausted { serial },
    }
}

/// Which series reserve nothing (L14). Keeps them as they are until the transaction ends; none and
/// no statement where no order reserves. Before any other lock of the transaction.
pub(super) async fn keep_series(
    store: &Store,
    conn: &mut Conn,
    orders: &[TakeRequest],
) -> Result<Unreserved, LedgerError> {
    if orders.iter().all(|order| order.reserve_us.is_none()) {
        return Ok(Unreserved::Ids(Vec::new()));
    }
    acceptance::keep(store, conn).await
}

/// What reservations of a transaction depend on.
#[derive(Debug)]
pub(super) struct Reserving {
    /// The ledger's clock; 0 where nothing is to be reserved.
    pub(super) now_us: i64,
    /// Whether a process lives that would take reserved values for lost (L15).
    is_beside_older: bool,
    /// Whether a process lives that would return the values of a block.
    is_block_beside_older: bool,
    /// The series that reserve nothing: their texts are kept apart by rows of the journal alone.
    series: Unreserved,
}

impl Reserving {
    /// No statement where no order reserves.
    pub(super) async fn of(
        conn: &mut Conn,
        orders: &[TakeRequest],
        series: Unreserved,
        now_us: i64,
    ) -> Result<Self, LedgerError> {
        if orders.iter().all(|order| order.reserve_us.is_none()) {
            let (is_beside_older, is_block_beside_older) = (false, false);
            return Ok(Reserving { now_us: 0, is_beside_older, is_block_beside_older, series });
        }
        let is_beside_older = nodes::is_any_older(conn, schema::RESERVATIONS).await?;
        let is_block_beside_older =
            orders.iter().any(is_block) && nodes::is_any_older(conn, schema::BLOCKS).await?;
        let now_us = conn.server_now_us().await?.unwrap_or(now_us);
        Ok(Reserving { now_us, is_beside_older, is_block_beside_older, series })
    }

    /// What keeps an order from being reserved; `None` also where it takes its number.
    pub(super) fn refuse(&self, order: &TakeRequest) -> Option<TakeOutcome> {
        order.reserve_us?;
        if self.is_beside_older || (self.is_block_beside_older && is_block(order)) {
            return Some(TakeOutcome::BesideOlder);
        }
        match &self.series {
            Unreserved::Ids(ids) if !ids.contains(&order.record.series_id) => None,
            Unreserved::Ids(_) => Some(TakeOutcome::NotKeptApart),
            Unreserved::Failed(why) => Some(TakeOutcome::SeriesUnknown { why: why.clone() }),
            Unreserved::Changing => Some(TakeOutcome::SeriesChanging),
        }
    }

    /// The reservation that an order asks for.
    pub(super) fn hold(&self, order: &TakeRequest, reserve_us: i64) -> Result<Hold, LedgerError> {
        let is_endless = reserve_us == NO_END_US;
        let is_of_size = match is_block(order) {
            true => (BLOCK_MIN..=BLOCK_MAX).contains(&order.count),
            false => order.count == 1,
        };
        if !is_of_size || is_endless != is_block(order) || order.specs.len() != 1 || reserve_us < 1
        {
            let why = "one number of one serial is reserved for at least a microsecond, or a block \
                       of at most 1,000 without an end";
            return Err(LedgerError::Refused(format!("order: {why}")));
        }
        let expires_at_us = self.now_us.saturating_add(reserve_us);
        Ok(Hold { expires_at_us, returns: order.family.is_none() })
    }
}

/// A reservation of the plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) expires_at_us: i64,
    /// Whether its value may be issued again once it ends.
    pub(super) returns: bool,
}

/// Those among allocations whose reservation has ended. No statement where there are none.
pub(super) async fn ended(conn: &mut Conn, ids: &[Uuid]) -> Result<BTreeSet<Uuid>, LedgerError> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut query = QueryBuilder::new(
        "select subject from life where act in ('cancelled', 'expired', 'lost',
         'handed-back') and subject",
    );
    query.push_among(ids.iter().map(|id| id.as_bytes().to_vec()).collect::<Vec<_>>());
    let subjects: Vec<Vec<u8>> = query.build().scalar().fetch_all(conn).await?;
    subjects.iter().map(|subject| read_uuid(subject, "life.subject")).collect()
}

/// An order whose earlier attempt made a reservation that has ended: the next one has an id of its
/// own, since what was done to that one says nothing of this. Should its outcome be unknown, too,
/// its document or its caller's key finds it.
pub(super) fn under_another_id(order: &TakeRequest) -> TakeRequest {
    let record = Record { allocation_id: Uuid::now_v7(), ..(*order.record).clone() };
    TakeRequest { record: Arc::new(record), ..order.clone() }
}

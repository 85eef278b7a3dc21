//! Whether the ledger still has what the database path confirmed to this process since its last
//! heartbeat (F34). Looks and refuses; changes nothing.

use uuid::Uuid;

use super::{Conn, QueryBuilder, Store};
use crate::{Counter, CounterSpec, LedgerError};

/// Refuses counters that are below what was confirmed: their next values have been issued.
pub(super) fn must_be_reached(
    store: &Store,
    locked: &[(&CounterSpec, Counter)],
) -> Result<(), LedgerError> {
    let takes = store.witness.takes();
    for (spec, counter) in locked {
        let confirmed = takes.value_of(&(spec.series_id, spec.serial.clone(), spec.key.clone()));
        if let Some(confirmed) = confirmed.filter(|confirmed| *confirmed > counter.taken) {
            let why = format!("{} was at {confirmed} and is at {}", spec.name(), counter.taken);
            return Err(LedgerError::WentBack(why));
        }
    }
    Ok(())
}

/// Refuses where a number is missing that the database path took and committed for this process
/// (F34). It looks for the allocation: a counter may have been taken past its value again.
pub(super) async fn must_be_journaled(
    conn: &mut Conn,
    allocations: &[Uuid],
) -> Result<(), LedgerError> {
    if allocations.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::new(
        "select count(distinct allocation_id) from journal \
         where path = 'database' and allocation_id",
    );
    query.push_among(allocations.iter().map(|id| id.as_bytes().to_vec()).collect::<Vec<_>>());
    let present: i64 = query.build().scalar().fetch_one(conn).await?;
    if usize::try_from(present) == Ok(allocations.len()) {
        return Ok(());
    }
    Err(LedgerError::WentBack("it has forgotten numbers that it confirmed".into()))
}

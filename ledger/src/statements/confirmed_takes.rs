//! Whether the ledger still has what the database path confirmed to this process since its last
//! heartbeat (F34). Looks and refuses; changes nothing.

use std::collections::HashSet;

use super::{Conn, QueryBuilder, Store, archive};
use crate::witness::takes::ConfirmedNumber;
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
/// (F34). It looks for the allocation: a counter may have been taken past its value again. Of a
/// process that slept for long, some may have moved to an archive.
pub(super) async fn must_be_journaled(
    conn: &mut Conn,
    numbers: &[ConfirmedNumber],
) -> Result<(), LedgerError> {
    if numbers.is_empty() {
        return Ok(());
    }
    let mut query = QueryBuilder::new(
        "select allocation_id from journal where path = 'database' and allocation_id",
    );
    let ids = numbers.iter().map(|number| number.allocation.as_bytes().to_vec());
    query.push_among(ids.collect::<Vec<_>>());
    let present: Vec<Vec<u8>> = query.build().scalar().fetch_all(&mut *conn).await?;
    let present: HashSet<Vec<u8>> = present.into_iter().collect();
    for number in numbers {
        if !present.contains(number.allocation.as_bytes().as_slice())
            && !archive::is_archived(conn, number.archived_as).await?
        {
            let why = "it has forgotten numbers that it confirmed";
            return Err(LedgerError::WentBack(why.into()));
        }
    }
    Ok(())
}

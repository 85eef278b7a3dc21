//! A `start` that is raised in a series in use: no value below it is issued, so a counter that has
//! not reached it would give nothing any more. Such a change is refused, with the positions of the
//! counters. Counters that the version does not go on with, those of past periods included, do not
//! block a change: they are moved when they are needed.

use std::collections::HashMap;

use jiff::Timestamp;
use numbering::Series;

use crate::columns::signed;
use crate::counters::table;
use crate::dialect::Conn;
use crate::protocol::partitions;
use crate::query::QueryBuilder;
use crate::{
    BelowStart, COUNTERS_COUNTED_MAX, Counter, CounterRow, LedgerError, SeriesRefusal,
    SeriesVersion,
};

/// Counters that a refusal names.
const NAMED_MAX: usize = 3;

/// Whether counters of a partition and an epoch go on above their ceilings.
type AboveCeiling = HashMap<(u32, u64), bool>;

/// Refuses a start that counters in use have not reached; `before` and `next` are the version in
/// force and the later one, compiled.
pub(crate) async fn must_be_reached(
    conn: &mut Conn,
    after: &SeriesVersion,
    (before, next): (&Series, &Series),
) -> Result<(), LedgerError> {
    let now = Timestamp::from_microsecond(after.saved_at_us).unwrap_or(Timestamp::MAX);
    let go_on = numbering::succession(before, next).go_on;
    let mut above = AboveCeiling::new();
    for (index, serial) in next.serials().iter().enumerate() {
        let mut going_on = before.serials().iter().filter(|one| go_on.contains(&one.name));
        let in_force = going_on.find(|one| one.name == serial.name);
        let in_force = in_force.map(|one| (one.start, one.step));
        if in_force.map_or(1, |(start, _)| start) >= serial.start {
            continue;
        }
        let (step, start) = (signed(serial.step, "step")?, signed(serial.start, "start")?);
        let step_before = signed(in_force.map_or(serial.step, |(_, step)| step), "step")?;
        let (mut named, mut total) = (Vec::new(), 0);
        for counter in below(conn, (after.series_id, &serial.name), start - step).await? {
            let is_used = next.may_count_by(&serial.name, &counter.key);
            if !is_used || next.is_over(&serial.name, &counter.key, now) {
                continue;
            }
            let stand = stand(conn, &counter, &mut above).await?;
            if stand.saturating_add(step) >= start {
                continue;
            }
            total += 1;
            if named.len() < NAMED_MAX {
                named.push((counter.counter_id, counter.key, stand + step_before));
            }
        }
        if total > 0 {
            return Err(SeriesRefusal::BelowStart(Box::new(BelowStart {
                code: after.definition.code.clone(),
                field: format!("serials[{index}].start"),
                serial: (serial.name.clone(), serial.start, serial.step),
                before: in_force,
                counters: named,
                total,
            }))
            .into());
        }
    }
    Ok(())
}

/// Counters of a serial whose taken value is below a given one, the newest first: past periods may
/// have very many.
async fn below(
    conn: &mut Conn,
    (series_id, serial): (i64, &str),
    value: i64,
) -> Result<Vec<Counter>, LedgerError> {
    let mut query = QueryBuilder::new(table::COLUMNS);
    query.push("where series_id = ").push_bind(series_id);
    query.push(" and serial = ").push_bind(serial.to_owned());
    query.push(" and taken < ").push_bind(value).push(" order by counter_id desc limit ");
    query.push_bind(signed(COUNTERS_COUNTED_MAX, "counters")?);
    query.build().typed::<CounterRow>().fetch_all_into(conn).await
}

/// The value that a counter goes on after, as far as the ledger knows.
async fn stand(
    conn: &mut Conn,
    counter: &Counter,
    above: &mut AboveCeiling,
) -> Result<i64, LedgerError> {
    let at = (counter.partition, counter.epoch);
    let is_above = match above.get(&at) {
        Some(known) => *known,
        None => {
            let home = partitions::read(&mut *conn, counter.partition).await?;
            let is_above = partitions::goes_on_above_ceiling(conn, counter, &home).await?;
            above.insert(at, is_above);
            is_above
        }
    };
    Ok(if is_above { counter.ceiling } else { counter.taken })
}

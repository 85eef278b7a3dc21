//! A counter that goes on above a number by hand, and what becomes of the values between: each goes
//! to the gap register, to be issued next or never. The counter's row is locked and at rest.

use super::spec_of;
use crate::columns::{self, signed};
use crate::dialect::Conn;
use crate::protocol::lift;
use crate::register::gaps::{self, Loss};
use crate::{Counter, GapReason, LedgerError, NumberByHand, PassedOver};

/// Holes that are registered per search.
const HOLES_PER_SEARCH: u32 = 1_000;

/// Raises the counter to the number's value, where it is above, and registers what it passes over.
pub(super) async fn go_above(
    conn: &mut Conn,
    new: &NumberByHand,
    (counter, base): (&Counter, i64),
    now_us: i64,
) -> Result<Option<PassedOver>, LedgerError> {
    let (spec, value) = (spec_of(new)?, signed(new.value, "value")?);
    if value <= base {
        return Ok(None);
    }
    let (counter_id, step) = (counter.counter_id, columns::step(spec.step)?);
    let (first, last) = (base + step, value - step);
    if last < first {
        lift::raise(conn, counter_id, value, step).await?;
        return Ok(None);
    }
    let is_returned = new.returns;
    let reason = if is_returned { GapReason::Returned } else { GapReason::Skipped };
    if new.order.family.is_some() {
        // Where dates are kept in order, nothing below is issued later.
        lift::lift(conn, counter_id, (value, step), now_us).await?;
    } else {
        lift::raise(conn, counter_id, value, step).await?;
    }
    let epoch = counter.epoch;
    let loss = Loss { counter_id, after: base, upto: last, step, reason, epoch };
    let count = register_all(conn, loss, now_us).await?;
    if is_returned {
        gaps::count_returned(conn, counter_id, count).await?;
    }
    let count = count.unsigned_abs();
    Ok((count > 0).then_some(PassedOver { first, last, count, is_returned }))
}

/// Registers every value of a stretch that nothing accounts for; how many they are.
async fn register_all(conn: &mut Conn, mut loss: Loss, now_us: i64) -> Result<i64, LedgerError> {
    let mut count = 0;
    loop {
        let Loss { counter_id, after, upto, step, .. } = loss;
        let found =
            gaps::search(conn, counter_id, after, upto, Some(step), HOLES_PER_SEARCH).await?;
        gaps::register(conn, &loss, &found, now_us).await?;
        count += found.iter().map(|(first, last)| (last - first) / step + 1).sum::<i64>();
        match found.last() {
            Some((_, last)) if found.len() >= HOLES_PER_SEARCH as usize => loss.after = *last,
            _ => return Ok(count),
        }
    }
}

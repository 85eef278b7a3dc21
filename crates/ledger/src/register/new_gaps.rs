//! New entries of the gap register. Owns their insert, which leaves every other entry as it is.

use numerator_runtime::metrics::count_gap;

use crate::columns::Word as _;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::{GapReason, LedgerError};

/// Entries per statement: each binds seven values, and the engine with the least takes 32,766.
const ROWS_PER_STATEMENT: usize = 1_000;

/// A run for the register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewGap {
    pub(crate) counter_id: i64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) step: i64,
    pub(crate) reason: GapReason,
    pub(crate) epoch: i64,
}

impl NewGap {
    /// Whether both are one run, of which the other is the lower part.
    pub(crate) fn continues(&self, lower: &Self) -> bool {
        let kind = |gap: &Self| (gap.counter_id, gap.step, gap.reason, gap.epoch);
        kind(self) == kind(lower) && lower.last.checked_add(self.step) == Some(self.first)
    }
}

/// Registers runs of any counters, one statement for up to 1,000 of them.
pub(crate) async fn register_all(
    conn: &mut Conn,
    gaps: &[NewGap],
    now_us: i64,
) -> Result<(), LedgerError> {
    for part in gaps.chunks(ROWS_PER_STATEMENT) {
        let mut query = QueryBuilder::new(
            "insert into gap (counter_id, first_value, last_value, step, reason, epoch,
             noted_at_us) ",
        );
        query.push_values(part, |mut row, gap| {
            row.push_bind(gap.counter_id).push_bind(gap.first).push_bind(gap.last);
            row.push_bind(gap.step).push_bind(gap.reason.word()).push_bind(gap.epoch);
            row.push_bind(now_us);
        });
        query.build().once().execute(&mut *conn).await?;
    }
    for NewGap { first, last, step, reason, .. } in gaps {
        count_gap(reason.word(), last.abs_diff(*first) / step.unsigned_abs().max(1) + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_on_one_step_are_one_run_where_nothing_else_differs() {
        let (counter_id, step, epoch) = (1, 5, 2);
        let reason = GapReason::Returned;
        let run = |first: i64, last: i64| NewGap { counter_id, first, last, step, reason, epoch };
        assert!(run(15, 15).continues(&run(5, 10)));
        assert!(!run(20, 20).continues(&run(5, 10)), "one value lies between them");
        let others = [
            NewGap { counter_id: 2, ..run(15, 15) },
            NewGap { step: 1, ..run(15, 15) },
            NewGap { reason: GapReason::Expired, ..run(15, 15) },
            NewGap { epoch: 3, ..run(15, 15) },
        ];
        assert!(others.iter().all(|other| !other.continues(&run(5, 10))));
    }
}

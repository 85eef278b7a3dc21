//! What reservations leave that end: runs of the gap register, and a row of `life` each. Never
//! removes a reservation, and never moves a counter.

use serde_json::json;

use crate::columns::{Word as _, signed};
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::new_gaps::{NewGap, register_all};
use crate::reservations::table::push_clock;
use crate::{GapReason, HandedBack, LedgerError, Reservation, ReservationEnd};

/// Rows of `life` per statement: each binds at most twelve values, and the engine with the least
/// takes 32,766.
const ROWS_PER_STATEMENT: usize = 1_000;

/// A reservation that ends.
pub(crate) struct Leaving<'r> {
    pub(crate) reservation: &'r Reservation,
    /// How it ends.
    pub(crate) end: ReservationEnd,
    /// Why its value is a gap from now on.
    pub(crate) reason: GapReason,
    /// What became of its numbers, where it is a block that is handed back.
    pub(crate) handed_back: Option<&'r HandedBack>,
}

impl<'r> Leaving<'r> {
    /// One whose value is spent, since nobody knows what its caller has committed.
    pub(crate) fn lost(reservation: &'r Reservation) -> Self {
        let (end, reason) = (ReservationEnd::Lost, GapReason::Unaccounted);
        Leaving { reservation, end, reason, handed_back: None }
    }

    /// Its value as an entry of the register.
    pub(crate) fn gap(&self) -> Result<NewGap, LedgerError> {
        let entry = &self.reservation.entry;
        let none = || LedgerError::Fault("reservation.raw holds no value".into());
        let taken = entry.taken.first().ok_or_else(none)?;
        Ok(NewGap {
            counter_id: taken.counter_id,
            first: signed(taken.range.first, "first")?,
            last: signed(taken.range.last, "last")?,
            step: signed(taken.range.step, "step")?,
            reason: self.reason,
            epoch: signed(entry.at.epoch, "epoch")?,
        })
    }

    /// Adds the columns of its row of `life`.
    fn push_onto(
        &self,
        query: &mut QueryBuilder<'_>,
        conn: &Conn,
        now_us: i64,
    ) -> Result<(), LedgerError> {
        let Reservation { entry, reserved_at_us, expires_at_us, changed_by, reason, .. } =
            self.reservation;
        let NewGap { counter_id, first, last, .. } = self.gap()?;
        let mut detail = json!({
            "reserved_at_us": reserved_at_us,
            "expires_at_us": expires_at_us,
            "ended_by": changed_by,
        });
        if let Some(handed_back) = self.handed_back {
            detail[HandedBack::FIELD] = handed_back.to_json();
        }
        query.push_bind(self.end.word()).push(", ");
        push_clock(query, conn, now_us);
        query.push(", ").push_bind(counter_id);
        query.push(", ").push_bind(first);
        query.push(", ").push_bind(last);
        query.push(", ").push_bind(entry.record.allocation_id.as_bytes().to_vec());
        query.push(", ").push_bind(entry.number.clone());
        query.push(", ").push_bind(entry.record.document_id.clone());
        query.push(", ").push_bind(entry.record.user_id.clone());
        query.push(", ").push_bind(entry.record.ip_address.clone());
        query.push(", ").push_bind(reason.clone());
        query.push(", ").push_bind(detail.to_string());
        Ok(())
    }
}

/// Enters their values into the gap register and notes for good how each ended: two statements for
/// up to 1,000 of them.
///
/// # Errors
/// `Fault` where one has no value. Nothing of the transaction may be committed after an error.
pub(crate) async fn leave(
    conn: &mut Conn,
    leaving: &[Leaving<'_>],
    now_us: i64,
) -> Result<(), LedgerError> {
    register_all(conn, &runs(leaving)?, now_us).await?;
    for part in leaving.chunks(ROWS_PER_STATEMENT) {
        note(conn, part, now_us).await?;
    }
    Ok(())
}

/// Their values; neighbours that are gaps for the same reason are one run.
fn runs(leaving: &[Leaving<'_>]) -> Result<Vec<NewGap>, LedgerError> {
    Ok(merged(leaving.iter().map(Leaving::gap).collect::<Result<_, _>>()?))
}

/// Runs of values with neighbours that are gaps for the same reason as one.
pub(crate) fn merged(mut runs: Vec<NewGap>) -> Vec<NewGap> {
    runs.sort_unstable_by_key(|run| (run.counter_id, run.first));
    runs.dedup_by(|next, run| {
        let is_one = next.continues(run);
        if is_one {
            run.last = next.last;
        }
        is_one
    });
    runs
}

/// Notes for good how they ended.
pub(crate) async fn note(
    conn: &mut Conn,
    leaving: &[Leaving<'_>],
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut query = QueryBuilder::new(
        "insert into life (act, at_us, counter_id, first_value, last_value, subject, number,
         document_id, user_id, ip_address, reason, detail) values ",
    );
    for (index, one) in leaving.iter().enumerate() {
        query.push(if index == 0 { "(" } else { ", (" });
        one.push_onto(&mut query, conn, now_us)?;
        query.push(")");
    }
    query.build().once().execute(conn).await?;
    Ok(())
}

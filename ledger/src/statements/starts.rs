//! A `start` that is raised in a series in use (R3.5): what lies below it is given to nobody, so a
//! counter that has not come there would give nothing any more. Such a change is refused, with
//! where the counters are. Counters of periods that are over keep no change out: they are moved
//! where somebody needs them.

use jiff::Timestamp;
use numbering::Series;

use super::{Conn, query};
use crate::columns::signed;
use crate::{BelowStart, COUNTERS_COUNTED_MAX, LedgerError, SeriesRefusal, SeriesVersion};

/// Counters that a refusal names.
const NAMED_MAX: usize = 3;

/// Refuses a start that counters in use have not reached; `next` is the later version, compiled.
pub(super) async fn must_be_reached(
    conn: &mut Conn,
    (before, after): (&SeriesVersion, &SeriesVersion),
    next: &Series,
) -> Result<(), LedgerError> {
    let now = Timestamp::from_microsecond(after.saved_at_us).unwrap_or(Timestamp::MAX);
    let earlier = before.definition.taken_serials();
    for (index, serial) in next.serials().iter().enumerate() {
        let start_before = earlier.iter().find(|one| one.name == serial.name).map(|one| one.start);
        if start_before.unwrap_or(1) >= serial.start {
            continue;
        }
        let step = signed(serial.step, "step")?;
        // The newest first: of those of periods that are over there may be very many.
        let rows = query(
            "select counter_id, key, taken from counter where series_id = $1 and serial = $2 \
             and taken + $3 < $4 order by counter_id desc limit $5",
        )
        .bind(after.series_id)
        .bind(&serial.name)
        .bind(step)
        .bind(signed(serial.start, "start")?)
        .bind(signed(COUNTERS_COUNTED_MAX, "counters")?)
        .fetch_all(&mut *conn)
        .await?;
        let (mut counters, mut total) = (Vec::new(), 0);
        for row in rows {
            let (counter_id, key): (i64, String) =
                (row.try_get("counter_id")?, row.try_get("key")?);
            if next.is_over(&serial.name, &key, now) {
                continue;
            }
            total += 1;
            if counters.len() < NAMED_MAX {
                let taken: i64 = row.try_get("taken")?;
                counters.push((counter_id, key, taken + step));
            }
        }
        if total > 0 {
            return Err(SeriesRefusal::BelowStart(Box::new(BelowStart {
                code: after.definition.code.clone(),
                field: format!("serials[{index}].start"),
                serial: (serial.name.clone(), serial.start, serial.step),
                start_before,
                counters,
                total,
            }))
            .into());
        }
    }
    Ok(())
}

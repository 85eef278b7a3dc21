//! What a caller may say of a reservation: for how long, and why it ends.

use std::time::Duration;

use crate::config::DurationText;
use crate::engine::allocator::BLOCK_TIME;
use crate::engine::node::ReservationSettings;
use crate::ledger::{BLOCK_MAX, BLOCK_MIN};
use crate::web::problem::Problem;
use crate::web::reason::check_reason;

/// Shortest time of a reservation.
const TTL_MIN: Duration = Duration::from_secs(1);

/// How many numbers are reserved and for how long, by a request and the settings: one for a time,
/// or a block without an end.
///
/// # Errors
/// A time that is none or out of bounds, or stands beside `count`; a block that is too small or too
/// large.
pub(crate) fn extent_of(
    count: Option<u64>,
    ttl: Option<&str>,
    bounds: ReservationSettings,
) -> Result<(u64, Duration), Problem> {
    let Some(count) = count else { return Ok((1, time_of(ttl, bounds)?)) };
    if !(BLOCK_MIN..=BLOCK_MAX).contains(&count) {
        let why = format!("must be {BLOCK_MIN} to {BLOCK_MAX}; leave it out for a single number");
        return Err(Problem::field("count", why));
    }
    match ttl {
        Some(_) => Err(Problem::field("ttl", "stands beside `count`: a block never ends by time")),
        None => Ok((count, BLOCK_TIME)),
    }
}

/// For how long a number is reserved, by a request and the settings.
///
/// # Errors
/// A time that is none, or out of bounds.
fn time_of(ttl: Option<&str>, bounds: ReservationSettings) -> Result<Duration, Problem> {
    let Some(text) = ttl else { return Ok(bounds.ttl) };
    let DurationText(ttl) = text.parse().map_err(|wrong: String| Problem::field("ttl", wrong))?;
    if (TTL_MIN..=bounds.ttl_max).contains(&ttl) {
        return Ok(ttl);
    }
    let (least, most) = (DurationText(TTL_MIN), DurationText(bounds.ttl_max));
    Err(Problem::field("ttl", format!("must be {least} to {most} (`reservations.ttl_max`)")))
}

/// The reason of a cancellation as the ledger keeps it, where one is given.
///
/// # Errors
/// One that says nothing, or that no ledger stores.
pub(crate) fn read_reason(reason: Option<&str>) -> Result<Option<String>, Problem> {
    reason.map(check_reason).transpose()
}

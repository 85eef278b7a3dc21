//! Which serials a caller may begin, end or accept: those of a series within reach, as for its
//! numbers, and none of a future time. Serials can be guessed: accepting one in advance blocks its
//! call.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use numbering::{ExchangeKind, ExchangeSerial};

use super::read;
use crate::engine::allocator::{AllocError, Catalog};
use crate::web::App;
use crate::web::middleware::Caller;
use crate::web::problem::Problem;

/// How far a serial may be ahead of this process's clock: clocks of two systems differ.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(60);
/// No zone is further ahead of UTC, in hours.
const FURTHEST_ZONE: i8 = 14;

/// Refuses serials of a series out of reach, in the words for one that does not exist.
pub(super) fn must_be_in_scope(caller: &Caller, kind: ExchangeKind) -> Result<(), Problem> {
    let code = kind.type_code();
    // They are of no project.
    if caller.scope().has(code, None) { Ok(()) } else { Err(AllocError::out_of_scope(code).into()) }
}

/// The serial that a request begins or accepts, if its caller may. The other serials of a request
/// only name what it belongs to, and require no reach.
pub(super) fn read_own(
    app: &App,
    caller: &Caller,
    kind: ExchangeKind,
    text: &str,
) -> Result<ExchangeSerial, Problem> {
    must_be_in_scope(caller, kind)?;
    let serial = read("serial", kind, text)?;
    let catalog = app.service.allocator.catalog();
    must_have_begun(&serial, &zone_of(&catalog, kind), app.service.clock.now())?;
    Ok(serial)
}

/// The zone of the days of a kind; of one that has no series here, the one that is furthest ahead.
fn zone_of(catalog: &Catalog, kind: ExchangeKind) -> TimeZone {
    let mut of_code = catalog.known().map(|(version, _)| &version.definition);
    let series = of_code.find(|definition| definition.code == kind.type_code());
    match series.map(|definition| definition.timezone.as_deref().map(TimeZone::get)) {
        Some(None) => TimeZone::UTC,
        Some(Some(Ok(zone))) => zone,
        Some(Some(Err(_))) | None => TimeZone::fixed(jiff::tz::offset(FURTHEST_ZONE)),
    }
}

fn must_have_begun(
    serial: &ExchangeSerial,
    zone: &TimeZone,
    now: Timestamp,
) -> Result<(), Problem> {
    let at = serial.time.map_or_else(
        || serial.date.to_zoned(zone.clone()),
        |time| serial.date.to_datetime(time).to_zoned(zone.clone()),
    );
    let is_ahead = |at: &Zoned| at.timestamp().duration_since(now) > AHEAD_MAX;
    match at {
        Ok(at) if !is_ahead(&at) => Ok(()),
        Ok(at) => {
            let why = format!(
                "is dated {at}, more than a minute from now: it is taken once that has come; look \
                 at the clock of the system that made it"
            );
            Err(Problem::field("serial", why))
        }
        Err(_) => Err(Problem::field("serial", "has a date that no calendar reaches")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_is_taken_from_a_minute_before_its_time_on_in_the_zone_of_its_series() {
        let now = |text: &str| text.parse::<Timestamp>().expect("a time");
        let shanghai = || TimeZone::get("Asia/Shanghai").expect("a zone");
        let read = |kind, text| ExchangeSerial::parse(kind, text).expect("a serial");
        let call = read(ExchangeKind::Interface, "C0001A0101D0002202611272301100000000001");
        let step = read(ExchangeKind::System, "C0001A010120261128000000000001");
        for (serial, zone, at, taken) in [
            (&call, shanghai(), "2026-11-27T15:01:10Z", true),
            (&call, shanghai(), "2026-11-27T15:00:10Z", true),
            (&call, shanghai(), "2026-11-27T15:00:09Z", false),
            (&call, TimeZone::UTC, "2026-11-27T15:01:10Z", false),
            (&step, shanghai(), "2026-11-27T15:59:00Z", true),
            (&step, shanghai(), "2026-11-27T15:58:59Z", false),
            (&step, TimeZone::fixed(jiff::tz::offset(14)), "2026-11-27T09:59:00Z", true),
            (&step, shanghai(), "2030-01-01T00:00:00Z", true),
        ] {
            let outcome = must_have_begun(serial, &zone, now(at));
            assert_eq!(outcome.is_ok(), taken, "{at} {outcome:?}");
        }
        // An hour that comes twice is the first one.
        let night = read(ExchangeKind::Interface, "C0001A0101D0002202610250230000000000001");
        let berlin = TimeZone::get("Europe/Berlin").expect("a zone");
        assert!(must_have_begun(&night, &berlin, now("2026-10-25T00:30:00Z")).is_ok());
    }
}

//! The document's date: what the caller wrote, in the time zone of the series.
//!
//! Reads no clock; the present comes in as an argument.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::TimeZone;

use super::InputError;
use super::error::excerpt;

/// Longest date that is read, in bytes: a date-time with nanoseconds, offset and zone name.
const DATE_BYTES_MAX: usize = 80;

/// Largest offset from UTC, in seconds: clocks on earth are within fourteen hours, and other
/// programs read none beyond eighteen.
const OFFSET_SECONDS_MAX: i32 = 18 * 3_600;

/// The moment that a date-time with an offset names; `None` if the text is not one, or its offset
/// is beyond ±18:00.
#[must_use]
pub fn read_moment(text: &str) -> Option<Timestamp> {
    let moment = text.parse().ok()?;
    let offset = Pieces::parse(text).ok()?.to_numeric_offset()?;
    (offset.seconds().abs() <= OFFSET_SECONDS_MAX).then_some(moment)
}

/// The document's civil time in `zone`.
///
/// A plain date has no time of day. If the number or its counter needs one (`time_needed`), today's
/// date takes the present time, any other is refused: the time would be invented.
pub(super) fn document_time(
    given: Option<&str>,
    zone: &TimeZone,
    now: Timestamp,
    time_needed: bool,
) -> Result<DateTime, InputError> {
    let now = zone.to_datetime(now);
    let Some(given) = given else {
        return Ok(now);
    };
    let invalid = |reason| InputError::InvalidDate { given: excerpt(given), reason };
    if given.len() > DATE_BYTES_MAX {
        return Err(invalid("is too long; write it as 2025-12-02"));
    }
    let time = if is_plain(given) {
        let date: Date = given.parse().map_err(|_| invalid("there is no such day"))?;
        match (time_needed, date == now.date()) {
            (false, _) => date.to_datetime(jiff::civil::Time::midnight()),
            (true, true) => now,
            (true, false) => {
                let remedy = "the number or its counter needs one; write 2025-12-02T09:30:00+07:00";
                return Err(InputError::TimeRequired { given: given.into(), remedy });
            }
        }
    } else {
        let expected = "write 2025-12-02, or with time and offset 2025-12-02T09:30:00+07:00";
        let beyond = "its offset is beyond ±18:00; write 2025-12-02T09:30:00+07:00";
        let is_moment = given.parse::<Timestamp>().is_ok();
        let reason = if is_moment { beyond } else { expected };
        zone.to_datetime(read_moment(given).ok_or_else(|| invalid(reason))?)
    };
    if time.year() < 1 {
        return Err(invalid("the year must be 1 to 9999"));
    }
    Ok(time)
}

/// Whether the text has the shape `yyyy-mm-dd`.
fn is_plain(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use jiff::civil::datetime;
    use jiff::tz::TimeZoneDatabase;

    use super::*;

    fn read(given: &str, zone: &str, now: &str, time_shown: bool) -> Result<DateTime, InputError> {
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        let given = (!given.is_empty()).then_some(given);
        document_time(given, &zone, now.parse().unwrap(), time_shown)
    }

    #[test]
    fn the_year_ends_in_the_zone_of_the_series() {
        let (zone, now) = ("Asia/Bangkok", "2025-12-31T16:59:59Z");
        assert_eq!(read("", zone, now, false), Ok(datetime(2025, 12, 31, 23, 59, 59, 0)));
        let now = "2025-12-31T17:00:00Z";
        assert_eq!(read("", zone, now, false), Ok(datetime(2026, 1, 1, 0, 0, 0, 0)));
        assert_eq!(read("", "UTC", now, false), Ok(datetime(2025, 12, 31, 17, 0, 0, 0)));
        let given = "2025-12-31T18:30:00+00:00";
        assert_eq!(read(given, zone, now, false), Ok(datetime(2026, 1, 1, 1, 30, 0, 0)));
        assert_eq!(read(given, "UTC", now, false), Ok(datetime(2025, 12, 31, 18, 30, 0, 0)));
    }

    #[test]
    fn a_plain_date_is_the_same_day_in_every_zone() {
        for zone in ["Asia/Bangkok", "UTC", "Pacific/Honolulu", "Asia/Taipei"] {
            let read = read("2024-02-29", zone, "2024-03-05T00:00:00Z", false);
            assert_eq!(read, Ok(datetime(2024, 2, 29, 0, 0, 0, 0)), "{zone}");
        }
    }

    #[test]
    fn a_text_that_is_no_date_is_refused() {
        let long = "2025-12-02T00:00:00Z".repeat(10);
        for given in [
            "2023-02-29",
            "2025-13-01",
            "2025-00-10",
            "2025-04-31",
            "0000-01-01",
            "20251202",
            "2025-12-2",
            "02/12/2025",
            "2025-12-02T10:00:00",
            "2025-12-02T25:00:00Z",
            "2025-12-02T10:00:00+18:01",
            "2025-12-02T10:00:00-25:59",
            "yesterday",
            " ",
            long.as_str(),
        ] {
            let error = read(given, "UTC", "2025-01-01T00:00:00Z", false).unwrap_err();
            assert_eq!((error.slug(), error.field().as_str()), ("invalid-date", "date"), "{given}");
        }
    }

    #[test]
    fn an_offset_is_read_up_to_eighteen_hours_and_refused_beyond() {
        let second = |text: &str| read_moment(text).map(Timestamp::as_second);
        assert_eq!(second("1970-01-01T18:00:00+18:00"), Some(0));
        assert_eq!(second("1969-12-31T06:00:00-18:00"), Some(0));
        assert_eq!(second("1970-01-01T00:00:00Z"), Some(0));
        for beyond in ["+18:00:01", "+18:01", "+19", "-20:00", "+25:59:59"] {
            assert_eq!(second(&format!("1970-01-01T00:00:00{beyond}")), None, "{beyond}");
        }
        let error = read("2025-12-02T10:00:00+19:00", "UTC", "2025-01-01T00:00:00Z", false);
        assert!(error.unwrap_err().to_string().contains("±18:00"));
    }

    #[test]
    fn a_time_of_day_is_taken_from_the_present_for_today_only() {
        let (zone, now) = ("Asia/Taipei", "2024-01-22T16:30:15Z");
        assert_eq!(read("2024-01-23", zone, now, true), Ok(datetime(2024, 1, 23, 0, 30, 15, 0)));
        for given in ["2024-01-22", "2024-01-24"] {
            assert_eq!(read(given, zone, now, true).unwrap_err().slug(), "time-required");
            assert!(read(given, zone, now, false).is_ok());
        }
        let given = "2024-01-22T09:30:00+08:00";
        assert_eq!(read(given, zone, now, true), Ok(datetime(2024, 1, 22, 9, 30, 0, 0)));
    }
}

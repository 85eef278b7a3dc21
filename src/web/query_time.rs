//! Times as queries and flags name them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use numbering::read_moment;

use super::problem::Problem;

/// A point in time in microseconds of UTC. A plain date is its beginning in UTC.
pub(crate) fn read_time(field: &'static str, text: &str) -> Result<i64, Problem> {
    Ok(QueryTime::read(field, text)?.begins_us(&TimeZone::UTC))
}

/// A point in time as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryTime {
    /// A date-time with its offset, in microseconds of UTC.
    Instant(i64),
    /// A date, which begins at another instant in each time zone.
    Day(Date),
}

impl QueryTime {
    /// Reads a field.
    ///
    /// # Errors
    /// A text that is neither a date nor a date-time with an offset.
    pub(crate) fn read(field: &'static str, text: &str) -> Result<Self, Problem> {
        if let Some(instant) = read_moment(text) {
            return Ok(QueryTime::Instant(instant.as_microsecond()));
        }
        // With a refused offset, the text before it is not the intended day.
        let day = text.parse::<Date>().ok().filter(|_| text.parse::<Timestamp>().is_err());
        day.map(QueryTime::Day).ok_or_else(|| {
            Problem::field(
                field,
                "must be a date such as 2025-12-02, or 2025-12-02T08:00:00+07:00, with an offset \
                 of ±18:00 at most",
            )
        })
    }

    /// When it begins in a time zone, in microseconds of UTC.
    pub(crate) fn begins_us(self, zone: &TimeZone) -> i64 {
        match self {
            QueryTime::Instant(us) => us,
            // Days at the ends of the calendar begin outside of it in some zones.
            QueryTime::Day(day) => day.to_zoned(zone.clone()).map_or_else(
                |_| if day.year() < 0 { i64::MIN } else { i64::MAX },
                |zoned| zoned.timestamp().as_microsecond(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_date_or_a_date_time_with_offset() {
        let second = 1_000_000;
        assert_eq!(read_time("from", "1970-01-02").ok(), Some(86_400 * second));
        assert_eq!(read_time("from", "1970-01-01T07:00:01+07:00").ok(), Some(second));
        assert_eq!(read_time("from", "1970-01-01T00:00:01Z").ok(), Some(second));
        let beyond = "2025-12-02T08:00:00+19:00";
        for wrong in ["", "yesterday", "2025-02-30", "12/02/2025", beyond] {
            assert!(read_time("from", wrong).is_err(), "{wrong}");
        }
    }
}

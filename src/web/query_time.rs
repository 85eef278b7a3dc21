//! Times as queries and flags name them.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use numbering::read_moment;

use super::problem::Problem;

/// A point in time in microseconds of UTC. A plain date is its beginning.
pub(crate) fn read_time(field: &'static str, text: &str) -> Result<i64, Problem> {
    // With a refused offset, the text before it is not the intended day.
    let day = || text.parse::<Date>().ok().filter(|_| text.parse::<Timestamp>().is_err());
    let begun = |date: Date| TimeZone::UTC.to_timestamp(date.into()).ok();
    let instant = read_moment(text).or_else(|| day().and_then(begun));
    instant.map(Timestamp::as_microsecond).ok_or_else(|| {
        Problem::field(
            field,
            "must be a date such as 2025-12-02, or 2025-12-02T08:00:00+07:00, with an offset of \
             ±18:00 at most",
        )
    })
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

//! Times as answers show them.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Microseconds of the ledger as RFC 3339 in UTC; a time past 9999 is the epoch.
pub(crate) fn instant(us: i64) -> String {
    format!("{:.6}", moment(us))
}

/// Until when a number is reserved, in words; a block has no end by time.
pub(crate) fn reserved_until(ends_at_us: Option<i64>) -> String {
    ends_at_us.map_or_else(|| "its block is handed back".to_owned(), instant)
}

/// The same with the offset of a series' time zone, `Z` where that is UTC.
pub(crate) fn instant_in(us: i64, timezone: Option<&str>) -> String {
    let Some(name) = timezone else { return instant(us) };
    let zoned = moment(us).to_zoned(zone_named(Some(name)));
    zoned.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z").to_string()
}

/// A time zone of a series; UTC without a name.
pub(crate) fn zone_named(name: Option<&str>) -> TimeZone {
    let zone = name.and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
    zone.unwrap_or(TimeZone::UTC)
}

fn moment(us: i64) -> Timestamp {
    Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_offset_of_its_zone() {
        let us = 1_705_894_200_000_001;
        for (zone, shown) in [
            (None, "2024-01-22T03:30:00.000001Z"),
            (Some("Asia/Bangkok"), "2024-01-22T10:30:00.000001+07:00"),
            (Some("America/St_Johns"), "2024-01-22T00:00:00.000001-03:30"),
        ] {
            assert_eq!(instant_in(us, zone), shown);
            let read = shown.parse::<Timestamp>().expect("a time");
            assert_eq!(read.as_microsecond(), us);
        }
    }
}

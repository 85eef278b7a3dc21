//! Times as answers show them.

use jiff::Timestamp;

/// Microseconds of the ledger as RFC 3339 in UTC; a time past 9999 is the epoch.
pub(crate) fn instant(us: i64) -> String {
    format!("{:.6}", Timestamp::from_microsecond(us).unwrap_or(Timestamp::UNIX_EPOCH))
}

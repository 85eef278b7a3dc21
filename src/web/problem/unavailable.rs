//! The answer to a caller that has to retry: which slug, and what is missing.

use super::Slug;
use crate::engine::allocator::Unavailable;

/// Slug and words for anything missing. The words name the setting or the action that helps.
pub(super) fn unavailable(why: Unavailable) -> (Slug, &'static str) {
    match why {
        Unavailable::CeilingReached => (
            Slug::CeilingReached,
            "the counter needs a higher ceiling, which the ledger must grant",
        ),
        Unavailable::OutboxFull => {
            (Slug::OutboxFull, "the journal is behind; numbers are issued again when it caught up")
        }
        Unavailable::QueueFull => (
            Slug::QueueFull,
            "more requests wait for the partition than allocator.queue_max, or more of this \
             caller than allocator.caller_queue_max",
        ),
        Unavailable::Redis => (Slug::RedisUnavailable, "the partition's Redis does not answer"),
        Unavailable::NoRedis => {
            (Slug::RedisUnavailable, "the partition belongs to Redis; set redis.url")
        }
        Unavailable::ForeignRedis => (
            Slug::RedisUnavailable,
            "the Redis of redis.url counts for another ledger; name another one, or another \
             database of it (redis://host/1)",
        ),
        Unavailable::Ledger => (Slug::DatabaseConnection, "the ledger does not answer"),
        Unavailable::Lock => {
            (Slug::LockTimeout, "another transaction of the ledger holds a lock that it needs")
        }
        Unavailable::SeriesChanged => (
            Slug::SeriesChanged,
            "the series, or others with which it is compared, are being changed or were a moment \
             ago, and this process is about to hear of it; send the request again",
        ),
        Unavailable::Held => {
            (Slug::PartitionHeld, "the ledger went back in time; an operator has to release it")
        }
        Unavailable::ClockBehind => (
            Slug::ClockBehind,
            "the clock of this process is behind the last id of its node number, or outside the \
             years 2020 to 2089; set the clock, or ask another process",
        ),
        Unavailable::NotJournaled => (
            Slug::NumberNotJournaled,
            "a number was taken for this request and is not in the journal; an operator sees why \
             with `numerator verify`",
        ),
        Unavailable::NodeNumbers => (
            Slug::NodeNumbersHeld,
            "1024 processes hold the node numbers of {SNOWFLAKE}; stop some of them",
        ),
        Unavailable::OlderProcess => (
            Slug::OlderProcess,
            "a process of an earlier version runs on this ledger, which would take reserved values \
             for lost; stop it, or wait until it has ended",
        ),
        Unavailable::SeriesUnread => (
            Slug::SeriesUnread,
            "which series accept an ambiguity, and so reserve nothing, cannot be found out: a \
             version of a series cannot be read, or there are too many texts to compare; the log \
             of this process says which",
        ),
        Unavailable::ReservationsFull => (
            Slug::ReservationsFull,
            "the series has as many live reservations as reservations.live_max; confirm or cancel \
             some of them",
        ),
        Unavailable::Stopping => (Slug::Stopping, "this process is stopping; ask another one"),
    }
}

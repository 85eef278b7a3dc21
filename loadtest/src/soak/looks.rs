//! What is sampled while a rate is held, and what may not grow.

use std::time::Duration;

use numerator::config::DurationText;
use tokio::time::{Instant, interval};

use crate::client::Connection;
use crate::figures::mean;
use crate::lags::Lags;
use crate::report::{Goal, Row, figure};
use crate::say;
use crate::stage::{Served, Stage, redis_bytes, resident_mb};

/// Samples in all, however long it takes; fewer if that is less than a second for each, because a
/// service updates its metrics once a second.
const LOOKS: u32 = 20;

/// Most memory of the last third of the time, or of Redis at the end, as a multiple of that of the
/// third before, or at the half. One sample alone says little about a service: some ten thousand
/// records come and go with each moment in which the journal waits.
const GROWTH_MAX: f64 = 1.2;

/// A service remembers what it has journaled for so long: before, it grows.
const KEPT: Duration = Duration::from_secs(60);

/// Most memory of a service that has not reached that time yet, in MiB.
const SERVICE_MB_MAX: f64 = 500.0;

/// Most memory of Redis per idempotency record, per bucket of records, and per counter. A record
/// taken with others takes 84 bytes; a record alone 28 more, because the partition's list has an
/// element for each flight, which on a quiet machine has one record.
const RECORD_BYTES: f64 = 84.0 + 28.0;
const BUCKET_BYTES: f64 = 200.0;
const COUNTER_BYTES: f64 = 300.0;

/// Most of it that outboxes, scripts and buffers may take.
const OTHER_BYTES: f64 = 4.0 * MIB;

/// Buckets of all partitions, by default.
const BUCKETS: f64 = 8.0 * 32_768.0;

const MIB: f64 = 1_048_576.0;

/// One sample.
#[derive(Clone, Copy, Debug)]
struct Look {
    service_mb: f64,
    redis_bytes: f64,
}

/// All samples of a time.
#[derive(Debug)]
pub(super) struct Looks {
    length: Duration,
    /// Memory of Redis before the first number, in bytes.
    empty_bytes: f64,
    lags: Lags,
    looks: Vec<Look>,
}

impl Looks {
    /// Samples memory and lag periodically, the last time at the end, and logs them.
    ///
    /// # Errors
    /// When the service or Redis does not show them.
    pub(super) async fn watch(
        stage: &Stage,
        served: &Served,
        length: Duration,
    ) -> Result<Self, String> {
        let begun = Instant::now();
        let empty_bytes = used_bytes(stage).await?;
        let mut all = Looks { length, empty_bytes, lags: Lags::default(), looks: Vec::new() };
        let looks = u32::try_from(length.as_secs()).unwrap_or(LOOKS).clamp(3, LOOKS);
        let mut ticks = interval(length / looks);
        ticks.tick().await;
        for _ in 0..looks {
            ticks.tick().await;
            // A new connection: a service closes one that is idle from one sample to the next.
            let mut connection = Connection::new(served.address);
            let lag_s = all.lags.look(&mut connection).await?;
            let service_mb = resident_mb(served.id()).ok_or("the service has no memory")?;
            let redis_bytes = used_bytes(stage).await?;
            let [seconds, lag_s, service, redis] =
                [begun.elapsed().as_secs_f64(), lag_s, service_mb, redis_bytes / MIB].map(figure);
            say(&format!(
                "{seconds} s: journal behind by {lag_s} s, service {service} MiB, Redis {redis} MiB"
            ));
            all.looks.push(Look { service_mb, redis_bytes });
        }
        Ok(all)
    }

    /// The results, each compared with its goal; `rate` numbers of `counters` counters came per
    /// second, and their idempotency records stay for a window.
    pub(super) fn rows(&self, rate: f64, counters: u32, window: DurationText) -> Vec<Row> {
        let (Some(half), Some(last)) = (self.looks.get(self.looks.len() / 2), self.looks.last())
        else {
            return Vec::new();
        };
        let mut rows = Vec::from(self.lags.rows("all along", self.length));
        let third = self.looks.len() / 3;
        let (before, end) = self.looks[self.looks.len() - 2 * third..].split_at(third);
        let [before_mb, end_mb] =
            [before, end].map(|looks| mean(looks.iter().map(|look| look.service_mb)));
        let row = Row::new("memory of the service, the last third", end_mb, "MiB");
        rows.push(if self.length / 3 >= KEPT {
            row.per(end_mb / before_mb, "the third before").goal(Goal::AtMost(GROWTH_MAX))
        } else {
            row.goal(Goal::AtMost(SERVICE_MB_MAX))
        });
        let row = Row::new("memory of Redis at the end", last.redis_bytes / MIB, "MiB");
        // A bucket that is not written to stays for two windows: from then on nothing may grow.
        let is_full = self.length / 2 >= window.0 * 2;
        rows.push(if is_full {
            row.per(last.redis_bytes / half.redis_bytes, "at the half")
                .goal(Goal::AtMost(GROWTH_MAX + OTHER_BYTES / half.redis_bytes))
        } else {
            row
        });
        let records = rate * self.length.min(window.0).as_secs_f64();
        let bytes = (last.redis_bytes - self.empty_bytes) / records;
        rows.push(
            Row::new("memory of Redis, one idempotency record", bytes, "bytes")
                .goal(Goal::AtMost(record_bytes_max(records, counters)))
                .note(format!("{} records, idempotency.window {window}", figure(records))),
        );
        rows
    }
}

/// Most memory of one record among this many, with its share of all else: the fewer records, the
/// fewer share a bucket and the rest.
fn record_bytes_max(records: f64, counters: u32) -> f64 {
    let all = COUNTER_BYTES * f64::from(counters) + OTHER_BYTES;
    RECORD_BYTES + BUCKET_BYTES * (BUCKETS / records).min(1.0) + all / records
}

/// Memory that Redis uses. Asked on another thread, because the load runs on this one.
async fn used_bytes(stage: &Stage) -> Result<f64, String> {
    let port = stage.redis.port();
    let asked = tokio::task::spawn_blocking(move || redis_bytes(port)).await;
    asked.map_err(|error| error.to_string())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// A service and a Redis whose memory goes from one value to the other by even steps.
    fn looks(length: Duration, service_mb: [f64; 2], redis_bytes: [f64; 2]) -> Looks {
        let between = |[from, upto]: [f64; 2], i: u32| from + (upto - from) * f64::from(i) / 19.0;
        let look =
            |i| Look { service_mb: between(service_mb, i), redis_bytes: between(redis_bytes, i) };
        let looks = (0..LOOKS).map(look).collect();
        Looks { length, empty_bytes: 0.0, lags: Lags::default(), looks }
    }

    fn missed(looks: &Looks, window: Duration) -> Vec<String> {
        let rows = looks.rows(2_000.0, 1_000, DurationText(window)).into_iter();
        rows.filter(|row| row.is_met() == Some(false)).map(|row| row.what).collect()
    }

    #[test]
    fn memory_that_grows_is_told_from_records_that_stay() {
        let day = 24 * HOUR;
        // 7,200,000 records of 84 bytes, and at the size measured in a quiet hour.
        let (records, alone) = (7.2e6 * 84.0, 7.2e6 * 110.0);
        for records in [records, alone] {
            assert!(missed(&looks(HOUR, [100.0, 110.0], [0.0, records]), day).is_empty());
        }
        let grown = missed(&looks(HOUR, [100.0, 300.0], [0.0, records]), day);
        assert_eq!(grown, ["memory of the service, the last third"]);
        let large = missed(&looks(HOUR, [100.0, 100.0], [0.0, records * 2.0]), day);
        assert_eq!(large, ["memory of Redis, one idempotency record"]);
    }

    #[test]
    fn in_its_first_minutes_a_service_may_grow() {
        let minute = Duration::from_secs(60);
        let missed = |length| missed(&looks(length, [100.0, 300.0], [0.0, 0.0]), 24 * HOUR);
        assert!(missed(minute).is_empty());
        assert_eq!(missed(3 * minute), ["memory of the service, the last third"]);
    }

    #[test]
    fn once_windows_have_passed_the_memory_of_redis_stands_still() {
        let window = HOUR / 10;
        let records = 2_000.0 * window.as_secs_f64() * 90.0;
        assert!(missed(&looks(HOUR, [100.0, 100.0], [records, records]), window).is_empty());
        let grows = missed(&looks(HOUR, [100.0, 100.0], [0.0, records]), window);
        assert_eq!(grows, ["memory of Redis at the end"]);
    }

    #[test]
    fn few_records_may_each_have_a_bucket_of_their_own() {
        let [few, many] = [100_000.0, 10_000_000.0].map(|records| record_bytes_max(records, 1_000));
        assert!((356.0..358.0).contains(&few), "{few}");
        assert!((117.0..118.0).contains(&many), "{many}");
    }
}

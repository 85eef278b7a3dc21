//! The health of Redis as this process sees it, partition by partition: on which data set scripts
//! that write succeed, and since when; or since when none does.
//!
//! An answer to a script that writes is the only sign of health (F22): a connection, a PING or a
//! read are not. A flight that fails is a sign at once; only a probe shows that Redis is back, for
//! it alone shows the data set.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ledger::HealthReport;
use crate::redis::{Completeness, CounterError, Probe};

/// The partitions as seen through Redis.
#[derive(Debug)]
pub struct RedisHealth {
    partitions: Vec<Mutex<Seen>>,
    /// How many of them fail, for callers that need it with each request.
    failing: AtomicUsize,
    /// Notified where a partition is needed for the first time.
    pub(super) wanted: Notify,
    /// What was last logged.
    told: Mutex<Option<String>>,
}

/// One partition.
#[derive(Debug, Default)]
struct Seen {
    /// Whether this process needs it.
    is_wanted: bool,
    /// A probe is on its way.
    is_asked: bool,
    /// The data set that last answered, and since when it has done so without a failure.
    healthy: Option<(String, Instant)>,
    /// When a probe last succeeded.
    answered_at: Option<Instant>,
    /// Since when every script has failed.
    failing_since: Option<Instant>,
    /// What the last of them failed for.
    why: Option<String>,
    /// Which idempotency records the data set has, as a probe saw it last; nothing where it named
    /// no owner.
    records: Option<Completeness>,
}

impl Seen {
    /// A silent server has failed since it was asked, not since the wait was over; but not since
    /// before it last answered.
    fn fail(&mut self, asked_at: Instant, why: String) {
        self.healthy = None;
        self.why = Some(why);
        let since = self.answered_at.map_or(asked_at, |answered_at| answered_at.max(asked_at));
        self.failing_since.get_or_insert(since);
    }
}

impl RedisHealth {
    /// Nothing is seen yet.
    #[must_use]
    pub fn new(partitions: u32) -> Self {
        RedisHealth {
            partitions: (0..partitions).map(|_| Mutex::default()).collect(),
            failing: AtomicUsize::new(0),
            wanted: Notify::new(),
            told: Mutex::default(),
        }
    }

    /// Has a partition watched from now on.
    pub fn watch(&self, partition: u32) {
        if !self.seen(partition, |seen| std::mem::replace(&mut seen.is_wanted, true)) {
            self.wanted.notify_one();
        }
    }

    /// How long no script has succeeded; `None` while the last one did, or none was tried.
    #[must_use]
    pub fn away_for(&self, partition: u32) -> Option<Duration> {
        self.seen(partition, |seen| seen.failing_since.map(|since| since.elapsed()))
    }

    /// Whether a script has ever succeeded here.
    #[must_use]
    pub fn has_answered(&self, partition: u32) -> bool {
        self.seen(partition, |seen| seen.answered_at.is_some())
    }

    /// What the last script failed for, while none succeeds.
    #[must_use]
    pub fn why(&self, partition: u32) -> Option<String> {
        self.seen(partition, |seen| seen.why.clone())
    }

    /// Where no script succeeds: partitions by what they fail for, and for how long they have.
    #[must_use]
    pub fn blind(&self) -> BTreeMap<String, (BTreeSet<u32>, Duration)> {
        let mut blind: BTreeMap<String, (BTreeSet<u32>, Duration)> = BTreeMap::new();
        for partition in self.numbers() {
            let failing =
                self.seen(partition, |seen| Some((seen.why.clone()?, seen.failing_since?)));
            if let Some((why, since)) = failing {
                let (partitions, ago) = blind.entry(why).or_default();
                partitions.insert(partition);
                *ago = since.elapsed().max(*ago);
            }
        }
        blind
    }

    /// The data set that answers, and for how long; of a partition that Redis may own.
    pub(super) fn watched(&self, partition: u32) -> Option<(String, Duration)> {
        self.numbers().contains(&partition).then(|| self.healthy_for(partition)).flatten()
    }

    /// Whether scripts succeed in every partition, as far as is known.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.failing.load(Ordering::Relaxed) == 0
    }

    /// For how long from now on keys that Redis does not know are looked up in the journal; zero
    /// before the first probe.
    #[must_use]
    pub fn asks_for(&self, partition: u32, now_us: i64, window: Duration) -> Duration {
        let records = self.seen(partition, |seen| seen.records);
        records.map_or(Duration::ZERO, |records| records.asks_for(now_us, window))
    }

    /// The data set that answers, and whether it has a record of the owner of the partition.
    #[must_use]
    pub fn shown(&self, partition: u32) -> Option<(String, bool)> {
        self.seen(partition, |seen| {
            let (incarnation, _) = seen.healthy.as_ref()?;
            Some((incarnation.clone(), seen.records.is_some()))
        })
    }

    /// The data set that answers, and for how long it has done so without a failure.
    #[must_use]
    pub fn healthy_for(&self, partition: u32) -> Option<(String, Duration)> {
        self.seen(partition, |seen| {
            let (incarnation, since) = seen.healthy.as_ref()?;
            Some((incarnation.clone(), since.elapsed()))
        })
    }

    /// What the heartbeat reports to the other nodes.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        let mut report = HealthReport::new();
        for partition in self.numbers() {
            if let Some((incarnation, _)) = self.healthy_for(partition) {
                report.entry(incarnation).or_default().insert(partition);
            }
        }
        report
    }

    /// A script other than a probe got no answer.
    pub fn fail(&self, partition: u32, asked_at: Instant, error: &CounterError) {
        self.seen(partition, |seen| seen.fail(asked_at, error.cause()));
    }

    /// Whether a probe should be sent now; at most one is on its way.
    pub(super) fn claim(&self, partition: u32) -> bool {
        self.seen(partition, |seen| {
            let is_due = seen.is_wanted && !seen.is_asked;
            seen.is_asked |= is_due;
            is_due
        })
    }

    pub(super) fn note(&self, partition: u32, asked_at: Instant, probed: Result<Probe, String>) {
        self.seen(partition, |seen| {
            seen.is_asked = false;
            let Probe { incarnation, records, .. } = match probed {
                Ok(probe) => probe,
                Err(why) => return seen.fail(asked_at, why),
            };
            seen.records = records;
            (seen.failing_since, seen.why) = (None, None);
            seen.answered_at = Some(Instant::now());
            if seen.healthy.as_ref().is_none_or(|(known, _)| *known != incarnation) {
                seen.healthy = Some((incarnation, Instant::now()));
            }
        });
    }

    /// Logs why Redis takes no scripts of this process, once for each reason.
    pub(super) fn tell(&self, partition: u32, failed: Option<&String>) {
        let mut told = self.told.lock().expect("no holder of this lock panics");
        match failed {
            None if told.is_some() && self.blind().is_empty() => {
                tracing::info!("redis takes the scripts of this process again");
                *told = None;
            }
            Some(why) if told.as_ref() != Some(why) => {
                tracing::warn!(partition, why, "redis takes no scripts of this process");
                *told = Some(why.clone());
            }
            _ => {}
        }
    }

    /// The partitions that Redis may own.
    pub(super) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.partitions.len()).expect("as many as the deployment has")
    }

    fn seen<T>(&self, partition: u32, look: impl FnOnce(&mut Seen) -> T) -> T {
        let seen = &self.partitions[partition as usize];
        let mut seen = seen.lock().expect("no holder of this lock panics");
        let failed = seen.failing_since.is_some();
        let outcome = look(&mut seen);
        match (failed, seen.failing_since.is_some()) {
            (false, true) => _ = self.failing.fetch_add(1, Ordering::Relaxed),
            (true, false) => _ = self.failing.fetch_sub(1, Ordering::Relaxed),
            _ => {}
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probed(incarnation: &str) -> Probe {
        let incarnation = incarnation.into();
        Probe { is_master: true, incarnation, deployment: None, records: None }
    }

    #[tokio::test(start_paused = true)]
    async fn a_data_set_is_healthy_until_a_script_fails_and_anew_when_another_one_answers() {
        let health = RedisHealth::new(2);
        assert!(!health.claim(1), "nobody needs it");
        health.watch(1);
        assert!(health.claim(1) && !health.claim(1), "one probe at a time");
        let second = Duration::from_secs(1);
        health.note(1, Instant::now(), Ok(probed("a")));
        tokio::time::advance(second).await;
        assert_eq!(health.healthy_for(1), Some(("a".into(), second)));
        assert_eq!(health.report(), HealthReport::from([("a".into(), [1].into())]));
        health.note(1, Instant::now(), Ok(probed("b")));
        assert_eq!(health.healthy_for(1), Some(("b".into(), Duration::ZERO)));

        let asked_at = Instant::now();
        tokio::time::advance(second).await;
        health.note(1, asked_at, Err("away".into()));
        assert_eq!((health.healthy_for(1), health.away_for(1)), (None, Some(second)));
        health.note(1, Instant::now(), Err("away".into()));
        tokio::time::advance(second).await;
        assert_eq!(health.away_for(1), Some(second * 2));
        assert_eq!(health.report(), HealthReport::new());
        health.note(1, Instant::now(), Ok(probed("b")));
        assert_eq!((health.away_for(1), health.away_for(0)), (None, None));

        let sent_at = Instant::now();
        tokio::time::advance(second).await;
        health.fail(1, sent_at, &CounterError::Unknown("cut".into()));
        assert_eq!(health.blind(), [("cut".into(), ([1].into(), second))].into());
        assert!(health.has_answered(1) && !health.has_answered(0));
        assert_eq!((health.report(), health.away_for(1)), (HealthReport::new(), Some(second)));
    }
}

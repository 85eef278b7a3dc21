//! Reports of incidents that come in storms: of a lock that is held elsewhere, when it begins, when
//! it spreads, and when it is over; of the others one a second, with the number of those left out.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::ledger::At;

/// Time between two events of one kind in one partition.
const PERIOD: Duration = Duration::from_secs(1);

/// Shortest time between two events of a phase of failure that continues and spreads.
const CHANGE_PERIOD: Duration = Duration::from_secs(60);

/// Most counters that are named of one phase.
const NAMED_MAX: usize = 10;

/// When each kind of incident was last reported, by partition: as many as there are kinds and
/// partitions. And the phases of failure that continue, by kind: a locked table, or locked rows of
/// many counters, is one phase of this process, however many of its requests wait.
#[derive(Debug, Default)]
pub struct Incidents {
    reported: Mutex<HashMap<(&'static str, u32), Reported>>,
    call_failures: Mutex<HashMap<&'static str, OngoingIncident>>,
}

#[derive(Debug)]
struct Reported {
    at: Instant,
    untold: u64,
}

/// A phase of failure that continues.
#[derive(Debug)]
struct OngoingIncident {
    /// Where it was met first.
    at: At,
    began: Instant,
    last: Instant,
    /// The ledger's last message.
    cause: String,
    counters: BTreeSet<String>,
    partitions: BTreeSet<u32>,
    reported: Instant,
    /// How many counters and partitions were reported.
    reported_count: usize,
    /// Failures since then.
    untold: u64,
}

/// The report due for a failure.
#[derive(Debug, PartialEq)]
pub(super) enum Tidings {
    /// A phase begins.
    Begun(Value),
    /// It continues, and is met elsewhere as well.
    Changed(Value),
    /// Nothing: it continues.
    None,
}

/// The state of a phase of failure.
#[derive(Debug, PartialEq)]
pub(super) enum IncidentState {
    /// There is none of the kind.
    Unknown,
    /// It may be over after so long.
    GoesOn(Duration),
    /// It is over: where it began, and what it was.
    Over(At, Value),
}

impl Incidents {
    /// Whether an incident is to be reported now: then how many were not since the last one that
    /// was.
    pub(super) fn admit(&self, kind: &'static str, partition: u32) -> Option<u64> {
        let mut all = self.reported.lock().expect("no holder of this lock panics");
        let now = Instant::now();
        let Some(reported) = all.get_mut(&(kind, partition)) else {
            all.insert((kind, partition), Reported { at: now, untold: 0 });
            return Some(0);
        };
        if now.duration_since(reported.at) < PERIOD {
            reported.untold += 1;
            return None;
        }
        reported.at = now;
        Some(std::mem::take(&mut reported.untold))
    }

    /// Notes a failure with the ledger's message, and returns what is new of its phase.
    pub(super) fn meet(
        &self,
        kind: &'static str,
        at: At,
        cause: &str,
        counter: Option<&str>,
    ) -> Tidings {
        let (now, mut call_failures) = (Instant::now(), self.call_failures());
        let is_known = call_failures.contains_key(kind);
        let incident = call_failures.entry(kind).or_insert_with(|| OngoingIncident::new(at, now));
        incident.meet(now, at.partition, cause, counter);
        if !is_known {
            return Tidings::Begun(incident.describe(now));
        }
        incident.untold += 1;
        let is_new =
            incident.met() > incident.reported_count && now - incident.reported >= CHANGE_PERIOD;
        if is_new { Tidings::Changed(incident.describe(now)) } else { Tidings::None }
    }

    /// Whether a phase is over: no failure for so long. Then it is forgotten.
    pub(super) fn poll(&self, kind: &'static str, quiet: Duration) -> IncidentState {
        let mut call_failures = self.call_failures();
        let Some(incident) = call_failures.get_mut(kind) else { return IncidentState::Unknown };
        let left = quiet.saturating_sub(incident.last.elapsed());
        if !left.is_zero() {
            return IncidentState::GoesOn(left);
        }
        let over = IncidentState::Over(incident.at, incident.describe(Instant::now()));
        call_failures.remove(kind);
        over
    }

    fn call_failures(&self) -> MutexGuard<'_, HashMap<&'static str, OngoingIncident>> {
        self.call_failures.lock().expect("no holder of this lock panics")
    }
}

impl OngoingIncident {
    fn new(at: At, now: Instant) -> Self {
        OngoingIncident {
            at,
            began: now,
            last: now,
            cause: String::new(),
            counters: BTreeSet::new(),
            partitions: BTreeSet::new(),
            reported: now,
            reported_count: 0,
            untold: 0,
        }
    }

    fn meet(&mut self, now: Instant, partition: u32, cause: &str, counter: Option<&str>) {
        self.last = now;
        cause.clone_into(&mut self.cause);
        self.partitions.insert(partition);
        if self.counters.len() < NAMED_MAX {
            self.counters.extend(counter.map(str::to_owned));
        }
    }

    /// How many counters and partitions it met.
    fn met(&self) -> usize {
        self.counters.len() + self.partitions.len()
    }

    /// The report of it now.
    fn describe(&mut self, now: Instant) -> Value {
        (self.reported, self.reported_count) = (now, self.met());
        let lasted = u64::try_from((self.last - self.began).as_millis()).unwrap_or(u64::MAX);
        json!({
            "cause": self.cause, "counters": self.counters, "partitions": self.partitions,
            "lasted_ms": lasted, "untold": std::mem::take(&mut self.untold),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_storm_of_incidents_is_told_once_a_second_with_the_number_of_the_rest() {
        let incidents = Incidents::default();
        assert_eq!(incidents.admit("collision", 1), Some(0));
        assert_eq!(incidents.admit("fenced", 1), Some(0), "another kind");
        assert_eq!(incidents.admit("collision", 2), Some(0), "another partition");
        for _ in 0..5 {
            assert_eq!(incidents.admit("collision", 1), None);
        }
        tokio::time::advance(PERIOD).await;
        assert_eq!(incidents.admit("collision", 1), Some(5));
        assert_eq!(incidents.admit("collision", 1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trouble_is_told_as_it_begins_where_it_spreads_and_as_it_ends() {
        const QUIET: Duration = Duration::from_secs(15);
        let (incidents, kind) = (Incidents::default(), "lock-timeout");
        let at = |partition| At { partition, epoch: 7 };
        let many: Vec<String> = (0..100).map(|counter: u32| counter.to_string()).collect();
        let meet = |partition, counter| incidents.meet(kind, at(partition), "held", counter);
        let poll = || incidents.poll(kind, QUIET);
        let reported = |counters: &[&str], partitions: &[u32], lasted_ms: u64, untold: u64| {
            json!({
                "cause": "held", "counters": counters, "partitions": partitions,
                "lasted_ms": lasted_ms, "untold": untold,
            })
        };
        assert_eq!(poll(), IncidentState::Unknown);
        assert_eq!(meet(1, Some("a")), Tidings::Begun(reported(&["a"], &[1], 0, 0)));
        for _ in 0..59 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!([meet(2, None), meet(1, Some("b"))], [Tidings::None, Tidings::None]);
            assert_eq!(poll(), IncidentState::GoesOn(QUIET));
        }
        let other = incidents.meet("version-conflict", at(1), "lost", None);
        assert!(matches!(other, Tidings::Begun(_)), "another kind: {other:?}");
        tokio::time::advance(Duration::from_secs(1)).await;
        let spread = reported(&["a", "b"], &[1, 2], 60_000, 119);
        assert_eq!(meet(1, Some("a")), Tidings::Changed(spread));
        tokio::time::advance(CHANGE_PERIOD * 2).await;
        assert_eq!(meet(1, Some("a")), Tidings::None, "nothing is new of it");
        tokio::time::advance(QUIET - PERIOD).await;
        assert_eq!(poll(), IncidentState::GoesOn(PERIOD));
        tokio::time::advance(PERIOD).await;
        let all = reported(&["a", "b"], &[1, 2], 180_000, 1);
        assert_eq!(poll(), IncidentState::Over(at(1), all));
        assert_eq!(poll(), IncidentState::Unknown, "told once");
        assert!(matches!(meet(1, Some("a")), Tidings::Begun(_)), "another one");
        for counter in &many {
            meet(1, Some(counter));
        }
        tokio::time::advance(QUIET).await;
        let IncidentState::Over(_, detail) = poll() else { panic!("it is over") };
        assert_eq!(detail["counters"].as_array().map(Vec::len), Some(NAMED_MAX));
    }
}

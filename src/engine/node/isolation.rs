//! Whether this process alone does not see the Redis that owns partitions, while another process
//! can serve them: then it is not ready, and reports why.
//!
//! Where no process sees Redis, or others see something else, the rule of the fall-back holds, and
//! a process that can issue is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::{Context, FALLBACK_AFTER};
use crate::ledger::{Blind, NodeReport, NodeWords, Owner, PartitionState};

/// What was seen at the last poll.
#[derive(Debug, Default)]
pub struct Isolation(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Since when another process can serve what this one cannot.
    outdone_since: Option<Instant>,
    /// The finding, once it has lasted.
    cut_off: Option<CutOff>,
    /// The last logged condition that Redis waits for.
    waits_for: BTreeMap<String, String>,
}

/// Partitions of Redis that this process alone cannot serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    partitions: BTreeSet<u32>,
    why: String,
    /// Whether another process is known to serve them.
    is_alone: bool,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CutOff { partitions, why, is_alone } = self;
        let numbers: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        let numbers = numbers.join(", ");
        if *is_alone {
            let rest = "other processes serve them";
            write!(f, "this process alone cannot reach redis: {why} (partitions {numbers}; {rest})")
        } else {
            write!(f, "redis has not answered this process yet: {why} (partitions {numbers})")
        }
    }
}

impl Isolation {
    /// Compares what this process and the others see now, and logs what is new.
    pub fn poll(&self, context: &Context) {
        let found = cut_off(context, true);
        let outdone = found.as_ref().and(others_outdo(context));
        let mut state = self.0.lock().expect("no holder of this lock panics");
        match outdone {
            // Nothing could be read: the last state stays.
            None if found.is_some() => {}
            Some(true) => {
                let since = *state.outdone_since.get_or_insert_with(Instant::now);
                // The others report with their heartbeats, and a data set that changes is not seen
                // by all in one moment.
                let grace = FALLBACK_AFTER * 2;
                if since.elapsed() >= grace || state.cut_off.is_some() {
                    if state.cut_off != found
                        && let Some(found) = &found
                    {
                        tracing::warn!("not ready: {found}");
                    }
                    state.cut_off = found;
                }
            }
            _ => {
                if state.cut_off.take().is_some() {
                    tracing::info!("this process can serve what others can again");
                }
                state.outdone_since = None;
            }
        }
        let waits_for = waits_for(context);
        if state.waits_for != waits_for {
            for (node, why) in &waits_for {
                tracing::warn!("redis is healthy and waits for {node}, which {why}");
            }
            state.waits_for = waits_for;
        }
    }

    /// Why this process should get no requests, where others can serve what it cannot. One that has
    /// had no answer of the Redis of its partitions yet is no better off.
    #[must_use]
    pub fn cut_off(&self, context: &Context) -> Option<CutOff> {
        let known = self.0.lock().expect("no holder of this lock panics").cut_off.clone();
        known.or_else(|| cut_off(context, false).filter(|_| context.redis.is_some()))
    }
}

/// The partitions that Redis owns, with the data sets of their owners.
fn owners(context: &Context) -> BTreeMap<u32, String> {
    let news = context.membership.news();
    let rows = news.borrow();
    let owned = rows.iter().filter_map(|row| match (&row.owner, row.state) {
        (Owner::Redis { incarnation }, PartitionState::Open) => {
            Some((row.partition, incarnation.clone()))
        }
        _ => None,
    });
    owned.collect()
}

/// The partitions of Redis that this process does not see on their owner's data set; or only those
/// among them of which it has never had an answer.
fn cut_off(context: &Context, is_alone: bool) -> Option<CutOff> {
    let health = &context.redis_health;
    let owners = owners(context);
    let is_unseen = |(partition, owner): &(&u32, &String)| {
        if is_alone {
            health.healthy_for(**partition).is_none_or(|(seen, _)| seen != **owner)
        } else {
            !health.has_answered(**partition)
        }
    };
    let partitions: BTreeSet<u32> =
        owners.iter().filter(is_unseen).map(|(partition, _)| *partition).collect();
    let first = *partitions.first()?;
    let why = match (&context.redis, health.healthy_for(first)) {
        (None, _) => "redis.url is not set here".to_owned(),
        (_, Some((seen, _))) => format!("it sees another data set than their owner, {seen}"),
        _ => health.why(first).unwrap_or_else(|| "it has not been asked yet".into()),
    };
    Some(CutOff { partitions, why, is_alone })
}

/// Whether another process can serve all that this one can, and more; `None` where that is unknown.
fn others_outdo(context: &Context) -> Option<bool> {
    let owners = owners(context);
    let sees = |(partition, owner): (&u32, &String)| {
        let seen = context.redis_health.healthy_for(*partition);
        seen.is_some_and(|(seen, _)| seen == *owner).then_some(*partition)
    };
    let mine = owners.iter().filter_map(sees).collect();
    context.cluster_health.outdoes(&owners, &mine)
}

/// The processes for which Redis waits in partitions of the database that this process has seen
/// there for half of the time that it takes to return: by then the others would see them too.
fn waits_for(context: &Context) -> BTreeMap<String, String> {
    let mut waits_for = BTreeMap::new();
    let news = context.membership.news();
    for row in news.borrow().iter() {
        let is_due = row.owner == Owner::Database
            && row.state == PartitionState::Open
            && !row.is_for_database();
        let seen = context.redis_health.watched(row.partition);
        if let Some((incarnation, period)) = seen.filter(|_| is_due)
            && period >= context.settings.return_after / 2
        {
            waits_for.extend(context.cluster_health.waits_for(row.partition, &incarnation));
        }
    }
    waits_for
}

/// The report of this process with a heartbeat.
pub(super) fn report(context: &Context) -> NodeReport {
    let now_us = context.clock.now_us();
    let us = |ago: std::time::Duration| i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
    let lag = context.journal.lag();
    let waited = lag.oldest.map_or(0, |oldest| oldest.elapsed().as_millis());
    let blind = context.redis_health.blind().into_iter();
    let blind = blind.map(|(why, (partitions, ago))| Blind {
        partitions,
        since_us: now_us.saturating_sub(us(ago)),
        why,
    });
    let ledger = context.ledger.nodes().call_failures().into_iter();
    let ledger = ledger.map(|(call, trouble)| crate::ledger::LedgerFailure {
        call: call.to_owned(),
        since_us: now_us.saturating_sub(us(trouble.since.elapsed())),
        why: trouble.why,
    });
    let words = NodeWords {
        without_redis: context.redis.is_none(),
        blind: blind.collect(),
        ledger: ledger.collect(),
        journal_records: u64::try_from(lag.records).unwrap_or(u64::MAX),
        journal_ms: u64::try_from(waited).unwrap_or(u64::MAX),
        clock: context.clocks.off().map(|off| off.to_string()),
        series_set_aside: context.series_set_aside.load(Ordering::Relaxed),
    };
    NodeReport { sight: context.redis_health.report(), words }
}

//! Ledger work that a worker waits for without blocking: seeds, raises, questions, and what the
//! ledger knows of a counter.
//!
//! Each job is its own task that is never cancelled; it reports to its worker, also when it fails.
//! While the ledger is away, warm counters continue below their ceilings. A job waits for a lock a
//! moment at a time, and holds no connection between two attempts (F31).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::database_path::Contended;
use super::pending_request::PendingRequest;
use super::retry_policy::{Errand, RetryPolicy, attempt, known_to_be_away, note_panic};
use crate::engine::node::{Context, Use};
use crate::ledger::{At, Counter, CounterSpec, Found, LedgerError, Raise, SeedOutcome};
use crate::node::NodeId;

/// While another node seeds a counter, look again after this long.
const SEEDER_AHEAD_DELAY: Duration = Duration::from_millis(20);

/// A counter's ceiling that should rise.
#[derive(Clone, Debug)]
pub(super) struct RaiseWish {
    /// Name of the counter within the partition.
    pub counter: String,
    /// Its identity.
    pub spec: CounterSpec,
    /// Its id, where the worker knows it.
    pub counter_id: Option<i64>,
    /// The ceiling wanted.
    pub ceiling: i64,
}

/// A counter that a worker meets in an epoch, as Redis shows it (F33).
#[derive(Clone, Debug)]
pub(super) struct Unverified {
    /// Name of the counter within the partition.
    pub counter: String,
    /// Its id in Redis.
    pub counter_id: i64,
    /// Its ceiling in Redis.
    pub ceiling: i64,
}

/// What a job reports.
pub(super) enum Done {
    /// Seeds written (or not) to the ledger.
    Seeded {
        /// The epoch of the job.
        at: At,
        /// Names and identities of the counters.
        counters: Vec<(String, CounterSpec)>,
        /// One outcome per counter.
        result: Result<Vec<SeedOutcome>, LedgerError>,
    },
    /// What the ledger knows of counters that the worker meets.
    Compared {
        /// The epoch of the job.
        at: At,
        /// The counters.
        counters: Vec<Unverified>,
        /// The row under the id of each, where the ledger has one; it may be another counter's.
        result: Result<Vec<Option<Counter>>, LedgerError>,
    },
    /// Ceilings raised (or not) in the ledger.
    Raised {
        /// The epoch of the job.
        at: At,
        /// What was wished.
        wishes: Vec<RaiseWish>,
        /// The ceilings in force; `None`: the counter has left the epoch.
        result: Result<Vec<Option<i64>>, LedgerError>,
    },
    /// The journal's answers for requests whose keys Redis does not know.
    Asked {
        /// The epoch of the job.
        at: At,
        /// The requests, back.
        requests: Vec<PendingRequest>,
        /// One answer per request.
        result: Result<Vec<Found>, LedgerError>,
    },
    /// A contended counter of the database path is free, or the epoch is over.
    Aside {
        /// Requests to wait for another epoch, back.
        requests: Vec<PendingRequest>,
    },
}

/// Starts background jobs for one worker.
#[derive(Clone)]
pub(super) struct BackgroundJobs {
    context: Arc<Context>,
    sender: mpsc::UnboundedSender<Done>,
    /// Jobs of which the worker has not taken the report.
    out: Arc<AtomicUsize>,
}

impl BackgroundJobs {
    /// A starter that reports to `sender`. At most one job per parked counter and one per asking
    /// flight is under way: requests, and so jobs, are bounded by `allocator.queue_max`.
    /// [`crate::engine::node::Permits`] bounds how many of them are at the ledger at a time.
    #[must_use]
    pub(super) fn new(context: Arc<Context>, sender: mpsc::UnboundedSender<Done>) -> Self {
        BackgroundJobs { context, sender, out: Arc::default() }
    }

    /// Whether every report was taken.
    pub(super) fn are_all_back(&self) -> bool {
        self.out.load(Ordering::Acquire) == 0
    }

    /// Notes that a report was taken.
    pub(super) fn take_back(&self) {
        self.out.fetch_sub(1, Ordering::AcqRel);
    }

    /// Starts a job, which ends with its report. What may fail in it is a separate task.
    fn start(&self, job: impl Future<Output = Done> + Send + 'static) {
        self.out.fetch_add(1, Ordering::AcqRel);
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let _ = sender.send(job.await);
        });
    }

    /// Seeds counters in the ledger. One that is locked elsewhere waits alone: the others are
    /// seeded meanwhile.
    pub(super) fn seed(&self, at: At, node: NodeId, mut counters: Vec<(String, CounterSpec)>) {
        let jobs = self.clone();
        self.start(async move {
            let context = &jobs.context;
            let mut retry_policy = RetryPolicy::new(context, at, Errand::Seed, counters.len());
            let result = loop {
                let specs: Vec<CounterSpec> =
                    counters.iter().map(|(_, spec)| spec.clone()).collect();
                let ledger = Arc::clone(&context.ledger);
                let seeding = async move { ledger.seed(at, node, &specs).await };
                let tried = attempt(context, Errand::Seed, seeding).await;
                let Err(error) = tried else { break tried };
                let held = held_among(&counters, &error).filter(|_| counters.len() > 1);
                if let Some(place) = held {
                    jobs.seed(at, node, vec![counters.swap_remove(place)]);
                } else if matches!(error, LedgerError::SeriesChanged) && counters.len() > 1 {
                    // No request is refused because of another one's series.
                    let others = counters.split_off(1);
                    others.into_iter().for_each(|other| jobs.seed(at, node, vec![other]));
                } else if !retry_policy.another_try(&error).await {
                    break Err(error);
                }
            };
            let other_seeds = |outcome: &SeedOutcome| match outcome {
                SeedOutcome::Already { seeder, .. } => *seeder != node,
                SeedOutcome::Seeded { .. } => false,
            };
            if result.as_ref().is_ok_and(|outcomes| outcomes.iter().any(other_seeds)) {
                tokio::time::sleep(SEEDER_AHEAD_DELAY).await;
            }
            Done::Seeded { at, counters, result }
        });
    }

    /// Reads what the ledger knows of counters that the worker meets, by the ids that Redis shows:
    /// one statement.
    pub(super) fn compare(&self, at: At, counters: Vec<Unverified>) {
        let context = Arc::clone(&self.context);
        self.start(async move {
            let ids: Arc<[i64]> = counters.iter().map(|unverified| unverified.counter_id).collect();
            let reading = || {
                let (ledger, asked) = (Arc::clone(&context.ledger), Arc::clone(&ids));
                async move { ledger.counters().among(&asked).await }
            };
            let retry_policy = RetryPolicy::new(&context, at, Errand::Question, counters.len());
            let result = retry_policy.try_again(reading).await;
            Done::Compared { at, counters, result }
        });
    }

    /// Raises ceilings in the ledger.
    pub(super) fn raise(&self, at: At, wishes: Vec<RaiseWish>) {
        let context = Arc::clone(&self.context);
        self.start(async move {
            let wishes = Arc::new(wishes);
            let raising = || {
                let (own, wished) = (Arc::clone(&context), Arc::clone(&wishes));
                async move { raise(&own, at, &wished).await }
            };
            let retry_policy = RetryPolicy::new(&context, at, Errand::Seed, wishes.len());
            let result = retry_policy.try_again(raising).await;
            Done::Raised { at, wishes: Arc::unwrap_or_clone(wishes), result }
        });
    }

    /// Waits for a contended counter and serves its queue. Should that fail, the queue goes back to
    /// the worker; requests that were in the transaction get the answer that a number may have been
    /// taken.
    pub(super) fn wait_aside(&self, at: At, node: NodeId, counter: String, contended: Contended) {
        let context = Arc::clone(&self.context);
        self.start(async move {
            let serving = {
                let (contended, context) = (contended.clone(), Arc::clone(&context));
                let counter = counter.clone();
                async move { contended.serve(&context, at, node, &counter).await }
            };
            let requests = match tokio::spawn(serving).await {
                Ok(requests) => requests,
                Err(failure) => {
                    note_panic(&context, &failure);
                    contended.end(&counter).collect()
                }
            };
            Done::Aside { requests }
        });
    }

    /// Asks the journal for earlier numbers: one question for all that a flight left open.
    pub(super) fn ask(&self, at: At, requests: Vec<PendingRequest>) {
        let context = Arc::clone(&self.context);
        self.start(async move {
            let node = context.membership.node();
            // Twice the time-to-live: to see that a node is silent, and to adopt what it left.
            let limit = context.settings.node_ttl * 2;
            // What Redis knows to be journaled is there, even where a request is in doubt.
            let in_doubt = requests.iter().any(|pending| !pending.is_journaled);
            if in_doubt && !is_clear(&context, at.partition, limit).await {
                return Done::Asked { at, requests, result: Err(known_to_be_away()) };
            }
            // A key that was bound to a document at the end of its window lasts for another one.
            let since_us = |pending: &PendingRequest| {
                context.windows_ago_us(1 + u32::from(pending.is_journaled))
            };
            let questions: Arc<[_]> =
                requests.iter().map(|pending| pending.order.question(since_us(pending))).collect();
            let asking = || {
                let (ledger, asked) = (Arc::clone(&context.ledger), Arc::clone(&questions));
                async move {
                    match in_doubt {
                        true => ledger.ask(at.partition, &asked).await,
                        // No number is given to a request whose number is known to be there.
                        false => ledger.replays(&asked).await,
                    }
                }
            };
            let retry_policy = RetryPolicy::new(&context, at, Errand::Question, requests.len());
            let asked_at = Instant::now();
            let mut result = retry_policy.try_again(asking).await;
            if let Err(error) = context.membership.must_not_have_slept(asked_at, node).await {
                result = Err(error);
            }
            Done::Asked {
                at,
                requests,
                result: result.and_then(|found| kept(&context, node, found)),
            }
        });
    }
}

/// Waits until the journal has whatever was handed out in a partition, for so long at most. False,
/// and nothing may be asked, where the ledger is known to be away: it may be back before the wait
/// would have been over (F1).
async fn is_clear(context: &Context, partition: u32, limit: Duration) -> bool {
    tokio::select! {
        is_clear = context.unjournaled.cleared(partition, limit) => {
            if !is_clear {
                tracing::warn!(partition, "asking a journal that may lack records");
            }
            true
        }
        () = context.membership.availability().until_lacking(Use::Read) => false,
    }
}

/// Keeps the journal's answers, since they are handed out again; no answer once the ledger has gone
/// back under the asking node (F25).
fn kept(context: &Context, node: NodeId, found: Vec<Found>) -> Result<Vec<Found>, LedgerError> {
    let Some(_right) = context.membership.hand_out(node) else {
        return Err(LedgerError::WentBack("it went back meanwhile".into()));
    };
    context.journal.keep_found(node, found.iter().flat_map(Found::entries));
    Ok(found)
}

/// The position of the counter that is locked elsewhere.
fn held_among(counters: &[(String, CounterSpec)], error: &LedgerError) -> Option<usize> {
    let LedgerError::LockTimeout { counter: Some(held), .. } = error else { return None };
    counters.iter().position(|(name, _)| name == held)
}

/// Raises ceilings, looking up the ids of counters that another node seeded.
async fn raise(
    context: &Context,
    at: At,
    wishes: &[RaiseWish],
) -> Result<Vec<Option<i64>>, LedgerError> {
    let mut ids = HashMap::new();
    for wish in wishes {
        let CounterSpec { series_id, serial, key, .. } = &wish.spec;
        let id = match wish.counter_id {
            Some(id) => Some(id),
            None => {
                let row = context.ledger.counters().get(*series_id, serial, key).await?;
                row.map(|counter| counter.counter_id)
            }
        };
        ids.insert(wish.counter.as_str(), id);
    }
    let known: Vec<(&RaiseWish, i64)> =
        wishes.iter().filter_map(|wish| Some((wish, ids[wish.counter.as_str()]?))).collect();
    let raises: Vec<Raise> = known
        .iter()
        .map(|(wish, counter_id)| Raise { counter_id: *counter_id, ceiling: wish.ceiling })
        .collect();
    let raised = context.ledger.raise(at, &raises).await?;
    let by_name: HashMap<&str, Option<i64>> = known
        .iter()
        .zip(raised)
        .map(|((wish, _), ceiling)| (wish.counter.as_str(), ceiling))
        .collect();
    Ok(wishes.iter().map(|wish| by_name.get(wish.counter.as_str()).copied().flatten()).collect())
}

//! Ledger work that a lane waits for without standing still: seeds, raises, questions.
//!
//! Each chore is a task of its own that nobody cancels; it reports to its lane. While the ledger is
//! away, warm counters go on below their ceilings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::contended::Contended;
use super::context::Context;
use super::ticket::Ticket;
use crate::backoff::Backoff;
use crate::ledger::{At, Found, LedgerError, Raise, Seed, SeedOutcome};
use crate::node::NodeId;

/// While another node seeds a counter, look again after this long.
const SEEDER_AHEAD_DELAY: Duration = Duration::from_millis(20);

/// A counter's ceiling that should rise.
#[derive(Clone, Debug)]
pub(super) struct RaiseWish {
    /// Name of the counter within the partition.
    pub counter: String,
    /// Its identity.
    pub serial: Seed,
    /// Its id, where the lane knows it.
    pub counter_id: Option<i64>,
    /// The ceiling wanted.
    pub ceiling: i64,
}

/// What a chore reports.
pub(super) enum Done {
    /// Seeds written (or not) to the ledger.
    Seeded {
        /// The epoch of the chore.
        at: At,
        /// Names and identities of the counters.
        counters: Vec<(String, Seed)>,
        /// One outcome per counter.
        result: Result<Vec<SeedOutcome>, LedgerError>,
    },
    /// Ceilings raised (or not) in the ledger.
    Raised {
        /// The epoch of the chore.
        at: At,
        /// What was wished.
        wishes: Vec<RaiseWish>,
        /// The ceilings in force; `None`: the counter has left the epoch.
        result: Result<Vec<Option<i64>>, LedgerError>,
    },
    /// The journal's answers for requests whose keys Redis does not know.
    Asked {
        /// The epoch of the chore.
        at: At,
        /// The requests, back.
        tickets: Vec<Ticket>,
        /// One answer per request.
        result: Result<Vec<Found>, LedgerError>,
    },
    /// A contended counter of the database path is free, or the epoch is over.
    Aside {
        /// Requests to wait for another epoch, back.
        tickets: Vec<Ticket>,
    },
}

/// Starts chores for one lane.
pub(super) struct Chores {
    context: Arc<Context>,
    sender: mpsc::UnboundedSender<Done>,
}

impl Chores {
    /// A starter that reports to `sender`. At most one chore per parked counter and one per asking
    /// flight is under way: requests, and so chores, are bounded by `allocator.queue_max`.
    #[must_use]
    pub(super) fn new(context: Arc<Context>, sender: mpsc::UnboundedSender<Done>) -> Self {
        Chores { context, sender }
    }

    /// Seeds counters in the ledger.
    pub(super) fn seed(&self, at: At, node: NodeId, counters: Vec<(String, Seed)>) {
        let (context, sender) = (Arc::clone(&self.context), self.sender.clone());
        tokio::spawn(async move {
            let seeds: Vec<Seed> = counters.iter().map(|(_, seed)| seed.clone()).collect();
            let mut patience = Patience::new(&context, at, seeds.len());
            let result = loop {
                match context.ledger.seed(at, node, &seeds).await {
                    Err(error) if patience.another_try(&error).await => {}
                    result => break result,
                }
            };
            let other_seeds = |outcome: &SeedOutcome| match outcome {
                SeedOutcome::Already { seeder, .. } => *seeder != node,
                SeedOutcome::Seeded { .. } => false,
            };
            if result.as_ref().is_ok_and(|outcomes| outcomes.iter().any(other_seeds)) {
                tokio::time::sleep(SEEDER_AHEAD_DELAY).await;
            }
            let _ = sender.send(Done::Seeded { at, counters, result });
        });
    }

    /// Raises ceilings in the ledger.
    pub(super) fn raise(&self, at: At, wishes: Vec<RaiseWish>) {
        let (context, sender) = (Arc::clone(&self.context), self.sender.clone());
        tokio::spawn(async move {
            let mut patience = Patience::new(&context, at, wishes.len());
            let result = loop {
                match raise(&context, at, &wishes).await {
                    Err(error) if patience.another_try(&error).await => {}
                    result => break result,
                }
            };
            let _ = sender.send(Done::Raised { at, wishes, result });
        });
    }

    /// Waits for a contended counter and serves its queue.
    pub(super) fn wait_aside(&self, at: At, node: NodeId, counter: String, contended: Contended) {
        let (context, sender) = (Arc::clone(&self.context), self.sender.clone());
        tokio::spawn(async move {
            let tickets = contended.serve(&context, at, node, &counter).await;
            let _ = sender.send(Done::Aside { tickets });
        });
    }

    /// Asks the journal for earlier numbers.
    pub(super) fn ask(&self, at: At, tickets: Vec<Ticket>) {
        let (context, sender) = (Arc::clone(&self.context), self.sender.clone());
        tokio::spawn(async move {
            // Twice the time-to-live: to see that a node is silent, and to adopt what it left.
            let limit = context.settings.node_ttl * 2;
            // What Redis knows to be journaled is there, whoever is in doubt.
            let in_doubt = tickets.iter().any(|ticket| !ticket.is_journaled);
            if in_doubt && !context.doubts.cleared(at.partition, limit).await {
                tracing::warn!(partition = at.partition, "asking a journal that may lack records");
            }
            // A key that was bound to a document at the end of its window lasts for another one.
            let since_us =
                |ticket: &Ticket| context.windows_ago_us(1 + u32::from(ticket.is_journaled));
            let questions: Vec<_> =
                tickets.iter().map(|ticket| ticket.order.question(since_us(ticket))).collect();
            let mut patience = Patience::new(&context, at, tickets.len());
            let result = loop {
                match context.ledger.replays(&questions).await {
                    Err(error) if patience.another_try(&error).await => {}
                    result => break result,
                }
            };
            let _ = sender.send(Done::Asked { at, tickets, result });
        });
    }
}

/// Raises ceilings, looking up the ids of counters that another node seeded.
async fn raise(
    context: &Context,
    at: At,
    wishes: &[RaiseWish],
) -> Result<Vec<Option<i64>>, LedgerError> {
    let mut ids = HashMap::new();
    for wish in wishes {
        let Seed { series_id, serial, key, .. } = &wish.serial;
        let id = match wish.counter_id {
            Some(id) => Some(id),
            None => {
                let row = context.ledger.counter(*series_id, serial, key).await?;
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

/// How long a chore goes on while the ledger fails: `retry.attempts_max` tries.
struct Patience {
    context: Arc<Context>,
    at: At,
    /// Requests, or counters with requests behind them, that the chore is for.
    waiting: usize,
    backoff: Backoff,
}

impl Patience {
    fn new(context: &Arc<Context>, at: At, waiting: usize) -> Self {
        let settings = &context.settings;
        let backoff = Backoff::new(settings.retry_delay_min, settings.retry_delay_max);
        Patience { context: Arc::clone(context), at, waiting, backoff }
    }

    /// Waits before another try; false when it would be of no use or there were enough.
    async fn another_try(&mut self, error: &LedgerError) -> bool {
        self.context.note_failure(self.at, error, self.waiting);
        let attempts_max = self.context.settings.retry_attempts_max;
        if !error.retry_useful() || self.backoff.attempts() >= attempts_max {
            return false;
        }
        self.backoff.wait().await;
        true
    }
}

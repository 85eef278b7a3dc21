//! The Redis path of a worker: its participation in one epoch that Redis owns, with what is in
//! flight, what is parked and what is known of the counters.
//!
//! One call in flight at a time, sent again until its outcome is known (F10). A lease ends with its
//! epoch, never by time.

mod ceilings;
mod completion;
mod counter_cache;
mod ending;
mod flights;
mod job_reports;
mod trimming;

pub(super) use counter_cache::signed;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::background_jobs::Unverified;
use super::handed_out::DueAnswers;
use super::headroom::HeadroomWatch;
use super::intake::Intake;
use super::pending_request::PendingRequest;
use crate::engine::node::Context;
use crate::ledger::At;
use crate::node::NodeId;
use crate::redis::{Guard, Redis, SeedPlace};
use counter_cache::CounterCache;
use flights::InFlight;

/// Counters of one partition that a process remembers, each in 60 to 70 bytes.
const COUNTERS_MAX: usize = 250_000;

/// Why a worker left an epoch: it must not go back to it without a recovery.
#[derive(Clone, Debug)]
pub(super) struct Suspicion {
    /// The epoch.
    pub at: At,
    /// What was seen.
    pub cause: String,
    /// The epoch that Redis showed, where it showed one.
    pub redis_epoch: Option<u64>,
    /// Whether the epoch itself is in doubt; a node that was merely barred joins it again.
    pub epoch_in_doubt: bool,
    /// The identity that is spent, where it is: barred, or its outbox does not take entries any
    /// more.
    pub spent: Option<NodeId>,
}

/// Whether a lease continues, or why it must end.
type Outcome = Result<(), Suspicion>;

/// The participation.
pub(super) struct EpochLease {
    context: Arc<Context>,
    redis: Redis,
    at: At,
    /// The owner's incarnation, as the ledger names it.
    incarnation: String,
    /// The identity that participates.
    node: NodeId,
    /// Last flight whose outcome is known; 0: none.
    confirmed: u64,
    /// What is known of the counters.
    counters: CounterCache,
    /// Counters that wait to be compared with the ledger while others are (F33).
    unverified: Vec<Unverified>,
    /// Whether a comparison is under way.
    is_comparing: bool,
    /// Requests that wait for a counter to be seeded, compared or raised.
    parked: HashMap<String, Vec<PendingRequest>>,
    /// The call in flight.
    in_flight: Option<InFlight>,
    /// Answers of the last flight that wait until the next one is under way.
    due: DueAnswers,
    /// Places that seeds in the ledger have prepared, and the distances between their values.
    seeds: Vec<(SeedPlace, u64)>,
    /// Counters' names and ceilings that are in the ledger and are to be sent, and the same.
    raises: Vec<((String, i64), u64)>,
    /// When the last call left.
    sent_at: Instant,
    /// Last flight trimmed from the outbox.
    trimmed: u64,
    /// When the outbox was last trimmed, or the ownership last looked at in doing so.
    trimmed_at: Instant,
    /// Whether idempotency records were removed before their time.
    sheds: bool,
    /// Looks for the counter with the least headroom below its ceiling.
    headroom: HeadroomWatch,
}

impl EpochLease {
    /// An epoch lease just taken.
    #[must_use]
    pub(super) fn new(
        context: &Arc<Context>,
        redis: Redis,
        at: At,
        incarnation: String,
        node: NodeId,
    ) -> Self {
        EpochLease {
            context: Arc::clone(context),
            redis,
            at,
            incarnation,
            node,
            confirmed: 0,
            counters: CounterCache::new(COUNTERS_MAX),
            unverified: Vec::new(),
            is_comparing: false,
            parked: HashMap::new(),
            in_flight: None,
            due: DueAnswers::default(),
            seeds: Vec::new(),
            raises: Vec::new(),
            sent_at: Instant::now(),
            trimmed: 0,
            trimmed_at: Instant::now(),
            sheds: false,
            headroom: HeadroomWatch::new(),
        }
    }

    /// Whether a call is in flight or ready to send apart from waiting requests, the outbox should
    /// be trimmed, or the epoch be left.
    #[must_use]
    pub(super) fn has_work(&self, intake: &Intake) -> bool {
        self.in_flight.is_some()
            || !self.seeds.is_empty()
            || !self.raises.is_empty()
            || self.trim_is_due(intake)
            || self.has_moved(intake)
    }

    /// Whether the lease is over without a fault.
    #[must_use]
    pub(super) fn is_over(&self, intake: &Intake) -> bool {
        // Nothing more is sent under an identity that was given up: no node would take it over.
        let is_spent = self.node != self.context.membership.node() && self.in_flight.is_none();
        is_spent || self.has_moved(intake)
    }

    /// Whether the partition has left the epoch, or should: for the database, or by plan.
    fn has_moved(&self, intake: &Intake) -> bool {
        intake.epoch_is_over(self.at)
            || intake.is_for_database()
            || self.context.planned_ends.is_planned(self.at)
    }

    /// One call to Redis: the one in flight again, or the next.
    ///
    /// # Errors
    /// Why the epoch must end, or has ended. Reports that were not looked at stay with the intake:
    /// requests may wait in them.
    pub(super) async fn serve(&mut self, intake: &mut Intake) -> Result<(), Suspicion> {
        while let Some(done) = intake.next_report() {
            self.take_report(intake, done)?;
        }
        if self.in_flight.is_none() {
            if self.trim_is_due(intake) {
                self.due.answer();
                self.trim(intake).await?;
            }
            self.gather(intake).await;
            self.in_flight = self.next_call(intake);
        }
        match self.in_flight.take() {
            Some(in_flight) => self.send(intake, in_flight).await,
            None => {
                self.due.answer();
                Ok(())
            }
        }
    }

    /// Answers what waits for the next flight to leave: there is none.
    pub(super) fn answer_due(&mut self) {
        self.due.answer();
    }

    /// The guard of the next flight.
    fn guard(&self, flight: u64) -> Guard {
        Guard {
            confirmed: self.confirmed,
            flight,
            ..self.context.guard(self.at, &self.incarnation, self.node)
        }
    }

    /// The epoch must end.
    fn doubt(&self, cause: String) -> Suspicion {
        Suspicion { at: self.at, cause, redis_epoch: None, epoch_in_doubt: true, spent: None }
    }

    /// The epoch must end, and the identity with it: a new one brings a new outbox.
    fn doubt_outbox(&self, cause: String) -> Suspicion {
        Suspicion { spent: Some(self.node), ..self.doubt(cause) }
    }

    /// Others have barred this node: it takes a new identity and joins again (F14).
    fn barred(&self) -> Suspicion {
        Suspicion { epoch_in_doubt: false, ..self.doubt_outbox("barred".to_owned()) }
    }
}

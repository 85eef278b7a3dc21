//! The lane of one partition: a single task through which each of its numbers passes.
//!
//! ```text
//!            join                      fenced, regressed, newer epoch
//!   Away ───────────▶ Redis (seat) ──────────────────────────────────▶ Away (suspicion)
//!    │  ╲                                                                │ recovery
//!    │   ╲──────────▶ Database ────── fenced ─────────────────────────▶ Away
//!    ╰──────────────▶ Held (the ledger went back; an operator acts)
//! ```
//!
//! Because one task does everything, there is one moment of handing out (F11): the lane moves a
//! flight's records into the journal queue, then answers; it leaves an epoch between two such
//! moments, never within one. The task is never cancelled.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::Mutex;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::chores::{Chores, Done};
use super::context::Context;
use super::membership::News;
use super::seat::Seat;
use super::ticket::Ticket;
use super::{AllocError, NumberTaken, Unavailable};
use crate::backoff::Backoff;
use crate::ledger::{At, LedgerError, Owner, Partition, PartitionState};
use crate::reconciler::{self, Recovered, Trouble};
use crate::task::Stop;

/// Why a lane left an epoch: it must not go back to it without a recovery.
#[derive(Clone, Debug)]
pub struct Suspicion {
    /// The epoch.
    pub at: At,
    /// What was seen.
    pub cause: String,
    /// The epoch that Redis showed, where it showed one.
    pub redis_epoch: Option<u64>,
}

/// Where a lane stands.
#[derive(Default)]
pub enum Standing {
    /// In no epoch.
    #[default]
    Nowhere,
    /// Out of an epoch that needs a recovery.
    Away(Suspicion),
    /// Participant of an epoch that Redis owns.
    Redis(Box<Seat>),
    /// In an epoch that the ledger owns.
    Database(At),
    /// The partition is held.
    Held,
}

/// What others may see of a lane.
#[derive(Debug)]
pub struct LaneStatus {
    /// Its standing in a word: `idle`, `recovering`, `redis`, `database`, `held`.
    pub standing: &'static str,
    /// What keeps it from issuing right now.
    pub trouble: Option<Unavailable>,
}

/// Shared view of a lane's status.
pub type SharedStatus = Arc<Mutex<LaneStatus>>;

/// The lane.
pub struct Lane {
    pub(super) context: Arc<Context>,
    pub(super) partition: u32,
    pub(super) waiting: VecDeque<Ticket>,
    pub(super) chores: Chores,
    pub(super) chores_out: usize,
    pub(super) done: Vec<Done>,
    /// Last flight whose records went to the journal queue.
    pub(super) handed: u64,
    pub(super) progress: watch::Receiver<u64>,
    pub(super) backoff: Backoff,
    inbox: mpsc::UnboundedReceiver<Ticket>,
    reports: mpsc::UnboundedReceiver<Done>,
    news: watch::Receiver<News>,
    standing: Standing,
    status: SharedStatus,
    /// Another node's recovery as last seen, and since when it stands there.
    watched: Option<(u64, PartitionState, Instant)>,
}

impl Lane {
    /// A lane that takes its requests from `inbox`.
    pub fn new(
        context: Arc<Context>,
        partition: u32,
        inbox: mpsc::UnboundedReceiver<Ticket>,
        status: SharedStatus,
    ) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let settings = &context.settings;
        Lane {
            partition,
            waiting: VecDeque::new(),
            chores: Chores::new(Arc::clone(&context), sender),
            chores_out: 0,
            done: Vec::new(),
            handed: 0,
            progress: context.journal.progress(partition),
            backoff: Backoff::new(settings.retry_delay_min, settings.retry_delay_max),
            inbox,
            reports,
            news: context.membership.news(),
            standing: Standing::Nowhere,
            status,
            watched: None,
            context,
        }
    }

    /// Serves until asked to stop and nothing waits any more.
    pub async fn run(mut self, mut stop: Stop) {
        let mut stop_at = None;
        loop {
            if stop.is_requested() && stop_at.is_none() {
                stop_at = Some(Instant::now() + self.context.settings.stop_max);
            }
            self.pull();
            let busy = self.has_work();
            match stop_at {
                Some(_) if !busy && self.chores_out == 0 => break,
                Some(deadline) if Instant::now() >= deadline => break,
                None if !busy => {
                    self.idle(&mut stop).await;
                    continue;
                }
                _ => {}
            }
            if busy {
                self.step().await;
            } else {
                self.await_report().await;
            }
        }
        self.finish().await;
    }

    /// Takes in whatever has arrived.
    fn pull(&mut self) {
        while let Ok(ticket) = self.inbox.try_recv() {
            self.waiting.push_back(ticket);
        }
        while let Ok(done) = self.reports.try_recv() {
            self.chores_out -= 1;
            self.done.push(done);
        }
    }

    fn has_work(&self) -> bool {
        let standing_has = match &self.standing {
            Standing::Redis(seat) => {
                seat.has_work() || self.trim_is_due(seat) || self.epoch_is_over(seat.at)
            }
            Standing::Database(at) => self.epoch_is_over(*at),
            Standing::Nowhere | Standing::Away(_) => self.context.eager,
            Standing::Held => self.row().is_some_and(|row| row.state != PartitionState::Held),
        };
        standing_has || !self.waiting.is_empty() || !self.done.is_empty()
    }

    /// Waits for anything to happen. Each branch is safe to drop.
    async fn idle(&mut self, stop: &mut Stop) {
        tokio::select! {
            ticket = self.inbox.recv() => match ticket {
                Some(ticket) => self.waiting.push_back(ticket),
                // The allocator is gone: only the stop signal is left to wait for.
                None => stop.requested().await,
            },
            Some(done) = self.reports.recv() => {
                self.chores_out -= 1;
                self.done.push(done);
            }
            _ = self.news.changed() => {}
            _ = self.progress.changed() => {}
            () = stop.requested() => {}
        }
    }

    /// While stopping: waits for a chore, or a moment.
    async fn await_report(&mut self) {
        tokio::select! {
            Some(done) = self.reports.recv() => {
                self.chores_out -= 1;
                self.done.push(done);
            }
            () = self.backoff.wait() => {}
        }
    }

    /// One unit of work in the present standing.
    async fn step(&mut self) {
        self.standing = match std::mem::take(&mut self.standing) {
            Standing::Nowhere => self.join(None).await,
            Standing::Away(suspicion) => self.join(Some(suspicion)).await,
            Standing::Redis(seat) => self.serve_redis(seat).await,
            Standing::Database(at) => self.serve_database(at).await,
            Standing::Held => self.serve_held().await,
        };
        let word = match &self.standing {
            Standing::Nowhere => "idle",
            Standing::Away(_) => "recovering",
            Standing::Redis(_) => "redis",
            Standing::Database(_) => "database",
            Standing::Held => "held",
        };
        self.status.lock().expect("no holder of this lock panics").standing = word;
    }

    /// Finds the epoch to serve in, or brings it about.
    async fn join(&mut self, suspicion: Option<Suspicion>) -> Standing {
        self.take_back_questions();
        let row = match self.read_row().await {
            Ok(row) => row,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                return away(suspicion);
            }
        };
        let at = At { partition: self.partition, epoch: row.epoch };
        if let Some(suspicion) = &suspicion
            && (row.epoch < suspicion.at.epoch || suspicion.redis_epoch > Some(row.epoch))
        {
            return self.hold(suspicion).await;
        }
        let has_redis = self.context.redis.is_some();
        match (row.state, &row.owner) {
            (PartitionState::Held, _) => Standing::Held,
            (PartitionState::Open, Owner::Redis { .. }) if !has_redis => {
                self.refuse(Unavailable::NoRedis, "redis owns the partition; set redis.url").await;
                Standing::Nowhere
            }
            (PartitionState::Open, Owner::Redis { incarnation }) => match &suspicion {
                Some(suspicion) if suspicion.at == at => {
                    let cause = suspicion.cause.clone();
                    self.recover(&row, &cause, Some(suspicion.clone())).await
                }
                _ => self.participate(at, incarnation.clone()).await,
            },
            (PartitionState::Open, Owner::Database) if !has_redis => {
                self.well();
                Standing::Database(at)
            }
            (PartitionState::Open, Owner::Database) => {
                self.recover(&row, "redis configured", suspicion).await
            }
            (PartitionState::Open, Owner::None) => self.recover(&row, "first use", suspicion).await,
            (PartitionState::Recovering | PartitionState::Opening, _) => {
                self.carry_on(&row, suspicion).await
            }
        }
    }

    /// Becomes a participant of an open epoch: only then may it fly there (F5).
    async fn participate(&mut self, at: At, incarnation: String) -> Standing {
        let node = self.context.membership.node();
        match self.context.ledger.participate(at, node).await {
            Ok(true) => {
                self.well();
                Standing::Redis(Box::new(Seat::new(at, incarnation, node)))
            }
            Ok(false) => Standing::Nowhere,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Nowhere
            }
        }
    }

    /// Watches another node's recovery; goes on in its place when it stands still too long (F6).
    async fn carry_on(&mut self, row: &Partition, suspicion: Option<Suspicion>) -> Standing {
        let settings = &self.context.settings;
        let mine = row.actor == Some(self.context.membership.node());
        let patience = match row.state {
            PartitionState::Opening => settings.recovery_open_timeout,
            _ => settings.recovery_open_timeout + settings.recovery_barrier_max,
        };
        let since = match self.watched {
            Some((epoch, state, since)) if (epoch, state) == (row.epoch, row.state) => since,
            _ => Instant::now(),
        };
        self.watched = Some((row.epoch, row.state, since));
        if mine || since.elapsed() > patience {
            return self.recover(row, &row.cause.clone(), suspicion).await;
        }
        self.backoff.wait().await;
        away(suspicion)
    }

    /// Leads a recovery one step further.
    async fn recover(
        &mut self,
        row: &Partition,
        cause: &str,
        suspicion: Option<Suspicion>,
    ) -> Standing {
        let handed = self.handed;
        let mut progress = self.progress.clone();
        let settled = async move {
            // An error means that the journal is gone: then nothing more will be committed.
            let _ = progress.wait_for(|committed| *committed >= handed).await;
        };
        match reconciler::recover(&self.context, row, cause, settled).await {
            Ok(Recovered::Opened | Recovered::Elsewhere) => Standing::Nowhere,
            Ok(Recovered::Held) => Standing::Held,
            Err(Trouble::Ledger(error)) => {
                self.trouble(Unavailable::Ledger, &error).await;
                away(suspicion)
            }
            Err(Trouble::Redis(error)) => {
                self.trouble(Unavailable::Redis, &error).await;
                away(suspicion)
            }
        }
    }

    /// The ledger shows less than this node or Redis has seen: it went back (F9).
    async fn hold(&mut self, suspicion: &Suspicion) -> Standing {
        let cause = format!("the ledger went back: {}", suspicion.cause);
        tracing::error!(partition = self.partition, cause, "partition held");
        match self.context.ledger.hold(self.partition, &cause).await {
            Ok(()) => Standing::Held,
            Err(error) => {
                self.trouble(Unavailable::Ledger, &error).await;
                Standing::Away(suspicion.clone())
            }
        }
    }

    /// Refuses everything until the ledger says that the partition is no longer held.
    async fn serve_held(&mut self) -> Standing {
        self.take_back_questions();
        self.refuse(Unavailable::Held, "an operator must act; see the runbook").await;
        match self.row() {
            Some(row) if row.state != PartitionState::Held => Standing::Nowhere,
            _ => Standing::Held,
        }
    }

    /// Lets the last records be committed and removes them from the outbox.
    async fn finish(&mut self) {
        for ticket in std::mem::take(&mut self.waiting) {
            ticket.answer(Err(unavailable(Unavailable::Stopping, NumberTaken::No)));
        }
        let standing = std::mem::take(&mut self.standing);
        let Standing::Redis(mut seat) = standing else { return };
        let (handed, limit) = (self.handed, self.context.settings.stop_max);
        let committed = self.progress.wait_for(|committed| *committed >= handed);
        if tokio::time::timeout(limit, committed).await.is_err() {
            tracing::warn!(partition = self.partition, "records remain in the outbox for adoption");
        }
        self.trim(&mut seat).await;
        for ticket in seat.discard() {
            ticket.answer(Err(unavailable(Unavailable::Stopping, NumberTaken::Maybe)));
        }
    }

    /// The ledger's row of this partition, read now.
    async fn read_row(&self) -> Result<Partition, LedgerError> {
        let rows = self.context.ledger.partitions().await?;
        let row = rows.into_iter().find(|row| row.partition == self.partition);
        Ok(row.expect("the ledger has a row for each partition of its deployment"))
    }

    /// The row as the last heartbeat showed it.
    fn row(&self) -> Option<Partition> {
        self.news.borrow().iter().find(|row| row.partition == self.partition).cloned()
    }

    /// Whether the ledger has left an epoch.
    pub(super) fn epoch_is_over(&self, at: At) -> bool {
        let is_later = |row: &Partition| row.partition == at.partition && row.epoch > at.epoch;
        self.news.borrow().iter().any(is_later)
    }

    /// Requests that were at the journal when their epoch ended wait again.
    fn take_back_questions(&mut self) {
        for done in std::mem::take(&mut self.done) {
            if let Done::Asked { tickets, .. } = done {
                self.wait_again(tickets);
            }
        }
    }

    /// Puts requests back to the front, in their order.
    pub(super) fn wait_again(&mut self, tickets: Vec<Ticket>) {
        for ticket in tickets.into_iter().rev() {
            ticket.stage.disembark();
            self.waiting.push_front(ticket);
        }
    }

    /// Notes what is wrong, for whoever gives up waiting, and waits a moment.
    pub(super) async fn trouble(&mut self, why: Unavailable, error: &dyn std::fmt::Display) {
        tracing::warn!(partition = self.partition, ?why, %error, "cannot issue for now");
        self.status.lock().expect("no holder of this lock panics").trouble = Some(why);
        self.waiting.retain(|ticket| !ticket.stage.is_given_up());
        self.backoff.wait().await;
    }

    /// Nothing is wrong (any more).
    pub(super) fn well(&mut self) {
        self.watched = None;
        self.backoff.reset();
        self.status.lock().expect("no holder of this lock panics").trouble = None;
    }

    /// Refuses all waiting requests: none of them took anything.
    async fn refuse(&mut self, why: Unavailable, remedy: &str) {
        for ticket in std::mem::take(&mut self.waiting) {
            ticket.answer(Err(unavailable(why, NumberTaken::No)));
        }
        self.trouble(why, &remedy).await;
    }
}

fn away(suspicion: Option<Suspicion>) -> Standing {
    suspicion.map_or(Standing::Nowhere, Standing::Away)
}

/// The error for a request that cannot be served now; a second is a fair guess for all causes.
pub fn unavailable(why: Unavailable, taken: NumberTaken) -> AllocError {
    AllocError::Unavailable { why, retry_after_ms: 1_000, taken }
}

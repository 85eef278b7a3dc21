//! A partition of Redis that the database has for a while, so that a counter there is at rest
//! ([0013](../../../docs/decisions/0013-an-import-lifts-no-counter-that-redis-counts.md)): every
//! node accounts for what it handed out before the counter moves, and none takes from what it
//! remembers afterwards. Where the process is killed meanwhile, the watch over the nodes takes the
//! partition back. Changes no counter itself.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::engine::node::Context;
use crate::ledger::{Event, LedgerError, Owner, Partition, PartitionState};

/// Longest wait until the database owns a partition.
const TIMEOUT: Duration = Duration::from_secs(15);
/// First and longest wait between two checks.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));
/// How often taking a partition back is tried.
const RETURNS_MAX: u32 = 5;

/// A loan, which must be taken back.
pub(crate) struct Loan<'c> {
    context: &'c Context,
    partition: u32,
    id: Uuid,
    /// What its events say of it.
    detail: Value,
    deadline: Instant,
    wait: Backoff,
    /// Whether the database was seen to have the partition.
    was_at_rest: bool,
}

impl<'c> Loan<'c> {
    /// Does what needs a partition of Redis at rest, on a loan that is taken back whatever becomes
    /// of it. The attempt returns none where the partition is not at rest; it is repeated until the
    /// time is over.
    ///
    /// # Errors
    /// Those of the attempt; of the two others the first one where the partition is lent for
    /// something else, and the second one once the time is over.
    pub(crate) async fn serve<T, E: From<LedgerError>, Attempt>(
        context: &'c Context,
        partition: u32,
        (id, detail): (Uuid, Value),
        [lent, timed_out]: [fn(u32) -> E; 2],
        attempt: impl Fn() -> Attempt,
    ) -> Result<T, E>
    where
        Attempt: Future<Output = Result<Option<T>, E>>,
    {
        let loan = Loan::begin(context, partition, id, detail).await?;
        let mut loan = loan.ok_or_else(|| lent(partition))?;
        let outcome = loan.until_served(attempt).await;
        loan.take_back().await;
        outcome?.ok_or_else(|| timed_out(partition))
    }

    async fn until_served<T, E: From<LedgerError>, Attempt>(
        &mut self,
        attempt: impl Fn() -> Attempt,
    ) -> Result<Option<T>, E>
    where
        Attempt: Future<Output = Result<Option<T>, E>>,
    {
        while self.until_at_rest().await? {
            // None where the loan was taken back meanwhile.
            if let Some(served) = attempt().await? {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }

    /// Lends a partition; `None` where it is lent for something else. One with the same id that a
    /// killed process did not take back is this one.
    ///
    /// # Errors
    /// A ledger that does not answer: what may be lent is taken back.
    async fn begin(
        context: &'c Context,
        partition: u32,
        id: Uuid,
        detail: Value,
    ) -> Result<Option<Self>, LedgerError> {
        let (ledger, lender) = (&context.ledger, Some(context.membership.node()));
        let loan = Self::left(context, partition, id, detail);
        let begun = async {
            let is_lent = ledger.lend_by(lender, partition, [None, Some(id)]).await?
                || ledger.lend_by(lender, partition, [Some(id), Some(id)]).await?;
            if is_lent {
                loan.note("partition-lent").await?;
            }
            Ok(is_lent)
        };
        match begun.await {
            Ok(is_lent) => Ok(is_lent.then_some(loan)),
            Err(error) => {
                // It is lent where only the answer was lost.
                loan.take_back().await;
                Err(error)
            }
        }
    }

    /// One that a killed process may have left, to be taken back.
    pub(crate) fn left(context: &'c Context, partition: u32, id: Uuid, detail: Value) -> Self {
        let (deadline, wait) = (Instant::now() + TIMEOUT, Backoff::new(POLL.0, POLL.1));
        Loan { context, partition, id, detail, deadline, wait, was_at_rest: false }
    }

    /// Waits until the database has the partition: the workers hand it over, as they do for an
    /// operator. False once the time is over. Asked again, it waits again: the loan may have been
    /// taken back meanwhile.
    ///
    /// # Errors
    /// A ledger that does not answer.
    async fn until_at_rest(&mut self) -> Result<bool, LedgerError> {
        let is_there = |row: &Partition| {
            row.partition == self.partition
                && (row.state, &row.owner) == (PartitionState::Open, &Owner::Database)
        };
        loop {
            if !std::mem::take(&mut self.was_at_rest)
                && self.context.ledger.partitions().await?.iter().any(is_there)
            {
                self.was_at_rest = true;
                return Ok(true);
            }
            if Instant::now() >= self.deadline {
                return Ok(false);
            }
            self.wait.wait().await;
        }
    }

    /// Takes the partition back; Redis gets it as after any fall-back.
    pub(crate) async fn take_back(self) {
        let Loan { context, partition, id, .. } = self;
        let mut wait = Backoff::new(POLL.0, POLL.1);
        for _ in 0..RETURNS_MAX {
            let taken_back = async {
                if context.ledger.lend(partition, [Some(id), None]).await? {
                    self.note("partition-taken-back").await?;
                }
                Ok::<_, LedgerError>(())
            };
            match taken_back.await {
                Ok(()) => return,
                Err(error) => tracing::warn!(partition, %error, "cannot take the partition back"),
            }
            wait.wait().await;
        }
        tracing::error!(
            partition,
            "the partition may stay lent to the database; `numerator fallback off` gives it back \
             to redis"
        );
    }

    async fn note(&self, kind: &str) -> Result<(), LedgerError> {
        let event = Event {
            at_us: self.context.clock.now_us(),
            kind: kind.into(),
            partition: Some(self.partition),
            epoch: None,
            node_id: Some(self.context.membership.node()),
            detail: self.detail.clone(),
        };
        self.context.ledger.events().record(&event).await
    }
}

//! Makes a change that two people answer for, once the second one has approved it.
//!
//! The ledger decides whether and how. This file does what the ledger cannot: if Redis counts the
//! counter, its partition is lent to the database meanwhile, as for an import
//! ([0013](../../docs/decisions/0013-an-import-lifts-no-counter-that-redis-counts.md)), so that
//! every node accounts for what it handed out before the counter moves, and none takes from what it
//! remembers afterwards.

use std::time::Duration;

use serde_json::json;
use thiserror::Error;
use tokio::time::Instant;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::ledger::{
    ChangeDecision, ChangeRefusal, ChangeRequest, Event, LedgerError, Owner, Partition,
    PartitionState,
};
use crate::startup::Service;

/// Longest wait until the database owns a partition.
const TIMEOUT: Duration = Duration::from_secs(15);
/// First and longest wait between two checks.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));
/// How often taking a partition back is tried.
const RETURNS_MAX: u32 = 5;

/// Why an approval has no effect. The request still waits for one.
#[derive(Debug, Error)]
pub enum NotApproved {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The partition is lent to another import or change.
    #[error(
        "partition {0} is lent to an import or another change: approve again once that is done; \
         where it was killed, the services take the partition back within seconds, or `numerator \
         fallback off`"
    )]
    Lent(u32),
    /// Not every node has released the partition.
    #[error(
        "the database could not take partition {0} over in time, and nothing is changed: approve \
         again; `numerator status` shows what it waits for"
    )]
    TimedOut(u32),
}

impl Service {
    /// Approves a request and makes the change.
    ///
    /// # Errors
    /// See [`NotApproved`]. Nothing is changed then, unless the ledger says otherwise.
    pub async fn approve_change(
        &self,
        decision: &ChangeDecision,
    ) -> Result<ChangeRequest, NotApproved> {
        match self.ledger.approvals().approve(decision).await {
            Err(LedgerError::Change(ChangeRefusal::InRedis(partition))) => {
                self.approve_on_loan(decision, partition).await
            }
            outcome => {
                self.take_back_left(decision, &outcome).await;
                Ok(outcome?)
            }
        }
    }

    /// Rejects a request, or withdraws it.
    ///
    /// # Errors
    /// A ledger that refuses, or does not answer.
    pub async fn reject_change(
        &self,
        decision: &ChangeDecision,
    ) -> Result<ChangeRequest, LedgerError> {
        let outcome = self.ledger.approvals().reject(decision).await;
        self.take_back_left(decision, &outcome).await;
        outcome
    }

    /// Once a request is answered, takes back the loan that a process killed during the change has
    /// left with the database.
    async fn take_back_left(
        &self,
        decision: &ChangeDecision,
        outcome: &Result<ChangeRequest, LedgerError>,
    ) {
        use ChangeRefusal::Decided;
        if !matches!(outcome, Ok(_) | Err(LedgerError::Change(Decided { .. }))) {
            return;
        }
        match self.ledger.partitions().await {
            Ok(rows) => {
                for row in rows.into_iter().filter(|row| row.is_lent) {
                    self.take_back(row.partition, loan_id(decision.change_id), decision).await;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot see what is lent to the database"),
        }
    }

    /// The same while the database has the partition.
    async fn approve_on_loan(
        &self,
        decision: &ChangeDecision,
        partition: u32,
    ) -> Result<ChangeRequest, NotApproved> {
        let id = loan_id(decision.change_id);
        // A loan that a killed process did not take back belongs to this change too.
        let lender = Some(self.context.membership.node());
        let is_lent = self.ledger.lend_by(lender, partition, [None, Some(id)]).await?
            || self.ledger.lend_by(lender, partition, [Some(id), Some(id)]).await?;
        if !is_lent {
            return Err(NotApproved::Lent(partition));
        }
        let outcome = match self.note_loan(partition, decision, "partition-lent").await {
            Ok(()) => self.approve_once_at_rest(decision, partition).await,
            Err(error) => Err(error.into()),
        };
        self.take_back(partition, id, decision).await;
        outcome
    }

    /// Approves as soon as the database has the partition: the workers hand it over, as they do for
    /// an operator.
    async fn approve_once_at_rest(
        &self,
        decision: &ChangeDecision,
        partition: u32,
    ) -> Result<ChangeRequest, NotApproved> {
        let deadline = Instant::now() + TIMEOUT;
        let mut wait = Backoff::new(POLL.0, POLL.1);
        loop {
            let rows = self.ledger.partitions().await?;
            let is_there = |row: &Partition| {
                row.partition == partition
                    && (row.state, &row.owner) == (PartitionState::Open, &Owner::Database)
            };
            if rows.iter().any(is_there) {
                match self.ledger.approvals().approve(decision).await {
                    // The loan was taken back meanwhile.
                    Err(LedgerError::Change(ChangeRefusal::InRedis(_))) => {}
                    outcome => return Ok(outcome?),
                }
            }
            if Instant::now() >= deadline {
                return Err(NotApproved::TimedOut(partition));
            }
            wait.wait().await;
        }
    }

    /// Takes a partition back; Redis gets it as after any fall-back.
    async fn take_back(&self, partition: u32, id: Uuid, decision: &ChangeDecision) {
        let mut wait = Backoff::new(POLL.0, POLL.1);
        for _ in 0..RETURNS_MAX {
            let taken_back = async {
                if self.ledger.lend(partition, [Some(id), None]).await? {
                    self.note_loan(partition, decision, "partition-taken-back").await?;
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
            "the partition stays lent to the database; `numerator fallback off` gives it back to \
             redis"
        );
    }

    async fn note_loan(
        &self,
        partition: u32,
        decision: &ChangeDecision,
        kind: &str,
    ) -> Result<(), LedgerError> {
        let event = Event {
            at_us: self.clock.now_us(),
            kind: kind.into(),
            partition: Some(partition),
            epoch: None,
            node_id: Some(self.context.membership.node()),
            detail: json!({
                "to": "change", "change_id": decision.change_id, "user": decision.decided_by,
            }),
        };
        self.ledger.events().record(&event).await
    }
}

/// The loan id of a change: the same in every process that makes it, so that the next attempt takes
/// back what an earlier one left.
fn loan_id(change_id: i64) -> Uuid {
    let [high, low] = [0x6368_616e_6765_8000, 0x8000_0000_0000_0000 | change_id.unsigned_abs()];
    Uuid::from_u64_pair(high, low)
}

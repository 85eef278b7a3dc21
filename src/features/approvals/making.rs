//! Makes a change that two people answer for, once the second one has approved it.
//!
//! The ledger decides whether and how. This file does what the ledger cannot: if Redis counts the
//! counter, its partition is lent to the database meanwhile.

use serde_json::{Value, json};
use thiserror::Error;
use uuid::Uuid;

use crate::engine::reconciler::Loan;
use crate::ledger::{ChangeDecision, ChangeRefusal, ChangeRequest, LedgerError};
use crate::startup::Service;

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
                    let id = loan_id(decision.change_id);
                    let left = Loan::left(&self.context, row.partition, id, detail_of(decision));
                    left.take_back().await;
                }
            }
            Err(error) => tracing::warn!(%error, "cannot see what is lent to the database"),
        }
    }

    /// The same while the database has the partition. A loan that a killed process did not take
    /// back belongs to this change too.
    async fn approve_on_loan(
        &self,
        decision: &ChangeDecision,
        partition: u32,
    ) -> Result<ChangeRequest, NotApproved> {
        let errors = [NotApproved::Lent, NotApproved::TimedOut];
        let loan = (loan_id(decision.change_id), detail_of(decision));
        Loan::serve(&self.context, partition, loan, errors, move || async move {
            match self.ledger.approvals().approve(decision).await {
                Err(LedgerError::Change(ChangeRefusal::InRedis(_))) => Ok(None),
                outcome => Ok(Some(outcome?)),
            }
        })
        .await
    }
}

/// What the events of a change's loan say of it.
fn detail_of(decision: &ChangeDecision) -> Value {
    json!({ "to": "change", "change_id": decision.change_id, "user": decision.decided_by })
}

/// The loan id of a change: the same in every process that makes it, so that the next attempt takes
/// back what an earlier one left.
fn loan_id(change_id: i64) -> Uuid {
    let [high, low] = [0x6368_616e_6765_8000, 0x8000_0000_0000_0000 | change_id.unsigned_abs()];
    Uuid::from_u64_pair(high, low)
}

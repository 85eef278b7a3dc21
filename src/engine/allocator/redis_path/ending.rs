//! How an epoch lease ends: Redis has gone, a fault was found, or the process stops; and giving it
//! up so that nothing that was taken is given up without need.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::flights::{FlightBatch, InFlight};
use super::{EpochLease, Outcome, Suspicion};
use crate::engine::allocator::error::unavailable;
use crate::engine::allocator::intake::Intake;
use crate::engine::allocator::pending_request::PendingRequest;
use crate::engine::allocator::{NumberTaken, Unavailable};
use crate::engine::node::FALLBACK_AFTER;
use crate::redis::{CounterError, Flight, Settled};

/// Wait between two polls of what the other nodes see, while this one does not see Redis.
const CLUSTER_POLL: Duration = Duration::from_millis(20);

/// Wait before Redis is asked again for the outcome of a flight.
const SETTLE_RETRY: Duration = Duration::from_millis(20);

impl EpochLease {
    /// Redis did not answer a call of `asked_at`. Either the database takes over, or only this node
    /// is cut off: then it refuses what waits, for other nodes serve (F22).
    pub(super) async fn without_redis(
        &self,
        intake: &mut Intake,
        asked_at: Instant,
        error: &CounterError,
    ) -> Outcome {
        let (context, partition) = (&self.context, self.at.partition);
        context.redis_health.fail(partition, asked_at, error);
        loop {
            if context.redis_is_gone(partition) {
                return Err(self.doubt(format!("redis is unavailable: {error}")));
            }
            if context.is_cut_off(partition) {
                intake.refuse(Unavailable::Redis, &error.to_string()).await;
                return Ok(());
            }
            let away = context.redis_health.away_for(partition);
            if away.is_none_or(|away| away < FALLBACK_AFTER) || intake.epoch_is_over(self.at) {
                intake.trouble(Unavailable::Redis, error).await;
                return Ok(());
            }
            // A flight would get no answer for another `redis.command_timeout`; the reports of
            // others come with a heartbeat. They have as long again to report, then this node is
            // cut off.
            intake.log_failure(Unavailable::Redis, error);
            tokio::time::sleep(CLUSTER_POLL).await;
        }
    }

    /// Gives the lease up because of a fault, and records that.
    pub(crate) async fn leave(self, intake: &mut Intake, suspicion: &Suspicion) {
        let (context, at, node) = (self.context.clone(), self.at, self.node);
        let Suspicion { cause, epoch_in_doubt, .. } = suspicion;
        tracing::warn!(partition = at.partition, epoch = at.epoch, cause, "leaving the epoch");
        context.metrics.fenced.increment(1);
        self.vacate(intake).await;
        if *epoch_in_doubt {
            context.event("fenced", at, node, serde_json::json!({ "cause": cause })).await;
        }
    }

    /// Gives the lease up. A flight of unknown outcome is settled first, if Redis answers in time:
    /// what it took is handed out after all, and leaves no gap (F17).
    pub(crate) async fn vacate(mut self, intake: &mut Intake) {
        let unresolved = self.in_flight.take_if(|sent| sent.is_unresolved);
        if let Some(InFlight { flight, number, batch, .. }) = unresolved
            && let FlightBatch::Requests(requests, space) = batch
        {
            match self.settle(&flight).await {
                Some(Settled::Executed(outcomes)) => {
                    // Whatever it leads to, the lease is given up.
                    let _ = self.complete_requests(intake, number, requests, space, outcomes);
                }
                settled => {
                    let partition = self.at.partition;
                    tracing::info!(partition, number, ?settled, "flight given up");
                    intake.wait_again(requests);
                }
            }
        }
        intake.wait_again(self.discard());
    }

    /// The outcome of a flight; `None` where Redis does not answer in time. An epoch often ends
    /// because Redis was away, so one call without an answer is no answer yet.
    async fn settle(&self, flight: &Flight) -> Option<Settled> {
        let (context, redis) = (Arc::clone(&self.context), self.redis.clone());
        let (flight, partition) = (flight.clone(), self.at.partition);
        let limit = context.settings.recovery_settle_max();
        let until = Instant::now() + limit;
        let call = async move {
            while !context.redis_is_gone(partition) {
                match redis.settle(&context.keys, &flight).await {
                    Ok(settled) => return Some(settled),
                    Err(CounterError::Unknown(_) | CounterError::NotExecuted(_)) => {}
                    Err(CounterError::Broken(_) | CounterError::Garbled(_)) => return None,
                }
                if Instant::now() + SETTLE_RETRY > until {
                    return None;
                }
                tokio::time::sleep(SETTLE_RETRY).await;
            }
            None
        };
        // Only the wait is bounded: the call continues, and at worst spends the flight's number.
        tokio::time::timeout(limit, tokio::spawn(call)).await.ok()?.ok()?
    }

    /// Empties the outbox because the process stops; whether it leaves nothing behind.
    pub(crate) async fn finish(mut self, intake: &mut Intake) -> bool {
        // Whatever the answer, the worker ends here: `trimmed` shows whether it is empty.
        let _ = self.trim(intake).await;
        let is_empty = self.in_flight.is_none() && self.trimmed >= intake.handed_out.flight();
        for pending in self.discard() {
            pending.answer(Err(unavailable(Unavailable::Stopping, NumberTaken::Maybe)));
        }
        is_empty
    }

    /// Gives back every request, in the order in which they came. What their flight may have taken
    /// is discarded: it was never handed out and never will be.
    fn discard(self) -> Vec<PendingRequest> {
        let mut requests = match self.in_flight {
            Some(InFlight { batch: FlightBatch::Requests(requests, _), .. }) => requests,
            _ => Vec::new(),
        };
        requests.extend(self.parked.into_values().flatten());
        requests
    }
}

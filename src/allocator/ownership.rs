//! When a worker's partition should change its owner: Redis has gone, is back, or an operator says
//! so; and giving up an epoch lease so that nothing that was taken is given up without need.

use std::time::Duration;

use tokio::time::Instant;

use super::Unavailable;
use super::epoch_lease::{EpochLease, FlightBatch, InFlight};
use super::redis_path::Course;
use super::worker::{PartitionWorker, Suspicion};
use crate::counter::{CounterError, Flight, Settled};
use crate::ledger::At;

/// Wait between two looks at what the other nodes see, while this one does not see Redis.
const CLUSTER_LOOK: Duration = Duration::from_millis(20);

impl PartitionWorker {
    /// Whether the partition should be on the database, by an operator's word or lent to it.
    pub(super) fn is_unwanted(&self) -> bool {
        self.row().is_some_and(|row| row.is_for_database())
    }

    /// Whether Redis should take a partition of the database (again): every live node has seen the
    /// same healthy data set for `redis.return_after`.
    pub(super) fn return_is_due(&self, at: At) -> bool {
        let after = self.context.settings.return_after;
        let is_fresh = self.return_tried.is_some_and(|tried| tried.elapsed() < after);
        if self.context.redis_of(self.partition).is_none() || is_fresh || self.is_unwanted() {
            return false;
        }
        match self.context.redis_health.healthy_for(at.partition) {
            Some((incarnation, period)) if period >= after => {
                self.context.cluster_health.agree_on(at.partition, &incarnation, after)
            }
            _ => false,
        }
    }

    /// Redis did not answer a call of `asked_at`. Either the database takes over, or only this node
    /// is cut off: then it refuses what waits, for other nodes serve (F22).
    pub(super) async fn without_redis(
        &mut self,
        lease: &EpochLease,
        asked_at: Instant,
        error: &CounterError,
    ) -> Course {
        self.context.redis_health.fail(self.partition, asked_at);
        let after = self.context.settings.fallback_after;
        loop {
            if self.context.redis_is_gone(self.partition) {
                let cause = format!("redis is unavailable: {error}");
                return Course::Leave(Suspicion::of_epoch(lease.at, cause));
            }
            if self.context.is_cut_off(self.partition) {
                self.refuse(Unavailable::Redis, &error.to_string()).await;
                return Course::Stay;
            }
            let away = self.context.redis_health.away_for(self.partition);
            if away.is_none_or(|away| away < after) || self.epoch_is_over(lease.at) {
                self.trouble(Unavailable::Redis, error).await;
                return Course::Stay;
            }
            // A flight would find nobody for another `redis.command_timeout`; the others' word
            // comes with a heartbeat. They have as long again to speak, then this node is cut off.
            self.say_trouble(Unavailable::Redis, error);
            tokio::time::sleep(CLUSTER_LOOK).await;
        }
    }

    /// Gives up an epoch lease. A flight of unknown outcome is settled first, if Redis answers in
    /// time: what it took is handed out after all, and leaves no gap (F17).
    pub(super) async fn vacate(&mut self, mut lease: EpochLease) {
        match lease.in_flight.take() {
            Some(InFlight {
                flight,
                number,
                batch: FlightBatch::Requests(requests, space),
                is_unresolved: true,
            }) => match self.settle(&flight).await {
                Some(Settled::Executed(outcomes)) => {
                    // Whatever it leads to, the lease is given up.
                    let _ = self.complete_requests(&mut lease, number, requests, space, outcomes);
                }
                settled => {
                    tracing::info!(partition = self.partition, number, ?settled, "flight given up");
                    self.wait_again(requests);
                }
            },
            in_flight => lease.in_flight = in_flight,
        }
        self.wait_again(lease.discard());
    }

    /// What became of a flight; `None` where Redis does not answer in time.
    async fn settle(&self, flight: &Flight) -> Option<Settled> {
        if self.context.redis_is_gone(self.partition) {
            return None;
        }
        let (redis, keys) = (self.context.redis.clone()?, self.context.keys.clone());
        let flight = flight.clone();
        // Only the wait is bounded: the call goes on, and at worst spends the flight's number.
        let call = tokio::spawn(async move { redis.settle(&keys, &flight).await });
        let limit = self.context.settings.recovery_settle_max;
        tokio::time::timeout(limit, call).await.ok()?.ok()?.ok()
    }

    /// Notes that Redis was offered the partition just now.
    pub(super) fn note_return(&mut self) {
        self.return_tried = Some(Instant::now());
    }
}

//! The owner of the next epoch of a partition.
//!
//! Redis where it accepts scripts; the database where there is none, where an operator wants it,
//! where Redis has gone for all nodes, or where one recovery follows the other (F6, F22).

use super::recovery::RecoveryError;
use crate::engine::node::Context;
use crate::ledger::{Owner, Partition, PartitionState};
use crate::redis::CounterError;

/// Over which time recoveries are counted.
const MINUTE_US: i64 = 60_000_000;

/// Chooses the owner of the epoch after the one that the row shows.
pub(super) async fn next_owner(context: &Context, row: &Partition) -> Result<Owner, RecoveryError> {
    let partition = row.partition;
    let Some(redis) = context.redis_of(partition) else { return Ok(Owner::Database) };
    if row.is_for_database() {
        return Ok(Owner::Database);
    }
    let since_us = context.clock.now_us().saturating_sub(MINUTE_US);
    let recoveries = context.ledger.closings(partition, since_us).await?;
    if recoveries > context.settings.recovery_per_minute_max {
        tracing::warn!(partition, recoveries, "one recovery follows the other: to the database");
        return Ok(Owner::Database);
    }
    // Known already: another probe would only wait for its time-out.
    if context.redis_is_gone(partition) {
        return Ok(Owner::Database);
    }
    let trouble = match redis.probe(&context.keys, partition).await {
        Ok(probe) if probe.is_master => {
            let mine = context.deployment.deployment_id.to_string();
            return match probe.deployment {
                Some(deployment) if deployment != mine => {
                    Err(RecoveryError::Foreign { deployment })
                }
                _ => Ok(Owner::Redis { incarnation: probe.incarnation }),
            };
        }
        Ok(_) => CounterError::NotExecuted("the Redis server is not a master".into()),
        Err(error) => error,
    };
    if context.redis_is_gone(partition) {
        return Ok(Owner::Database);
    }
    Err(trouble.into())
}

/// Whether the partition is where it should be already.
pub(super) fn stays(row: &Partition, next: &Owner) -> bool {
    let of_database = (&row.owner, next) == (&Owner::Database, &Owner::Database);
    of_database && row.state == PartitionState::Open
}

//! What a command reads without being a node: ledger, Redis, the time.

use crate::clock::SharedClock;
use crate::engine::node::Context;
use crate::ledger::SharedLedger;
use crate::node::NodeId;
use crate::redis::{CounterError, Keys, Redis, Survey};

/// The stores of a deployment. A caller with only these takes no numbers and leads no recovery.
#[derive(Clone)]
pub struct Stores {
    /// The truth.
    pub ledger: SharedLedger,
    /// The fast path, where one is configured.
    pub redis: Option<Redis>,
    /// Builds Redis keys.
    pub keys: Keys,
    /// The clock of this process.
    pub clock: SharedClock,
}

impl Stores {
    /// The stores of a node.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        Stores {
            ledger: context.ledger.clone(),
            redis: context.redis.clone(),
            keys: context.keys.clone(),
            clock: context.clock.clone(),
        }
    }

    /// Reads a partition in Redis: the outboxes of these nodes, and of those that the owner record
    /// counts. Knows of every outbox that may hold something: a node that left or was adopted and
    /// sent flights under an earlier record has left nothing.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn survey(
        &self,
        redis: &Redis,
        partition: u32,
        nodes: &[NodeId],
    ) -> Result<(Survey, Vec<(NodeId, u64)>), CounterError> {
        let mut asked = nodes.to_vec();
        let mut survey = redis.survey(&self.keys, partition, &asked).await?;
        let unasked: Vec<NodeId> =
            survey.counted.iter().filter(|node| !nodes.contains(node)).copied().collect();
        if !unasked.is_empty() {
            asked.extend(unasked);
            survey = redis.survey(&self.keys, partition, &asked).await?;
        }
        let lengths = asked.into_iter().zip(survey.lengths.clone());
        let lengths = lengths.filter_map(|(node, length)| Some((node, length?)));
        let lengths = lengths.filter(|(_, length)| *length > 0).collect();
        Ok((survey, lengths))
    }

    /// Closes what is open.
    pub async fn close(&self) {
        if let Some(redis) = &self.redis {
            redis.stop().await;
        }
    }
}

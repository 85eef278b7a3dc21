//! Removes counters of epochs that were closed long ago, a page of the partition's keys at a time.
//!
//! A removed counter was cold, whatever it holds: the script checks each counter's epoch itself,
//! and nothing of the present epoch is ever removed, because a counter missing there is lost.

use super::call::{Call, Verb};
use super::flight::Completion;
use super::reply::{Parts, completion};
use super::salvage::HeldKey;
use super::{CounterError, Guard, Keys, Redis};

/// Most counters that one call looks at.
const COUNTERS_MAX: usize = 500;

/// Outcome of a sweep of some counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptCounters {
    /// Those that were removed.
    pub removed: u64,
    /// Those of the present epoch.
    pub present: u64,
}

impl Redis {
    /// Removes the counters among `held` that bear `upto` or an earlier epoch; `None` if the
    /// ownership is not the one named.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat.
    pub async fn sweep(
        &self,
        keys: &Keys,
        guard: &Guard,
        held: &[HeldKey],
        upto: u64,
    ) -> Result<Option<SweptCounters>, CounterError> {
        let Guard { partition, epoch, incarnation, node, .. } = guard;
        let name = |key: &HeldKey| match key {
            HeldKey::Counter(name) => Some(keys.counter(*partition, name)),
            HeldKey::Bucket(_) | HeldKey::Outbox(_) => None,
        };
        let names: Vec<String> = held.iter().filter_map(name).collect();
        let mut sum = SweptCounters::default();
        for part in names.chunks(COUNTERS_MAX) {
            let echo = format!("sweep {partition} {node} {epoch} {upto} {}", part[0]);
            let names = std::iter::once(keys.owner(*partition)).chain(part.iter().cloned());
            let args =
                vec![epoch.to_string(), incarnation.clone(), node.to_string(), upto.to_string()];
            let call = Call::new(Verb::Sweep, echo, names.collect(), args);
            let read = |parts: &mut Parts| Ok((parts.number::<u64>()?, parts.number::<u64>()?));
            let swept = self.ask(&call, |call, value| completion(call, value, read)).await?;
            let Completion::Completed((removed, present)) = swept else { return Ok(None) };
            sum.removed += removed;
            sum.present += present;
        }
        Ok(Some(sum))
    }
}

//! The ledger's notes in addition to the numbers, and the search for them.

use std::fmt;
use std::str::FromStr;

use numerator_runtime::node::NodeId;

/// A note for operators and auditors.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at_us: i64,
    /// Its kind: one of [`EVENT_KINDS`].
    pub kind: String,
    /// Its partition.
    pub partition: Option<u32>,
    /// Its epoch.
    pub epoch: Option<u64>,
    /// The node that noted it.
    pub node_id: Option<NodeId>,
    /// The rest, a JSON object.
    pub detail: serde_json::Value,
}

/// Every kind of event that is written.
pub const EVENT_KINDS: [&str; 36] = [
    "acknowledged",
    "adoption",
    "ambiguity-accepted",
    "archive-deleted",
    "archived",
    "change-approved",
    "change-rejected",
    "change-requested",
    "collision",
    "conflict",
    "drained",
    "fallback",
    "fallback-wanted",
    "fenced",
    "import",
    "journaled-again",
    "ledger-agreed",
    "ledger-restored",
    "ledger-went-back",
    "lock-timeout",
    "migrated",
    "opening",
    "partition-lent",
    "partition-taken-back",
    "reconciled",
    "recovery",
    "redis-hazard",
    "return",
    "roles-granted",
    "series-changed",
    "series-removed",
    "token-created",
    "token-revoked",
    "token-rotated",
    "version-conflict",
    "without-key",
];

/// Which events to list; all given fields must match.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Its kind.
    pub kind: Option<String>,
    /// Code of the series that it names.
    pub series: Option<String>,
    /// Noted at or after.
    pub from_us: Option<i64>,
    /// Noted before.
    pub until_us: Option<i64>,
    /// Behind this one in the list, that is before it.
    pub after: Option<EventPlace>,
    /// At most so many (default 100, at most 10,000).
    pub limit: u32,
}

/// The place of an event in the order of their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventPlace {
    /// When it was noted.
    pub at_us: i64,
    /// Its row: distinguishes those of the same time.
    pub event_id: i64,
}

/// As callers get it, to be sent back unchanged.
impl fmt::Display for EventPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at_us, self.event_id)
    }
}

impl FromStr for EventPlace {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (at_us, event_id) = text.split_once('.')?;
            Some(EventPlace { at_us: at_us.parse().ok()?, event_id: event_id.parse().ok()? })
        };
        read().ok_or("must be the `position` of an event, as it was given")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_text_and_nothing_else_is_one() {
        let place = EventPlace { at_us: 1_700_000_000_000_000, event_id: 42 };
        assert_eq!(place.to_string().parse(), Ok(place));
        for text in ["", "1", "1.", ".1", "1.2.3", "1.x", "1.99999999999999999999"] {
            assert!(text.parse::<EventPlace>().is_err(), "{text}");
        }
    }
}

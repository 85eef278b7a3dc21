//! Builds every Redis key. All keys of a partition share the hash tag `{<partition>}`.
//!
//! No other code of the service writes a key by hand; the tag keeps a script's keys in one slot.

use numerator_runtime::node::NodeId;

/// The key builder of one deployment.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The prefix, `nbr` by default; no braces.
    prefix: String,
}

impl Keys {
    /// A builder for a prefix that the settings have checked.
    #[must_use]
    pub fn new(prefix: &str) -> Self {
        Keys { prefix: prefix.into() }
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The prefix of every key of a partition.
    #[must_use]
    pub fn of_partition(&self, partition: u32) -> String {
        format!("{}:{{{partition}}}:", self.prefix)
    }

    /// The pattern by which Redis finds a partition's keys. Characters of the prefix that have a
    /// meaning in patterns are escaped.
    #[must_use]
    pub fn pattern(&self, partition: u32) -> String {
        let mut pattern = String::new();
        for c in self.of_partition(partition).chars() {
            if "*?[]\\^".contains(c) {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern + "*"
    }

    /// Hash: who owns the partition, and each node's guard fields.
    #[must_use]
    pub fn owner(&self, partition: u32) -> String {
        format!("{}:{{{partition}}}:owner", self.prefix)
    }

    /// Hash: a counter, by its name within the partition.
    #[must_use]
    pub fn counter(&self, partition: u32, name: &str) -> String {
        format!("{}:{{{partition}}}:c:{name}", self.prefix)
    }

    /// Stream: what a node took or replayed and has not journaled yet.
    #[must_use]
    pub fn outbox(&self, partition: u32, node: NodeId) -> String {
        format!("{}:{{{partition}}}:outbox:{node}", self.prefix)
    }

    /// List: names of the partition's idempotency records in the order of their writing (F21).
    #[must_use]
    pub fn records(&self, partition: u32) -> String {
        format!("{}:{{{partition}}}:records", self.prefix)
    }

    /// Hash: the idempotency records of one bucket, by their names.
    #[must_use]
    pub fn bucket(&self, partition: u32, bucket: u32) -> String {
        format!("{}:{{{partition}}}:records:{bucket}", self.prefix)
    }

    /// String: the schedule of a limit; expires automatically.
    #[must_use]
    pub fn limit(&self, partition: u32, name: &str) -> String {
        format!("{}:{{{partition}}}:limit:{name}", self.prefix)
    }

    /// String: what a probe writes; expires automatically.
    #[must_use]
    pub fn probe(&self, partition: u32) -> String {
        format!("{}:{{{partition}}}:probe", self.prefix)
    }
}

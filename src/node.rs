//! Identity of a running process.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A node: 128 random bits drawn when the process joins; never configured, never reused (F10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub Uuid);

impl NodeId {
    /// Draws a new identity.
    #[must_use]
    pub fn random() -> Self {
        NodeId(Uuid::new_v4())
    }

    /// Reads an identity as it is displayed.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(NodeId)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_simple().fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The machine's name: for operators only, never an identity.
#[must_use]
pub fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "localhost".to_owned(), |name| name.trim().to_owned())
}

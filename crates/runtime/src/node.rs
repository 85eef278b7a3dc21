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
        NodeId(system_random())
    }

    /// Reads an identity in its displayed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::parse_str(text).ok().map(NodeId)
    }
}

/// A random id from the system's generator. A generator inside the process would yield the same ids
/// in two copies of a virtual machine that were resumed from one memory snapshot.
///
/// # Panics
/// Where the system has no random bytes.
#[must_use]
pub fn system_random() -> Uuid {
    uuid::Builder::from_random_bytes(random_bytes()).into_uuid()
}

/// Random bytes, from the system's generator too.
///
/// # Panics
/// Where the system has no random bytes.
#[must_use]
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
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

//! What travels between nodes and servers: flights, replies, `open`. Decides nothing.

use crate::state::{
    COUNTERS, Epoch, Incarnation, Job, NodeId, PendingRequest, Record, ServerId, Value,
};

/// What a flight does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// Take numbers for requests.
    Issue(Vec<PendingRequest>),
    /// Seed or raise the counter.
    Job(Job),
}

/// A flight's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Its sender.
    pub node: NodeId,
    /// Its number.
    pub flight: u8,
    /// The node's last confirmed flight of this epoch.
    pub confirmed: u8,
    /// The highest value of each counter that the node has seen in this epoch.
    pub seen: [Value; COUNTERS],
    /// The epoch that it is sent in.
    pub epoch: Epoch,
    /// The incarnation that owns that epoch.
    pub incarnation: Incarnation,
    /// What it does.
    pub body: Body,
}

/// Outcome of one request of a flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It has a number.
    Taken(Record),
    /// An earlier allocation answers.
    Replayed(Record),
    /// Refused, with the number that its key has.
    Numbered(Record),
    /// Only the journal can tell whether the key is new.
    Ask,
    /// The counter is not here in this epoch.
    Cold,
    /// The counter is at this ceiling.
    Ceiling(Value),
    /// The counter was written from outside.
    Regressed,
    /// Executed before, and nothing was taken.
    Nothing,
}

/// A script's reply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Executed, now or before.
    Issued(Vec<Outcome>),
    /// Executed, now or before.
    Done,
    /// Wrong epoch, wrong incarnation, no owner record, or a forgotten flight.
    Fenced,
    /// The node is barred.
    Barred,
    /// A later flight was executed before.
    Late,
    /// The same number with other bytes.
    Mismatch,
    /// The outbox does not hold what it must.
    Miscounted,
    /// An error of a write.
    Error,
    /// `settle`: not executed, and never will be.
    NotExecuted,
}

/// An `open` call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opening {
    /// The epoch to open.
    pub epoch: Epoch,
    /// On this server.
    pub server: ServerId,
    /// That showed this incarnation.
    pub incarnation: Incarnation,
}

impl Outcome {
    /// The number that it carries.
    #[must_use]
    pub fn record(&self) -> Option<Record> {
        match self {
            Self::Taken(record) | Self::Replayed(record) | Self::Numbered(record) => Some(*record),
            _ => None,
        }
    }
}

impl Reply {
    /// Whether a number is handed out when it completes.
    #[must_use]
    pub fn carries_numbers(&self) -> bool {
        let carries = |o: &Outcome| o.record().is_some();
        matches!(self, Self::Issued(outcomes) if outcomes.iter().any(carries))
    }
}

impl Message {
    /// What distinguishes other bytes under the same number.
    #[must_use]
    pub fn digest(&self) -> u8 {
        match &self.body {
            Body::Issue(requests) => requests.iter().fold(0, |sum, t| sum | 1 << t.key),
            Body::Job(Job::Seed { value, .. }) => 0x80 | value,
            Body::Job(Job::Raise { ceiling }) => 0xC0 | ceiling,
        }
    }
}

//! A ledger that goes back, as a model of its own: nodes take from it, commits vanish, nodes stop,
//! tell again what they remember, and go on. Redis and epochs stand in the other model; joined
//! with it, no search would end.
//!
//! Pure. One server lives at a time, its old self is dead. Two counters, values as bits of a byte;
//! a request takes from one counter and may be sent to several nodes.

/// Counters.
pub(crate) const COUNTERS: usize = 2;
/// Identities of nodes; the last one joins late.
pub(crate) const NODES: usize = 3;

/// No value is handed out for two requests.
pub(crate) const UNIQUE: &str = "no value is handed out twice";
/// Once a ledger is agreed on, what a living node of it remembers stands in it.
pub(crate) const KEPT: &str = "what a living node remembers is in the ledger";
/// Numbers go on without a hand.
pub(crate) const BY_ITSELF: &str = "a number after an inquest that ended by itself";
/// Numbers go on after the operator released the ledger.
pub(crate) const BY_HAND: &str = "a number after a release";
/// A number is found whose answer was lost, or that another node took.
pub(crate) const FOUND: &str = "a number found for a request that came again";

/// The rules of a ledger that goes back; the ids are those of the protocol's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct Rules {
    /// A transaction compares the life that the ledger was agreed on with the server's.
    pub life: bool,
    /// A dump put back into the same server is another life.
    pub born: bool,
    /// A transaction compares the inquest that its node knows with the ledger's.
    pub nonce: bool,
    /// A node gives up answers of the older life before it reports.
    pub drop: bool,
    /// A report tells again what the node remembers.
    pub tell: bool,
    /// What was found for a request sent again is remembered like what was taken.
    pub found: bool,
    /// A ledger is agreed on by itself only when everybody has reported.
    pub everybody: bool,
    /// Whom a reporter has seen is waited for, whether the ledger knows it or not.
    pub roster: bool,
    /// A new node takes once another living one has seen it.
    pub seen: bool,
    /// A release lifts the counters by the margin.
    pub margin: bool,
}

impl Rules {
    /// The protocol as it is.
    pub(crate) const ALL: Self = Self {
        life: true,
        born: true,
        nonce: true,
        drop: true,
        tell: true,
        found: true,
        everybody: true,
        roster: true,
        seen: true,
        margin: true,
    };
}

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lineage {
    /// The rules that are kept.
    pub rules: Rules,
    /// Requests.
    pub requests: u8,
    /// How often a request is sent to one more node.
    pub retries: u8,
    /// How often the ledger loses its last commits.
    pub losses: u8,
    /// The most commits that one loss takes.
    pub depth: u8,
    /// Whether a loss may come by a dump, into the same server.
    pub dumps: bool,
    /// Crashes of nodes.
    pub crashes: u8,
    /// Answers of the ledger that are lost.
    pub lost_answers: u8,
    /// Whether the last node joins late; else there is none.
    pub late: bool,
    /// Whether an operator may release a ledger that nobody can agree on.
    pub release: bool,
}

/// A journaled number: value, counter, request.
pub(crate) type Row = (u8, u8, u8);

/// What is committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// The life that it was agreed on.
    pub life: u8,
    /// The last inquest.
    pub nonce: u8,
    /// Whether numbers are taken.
    pub agreed: bool,
    /// Whether the last inquest was ended by the operator.
    pub released: bool,
    /// The highest value taken, by counter.
    pub taken: [u8; COUNTERS],
    /// Numbers, in order.
    pub journal: Vec<Row>,
    /// Nodes that are registered.
    pub nodes: [bool; NODES],
    /// Nodes that are waited for by this inquest.
    pub roster: [bool; NODES],
    /// Nodes that have reported to this inquest.
    pub reported: [bool; NODES],
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// False once it crashed.
    pub alive: bool,
    /// It takes part.
    pub joined: bool,
    /// Another living node knows of it, or it needs nobody.
    pub sighted: bool,
    /// It has met a ledger that went back, and hands out nothing.
    pub stopped: bool,
    /// The inquest that it knows.
    pub nonce: u8,
    /// Nodes that it has seen.
    pub seen: [bool; NODES],
    /// What it handed out, in order.
    pub memory: Vec<Row>,
    /// Requests that wait.
    pub waiting: Vec<u8>,
    /// An answer of the ledger on its way; whether it was found, not taken.
    pub answer: Option<(Row, bool)>,
}

/// One moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What the server holds.
    pub ledger: Ledger,
    /// The life of the server that runs.
    pub life: u8,
    /// What it held before its last commits, the newest last.
    pub past: Vec<Ledger>,
    /// The processes.
    pub nodes: Vec<Node>,
    /// The last nonce drawn.
    pub nonces: u8,
    /// Numbers that left a node: counter, value, request, the inquest; in order.
    pub handed: Vec<(u8, u8, u8)>,
    /// A number was taken after an inquest that ended by itself, and by hand, and one was found.
    pub went_on: [bool; 3],
    /// Sendings once more that are left.
    pub retries: u8,
    /// Losses that are left.
    pub losses: u8,
    /// Crashes that are left.
    pub crashes: u8,
    /// Answers that may still be lost.
    pub lost_answers: u8,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request is sent to one more node.
    Send(usize, u8),
    /// A transaction takes a number, or finds the one that the request has.
    Take(usize),
    /// A heartbeat meets a ledger that went back.
    Stop(usize),
    /// Its answer arrives: the number is handed out.
    Answer(usize),
    /// Its answer is lost: the node asks again.
    LoseAnswer(usize),
    /// The late node registers.
    Join(usize),
    /// The second sees the first.
    Sight(usize, usize),
    /// The last commits are gone: a standby that lagged is promoted.
    Promote(u8),
    /// The last commits are gone: a dump was put back into the same server.
    PutBack(u8),
    /// A process dies.
    Crash(usize),
    /// A node begins an inquest.
    Begin(usize),
    /// A node reports to it.
    Report(usize),
    /// Everybody has reported.
    Agree,
    /// The operator releases the ledger.
    Release,
    /// A node that reported goes on.
    GoOn(usize),
}

impl Ledger {
    pub(crate) fn journal(&mut self, row: Row) {
        let taken = &mut self.taken[usize::from(row.1)];
        *taken = (*taken).max(row.0);
        if let Err(place) = self.journal.binary_search(&row) {
            self.journal.insert(place, row);
        }
    }
}

impl Node {
    pub(crate) fn remember(&mut self, row: Row) {
        if let Err(place) = self.memory.binary_search(&row) {
            self.memory.insert(place, row);
        }
    }
}

//! A ledger that goes back, as a model of its own: nodes take from it, commits vanish, nodes stop,
//! report again what they remember, and continue. Redis and epochs are in the other model; joined
//! with it, no search would end.
//!
//! Pure. A server that is replaced is dead, or continues next to its successor. Two counters; a
//! request takes from one of them and may be sent to several nodes. Of Redis there is a value for
//! each counter and an outbox for each node; it loses nothing.

/// Counters.
pub(crate) const COUNTERS: usize = 2;
/// Identities of nodes; the last one joins late.
pub(crate) const NODES: usize = 3;

/// Inquests that are distinguished, and one more.
pub(crate) const NONCES: usize = 8;

/// No value is handed out for two requests.
pub(crate) const UNIQUE: &str = "no value is handed out twice";
/// Once a ledger is agreed on, it contains what a living node of it remembers.
pub(crate) const KEPT: &str = "what a living node remembers is in the ledger";
/// Numbers continue without manual action.
pub(crate) const BY_ITSELF: &str = "a number after an inquest that ended automatically";
/// Numbers continue after the operator released the ledger.
pub(crate) const BY_HAND: &str = "a number after a release";
/// A number is found whose answer was lost, or that another node took.
pub(crate) const FOUND: &str = "a number found for a request that came again";

/// The rules of a ledger that goes back; the ids are those of the protocol's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct Rules {
    /// I1: a transaction compares the life that the ledger was agreed on with the server's.
    pub life: bool,
    /// I2: a dump restored into the same server is another life.
    pub born: bool,
    /// I3: a transaction compares the inquest that its node knows with the ledger's.
    pub nonce: bool,
    /// S1: a node gives up answers of the older life before it reports.
    pub drop: bool,
    /// S2: a node that knows a newer inquest than a ledger that is agreed on in the life of its own
    /// server was led back to an old one: it begins nothing there.
    pub led: bool,
    /// S3: a report repeats what the node remembers.
    pub tell: bool,
    /// S4: what was found for a request sent again is remembered like what was taken.
    pub found: bool,
    /// S4: what was adopted is remembered like what was taken.
    pub adopted: bool,
    /// S4: what was reported stays remembered.
    pub told: bool,
    /// S5: a node that has forgotten what the loss may have taken is not complete.
    pub complete: bool,
    /// S5: it remembers since the confirmation of the beat before the last one that is shown;
    /// otherwise since the confirmation of the last one.
    pub before: bool,
    /// S5: for a node that is not registered, everything that its process ever forgot counts;
    /// otherwise what it forgot under its last identity.
    pub ever: bool,
    /// W3: a ledger is agreed on automatically only when every node has reported.
    pub everybody: bool,
    /// W1: a node that a reporter has seen is waited for, whether the ledger knows it or not.
    pub roster: bool,
    /// W2: a new node takes once another living one has seen it.
    pub seen: bool,
    /// W4: a node whose outbox was adopted is accounted for if what it trimmed shows in the ledger.
    pub trimmed: bool,
    /// G2: a release lifts the counters by the margin.
    pub margin: bool,
    /// F35: a node that slept through hold and release reports before it continues.
    pub late: bool,
    /// F36: a later inquest is a node's own only if it came after all that was confirmed to it.
    pub descent: bool,
    /// F37: a node whose row is missing was lost; else a clock that is ahead counts it as swept.
    pub absence: bool,
}

impl Rules {
    /// The protocol as it is.
    pub(crate) const ALL: Self = Self {
        life: true,
        born: true,
        nonce: true,
        drop: true,
        led: true,
        tell: true,
        found: true,
        adopted: true,
        told: true,
        complete: true,
        before: true,
        ever: true,
        everybody: true,
        roster: true,
        seen: true,
        trimmed: true,
        margin: true,
        late: true,
        descent: true,
        absence: true,
    };
}

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lineage {
    /// The rules that are kept.
    pub rules: Rules,
    /// Counters that are used.
    pub counters: u8,
    /// Requests; request `k` takes from counter `k` modulo the counters.
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
    /// Whether an operator may release a ledger on which no agreement is possible.
    pub release: bool,
    /// The highest heartbeat of a node; it begins with the first.
    pub beats: u8,
    /// Whether nodes forget what was committed.
    pub forgets: bool,
    /// Whether a node that continues takes a new identity.
    pub anew: bool,
    /// Whether the server that is replaced continues next to its successor.
    pub beside: bool,
    /// Whether Redis owns the numbers; else they are taken from the ledger.
    pub redis: bool,
    /// Copies of the ledger that are released elsewhere, and may take its place.
    pub copies: u8,
    /// Whether a loss restores files under the same server, which then has the same life, and a
    /// sweep may use a clock that is ahead.
    pub files: bool,
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
    /// Nodes that are registered: identity and last heartbeat.
    pub beats: [Option<(u8, u8)>; NODES],
    /// Commits of each node's numbers from Redis.
    pub batches: [u8; NODES],
    /// Nodes that are waited for by this inquest.
    pub roster: [bool; NODES],
    /// Nodes that have reported to this inquest.
    pub reported: [bool; NODES],
    /// Nodes that others have accounted for by adopting their outboxes.
    pub accounted: [bool; NODES],
    /// A report was not complete.
    pub incomplete: bool,
    /// When each inquest of this ledger's line was followed by one that a node began that knew it,
    /// and one more; 0: it was not, or is of another line.
    pub replaced: [u8; NONCES],
    /// By a clock that was ahead, every row that is missing was swept.
    pub ahead: bool,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    /// False once it crashed.
    pub alive: bool,
    /// It is led to the other server.
    pub led: bool,
    /// It takes part.
    pub joined: bool,
    /// Another living node knows of it, or it needs none.
    pub sighted: bool,
    /// It has met a ledger that went back, and hands out nothing.
    pub stopped: bool,
    /// The inquest that it knows.
    pub nonce: u8,
    /// Nodes that it has seen.
    pub seen: [bool; NODES],
    /// What it handed out, in order; each with the heartbeats that were confirmed by then.
    pub memory: Vec<(Row, u8)>,
    /// Its identity.
    pub identity: u8,
    /// Heartbeats that were confirmed.
    pub beats: u8,
    /// One is committed, and its confirmation is on its way.
    pub beating: bool,
    /// What it remembered with fewer heartbeats than these is forgotten.
    pub since: u8,
    /// Its process has forgotten something.
    pub forgot: bool,
    /// Nodes whose outboxes it adopted.
    pub adopted: [bool; NODES],
    /// Taken from Redis, not committed.
    pub queue: Vec<Row>,
    /// Requests that wait.
    pub waiting: Vec<u8>,
    /// An answer of the ledger on its way; whether it was found, not taken.
    pub answer: Option<(Row, bool)>,
    /// When something was last confirmed to it.
    pub confirmed: u8,
    /// The inquest after which it registered.
    pub since_nonce: u8,
}

/// One moment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What the server holds.
    pub ledger: Ledger,
    /// The life of the server that runs.
    pub life: u8,
    /// The other server, if it continues next to this one: what it holds, and its life.
    pub other: Option<(Ledger, u8)>,
    /// The last life of a server.
    pub lives: u8,
    /// What it held before its last commits, the newest last.
    pub past: Vec<Ledger>,
    /// The processes.
    pub nodes: Vec<Node>,
    /// The inquest that Redis was opened after, and the highest value taken, by counter.
    pub redis: (u8, [u8; COUNTERS]),
    /// What Redis holds of each node's numbers that are not committed.
    pub outboxes: [Vec<Row>; NODES],
    /// The commits of each node that its outbox was trimmed after; Redis keeps them.
    pub trims: [u8; NODES],
    /// The last nonce drawn.
    pub nonces: u8,
    /// Numbers that left a node: counter, value, request, the inquest; in order.
    pub handed: Vec<(u8, u8, u8)>,
    /// A number was taken after an inquest that ended automatically, and manually; one was found.
    pub went_on: [bool; 3],
    /// Repeated sendings that are left.
    pub retries: u8,
    /// Losses that are left.
    pub losses: u8,
    /// Crashes that are left.
    pub crashes: u8,
    /// Answers that may still be lost.
    pub lost_answers: u8,
    /// Copies that may still be made.
    pub copies: u8,
    /// A copy that was released elsewhere.
    pub copy: Option<Ledger>,
    /// Commits of numbers so far, where copies are made.
    pub time: u8,
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
    /// A heartbeat is committed.
    Beat(usize),
    /// Its confirmation arrives.
    Confirm(usize),
    /// The oldest commit is forgotten.
    Forget(usize),
    /// A number is taken from Redis and handed out.
    SendFlight(usize),
    /// It is committed, and leaves the outbox.
    Journal(usize),
    /// The first adopts the second, which is dead.
    Adopt(usize, usize),
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
    /// The last commits are gone: a dump was restored into the same server.
    PutBack(u8),
    /// The last commits are gone: earlier files were restored under the same server.
    PutFiles(u8),
    /// A node whose clock is ahead sweeps.
    Sweep,
    /// A process dies.
    Crash(usize),
    /// A node begins an inquest.
    Begin(usize),
    /// A node reports to it.
    Report(usize),
    /// Every node has reported: a node agrees on the ledger.
    Agree(usize),
    /// A node is led to the other server.
    Lead(usize),
    /// The operator releases the ledger.
    Release,
    /// A node that reported continues.
    GoOn(usize),
    /// The ledger is copied, and the copy released elsewhere without a margin.
    Copy,
    /// That copy takes the ledger's place.
    PutCopy,
    /// A node holds a branch, for the operator.
    Hold(usize),
}

impl Ledger {
    /// Notes that inquests are followed by another one at this time.
    pub(crate) fn replace<const MANY: usize>(&mut self, nonces: [u8; MANY], time: u8) {
        for nonce in nonces {
            let at = &mut self.replaced[usize::from(nonce)];
            *at = (*at).max(time + 1);
        }
    }

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
        self.memory.retain(|kept| kept.0 != row);
        self.memory.push((row, self.beats));
        self.memory.sort_unstable();
    }
}

impl Event {
    /// Its node, at the server that it is led to.
    pub(crate) fn node(&self) -> Option<usize> {
        match *self {
            Self::Take(node)
            | Self::Stop(node)
            | Self::Beat(node)
            | Self::Confirm(node)
            | Self::Forget(node)
            | Self::SendFlight(node)
            | Self::Journal(node)
            | Self::Adopt(node, _)
            | Self::Answer(node)
            | Self::LoseAnswer(node)
            | Self::Join(node)
            | Self::Begin(node)
            | Self::Report(node)
            | Self::Agree(node)
            | Self::GoOn(node)
            | Self::Hold(node) => Some(node),
            // Neither these nor the operator depend on a node's server.
            Self::Send(..)
            | Self::Sight(..)
            | Self::Promote(_)
            | Self::PutBack(_)
            | Self::PutFiles(_)
            | Self::Sweep
            | Self::Crash(_)
            | Self::Lead(_)
            | Self::Copy
            | Self::PutCopy
            | Self::Release => None,
        }
    }
}

//! Everything that can differ between two moments: nodes, servers, the ledger, messages in flight,
//! and what is remembered only for judging it. Decides nothing.

use crate::ledger::Ledger;
use crate::message::{Message, Opening, Reply};
use crate::scenario::{Faults, Scenario};
use crate::server::Server;

/// A value, of whatever counter: each counter has a span of its own.
pub type Value = u8;
/// Place of a counter.
pub type CounterId = u8;
/// Counters.
pub const COUNTERS: usize = 2;
/// A counter's values lie above its place times this.
pub const SPAN: Value = 16;
/// An epoch of the one partition.
pub type Epoch = u8;
/// A request's idempotency key.
pub type Key = u8;
/// Place of a node's identity.
pub type NodeId = u8;
/// Place of a server.
pub type ServerId = u8;
/// What distinguishes one data set from another: `master_replid`.
pub type Incarnation = u8;
/// One request at one node: chosen before its first flight.
pub type Allocation = u8;

/// Which store takes the numbers of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// One incarnation of Redis.
    Redis(Incarnation),
    /// The ledger itself.
    Database,
}

/// A node's participation in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochLease {
    /// The epoch.
    pub epoch: Epoch,
    /// Its owner.
    pub owner: Owner,
}

/// What a request knows about earlier numbers of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// Nothing yet.
    No,
    /// Redis could not decide: the journal is to be asked.
    Due,
    /// The journal did not know the key, in this epoch.
    In(Epoch),
}

/// A request on its way through a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingRequest {
    /// Its idempotency key.
    pub key: Key,
    /// Its allocation.
    pub allocation: Allocation,
    /// Whether the journal was asked.
    pub asked: Asked,
    /// The counter that it takes from.
    pub counter: CounterId,
    /// Refused with the number that its key has, if it has one.
    pub differs: bool,
}

impl PendingRequest {
    /// The `nth` sending of a request.
    #[must_use]
    pub fn new(key: Key, nth: u8, counter: CounterId) -> Self {
        Self { key, allocation: key * 8 + nth, asked: Asked::No, counter, differs: false }
    }
}

/// A number with all that the journal needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// The number.
    pub value: Value,
    /// The key that it was taken for.
    pub key: Key,
    /// The allocation that took it.
    pub allocation: Allocation,
    /// The epoch in which it was taken or replayed.
    pub epoch: Epoch,
}

/// A script call that is not resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Flight {
    /// What is sent.
    pub message: Message,
    /// The reply on its way back.
    pub reply: Option<Reply>,
}

/// A seed or a raise that the ledger has recorded and that must be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// Seed the counter.
    Seed {
        /// Where it continues.
        value: Value,
        /// Its ceiling.
        ceiling: Value,
    },
    /// Raise its ceiling.
    Raise {
        /// To this.
        ceiling: Value,
    },
}

impl Job {
    /// A value or ceiling of the counter that it is for.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Self::Seed { value, .. } => *value,
            Self::Raise { ceiling } => *ceiling,
        }
    }
}

/// What a node waits for before it sends requests again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parked {
    /// Nothing.
    No,
    /// The counter is cold: the ledger is to seed it.
    Cold,
    /// Another node is seeding it.
    Grace,
    /// The counter is at this ceiling: the ledger is to raise it.
    Ceiling(Value),
    /// An error was found: the epoch is to end.
    Lost,
}

/// One running process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// False once it crashed.
    pub alive: bool,
    /// Others take it for dead.
    pub silent: bool,
    /// It was barred: it commits what it handed out and does nothing else.
    pub barred: bool,
    /// Its participation.
    pub lease: Option<EpochLease>,
    /// Requests that wait.
    pub requests: Vec<PendingRequest>,
    /// The number of its last flight. Each epoch has a range of its own.
    pub flights_sent: u8,
    /// Its last confirmed flight in this epoch.
    pub confirmed: u8,
    /// The highest value of each counter seen in this epoch.
    pub seen: [Value; COUNTERS],
    /// The flight in flight.
    pub flight: Option<Flight>,
    /// What it waits for, by counter.
    pub parked: [Parked; COUNTERS],
    /// What it sends before any request.
    pub job: Option<Job>,
    /// Handed out, not committed: flight and record, in order.
    pub queue: Vec<(u8, Record)>,
    /// Up to this flight, everything is committed.
    pub committed: u8,
    /// Only without F11: taken off the wire, neither answered nor queued.
    pub unanswered: Vec<(u8, Record)>,
    /// Only without F5: the epoch as it was read.
    pub view: Option<EpochLease>,
    /// Inside a transaction that takes a number: it has looked for an earlier one. Without F4 it
    /// has read its fence.
    pub taking: bool,
    /// Only without F4: a raise on its way, its epoch read before, for this ceiling.
    pub raising: Option<(Epoch, Value)>,
}

/// An outbox on its way into the journal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Adoption {
    /// The silent node.
    pub dead: NodeId,
    /// The epoch that it is accounted for in.
    pub epoch: Epoch,
    /// What its outbox held.
    pub records: Vec<Record>,
    /// Whether that is all that it must hold.
    pub whole: bool,
    /// Only without the check in the writing transaction: what is to be discarded, decided before.
    pub discarded: Vec<bool>,
}

/// What is remembered only for judging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct History {
    /// Every number that left a node, once for each key and epoch; in order.
    pub handed: Vec<(Value, Key, Epoch)>,
    /// Which data set took numbers in which epoch; in order.
    pub takers: Vec<(Epoch, ServerId, Incarnation)>,
    /// Where the counter started in each epoch that touched it.
    pub starts: Vec<(Epoch, Value)>,
    /// Two allocations met at one value of the journal.
    pub conflict: bool,
    /// A counter that another node was seeding was taken for lost.
    pub needless: bool,
    /// A gap was declared for a counter that no node could have taken from.
    pub false_gap: bool,
    /// Crashes and losses of data so far.
    pub failures: u8,
}

impl History {
    /// Remembers that a number left a node.
    pub fn hand_out(&mut self, record: Record) {
        insert(&mut self.handed, (record.value, record.key, record.epoch));
    }
}

/// The counter of a value, or of a ceiling.
#[must_use]
pub fn counter_of(value: Value) -> CounterId {
    value / SPAN
}

/// Inserts an item into a sorted list unless it is there already.
pub fn insert<T: Ord>(list: &mut Vec<T>, item: T) {
    if let Err(place) = list.binary_search(&item) {
        list.insert(place, item);
    }
}

/// One moment of the whole system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The processes.
    pub nodes: Vec<Node>,
    /// The Redis servers.
    pub servers: [Server; 2],
    /// The last incarnation that a server took.
    pub incarnations: Incarnation,
    /// The SQL database.
    pub ledger: Ledger,
    /// An old copy of it.
    pub backup: Option<Box<Ledger>>,
    /// Flights that may still be delivered although no node waits for them.
    pub in_flight: Vec<Message>,
    /// `open` calls that were sent.
    pub openings: Vec<Opening>,
    /// An outbox that was read.
    pub adoption: Option<Adoption>,
    /// How often each request was sent.
    pub sent: Vec<u8>,
    /// Repeated sendings that are left.
    pub retries: u8,
    /// Imports that are left.
    pub imports: u8,
    /// Faults that are left.
    pub faults: Faults,
    /// What has happened so far.
    pub history: History,
}

impl State {
    /// Epoch 1 is open on the first server, and each request waits at some node. Later arrivals
    /// need no event: a waiting request does nothing until it is sent.
    #[must_use]
    pub fn first(scenario: &Scenario) -> Vec<Self> {
        let mut states = vec![Self::idle(scenario)];
        for key in 0..scenario.requests {
            let sent = |state: Self| {
                // Nodes are interchangeable at first: one of several equal beginnings is enough.
                let equal = move |node: &NodeId| *node > key && *node < scenario.joined;
                let nodes = (0..scenario.nodes).filter(move |node| !equal(node));
                nodes.map(move |node| {
                    let mut state = state.clone();
                    let request = PendingRequest::new(key, 0, key % scenario.counters);
                    state.node(node).requests.push(request);
                    state
                })
            };
            states = states.into_iter().flat_map(sent).collect();
        }
        states
    }

    fn idle(scenario: &Scenario) -> Self {
        let ledger = Ledger::first(scenario);
        let servers = [Server::first(scenario), Server::second(scenario)];
        let starts = if scenario.warm { vec![(1, 0), (1, SPAN)] } else { Vec::new() };
        let mut state = Self {
            nodes: vec![Node::new(); scenario.nodes.into()],
            servers,
            incarnations: 2,
            ledger,
            backup: None,
            in_flight: Vec::new(),
            openings: Vec::new(),
            adoption: None,
            sent: vec![1; scenario.requests.into()],
            retries: scenario.retries,
            imports: scenario.imports,
            faults: scenario.faults,
            history: History { starts, ..History::default() },
        };
        for node in 0..scenario.joined {
            state.node(node).lease = Some(EpochLease { epoch: 1, owner: scenario.owner() });
            if !scenario.on_database {
                state.ledger.join(1, node);
            }
        }
        state
    }

    /// A node by its place.
    pub fn node(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(node)]
    }
}

impl Node {
    fn new() -> Self {
        Self {
            alive: true,
            silent: false,
            barred: false,
            lease: None,
            requests: Vec::new(),
            flights_sent: 0,
            confirmed: 0,
            seen: [0; COUNTERS],
            flight: None,
            parked: [Parked::No; COUNTERS],
            job: None,
            queue: Vec::new(),
            committed: 0,
            unanswered: Vec::new(),
            view: None,
            taking: false,
            raising: None,
        }
    }

    /// Whether its epoch is to end.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.parked.contains(&Parked::Lost)
    }

    /// Forgets what belongs to the epoch that it leaves.
    pub fn leave(&mut self) {
        self.lease = None;
        self.confirmed = 0;
        self.seen = [0; COUNTERS];
        self.flight = None;
        self.parked = [Parked::No; COUNTERS];
        self.job = None;
        self.taking = false;
        for request in &mut self.requests {
            request.asked = Asked::No;
        }
    }

    /// The last flight up to and including which everything is committed.
    #[must_use]
    pub fn trimmable(&self, in_order: bool) -> u8 {
        match self.queue.iter().map(|(flight, _)| *flight).min() {
            Some(flight) if in_order => self.committed.min(flight - 1),
            _ => self.committed,
        }
    }
}

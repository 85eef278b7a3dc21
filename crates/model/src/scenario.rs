//! The bounds of a search: how many of everything, which faults, which rules. Never changes while a
//! search runs.

use crate::rules::Rules;
use crate::state::Owner;

/// How often each thing that goes wrong may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A node dies, with its memory.
    pub crashes: u8,
    /// A living node is declared silent; it may wake at any time.
    pub silences: u8,
    /// A reply is lost and the flight sent again.
    pub lost_replies: u8,
    /// A flight goes astray: it is delivered late, and twice if it is sent again.
    pub repeats: u8,
    /// The other server becomes a replica: `master_replid` changes, nothing is lost.
    pub attaches: u8,
    /// The replica catches up with its master.
    pub copies: u8,
    /// The replica is promoted, with what it has.
    pub promotions: u8,
    /// A server writes its data set to its disk.
    pub saves: u8,
    /// A server restarts with its data.
    pub restarts_kept: u8,
    /// A server restarts with the data set of its disk.
    pub restarts_older: u8,
    /// A server loses all its keys and continues.
    pub flushes: u8,
    /// The counter's key is deleted.
    pub deleted_counters: u8,
    /// The counter is set one lower from outside.
    pub lowered_counters: u8,
    /// An idempotency record is deleted, or evicted.
    pub deleted_records: u8,
    /// An outbox is deleted.
    pub deleted_outboxes: u8,
    /// A write inside a script is refused.
    pub write_errors: u8,
    /// A request is given up by its node while its flight is in flight.
    pub time_outs: u8,
    /// The ledger is copied, and put back later.
    pub ledger_returns: u8,
}

/// What the second server is at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    /// It cannot be reached.
    Absent,
    /// A replica in step with the first.
    Replica,
    /// A master with nothing in it.
    Master,
}

/// The bounds of one search. Everything within them is visited.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The rules that are kept.
    pub rules: Rules,
    /// Identities of nodes; a node that has not joined is a process that starts late.
    pub nodes: u8,
    /// How many of them are participants of epoch 1 from the start.
    pub joined: u8,
    /// Whether the counter is seeded in Redis from the start.
    pub warm: bool,
    /// Whether the database owns epoch 1, its counter touched; Redis holds nothing.
    pub on_database: bool,
    /// The second server.
    pub second: Second,
    /// Requests, each with an idempotency key of its own.
    pub requests: u8,
    /// Counters; request `k` takes from counter `k` modulo this.
    pub counters: u8,
    /// Whether a repeated request takes from the other counter: its period has changed.
    pub crosses: bool,
    /// Whether a repeated request differs, and is refused with the number it has.
    pub differs: bool,
    /// Whether a transaction of the database path first looks for earlier numbers and takes later.
    pub splits: bool,
    /// Documents that are imported with a number of their own.
    pub imports: u8,
    /// How often in total a client sends a request again.
    pub retries: u8,
    /// The highest epoch; recoveries need no cause.
    pub epochs: u8,
    /// Flights of one node in one epoch.
    pub flights: u8,
    /// Whether a flight takes every waiting request; otherwise each is sent alone.
    pub coalesces: bool,
    /// Values that a seed or a raise makes room for.
    pub headroom: u8,
    /// Whether an epoch may be owned by the database.
    pub database: bool,
    /// Whether outboxes are trimmed.
    pub trims: bool,
    /// What may go wrong.
    pub faults: Faults,
}

impl Scenario {
    /// Which store owns epoch 1.
    #[must_use]
    pub fn owner(&self) -> Owner {
        if self.on_database { Owner::Database } else { Owner::Redis(1) }
    }

    /// Two nodes in an open epoch on one server, one request, one recovery, nothing goes wrong.
    pub const CALM: Self = Self {
        rules: Rules::ALL,
        nodes: 2,
        joined: 2,
        warm: true,
        on_database: false,
        second: Second::Absent,
        requests: 1,
        counters: 1,
        crosses: false,
        differs: false,
        splits: false,
        imports: 0,
        retries: 0,
        epochs: 2,
        flights: 4,
        coalesces: false,
        headroom: 2,
        database: false,
        trims: false,
        faults: Faults {
            crashes: 0,
            silences: 0,
            lost_replies: 0,
            repeats: 0,
            attaches: 0,
            copies: 0,
            promotions: 0,
            saves: 0,
            restarts_kept: 0,
            restarts_older: 0,
            flushes: 0,
            deleted_counters: 0,
            lowered_counters: 0,
            deleted_records: 0,
            deleted_outboxes: 0,
            write_errors: 0,
            time_outs: 0,
            ledger_returns: 0,
        },
    };
}

//! The kinds of faults, one row each: its name, what it works on, how long it lasts, what it needs,
//! and what follows from it.
//!
//! The order of the rows is part of what a seed means: a new kind goes to the end.

use std::ops::RangeInclusive;

use super::ledger::{Engine, Stores};

/// What a fault works on: two faults at once never work on the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Node,
    Redis,
    RedisLink,
    AllRedisLinks,
    LedgerLink,
    Ledger,
    All,
}

/// What the stores must include for a fault to have something to work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Redis,
    Postgres,
    File,
}

/// What may follow from a fault, and what is promised of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// The memory of a process is gone.
    EndsNode,
    /// A node may end, be silent or be unable to journal for so long (`recovery.barrier_max`) that
    /// its epoch closes without it.
    SilencesNode,
    /// Data that was in one store only is gone.
    LosesData,
    /// Redis loses something while all nodes live and reach the ledger: an exact closing is
    /// promised, without a gap.
    NoGap,
    /// The ledger goes back while its users live: they agree on it automatically.
    Agreed,
    /// The ledger goes back, and only an operator may decide that it is the one to use.
    Held,
}

use Mark::{Agreed, EndsNode, Held, LosesData, NoGap, SilencesNode};

/// All that is known of a kind.
struct Facts {
    name: &'static str,
    target: Target,
    hold_ms: RangeInclusive<u64>,
    needs: &'static [Need],
    marks: &'static [Mark],
}

/// Writes the kinds, the list of them, and what is known of each.
macro_rules! kinds {
    ($($kind:ident $name:literal $target:ident $hold:expr, [$($need:ident)*] $marks:tt)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Kind {
            $($kind),*
        }

        /// Every kind.
        pub(super) const KINDS: [Kind; [$($name),*].len()] = [$(Kind::$kind),*];

        impl Kind {
            fn facts(self) -> Facts {
                match self {
                    $(Kind::$kind => Facts {
                        name: $name,
                        target: Target::$target,
                        hold_ms: $hold,
                        needs: &[$(Need::$need),*],
                        marks: &$marks,
                    }),*
                }
            }
        }
    };
}

// Milliseconds; 0 alone: it is done immediately. A paused node is silent for longer than node.ttl,
// which is 1 s here.
kinds! {
    NodeKilled "node killed" Node 100..=2_000, [] [EndsNode, SilencesNode]
    NodePaused "node paused past node.ttl" Node 1_500..=2_500, [] [SilencesNode]
    NodeRestarted "node stopped and started" Node 0..=0, [] [EndsNode, SilencesNode]
    Flushed "FLUSHALL" Redis 0..=0, [Redis] [NoGap, LosesData]
    RedisRestarted "Redis restarts with data" Redis 0..=200, [Redis] [NoGap]
    RedisRestartedEmpty "Redis restarts empty" Redis 0..=200, [Redis] [NoGap, LosesData]
    RedisAway "Redis away for seconds" Redis 1_500..=3_500, [Redis] []
    RedisPaused "Redis paused" Redis 300..=2_000, [Redis] []
    RedisFull "Redis out of memory" Redis 300..=2_000, [Redis] []
    RedisEvicts "Redis evicts keys" Redis 50..=200, [Redis] [LosesData]
    FailOver "fail-over" Redis 0..=0, [Redis] [NoGap, LosesData]
    StaleFailOver "fail-over, replica behind" Redis 0..=0, [Redis] [NoGap, LosesData]
    ReplicaAttached "replica attached" Redis 300..=2_000, [Redis] [NoGap]
    CounterDeleted "counter deleted" Redis 0..=0, [Redis] [NoGap, LosesData]
    CounterLowered "counter set lower" Redis 0..=0, [Redis] [NoGap]
    OutboxDeleted "outbox deleted" Redis 0..=0, [Redis] [LosesData]
    RedisLinkCut "node-Redis cut" RedisLink 0..=0, [Redis] []
    RedisLinkDown "node-Redis down" RedisLink 300..=2_000, [Redis] []
    RedisLinkSlow "node-Redis slow" RedisLink 300..=2_000, [Redis] []
    RedisAnswersLost "node-Redis loses answers" RedisLink 300..=2_000, [Redis] []
    RedisUnreachable "Redis out of reach" AllRedisLinks 1_500..=3_500, [Redis] []
    LedgerLinkCut "node-ledger cut" LedgerLink 0..=0, [Postgres] [SilencesNode]
    LedgerLinkDown "node-ledger down" LedgerLink 300..=2_500, [Postgres] [SilencesNode]
    LedgerLinkSlow "node-ledger slow" LedgerLink 300..=2_500, [Postgres] [SilencesNode]
    LedgerAnswersLost "node-ledger loses answers" LedgerLink 300..=2_500, [Postgres] [SilencesNode]
    LedgerRestarted "PostgreSQL restarts" Ledger 0..=2_000, [Postgres] [SilencesNode]
    LedgerFailsOver "PostgreSQL fails over, standby behind" Ledger 0..=0, [Postgres]
        [SilencesNode, LosesData, Agreed]
    LedgerPutBack "PostgreSQL dump put back" Ledger 0..=0, [Postgres]
        [SilencesNode, LosesData, Agreed]
    EverythingKilled "everything killed" All 0..=500, [] [EndsNode, SilencesNode]
    EverythingKilledEmpty "everything killed, Redis empty" All 0..=500, [Redis]
        [EndsNode, SilencesNode, LosesData]
    FileLocked "SQLite file locked" Ledger 300..=2_500, [File] [SilencesNode]
    FileReplaced "SQLite file put back beside nodes" Ledger 0..=0, [File]
        [SilencesNode, LosesData, Held]
    FilePutBack "SQLite file put back" All 0..=500, [File]
        [EndsNode, SilencesNode, LosesData, Held]
    FilePutBackFlushed "SQLite file put back, FLUSHALL" All 0..=500, [File Redis]
        [EndsNode, SilencesNode, LosesData, Held]
    SleeperReleased "node asleep while PostgreSQL fails over and is released" All 0..=2_000,
        [Postgres] [SilencesNode, LosesData, Held]
    BranchPutBack "PostgreSQL copy that was released elsewhere put back" All 0..=0, [Postgres]
        [SilencesNode, LosesData, Held]
    FileBranch "SQLite file that was released elsewhere put back" Ledger 0..=0, [File]
        [SilencesNode, LosesData, Held]
    FileMoved "SQLite file alone moved after a clean stop" All 0..=500, [File] [SilencesNode]
    ClockAhead "node's clock a month ahead" Node 2_000..=4_000, [] [EndsNode, SilencesNode]
    RightsGone "right to write the journal gone" Ledger 1_500..=3_500, [Postgres] [SilencesNode]
    TablesAway "tables away" Ledger 1_500..=3_500, [Postgres] [SilencesNode]
    JournalLocked "journal locked" Ledger 1_500..=3_500, [Postgres] [SilencesNode]
    NodeWithoutRedis "one node alone without Redis" RedisLink 3_000..=6_000, [Redis] []
}

impl Kind {
    /// Its name for people.
    pub(super) fn name(self) -> &'static str {
        self.facts().name
    }

    /// What it works on.
    pub(super) fn target(self) -> Target {
        self.facts().target
    }

    /// How long it lasts, in milliseconds.
    pub(super) fn hold_ms(self) -> RangeInclusive<u64> {
        self.facts().hold_ms
    }

    /// Whether this follows from it, or is promised of it.
    pub(super) fn is(self, mark: Mark) -> bool {
        self.facts().marks.contains(&mark)
    }

    /// Whether there is something for it to work on.
    pub(super) fn is_of(self, stores: Stores) -> bool {
        let has = |need: &Need| match need {
            Need::Redis => stores.has_redis,
            Need::Postgres => stores.ledger == Engine::Postgres,
            Need::File => stores.ledger == Engine::Sqlite,
        };
        self.facts().needs.iter().all(has)
    }
}

/// The kinds that have something to work on.
pub(super) fn kinds_of(stores: Stores) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |kind| kind.is_of(stores))
}

//! Which faults come, in which order, with which parameters: all of it follows from the seed.
//!
//! Touches nothing: `faults` carries a plan out.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::ledger::{Engine, Stores};

/// Nodes of a drill.
pub(super) const NODES: usize = 3;

/// One step in so many injects two faults at once, once every kind has come alone.
const DOUBLE_IN: u32 = 4;

/// Writes the kinds and the list of them all at once.
macro_rules! kinds {
    ($($kind:ident)*) => {
        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(super) enum Kind {
            $($kind),*
        }

        use Kind::{$($kind),*};

        /// Every kind.
        const KINDS: [Kind; [$($kind),*].len()] = [$($kind),*];
    };
}

kinds! {
    NodeKilled
    NodePaused
    NodeRestarted
    Flushed
    RedisRestarted
    RedisRestartedEmpty
    RedisAway
    RedisPaused
    RedisFull
    RedisEvicts
    FailOver
    StaleFailOver
    ReplicaAttached
    CounterDeleted
    CounterLowered
    OutboxDeleted
    RedisLinkCut
    RedisLinkDown
    RedisLinkSlow
    RedisAnswersLost
    RedisUnreachable
    LedgerLinkCut
    LedgerLinkDown
    LedgerLinkSlow
    LedgerAnswersLost
    LedgerRestarted
    LedgerFailsOver
    LedgerPutBack
    EverythingKilled
    EverythingKilledEmpty
    FileLocked
    FileReplaced
    FilePutBack
    FilePutBackFlushed
}

/// What a fault works on: two faults at once never work on the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Node,
    Redis,
    RedisLink,
    AllRedisLinks,
    LedgerLink,
    Ledger,
    All,
}

impl Kind {
    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            NodeKilled => "node killed",
            NodePaused => "node paused past node.ttl",
            NodeRestarted => "node stopped and started",
            Flushed => "FLUSHALL",
            RedisRestarted => "Redis restarts with data",
            RedisRestartedEmpty => "Redis restarts empty",
            RedisAway => "Redis away for seconds",
            RedisPaused => "Redis paused",
            RedisFull => "Redis out of memory",
            RedisEvicts => "Redis evicts keys",
            FailOver => "fail-over",
            StaleFailOver => "fail-over, replica behind",
            ReplicaAttached => "replica attached",
            CounterDeleted => "counter deleted",
            CounterLowered => "counter set lower",
            OutboxDeleted => "outbox deleted",
            RedisLinkCut => "node-Redis cut",
            RedisLinkDown => "node-Redis down",
            RedisLinkSlow => "node-Redis slow",
            RedisAnswersLost => "node-Redis loses answers",
            RedisUnreachable => "Redis out of reach",
            LedgerLinkCut => "node-ledger cut",
            LedgerLinkDown => "node-ledger down",
            LedgerLinkSlow => "node-ledger slow",
            LedgerAnswersLost => "node-ledger loses answers",
            LedgerRestarted => "PostgreSQL restarts",
            LedgerFailsOver => "PostgreSQL fails over, standby behind",
            LedgerPutBack => "PostgreSQL dump put back",
            EverythingKilled => "everything killed",
            EverythingKilledEmpty => "everything killed, Redis empty",
            FileLocked => "SQLite file locked",
            FileReplaced => "SQLite file put back beside nodes",
            FilePutBack => "SQLite file put back",
            FilePutBackFlushed => "SQLite file put back, FLUSHALL",
        }
    }

    fn target(self) -> Target {
        match self {
            NodeKilled | NodePaused | NodeRestarted => Target::Node,
            Flushed | RedisRestarted | RedisRestartedEmpty | RedisAway | RedisPaused
            | RedisFull | RedisEvicts | FailOver | StaleFailOver | ReplicaAttached
            | CounterDeleted | CounterLowered | OutboxDeleted => Target::Redis,
            RedisLinkCut | RedisLinkDown | RedisLinkSlow | RedisAnswersLost => Target::RedisLink,
            RedisUnreachable => Target::AllRedisLinks,
            LedgerLinkCut | LedgerLinkDown | LedgerLinkSlow | LedgerAnswersLost => {
                Target::LedgerLink
            }
            LedgerRestarted | LedgerFailsOver | LedgerPutBack | FileLocked | FileReplaced => {
                Target::Ledger
            }
            EverythingKilled | EverythingKilledEmpty | FilePutBack | FilePutBackFlushed => {
                Target::All
            }
        }
    }

    /// Whether there is something for it to work on.
    fn is_of(self, stores: Stores) -> bool {
        let (is_of_ledger, is_of_redis) = match self.target() {
            Target::Node => (true, false),
            Target::Redis | Target::RedisLink | Target::AllRedisLinks => (true, true),
            Target::LedgerLink => (stores.ledger == Engine::Postgres, false),
            Target::Ledger | Target::All => match self {
                EverythingKilled => (true, false),
                EverythingKilledEmpty => (true, true),
                FileLocked | FileReplaced | FilePutBack => (stores.ledger == Engine::Sqlite, false),
                FilePutBackFlushed => (stores.ledger == Engine::Sqlite, true),
                _ => (stores.ledger == Engine::Postgres, false),
            },
        };
        is_of_ledger && (stores.has_redis || !is_of_redis)
    }

    /// Redis loses something while all nodes live and reach the ledger: an exact closing is
    /// promised, without a gap.
    pub(super) fn promises_no_gap(self) -> bool {
        matches!(
            self,
            Flushed
                | RedisRestarted
                | RedisRestartedEmpty
                | FailOver
                | StaleFailOver
                | ReplicaAttached
                | CounterDeleted
                | CounterLowered
        )
    }

    /// A node may end, or be silent for so long that its epoch closes without it.
    pub(super) fn may_silence_a_node(self) -> bool {
        match self.target() {
            Target::Node | Target::LedgerLink | Target::Ledger | Target::All => true,
            Target::Redis | Target::RedisLink | Target::AllRedisLinks => false,
        }
    }

    /// The memory of a process is gone.
    pub(super) fn ends_a_node(self) -> bool {
        matches!(
            self,
            NodeKilled
                | EverythingKilled
                | EverythingKilledEmpty
                | FilePutBack
                | FilePutBackFlushed
        )
    }

    /// The ledger goes back while its users live: they agree on it by themselves.
    pub(super) fn is_agreed_on(self) -> bool {
        matches!(self, LedgerFailsOver | LedgerPutBack)
    }

    /// The ledger goes back, and nobody but an operator may say that it is the one to use.
    pub(super) fn waits_for_an_operator(self) -> bool {
        matches!(self, FileReplaced | FilePutBack | FilePutBackFlushed)
    }

    /// Something that stood in one store alone is gone.
    pub(super) fn loses_data(self) -> bool {
        matches!(
            self,
            Flushed
                | LedgerFailsOver
                | LedgerPutBack
                | FileReplaced
                | FilePutBack
                | FilePutBackFlushed
                | RedisRestartedEmpty
                | RedisEvicts
                | FailOver
                | StaleFailOver
                | CounterDeleted
                | OutboxDeleted
                | EverythingKilledEmpty
        )
    }

    /// How long it lasts, in milliseconds; 0: it is done at once.
    fn hold_ms(self) -> std::ops::RangeInclusive<u64> {
        match self {
            Flushed | CounterDeleted | CounterLowered | OutboxDeleted | RedisLinkCut
            | LedgerLinkCut | FailOver | StaleFailOver | NodeRestarted | LedgerFailsOver
            | LedgerPutBack | FileReplaced => 0..=0,
            RedisRestarted | RedisRestartedEmpty => 0..=200,
            NodeKilled => 100..=2_000,
            // node.ttl is 1 s here.
            NodePaused => 1_500..=2_500,
            RedisAway | RedisUnreachable => 1_500..=3_500,
            RedisEvicts => 50..=200,
            RedisPaused | RedisFull | ReplicaAttached | RedisLinkDown | RedisLinkSlow
            | RedisAnswersLost => 300..=2_000,
            LedgerLinkDown | LedgerLinkSlow | LedgerAnswersLost | FileLocked => 300..=2_500,
            LedgerRestarted => 0..=2_000,
            EverythingKilled | EverythingKilledEmpty | FilePutBack | FilePutBackFlushed => 0..=500,
        }
    }
}

/// One fault with its parameters; a kind leaves those alone that it has no use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// What happens.
    pub(super) kind: Kind,
    /// To which node.
    pub(super) node: usize,
    /// Which of the keys that fit, modulo their number.
    pub(super) pick: usize,
    /// For how long.
    pub(super) hold: Duration,
    /// How late a slow link is.
    pub(super) delay: Duration,
}

impl Fault {
    fn draw(kind: Kind, rng: &mut Rng) -> Self {
        Fault {
            kind,
            node: rng.usize(..NODES),
            pick: rng.usize(..),
            hold: Duration::from_millis(rng.u64(kind.hold_ms())),
            delay: Duration::from_millis(rng.u64(20..=400)),
        }
    }

    fn may_come_with(&self, other: &Fault) -> bool {
        let (one, two) = (self.kind.target(), other.kind.target());
        let works_on = |target| one == target || two == target;
        if works_on(Target::All) || (works_on(Target::AllRedisLinks) && works_on(Target::RedisLink))
        {
            return false;
        }
        let is_of_a_node = matches!(one, Target::Node | Target::RedisLink | Target::LedgerLink);
        one != two || (is_of_a_node && self.node != other.node)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if matches!(self.kind.target(), Target::Node | Target::RedisLink | Target::LedgerLink) {
            write!(f, " (node {})", self.node)?;
        }
        if !self.hold.is_zero() {
            write!(f, " for {} ms", self.hold.as_millis())?;
        }
        Ok(())
    }
}

/// Faults that overlap, and when they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Undisturbed load before it.
    pub(super) calm: Duration,
    /// One fault, or two.
    pub(super) faults: Vec<Fault>,
    /// Between the first and the second.
    pub(super) offset: Duration,
}

impl Step {
    /// Whether every fault of the step is so.
    pub(super) fn all(&self, holds: impl Fn(Kind) -> bool) -> bool {
        self.faults.iter().all(|fault| holds(fault.kind))
    }

    /// Whether any fault of the step is so.
    pub(super) fn any(&self, holds: impl Fn(Kind) -> bool) -> bool {
        self.faults.iter().any(|fault| holds(fault.kind))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            write!(f, "{}{fault}", if i == 0 { "" } else { " + " })?;
        }
        Ok(())
    }
}

/// The kinds that have something to work on.
pub(super) fn kinds_of(stores: Stores) -> impl Iterator<Item = Kind> {
    KINDS.into_iter().filter(move |kind| kind.is_of(stores))
}

/// The endless sequence of steps that follows from a seed: every kind once in random order, then
/// again, some of them two at a time.
pub(super) struct Plan {
    rng: Rng,
    kinds: Vec<Kind>,
    deck: Vec<Kind>,
    decks: u32,
}

impl Plan {
    /// The plan of a seed, of those kinds alone whose name holds one of the words; of all kinds
    /// that these stores have without a word. None where no name does.
    pub(super) fn new(seed: u64, words: &[String], stores: Stores) -> Option<Self> {
        let is_meant = |kind: &Kind| {
            words.is_empty() || words.iter().any(|word| kind.name().contains(word.as_str()))
        };
        let kinds: Vec<Kind> = kinds_of(stores).filter(is_meant).collect();
        let rng = Rng::with_seed(seed);
        (!kinds.is_empty()).then_some(Plan { rng, kinds, deck: Vec::new(), decks: 0 })
    }

    fn draw(&mut self) -> Fault {
        if self.deck.is_empty() {
            self.deck.clone_from(&self.kinds);
            self.rng.shuffle(&mut self.deck);
            self.decks += 1;
        }
        let kind = self.deck.pop().expect("a deck was just dealt");
        Fault::draw(kind, &mut self.rng)
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let mut faults = vec![self.draw()];
        if self.decks > 1 && self.rng.u32(..DOUBLE_IN) == 0 {
            let second = self.draw();
            if second.may_come_with(&faults[0]) {
                faults.push(second);
            }
        }
        let calm = Duration::from_millis(self.rng.u64(100..=500));
        let offset = Duration::from_millis(self.rng.u64(0..=300));
        Some(Step { calm, faults, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Stores = Stores { ledger: Engine::Postgres, has_redis: true };
    const FILE: Stores = Stores { ledger: Engine::Sqlite, has_redis: true };
    const FILE_ALONE: Stores = Stores { ledger: Engine::Sqlite, has_redis: false };

    fn plan(seed: u64) -> Plan {
        Plan::new(seed, &[], BOTH).expect("a plan of all kinds")
    }

    #[test]
    fn each_store_gets_the_kinds_that_it_can_meet_and_every_kind_is_met() {
        let of = |stores| kinds_of(stores).collect::<Vec<_>>();
        let (both, file, alone) = (of(BOTH), of(FILE), of(FILE_ALONE));
        let told: Vec<Kind> = KINDS.into_iter().filter(|kind| both.contains(kind)).collect();
        assert_eq!(told, both);
        assert!(KINDS.iter().all(|kind| both.contains(kind) || file.contains(kind)));
        assert!(alone.iter().all(|kind| file.contains(kind)));
        assert_eq!(
            alone,
            [
                NodeKilled,
                NodePaused,
                NodeRestarted,
                EverythingKilled,
                FileLocked,
                FileReplaced,
                FilePutBack
            ]
        );
    }

    #[test]
    fn words_choose_kinds_by_their_names() {
        let words = ["FLUSH".to_owned(), "fail-over".to_owned()];
        let steps = Plan::new(1, &words, BOTH).expect("three kinds").take(100);
        let mut kinds: Vec<Kind> = steps.flat_map(|step| step.faults).map(|f| f.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds, [Flushed, FailOver, StaleFailOver]);
        assert!(Plan::new(1, &["earthquake".to_owned()], BOTH).is_none());
    }

    #[test]
    fn a_seed_gives_the_same_steps_again_and_another_seed_others() {
        let steps = |seed| plan(seed).take(200).collect::<Vec<_>>();
        assert_eq!(steps(1), steps(1));
        assert_ne!(steps(1), steps(2));
    }

    #[test]
    fn every_kind_comes_once_alone_before_any_comes_again() {
        let all: Vec<Kind> = kinds_of(BOTH).collect();
        for seed in 0..50 {
            let first: Vec<Step> = plan(seed).take(all.len()).collect();
            assert!(first.iter().all(|step| step.faults.len() == 1));
            let mut kinds: Vec<Kind> = first.iter().map(|step| step.faults[0].kind).collect();
            kinds.sort_unstable();
            assert_eq!(kinds, all);
        }
    }

    #[test]
    fn two_faults_at_once_never_work_on_the_same() {
        let of_file = |seed| Plan::new(seed, &[], FILE).expect("a plan of all kinds");
        let both = (0..50).flat_map(|seed| plan(seed).take(300));
        let steps: Vec<Step> =
            both.chain((0..50).flat_map(|seed| of_file(seed).take(300))).collect();
        let doubles: Vec<&Step> = steps.iter().filter(|step| step.faults.len() == 2).collect();
        assert!(doubles.len() > 1_000, "{} doubles", doubles.len());
        for step in doubles {
            let [one, two] = step.faults[..] else { panic!("{step}") };
            assert!(one.kind.target() != two.kind.target() || one.node != two.node, "{step}");
            assert!(step.any(|kind| kind.target() != Target::All), "{step}");
        }
    }
}

//! Which faults come, in which order, with which parameters: all of it follows from the seed.
//!
//! Touches nothing: `faults` carries a plan out.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::kinds::{Kind, Mark, Target, kinds_of};
use super::ledger::Stores;

/// Nodes of a drill.
pub(super) const NODES: usize = 3;

/// One step in this many injects two faults at once, after every kind has come alone.
const DOUBLE_IN: u32 = 4;

/// One fault with its parameters; a kind ignores those that it does not need.
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
    /// Whether this holds for every fault of the step.
    pub(super) fn all(&self, mark: Mark) -> bool {
        self.faults.iter().all(|fault| fault.kind.is(mark))
    }

    /// Whether it holds for any.
    pub(super) fn any(&self, mark: Mark) -> bool {
        self.faults.iter().any(|fault| fault.kind.is(mark))
    }

    /// The kind of its only fault; `None` for two at once.
    pub(super) fn kind(&self) -> Option<Kind> {
        if let [only] = self.faults[..] { Some(only.kind) } else { None }
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

/// The endless sequence of steps that follows from a seed: every kind once in random order, then
/// again, some of them two at a time.
pub(super) struct Plan {
    rng: Rng,
    kinds: Vec<Kind>,
    deck: Vec<Kind>,
    decks: u32,
}

impl Plan {
    /// The plan of a seed, limited to kinds whose name holds one of the words; without a word, all
    /// kinds that these stores have. `None` if no name matches.
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
    use Kind::{
        ClockAhead, EverythingKilled, FailOver, FileBranch, FileLocked, FileMoved, FilePutBack,
        FileReplaced, Flushed, NodeKilled, NodePaused, NodeRestarted, StaleFailOver,
    };

    use super::super::kinds::KINDS;
    use super::super::ledger::Engine;
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
                FilePutBack,
                FileBranch,
                FileMoved,
                ClockAhead
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

    /// `scripts/test` runs this drill for the faults that it begins with.
    #[test]
    fn a_seed_means_the_same_drill_for_ever() {
        let told: Vec<String> = plan(458_026).take(5).map(|step| step.to_string()).collect();
        let wanted = [
            "node killed (node 2) for 1944 ms",
            "journal locked for 3301 ms",
            "right to write the journal gone for 1929 ms",
            "Redis restarts empty for 7 ms",
            "PostgreSQL fails over, standby behind",
        ];
        assert_eq!(told, wanted);
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
            assert!([one, two].iter().any(|fault| fault.kind.target() != Target::All), "{step}");
        }
    }
}

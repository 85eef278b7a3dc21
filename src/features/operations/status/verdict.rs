//! The verdict of `status`: one sentence, whether action is needed, and why.

use std::process::ExitCode;

use serde::Serialize;

use super::answer::{NodeAnswer, StatusAnswer};
use super::page::{Mood, PageLine};
use super::reservations::ReservationsAnswer;
use crate::ledger::Totals;

/// The reason for a ledger on which no process runs.
const NO_PROCESS: (Mood, &str) = (Mood::Bad, "no process runs");
/// The same of one that needs none.
const NEEDS_NONE: &str = "no process runs, and `numerator next` needs none; over HTTP numbers need \
                          `numerator serve`";

/// Tokens written by other means than the program: one, and many.
const UNTOLD: (&str, &str) = ("token that no event tells of", "tokens that no event tells of");

/// A confirmed number that no sweep journals.
const RESERVATION_LATE: (Mood, Verdict, &str) = (
    Mood::Warning,
    Verdict::SomethingToDo,
    "a confirmed reservation that is not in the journal after a minute",
);

/// A reservation that a transaction holds.
const RESERVATION_HELD: (Mood, Verdict, &str) = (
    Mood::Warning,
    Verdict::SomethingToDo,
    "a reservation that is held although its time is over for a quarter of an hour",
);

/// Records that wait for the journal longer than this are reported, in milliseconds.
pub(super) const LATE_MS: u64 = 10_000;

/// What should be done. The later one prevails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// Nothing.
    #[default]
    Well,
    /// Something.
    SomethingToDo,
    /// Something important could not be checked.
    CannotTell,
}

/// The verdict with its reasons.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// The whole in a sentence.
    pub(super) summary: String,
    /// Why the state is not good: the findings, and their known causes.
    pub(super) reasons: Vec<String>,
    #[serde(skip)]
    pub(super) mood: Mood,
}

/// Something found.
struct Finding {
    mood: Mood,
    verdict: Verdict,
    text: String,
}

impl Verdict {
    /// The exit code of the command.
    pub(super) fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Verdict::Well => 0,
            Verdict::SomethingToDo => 1,
            Verdict::CannotTell => 2,
        })
    }
}

impl Judged {
    /// Nothing could be seen.
    pub(super) fn nothing(error: &anyhow::Error) -> Self {
        let why = format!("{error:#}").replace('\n', " ");
        let summary = format!("cannot tell: {why}");
        Judged { verdict: Verdict::CannotTell, summary, reasons: vec![why], mood: Mood::Bad }
    }

    /// The first line of the page.
    pub(super) fn line(&self) -> PageLine {
        PageLine { text: self.summary.replace('\n', " "), mood: self.mood }
    }
}

impl StatusAnswer {
    /// The verdict.
    pub(super) fn judge(&self) -> Judged {
        let (found, beside) = (self.found(), self.beside());
        let all = || found.iter().chain(&beside);
        let texts = |of: &[Finding]| of.iter().map(|it| &*it.text).collect::<Vec<_>>().join(", ");
        let summary = match (found.is_empty(), beside.is_empty()) {
            (true, true) => "all is well".to_owned(),
            (true, false) => format!("all is well, with {}", texts(&beside)),
            (false, true) => texts(&found),
            (false, false) => format!("{}, {}", texts(&found), texts(&beside)),
        };
        let mut reasons = Vec::new();
        let matters = found.iter().filter(|finding| finding.verdict != Verdict::Well);
        reasons.extend(matters.map(|finding| finding.text.clone()));
        if !reasons.is_empty() {
            reasons.extend(self.details().into_iter().map(|line| line.text));
        }
        Judged {
            verdict: found.iter().map(|finding| finding.verdict).max().unwrap_or_default(),
            mood: all().map(|finding| finding.mood).max().unwrap_or(Mood::Good),
            summary,
            reasons,
        }
    }

    /// The findings, the gravest first.
    fn found(&self) -> Vec<Finding> {
        use Verdict::{CannotTell, SomethingToDo};
        let rows = |mood| self.partitions.iter().filter(|row| self.mood(row) == mood).count();
        let of_nodes = |which: &dyn Fn(&NodeAnswer) -> bool| {
            self.nodes.iter().filter(|node| which(node)).count()
        };
        let silent = of_nodes(&|node| node.alive == Some(false));
        let is_nobody = silent == self.nodes.len();
        let Totals { collisions, rejected, .. } = self.totals.unwrap_or_default();
        let told = |(mood, verdict, text): (Mood, Verdict, &str)| Finding {
            mood,
            verdict,
            text: text.to_owned(),
        };
        let counted = |mood, count: usize, one: &str, many: &str| {
            let text = format!("{count} {}", if count == 1 { one } else { many });
            (count > 0).then_some(Finding { mood, verdict: SomethingToDo, text })
        };
        let many = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let (bad, warning) = (Mood::Bad, Mood::Warning);
        let mut found: Vec<Finding> =
            self.unseen().map(|text| Finding { mood: bad, verdict: CannotTell, text }).collect();
        let others = [
            counted(bad, many(collisions), "number that came twice", "numbers that came twice"),
            is_nobody.then(|| told(self.nobody())),
            counted(
                bad,
                rows(bad),
                "partition that issues nothing",
                "partitions that issue nothing",
            ),
            counted(
                warning,
                rows(warning),
                "partition in an unusual state",
                "partitions in an unusual state",
            ),
            counted(warning, silent, "silent node", "silent nodes"),
            counted(
                warning,
                of_nodes(&|node| self.is_cut_off(node)),
                "process that does not reach redis",
                "processes that do not reach redis",
            ),
            counted(
                warning,
                of_nodes(&NodeAnswer::is_hindered),
                "process that the ledger keeps from its work",
                "processes that the ledger keeps from their work",
            ),
            counted(warning, many(rejected), "rejected record", "rejected records"),
            self.is_reservation_late().then(|| told(RESERVATION_LATE)),
            self.is_reservation_held().then(|| told(RESERVATION_HELD)),
            counted(bad, self.untold_tokens.len(), UNTOLD.0, UNTOLD.1),
            counted(
                bad,
                many(self.series_set_aside()),
                "series that is set aside",
                "series that are set aside",
            ),
            counted(
                warning,
                of_nodes(&NodeAnswer::is_clock_off),
                "node whose clock is off",
                "nodes whose clocks are off",
            ),
        ];
        found.extend(others.into_iter().flatten());
        found
    }

    fn is_reservation_late(&self) -> bool {
        self.reservations.is_some_and(ReservationsAnswer::is_late)
    }

    fn is_reservation_held(&self) -> bool {
        self.reservations.is_some_and(ReservationsAnswer::is_held)
    }

    /// The meaning of no running process. With a file every command is a process of its own, and
    /// needs no other.
    fn nobody(&self) -> (Mood, Verdict, &'static str) {
        match self.is_embedded() {
            true => (Mood::Good, Verdict::Well, NEEDS_NONE),
            false => (NO_PROCESS.0, Verdict::SomethingToDo, NO_PROCESS.1),
        }
    }

    /// Stored series that some process cannot use; its log names them.
    fn series_set_aside(&self) -> u64 {
        let alive = self.nodes.iter().filter(|node| node.alive != Some(false));
        let said = alive.filter_map(|node| node.words.as_ref());
        said.map(|words| words.series_set_aside).max().unwrap_or_default()
    }

    /// The parts that could not be checked.
    fn unseen(&self) -> impl Iterator<Item = String> {
        let lives = self.untold.as_ref().map(|why| match self.nodes.is_empty() {
            true => format!("the ledger takes no writes: {why}"),
            false => format!("cannot tell which processes live: no heartbeat is written: {why}"),
        });
        let unread = self.unread.iter().map(|what| format!("cannot tell {what}"));
        let is_alive = |node: &&NodeAnswer| node.alive == Some(true);
        let is_seen = |partition: u32| {
            let mut sights = self.nodes.iter().filter(is_alive).flat_map(|node| &node.sight);
            sights.any(|sight| sight.values().any(|seen| seen.contains(&partition)))
        };
        let mut unread_redis = self.partitions.iter().filter(|row| {
            row.redis.as_ref().is_some_and(|redis| redis.data_set.is_none())
                && is_seen(row.partition)
        });
        let redis = unread_redis
            .next()
            .map(|_| "cannot tell what redis holds: it answers processes, and not this command");
        lives.into_iter().chain(unread).chain(redis.map(str::to_owned))
    }

    /// Hazards, which need no immediate action: a deployment may run with them.
    fn beside(&self) -> Vec<Finding> {
        let hazards: usize = self.redis_servers.iter().map(|server| server.hazards.len()).sum();
        let of_ledger = self.ledger_server.hazards.len();
        let counted = |count: usize, one: &str, many: &str| {
            let text = format!("{count} {}", if count == 1 { one } else { many });
            (count > 0).then_some(Finding { mood: Mood::Warning, verdict: Verdict::Well, text })
        };
        let beside = [
            counted(of_ledger, "hazard of the ledger", "hazards of the ledger"),
            counted(hazards, "hazard of redis", "hazards of redis"),
        ];
        beside.into_iter().flatten().collect()
    }

    /// Whether the ledger is a file, without Redis.
    fn is_embedded(&self) -> bool {
        self.engine == "sqlite" && self.partitions.iter().all(|row| row.redis.is_none())
    }

    /// Where a process does not reach the Redis that has a partition, or should have it.
    pub(super) fn blind_spots(&self, node: &NodeAnswer) -> Vec<u32> {
        let Some(words) = node.words.as_ref().filter(|_| node.alive != Some(false)) else {
            return Vec::new();
        };
        let is_missed = |partition: &u32| {
            let row = self.partitions.iter().find(|row| row.partition == *partition);
            row.is_some_and(|row| row.owner == "redis" || row.is_lacking_redis())
        };
        let owned = self.partitions.iter().filter(|row| row.owner == "redis");
        let owned: Vec<u32> = owned.map(|row| row.partition).collect();
        match words.without_redis {
            true => owned,
            false => {
                let blind = words.blind.iter().flat_map(|blind| blind.partitions.iter().copied());
                blind.filter(is_missed).collect()
            }
        }
    }

    fn is_cut_off(&self, node: &NodeAnswer) -> bool {
        !self.blind_spots(node).is_empty()
    }
}

impl NodeAnswer {
    /// Whether the ledger prevents its work, by its own report.
    pub(super) fn is_hindered(&self) -> bool {
        let words = self.words.as_ref().filter(|_| self.alive != Some(false));
        words.is_some_and(|words| !words.ledger.is_empty() || words.journal_ms >= LATE_MS)
    }
}

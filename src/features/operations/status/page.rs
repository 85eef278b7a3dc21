//! The findings of `status`, for people: one sentence first, tables, and sentences for what needs
//! attention. Equal rows of neighbouring partitions are merged.

use std::collections::BTreeMap;

use comfy_table::Table;
use numbering::escaped;

use super::answer::{NodeAnswer, PartitionAnswer, RedisAnswer, StatusAnswer};
use super::reservations::ReservationsAnswer;
use super::verdict::LATE_MS;
use crate::ledger::Totals;
use crate::terminal::words;

/// From this difference on a clock is reported; the alert has the same limit.
const CLOCK_OFF_MS: i64 = 5_000;

/// One line of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageLine {
    pub(super) text: String,
    pub(super) mood: Mood,
}

/// How a line is shown where colours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    #[default]
    Plain,
    /// The head of a table.
    Head,
    /// All is well.
    Good,
    /// Needs attention.
    Warning,
    /// Numbers are not issued, or it is not known.
    Bad,
}

impl PageLine {
    /// A page of one sentence, if nothing else is known.
    pub(super) fn trouble(text: &str) -> Self {
        PageLine { text: text.replace('\n', " "), mood: Mood::Bad }
    }

    /// The line as it is printed.
    pub(super) fn show(&self, with_colours: bool) -> String {
        let code = match self.mood {
            Mood::Plain => "",
            Mood::Head => "1",
            Mood::Good => "32",
            Mood::Warning => "33",
            Mood::Bad => "31",
        };
        if with_colours && !code.is_empty() {
            format!("\u{1b}[{code}m{}\u{1b}[0m", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// A table in the making, with the mood of each row.
struct Rows {
    table: Table,
    moods: Vec<Mood>,
}

impl Rows {
    fn new<const N: usize>(header: [&str; N]) -> Self {
        Rows { table: words::table(header), moods: vec![Mood::Head] }
    }

    fn add<const N: usize>(&mut self, mood: Mood, row: [String; N]) {
        // A cause may contain any text, and a row is one line.
        self.table.add_row(row.map(|cell| cell.replace(['\n', '\r'], " ")));
        self.moods.push(mood);
    }

    fn lines(self) -> impl Iterator<Item = PageLine> {
        let text = self.table.to_string();
        let rows: Vec<String> = text.lines().map(|row| row.trim_end().to_owned()).collect();
        rows.into_iter().zip(self.moods).map(|(text, mood)| PageLine { text, mood })
    }
}

impl StatusAnswer {
    /// The page.
    pub(super) fn lines(&self) -> Vec<PageLine> {
        let mut lines = vec![
            self.judged.line(),
            PageLine { text: format!("ledger {}", self.engine), mood: Mood::Plain },
        ];
        lines.extend(self.totals.map(totals_line));
        lines.extend(self.reservations.and_then(ReservationsAnswer::line));
        lines.extend(self.partition_rows().lines());
        lines.extend(self.details());
        lines.extend(self.asking());
        lines.extend(self.server_lines());
        lines.extend(self.node_rows().lines());
        if !self.ceilings.is_empty() {
            lines.extend(self.ceiling_rows().lines());
        }
        lines
    }

    pub(super) fn mood(&self, row: &PartitionAnswer) -> Mood {
        // The last partition, of gapless series, belongs to the database for good.
        let is_gapless = self.partitions.last().is_some_and(|last| last.partition == row.partition);
        let should_be_redis = row.redis.is_some() && row.wanted == "auto" && !is_gapless;
        match row.state {
            "held" => Mood::Bad,
            // No number was requested from it yet.
            "recovering" if row.owner == "none" && row.epoch == 0 => Mood::Plain,
            "open" if row.redis.as_ref().is_some_and(|redis| redis.trouble.is_some()) => {
                Mood::Warning
            }
            "open" if should_be_redis && row.owner != "redis" => Mood::Warning,
            "open" => Mood::Plain,
            _ => Mood::Warning,
        }
    }

    fn partition_rows(&self) -> Rows {
        const HEADS: [&str; 8] =
            ["partition", "epoch", "state", "owner", "wanted", "closed before", "redis", "cause"];
        let mut rows = Rows::new(HEADS);
        for alike in self
            .partitions
            .chunk_by(|one, next| cells(one) == cells(next) && self.mood(one) == self.mood(next))
        {
            let (first, last) = (&alike[0], &alike[alike.len() - 1]);
            let name = match alike.len() {
                1 => first.partition.to_string(),
                _ => format!("{} to {}", first.partition, last.partition),
            };
            let [epoch, state, owner, wanted, closing, redis, cause] = cells(first);
            let row = [name, epoch, state, owner, wanted, closing, redis, cause];
            rows.add(self.mood(first), row);
        }
        rows
    }

    fn node_rows(&self) -> Rows {
        let mut rows = Rows::new([
            "node", "label", "version", "beat", "state", "number", "outboxes", "oldest",
        ]);
        let outboxes = self.outboxes();
        for NodeAnswer { node_id, label, version, beat, alive, node_number, .. } in &self.nodes {
            let (entries, lag_ms) = outboxes.get(node_id.as_str()).cloned().unwrap_or_default();
            rows.add(
                if *alive == Some(true) { Mood::Plain } else { Mood::Warning },
                [
                    node_id.clone(),
                    label.clone(),
                    version.clone(),
                    beat.to_string(),
                    match alive {
                        Some(true) => "alive",
                        Some(false) => "silent",
                        None => "unknown",
                    }
                    .into(),
                    node_number.map_or_else(|| "-".into(), |number| number.to_string()),
                    entries,
                    lag_ms.map_or(String::new(), |ms| format!("{ms} ms")),
                ],
            );
        }
        rows
    }

    fn ceiling_rows(&self) -> Rows {
        let mut rows = Rows::new(["counter", "key", "taken", "ceiling", "room"]);
        for row in &self.ceilings {
            let [counter, taken, ceiling] = [row.counter_id, row.taken, row.ceiling];
            rows.add(
                Mood::Plain,
                [
                    counter.to_string(),
                    row.counter_key.clone(),
                    taken.to_string(),
                    ceiling.to_string(),
                    row.room.to_string(),
                ],
            );
        }
        rows
    }

    /// The known causes of problems, each sentence once with its partitions: the trouble of Redis,
    /// the processes for which it waits, what prevents processes from working.
    pub(super) fn details(&self) -> Vec<PageLine> {
        let mut of_partitions: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for row in &self.partitions {
            if let Some(trouble) = row.redis.as_ref().and_then(|redis| redis.trouble.clone()) {
                of_partitions.entry(trouble).or_default().push(row.partition);
            }
            for wait in &row.waits_for {
                let since = wait.since.as_ref().map_or(String::new(), |at| format!(" since {at}"));
                let sentence = format!(
                    "redis waits for {} ({}), which does not see it there{since}: {}",
                    wait.label, wait.node_id, wait.why
                );
                of_partitions.entry(sentence).or_default().push(row.partition);
            }
            if self.returns_soon(row) {
                let sentence = "every process sees redis there; it takes them back \
                                redis.return_after after that";
                of_partitions.entry(sentence.into()).or_default().push(row.partition);
            }
        }
        for node in &self.nodes {
            let missed = self.blind_spots(node);
            for (why, partitions) in blind_reasons(node, &missed) {
                let sentence =
                    format!("{} ({}) does not reach redis{why}", node.label, node.node_id);
                of_partitions.entry(sentence).or_default().extend(partitions);
            }
        }
        let sentences = of_partitions.into_iter().map(|(sentence, mut partitions)| {
            partitions.sort_unstable();
            partitions.dedup();
            let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
            format!("partitions {}: {sentence}", partitions.join(", "))
        });
        let hindered = self.nodes.iter().filter(|node| node.is_hindered()).flat_map(hindrances);
        let line = |text: String| PageLine {
            text: escaped(&text.replace('\n', " ")).into_owned(),
            mood: Mood::Warning,
        };
        let clocks = self.nodes.iter().filter(|node| node.is_clock_off()).map(|node| {
            let said = node.words.as_ref().and_then(|words| words.clock.clone());
            let why = said.unwrap_or_else(|| {
                let ahead_ms = node.clock_ahead_ms.unwrap_or_default();
                format!("its clock is {ahead_ms} ms ahead of PostgreSQL's; have NTP keep both")
            });
            format!("node {}: {why}", node.node_id)
        });
        sentences.chain(hindered).chain(clocks).chain(self.untold()).map(line).collect()
    }

    /// Whether the database has a partition that Redis may have, and Redis waits for no process.
    fn returns_soon(&self, row: &PartitionAnswer) -> bool {
        let is_gapless = self.partitions.last().is_some_and(|last| last.partition == row.partition);
        let is_seen = row.redis.as_ref().is_some_and(|redis| redis.data_set.is_some());
        let has_process =
            self.nodes.iter().any(|node| node.alive == Some(true) && node.sight.is_some());
        row.is_lacking_redis() && !is_gapless && is_seen && has_process && row.waits_for.is_empty()
    }

    /// Dangerous configurations of the servers.
    fn server_lines(&self) -> Vec<PageLine> {
        let of_redis = self.redis_servers.iter();
        let of_redis = of_redis.map(|server| (format!("redis {}", server.server), server));
        let ledger = (self.ledger_server.server.clone(), &self.ledger_server);
        let mut lines = Vec::new();
        for (name, server) in [ledger].into_iter().chain(of_redis) {
            lines.extend(server.hazards.iter().map(|hazard| PageLine {
                text: format!("{name}: {}; cure: {}", hazard.meaning, hazard.cure),
                mood: Mood::Warning,
            }));
            lines.extend(server.unchecked.iter().map(|why| PageLine {
                text: format!("{name}: not checked: {why}"),
                mood: Mood::Plain,
            }));
        }
        lines
    }

    /// Where new documents need the ledger, and for how long: no fault, but the ledger should stay
    /// reachable.
    fn asking(&self) -> Option<PageLine> {
        let asking_ms = |row: &PartitionAnswer| row.redis.as_ref().map_or(0, |it| it.asking_ms);
        let asking = || self.partitions.iter().filter(|row| asking_ms(row) > 0);
        let longest_min = asking().map(asking_ms).max()?.div_ceil(60_000);
        let partitions: Vec<String> = asking().map(|row| row.partition.to_string()).collect();
        let text = format!(
            "partitions {}: redis has lost records of earlier documents; for {longest_min} min at \
             most, new ones are looked up in the journal and need the ledger",
            partitions.join(", ")
        );
        Some(PageLine { text, mood: Mood::Plain })
    }

    /// Per node the content of its outboxes: entries and partition, and the age of the oldest.
    fn outboxes(&self) -> BTreeMap<&str, (String, Option<u64>)> {
        let mut found: BTreeMap<&str, (String, Option<u64>)> = BTreeMap::new();
        for row in &self.partitions {
            for outbox in row.redis.iter().flat_map(|redis| &redis.outboxes) {
                let (text, lag_ms) = found.entry(&outbox.node_id).or_default();
                let gap = if text.is_empty() { "" } else { ", " };
                text.push_str(&format!("{gap}{} in {}", outbox.entries, row.partition));
                *lag_ms = (*lag_ms).max(outbox.lag_ms);
            }
        }
        found
    }
}

/// Sizes of the ledger, in a line.
fn totals_line(totals: Totals) -> PageLine {
    let Totals { journal, revisions, gaps, collisions, acknowledged, rejected, estimated } = totals;
    let mood = match (collisions, rejected) {
        (0, 0) => Mood::Plain,
        (0, _) => Mood::Warning,
        _ => Mood::Bad,
    };
    let about = if estimated { "about " } else { "" };
    let explained = match acknowledged {
        0 => String::new(),
        count => format!(", {count} acknowledged"),
    };
    let text = format!(
        "{about}journal {journal}  revisions {revisions}  gaps {gaps}  \
         collisions {collisions}{explained}  rejected {rejected}"
    );
    PageLine { text, mood }
}

/// Why a process does not reach Redis, in words that continue a sentence, and where.
fn blind_reasons(node: &NodeAnswer, missed: &[u32]) -> Vec<(String, Vec<u32>)> {
    let Some(words) = node.words.as_ref().filter(|_| !missed.is_empty()) else { return Vec::new() };
    if words.without_redis {
        return vec![(": redis.url is not set there".into(), missed.to_vec())];
    }
    let reasons = words.blind.iter().map(|blind| {
        let missed = missed.iter().filter(|partition| blind.partitions.contains(partition));
        let since = words::moment(blind.since_us);
        (format!(" since {since}: {}", blind.why), missed.copied().collect::<Vec<_>>())
    });
    reasons.filter(|(_, missed)| !missed.is_empty()).collect()
}

/// What the ledger prevents a process from doing, by the process's report, one sentence each.
fn hindrances(node: &NodeAnswer) -> Vec<String> {
    let Some(said) = &node.words else { return Vec::new() };
    let who = format!("{} ({})", node.label, node.node_id);
    let waiting = match said.journal_records {
        0 => String::new(),
        count => format!("; {count} records wait for the journal, {} ms", said.journal_ms),
    };
    let mut sentences: Vec<String> = said
        .ledger
        .iter()
        .map(|trouble| {
            let what = match &*trouble.call {
                "append" => "cannot write to the journal",
                "take" => "cannot take numbers from the database",
                "seed" => "cannot begin counters",
                "raise" => "cannot raise ceilings",
                other => other,
            };
            let since = words::moment(trouble.since_us);
            format!("{who} {what} since {since}: {}{waiting}", trouble.why)
        })
        .collect();
    if sentences.is_empty() && said.journal_ms >= LATE_MS {
        sentences.push(format!("{who} is behind{waiting}"));
    }
    sentences
}

/// What the page shows of a partition in addition to its number.
fn cells(row: &PartitionAnswer) -> [String; 7] {
    [
        row.epoch.to_string(),
        row.state.into(),
        row.owner.into(),
        row.wanted.into(),
        row.last_closing.unwrap_or("-").into(),
        row.redis.as_ref().map_or("-", RedisAnswer::word).into(),
        row.cause.clone(),
    ]
}

impl NodeAnswer {
    /// Whether its clock is so far off that an alert fires, or the process itself says so.
    pub(super) fn is_clock_off(&self) -> bool {
        let says_so = self.words.as_ref().is_some_and(|words| words.clock.is_some());
        says_so || self.clock_ahead_ms.is_some_and(|ahead_ms| ahead_ms.abs() > CLOCK_OFF_MS)
    }
}

impl RedisAnswer {
    fn word(&self) -> &'static str {
        match self.agrees {
            Some(true) => "agrees",
            Some(false) => "differs",
            None if self.trouble.is_some() => "unknown",
            None => "-",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::{ServerAnswer, WaitAnswer};
    use super::super::verdict::{Judged, Verdict};
    use super::*;
    use crate::ledger::{Blind, LedgerFailure, NodeWords};

    fn partition(partition: u32, state: &'static str, owner: &'static str) -> PartitionAnswer {
        PartitionAnswer {
            partition,
            epoch: 1,
            state,
            owner,
            incarnation: None,
            wanted: "auto",
            last_closing: Some("exact"),
            last_ceiling_epoch: 0,
            cause: "first\nuse".into(),
            changed_at: String::new(),
            waits_for: Vec::new(),
            redis: Some(RedisAnswer {
                agrees: None,
                data_set: Some("a".into()),
                trouble: None,
                asking_ms: 0,
                outboxes: Vec::new(),
            }),
        }
    }

    fn node(alive: bool) -> NodeAnswer {
        NodeAnswer {
            node_id: "1".into(),
            label: "here/1".into(),
            version: String::new(),
            beat: 1,
            alive: Some(alive),
            started_at: String::new(),
            clock_ahead_ms: None,
            node_number: None,
            partitions: Vec::new(),
            sight: None,
            words: None,
        }
    }

    fn status(partitions: Vec<PartitionAnswer>) -> StatusAnswer {
        judged_of(StatusAnswer {
            judged: Judged::default(),
            engine: "sqlite",
            ledger_server: ServerAnswer::default(),
            redis_servers: Vec::new(),
            partitions,
            nodes: vec![node(true)],
            untold: None,
            unread: Vec::new(),
            untold_tokens: Vec::new(),
            ceilings: Vec::new(),
            totals: Some(Totals::default()),
            reservations: None,
        })
    }

    fn judged_of(mut status: StatusAnswer) -> StatusAnswer {
        status.judged = status.judge();
        status
    }

    #[test]
    fn partitions_that_are_alike_are_one_row_and_a_cause_is_one_line() {
        let alike = ["redis", "redis", "redis", "database"];
        let partitions = (0..).zip(alike).map(|(number, owner)| partition(number, "open", owner));
        let lines = status(partitions.collect()).lines();
        let shown: Vec<String> = lines.iter().map(|line| line.show(false)).collect();
        assert_eq!(shown[0], "all is well");
        assert!(shown[4].trim_start().starts_with("0 to 2 "), "{shown:#?}");
        assert!(shown[4].ends_with("first use"), "{shown:#?}");
        assert!(shown[5].trim_start().starts_with("3 "), "{shown:#?}");
        assert_eq!(shown.len(), 8, "{shown:#?}");
    }

    #[test]
    fn the_first_line_and_the_row_tell_what_needs_attention() {
        let rows = vec![
            partition(0, "open", "database"),
            partition(1, "held", "redis"),
            partition(2, "open", "database"),
        ];
        let lines = status(rows).lines();
        let text = "1 partition that issues nothing, 1 partition in an unusual state";
        assert_eq!((&*lines[0].text, lines[0].mood), (text, Mood::Bad));
        let moods: Vec<Mood> = lines[4..7].iter().map(|line| line.mood).collect();
        assert_eq!(moods, [Mood::Warning, Mood::Bad, Mood::Plain]);
        assert_eq!(lines[0].show(true), format!("\u{1b}[31m{text}\u{1b}[0m"));
        assert_eq!(lines[0].show(false), text);
    }

    /// The first line of a status, and its form.
    fn verdict(change: impl FnOnce(&mut StatusAnswer)) -> (String, Mood) {
        let mut status = status(vec![partition(0, "open", "redis")]);
        change(&mut status);
        let line = judged_of(status).lines().swap_remove(0);
        (line.text, line.mood)
    }

    fn totals(status: &mut StatusAnswer) -> &mut Totals {
        status.totals.as_mut().expect("read")
    }

    /// The verdict.
    fn judged(change: impl FnOnce(&mut StatusAnswer)) -> Judged {
        let mut status =
            status(vec![partition(0, "open", "redis"), partition(1, "open", "database")]);
        status.engine = "postgres";
        change(&mut status);
        status.judge()
    }

    #[test]
    fn what_could_not_be_seen_outweighs_what_is_to_be_done() {
        let told = judged(|_| {});
        assert_eq!((told.verdict, told.reasons.len()), (Verdict::Well, 0));
        let told = judged(|status| {
            totals(status).rejected = 1;
            status.nodes[0].alive = None;
            status.untold = Some("read-only".into());
        });
        assert_eq!(told.verdict, Verdict::CannotTell);
        assert!(told.summary.starts_with("cannot tell which processes live"), "{}", told.summary);
        assert!(!told.summary.contains("silent") && told.reasons.len() == 2, "{told:?}");
        let told = judged(|status| status.unread.push("the totals: away".into()));
        assert_eq!(told.verdict, Verdict::CannotTell);
        let told = judged(|status| {
            status.nodes[0].sight = Some([("a".to_owned(), [0].into())].into());
            let redis = status.partitions[0].redis.as_mut().expect("a redis");
            (redis.data_set, redis.trouble) =
                (None, Some("redis does not answer: no route".into()));
        });
        assert_eq!(told.verdict, Verdict::CannotTell, "{told:?}");
        assert!(told.summary.contains("it answers processes"), "{}", told.summary);
    }

    #[test]
    fn hazards_alone_are_told_and_ask_for_nothing() {
        let told = judged(|status| {
            status.ledger_server = ServerAnswer::of_ledger(crate::ledger::LedgerCheckup {
                config_warnings: vec![crate::ledger::LedgerConfigWarning::NoFsync],
                unchecked: Vec::new(),
            });
        });
        assert_eq!(told.verdict, Verdict::Well);
        assert_eq!(told.summary, "all is well, with 1 hazard of the ledger");
    }

    #[test]
    fn a_process_is_named_with_what_it_lacks_and_for_whom_redis_waits() {
        let why = "redis refuses the password: WRONGPASS";
        let told = judged(|status| {
            let blind = Blind { partitions: [0].into(), since_us: 0, why: why.into() };
            status.nodes[0].words = Some(NodeWords { blind: vec![blind], ..NodeWords::default() });
        });
        assert_eq!(told.verdict, Verdict::SomethingToDo);
        assert_eq!(told.summary, "1 process that does not reach redis");
        assert_eq!(
            told.reasons[1],
            format!(
                "partitions 0: here/1 (1) does not reach redis since 1970-01-01T00:00:00Z: {why}"
            )
        );
        let told = judged(|status| {
            status.partitions[0].owner = "database";
            status.partitions[0].waits_for = vec![WaitAnswer {
                node_id: "1".into(),
                label: "here/1".into(),
                sees: vec!["b".into()],
                since: None,
                why: "it sees another data set (b)".into(),
            }];
        });
        let waits = "redis waits for here/1 (1), which does not see it there: it sees another";
        assert!(told.reasons.iter().any(|reason| reason.contains(waits)), "{told:?}");
        let told = judged(|status| {
            let trouble = LedgerFailure { call: "append".into(), since_us: 0, why: "full".into() };
            status.nodes[0].words = Some(NodeWords {
                ledger: vec![trouble],
                journal_records: 7,
                journal_ms: 900,
                ..NodeWords::default()
            });
        });
        assert_eq!(told.summary, "1 process that the ledger keeps from its work");
        assert!(told.reasons[1].ends_with("full; 7 records wait for the journal, 900 ms"));
    }

    #[test]
    fn a_process_says_that_its_clock_is_off_and_which_series_it_cannot_use() {
        let told = judged(|status| {
            let clock = Some("the clock of this process says so".into());
            status.nodes[0].words = Some(NodeWords { clock, ..NodeWords::default() });
        });
        assert_eq!(
            (told.verdict, &*told.summary),
            (Verdict::SomethingToDo, "1 node whose clock is off")
        );
        assert_eq!(told.reasons[1], "node 1: the clock of this process says so");
        let told = judged(|status| {
            let words = NodeWords { series_set_aside: 2, ..NodeWords::default() };
            status.nodes[0].words = Some(words);
        });
        assert_eq!(told.summary, "2 series that are set aside");
    }

    #[test]
    fn numbers_that_came_twice_are_never_well() {
        let found = verdict(|status| totals(status).collisions = 2);
        assert_eq!(found, ("2 numbers that came twice".into(), Mood::Bad));
    }

    #[test]
    fn rejected_records_are_told_in_the_first_line_and_their_own() {
        let found = verdict(|status| totals(status).rejected = 1);
        assert_eq!(found, ("1 rejected record".into(), Mood::Warning));
        let mut status = status(Vec::new());
        totals(&mut status).rejected = 1;
        assert_eq!(status.lines()[2].mood, Mood::Warning);
    }

    #[test]
    fn nothing_is_well_where_no_process_runs() {
        let on_postgres = |nodes: Vec<NodeAnswer>| {
            verdict(|status| {
                status.engine = "postgres";
                status.nodes = nodes;
            })
        };
        assert_eq!(on_postgres(Vec::new()), ("no process runs".into(), Mood::Bad));
        let found = on_postgres(vec![node(false)]);
        assert_eq!(found, ("no process runs, 1 silent node".into(), Mood::Bad));
    }

    #[test]
    fn an_embedded_ledger_is_well_without_a_process_and_says_what_http_needs() {
        let (text, mood) = verdict(|status| {
            status.partitions = vec![partition(0, "open", "database")];
            status.partitions[0].redis = None;
            status.nodes.clear();
        });
        assert_eq!(mood, Mood::Good);
        assert!(text.contains("needs none") && text.contains("`numerator serve`"), "{text}");
        let (_, mood) = verdict(|status| status.nodes = vec![node(false)]);
        assert!(mood > Mood::Good, "one that fell silent is no good news");
    }
}

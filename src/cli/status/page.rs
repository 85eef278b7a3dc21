//! What `status` found, for people: one sentence first, tables, and sentences for what needs
//! attention. Rows that say the same of neighbouring partitions are one.

use std::collections::BTreeMap;

use comfy_table::Table;

use super::super::words;
use super::answer::{NodeAnswer, PartitionAnswer, RedisAnswer, StatusAnswer};
use crate::ledger::Totals;

/// What is said of a ledger on which no process runs.
const NO_PROCESS: (Mood, &str) = (Mood::Bad, "no process runs");
/// The same of one that needs none.
const NEEDS_NONE: &str = "no process runs, and `numerator next` needs none; over HTTP numbers need \
                          `numerator serve`";

/// From this difference on a clock is worth a word; the alert goes by the same.
const CLOCK_OFF_MS: i64 = 5_000;

/// One line of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PageLine {
    text: String,
    mood: Mood,
}

/// How a line is shown where colours are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mood {
    Plain,
    /// The head of a table.
    Head,
    /// All is well.
    Good,
    /// Somebody should look.
    Warning,
    /// Numbers are not issued, or nobody knows.
    Bad,
}

impl PageLine {
    /// A page of one sentence: nothing else is known.
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
        // A cause may hold anything, and a row is one line.
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
        let Totals { journal, revisions, gaps, collisions, acknowledged, rejected, estimated } =
            self.totals;
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
        let mut lines = vec![
            self.verdict(),
            PageLine { text: format!("ledger {}", self.engine), mood: Mood::Plain },
            PageLine { text, mood },
        ];
        lines.extend(self.partition_rows().lines());
        lines.extend(self.troubles());
        lines.extend(self.node_rows().lines());
        if !self.ceilings.is_empty() {
            lines.extend(self.ceiling_rows().lines());
        }
        lines
    }

    /// The whole in a sentence.
    fn verdict(&self) -> PageLine {
        let rows = |mood| self.partitions.iter().filter(|row| self.mood(row) == mood).count();
        let silent = self.nodes.iter().filter(|node| !node.alive).count();
        let clocks = self.nodes.iter().filter(|node| node.is_clock_off()).count() as u64;
        let hazards: usize = self.redis_servers.iter().map(|server| server.hazards.len()).sum();
        let of_ledger = self.ledger_server.hazards.len() as u64;
        let Totals { collisions, rejected, .. } = self.totals;
        let counted = |count: u64, one, many| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
        };
        // Every command is a process of its own there, and needs no other.
        let no_process = if self.is_embedded() { (Mood::Good, NEEDS_NONE) } else { NO_PROCESS };
        let (bad, unusual) = (rows(Mood::Bad) as u64, rows(Mood::Warning) as u64);
        let found = [
            (Mood::Bad, counted(collisions, "number that came twice", "numbers that came twice")),
            (no_process.0, (silent == self.nodes.len()).then(|| no_process.1.to_owned())),
            (
                Mood::Bad,
                counted(bad, "partition that issues nothing", "partitions that issue nothing"),
            ),
            (
                Mood::Warning,
                counted(unusual, "partition in an unusual state", "partitions in an unusual state"),
            ),
            (Mood::Warning, counted(silent as u64, "silent node", "silent nodes")),
            (Mood::Warning, counted(rejected, "rejected record", "rejected records")),
            (
                Mood::Warning,
                counted(clocks, "node whose clock is off", "nodes whose clocks are off"),
            ),
            (Mood::Warning, counted(of_ledger, "hazard of the ledger", "hazards of the ledger")),
            (Mood::Warning, counted(hazards as u64, "hazard of redis", "hazards of redis")),
        ];
        let found = found.into_iter().filter_map(|(mood, text)| Some((mood, text?)));
        let (moods, parts): (Vec<Mood>, Vec<String>) = found.unzip();
        let mood = moods.into_iter().max().unwrap_or(Mood::Good);
        let text = if parts.is_empty() { "all is well".into() } else { parts.join(", ") };
        PageLine { text, mood }
    }

    /// Whether the ledger is a file, and there is no Redis.
    fn is_embedded(&self) -> bool {
        self.engine == "sqlite" && self.partitions.iter().all(|row| row.redis.is_none())
    }

    fn mood(&self, row: &PartitionAnswer) -> Mood {
        // The last partition, of gapless series, belongs to the database for good.
        let is_gapless = self.partitions.last().is_some_and(|last| last.partition == row.partition);
        let should_be_redis = row.redis.is_some() && row.wanted == "auto" && !is_gapless;
        match row.state {
            "held" => Mood::Bad,
            // Nobody has asked it for a number yet.
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
        let mut rows = Rows::new([
            "partition",
            "epoch",
            "state",
            "owner",
            "wanted",
            "closed before",
            "redis",
            "cause",
        ]);
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
                if *alive { Mood::Plain } else { Mood::Warning },
                [
                    node_id.clone(),
                    label.clone(),
                    version.clone(),
                    beat.to_string(),
                    if *alive { "alive" } else { "silent" }.into(),
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

    /// What Redis is in trouble with, each sentence once, with its partitions; and how its servers
    /// are set up, where that is dangerous.
    fn troubles(&self) -> Vec<PageLine> {
        let mut troubles: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.partitions {
            if let Some(trouble) = row.redis.as_ref().and_then(|redis| redis.trouble.as_deref()) {
                troubles.entry(trouble).or_default().push(row.partition.to_string());
            }
        }
        let line = |(trouble, partitions): (&str, Vec<String>)| PageLine {
            text: format!("partitions {}: {trouble}", partitions.join(", ")),
            mood: Mood::Warning,
        };
        let mut lines: Vec<PageLine> = troubles.into_iter().map(line).collect();
        lines.extend(self.asking());
        lines.extend(self.nodes.iter().filter(|node| node.is_clock_off()).map(|node| PageLine {
            text: format!(
                "node {}: its clock is {} ms ahead of PostgreSQL's; have NTP keep both",
                node.node_id,
                node.clock_ahead_ms.unwrap_or_default()
            ),
            mood: Mood::Warning,
        }));
        let of_redis = self.redis_servers.iter();
        let of_redis = of_redis.map(|server| (format!("redis {}", server.server), server));
        let ledger = (self.ledger_server.server.clone(), &self.ledger_server);
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

    /// Where new documents need the ledger, and for how long: nothing is wrong, but it had better
    /// not go away.
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

    /// Per node what lies in its outboxes: entries and partition, and the age of the oldest.
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

/// What the page shows of a partition besides its number.
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
    /// Whether its clock is so far off that an alert tells it.
    fn is_clock_off(&self) -> bool {
        self.clock_ahead_ms.is_some_and(|ahead_ms| ahead_ms.abs() > CLOCK_OFF_MS)
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
    use super::super::answer::ServerAnswer;
    use super::*;

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
            redis: Some(RedisAnswer {
                agrees: None,
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
            alive,
            started_at: String::new(),
            clock_ahead_ms: None,
            node_number: None,
            partitions: Vec::new(),
            sight: None,
        }
    }

    fn status(partitions: Vec<PartitionAnswer>) -> StatusAnswer {
        StatusAnswer {
            engine: "sqlite",
            ledger_server: ServerAnswer::default(),
            redis_servers: Vec::new(),
            partitions,
            nodes: vec![node(true)],
            ceilings: Vec::new(),
            totals: Totals::default(),
        }
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

    /// The first line of a status, and how it is shown.
    fn verdict(change: impl FnOnce(&mut StatusAnswer)) -> (String, Mood) {
        let mut status = status(vec![partition(0, "open", "redis")]);
        change(&mut status);
        let line = status.lines().swap_remove(0);
        (line.text, line.mood)
    }

    #[test]
    fn numbers_that_came_twice_are_never_well() {
        let found = verdict(|status| status.totals.collisions = 2);
        assert_eq!(found, ("2 numbers that came twice".into(), Mood::Bad));
    }

    #[test]
    fn rejected_records_are_told_in_the_first_line_and_their_own() {
        let found = verdict(|status| status.totals.rejected = 1);
        assert_eq!(found, ("1 rejected record".into(), Mood::Warning));
        let mut status = status(Vec::new());
        status.totals.rejected = 1;
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

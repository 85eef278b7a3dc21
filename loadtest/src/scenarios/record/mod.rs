//! The record from the view of audit and retention: the size of a number, with and without a
//! caller's key, and how long it takes to export the numbers, to compare them with their seals, to
//! archive them, and to search the archive.
//!
//! The rows are of numbers that callers took over HTTP, under seal. Any error that a command finds
//! is a breach, and so is a count that differs from the number of rows.

mod archived;

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::service::Deployment;

use super::command::Ended;
use super::{Bench, send};
use crate::load::shared;
use crate::program;
use crate::report::{Goal, Row, Section, figure};
use crate::stage::{Growth, Path, Served, Sizes, Stage};
use crate::tally::Tally;
use crate::work::{Ask, Numbers};

/// Documents of a list, the most that the service takes, and connections that send lists.
const LIST: usize = 1_000;
const CALLERS: usize = 8;

/// Numbers of a smoke test.
const SMOKE_NUMBERS: u64 = 4_000;

/// Most bytes of a number without a caller's key, and of one with a key.
const BYTES_MAX: f64 = 250.0;
const KEYED_BYTES_MAX: f64 = 320.0;

/// Longest time of an export of a million numbers.
const EXPORT_MAX_S: f64 = 30.0;

/// Fewest rows that are compared with their seals in a second.
const COMPARED_MIN: f64 = 1_000_000.0;

/// Most rows of the journal that the database reads for each exported row. A page is picked from
/// the rows of the time before the last one if there are no statistics for all of a short journal;
/// a wrong plan reads thousands.
const READ_MAX: u64 = 200;

/// Numbers that a workbook holds.
const WORKBOOK_MAX: u64 = 1_048_575;

/// Longest wait until every batch is bound by a checkpoint, and the pause between two looks.
const BOUND_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// The record of a service that has ended.
struct Record<'s> {
    stage: &'s Stage,
    deployment: Deployment,
    schema: String,
    /// The size of the ledger before the first number.
    empty: Sizes,
    /// Numbers in it.
    numbers: u64,
}

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let folder = tempfile::tempdir().expect("temporary folder");
    let key = folder.path().join("audit.pem");
    make_key(&key);
    let setting = format!("audit.key={}", key.display());
    // What is to be compared is bound soon after the last number.
    let service = stage.service(Path::Redis, "", &[&setting, "audit.checkpoint=1s"]);
    let record = write(bench, &stage, service, section);
    for (format, name) in [("csv", "CSV"), ("jsonl", "JSON lines"), ("xlsx", "a workbook")] {
        let exported = record.export(format, name, section);
        section.rows.extend(exported);
    }
    let compared = record.compare(&[], record.numbers, section);
    let row = record.rate("audit verify", &compared);
    section.rows.push(row.goal(Goal::AtLeast(COMPARED_MIN)));
    archived::measure(&record, &key, section);
}

/// Lets a service issue numbers of one counter, the second half of them under keys, and end.
fn write<'s>(
    bench: &Bench,
    stage: &'s Stage,
    service: Served,
    section: &mut Section,
) -> Record<'s> {
    let wanted = if bench.is_smoke { SMOKE_NUMBERS } else { bench.rows };
    let lists = usize::try_from(wanted.div_ceil(2 * LIST as u64)).expect("as many as fit");
    let schema = service.schema().to_owned();
    let empty = Sizes::now(stage, &schema);
    let half = take(Ask::List(LIST), Tally::new(1), lists, stage, &service, section);
    let (halfway, half_numbers) = (Sizes::now(stage, &schema), half.numbers());
    let whole = take(Ask::KeyedList(LIST), half, lists, stage, &service, section);
    let numbers = whole.numbers();
    section.breaches.extend(await_checkpoint(stage, &schema).err());
    let end = Sizes::now(stage, &schema);

    let bare = halfway.since(&empty, half_numbers);
    let keyed = end.since(&halfway, numbers - half_numbers);
    let all = end.since(&empty, numbers);
    let seals = all.of("journal_batch") + all.of("checkpoint");
    let counts = stage.postgres.sql(&format!(
        "select (select count(*) from {schema}.journal_batch) || ' batches, ' \
         || (select count(*) from {schema}.checkpoint) || ' checkpoints'"
    ));
    section.rows.extend([
        bytes("a number without a key", &bare).goal(Goal::AtMost(BYTES_MAX)),
        bytes("a number under a key of 36 characters and its place", &keyed)
            .goal(Goal::AtMost(KEYED_BYTES_MAX)),
        Row::new("batches and checkpoints, by the number", seals, "bytes").note(counts),
    ]);
    Record { stage, deployment: service.end(), schema, empty, numbers }
}

/// Takes `lists` lists of numbers, and compares all that came so far with the journal.
fn take(
    ask: Ask,
    before: Tally,
    lists: usize,
    stage: &Stage,
    service: &Served,
    section: &mut Section,
) -> Tally {
    let work = shared(Numbers::hot(ask).after(before));
    send(section, service, &work, CALLERS, lists);
    let work = work.borrow();
    section.breaches.extend(service.complaints(stage, &*work));
    work.tally().cloned().unwrap_or_default()
}

/// A row of the size of a number, and where it is stored.
fn bytes(what: &str, growth: &Growth) -> Row {
    Row::new(what, growth.total(), "bytes").note(growth.parts())
}

/// Makes a key that signs, as an administrator does.
fn make_key(file: &path::Path) {
    let program = program(&[]);
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).args(["audit", "keygen"]).arg(file);
    let made = command.output().expect("numerator runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Waits until a checkpoint binds the last batch; if none comes, returns how many are not bound.
fn await_checkpoint(stage: &Stage, schema: &str) -> Result<(), String> {
    let deadline = Instant::now() + BOUND_LIMIT;
    loop {
        let unbound = stage.postgres.sql(&format!(
            "select count(*) from {schema}.journal_batch where batch_id > coalesce((select \
             (body::json -> 'batches' ->> 'upto')::bigint from {schema}.checkpoint \
             order by checkpoint_no desc limit 1), 0)"
        ));
        if unbound == "0" {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("no checkpoint binds {unbound} batches"));
        }
        std::thread::park_timeout(POLL);
    }
}

impl Record<'_> {
    /// Its numbers, for arithmetic.
    #[expect(clippy::cast_precision_loss, reason = "no record here has 2^53 numbers")]
    fn count(&self) -> f64 {
        self.numbers as f64
    }

    /// Runs a command on it.
    fn command(&self, arguments: &[&str], section: &mut Section) -> Ended {
        Ended::run(&self.deployment, arguments, section)
    }

    /// Rows of the journal that the database has read for commands that ended.
    fn rows_read(&self) -> u64 {
        let read = self.stage.postgres.sql(&format!(
            "select idx_tup_fetch + seq_tup_read from pg_stat_user_tables \
             where schemaname = '{}' and relname = 'journal'",
            self.schema
        ));
        read.parse().expect("a count")
    }

    /// Writes all numbers to a file and counts them; no row of more than it holds.
    fn export(&self, format: &str, name: &str, section: &mut Section) -> Option<Row> {
        if format == "xlsx" && self.numbers > WORKBOOK_MAX {
            return None;
        }
        let what = format!("export of {} numbers as {name}", figure(self.count()));
        let file = self.deployment.path("register");
        let to = file.to_str().expect("a path of text");
        let before = self.rows_read();
        let ended = self.command(&["export", "--format", format, "--to", to], section);
        let read = self.rows_read() - before;
        if read > READ_MAX * self.numbers {
            section.breaches.push(format!("{what}: the database read {read} rows"));
        }
        if !ended.has_told(&format!("{} rows", self.numbers)) {
            section.breaches.push(format!("{what}: it told of other rows"));
        }
        // A workbook has no lines; CSV has one more, its header.
        let beside = [("csv", 1), ("jsonl", 0)].into_iter().find(|(of, _)| *of == format);
        if let Some((_, beside)) = beside {
            let lines = File::open(&file).map_or(0, |file| BufReader::new(file).lines().count());
            if lines as u64 != self.numbers + beside {
                section.breaches.push(format!("{what}: it has {lines} lines"));
            }
        }
        let _ = std::fs::remove_file(&file);
        let row = Row::new(what, ended.seconds, "s").note(ended.memory());
        Some(row.goal(Goal::AtMost(EXPORT_MAX_S * self.count() / 1e6)))
    }

    /// Compares this many rows with their seals.
    fn compare(&self, options: &[&str], rows: u64, section: &mut Section) -> Ended {
        let ended = self.command(&[&["audit", "verify", "--json"], options].concat(), section);
        let report = ended.json();
        if report["rows"] != rows || report["rows_archived"] != 0 {
            section.breaches.push(format!("audit verify of {rows} rows: {report}"));
        }
        ended
    }

    /// A row of how many of its numbers a command processed per second.
    fn rate(&self, what: &str, ended: &Ended) -> Row {
        let (count, seconds) = (figure(self.count()), figure(ended.seconds));
        let row = Row::new(what, self.count() / ended.seconds, "/s");
        row.note(format!("{count} numbers in {seconds} s; {}", ended.memory()))
    }
}

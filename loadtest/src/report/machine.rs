//! The machine and the circumstances of a measurement: figures mean nothing without them.

use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::Instant;

use super::table::figure;
use crate::figures::median;
use crate::program;

/// Writes whose durability is timed.
const SYNCS: usize = 50;

/// Bytes of each: a page of a database.
const SYNC_BYTES: usize = 8 * 1_024;

/// What figures of one run of this program have in common.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    /// The machine and the programs, as a list in Markdown.
    pub(crate) machine: String,
    /// The command, the commit, and the state of the machine before: differs from run to run.
    pub(crate) occasion: String,
}

impl Circumstances {
    /// Inspects the machine and this program's command line.
    pub(crate) fn begin() -> Self {
        let mut arguments: Vec<String> = std::env::args().skip(1).collect();
        // The path of another build concerns this machine only.
        let before = arguments.iter().position(|argument| argument == "--before");
        if let Some(build) = before.and_then(|at| arguments.get_mut(at + 1)) {
            "OTHER".clone_into(build);
        }
        let commit = commit().unwrap_or_else(|| "an unknown commit".to_owned());
        let load = read("/proc/loadavg").and_then(|text| text.split(' ').next().map(str::to_owned));
        let load = load.unwrap_or_else(|| "not known".to_owned());
        let sync = sync_ms().map_or("not known".to_owned(), |ms| format!("{} ms", figure(ms)));
        let occasion = format!(
            "Measured at {commit} by `loadtest {}`; load of the machine before: {load}; a durable \
             write of 8 KiB, median: {sync}.",
            arguments.join(" ")
        );
        Circumstances { machine: describe(), occasion }
    }
}

/// The commit, and whether anything but the docs, which are being written, differs from it.
fn commit() -> Option<String> {
    let commit = said(Command::new("git").args(["describe", "--always"]))?;
    let changes = ["diff", "--name-only", "HEAD", "--", ":(top)", ":(top,exclude)docs"];
    let is_dirty = said(Command::new("git").args(changes)).is_some();
    Some(if is_dirty { format!("{commit}-dirty") } else { commit })
}

fn describe() -> String {
    let program = program(&[]);
    let memory_gb = field("/proc/meminfo", "MemTotal").and_then(|text| {
        let kb: f64 = text.trim_end_matches(" kB").parse().ok()?;
        Some(format!("{} GiB", figure(kb / 1_024.0 / 1_024.0)))
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let build = if cfg!(debug_assertions) { "debug: its figures say nothing" } else { "release" };
    let version = said(Command::new(&program.path).args(&program.arguments).arg("--version"));
    let postgres = testkit::postgres::version();
    let facts = [
        ("processor", field("/proc/cpuinfo", "model name")),
        ("cores, shared by everything", Some(cores.to_string())),
        ("memory", memory_gb),
        ("kernel", read("/proc/sys/kernel/osrelease")),
        ("Redis", said(Command::new("redis-server").arg("--version"))),
        ("PostgreSQL", Some(postgres)),
        ("service", version.map(|version| format!("{version}, {build}"))),
    ];
    let line = |(name, fact): &(&str, Option<String>)| {
        format!("- {name}: {}\n", fact.as_deref().unwrap_or("not known"))
    };
    facts.iter().map(line).collect()
}

fn read(path: &str) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value of a line `name : value`.
fn field(path: &str, name: &str) -> Option<String> {
    let text = read(path)?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn said(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().next()?.trim().to_owned())
}

/// How long the disk under the servers' folders takes to sync a page.
fn sync_ms() -> Option<f64> {
    let file = tempfile::tempfile().ok()?;
    let time = |place: usize| -> Option<f64> {
        let offset = u64::try_from(place * SYNC_BYTES).ok()?;
        let begun = Instant::now();
        file.write_all_at(&[7; SYNC_BYTES], offset).ok()?;
        file.sync_data().ok()?;
        Some(begun.elapsed().as_secs_f64() * 1e3)
    };
    let times: Option<Vec<f64>> = (0..SYNCS).map(time).collect();
    Some(median(times?))
}

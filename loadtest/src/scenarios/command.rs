//! A command of the program, run to its end: its time, its memory, and its output.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::service::Deployment;

use crate::report::{Section, figure};
use crate::stage::resident_peak_mb;

/// Pause between two looks at its memory.
const POLL_PERIOD: Duration = Duration::from_millis(2);

/// Longest time that it may take.
const LIMIT: Duration = Duration::from_secs(1_800);

/// A command that has ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// The most memory that it had, in MiB.
    pub(super) peak_mb: f64,
    /// How long it took.
    pub(super) seconds: f64,
    /// What it wrote to its standard output.
    said: String,
    /// Its messages for people.
    told: String,
}

impl Ended {
    /// Runs a command; an unsuccessful end is a breach.
    pub(super) fn run(deployment: &Deployment, arguments: &[&str], section: &mut Section) -> Self {
        let [out, err] = ["command.out", "command.err"].map(|name| deployment.path(name));
        let mut command = deployment.command(arguments);
        command.stdout(File::create(&out).expect("a file for what it says"));
        command.stderr(File::create(&err).expect("a file for what it tells"));
        let begun = Instant::now();
        let mut process = command.spawn().expect("the program starts");
        let mut peak_mb: f64 = 0.0;
        let status = loop {
            peak_mb = peak_mb.max(resident_peak_mb(process.id()).unwrap_or_default());
            let status = process.try_wait().expect("a process of ours");
            if status.is_some() || begun.elapsed() > LIMIT {
                break status;
            }
            std::thread::park_timeout(POLL_PERIOD);
        };
        let seconds = begun.elapsed().as_secs_f64();
        let [said, told] = [out, err].map(|file| std::fs::read_to_string(file).unwrap_or_default());
        let complaint = match status {
            Some(status) if status.success() => None,
            Some(status) => Some(format!("ends with {status}")),
            None => {
                let _ = process.kill();
                let _ = process.wait();
                Some(format!("has not ended in {seconds:.0} s"))
            }
        };
        section.breaches.extend(complaint.map(|complaint| {
            format!("`numerator {}` {complaint}: {said}{told}", arguments.join(" "))
        }));
        Ended { peak_mb, seconds, said, told }
    }

    /// Its output as JSON; null if it is none.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.said).unwrap_or_default()
    }

    /// Whether its messages for people include this line.
    pub(super) fn has_told(&self, wanted: &str) -> bool {
        self.told.lines().any(|line| line == wanted)
    }

    /// Its memory, as text.
    pub(super) fn memory(&self) -> String {
        format!("{} MiB at most", figure(self.peak_mb))
    }
}

//! What `verify` takes: its time and its memory.

use std::time::{Duration, Instant};

use crate::report::{Reach, Row, Section, figure};
use crate::stage::{Served, resident_peak_mb};

/// Pause between two looks at its memory.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

/// Longest time that it may take.
const LIMIT: Duration = Duration::from_secs(1_800);

/// Most memory that it may take, in MiB, whatever it reads. The program alone takes up to half of
/// it; a million rows that were kept would take more than the rest.
const MEMORY_MAX: f64 = 100.0;

/// One run of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verified {
    peak_mb: f64,
    seconds: f64,
}

impl Verified {
    /// Runs it beside a service; what it finds is a breach.
    pub(super) fn run(service: &Served, section: &mut Section) -> Self {
        let begun = Instant::now();
        let log = service.deployment.path("verify.log");
        let mut process = service.deployment.start(&["verify", "--json"], &log);
        let mut peak_mb: f64 = 0.0;
        let ended = loop {
            peak_mb = peak_mb.max(resident_peak_mb(process.id()).unwrap_or_default());
            let ended = process.wait(LOOK_PERIOD);
            if ended.is_some() || begun.elapsed() > LIMIT {
                break ended;
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let complaint = match ended {
            Some(status) if status.success() => None,
            Some(_) => Some("verify is not clean".to_owned()),
            None => Some(format!("verify has not ended in {seconds:.0} s")),
        };
        section.breaches.extend(complaint.map(|complaint| format!("{complaint}: {}", said())));
        Verified { peak_mb, seconds }
    }

    /// Its memory for a journal of some rows.
    pub(super) fn row(&self, journal: &str) -> Row {
        let row = Row::new(format!("verify of {journal}, memory at most"), self.peak_mb, "MiB");
        let row = row.reach(Reach::AtMost(MEMORY_MAX));
        row.note(format!("in {} s", figure(self.seconds)))
    }
}

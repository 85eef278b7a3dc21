//! What the process itself uses, under the names that Prometheus gives these metrics.
//!
//! Processor seconds are a counter with a fraction, which the recorder does not have: its lines are
//! written here.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use metrics::Gauge;

use super::definitions::{Definition, PROCESS_CPU, PROCESS_FDS, PROCESS_FDS_MAX, PROCESS_MEMORY};

/// Resource use of a process. A value that cannot be read is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessUse {
    /// Processor seconds since the start.
    pub cpu_seconds: Option<f64>,
    /// Bytes of memory that are not swapped out.
    pub resident_bytes: Option<f64>,
    /// Open descriptors.
    pub open_fds: Option<f64>,
    /// Most descriptors that may be open; infinite if there is no bound.
    pub max_fds: Option<f64>,
}

/// Shows it.
pub(super) struct ProcessMeter {
    cpu_seconds: Mutex<Option<f64>>,
    resident: Gauge,
    open_fds: Gauge,
    max_fds: Gauge,
}

impl ProcessMeter {
    pub(super) fn new() -> Self {
        let gauge = |definition: Definition| {
            let gauge = definition.gauge(&[]);
            gauge.set(f64::NAN);
            gauge
        };
        ProcessMeter {
            cpu_seconds: Mutex::default(),
            resident: gauge(PROCESS_MEMORY),
            open_fds: gauge(PROCESS_FDS),
            max_fds: gauge(PROCESS_FDS_MAX),
        }
    }

    pub(super) fn show(&self, seen: &ProcessUse) {
        let ProcessUse { cpu_seconds, resident_bytes, open_fds, max_fds } = *seen;
        self.resident.set(resident_bytes.unwrap_or(f64::NAN));
        self.open_fds.set(open_fds.unwrap_or(f64::NAN));
        self.max_fds.set(max_fds.unwrap_or(f64::NAN));
        *self.cpu_seconds.lock().unwrap_or_else(PoisonError::into_inner) = cpu_seconds;
    }

    /// Appends the lines of the counter, if it is known.
    pub(super) fn render(&self, text: &mut String) {
        let seconds = *self.cpu_seconds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seconds) = seconds {
            let Definition { name, kind, help, .. } = PROCESS_CPU;
            let kind = kind.word();
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {seconds}");
        }
    }
}

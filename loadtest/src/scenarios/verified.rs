//! The cost of `verify`: its time and its memory.

use testkit::service::Deployment;

use super::command::Ended;
use crate::report::{Goal, Row, Section, figure};

/// Most memory that it may take, in MiB, whatever it reads. The program alone takes up to half of
/// it; a million rows kept in memory would take more than the rest.
const MEMORY_MAX: f64 = 100.0;

/// One run of it.
#[derive(Clone, Debug)]
pub(super) struct Verified(Ended);

impl Verified {
    /// Runs it next to a service; a finding is a breach.
    pub(super) fn run(deployment: &Deployment, section: &mut Section) -> Self {
        Verified(Ended::run(deployment, &["verify", "--json"], section))
    }

    /// Its memory for a journal of some rows.
    pub(super) fn row(&self, journal: &str) -> Row {
        let row = Row::new(format!("verify of {journal}, memory at most"), self.0.peak_mb, "MiB");
        let row = row.goal(Goal::AtMost(MEMORY_MAX));
        row.note(format!("in {} s", figure(self.0.seconds)))
    }
}

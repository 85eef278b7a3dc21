//! The setting of a walk through the runbook: its series, and a process that is of no use.

use testkit::process::free_port;
use testkit::service::Service;

use crate::deployment::Deployment;

/// A series whose counter restarts each year.
pub(super) const YEARLY: &str = "[[series]]\ncode = \"RCV\"\nname = \"Receipts\"\n\
    template = \"RCV-{YEAR}-{SEQ:4}\"\nserves = { types = [\"RCV\"] }\n\
    [[series.serials]]\ncounter = [\"type\"]\nreset = \"year\"\n";

/// A series `LOAD` whose serial has this width.
pub(super) fn load_series(width: u8) -> String {
    format!(
        "[[series]]\ncode = \"LOAD\"\nname = \"LOAD\"\ntemplate = \"L-{{SEQ:{width}}}\"\n\
         serves = {{ types = [\"LOAD\"] }}\n[[series.serials]]\ncounter = [\"type\"]\n"
    )
}

/// Titles of the parts of a chapter of the page.
pub(super) fn titles(page: &'static str, chapter: &str) -> Vec<&'static str> {
    let (_, rest) = page.split_once(&format!("\n## {chapter}\n")).expect("the chapter");
    let chapter = rest.split("\n## ").next().unwrap_or_default();
    chapter.split("\n### ").skip(1).filter_map(|section| section.lines().next()).collect()
}

/// A process whose `redis.url` leads nowhere, with its settings.
pub(super) struct Blind(Service, #[expect(dead_code, reason = "kept")] Deployment);

impl Blind {
    /// Starts it in addition to a deployment.
    pub(super) fn start(beside: &Deployment) -> Self {
        let url = format!("redis://127.0.0.1:{}", free_port());
        let mut deployment = Deployment::new(beside.database_url(), Some(&url));
        deployment.extra.clone_from(&beside.extra);
        Blind(deployment.launch(), deployment)
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn stop(self) {
        assert!(self.0.terminate(), "a process that is told to end exits 0");
    }
}

//! A service under load: its process, its metrics, and what its ledger holds.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use testkit::service::{Deployment, SQLITE_FILE, Service};

use super::Stage;
use crate::client::Connection;
use crate::load::Work;
use crate::sqlite;

/// Longest wait until everything that was handed out is in the journal.
const JOURNAL_LIMIT: Duration = Duration::from_secs(120);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(100);

/// A running service.
pub(crate) struct Served {
    /// Its settings and its folder.
    pub(crate) deployment: Deployment,
    service: Service,
    /// The schema of its ledger in PostgreSQL, and the prefix of its keys in Redis; without it the
    /// ledger is an SQLite file in the deployment's folder.
    pub(crate) schema: Option<String>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts a process and waits until it is ready.
    pub(crate) fn start(deployment: Deployment, schema: Option<String>) -> Self {
        let service = deployment.serve();
        let address = service.url.trim_start_matches("http://").parse().expect("an address");
        Served { deployment, service, schema, address }
    }

    /// The schema of its ledger.
    ///
    /// # Panics
    /// When its ledger is no PostgreSQL.
    pub(crate) fn schema(&self) -> &str {
        self.schema.as_deref().expect("a ledger in PostgreSQL")
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.service.id()
    }

    /// Ends it in good order.
    ///
    /// # Panics
    /// When it does not end well: then something was left undone.
    pub(crate) fn end(self) -> Deployment {
        assert!(self.service.terminate(), "the service does not end well");
        self.deployment
    }

    /// What is wrong with the numbers that were received from it, among themselves and compared
    /// with the journal, once that has as many.
    pub(crate) fn complaints(&self, stage: &Stage, work: &dyn Work) -> Vec<String> {
        let mut complaints = work.findings();
        complaints.extend(self.await_journal(stage, work.received()).err());
        complaints
    }

    /// Waits until the journal has this many numbers; returns what it has if that does not happen.
    pub(crate) fn await_journal(&self, stage: &Stage, numbers: u64) -> Result<(), String> {
        let deadline = Instant::now() + JOURNAL_LIMIT;
        loop {
            let journaled = self.journaled(stage)?;
            if journaled == numbers {
                return Ok(());
            }
            if journaled > numbers || Instant::now() > deadline {
                return Err(format!("{numbers} numbers came, the journal has {journaled}"));
            }
            std::thread::park_timeout(POLL);
        }
    }

    /// Numbers in the journal.
    fn journaled(&self, stage: &Stage) -> Result<u64, String> {
        let sum = "select coalesce(sum((last_value - first_value) / step + 1), 0) from";
        let text = match &self.schema {
            Some(schema) => stage.postgres.sql(&format!("{sum} {schema}.journal_row")),
            None => {
                let file = self.deployment.path(SQLITE_FILE);
                sqlite::read(&file, &format!("{sum} journal_row"))[0].remove(0)
            }
        };
        text.parse().map_err(|_| format!("a sum of {text}"))
    }
}

/// A metric without labels, as a service shows it.
///
/// # Errors
/// When the service does not answer or does not show it.
pub(crate) async fn metric(connection: &mut Connection, name: &str) -> Result<f64, String> {
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = connection.exchange(request).await.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(answer.body);
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).ok_or_else(|| format!("no metric {name}"))
}

//! The ledger: whether it is reachable, has what this program needs, and would accept a process
//! with these settings. Reads only.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::findings::{Findings, Grade};
use crate::clock::SharedClock;
use crate::config::{Keyless, Settings};
use crate::ledger::{
    Deployment, Inspection, Lack, LedgerError, LedgerTimes, Migrate, Node, Partition, Schema,
    ServerFacts, SharedLedger, look,
};

const CHECK: &str = "ledger";
const RIGHTS: &str = "rights";
const CONNECTIONS: &str = "connections";

/// The code of a right that is missing.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The fewest connections that calls share, and those that heartbeat, watch and journal have in
/// addition.
const SHARED_MIN: u64 = 4;
const OWN: u64 = 3;

/// Longest watch of heartbeats; it ends once each has moved, and after `node.ttl`.
const WATCH_MAX: Duration = Duration::from_secs(10);

/// How often they are looked at.
const WATCH_PERIOD: Duration = Duration::from_millis(50);

/// What is known of the ledger, for comparisons.
#[derive(Default)]
pub(super) struct Known {
    /// Whether it was read.
    pub(super) is_read: bool,
    pub(super) deployment: Option<Deployment>,
    /// Running nodes: their heartbeats move.
    pub(super) nodes: Vec<Node>,
    /// Nodes that have not left, and whose heartbeats do not move.
    silent: Vec<Node>,
    pub(super) partitions: Vec<Partition>,
    pub(super) times: Option<LedgerTimes>,
}

impl Known {
    /// Whether it was ever served.
    pub(super) fn is_used(&self) -> bool {
        self.partitions.iter().any(|row| row.epoch > 0)
    }
}

/// Examines it. Results are recorded as they are found: they remain if the ledger stops answering.
pub(super) async fn examine(
    settings: &Settings,
    clock: &SharedClock,
    processes: Option<u64>,
    known: &mut Known,
    findings: &mut Findings,
) {
    let url = &settings.database_url;
    let looked = match look(url, settings.database, Arc::clone(clock)).await {
        Ok(looked) => looked,
        Err(error) => return tell_not_there(&error, findings),
    };
    let Inspection { ledger, schema, refusal, server } = looked;
    if let Some(error) = refusal {
        let says = error.to_string();
        findings.add((CHECK, Grade::SomethingToDo), says, "no process starts before");
    }
    let server = match server.transpose() {
        Ok(server) => server,
        Err(error) => {
            unread("what the server says of itself", &error, findings);
            None
        }
    };
    if let Some(server) = &server {
        judge_server(server, findings);
    }
    let is_current = judge_schema(schema, settings, server.as_ref(), findings);
    let are_rights_read = is_current && read_rights(ledger.lacks().await, findings);
    if is_current {
        read(&ledger, settings, known, findings).await;
    }
    if let Some(server) = &server {
        count_connections(settings, server, processes, known, findings);
    }
    let engine = if server.is_some() { "PostgreSQL" } else { "a file" };
    findings.well_unless_found(CHECK, format!("{engine}, and its schema is up to date"));
    if are_rights_read {
        let says = "tables, keys and rights are all that records need";
        findings.well_unless_found(RIGHTS, says);
    }
}

/// Explains why a connection is refused, or unanswered.
fn tell_not_there(error: &LedgerError, findings: &mut Findings) {
    let says = error.to_string();
    let has = |code: &str| says.contains(&format!("{code}: "));
    let (grade, remedy) = match error {
        LedgerError::Unreachable { .. } if !has("53300") => {
            (Grade::CannotTell, "start it, or correct host and port in database.url")
        }
        _ if has("28P01") || has("28000") => {
            (Grade::SomethingToDo, "correct user and password in database.url")
        }
        _ if has("3D000") => {
            (Grade::SomethingToDo, "create it (`create database`), or correct its name")
        }
        _ if has("53300") => (
            Grade::SomethingToDo,
            "raise max_connections, or lower database.connections_max of the processes",
        ),
        _ => (Grade::SomethingToDo, "correct database.url"),
    };
    findings.add((CHECK, grade), says, remedy);
}

fn unread(what: &str, error: &LedgerError, findings: &mut Findings) {
    let says = format!("{what} cannot be read: {error}");
    if says.contains(INSUFFICIENT_PRIVILEGE) {
        let remedy = "run deploy/postgres/roles.sql as the owner of the tables";
        return findings.add((RIGHTS, Grade::SomethingToDo), says, remedy);
    }
    findings.add((CHECK, Grade::CannotTell), says, "see the log of the database, and ask again");
}

fn judge_server(server: &ServerFacts, findings: &mut Findings) {
    if server.is_standby {
        let says = "the server of database.url is a standby, and takes no writes";
        findings.add((CHECK, Grade::SomethingToDo), says, "name the primary, or promote this one");
    } else if server.is_read_only {
        let says = "sessions are read-only (default_transaction_read_only)";
        let remedy = "set it off, for the server, the database and the user of database.url";
        findings.add((CHECK, Grade::SomethingToDo), says, remedy);
    }
    if server.owns_record {
        let says = "the user of database.url owns the tables, or is a superuser: nothing protects \
                    the record from it";
        let remedy = "give the service a user of its own: deploy/postgres/roles.sql";
        findings.add((RIGHTS, Grade::Hazard), says, remedy);
    }
}

/// Whether its tables are those of this program.
fn judge_schema(
    schema: Result<Schema, LedgerError>,
    settings: &Settings,
    server: Option<&ServerFacts>,
    findings: &mut Findings,
) -> bool {
    let to_do = (CHECK, Grade::SomethingToDo);
    match schema {
        Ok(Schema::Current) => return true,
        Ok(Schema::Older { has, needs }) => {
            let says =
                format!("the schema is older than this program (migration {has} of {needs})");
            if settings.database.migrate == Migrate::Explicit {
                let remedy = "run `numerator migrate` as the owner of the tables, then \
                              deploy/postgres/roles.sql";
                findings.add(to_do, says, remedy);
            } else {
                findings.well(CHECK, format!("{says}: the next start brings it up to date"));
            }
        }
        Ok(Schema::Empty) => match server {
            Some(server) if !server.has_schema => {
                let says = "no schema of the search path is there";
                findings.add(to_do, says, "`create schema`, or correct database.url");
            }
            Some(server) if !server.may_create => {
                let says = "the ledger is empty, and the user of database.url may make no tables";
                let remedy = "run `numerator migrate` as the owner of the database, then \
                              deploy/postgres/roles.sql";
                findings.add(to_do, says, remedy);
            }
            _ => findings.well(CHECK, "is empty: the first process sets it up"),
        },
        Err(error @ LedgerError::Migration(_)) => {
            let remedy = "use the program that migrated it, or a newer one";
            findings.add(to_do, error.to_string(), remedy);
        }
        Err(error) => unread("the state of its schema", &error, findings),
    }
    false
}

/// Reads the values for the comparison with settings and Redis, and compares the settings.
async fn read(
    ledger: &SharedLedger,
    settings: &Settings,
    known: &mut Known,
    findings: &mut Findings,
) {
    match ledger.check_up().await {
        Ok(checkup) => {
            for hazard in checkup.config_warnings {
                findings.add((CHECK, Grade::Hazard), hazard.to_string(), hazard.cure());
            }
            for unchecked in checkup.unchecked {
                let says = format!("not checked: {unchecked}");
                findings.add((CHECK, Grade::Hazard), says, "see docs/runbook.md, hazards");
            }
        }
        Err(error) => unread("how it keeps commits", &error, findings),
    }
    // Of the times that nodes reported, regardless of age.
    match ledger.times(i64::MAX).await {
        Ok(times) => known.times = Some(times),
        Err(error) => unread("the time", &error, findings),
    }
    let patience = settings.allocator.node_ttl.min(WATCH_MAX);
    let nodes = watch(ledger, settings.allocator.node_heartbeat(), patience).await;
    match (ledger.stored_deployment().await, nodes, ledger.partitions().await) {
        (Ok(deployment), Ok((nodes, silent)), Ok(partitions)) => {
            let times = known.times.take();
            *known = Known { is_read: true, deployment, nodes, silent, partitions, times };
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            return unread("deployment, nodes and partitions", &error, findings);
        }
    }
    tell_silent(&known.silent, patience, findings);
    compare(ledger, settings, known, findings).await;
}

/// The nodes that have not left: those whose heartbeats move, and those whose heartbeats do not.
/// Writes none to find out, so in a ledger that takes no heartbeats none moves.
async fn watch(
    ledger: &SharedLedger,
    heartbeat: Duration,
    patience: Duration,
) -> Result<(Vec<Node>, Vec<Node>), LedgerError> {
    let (first, deadline) = (ledger.nodes().list().await?, Instant::now() + patience);
    if first.is_empty() || patience < heartbeat * 2 {
        return Ok((first, Vec::new()));
    }
    loop {
        tokio::time::sleep(WATCH_PERIOD).await;
        let is_running = |node: &Node| {
            let before = first.iter().find(|it| it.node_id == node.node_id);
            before.is_none_or(|before| before.beat != node.beat)
        };
        let (running, silent): (Vec<Node>, Vec<Node>) =
            ledger.nodes().list().await?.into_iter().partition(is_running);
        if silent.is_empty() || Instant::now() >= deadline {
            return Ok((running, silent));
        }
    }
}

fn tell_silent(silent: &[Node], patience: Duration, findings: &mut Findings) {
    if silent.is_empty() {
        return;
    }
    let labels: Vec<&str> = silent.iter().map(|node| &*node.label).collect();
    let says = format!(
        "no heartbeat for {patience:?} from processes that have not left: {}",
        labels.join(", ")
    );
    let remedy = "nothing, where they died: a process that runs, or starts, adopts what they left; \
                  else see why they do not reach the ledger";
    findings.add((CHECK, Grade::Hazard), says, remedy);
}

/// Reports what a start would lack; returns whether that could be read.
fn read_rights(lacks: Result<Vec<Lack>, LedgerError>, findings: &mut Findings) -> bool {
    match lacks {
        Ok(lacks) => {
            lacks.iter().for_each(|lack| tell_lack(lack, findings));
            true
        }
        Err(error) => {
            unread("what it lacks", &error, findings);
            false
        }
    }
}

fn tell_lack(lack: &Lack, findings: &mut Findings) {
    let said = lack.to_string();
    let (says, remedy) = said.split_once(": ").unwrap_or((&said, "put the backup back whole"));
    findings.add((RIGHTS, Grade::SomethingToDo), says, remedy);
}

/// Compares the settings with those of the ledger's setup and of other processes.
async fn compare(
    ledger: &SharedLedger,
    settings: &Settings,
    known: &Known,
    findings: &mut Findings,
) {
    const SETTINGS: (&str, Grade) = ("settings", Grade::SomethingToDo);
    if let Some(there) = &known.deployment {
        let (here, prefix) = (settings.partitions, &settings.redis_prefix);
        if there.partitions != here {
            let says = format!("partitions is {here} here and {} in the ledger", there.partitions);
            findings.add(SETTINGS, says, format!("write partitions = {}", there.partitions));
        }
        if there.prefix != *prefix {
            let says =
                format!("redis.prefix is {prefix:?} here and {:?} in the ledger", there.prefix);
            findings.add(SETTINGS, says, format!("write redis.prefix = {:?}", there.prefix));
        }
    }
    let window_ms = i64::try_from(settings.allocator.idempotency_window_ms()).unwrap_or(i64::MAX);
    match ledger.agreed_window_ms().await {
        // Silent nodes count until they are adopted.
        Ok(Some(agreed_ms))
            if agreed_ms != window_ms && (known.nodes.len() + known.silent.len()) > 0 =>
        {
            let says = format!(
                "idempotency.window is {window_ms} ms here, and the processes of the ledger go by \
                 {agreed_ms} ms: none with another one starts beside them"
            );
            findings.add(SETTINGS, says, "write the same, or stop all of them first");
        }
        Ok(_) => {}
        Err(error) => unread("the window that processes go by", &error, findings),
    }
    if !settings.audit.has_key() && settings.audit.keyless == Keyless::Refused {
        match ledger.checkpoints().last(None).await {
            Ok(Some(last)) => {
                let says = format!(
                    "audit.key is not set, and the ledger is under seal (checkpoint {}): no \
                     process starts without it",
                    last.number
                );
                let remedy = "set audit.key to the key of the other processes; where their unit or \
                              environment names it, give this command the same";
                findings.add(SETTINGS, says, remedy);
            }
            Ok(None) => {}
            Err(error) => unread("its checkpoints", &error, findings),
        }
    }
}

/// Compares what all processes may open, plus one command, with what the server has.
fn count_connections(
    settings: &Settings,
    server: &ServerFacts,
    processes: Option<u64>,
    known: &Known,
    findings: &mut Findings,
) {
    let each = u64::from(settings.database.connections_max).max(SHARED_MIN) + OWN;
    // Commands come and go.
    let serving = known.nodes.iter().filter(|node| node.sight.is_some()).count();
    let processes = processes.unwrap_or(serving.max(1) as u64);
    let (needed, there) = (each * (processes + 1), server.connections());
    let named = if processes == 1 { "process" } else { "processes" };
    let says = format!(
        "{processes} {named} and a command may open {needed} connections (database.\
         connections_max + {OWN} each), and the server has {there} for this user"
    );
    if needed <= there {
        return findings.well(CONNECTIONS, says);
    }
    let wanted = server.connections_max + (needed - there);
    let remedy = format!(
        "raise max_connections to {wanted} (or the limit of the user or the database), or lower \
         database.connections_max"
    );
    findings.add((CONNECTIONS, Grade::SomethingToDo), says, remedy);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_could_not_be_read_are_not_called_well() {
        let away = || LedgerError::Unreachable { cause: "timed out".into(), maybe_written: false };
        let mut findings = Findings::default();
        assert!(!read_rights(Err(away()), &mut findings));
        assert!(findings.lines()[1].starts_with("cannot tell  ledger"), "{:?}", findings.lines());
        let mut findings = Findings::default();
        assert!(read_rights(Ok(Vec::new()), &mut findings));
        assert_eq!(findings.lines(), ["all is well"]);
    }

    #[test]
    fn a_server_without_a_connection_to_spare_answers() {
        let mut findings = Findings::default();
        let cause = "53300: too many clients already".into();
        tell_not_there(&LedgerError::Unreachable { cause, maybe_written: false }, &mut findings);
        assert!(findings.lines()[1].contains("raise max_connections"), "{:?}", findings.lines());
    }
}

//! A ledger that went back (F9): noticed, held, released by an operator, and never a number twice.

mod between;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use numerator::clock::SystemClock;
use numerator::engine::node::{LastSeenFile, Membership, ProcessSettings};
use numerator::ledger::LedgerError;
use numerator::node::{NodeId, system_random};
use testkit::eventually::eventually;
use testkit::load::{self, Running};
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::{Deployment, program_with};
use crate::faults::assert_all_journaled;
use crate::load::open;

const CONNECTIONS: usize = 16;

/// A release with the knowledge that Redis took all numbers: no process runs that could vouch.
const RELEASE_BY_REDIS: [&str; 7] =
    ["reconcile", "--ledger-restored", "--hold", "--apply", "--json", "--margin", "0"];

/// How soon a running service notices.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// Waits until a service refuses because the partition is held.
pub(crate) async fn assert_held(service: &Service) {
    let client = testkit::client();
    let mut attempt = 0;
    eventually(NOTICE_LIMIT, async || {
        attempt += 1;
        let document = format!("while-held-{attempt}");
        let (status, body) = load::take(&client, &service.url, &document).await;
        let kind = body["code"].as_str().unwrap_or_default();
        if status != 503 || !kind.ends_with("partition-held") {
            return Err(format!("not held: {status} {body} {}", service.log()));
        }
        // A flight under way as the ledger went back may have taken some: the refusal says so.
        if body["number_taken"] != "no" { Err(format!("{body}")) } else { Ok(()) }
    })
    .await;
}

/// The same, and that the ledger has it on record: a process refuses as soon as it notices, before
/// it has reported there. A release in that moment asks for a margin.
pub(crate) async fn assert_held_on_record(deployment: &Deployment, service: &Service) {
    assert_held(service).await;
    let ledger = open(deployment).await;
    eventually(NOTICE_LIMIT, async || {
        let events = ledger.events().list(100).await.unwrap();
        let is_on_record = events.iter().any(|event| event.kind == "ledger-went-back");
        is_on_record.then_some(()).ok_or_else(|| format!("not on record: {}", service.log()))
    })
    .await;
}

/// Waits until this many rows are in the journal.
async fn reach_journal(deployment: &Deployment, rows: u64) {
    let ledger = open(deployment).await;
    eventually(Duration::from_secs(60), async || {
        let journaled = ledger.register().totals().await.unwrap().journal;
        if journaled < rows { Err(format!("{journaled} of {rows} rows")) } else { Ok(()) }
    })
    .await;
}

/// How many beats of each node the ledger has.
async fn beats(deployment: &Deployment) -> Vec<(NodeId, i64)> {
    let nodes = open(deployment).await.nodes().list().await.unwrap();
    nodes.into_iter().map(|node| (node.node_id, node.beat)).collect()
}

/// Waits until it has more of each: what was confirmed after a copy was made, and can be missed.
async fn reach_beats(deployment: &Deployment, before: &[(NodeId, i64)]) {
    eventually(NOTICE_LIMIT, async || {
        let now = beats(deployment).await;
        let is_later = |(node, beat): &(NodeId, i64)| {
            now.iter().any(|(other, later)| other == node && later > beat)
        };
        before.iter().all(is_later).then_some(()).ok_or_else(|| format!("{before:?} {now:?}"))
    })
    .await;
}

/// The partition that has counters, as `reconcile --json` shows it.
fn used(output: &str) -> serde_json::Value {
    let answer: serde_json::Value = serde_json::from_str(output).unwrap();
    let partitions = answer["partitions"].as_array().unwrap();
    assert_eq!(partitions.len(), 9, "the ledger is held as a whole: {answer}");
    let used = |row: &&serde_json::Value| row["epoch"].as_u64() > Some(0);
    let of_load = |row: &&serde_json::Value| row["records"].as_u64() > Some(0);
    let found = partitions.iter().find(of_load).or_else(|| partitions.iter().find(used));
    found.expect("a partition that was used").clone()
}

/// The gap is not blamed on a node.
fn assert_explained(deployment: &Deployment) {
    let gaps = deployment.ok(&["gaps", "--explain"]);
    assert!(gaps.contains("released after its ledger had gone back"), "{gaps}");
    assert!(!gaps.contains("outbox"), "{gaps}");
}

/// Load, a copy, more load, the copy restored under the running service; what holds afterwards.
async fn the_ledger_goes_back(postgres: &mut Postgres, deployment: &Deployment, options: &[&str]) {
    deployment.apply_load_series();
    // One that cannot report what was confirmed to it: otherwise they continued automatically.
    let (service, mut lost) = (deployment.serve(), deployment.serve());
    let load = Running::start(&service.url, CONNECTIONS);
    reach_journal(deployment, 200).await;
    postgres.back_up();
    let copied = open(deployment).await.register().totals().await.unwrap().journal;
    let beats = beats(deployment).await;
    // Redis continues while the ledger starts: only what it has confirmed since can be forgotten.
    // Of that, beats and batches show it; on the database path each take does.
    reach_journal(deployment, copied + 500).await;
    if deployment.has_redis() {
        reach_beats(deployment, &beats).await;
    }
    lost.kill();
    postgres.restore();
    assert_held(&service).await;
    let mut seen = load.finish().await;
    assert_held_on_record(deployment, &service).await;

    let looked = deployment.ok(&["reconcile", "--ledger-restored", "--json"]);
    assert!(used(&looked)["released"].is_null(), "{looked}");
    assert_held(&service).await;
    let arguments = [&["reconcile", "--ledger-restored", "--apply", "--json"], options].concat();
    let released = deployment.ok(&arguments);
    println!("{}", used(&released));
    assert!(used(&released)["released"].is_u64(), "{released}");
    let again = deployment.ok(&arguments);
    assert!(again.contains("\"partitions\": []"), "nothing is left to do: {again}");

    let load = Running::start_as(&service.url, CONNECTIONS, "after");
    load.reach(500).await;
    let after = load.finish().await;
    assert!(after.numbers.len() > 400, "issuing goes on: {:?} {}", after.failures, service.log());
    seen.numbers.extend(after.numbers);
    seen.assert_no_duplicate();
    // The client that asks again gets the number that the ledger had forgotten.
    let client = testkit::client();
    for (document, number) in seen.numbers.iter().step_by(seen.numbers.len() / 50) {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!((status, body["document_number"].as_str()), (200, Some(number.as_str())));
    }
    service.terminate();
    assert_all_journaled(&open(deployment).await, &seen).await;
    println!("{} numbers, {}", seen.numbers.len(), deployment.assert_clean());
    let events = open(deployment).await.events().list(100).await.unwrap();
    for kind in ["ledger-went-back", "ledger-restored"] {
        assert!(events.iter().any(|event| event.kind == kind), "{kind} is on record: {events:?}");
    }
}

#[tokio::test]
async fn a_ledger_put_back_under_redis_is_noticed_held_and_released_without_a_duplicate() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("back"), Some(&redis.url()));
    // The ledger is away for longer than an epoch needs to close, else the service could not vouch.
    deployment.extra = "[recovery]\nbarrier_max = \"1m\"\n".into();
    the_ledger_goes_back(&mut postgres, &deployment, &[]).await;
}

#[tokio::test]
async fn a_ledger_put_back_on_the_database_path_is_told_again_what_the_service_remembers() {
    let mut postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("back"), None);
    // Heartbeats, a twelfth of it apart, are so rare that none comes between the copy and what is
    // forgotten of the takes after it. The new identity waits until the others are silent.
    deployment.extra = "[node]\nttl = \"36s\"\n".into();
    the_ledger_goes_back(&mut postgres, &deployment, &["--margin", "0"]).await;
}

/// Goal: nothing is written where it cannot be found. Method: an older copy replaces the SQLite
/// file while a service issues; another file is what it has open.
#[tokio::test]
async fn a_file_put_back_beside_a_running_service_is_held_and_told_again() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let service = deployment.serve();
    let load = Running::start(&service.url, CONNECTIONS);
    reach_journal(&deployment, 200).await;
    copy_ledger(&deployment, &copy).await;
    let copied = load.asked();
    load.reach(copied + 500).await;
    put_in_place(&copy, &file);
    assert_held_on_record(&deployment, &service).await;
    let mut seen = load.finish().await;
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
    let load = Running::start_as(&service.url, CONNECTIONS, "after");
    load.reach(500).await;
    seen.numbers.extend(load.finish().await.numbers);
    seen.assert_no_duplicate();
    assert!(service.terminate());
    assert_all_journaled(&open(&deployment).await, &seen).await;
    deployment.assert_clean();
}

/// Goal: the same for a file that is removed: no number until it is back, and then the next one.
#[tokio::test]
async fn a_file_taken_away_beside_a_running_service_gives_no_number_until_it_is_back() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let (file, away) = (deployment.path("numerator.db"), deployment.path("away.db"));
    let service = deployment.serve();
    let client = testkit::client();
    load::documents(&service.url, 1, 5).await.assert_contiguous(5);
    std::fs::rename(&file, &away).unwrap();
    let (status, body) = load::take(&client, &service.url, "away").await;
    let (kind, taken) = (body["code"].as_str(), body["number_taken"].as_str());
    assert_eq!((status, kind, taken), (503, Some("database-connection"), Some("no")), "{body}");
    assert!(!file.exists(), "nothing begins anew");
    std::fs::rename(&away, &file).unwrap();
    load::documents(&service.url, 1, 6).await.assert_contiguous(6);
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a barred process does not take an identity to which nothing was confirmed, and so forget
/// what the ledger has forgotten. Method: the ledger forgets a heartbeat just before.
#[tokio::test]
async fn an_identity_is_given_up_only_where_the_ledger_remembers_it() {
    let deployment = Deployment::sqlite(None);
    let ledger = open(&deployment).await;
    let last_seen_file = LastSeenFile::within(&deployment.path("data"), system_random());
    let (own, bounds) = (Arc::clone(&ledger), ProcessSettings::default());
    let joining = Membership::join(own, Arc::new(SystemClock), last_seen_file, &bounds);
    let membership = joining.await.unwrap();
    let barred = membership.node();
    membership.renew(barred).await.unwrap();
    let node = membership.node();
    assert_ne!(node, barred);
    ledger.nodes().heartbeat(node, None).await.unwrap();
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    sqlx::query("update node set beat = 0").execute(&pool).await.unwrap();
    let error = membership.renew(node).await.expect_err("forgotten");
    assert!(matches!(error, LedgerError::WentBack(_)), "{error}");
    assert_eq!((membership.node(), membership.ledger_went_back()), (node, true));
}

/// Goal: no process is left to notice, so the first one to open the ledger does. Method: a copy of
/// the SQLite file is restored while no service runs; Redis alone remembers its numbers.
#[tokio::test]
async fn a_ledger_restored_while_nothing_ran_is_held_when_it_is_opened_and_learns_from_redis() {
    let redis = Redis::start();
    let program = program_with(&["NUMERATOR__IDEMPOTENCY__KEEP_WHOLE=true".to_owned()]);
    let deployment = Deployment::sqlite_of(program, Some(&redis.url()));
    deployment.apply_load_series();
    let mut seen = put_back_while_nothing_runs(&deployment).await;

    let released = ["reconcile", "--ledger-restored", "--apply", "--json", "--margin", "0"];
    let released = deployment.ok(&released);
    let used = used(&released);
    println!("{used}");
    assert_eq!(used["records"], 400, "{used}");
    // The copy may lack some of the first hundred, which were not journaled yet.
    assert!(used["journaled"].as_u64() >= Some(300), "{used}");
    assert_all_journaled(&open(&deployment).await, &seen).await;
    seen.numbers.extend(a_hundred_more(&deployment).await.numbers);
    seen.assert_no_duplicate();
    assert_all_journaled(&open(&deployment).await, &seen).await;
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 1, "the rest of the old ceiling: {report}");
    assert_explained(&deployment);
}

/// Goal: what no process remembers is a gap, and never a second document's number. Method: the
/// same, but Redis keeps no more of a journaled number than that there was one.
#[tokio::test]
async fn what_a_restored_ledger_and_redis_have_forgotten_is_a_gap_and_not_issued_again() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    let mut seen = put_back_while_nothing_runs(&deployment).await;
    let released = deployment.ok(&RELEASE_BY_REDIS);
    println!("{released}");
    assert!(released.contains("\"released\": 2"), "{released}");
    seen.numbers.extend(a_hundred_more(&deployment).await.numbers);
    seen.assert_no_duplicate();
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 1, "what was forgotten: {report}");
    assert_explained(&deployment);
}

/// Takes 400 numbers and restores a copy of the ledger from before the last 300.
async fn put_back_while_nothing_runs(deployment: &Deployment) -> load::Seen {
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    let service = deployment.serve();
    let mut seen = load::documents(&service.url, 4, 100).await;
    copy_ledger(deployment, &copy).await;
    seen.numbers.extend(load::documents(&service.url, 4, 400).await.numbers);
    assert!(service.terminate());
    put_in_place(&copy, &file);
    seen
}

/// Backs up an embedded ledger.
pub(crate) async fn copy_ledger(deployment: &Deployment, copy: &Path) {
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let copied = format!("vacuum into '{}'", copy.display());
    sqlx::query(sqlx::AssertSqlSafe(copied)).execute(&pool).await.unwrap();
    pool.close().await;
}

/// Replaces an embedded ledger that no process has open by a copy.
pub(crate) fn put_in_place(copy: &Path, file: &Path) {
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    std::fs::rename(copy, file).unwrap();
}

async fn a_hundred_more(deployment: &Deployment) -> load::Seen {
    let service = deployment.serve();
    let load = Running::start_as(&service.url, 4, "after");
    load.reach(100).await;
    let seen = load.finish().await;
    assert!(service.terminate());
    seen
}

#[tokio::test]
async fn where_redis_cannot_tell_a_release_needs_a_margin() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let release = ["reconcile", "--ledger-restored", "--hold", "--apply"];
    let output = deployment.run(&release);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("1 of 9 partitions are held still") && told.contains("--margin"),
        "{told}"
    );
    // A counter that needs none is released without a gap, and reported although the command fails.
    let released = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(released.matches("open at epoch").count(), 8, "{released}");
    assert_eq!(released.matches("--margin is needed").count(), 1, "{released}");
    // What would be left of a counter is reported before it is done.
    let look = |margin| deployment.ok(&["reconcile", "--ledger-restored", "--margin", margin]);
    let much = look("99999999");
    assert!(much.contains("the margin uses up series LOAD: SEQ of type=LOAD"), "{much}");
    assert!(!look("100").contains("uses up"), "{}", look("100"));
    let rest = ["reconcile", "--ledger-restored", "--apply", "--margin", "100"];
    assert_eq!(deployment.ok(&rest).matches("open at epoch").count(), 1);
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000102\n");
    let report = deployment.assert_clean();
    assert_eq!(report["totals"]["gaps"], 1, "{report}");
    assert_explained(&deployment);
}

/// Goal: in a ledger that forgot a series' counters the series cannot be removed. Method: files
/// from before its first number are restored while nothing runs, which no row of theirs shows; what
/// Redis knows does, and nothing is removed while it is unavailable; so does the witness of the
/// process.
#[tokio::test]
async fn a_series_whose_counters_a_restored_ledger_forgot_is_not_removed() {
    let (mut postgres, mut redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("back"), Some(&redis.url()));
    deployment.apply_load_series();
    postgres.back_up();
    let service = deployment.serve();
    load::documents(&service.url, 4, 10).await;
    assert!(service.terminate());
    postgres.restore();
    let refused = |deployment: &Deployment, why: &str| {
        let refused = deployment.run(&["series", "remove", "LOAD", "--reason", "a trial"]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(why), "{told}");
    };
    // From another machine, which has no witness of its own.
    let witnesses = deployment.witnesses();
    assert_eq!(witnesses.len(), 1, "{witnesses:?}");
    let kept = std::fs::read(&witnesses[0]).unwrap();
    std::fs::remove_file(&witnesses[0]).unwrap();
    redis.kill();
    refused(&deployment, "redis does not answer");
    redis.restart();
    for witness in deployment.witnesses() {
        std::fs::remove_file(witness).unwrap();
    }
    std::fs::write(&witnesses[0], kept).unwrap();
    refused(&deployment, "series LOAD is not removed while");
    deployment.ok(&RELEASE_BY_REDIS);
}

//! Imports into counters that are in use.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::load::{Running, take};
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// Longest wait for what a test waits for.
const LIMIT: Duration = Duration::from_secs(30);

/// Every second number of series LOAD in a range.
fn list(first: u64, last: u64) -> String {
    let lines = (first..=last).step_by(2).map(|value| format!("L-{value:08},paper {value}\n"));
    format!("number,document_id\n{}", lines.collect::<String>())
}

fn value(number: &str) -> u64 {
    number.strip_prefix("L-").unwrap().parse().unwrap()
}

/// Goal: an import lifts a counter from which a service issues all the time, and neither issues a
/// number of the other's, nor is a value lost. Method: a load on one counter; an import that covers
/// a value which the load passes, then two sound ones, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_counter_is_lifted_while_a_service_issues_from_it() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("used"), Some(&redis.url()));
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 4);
    load.reach(200).await;
    // Above what the journal has, and below what Redis has issued by the time it is applied.
    let (near, faulty) = (load.asked() + 1, list(900_000, 900_100));
    let faulty = file(&deployment, "faulty.csv", &format!("{faulty}L-{near:08},paper\n"));
    let (code, report, stderr) = import(&deployment, &[&faulty, "--series", "LOAD", "--apply"]);
    assert_eq!(code, 1, "{report} {stderr}");
    assert!(stderr.contains("nothing is imported"), "{stderr}");
    let none = deployment.ok(&["gaps", "--reason", "before-import", "--json"]);
    assert!(!none.contains("900"), "{none}");
    for first in [1_000_000, 2_000_000] {
        let sound = file(&deployment, "sound.csv", &list(first, first + 2_000));
        let arguments = [&*sound, "--series", "LOAD"];
        let report = imported(&deployment, &arguments);
        assert!(report["counters"][0]["stands_at"].as_u64().unwrap() > 0, "{report}");
        let apply = [&arguments[..], &["--apply"]].concat();
        // On a busy machine Redis may have the partition back before the rows are written: then
        // none is written, and the refusal says to import again.
        let mut tries = (0..5).map(|_| import(&deployment, &apply));
        let is_done = |(code, _, stderr): &(i32, Value, String)| {
            assert!(*code == 0 || stderr.contains("redis owns it: import again"), "{stderr}");
            *code == 0
        };
        let (_, report, _) = tries.find(is_done).expect("Redis had it back each time");
        assert_eq!((&report["applied"], &report["numbers"]), (&true.into(), &1_001.into()));
        let more = load.asked() + 100;
        load.reach(more).await;
    }
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    seen.assert_no_duplicate();
    let values: BTreeSet<u64> = seen.numbers.values().map(|number| value(number)).collect();
    for first in [1_000_000, 2_000_000] {
        let within = values.range(first - 50_000..=first + 2_000).next();
        assert_eq!(within, None, "between what was issued and the highest imported value");
        let above = values.range(first + 2_000..).next();
        assert_eq!(above, Some(&(first + 2_001)), "the load goes on right above");
    }
    // An epoch that ends may discard a flight that was never answered; nothing else is lost.
    let gaps = deployment.ok(&["gaps", "--json", "--limit", "10000"]);
    assert!(gaps.contains("before-import") && !gaps.contains("unaccounted"), "{gaps}");
    // Redis has the partition back, once it was healthy for long enough.
    let client = testkit::client();
    let deadline = Instant::now() + Duration::from_secs(60);
    for attempt in 0.. {
        let (status, answer) = take(&client, &service.url, &format!("back-{attempt}")).await;
        assert_eq!(status, 201, "{answer}");
        if answer["path"] == "redis" {
            break;
        }
        assert!(Instant::now() < deadline, "redis does not come back: {answer}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// The same without a service: the command itself ends the epoch that a service has left.
#[test]
fn a_counter_that_redis_has_is_lifted_when_no_service_runs() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("idle"), Some(&redis.url()));
    deployment.apply_load_series();
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000001\n");
    let sound = file(&deployment, "sound.csv", &list(5, 9));
    imported(&deployment, &[&sound, "--series", "LOAD", "--apply"]);
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000010\n");
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["gaps"] == 3, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_is_lifted_while_a_service_issues_from_it_on_sqlite() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 2);
    load.reach(50).await;
    let sound = file(&deployment, "sound.csv", &list(1_000_000, 1_000_100));
    imported(&deployment, &[&sound, "--series", "LOAD", "--apply"]);
    let more = load.asked() + 50;
    load.reach(more).await;
    // A number that was issued here does not count as one of another system.
    let (code, report, _) = import(&deployment, &[&sound, "--series", "LOAD", "--apply"]);
    assert!(code == 1 && problems(&report).len() == 52, "{report}");
    let seen = load.finish().await;
    seen.assert_no_duplicate();
    let values: BTreeSet<u64> = seen.numbers.values().map(|number| value(number)).collect();
    assert_eq!(values.range(500_000..).next(), Some(&1_000_101));
    assert!(service.terminate());
    deployment.assert_clean();
}

/// A command of the import, started and not waited for.
fn start(deployment: &Deployment, list: &str) -> std::process::Child {
    let mut command = deployment.command(&["import", "--series", "LOAD", "--apply", list]);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until a query on the ledger gives this answer.
fn until(postgres: &Postgres, question: &str, answer: &str) {
    let deadline = Instant::now() + LIMIT;
    while postgres.sql(question) != answer {
        assert!(Instant::now() < deadline, "{question}: {}", postgres.sql(question));
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// Delays commits of rows of the journal for some seconds.
fn commit_slowly(postgres: &Postgres, schema: &str) {
    postgres.sql(&format!(
        "create function {schema}.dawdle() returns trigger language plpgsql as \
         $$ begin perform pg_sleep(3); return null; end $$; \
         create constraint trigger dawdle after insert on {schema}.journal \
         deferrable initially deferred for each row execute function {schema}.dawdle()"
    ));
}

/// Sessions that are at the end of their COMMIT.
const COMMITTING: &str = "select count(*) from pg_stat_activity \
    where wait_event = 'PgSleep' and upper(query) like 'COMMIT%'";

#[test]
fn an_operators_fallback_during_an_import_outlives_it() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("wish"), Some(&redis.url()));
    deployment.apply_load_series();
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000001\n");
    commit_slowly(&postgres, "wish");
    let sound = file(&deployment, "sound.csv", &list(5, 5));
    let importing = start(&deployment, &sound);
    until(&postgres, COMMITTING, "1");
    deployment.ok(&["fallback", "on"]);
    let output = importing.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wishes = "select count(*) from wish.partition where wanted = 'database'";
    assert_eq!(postgres.sql(wishes), "8", "the operator's wish stands");
    assert_eq!(postgres.sql("select count(lent_to) from wish.partition"), "0");
    deployment.ok(&["fallback", "off"]);
    assert_eq!(postgres.sql(wishes), "0");
}

/// The loan to a killed import returns to Redis automatically, once its node is given up.
#[test]
fn a_partition_that_is_lent_to_an_import_which_is_killed_is_taken_back() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.empty_url("killed"), Some(&redis.url()));
    deployment.extra = "[node]\nttl = \"1s\"\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000001\n");
    commit_slowly(&postgres, "killed");
    let sound = file(&deployment, "sound.csv", &list(5, 5));
    let mut importing = start(&deployment, &sound);
    until(&postgres, COMMITTING, "1");
    assert_eq!(postgres.sql("select count(lent_to) from killed.partition"), "1");
    importing.kill().unwrap();
    importing.wait().unwrap();
    until(&postgres, "select count(lent_to) from killed.partition", "0");
    let back = "select count(*) from killed.partition where owner = 'database' and state = 'open'";
    until(&postgres, back, "1");
    let events = deployment.ok(&["events", "--kind", "partition-taken-back", "--json"]);
    assert!(events.contains("the node that lent it has ended"), "{events}");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: an import that meets a recovery which already gives the partition to the database waits
/// for it and continues. Method: a suspended node keeps the recovery at its barrier.
#[test]
fn an_import_waits_for_the_recovery_that_it_meets() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("meets"), Some(&redis.url()));
    deployment.apply_load_series();
    let (awake, mut asleep) = (deployment.serve(), deployment.serve());
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000001\n");
    asleep.signal("STOP");
    deployment.run(&["fallback", "on", "--patience", "10ms"]);
    until(&postgres, "select max(epoch) > 1 from meets.partition", "t");
    let sound = file(&deployment, "sound.csv", &list(5, 9));
    imported(&deployment, &[&sound, "--series", "LOAD", "--apply"]);
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000010\n");
    asleep.kill();
    assert!(awake.terminate());
    deployment.assert_clean();
}

#[test]
fn a_commit_whose_answer_is_lost_is_told_as_unknown_and_the_next_report_tells() {
    let postgres = Postgres::start();
    let to_ledger = Proxy::start(postgres.port());
    let through = Deployment::new(&postgres.url_by(to_ledger.port(), "lost"), None);
    through.apply_load_series();
    commit_slowly(&postgres, "lost");
    let sound = file(&through, "sound.csv", &list(5, 5));
    let importing = start(&through, &sound);
    until(&postgres, COMMITTING, "1");
    to_ledger.cut();
    let output = importing.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("not known whether this was imported"), "{error}");
    assert!(!error.contains("nothing is imported"), "{error}");
    until(&postgres, "select count(*) from lost.journal", "1");
    let (_, report, _) = import(&through, &[&sound, "--series", "LOAD"]);
    let issued = problems(&report).iter().filter(|(_, kind)| kind == "issued").count();
    assert_eq!(issued, 1, "{report}");
}

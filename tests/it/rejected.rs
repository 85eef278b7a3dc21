//! A fault of the database is blamed on no record or caller: nothing is set aside for it, no
//! request is refused for good (F45). What is set aside was issued and comes back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const ROLES: &str = include_str!("../../deploy/postgres/roles.sql");

/// Longest wait for anything.
const LIMIT: Duration = Duration::from_secs(60);

/// A ledger that fails is tried again soon.
const SHORT_WAITS: &str = "[retry]\ndelay = \"100ms\"\n";

/// A series of each policy; types and codes are one.
const TYPES: [&str; 3] = ["FAST", "SURE", "DENSE"];

/// Each class that is not a row's own, and of the two that may be a row's some that every row
/// raises here.
const CODES: [&str; 25] = [
    "XX000", "XX001", "XX002", "P0001", "55000", "42501", "42P01", "42703", "54000", "28000",
    "22P02", "23503", "23505", "23514", "58030", "53200", "57014", "0A000", "40001", "08006",
    "53100", "25006", "F0000", "2F002", "99999",
];

/// What callers saw.
#[derive(Default)]
struct Seen {
    /// Numbers by type and document.
    numbers: Mutex<BTreeMap<(String, String), String>>,
    /// Refusals that name a table, or say that a retry is of no use.
    wrong: Mutex<Vec<Value>>,
}

impl Seen {
    /// Asks until a number is given.
    async fn take(&self, url: &str, type_code: &str, document: &str) {
        let route = format!("{url}/api/v1/documents/{document}/generate-number");
        let (client, started) = (testkit::client(), Instant::now());
        loop {
            let (status, body) = post(&client, &route, &json!({ "type": type_code })).await;
            if let (200 | 201, Some(number)) = (status, body["document_number"].as_str()) {
                let key = (type_code.to_owned(), document.to_owned());
                self.numbers.lock().unwrap().insert(key, number.to_owned());
                return;
            }
            let detail = body["detail"].as_str().unwrap_or_default();
            let names_it = ["relation", "table ", "journal_", "broken"];
            if body["retryable"] != true || names_it.iter().any(|part| detail.contains(part)) {
                self.wrong.lock().unwrap().push(body);
                return;
            }
            assert!(started.elapsed() < LIMIT, "{body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A service on Redis and PostgreSQL, and what its callers saw.
struct Scene {
    postgres: Postgres,
    redis: Redis,
    schema: &'static str,
    deployment: Deployment,
    service: Service,
    seen: Arc<Seen>,
}

impl Scene {
    fn start(schema: &'static str) -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let mut deployment = Deployment::new(&postgres.url(schema), Some(&redis.url()));
        deployment.extra = SHORT_WAITS.into();
        let file = |code: &str, settings: &str| {
            let template = format!("{}-{{SEQ:6}}", &code[..1]);
            deployment.series_file(code, &template, settings)
        };
        let files = [
            file("FAST", ""),
            file("SURE", "policy = \"durable\""),
            file("DENSE", "policy = \"gapless\""),
        ];
        deployment.apply(&files);
        let service = deployment.serve();
        Scene { postgres, redis, schema, deployment, service, seen: Arc::default() }
    }

    fn sql(&self, sql: &str) -> String {
        self.postgres.sql(&format!("set search_path = {}; {sql}", self.schema))
    }

    /// Waits until a figure of the ledger is at least this high.
    async fn shows(&self, figure: &str, least: i64) {
        let started = Instant::now();
        while self.sql(&format!("select {figure}")).parse::<i64>().unwrap() < least {
            assert!(started.elapsed() < LIMIT, "{figure}: {}", self.service.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the log contains this.
    async fn says(&self, text: &str) {
        let started = Instant::now();
        while !self.service.log().contains(text) {
            assert!(started.elapsed() < LIMIT, "{text}: {}", self.service.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn ready(&self) -> Value {
        let answer = testkit::get(format!("{}/readyz", self.service.url)).await;
        let Ok(answer) = answer else { panic!("{}", self.service.log()) };
        answer.json().await.unwrap()
    }

    /// Nothing is set aside, no request was refused for good, every number has its row and is one.
    async fn ends_well(&self) {
        self.flush().await;
        assert_eq!(*self.seen.wrong.lock().unwrap(), [Value::Null; 0], "final refusals");
        assert_eq!(self.sql("select count(*) from journal_rejected"), "0", "put aside");
        let numbers = self.seen.numbers.lock().unwrap().clone();
        let mut journaled = BTreeMap::new();
        let query = format!(
            "select type_code, document_id, number from {}.journal_row where number is not null",
            self.schema
        );
        self.postgres.rows(&query, |row| {
            let twice = journaled.insert((row[0].to_owned(), row[1].to_owned()), row[2].to_owned());
            assert_eq!(twice, None, "a document has two numbers");
        });
        let is_missing = |(key, number): &(&_, &String)| journaled.get(*key) != Some(*number);
        let missing: Vec<_> = numbers.iter().filter(is_missing).collect();
        assert_eq!(missing, [], "of {}", numbers.len());
    }

    /// Waits until nothing waits for the journal.
    async fn flush(&self) {
        let started = Instant::now();
        while self.ready().await["journal_lag_records"] != 0 {
            assert!(started.elapsed() < LIMIT, "{}", self.service.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn load(&self) -> Load {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let callers = TYPES.map(|type_code| {
            let (url, seen) = (self.service.url.clone(), Arc::clone(&self.seen));
            let (stop, asked) = (Arc::clone(&stop), Arc::clone(&asked));
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let document = format!("d{}", asked.fetch_add(1, Ordering::Relaxed));
                    seen.take(&url, type_code, &document).await;
                }
            })
        });
        Load { stop, asked, callers: callers.into() }
    }
}

/// A caller of each type.
struct Load {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
    callers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    /// Waits until this many more documents were requested.
    async fn advance(&self, count: u64) {
        let (from, started) = (self.asked.load(Ordering::Relaxed), Instant::now());
        while self.asked.load(Ordering::Relaxed) < from + count {
            assert!(started.elapsed() < LIMIT, "the load stands still");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn finish(self) {
        self.stop.store(true, Ordering::Relaxed);
        for caller in self.callers {
            caller.await.unwrap();
        }
    }
}

/// Goal: whatever error every row meets, it is waited for. Method: a trigger that raises it on
/// `journal` or on `journal_batch`, until it was met some times on either path.
#[tokio::test(flavor = "multi_thread")]
async fn faults_no_error_that_every_row_meets_puts_a_record_aside_or_refuses_for_good() {
    let scene = Scene::start("codes");
    scene.sql(
        "create sequence hits; create function codes.fails() returns trigger language plpgsql as \
         $$ begin perform nextval('codes.hits'); raise exception 'broken' using errcode = \
         tg_argv[0]; end $$",
    );
    for (turn, code) in CODES.into_iter().enumerate() {
        let table = if turn % 2 == 0 { "journal" } else { "journal_batch" };
        scene.sql(&format!(
            "select setval('hits', 1); create trigger broken before insert on {table} \
             for each row execute function codes.fails('{code}')"
        ));
        let asked = TYPES.map(|type_code| {
            let (url, seen) = (scene.service.url.clone(), Arc::clone(&scene.seen));
            let document = format!("{code}-{table}");
            tokio::spawn(async move { seen.take(&url, type_code, &document).await })
        });
        // The two records of Redis, alone or together, and the transaction of the database path.
        scene.shows("last_value from hits", 6).await;
        scene.sql(&format!("drop trigger broken on {table}"));
        for asked in asked {
            asked.await.unwrap();
        }
    }
    scene.ends_well().await;
    assert_eq!(scene.seen.numbers.lock().unwrap().len(), CODES.len() * TYPES.len());
    scene.deployment.assert_clean();
}

/// Goal: the temporary loss of a right costs callers no more than a wait, and is reported. Method:
/// the service has the rights of roles.sql and loses one under load.
#[tokio::test(flavor = "multi_thread")]
async fn faults_a_right_goes_and_comes_under_load_and_nothing_is_put_aside() {
    let mut scene = Scene::start("rights");
    scene.sql(&format!(
        "create role numerator_writer login; create role numerator_archiver login; \
         create role numerator_auditor login; {ROLES}"
    ));
    let url = scene.postgres.url("rights").replace("//postgres@", "//numerator_writer@");
    let mut writer = Deployment::new(&url, Some(&scene.redis.url()));
    writer.extra = SHORT_WAITS.into();
    let owners = std::mem::replace(&mut scene.service, writer.serve());
    assert!(owners.terminate());
    assert_eq!(scene.ready().await.get("ledger_lacks"), None);
    let load = scene.load();
    load.advance(30).await;
    for (right, table) in
        [("insert", "journal_batch"), ("insert", "journal"), ("update", "counter")]
    {
        scene.sql(&format!("revoke {right} on {table} from numerator_writer"));
        let said = format!("lacks the right to {right} on {table}: run deploy/postgres/roles.sql");
        scene.says(&said).await;
        let ready = scene.ready().await;
        assert!(ready.to_string().contains(&said), "{ready}");
        assert_eq!(ready["works"]["gapless"], false, "nothing is committed: {ready}");
        scene.sql(&format!("grant {right} on {table} to numerator_writer"));
        let started = Instant::now();
        while scene.ready().await.get("ledger_lacks").is_some() {
            assert!(started.elapsed() < LIMIT, "it is told still");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        load.advance(30).await;
    }
    load.finish().await;
    scene.ends_well().await;
    let log = scene.service.log();
    assert_eq!(log.matches("the ledger lacks what records need").count(), 3, "once each: {log}");
    // A process that starts without a right reports that, and the remedy.
    scene.sql("revoke insert on journal_name, journal from numerator_writer");
    let refused = writer.run(&["next", "FAST"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    for part in ["to insert on journal:", "to insert on journal_name:", "deploy/postgres/roles.sql"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// Goal: tables that are missing while a backup is restored are waited for. Method: the schema is
/// dropped under load, and its dump restored statement by statement, as `pg_restore` does.
#[tokio::test(flavor = "multi_thread")]
async fn faults_tables_are_dropped_and_put_back_under_load_and_every_number_has_its_row() {
    let scene = Scene::start("away");
    let load = scene.load();
    load.advance(60).await;
    scene.postgres.dump("away");
    load.advance(60).await;
    // A session that locks one of its tables and waits for another one would block it.
    scene.postgres.sql(
        "do $$ begin loop begin drop schema away cascade; return; \
         exception when deadlock_detected then null; end; end loop; end $$",
    );
    scene.says("journal waits for the ledger").await;
    scene.postgres.put_back_piecemeal("away");
    load.advance(60).await;
    load.finish().await;
    scene.ends_well().await;
    assert!(scene.service.log().contains("WENT BACK"), "the ledger had forgotten some");
}

/// A part of a run does not omit what is set aside.
fn told_on_the_paper(scene: &Scene, date: &str) {
    let asked = ["statement", "--series", "FAST", "--period", date, "--json"];
    let paper: Value = serde_json::from_slice(&scene.deployment.run(&asked).stdout).unwrap();
    let run = &paper["runs"][0];
    assert_eq!(run["part"]["kept_aside"], 1, "{paper}");
    let notes = run["notes"].to_string();
    assert!(notes.contains("1 further numbers are of this period, or may be"), "{paper}");
}

/// Goal: what is set aside counts as issued everywhere, and a command journals it again. Method: a
/// constraint that one document of each policy breaks; Redis loses its data meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_aside_stays_its_documents_number_and_is_journaled_again() {
    let scene = Scene::start("aside");
    scene.sql("alter table journal add constraint refuses check (document_id <> 'bad') not valid");
    for (type_code, document) in [("FAST", "bad"), ("SURE", "good"), ("FAST", "good")] {
        scene.seen.take(&scene.service.url, type_code, document).await;
    }
    scene.shows("count(*) from journal_rejected", 1).await;
    scene.seen.take(&scene.service.url, "SURE", "bad").await;
    scene.shows("count(*) from journal_rejected", 2).await;
    let numbers = scene.seen.numbers.lock().unwrap().clone();
    let asks_again = async |type_code: &str| {
        let route = format!("{}/api/v1/documents/bad/generate-number", scene.service.url);
        let started = Instant::now();
        loop {
            let body = json!({ "type": type_code });
            let (status, body) = post(&testkit::client(), &route, &body).await;
            if body["retryable"] != true {
                let own = &numbers[&(type_code.to_owned(), "bad".to_owned())];
                assert_eq!((status, body["document_number"].as_str()), (200, Some(&**own)));
                return;
            }
            assert!(started.elapsed() < LIMIT, "{body}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    for type_code in ["FAST", "SURE"] {
        asks_again(type_code).await;
    }
    scene.redis.flushall();
    for type_code in ["FAST", "SURE"] {
        asks_again(type_code).await;
        let number = &numbers[&(type_code.to_owned(), "bad".to_owned())];
        let url = &scene.service.url;
        let route = format!("{url}/api/v1/document-numbering/numbers/{number}");
        let found: Value = testkit::get(route).await.unwrap().json().await.unwrap();
        assert_eq!(
            (&found["issued"], &found["numbers"][0]["put_aside"]),
            (&json!(true), &json!(true))
        );
    }
    let route = format!("{}/api/v1/documents/bad/numbers", scene.service.url);
    let found: Value = testkit::get(route).await.unwrap().json().await.unwrap();
    assert_eq!(found["numbers"].as_array().unwrap().len(), 2, "{found}");
    let metrics = testkit::get(format!("{}/metrics", scene.service.url)).await.unwrap();
    assert!(metrics.text().await.unwrap().contains("numerator_rejected_records "));
    told_on_the_paper(&scene, found["numbers"][0]["document_date"].as_str().unwrap());
    let (is_clean, report) = scene.deployment.verify();
    assert!(!is_clean && report["totals"]["rejected"] == 2, "{report}");
    assert_eq!((&report["missing"], &report["twice"]), (&json!([]), &json!([])), "{report}");
    // Viewed; tried while the cause exists; and once it is gone.
    let command = |arguments: &[&str]| {
        let arguments = [&["reconcile", "--rejected", "--json"], arguments].concat();
        let done = scene.deployment.run(&arguments);
        let answer: Value = serde_json::from_slice(&done.stdout).unwrap();
        let results = answer["records"].as_array().unwrap().iter();
        let results: Vec<String> =
            results.map(|record| record["result"].as_str().unwrap().to_owned()).collect();
        (done.status.success(), results)
    };
    assert_eq!(command(&[]), (true, vec!["waits".into(), "waits".into()]));
    assert_eq!(command(&["--apply"]), (false, vec!["refused".into(), "refused".into()]));
    scene.sql("alter table journal drop constraint refuses");
    assert_eq!(command(&["--apply"]), (true, vec!["journaled".into(), "journaled".into()]));
    assert_eq!(command(&["--apply"]), (true, Vec::new()), "safe to repeat");
    scene.ends_well().await;
    scene.deployment.assert_clean();
    let events = scene.sql("select count(*) from event where kind = 'journaled-again'");
    assert_eq!(events, "2");
}

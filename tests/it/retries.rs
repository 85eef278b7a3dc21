//! What happens to a request on the database path, and its answer, while the ledger cannot serve
//! it: locks of others, conflicts, a lost connection.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::deployment::Deployment;
use crate::load::open;
use testkit::postgres::Postgres;
use testkit::service::Service;

/// Short waits for tests: locks 50 + 100 + 200 + 400 + 800 ms, connections 50 + 100 + 200 ms.
const SHORT: &str = "[retry]\ndelay = \"50ms\"\n";

/// An answer: status, header `Retry-After`, body, and how long it took.
struct Answer {
    status: u16,
    retry_after: Option<String>,
    body: Value,
    took: Duration,
}

/// Requests a number of a type, as a caller who reads Thai.
async fn take(url: &str, type_code: &str, document: &str) -> Answer {
    let started = Instant::now();
    let answer = testkit::client()
        .post(format!("{url}/api/v1/documents/{document}/generate-number"))
        .header("Accept-Language", "th")
        .json(&json!({ "type": type_code }))
        .send()
        .await
        .unwrap();
    Answer {
        status: answer.status().as_u16(),
        retry_after: answer
            .headers()
            .get("retry-after")
            .map(|value| value.to_str().unwrap().to_owned()),
        body: answer.json().await.unwrap(),
        took: started.elapsed(),
    }
}

/// A counter of the metrics.
async fn metric(service: &Service, name: &str) -> u64 {
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).trim().parse().unwrap()
}

async fn retries(service: &Service, reason: &str) -> u64 {
    metric(service, &format!("numerator_retries_total{{path=\"database\",reason=\"{reason}\"}}"))
        .await
}

/// The series `HELD` and `FREE`, in one partition, each with one number issued.
async fn two_counters(deployment: &Deployment) -> Service {
    let files = [("HELD", "H-{SEQ:4}"), ("FREE", "F-{SEQ:4}")]
        .map(|(code, template)| deployment.series_file(code, template, "policy = \"gapless\""));
    deployment.apply(&files);
    let service = deployment.serve();
    for type_code in ["HELD", "FREE"] {
        let answer = take(&service.url, type_code, "one").await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    service
}

fn short(database_url: &str) -> Deployment {
    let mut deployment = Deployment::new(database_url, None);
    deployment.database = "lock_timeout = \"200ms\"\n".into();
    deployment.extra = SHORT.into();
    deployment
}

/// A transaction of another session on the row of the counter of `HELD`.
async fn hold_counter(url: &str) -> sqlx::Transaction<'static, sqlx::Postgres> {
    let pool = sqlx::PgPool::connect(url).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("select taken from counter where key = 'type=HELD' for update")
        .fetch_one(&mut *holder)
        .await
        .unwrap();
    holder
}

async fn assert_event(deployment: &Deployment, kind: &str) {
    let ledger = open(deployment).await;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let events = ledger.events().list(100).await.unwrap();
        if let Some(event) = events.iter().find(|event| event.kind == kind) {
            assert!(event.detail["cause"].is_string(), "{event:?}");
            assert!(event.detail["untold"].is_u64(), "{event:?}");
            return;
        }
        assert!(Instant::now() < deadline, "no {kind} in {events:?}");
    }
}

/// All numbers of `HELD` so far are there without a gap, and the next one is the `count`th.
async fn assert_next(service: &Service, count: u64) {
    let answer = take(&service.url, "HELD", &format!("next-{count}")).await;
    let number = format!("H-{count:04}");
    assert_eq!((answer.status, &answer.body["document_number"]), (201, &number.into()));
}

#[tokio::test]
async fn retries_a_held_counter_keeps_no_other_counter_of_its_partition_waiting() {
    let postgres = Postgres::start();
    let url = postgres.url("held");
    let deployment = Deployment::new(&url, None);
    let service = two_counters(&deployment).await;
    let holder = hold_counter(&url).await;
    let mut waiting = Vec::new();
    for index in 0..20 {
        let url = service.url.clone();
        waiting
            .push(tokio::spawn(async move { take(&url, "HELD", &format!("held-{index}")).await }));
        let answer = take(&service.url, "FREE", &format!("free-{index}")).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        assert!(answer.took < Duration::from_secs(1), "kept waiting for {:?}", answer.took);
    }
    assert!(waiting.iter().all(|request| !request.is_finished()), "answered under a foreign lock");
    drop(holder);
    for request in waiting {
        let answer = request.await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    assert_next(&service, 22).await;
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a request that waits while the ledger goes back takes none of the numbers that it has
/// forgotten (F9). Method: a ledger that forgets numbers under a lock for which a request waits.
/// The process has seen it and has another identity by then, to which nothing was confirmed.
#[tokio::test]
async fn retries_a_request_takes_no_number_of_a_ledger_that_went_back_under_its_wait() {
    let postgres = Postgres::start();
    let url = postgres.url("back");
    let mut deployment = short(&url);
    deployment.extra = "[retry]\ndelay = \"500ms\"\n".into();
    let service = two_counters(&deployment).await;
    assert_next(&service, 2).await;
    let mut holder = hold_counter(&url).await;
    let waits = tokio::spawn({
        let url = service.url.clone();
        async move { take(&url, "HELD", "waits").await }
    });
    reach_retries(&service, 1).await;
    postgres.sql("update back.node set beat = 0, batches = 0");
    let deadline = Instant::now() + Duration::from_secs(10);
    // It has no identity before it has reported everything, and a counter of that is locked (F35).
    while !service.log().contains("THE LEDGER WENT BACK") {
        assert!(Instant::now() < deadline, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // The try under way has begun after that, or there is none any more.
    let tries = retries(&service, "lock").await;
    while !waits.is_finished() && retries(&service, "lock").await == tries {
        assert!(Instant::now() < deadline, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for forget in [
        "set local session_replication_role = replica",
        "delete from journal where number = 'H-0002'",
        "update counter set taken = 1, ceiling = 1, journaled = 1 where key = 'type=HELD'",
    ] {
        sqlx::query(forget).execute(&mut *holder).await.unwrap();
    }
    holder.commit().await.unwrap();
    let answer = waits.await.unwrap();
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert_eq!(answer.body["number_taken"], "no", "{}", answer.body);
}

/// Waits until requests have retried this often to get a lock.
async fn reach_retries(service: &Service, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while retries(service, "lock").await < count {
        assert!(Instant::now() < deadline, "not {count} retries: {}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn retries_a_lock_that_is_never_granted_is_tried_six_times_and_told_as_503() {
    let postgres = Postgres::start();
    let url = postgres.url("locked");
    let deployment = short(&url);
    let service = two_counters(&deployment).await;
    let holder = hold_counter(&url).await;
    let answer = take(&service.url, "HELD", "two").await;
    let Answer { status, retry_after, body, took } = answer;
    assert_eq!((status, &body["code"]), (503, &"lock-timeout".into()), "{body}");
    assert_eq!((&body["retryable"], &body["number_taken"]), (&true.into(), &"no".into()), "{body}");
    assert_eq!(retry_after.as_deref(), Some("1"));
    assert_eq!(body["user_message"], "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง");
    assert_eq!(retries(&service, "lock").await, 5);
    // Six waits for the lock, and the waits between them.
    let least = Duration::from_millis(6 * 200 + 50 + 100 + 200 + 400 + 800);
    assert!(took >= least, "{took:?} is too short for six tries");
    println!("refused after {took:?}, of which {least:?} are waits");
    assert_event(&deployment, "lock-timeout").await;
    // A lock that is released in time: the answer is a number, and the journal has the tries.
    let url = service.url.clone();
    let waiting = tokio::spawn(async move { take(&url, "HELD", "three").await });
    let deadline = Instant::now() + Duration::from_secs(10);
    while retries(&service, "lock").await < 7 {
        assert!(Instant::now() < deadline, "not tried again");
    }
    drop(holder);
    let answer = waiting.await.unwrap();
    assert_eq!(answer.body["document_number"], "H-0002", "{}", answer.body);
    let tries = postgres.sql("select retry_count from locked.journal where document_id = 'three'");
    assert!(tries.parse::<u32>().unwrap() >= 3, "{tries}");
    assert_next(&service, 3).await;
    assert!(service.terminate());
}

#[tokio::test]
async fn retries_a_conflict_that_does_not_go_away_is_tried_three_times_and_told_as_409() {
    let postgres = Postgres::start();
    let deployment = short(&postgres.url("conflict"));
    let service = two_counters(&deployment).await;
    // A sequence counts the tries: what it gave is not taken back with the transaction.
    postgres.sql(
        "set search_path = conflict; create sequence tries; \
         create function lose() returns trigger language plpgsql as $$ begin \
         if nextval('conflict.tries') <> 5 then \
         raise exception 'could not serialize access' using errcode = '40001'; end if; \
         return new; end $$; \
         create trigger lose before insert on journal for each row execute function lose()",
    );
    let answer = take(&service.url, "HELD", "two").await;
    let body = answer.body;
    assert_eq!((answer.status, &body["code"]), (409, &"version-conflict".into()), "{body}");
    assert_eq!((&body["retryable"], &body["number_taken"]), (&true.into(), &"no".into()), "{body}");
    assert_eq!(body["user_message"], "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่");
    assert_eq!(postgres.sql("select last_value from conflict.tries"), "3");
    assert_eq!(retries(&service, "conflict").await, 2);
    assert_event(&deployment, "version-conflict").await;
    // The fourth try fails, the fifth does not.
    let answer = take(&service.url, "HELD", "three").await;
    assert_eq!(answer.body["document_number"], "H-0002", "{}", answer.body);
    let tries =
        postgres.sql("select retry_count from conflict.journal where document_id = 'three'");
    assert_eq!(tries, "1");
    assert!(service.terminate());
}

#[tokio::test]
async fn retries_a_lost_ledger_is_tried_four_times_and_told_as_503() {
    let mut postgres = Postgres::start();
    let deployment = short(&postgres.url("lost"));
    let service = two_counters(&deployment).await;
    postgres.kill();
    let answer = take(&service.url, "HELD", "two").await;
    let body = answer.body;
    assert_eq!((answer.status, &body["code"]), (503, &"database-connection".into()), "{body}");
    assert_eq!(
        (body["retryable"].as_bool(), answer.retry_after.as_deref()),
        (Some(true), Some("1"))
    );
    let told = body["user_message"].as_str().unwrap();
    assert!(told.starts_with("ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง "), "{told}");
    assert_eq!(retries(&service, "connection").await, 3);
    println!("refused after {:?}", answer.took);
    postgres.restart();
    assert_next(&service, 2).await;
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn retries_a_locked_sqlite_file_is_tried_six_times_and_told_as_503() {
    let mut deployment = Deployment::embedded();
    deployment.database = "lock_timeout = \"200ms\"\n".into();
    deployment.extra = SHORT.into();
    let service = two_counters(&deployment).await;
    let path = deployment.database_url().strip_prefix("sqlite:").unwrap();
    let pool = sqlx::SqlitePool::connect(path).await.unwrap();
    let holder = pool.begin_with("begin immediate").await.unwrap();
    let answer = take(&service.url, "HELD", "two").await;
    assert_eq!((answer.status, &answer.body["code"]), (503, &"lock-timeout".into()));
    assert_eq!(answer.body["number_taken"], "no");
    assert_eq!(retries(&service, "lock").await, 5);
    drop(holder);
    assert_next(&service, 2).await;
    assert!(service.terminate());
}

#[tokio::test]
async fn retries_a_request_whose_commit_was_lost_waits_for_a_held_counter_like_any_other() {
    let postgres = Postgres::start();
    let url = postgres.url("unclear");
    let mut deployment = Deployment::new(&url, None);
    deployment.extra = "[retry]\ndelay = \"2s\"\n".into();
    let service = two_counters(&deployment).await;
    // The next commit loses its connection: whether it wrote is not known.
    postgres.sql(
        "set search_path = unclear; create sequence commits; \
         create function lose() returns trigger language plpgsql as $$ begin \
         if nextval('unclear.commits') = 1 then \
         perform pg_terminate_backend(pg_backend_pid()); end if; \
         return new; end $$; \
         create constraint trigger lose after insert on journal deferrable initially deferred \
         for each row execute function lose()",
    );
    let request = service.url.clone();
    let waiting = tokio::spawn(async move { take(&request, "HELD", "two").await });
    let deadline = Instant::now() + Duration::from_secs(20);
    while retries(&service, "connection").await < 1 {
        assert!(Instant::now() < deadline, "the commit was not lost");
    }
    // As the server would hold it for a client that it has not missed yet.
    let holder = hold_counter(&url).await;
    while !service.log().contains("somebody else holds a counter") {
        assert!(Instant::now() < deadline, "not set aside");
    }
    drop(holder);
    let answer = waiting.await.unwrap();
    assert_eq!(answer.body["document_number"], "H-0002", "{}", answer.body);
    assert_next(&service, 3).await;
    assert!(service.terminate());
    deployment.assert_clean();
}

//! A transaction of the database's epoch that commits after Redis got the partition back: what it
//! numbered gets no second number there (F4, F27).

use std::sync::Arc;
use std::time::{Duration, Instant};

use numbering::Inputs;
use numerator::auth::Identity;
use numerator::clock::SystemClock;
use numerator::config::{Settings, Sources};
use numerator::engine::allocator::Request;
use numerator::ledger::JournalFilter;
use numerator::startup::{Mode, Service};
use reqwest::Client;
use serde_json::{Value, json};
use testkit::load::{post, take};
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service as Process;
use tokio::task::JoinHandle;

use super::ok;
use crate::deployment::Deployment;

const LIMIT: Duration = Duration::from_secs(60);

/// Locks that are waited for.
const WAITING: &str = "select count(*) from pg_locks where not granted";

/// A partition that the database owns, in which the commit of the number of document `twice` is
/// blocked.
struct Late {
    postgres: Postgres,
    deployment: Deployment,
    /// The process that takes it.
    slow: Process,
    client: Client,
    /// Reads without delaying a service of the test's own.
    pool: sqlx::PgPool,
    /// Kept until the transaction may go on.
    holder: sqlx::Transaction<'static, sqlx::Postgres>,
    taking: JoinHandle<(u16, Value)>,
    _redis: Redis,
}

impl Late {
    async fn begin() -> Self {
        Late::of("L-{SEQ:8}", "").await
    }

    /// The same if the series has this template, and its counters this setting.
    async fn of(template: &str, setting: &str) -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let url = postgres.url("late");
        let mut deployment = Deployment::new(&url, Some(&redis.url()));
        deployment.extra = "return_after = \"500ms\"\n".into();
        // The number stays late for as long as a busy machine takes to begin its other processes.
        deployment.database = "lock_timeout = \"60s\"\n".into();
        let file = deployment.series_file("LOAD", template, "");
        let series = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{series}{setting}\n")).unwrap();
        deployment.apply(&[file]);
        let slow = deployment.serve();
        ok(&deployment, &["fallback", "on"]);
        let client = testkit::client();
        assert_eq!(take(&client, &slow.url, "first").await.0, 201);
        // A transaction that has its counter, and takes its time.
        postgres.sql(
            "set search_path = late; \
             create function linger() returns trigger language plpgsql as $$ begin \
             if new.document_id = 'twice' then perform pg_advisory_xact_lock(42); end if; \
             return new; end $$; \
             create trigger linger before insert on journal \
             for each row execute function linger()",
        );
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        let mut holder = pool.begin().await.unwrap();
        sqlx::query("select pg_advisory_xact_lock(42)").execute(&mut *holder).await.unwrap();
        let taking = tokio::spawn({
            let (client, url) = (client.clone(), slow.url.clone());
            async move { take(&client, &url, "twice").await }
        });
        let late = Late { postgres, deployment, slow, client, pool, holder, taking, _redis: redis };
        late.until(WAITING, 1).await;
        late
    }

    async fn until(&self, question: &'static str, wanted: i64) {
        let deadline = Instant::now() + LIMIT;
        while sqlx::query_scalar::<_, i64>(question).fetch_one(&self.pool).await.unwrap() != wanted
        {
            assert!(Instant::now() < deadline, "{question}: not {wanted}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Gives the partition back to Redis, and waits until it has it.
    async fn go_home(&self) {
        ok(&self.deployment, &["fallback", "off"]);
        let home = "select count(*) from late.partition p join late.series s \
                    on s.partition = p.partition_id where p.owner = 'redis' and p.state = 'open'";
        self.until(home, 1).await;
    }
}

/// The document's number is the late one, for all.
fn assert_late(answer: &Value) {
    assert_eq!(answer["document_number"], "L-00000002", "{answer}");
}

#[tokio::test]
async fn fallback_a_document_that_the_database_numbers_late_gets_no_second_number_from_redis() {
    let late = Late::begin().await;
    let other = late.deployment.serve();
    late.go_home().await;
    let again = tokio::spawn({
        let (client, url) = (late.client.clone(), other.url.clone());
        async move { take(&client, &url, "twice").await }
    });
    // Its counter is cold: the seed waits for the transaction.
    late.until(WAITING, 2).await;
    let Late { deployment, slow, holder, taking, .. } = late;
    drop(holder);
    assert_late(&taking.await.unwrap().1);
    assert_late(&again.await.unwrap().1);
    assert!(slow.terminate() && other.terminate());
    deployment.assert_clean();
}

/// Goal: nor does a retry whose date is of another year: it counts by another counter, so that no
/// seed waits for the late transaction. It waits for the name of its document (F27).
#[tokio::test]
async fn fallback_a_document_that_comes_again_with_another_date_waits_for_its_late_number() {
    let late = Late::of("L-{YEAR}-{SEQ:4}", "reset = \"year\"").await;
    let other = late.deployment.serve();
    late.go_home().await;
    let again = tokio::spawn({
        let client = late.client.clone();
        let url = format!("{}/api/v1/documents/twice/generate-number", other.url);
        async move { post(&client, &url, &json!({ "type": "LOAD", "date": "2024-02-03" })).await }
    });
    let deadline = Instant::now() + LIMIT;
    while late.postgres.sql(WAITING) != "2" && !again.is_finished() {
        assert!(Instant::now() < deadline, "nobody waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let Late { deployment, slow, holder, taking, .. } = late;
    drop(holder);
    let (status, taken) = taking.await.unwrap();
    assert_eq!(status, 201, "{taken}");
    let (status, answer) = again.await.unwrap();
    assert_eq!(status, 409, "a second number: {answer}");
    assert_eq!(answer["document_number"], taken["document_number"], "{answer}");
    assert!(slow.terminate() && other.terminate());
    deployment.assert_clean();
}

/// Goal: a question that the journal answered while a late number was still under way is asked
/// again. Method: a process within the test gets two requests for one flight: the retry, and one
/// without a document, which finds the counter cold and has it seeded. So the retry waits behind
/// the seed with its answer from the journal, which says that there is no number.
#[tokio::test]
async fn fallback_a_question_that_a_late_number_overtakes_is_asked_again() {
    let late = Late::begin().await;
    let file = Some(late.deployment.path("numerator-0.toml"));
    let settings = Settings::load(&Sources { file, ..Sources::default() }).unwrap();
    let other = Service::start(&settings, Arc::new(SystemClock), Mode::Serve).await.unwrap();
    late.go_home().await;
    let stands = || other.readiness().serving.redis == settings.partitions as usize;
    let deadline = Instant::now() + LIMIT;
    while !stands() {
        assert!(Instant::now() < deadline, "{:?}", other.readiness());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let request = |document_id: Option<&str>| {
        let inputs = Inputs { type_code: "LOAD".into(), ..Inputs::default() };
        let document_id = document_id.map(str::to_owned);
        let (user_id, count) = ("local".to_owned(), 1);
        let identity = Arc::new(Identity::local(&user_id, 1));
        let (again, idempotency_key, ip_address) = (false, None, None);
        Request {
            inputs,
            document_id,
            count,
            reserve_for: None,
            again,
            replaces: None,
            idempotency_key,
            identity,
            user_id,
            ip_address,
        }
    };
    let both = tokio::spawn({
        let allocator = other.allocator.clone();
        let (retry, plain) = (request(Some("twice")), request(None));
        async move { tokio::join!(allocator.issue(retry), allocator.issue(plain)) }
    });
    // The seed waits for the transaction. The journal answers meanwhile: a later question has an
    // answer, too.
    late.until(WAITING, 2).await;
    for _ in 0..3 {
        other.ledger.replays(&[]).await.unwrap();
        assert!(other.ledger.register().find(&JournalFilter::default()).await.unwrap().len() == 1);
    }
    let Late { deployment, slow, holder, taking, .. } = late;
    drop(holder);
    assert_late(&taking.await.unwrap().1);
    let (again, plain) = both.await.unwrap();
    assert_eq!(again.unwrap().entry.number, "L-00000002");
    assert_eq!(plain.unwrap().entry.number, "L-00000003");
    other.stop().await.unwrap();
    assert!(slow.terminate());
    deployment.assert_clean();
}

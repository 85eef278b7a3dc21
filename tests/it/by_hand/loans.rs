//! A registration that needs the partition of Redis for a moment, and a ledger that answers late.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, raw_sql};
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;

use super::*;

const SCHEMA: &str = "loan";

/// What the commit of a loan waits for.
const LOCK: i64 = 41;

/// Goal: a loan whose commit had no answer ends with its call: no later call knows its id. Method:
/// the commit waits for a lock of the test's, its connection is cut, then the lock is released.
#[tokio::test(flavor = "multi_thread")]
async fn a_loan_whose_commit_had_no_answer_is_taken_back() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let to_ledger = Proxy::start(postgres.port());
    let url = postgres.url_by(to_ledger.port(), SCHEMA);
    let mut deployment = Deployment::new(&url, Some(&redis.url()));
    let scene = Scene::start(&mut deployment);
    assert_eq!(scene.take("FAST", "a").await, "FAST-2026-0001");
    postgres.sql(&format!(
        "create function {SCHEMA}.wait() returns trigger language plpgsql as \
         $$ begin perform pg_advisory_xact_lock_shared({LOCK}); return null; end $$; \
         create constraint trigger wait after update on {SCHEMA}.partition \
         deferrable initially deferred for each row \
         when (old.lent_to is null and new.lent_to is not null) \
         execute function {SCHEMA}.wait()"
    ));
    let mut holder = PgConnection::connect(&postgres.url(SCHEMA)).await.unwrap();
    let lock = AssertSqlSafe(format!("begin; select pg_advisory_xact_lock({LOCK})"));
    raw_sql(lock).execute(&mut holder).await.unwrap();
    let url = format!("{}{REGISTER}", scene.service.url);
    let body = by_hand("FAST", "FAST-2026-0002", "paper");
    let request = testkit::client().post(url).json(&body).bearer_auth(&scene.tokens[HEAD]);
    let asked = tokio::spawn(async move {
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    });
    let committing = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    eventually(LIMIT, async || match &*postgres.sql(committing) {
        "1" => Ok(()),
        _ => Err(scene.service.log()),
    })
    .await;
    to_ledger.cut();
    raw_sql("commit").execute(&mut holder).await.unwrap();
    let (status, told) = asked.await.unwrap();
    assert_eq!((status, &told["retryable"]), (503, &json!(true)), "{told}");
    let lent = format!("select count(*) from {SCHEMA}.partition where lent_to is not null");
    eventually(LIMIT, async || match &*postgres.sql(&lent) {
        "0" => Ok(()),
        _ => Err(scene.service.log()),
    })
    .await;
    let (status, told) = eventually(LIMIT, async || {
        let (status, told) = scene.register(HEAD, body.clone()).await;
        if status == 503 { Err(told) } else { Ok((status, told)) }
    })
    .await;
    assert_eq!(status, 201, "{told}");
    assert!(scene.service.terminate());
    postgres.sql(&format!("drop function {SCHEMA}.wait() cascade"));
    deployment.assert_clean();
}

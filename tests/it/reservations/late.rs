//! Answers about a reservation that come late: the ledger was held while they were under way (L7).

use std::time::{Duration, Instant};

use numerator::ledger::SharedLedger;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, raw_sql};
use testkit::load;
use testkit::postgres::Postgres;

use super::*;
use crate::load::open;

const SCHEMA: &str = "late";

/// From this age on an answer may be that of a process that others take for dead.
const TTL: Duration = Duration::from_secs(1);

/// How soon each step shows.
const LIMIT: Duration = Duration::from_secs(30);

/// A service, an identity of the ledger beside it, and a reserved number.
struct Late {
    postgres: Postgres,
    deployment: Deployment,
    service: Service,
    ledger: SharedLedger,
    held: Value,
}

impl Late {
    async fn start() -> Self {
        let postgres = Postgres::start();
        let mut deployment = Deployment::new(&postgres.url(SCHEMA), None);
        let ttl_ms = TTL.as_millis();
        deployment.extra = format!("[node]\nttl = \"{ttl_ms}ms\"\n");
        deployment.database = "lock_timeout = \"20s\"\n".into();
        let gapless = deployment.series_file("INV", "I-{SEQ:4}", "policy = \"gapless\"");
        deployment.apply(&[gapless]);
        let service = deployment.serve();
        let ledger = open(&deployment).await;
        let wanted = json!({ "type": "INV", "document_id": "d1" });
        let url = format!("{}{RESERVATIONS}", service.url);
        let (status, held) = load::post(&testkit::client(), &url, &wanted).await;
        assert_eq!((status, &held["status"]), (201, &json!("reserved")), "{held}");
        Late { postgres, deployment, service, ledger, held }
    }

    /// The address of what is done with the reservation.
    fn url(&self, below: &str) -> String {
        format!("{}{RESERVATIONS}/{}{below}", self.service.url, id(&self.held))
    }

    /// Holds the ledger while a request waits for a lock of the ledger, and lets it go on once the
    /// answer is older than others wait for the process.
    async fn hold_behind(&self, lock: &str, request: reqwest::RequestBuilder) -> (u16, Value) {
        let mut holder = PgConnection::connect(&self.postgres.url(SCHEMA)).await.unwrap();
        raw_sql("begin").execute(&mut holder).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(lock.to_owned())).execute(&mut holder).await.unwrap();
        let pid: i32 =
            sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut holder).await.unwrap();
        let asked_at = Instant::now();
        let asked = tokio::spawn(async move {
            let answer = request.send().await.unwrap();
            (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
        });
        let waiting = format!(
            "select count(*) from pg_stat_activity where {pid} = any(pg_blocking_pids(pid)) \
             and query like '%reservation_id = %'"
        );
        eventually(LIMIT, async || {
            let count = self.postgres.sql(&waiting);
            if count == "0" { Err(self.service.log()) } else { Ok(()) }
        })
        .await;
        self.ledger.hold_all(&[], "an operator says so").await.unwrap();
        eventually(LIMIT, async || {
            let age = asked_at.elapsed();
            if age > TTL * 2 { Ok(()) } else { Err(format!("{age:?}")) }
        })
        .await;
        assert!(!asked.is_finished(), "nothing kept it");
        raw_sql("rollback").execute(&mut holder).await.unwrap();
        asked.await.expect("an answer")
    }

    /// Ends the hold; the number is the document's once its confirmation is repeated.
    async fn end(self, expected: &Value) {
        self.deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "0"]);
        let url = self.url("/confirm");
        let (status, told) = eventually(LIMIT, async || {
            let (status, told) = load::post(&testkit::client(), &url, &json!({})).await;
            if status == 503 { Err(told) } else { Ok((status, told)) }
        })
        .await;
        assert_eq!(json!([status, told["status"], told["code"]]), *expected, "{told}");
        self.ledger.close().await;
        assert!(self.service.terminate());
        self.deployment.assert_clean();
    }
}

/// Goal: a confirmation that is committed in a ledger that was held meanwhile is not answered: its
/// users may agree on a ledger without it. Method: the reservation's row is locked until the answer
/// is older than others wait for a silent process.
#[tokio::test]
async fn a_confirmation_that_a_hold_has_overtaken_is_not_answered() {
    let late = Late::start().await;
    let request = testkit::client().post(late.url("/confirm")).json(&json!({}));
    let (status, told) = late.hold_behind("select 1 from reservation for update", request).await;
    let said = (status, &told["code"], &told["number_taken"], &told["retryable"]);
    let expected = (503, &json!("database-connection"), &json!("maybe"), &json!(true));
    assert_eq!(said, expected, "{told}");
    let state = late.postgres.sql(&format!("select state from {SCHEMA}.reservation"));
    assert!(["", "confirmed"].contains(&&*state), "it was committed: {state}");
    late.end(&json!([200, "issued", null])).await;
}

/// Goal: the same of a reservation that is only looked at: what it shows is not handed out. Method:
/// the table is locked instead.
#[tokio::test]
async fn a_look_at_a_reservation_that_a_hold_has_overtaken_shows_nothing() {
    let late = Late::start().await;
    let request = testkit::client().get(late.url(""));
    let lock = "lock table reservation in access exclusive mode";
    let (status, told) = late.hold_behind(lock, request).await;
    assert_eq!((status, &told["code"]), (503, &json!("database-connection")), "{told}");
    assert_eq!(told["document_number"], Value::Null, "{told}");
    // The end of the hold spends what nobody confirmed.
    late.end(&json!([410, 410, "reservation-lost"])).await;
}

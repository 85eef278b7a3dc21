//! Opening a ledger.

use std::sync::Arc;

use numerator::clock::ManualClock;
use numerator::ledger::{LedgerError, SharedLedger, open};

use super::world::{World, connections, deployment};

/// Opens a ledger outside any runtime.
pub(super) fn open_alone(url: &str) -> Result<SharedLedger, LedgerError> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(open(url, connections(2), Arc::new(ManualClock::at(0))))
}

pub(super) async fn ten_openers_of_a_fresh_ledger_all_succeed(world: World) {
    let url = match world.ledger.engine() {
        "sqlite" => format!("{}-fresh", world.url),
        _ => {
            let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
            sqlx::query("create schema fresh").execute(&pool).await.unwrap();
            let (server, _) = world.url.rsplit_once("search_path=").unwrap();
            format!("{server}search_path=fresh")
        }
    };
    let mut openers = Vec::new();
    for _ in 0..10 {
        let (url, clock) = (url.clone(), world.clock.clone());
        openers.push(tokio::spawn(async move {
            let ledger = open(&url, connections(1), clock).await.unwrap();
            ledger.deployment(&deployment()).await.unwrap().deployment_id
        }));
    }
    let mut ids = Vec::new();
    for opener in openers {
        ids.push(opener.await.unwrap());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "one deployment");
}

pub(super) async fn a_schema_newer_than_the_binary_is_refused(world: World) {
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, \
                 execution_time) values (9999, 'later', true, ";
    if let Some(path) = world.url.strip_prefix("sqlite:") {
        let pool = sqlx::SqlitePool::connect(path).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("{newer} x'00', 0)"));
        sqlx::query(sql).execute(&pool).await.unwrap();
    } else {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("{newer} '\\x00', 0)"));
        sqlx::query(sql).execute(&pool).await.unwrap();
    }
    let error = open(&world.url, connections(1), world.clock.clone()).await.err().expect("refused");
    assert!(matches!(error, LedgerError::Migration(_)), "{error}");
    assert!(error.to_string().contains("9999"), "{error}");
    assert!(error.to_string().contains("newer"), "{error}");
}

//! A ledger on a server of its own, with sessions that hold locks of it.

use std::time::{Duration, Instant};

use numerator::ledger::{Closing, Entry, SeriesVersion};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _};
use testkit::postgres::Postgres;
use tokio::task::JoinHandle;

use super::super::imports::{number, spec_of};
use super::super::world::{PARTITION, World, with};

/// How long a session may take to wait for another, or to end.
pub(in super::super) const LIMIT: Duration = Duration::from_secs(20);

/// A ledger on a server of its own, whose locks are all the test's.
pub(in super::super) struct Scene {
    pub world: World,
    pub looks: PgConnection,
    _server: Postgres,
}

impl Scene {
    pub(in super::super) async fn set() -> Self {
        let server = Postgres::start();
        let world = World::open(&server.url("races")).await;
        let looks = PgConnection::connect(&world.url).await.unwrap();
        Scene { world, looks, _server: server }
    }

    /// A session that has run a statement and holds what it locked.
    pub(in super::super) async fn hold(&self, statement: impl Into<String>) -> PgConnection {
        let mut session = PgConnection::connect(&self.world.url).await.unwrap();
        sqlx::raw_sql("begin").execute(&mut session).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement.into())).execute(&mut session).await.unwrap();
        session
    }

    /// How many sessions wait for a lock. The server wakes a waiting session as it frees the lock,
    /// so that none is counted that may go on.
    async fn waiting(&mut self) -> i64 {
        let count = "select count(distinct pid) from pg_locks where not granted";
        sqlx::query_scalar(count).fetch_one(&mut self.looks).await.unwrap()
    }

    /// Waits until so many sessions wait for a lock, or a call that should be among them has ended.
    pub(in super::super) async fn wait<T>(&mut self, sessions: i64, call: &JoinHandle<T>) {
        let started = Instant::now();
        while self.waiting().await < sessions && !call.is_finished() {
            assert!(started.elapsed() < LIMIT, "fewer than {sessions} sessions wait");
            // Between two checks: what is waited for needs the processor too.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A number of a document that Redis has taken, and the journal does not have yet.
    pub(super) async fn taken_by_redis(&self, series: &SeriesVersion, document: &str) -> Entry {
        let at = self.world.redis_epoch(Closing::Exact).await;
        let (counter_id, value, _) = self.world.seed(at, &spec_of(series, "other")).await;
        let value = u64::try_from(value).unwrap() + 1;
        let mut taken = with(number(series, "other", value), |record| {
            record.document_id = Some(document.into());
        });
        (taken.taken[0].counter_id, taken.at) = (counter_id, at);
        taken
    }

    /// The partition of a number comes to the database by the session that holds its row, once the
    /// journal has the number.
    pub(super) async fn comes_to_database(&self, mut held: PgConnection, taken: &Entry) {
        self.world.append(std::slice::from_ref(taken)).await;
        let to_database = format!(
            "update partition set owner = 'database', incarnation = null \
             where partition_id = {PARTITION}"
        );
        sqlx::raw_sql(AssertSqlSafe(to_database)).execute(&mut held).await.unwrap();
        let_go(held).await;
    }
}

pub(in super::super) async fn let_go(mut session: PgConnection) {
    sqlx::raw_sql("commit").execute(&mut session).await.unwrap();
}

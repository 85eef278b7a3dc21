//! Opening a ledger.

use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::postgres::Postgres;
use numerator::clock::ManualClock;
use numerator::ledger::{Closing, LedgerError, LedgerSettings, Migrate, SharedLedger, look, open};

use super::world::{World, connections, deployment, spec};

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
    let explicit = LedgerSettings { migrate: Migrate::Explicit, ..connections(1) };
    let mut openers = Vec::new();
    for _ in 0..10 {
        let (url, clock) = (url.clone(), world.clock.clone());
        openers.push(tokio::spawn(async move {
            let ledger = open(&url, explicit, clock).await.unwrap();
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

/// The statements that make a ledger of the schema before serials had names, with a series whose
/// serials are `SEQ` and `LOT` and a counter of each, and of a third that the series has no more.
const OLDER: [&str; 4] = [
    "insert into series (code, partition, active_version) values ('S', 0, 1)",
    "insert into series_version (series_id, version, definition, saved_by, reason, saved_at_us) \
     values (1, 1, '{\"serials\":[{\"name\":\"SEQ\"},{\"name\":\"LOT\"}]}', 'me', 'because', 0)",
    "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value, taken, \
     ceiling, step, journaled, seeded_by, seeded_at_us) select 1, n.serial, 'k', 0, 3, 0, 1, \
     5 + n.serial, 10, 1, 4, d.deployment_id, 0 from deployment d \
     cross join (select 0 as serial union all select 1 union all select 2) n order by 2",
    "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value, taken, \
     ceiling, step, journaled, seeded_by, seeded_at_us) select 2, 0, 'k', 0, 0, 0, 0, 0, 0, 1, 0, \
     d.deployment_id, 0 from deployment d",
];

/// Makes the schema of version 6 and fills it.
macro_rules! make_older {
    ($pool:expr, $migrations:literal) => {{
        let pool = $pool;
        let mut before = sqlx::migrate!($migrations);
        before.migrations = before.iter().filter(|step| step.version < 7).cloned().collect();
        before.run(&pool).await.unwrap();
        sqlx::query(
            "insert into deployment (deployment_id, partitions, prefix, hash) \
                     select $1, 4, 'nbr', 'sha256-64'",
        )
        .bind(vec![0_u8; 16])
        .execute(&pool)
        .await
        .unwrap();
        for statement in OLDER {
            sqlx::query(statement).execute(&pool).await.unwrap();
        }
        pool.close().await;
    }};
}

/// A ledger of the schema of version 6.
async fn older(world: &World) -> String {
    let url = match world.ledger.engine() {
        "sqlite" => format!("{}-older", world.url),
        _ => {
            let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
            let (_, schema) = world.url.rsplit_once('=').unwrap();
            let create = sqlx::AssertSqlSafe(format!("create schema {schema}_older"));
            sqlx::query(create).execute(&pool).await.unwrap();
            format!("{}_older", world.url)
        }
    };
    if let Some(path) = url.strip_prefix("sqlite:") {
        let new = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        make_older!(sqlx::SqlitePool::connect_with(new).await.unwrap(), "migrations/sqlite");
    } else {
        make_older!(sqlx::PgPool::connect(&url).await.unwrap(), "migrations/postgres");
    }
    url
}

pub(super) async fn an_older_schema_is_refused_and_the_command_is_named(world: World) {
    let url = older(&world).await;
    let explicit = LedgerSettings { migrate: Migrate::Explicit, ..connections(1) };
    for _ in 0..2 {
        let error = open(&url, explicit, world.clock.clone()).await.err().expect("refused");
        assert!(matches!(error, LedgerError::Migration(_)), "{error}");
        let says = error.to_string();
        assert!(says.contains("migration 6 of") && says.contains("`numerator migrate`"), "{says}");
    }
    open(&url, connections(1), world.clock.clone()).await.unwrap();
    open(&url, explicit, world.clock.clone()).await.expect("up to date");
}

pub(super) async fn of_many_migrators_one_migrates_and_all_succeed(world: World) {
    let url = older(&world).await;
    let mut openers = Vec::new();
    for _ in 0..6 {
        let (url, clock) = (url.clone(), world.clock.clone());
        openers
            .push(tokio::spawn(async move { open(&url, connections(1), clock).await.map(drop) }));
    }
    for opener in openers {
        opener.await.unwrap().unwrap();
    }
}

/// Goal: a migration that waits for a table holds nobody up for longer than its own short wait.
/// Method: a session that reads the table, and a statement that comes after the migration.
pub(super) async fn a_migration_waits_for_a_lock_in_short_tries(world: World) {
    if world.ledger.engine() == "sqlite" {
        // One lock file, and one writer: there is no lock of a table.
        return;
    }
    let url = older(&world).await;
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    let mut reader = pool.begin().await.unwrap();
    let lock = "lock table counter in access share mode";
    sqlx::query(lock).execute(&mut *reader).await.unwrap();
    let short = Duration::from_millis(100);
    let hasty =
        LedgerSettings { migrate_lock_timeout: short, migrate_attempts: 1, ..connections(1) };
    let error = open(&url, hasty, world.clock.clone()).await.err().expect("no lock");
    assert!(matches!(error, LedgerError::LockTimeout { .. }), "{error}");
    let patient = LedgerSettings { migrate_attempts: 60, ..hasty };
    let clock = world.clock.clone();
    let migrator = tokio::spawn(async move { open(&url, patient, clock).await.map(drop) });
    for _ in 0..2 {
        assert!(world.meets_lock(&pool, &migrator).await, "migrated under a reader");
        let begun = Instant::now();
        sqlx::query("select count(taken) from counter").execute(&pool).await.unwrap();
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(2), "held up for {waited:?}");
    }
    reader.commit().await.unwrap();
    migrator.await.unwrap().unwrap();
}

/// Goal: where a newer version gives a column another type, the statements that a running process
/// has prepared fail for ever, and no row is to blame.
pub(super) async fn a_column_of_another_type_is_worth_a_retry_and_the_next_call_works(
    world: World,
) {
    if world.ledger.engine() == "sqlite" {
        // Its columns have no types, and it prepares a statement again by itself.
        return;
    }
    world.ledger.nodes().await.unwrap();
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let other = "alter table node alter column label type varchar";
    sqlx::query(other).execute(&pool).await.unwrap();
    let error = world.ledger.nodes().await.expect_err("prepared before");
    assert!(error.retry_useful() && !error.maybe_written(), "{error}");
    world.ledger.nodes().await.expect("prepared anew");
}

pub(super) async fn counters_of_an_older_schema_get_the_names_of_their_serials(world: World) {
    let url = older(&world).await;
    let ledger = open(&url, connections(1), world.clock.clone()).await.unwrap();
    let counter = async |series_id, serial| ledger.counter(series_id, serial, "k").await.unwrap();
    for (serial, taken) in [("SEQ", 5), ("LOT", 6), ("2", 7)] {
        let row = counter(1, serial).await.unwrap();
        assert_eq!((row.epoch, row.start, row.taken, row.ceiling), (3, 1, taken, 10), "{serial}");
        assert_eq!((row.counter_id, row.journaled), (taken - 4, 4), "{serial}");
    }
    assert!(counter(2, "0").await.is_some(), "of a series that is not there");
    assert_eq!(counter(1, "0").await, None);
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

#[test]
fn a_url_of_another_kind_is_refused() {
    for url in ["mysql://localhost/x", "sqlite:", "sqlite::memory:", "ledger.db"] {
        let error = open_alone(url).err().expect(url).to_string();
        assert!(error.contains("database.url"), "{error}");
    }
}

#[test]
fn a_postgres_that_may_lose_commits_is_refused() {
    let server = Postgres::start();
    let url = format!("{}%20-csynchronous_commit%3Doff", server.url("loses_commits"));
    let error = open_alone(&url).err().expect("refused");
    assert!(error.to_string().contains("synchronous_commit = on"), "{error}");
}

/// Goal: a copy that was made file by file shows what its log has. Method: a file that is written
/// to, copied with its log and without the log's index; PostgreSQL has no such files.
pub(super) async fn whoever_looks_at_a_copy_reads_its_log_too(world: World) {
    if world.ledger.engine() != "sqlite" {
        return;
    }
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let file = world.url.strip_prefix("sqlite:").unwrap();
    let copy = format!("{file}-copy");
    for ending in ["", "-wal"] {
        std::fs::copy(format!("{file}{ending}"), format!("{copy}{ending}")).unwrap();
    }
    let url = format!("sqlite:{copy}");
    let looked = look(&url, connections(1), world.clock.clone()).await.unwrap();
    let counters = looked.ledger.counters(0, 10).await.unwrap();
    assert_eq!(counters.iter().map(|one| one.counter_id).collect::<Vec<_>>(), [counter_id]);
}

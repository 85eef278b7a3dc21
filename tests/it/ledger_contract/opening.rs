//! Opening a ledger.

use std::sync::Arc;

use numerator::clock::ManualClock;
use numerator::ledger::{Closing, LedgerError, LedgerSettings, Migrate, SharedLedger, look, open};
use testkit::postgres::Postgres;

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

/// What leaves a ledger as it was before the last migration, which may be made again.
const OLDER: &str =
    "delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)";

/// The change that makes it a ledger of another baseline.
const OTHER: &str = "update _sqlx_migrations set checksum = ";

/// The URL of another ledger, which lacks the last migration.
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
    drop(open(&url, connections(1), world.clock.clone()).await.unwrap());
    run(&url, OLDER).await;
    url
}

/// Runs a statement past the program.
async fn run(url: &str, statement: &str) {
    let statement = sqlx::AssertSqlSafe(statement.to_owned());
    if url.starts_with("sqlite:") {
        let pool = sqlx::SqlitePool::connect(url).await.unwrap();
        sqlx::query(statement).execute(&pool).await.unwrap();
        pool.close().await;
    } else {
        let pool = sqlx::PgPool::connect(url).await.unwrap();
        sqlx::query(statement).execute(&pool).await.unwrap();
        pool.close().await;
    }
}

pub(super) async fn an_older_schema_is_refused_and_the_command_is_named(world: World) {
    let url = older(&world).await;
    let explicit = LedgerSettings { migrate: Migrate::Explicit, ..connections(1) };
    for _ in 0..2 {
        let error = open(&url, explicit, world.clock.clone()).await.err().expect("refused");
        assert!(matches!(error, LedgerError::Migration(_)), "{error}");
        let says = error.to_string();
        assert!(says.contains(" of 15)") && says.contains("`numerator migrate`"), "{says}");
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

/// Goal: a ledger from before the baseline is not taken for a newer one, nor migrated, whether it
/// has as many migrations as this program, fewer or more. Method: other checksums in its list.
pub(super) async fn a_ledger_of_before_the_baseline_is_refused(world: World) {
    let other = if world.ledger.engine() == "sqlite" { "x'00'" } else { "'\\x00'" };
    let more = format!(
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time) \
         values (81, 'documents of projects', true, {other}, 0)"
    );
    let fewer = "delete from _sqlx_migrations where version > 1".to_owned();
    for change in [format!("{OTHER}{other}"), more, fewer] {
        run(&world.url, &change).await;
        let opened = open(&world.url, connections(1), world.clock.clone()).await;
        let looked = look(&world.url, connections(1), world.clock.clone()).await;
        for error in [opened.err().unwrap(), looked.unwrap().schema.unwrap_err()] {
            assert!(matches!(error, LedgerError::Migration(_)), "{error}");
            let says = error.to_string();
            assert!(says.contains("before version 0.1.0"), "{change}: {says}");
            assert!(says.contains("cannot go on with it"), "{change}: {says}");
        }
    }
}

/// Goal: if a newer version gives a column another type, the statements that a running process has
/// prepared fail permanently, and no row is to blame.
pub(super) async fn a_column_of_another_type_is_worth_a_retry_and_the_next_call_works(
    world: World,
) {
    if world.ledger.engine() == "sqlite" {
        // Its columns have no types, and it prepares a statement again automatically.
        return;
    }
    world.ledger.nodes().list().await.unwrap();
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let other = "alter table node alter column label type varchar";
    sqlx::query(other).execute(&pool).await.unwrap();
    let error = world.ledger.nodes().list().await.expect_err("prepared before");
    assert!(error.retry_useful() && !error.maybe_written(), "{error}");
    world.ledger.nodes().list().await.expect("prepared anew");
}

pub(super) async fn a_schema_newer_than_the_binary_is_refused(world: World) {
    let newer = "insert into _sqlx_migrations (version, description, success, checksum, \
                 execution_time) values (9999, 'later', true, ";
    let checksum = if world.ledger.engine() == "sqlite" { "x'00'" } else { "'\\x00'" };
    run(&world.url, &format!("{newer} {checksum}, 0)")).await;
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
    let counters = looked.ledger.counters().page(0, 10).await.unwrap();
    assert_eq!(counters.iter().map(|one| one.counter_id).collect::<Vec<_>>(), [counter_id]);
}

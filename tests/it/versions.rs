//! Two versions of the program on one ledger: what the newer one's migrations add, the older one,
//! which runs meanwhile, does not notice.
//!
//! The newer version is simulated by its migration: each table gets a column, journal and counter
//! an index of it, as an additive migration would give them, and the ledger a version that this
//! program does not know. A column that is removed, or changes its meaning, is not simulated: such
//! a migration says that the older program must stop.

use serde_json::Value;
use testkit::load::{self, Running};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

const CONNECTIONS: usize = 8;
/// How often one document is requested again meanwhile: in batches of various sizes.
const RETRIES: usize = 40;

/// What a migration of a newer version leaves in the list of migrations.
const NEWER: &str = "insert into _sqlx_migrations (version, description, success, checksum, \
                     execution_time) values (9999, 'later', true, ";
const AS_BEFORE: &str = "delete from _sqlx_migrations where version = 9999";

/// Issues, journals, answers retries and ends well while `migrate` changes every table under it.
async fn goes_on(deployment: &Deployment, migrate: impl AsyncFn(), take_back: impl AsyncFn()) {
    deployment.apply_load_series();
    let service = deployment.serve();
    let client = testkit::client();
    let retry = || load::take(&client, &service.url, "retried");
    retry().await;
    let (_, before) = retry().await;
    let load = Running::start(&service.url, CONNECTIONS);
    load.reach(200).await;
    migrate().await;
    let asked = load.asked();
    load.reach(asked + 400).await;
    for _ in 0..RETRIES {
        assert_eq!(retry().await, (200, before.clone()), "among others");
    }
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "{:?}: {}", seen.failures, service.log());
    seen.assert_no_duplicate();
    assert_eq!(retry().await, (200, before.clone()), "alone, as it was asked before");
    let of_document = format!("{}/api/v1/documents/retried/numbers", service.url);
    let numbers = client.get(&of_document).send().await.unwrap().text().await.unwrap();
    assert!(numbers.contains(before["document_number"].as_str().unwrap()), "{numbers}");
    let refused = deployment.run(&["status"]);
    let says = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && says.contains("newer"), "{says}");
    let ended = tokio::task::spawn_blocking(move || service.terminate()).await;
    assert!(ended.unwrap(), "the journal is drained");
    take_back().await;
    let report = deployment.assert_clean();
    let totals = &report["totals"];
    assert_eq!((&totals["rejected"], &totals["gaps"]), (&Value::from(0), &Value::from(0)));
    assert_eq!(totals["journal"], Value::from(seen.numbers.len() + 1), "a row of each number");
}

async fn on_postgres(redis: Option<&Redis>) {
    let postgres = Postgres::start();
    let url = redis.map(Redis::url);
    let deployment = Deployment::new(&postgres.url("versions"), url.as_deref());
    let sql = |sql: &str| postgres.sql(&format!("set search_path = versions; {sql}"));
    let migrate = async || {
        if let Some(redis) = redis {
            // From then on each new document is looked for in the journal.
            redis.cli(&["flushall"]);
        }
        let tables = "select tablename from pg_tables where schemaname = 'versions' \
                      and tablename <> '_sqlx_migrations'";
        for table in sql(tables).lines() {
            // A try that waits for long makes all others wait behind it.
            let add = format!("alter table {table} add column added_later text default 'x'");
            let done = "do $$ begin for attempt in 1..100 loop begin \
                        set local lock_timeout = '50ms'; execute '";
            let add = add.replace('\'', "''");
            let end = "'; return; exception when lock_not_available then perform pg_sleep(0.05); \
                       end; end loop; raise exception 'no lock'; end $$";
            sql(&format!("{done}{add}{end}"));
        }
        for table in ["journal", "counter"] {
            // Alone in its message: a transaction keeps an index from being built concurrently.
            let table = format!("versions.{table}");
            postgres.sql(&format!("create index concurrently on {table} (added_later)"));
        }
        sql(&format!("{NEWER} '\\x00', 0)"));
    };
    goes_on(&deployment, migrate, async || drop(sql(AS_BEFORE))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_migrates_postgres_and_this_one_goes_on_with_redis() {
    on_postgres(Some(&Redis::start())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_migrates_postgres_and_this_one_goes_on_alone() {
    on_postgres(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_version_migrates_sqlite_and_this_one_goes_on() {
    let deployment = Deployment::embedded();
    let url = deployment.database_url().to_owned();
    let sql = async |sql: String| {
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
        pool.close().await;
    };
    let migrate = async || {
        let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
        let tables = "select name from sqlite_master where type = 'table' \
                      and name not like 'sqlite_%' and name <> '_sqlx_migrations'";
        let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&pool).await.unwrap();
        pool.close().await;
        for table in tables {
            // Without a value: a reader that takes it for another column finds nothing there.
            sql(format!("alter table {table} add column added_later integer")).await;
        }
        for table in ["journal", "counter"] {
            sql(format!("create index {table}_later on {table} (added_later)")).await;
        }
        sql(format!("{NEWER} x'00', 0)")).await;
    };
    goes_on(&deployment, migrate, async || sql(AS_BEFORE.to_owned()).await).await;
}

/// Makes a ledger as the version before the last migration left it.
macro_rules! make_older {
    ($pool:expr, $migrations:literal) => {{
        let pool = $pool;
        let mut before = sqlx_macros::migrate!($migrations);
        before.migrations.to_mut().pop().unwrap();
        before.run(&pool).await.unwrap();
        pool.close().await;
    }};
}

/// Commands that read a ledger, or change what is in it: none of them changes its schema.
const LOOKS: [&[&str]; 9] = [
    &["status"],
    &["verify"],
    &["gaps"],
    &["events"],
    &["counters"],
    &["series", "list"],
    &["parse", "SPO-20240122-001"],
    &["preview", "SPO"],
    &["reconcile"],
];

/// A command that must be refused until the schema is up to date.
fn refused(deployment: &Deployment, arguments: &[&str]) {
    let output = deployment.run(arguments);
    let says = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && says.contains("`numerator migrate`"), "{says}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_schema_of_postgres_is_migrated_by_the_command_alone() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.empty_url("older"), None);
    let pool = sqlx::PgPool::connect(deployment.database_url()).await.unwrap();
    make_older!(pool, "migrations/postgres");
    let newest = || postgres.sql("select max(version) from older._sqlx_migrations");
    let older = newest();
    let mut service = deployment.launch();
    assert!(!service.has_ended_well() && service.log().contains("`numerator migrate`"));
    for arguments in LOOKS.into_iter().chain([&["next", "SPO"][..]]) {
        refused(&deployment, arguments);
    }
    assert_eq!(newest(), older, "nobody has changed it");
    deployment.ok(&["migrate"]);
    assert_ne!(newest(), older);
    deployment.ok(&["migrate"]);
    deployment.apply_load_series();
    assert!(deployment.serve().terminate());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_schema_of_postgres_is_migrated_by_its_service_where_the_settings_say_so() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.empty_url("auto"), None);
    deployment.database = "migrate = \"auto\"\n".into();
    let pool = sqlx::PgPool::connect(deployment.database_url()).await.unwrap();
    make_older!(pool, "migrations/postgres");
    refused(&deployment, &["status"]);
    assert!(deployment.serve().terminate());
    assert_eq!(deployment.status(&[]).0, 1, "no process runs");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_file_is_migrated_by_its_service_and_by_no_look() {
    let deployment = Deployment::embedded();
    let path = deployment.database_url().trim_start_matches("sqlite:").to_owned();
    let new = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    make_older!(sqlx::SqlitePool::connect_with(new).await.unwrap(), "migrations/sqlite");
    for arguments in LOOKS {
        refused(&deployment, arguments);
    }
    assert!(deployment.serve().terminate());
    deployment.ok(&["status"]);
}

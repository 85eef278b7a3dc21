//! How the journal's rows are written: what many have in common once, rows of an earlier version
//! turned over to that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use numerator::ledger::{Closing, CounterSpec, JournalFilter, JournalRow, open};
use sqlx::Connection as _;
use tokio::task::JoinHandle;

use super::world::{World, connections, entry, spec, with};

/// What makes a wide ledger: its partitions, a counter, and rows of the columns of then.
const WIDE: [&str; 3] = [
    "insert into partition (partition_id, changed_at_us) \
     select 0, 0 union all select 1, 0 union all select 2, 0 union all select 3, 0 \
     union all select 4, 0",
    "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value, taken, \
     ceiling, step, journaled, seeded_by, seeded_at_us) \
     select 7, 'SEQ', 'k', 2, 0, 0, 0, 5, 10, 1, 5, d.deployment_id, 0 from deployment d",
    "insert into journal (counter_id, first_value, last_value, step, allocation_id, number, scope, \
     mask, series_id, version, type_code, project, document_id, document_date, user_id, \
     ip_address, idempotency_key, payload_digest, issued_at_us, retry_count, path, partition_id, \
     epoch, node_id, journaled_at_us) \
     select c.counter_id, n.first, n.last, 1, d.deployment_id, n.number, 'project=P', n.mask, 7, \
     n.version, 'T', n.project, n.document, '2026-01-02', n.who, n.address, n.caller_key, \
     n.digest, n.issued, n.retries, n.path, 2, n.epoch, d.deployment_id, n.written \
     from deployment d cross join counter c cross join (\
     select 1 as first, 1 as last, 'A-1' as number, 'A-{0}' as mask, 1 as version, \
       'P' as project, 'd1' as document, 'u' as who, '::1' as address, 'key' as caller_key, \
       '000102030405060708090a0b0c0d0e0f' as digest, 10 as issued, 0 as retries, \
       'redis' as path, 0 as epoch, 100 as written \
     union all select 2, 4, 'A-2', 'A-{0}', 2, null, null, 'u', null, null, \
       '0f0102030405060708090a0b0c0d0e0f', 20, 3, 'database', 1, 100 \
     union all select 5, 5, 'A-5', 'A-{0}', 1, 'P', 'd5', 'v', '::1', null, 'imported', 30, 0, \
       'imported', 0, 200) as n",
];

/// A ledger of the schema before narrow rows, with some.
macro_rules! make_wide {
    ($pool:expr, $migrations:literal) => {{
        let pool = $pool;
        let mut before = sqlx::migrate!($migrations);
        before.migrations = before.iter().filter(|step| step.version < 25).cloned().collect();
        before.run(&pool).await.unwrap();
        let deployment = "insert into deployment (deployment_id, partitions, prefix, hash) \
                          values ($1, 4, 'nbr', 'sha256-64')";
        sqlx::query(deployment).bind(vec![7_u8; 16]).execute(&pool).await.unwrap();
        for statement in WIDE {
            sqlx::query(statement).execute(&pool).await.unwrap();
        }
        pool.close().await;
    }};
}

/// The URL of such a ledger.
async fn make(world: &World) -> String {
    if world.ledger.engine() == "sqlite" {
        let url = format!("{}-wide", world.url);
        let path = url.strip_prefix("sqlite:").unwrap();
        let new = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
        let new = new.journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
        make_wide!(sqlx::SqlitePool::connect_with(new).await.unwrap(), "migrations/sqlite");
        url
    } else {
        let (_, schema) = world.url.rsplit_once('=').unwrap();
        let schema = format!("{schema}_wide");
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        let create = sqlx::AssertSqlSafe(format!("create schema {schema}"));
        sqlx::query(create).execute(&pool).await.unwrap();
        let url = format!("{}_wide", world.url);
        make_wide!(sqlx::PgPool::connect(&url).await.unwrap(), "migrations/postgres");
        url
    }
}

/// Such a ledger, opened by this version.
async fn wide(world: &World) -> World {
    World::open(&make(world).await).await
}

/// How many rows a condition holds for.
async fn count(world: &World, condition: &str) -> i64 {
    let text = sqlx::AssertSqlSafe(format!("select count(*) from journal where {condition}"));
    if world.ledger.engine() == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&world.url).await.unwrap();
        sqlx::query_scalar(text).fetch_one(&pool).await.unwrap()
    } else {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        sqlx::query_scalar(text).fetch_one(&pool).await.unwrap()
    }
}

/// All rows, oldest first, as look-ups show them.
async fn all(world: &World, user_id: Option<&str>) -> Vec<JournalRow> {
    let user_id = user_id.map(str::to_owned);
    let mut rows = world.ledger.find(&JournalFilter { user_id, ..Default::default() }).await;
    rows.as_mut().unwrap().reverse();
    rows.unwrap()
}

/// What rows say, with the digest of a payload where they had one.
fn said(rows: &[JournalRow]) -> Vec<String> {
    let line = |row: &JournalRow| {
        let entry = &row.entry;
        let record = &entry.record;
        let range = entry.taken[0].range;
        format!(
            "{} {} {}..{}/{} {} v{} {:?} {:?} {} {} {:?} {:?} {:?} {} {} {} {}.{} {} {}",
            entry.number,
            record.mask,
            range.first,
            range.last,
            range.step,
            record.type_code,
            record.version,
            record.project,
            record.document_id,
            record.document_date,
            record.user_id,
            record.ip_address,
            record.idempotency_key,
            record.payload_digest.get(..2),
            record.issued_at_us,
            entry.retry_count,
            entry.path.name(),
            entry.at.partition,
            entry.at.epoch,
            row.journaled_at_us,
            row.node_id.0.as_bytes()[0],
        )
    };
    rows.iter().map(line).collect()
}

/// The rows of `WIDE`.
const SAID: [&str; 2] = [
    "A-1 A-{0} 1..1/1 T v1 Some(\"P\") Some(\"d1\") 2026-01-02 u Some(\"::1\") Some(\"key\") \
     Some(\"00\") 10 0 redis 2.0 100 7",
    "A-2 A-{0} 2..4/1 T v2 None None 2026-01-02 u None None Some(\"0f\") 20 3 database 2.1 100 7",
];

/// Both rows of the one user, by that user's name.
async fn says_what_it_said(world: &World) {
    assert_eq!(said(&all(world, Some("u")).await), SAID);
    assert_eq!(said(&all(world, None).await)[..2], SAID);
    let imported = said(&all(world, Some("v")).await);
    assert!(imported.len() == 1 && imported[0].contains("30 0 imported 2.0 200 7"), "{imported:?}");
}

pub(super) async fn rows_of_an_earlier_version_say_what_they_said(world: World) {
    let world = wide(&world).await;
    let is_wide = world.ledger.engine() != "sqlite";
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, value, _) = world.seed(open, &spec("k")).await;
    let mut next = u64::try_from(value).unwrap();
    let slices: &[u32] = if is_wide { &[1, 1, 10] } else { &[10] };
    for (turn, rows) in slices.iter().enumerate() {
        says_what_it_said(&world).await;
        // No number of theirs comes again, whichever way its row is written.
        for number in ["A-1", "A-2", "A-5"] {
            next += 1;
            let mut again = with(entry(open, id, next), |record| {
                record.scope = "project=P".into();
                record.mask = number.into();
            });
            number.clone_into(&mut again.number);
            let appended = world.ledger.append(world.node, &[again]).await.unwrap();
            assert_eq!(appended.collisions.len(), 1, "{number} after {turn} slices");
        }
        let turned = world.ledger.turn_over(*rows).await.unwrap();
        assert_eq!(turned, u64::from(is_wide), "slice {turn}");
    }
    assert_eq!(world.ledger.turn_over(10).await.unwrap(), 0, "nothing is left");
    says_what_it_said(&world).await;
    assert_eq!(count(&world, "kind_id is null or user_name_id is null").await, 0);
}

/// A node of an earlier version whose heart beats until it is told to stop.
async fn beat(url: &str, stopped: Arc<AtomicBool>) -> JoinHandle<()> {
    let node = "insert into node (node_id, label, version, started_at_us) \
                select deployment_id, 'earlier', '0', 0 from deployment";
    macro_rules! beat_by {
        ($connection:expr) => {{
            let mut connection = $connection.await.unwrap();
            sqlx::query(node).execute(&mut connection).await.unwrap();
            tokio::spawn(async move {
                while !stopped.load(Ordering::Relaxed) {
                    let beat = sqlx::query("update node set beat = beat + 1");
                    beat.execute(&mut connection).await.unwrap();
                    // A heart beats by time.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            })
        }};
    }
    match url.strip_prefix("sqlite:") {
        Some(path) => beat_by!(sqlx::SqliteConnection::connect(path)),
        None => beat_by!(sqlx::PgConnection::connect(url)),
    }
}

pub(super) async fn a_process_that_cannot_read_narrow_rows_keeps_them_wide(world: World) {
    let url = make(&world).await;
    let stopped = Arc::new(AtomicBool::new(false));
    let earlier = beat(&url, Arc::clone(&stopped)).await;
    let opened = open(&url, connections(2), world.clock.clone()).await;
    let refused = opened.err().expect("somebody is at work").to_string();
    assert!(refused.contains("stop all of them"), "{refused}");
    stopped.store(true, Ordering::Relaxed);
    earlier.await.unwrap();
    // It never said that it left: it is silent.
    says_what_it_said(&World::open(&url).await).await;
}

pub(super) async fn a_slice_that_is_killed_leaves_its_rows_as_they_were(world: World) {
    if world.ledger.engine() == "sqlite" {
        // Its migration turns all rows over, in one transaction.
        return;
    }
    let world = wide(&world).await;
    assert_eq!(world.ledger.turn_over(1).await.unwrap(), 1);
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut held = pool.begin().await.unwrap();
    let hold = "select first_value from journal where first_value = 5 for update";
    sqlx::query(hold).execute(&mut *held).await.unwrap();
    let ledger = world.another().await;
    let turning = tokio::spawn(async move { ledger.turn_over(10).await });
    assert!(world.meets_lock(&pool, &turning).await, "it has ended");
    let kill = "select count(pg_terminate_backend(pid)) from pg_locks where not granted";
    assert_eq!(sqlx::query_scalar::<_, i64>(kill).fetch_one(&pool).await.unwrap(), 1);
    turning.await.unwrap().expect_err("killed");
    assert_eq!(count(&world, "batch_id is null").await, 2);
    says_what_it_said(&world).await;
    held.rollback().await.unwrap();
    assert_eq!(world.ledger.turn_over(10).await.unwrap(), 2);
    says_what_it_said(&world).await;
}

pub(super) async fn what_can_be_derived_is_not_stored(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let mut first = entry(open, id, 1);
    first.retry_count = 0;
    world.append(&[first.clone(), entry(open, id, 2)]).await;
    let derived = "last_value is null and step is null and mask is null and outline is not null \
                   and path is null";
    assert_eq!(count(&world, derived).await, 2);
    assert_eq!(count(&world, "retry_count is null").await, 1);
    let shared = "user_name_id = (select max(user_name_id) from journal) \
                  and batch_id = (select max(batch_id) from journal)";
    assert_eq!(count(&world, shared).await, 2, "they point to the same");
    let rows = all(&world, Some("u")).await;
    assert!(rows.iter().any(|row| row.entry == first), "{rows:?}");
}

pub(super) async fn who_writes_a_name_for_the_first_time_keeps_nobody_waiting(world: World) {
    if world.ledger.engine() == "sqlite" {
        // One transaction writes at a time.
        return;
    }
    let open = world.redis_epoch(Closing::Exact).await;
    let (id, ..) = world.seed(open, &spec("k")).await;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    for name in [
        "insert into journal_name (name) values ('u'), ('::1')",
        "insert into journal_kind (series_id, version, type_code) values (7, 1, 'T')",
    ] {
        sqlx::query(name).execute(&mut *other).await.unwrap();
    }
    world.append(&[entry(open, id, 1)]).await;
    other.commit().await.unwrap();
    world.append(&[entry(open, id, 2)]).await;
    // Two ids of one name: its rows are found by either.
    let found = all(&world, Some("u")).await;
    let values: Vec<u64> = found.iter().map(|row| row.entry.taken[0].range.first).collect();
    assert_eq!(values, [1, 2]);
    assert_eq!(count(&world, "user_name_id = (select min(user_name_id) from journal)").await, 1);
}

/// Users of the ledger in which names are sought.
const USERS: u64 = 500;

/// Goal: what a row's names cost does not grow with those that there are, from the first day on.
/// Method: a ledger that was never analyzed, and what its server counts of the index of ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_sought_among_all_by_what_it_says() {
    let server = harness::postgres::Postgres::start();
    let world = World::open(&server.url("names")).await;
    let open = world.redis_epoch(Closing::Exact).await;
    let roomy = CounterSpec { headroom: 1_000 * USERS, ..spec("k") };
    let (id, ..) = world.seed(open, &roomy).await;
    let of_users = |first: u64| -> Vec<_> {
        let entries = (0..USERS).map(|user| {
            with(entry(open, id, first + user), |record| record.user_id = format!("user {user}"))
        });
        entries.collect()
    };
    let mut looks = sqlx::PgConnection::connect(&world.url).await.unwrap();
    let mut reads = async |index: &'static str| -> i64 {
        let reads = "select idx_tup_read from pg_stat_user_indexes \
                     where indexrelname = $1 and schemaname = current_schema()";
        sqlx::query_scalar(reads).bind(index).fetch_one(&mut looks).await.unwrap()
    };
    // Sessions tell what they read now and then, as they commit.
    let mut first = 1;
    while reads("journal_name_name").await < i64::try_from(USERS).unwrap() {
        assert_eq!(reads("journal_name_pk").await, 0, "rows read in the order of their ids");
        world.append(&of_users(first)).await;
        first += USERS;
        assert!(first < 1_000 * USERS, "no session tells what it read");
    }
    assert_eq!(reads("journal_name_pk").await, 0, "rows read in the order of their ids");
}

//! How the journal's rows are written: what many have in common once.

use numerator::ledger::{Closing, CounterSpec, JournalFilter, JournalRow};
use sqlx::Connection as _;

use super::world::{World, entry, spec, with};

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
    let mut rows =
        world.ledger.register().find(&JournalFilter { user_id, ..Default::default() }).await;
    rows.as_mut().unwrap().reverse();
    rows.unwrap()
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

/// Goal: the cost of a row's names does not grow with the existing ones, from the first day on.
/// Method: a ledger that was never analyzed, and what its server counts of the index of ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_sought_among_all_by_what_it_says() {
    let server = testkit::postgres::Postgres::start();
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
    // Sessions report what they read now and then, as they commit.
    let mut first = 1;
    while reads("journal_name_name").await < i64::try_from(USERS).unwrap() {
        assert_eq!(reads("journal_name_pk").await, 0, "rows read in the order of their ids");
        world.append(&of_users(first)).await;
        first += USERS;
        assert!(first < 1_000 * USERS, "no session tells what it read");
    }
    assert_eq!(reads("journal_name_pk").await, 0, "rows read in the order of their ids");
}

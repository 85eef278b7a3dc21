//! What a start is compared with when it is raised, and what no counter begins below.

use numerator::ledger::{Closing, CounterSpec, LedgerError, SeriesRefusal, SeriesVersion};
use serde_json::json;

use super::series::{building_on, epoch_of, first_counter, refusal, save};
use super::setup::change;
use super::world::{World, entry, spec};

pub(super) async fn a_start_is_compared_with_where_counters_go_on_after_an_interruption(
    world: World,
) {
    let series = super::imports::series(&world).await;
    let at = world.redis_epoch(Closing::Exact).await;
    let spec = CounterSpec { series_id: series.series_id, ..spec("") };
    let (counter_id, _, ceiling) = world.seed(at, &spec).await;
    world.append(&[entry(at, counter_id, 1)]).await;
    world.redis_epoch(Closing::Ceiling).await;
    let starting_at = |start: i64| {
        let mut change = building_on(&series, &series.definition.template);
        change.definition.serials[0].start = start.unsigned_abs();
        change
    };
    let refused = refusal(&world.ledger, starting_at(ceiling + 2)).await.to_string();
    let (on, to) = (format!("goes on with {}", ceiling + 1), format!("--next {}", ceiling + 2));
    assert!(refused.contains(&on) && refused.contains(&to), "{refused}");
    assert!(save(&world.ledger, starting_at(ceiling + 1)).await.is_new);
}

/// Goal: nothing issues a value below a start once the start is saved. Method: a first counter by a
/// process that uses the version before, after the save and, on PostgreSQL, while its transaction
/// is under way.
pub(super) async fn no_counter_begins_below_the_start_in_force_whatever_its_process_knows(
    world: World,
) {
    let ledger = &world.ledger;
    let starting = |code: &str, start: u64| {
        let mut change = change(code, &format!("{code}-{{PROJECT}}-{{SEQ:6}}"));
        let serial = json!({ "counter": ["project"], "start": start });
        change.definition.serials = vec![serde_json::from_value(serial).unwrap()];
        change
    };
    let of = |series: &SeriesVersion, project: &str, start: u64| {
        let key = format!("project={project}");
        CounterSpec { start, key, ..first_counter(series) }
    };
    let first = save(ledger, starting("S", 1)).await;
    let at = epoch_of(&world, &first).await;
    ledger.seed(at, world.node, &[of(&first, "P1", 2_000)]).await.unwrap();
    let second = save(ledger, starting("S", 1_000)).await;
    let error = ledger.seed(at, world.node, &[of(&first, "P2", 1)]).await.expect_err("too low");
    assert!(matches!(error, LedgerError::SeriesChanged), "{error}");
    assert_eq!(ledger.counters().count_of(first.series_id).await.unwrap(), 1);
    ledger.seed(at, world.node, &[of(&second, "P2", 1_000)]).await.unwrap();
    // A version before with the same start gives nothing that the one in force does not.
    let mut renamed = starting("S", 1_000);
    renamed.definition.name = "another".into();
    save(ledger, renamed).await;
    ledger.seed(at, world.node, &[of(&second, "P3", 1_000)]).await.unwrap();
    if ledger.engine() == "sqlite" {
        return;
    }
    save(ledger, starting("R", 1)).await;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut beginning = pool.begin().await.unwrap();
    for statement in [
        "select series_id from series where code = 'R' for share",
        "insert into counter (series_id, serial, key, partition_id, epoch, origin, start_value, \
         taken, ceiling, step, seeded_by, seeded_at_us) select series_id, 'SEQ', 'project=P1', \
         partition, 0, 0, 0, 0, 0, 1, decode(repeat('00', 16), 'hex'), 0 from series \
         where code = 'R'",
    ] {
        sqlx::query(statement).execute(&mut *beginning).await.unwrap();
    }
    let (other, raised) = (world.another().await, starting("R", 1_000));
    let saving = tokio::spawn(async move { other.series().apply(&[raised]).await });
    assert!(world.meets_lock(&pool, &saving).await, "saved beside a counter that begins");
    beginning.commit().await.unwrap();
    let error = saving.await.unwrap().expect_err("the counter is below");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::BelowStart(_))), "{error}");
}

//! Moving in while others need the counters that an import makes.

use std::time::Duration;

use numerator::ledger::{Closing, LedgerError, LedgerSettings, TakeRequest, open};

use super::imports::{counter, number, series, spec_of};
use super::world::{World, connections, order_of, record};

/// Goal: nothing takes from a counter that an import is about to make, which would be undone by it,
/// and nothing waits for another reason than that counter. Method: an import that has written its
/// rows and is blocked, and others that do not wait for long.
pub(super) async fn whoever_needs_a_counter_that_an_import_makes_waits_for_that_counter(
    world: World,
) {
    let series = series(&world).await;
    let now = world.database_epoch().await;
    let (node, other) = (world.node, world.another().await);
    let impatient = LedgerSettings { lock_timeout: Duration::from_millis(200), ..connections(2) };
    let hasty = open(&world.url, impatient, world.clock.clone()).await.unwrap();
    let order = |key: &str| {
        let mut record = record(&format!("d-{key}"));
        record.series_id = series.series_id;
        record.counter_keys = vec![key.into()];
        TakeRequest { specs: vec![spec_of(&series, key)], ..order_of(record) }
    };
    let (written, mut is_written) = tokio::sync::mpsc::unbounded_channel();
    let (end, may_end) = std::sync::mpsc::channel::<()>();
    let (counters, rows) = ([counter(&series, "k", 40)], vec![number(&series, "k", 40)]);
    let import = tokio::spawn(async move {
        let wait = std::iter::from_fn(move || {
            written.send(()).unwrap();
            tokio::task::block_in_place(|| may_end.recv().unwrap());
            None
        });
        other.imports().add(node, &counters, &[], &mut std::iter::once(Ok(rows)).chain(wait)).await
    });
    is_written.recv().await.unwrap();
    let seeded = hasty.seed(now, node, &[spec_of(&series, "k")]).await;
    assert!(matches!(seeded, Err(LedgerError::LockTimeout { .. })), "{seeded:?}");
    // SQLite has one writer, whichever it is.
    if world.ledger.engine() != "sqlite" {
        let taken = hasty.take(now, node, &[order("k")], Duration::from_millis(200)).await;
        let is_named = |name: &Option<String>| name.as_ref().is_some_and(|n| n.ends_with(":k"));
        let named =
            matches!(&taken, Err(LedgerError::LockTimeout { counter, .. }) if is_named(counter));
        assert!(named, "{taken:?}");
        assert_eq!(world.take(now, order("other")).await.taken[0].range.first, 1);
    }
    end.send(()).unwrap();
    import.await.unwrap().unwrap();
    assert_eq!(world.take(now, order("k")).await.taken[0].range.first, 41);
    world.verify().await;
}

/// Goal: the first to come makes the counter, and no second one is made. Method: a first touch and
/// an import of the same counter at the same time, many times.
pub(super) async fn a_first_touch_waits_for_the_import_that_makes_its_counter(world: World) {
    let series = series(&world).await;
    let now = world.redis_epoch(Closing::Exact).await;
    let other = world.another().await;
    let (mut imported, mut touched) = (0, 0);
    for round in 0..20 {
        let key = format!("k{round}");
        let (counters, specs) = ([counter(&series, &key, 40)], [spec_of(&series, &key)]);
        let chunks = &mut vec![Ok(vec![number(&series, &key, 40)])].into_iter();
        let import = other.imports().add(world.node, &counters, &[], chunks);
        let seed = world.ledger.seed(now, world.node, &specs);
        // The one that is named first has the start.
        let (import, seed) = if round % 2 == 0 {
            tokio::join!(import, seed)
        } else {
            let (seed, import) = tokio::join!(seed, import);
            (import, seed)
        };
        seed.unwrap();
        let row =
            world.ledger.counters().get(series.series_id, "SEQ", &key).await.unwrap().unwrap();
        match import {
            Ok(_) => {
                imported += 1;
                assert_eq!((row.start, row.epoch), (40, now.epoch), "{row:?}");
            }
            Err(refused) => {
                touched += 1;
                let refused = refused.to_string();
                let met = refused.contains("is there") || refused.contains("counted by redis");
                assert!(met, "{refused}");
                assert_eq!(row.start, 0, "{row:?}");
            }
        }
    }
    println!("{imported} imported before their first touch, {touched} touched first");
    assert_eq!(world.ledger.register().totals().await.unwrap().journal, imported);
    world.verify().await;
}

/// Goal: an import undoes no lift of a ledger that is held. Method: it waits for a counter while
/// the ledger is held and that counter is lifted.
pub(super) async fn an_import_that_waits_while_its_counter_is_lifted_is_undone(world: World) {
    // One writer at a time: nothing comes between.
    if world.ledger.engine() == "sqlite" {
        return;
    }
    let series = series(&world).await;
    let open = world.redis_epoch(Closing::Exact).await;
    world.seed(open, &spec_of(&series, "k")).await;
    world.redis_epoch(Closing::Exact).await;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut lift = pool.begin().await.unwrap();
    sqlx::query("update counter set ceiling = 120").execute(&mut *lift).await.unwrap();
    let (other, node) = (world.another().await, world.node);
    let (counters, rows) = ([counter(&series, "k", 40)], vec![number(&series, "k", 40)]);
    let import = tokio::spawn(async move {
        other.imports().add(node, &counters, &[], &mut std::iter::once(Ok(rows))).await
    });
    assert!(world.meets_lock(&pool, &import).await, "it does not wait for the counter");
    world.ledger.hold_all(&[], "c").await.unwrap();
    lift.commit().await.unwrap();
    let refused = import.await.unwrap().expect_err("the ledger is held").to_string();
    assert!(refused.contains("is held"), "{refused}");
    let row = world.ledger.counters().get(series.series_id, "SEQ", "k").await.unwrap().unwrap();
    assert_eq!(row.ceiling, 120, "the lift stands");
}

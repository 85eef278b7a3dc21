//! What a sweep deletes, and what it keeps however old that is.

use numerator::ledger::{At, Closing, Confirmed, LedgerError, PartitionState, Sweep, Swept};
use numerator::node::NodeId;

use std::time::Duration;

use super::world::{NOW_US, PARTITION, World, at, entry, spec};

/// A sweep of everything that ended before a moment.
fn before(ended_before_us: i64) -> Sweep {
    Sweep { ended_before_us, rows_max: 100 }
}

impl World {
    async fn sweeps(&self, ended_before_us: i64) -> (u64, u64) {
        let Swept { participants, nodes } =
            self.ledger.sweep(&before(ended_before_us)).await.unwrap();
        (participants, nodes)
    }

    /// An existing node.
    async fn guest(&self) -> NodeId {
        let guest = NodeId::random();
        self.join(guest).await;
        guest
    }

    /// A node that took part in an epoch and left.
    async fn leaver(&self, at: At) -> NodeId {
        let guest = self.guest().await;
        assert!(self.ledger.participate(at, guest).await.unwrap());
        self.ledger.nodes().leave(guest).await.unwrap();
        guest
    }

    async fn has(&self, node: NodeId) -> bool {
        self.ledger.nodes().beats(&[node]).await.unwrap()[0].is_some()
    }

    /// The epochs of all participations.
    async fn participations(&self) -> Vec<i64> {
        let text = "select epoch from participant order by epoch";
        if self.ledger.engine() == "sqlite" {
            let pool = sqlx::SqlitePool::connect(&self.url).await.unwrap();
            sqlx::query_scalar(text).fetch_all(&pool).await.unwrap()
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            sqlx::query_scalar(text).fetch_all(&pool).await.unwrap()
        }
    }
}

pub(super) async fn participations_in_epochs_closed_long_ago_go(world: World) {
    let first = world.redis_epoch(Closing::Exact).await;
    world.leaver(first).await;
    for closing in [Closing::Ceiling, Closing::Exact, Closing::Exact] {
        let next = world.redis_epoch(closing).await;
        world.leaver(next).await;
    }
    assert_eq!(world.participations().await, [1, 1, 2, 3, 4]);
    assert_eq!(world.sweeps(NOW_US).await, (0, 0), "none was closed before that");
    let one = Sweep { rows_max: 1, ..before(NOW_US + 1) };
    assert_eq!(world.ledger.sweep(&one).await.unwrap().participants, 1, "a page at a time");
    assert_eq!(world.sweeps(NOW_US + 1).await.0, 1);
    // The node that was never accounted for explains what the first epoch lost; Redis may name the
    // participants of the two newest.
    assert_eq!(world.participations().await, [1, 3, 4]);
    let missing = world.ledger.closed_epoch(first, Some(Closing::Ceiling)).await.unwrap();
    assert_eq!(missing.unwrap().missing.len(), 1);
    for _ in 0..3 {
        world.database_epoch().await;
    }
    assert_eq!(world.sweeps(NOW_US + 1).await.0, 0, "nobody takes part in the database's");
    assert_eq!(world.participations().await, [1, 3, 4]);
}

pub(super) async fn nodes_that_ended_long_ago_go_unless_something_names_them(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    let [left, retired, lessee, both, again] = [
        world.guest().await,
        world.guest().await,
        world.guest().await,
        world.guest().await,
        world.guest().await,
    ];
    let named = world.leaver(open).await;
    let lease = ledger.snowflakes().lease(lessee, 1, Duration::from_secs(1)).await.unwrap();
    assert!(lease.is_some());
    for node in [left, lessee, both] {
        ledger.nodes().leave(node).await.unwrap();
    }
    for node in [retired, again] {
        assert!(ledger.nodes().retire(node, 0).await.unwrap());
    }
    // What came last counts.
    world.clock.set(NOW_US + 10);
    assert!(ledger.nodes().retire(both, 0).await.unwrap());
    ledger.nodes().leave(again).await.unwrap();

    assert_eq!(world.sweeps(NOW_US).await, (0, 0));
    let one = Sweep { rows_max: 1, ..before(NOW_US + 1) };
    assert_eq!(ledger.sweep(&one).await.unwrap().nodes, 1, "a page at a time");
    assert_eq!(world.sweeps(NOW_US + 1).await, (0, 1));
    assert!(!world.has(left).await && !world.has(retired).await);
    for (node, why) in [
        (world.node, "it is there"),
        (named, "it took part in the present epoch"),
        (lessee, "its lease may not be over"),
        (both, "it was adopted later"),
        (again, "it left later"),
    ] {
        assert!(world.has(node).await, "{why}");
    }
    assert_eq!(world.sweeps(NOW_US + 11).await, (0, 2), "a moment later");
}

pub(super) async fn who_slept_until_its_row_was_swept_is_gone_and_nothing_went_back(world: World) {
    let ledger = &world.ledger;
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let sleeper = world.guest().await;
    ledger.nodes().heartbeat(sleeper, None).await.unwrap();
    assert!(ledger.nodes().retire(sleeper, 1).await.unwrap());
    let word = ledger.confirmed(sleeper).unwrap();
    world.clock.set(NOW_US + 1_000);
    assert_eq!(world.another().await.sweep(&before(NOW_US + 1)).await.unwrap().nodes, 1);

    let gone = |result: Result<(), LedgerError>| {
        assert!(matches!(result, Err(LedgerError::NodeGone(_))), "{result:?}");
    };
    gone(ledger.nodes().heartbeat(sleeper, None).await.map(drop));
    gone(ledger.participate(open, sleeper).await.map(drop));
    // What it handed out is journaled under whatever identity it has by now.
    let appended = ledger.append(sleeper, &[entry(open, counter_id, 1)]).await.unwrap();
    assert_eq!(appended.written, 1);

    let late = Confirmed { at_us: NOW_US + 1_000_000, ..word };
    for word in [word, late] {
        assert!(ledger.nodes().remembers(&word).await.unwrap(), "its identity is there: {word:?}");
    }
    let stranger = Confirmed { node: NodeId::random(), at_us: 0, ..word };
    assert!(!ledger.nodes().remembers(&stranger).await.unwrap(), "however old a word is");
    // The ledger goes back to before the sweep, and to before what was confirmed last.
    world.sql("delete from swept_node").await;
    assert!(
        !ledger.nodes().remembers(&word).await.unwrap(),
        "nobody says any more that it was swept"
    );
    world.join(sleeper).await;
    assert!(
        !ledger.nodes().remembers(&word).await.unwrap(),
        "its row shows less than was confirmed"
    );
}

pub(super) async fn no_sweep_excuses_a_ledger_that_forgot_a_node(world: World) {
    let ledger = &world.ledger;
    let left = world.guest().await;
    ledger.nodes().leave(left).await.unwrap();
    ledger.nodes().heartbeat(world.node, None).await.unwrap();
    assert_eq!(world.sweeps(NOW_US + 1).await, (0, 1));
    let word = ledger.confirmed(world.node).unwrap();
    world.sql("delete from node").await;
    let beaten = ledger.nodes().heartbeat(world.node, None).await;
    assert!(matches!(beaten, Err(LedgerError::WentBack(_))), "{beaten:?}");
    assert!(!ledger.nodes().remembers(&word).await.unwrap());
}

pub(super) async fn nothing_is_swept_while_the_ledger_is_held(world: World) {
    for _ in 0..4 {
        let open = world.redis_epoch(Closing::Exact).await;
        world.leaver(open).await;
    }
    let left = world.guest().await;
    world.ledger.nodes().leave(left).await.unwrap();
    world.ledger.hold_all(&[], "it went back").await.unwrap();
    assert_eq!(world.sweeps(NOW_US + 1).await, (0, 0), "everything is evidence");
    assert!(world.has(left).await);
}

pub(super) async fn an_epoch_that_was_closed_before_a_moment_is_found(world: World) {
    let ledger = &world.ledger;
    let closed = async |before_us| ledger.closed_before(PARTITION, before_us).await.unwrap();
    world.redis_epoch(Closing::Exact).await;
    assert_eq!(closed(NOW_US).await, 0, "epoch 0 was closed at that moment");
    for later in 1..4 {
        world.clock.set(NOW_US + later);
        world.redis_epoch(Closing::Exact).await;
    }
    assert_eq!([closed(NOW_US + 3).await, closed(NOW_US + 4).await], [2, 3]);
    assert_eq!(ledger.closed_before(1, NOW_US + 4).await.unwrap(), 0, "another partition");
    ledger.bump(at(4), PartitionState::Open, world.node, "c").await.unwrap();
    assert_eq!(closed(NOW_US + 4).await, 0, "nothing is certain in between");
}

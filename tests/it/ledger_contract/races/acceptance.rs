//! A reservation, and a save of series or reference data at the same moment.

use std::time::Duration;

use numerator::ledger::{At, TakeOutcome, TakeRequest};

use super::{Scene, let_go, order as order_by};
use crate::ledger_contract::reservations::reserving;
use crate::ledger_contract::setup::change;
use crate::ledger_contract::world::{LOCK_WAIT, order};

/// What a save has for itself: its name is of the schema.
pub(super) const SERIES_LOCK: &str = "select pg_advisory_xact_lock(hashtextextended(
    current_schema(), 2373150711042061335)); select 1 from deployment for update; ";

/// The series of all orders, with an ambiguity that it accepts.
const ACCEPTING: &str = "insert into series (series_id, code, partition, active_version)
    overriding system value values (7, 'S', 2, 1);
    insert into series_version (series_id, version, definition, saved_by, reason, saved_at_us)
    values (7, 1, '{\"code\":\"S\",\"name\":\"n\",\"serves\":{\"types\":[\"S\"]},
    \"policy\":\"gapless\",\"template\":\"{SEQ:4}\",\"serials\":[{\"counter\":[\"type\"]}],
    \"ambiguity_accepted\":\"so\"}', 'u', 'r', 1)";

/// The same in a version that no program reads.
const UNREADABLE: &str = "insert into series (series_id, code, partition, active_version)
    overriding system value values (7, 'S', 2, 1);
    insert into series_version (series_id, version, definition, saved_by, reason, saved_at_us)
    values (7, 1, '{\"code\":\"S\",\"ambiguity_accepted\":\"so\"}', 'u', 'r', 1)";

/// A change of reference data.
const REFERENCE: &str = "insert into reference_change (table_name, change, changed_by, reason,
    changed_at_us) values ('T', '[]', 'u', 'r', 1)";

impl Scene {
    /// Runs and commits a statement.
    async fn run(&self, statement: &str) {
        let_go(self.hold(statement).await).await;
    }

    /// What becomes of orders that wait for no lock.
    async fn outcomes(&self, at: At, orders: &[TakeRequest]) -> Vec<TakeOutcome> {
        let (ledger, brief) = (&self.world.ledger, Duration::from_millis(50));
        ledger.take(at, self.world.node, orders, brief).await.unwrap().outcomes
    }

    /// What becomes of an order that reserves, and of one beside it that takes its number.
    async fn outcome_of_reserving(&self, at: At, document: &str) -> TakeOutcome {
        let plain = order(&format!("beside-{document}"));
        let mut outcomes = self.outcomes(at, &[reserving(order(document)), plain]).await;
        assert!(matches!(outcomes[1], TakeOutcome::Taken(_)), "{outcomes:?}");
        outcomes.remove(0)
    }

    /// Looks which series reserve nothing.
    async fn look(&self) {
        self.world.ledger.series().learn_unreserved(0, 0).await.unwrap();
    }
}

/// Goal: nothing is reserved of which rows alone keep the text apart (L14), and nothing waits for
/// that. Method: orders while a save is under way, behind it, and once it was looked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_series_that_accepts_an_ambiguity_meanwhile_reserves_nothing() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    let saving = scene.hold(format!("{SERIES_LOCK}{ACCEPTING}")).await;
    assert_eq!(scene.outcome_of_reserving(at, "a").await, TakeOutcome::SeriesChanging);
    let_go(saving).await;
    assert_eq!(scene.outcome_of_reserving(at, "b").await, TakeOutcome::SeriesChanging);
    scene.look().await;
    assert_eq!(scene.outcome_of_reserving(at, "c").await, TakeOutcome::NotKeptApart);
    scene.world.is_whole().await;
}

/// Goal: a save sees what was reserved before it. Method: it waits for a reservation that waits for
/// its counter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_series_is_saved_once_a_reservation_is_made_that_began_before() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    scene.world.take(at, order("a")).await;
    let held = scene.hold("select 1 from counter for update").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let reserve =
        tokio::spawn(
            async move { ledger.take(at, node, &[reserving(order("b"))], LOCK_WAIT).await },
        );
    scene.wait(1, &reserve).await;
    let ledger = scene.world.another().await;
    let save =
        tokio::spawn(async move { ledger.series().apply(&[change("N", "N-{SEQ:3}")]).await });
    scene.wait(2, &save).await;
    assert!(!save.is_finished(), "a series was saved beside a reservation");
    let_go(held).await;
    let outcomes = reserve.await.unwrap().unwrap().outcomes;
    assert!(matches!(outcomes[..], [TakeOutcome::Reserved(_)]), "{outcomes:?}");
    save.await.unwrap().unwrap();
    scene.world.is_whole().await;
}

/// Goal: reservations that overlap do not keep a save waiting for ever. Method: one that begins
/// while a save waits for another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_does_not_wait_for_reservations_that_begin_after_it() {
    let mut scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    scene.world.take(at, order_by("a", "a")).await;
    let held = scene.hold("select 1 from counter where key = 'a' for update").await;
    let (ledger, node) = (scene.world.another().await, scene.world.node);
    let orders = [reserving(order_by("a", "b"))];
    let first = tokio::spawn(async move { ledger.take(at, node, &orders, LOCK_WAIT).await });
    scene.wait(1, &first).await;
    let ledger = scene.world.another().await;
    let save =
        tokio::spawn(async move { ledger.series().apply(&[change("N", "N-{SEQ:3}")]).await });
    scene.wait(2, &save).await;
    let next = [reserving(order_by("b", "c")), order_by("b", "d")];
    let outcomes = scene.outcomes(at, &next).await;
    let is_refused = matches!(outcomes[..], [TakeOutcome::SeriesChanging, TakeOutcome::Taken(_)]);
    assert!(is_refused, "{outcomes:?}");
    let_go(held).await;
    first.await.unwrap().unwrap();
    save.await.unwrap().unwrap();
    // No series accepts an ambiguity: no look at texts is needed.
    let outcomes = scene.outcomes(at, &next[..1]).await;
    assert!(matches!(outcomes[..], [TakeOutcome::Reserved(_)]), "{outcomes:?}");
    scene.world.is_whole().await;
}

/// Goal: what cannot be found out is no fault of the series that asks. Method: a version that
/// cannot be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_reserved_where_it_cannot_be_found_out_which_series_may() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    scene.run(UNREADABLE).await;
    assert_eq!(scene.outcome_of_reserving(at, "a").await, TakeOutcome::SeriesChanging);
    scene.look().await;
    let outcome = scene.outcome_of_reserving(at, "b").await;
    assert!(matches!(outcome, TakeOutcome::SeriesUnknown { .. }), "{outcome:?}");
    // It is not looked again at once.
    assert!(scene.world.ledger.series().knows_unreserved(0, 0));
    scene.world.is_whole().await;
}

/// Goal: which texts are equal depends on reference data, too (L14).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_of_other_reference_data_reserves_nothing() {
    let scene = Scene::set().await;
    let at = scene.world.database_epoch().await;
    scene.run(ACCEPTING).await;
    scene.look().await;
    assert_eq!(scene.outcome_of_reserving(at, "a").await, TakeOutcome::NotKeptApart);
    scene.run(REFERENCE).await;
    assert_eq!(scene.outcome_of_reserving(at, "b").await, TakeOutcome::SeriesChanging);
    scene.look().await;
    assert_eq!(scene.outcome_of_reserving(at, "c").await, TakeOutcome::NotKeptApart);
    scene.world.is_whole().await;
}

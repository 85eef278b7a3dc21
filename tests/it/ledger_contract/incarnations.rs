//! A ledger is of one incarnation: a node that agreed on another writes nothing in it and learns
//! nothing from it (F25). The going back is done with plain SQL, like a copy put in its place.

use numerator::engine::allocator::{Catalog, CatalogStamp};
use numerator::ledger::{
    Acknowledged, At, Bindable, Closing, Confirmed, GapFilter, GapReason, LedgerError, Owner,
    PartitionState, Question, Released, SignedCheckpoint, Sweep,
};
use numerator::node::{NodeId, system_random};

use super::journal::marks;
use super::world::{LOCK_WAIT, NOW_US, PARTITION, World, at, entry, order, range, redis, spec};

fn went_back<T>(result: &Result<T, LedgerError>) -> bool {
    matches!(result, Err(LedgerError::WentBack(_)))
}

impl World {
    /// The same process under another identity.
    pub(super) async fn anew(self) -> World {
        let world = World { node: NodeId::random(), ..self };
        world.join(world.node).await;
        world
    }

    /// What a copy looks like that replaced the ledger: PostgreSQL writes each row anew, a file is
    /// of an earlier generation.
    async fn put_back(&self) {
        if self.ledger.engine() == "sqlite" {
            self.sql("update incarnation set generation = generation - 1").await;
        } else {
            self.sql("update incarnation set number = number").await;
        }
    }

    /// Every call by which a node takes, joins, closes, journals or asks.
    async fn assert_stopped(&self, open: At, counter_id: i64) {
        let (ledger, node) = (&self.ledger, self.node);
        assert!(went_back(&ledger.take(open, node, &[order("d")], LOCK_WAIT).await));
        assert!(went_back(&ledger.seed(open, node, &[spec("new")]).await));
        assert!(went_back(&ledger.append(node, &[entry(open, counter_id, 9)]).await));
        assert!(went_back(&ledger.participate(open, node).await));
        assert!(went_back(&ledger.nodes().heartbeat(node, None).await));
        assert!(went_back(&ledger.nodes().must_show(node).await));
        assert!(went_back(&ledger.partitions_as(node).await));
        assert!(went_back(&ledger.bump(open, PartitionState::Open, node, "c").await));
        assert!(went_back(&ledger.acknowledge(open, &[node]).await));
        assert!(went_back(&ledger.claim_open(open, node, true, &redis()).await));
        assert!(went_back(&ledger.opened(open, node).await));
        assert!(went_back(&ledger.nodes().leave(node).await));
    }

    async fn ask(&self, document: &str) -> Result<usize, LedgerError> {
        let question = Question { document_id: Some(document.into()), ..order(document).question };
        let found = self.ledger.replays(&[question]).await?;
        Ok(found.iter().filter(|found| found.by_document.is_some()).count())
    }
}

pub(super) async fn nobody_takes_from_a_ledger_that_another_process_holds(world: World) {
    let open = world.database_epoch().await;
    let entry = world.take(open, order("before")).await;
    assert_eq!(world.ask("before").await.unwrap(), 1);
    world.another().await.hold_all(&[], "another process says so").await.unwrap();
    // Its own marks all exist: it has lost nothing.
    world.assert_stopped(open, entry.taken[0].counter_id).await;
    assert!(went_back(&world.ask("before").await), "what it does not know may be out");
    assert!(went_back(&world.ledger.raise(open, &[]).await));
}

pub(super) async fn a_copy_put_in_place_stops_a_node_that_lost_nothing(world: World) {
    let open = world.database_epoch().await;
    let entry = world.take(open, order("before")).await;
    let counter_id = entry.taken[0].counter_id;
    world.put_back().await;
    world.assert_stopped(open, counter_id).await;
    assert!(went_back(&world.ask("before").await));
    // What was handed out is journaled whatever the ledger has become.
    world.ledger.journal_again(world.node, &[entry]).await.unwrap();
    assert_eq!(world.ledger.hold_all(&[], "c").await.unwrap(), 5);
    world.assert_stopped(open, counter_id).await;
    let world = world.anew().await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
}

pub(super) async fn a_copy_put_in_place_while_nobody_looked_is_held_when_it_is_opened(
    world: World,
) {
    let open = world.database_epoch().await;
    world.take(open, order("before")).await;
    world.put_back().await;
    let rows = world.another().await.partitions().await.unwrap();
    assert!(rows.iter().all(|row| row.state == PartitionState::Held), "{rows:?}");
    let again = world.another().await;
    assert_eq!(again.hold_all(&[], "c").await.unwrap(), 0, "it is held once");
}

pub(super) async fn whoever_comes_late_holds_nothing_again(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let other = world.another().await;
    assert_eq!(other.hold_all(&[open], "c").await.unwrap(), 5);
    for row in other.partitions().await.unwrap() {
        let to = At { partition: row.partition, epoch: row.epoch + 2 };
        assert_eq!(other.release(to, 0).await.unwrap(), Released::Released);
    }
    assert!(went_back(&world.ledger.nodes().heartbeat(world.node, None).await), "it slept");
    assert_eq!(world.ledger.hold_all(&[open], "late").await.unwrap(), 0);
    let row = world.partition().await;
    assert_eq!((row.state, row.owner), (PartitionState::Open, Owner::None));
    // A node that has seen a higher epoch than the released one knows more.
    let seen = At { partition: PARTITION, epoch: row.epoch + 1 };
    let later = world.another().await;
    assert_eq!(later.hold_all(&[seen], "more").await.unwrap(), 5);
}

pub(super) async fn of_two_branches_of_a_ledger_neither_is_taken_for_the_other(world: World) {
    let open = world.database_epoch().await;
    let (one, other) = (world.another().await, world.another().await);
    one.hold_all(&[], "c").await.unwrap();
    let world = World { ledger: one, ..world }.anew().await;
    // The other branch drew the same number, and a nonce of its own.
    if world.ledger.engine() == "sqlite" {
        world.sql("update incarnation set nonce = randomblob(16)").await;
    } else {
        world.sql("update incarnation set nonce = decode(repeat('ab', 16), 'hex')").await;
    }
    assert!(went_back(&world.ledger.take(open, world.node, &[order("d")], LOCK_WAIT).await));
    assert_eq!(world.ledger.hold_all(&[at(9)], "c").await.unwrap(), 0, "all are held");
    assert!(went_back(&other.raise(open, &[]).await));
}

/// Goal: a value that Redis has issued above a ceiling of the ledger's is not a bad row, and no
/// reason to lift the ceiling silently: the ledger has forgotten a raise (F25).
pub(super) async fn an_entry_above_the_ceiling_of_its_epoch_shows_that_the_ledger_went_back(
    world: World,
) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, _, ceiling) = world.seed(open, &spec("k")).await;
    assert_eq!(ceiling, 10);
    let above = range(open, counter_id, 10, 12);
    let batch = [entry(open, counter_id, 1), above.clone()];
    let error = world.ledger.append(world.node, &batch).await.expect_err("above");
    assert!(error.to_string().contains("its ceiling is 10, and 12 was issued"), "{error}");
    assert_eq!(marks(&world).await, (0, 10, 0), "nothing is written");
    // Nothing is confirmed to this node any more, whatever marks the ledger shows of it.
    assert!(went_back(&world.ledger.nodes().heartbeat(world.node, None).await));
    // What was handed out is journaled nevertheless, and nothing continues below it.
    world.ledger.journal_again(world.node, &batch).await.unwrap();
    assert_eq!(marks(&world).await, (12, 12, 4));
}

pub(super) async fn an_entry_of_an_unknown_counter_shows_that_the_ledger_went_back(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let error = world.ledger.append(world.node, &[entry(open, 999, 1)]).await.expect_err("unknown");
    assert!(matches!(&error, LedgerError::WentBack(why) if why.contains("999")), "{error}");
    assert!(went_back(&world.ledger.nodes().heartbeat(world.node, None).await));
    world.ledger.reject(&entry(open, 999, 1), "unknown counter").await.unwrap();
    assert_eq!(
        world.ledger.register().totals().await.unwrap().rejected,
        1,
        "kept raw all the same"
    );
}

/// Two takes of one counter, a heartbeat between them, the second one forgotten again.
async fn second_take_is_forgotten(world: &World) -> At {
    let at = world.database_epoch().await;
    world.take(at, order("kept")).await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    world.take(at, order("forgotten")).await;
    world.sql("delete from journal where document_id = 'forgotten'").await;
    world.sql("update counter set taken = 1, ceiling = 1, journaled = 1").await;
    at
}

pub(super) async fn a_take_that_the_ledger_forgot_is_noticed_by_the_next(world: World) {
    let at = second_take_is_forgotten(&world).await;
    let node = world.node;
    let next = world.ledger.take(at, node, &[order("next")], LOCK_WAIT).await;
    assert!(went_back(&next), "it has that value: {next:?}");
    assert!(
        went_back(&world.ledger.nodes().heartbeat(node, None).await),
        "the process has to learn of it"
    );
}

pub(super) async fn a_counter_that_the_ledger_forgot_is_not_begun_anew(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("forgotten")).await;
    world.sql("delete from journal").await;
    world.sql("delete from counter").await;
    let next = world.ledger.take(at, world.node, &[order("next")], LOCK_WAIT).await;
    assert!(went_back(&next), "it has that value: {next:?}");
}

pub(super) async fn a_take_that_the_ledger_forgot_is_noticed_though_another_took_its_value(
    world: World,
) {
    let at = second_take_is_forgotten(&world).await;
    // The other one was not informed: this value is issued twice.
    let other = World::open(&world.url).await;
    other.take(at, order("twice")).await;
    let bumped = other.ledger.bump(at, PartitionState::Open, other.node, "t").await.unwrap();
    let next = At { epoch: bumped.unwrap(), ..at };
    let acknowledged = world.ledger.acknowledge(next, &[world.node]).await.unwrap();
    assert_eq!(acknowledged, Acknowledged::Forgotten, "it would close the epoch without them");
    assert!(went_back(&world.ledger.check_takes().await));
}

/// Goal: a heartbeat that follows a take shows it only once the heartbeat was seen after it.
pub(super) async fn a_take_is_let_go_once_it_is_seen_behind_a_heartbeat(world: World) {
    let (ledger, at) = (&world.ledger, world.database_epoch().await);
    world.take(at, order("kept")).await;
    ledger.check_takes().await.unwrap();
    assert!(!ledger.has_unproven_takes(), "no heartbeat has followed");
    ledger.nodes().heartbeat(world.node, None).await.unwrap();
    assert!(ledger.has_unproven_takes());
    world.sql("update journal set document_id = null where document_id = 'kept'").await;
    world.sql("delete from journal").await;
    assert!(went_back(&ledger.check_takes().await));
    assert!(ledger.has_unproven_takes(), "nothing is let go");
}

/// Goal: a record that no node remembers is reported all the same: its counter continues above it.
pub(super) async fn a_later_incarnation_is_told_how_far_each_counter_was_taken(world: World) {
    let at = world.database_epoch().await;
    world.take(at, order("kept")).await;
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    for document in ["one", "two"] {
        world.take(at, order(document)).await;
    }
    world.sql("delete from journal where document_id <> 'kept'").await;
    world.sql("update counter set taken = 1, ceiling = 1, journaled = 1").await;
    assert_eq!(world.ledger.hold_all(&[], "c").await.unwrap(), 5);
    let raised = world.ledger.report_takes(world.node).await.unwrap();
    assert_eq!(raised.into_iter().collect::<Vec<_>>(), [PARTITION]);
    assert_eq!(marks(&world).await.0, 3);
    let gaps = world.ledger.register().gaps(&GapFilter::default()).await.unwrap();
    let spans: Vec<_> =
        gaps.iter().map(|gap| (gap.span.first, gap.span.last, gap.reason)).collect();
    assert_eq!(spans, [(2, 3, GapReason::Unaccounted)]);
    assert!(world.ledger.report_takes(world.node).await.unwrap().is_empty(), "it is told once");
}

/// Goal: a ledger knows its own line, and what was confirmed outside it is another one's (F36).
pub(super) async fn a_later_incarnation_is_ones_own_only_by_descent(world: World) {
    let ledger = &world.ledger;
    ledger.nodes().heartbeat(world.node, None).await.unwrap();
    let mine = ledger.confirmed(world.node).unwrap();
    assert!(ledger.nodes().remembers(&mine).await.unwrap());
    let other = world.another().await;
    other.hold_all(&[], "a copy is tried").await.unwrap();
    assert!(other.nodes().remembers(&mine).await.unwrap(), "nothing of it is missing");
    let at_us = mine.at_us;
    let earlier = Confirmed { beat: mine.beat + 9, ..mine };
    assert!(other.nodes().remembers(&earlier).await.unwrap(), "who held it has decided on that");
    let later = Confirmed { at_us: at_us + 3_600_000_000, ..earlier };
    assert!(!other.nodes().remembers(&later).await.unwrap(), "it was confirmed beside this one");
    let strange = Confirmed { nonce: system_random(), ..mine };
    assert!(!other.nodes().remembers(&strange).await.unwrap(), "another branch drew that number");
    // The node that ends the next hold has decided on these, too, wherever they are recorded.
    other.hold_all_after(&later, &[], "found by its witness").await.unwrap();
    other.hold_all_after(&strange, &[], "found by its witness").await.unwrap();
    let decided = Confirmed { at_us, ..later };
    assert!(
        other.nodes().remembers(&decided).await.unwrap()
            && other.nodes().remembers(&strange).await.unwrap()
    );
}

/// Goal: a branch that has swept a node lacks what was confirmed to it outside the branch (F36):
/// that it once had the node says nothing of what came later.
pub(super) async fn a_branch_excuses_nothing_by_its_own_sweep(world: World) {
    let (ledger, node) = (&world.ledger, world.node);
    ledger.nodes().heartbeat(node, None).await.unwrap();
    let before = ledger.confirmed(node).unwrap();
    let branch = world.another().await;
    branch.hold_all(&[], "a copy is tried").await.unwrap();
    for row in branch.partitions().await.unwrap() {
        let to = At { partition: row.partition, epoch: row.epoch + 2 };
        assert_eq!(branch.release(to, 0).await.unwrap(), Released::Released);
    }
    assert!(branch.nodes().retire(node, before.beat).await.unwrap());
    world.clock.set(NOW_US + 1_000);
    let sweep = Sweep { ended_before_us: NOW_US + 1, rows_max: 100 };
    assert_eq!(branch.sweep(&sweep).await.unwrap().nodes, 1);
    assert!(branch.nodes().remembers(&before).await.unwrap(), "who held it has decided on that");
    let at_us = before.at_us + 3_600_000_000;
    let beside = Confirmed { at_us, beat: before.beat + 9, ..before };
    assert!(
        !branch.nodes().remembers(&beside).await.unwrap(),
        "it was confirmed beside the branch"
    );
}

/// A checkpoint follows from what several calls read: of a ledger that has gone back meanwhile none
/// of it is valid any more, although all nodes continue in the other one.
pub(super) async fn a_checkpoint_goes_into_the_ledger_that_it_was_read_from(world: World) {
    let ledger = &world.ledger;
    let before = ledger.one_incarnation().await.unwrap();
    let checkpoint = |number| SignedCheckpoint {
        number,
        body: "{}".into(),
        public_key: vec![1; 32],
        signature: vec![2; 64],
    };
    assert!(ledger.checkpoints().add(before, None, &checkpoint(1)).await.unwrap());
    let assert_stopped = async || {
        let (reads, ids) = (Some(before), (0, i64::MAX));
        assert!(went_back(&ledger.checkpoints().last(reads).await));
        assert!(went_back(&ledger.checkpoints().bindable(reads, Bindable::Batches, ids, 1).await));
        let (last, next) = (checkpoint(1), checkpoint(2));
        assert!(went_back(&ledger.checkpoints().add(before, Some(&last), &next).await));
    };
    world.put_back().await;
    assert_stopped().await;
    ledger.hold_all(&[], "c").await.unwrap();
    assert_stopped().await;
    // A read-only command sees the present state.
    assert_eq!(ledger.checkpoints().last(None).await.unwrap(), Some(checkpoint(1)));
    let now = ledger.one_incarnation().await.unwrap();
    assert_eq!(ledger.checkpoints().last(Some(now)).await.unwrap(), Some(checkpoint(1)));
    assert!(ledger.checkpoints().add(now, Some(&checkpoint(1)), &checkpoint(2)).await.unwrap());
    // Nor is one written after another than it follows: three after one, a second first one.
    let forgotten = checkpoint(3);
    assert!(!ledger.checkpoints().add(now, Some(&forgotten), &checkpoint(4)).await.unwrap());
    assert!(!ledger.checkpoints().add(now, Some(&checkpoint(1)), &checkpoint(2)).await.unwrap());
    assert!(!ledger.checkpoints().add(now, None, &checkpoint(3)).await.unwrap());
    assert_eq!(ledger.checkpoints().last(None).await.unwrap(), Some(checkpoint(2)));
}

/// Goal: no process continues with series that the ledger has forgotten. Of two branches of a
/// ledger both may have saved other series, or tables, under the same numbers.
pub(super) async fn a_catalog_of_before_the_ledger_went_back_is_not_taken_for_the_one_of_now(
    world: World,
) {
    let ledger = &world.ledger;
    let before = ledger.stamps().await.unwrap();
    let catalog = Catalog::load(ledger).await.unwrap();
    assert_eq!(CatalogStamp::of(before), catalog.stamp(), "nothing has changed");
    world.put_back().await;
    ledger.hold_all(&[], "c").await.unwrap();
    let now = ledger.stamps().await.unwrap();
    assert_eq!((now.series, now.reference), (before.series, before.reference));
    assert_ne!(CatalogStamp::of(now), catalog.stamp(), "it is read anew");
    let catalog = Catalog::load(ledger).await.unwrap();
    assert_eq!(CatalogStamp::of(now), catalog.stamp());
}

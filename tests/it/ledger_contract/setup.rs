//! Deployment, series, nodes, events.

use numbering::SeriesDefinition;
use numerator::ledger::{
    At, Closing, CounterSpec, Deployment, Event, Expected, LedgerError, Owner, PartitionState,
    SeriesChange,
};
use serde_json::json;

use super::world::{NOW_US, World, connections, deployment, spec};

/// A definition of one serial for the type of its code.
pub(super) fn change(code: &str, template: &str) -> SeriesChange {
    let definition: SeriesDefinition = serde_json::from_value(json!({
        "code": code, "name": "n", "serves": {"types": [code]}, "template": template,
        "serials": [{}],
    }))
    .unwrap();
    let (saved_by, reason) = ("me".to_owned(), "because".to_owned());
    let expected = Expected::Anything;
    SeriesChange { definition, expected, saved_by, reason, saved_at_us: NOW_US }
}

fn of_policy(code: &str, policy: &str) -> SeriesChange {
    let mut change = change(code, &format!("{code}-{{SEQ:3}}"));
    change.definition.policy = serde_json::from_value(json!(policy)).unwrap();
    change
}

pub(super) async fn a_deployment_is_written_once_and_other_settings_are_refused(world: World) {
    let first = world.ledger.deployment(&deployment()).await.unwrap();
    let second = world.ledger.deployment(&deployment()).await.unwrap();
    assert_eq!(first.deployment_id, second.deployment_id, "the first one's id stays");
    let partitions = world.ledger.partitions().await.unwrap();
    assert_eq!(partitions.iter().map(|p| p.partition).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(first.gapless_partition(), 4, "one more than series are spread over");
    for (setting, wanted) in [
        ("partitions", Deployment { partitions: 8, ..deployment() }),
        ("redis.prefix", Deployment { prefix: "other".into(), ..deployment() }),
    ] {
        let error = world.ledger.deployment(&wanted).await.expect_err(setting);
        let named = matches!(error, LedgerError::SettingsDiffer { setting: s, .. } if s == setting);
        assert!(named, "{error}");
    }
}

pub(super) async fn series_need_a_deployment(world: World) {
    let url = match world.ledger.engine() {
        "sqlite" => format!("{}2", world.url),
        // The same schema after the deployment is gone is as good as a new one.
        _ => return postgres_without_deployment(world).await,
    };
    let empty = numerator::ledger::open(&url, connections(1), world.clock.clone()).await.unwrap();
    let error = empty.series().apply(&[change("S", "{SEQ:3}")]).await.expect_err("no deployment");
    assert!(error.to_string().contains("deployment"), "{error}");
}

async fn postgres_without_deployment(world: World) {
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    sqlx::query("delete from deployment").execute(&pool).await.unwrap();
    let error =
        world.ledger.series().apply(&[change("S", "{SEQ:3}")]).await.expect_err("no deployment");
    assert!(error.to_string().contains("deployment"), "{error}");
}

pub(super) async fn a_changed_series_gets_a_new_version_and_an_equal_one_does_not(world: World) {
    let ledger = &world.ledger;
    assert_eq!(ledger.series().stamp().await.unwrap(), 0);
    let first = ledger.series().apply(&[change("S", "A{SEQ:3}")]).await.unwrap().remove(0);
    assert_eq!((first.version, first.is_new), (1, true));
    assert!(first.partition < 4);
    let stamp = ledger.series().stamp().await.unwrap();

    let same = ledger.series().apply(&[change("S", "A{SEQ:3}")]).await.unwrap().remove(0);
    assert_eq!((same.version, same.is_new, same.series_id), (1, false, first.series_id));
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp);

    let second = ledger.series().apply(&[change("S", "B{SEQ:3}")]).await.unwrap().remove(0);
    assert_eq!((second.version, second.is_new, second.series_id), (2, true, first.series_id));
    assert_eq!(second.partition, first.partition, "a series stays where it is");
    assert!(ledger.series().stamp().await.unwrap() > stamp);
    let active = ledger.series().list().await.unwrap();
    assert_eq!(active.len(), 1);
    assert_eq!((active[0].version, &*active[0].definition.template), (2, "B{SEQ:3}"));
    assert_eq!((&*active[0].saved_by, &*active[0].reason), ("me", "because"));
}

pub(super) async fn gapless_series_share_the_last_partition(world: World) {
    let ledger = &world.ledger;
    let changes = [of_policy("A", "gapless"), of_policy("B", "gapless"), of_policy("C", "durable")];
    let applied = ledger.series().apply(&changes).await.unwrap();
    assert_eq!((applied[0].partition, applied[1].partition), (4, 4));
    assert!(applied[2].partition < 4);
    for policy in ["fast", "gapless", "durable", "gapless"] {
        let changed = ledger.series().apply(&[of_policy("A", policy)]).await.unwrap().remove(0);
        assert_eq!(changed.partition == 4, policy == "gapless", "an unused series moves freely");
        let listed = ledger.series().list().await.unwrap();
        assert_eq!(listed[0].partition, changed.partition, "{policy}");
    }
}

pub(super) async fn a_series_with_counters_stays_in_its_partition(world: World) {
    let ledger = &world.ledger;
    let series = ledger.series().apply(&[of_policy("A", "fast")]).await.unwrap().remove(0);
    let partition = series.partition;
    let next = ledger.bump(At { partition, epoch: 0 }, PartitionState::Open, world.node, "t").await;
    let at = At { partition, epoch: next.unwrap().unwrap() };
    let owner = Owner::Database;
    world.claim(at, Closing::Exact, &owner).await;
    let spec = CounterSpec { series_id: series.series_id, ..spec("k") };
    ledger.seed(at, world.node, &[spec]).await.unwrap();
    let error =
        ledger.series().apply(&[of_policy("A", "gapless")]).await.expect_err("has counters");
    assert!(error.to_string().contains("apply a new series"), "{error}");
    let changed = ledger.series().apply(&[of_policy("A", "durable")]).await.unwrap().remove(0);
    assert_eq!((changed.version, changed.partition), (2, partition));
}

pub(super) async fn a_first_counter_is_refused_where_its_series_no_longer_lives(world: World) {
    let ledger = &world.ledger;
    let series = ledger.series().apply(&[of_policy("A", "gapless")]).await.unwrap().remove(0);
    let at = world.database_epoch().await;
    let spec = CounterSpec { series_id: series.series_id, ..spec("k") };
    let error = ledger.seed(at, world.node, &[spec]).await.expect_err("lives elsewhere");
    assert!(matches!(error, LedgerError::SeriesChanged), "{error}");
    assert_eq!(ledger.counters().page(0, 10).await.unwrap(), []);
}

pub(super) async fn series_between_which_no_rule_could_choose_are_refused(world: World) {
    let ledger = &world.ledger;
    let serving_t = |code: &str| {
        let mut change = change(code, &format!("{code}-{{SEQ:3}}"));
        change.definition.serves.types = vec!["T".into()];
        change
    };
    ledger.series().apply(&[serving_t("A")]).await.unwrap();
    let stamp = ledger.series().stamp().await.unwrap();
    let error = ledger.series().apply(&[change("B", "B-{SEQ:3}"), serving_t("C")]).await;
    let error = error.expect_err("ambiguous").to_string();
    for says in ["series A and C", "\"T\"", "change `serves`"] {
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(ledger.series().list().await.unwrap().len(), 1, "nothing was saved");
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp);
    // Both at once: the old one gives the type up in the call that brings the new one.
    let applied = ledger.series().apply(&[serving_t("C"), change("A", "A-{SEQ:4}")]).await.unwrap();
    assert!(applied.iter().all(|version| version.is_new), "{applied:?}");
}

pub(super) async fn series_are_applied_all_or_none(world: World) {
    let mut broken = change("B", "B-{SEQ:3}");
    broken.saved_by = "nul\0".into();
    let changes = [change("A", "A-{SEQ:3}"), broken];
    let result = world.ledger.series().apply(&changes).await;
    if world.ledger.engine() == "postgres" {
        assert!(matches!(result, Err(LedgerError::Unfit(_))), "{result:?}");
        assert_eq!(world.ledger.series().list().await.unwrap(), []);
    }
    let changes = [change("C", "C-{SEQ:3}"), change("D", "D-{SEQ:3}")];
    let applied = world.ledger.series().apply(&changes).await.unwrap();
    let codes: Vec<&str> = applied.iter().map(|version| &*version.definition.code).collect();
    assert_eq!(codes, ["C", "D"], "answered in the order asked");
}

pub(super) async fn a_heartbeat_counts_and_a_node_that_left_is_gone(world: World) {
    let ledger = &world.ledger;
    world.join(world.node).await;
    for beat in 1..=3 {
        assert_eq!(ledger.nodes().heartbeat(world.node, None).await.unwrap(), [(world.node, beat)]);
    }
    assert_eq!(ledger.partitions_as(world.node).await.unwrap().len(), 5);
    let nodes = ledger.nodes().list().await.unwrap();
    assert_eq!(nodes.iter().map(|n| (n.node_id, n.beat)).collect::<Vec<_>>(), [(world.node, 3)]);
    ledger.nodes().leave(world.node).await.unwrap();
    let error = ledger.nodes().heartbeat(world.node, None).await.expect_err("left");
    assert!(matches!(error, LedgerError::NodeGone(node) if node == world.node), "{error}");
    assert_eq!(ledger.nodes().list().await.unwrap(), []);
}

pub(super) async fn a_retired_node_is_gone(world: World) {
    world.ledger.nodes().heartbeat(world.node, None).await.unwrap();
    let awake = world.ledger.nodes().retire(world.node, 0).await.unwrap();
    assert!(!awake, "a node that beats again is not retired");
    assert!(world.ledger.nodes().retire(world.node, 1).await.unwrap());
    assert!(world.ledger.nodes().retire(world.node, 1).await.unwrap(), "safe to repeat");
    assert_eq!(world.ledger.nodes().list().await.unwrap(), []);
    let error = world.ledger.nodes().heartbeat(world.node, None).await.expect_err("retired");
    assert!(matches!(error, LedgerError::NodeGone(_)), "{error}");
}

pub(super) async fn events_come_back_newest_first(world: World) {
    let plain = Event {
        at_us: NOW_US,
        kind: "opening".into(),
        partition: None,
        epoch: None,
        node_id: None,
        detail: json!({}),
    };
    let full = Event {
        kind: "recovery".into(),
        partition: Some(3),
        epoch: Some(9),
        node_id: Some(world.node),
        detail: json!({"cause": "เลข"}),
        ..plain.clone()
    };
    world.ledger.events().record(&plain).await.unwrap();
    world.ledger.events().record(&full).await.unwrap();
    assert_eq!(world.ledger.events().list(10).await.unwrap(), [full.clone(), plain]);
    assert_eq!(world.ledger.events().list(1).await.unwrap(), [full]);
}

//! Reference data: nothing is erased, a code belongs to one id forever, and a series that has
//! counters keeps the tables that name them.

use numbering::{ReferenceRow, SeriesDefinition};
use numerator::ledger::{
    At, Closing, CounterSpec, Effect, Expected, MembershipChange, Owner, PartitionState,
    ReferenceChange, RowChange,
};
use numerator::ledger::{LedgerError, ReferencePlan, SeriesChange};
use serde_json::json;

use super::world::{NOW_US, World, spec};

pub(super) fn row(id: &str, code: &str, active: bool) -> ReferenceRow {
    let (table, name) = (String::new(), format!("name of {id}"));
    let (id, code) = (id.to_owned(), code.to_owned());
    ReferenceRow { table, id, code, name, active, former_codes: Vec::new() }
}

pub(super) fn of_rows(table: &str, rows: &[ReferenceRow]) -> ReferenceChange {
    let row = |row: &ReferenceRow| RowChange {
        id: row.id.clone(),
        code: row.code.clone(),
        name: Some(row.name.clone()),
        active: Some(row.active),
    };
    let (table, rows) = (table.to_owned(), rows.iter().map(row).collect());
    let (changed_by, reason) = ("me".to_owned(), "because".to_owned());
    let memberships = Vec::new();
    ReferenceChange { table, rows, memberships, changed_by, reason, changed_at_us: NOW_US }
}

fn of_members(table: &str, of_table: &str, pairs: &[(&str, &str, bool)]) -> ReferenceChange {
    let membership = |(id, of_id, active): &(&str, &str, bool)| MembershipChange {
        id: id.to_string(),
        of_table: of_table.to_owned(),
        of_id: of_id.to_string(),
        active: Some(*active),
    };
    ReferenceChange { memberships: pairs.iter().map(membership).collect(), ..of_rows(table, &[]) }
}

fn effects(plan: ReferencePlan) -> Vec<Effect> {
    let rows = plan.rows.into_iter().map(|(_, effect)| effect);
    rows.chain(plan.memberships.into_iter().map(|(_, effect)| effect)).collect()
}

pub(super) async fn rows_are_added_renamed_and_deactivated_and_the_stamp_tells(world: World) {
    let ledger = &world.ledger;
    assert_eq!(ledger.reference().stamp().await.unwrap(), 0);
    let both = [row("1", "LCBP3", true), row("2", "โครงการ", true)];
    let added = ledger.reference().apply(&of_rows("projects", &both)).await.unwrap();
    assert_eq!(effects(added), [Effect::Added, Effect::Added]);
    let stamp = ledger.reference().stamp().await.unwrap();
    assert!(stamp > 0);
    let same = ledger.reference().apply(&of_rows("projects", &both)).await.unwrap();
    assert_eq!(effects(same), [Effect::Unchanged, Effect::Unchanged]);
    assert_eq!(ledger.reference().stamp().await.unwrap(), stamp, "nothing changed");

    let changed = [row("1", "LCBP4", true), row("2", "โครงการ", false)];
    let tried =
        ledger.reference().try_apply(&of_rows("projects", &changed), Some(stamp)).await.unwrap();
    assert_eq!(tried.map(effects).unwrap().len(), 2);
    assert_eq!(ledger.reference().stamp().await.unwrap(), stamp, "a dry run writes nothing");
    let other = of_rows("others", &[row("1", "O", true)]);
    assert!(ledger.reference().apply_upon(&other, Some(stamp)).await.unwrap().is_some());
    let changed = ledger.reference().apply(&of_rows("projects", &changed)).await.unwrap();
    let renamed = |from: &str| Effect::Renamed { from: from.into(), switched: false };
    assert_eq!(effects(changed), [renamed("LCBP3"), Effect::Deactivated]);
    assert!(ledger.reference().stamp().await.unwrap() > stamp);
    // A change based on an earlier read of the table builds on what no longer exists.
    let late = of_rows("projects", &both);
    assert_eq!(ledger.reference().apply_upon(&late, Some(stamp)).await.unwrap(), None);
    assert_eq!(ledger.reference().try_apply(&late, Some(stamp)).await.unwrap(), None);
    let data = ledger.reference().data().await.unwrap();
    let first = data.by_code("projects", "LCBP3").unwrap();
    assert_eq!((&*first.id, &*first.code, first.active), ("1", "LCBP4", true));
    assert_eq!(first.former_codes, ["LCBP3"]);
    let second = data.by_id("projects", "2").unwrap();
    assert_eq!((&*second.code, &*second.name, second.active), ("โครงการ", "name of 2", false));
    assert_eq!(data.rows("projects").count(), 2);
}

pub(super) async fn what_a_change_says_nothing_of_stays_as_it_is(world: World) {
    let ledger = &world.ledger;
    ledger.reference().apply(&of_rows("projects", &[row("2", "P", true)])).await.unwrap();
    let two = [row("22", "A", false), row("23", "B", true)];
    ledger.reference().apply(&of_rows("organizations", &two)).await.unwrap();
    let ended = of_members("organizations", "projects", &[("22", "2", false)]);
    ledger.reference().apply(&ended).await.unwrap();

    let silent = |id: &str, code: &str, active: Option<bool>| RowChange {
        id: id.into(),
        code: code.into(),
        name: None,
        active,
    };
    let rows = |rows: Vec<RowChange>| ReferenceChange { rows, ..of_rows("organizations", &[]) };
    let renaming =
        rows(vec![silent("22", "A2", None), silent("23", "B", None), silent("24", "C", None)]);
    let renamed = Effect::Renamed { from: "A".into(), switched: false };
    let plan = ledger.reference().apply(&renaming).await.unwrap();
    assert_eq!(effects(plan), [renamed, Effect::Unchanged, Effect::Added]);
    let mut member =
        of_members("organizations", "projects", &[("22", "2", true), ("23", "2", true)]);
    member.memberships.iter_mut().for_each(|membership| membership.active = None);
    let plan = ledger.reference().apply(&member).await.unwrap();
    assert_eq!(effects(plan), [Effect::Unchanged, Effect::Added]);

    let data = ledger.reference().data().await.unwrap();
    let told = |id: &str| {
        let row = data.by_id("organizations", id).unwrap();
        (row.code.clone(), row.name.clone(), row.active)
    };
    assert_eq!(told("22"), ("A2".into(), "name of 22".into(), false));
    assert_eq!(told("24"), ("C".into(), String::new(), true));
    let member = data.by_id("organizations", "22").unwrap();
    assert_eq!(data.groups(member, "projects").len(), 0, "its membership has ended");

    let back = rows(vec![silent("22", "A2", Some(true))]);
    assert_eq!(effects(ledger.reference().apply(&back).await.unwrap()), [Effect::Activated]);
}

pub(super) async fn a_code_belongs_to_its_id_for_ever(world: World) {
    let ledger = &world.ledger;
    let both = [row("1", "A", true), row("2", "B", true)];
    ledger.reference().apply(&of_rows("t", &both)).await.unwrap();
    ledger.reference().apply(&of_rows("t", &[row("1", "C", false)])).await.unwrap();
    let stamp = ledger.reference().stamp().await.unwrap();
    for taken in [
        vec![row("3", "A", true)],
        vec![row("3", "C", true)],
        vec![row("2", "A", true)],
        // Two that would change places.
        vec![row("1", "B", true), row("2", "C", true)],
        // All or none: the first row alone would do.
        vec![row("4", "D", true), row("5", "A", true)],
        vec![row("6", "E", true), row("7", "E", true)],
        vec![row("6", "E", true), row("6", "F", true)],
        vec![row("0", "G", true)],
        vec![row("8", "0", true)],
        vec![row("8", "a\u{200b}", true)],
        Vec::new(),
    ] {
        let refused = ledger.reference().apply(&of_rows("t", &taken)).await;
        assert!(matches!(refused, Err(LedgerError::Refused(_))), "{taken:?}: {refused:?}");
    }
    assert_eq!(ledger.reference().stamp().await.unwrap(), stamp, "nothing written");
    let data = ledger.reference().data().await.unwrap();
    assert_eq!(data.rows("t").count(), 2);
    // Its own former code it may take back, and another table has codes of its own.
    let back = ledger.reference().apply(&of_rows("t", &[row("1", "A", true)])).await.unwrap();
    assert_eq!(effects(back), [Effect::Renamed { from: "C".into(), switched: true }]);
    ledger.reference().apply(&of_rows("other", &[row("9", "C", true)])).await.unwrap();
    let data = ledger.reference().data().await.unwrap();
    assert_eq!(data.by_code("t", "C").unwrap().former_codes, ["C"]);
}

pub(super) async fn codes_are_compared_byte_for_byte(world: World) {
    let rows = [row("1", "abc", true), row("2", "ABC", true), row("3", "äbc", true)];
    world.ledger.reference().apply(&of_rows("t", &rows)).await.unwrap();
    let data = world.ledger.reference().data().await.unwrap();
    for (id, code) in [("1", "abc"), ("2", "ABC"), ("3", "äbc")] {
        assert_eq!(data.by_code("t", code).map(|row| &*row.id), Some(id));
    }
    assert!(data.by_code("t", "Abc").is_none());
}

pub(super) async fn memberships_begin_and_end_between_rows_that_exist(world: World) {
    let ledger = &world.ledger;
    ledger.reference().apply(&of_rows("projects", &[row("2", "P", true)])).await.unwrap();
    ledger.reference().apply(&of_rows("organizations", &[row("22", "O", true)])).await.unwrap();
    let begins = of_members("organizations", "projects", &[("22", "2", true)]);
    assert_eq!(effects(ledger.reference().apply(&begins).await.unwrap()), [Effect::Added]);
    assert_eq!(effects(ledger.reference().apply(&begins).await.unwrap()), [Effect::Unchanged]);
    let projects = |data: &numbering::ReferenceData| {
        let member = data.by_id("organizations", "22").unwrap();
        data.groups(member, "projects").len()
    };
    assert_eq!(projects(&ledger.reference().data().await.unwrap()), 1);
    let ends = of_members("organizations", "projects", &[("22", "2", false)]);
    assert_eq!(effects(ledger.reference().apply(&ends).await.unwrap()), [Effect::Deactivated]);
    assert_eq!(projects(&ledger.reference().data().await.unwrap()), 0);
    for (member, of, pairs) in [
        ("organizations", "projects", [("22", "9", true)]),
        ("organizations", "contracts", [("22", "2", true)]),
        ("organizations", "organizations", [("22", "22", true)]),
    ] {
        let refused = ledger.reference().apply(&of_members(member, of, &pairs)).await;
        assert!(matches!(refused, Err(LedgerError::Refused(_))), "{pairs:?}: {refused:?}");
    }
}

pub(super) async fn of_many_importers_of_one_code_one_gets_it(world: World) {
    let imports = (1..=8).map(|id| {
        let ledger = world.ledger.clone();
        tokio::spawn(async move {
            ledger
                .reference()
                .apply(&of_rows("t", &[row(&id.to_string(), "A", true)]))
                .await
                .is_ok()
        })
    });
    let mut saved = 0;
    for import in imports.collect::<Vec<_>>() {
        saved += usize::from(import.await.unwrap());
    }
    assert_eq!(saved, 1);
    assert_eq!(world.ledger.reference().data().await.unwrap().rows("t").count(), 1);
}

pub(super) async fn a_series_with_counters_keeps_the_tables_that_name_them(world: World) {
    let ledger = &world.ledger;
    let change = |table: Option<&str>, name: &str| {
        let mut definition: SeriesDefinition = serde_json::from_value(json!({
            "code": "A", "name": name, "serves": {"types": ["A"]}, "template": "{SEQ:3}",
            "serials": [{"counter": ["project"]}], "unique_within": ["project"],
        }))
        .unwrap();
        definition.references.project = table.map(str::to_owned);
        let (saved_by, reason) = ("me".to_owned(), "because".to_owned());
        let expected = Expected::Anything;
        SeriesChange { definition, expected, saved_by, reason, saved_at_us: NOW_US }
    };
    ledger.series().apply(&[change(None, "n")]).await.unwrap();
    let unused = ledger.series().apply(&[change(Some("projects"), "n")]).await.unwrap().remove(0);
    let partition = unused.partition;
    let next = ledger.bump(At { partition, epoch: 0 }, PartitionState::Open, world.node, "t").await;
    let at = At { partition, epoch: next.unwrap().unwrap() };
    world.claim(at, Closing::Exact, &Owner::Database).await;
    let (series_id, version) = (unused.series_id, unused.version);
    let named = CounterSpec { series_id, version, ..spec("project_id=2") };
    ledger.seed(at, world.node, &[named]).await.unwrap();
    for table in [None, Some("sites")] {
        let error = ledger.series().apply(&[change(table, "n")]).await.expect_err("has counters");
        assert!(error.to_string().contains("named by the ids of a table"), "{error}");
    }
    let stale = CounterSpec { series_id: unused.series_id, ..spec("project=LCBP3") };
    let error = ledger.seed(at, world.node, &[stale]).await.expect_err("named by an old version");
    assert!(error.to_string().contains("has just changed"), "{error}");
    let renamed = ledger.series().apply(&[change(Some("projects"), "m")]).await.unwrap().remove(0);
    assert_eq!(renamed.version, 3, "other changes are free");
}

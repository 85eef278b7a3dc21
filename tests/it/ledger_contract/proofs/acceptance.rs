//! An ambiguity is accepted if every series of the pair is gapless (F43), in whatever order they
//! are saved; and keeps the rows that it concerns, and no others, out of archives.

use numbering::{Policy, Reset};
use numerator::features::archive::Moved;
use numerator::ledger::{ActivityChange, CounterSpec, LedgerError, SeriesChange, SeriesRefusal};
use serde_json::json;

use super::super::setup::change;
use super::super::shelf::Shelf;
use super::super::world::{NOW_US, World, entry, spec, with};
use super::ambiguity;

ledger_contract! {
    proofs {
        an_ambiguity_is_accepted_between_gapless_series_alone
        nor_by_another_policy_by_going_back_or_by_turning_one_on
        what_was_accepted_before_and_is_not_gapless_is_found
        only_rows_that_an_ambiguity_concerns_are_not_archived
    }
}

/// A series of the text that all of them share.
fn of(code: &str, policy: Policy, accepts: bool) -> SeriesChange {
    let mut change = change(code, "{SEQ:3}");
    change.definition.policy = policy;
    change.definition.ambiguity_accepted = accepts.then(|| "Both books are closed by now.".into());
    change
}

/// Refused by a dry run and by a save, and nothing is written.
async fn is_hasty(world: &World, changes: &[SeriesChange]) {
    let stamp = world.ledger.series().stamp().await.unwrap();
    for result in
        [world.ledger.series().try_apply(changes).await, world.ledger.series().apply(changes).await]
    {
        let refused = matches!(&result, Err(LedgerError::Series(SeriesRefusal::Hasty(_))));
        assert!(refused, "{result:?}");
    }
    assert_eq!(world.ledger.series().stamp().await.unwrap(), stamp, "nothing was saved");
}

pub(in crate::ledger_contract) async fn an_ambiguity_is_accepted_between_gapless_series_alone(
    world: World,
) {
    let ledger = &world.ledger;
    let (fast, sure, gapless) = (Policy::Fast, Policy::Durable, Policy::Gapless);
    // Alone, and in one call, in either order.
    let mut yearly = of("Y", fast, true);
    yearly.definition.serials[0].reset = Reset::Year;
    is_hasty(&world, &[yearly.clone()]).await;
    for pair in [[fast, fast], [sure, gapless], [gapless, sure], [gapless, fast]] {
        let [a, b] = [of("A", pair[0], true), of("B", pair[1], true)];
        is_hasty(&world, &[a.clone(), b.clone()]).await;
        is_hasty(&world, &[b, a]).await;
    }
    // One after the other.
    ledger.series().apply(&[of("A", fast, false)]).await.unwrap();
    is_hasty(&world, &[of("B", gapless, true)]).await;
    is_hasty(&world, &[of("B", fast, true)]).await;
    // Whichever of several it is.
    let apart = |code: &str, policy| {
        let mut change = of(code, policy, false);
        change.definition.template = format!("{code}{{SEQ:3}}");
        change
    };
    ledger.series().apply(&[apart("A", gapless)]).await.unwrap();
    ledger.series().apply(&[of("A", gapless, false)]).await.unwrap();
    ledger.series().apply(&[apart("C", fast)]).await.unwrap();
    ledger.series().apply(&[of("B", gapless, true)]).await.unwrap();
    is_hasty(&world, &[of("C", fast, true)]).await;
    ambiguity(ledger.series().apply(&[of("C", fast, false)]).await);
    // An acceptance that is not needed affects nothing.
    let mut needless = apart("C", fast);
    needless.definition.ambiguity_accepted = Some("Nobody needs to know why.".into());
    ledger.series().apply(&[needless]).await.unwrap();
}

pub(in crate::ledger_contract) async fn nor_by_another_policy_by_going_back_or_by_turning_one_on(
    world: World,
) {
    let ledger = &world.ledger;
    let (fast, gapless) = (Policy::Fast, Policy::Gapless);
    let saved = ledger.series().apply(&[of("A", gapless, false)]).await.unwrap().remove(0);
    let b = ledger.series().apply(&[of("B", gapless, true)]).await.unwrap().remove(0);
    // The policy of the other one, which is no part of its numbers.
    ambiguity(ledger.series().apply(&[of("A", fast, false)]).await);
    is_hasty(&world, &[of("A", fast, true)]).await;
    is_hasty(&world, &[of("B", fast, true)]).await;
    let mut named = of("B", gapless, true);
    named.definition.name = "Another name".into();
    ledger.series().apply(&[named]).await.unwrap();
    // While one of them is inactive the other may become anything, and prevents its return.
    let activity = |series_id, active| ActivityChange {
        series_id,
        active,
        expected: None,
        saved_by: "me".into(),
        reason: "moved".into(),
        saved_at_us: NOW_US,
    };
    ledger.series().set_activity(&activity(b.series_id, false)).await.unwrap();
    ledger.series().apply(&[of("A", fast, false)]).await.unwrap();
    for result in [
        ledger.series().try_activity(&activity(b.series_id, true)).await,
        ledger.series().set_activity(&activity(b.series_id, true)).await,
    ] {
        let refused = matches!(&result, Err(LedgerError::Series(SeriesRefusal::Hasty(_))));
        assert!(refused, "{result:?}");
    }
    // Nor does an earlier version return whose text was another one since.
    let mut apart = of("B", gapless, false);
    apart.definition.template = "B{SEQ:3}".into();
    ledger.series().apply(&[apart]).await.unwrap();
    ledger.series().set_activity(&activity(b.series_id, true)).await.unwrap();
    is_hasty(&world, &[of("B", gapless, true)]).await;
    ledger.series().set_activity(&activity(saved.series_id, false)).await.unwrap();
    ledger.series().apply(&[of("B", gapless, true)]).await.unwrap();
    ambiguity(ledger.series().set_activity(&activity(saved.series_id, true)).await);
}

/// Writes the text and the acceptance of a series over, past the program.
async fn forge(world: &World, code: &str) {
    let edit = format!(
        "update series_version set definition = replace(definition, '\"template\":\"{code}', \
         '\"ambiguity_accepted\":\"Agreed with the auditors.\",\"template\":\"')"
    );
    world.sql(&edit).await;
}

pub(in crate::ledger_contract) async fn what_was_accepted_before_and_is_not_gapless_is_found(
    world: World,
) {
    let ledger = &world.ledger;
    let apart = |code: &str, policy: &str| {
        let mut change = change(code, &format!("{code}{{SEQ:3}}"));
        change.definition.policy = serde_json::from_value(json!(policy)).unwrap();
        change
    };
    assert_eq!(ledger.series().hasty().await.unwrap(), []);
    let mut plain = change("P", "{SEQ:3}");
    plain.definition.policy = Policy::Gapless;
    let changes = [apart("F", "fast"), apart("G", "gapless"), plain];
    let saved = ledger.series().apply(&changes).await.unwrap();
    forge(&world, "G").await;
    assert_eq!(ledger.series().hasty().await.unwrap(), [], "both are gapless");
    forge(&world, "F").await;
    let found = ledger.series().hasty().await.unwrap();
    let ids: Vec<i64> = found.iter().map(|(series_id, _)| *series_id).collect();
    // Next to the fast one, the one that was sound is not any more.
    assert_eq!(ids, [saved[0].series_id, saved[1].series_id], "{found:?}");
    assert!(found[0].1.contains("series F accepts"), "{found:?}");
}

/// Goal: rows are kept for their possible use. Method: a series that accepts an ambiguity, one of
/// its text, and one that has nothing to do with it, each with a number.
pub(in crate::ledger_contract) async fn only_rows_that_an_ambiguity_concerns_are_not_archived(
    world: World,
) {
    let shelf = Shelf::of(world).await;
    let (world, at) = (&shelf.kit.world, shelf.kit.at);
    for (series_id, code, template, accepts) in
        [(7, "S", "{SEQ:4}", true), (8, "T", "{SEQ:4}", false), (9, "U", "U-{SEQ:4}", false)]
    {
        let mut definition = json!({
            "code": code, "name": "n", "serves": { "types": [code] }, "policy": "gapless",
            "template": template, "serials": [{ "counter": ["type"] }],
        });
        if accepts {
            definition["ambiguity_accepted"] = json!("Agreed with the auditors.");
        }
        let own = shelf.own_ids();
        world
            .sql(&format!(
                "insert into series (series_id, code, partition, active_version) {own} \
                 values ({series_id}, '{code}', 2, 1); \
                 insert into series_version (series_id, version, definition, saved_by, reason, \
                 saved_at_us) values ({series_id}, 1, '{definition}', 'u', 'r', 1)"
            ))
            .await;
        let (id, ..) = world.seed(at, &CounterSpec { series_id, ..spec(code) }).await;
        let row = with(entry(at, id, 1), |record| record.series_id = series_id);
        world.append(&[row]).await;
    }
    // Of eight rows that of U alone.
    let moved = shelf.archive().await;
    assert_eq!((moved.rows, moved.files.len()), (1, 1), "{moved:?}");
    assert_eq!(shelf.archive().await, Moved::default());
    // What is archived has no text any more, and what is not is distinguished by its rows.
    let yearly = |code: &str, template: &str| {
        let mut change = of(code, Policy::Gapless, true);
        change.definition.template = template.into();
        change.definition.serials[0].reset = Reset::Year;
        change
    };
    let refused = world.ledger.series().apply(&[yearly("V", "U-{SEQ:4}")]).await.unwrap_err();
    assert!(refused.to_string().contains("moved to an archive"), "{refused}");
    world.ledger.series().apply(&[yearly("W", "W-{SEQ:4}")]).await.unwrap();
    world.verify().await;
}

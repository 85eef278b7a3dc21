//! The ambiguity proof when series are saved.

use numbering::{Ambiguity, GiveUp, Policy, Reset};
use numerator::ledger::{
    ActivityChange, At, CounterSpec, LedgerError, Owner, PartitionState, SERIES_MAX, SeriesChange,
    SeriesRefusal, until_given_up,
};
use serde_json::json;

mod acceptance;

pub(super) use acceptance::{
    an_ambiguity_is_accepted_between_gapless_series_alone,
    nor_by_another_policy_by_going_back_or_by_turning_one_on,
    only_rows_that_an_ambiguity_concerns_are_not_archived,
    what_was_accepted_before_and_is_not_gapless_is_found,
};

use super::references::{of_rows, row};
use super::setup::change;
use super::world::{NOW_US, World, spec};

/// A series whose numbers only the ledger takes.
fn gapless(code: &str, template: &str) -> SeriesChange {
    let mut change = change(code, template);
    change.definition.policy = Policy::Gapless;
    change
}

/// The refusal of a series that is not proved.
pub(super) fn ambiguity<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Ambiguity {
    match result {
        Err(LedgerError::Series(SeriesRefusal::Ambiguous(ambiguity))) => *ambiguity,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn series_that_could_give_two_numbers_one_text_are_refused(world: World) {
    let ledger = &world.ledger;
    ledger.series().apply(&[change("A", "A-{SEQ:3}")]).await.unwrap();
    let stamp = ledger.series().stamp().await.unwrap();
    let mut yearly = change("C", "C-{SEQ:3}");
    yearly.definition.serials[0].reset = Reset::Year;
    // With one that existed, with one of the same call, and alone.
    for (changes, says, text) in [
        (vec![change("B", "{SEQ}"), change("C", "A-{SEQ:3}")], "series C and A can show", "\"A-"),
        (vec![change("B", "{SEQ}"), change("C", "{SEQ:2}")], "series B and C can show", "\"1"),
        (vec![yearly], "begins anew each year", "\"C-001\""),
    ] {
        for result in
            [ledger.series().try_apply(&changes).await, ledger.series().apply(&changes).await]
        {
            let error = ambiguity(result).to_string();
            assert!(error.contains(says) && error.contains(text), "{error}");
        }
        assert_eq!(ledger.series().stamp().await.unwrap(), stamp, "{says}: nothing was saved");
    }
}

pub(super) async fn a_series_is_proved_again_when_it_is_activated(world: World) {
    let ledger = &world.ledger;
    let idle = ledger.series().apply(&[change("A", "{SEQ:3}")]).await.unwrap().remove(0);
    let activity = |active| {
        let (saved_by, reason) = ("me".to_owned(), "moved".to_owned());
        let (series_id, saved_at_us) = (idle.series_id, NOW_US);
        ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us }
    };
    ambiguity(ledger.series().apply(&[change("B", "{SEQ:3}")]).await);
    ledger.series().set_activity(&activity(false)).await.unwrap();
    ledger.series().apply(&[change("B", "{SEQ:3}")]).await.unwrap();
    ambiguity(ledger.series().set_activity(&activity(true)).await);
    ledger.series().apply(&[change("B", "B{SEQ:3}")]).await.unwrap();
    assert!(ledger.series().set_activity(&activity(true)).await.unwrap().active);
}

/// Goal: a series that took requests from another is not removed from before it without a proof of
/// what remains. Method: a default and a rule of the same text, which has issued numbers.
pub(super) async fn others_are_proved_again_when_a_rule_goes(world: World) {
    let ledger = &world.ledger;
    let of_t = |code: &str, template: &str, default: bool| {
        let mut change = change(code, template);
        change.definition.serves.types = vec!["T".into()];
        change.definition.serves.default = default;
        change.definition.unique_within = vec!["type".into()];
        change
    };
    let mut rule = of_t("C", "{SEQ:4}", false);
    let changes = [of_t("A", "{SEQ:4}", true), rule.clone()];
    let saved = ledger.series().apply(&changes).await.unwrap().remove(1);
    let at = At { partition: saved.partition, epoch: world.partition().await.epoch };
    let bump = ledger.bump(at, PartitionState::Open, world.node, "test").await.unwrap().unwrap();
    let at = At { epoch: bump, ..at };
    ledger.claim_open(at, world.node, true, &Owner::Database).await.unwrap();
    let spec = CounterSpec { series_id: saved.series_id, version: 1, ..spec("type=T") };
    ledger.seed(at, world.node, &[spec]).await.unwrap();
    rule.definition.serves.types = vec!["V".into()];
    let error = ambiguity(ledger.series().apply(&[rule.clone()]).await).to_string();
    assert!(error.contains("series C is one of its version 1"), "{error}");
    ledger.series().apply(&[of_t("A", "A{SEQ:4}", true)]).await.unwrap();
    assert_eq!(ledger.series().apply(&[rule]).await.unwrap()[0].series_id, saved.series_id);
}

/// Goal: an edit of what no number shows does not report a pair that was saved as it is. Method: a
/// series that accepts to be like another is saved with it, like one that was proved by other
/// rules; then each is edited.
pub(super) async fn what_gives_the_same_numbers_is_not_proved_again(world: World) {
    let ledger = &world.ledger;
    let mut like = gapless("B", "{SEQ:3}");
    like.definition.ambiguity_accepted = Some("Both books are closed by now.".into());
    let saved = ledger.series().apply(&[gapless("A", "{SEQ:3}"), change("C", "C{SEQ:3}")]).await;
    let first = saved.unwrap().remove(0);
    ledger.series().apply(&[like.clone()]).await.unwrap();
    let mut named = gapless("A", "{SEQ:3}");
    named.definition.name = "Another name".into();
    let edited = ledger.series().apply(&[named.clone()]).await.unwrap().remove(0);
    assert_eq!((edited.version, edited.series_id), (first.version + 1, first.series_id));
    // What is accepted no more is proved, and so is another text.
    like.definition.ambiguity_accepted = None;
    ambiguity(ledger.series().apply(&[like]).await);
    named.definition.serves.projects = vec!["P".into()];
    ambiguity(ledger.series().apply(&[named]).await);
}

/// The same for a series that leaves its requests to others: pairs of others are as they were.
pub(super) async fn a_rule_that_goes_concerns_only_its_own_numbers(world: World) {
    let ledger = &world.ledger;
    let mut like = gapless("B", "{SEQ:3}");
    like.definition.ambiguity_accepted = Some("Both books are closed by now.".into());
    let mut rule = change("C", "C{SEQ:3}");
    rule.definition.serves.types.push("D".into());
    ledger.series().apply(&[gapless("A", "{SEQ:3}"), rule]).await.unwrap();
    ledger.series().apply(&[like]).await.unwrap();
    let narrower = ledger.series().apply(&[change("C", "C{SEQ:3}")]).await.unwrap().remove(0);
    assert_eq!(narrower.definition.serves.types, ["C"]);
}

/// Goal: a change after which no request gets another number costs no proof. Method: each is made
/// for a caller that is gone, whose proofs end before they begin; what needs one is refused.
pub(super) async fn what_rests_or_serves_less_is_not_proved_again(world: World) {
    let ledger = &world.ledger;
    let mut rule = change("C", "C{SEQ:3}");
    rule.definition.serves.types.push("D".into());
    let saved = ledger.series().apply(&[change("A", "A{SEQ:3}"), rule.clone()]).await.unwrap();
    let gone = GiveUp::default();
    gone.give_up();
    let apply = async |change: &SeriesChange| {
        let changes = std::slice::from_ref(change);
        until_given_up(gone.clone(), ledger.series().apply(changes)).await
    };
    rule.definition.serves.types = vec!["C".into()];
    assert!(apply(&rule).await.unwrap()[0].is_new, "it serves less");
    rule.definition.name = "Another".into();
    assert!(apply(&rule).await.unwrap()[0].is_new, "it is called otherwise");
    for active in [false, false] {
        let (saved_by, reason) = ("me".to_owned(), "over".to_owned());
        let (series_id, saved_at_us) = (saved[0].series_id, NOW_US);
        let change =
            ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us };
        let rests = until_given_up(gone.clone(), ledger.series().set_activity(&change)).await;
        assert!(!rests.unwrap().active);
    }
    // One that names a project comes before others that came before it.
    let stamp = ledger.series().stamp().await.unwrap();
    let mut wider = rule.clone();
    wider.definition.serves.types.push("E".into());
    let mut closer = rule.clone();
    closer.definition.serves.projects = vec!["P".into()];
    for change in [wider, closer, change("F", "F{SEQ:3}")] {
        let refused = apply(&change).await.expect_err("it has to be proved");
        assert!(matches!(refused, LedgerError::GivenUp), "{refused}");
    }
    assert_eq!(ledger.series().stamp().await.unwrap(), stamp, "nothing was saved");
}

/// Goal: a ledger takes no more series than every process can hold, and continues to change those
/// that it has. Method: its table is filled up directly.
pub(super) async fn a_ledger_has_so_many_series_and_no_more(world: World) {
    let ledger = &world.ledger;
    ledger.series().apply(&[change("A", "A{SEQ:3}")]).await.unwrap();
    let fill = format!(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < {}) \
         insert into series (code, partition, active_version) select 'S' || i, 0, 1 from n",
        SERIES_MAX - 2,
    );
    if ledger.engine() == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&world.url).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(fill)).execute(&pool).await.unwrap();
    } else {
        let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
        sqlx::query(sqlx::AssertSqlSafe(fill)).execute(&pool).await.unwrap();
    }
    ledger.series().apply(&[change("B", "B{SEQ:3}")]).await.unwrap();
    let refused = ledger.series().apply(&[change("C", "C{SEQ:3}")]).await.expect_err("one more");
    let is_full = matches!(refused, LedgerError::Series(SeriesRefusal::TooMany));
    assert!(is_full && refused.to_string().contains("2000 series"), "{refused}");
    ledger.series().apply(&[change("A", "A-{SEQ:3}")]).await.unwrap();
}

/// Goal: the proof relies on a start only as far as it always was the start. Method: a series that
/// begins at 50 and one whose numbers end at 19, with and without a counter under an earlier start
/// of 10.
pub(super) async fn a_start_that_was_another_one_is_not_built_on(world: World) {
    let ledger = &world.ledger;
    let from = |start: u64| {
        let mut change = change("A", "{SEQ:2}");
        change.definition.serials[0].start = start;
        change
    };
    let first = ledger.series().apply(&[from(10)]).await.unwrap().remove(0);
    ledger.series().apply(&[from(50)]).await.unwrap();
    let teens = || vec![change("B", "1{SEQ:1}")];
    ledger.series().try_apply(&teens()).await.unwrap();
    let at = At { partition: first.partition, epoch: world.partition().await.epoch };
    let spec = CounterSpec { series_id: first.series_id, version: 2, start: 50, ..spec("type=A") };
    let bump = ledger.bump(at, PartitionState::Open, world.node, "test").await.unwrap().unwrap();
    let at = At { epoch: bump, ..at };
    ledger.claim_open(at, world.node, true, &Owner::Database).await.unwrap();
    ledger.seed(at, world.node, &[spec]).await.unwrap();
    // The first version had no counter.
    ledger.series().try_apply(&teens()).await.unwrap();
    ledger.series().apply(&[from(10)]).await.unwrap();
    ledger.series().apply(&[from(50)]).await.unwrap();
    let error = ambiguity(ledger.series().apply(&teens()).await).to_string();
    assert!(error.contains("can be read in two ways"), "{error}");
}

pub(super) async fn an_accepted_ambiguity_is_saved_and_remembered(world: World) {
    let ledger = &world.ledger;
    let reason = "The year is on the letterhead; agreed with audit.";
    let accepted = async || {
        let mut events = ledger.events().list(20).await.unwrap();
        events.retain(|event| event.kind == "ambiguity-accepted");
        events
    };
    let mut yearly = gapless("Y", "{SEQ:3}");
    yearly.definition.serials[0].reset = Reset::Year;
    ambiguity(ledger.series().apply(&[yearly.clone()]).await);
    assert_eq!(ledger.events().list(20).await.unwrap(), []);
    yearly.definition.ambiguity_accepted = Some(reason.into());
    ledger.series().try_apply(&[yearly.clone()]).await.unwrap();
    assert_eq!(accepted().await, [], "a dry run leaves nothing behind");
    let saved = ledger.series().apply(&[yearly.clone()]).await.unwrap().remove(0);
    assert_eq!(saved.definition.ambiguity_accepted.as_deref(), Some(reason));
    let events = accepted().await;
    assert_eq!((events.len(), events[0].at_us), (1, NOW_US));
    let detail = &events[0].detail;
    assert_eq!((&detail["code"], &detail["reason"]), (&json!("Y"), &json!(reason)));
    assert!(detail["ambiguity"].as_str().unwrap().contains("begins anew each year"), "{detail}");
    // An unchanged series is not judged again, and an acceptance that is not needed is no event.
    ledger.series().apply(&[yearly.clone()]).await.unwrap();
    yearly.definition.template = "{YEAR}-{SEQ:3}".into();
    ledger.series().apply(&[yearly]).await.unwrap();
    assert_eq!(accepted().await.len(), 1);
}

pub(super) async fn series_on_tables_are_proved_with_what_the_tables_have(world: World) {
    let ledger = &world.ledger;
    let of = |code: &str| {
        let mut change = change(code, "{SEQ:3}");
        change.definition.references.type_code = Some("types".into());
        change.definition.unique_within = vec!["type".into()];
        change
    };
    // A code without a row may become the code of any row.
    let error = ambiguity(ledger.series().try_apply(&[of("T"), of("U")]).await).to_string();
    assert!(error.contains("import the codes T, U first"), "{error}");
    let mut closer = of("U");
    closer.definition.serves.projects = vec!["P".into()];
    let both = [of("T"), closer];
    let error = ambiguity(ledger.series().apply(&both).await).to_string();
    assert!(error.contains("import the codes T, U first"), "{error}");
    let rows = [row("1", "T", true), row("2", "U", true)];
    ledger.reference().apply(&of_rows("types", &rows)).await.unwrap();
    ledger.series().try_apply(&both).await.unwrap();
    ledger.series().apply(&[of("T"), of("U")]).await.unwrap();
    // One that takes any other type of the table conflicts with neither, whatever is renamed.
    let mut default = of("V");
    default.definition.serves.default = true;
    ledger.series().apply(&[default]).await.unwrap();
}

/// Goal: a series in use is never changed so that it gives a text that an earlier version gave to
/// another value, while its counters continue. Method: parts change places, before and after a
/// counter exists; the pair names the version, and what is accepted is on record.
pub(super) async fn a_version_is_proved_against_the_earlier_ones_that_were_used(world: World) {
    let ledger = &world.ledger;
    let version = |template: &str| {
        let mut change = gapless("A", template);
        let site = serde_json::json!({ "required": true, "alphabet": "0-9", "width": 2 });
        change.definition.variables =
            [("SITE".to_owned(), serde_json::from_value(site).unwrap())].into();
        change.definition.serials[0].counter.push("SITE".into());
        change
    };
    let first = ledger.series().apply(&[version("{SITE}-{SEQ:2}")]).await.unwrap().remove(0);
    // Nothing is issued yet: it may become anything, and come back.
    for template in ["{SEQ:2}-{SITE}", "{SITE}-{SEQ:2}"] {
        ledger.series().apply(&[version(template)]).await.unwrap();
    }
    let at = At { partition: first.partition, epoch: world.partition().await.epoch };
    let spec = CounterSpec { series_id: first.series_id, version: 3, ..spec("type=A;SITE=01") };
    let bump = ledger.bump(at, PartitionState::Open, world.node, "test").await.unwrap().unwrap();
    let at = At { epoch: bump, ..at };
    ledger.claim_open(at, world.node, true, &Owner::Database).await.unwrap();
    ledger.seed(at, world.node, &[spec]).await.unwrap();
    let turned = || vec![version("{SEQ:2}-{SITE}")];
    for result in
        [ledger.series().try_apply(&turned()).await, ledger.series().apply(&turned()).await]
    {
        let error = ambiguity(result).to_string();
        assert!(
            error.contains("version 3") && error.contains("can be read in two ways"),
            "{error}"
        );
    }
    let longer = ledger.series().apply(&[version("{SITE}-{SEQ:3}")]).await.unwrap().remove(0);
    let mut accepted = turned();
    accepted[0].definition.ambiguity_accepted = Some("Both books are closed by now.".into());
    ledger.series().apply(&accepted).await.unwrap();
    let mut events = ledger.events().list(20).await.unwrap();
    events.retain(|event| event.kind == "ambiguity-accepted");
    assert_eq!(events.len(), 1, "{events:?}");
    let back = ambiguity(ledger.series().apply(&[version("{SITE}-{SEQ:2}")]).await).to_string();
    assert!(back.contains(&format!("version {}", longer.version + 1)), "{back}");
}

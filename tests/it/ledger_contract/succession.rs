//! What is saved when numbers have been issued (F26): numbers of series that no longer serve, of
//! earlier texts, and of requests that another series took then.

use std::iter;

use numbering::{Inputs, Reset, RuleError, SeriesDefinition, read_series};
use numerator::engine::allocator::Catalog;
use numerator::ledger::{
    ActivityChange, At, Closing, CounterSpec, LedgerError, Owner, PartitionState, SeriesChange,
    SeriesRefusal, SeriesVersion,
};
use serde_json::json;

use super::imports::counter;
use super::moves::elsewhere;
pub(super) use super::moves::{
    versions_that_were_used_elsewhere_come_before_the_one_in_force,
    what_was_used_elsewhere_is_no_beginning_of_another_series,
};
use super::setup::change;
pub(super) use super::windows::a_successor_serves_from_a_day_on_beside_the_series_before_it;
use super::world::{NOW_US, World, spec};

/// A definition that shows the year and restarts with it.
fn yearly(code: &str, template: &str) -> SeriesChange {
    let mut change = change(code, template);
    change.definition.serials[0].reset = Reset::Year;
    change
}

/// The same for other types than its code.
fn serving(mut change: SeriesChange, types: &[&str], default: bool) -> SeriesChange {
    change.definition.serves.types = types.iter().map(ToString::to_string).collect();
    change.definition.serves.default = default;
    change
}

async fn save(world: &World, change: SeriesChange) -> SeriesVersion {
    world.ledger.series().apply(&[change]).await.unwrap().remove(0)
}

/// Saves a series, and lets it issue under this version.
async fn in_use(world: &World, change: SeriesChange) -> SeriesVersion {
    let saved = save(world, change).await;
    first_number(world, &saved).await.unwrap();
    saved
}

/// The same of several that are saved in one call.
async fn all_in_use(world: &World, changes: &[SeriesChange]) -> Vec<SeriesVersion> {
    let saved = world.ledger.series().apply(changes).await.unwrap();
    for one in &saved {
        first_number(world, one).await.unwrap();
    }
    saved
}

/// Has a version create the first counter of its series.
async fn first_number(world: &World, saved: &SeriesVersion) -> Result<(), LedgerError> {
    let (partition, ledger) = (saved.partition, &world.ledger);
    let all = ledger.partitions().await.unwrap();
    let epoch = all.iter().find(|one| one.partition == partition).unwrap().epoch;
    let mut at = At { partition, epoch };
    if epoch == 0 {
        let next = ledger.bump(at, PartitionState::Open, world.node, "test").await.unwrap();
        at.epoch = next.unwrap();
        world.claim(at, Closing::Exact, &Owner::Database).await;
    }
    let key = format!("k{}", saved.series_id);
    let first = CounterSpec { series_id: saved.series_id, version: saved.version, ..spec(&key) };
    ledger.seed(at, world.node, &[first]).await.map(|_| ())
}

async fn set_activity(
    world: &World,
    series_id: i64,
    active: bool,
) -> Result<SeriesVersion, LedgerError> {
    let (saved_by, reason) = ("boss".to_owned(), "moved".to_owned());
    let change =
        ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us: NOW_US };
    world.ledger.series().set_activity(&change).await
}

/// Why a change is refused, as a dry run and as a save.
async fn refused(world: &World, changes: &[SeriesChange]) -> String {
    let stamp = world.ledger.series().stamp().await.unwrap();
    let mut told = Vec::new();
    let (dry, real) = (
        world.ledger.series().try_apply(changes).await,
        world.ledger.series().apply(changes).await,
    );
    for result in [dry, real] {
        match result {
            Err(LedgerError::Series(SeriesRefusal::Ambiguous(ambiguity))) => {
                told.push(ambiguity.to_string());
            }
            other => panic!("accepted: {other:?}"),
        }
    }
    assert_eq!(world.ledger.series().stamp().await.unwrap(), stamp, "nothing was saved");
    assert_eq!(told[0], told[1]);
    told.remove(0)
}

/// Goal: a series whose text is spelled otherwise, and is the same, does not start anew after one
/// that was deactivated. Method: a prefix and the same literal, a year and a date's.
pub(super) async fn an_heir_of_another_spelling_is_refused(world: World) {
    let mut old = yearly("OLD", "{PREFIX}-{YEAR}-{SEQ:4}");
    old.definition.prefix = Some("INV".into());
    let old = in_use(&world, old).await;
    set_activity(&world, old.series_id, false).await.unwrap();
    let told = refused(&world, &[yearly("NEW", "INV-{DATE:yyyy}-{SEQ:4}")]).await;
    assert!(told.contains("series OLD is one of its version") && told.contains("prefix"), "{told}");
    save(&world, yearly("NEW", "INW-{DATE:yyyy}-{SEQ:4}")).await;
    // The same counters continue.
    assert!(set_activity(&world, old.series_id, true).await.unwrap().active);
}

/// Goal: what a series showed before it got another prefix is not free. Method: a changed prefix,
/// with the counters as they were.
pub(super) async fn the_text_of_a_former_prefix_is_refused(world: World) {
    let mut old = yearly("OLD", "{PREFIX}-{YEAR}-{SEQ:4}");
    old.definition.prefix = Some("INV".into());
    in_use(&world, old.clone()).await;
    old.definition.prefix = Some("RCP".into());
    save(&world, old).await;
    let told = refused(&world, &[yearly("NEW", "INV-{DATE:yyyy}-{SEQ:4}")]).await;
    assert!(told.contains("series OLD is one of its version"), "{told}");
}

/// Goal: earlier versions of other series are examined. Method: a zero that is literal in one and
/// the serial's in the other.
pub(super) async fn the_text_of_an_earlier_version_of_another_series_is_refused(world: World) {
    in_use(&world, change("XX", "A-{SEQ:4}")).await;
    save(&world, change("XX", "B-{SEQ:4}")).await;
    let told = refused(&world, &[change("YY", "A-0{SEQ:3}")]).await;
    assert!(told.contains("series XX is one of its version 1"), "{told}");
    // What both give up and swap in one call is issued as well.
    let told = refused(&world, &[change("XX", "C-{SEQ:4}"), change("YY", "B-{SEQ}")]).await;
    assert!(told.contains("series XX is one of its version 2"), "{told}");
}

/// Goal: the series that ships for requests for approval of one project has no successor that
/// counts anew with its text. Method: the same with other names of its tokens, once it was in use.
pub(super) async fn an_heir_of_a_shipped_series_is_refused(world: World) {
    let text = include_str!("../../../examples/series/project-lcbp3.toml");
    let shipped: SeriesDefinition = read_series(text).unwrap().remove(0);
    let of = |definition| SeriesChange { definition, ..change("any", "{SEQ}") };
    let old = in_use(&world, of(shipped.clone())).await;
    set_activity(&world, old.series_id, false).await.unwrap();
    let template = shipped.template.replace("{TYPE_CODE}", "RFA").replace("{YEAR}", "{DATE:yyyy}");
    let heir = SeriesDefinition { code: "HEIR".into(), template, ..shipped };
    let told = refused(&world, &[of(heir)]).await;
    assert!(told.contains("series LCBP3-RFA is one of its version"), "{told}");
}

/// Goal: a node that does not know that a series was deactivated begins no counter of it. Method: a
/// first counter by the earlier version, once another series has the text.
pub(super) async fn a_series_that_was_never_used_begins_nothing_once_it_is_deactivated(
    world: World,
) {
    let old = save(&world, change("OLD", "A-{SEQ:4}")).await;
    set_activity(&world, old.series_id, false).await.unwrap();
    save(&world, change("NEW", "A-0{SEQ:3}")).await;
    let error = first_number(&world, &old).await.expect_err("another has its numbers");
    assert!(error.to_string().contains("send the request again"), "{error}");
    // Nor does it return next to its successor.
    let error = set_activity(&world, old.series_id, true).await.expect_err("one too many");
    assert!(matches!(error, LedgerError::Series(SeriesRefusal::Ambiguous(_))), "{error}");
}

/// The same within its type.
fn of_type(code: &str, types: &[&str], default: bool) -> SeriesChange {
    let mut scoped = serving(change(code, "S-{SEQ:4}"), types, default);
    scoped.definition.unique_within = vec!["type".into()];
    scoped
}

/// Goal: a series that takes requests from another one does not start anew after their numbers.
/// Method: a rule and a default that was alone before, and one that it always outranked.
pub(super) async fn a_rule_does_not_begin_with_what_the_default_gave_before_it(world: World) {
    in_use(&world, of_type("DEF", &["T", "U"], true)).await;
    let told = refused(&world, &[of_type("RULE", &["T"], false)]).await;
    assert!(told.contains("series DEF is one of its version 1"), "{told}");
    // A node that does not know the rule may yet begin with the default.
    save(&world, of_type("LATE", &["L", "M"], true)).await;
    let told = refused(&world, &[of_type("RULE", &["L"], false)]).await;
    assert!(told.contains("series LATE is one of its version 1"), "{told}");
    // What they take never meets, if both came together.
    let both = [of_type("D", &["V", "W"], true), of_type("R", &["V"], false)];
    all_in_use(&world, &both).await;
    for mut renamed in both {
        renamed.definition.name = "renamed".into();
        save(&world, renamed).await;
    }
}

/// Why the catalog of now gives a type no number; none: it does.
async fn why_not(world: &World, type_code: &str) -> Option<String> {
    let catalog = Catalog::load(&world.ledger).await.unwrap();
    let inputs = Inputs { type_code: type_code.into(), ..Inputs::default() };
    match catalog.choose(&inputs, jiff::Timestamp::UNIX_EPOCH) {
        Ok(_) => None,
        Err(error @ RuleError::TypeNotConfigured { .. }) => Some(error.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// Goal: a series can be stopped immediately, and what it took comes to no other series that was
/// not proved for it. Method: a rule and a default of one text, for one type each; the default is
/// activated once more, changed, and the rule comes back.
pub(super) async fn what_a_deactivated_series_took_waits_for_a_proof(world: World) {
    let both = [of_type("DEF", &["V", "W"], true), of_type("RULE", &["V"], false)];
    let saved = all_in_use(&world, &both).await;
    let [default, rule] = [&saved[0], &saved[1]].map(|saved| saved.series_id);
    let mut named = of_type("DEF", &["V", "W"], true);
    named.definition.name = "Another name".into();
    save(&world, named.clone()).await;
    set_activity(&world, rule, false).await.unwrap();
    // A name is another version, and what is saved later serves what is inactive.
    named.definition.name = "A third name".into();
    let error = world.ledger.series().apply(&[named]).await.expect_err("DEF waits to be proved");
    assert!(error.to_string().contains("series RULE is one of its version"), "{error}");
    let why = why_not(&world, "V").await.expect("DEF would show what RULE gave");
    assert!(why.contains("RULE") && why.contains("numerator series activate DEF"), "{why}");
    assert_eq!(why_not(&world, "W").await, None);
    // Proved for it: it is not.
    let error = set_activity(&world, default, true).await.expect_err("the same text");
    assert!(error.to_string().contains("series RULE is one of its version"), "{error}");
    // The rule comes back to its own counters.
    set_activity(&world, rule, true).await.unwrap();
    assert_eq!(why_not(&world, "V").await, None);
    // Another text is proved as it is saved.
    set_activity(&world, rule, false).await.unwrap();
    assert!(why_not(&world, "V").await.is_some());
    let mut other = of_type("DEF", &["V", "W"], true);
    other.definition.template = "T-{SEQ:4}".into();
    save(&world, other).await;
    assert_eq!(why_not(&world, "V").await, None);
    // Nothing waits for it any more.
    assert!(!set_activity(&world, default, true).await.unwrap().is_new);
}

/// Goal: an import saves no version of a series that waits for a proof, since one that is saved
/// anew waits no more: it would show again what the other one gave.
pub(super) async fn a_series_that_waits_for_a_proof_gets_no_version_by_an_import(world: World) {
    let both = [of_type("DEF", &["V", "W"], true), of_type("RULE", &["V"], false)];
    let saved = all_in_use(&world, &both).await;
    set_activity(&world, saved[1].series_id, false).await.unwrap();
    let earlier = [elsewhere(&saved[0], "E-{SEQ:4}")];
    let counters = [counter(&saved[0], "type=V", 9)];
    let imported =
        world.ledger.imports().add(world.node, &counters, &earlier, &mut iter::empty()).await;
    let error = imported.expect_err("DEF waits to be proved").to_string();
    assert!(error.contains("numerator series activate DEF"), "{error}");
    assert!(why_not(&world, "V").await.is_some(), "it waits still");
}

/// Goal: a series that comes back narrower leaves to others only what these are proved for. Method:
/// its types are changed while it is inactive.
pub(super) async fn a_series_that_wakes_narrower_leaves_what_is_proved(world: World) {
    let both = [of_type("DEF", &["V", "W"], true), of_type("RULE", &["V", "X"], false)];
    let saved = all_in_use(&world, &both).await;
    let rule = saved[1].series_id;
    set_activity(&world, rule, false).await.unwrap();
    save(&world, of_type("RULE", &["X"], false)).await;
    assert!(why_not(&world, "V").await.is_some());
    let error = set_activity(&world, rule, true).await.expect_err("V would come to DEF");
    assert!(error.to_string().contains("series RULE is one of its version"), "{error}");
    let known = json!(["V"]);
    let mut wide = of_type("DEF", &["W"], true);
    wide.definition.serves.undetermined_types = serde_json::from_value(known).unwrap();
    save(&world, wide).await;
    set_activity(&world, rule, true).await.unwrap();
}

//! The ambiguity proof where series are saved (R2.7).

use numerator::ledger::{ActivityChange, LedgerError, SeriesRefusal};
use numerator::number::{Ambiguity, Reset};
use serde_json::json;

use super::references::{of_rows, row};
use super::setup::change;
use super::world::{NOW_US, World};

/// What is said of a series that is not proved.
fn ambiguity<T: std::fmt::Debug>(result: Result<T, LedgerError>) -> Ambiguity {
    match result {
        Err(LedgerError::Series(SeriesRefusal::Ambiguous(ambiguity))) => *ambiguity,
        other => panic!("{other:?}"),
    }
}

pub(super) async fn series_that_could_give_two_numbers_one_text_are_refused(world: World) {
    let ledger = &world.ledger;
    ledger.apply_series(&[change("A", "A-{SEQ:3}")]).await.unwrap();
    let stamp = ledger.series_stamp().await.unwrap();
    let mut yearly = change("C", "C-{SEQ:3}");
    yearly.definition.serials[0].reset = Reset::Year;
    // Beside one that was there, beside one of the same call, and by itself.
    for (changes, says, text) in [
        (vec![change("B", "{SEQ}"), change("C", "A-{SEQ:3}")], "series C and A can show", "\"A-"),
        (vec![change("B", "{SEQ}"), change("C", "{SEQ:2}")], "series B and C can show", "\"1"),
        (vec![yearly], "begins anew each year", "\"C-001\""),
    ] {
        for result in [ledger.try_series(&changes).await, ledger.apply_series(&changes).await] {
            let error = ambiguity(result).to_string();
            assert!(error.contains(says) && error.contains(text), "{error}");
        }
        assert_eq!(ledger.series_stamp().await.unwrap(), stamp, "{says}: nothing was saved");
    }
}

pub(super) async fn a_series_is_proved_again_when_it_is_activated(world: World) {
    let ledger = &world.ledger;
    let idle = ledger.apply_series(&[change("A", "{SEQ:3}")]).await.unwrap().remove(0);
    let activity = |active| {
        let (saved_by, reason) = ("me".to_owned(), "moved".to_owned());
        let (series_id, saved_at_us) = (idle.series_id, NOW_US);
        ActivityChange { series_id, active, expected: None, saved_by, reason, saved_at_us }
    };
    ambiguity(ledger.apply_series(&[change("B", "{SEQ:3}")]).await);
    ledger.set_activity(&activity(false)).await.unwrap();
    ledger.apply_series(&[change("B", "{SEQ:3}")]).await.unwrap();
    ambiguity(ledger.set_activity(&activity(true)).await);
    ledger.apply_series(&[change("B", "B{SEQ:3}")]).await.unwrap();
    assert!(ledger.set_activity(&activity(true)).await.unwrap().active);
}

pub(super) async fn an_accepted_ambiguity_is_saved_and_remembered(world: World) {
    let ledger = &world.ledger;
    let reason = "The year is on the letterhead; agreed with audit.";
    let accepted = async || {
        let mut events = ledger.events(20).await.unwrap();
        events.retain(|event| event.kind == "ambiguity-accepted");
        events
    };
    let mut yearly = change("Y", "{SEQ:3}");
    yearly.definition.serials[0].reset = Reset::Year;
    ambiguity(ledger.apply_series(&[yearly.clone()]).await);
    assert_eq!(ledger.events(20).await.unwrap(), []);
    yearly.definition.ambiguity_accepted = Some(reason.into());
    ledger.try_series(&[yearly.clone()]).await.unwrap();
    assert_eq!(accepted().await, [], "a dry run leaves nothing behind");
    let saved = ledger.apply_series(&[yearly.clone()]).await.unwrap().remove(0);
    assert_eq!(saved.definition.ambiguity_accepted.as_deref(), Some(reason));
    let events = accepted().await;
    assert_eq!((events.len(), events[0].at_us), (1, NOW_US));
    let detail = &events[0].detail;
    assert_eq!((&detail["code"], &detail["reason"]), (&json!("Y"), &json!(reason)));
    assert!(detail["ambiguity"].as_str().unwrap().contains("begins anew each year"), "{detail}");
    // An unchanged series is not judged again, and an acceptance that is not needed is no event.
    ledger.apply_series(&[yearly.clone()]).await.unwrap();
    yearly.definition.template = "{YEAR}-{SEQ:3}".into();
    ledger.apply_series(&[yearly]).await.unwrap();
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
    let both = [of("T"), of("U")];
    let error = ambiguity(ledger.apply_series(&both).await).to_string();
    assert!(error.contains("the codes T, U: import these first"), "{error}");
    let rows = [row("1", "T", true), row("2", "U", true)];
    ledger.apply_reference(&of_rows("types", &rows)).await.unwrap();
    ledger.apply_series(&both).await.unwrap();
    // One that takes any other type of the table meets neither of them, whatever is renamed.
    let mut default = of("V");
    default.definition.serves.default = true;
    ledger.apply_series(&[default]).await.unwrap();
}

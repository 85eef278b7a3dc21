//! The proof where numbers show ids: no two share one, and any may be drawn.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;

use super::super::super::testing::serial;
use super::super::super::*;
use super::brute_force::{Plan, plan, runner};
use super::traps::{compile, strings, variable};

/// Random plans of each test.
const CASES: u32 = 60;

/// Requests of each plan that are rendered.
const REQUESTS: usize = 24;

/// Ids that are read as others when they are shifted by a digit.
const IDS: [&str; 8] = [
    "0000000000000000000",
    "0000000000000000001",
    "0000000000000000011",
    "1000000000000000000",
    "0111111111111111111",
    "1111111111111111110",
    "1111111111111111111",
    "1101111111111111111",
];

/// A number's scope and text, and what it took: its id, and counter and value of each serial.
type Number = ((String, String), (String, Vec<(CounterKey, u64)>));

/// A plan with an id somewhere.
fn with_id() -> impl Strategy<Value = Plan> {
    (plan(), any::<prop::sample::Index>()).prop_map(|(mut plan, at)| {
        plan.parts.insert(at.index(plan.parts.len() + 1), "{SNOWFLAKE}");
        plan
    })
}

/// Some numbers of a series, with some ids.
fn numbers(plan: &Plan, series: &Series, serves: impl Fn(&Inputs) -> bool) -> Vec<Number> {
    let mut all = plan.requests();
    all.retain(serves);
    let some = all.iter().step_by(all.len() / REQUESTS + 1);
    let mut numbers = Vec::new();
    for inputs in some {
        let draft = series.draft(inputs, Timestamp::UNIX_EPOCH).expect("a sound request");
        for (id, value) in IDS.iter().flat_map(|id| [1, 2, 11].map(|value| (id, value))) {
            let values: Vec<u64> = series.serials().iter().map(|_| value).collect();
            let is_reached = |serial: &Serial| {
                let from = value.checked_sub(serial.start);
                value <= serial.max && from.is_some_and(|from| from.is_multiple_of(serial.step))
            };
            if !series.serials().iter().all(is_reached) {
                continue;
            }
            let text = filled(&draft, Some(id), &values);
            let taken = draft.keys.iter().cloned().zip(values).collect();
            numbers.push(((draft.scope.clone(), text), ((*id).to_owned(), taken)));
        }
    }
    numbers
}

/// The number of a draft.
fn filled(draft: &Draft, id: Option<&str>, values: &[u64]) -> String {
    let mut mask = draft.mask.clone();
    if let (Some(place), Some(id)) = (draft.snowflake, id) {
        let digits: Vec<char> = id.chars().collect();
        place.put(&mut mask, Snowflake::read(&digits).expect("an id"));
    }
    mask.fill(values).expect("fits")
}

/// Renders what a refusal tells; whether it is a collision.
fn collides(ambiguity: &Ambiguity, series: &[&Series]) -> bool {
    let Ambiguity::Collision { first, second, text, scope, changes, .. } = ambiguity else {
        return false;
    };
    let render = |request: &CollidingRequest| {
        let of = series.iter().find(|series| series.definition().code == request.series);
        let of = of.expect("one of the series");
        let draft = of.draft(&request.inputs, Timestamp::UNIX_EPOCH).expect("a sound request");
        let values: Vec<u64> = request.values.iter().map(|(_, value)| *value).collect();
        let id = request.snowflake.map(|id| id.to_string());
        assert_eq!((&filled(&draft, id.as_deref(), &values), &draft.scope), (text, scope));
        let keys = draft.keys.into_iter().map(|key| (request.series.clone(), key));
        (id, keys.zip(values).collect::<Vec<_>>())
    };
    let ((id, taken), (other_id, other_taken)) = (render(first), render(second));
    let one = taken.into_iter().zip(other_taken).any(|(before, now)| before == now);
    changes.is_empty() && (id.is_none() || id != other_id) && !one
}

#[test]
fn what_is_proved_of_ids_has_no_collision_and_what_is_refused_has_one() {
    let run = runner(CASES).run(&with_id(), |plan| {
        let series = plan.series("random");
        match prove(&series, &[], &[]) {
            Err(Ambiguity::Unproven { limit: Limit::States, .. }) => {}
            Err(ambiguity) => prop_assert!(collides(&ambiguity, &[&series]), "{}", ambiguity),
            Ok(()) => {
                let mut seen: BTreeMap<_, Vec<_>> = BTreeMap::new();
                for (shown, (id, taken)) in numbers(&plan, &series, |_| true) {
                    let before = seen.entry(shown.clone()).or_default();
                    let apart = |(other, others): &(String, Vec<(CounterKey, u64)>)| {
                        *other != id && std::iter::zip(others, &taken).all(|(a, b)| a != b)
                    };
                    prop_assert!(!before.iter().any(apart), "{:?} {}", shown, id);
                    before.push((id, taken));
                }
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn two_series_of_ids_meet_only_where_an_id_is_read_elsewhere() {
    let run = runner(CASES).run(&(with_id(), with_id()), |(one, mut two)| {
        two.scope.clone_from(&one.scope);
        let (a, b) = (one.series("a"), two.series("b"));
        let both = [&a, &b];
        if prove(&a, &[], &[]).is_err() || prove(&b, &[], &[]).is_err() {
            return Ok(());
        }
        let serves = |inputs: &Inputs| choose(both, inputs);
        match prove(&a, &both, &[]) {
            Err(Ambiguity::Unproven { limit: Limit::States, .. }) => {}
            Err(ambiguity) => {
                prop_assert!(collides(&ambiguity, &both), "{}", ambiguity);
                let Ambiguity::Collision { first, second, .. } = ambiguity else { return Ok(()) };
                prop_assert_eq!((serves(&first.inputs), serves(&second.inputs)), (Ok(0), Ok(1)));
            }
            Ok(()) => {
                let of = |plan, series, choice| {
                    numbers(plan, series, |inputs| serves(inputs) == Ok(choice)).into_iter()
                };
                let by_text: BTreeMap<_, _> = of(&one, &a, 0).collect();
                let met = of(&two, &b, 1).find(|(shown, (id, _))| {
                    by_text.get(shown).is_some_and(|(other, _)| other != id)
                });
                prop_assert!(met.is_none(), "{:?}", met);
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
}

/// A series of ids and text before them.
fn ids(code: &str, template: &str) -> Series {
    compile(|definition| {
        definition.code = code.into();
        definition.template = template.into();
        definition.serials = Vec::new();
        definition.serves.types = strings(&[code]);
        definition.variables.insert(
            "A".into(),
            VariableDefinition { alphabet: Some("0-9".into()), ..variable("", 3) },
        );
    })
}

#[test]
fn an_id_beside_digits_is_told_with_the_time_at_which_it_is_drawn() {
    let digits = compile(|definition| {
        definition.template = "{SEQ:4}{SEQ:15:OTHER}".into();
        definition.serials = vec![serial("SEQ"), serial("OTHER")];
    });
    let ids = ids("ids", "{SNOWFLAKE}");
    let error = prove(&digits, &[&ids], &[]).expect_err("digits are digits");
    assert!(collides(&error, &[&digits, &ids]), "{error}");
    let Ambiguity::Collision { first, second, text, .. } = &error else { panic!("{error}") };
    assert_eq!((first.snowflake, second.values.len()), (None, 0), "{error}");
    let id = second.snowflake.expect("an id is drawn");
    assert_eq!(id.to_string(), *text);
    assert!(id.time().to_string().as_str() >= "2025-01-01", "of a time to come: {error}");
    assert!(error.to_string().contains(&format!("id {id} drawn at 20")), "{error}");
    // Its first digit is 9 in no time that an id can name.
    let late = compile(|definition| {
        definition.template = "9{SEQ:3}{SEQ:15:OTHER}".into();
        definition.serials = vec![serial("SEQ"), serial("OTHER")];
        definition.serials[0].start = 300;
    });
    assert_eq!(prove(&late, &[&ids], &[]), Ok(()));
}

#[test]
fn ids_at_one_place_are_two_and_ids_at_two_places_may_look_like_one() {
    let all = [ids("A", "{SNOWFLAKE}"), ids("B", "{SNOWFLAKE}"), ids("C", "{A}{SNOWFLAKE}")];
    let all: Vec<&Series> = all.iter().collect();
    for series in &all {
        assert_eq!(prove(series, &all, &[]), Ok(()), "lengths tell {}", series.definition().code);
    }
    let before = ids("D", "{A}{SNOWFLAKE}0");
    let error = prove(&before, &all, &[]).expect_err("shifted by a digit");
    assert!(collides(&error, &[&before, all[2]]), "{error}");
    let alone = ids("E", "{A}{SNOWFLAKE}{A}");
    assert_eq!(prove(&alone, &[], &[]), Ok(()), "both are as long");
}

//! The comparison against brute force: every number of random small series is rendered, before and
//! after rows of tables are renamed. No proved series may collide. proptest prints a failing case
//! and keeps its seed; `PROPTEST_CASES` asks for more.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

use super::super::super::*;
use super::notation::{compared, party, prove};
use super::plan::{Plan, Worlds, one_of, plan, worlds};

/// Ids that are read as others when they are shifted by a digit.
const IDS: [&str; 3] = ["0111111111111111111", "1111111111111111110", "1111111111111111111"];

/// Random series of each test.
const CASES: u32 = 250;

/// What a number took: counter and value of each serial, and its id.
type Taken = Vec<(String, CounterKey, String)>;

/// What numbers took, by their scope and text.
type Numbers = BTreeMap<(String, String), Vec<Taken>>;

/// Every number that the first of some series gives to the requests that it serves, from a first
/// value on: counters continue from their value.
fn numbers(plan: &Plan, among: &[&Series], least: u64, worlds: &Worlds) -> Numbers {
    let values: Vec<Vec<u64>> = match among[0].serials() {
        [one] => (least..=one.max).map(|value| vec![value]).collect(),
        [x, y] => {
            (least..=x.max).flat_map(|a| (least..=y.max.min(4)).map(move |b| vec![a, b])).collect()
        }
        other => panic!("{} serials", other.len()),
    };
    let mut numbers = Numbers::new();
    let worlds =
        if among.iter().any(|series| series.refers()) { &worlds[..] } else { &worlds[..1] };
    for world in worlds {
        let bound = |series: &&Series| (*series).clone().with_reference(Arc::clone(world));
        let all: Vec<Series> = among.iter().map(bound).collect();
        let requests = plan.requests(world);
        let ids = if plan.parts.contains(&"{SNOWFLAKE}") { &IDS[..] } else { &[""] };
        for inputs in
            requests.iter().step_by(if ids.len() > 1 { requests.len() / 30 + 1 } else { 1 })
        {
            if choose(&all, inputs, testing::NOW) != Ok(0) {
                continue;
            }
            let Ok(draft) = all[0].draft(inputs, testing::NOW) else { continue };
            for (values, id) in
                values.iter().flat_map(|values| ids.iter().map(move |id| (values, *id)))
            {
                let mut partial = draft.partial.clone();
                if let Some(place) = draft.snowflake {
                    place.put(
                        &mut partial,
                        Snowflake::read(&id.chars().collect::<Vec<_>>()).expect("an id"),
                    );
                }
                let serials = std::iter::zip(all[0].serials(), &draft.keys).zip(values);
                let taken = |((serial, key), value): ((&Serial, &CounterKey), &u64)| {
                    (serial.name.clone(), key.clone(), value.to_string())
                };
                let mut taken: Taken = serials.map(taken).collect();
                if !id.is_empty() {
                    taken.push((String::new(), CounterKey { parts: Vec::new() }, id.to_owned()));
                }
                let shown = (draft.scope.clone(), partial.fill(values).expect("fits"));
                let known = numbers.entry(shown).or_default();
                if !known.contains(&taken) {
                    known.push(taken);
                }
            }
        }
    }
    numbers
}

/// Two numbers of one text and scope that have neither a value of one counter nor an id in common.
fn collision(one: &Numbers, other: &Numbers, is_one_series: bool) -> Option<String> {
    one.iter().find_map(|(shown, all)| {
        let others = other.get(shown)?;
        let mut pairs = all.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
        let pair = pairs.find(|(a, b)| {
            let is_shared =
                |part: &&(String, CounterKey, String)| is_one_series || part.0.is_empty();
            !a.iter().filter(is_shared).any(|part| b.contains(part))
        })?;
        Some(format!("{shown:?} {pair:?}"))
    })
}

/// Runs a test on random cases; each is proved or not, and collides or not. The number of refusals
/// with a collision shows that the cases were worthwhile.
fn judge<S: Strategy>(
    cases: S,
    verdict: impl Fn(S::Value) -> (Result<(), Ambiguity>, Option<String>),
) {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let count = asked.map_or(CASES, |asked| asked.parse().expect("PROPTEST_CASES is a number"));
    let source_file = Some(file!());
    let tally: [Cell<u32>; 3] = Default::default();
    let config = ProptestConfig { source_file, ..ProptestConfig::with_cases(count) };
    let run = TestRunner::new(config).run(&cases, |case| {
        let (verdict, found) = verdict(case);
        prop_assert!(verdict.is_err() || found.is_none(), "{:?}", found);
        let of = if verdict.is_ok() { 0 } else { 1 + usize::from(found.is_none()) };
        tally[of].set(tally[of].get() + 1);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    let [proved, refused, in_doubt] = tally.map(Cell::into_inner);
    println!("{proved} proved, {refused} refused with a collision, {in_doubt} without one");
    assert!(proved > 0 && 5 * refused > in_doubt);
}

#[test]
fn no_two_numbers_of_a_series_that_is_proved_collide() {
    judge((plan(), worlds()), |(plan, worlds)| {
        let series = plan.series("random").with_reference(Arc::clone(&worlds[0]));
        let all = numbers(&plan, &[&series], plan.progression.0, &worlds);
        (prove(&series), collision(&all, &all, true))
    });
}

/// A plan, and one that is like it: the same parts in another order or with another sign, and some
/// of the rest changed.
fn two_alike() -> impl Strategy<Value = (Plan, Plan)> {
    let shuffled = plan().prop_flat_map(|plan| {
        let parts = prop_oneof![Just(plan.parts.clone()), Just(plan.parts.clone()).prop_shuffle()];
        (Just(plan), parts)
    });
    let more = (one_of(&["", "-", "1", "{B}", "{YEAR}", "{PHASE}"]), any::<Index>());
    (shuffled, plan(), any::<[bool; 8]>(), more).prop_map(
        |((one, parts), mut two, alike, (more, at))| {
            if alike[0] || alike[1] || two.counters.len() != one.counters.len() {
                (two.parts, two.counters) = (parts, one.counters.clone());
                two.parts.insert(at.index(two.parts.len() + 1), more);
            }
            if alike[2] {
                (two.variables, two.tables) = (one.variables, one.tables);
            }
            if alike[3] {
                (two.types, two.projects) = (one.types, one.projects);
            }
            if alike[4] {
                two.scope.clone_from(&one.scope);
            }
            if alike[5] {
                two.counters.clone_from(&one.counters);
            }
            if alike[6] {
                (two.format, two.check) = (one.format, one.check);
            }
            if alike[7] {
                (two.progression, two.fiscal_year_start) = (one.progression, one.fiscal_year_start);
            }
            (one, two)
        },
    )
}

fn of_saved(proved: Result<Vec<Accepted>, ProofError>) -> Result<(), Ambiguity> {
    match proved {
        Ok(_) => Ok(()),
        Err(ProofError::Ambiguity(ambiguity)) => Err(*ambiguity),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn no_number_of_a_version_that_is_proved_is_one_of_an_earlier_version() {
    judge((two_alike(), worlds()), |((one, two), worlds)| {
        let (before, next) = (one.series("S"), two.series("S"));
        let earlier = [EarlierVersion { version: 1, definition: before.definition().clone() }];
        let saved = [next.definition().clone()];
        let verdict =
            of_saved(prove_saved(&saved, &worlds[0], |_| true, &earlier, &[], &GiveUp::default()));
        let least = one.progression.0.min(two.progression.0);
        let out = numbers(&one, &[&before], least, &worlds);
        let new = numbers(&two, &[&next], least, &worlds);
        (verdict, collision(&new, &new, true).or_else(|| collision(&out, &new, true)))
    });
}

/// A series with its tables of now.
fn bound(plan: &Plan, code: &str, worlds: &Worlds) -> Series {
    plan.series(code).with_reference(Arc::clone(&worlds[0]))
}

/// Two plans whose texts are equal, or nearly so.
fn two_near() -> impl Strategy<Value = (Plan, Plan)> {
    let more = (one_of(&["", "", "-", "1", "{B}"]), any::<Index>());
    let alike = (prop::bool::weighted(0.8), any::<bool>());
    (two_alike(), alike, more).prop_map(|((mut one, mut two), (near, on_one_day), (more, at))| {
        if near {
            let Plan { types, projects, originators, default, days, .. } = two;
            two = Plan { types, projects, originators, default, days, ..one.clone() };
            two.parts.insert(at.index(two.parts.len() + 1), more);
        }
        two.scope.clone_from(&one.scope);
        if on_one_day {
            two.days = one.days;
        }
        if one.days.or(two.days).is_some() {
            // A series that serves all days is also asked on each of them.
            one.days.get_or_insert_default();
            two.days.get_or_insert_default();
        }
        (one, two)
    })
}

#[test]
fn two_series_that_are_proved_share_no_number() {
    judge((two_near(), worlds()), |((one, two), worlds)| {
        let (a, b) = (bound(&one, "a", &worlds), bound(&two, "b", &worlds));
        let of_a = numbers(&one, &[&a, &b], one.progression.0, &worlds);
        let of_b = numbers(&two, &[&b, &a], two.progression.0, &worlds);
        let verdict = compared(&party(&a, Some(&b)), &party(&b, Some(&a)));
        (verdict, collision(&of_a, &of_b, false))
    });
}

/// Goal: no pair of series is proved because of the days that they serve: a later version may have
/// others. Method: whatever is proved with days is proved without them.
#[test]
fn days_never_make_a_pair_of_series_one_that_is_proved() {
    let refused = Cell::new(0_u32);
    let of = |(one, two): (Plan, Plan), worlds: &Worlds| {
        let (a, b) = (bound(&one, "a", worlds), bound(&two, "b", worlds));
        compared(&party(&a, Some(&b)), &party(&b, Some(&a)))
    };
    let cases = (two_near(), worlds());
    let mut runner = TestRunner::new(ProptestConfig {
        source_file: Some(file!()),
        ..ProptestConfig::with_cases(4 * CASES)
    });
    let run = runner.run(&cases, |((one, two), worlds)| {
        if one.days.is_none() {
            return Ok(());
        }
        let always = [&one, &two].map(|plan| Plan { days: None, ..plan.clone() });
        let always = of(always.into(), &worlds);
        let on_days = of((one, two), &worlds);
        prop_assert!(on_days.is_err() || always.is_ok(), "{:?}", always);
        refused.set(refused.get() + u32::from(on_days.is_err() && always.is_ok()));
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(refused.get() > 0, "days that keep a proof from holding are among the cases");
}

/// Goal: what another series has issued is never issued again. Method: a series gave numbers while
/// the subject was something else, or nothing; then the subject is saved, while the other is still
/// active or not.
#[test]
fn what_another_series_has_issued_is_not_issued_again() {
    let cases = (two_near(), plan(), any::<[bool; 4]>(), worlds());
    judge(cases, |((one, two), mut old, flags, worlds)| {
        let [was_active, is_active, is_alike, is_late] = flags;
        if is_alike {
            let Plan { types, originators, .. } = old;
            old = Plan { types, originators, ..one.clone() };
        }
        // If rows were renamed before the save, the other one gave numbers at both times.
        let now_on = if is_late { [worlds[1].clone(), worlds[1].clone()] } else { worlds.clone() };
        let (a, b) = (bound(&one, "a", &now_on), bound(&two, "b", &now_on));
        let then = was_active.then(|| bound(&old, "a", &now_on));
        let now = is_active.then_some(&b);
        let among_a: Vec<&Series> = [&a].into_iter().chain(now).collect();
        let among_b: Vec<&Series> = [&b].into_iter().chain(&then).collect();
        let of_a = numbers(&one, &among_a, one.progression.0, &now_on);
        let of_b = numbers(&two, &among_b, two.progression.0, &worlds);
        let definition = |series: &Series| Arc::new(series.definition().clone());
        let (subject, then) = ("a".to_owned(), then.as_ref().map(definition));
        let out = IssuedVersion { subject, version: 1, definition: definition(&b), then };
        let active: Vec<_> = among_a.iter().map(|series| series.definition().clone()).collect();
        let proved = prove_saved(&active, &now_on[0], |_| false, &[], &[out], &GiveUp::default());
        (of_saved(proved), collision(&of_a, &of_b, false))
    });
}

//! An earlier version of a series beside the next: against brute force, and what administrators do.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::super::testing::{definition, serial};
use super::super::super::*;
use super::super::earlier::beside_earlier;
use super::brute_force::{Plan, Shown, Taken, are_apart, numbers, plan, runner};
use super::tally::{Bounds, Tally};

/// Random pairs of versions.
const CASES: u32 = 200;

/// A series that counts by what it shows, and what becomes of it: the same counters, the parts in
/// another order, and some of the rest changed.
fn versions() -> impl Strategy<Value = (Plan, Plan)> {
    let shuffled = plan().prop_flat_map(|plan| {
        let parts = Just(plan.parts.clone()).prop_shuffle();
        (Just(plan), parts)
    });
    (shuffled, plan(), any::<[bool; 5]>()).prop_map(|((mut one, parts), other, changes)| {
        let [variables, types, projects, numbers, figures] = changes;
        // Digits, as the serials: so that places may be taken for each other.
        for (alphabet, fixed, _) in &mut one.variables {
            (*alphabet, *fixed) = ("01", true);
        }
        let counted =
            [("{PROJECT}", "project"), ("{CORR_TYPE}", "type"), ("{A}", "A"), ("{B}", "B")];
        let shown = counted.iter().filter(|(part, _)| one.parts.contains(part));
        let shown: Vec<&str> = shown.map(|(_, name)| *name).collect();
        for (dimensions, reset) in &mut one.counters {
            dimensions.retain(|name| shown.contains(name));
            let told =
                [("{YEAR}", Reset::Year), ("{FY}", Reset::FiscalYear), ("{PHASE}", Reset::Phase)];
            let told = told.iter().find(|(part, _)| one.parts.contains(part));
            *reset = told.map_or(Reset::None, |(_, reset)| *reset);
        }
        let mut next = Plan { parts, ..one.clone() };
        if variables {
            next.variables = other.variables;
        }
        if types {
            next.types = other.types;
        }
        if projects {
            next.projects = other.projects;
        }
        if numbers {
            (next.start, next.step) = (other.start, other.step);
        }
        if figures {
            (next.style, next.overflow) = (other.style, other.overflow);
        }
        (one, next)
    })
}

/// A version before.
fn version(version: u32, definition: &SeriesDefinition) -> EarlierVersion {
    EarlierVersion { version, definition: definition.clone() }
}

/// Two numbers of one text that can both be issued, one of each version, if there are such: a
/// counter gives no value twice, whichever version takes it.
fn collision(plans: [&Plan; 2], series: [&Series; 2]) -> Option<(Shown, [Taken; 2])> {
    let mut seen: BTreeMap<Shown, Vec<Taken>> = BTreeMap::new();
    for (_, shown, taken) in numbers(plans[0], series[0]) {
        seen.entry(shown).or_default().push(taken);
    }
    numbers(plans[1], series[1]).into_iter().find_map(|(_, shown, taken)| {
        let mut before = seen.get(&shown)?.iter();
        let other = before.find(|before| are_apart(before, &taken)).cloned();
        other.map(|other| (shown, [other, taken]))
    })
}

#[test]
fn a_version_that_is_proved_never_shows_what_an_earlier_one_showed() {
    let tally = Tally::default();
    let run = runner(CASES).run(&versions(), |(one, two)| {
        let (earlier, next) = (one.series("S"), two.series("S"));
        // What is ambiguous by itself is refused before.
        if prove(&earlier, &[], &[]).is_err() || prove(&next, &[], &[]).is_err() {
            return Ok(());
        }
        let collision = || collision([&one, &two], [&earlier, &next]);
        match beside_earlier(&earlier, 1, &next, &[version(1, earlier.definition())]) {
            Err(Ambiguity::Unproven { limit, .. }) => {
                let is_seen = collision().is_some();
                println!("{is_seen} {limit:?} {one:?} {two:?}");
                tally.untold(is_seen);
            }
            Err(Ambiguity::Collision { first, second, text, scope, .. }) => {
                let render = |series: &Series, request: &CollidingRequest| -> Taken {
                    let draft = series.draft(&request.inputs, jiff::Timestamp::UNIX_EPOCH);
                    let draft = draft.expect("a sound request");
                    let values: Vec<u64> = request.values.iter().map(|(_, value)| *value).collect();
                    assert_eq!(
                        (&draft.mask.fill(&values).expect("fits"), &draft.scope),
                        (&text, &scope)
                    );
                    draft.keys.into_iter().zip(values).collect()
                };
                let (before, after) = (render(&earlier, &first), render(&next, &second));
                prop_assert!(are_apart(&before, &after), "{:?} {:?}", before, after);
                tally.told();
            }
            Ok(()) => {
                tally.proved();
                let collision = collision();
                prop_assert!(collision.is_none(), "{:?}", collision);
            }
        }
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    tally.tells(CASES, &Bounds { untold: 2_000, unseen: 2_000 });
}

fn yearly(template: &str) -> SeriesDefinition {
    let mut yearly = definition();
    yearly.template = template.into();
    let declared = VariableDefinition {
        required: true,
        alphabet: Some("0-9".into()),
        width: Some(2),
        ..VariableDefinition::default()
    };
    yearly.variables.insert("SITE".into(), declared);
    let counter = vec!["type".into(), "SITE".into()];
    yearly.serials = vec![SerialDefinition { counter, reset: Reset::Year, ..serial("SEQ") }];
    yearly
}

fn beside(earlier: &SeriesDefinition, next: &SeriesDefinition) -> Result<(), Ambiguity> {
    let compile = |definition: &SeriesDefinition| {
        Series::compile(definition.clone()).expect("a series that compiles")
    };
    beside_earlier(&compile(earlier), 3, &compile(next), &[version(3, earlier)])
}

#[test]
fn parts_that_change_places_are_refused_with_a_pair() {
    let (earlier, next) = (yearly("{YEAR}-{SITE}-{SEQ:2}"), yearly("{YEAR}-{SEQ:2}-{SITE}"));
    let error = beside(&earlier, &next).expect_err("both are two digits").to_string();
    assert!(error.contains("version 3") && error.contains("would both get"), "{error}");
    // The counters are the same: the rule of thumb about a change of counters says nothing.
    let compile = |definition: &SeriesDefinition| Series::compile(definition.clone()).unwrap();
    assert_eq!(check_change(&compile(&earlier), &compile(&next)), Ok(()));
    assert_eq!(beside(&earlier, &yearly("N{YEAR}-{SEQ:2}-{SITE}")), Ok(()));
}

#[test]
fn another_type_behind_the_same_text_is_refused() {
    let (earlier, mut next) = (yearly("{YEAR}-{SITE}-{SEQ:2}"), yearly("{YEAR}-{SITE}-{SEQ:2}"));
    next.serves.types = vec!["OTHER".into()];
    let error = beside(&earlier, &next).expect_err("type is counted and not shown").to_string();
    assert!(error.contains("type \"OTHER\""), "{error}");
    next.unique_within = vec!["type".into()];
    let scoped = SeriesDefinition { unique_within: vec!["type".into()], ..earlier };
    assert_eq!(beside(&scoped, &next), Ok(()));
}

#[test]
fn counters_that_go_on_behind_a_text_that_tells_them_are_fine() {
    let earlier = yearly("{YEAR}-{SITE}-{SEQ:2}");
    for (template, overflow) in [
        ("{YEAR}-{SITE}-{SEQ:4}", Overflow::Refuse),
        ("{YEAR}-{SITE}-{SEQ:2}", Overflow::Widen),
        ("{YEAR}-{SITE}-{SEQ:2}-A", Overflow::Refuse),
        ("{DATE:yyyy}-{SITE}-{SEQ}", Overflow::Refuse),
        ("{DATE:yyyyMM}-{SITE}-{SEQ:2}", Overflow::Refuse),
    ] {
        let mut next = yearly(template);
        (next.serials[0].overflow, next.serials[0].start) = (overflow, 7);
        assert_eq!(beside(&earlier, &next), Ok(()), "{template}");
    }
}

#[test]
fn another_year_behind_the_same_digits_is_refused() {
    let error = beside(&yearly("{YEAR:B.E.}-{SITE}-{SEQ:2}"), &yearly("{YEAR}-{SITE}-{SEQ:2}"));
    let error = error.expect_err("a document may be dated 2568").to_string();
    assert!(error.contains("version 3"), "{error}");
}

#[test]
fn letters_of_another_width_are_refused_and_digits_are_not() {
    // One of two letters is AA; so is 27 of as many as it takes.
    let of = |template: &str, style: Style| {
        let mut series = yearly(template);
        series.serials[0].style = style;
        series.serials[0].overflow = Overflow::Widen;
        series
    };
    for (before, after) in [("{SEQ:2}", "{SEQ}"), ("{SEQ:3}", "{SEQ:2}")] {
        let [earlier, next] = [before, after].map(|serial| format!("{{YEAR}}-{{SITE}}-{serial}"));
        let letters = beside(&of(&earlier, Style::Letters), &of(&next, Style::Letters));
        let error = letters.expect_err("the same letters are other values").to_string();
        assert!(error.contains("version 3"), "{error}");
        assert_eq!(beside(&of(&earlier, Style::Digits), &of(&next, Style::Digits)), Ok(()));
    }
}

//! What a definition may cost: whatever it holds, it is compiled and proved, or refused, within a
//! bound of steps. No clock is read here, because a slow machine would fail correct code: if steps
//! are bounded the refusal shows it, and an unbounded case would run until the runner ends it.

use std::sync::Arc;

use super::super::characters::{self, ANY};
use super::super::testing::{compile, definition, serial};
use super::super::*;

/// A variable with this alphabet.
fn of_alphabet(alphabet: &str, excluded: &str) -> VariableDefinition {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    VariableDefinition {
        alphabet: text(alphabet),
        excluded: text(excluded),
        ..VariableDefinition::default()
    }
}

/// Goal: no notation of an alphabet costs more than another. Method: as many variables as possible,
/// each with as many ranges as fit, all of nearly all characters, before a check that ignores none
/// of them.
#[test]
fn overlapping_ranges_before_a_check_cost_nothing() {
    let all = "!-\u{3134a}".repeat(42);
    let refused = compile(|series| {
        series.template = String::new();
        for index in 0..60 {
            let name = format!("V{index}");
            series.template += &format!("{{{name}}}");
            series.variables.insert(name, of_alphabet(&all, &all));
        }
        series.template += "{SEQ:3}{CHECK:luhn}";
    });
    let refused = refused.expect_err("no value is possible");
    assert_eq!(refused.field(), "variables.V0.alphabet");
    assert!(refused.to_string().contains("take it out of `excluded`"), "{refused}");
}

#[test]
fn an_alphabet_of_nothing_is_refused_and_one_that_was_saved_still_serves() {
    let (_, last) = characters::printable(ANY).last().expect("some");
    let all = format!("!-{last}");
    for (alphabet, excluded, field) in [
        ("A-C", "A-Z", "variables.X.alphabet"),
        ("", &all, "variables.X.excluded"),
        // A mark begins no value.
        ("\u{301}", "", "variables.X.alphabet"),
    ] {
        let mut empty = definition();
        empty.variables.insert("X".into(), of_alphabet(alphabet, excluded));
        let refused = Series::compile(empty.clone()).expect_err(alphabet);
        assert_eq!(refused.field(), field);
        Series::restore(empty).expect("saved before");
    }
    compile(|series| {
        series.variables.insert("X".into(), of_alphabet("A-C", "A-B"));
    })
    .expect("C is left");
}

/// Goal: a proof ends, by its steps, before it costs much. Method: a series whose numbers begin
/// with one of a thousand signs, among hundreds that begin with one of a thousand others.
#[test]
fn a_proof_that_is_too_large_is_refused_in_bounded_time() {
    let of = |index: u32| {
        let mut one = definition();
        one.code = format!("S{index}");
        one.template = "{TYPE_CODE}{SEQ:3}".into();
        let first = 0x4e00 + 1_000 * (index % 2);
        let signs = (first..first + 1_000).filter_map(char::from_u32);
        one.serves.types = signs.map(String::from).collect();
        one
    };
    let mut all: Vec<SeriesDefinition> = (0..301).map(|index| of(2 * index + 1)).collect();
    all.push(of(0));
    let saved = |one: &SeriesDefinition| one.code == "S0";
    let proved = prove_saved(&all, &Arc::default(), saved, &[], &[], &GiveUp::default());
    let refused = proved.expect_err("too large").to_string();
    assert!(refused.contains("begin with a prefix of its own"), "{refused}");
    // With one it costs nothing.
    let own = all.last_mut().expect("the last");
    own.template = "A{SEQ:3}".into();
    assert_eq!(
        prove_saved(&all, &Arc::default(), saved, &[], &[], &GiveUp::default()),
        Ok(Vec::new())
    );
}

/// Goal: as many series as a ledger has are compared with each other in little time. Method: one
/// for each project and one for each hundred types, and defaults below them; each with many types.
#[test]
fn rules_of_thousands_of_series_are_checked_in_little_time() {
    let series = |index: usize| {
        let mut one = definition();
        one.code = format!("S{index}");
        let types = |of: usize| (0..300).map(move |type_code| format!("T{of}-{type_code}"));
        one.serves.types = types(if index.is_multiple_of(2) { 0 } else { index }).collect();
        match index {
            0 => one.serves.default = true,
            _ if index.is_multiple_of(2) => one.serves.projects = vec![format!("P{index}")],
            _ => {}
        }
        one
    };
    let all: Vec<SeriesDefinition> = (0..2_000).map(series).collect();
    assert_eq!(check_rules(&all), Ok(()));
}

/// A proof that is no longer awaited is no proof, even if its ambiguity would be accepted.
#[test]
fn a_proof_that_is_given_up_says_nothing() {
    let mut plain = definition();
    plain.ambiguity_accepted = Some("Both books are closed by now.".into());
    let give_up = GiveUp::default();
    let prove = || {
        let all = std::slice::from_ref(&plain);
        prove_saved(all, &Arc::default(), |_| true, &[], &[], &give_up)
    };
    assert_eq!(prove(), Ok(Vec::new()));
    give_up.clone().give_up();
    assert_eq!(prove(), Err(ProofError::GivenUp));
}

/// Goal: finding what determines the periods of counters costs steps, too. Method: eight serials by
/// the week, of which the number shows days in every notation but that, with many earlier versions.
#[test]
fn periods_of_many_versions_are_refused_in_bounded_time() {
    let of = |index: u32| {
        let mut one = definition();
        let eras = "{YEAR}{YEAR:B.E.}{YEAR:ROC}{DATE:MM}{DATE:dd}{DATE:DDD}{DATE:Q}";
        let serials = (0..8).map(|at| format!("{{SEQ:3:S{at}}}")).collect::<String>();
        one.template = format!("{eras}-{index:03}-{serials}");
        one.serials = (0..8).map(|at| serial(&format!("S{at}"))).collect();
        one.serials.iter_mut().for_each(|serial| serial.reset = Reset::Week);
        one
    };
    let all = [of(0)];
    let prove = |versions: u32| {
        let earlier = |version| EarlierVersion { version, definition: of(version) };
        let earlier: Vec<EarlierVersion> = (1..=versions).map(earlier).collect();
        prove_saved(&all, &Arc::default(), |_| true, &earlier, &[], &GiveUp::default())
    };
    assert_eq!(prove(2), Ok(Vec::new()));
    let refused = prove(1_500).expect_err("too large").to_string();
    assert!(refused.contains("cannot be proved"), "{refused}");
}

/// Goal: rules that split each other into ever more pieces end, too. Method: two that are equal,
/// below many that each take half of what they list of each kind, and one that takes it all.
#[test]
fn rules_that_cut_each_other_are_refused_in_bounded_time() {
    let series = |code: String, takes: &dyn Fn(usize, usize) -> bool| {
        let mut one = definition();
        one.code = code;
        let names = |axis: usize| -> Vec<String> {
            (0..200).filter(|at| takes(axis, *at)).map(|at| format!("{axis}-{at}")).collect()
        };
        let serves = &mut one.serves;
        (serves.projects, serves.originators) = (names(0), names(1));
        (serves.types, serves.sub_types) = (names(2), names(3));
        one
    };
    let mut all = vec![series("A".into(), &|_, _| true), series("B".into(), &|_, _| true)];
    all.iter_mut().for_each(|one| one.serves.default = true);
    // Halves that are mixed anew each time.
    let is_in = |index: usize, axis: usize, at: usize| {
        let mut mixed =
            ((index * 1_000 + axis * 250 + at) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ (mixed >> 27)) >> 20).is_multiple_of(2)
    };
    all.extend(
        (0..100).map(|index| series(format!("M{index:02}"), &|axis, at| is_in(index, axis, at))),
    );
    all.push(series("Z".into(), &|_, _| true));
    let outcome = check_rules(&all);
    let refused = outcome.expect_err("nobody knows").to_string();
    assert!(refused.contains("A and B") && refused.contains("list fewer"), "{refused}");
}

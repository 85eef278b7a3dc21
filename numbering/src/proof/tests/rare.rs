//! Collisions that chance does not find: one value or one day alone. The search must find
//! them by itself, and must not see them where they are none.

use std::collections::BTreeSet;

use super::super::super::testing::serial;
use super::super::super::{
    Ambiguity, Limit, Overflow, Reset, SerialDefinition, Series, Style, VariableDefinition, prove,
};
use super::traps::{compile, strings, variable};

/// A series that shows a serial alone.
fn stepped(code: &str, (start, step, max): (u64, u64, u64), style: Style) -> Series {
    compile(|definition| {
        definition.code = code.into();
        let width = if style == Style::Digits { 4 } else { 3 };
        definition.template = format!("{{SEQ:{width}}}");
        definition.serves.types = strings(&[code]);
        definition.serials[0].style = style;
        (definition.serials[0].start, definition.serials[0].step) = (start, step);
        definition.serials[0].max = Some(max);
    })
}

#[test]
fn one_value_that_two_serials_share_is_found() {
    // Of steps of 97 and 89 the value 5500 is the only one that both reach.
    let other = (71, 89, 9_000);
    let values = |(start, step, max): (u64, usize, u64)| {
        (start..=max).step_by(step).collect::<BTreeSet<u64>>()
    };
    for (start, max, meets) in [
        (68, 9_000, true),
        (68, 5_500, true),
        (68, 5_499, false),
        (5_500, 9_000, true),
        (5_597, 9_000, false),
        (69, 9_000, true),
        (67, 4_431, false),
    ] {
        let shared = values((start, 97, max)).intersection(&values((71, 89, 9_000))).count();
        assert_eq!(shared > 0, meets, "{start} {max}: the example is what it says");
        for style in [Style::Digits, Style::Letters] {
            let (one, two) = (stepped("a", (start, 97, max), style), stepped("b", other, style));
            match prove(&one, &[&two], &[]) {
                Err(Ambiguity::Collision { first, second, .. }) => {
                    assert!(meets, "{style:?} {start} {max}");
                    assert_eq!(first.values, second.values);
                }
                Ok(()) => assert!(!meets, "{style:?} {start} {max}"),
                Err(error) => panic!("{style:?} {start} {max}: {error}"),
            }
        }
    }
}

/// A series of a template that counts by the variables `A` and `B` of an alphabet.
fn of(template: &str, alphabet: &str) -> Series {
    compile(|definition| {
        definition.template = template.into();
        for name in ["A", "B"] {
            let declared =
                VariableDefinition { alphabet: Some(alphabet.into()), ..variable("", 2) };
            definition.variables.insert(name.into(), declared);
        }
        definition.serials[0].counter = strings(&["A", "B"]);
    })
}

/// Whether a series has a collision; it is one or the other.
fn collides(series: &Series) -> bool {
    match prove(series, &[], &[]) {
        Ok(()) => false,
        Err(Ambiguity::Collision { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn months_of_another_quarter_tell_two_readings_apart() {
    // January, read one digit further, is October or December.
    let months = |alphabet| of("{A}{DATE:MM}{B}{DATE:Q}-{SEQ:3}", alphabet);
    assert!(!collides(&months("02-9")));
    // November is November.
    assert!(collides(&months("0-9")));
}

#[test]
fn one_day_that_is_read_as_another_is_found() {
    // 11 November is itself a digit further.
    let days = |alphabet| of("{A}{DATE:ddMM}{B}{DATE:DDD}-{SEQ:3}", alphabet);
    assert!(collides(&days("013-9")));
    assert!(!collides(&days("03-9")));
}

#[test]
fn years_that_go_together_at_places_that_shift_are_found() {
    // One year alone reads the same where it is shifted by a digit: 1111.
    let years = compile(|definition| {
        definition.template = "{DATE:Q}{SEQ:1:X}{FY}1{SEQ:1:Y}{YEAR}".into();
        definition.fiscal_year_start = Some(4);
        let serial = |name: &str, reset| {
            let (overflow, max) = (Overflow::Widen, Some(12));
            SerialDefinition { overflow, max, reset, ..serial(name) }
        };
        definition.serials = vec![serial("X", Reset::Day), serial("Y", Reset::None)];
    });
    let error = prove(&years, &[], &[]).expect_err("1111 is a year").to_string();
    assert!(error.contains("date 1111-"), "{error}");
}

#[test]
fn texts_of_any_length_that_are_shown_twice_are_proved_by_their_lengths() {
    let twice = |template: &str| {
        compile(|definition| {
            definition.template = template.into();
            definition.variables.insert("A".into(), variable("", 64));
            definition.serials[0].counter = strings(&["A"]);
        })
    };
    for template in ["{A}{SEQ:1}{A}", "{A}{SEQ:2}{A}{DATE:MM}", "{SEQ:1}{A}{DATE:Q}{A}{A}"] {
        assert_eq!(prove(&twice(template), &[], &[]), Ok(()), "{template}");
    }
    // A serial of one digit or of three moves the other ones.
    assert!(collides(&twice("{A}{SEQ}{A}")));
}

#[test]
fn what_is_beyond_the_searches_is_refused_as_unproven() {
    // Three texts of any length, each twice: the serial is at one place, whatever their lengths,
    // but these are too many to go through.
    let many = compile(|definition| {
        definition.template = "{A}{B}{C}{SEQ:1}{A}{B}{C}".into();
        for name in ["A", "B", "C"] {
            definition.variables.insert(name.into(), variable("", 64));
        }
    });
    let error = prove(&many, &[], &[]).expect_err("not proved");
    let Ambiguity::Unproven { limit, .. } = &error else { panic!("{error}") };
    assert_eq!(*limit, Limit::States);
    let says = "series test cannot be proved to be free of collisions: more than";
    assert!(error.to_string().starts_with(says), "{error}");
}

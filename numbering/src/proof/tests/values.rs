//! What is known of serials and check characters: start, step, and what stands before a check.

use std::collections::BTreeSet;

use super::super::super::{
    Ambiguity, EarlierVersion, Inputs, Series, SeriesDefinition, VariableDefinition, prove,
};
use super::traps::{compile, strings, variable};

/// A number of any digits and a serial beside it, by hundreds.
fn hundreds(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    compile(|definition| {
        definition.template = "{SEQ}{N}".into();
        let digits = VariableDefinition { alphabet: Some("1-9".into()), ..variable("", 2) };
        definition.variables.insert("N".into(), digits);
        definition.serials[0].start = 100;
        definition.serials[0].step = 100;
        definition.serials[0].counter = strings(&["N"]);
        edit(definition);
    })
}

#[test]
fn a_start_and_a_step_tell_where_a_serial_ends() {
    assert_eq!(prove(&hundreds(|_| ()), &[], &[]), Ok(()));
    for (start, step, meets) in
        [(100, 1, true), (100, 11, true), (101, 100, false), (100, 10, false)]
    {
        let other = hundreds(|definition| {
            (definition.serials[0].start, definition.serials[0].step) = (start, step);
        });
        let proved = prove(&other, &[], &[]);
        let collides = matches!(proved, Err(Ambiguity::Collision { .. }));
        assert_eq!(collides, meets, "{start} {step}: {proved:?}");
    }
}

#[test]
fn counters_that_an_earlier_version_left_beside_the_step_are_not_forgotten() {
    let before = |start: u64, step: u64| {
        let mut definition = hundreds(|_| ()).definition().clone();
        (definition.serials[0].start, definition.serials[0].step) = (start, step);
        [EarlierVersion { version: 1, definition }]
    };
    let next = hundreds(|_| ());
    assert_eq!(prove(&next, &[], &before(200, 300)), Ok(()), "by hundreds as well");
    // A counter at 111 goes on with 211, and one at 102 with 202.
    for (start, step) in [(100, 11), (102, 100)] {
        let refused = prove(&next, &[], &before(start, step));
        assert!(matches!(refused, Err(Ambiguity::Collision { .. })), "{start} {step} {refused:?}");
    }
    // The same beside another series: its texts end in 5.
    let fives = compile(|definition| {
        definition.code = "fives".into();
        definition.template = "{SEQ}5".into();
        definition.serves.types = strings(&["U"]);
    });
    let tens = compile(|definition| {
        definition.template = "{SEQ}".into();
        (definition.serials[0].start, definition.serials[0].step) = (10, 10);
    });
    assert_eq!(prove(&fives, &[&tens], &[]), Ok(()));
    let mut definition = tens.definition().clone();
    definition.serials[0].step = 5;
    let earlier = [EarlierVersion { version: 1, definition }];
    let refused = prove(&fives, &[&tens], &earlier);
    assert!(matches!(refused, Err(Ambiguity::Collision { .. })), "{refused:?}");
}

#[test]
fn check_characters_tell_numbers_apart() {
    // A serial of two digits and its check beside one of three: 10 of 1000 texts are both.
    let of = |code: &str, template: &str, max: u64| {
        compile(|definition| {
            definition.code = code.into();
            definition.template = template.into();
            definition.serves.types = strings(&[code]);
            definition.serials[0].max = Some(max);
        })
    };
    for check in ["luhn", "damm"] {
        let checked = of("a", &format!("{{SEQ:2}}{{CHECK:{check}}}"), 99);
        for (template, max) in [("{SEQ:3}", 999), ("{SEQ:3}", 10), ("0{SEQ:2}", 40)] {
            let plain = of("b", template, max);
            let texts = |series: &Series| -> BTreeSet<String> {
                let request =
                    Inputs { type_code: series.definition().code.clone(), ..Inputs::default() };
                let draft = series.draft(&request, jiff::Timestamp::UNIX_EPOCH).expect("sound");
                (1..=series.serials()[0].max)
                    .map(|v| draft.mask.fill(&[v]).expect("fits"))
                    .collect()
            };
            let meet = !texts(&checked).is_disjoint(&texts(&plain));
            let proved = prove(&checked, &[&plain], &[]);
            assert!(!matches!(proved, Err(Ambiguity::Unproven { .. })), "{check} {template}");
            assert_eq!(proved.is_err(), meet, "{check} {template} {max}: {proved:?}");
        }
    }
}

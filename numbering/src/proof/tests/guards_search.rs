//! What each check of the proof must not let pass where a search ends: too much to look at is no
//! proof, and what is found late is found.

use std::collections::BTreeSet;

use super::super::super::{Ambiguity, Inputs, Limit, Series, Style, VariableDefinition, prove};
use super::super::automaton::{Sets, automaton};
use super::super::between::between;
use super::super::comparison::Comparison;
use super::super::grid::Grid;
use super::super::language::{Reach, language};
use super::super::memory::Counted;
use super::super::product::{EVERYTHING, Runs, Search};
use super::guards::{assert_collides, shifted};
use super::traps::{compile, strings, variable};

/// A series of a template with three variables of any text, which counts by some of them.
fn long(code: &str, template: &str, step: u64, counter: &[&str]) -> Series {
    shifted(template, |definition| {
        for name in ["A", "B", "C"] {
            definition.variables.insert(name.into(), variable("", 64));
        }
        definition.code = code.into();
        definition.serves.types = strings(&[code]);
        definition.serials[0].counter = strings(counter);
        definition.serials[0].step = step;
    })
}

#[track_caller]
fn assert_too_much(refused: &Result<(), Ambiguity>) {
    let is_told = matches!(refused, Err(Ambiguity::Unproven { limit: Limit::States, .. }));
    assert!(is_told, "{refused:?}");
}

#[test]
fn more_pairs_than_are_looked_at_are_no_proof() {
    // Before any text is found that both can show.
    let [x, y] = ["X", "Y"].map(|end| {
        let template = format!("{{A}}{{B}}{{C}}{{A}}{{B}}{{C}}{{SEQ:1}}{end}");
        long(&end.to_lowercase(), &template, 1, &["A"])
    });
    assert_too_much(&between(&x, &y, [&[&x, &y]; 2], &[], None));
}

#[test]
fn more_texts_than_are_looked_at_are_no_proof_with_signs_and_without() {
    for step in [1, 2] {
        // The serial is in the middle of each: no two texts are read in two ways.
        let many = long("a", "{A}{B}{C}{SEQ:1}{A}{B}{C}", step, &[]);
        assert_too_much(&prove(&many, &[], &[]));
    }
}

#[test]
fn a_text_that_is_much_longer_than_the_shortest_is_found() {
    // `A-B` is no number of the first, which shows one type twice; twenty letters are.
    let long = "L".repeat(20);
    let twice = shifted("{CORR_TYPE}-{CORR_TYPE}-{SEQ:1}", |definition| {
        definition.serves.types = strings(&["A", "B", &long]);
    });
    let two = |first: &str, second: &str| {
        shifted("{M}-{N}-{SEQ:1}", |definition| {
            definition.code = "two".into();
            definition.serves.types = strings(&["two"]);
            for (name, alphabet) in [("M", first), ("N", second)] {
                let letters =
                    VariableDefinition { alphabet: Some(alphabet.into()), ..variable("", 20) };
                definition.variables.insert(name.into(), letters);
            }
        })
    };
    assert_collides(&twice, &[&two("AL", "BL")]);
    assert_collides(&two("AL", "BL"), &[&twice]);
    assert_eq!(prove(&twice, &[&two("AL", "B")], &[]), Ok(()));
}

/// A series of a serial and its check.
fn stepped(code: &str, template: &str, (start, step): (u64, u64), style: Style) -> Series {
    compile(|definition| {
        definition.code = code.into();
        definition.serves.types = strings(&[code]);
        definition.template = template.into();
        definition.serials[0].style = style;
        (definition.serials[0].start, definition.serials[0].step) = (start, step);
        // The next value that both steps reach is 97,074.
        let ends = [211, 223].contains(&step) && !template.contains("CHECK");
        definition.serials[0].max = ends.then_some(97_000);
    })
}

/// The texts of a series.
fn texts(series: &Series) -> BTreeSet<String> {
    let type_code = series.definition().code.clone();
    let request = Inputs { type_code, ..Inputs::default() };
    let draft = series.draft(&request, jiff::Timestamp::UNIX_EPOCH).expect("sound");
    let serial = &series.serials()[0];
    let values = (serial.start..=serial.max).step_by(usize::try_from(serial.step).expect("small"));
    values.map(|value| draft.mask.fill(&[value]).expect("fits")).collect()
}

#[test]
fn one_text_alone_among_thousands_is_found() {
    let (digits, letters) = (Style::Digits, Style::Letters);
    // None of these is near either end of what one of the two shows.
    for (style, a, of_a, b, of_b) in [
        (digits, "{SEQ:5}", (18_371, 211), "{SEQ:5}", (21_031, 223)),
        (letters, "{SEQ:4}", (18_371, 211), "{SEQ:4}", (21_031, 223)),
        (digits, "{SEQ:4}{CHECK:luhn}", (1_010, 11), "{SEQ:5}", (10_656, 449)),
        (digits, "{SEQ:4}{CHECK:damm}", (1_003, 11), "{SEQ:5}", (10_669, 223)),
        (digits, "{SEQ:4}{CHECK:mod37-36}", (1_003, 11), "{SEQ:5}", (10_526, 223)),
        (digits, "{SEQ:4}{CHECK:mod97-10}", (1_003, 7), "{SEQ:6}", (100_513, 1_009)),
    ] {
        let (one, two) = (stepped("a", a, of_a, style), stepped("b", b, of_b, style));
        let common = texts(&one).intersection(&texts(&two)).count();
        assert!((1..=9).contains(&common), "{a} {style:?}: {common}, as the example says");
        assert_collides(&one, &[&two]);
        assert_collides(&two, &[&one]);
    }
}

#[test]
fn a_value_is_the_same_only_where_each_of_its_signs_is() {
    // The search by itself, without examples: nothing is told of what it leaves.
    for (style, signs) in [(Style::Digits, "1-8"), (Style::Letters, "A-Z")] {
        let series = shifted("{M}{SEQ:1}{N}", |definition| {
            definition.serials[0].style = style;
            for name in ["M", "N"] {
                let declared =
                    VariableDefinition { alphabet: Some(signs.into()), ..variable("", 2) };
                definition.variables.insert(name.into(), declared);
            }
        });
        let types = &series.definition().serves.types;
        let decided = |counted: &[Counted]| {
            let comparison = Comparison {
                series: [&series, &series],
                types: [types, types],
                places: &[Some(0), Some(1), Some(2)],
                marks: [&[0, 1, 0], &[0, 1, 0]],
                marked: 0,
                wanted: 1,
                same: &[],
                grids: [&[Grid { least: 1, step: 1 }]; 2],
                counted,
            };
            comparison.decide(|| false, |_| None)
        };
        // One counter: a number is read in two ways, and another one as well.
        let refused = decided(&[Counted { parts: vec![[1, 1]] }]);
        assert!(matches!(refused, Err(Ambiguity::Unproven { .. })), "{style:?}: {refused:?}");
        assert!(decided(&[]).is_err(), "{style:?}");
    }
}

#[test]
fn all_pairs_are_wanted_or_it_is_too_much() {
    // One value so often that there are more pairs than are looked at.
    let series = long("a", "{A}{SEQ:1}{A}{A}{A}{A}{A}", 1, &["A"]);
    let mut sets = Sets::default();
    let parts = series.parts.iter().map(|part| language(&series, part, &[], Reach::Everything));
    let automaton = automaton(&parts.collect::<Vec<_>>(), &mut sets);
    let places: Vec<Option<usize>> = (0..series.parts.len()).map(Some).collect();
    let runs = Runs {
        first: &automaton,
        second: &automaton,
        places: &places,
        marks: [&[1; 7], &[1; 7]],
        marked: 0,
        wanted: 1,
        same: &[],
    };
    assert!(matches!(runs.search(&mut sets, EVERYTHING), Search::TooLarge));
}

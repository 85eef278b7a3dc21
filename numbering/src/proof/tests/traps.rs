//! Traps that administrators meet, each with the pair of requests that shows it, and the remedy.

use super::super::super::testing::{definition, serial};
use super::super::super::{
    Ambiguity, Overflow, Reset, Series, SeriesDefinition, Style, VariableDefinition,
    builtin_series, prove,
};

/// A variable as it is declared.
pub(super) fn variable(excluded: &str, width_max: usize) -> VariableDefinition {
    VariableDefinition {
        required: true,
        excluded: (!excluded.is_empty()).then(|| excluded.into()),
        width_max: Some(width_max),
        ..VariableDefinition::default()
    }
}

pub(super) fn compile(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    let mut definition = definition();
    edit(&mut definition);
    Series::compile(definition).expect("a series that compiles")
}

/// The refusal of a series beside others.
fn refusal(subject: &Series, others: &[&Series]) -> String {
    prove(subject, others, &[]).expect_err(&subject.definition().template).to_string()
}

pub(super) fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn builtin(code: &str) -> SeriesDefinition {
    let mut all = builtin_series().into_iter();
    all.find(|definition| definition.code == code).expect("ships")
}

#[test]
fn every_series_that_ships_is_proved() {
    let all: Vec<Series> =
        builtin_series().into_iter().map(|d| Series::compile(d).expect("compiles")).collect();
    let all: Vec<&Series> = all.iter().collect();
    for series in &all {
        prove(series, &all, &[]).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn a_counter_by_year_without_the_year_in_the_number_gives_a_pair() {
    let mut rfa = builtin("RFA");
    rfa.serials[0].reset = Reset::Year;
    let error = refusal(&Series::compile(rfa).expect("compiles"), &[]);
    assert_eq!(
        error,
        "RFA (type \"RFA\", project \"PROJECT-1\", date 2025-01-01, DISCIPLINE \"0\", \
         REV \"A\", RFA_TYPE \"0\", SEQ = 1) and RFA (type \"RFA\", project \"PROJECT-1\", \
         date 2026-01-01, DISCIPLINE \"0\", REV \"A\", RFA_TYPE \"0\", SEQ = 1) would both get \
         \"PROJECT-1-RFA-0-0-0001-A\" within project=PROJECT-1;type=RFA; serial SEQ begins anew \
         each year, which the number does not show: show the year, or set `reset` to what is shown"
    );
}

#[test]
fn a_counter_by_originator_without_the_originator_in_the_number_gives_a_pair() {
    let mut rfa = builtin("RFA");
    rfa.serials[0].counter.push("ORIGINATOR".into());
    let error = refusal(&Series::compile(rfa).expect("compiles"), &[]);
    assert!(error.contains("ORIGINATOR \"0\"") && error.contains("ORIGINATOR \"A\""), "{error}");
    let says = "serial SEQ counts by ORIGINATOR, which the number does not show: show it, take it \
                out of the serial's `counter`, or name it in `unique_within`";
    assert!(error.ends_with(says), "{error}");
}

#[test]
fn a_day_in_the_number_does_not_hide_a_type_that_is_not() {
    let daily = compile(|definition| {
        definition.template = "{DATE:yyyyMMdd}-{SEQ:3}".into();
        definition.serves.types = strings(&["T", "U"]);
        definition.serials[0].counter = strings(&["type"]);
        definition.serials[0].reset = Reset::Day;
    });
    let error = refusal(&daily, &[]);
    assert!(error.contains("type \"T\", date 2025-01-01"), "{error}");
    assert!(error.contains("type \"U\", date 2025-01-01"), "{error}");
    assert!(error.contains("serial SEQ counts by type, which"), "{error}");
}

#[test]
fn types_that_share_a_template_and_the_whole_ledger_give_a_pair() {
    let whole = |code: &str| {
        let mut definition = builtin(code);
        definition.unique_within = Vec::new();
        definition.serials[0].counter.retain(|name| name != "project");
        Series::compile(definition).expect("compiles")
    };
    let (letter, other) = (whole("LETTER"), whole("CORRESPONDENCE"));
    assert_eq!(prove(&letter, &[], &[]), Ok(()));
    let error = refusal(&letter, &[&other]);
    assert!(error.contains("LETTER (type \"LETTER\""), "{error}");
    assert!(error.contains("CORRESPONDENCE (type "), "{error}");
    assert!(error.contains("in the whole ledger; series LETTER and CORRESPONDENCE"), "{error}");
    let error = refusal(&other, &[]);
    assert!(error.contains("serial SEQ counts by type, which"), "{error}");
}

#[test]
fn letters_of_two_projects_in_the_whole_ledger_give_a_pair() {
    let mut letter = builtin("LETTER");
    letter.unique_within = Vec::new();
    let error = refusal(&Series::compile(letter).expect("compiles"), &[]);
    assert!(error.contains("project \"PROJECT-1\"") && error.contains("project \"PROJECT-2\""));
    assert!(error.contains("serial SEQ counts by project, which"), "{error}");
}

#[test]
fn codes_that_hold_the_separator_give_a_pair() {
    let mut letter = builtin("LETTER");
    for variable in letter.variables.values_mut() {
        variable.excluded = None;
    }
    let error = refusal(&Series::compile(letter).expect("compiles"), &[]);
    assert!(error.contains("can be read in two ways"), "{error}");
    assert!(error.contains("{ORIGINATOR}"), "{error}");
}

/// A series of a template with the variables `A` and `B`, both in its counter.
fn of(template: &str, a: VariableDefinition, b: VariableDefinition) -> Series {
    compile(|definition| {
        definition.template = template.into();
        definition.variables.insert("A".into(), a);
        definition.variables.insert("B".into(), b);
        definition.serials[0].counter = strings(&["A", "B"]);
        definition.unique_within = Vec::new();
    })
}

#[test]
fn variable_neighbours_are_told_apart_or_give_a_pair() {
    let digits = || VariableDefinition { alphabet: Some("0-9".into()), ..variable("", 3) };
    let letters = || VariableDefinition { alphabet: Some("A-Z".into()), ..variable("", 3) };
    let fixed = || VariableDefinition { width: Some(2), ..VariableDefinition::default() };
    for (template, a, b, proved) in [
        ("{A}-{B}-{SEQ:3}", variable("-", 9), variable("-", 9), true),
        // The last part may hold the separator, since all others are bounded by their first one.
        ("{A}-{SEQ:3}-{B}", variable("-", 9), variable("", 9), true),
        ("{A}-{B}-{SEQ:3}", variable("-", 9), variable("", 9), true),
        ("{A}-{B}-{SEQ:3}", variable("", 9), variable("", 9), false),
        ("{A}{B}{SEQ:3}", fixed(), variable("", 9), true),
        ("{A}{B}{SEQ:3}", variable("", 9), variable("", 9), false),
        ("{A}{SEQ}-{B}", digits(), fixed(), false),
        ("{A}{SEQ:4}-{B}", digits(), fixed(), true),
        ("{SEQ}{A}-{B}", digits(), fixed(), false),
        ("{SEQ}{A}-{B}", letters(), fixed(), true),
        ("{SEQ}{DATE:yyyyMMdd}{A}{B}", fixed(), fixed(), true),
        ("{A}{DATE:yyyy}{SEQ}{B}", digits(), fixed(), false),
        ("{A}-{B}-{SEQ:3}-{A}", variable("-", 4), variable("-", 4), true),
        ("{A}กข{B}{SEQ:3}", variable("ก", 4), variable("", 4), true),
        ("{A}กข{B}{SEQ:3}", variable("ข", 4), variable("", 4), true),
        ("{A}กข{B}{SEQ:3}", variable("", 4), variable("ก", 4), true),
    ] {
        match prove(&of(template, a, b), &[], &[]) {
            Ok(()) => assert!(proved, "{template} is no proof"),
            Err(error @ Ambiguity::Unproven { .. }) => panic!("{template}: {error}"),
            Err(error) => assert!(!proved, "{template}: {error}"),
        }
    }
}

#[test]
fn what_is_told_by_lengths_and_repetitions_is_proved() {
    // Its length tells where `A` ends: both halves are as long.
    let halves = of("{A}{A}-{B}-{SEQ:3}", variable("-", 4), variable("-", 4));
    assert_eq!(prove(&halves, &[], &[]), Ok(()));
}

#[test]
fn what_no_counter_counts_by_may_be_read_as_it_likes() {
    let revision = |rev: VariableDefinition| {
        compile(|definition| {
            definition.template = "{SEQ:3}{REV}{NOTE}".into();
            definition.variables.insert("REV".into(), rev);
            definition.variables.insert("NOTE".into(), variable("", 5));
        })
    };
    assert_eq!(prove(&revision(variable("", 4)), &[], &[]), Ok(()));
    let shifted = compile(|definition| {
        definition.template = "{NOTE}{SEQ}".into();
        definition.variables.insert("NOTE".into(), variable("", 5));
    });
    assert!(refusal(&shifted, &[]).contains("can be read in two ways"));
}

#[test]
fn one_serial_that_is_always_told_is_enough() {
    let two = |counter: &[&str]| {
        compile(|definition| {
            definition.template = "{SEQ:3:ALL}-{SEQ:3:OWN}".into();
            definition.variables.insert("A".into(), variable("", 5));
            definition.serials = vec![serial("ALL"), serial("OWN")];
            definition.serials[0].counter = strings(counter);
            definition.serials[1].counter = strings(&["A"]);
        })
    };
    assert_eq!(prove(&two(&[]), &[], &[]), Ok(()));
    assert!(refusal(&two(&["A"]), &[]).contains("counts by A"));
}

/// A series of a template and a reset, with one digit after it.
fn counted(template: &str, reset: Reset) -> Series {
    compile(|definition| {
        definition.template = template.into();
        definition.serials[0].reset = reset;
        definition.fiscal_year_start = Some(4);
    })
}

#[test]
fn every_period_is_told_by_what_determines_it() {
    for (reset, shown, hidden) in [
        (Reset::Second, "{DATE:yyyyMMddHHmmss}", "{DATE:yyyyMMddHHmm}"),
        (Reset::Minute, "{DATE:yyyyDDDHHmm}", "{DATE:yyyyDDDHH}"),
        (Reset::Hour, "{DATE:yyyyMMddHH}", "{DATE:yyyyMMdd}"),
        (Reset::Week, "{DATE:YYYYww}", "{DATE:yyyyMM}"),
        (Reset::Quarter, "{DATE:yyyyQ}", "{YEAR}"),
        (Reset::FiscalYear, "{FY:B.E.}", "{YEAR}"),
        (Reset::FiscalYear, "{FY:start}", "{DATE:MM}"),
        (Reset::Phase, "{PHASE}", "{YEAR}"),
    ] {
        let proved = prove(&counted(&format!("{shown}-{{SEQ:3}}"), reset), &[], &[]);
        assert_eq!(proved, Ok(()), "{reset:?} {shown}");
        let error = refusal(&counted(&format!("{hidden}-{{SEQ:3}}"), reset), &[]);
        assert!(error.contains("begins anew"), "{reset:?} {hidden}: {error}");
    }
}

#[test]
fn figures_of_serials_are_told_apart_or_give_a_pair() {
    let of = |template: &str, style: Style, overflow: Overflow| {
        compile(|definition| {
            definition.template = template.into();
            let digits = VariableDefinition { alphabet: Some("0-9".into()), ..variable("", 2) };
            definition.variables.insert("N".into(), digits);
            definition.serials[0].counter = strings(&["N"]);
            definition.serials[0].style = style;
            definition.serials[0].overflow = overflow;
        })
    };
    let (digits, letters) = (Style::Digits, Style::Letters);
    for (template, style, overflow, proved) in [
        ("{N}{SEQ:3}", digits, Overflow::Refuse, true),
        ("{N}{SEQ:3}", digits, Overflow::Widen, false),
        ("{N}-{SEQ:3}", digits, Overflow::Widen, true),
        ("{N}{SEQ:3}", letters, Overflow::Widen, true),
        ("{SEQ}{N}", letters, Overflow::Refuse, true),
        ("{N}{SEQ:3}{CHECK:luhn}", digits, Overflow::Refuse, true),
        ("{N}{SEQ:3}{CHECK:mod97-10}", digits, Overflow::Widen, false),
        ("{SEQ}{N}{CHECK:mod37-36}", letters, Overflow::Refuse, true),
    ] {
        match prove(&of(template, style, overflow), &[], &[]) {
            Err(error @ Ambiguity::Unproven { .. }) => panic!("{template}: {error}"),
            found => assert_eq!(found.is_ok(), proved, "{template} {overflow:?}: {found:?}"),
        }
    }
}

#[test]
fn the_scope_tells_what_the_number_does_not_show() {
    let scoped = |scope: &[&str]| {
        compile(|definition| {
            definition.template = "{PROJECT}-{A}-{SEQ:3}".into();
            definition.variables.insert("A".into(), variable("", 9));
            definition.serials[0].counter = strings(&["project", "A", "type"]);
            definition.serves.types = strings(&["T", "U"]);
            definition.unique_within = strings(scope);
        })
    };
    // A project may hold the separator where it is the same for both.
    assert_eq!(prove(&scoped(&["project", "type"]), &[], &[]), Ok(()));
    assert!(refusal(&scoped(&["project"]), &[]).contains("counts by type"));
    assert!(refusal(&scoped(&["type"]), &[]).contains("can be read in two ways"));
}

#[test]
fn two_series_meet_only_where_one_request_of_a_scope_can_reach_both() {
    let of = |code: &str, types: &[&str], projects: &[&str], scope: &[&str], template: &str| {
        compile(|definition| {
            definition.code = code.into();
            definition.template = template.into();
            definition.serves.types = strings(types);
            definition.serves.projects = strings(projects);
            definition.unique_within = strings(scope);
        })
    };
    for (scope, types, projects, template, proved) in [
        (&[][..], "U", &[][..], "{SEQ:3}", false),
        (&[], "U", &[], "U{SEQ:3}", true),
        (&[], "U", &[], "{SEQ:2}", true),
        (&[], "U", &[], "{SEQ}", false),
        (&["type"], "U", &[], "{SEQ:3}", true),
        // Two series for one type: the project decides, and it is not in the scope.
        (&["type"], "T", &["P1"], "{SEQ:3}", false),
        (&["project", "type"], "T", &["P1"], "{SEQ:3}", true),
        (&["project"], "U", &["P1"], "{SEQ:3}", false),
    ] {
        let subject = of("a", &["T"], &[], scope, "{SEQ:3}");
        let other = of("b", &[types], projects, scope, template);
        let found = prove(&subject, &[&other, &subject], &[]);
        assert_eq!(found.is_ok(), proved, "{scope:?} {types} {projects:?} {template}: {found:?}");
        assert!(!matches!(found, Err(Ambiguity::Unproven { .. })), "{found:?}");
    }
    let elsewhere = of("b", &["U"], &[], &["project"], "{SEQ:3}");
    assert_eq!(prove(&of("a", &["T"], &[], &[], "{SEQ:3}"), &[&elsewhere], &[]), Ok(()));
}

#[test]
fn a_start_and_a_step_are_kept_in_the_pair() {
    let stepped = compile(|definition| {
        definition.template = "{A}{SEQ}".into();
        let digits = VariableDefinition { alphabet: Some("0-9".into()), ..variable("", 3) };
        definition.variables.insert("A".into(), digits);
        definition.serials[0].start = 107;
        definition.serials[0].step = 50;
        definition.serials[0].counter = strings(&["A"]);
    });
    match prove(&stepped, &[], &[]) {
        Err(Ambiguity::Collision { first, second, .. }) => {
            for (_, value) in first.values.iter().chain(&second.values) {
                assert!(*value >= 107 && (value - 107).is_multiple_of(50), "{value}");
            }
        }
        other => panic!("{other:?}"),
    }
}

//! Traps of one series alone.

use std::collections::BTreeSet;

use super::super::super::builtin_series;
use super::super::super::{Reset, Series, SeriesDefinition};
use super::super::Party;
use super::super::periods;
use super::notation::{Proved, Refused, after, alone, compared, compiled, party, prove};

const TWO_WAYS: &str = "can be read in two ways";
const COUNTS: &str = "which the number does not show: show it, take it out of the serial's \
    `counter`, or name it in `unique_within`";

fn builtin(code: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    let mut all = builtin_series().into_iter();
    let mut definition = all.find(|definition| definition.code == code).expect("ships");
    edit(&mut definition);
    Series::compile(definition).expect("compiles")
}

fn refusal(series: &Series) -> String {
    prove(series).expect_err("not proved").to_string()
}

#[test]
fn a_counter_by_year_without_the_year_in_the_number_gives_two_requests() {
    let error = refusal(&builtin("RFA", |rfa| rfa.serials[0].reset = Reset::Year));
    assert_eq!(
        error,
        "RFA (type \"RFA\", project \"A\", DISCIPLINE \"A\", RFA_TYPE \"A\", SEQ \"0001\", \
         REV \"A\", date \"2025-01-01\") and RFA (type \"RFA\", project \"A\", DISCIPLINE \
         \"A\", RFA_TYPE \"A\", SEQ \"0001\", REV \"A\", date \"2026-01-01\") would both \
         get \"A-RFA-A-A-0001-A\" within project=A;type=RFA; serial SEQ begins anew each year, \
         which the number does not show: show the year, or set `reset` to what is shown"
    );
}

#[test]
fn a_counter_by_what_is_not_shown_gives_two_requests() {
    let error = refusal(&builtin("RFA", |rfa| rfa.serials[0].counter.push("ORIGINATOR".into())));
    assert!(error.contains("ORIGINATOR \"A\"") && error.contains("ORIGINATOR \"AA\""), "{error}");
    assert!(error.ends_with(&format!("serial SEQ counts by ORIGINATOR, {COUNTS}")), "{error}");
    let error = refusal(&builtin("LETTER", |letter| letter.unique_within.clear()));
    assert!(error.contains("project \"PROJECT-1\"") && error.contains("project \"PROJECT-2\""));
    let error = refusal(&compiled("{DATE:yyyyMMdd}-{SEQ:3} types=T,U counter=type reset=day"));
    assert!(error.contains("(type \"T\", SEQ \"001\", date \"2025-01-01\")"), "{error}");
    assert!(error.contains("(type \"U\", SEQ \"001\", date \"2025-01-01\")"), "{error}");
    assert!(error.contains("serial SEQ counts by type, which"), "{error}");
}

#[test]
fn a_text_is_shown_with_its_two_readings() {
    let error = refusal(&compiled("{A}-{B}-{SEQ:3} A=* B=* counter=A,B"));
    assert_eq!(
        error,
        "\"A--A-001\" can be read in two ways, as a (type \"T\", A \"A-\", B \"A\", SEQ \"001\") \
         and as a (type \"T\", A \"A\", B \"-A\", SEQ \"001\"); {A} may go on where \"-\" begins: \
         separate them by a sign that the first excludes, or give the first a fixed width"
    );
    let error = refusal(&builtin("LETTER", |letter| {
        letter.variables.values_mut().for_each(|variable| variable.excluded = None);
    }));
    assert!(error.contains("{ORIGINATOR} may go on where"), "{error}");
}

#[test]
fn neighbours_of_variable_width_are_bounded_by_signs_or_widths() {
    for (line, verdict) in [
        ("{A}-{B}-{SEQ:3} A=^-{1,9} B=^-{1,9}", Proved),
        // The last part may hold the separator, because all others are bounded by their first one.
        ("{A}-{SEQ:3}-{B} A=^-{1,9} B=*{1,9}", Proved),
        ("{A}-{B}-{SEQ:3} A=^-{1,9} B=*{1,9}", Proved),
        ("{A}-{B}-{SEQ:3} A=*{1,9} B=*{1,9}", Refused(TWO_WAYS)),
        ("{A}{B}{SEQ:3} A=*{2} B=*{1,9}", Proved),
        ("{A}{B}{SEQ:3} A=*{1,9} B=*{1,9}", Refused(TWO_WAYS)),
        ("{A}{SEQ}-{B} A=0-9{1,3} B=*{2}", Refused(TWO_WAYS)),
        ("{A}{SEQ:4}-{B} A=0-9{1,3} B=*{2}", Proved),
        ("{SEQ}{A}-{B} A=0-9{1,3} B=*{2}", Refused(TWO_WAYS)),
        ("{SEQ}{A}-{B} A=A-Z{1,3} B=*{2}", Proved),
        ("{SEQ}{DATE:yyyyMMdd}{A}{B} A=*{2} B=*{2}", Proved),
        ("{A}{DATE:yyyy}{SEQ}{B} A=0-9{1,3} B=*{2}", Refused(TWO_WAYS)),
        ("{A}-{B}-{SEQ:3}-{A} A=^-{1,4} B=^-{1,4}", Proved),
        ("{A}กข{B}{SEQ:3} A=^ก{1,4} B=*{1,4}", Proved),
        ("{A}กข{B}{SEQ:3} A=^ข{1,4} B=*{1,4}", Proved),
        ("{A}กข{B}{SEQ:3} A=*{1,4} B=^ก{1,4}", Proved),
        // Its length shows where `A` ends: both halves are as long.
        ("{A}{A}-{B}-{SEQ:3} A=^-{1,4} B=^-{1,4}", Proved),
    ] {
        alone(&format!("{line} counter=A,B"), verdict);
    }
}

#[test]
fn serials_are_bounded_by_their_formats() {
    for (line, verdict) in [
        ("{N}{SEQ:3}", Proved),
        ("{N}{SEQ:3} widens=", Refused(TWO_WAYS)),
        ("{N}-{SEQ:3} widens=", Proved),
        ("{N}{SEQ:3} letters= widens=", Proved),
        ("{SEQ}{N} letters=", Proved),
        ("{N}{SEQ:3}{CHECK:luhn}", Proved),
        ("{N}{SEQ:3}{CHECK:mod97-10} widens=", Refused(TWO_WAYS)),
        ("{SEQ}{N}{CHECK:mod37-36} letters=", Proved),
        // Steps are not followed.
        ("{SEQ}{N} start=100 step=100", Refused(TWO_WAYS)),
    ] {
        alone(&format!("{line} N=0-9{{1,2}} counter=N"), verdict);
    }
    for (line, verdict) in [
        ("{A}{SEQ}", Refused(TWO_WAYS)),
        ("{A}{SEQ:1} widens=", Refused(TWO_WAYS)),
        ("{A}{SEQ:2}", Proved),
        ("{A}{SEQ} max=26", Proved),
    ] {
        alone(&format!("{line} letters= A=A-Z{{1,2}} counter=A"), verdict);
    }
}

#[test]
fn what_no_counter_counts_by_may_be_read_as_it_likes() {
    alone("{SEQ:3}{REV}{NOTE} REV=*{1,4} NOTE=*{1,5}", Proved);
    alone("{NOTE}{SEQ} NOTE=*{1,5}", Refused(TWO_WAYS));
    alone("{PHASE}{N}-{SEQ:3} N=0-9{1,2}", Proved);
    alone("{M}{N}-{SEQ:3} M=0-9{1,2} N=0-9{1,2}", Proved);
}

#[test]
fn one_serial_that_is_always_told_is_enough() {
    alone("{SEQ:3:ALL}-{SEQ:3:OWN} A=*{1,5} counter2=A", Proved);
    alone("{SEQ:3:ALL}-{SEQ:3:OWN} A=*{1,5} counter=A", Refused("counts by A"));
    // `001-1` and 11, `001-11` and 1: X is 1 of two counters, Y is read in two ways.
    alone("{SEQ:3:X}-{N}{SEQ:1:Y} A=* N=0-9{1,2} counter=A counter2=N widens=", Refused(TWO_WAYS));
}

#[test]
fn a_counter_is_told_only_by_what_is_read_alike() {
    for line in [
        "{PHASE}{N}-{SEQ:3} reset=phase",
        "{SEQ:3}-{N}{PHASE} reset=phase",
        "{DATE:yyyy}-{M}{DATE:Q}{N}-{SEQ:3} reset=quarter",
        "{DATE:yyyyQ}-{M}{DATE:MM}{N}-{SEQ:3} reset=month",
        "{A}{N}-{SEQ:3} counter=A",
        "{SEQ:3}-{N}{PROJECT} counter=project",
        "{M}{SNOWFLAKE}{N}",
    ] {
        alone(&format!("{line} A=0-9{{1,2}} M=0-9{{1,2}} N=0-9{{1,2}}"), Refused(TWO_WAYS));
    }
    // A component that is shown twice differs only if both are read differently.
    alone("{A}-{N}{A}-{SEQ:3} A=0-9{1,2} N=0-9{1,2} counter=A", Proved);
}

#[test]
fn every_period_is_told_by_what_determines_it() {
    for (reset, shown, hidden) in [
        ("second", "{DATE:yyyyMMddHHmmss}", "{DATE:yyyyMMddHHmm}"),
        ("second", "{DATE:yyyyDDDHHmmssSSS}", "{DATE:yyyyMMddHH-ss}"),
        ("minute", "{DATE:yyyyDDDHHmm}", "{DATE:yyyyDDDHH}"),
        ("hour", "{DATE:yyyyMMddHH}", "{DATE:yyyyMMdd}"),
        ("day", "{DATE:yyyyMMdd}", "{DATE:yyyyMM}"),
        // The days of one week have different days of the month.
        ("day", "{DATE:YYYYwwddMM}", "{DATE:YYYYww}"),
        ("week", "{DATE:YYYYww}", "{DATE:yyyyMM}"),
        ("month", "{DATE:yyyyDDD}", "{DATE:YYYYww}"),
        ("month", "{DATE:yyMM}", "{DATE:yyyyQ}"),
        ("quarter", "{DATE:yyyyQ}", "{YEAR}"),
        ("quarter", "{DATE:yyyyMM}", "{DATE:MM}"),
        ("year", "{YEAR:B.E.}", "{FY}"),
        ("year", "{DATE:yyMM}", "{DATE:YYYYww}"),
        ("fiscal-year", "{FY:B.E.}", "{YEAR}"),
        ("fiscal-year", "{DATE:yyyyMM}", "{DATE:yyyyQQ}"),
        ("fiscal-year", "{FY:start}", "{DATE:MM}"),
        ("phase", "{PHASE}", "{YEAR}"),
    ] {
        alone(&format!("{shown}-{{SEQ:3}} reset={reset}"), Proved);
        if !hidden.contains("QQ") {
            alone(&format!("{hidden}-{{SEQ:3}} reset={reset}"), Refused("begins anew"));
        }
    }
}

#[test]
fn what_a_counter_counts_by_is_hidden_as_soon_as_it_may_differ() {
    for (line, verdict) in [
        ("counter=A A=a{1}", Proved),
        ("counter=A A?=a{1}", Refused(COUNTS)),
        ("counter=A A=a{1,2}", Refused(COUNTS)),
        ("counter=A A=ab{1}", Refused(COUNTS)),
        ("counter=project", Refused(COUNTS)),
        ("counter=project projects=P", Proved),
        ("counter=project projects=P,Q", Refused(COUNTS)),
        ("counter=project projects=P,Q tables=project", Refused(COUNTS)),
        ("counter=type types=T,U", Refused(COUNTS)),
        ("counter=type types=T", Proved),
        ("counter=type types=T tables=type", Proved),
        ("counter=type types=T tables=type default=", Refused("type \"TYPE-1\"")),
        ("counter=type types=T tables=type default= within=type", Proved),
    ] {
        alone(&format!("{{SEQ:3}} {line}"), verdict);
    }
}

#[test]
fn the_scope_tells_what_the_number_does_not_show() {
    let line = "{PROJECT}-{A}-{SEQ:3} A=*{1,9} counter=project,A,type types=T,U";
    // A project may hold the separator if it is the same for both.
    alone(&format!("{line} within=project,type"), Proved);
    alone(&format!("{line} within=project"), Refused("counts by type"));
    alone(&format!("{line} within=type"), Refused(TWO_WAYS));
    // One of a table may be renamed: `P-1` and `2`; then the project is `P`, and `1-2`.
    let tabled = "{PROJECT}-{A}-{SEQ:3} counter=project,A within=project tables=project";
    alone(&format!("{tabled} A=*"), Refused(TWO_WAYS));
    alone(&format!("{tabled} A=^-"), Proved);
    // If it begins elsewhere it is as long in both.
    alone(
        "{A}{PROJECT}-{B}-{SEQ:3} A=A-Z{1,2} B=*{1,4} counter=A,B within=project",
        Refused(TWO_WAYS),
    );
    alone("{A}{PROJECT}{SEQ:3} A=A-Z{1,2} counter=A within=project", Proved);
}

#[test]
fn a_code_of_a_table_may_be_any_text() {
    alone("{CORR_TYPE}{A}-{SEQ:3} A=* types=T,U counter=type,A", Proved);
    alone(
        "{CORR_TYPE}{A}-{SEQ:3} A=* types=T,U counter=type,A tables=type",
        Refused("{CORR_TYPE}"),
    );
    alone("{PROJECT}{A}-{SEQ:3} A=* projects=P,Q counter=project,A", Proved);
    alone(
        "{PROJECT}{A}-{SEQ:3} A=* projects=P,Q counter=project,A tables=project",
        Refused("{PROJECT}"),
    );
}

#[test]
fn a_search_that_ends_early_is_no_proof() {
    const EARLY: &str = " cannot be proved to be free of collisions: more than";
    let many = "{A}{B}{C}{SEQ:1}{A}{B}{C} A=*{1,64} B=*{1,63} C=*{1,62}";
    alone(many, Refused("series a cannot be proved"));
    alone(many, Refused(EARLY));
    for (code, version, told) in [
        ("a", Some(1), "version 1 of series a beside series a cannot be proved"),
        ("b", None, "series b beside series a cannot be proved"),
    ] {
        // No text is found before the search ends.
        let of = |end: &str| many.replace("{C} A", &format!("{{C}}{end}{{D}} D=0-9{{1}} A"));
        let (before, now) = (format!("{} code={code}", of("1")), of("2"));
        let (before, now) = (compiled(&before), compiled(&now));
        let proved = compared(&Party { version, ..party(&before, None) }, &party(&now, None));
        assert!(proved.expect_err("too large").to_string().starts_with(told));
    }
    // Each showing has a mark of its own.
    let shown = |times: usize| format!("{}-{{SEQ:1}} A=ab{{1}} counter=A", "{A}".repeat(times));
    alone(&shown(63), Proved);
    alone(&shown(64), Refused(EARLY));
}

/// Goal: the remedy in a refusal works. Method: a series is refused, then what the words say is
/// done.
#[test]
fn a_remedy_is_one_that_can_be_taken_and_helps() {
    const ANY: &str = "the first may hold any sign, so let all that follows it have a fixed \
        width, or exclude the sign that stands before it";
    const SERIAL: &str = "give the first a width that it keeps";
    const NAMED: &str = "; or name `project` in `unique_within`";
    for (line, remedy, helped) in [
        ("{A}-{B} A=* B=*", "a sign that the first excludes", "{A}-{B} A=^- B=*"),
        ("{A}-{B} A=* B=*", "give the first a fixed width", "{A}-{B} A=*{2} B=*"),
        ("{SEQ:2:X}{A} widens= A=0-9", SERIAL, "{SEQ:2:X}{A} A=0-9"),
        ("{SEQ:2:X}{A} widens= A=0-9", "a sign that no value has", "{SEQ:2:X}-{A} widens= A=0-9"),
        ("{PROJECT}-{A} A=*", ANY, "{PROJECT}-{A} A=^-"),
        ("{PROJECT}-{A} A=*", ANY, "{PROJECT}-{A} A=*{2}"),
        ("{PROJECT}-{A} A=*", NAMED, "{PROJECT}-{A} A=* within=project"),
        ("{PROJECT}-{A} A=* tables=project", ANY, "{PROJECT}-{A} A=^- tables=project"),
        ("{CORR_TYPE}-{A} A=* types=T,T-A", ANY, "{CORR_TYPE}-{A} A=*{2} types=T,T-A"),
        ("{CORR_TYPE}-{A} A=* types=T,T-A", "name `type` in", "{CORR_TYPE}-{A} A=* within=type"),
        ("{PHASE}-{A} A=* reset=phase", ANY, "{PHASE}-{A} A=^- reset=phase"),
    ] {
        let counted = |line: &str| {
            let (template, rest) = line.split_once(' ').expect("a variable");
            let project = if line.contains("{PROJECT}") { "project," } else { "" };
            format!("{template}-{{SEQ:1:Z}} {rest} counter={project}type,A")
        };
        alone(&counted(line), Refused(remedy));
        alone(&counted(helped), Proved);
    }
    // Neither a row, which may be renamed, nor a phase is the same for a scope.
    for line in ["{PROJECT}{A} tables=project counter=project,A", "{PHASE}{A} reset=phase"] {
        let told = prove(&compiled(&format!("{line} A=*").replace("}{A}", "}{A}-{SEQ:3}")));
        assert!(!told.expect_err("refused").to_string().contains("unique_within"), "{line}");
    }
}

#[test]
fn two_requests_get_a_number_that_their_counters_begin_with() {
    for (line, text) in [
        ("{SEQ:3} start=5 step=7", "\"005\""),
        ("{SEQ} start=101 step=100", "\"101\""),
        ("{SEQ:2} start=28 step=5 letters=", "\"BB\""),
        ("{SEQ:1:X}-{SEQ:2:Y} start=3 step=4", "\"3-03\""),
        ("{SEQ:2}{CHECK:mod97-10} start=7 step=3", "\"0777\""),
    ] {
        let both = format!("would both get {text}");
        alone(&format!("{line} counter=A A=*{{1,2}}"), Refused(Box::leak(both.into_boxed_str())));
    }
    // Earlier counters continue from 1; new ones do not begin there.
    let now = "{SEQ:3} start=5 step=7 counter=A A=*";
    after(&["X{SEQ:3} counter=A A=*"], now, Refused("would both get \"005\""));
}

/// Every pair of years that the calendar has, by what distinguishes two.
#[test]
fn all_years_that_may_follow_each_other_are_looked_at() {
    let kind = |year: i16| {
        let first = jiff::civil::date(year, 1, 1);
        (first.weekday().to_monday_zero_offset(), first.in_leap_year())
    };
    let pairs = |years: std::ops::Range<i16>| -> BTreeSet<_> {
        years.map(|year| (kind(year), kind(year + 1))).collect()
    };
    let first = periods::FIRST_DAY.year();
    let last = first + i16::try_from(periods::YEARS).expect("few years") - 1;
    assert_eq!(pairs(2000..2400), pairs(first..last));
}

//! Traps of two series beside each other.

use std::sync::Arc;

use super::super::{Ambiguity, IssuedVersion, ProofError, prove_issued, prove_saved};
use super::notation::{Proved, Refused, define, rows, two};

const BOTH: &str = "can show the same text";

#[test]
fn two_series_meet_only_where_one_request_of_a_scope_can_reach_both() {
    for (a, b, verdict) in [
        ("{SEQ:3}", "{SEQ:3}", Refused(BOTH)),
        ("{SEQ:3}", "U{SEQ:3}", Proved),
        ("{SEQ:3}", "{SEQ:3}U", Proved),
        ("{SEQ:3}", "{SEQ:2}", Proved),
        ("{SEQ:3}", "{SEQ}", Refused(BOTH)),
        ("{SEQ:3} within=type", "{SEQ:3} within=type", Proved),
        // Two series for one type: the project decides, and it is not in the scope.
        ("{SEQ:3} within=type", "{SEQ:3} within=type projects=P types=T", Refused(BOTH)),
        ("{SEQ:3} within=project,type", "{SEQ:3} within=project,type projects=P types=T", Proved),
        ("{SEQ:3} within=project", "{SEQ:3} within=project projects=P", Refused(BOTH)),
        ("{SEQ:3} within=project projects=Q", "{SEQ:3} within=project projects=P", Proved),
        // The ledger's key is text and scope: numbers of other dimensions may be equal.
        ("{SEQ:3}", "{SEQ:3} within=project", Proved),
        ("{SEQ:3} within=project", "{SEQ:3} within=project,type", Proved),
    ] {
        two("", [a, b], verdict);
    }
}

#[test]
fn scopes_meet_where_they_name_the_same_dimensions_in_whatever_order() {
    for (a, b, verdict) in [
        ("within=project,A A=*", "within=A,project A=*", Refused(BOTH)),
        ("within=A,B A=0{1} B=1{1}", "within=B,A A=0{1} B=1{1}", Refused(BOTH)),
        ("within=A,B A=0{1} B=1{1}", "within=B,A A=1{1} B=0{1}", Proved),
        ("within=project,type", "within=type,project types=T projects=P", Proved),
    ] {
        two("", [&with_serial(a), &with_serial(b)], verdict);
    }
}

#[test]
fn a_value_of_the_scope_is_one_in_both() {
    for (a, b, verdict) in [
        ("{A}{N} within=A A=A-Z{1,2}", "{A}X{N} within=A A=A-Z{1,2}", Proved),
        ("{A}{N} A=A-Z{1,2}", "{A}X{N} A=A-Z{1,2}", Refused(BOTH)),
        // `1`, `22`, `2` and `12`, `22`: one that begins elsewhere need not end together.
        (
            "1{A}{M}-{N} within=A A=0-9{2} M=0-9{1}",
            "{M}{A}-{N} within=A A=0-9{2} M=0-9{2}",
            Refused(BOTH),
        ),
        // Absent, and a value that says the same.
        ("{N} within=A A?=a-z", "{N} within=A A=0", Refused(BOTH)),
        ("{N} within=A A?=a-c", "{N} within=A A?=x-z", Refused(BOTH)),
        ("{N} within=A A?=a-c", "{N} within=A A?=c-e", Refused(BOTH)),
        ("{N} within=A A=a-c", "{N} within=A A?=x-z", Proved),
        ("{PROJECT}-{N} within=project", "{PROJECT}X-{N} within=project", Proved),
    ] {
        two(
            "",
            [a, b].map(|line| line.replace("{N}", "{SEQ:3}")).each_ref().map(String::as_str),
            verdict,
        );
    }
    let (a, b) = ("{PROJECT}-{SEQ:3} within=project", "{PROJECT}X-{SEQ:3} within=project");
    let tabled = |line: &str| format!("{line} tables=project");
    for (a, b) in [(tabled(a), b.to_owned()), (a.to_owned(), tabled(b)), (tabled(a), tabled(b))] {
        two("project 1 P", [&a, &b], Refused(BOTH));
    }
}

#[test]
fn each_part_shows_each_of_its_texts_and_no_other() {
    for (pattern, shown, never) in [
        ("yyyy", &["0001", "2025", "9999"][..], &["0000", "999"][..]),
        ("yy", &["00", "99"], &["9", "100"]),
        ("MM", &["01", "12"], &["00", "13"]),
        ("dd", &["01", "31"], &["00", "32"]),
        ("DDD", &["001", "366"], &["000", "367"]),
        ("Q", &["1", "4"], &["0", "5"]),
        ("YYYY-ww", &["2025-01", "2026-53"], &["2025-00", "2026-54"]),
        ("HH:mm:ss.SSS", &["00:00:00.000", "23:59:59.999"], &["24:00:00.000", "23:60:00.000"]),
    ] {
        let dated = format!("{{DATE:{pattern}}}-{{SEQ:1}}");
        for (texts, verdict) in [(shown, Refused(BOTH)), (never, Proved)] {
            for text in texts {
                two("", [&dated, &format!("{text}-{{SEQ:1}}")], verdict);
            }
        }
    }
    for (line, shown, never) in [
        ("{CORR_TYPE} types=C,AB,A-C", &["C", "AB", "A-C"][..], &["B", "A", "A-", "ABC"][..]),
        ("{PROJECT} projects=C,AB,A-C", &["C", "AB", "A-C"], &["B", "A", "A-", "ABC"]),
        ("{ORIGINATOR} ORIGINATOR=* originators=C,AB", &["C", "AB"], &["B", "CC"]),
        ("{PHASE}", &["X", "a-b"], &["-a␣", "␣a"]),
        ("{YEAR:ROC}", &["001", "999"], &["000", "0114"]),
        ("{SEQ:3:X} most=120", &["001", "120", "117"], &["121", "000", "0001"]),
        ("{SEQ:3:X} starts=20", &["020", "999"], &["019", "1000"]),
        ("{SEQ:3:X} starts=20 widens=", &["020", "1000"], &["019", "0999"]),
        ("{SEQ:2:X} most=40 letters=", &["AA", "BN"], &["BO", "A", "AAA"]),
        ("{SEQ:1:X} starts=27 letters= widens=", &["AA", "ABC"], &["A", "Z"]),
        ("{SEQ:2:X}{CHECK:mod97-10}", &["0100", "9999"], &["0000", "010"]),
        ("{SEQ:2:X}{CHECK:mod37-36}", &["010", "99Z"], &["01a", "01"]),
        ("{SNOWFLAKE}", &["0000000000000000000", "9223372036854775807"], &["9223372036854775808"]),
    ] {
        let (part, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = format!("{rest}{}", if rest.contains("types=") { "" } else { " types=V" });
        for (texts, verdict) in [(shown, Refused(BOTH)), (never, Proved)] {
            for text in texts {
                two(
                    "",
                    [&format!("{part}.{{SEQ:1:Z}} {rest}"), &format!("{text}.{{SEQ:1:Z}}")],
                    verdict,
                );
            }
        }
    }
}

#[test]
fn ids_are_one_only_where_they_are_read_alike() {
    two("", ["A{SNOWFLAKE}", "A{SNOWFLAKE}{M} M=0-9{1,2}"], Proved);
    two("", ["{M}{SNOWFLAKE} M=0-9{1,2}", "{SNOWFLAKE}{M} M=0-9{1,2}"], Refused(BOTH));
    two("", ["{SNOWFLAKE}-{SEQ:1}", "{SNOWFLAKE}-{SEQ:1}"], Proved);
}

/// A line whose template, if it has one, is followed by a serial.
fn with_serial(line: &str) -> String {
    match line.split_once(' ').filter(|(first, _)| !first.contains('=')) {
        Some((template, rest)) => format!("{template}{{SEQ:3}} {rest}"),
        None if line.starts_with('{') => format!("{line}{{SEQ:3}}"),
        None => format!("{{SEQ:3}} {line}"),
    }
}

#[test]
fn rules_keep_two_series_apart_as_far_as_they_are_read_alike() {
    for (a, b, verdict) in [
        // What the rule takes is not the default's; the scope tells the rest.
        ("types=T default= projects=", "types=T", Proved),
        ("types=T,U within=type default=", "types=T within=type", Proved),
        ("types=T,U default=", "types=T", Refused(BOTH)),
        // By projects that only one of them is for.
        ("within=project", "within=project projects=P types=T", Proved),
        ("within=project", "within=project projects=P types=U", Refused(BOTH)),
        // By originators, where each request brings one.
        (
            "within=ORIGINATOR ORIGINATOR=*",
            "types=T within=ORIGINATOR ORIGINATOR=* originators=P",
            Proved,
        ),
        (
            "within=ORIGINATOR ORIGINATOR?=*",
            "types=T within=ORIGINATOR ORIGINATOR=* originators=P",
            Refused(BOTH),
        ),
        (
            "within=ORIGINATOR ORIGINATOR=* originators=Q",
            "within=ORIGINATOR ORIGINATOR=* originators=P",
            Proved,
        ),
        // Shown, and for one of them alone.
        ("{PROJECT} projects=P", "{PROJECT} projects=Q", Proved),
        ("{PROJECT}", "{PROJECT} projects=Q types=T", Proved),
        ("{PROJECT}", "{PROJECT} projects=Q", Refused(BOTH)),
    ] {
        two("", [&with_serial(a), &with_serial(b)], verdict);
    }
}

#[test]
fn rows_are_told_apart_once_all_codes_have_one() {
    const KNOWN: &str = "type 1 T;type 2 U;project 1 P;project 2 Q";
    let import = Refused("import the codes");
    for (tables, a, b, verdict) in [
        (KNOWN, "within=type tables=type", "within=type tables=type", Proved),
        ("", "within=type tables=type", "within=type tables=type", import),
        // Whoever wrote `U` meant the row that is `T` now, and the project decides.
        (
            "type 1 U T",
            "within=type tables=type projects=P",
            "within=type tables=type",
            Refused(BOTH),
        ),
        // A rule wins over the default for its own row, and for no other.
        (KNOWN, "within=type tables=type", "within=type tables=type default=", Proved),
        ("type 2 U", "within=type tables=type", "within=type tables=type default=", import),
        (
            KNOWN,
            "within=type tables=type projects=P",
            "within=type tables=type default=",
            Refused(BOTH),
        ),
        // What a default takes beyond its list may be undetermined.
        (
            KNOWN,
            "within=project tables=type default=",
            "within=project tables=type default= types=U projects=P undetermined=T",
            Refused(BOTH),
        ),
        // Shown alike they are one; `UX`, and `U` before its X, is a renaming.
        (KNOWN, "{CORR_TYPE} tables=type", "{CORR_TYPE} tables=type", Proved),
        (KNOWN, "{CORR_TYPE} tables=type", "{CORR_TYPE}X tables=type", Refused(BOTH)),
        (
            KNOWN,
            "{CORR_TYPE} tables=type",
            "{CORR_TYPE} tables=type types=T,U projects=P",
            Refused(BOTH),
        ),
        (
            KNOWN,
            "{CORR_TYPE} tables=type projects=Q",
            "{CORR_TYPE} tables=type types=T,U projects=P",
            Refused(BOTH),
        ),
        // One scope by codes and by ids, and by ids of two tables.
        (
            KNOWN,
            "within=project tables=project",
            "within=project",
            Refused("knows by its code and the other"),
        ),
        (KNOWN, "A within=project tables=project", "B within=project", Proved),
        (
            KNOWN,
            "projects=P within=project tables=project",
            "projects=Q within=project tables=project",
            Proved,
        ),
        (
            KNOWN,
            "projects=P within=project tables=project",
            "projects=Q within=project",
            Refused(BOTH),
        ),
    ] {
        two(tables, [&with_serial(a), &with_serial(b)], verdict);
    }
}

#[test]
fn a_project_of_memberships_is_not_what_a_rule_without_them_reads() {
    let any = "{SEQ:3} within=project tables=project ORIGINATOR=*@orgs";
    let known = "project 1 P;type 1 T";
    let of_p = format!("{any} projects=P types=T");
    two(known, [&format!("{any} member="), &format!("{of_p} member=")], Proved);
    two(known, [&format!("{any} member="), &of_p], Refused(BOTH));
}

/// What a series is told beside a version of another that may have issued numbers.
fn beside_issued(
    now: &str,
    issued: &str,
    then: Option<&str>,
    is_active: bool,
) -> Result<(), String> {
    beside_issued_with("", now, issued, then, is_active)
}

fn beside_issued_with(
    tables: &str,
    now: &str,
    issued: &str,
    then: Option<&str>,
    is_active: bool,
) -> Result<(), String> {
    let data = rows(tables);
    let other = define(&format!("{issued} code=b"));
    let version = IssuedVersion {
        subject: "a".into(),
        version: 7,
        definition: Arc::new(other.clone()),
        then: then.map(|then| Arc::new(define(then))),
    };
    let mut active = vec![define(now)];
    active.extend(is_active.then_some(other));
    let saved = prove_saved(&active, &data, |series| series.code == "a", &[], &[version]);
    saved.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn what_another_series_may_have_issued_is_not_issued_again() {
    let refused = |found: Result<(), String>| {
        let told = found.expect_err("not proved");
        assert!(
            told.contains("b version 7 (") && told.contains("series b is one of its version 7"),
            "{told}"
        );
    };
    // Of a series that is gone, whatever it served.
    refused(beside_issued("X-{SEQ:3}", "X-{SEQ:3} types=U", None, false));
    assert_eq!(beside_issued("Y-{SEQ:3}", "X-{SEQ:3} types=U", None, false), Ok(()));
    assert_eq!(
        beside_issued("X-{SEQ:3} within=type", "X-{SEQ:3} types=U within=type", None, false),
        Ok(())
    );
    // A rule beside a default in use: what this had before the rule was there is out.
    let (rule, default) = ("{SEQ:3} within=type", "{SEQ:3} types=T,U within=type default=");
    refused(beside_issued(rule, default, None, true));
    assert_eq!(beside_issued(rule, default, Some(rule), true), Ok(()));
    // By another rule that the series had then.
    refused(beside_issued(rule, default, Some("{SEQ:3} within=type projects=P"), true));
    // A code that its row got later: before that the default numbered the row.
    let (rule, default) = (format!("{rule} tables=type"), format!("{default} tables=type"));
    for (tables, is_proved) in [("T", true), ("T X", true), ("X T", false)] {
        let tables = format!("type 1 {tables};type 2 U");
        let found = beside_issued_with(&tables, &rule, &default, Some(&rule), true);
        assert_eq!(found.is_ok(), is_proved, "{tables}: {found:?}");
    }
    // Counters above those that are out.
    assert_eq!(beside_issued("{SEQ:3} start=100", "{SEQ:3} types=U max=99", None, false), Ok(()));
    refused(beside_issued("{SEQ:3} start=99", "{SEQ:3} types=U max=99", None, false));
}

#[test]
fn where_earlier_versions_are_not_known_a_start_tells_nothing() {
    let (late, out) = (define("{SEQ:3} start=100"), define("{SEQ:3} code=b types=U max=99"));
    let (subject, definition) = ("a".to_owned(), Arc::new(out));
    let issued = [IssuedVersion { subject, version: 2, definition, then: None }];
    let refused = prove_issued(std::slice::from_ref(&late), &Arc::default(), &issued);
    assert!(matches!(refused, Err(ProofError::Ambiguity(_))), "{refused:?}");
    let mut accepted = late;
    accepted.ambiguity_accepted = Some("The first hundred were cancelled.".into());
    assert_eq!(prove_issued(&[accepted], &Arc::default(), &issued), Ok(()));
}

#[test]
fn a_series_that_accepts_an_ambiguity_is_saved_with_it() {
    let mut yearly = define("{SEQ:3} reset=year");
    let reason = "The year is on the letterhead; agreed with audit.".to_owned();
    yearly.ambiguity_accepted = Some(reason.clone());
    let accepted = prove_saved(&[yearly], &Arc::default(), |_| true, &[], &[]).expect("accepted");
    assert_eq!((&accepted[0].code, &accepted[0].reason), (&"a".to_owned(), &reason));
    assert!(matches!(accepted[0].ambiguity, Ambiguity::Collision { .. }), "{accepted:?}");
}

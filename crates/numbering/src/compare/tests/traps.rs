//! Traps of two series against each other.

use super::notation::{Proved, Refused, two};

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
        ("{SEQ:3} within=project", "{SEQ:3} within=A A=*", Proved),
        ("{PREFIX}-{SEQ:3} prefix=A", "{PREFIX}-{SEQ:3} prefix=B", Proved),
        ("{PREFIX}-{SEQ:3} prefix=A", "{PREFIX}-{SEQ:3} prefix=A", Refused(BOTH)),
        // The type of the one is `UA`, that of the other `U`.
        ("{CORR_TYPE}{SEQ:3} types=T,UA", "{CORR_TYPE}A{SEQ:3}", Refused(BOTH)),
        ("{CORR_TYPE}{SEQ:3} types=T,UA within=type", "{CORR_TYPE}A{SEQ:3} within=type", Proved),
    ] {
        two("", [a, b], verdict);
    }
    // Of what both list, one type is that of both only in a scope of types.
    for (scope, verdict) in [("", Refused(BOTH)), ("within=type", Proved)] {
        let a = format!("{{CORR_TYPE}}X{{SEQ:3}} types=T,AT projects=P {scope}");
        two("", [&a, &format!("A{{CORR_TYPE}}{{SEQ:3}} types=T,TX {scope}")], verdict);
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
        ("{SEQ:2:X} starts=3 letters=", &["AC", "ZZ"], &["AA", "AB"]),
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

/// Pairs of series, one a line, with what is in both definitions: `+` those that are proved, and
/// `-` those that are refused in such words.
#[track_caller]
fn pairs(tables: &str, rest: &str, words: &'static str, cases: &str) {
    for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
        let (verdict, lines) = case.split_at(1);
        let (a, b) = lines.split_once('|').expect("two series");
        let [a, b] = [a, b].map(|line| with_serial(&format!("{} {rest}", line.trim())));
        two(tables, [&a, &b], if verdict == "+" { Proved } else { Refused(words) });
    }
}

#[test]
fn rules_keep_two_series_apart_as_far_as_they_are_read_alike() {
    // What the rule takes is not the default's; the scope decides the rest.
    let cases = "
        + types=T default= | types=T
        + types=T,U within=type default= | types=T within=type
        - types=T,U default= | types=T";
    pairs("", "", "a (type \"U\"", cases);
    // By projects that only one of them is for.
    let cases = "
        + | projects=P types=T
        - | projects=P types=U";
    pairs("", "within=project", BOTH, cases);
    // By originators, if each request brings one.
    let cases = "
        + ORIGINATOR=* | types=T ORIGINATOR=* originators=P
        - ORIGINATOR?=* | types=T ORIGINATOR=* originators=P
        + ORIGINATOR=* originators=Q | ORIGINATOR=* originators=P";
    pairs("", "within=ORIGINATOR", BOTH, cases);
    // The older name is the same organization; with both names it is unknown whose code it is.
    let cases = "
        + default= ORIGINATOR=* | ORG_CODE=*
        + default= ORG_CODE=* | ORIGINATOR=*
        - default= ORIGINATOR=* ORG_CODE=* | ORIGINATOR=*";
    pairs("", "types=T originators=P", BOTH, cases);
    // By sub types.
    let cases = "
        - ORG_CODE?=* | ORIGINATOR=* originators=P
        + default= SUB_TYPE=* sub=1 | SUB_TYPE=* sub=1
        - default= SUB_TYPE=* sub=1,2 | SUB_TYPE=* sub=1
        - default= SUB_TYPE?=* | SUB_TYPE=* sub=1
        + default= SUB_TYPE?=* sub=1 | SUB_TYPE=* sub=1
        + within=SUB_TYPE SUB_TYPE=* | within=SUB_TYPE SUB_TYPE=* sub=1";
    pairs("", "types=T", BOTH, cases);
    // Shown, and for one of them alone.
    let cases = "
        + {SUB_TYPE} SUB_TYPE=* sub=1 | {SUB_TYPE} SUB_TYPE=* sub=2
        - {SUB_TYPE} SUB_TYPE=* sub=1 | {SUB_TYPE} SUB_TYPE=* sub=1
        + {PROJECT} projects=P | {PROJECT} projects=Q
        + {PROJECT} | {PROJECT} projects=Q types=T
        - {PROJECT} | {PROJECT} projects=Q";
    pairs("", "", BOTH, cases);
}

#[test]
fn rows_are_told_apart_once_all_codes_have_one() {
    const KNOWN: &str = "type 1 T;type 2 U;project 1 P;project 2 Q";
    const IMPORT: &str = "import the codes";
    const TYPED: &str = "within=type tables=type";
    // A rule wins over the default for its own row, and for no other.
    let cases = "
        + |
        + | default=
        - projects=P | default=";
    pairs(KNOWN, TYPED, BOTH, cases);
    pairs("", TYPED, IMPORT, "- |");
    pairs("type 2 U", TYPED, IMPORT, "- | default=");
    // A request with `U` meant the row that is `T` now, and the project decides.
    pairs("type 1 U T", TYPED, BOTH, "- projects=P |");
    // What a default takes beyond its list may be undetermined.
    let case = "- | types=U projects=P undetermined=T";
    pairs(KNOWN, "within=project tables=type default=", BOTH, case);
    // Shown alike they are one; `UX`, and `U` before its X, is a renaming.
    let cases = "
        + {CORR_TYPE} | {CORR_TYPE}
        - {CORR_TYPE} | {CORR_TYPE}X
        - {CORR_TYPE} | {CORR_TYPE} types=T,U projects=P
        - {CORR_TYPE} projects=Q | {CORR_TYPE} types=T,U projects=P";
    pairs(KNOWN, "tables=type", BOTH, cases);
    // One scope by codes and by ids, and by ids of two tables.
    pairs(KNOWN, "within=project", "knows by its code and the other", "- tables=project |");
    let cases = "
        + A tables=project | B
        + projects=P tables=project | projects=Q tables=project
        - projects=P tables=project | projects=Q";
    pairs(KNOWN, "within=project", BOTH, cases);
    // The id of one row is the code of another.
    let cases = "
        - default= projects=Q tables=project | projects=P
        + default= projects=Q tables=project | projects=Q tables=project";
    pairs("project P Q;project Q P", "types=T", BOTH, cases);
    let cases = "
        - types=U tables=type | types=T
        + types=U tables=type | types=U tables=type";
    pairs("type T U;type U T", "", BOTH, cases);
}

#[test]
fn a_project_of_memberships_is_not_what_a_rule_without_them_reads() {
    let any = "{SEQ:3} within=project tables=project ORIGINATOR=*@orgs";
    let known = "project 1 P;type 1 T";
    let of_p = format!("{any} projects=P types=T");
    two(known, [&format!("{any} member="), &format!("{of_p} member=")], Proved);
    two(known, [&format!("{any} member="), &of_p], Refused(BOTH));
    // By members of another table, and by a default that the choice of a series does not see.
    let member = |line: &str| format!("{line} member=");
    two(known, [&member(&any.replace("orgs", "firms")), &member(&of_p)], Refused(BOTH));
    two(known, [&member(&any.replace("=*@orgs", "?=*@orgs|X")), &member(&of_p)], Refused(BOTH));
}

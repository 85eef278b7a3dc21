//! Traps of a series against its earlier versions.

use super::notation::{Proved, Refused, after};

const BEFORE: &str = "version 1, which may be out already";

#[test]
fn counters_that_go_on_behind_a_text_that_tells_them_are_fine() {
    let rest = "SITE=0-9{2} counter=type,SITE reset=year";
    let earlier = format!("{{YEAR}}-{{SITE}}-{{SEQ:2}} {rest}");
    for (next, verdict) in [
        ("{YEAR}-{SITE}-{SEQ:4} start=7", Proved),
        ("{YEAR}-{SITE}-{SEQ:2} widens=", Proved),
        ("{YEAR}-{SITE}-{SEQ:2}-A", Proved),
        ("{DATE:yyyy}-{SITE}-{SEQ}", Proved),
        ("{DATE:yyyyMM}-{SITE}-{SEQ:2}", Proved),
        ("N{YEAR}-{SEQ:2}-{SITE}", Proved),
        ("{YEAR}-{SEQ:2}-{SITE}", Refused(BEFORE)),
        // A document may be dated 2568.
        ("{YEAR:B.E.}-{SITE}-{SEQ:2}", Refused(BEFORE)),
        ("{YEAR}-{SITE}-{SEQ:2} types=OTHER", Refused("type \"OTHER\"")),
        ("{YEAR}-{SITE}-{SEQ:2} fiscal=1", Proved),
        ("{YEAR}-{SITE}-{SEQ:2} counter=SITE", Refused(BEFORE)),
        ("{YEAR}-{SITE}-{SEQ:2} reset=none", Refused(BEFORE)),
        ("{YEAR}-{SITE}-{SEQ:2} tables=type", Refused(BEFORE)),
    ] {
        after(
            &[&earlier],
            &format!("{next} {rest}")
                .replace(&format!("counter=SITE {rest}"), "counter=SITE SITE=0-9{2} reset=year")
                .replace(&format!("reset=none {rest}"), "SITE=0-9{2} counter=type,SITE"),
            verdict,
        );
    }
    let typed = "{YEAR}-{SEQ:2} counter=type reset=year within=type";
    after(&[typed], &format!("{typed} types=OTHER"), Proved);
}

#[test]
fn a_counter_is_one_only_where_all_of_its_key_is() {
    let rest = "A=0-9{1,2} B=0-9{1,2}";
    for (before, next, verdict) in [
        ("{SEQ:3}", "{SEQ:3}", Proved),
        ("{SEQ:3}", "{SEQ:3:LOT}", Refused(BEFORE)),
        ("{SEQ:3}", "{SEQ:3} counter=type", Refused(BEFORE)),
        ("{A}-{SEQ:3} counter=A", "{A}-{SEQ:3} counter=A", Proved),
        ("{A}-{SEQ:3} counter=A", "{B}-{SEQ:3} counter=B", Refused(BEFORE)),
        ("{A}-{SEQ:3} counter=A", "{A}-{SEQ:3} counter=A A=*@parties", Refused(BEFORE)),
        ("{FY}{SEQ:3} reset=fiscal-year", "{FY}{SEQ:3} reset=fiscal-year", Proved),
        (
            "{FY}{SEQ:3} reset=fiscal-year",
            "{FY}{SEQ:3} reset=fiscal-year fiscal=1",
            Refused(BEFORE),
        ),
        (
            "{DATE:yyyyMM}{SEQ:3} reset=fiscal-year",
            "{DATE:yyyyMM}{SEQ:3} reset=fiscal-year fiscal=1",
            Refused(BEFORE),
        ),
        (
            "{SEQ:1:X}-{SEQ:1:Y} counter=type",
            "{SEQ:1:X}-{SEQ:1:Y} counter=type types=U",
            Refused(BEFORE),
        ),
        ("{SEQ:1:X}-{SEQ:1:Y} counter2=type", "{SEQ:1:X}-{SEQ:1:Y} counter2=type types=U", Proved),
        // An id represents itself.
        ("A{SNOWFLAKE}", "A{SNOWFLAKE}{A}", Proved),
        ("{A}{SNOWFLAKE}", "{SNOWFLAKE}{A}", Refused(BEFORE)),
    ] {
        let of = |line: &str| {
            if line.contains('@') { format!("{line} B=0-9") } else { format!("{line} {rest}") }
        };
        after(&[&of(before)], &of(next), verdict);
    }
}

#[test]
fn what_is_read_elsewhere_is_another_value() {
    let rest = "A=0-9{1,2} M=0-9{1,2} N=0-9{1,2}";
    for (before, next) in [
        ("{SEQ:1}-{PHASE}{N}-1 reset=phase", "{SEQ:1}-{PHASE}-{N} reset=phase"),
        ("{SEQ:1}-{A}{N} counter=A", "{SEQ:1}-{A}{N}0 counter=A"),
        ("{SEQ:1}-{YEAR}-{N}{DATE:Q}{M} reset=quarter", "{SEQ:1}-{YEAR}-{DATE:Q}{N} reset=quarter"),
        ("{SEQ:1}-{PROJECT}{N} counter=project", "{SEQ:1}-{N}{PROJECT} counter=project"),
        ("{N}-{SEQ:1}", "{SEQ:1}-{N}"),
        // `12-` is 1 of the one and 12 of the other: both begin together.
        ("{SEQ:1}2-", "{SEQ}-"),
        ("{SEQ}-", "{SEQ:1}2-"),
        // A part that ends early is marked in both.
        ("{N}{M}-{SEQ:1} counter=N", "{M}{N}-{SEQ:1} counter=N"),
    ] {
        after(&[&format!("{before} {rest}")], &format!("{next} {rest}"), Refused(""));
    }
    for (before, next) in [(1, 2), (2, 1)] {
        let of = |a: u8, b: u8| format!("{{A}}{{B}}-{{SEQ:1}} A=0-9{{{a}}} B=0-9{{{b}}} counter=A");
        after(&[&of(before, next)], &of(next, before), Refused(BEFORE));
    }
    // `A2` and 1, `A` and 21.
    after(
        &["A2{N}-{SEQ:1} N=0-9{1,2} counter=N"],
        "A{N}-{SEQ:1} N=0-9{1,2} counter=N",
        Refused(BEFORE),
    );
    let (earlier, next) = ("A{A}-{SEQ:3} A=A-Z{1} counter=type", "AB-{SEQ:3} types=U counter=type");
    after(&[earlier], next, Refused(BEFORE));
    after(&[next], earlier, Refused(BEFORE));
    after(&["AC-{SEQ:3} types=U counter=type"], "AB-{SEQ:3} counter=type", Proved);
}

#[test]
fn letters_of_another_width_are_refused_and_digits_are_not() {
    // With two letters AA is 1; without a width it is 27.
    for (before, next) in [("{SEQ:2}", "{SEQ}"), ("{SEQ:3}", "{SEQ:2}")] {
        let of = |template: &str, rest: &str| format!("{template} widens= {rest}");
        after(&[&of(before, "letters=")], &of(next, "letters="), Refused(BEFORE));
        after(&[&of(before, "")], &of(next, ""), Proved);
    }
}

#[test]
fn a_value_of_the_scope_is_one_unless_a_table_may_rename_it() {
    let of = |template: &str, rest: &str| format!("{template} N=0-9{{1,2}} {rest}");
    after(&[&of("{N}{SEQ:1}", "")], &of("{N}{SEQ:2}", ""), Refused(BEFORE));
    after(&[&of("{N}{SEQ:1}", "within=N")], &of("{N}{SEQ:2}", "within=N"), Proved);
    // `P3-1`: the project `P3`, and after it was renamed to `P` its number 3.
    let project = |template: &str, table: &str| of(template, &format!("within=project {table}"));
    for (tables, verdict) in [
        (["", ""], Proved),
        (["tables=project", "tables=project"], Refused(BEFORE)),
        (["tables=project", ""], Refused(BEFORE)),
        (["", "tables=project"], Refused(BEFORE)),
    ] {
        let (before, next) =
            (project("{PROJECT}-{SEQ:1}", tables[0]), project("{PROJECT}{SEQ:1}-1", tables[1]));
        after(&[&before], &next, verdict);
    }
}

#[test]
fn counters_of_all_versions_go_on_beside_each() {
    after(&["{SEQ:2} max=20"], "{SEQ:1}5", Refused("version 1"));
    after(&["{SEQ:2} start=20 max=29"], "{SEQ:1}5 start=3", Proved);
    // A counter of the first version continues under the second.
    after(
        &["X{SEQ:2} start=1", "{SEQ:2} start=20 max=29"],
        "{SEQ:1}5 start=3",
        Refused("version 2"),
    );
}

#[test]
fn each_earlier_version_is_looked_at() {
    let (next, other, swapped) = ("{SEQ:1}-{N} N=0-9", "B{SEQ:1}-{N} N=0-9", "{N}-{SEQ:1} N=0-9");
    after(&[], next, Proved);
    after(&[other, next], next, Proved);
    after(&[swapped, other], next, Refused("version 1"));
    after(&[other, swapped], next, Refused("version 2"));
}

//! What each check of the proof must not let pass between a version of a series and the next: pairs
//! that collide by that alone.

use std::sync::Arc;

use super::super::super::testing::{reference, serial};
use super::super::super::{
    Ambiguity, EarlierVersion, ReferenceData, References, Reset, Series, SeriesDefinition,
    VariableDefinition, prove_saved,
};
use super::super::earlier::beside_earlier;
use super::guards::{digits, shifted};
use super::traps::{strings, variable};

/// The next version beside the one before.
fn beside(earlier: &Series, next: &Series) -> Result<(), Ambiguity> {
    let before = EarlierVersion { version: 1, definition: earlier.definition().clone() };
    beside_earlier(earlier, 1, next, &[before])
}

#[track_caller]
fn assert_refused(earlier: &Series, next: &Series) {
    let templates = [earlier, next].map(|series| &series.definition().template);
    assert!(beside(earlier, next).is_err(), "{templates:?}");
}

fn plain(template: &str) -> Series {
    shifted(template, |_| ())
}

/// A series that counts by its type and does not show it.
fn typed(template: &str, code: &str) -> Series {
    shifted(template, |definition| {
        definition.serves.types = strings(&[code]);
        for serial in &mut definition.serials {
            serial.counter = strings(&["type"]);
        }
    })
}

#[test]
fn a_prefix_that_goes_on_with_the_one_before_is_no_other_prefix() {
    let letter = |definition: &mut SeriesDefinition| {
        let letter = VariableDefinition { alphabet: Some("A-Z".into()), ..variable("", 1) };
        definition.variables.insert("A".into(), letter);
        definition.serials[0].counter = strings(&["type"]);
    };
    let (earlier, next) = (shifted("A{A}-{SEQ:3}", letter), typed("AB-{SEQ:3}", "U"));
    assert_refused(&earlier, &next);
    assert_refused(&next, &earlier);
    assert_eq!(beside(&typed("AC-{SEQ:3}", "U"), &typed("AB-{SEQ:3}", "V")), Ok(()));
}

#[test]
fn types_of_a_table_may_become_one() {
    let of = |template: &str, code: &str, table: bool| {
        shifted(template, |definition| {
            definition.serves.types = strings(&[code]);
            definition.unique_within = strings(&["type"]);
            let type_code = table.then(|| "types".to_owned());
            definition.references = References { type_code, ..References::default() };
        })
    };
    assert_eq!(beside(&of("{M}{SEQ:1}", "T", false), &of("{SEQ:1}{M}", "U", false)), Ok(()));
    assert_refused(&of("{M}{SEQ:1}", "T", true), &of("{SEQ:1}{M}", "U", true));
    assert_refused(&of("{M}{SEQ:1}", "T", false), &of("{SEQ:1}{M}", "T", true));
}

#[test]
fn what_both_versions_show_is_one_only_where_the_scope_has_it() {
    let of = |template: &str, scope: &[&str], table: bool| {
        shifted(template, |definition| {
            definition.unique_within = strings(scope);
            let project = table.then(|| "projects".to_owned());
            definition.references = References { project, ..References::default() };
        })
    };
    assert_refused(&of("{N}{SEQ:1}", &[], false), &of("{N}{SEQ:2}", &[], false));
    assert_eq!(beside(&of("{N}{SEQ:1}", &["N"], false), &of("{N}{SEQ:2}", &["N"], false)), Ok(()));
    // `P3-1`: the project `P3`, and after it was renamed to `P` its number 3.
    let both = |tables: [bool; 2]| {
        let earlier = of("{PROJECT}-{SEQ:1}", &["project"], tables[0]);
        beside(&earlier, &of("{PROJECT}{SEQ:1}-1", &["project"], tables[1]))
    };
    assert_eq!(both([false, false]), Ok(()));
    for tables in [[true, true], [true, false], [false, true]] {
        assert!(both(tables).is_err(), "{tables:?}");
    }
}

#[test]
fn serials_of_which_none_is_told_collide_together() {
    let two = |code: &str| {
        shifted("{SEQ:1:X}-{SEQ:1:Y}", |definition| {
            definition.serves.types = strings(&[code]);
            definition.serials = vec![serial("X"), serial("Y")];
            for serial in &mut definition.serials {
                serial.counter = strings(&["type"]);
            }
        })
    };
    assert_refused(&two("T"), &two("U"));
}

#[test]
fn a_phase_and_what_else_is_counted_tells_the_counter_only_where_it_is_read_alike() {
    let of = |template: &str, counter: &[&str], reset: Reset| {
        shifted(template, |definition| {
            definition.variables.insert("A".into(), digits(2));
            definition.serials[0].counter = strings(counter);
            definition.serials[0].reset = reset;
        })
    };
    for (counter, reset, before, after) in [
        (&[][..], Reset::Phase, "{SEQ:1}-{PHASE}{N}-1", "{SEQ:1}-{PHASE}-{N}"),
        (&["A"], Reset::None, "{SEQ:1}-{A}{N}", "{SEQ:1}-{A}{N}0"),
        (
            &[],
            Reset::Quarter,
            "{SEQ:1}-{DATE:yyyy}-{N}{DATE:Q}{M}",
            "{SEQ:1}-{DATE:yyyy}-{DATE:Q}{N}",
        ),
        (&["project"], Reset::None, "{SEQ:1}-{PROJECT}{N}", "{SEQ:1}-{N}{PROJECT}"),
    ] {
        assert_refused(&of(before, counter, reset), &of(after, counter, reset));
    }
}

#[test]
fn ids_that_are_read_elsewhere_are_two() {
    let of = |template: &str| shifted(template, |definition| definition.serials.clear());
    assert_refused(&of("{M}{SNOWFLAKE}"), &of("{SNOWFLAKE}{M}"));
    assert_eq!(beside(&of("A{SNOWFLAKE}"), &of("A{SNOWFLAKE}{M}")), Ok(()));
}

#[test]
fn counters_of_versions_before_go_on_in_both() {
    let of = |template: &str, start: u64, step: u64| {
        shifted(template, |definition| {
            (definition.serials[0].start, definition.serials[0].step) = (start, step);
        })
    };
    let [fives, tens, next] = [of("{SEQ}", 10, 5), of("{SEQ}", 10, 10), plain("{SEQ}5")];
    let version = |version: u32, series: &Series| EarlierVersion {
        version,
        definition: series.definition().clone(),
    };
    let of_tens = version(2, &tens);
    assert_eq!(
        beside_earlier(&tens, 2, &next, std::slice::from_ref(&of_tens)),
        Ok(()),
        "they end in 0"
    );
    let all = [version(1, &fives), of_tens];
    assert!(beside_earlier(&tens, 2, &next, &all).is_err(), "15 was the third of a counter");
}

/// Saves a series behind its versions.
fn saved(next: &Series, versions: &[&Series]) -> bool {
    let earlier: Vec<EarlierVersion> = std::iter::zip(1.., versions)
        .map(|(version, series)| EarlierVersion {
            version,
            definition: series.definition().clone(),
        })
        .collect();
    let rows = [reference("types", "1", "T", true), reference("types", "2", "U", true)];
    let data = Arc::new(ReferenceData::new(rows, []));
    prove_saved(&[next.definition().clone()], &data, |_| true, &earlier, &[]).is_ok()
}

#[test]
fn each_earlier_version_is_looked_at_whatever_it_differs_in() {
    let (next, other) = (plain("{SEQ:1}-{N}"), plain("B{SEQ:1}-{N}"));
    let swapped = plain("{N}-{SEQ:1}");
    assert!(saved(&next, &[]) && saved(&next, &[&other, &next]));
    for versions in [[&swapped, &other], [&other, &swapped]] {
        assert!(!saved(&next, &versions), "parts that change places");
    }
    // What else makes other numbers of the same parts.
    let dated = |edit: &dyn Fn(&mut SeriesDefinition)| {
        shifted("{PREFIX}{FY}{N}{SEQ:2}", |definition| {
            definition.prefix = Some("A".into());
            definition.fiscal_year_start = Some(4);
            definition.serials[0].counter = strings(&["type", "N"]);
            definition.serials[0].reset = Reset::FiscalYear;
            definition.variables.insert("N".into(), digits(1));
            edit(definition);
        })
    };
    let next = dated(&|_| ());
    assert!(saved(&next, &[&dated(&|definition| definition.name = "Another name".into())]));
    let edits: [&dyn Fn(&mut SeriesDefinition); 5] = [
        &|definition| definition.serves.types = strings(&["U"]),
        &|definition| definition.fiscal_year_start = Some(1),
        &|definition| definition.serials[0].counter = strings(&["type"]),
        &|definition| definition.serials[0].reset = Reset::Month,
        &|definition| {
            definition.references =
                References { type_code: Some("types".into()), ..References::default() };
        },
    ];
    for (index, edit) in edits.into_iter().enumerate() {
        assert!(!saved(&next, &[&dated(edit)]), "{index}");
    }
    let wide = |width: usize| {
        shifted("{N}{SEQ}", |definition| {
            let fixed = VariableDefinition { width: Some(width), width_max: None, ..digits(2) };
            definition.variables.insert("N".into(), fixed);
            definition.serials[0].counter = strings(&["N"]);
        })
    };
    assert!(!saved(&wide(1), &[&wide(2)]), "1 and 23, 12 and 3");
    let prefixed = |prefix: &str| {
        shifted("{PREFIX}{N}-{SEQ:1}", |definition| {
            definition.prefix = Some(prefix.into());
            definition.serials[0].counter = strings(&["N"]);
        })
    };
    assert!(!saved(&prefixed("A"), &[&prefixed("A2")]), "`A2` and 1, `A` and 21");
}

#[test]
fn a_value_that_goes_on_where_the_other_one_ends_is_read_elsewhere() {
    // `12-` is 1 of the one and 12 of the other: both begin together.
    let (short, long) = (plain("{SEQ:1}2-"), plain("{SEQ}-"));
    assert_refused(&short, &long);
    assert_refused(&long, &short);
}

#[test]
fn counters_of_all_versions_go_on_beside_each() {
    let of = |template: &str, start: u64, step: u64| {
        shifted(template, |definition| {
            (definition.serials[0].start, definition.serials[0].step) = (start, step);
        })
    };
    let (before, tens) = (of("X{SEQ}", 10, 5), of("{SEQ}", 10, 10));
    assert!(saved(&plain("{SEQ}5"), &[&tens]));
    assert!(!saved(&plain("{SEQ}5"), &[&before, &tens]), "15 was given by the second one");
    // The same of the series by itself: by hundreds its end is told.
    let hundreds = |template: &str, step: u64| {
        shifted(template, |definition| {
            let one_to_nine = VariableDefinition { alphabet: Some("1-9".into()), ..digits(2) };
            definition.variables.insert("N".into(), one_to_nine);
            (definition.serials[0].start, definition.serials[0].step) = (100, step);
            definition.serials[0].counter = strings(&["N"]);
        })
    };
    assert!(saved(&hundreds("{SEQ}{N}", 100), &[&hundreds("X{SEQ}{N}", 100)]));
    assert!(!saved(&hundreds("{SEQ}{N}", 100), &[&hundreds("X{SEQ}{N}", 11)]));
}

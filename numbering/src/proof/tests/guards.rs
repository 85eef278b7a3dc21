//! What each check of the proof must not let pass: small series that collide by that alone. Those
//! that one series is refused for; `guards_between.rs` has those of two.

use super::super::super::testing::serial;
use super::super::super::{
    Ambiguity, Overflow, Reset, Series, SeriesDefinition, Style, VariableDefinition, prove,
};
use super::traps::{compile, strings, variable};

/// A variable of some digits.
pub(super) fn digits(width_max: usize) -> VariableDefinition {
    VariableDefinition { alphabet: Some("0-9".into()), ..variable("", width_max) }
}

/// A series of a template with variables `M` and `N` of one digit or two, which no counter counts
/// by.
pub(super) fn shifted(template: &str, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    compile(|definition| {
        definition.template = template.into();
        for name in ["M", "N"] {
            definition.variables.insert(name.into(), digits(2));
        }
        edit(definition);
    })
}

/// That a series is refused with two requests that collide.
#[track_caller]
pub(super) fn assert_collides(series: &Series, others: &[&Series]) {
    let refused = prove(series, others, &[]);
    let template = &series.definition().template;
    assert!(matches!(refused, Err(Ambiguity::Collision { .. })), "{template}: {refused:?}");
}

#[test]
fn a_serial_whose_counter_is_not_shown_tells_nothing_beside_one_that_is_read_elsewhere() {
    // `001-1` and 11, `001-11` and 1: X is 1 of two counters, Y is read in two ways.
    let two = shifted("{SEQ:3:X}-{N}{SEQ:1:Y}", |definition| {
        definition.variables.insert("A".into(), variable("", 1));
        definition.serials = vec![serial("X"), serial("Y")];
        definition.serials[0].counter = strings(&["A"]);
        definition.serials[1].counter = strings(&["N"]);
        definition.serials[1].overflow = Overflow::Widen;
    });
    assert_collides(&two, &[]);
}

#[test]
fn an_id_that_is_read_elsewhere_tells_nothing() {
    let ids = shifted("{M}{SNOWFLAKE}{N}", |definition| definition.serials.clear());
    assert_collides(&ids, &[]);
}

#[test]
fn whatever_a_counter_counts_by_tells_it_only_where_it_is_read_alike() {
    // The value of the serial is at one place; what stands before is not.
    let of = |template: &str, reset: Reset, counter: &[&str]| {
        shifted(template, |definition| {
            definition.variables.insert("A".into(), digits(2));
            definition.serials[0].reset = reset;
            definition.serials[0].counter = strings(counter);
        })
    };
    for (template, reset, counter) in [
        ("{PHASE}{N}-{SEQ:3}", Reset::Phase, &[][..]),
        ("{SEQ:3}-{N}{PHASE}", Reset::Phase, &[]),
        ("{DATE:yyyy}-{M}{DATE:Q}{N}-{SEQ:3}", Reset::Quarter, &[]),
        ("{DATE:yyyyQ}-{M}{DATE:MM}{N}-{SEQ:3}", Reset::Month, &[]),
        ("{A}{N}-{SEQ:3}", Reset::None, &["A"]),
        ("{SEQ:3}-{N}{PROJECT}", Reset::None, &["project"]),
    ] {
        assert_collides(&of(template, reset, counter), &[]);
    }
    // So does nothing else.
    for (template, reset) in [("{PHASE}{N}-{SEQ:3}", Reset::None), ("{M}{N}-{SEQ:3}", Reset::None)]
    {
        assert_eq!(prove(&of(template, reset, &[]), &[], &[]), Ok(()), "{template}");
    }
}

#[test]
fn letters_are_as_many_as_their_values_need() {
    let of = |template: &str, edit: &dyn Fn(&mut SeriesDefinition)| {
        shifted(template, |definition| {
            let letters = VariableDefinition { alphabet: Some("A-Z".into()), ..variable("", 2) };
            definition.variables.insert("A".into(), letters);
            definition.serials[0].counter = strings(&["A"]);
            definition.serials[0].style = Style::Letters;
            edit(definition);
        })
    };
    assert_collides(&of("{A}{SEQ}", &|_| ()), &[]);
    assert_collides(&of("{A}{SEQ:1}", &|series| series.serials[0].overflow = Overflow::Widen), &[]);
    assert_eq!(prove(&of("{A}{SEQ:2}", &|_| ()), &[], &[]), Ok(()));
    assert_eq!(
        prove(&of("{A}{SEQ}", &|series| series.serials[0].max = Some(26)), &[], &[]),
        Ok(())
    );
}

#[test]
fn what_a_counter_counts_by_is_hidden_as_soon_as_it_may_differ() {
    let of = |dimension: &str, edit: &dyn Fn(&mut SeriesDefinition)| {
        compile(|definition| {
            definition.serials[0].counter = strings(&[dimension]);
            edit(definition);
        })
    };
    let a = |declared: &VariableDefinition| {
        of("A", &|definition| {
            definition.variables.insert("A".into(), declared.clone());
        })
    };
    let one = VariableDefinition {
        required: true,
        alphabet: Some("a".into()),
        width: Some(1),
        ..VariableDefinition::default()
    };
    assert_eq!(prove(&a(&one), &[], &[]), Ok(()), "one value alone");
    // Absent, of two widths, of two characters.
    let absent = a(&VariableDefinition { required: false, ..one.clone() });
    assert!(prove(&absent, &[], &[]).is_err());
    let longer = VariableDefinition { width: None, width_max: Some(2), ..one.clone() };
    assert_collides(&a(&longer), &[]);
    assert_collides(&a(&VariableDefinition { alphabet: Some("ab".into()), ..one }), &[]);
    // Projects: any, two, and two codes that have no row yet.
    for codes in [&[][..], &["P", "Q"]] {
        assert_collides(&of("project", &|series| series.serves.projects = strings(codes)), &[]);
    }
    let tabled = of("project", &|definition| {
        definition.serves.projects = strings(&["P", "Q"]);
        definition.references.project = Some("projects".into());
    });
    assert_collides(&tabled, &[]);
    assert_collides(&of("type", &|series| series.serves.types = strings(&["T", "U"])), &[]);
}

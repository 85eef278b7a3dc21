//! What a series refuses because it is usually a mistake, and what it takes nevertheless.

use super::super::testing::{compile, inputs, series};
use super::super::*;

fn now() -> jiff::Timestamp {
    "2025-06-30T12:00:00Z".parse().expect("a time")
}

/// A series that shows and counts by a free variable, a project and a phase.
fn free(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    series(|definition| {
        definition.template = "{ORG_CODE}-{PROJECT}-{SEQ:3}".into();
        let any = VariableDefinition { required: true, ..VariableDefinition::default() };
        definition.variables.insert("ORG_CODE".into(), any);
        definition.serials[0].counter = vec!["ORG_CODE".into(), "project".into()];
        definition.dates = None;
        edit(definition);
    })
}

fn draft(series: &Series, project: &str, date: &str, org: &str) -> Result<Draft, InputError> {
    series.draft(&inputs("T", project, date, &[("ORG_CODE", org)]), now())
}

/// Goal: of the values that look like `ACME` one counts. Method: each as a variable and as a
/// project, compared with the same series if it allows them.
#[test]
fn of_values_that_look_alike_one_counts() {
    let (refuses, allows) = (free(|_| {}), free(|s| s.look_alikes = LookAlikes::Allow));
    let like = ["\u{410}\u{421}\u{41c}\u{415}", "A\u{421}ME", "\u{391}\u{39c}\u{395}"];
    for value in like.into_iter().chain(["\u{ff21}CME", "\u{e17}\u{e4d}\u{e32}"]) {
        let refused = draft(&refuses, "P1", "2025-06-30", value).unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("wrong-alphabet", "context.ORG_CODE"));
        let refused = draft(&refuses, value, "2025-06-30", "ACME").unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("wrong-alphabet", "project"), "{value}");
        draft(&allows, value, "2025-06-30", value).expect(value);
    }
    for value in ["ACME", "\u{e17}\u{e33}", "O0l1", "rn", "m", "\u{43}\u{130}"] {
        draft(&refuses, value, "2025-06-30", value).expect(value);
    }
}

#[test]
fn who_lists_letters_of_another_script_means_them() {
    let cyrillic = "\u{410}\u{421}\u{41c}\u{415}";
    let declared = free(|s| {
        let variable = s.variables.get_mut("ORG_CODE").expect("declared");
        variable.alphabet = Some("\u{410}-\u{42f}".into());
        s.serves.projects = vec![cyrillic.into()];
    });
    draft(&declared, cyrillic, "2025-06-30", cyrillic).expect("declared");
    // A series that also lists Latin letters has two values of one look, or three.
    let both = free(|s| {
        let variable = s.variables.get_mut("ORG_CODE").expect("declared");
        variable.alphabet = Some("A-Z\u{410}-\u{42f}".into());
    });
    let refused = draft(&both, "P1", "2025-06-30", cyrillic).unwrap_err();
    assert_eq!((refused.slug(), &*refused.field()), ("wrong-alphabet", "context.ORG_CODE"));
    assert!(refused.to_string().contains("looks like \"ACME\""), "{refused}");
    draft(&both, "P1", "2025-06-30", "ACME").expect("Latin");
    draft(&both, "P1", "2025-06-30", "\u{416}\u{410}").expect("it looks like nothing else");
    // What a journal holds comes out as it was.
    let refuses = free(|_| {});
    let old = inputs("T", "P1", "2025-06-30", &[("ORG_CODE", cyrillic)]);
    draft::partial_number(&refuses, &old, now()).expect("it is out already");
}

#[test]
fn a_date_that_is_not_plausible_is_refused_before_anything_is_taken() {
    let (usual, wide) = (
        free(|_| {}),
        free(|s| {
            s.dates = Some(PlausibleDates { years_back: 2_000, years_ahead: 9_000 });
        }),
    );
    for date in ["2062-01-01", "9999-12-31", "0099-01-01", "2568-06-30", "2040-01-01T00:00:00Z"] {
        let refused = draft(&usual, "P1", date, "ACME").unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("invalid-date", "date"), "{date}");
        draft(&wide, "P1", date, "ACME").expect(date);
    }
    draft(&usual, "P1", "1999-12-31", "ACME").expect("a plausible one");
    let refused = compile(|s| {
        s.dates = Some(PlausibleDates { years_back: 9_999, years_ahead: 1 });
    });
    assert_eq!(refused.unwrap_err().field(), "dates.years_back");
    let near = free(|s| s.document_date = Some(DocumentDate::default()));
    let old = inputs("T", "P1", "1999-12-31", &[("ORG_CODE", "ACME")]);
    assert_eq!(near.draft(&old, now()).unwrap_err().slug(), "invalid-date");
    near.draft_issued(&old, now()).expect("another system issued it then");
    let era = inputs("T", "P1", "2568-06-30", &[("ORG_CODE", "ACME")]);
    assert_eq!(near.draft_issued(&era, now()).unwrap_err().slug(), "invalid-date");
    let both = compile(|s| s.document_date = Some(DocumentDate::default()));
    assert_eq!(both.unwrap_err().field(), "dates", "it says them already");
}

#[test]
fn no_number_is_a_formula_or_ends_with_a_blank() {
    for template in ["={SEQ:3}", "+{SEQ:3}", "@A{SEQ:3}", " {SEQ:3}", "{SEQ:3} "] {
        let refused = compile(|s| s.template = template.into()).unwrap_err();
        assert_eq!(refused.field(), "template", "{template}");
        let saved = SeriesDefinition { template: template.into(), ..testing::definition() };
        Series::restore(saved).expect("saved before");
    }
    let usual = free(|_| {});
    for value in ["=A", "+A", "@A"] {
        let refused = draft(&usual, "P1", "2025-06-30", value).unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("wrong-alphabet", "context.ORG_CODE"));
        draft(&usual, value, "2025-06-30", "ACME").expect("it does not begin the number");
    }
}

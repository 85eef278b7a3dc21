//! Phases, times of day and widening serials: what a request must bring, and where they end.

use super::super::testing::{compile, inputs, series};
use super::super::*;

#[test]
fn a_phase_is_given_where_the_series_has_phases_and_nowhere_else() {
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    let with = |phase: Option<&str>| Inputs {
        phase: phase.map(Into::into),
        ..inputs("T", "", "2024-02-29", &[])
    };
    for (template, reset) in [("{PHASE}-{SEQ:3}", Reset::None), ("{SEQ:3}", Reset::Phase)] {
        let series = series(|definition| {
            definition.template = template.into();
            definition.serials[0].reset = reset;
        });
        assert!(series.draft(&with(Some("งวด 2")), now).is_ok());
        for (phase, slug) in [
            (None, "missing-variable"),
            (Some(""), "missing-variable"),
            (Some("a\tb"), "wrong-alphabet"),
            (Some(" a"), "wrong-alphabet"),
        ] {
            let error = series.draft(&with(phase), now).unwrap_err();
            assert_eq!((error.slug(), error.field().as_str()), (slug, "phase"), "{error}");
        }
    }
    let plain = series(|definition| definition.template = "{SEQ:3}".into());
    let error = plain.draft(&with(Some("P1")), now).unwrap_err();
    assert_eq!((error.slug(), error.field().as_str()), ("unknown-variable", "phase"), "{error}");
}

#[test]
fn a_counter_that_begins_anew_within_a_day_needs_a_time_of_day() {
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    for (reset, key) in [
        (Reset::Second, "second=2024-02-29T12:00:00"),
        (Reset::Minute, "minute=2024-02-29T12:00"),
        (Reset::Hour, "hour=2024-02-29T12"),
    ] {
        let series = series(|definition| definition.serials[0].reset = reset);
        let draft = |date: &str| series.draft(&inputs("T", "", date, &[]), now);
        assert_eq!(draft("2024-02-29").unwrap().keys[0].to_string(), key);
        assert_eq!(draft("2024-02-28").unwrap_err().slug(), "time-required");
    }
}

#[test]
fn a_widening_serial_ends_at_its_maximum_and_at_the_longest_number() {
    let widening = |text: usize, max: Option<u64>| {
        series(|definition| {
            definition.template = format!("{}{{SEQ:3}}", "x".repeat(text));
            definition.serials[0].overflow = Overflow::Widen;
            definition.serials[0].max = max;
        })
    };
    let now = "2024-02-29T12:00:00Z".parse().unwrap();
    assert_eq!(widening(1, None).serials()[0].max, NUMBER_MAX);
    assert_eq!(widening(1, Some(1000)).serials()[0].max, 1000);
    let draft = |series: &Series| series.draft(&inputs("T", "", "2024-02-29", &[]), now);
    let number = draft(&widening(112, None)).unwrap().partial.fill(&[NUMBER_MAX]).unwrap();
    assert_eq!(number.chars().count(), TEXT_CHARS_MAX);
    let refused = draft(&widening(113, None)).unwrap_err();
    assert_eq!(refused, InputError::TextTooLong { chars: 129 });
    assert!(draft(&widening(124, Some(9999))).is_ok());
}

#[test]
fn letters_end_with_their_width() {
    let letters = |template: &str, start: u64| {
        compile(|definition| {
            definition.template = template.into();
            definition.serials[0].style = Style::Letters;
            definition.serials[0].start = start;
        })
    };
    assert_eq!(letters("{SEQ:2}", 676).unwrap().serials()[0].max, 676);
    assert_eq!(letters("{SEQ}", 677).unwrap().serials()[0].max, NUMBER_MAX);
    let error = letters("{SEQ:2}", 677).unwrap_err();
    assert_eq!(error.field(), "serials[0].start");
    assert!(error.to_string().contains("1 to 676"), "{error}");
}

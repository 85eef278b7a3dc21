//! Closed periods and chronology: what a definition may say of them, and which dates are refused.

use super::super::testing::{compile, inputs, series};
use super::super::*;

#[test]
fn a_day_before_which_a_series_is_closed_is_a_day() {
    for day in ["2025-02-30", "2025-1-1", "20250101", "2025-01-01T00:00", "", "soon"] {
        let error = compile(|d| d.closed_before = Some(day.into())).unwrap_err();
        assert_eq!(error.field(), "closed_before", "{day}");
        assert!(error.to_string().contains("2025-01-01"), "{day}: {error}");
    }
}

#[test]
fn chronology_is_refused_where_no_policy_keeps_it() {
    for policy in [Policy::Fast, Policy::Durable] {
        let error = compile(|d| (d.chronology, d.policy) = (true, policy)).unwrap_err();
        assert_eq!(error.field(), "chronology");
        assert!(error.to_string().contains("policy = \"gapless\""), "{error}");
    }
}

#[test]
fn a_date_is_open_from_the_day_on_in_the_time_zone_of_the_series() {
    let series = series(|d| {
        d.closed_before = Some("2025-01-01".into());
        d.timezone = Some("Asia/Bangkok".into());
    });
    for (date, is_open) in [
        ("2024-12-31", false),
        ("2025-01-01", true),
        ("2024-12-31T16:59:59Z", false),
        ("2024-12-31T17:00:00Z", true),
    ] {
        let request = inputs("T", "", date, &[]);
        match series.draft(&request, testing::NOW).expect("draft").closed {
            None => assert!(is_open, "{date}"),
            Some(error) => {
                assert!(!is_open, "{date}: {error}");
                assert_eq!((error.slug(), error.field().as_str()), ("period-closed", "date"));
                assert!(error.to_string().contains("2025-01-01"), "{error}");
            }
        }
    }
}

#[test]
fn counters_of_all_periods_are_one_family() {
    let series = series(|d| {
        (d.chronology, d.policy) = (true, Policy::Gapless);
        d.serials[0].counter = vec!["type".into(), "project".into()];
        d.serials[0].reset = Reset::Month;
    });
    let draft = |date| series.draft(&inputs("T", "P", date, &[]), testing::NOW).expect("draft");
    let (january, february) = (draft("2025-01-31"), draft("2025-02-01"));
    assert_ne!(january.keys, february.keys);
    assert_eq!(january.family.as_deref(), Some("type=T;project=P"));
    assert_eq!(february.family, january.family);
}

//! What the text that Prometheus reads shows, and that `docs/metrics.md` documents all of it.

use std::collections::BTreeMap;

use super::*;

/// The page.
const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// What a service shows after some work.
fn text(work: impl FnOnce(&Metrics)) -> String {
    let recorder = builder().expect("buckets").build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        describe();
        let metrics = Metrics::new();
        let _gauges = (partition_gauges(2), redis_gauges(1), counter_gauges(1));
        let _problems = Metrics::problems(["internal"]);
        metrics.say_build("sqlite", 1_767_225_600_500_000);
        work(&metrics);
        metrics.render(&handle)
    })
}

#[test]
fn every_metric_has_help_and_counters_start_at_zero() {
    let text = text(|metrics| {
        metrics.series("SPO").issued_database.increment(2);
        metrics.flight_seconds.of("redis").record(0.003);
        metrics.flight_requests.of("redis").record(3.0);
        metrics.journal_batch_seconds.record(0.1);
        metrics.count_request("/healthz", 200, Duration::from_millis(2));
        metrics.count_recovery("return", "exact", Duration::from_millis(20));
        metrics.show_process(&ProcessUse { cpu_seconds: Some(1.25), ..ProcessUse::default() });
    });
    for line in [
        "numerator_duplicates_total 0",
        "numerator_issued_total{series=\"SPO\",path=\"redis\"} 0",
        "numerator_issued_total{series=\"SPO\",path=\"database\"} 2",
        "numerator_requests_total{route=\"/healthz\",status=\"200\"} 1",
        "numerator_flight_seconds_bucket{path=\"redis\",le=\"0.005\"} 1",
        "numerator_flight_requests_bucket{path=\"redis\",le=\"4\"} 1",
        "numerator_journal_lag_records 0",
        "numerator_recoveries_total{kind=\"return\",closing=\"exact\"} 1",
        "numerator_recoveries_total{kind=\"recovery\",closing=\"ceiling\"} 0",
        "numerator_redis_call_seconds_count{verb=\"issue\"} 0",
        "numerator_gaps_total{reason=\"unaccounted\"} 0",
        "process_start_time_seconds 1767225600.5",
        "# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 1.25",
        "process_open_fds NaN",
    ] {
        assert!(text.contains(line), "{line} is missing from\n{text}");
    }
    let types: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' ')).collect();
    let defined: BTreeMap<&str, &str> =
        ALL.iter().map(|definition| (definition.name, definition.kind.word())).collect();
    assert_eq!(types, defined);
    for name in types.keys() {
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help text");
    }
}

#[test]
fn names_carry_their_unit_and_kind() {
    for definition in ALL {
        let (name, help) = (definition.name, definition.help);
        let is_counter = definition.kind == Kind::Counter;
        // Some have the names by which Prometheus knows them in every program.
        let is_ours = name.starts_with("numerator_") || name.starts_with("process_");
        assert!(is_ours, "{name}");
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        assert!(help.ends_with('.') && !help.contains('\n'), "{name}: {help}");
    }
}

#[test]
fn the_page_has_every_metric_with_its_kind_labels_and_help() {
    let (_, table) = PAGE.split_once("\n## All metrics\n").expect("the table");
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<String> = ALL
        .iter()
        .map(|definition| {
            let labels: Vec<String> =
                definition.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind, help) = (definition.name, definition.kind.word(), definition.help);
            format!("| `{name}` | {kind} | {} | {help} |", labels.join(", "))
        })
        .collect();
    assert_eq!(rows, wanted, "the rows should be\n{}\n", wanted.join("\n"));
}

#[test]
fn without_a_recorder_counting_does_nothing() {
    let metrics = Metrics::new();
    metrics.series("SPO").issued_redis.increment(1);
    metrics.count_request("/healthz", 200, Duration::ZERO);
}

//! The stores that `compare` runs on besides its own: behind a slow network, and given by URL.

use std::process::{Command, Output};

use harness::postgres::Postgres;
use harness::redis::Redis;

/// Runs `compare` on one hot counter, with further options.
fn hot(options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadtest"));
    command.args(["compare", "--only", "hot"]).args(options);
    command.output().expect("loadtest runs")
}

fn report_of(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy);
    assert!(output.status.success(), "{}", said.concat());
    said[0].to_string()
}

/// The milliseconds that the report tells of something.
fn milliseconds(report: &str, what: &str) -> f64 {
    let line = report.lines().find(|line| line.starts_with(&format!("| {what} ")));
    let cell = line.and_then(|line| line.split('|').nth(2)).unwrap_or_else(|| panic!("{report}"));
    let value = cell.trim().strip_suffix(" ms").expect("milliseconds");
    value.replace(',', "").parse().expect("a figure")
}

#[test]
fn a_slow_network_stands_between_the_service_and_its_redis() {
    // Longer than a smoke test: a counter's first number asks the stores many times.
    let options = ["--seconds", "3", "--runs", "1", "--connections", "8", "--latency", "5"];
    let report = report_of(&hot(&options));
    let p50_ms = milliseconds(&report, "one hot counter, p50");
    assert!(p50_ms >= 10.0, "5 ms there and 5 back, and half are answered in {p50_ms} ms");
}

#[test]
fn stores_that_were_there_before_are_used_and_left_as_they_were() {
    let (redis, postgres) = (Redis::start(), Postgres::start_for_load());
    redis.cli(&["set", "of-somebody-else", "1"]);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port());
    let given = ["--redis-url", &redis.url(), "--database-url", &url];
    let report = report_of(&hot(&[&["--smoke"], &given[..]].concat()));
    assert!(report.contains("| one hot counter "), "{report}");
    let commands = redis.cli(&["info", "commandstats"]);
    assert!(commands.contains("cmdstat_fcall") || commands.contains("cmdstat_evalsha"), "unused");
    assert_eq!(redis.cli(&["keys", "*"]), "of-somebody-else");
    let schemas = "select count(*) from pg_namespace where nspname like 'load%'";
    assert_eq!(postgres.sql(schemas), "0");
}

#[test]
fn a_smoke_test_takes_no_options_that_it_would_not_follow() {
    for options in [["--rows", "5000"], ["--connections", "4"], ["--seconds", "1"], ["--runs", "2"]]
    {
        let output = hot(&[&["--smoke"], &options[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(options[0]) && said.contains("--smoke"), "{said}");
    }
}

//! `loadtest recovery-time`: how long the service gives no number once Redis has lost everything,
//! by the number of counters. Counters are resolved at their first touch, so it should not matter.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use harness::load::post;
use harness::postgres::Postgres;
use harness::redis::Redis;
use harness::service::Deployment;
use serde_json::json;

use crate::program;
use crate::stage::filling;

/// The schema that holds the ledger.
const SCHEMA: &str = "recovery";

/// What its keys in Redis begin with, by default.
const PREFIX: &str = "nbr";

/// The key of the first counter.
const KEY: &str = "type=LINES;LINE=0000000";

/// Counters that are taken from as callers do; the others are written into both stores as if.
const TOUCHED: u64 = 10;

/// Longest time until there is a number again.
const RESUME_LIMIT: Duration = Duration::from_secs(30);

/// How many counters, and how often.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryTimeArgs {
    /// Numbers of counters to compare, each at least 10
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000_000])]
    #[arg(value_parser = clap::value_parser!(u64).range(TOUCHED..=9_999_999))]
    counters: Vec<u64>,
    /// How often Redis is flushed for each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

/// Times of one number of counters, sorted.
struct Measured {
    counters: u64,
    times: Vec<Duration>,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [min, median, max] = [0, self.times.len() / 2, self.times.len() - 1];
        let millis = |place: usize| self.times[place].as_millis();
        let (least, most) = (millis(min), millis(max));
        let rounds = self.times.len();
        write!(
            f,
            "{:>8} counters: {} ms at the median, {least} to {most} ms in {rounds} rounds",
            self.counters,
            millis(median)
        )
    }
}

/// Measures and prints.
pub(crate) fn run(args: &RecoveryTimeArgs) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("threads for the runtime");
    let mut out = io::stdout();
    let _ = writeln!(out, "From FLUSHALL to the next number:");
    for counters in &args.counters {
        let measured = runtime.block_on(measure(*counters, args.rounds));
        let _ = writeln!(out, "{measured}");
    }
    ExitCode::SUCCESS
}

async fn measure(counters: u64, rounds: u32) -> Measured {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(program(&[]), &postgres.url(SCHEMA), Some(&redis.url()));
    apply_series(&deployment);
    let service = deployment.serve();
    let client = reqwest::Client::new();
    for line in 0..TOUCHED {
        take(&client, &service.url, &format!("first-{line}"), line).await;
    }
    let written = filling::write(&postgres, SCHEMA, KEY, TOUCHED..counters);
    let mut times = Vec::new();
    for round in 0..rounds {
        filling::fill(&postgres, SCHEMA, &redis, PREFIX, &written);
        // What a server does to free its memory is no matter of ours.
        assert_eq!(redis.cli(&["flushall", "async"]), "OK");
        let flushed = Instant::now();
        take(&client, &service.url, &format!("round-{round}"), 0).await;
        times.push(flushed.elapsed());
    }
    times.sort_unstable();
    assert!(service.terminate(), "the service does not end well");
    Measured { counters, times }
}

fn apply_series(deployment: &Deployment) {
    let file = deployment.path("series.toml");
    let text = "[[series]]\ncode = \"LINES\"\nname = \"LINES\"\ntemplate = \"{LINE}-{SEQ:9}\"\n\
                serves = { types = [\"LINES\"] }\n[series.variables]\n\
                LINE = { required = true, alphabet = \"0-9\", width = 7 }\n\
                [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n";
    std::fs::write(&file, text).expect("series file");
    deployment.apply(&[file]);
}

/// Asks for a number until it comes.
async fn take(client: &reqwest::Client, url: &str, document: &str, line: u64) {
    let path = format!("{url}/api/v1/documents/{document}/generate-number");
    let body = json!({ "type": "LINES", "context": { "LINE": format!("{line:07}") } });
    let deadline = Instant::now() + RESUME_LIMIT;
    loop {
        let (status, answer) = post(client, &path, &body).await;
        if status == 201 {
            return;
        }
        assert!(Instant::now() < deadline, "no number for {document}: {status} {answer}");
    }
}

//! `loadtest recovery-time`: how long the service gives no number once Redis has lost everything,
//! by the number of counters. Counters are resolved at their first touch, so it should not matter.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use harness::load::post;
use serde_json::json;

use crate::stage::{Path, Stage, filling};

/// The key of the first counter.
const KEY: &str = "type=LOAD0;LINE=0000000";

/// Counters that are taken from as callers do; the others are written into both stores as if.
const TOUCHED: u64 = 10;

/// Longest time until there is a number again.
const RESUME_LIMIT: Duration = Duration::from_secs(30);

/// How often Redis is flushed for each number of counters.
const ROUNDS: usize = 5;

/// How many counters.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecoveryTimeArgs {
    /// Numbers of counters to compare, each at least 10
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000_000])]
    #[arg(value_parser = clap::value_parser!(u64).range(TOUCHED..=9_999_999))]
    counters: Vec<u64>,
}

/// Measures and prints.
pub(crate) fn run(args: &RecoveryTimeArgs) -> ExitCode {
    let runtime = tokio::runtime::Runtime::new().expect("threads for the runtime");
    let mut out = io::stdout();
    let _ = writeln!(out, "From FLUSHALL to the next number:");
    for counters in &args.counters {
        let times_ms = runtime.block_on(measure(*counters));
        let (least, median, most) = (times_ms[0], times_ms[ROUNDS / 2], times_ms[ROUNDS - 1]);
        let _ = writeln!(
            out,
            "{counters:>8} counters: {median} ms at the median, {least} to {most} ms in {ROUNDS} \
             rounds"
        );
    }
    ExitCode::SUCCESS
}

/// The times of all rounds in milliseconds, sorted.
async fn measure(counters: u64) -> Vec<u128> {
    let stage = Stage::start(Duration::ZERO);
    let service = stage.service(Path::Redis, "", &[]);
    let (postgres, redis, schema) = (stage.postgres(), stage.redis(), service.schema());
    let url = format!("http://{}", service.address);
    let client = reqwest::Client::new();
    for line in 0..TOUCHED {
        take(&client, &url, &format!("first-{line}"), line).await;
    }
    let written = filling::write(postgres, schema, KEY, TOUCHED..counters);
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        filling::fill(postgres, schema, redis, schema, &written);
        // What a server does to free its memory is no matter of ours.
        assert_eq!(redis.cli(&["flushall", "async"]), "OK");
        let flushed = Instant::now();
        take(&client, &url, &format!("round-{round}"), 0).await;
        times.push(flushed.elapsed().as_millis());
    }
    times.sort_unstable();
    service.end();
    times
}

/// Asks for a number until it comes.
async fn take(client: &reqwest::Client, url: &str, document: &str, line: u64) {
    let path = format!("{url}/api/v1/documents/{document}/generate-number");
    let body = json!({ "type": "LOAD0", "context": { "LINE": format!("{line:07}") } });
    let deadline = Instant::now() + RESUME_LIMIT;
    loop {
        let (status, answer) = post(client, &path, &body).await;
        if status == 201 {
            return;
        }
        assert!(Instant::now() < deadline, "no number for {document}: {status} {answer}");
    }
}

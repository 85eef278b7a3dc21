//! The commands of an operator, with running services and after faults: what they promise, that
//! they may be repeated, and that they change nothing without an option that says so.

mod drains;
mod fallbacks;
mod gaps;
mod late;
mod looks;
mod reconciles;
mod reserved;
mod watching;

use numerator::ledger::{Partition, SharedLedger};
use serde_json::Value;
use testkit::load::Running;
use testkit::service::Service;

use crate::deployment::Deployment;

/// Runs a command with `--json`; its exit code and what it prints.
fn json(deployment: &Deployment, arguments: &[&str]) -> (i32, Value) {
    let output = deployment.run(&[arguments, &["--json"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text).unwrap_or_else(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        panic!("{arguments:?} prints no JSON ({error}): {text}{stderr}")
    });
    (output.status.code().unwrap(), value)
}

/// The same for a command that must succeed.
fn ok(deployment: &Deployment, arguments: &[&str]) -> Value {
    let (code, value) = json(deployment, arguments);
    assert_eq!(code, 0, "{arguments:?}: {value}");
    value
}

/// The partition of series LOAD.
pub(crate) async fn load_partition(ledger: &SharedLedger) -> Partition {
    let series = ledger.series().list().await.unwrap();
    let partition = series.iter().find(|v| v.definition.code == "LOAD").unwrap().partition;
    ledger.partitions().await.unwrap().remove(partition as usize)
}

/// Ends two loads and their services: no request failed, and there is not even a gap.
async fn end_without_a_gap(
    deployment: &Deployment,
    [first, second]: [Running; 2],
    [one, other]: [Service; 2],
) {
    let (mut seen, more) = (first.finish().await, second.finish().await);
    assert_eq!((seen.failures.len(), more.failures.len()), (0, 0), "{:?}", seen.failures);
    println!("longest stall {:?}", seen.longest_stall.max(more.longest_stall));
    seen.numbers.extend(more.numbers);
    seen.assert_contiguous(seen.numbers.len());
    assert!(one.terminate() && other.terminate());
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["gaps"] == 0, "{report}");
}

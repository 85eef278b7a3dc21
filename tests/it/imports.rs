//! `import`: the report, all or nothing, with running services, and what follows.

mod cells;
mod dates;
mod documents;
mod files;
mod first;
mod ledger;
mod moved;
mod numbers;
mod readings;
mod refusals;
mod rules;
mod sources;
mod tables;
mod used;

use serde_json::Value;

use crate::deployment::Deployment;

/// Runs an import; its exit code, report and stderr.
fn import(deployment: &Deployment, arguments: &[&str]) -> (i32, Value, String) {
    let output = deployment.run(&[&["import", "--json"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr).lines().map(plain).collect();
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).unwrap_or(Value::Null);
    (output.status.code().unwrap(), report, stderr)
}

/// A line of stderr without the quoting of JSON.
fn plain(line: &str) -> String {
    let said = serde_json::from_str::<Value>(line).ok();
    let error = said.as_ref().and_then(|said| said["error"].as_str());
    format!("{}\n", error.unwrap_or(line))
}

/// The same for an import that must succeed.
fn imported(deployment: &Deployment, arguments: &[&str]) -> Value {
    let (code, report, stderr) = import(deployment, arguments);
    assert_eq!(code, 0, "{arguments:?}: {report} {stderr}");
    report
}

/// Writes a file into the deployment's folder; its path.
fn file(deployment: &Deployment, name: &str, text: &str) -> String {
    let path = deployment.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Kinds and places of a report's problems.
fn problems(report: &Value) -> Vec<(String, String)> {
    let text = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
    let list = report["problems"].as_array().unwrap().iter();
    list.map(|problem| (text(problem, "place"), text(problem, "kind"))).collect()
}

//! Dashboards and alert rules: made from one table, kept consistent with the metrics, the runbook
//! and each other. Their results on a real Prometheus are checked in the integration tests.
//!
//! `REGENERATE=1 cargo test --test grafana` rewrites the dashboards.
#![allow(missing_docs, reason = "tests say what they do in their names")]

#[path = "grafana/ledger.rs"]
mod ledger;
#[path = "grafana/model.rs"]
mod model;
#[path = "grafana/overview.rs"]
mod overview;
#[path = "grafana/promql.rs"]
mod promql;
#[path = "grafana/redis.rs"]
mod redis;
#[path = "grafana/rules.rs"]
mod rules;
#[path = "grafana/series.rs"]
mod series;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use model::Dashboard;
use numerator::metrics::definitions::{ALL, Kind};
use rules::Alert;

fn dashboards() -> [Dashboard; 4] {
    [overview::dashboard(), ledger::dashboard(), redis::dashboard(), series::dashboard()]
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Places in the runbook that a link can lead to, as GitHub names them.
fn anchors() -> BTreeSet<String> {
    let page = read("docs/runbook.md");
    let headings = page.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let text = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
            text.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
        })
        .collect()
}

/// Names of metrics in an expression.
fn metrics_in(expression: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
    let words = expression.split(|c| !is_word(c));
    let is_metric = |word: &&str| word.starts_with("numerator_") || word.starts_with("process_");
    words.filter(is_metric).collect()
}

/// Everything that a definition puts into Prometheus.
fn known_metrics() -> BTreeSet<String> {
    let series = |name: &str, kind| match kind {
        Kind::Histogram(_) => {
            ["_bucket", "_sum", "_count"].map(|part| format!("{name}{part}")).to_vec()
        }
        _ => vec![name.to_owned()],
    };
    ALL.iter().flat_map(|definition| series(definition.name, definition.kind)).collect()
}

#[test]
fn the_dashboards_are_those_of_the_table() {
    let folder = root().join("grafana/dashboards");
    let mut wanted: Vec<PathBuf> = Vec::new();
    for dashboard in dashboards() {
        let file = folder.join(format!("{}.json", dashboard.uid));
        if std::env::var_os("REGENERATE").is_some() {
            std::fs::write(&file, dashboard.render()).expect("dashboard");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        let (title, path) = (dashboard.title, file.display());
        assert!(kept == dashboard.render(), "{title}: REGENERATE=1 writes {path} anew");
        wanted.push(file);
    }
    let mut found: Vec<PathBuf> =
        folder.read_dir().expect("dashboards").map(|entry| entry.expect("file").path()).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn every_panel_says_what_it_shows_and_leads_to_parts_of_the_runbook_that_exist() {
    let anchors = anchors();
    let mut titles = BTreeSet::new();
    for dashboard in dashboards() {
        for (_, panel) in dashboard.panels() {
            let title = panel.title;
            assert!(titles.insert(title), "two panels are called {title}: alerts name them");
            assert!(panel.description.ends_with('.'), "{title}");
            assert!(!panel.queries.is_empty(), "{title}");
            if let Some(anchor) = panel.runbook {
                assert!(anchors.contains(anchor), "{title}: the runbook has no part {anchor}");
            }
        }
    }
}

/// Units in which Grafana may draw an expression.
fn units(expression: &str) -> &'static [&'static str] {
    let has = |word| expression.contains(word);
    // The mean of what is counted is a count again.
    let is_mean = has("_sum{") && has("_count{");
    if has("_bytes") {
        &["bytes"]
    } else if has("_seconds") && !has("_seconds_count") && !has("_cpu_") {
        &["s"]
    } else if has("_ratio")
        || has(":ratio_")
        || has("_cpu_")
        || expression.starts_with("avg")
        || has(" / ") && !is_mean
    {
        &["percentunit"]
    } else if has("rate(") && !expression.starts_with("60 * ") && !is_mean {
        &["ops", "reqps", "wps"]
    } else {
        &["none", "short"]
    }
}

#[test]
fn every_panel_has_the_unit_of_its_expressions() {
    for dashboard in dashboards() {
        for (_, panel) in dashboard.panels() {
            for (expression, _) in &panel.queries {
                let allowed = units(expression);
                let (title, unit) = (panel.title, panel.unit);
                assert!(allowed.contains(&unit), "{title}: {unit}, not {allowed:?}: {expression}");
            }
        }
    }
}

#[test]
fn a_panel_that_is_empty_while_nothing_happens_says_so() {
    for dashboard in dashboards() {
        for (_, panel) in dashboard.panels() {
            let (title, description) = (panel.title, panel.description);
            // Quantiles and means of nothing are not a number.
            let may_be_empty = panel.queries.iter().any(|(expression, _)| {
                expression.contains("histogram_quantile") || expression.contains("_sum{")
            });
            let says_so = description.ends_with("No line while nothing happens.");
            assert_eq!(says_so, may_be_empty, "{title}: {description}");
        }
    }
}

#[test]
fn panels_and_rules_name_only_metrics_that_there_are() {
    let known = known_metrics();
    let dashboards = dashboards();
    let panels = dashboards.iter().flat_map(Dashboard::panels);
    let panels = panels.flat_map(|(_, panel)| panel.queries.iter().map(|query| query.0.clone()));
    let rules = rules::alerts().into_iter().map(|alert| alert.expression);
    let mut used = BTreeSet::new();
    for expression in panels.chain(rules) {
        for name in metrics_in(&expression) {
            assert!(known.contains(name), "{name}: {expression}");
            used.insert(name.to_owned());
        }
    }
    // A metric that no panel or rule reads need not be counted.
    let is_used = |name: &str| used.iter().any(|used| used.starts_with(name));
    let unused: Vec<&str> =
        ALL.iter().map(|definition| definition.name).filter(|name| !is_used(name)).collect();
    let not_drawn = ["numerator_queue_max", "numerator_redis_configured", "numerator_build_info"];
    let is_drawn = |name: &&str| !not_drawn.contains(name);
    assert_eq!(unused.into_iter().filter(is_drawn).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn every_alert_leads_to_its_panel_and_to_its_part_of_the_runbook() {
    let anchors = anchors();
    let dashboards = dashboards();
    let alerts = rules::alerts();
    assert!(alerts.len() > 20, "{}", alerts.len());
    for Alert { name, severity, summary, description, runbook_url, panel, dashboard_url, .. } in
        alerts
    {
        assert!(["critical", "warning"].contains(&severity.as_str()), "{name}: {severity}");
        assert!(summary.ends_with('.') && description.ends_with('.'), "{name}");
        let anchor = runbook_url.strip_prefix("docs/runbook.md#");
        let anchor = anchor.unwrap_or_else(|| panic!("{name}: {runbook_url}"));
        assert!(anchors.contains(anchor), "{name}: the runbook has no part {anchor}");
        let place = dashboards.iter().find_map(|dashboard| {
            let (id, _) = dashboard.panels().find(|(_, known)| known.title == panel)?;
            Some(format!("/d/{}?viewPanel={id}", dashboard.uid))
        });
        assert_eq!(Some(dashboard_url), place, "{name}: the panel {panel:?}");
    }
}

/// Goal: no person is alerted at night while callers get their numbers. Method: the loss of a part
/// that others replace is a warning.
#[test]
fn what_no_caller_waits_for_wakes_nobody() {
    let alerts = rules::alerts();
    for name in ["NumeratorRedisUnavailable", "NumeratorInstanceDown", "NumeratorProcessNotReady"] {
        let alert = alerts.iter().find(|alert| alert.name == name);
        assert_eq!(alert.expect(name).severity, "warning", "{name}");
    }
}

/// The rules as the Prometheus operator loads them.
fn prometheus_rule() -> String {
    let rules = read("grafana/alerts.yaml");
    let (_, groups) = rules.split_once("\ngroups:\n").expect("groups");
    let head = "# The alert rules for the Prometheus operator. Made from grafana/alerts.yaml:\n\
                # REGENERATE=1 cargo test --test grafana\n\
                apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  \
                name: numerator\n  labels:\n    app.kubernetes.io/name: numerator\nspec:\n  \
                groups:\n";
    let lines = groups.lines().map(|line| format!("  {line}\n"));
    std::iter::once(head.to_owned()).chain(lines).collect()
}

#[test]
fn the_operator_loads_the_rules_of_the_file() {
    let path = "deploy/kubernetes/prometheusrule.yaml";
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(root().join(path), prometheus_rule()).expect("rules");
    }
    assert!(read(path) == prometheus_rule(), "REGENERATE=1 writes {path} anew");
}

#[test]
fn one_line_has_every_link_lead_to_where_runbook_and_grafana_are() {
    let page = read("docs/deploy.md");
    let script = page.split("```sh\n").find_map(|block| {
        let block = block.split("```").next()?;
        block.contains("sed -i").then_some(block)
    });
    let copy = tempfile::tempdir().expect("folder");
    for folder in ["grafana/dashboards", "deploy/kubernetes"] {
        std::fs::create_dir_all(copy.path().join(folder)).expect("folder");
    }
    let mut files =
        vec!["grafana/alerts.yaml".to_owned(), "deploy/kubernetes/prometheusrule.yaml".to_owned()];
    files.extend(dashboards().map(|board| format!("grafana/dashboards/{}.json", board.uid)));
    for file in &files {
        std::fs::copy(root().join(file), copy.path().join(file)).expect("copy");
    }
    let mut shell = std::process::Command::new("bash");
    shell.args(["-euc", script.expect("the line")]).current_dir(copy.path());
    assert!(shell.status().expect("bash runs").success());
    for file in &files {
        let text = std::fs::read_to_string(copy.path().join(file)).expect("file");
        let links: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("runbook.md") || line.contains("dashboard_url:"))
            .collect();
        assert!(!links.is_empty(), "{file}");
        let is_whole = |line: &&&str| line.contains("\"https://") || line.contains(": https://");
        let broken: Vec<_> = links.iter().filter(|line| !is_whole(line)).collect();
        assert!(broken.is_empty(), "{file}: {broken:?}");
    }
}

#[test]
fn every_alert_has_a_test() {
    let files = ["alerts_test", "alerts_slow_test"].map(|name| format!("grafana/{name}.yaml"));
    let tests: String = files.iter().map(|file| read(file)).collect();
    let has_test = |alert: &Alert| tests.contains(&format!("alertname=\"{}\"", alert.name));
    let untested: Vec<String> =
        rules::alerts().into_iter().filter(|alert| !has_test(alert)).map(|a| a.name).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

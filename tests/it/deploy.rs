//! The files of `deploy/` and the program agree: settings, paths, waits. `scripts/check-deploy`
//! runs the programs that read the files.

mod shipped;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser as _;
use numerator::commands::Cli;
use numerator::config::{LogFormat, Settings, Sources};
use testkit::load;
use testkit::postgres::Postgres;
use testkit::process::free_port;
use testkit::redis::Redis;

use crate::deployment::Deployment;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")
}

fn text(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The value after the first line with this beginning, without quotes.
fn value<'a>(text: &'a str, key: &str) -> &'a str {
    let line =
        text.lines().find_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key}")).trim().trim_matches('\'')
}

/// The settings that a YAML file gives as environment variables.
fn environment(yaml: &str) -> Vec<(String, String)> {
    let variable = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        name.starts_with("NUMERATOR__")
            .then(|| (name.to_owned(), value.trim_matches('\'').to_owned()))
    };
    yaml.lines().filter_map(variable).collect()
}

/// How long a process may take to drain and end.
fn farewell(settings: &Settings) -> Duration {
    settings.http.drain_delay + settings.allocator.time_limit + settings.allocator.stop_max
}

#[test]
fn the_settings_of_the_manifests_are_accepted_and_their_pods_may_end_in_peace() {
    let map = text("kubernetes/configmap.yaml");
    let (_, file) = map.split_once("numerator.toml: |\n").unwrap();
    let unindented: String = file.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("numerator.toml");
    std::fs::write(&path, unindented).unwrap();
    let environment = environment(&text("kubernetes/secret.example.yaml"));
    assert_eq!(environment.len(), 3, "{environment:?}");
    let sources = Sources { file: Some(path), environment, flags: vec![] };
    let settings = Settings::load(&sources).unwrap();
    assert!(settings.redis.is_some() && settings.log.format == LogFormat::Json);
    let deployment = text("kubernetes/deployment.yaml");
    let health = settings.health_listen.expect("probes have connections of their own");
    let ports = deployment.split("- name: ").filter_map(|port| {
        let (name, rest) = port.split_once('\n')?;
        Some((name, rest.trim().strip_prefix("containerPort: ")?.lines().next()?))
    });
    let wanted = [("http", settings.http_listen.port()), ("health", health.port())];
    let ports: Vec<(&str, u16)> = ports.map(|(name, port)| (name, port.parse().unwrap())).collect();
    assert_eq!(ports, wanted);
    assert_eq!(deployment.matches("port: health").count(), 3, "every probe");
    let grace: u64 = value(&deployment, "terminationGracePeriodSeconds:").parse().unwrap();
    let pause: u64 = value(&deployment, "seconds:").parse().unwrap();
    assert!(Duration::from_secs(grace - pause) > farewell(&settings));
}

#[test]
fn the_settings_of_the_composition_are_accepted_and_all_example_series_are_saved() {
    let compose = text("compose.yaml");
    let mut environment = environment(&compose);
    let example = value(&text("env.example"), "NUMERATOR_TOKENS=")
        .replace("\"\"", &format!("\"{}\"", "0".repeat(64)));
    for (_, value) in &mut environment {
        if value.starts_with("${NUMERATOR_TOKENS") {
            example.clone_into(value);
        }
    }
    // What the service has, and whose password migrates instead.
    assert_eq!(environment.len(), 8, "{environment:?}");
    let settings = Settings::load(&Sources { environment, ..Sources::default() })
        .expect("settings of compose");
    let (_, service) = compose.split_once("  numerator:\n").unwrap();
    let grace: u64 = value(service, "stop_grace_period:").trim_end_matches('s').parse().unwrap();
    assert!(Duration::from_secs(grace) > farewell(&settings));
    let examples = folder().join("../examples/series");
    for file in examples.read_dir().unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(compose.contains(&format!("/usr/local/share/numerator/series/{name}\n")), "{name}");
    }
}

/// A ledger on PostgreSQL is not served if its witness cannot be written, and the rest of an image
/// is read only.
#[test]
fn wherever_the_service_runs_it_may_write_to_its_data_folder() {
    let image = text("Dockerfile");
    let folder = value(&image, "ENV NUMERATOR__DATA__DIR=");
    let compose = text("compose.yaml");
    let (_, service) = compose.split_once("  numerator:\n").unwrap();
    let (service, _) = service.split_once("\n\n").unwrap();
    assert!(service.contains(&format!("- numerator:{folder}\n")), "{service}");
    assert!(compose.contains("\nvolumes:\n  numerator:\n"), "{compose}");
    let deployment = text("kubernetes/deployment.yaml");
    let (_, mounts) = deployment.split_once("\n      containers:\n").unwrap();
    assert_eq!(value(mounts.split_once("- name: data\n").unwrap().1, "mountPath:"), folder);
    assert!(mounts.contains("- name: data\n          emptyDir: {}\n"), "{mounts}");
    let unit = text("numerator.service");
    assert_eq!(value(&unit, "Environment=NUMERATOR__DATA__DIR="), folder);
    assert_eq!(format!("/var/lib/{}", value(&unit, "StateDirectory=")), folder);
}

#[test]
fn every_command_line_of_the_files_is_one() {
    let unit = text("numerator.service");
    let mut lines: Vec<Vec<&str>> = vec![value(&unit, "ExecStart=").split(' ').collect()];
    let image = text("Dockerfile");
    let (_, health) = image.split_once("CMD [").unwrap();
    let words = health.split(']').next().unwrap().split(", ").map(|word| word.trim_matches('"'));
    lines.push(words.collect());
    lines.push(vec!["numerator", "serve"]);
    let deployment = text("kubernetes/deployment.yaml");
    let compose = text("compose.yaml");
    let images = deployment.split("args: [").skip(1).chain(compose.split("command: [").skip(1));
    for rest in images.filter(|rest| !rest.starts_with("\"--")) {
        let args = rest.split(']').next().unwrap().split(", ").map(|a| a.trim_matches('"'));
        lines.push(["numerator"].into_iter().chain(args).collect());
    }
    for line in lines {
        Cli::try_parse_from(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    }
    let settings = Settings::load(&Sources {
        flags: vec![("data.dir".into(), "/x".into())],
        ..Sources::default()
    });
    let wait = value(&unit, "TimeoutStopSec=").trim_end_matches('s').parse().unwrap();
    assert!(Duration::from_secs(wait) > farewell(&settings.unwrap()));
}

#[test]
fn commands_in_a_pod_read_the_settings_file_of_its_process() {
    let deployment = text("kubernetes/deployment.yaml");
    let (_, variable) = deployment.split_once("- name: NUMERATOR_CONFIG\n").unwrap();
    let (folder, name) = value(variable, "value:").rsplit_once('/').unwrap();
    assert_eq!(value(&deployment, "mountPath:"), folder);
    assert!(text("kubernetes/configmap.yaml").contains(&format!("  {name}: |")));
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str, listen: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, format!("[http]\nlisten = \"{listen}\"\n")).unwrap();
        path
    };
    let (named, flagged) = (file("named.toml", "named"), file("flagged.toml", "flagged"));
    let refusal = |flags: &[&std::ffi::OsStr]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_numerator"));
        let output = command.args(flags).arg("status").env("NUMERATOR_CONFIG", &named).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let by_variable = refusal(&[]);
    assert!(by_variable.contains("named.toml"), "{by_variable}");
    let by_flag = refusal(&["--config".as_ref(), flagged.as_os_str()]);
    assert!(by_flag.contains("flagged.toml"), "{by_flag}");
}

#[test]
fn the_monitor_finds_the_service_by_its_labels_and_port() {
    let (monitor, service) =
        (text("kubernetes/servicemonitor.yaml"), text("kubernetes/service.yaml"));
    let port = value(&monitor, "port:");
    assert_eq!(value(&service, "name: http"), "", "{service}");
    assert_eq!(value(&service, "name: health"), "", "{service}");
    assert_eq!(port, "health");
    let label = value(&monitor, "jobLabel:");
    assert_eq!(value(&service, &format!("{label}:")), "numerator", "the job that alert rules know");
    assert_eq!(value(&text("prometheus.yaml"), "job_name:"), "numerator");
    let (_, selector) = monitor.split_once("selector:").unwrap();
    assert_eq!(value(selector, &format!("{label}:")), "numerator");
}

#[tokio::test]
async fn a_service_answers_where_it_is_probed_and_ready_says_whether_it_issues() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let manifest = text("kubernetes/deployment.yaml") + &text("kubernetes/servicemonitor.yaml");
    let paths = manifest.lines().filter_map(|line| line.trim().strip_prefix("path: "));
    let paths: Vec<&str> = paths.collect();
    assert_eq!(paths.len(), 4);
    for path in paths {
        let answer = testkit::get(format!("{}{path}", service.url)).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    let address = service.url.trim_start_matches("http://").to_owned();
    let ready = |address: &str| deployment.run(&["--listen", address, "ready"]);
    let output = ready(&address);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"ready\":true"), "{output:?}");
    assert!(service.terminate());
    let output = ready(&address);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains("does not answer"), "{error}");
}

#[tokio::test]
async fn a_full_house_does_not_keep_probes_waiting_that_have_connections_of_their_own() {
    let health = format!("127.0.0.1:{}", free_port());
    let mut deployment = Deployment::embedded();
    deployment.http = format!("connections_max = 1\nhealth_listen = \"{health}\"\n");
    let service = deployment.launch();
    let ready = format!("http://{health}/readyz");
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_ready = async || testkit::get(&ready).await.is_ok_and(|answer| answer.status() == 200);
    while !is_ready().await {
        assert!(Instant::now() < deadline, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // One caller holds the only connection, between two requests.
    let caller = testkit::client_builder().pool_max_idle_per_host(1).build().unwrap();
    let alive = format!("{}/openapi.json", service.url);
    assert!(caller.get(&alive).send().await.unwrap().text().await.unwrap().contains("openapi"));
    let other = testkit::client_builder().timeout(Duration::from_millis(300)).build().unwrap();
    assert!(other.get(&alive).send().await.unwrap_err().is_timeout(), "there is room");
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = testkit::get(format!("http://{health}{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    let configs = format!("http://{health}/api/v1/document-numbering/configs");
    assert_eq!(testkit::get(configs).await.unwrap().status(), 404, "nothing else is there");
    let output = deployment.run(&["ready"]);
    assert!(output.status.success(), "it asks where it is not kept waiting: {output:?}");
    assert!(service.terminate());
}

/// Goal: the user that the composition gives the service may do all that it does. Method: a real
/// Redis with that file, which logs whatever it refuses.
#[tokio::test]
async fn a_service_needs_no_more_of_redis_than_the_shipped_user_may() {
    let home = tempfile::tempdir().unwrap();
    let users = home.path().join("users.acl");
    let shipped = text("redis-users.acl").replace("PASSWORD", "hush");
    assert!(shipped.starts_with("user default off\n"), "{shipped}");
    // The test reads as that user.
    let shipped = shipped.replace("default off", "default on nopass ~* &* +@all");
    std::fs::write(&users, shipped).unwrap();
    let redis = Redis::start_with(&["--aclfile", users.to_str().unwrap()]);
    assert!(redis.cli(&["acl", "list"]).contains("user numerator on"));
    let postgres = Postgres::start();
    let url = redis.url().replace("redis://", "redis://numerator:hush@");
    let deployment = Deployment::new(&postgres.url("users"), Some(&url));
    deployment.apply_load_series();
    let service = deployment.serve();
    let before = load::documents(&service.url, 4, 50).await;
    redis.flushall();
    let after = load::documents(&service.url, 4, 100).await;
    after.assert_contiguous(100);
    assert!(before.numbers.iter().all(|(document, number)| after.numbers[document] == *number));
    assert_ne!(deployment.status(&["--json"]).0, 2, "everything is seen");
    for command in [["reconcile", "--json"], ["verify", "--json"]] {
        let output = deployment.run(&command);
        assert!(output.status.success(), "{command:?}: {output:?}");
    }
    assert!(service.terminate());
    assert_eq!(redis.cli(&["acl", "log"]), "", "Redis refused nothing");
    let wrong = Deployment::new(&postgres.url("users"), Some(&url.replace("hush", "hash")));
    let status = wrong.run(&["status"]);
    assert!(redis.cli(&["acl", "log"]).contains("auth"), "{status:?}");
}

/// Grafana reads the provisioning files with variables of its environment in them: without these it
/// starts and shows nothing.
#[test]
fn the_composition_gives_grafana_what_its_provisioning_asks_for() {
    let compose = text("compose.yaml");
    for (file, name, wanted) in [
        ("datasources/prometheus.yaml", "PROMETHEUS_URL", "http://prometheus:9090"),
        ("dashboards/numerator.yaml", "GRAFANA_DASHBOARDS", "/var/lib/grafana/dashboards"),
    ] {
        let provisioning = text(&format!("../grafana/provisioning/{file}"));
        let asked: Vec<&str> = provisioning.split('$').skip(1).collect();
        assert!(
            asked.len() == 1 && asked[0].lines().next() == Some(name),
            "{file} asks for {asked:?}"
        );
        assert_eq!(value(&compose, &format!("{name}:")), wanted);
    }
    assert!(compose.contains("../grafana/dashboards:/var/lib/grafana/dashboards:ro"));
    assert!(compose.contains("\n  prometheus:\n"), "the service of that name");
}

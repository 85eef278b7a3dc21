//! What is shipped confines the service: which passwords it gets, who reaches it, what it reaches,
//! and what is in front of it.

use std::time::Duration;

use numerator::config::{Settings, Sources};
use numerator::web::HEADER_READ_TIMEOUT;
use numerator::web::body::BATCH_BODY_BYTES_MAX;

use super::{text, value};

/// Goal: what is shipped runs the service as a user who cannot change the record. Method: which URL
/// each of its processes gets; the roles by the pages are tried in `database_roles`.
#[test]
fn the_service_is_the_writer_and_only_who_migrates_is_the_owner() {
    let user = |urls: &str| -> Vec<String> {
        let urls = urls.split("postgres://").skip(1);
        urls.map(|url| url.split(':').next().unwrap_or_default().to_owned()).collect()
    };
    let compose = text("compose.yaml");
    let (_, services) = compose.split_once("\nservices:\n").expect("services");
    assert_eq!(user(services), ["numerator_writer", "numerator_owner"]);
    let (_, migrate) = services.split_once("\n  migrate:\n").unwrap();
    let migrate = migrate.split("\n\n").next().unwrap();
    assert!(migrate.contains("[\"migrate\", \"--roles\"]") && user(migrate).len() == 1);
    let (_, postgres) = services.split_once("\n  postgres:\n").unwrap();
    let postgres = postgres.split("\n\n").next().unwrap();
    assert!(!postgres.contains("POSTGRES_USER"), "{postgres}");
    let create = "./postgres/create.sql:/docker-entrypoint-initdb.d/create.sql:ro";
    assert!(postgres.contains(create), "{postgres}");
    let made = text("postgres/create.sql");
    for variable in ["OWNER", "WRITER", "ARCHIVER", "AUDITOR", "BACKUP"] {
        let variable = format!("{variable}_PASSWORD");
        assert!(made.contains(&format!("${variable}")), "{variable}");
        assert!(postgres.contains(&format!("{variable}: ")), "{variable}");
    }
    let example = text("env.example");
    assert!(example.contains("\nOWNER_PASSWORD=\n") && example.contains("\nWRITER_PASSWORD=\n"));
    // In a cluster the owner's password is where only the init container gets it.
    assert_eq!(user(&text("kubernetes/secret.example.yaml")), ["numerator_writer"]);
    assert_eq!(user(&text("kubernetes/owner-secret.example.yaml")), ["numerator_owner"]);
    let deployment = text("kubernetes/deployment.yaml");
    let (before, containers) = deployment.split_once("\n      containers:\n").unwrap();
    let secrets = |part: &str| part.matches("name: numerator-owner\n").count();
    assert_eq!((secrets(before), secrets(containers)), (1, 0));
    let (_, init) = before.split_once("initContainers:").unwrap();
    let [service, owner] =
        ["name: numerator\n", "name: numerator-owner\n"].map(|name| init.find(name).unwrap());
    assert!(service < owner, "of two that set one variable the later prevails");
    assert!(init.contains("args: [\"migrate\", \"--roles\"]"));
    let map = text("kubernetes/configmap.yaml");
    assert!(!map.contains("postgres://"), "{map}");
}

/// Versions in which the flaws of 2025 and 2026 that let scripts run more than scripts are fixed.
#[test]
fn the_redis_of_the_composition_is_one_whose_scripts_stay_scripts() {
    const MENDED: [(u32, u32, u32); 6] =
        [(7, 2, 15), (7, 4, 10), (8, 2, 8), (8, 4, 5), (8, 6, 5), (8, 8, 1)];
    let compose = text("compose.yaml");
    let image = value(&compose, "image: docker.io/library/redis:");
    let mut parts = image.split('-').next().unwrap().split('.').map(|part| part.parse().unwrap());
    let mut part = || parts.next().expect("three parts");
    let (major, minor, patch) = (part(), part(), part());
    let is_mended = |&(of, line, from)| (major, minor) == (of, line) && patch >= from;
    assert!(MENDED.iter().any(is_mended) || (major, minor) > (8, 8), "{image}");
}

/// Only callers that the policy names reach the service, and it reaches nothing else.
#[test]
fn the_network_policy_names_who_comes_in_and_whereto_it_goes() {
    let policies = text("kubernetes/networkpolicy.yaml");
    assert_eq!(policies.split("\n---\n").count(), 3);
    for policy in policies.split("\n---\n") {
        let rules = |part: &str, whom: &str| {
            let Some((_, rules)) = policy.split_once(&format!("\n  {part}:\n")) else { return };
            let rules = rules.split("\n  egress:\n").next().unwrap();
            for rule in rules.split("\n    - ").map(|rule| rule.trim_start_matches("    - ")) {
                assert!(rule.starts_with(&format!("{whom}:\n")), "{part}: anybody: {rule}");
                assert!(rule.contains("ports:"), "{part}: any port: {rule}");
            }
        };
        rules("ingress", "from");
        rules("egress", "to");
    }
}

/// The unit's user is made anew at each start: a key of mode 0600 reaches it by a copy alone.
#[test]
fn the_unit_hands_keys_over_and_reads_the_log_filter_again() {
    let unit = text("numerator.service");
    assert!(unit.contains("\nDynamicUser=yes\n"));
    let names: Vec<&str> =
        unit.lines().filter_map(|l| l.strip_prefix("# LoadCredential=")).collect();
    assert!(!names.is_empty());
    for name in names {
        let (name, _) = name.split_once(':').unwrap();
        assert!(unit.contains(&format!("=%d/{name}\n")), "{name} is named by no setting");
    }
    let given = unit.lines().filter_map(|line| line.strip_prefix("# Environment="));
    let given = given.map(|line| line.split_once('=').unwrap());
    let environment: Vec<(String, String)> =
        given.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(environment.len(), 2);
    for (name, _) in &environment {
        let setting = name.trim_start_matches("NUMERATOR__").replace("__", ".").to_lowercase();
        let page = include_str!("../../../docs/settings.md");
        assert!(page.contains(&format!("| `{setting}` |")), "{setting}");
    }
    assert_eq!(value(&unit, "ExecReload="), "/bin/kill -HUP $MAINPID");
}

/// What the examples of proxies say of waits and bounds holds for the settings that they name.
#[test]
fn the_proxies_of_the_examples_wait_longer_than_a_process_and_ask_whether_it_is_ready() {
    let seconds = |text: &str, key: &str| -> Duration {
        let written = value(text, key).trim_end_matches(';').trim_end_matches('s');
        Duration::from_secs(written.parse().unwrap_or_else(|_| panic!("{key}: {written}")))
    };
    let defaults = Settings::load(&Sources {
        flags: vec![("data.dir".into(), "/x".into())],
        ..Sources::default()
    });
    let Settings { http, allocator, .. } = defaults.unwrap();
    let (haproxy, nginx) = (text("proxy/haproxy.cfg"), text("proxy/nginx.conf"));
    assert!(seconds(&haproxy, "timeout server ") > allocator.time_limit);
    assert!(seconds(&nginx, "proxy_read_timeout ") > allocator.time_limit);
    assert!(seconds(&nginx, "keepalive_timeout ") < HEADER_READ_TIMEOUT);
    assert_eq!(value(&haproxy, "option httpchk GET "), "/readyz");
    let number = |text: &str, key: &str| -> usize {
        let (_, rest) = text.split_once(key).unwrap_or_else(|| panic!("no {key}"));
        rest.split([' ', ';', '\n', 's', 'm']).next().unwrap().parse().unwrap()
    };
    assert!(number(&haproxy, "rise 2 maxconn ") < http.connections_per_peer_max);
    assert!(number(&nginx, "max_conns=") < http.connections_per_peer_max);
    assert!(number(&nginx, "client_max_body_size ") << 20 >= BATCH_BODY_BYTES_MAX);
    // The delay outlasts the looks of the proxy.
    let (inter, fall) = (number(&haproxy, " inter "), number(&haproxy, " fall "));
    assert!(number(&haproxy, "drain_delay = \"") > inter * fall);
    for line in haproxy.lines().chain(nginx.lines()) {
        let setting = line.trim().strip_prefix("#   ").and_then(|line| line.split_once(" = "));
        let Some((name, _)) = setting else { continue };
        let page = include_str!("../../../docs/settings.md");
        assert!(page.contains(&format!("| `http.{name}` |")), "{name}");
    }
}

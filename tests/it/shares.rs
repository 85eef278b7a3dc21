//! What one caller can take from the others, and from the process: connections, memory, the queue,
//! the log, open files.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use testkit::load::post;
use testkit::process::free_port;
use testkit::service::{Program, Service};

use crate::deployment::{Deployment, program};

/// Longest wait for what must come; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(60);

/// Clients that request a path again and again and never read, as long as they are kept.
fn deaf_clients(address: &str, path: &str, count: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(1_000);
    let connect = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nonblocking(true).unwrap();
        // As much as its sockets take; one that is already closed is as deaf.
        let _ = stream.write(request.as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

/// Memory of a process, in MiB: `VmRSS:` is what is in use, `VmHWM:` the most that ever was.
pub(crate) fn resident_mib(service: &Service, figure: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(figure)).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

/// Asks until there is an answer of this status, each time with a connection of its own.
async fn answers(url: &str, status: u16, service: &Service) {
    let deadline = Instant::now() + LIMIT;
    loop {
        let client = testkit::client_builder().timeout(Duration::from_secs(2)).build().unwrap();
        if client.get(url).send().await.is_ok_and(|answer| answer.status() == status) {
            return;
        }
        assert!(Instant::now() < deadline, "{url} does not answer: {}", service.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn clients_that_never_read_keep_no_probe_waiting() {
    let health = format!("127.0.0.1:{}", free_port());
    let mut deployment = Deployment::embedded();
    deployment.http = format!("health_listen = \"{health}\"\n");
    let service = deployment.serve();
    let deaf = deaf_clients(&health, "/metrics", 64);
    answers(&format!("http://{health}/readyz"), 200, &service).await;
    answers(&format!("http://{health}/metrics"), 200, &service).await;
    drop(deaf);
    // What has a listener of its own is shown nowhere else.
    for path in ["/healthz", "/readyz", "/metrics"] {
        let answer = testkit::get(format!("{}{path}", service.url)).await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    assert!(service.terminate());
}

#[tokio::test]
async fn clients_that_never_read_take_little_memory_and_are_left() {
    let mut deployment = Deployment::embedded();
    deployment.http = "connections_max = 301\n".into();
    let service = deployment.serve();
    let before = resident_mib(&service, "VmRSS:");
    let address = service.url.trim_start_matches("http://").to_owned();
    let deaf = deaf_clients(&address, "/openapi.json", 150);
    let more = deaf_clients(&address, "/metrics", 151);
    // Every place is taken until they are left.
    answers(&format!("{}/healthz", service.url), 200, &service).await;
    let grown = resident_mib(&service, "VmRSS:").saturating_sub(before);
    assert!(grown < 128, "{grown} MiB more than before");
    drop((deaf, more));
    let number = format!("{}/api/v1/documents/d1/generate-number", service.url);
    let (status, body) = post(&testkit::client(), &number, &json!({ "type": "SPO" })).await;
    assert_eq!(status, 201, "{body}");
    assert!(service.terminate());
}

/// A caller with a token.
pub(crate) struct TokenHolder {
    /// Shows it.
    pub(crate) client: Client,
    /// Itself.
    pub(crate) token: String,
}

/// Clients of [`clients`].
fn tokens(deployment: &mut Deployment, names: &[(&str, &str)]) -> Vec<Client> {
    clients(deployment, names).into_iter().map(|holder| holder.client).collect()
}

/// Makes tokens of these names, `further` settings with each: what `auth.tokens` has, and clients.
pub(crate) fn clients(deployment: &mut Deployment, names: &[(&str, &str)]) -> Vec<TokenHolder> {
    let mut holders = Vec::new();
    let mut sections = String::new();
    for (name, further) in names {
        let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
        let made: Value = serde_json::from_str(&made).unwrap();
        sections += &format!(
            "[[auth.tokens]]\nname = \"{name}\"\nsha256 = {}\n{further}\n",
            made["sha256"]
        );
        let mut headers = reqwest::header::HeaderMap::new();
        let token = made["token"].as_str().unwrap().to_owned();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        let client = testkit::client_builder().default_headers(headers).build().unwrap();
        holders.push(TokenHolder { client, token });
    }
    deployment.extra = sections;
    holders
}

/// Requests that wait, of all partitions.
async fn waiting(service: &Service) -> f64 {
    let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let text = text.text().await.unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("numerator_queue_length{"));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Goal: a request for one number does not wait for thousands of another caller. Method: while the
/// ledger is locked, one caller asks for 4,000 and then another for one, of the same counter; the
/// value shows the place in the queue.
#[tokio::test]
async fn a_caller_of_one_number_does_not_wait_for_all_that_another_asked_for() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let clients = tokens(&mut deployment, &[("heavy", ""), ("light", "")]);
    let service = deployment.serve();
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let holder = ledger.begin_with("begin immediate").await.unwrap();

    let batches = format!("{}/api/v1/document-numbering/batches", service.url);
    let heavy: Vec<_> = (0..4)
        .map(|batch| {
            let document = |id| json!({ "document_id": format!("{batch}-{id}"), "type": "LOAD" });
            let body = json!({ "documents": (0..1_000).map(document).collect::<Vec<_>>() });
            let (client, url) = (clients[0].clone(), batches.clone());
            tokio::spawn(async move { post(&client, &url, &body).await })
        })
        .collect();
    let deadline = Instant::now() + LIMIT;
    while waiting(&service).await < 4_000.0 {
        assert!(Instant::now() < deadline, "{}", service.log());
    }
    let one = format!("{}/api/v1/documents/one/generate-number", service.url);
    let client = clients[1].clone();
    let light = tokio::spawn(async move { post(&client, &one, &json!({ "type": "LOAD" })).await });
    while waiting(&service).await < 4_001.0 {
        assert!(Instant::now() < deadline, "{}", service.log());
    }
    holder.rollback().await.unwrap();

    let (status, body) = light.await.unwrap();
    assert_eq!(status, 201, "{body}");
    let value: u64 = body["serials"][0]["first"].as_str().unwrap().parse().unwrap();
    // The transaction that waited for the ledger, and a turn.
    assert!(value <= 600, "{value} of 4,001");
    for batch in heavy {
        let (status, body) = batch.await.unwrap();
        assert_eq!(status, 200, "{body}");
        let items = body["items"].as_array().unwrap();
        assert!(items.iter().all(|item| item["status"] == 201), "{body}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_caller_whose_queue_is_full_is_refused_and_another_is_not() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let clients = tokens(&mut deployment, &[("heavy", ""), ("light", "")]);
    deployment.extra += "[allocator]\nqueue_max = 1000\ncaller_queue_max = 300\nflight_max = 100\n";
    let service = deployment.serve();
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let holder = ledger.begin_with("begin immediate").await.unwrap();
    let document = |id| json!({ "document_id": format!("d{id}"), "type": "LOAD" });
    let body = json!({ "documents": (0..900).map(document).collect::<Vec<_>>() });
    let (client, url) =
        (clients[0].clone(), format!("{}/api/v1/document-numbering/batches", service.url));
    let heavy = tokio::spawn(async move { post(&client, &url, &body).await });
    let deadline = Instant::now() + LIMIT;
    while waiting(&service).await < 100.0 {
        assert!(Instant::now() < deadline, "{}", service.log());
    }
    let one = format!("{}/api/v1/documents/one/generate-number", service.url);
    let client = clients[1].clone();
    let light = tokio::spawn(async move { post(&client, &one, &json!({ "type": "LOAD" })).await });
    // Longer than the worker looks for a lock: it has read its whole inbox.
    tokio::time::sleep(Duration::from_millis(500)).await;
    holder.rollback().await.unwrap();
    assert_eq!(light.await.unwrap().0, 201);
    let (status, body) = heavy.await.unwrap();
    assert_eq!(status, 200, "{body}");
    let count = |status: u16| {
        let items = body["items"].as_array().unwrap();
        items.iter().filter(|item| item["status"] == status).count()
    };
    assert_eq!(count(201) + count(503), 900, "{body}");
    assert!((300..=500).contains(&count(201)), "{}", count(201));
    assert!(body.to_string().contains("allocator.caller_queue_max"), "{body}");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a service has one caller's part of the queue, for whichever people it asks. Method: while
/// the ledger is locked it asks for more people than one caller may have waiting.
#[tokio::test]
async fn a_service_that_names_many_people_fills_one_callers_part_of_the_queue() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let clients = tokens(&mut deployment, &[("desk", "speaks_for_people = true")]);
    deployment.extra += "[allocator]\nqueue_max = 1000\ncaller_queue_max = 30\nflight_max = 10\n\
                         [limits]\nuser_per_minute = 0\naddress_per_minute = 0\n";
    let service = deployment.serve();
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let holder = ledger.begin_with("begin immediate").await.unwrap();
    let ask = |person: u32| {
        let url = format!("{}/api/v1/documents/d{person}/generate-number", service.url);
        let request = clients[0].post(url).json(&json!({ "type": "LOAD" }));
        let request = request.header("on-behalf-of", format!("p{person}"));
        tokio::spawn(async move { request.send().await.unwrap().status().as_u16() })
    };
    let asked: Vec<_> = (0..200).map(ask).collect();
    let deadline = Instant::now() + LIMIT;
    while waiting(&service).await < 200.0 {
        assert!(Instant::now() < deadline, "{}", service.log());
    }
    holder.rollback().await.unwrap();
    let mut numbered = 0;
    for asked in asked {
        let status = asked.await.unwrap();
        assert!([201, 503].contains(&status), "{status}");
        numbered += usize::from(status == 201);
    }
    // Those of the transaction that waited for the ledger, and a full queue.
    assert!((30..=60).contains(&numbered), "{numbered} of 200");
    assert!(service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn a_token_asks_for_so_many_numbers_in_one_call() {
    let mut deployment = Deployment::embedded();
    let clients = tokens(&mut deployment, &[("few", "count_max = 3"), ("all", "")]);
    let service = deployment.serve();
    let url = format!("{}/api/v1/document-numbering/batches", service.url);
    let range = |count: u64| json!({ "type": "SPO", "date": "2024-01-22", "count": count });
    let list = |count: usize| {
        let document = |id| json!({ "document_id": format!("d{id}"), "type": "SPO" });
        json!({ "documents": (0..count).map(document).collect::<Vec<_>>() })
    };
    for (body, status, field) in [
        (range(3), 201, ""),
        (range(4), 422, "count"),
        (list(3), 200, ""),
        (list(4), 422, "documents"),
    ] {
        let (got, answer) = post(&clients[0], &url, &body).await;
        assert_eq!(got, status, "{answer}");
        assert_eq!(answer["field"].as_str().unwrap_or_default(), field, "{answer}");
        let is_told = answer["detail"].as_str().unwrap_or("count_max").contains("count_max");
        assert!(is_told, "{answer}");
    }
    assert_eq!(post(&clients[1], &url, &range(4)).await.0, 201);
}

/// A deployment whose service may have this many open files: softly, and at most.
fn with_files(soft: u32, hard: u32) -> Deployment {
    let limits = format!("--nofile={soft}:{hard}");
    let arguments = vec![limits, program().path.display().to_string()];
    Deployment::sqlite_of(Program { path: "/usr/bin/prlimit".into(), arguments }, None)
}

#[test]
fn open_files_are_raised_as_far_as_may_be_and_compared_with_the_bounds() {
    let deployment = with_files(256, 2_000);
    let service = deployment.serve();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let shown: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(shown, ["2000", "2000"]);
    let log = service.log();
    let warned = log.lines().find(|line| line.contains("http.connections_max")).expect("warned");
    assert!(warned.contains("2000") && warned.contains("10264"), "{warned}");
    assert!(service.terminate());

    let mut deployment = with_files(256, 2_000);
    deployment.http = "connections_max = 1500\n".into();
    let service = deployment.serve();
    assert!(!service.log().contains("open files"), "{}", service.log());
}

/// The protocol layer itself answers what it cannot read.
#[tokio::test]
async fn what_is_no_request_has_its_line_in_the_log() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let address = service.url.trim_start_matches("http://");
    let long = "x".repeat(300_000);
    for (sent, status) in [
        ("\u{1}\u{2}\r\n\r\n".to_owned(), "400"),
        (format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"), "4"),
        (format!("GET / HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"), "431"),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        // It may be closed before all is sent.
        let _ = stream.write_all(sent.as_bytes());
        let mut head = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut head).unwrap();
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    }
    let deadline = Instant::now() + LIMIT;
    let lines = || {
        let log = service.log();
        let lines = log.lines().filter(|line| line.contains("no request of HTTP/1.1"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    while lines().len() < 3 {
        assert!(Instant::now() < deadline, "{}", service.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for line in lines() {
        assert!(line.contains("request_id") && line.contains("127.0.0.1"), "{line}");
    }
}

#[tokio::test]
async fn counter_keys_are_in_the_metrics_only_where_they_are_wanted() {
    for (wanted, setting) in [(false, ""), (true, "counter_keys = true\n")] {
        let mut deployment = Deployment::embedded();
        deployment.extra = format!("[metrics]\nperiod = \"100ms\"\n{setting}");
        let service = deployment.serve();
        let number = format!("{}/api/v1/documents/d1/generate-number", service.url);
        let body = json!({ "type": "SPO", "date": "2024-01-22" });
        assert_eq!(post(&testkit::client(), &number, &body).await.0, 201);
        let deadline = Instant::now() + LIMIT;
        let line = loop {
            let text = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
            let text = text.text().await.unwrap();
            let metric = "numerator_counter_used_ratio{series=\"SPO\"";
            if let Some(line) = text.lines().find(|line| line.starts_with(metric)) {
                break line.to_owned();
            }
            assert!(Instant::now() < deadline, "{text}");
        };
        assert_eq!(line.contains("2024-01-22"), wanted, "{line}");
        assert_eq!(line.contains("key=\"#"), !wanted, "{line}");
    }
}

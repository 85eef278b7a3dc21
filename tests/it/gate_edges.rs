//! Identification and counting of callers with unusual headers: lists that begin with something
//! unreadable, addresses of one network, people of two services, invisible names.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use testkit::service::Service;

use crate::deployment::Deployment;

/// Longest wait for an answer; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(20);

/// Requests a minute of one person, and of one address, here.
const QUOTA: usize = 5;

const SPO: &str = "{\"type\":\"SPO\",\"date\":\"2024-01-22\"}";

/// The answer to bytes: status and text.
fn send(service: &Service, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(service.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(request).unwrap();
    let mut text = Vec::new();
    stream.read_to_end(&mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let status = text.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {text:?}"));
    (status.parse().unwrap(), text)
}

/// A request for the number of a document, with these header lines.
fn take(service: &Service, document: &str, headers: &[u8]) -> (u16, String) {
    let mut request = format!(
        "POST /api/v1/documents/{document}/generate-number HTTP/1.1\r\nhost: localhost\r\n"
    )
    .into_bytes();
    request.extend_from_slice(headers);
    let rest = format!(
        "content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SPO}",
        SPO.len()
    );
    request.extend_from_slice(rest.as_bytes());
    send(service, &request)
}

#[tokio::test]
async fn what_a_client_writes_before_its_address_hides_it_neither_from_journal_nor_log() {
    for (header, lines, address) in [
        ("x-forwarded-for", &[&b"X-Forwarded-For: \xff, 203.0.113.9\r\n"[..]][..], "203.0.113.9"),
        (
            "x-forwarded-for",
            &[b"X-Forwarded-For: \xff\xfe,\x80x, 203.0.113.9, 127.0.0.2\r\n"],
            "203.0.113.9",
        ),
        (
            "x-forwarded-for",
            &[b"X-Forwarded-For: \xff\r\nX-Forwarded-For: 203.0.113.9\r\n"],
            "203.0.113.9",
        ),
        ("x-forwarded-for", &[b"X-Forwarded-For: 203.0.113.9, \xff\r\n"], "127.0.0.1"),
        ("forwarded", &[b"Forwarded: for=\xff, for=203.0.113.9;proto=https\r\n"], "203.0.113.9"),
        ("forwarded", &[b"Forwarded: for=\"\xff\", for=\"[2001:db8::7]:99\"\r\n"], "2001:db8::7"),
        // A quotation that the client leaves open swallows nothing of the proxy's.
        ("forwarded", &[b"Forwarded: for=\"x, for=203.0.113.9\r\n"], "203.0.113.9"),
        ("forwarded", &[b"Forwarded: for=1.1.1.1;x=\"a\xff, for=203.0.113.9\r\n"], "203.0.113.9"),
        // A quoted sign of the proxy's own entry ends no entry.
        ("forwarded", &[b"Forwarded: for=1.1.1.1, for=203.0.113.9;x=\"a, b\"\r\n"], "203.0.113.9"),
    ] {
        let mut deployment = Deployment::embedded();
        deployment.http =
            format!("trusted_proxies = [\"127.0.0.0/8\"]\nforwarded_header = \"{header}\"\n");
        let service = deployment.serve();
        for lines in lines {
            let said = String::from_utf8_lossy(lines).into_owned();
            let (status, text) = take(&service, "d1", lines);
            assert_eq!(status, 201, "{said}: {text}");
            let url = format!("{}/api/v1/documents/d1/numbers", service.url);
            let rows: Value = testkit::get(url).await.unwrap().json().await.unwrap();
            assert_eq!(rows["numbers"][0]["ip_address"], address, "{said}: {rows}");
        }
        let deadline = Instant::now() + LIMIT;
        while !service.log().contains(&format!("ip=\"{address}\"")) {
            assert!(Instant::now() < deadline, "{}", service.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A deployment with this limit per person, and two services that ask for people.
fn services() -> (Deployment, [String; 2], String) {
    let mut deployment = Deployment::embedded();
    deployment.extra = format!(
        "[auth]\nmode = \"on\"\n[limits]\nuser_per_minute = {QUOTA}\naddress_per_minute = {QUOTA}\n"
    );
    let create = |name: &str, rest: &[&str]| {
        deployment.ok(&[&["token", "create", name][..], rest].concat()).trim().to_owned()
    };
    let tokens = ["erp", "crm"].map(|name| create(name, &["--speaks-for-people"]));
    let admin = create("admin", &["--role", "super-admin"]);
    (deployment, tokens, admin)
}

/// Previews for a person from an address; returns how many of `count` were admitted.
async fn admitted(
    service: &Service,
    token: &str,
    count: usize,
    principal: impl Fn(usize) -> (String, String),
) -> usize {
    let mut admitted = 0;
    for index in 0..count {
        let (person, address) = principal(index);
        let url = format!("{}/api/v1/document-numbering/preview", service.url);
        let request = testkit::client().post(url).bearer_auth(token).header("on-behalf-of", person);
        let request = match address.is_empty() {
            true => request,
            false => request.header("on-behalf-of-ip", address),
        };
        let answer = request.header("content-type", "application/json").body(SPO).send().await;
        match answer.unwrap().status().as_u16() {
            200 => admitted += 1,
            429 => {}
            status => panic!("{status}"),
        }
    }
    admitted
}

#[tokio::test]
async fn addresses_of_one_network_share_a_limit_as_connections_do() {
    let (deployment, [erp, _], _) = services();
    let service = deployment.serve();
    let of = async |address: fn(usize) -> String, name: &str| {
        let principal = |index: usize| (format!("{name}-{index}"), address(index));
        admitted(&service, &erp, 3 * QUOTA, principal).await
    };
    // Some places come back meanwhile, on a slow machine.
    let some = QUOTA..3 * QUOTA;
    let within = of(|index| format!("2001:db8:0:1::{index:x}"), "one").await;
    assert!(some.contains(&within) && within < 2 * QUOTA, "{within}");
    let within = of(|index| format!("2001:db8:0:1:ffff::{index:x}"), "same").await;
    assert!(within < QUOTA, "the network is used up: {within}");
    let apart = of(|index| format!("2001:db8:0:{:x}::1", index + 2), "apart").await;
    assert_eq!(apart, 3 * QUOTA, "networks of their own");
    let v4 = of(|index| format!("203.0.113.{index}"), "v4").await;
    assert_eq!(v4, 3 * QUOTA, "each an address of its own");
    let mapped = of(|_| "::ffff:192.0.2.9".to_owned(), "mapped").await;
    assert!(mapped < 2 * QUOTA, "{mapped}");
    let same = of(|_| "192.0.2.9".to_owned(), "plain").await;
    assert!(same < QUOTA, "the same address: {same}");
}

#[tokio::test]
async fn a_service_uses_up_the_quota_of_no_other_ones_people() {
    let (deployment, [erp, crm], _) = services();
    let service = deployment.serve();
    let ann = |_| ("ann".to_owned(), String::new());
    assert!(admitted(&service, &erp, 3 * QUOTA, ann).await < 2 * QUOTA);
    assert_eq!(admitted(&service, &crm, QUOTA, ann).await, QUOTA, "the person of that service");
    // A name that reads like another service's person is refused.
    let odd = |_| ("crm/bob".to_owned(), String::new());
    assert!(admitted(&service, &erp, 3 * QUOTA, odd).await < 2 * QUOTA);
    let bob = |_| ("bob".to_owned(), String::new());
    assert_eq!(admitted(&service, &crm, QUOTA, bob).await, QUOTA);
}

/// Invisible characters, or those that change the direction of visible ones.
const UNSEEN: [&str; 9] = [
    "\u{202e}",
    "\u{2028}",
    "\u{200b}",
    "\u{e0041}",
    "\u{feff}",
    "\u{ad}",
    "\u{2066}",
    "\u{85}",
    "\u{3164}",
];

#[tokio::test]
async fn the_name_of_a_person_is_seen_as_a_whole() {
    let (deployment, [erp, _], _) = services();
    let service = deployment.serve();
    for unseen in UNSEEN {
        let encoded: String = unseen.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for person in [format!("ann{encoded}"), format!("a{encoded}nn"), format!("{encoded}ann")] {
            let headers = format!("authorization: Bearer {erp}\r\non-behalf-of: {person}\r\n");
            let (status, text) = take(&service, "d1", headers.as_bytes());
            assert!(status == 422 && text.contains("On-Behalf-Of"), "{unseen:?} {status}: {text}");
        }
    }
    let headers = format!(
        "authorization: Bearer {erp}\r\non-behalf-of: %E0%B8%AA%E0%B8%A1 O'Neill (a/b)\r\n"
    );
    let (status, text) = take(&service, "d1", headers.as_bytes());
    assert_eq!(status, 201, "{text}");
}

#[tokio::test]
async fn the_lists_of_a_token_hold_what_can_be_seen() {
    let (deployment, _, admin) = services();
    let service = deployment.serve();
    let url = format!("{}/api/v1/document-numbering/tokens", service.url);
    let create = async |name: &str, field: &str, code: &str| {
        let order = json!({ "name": name, field: [code] });
        let answer =
            testkit::client().post(&url).bearer_auth(&admin).json(&order).send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap()["field"].clone())
    };
    for field in ["series", "projects"] {
        for code in ["A\u{0}", "A\n", "A\u{1b}[2J", "\u{7f}"].into_iter().chain(UNSEEN) {
            assert_eq!(create("new", field, code).await, (422, json!(field)), "{code:?}");
        }
        let (status, _) = create(field, field, "คคง. (ก) A-1").await;
        assert_eq!(status, 201);
    }
    let refused = deployment.run(&["token", "create", "cli", "--project", "A\u{202e}"]);
    assert!(!refused.status.success());
}

#[test]
fn a_request_names_itself_once() {
    let (deployment, [erp, crm], _) = services();
    let service = deployment.serve();
    for headers in [
        format!("authorization: Bearer {erp}\r\nauthorization: Bearer {crm}\r\n"),
        format!("authorization: Bearer {erp}\r\nauthorization: Bearer {erp}\r\n"),
        format!("authorization: Bearer none\r\nAuthorization: Bearer {erp}\r\n"),
        format!("authorization: Basic x\r\nauthorization: Bearer {erp}\r\n"),
        format!("authorization: \r\nauthorization: Bearer {erp}\r\n"),
    ] {
        let (status, text) = take(&service, "d1", headers.as_bytes());
        assert!(status == 401 && text.contains("once"), "{headers}{status}: {text}");
    }
    let (status, text) =
        take(&service, "d1", format!("authorization: Bearer {erp}\r\n").as_bytes());
    assert_eq!(status, 201, "{text}");
}

#[test]
fn a_coding_that_nobody_here_knows_is_501_and_ends_the_connection() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let chunks = format!("{:x}\r\n{SPO}\r\n0\r\n\r\n", SPO.len());
    let ask = |line: &str, coding: &str, rest: &str| {
        let request = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{coding}\r\n\
             {chunks}{rest}"
        );
        send(&service, request.as_bytes())
    };
    let number = "POST /api/v1/documents/d1/generate-number";
    let next = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    for coding in [
        "transfer-encoding: x, chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, chunked\r\n",
        "transfer-encoding: chunked;x=y, chunked\r\n",
        "transfer-encoding: identity, chunked\r\n",
    ] {
        // By both doors.
        for line in [number, "POST /api/v1/document-numbering/preview", "GET /healthz"] {
            let (status, text) = ask(line, coding, next);
            assert_eq!(status, 501, "{line} {coding}: {text}");
            assert!(text.contains("connection: close"), "{text}");
            assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "nothing behind it is read: {text}");
        }
    }
    for coding in ["transfer-encoding: chunked\r\n", "Transfer-Encoding: CHUNKED\r\n"] {
        let (status, text) = ask(number, &format!("{coding}connection: close\r\n"), "");
        assert!(status == 201 || status == 200, "{coding}: {text}");
    }
}

/// Series that have a label of their own.
const LABELS_MAX: usize = 200;

#[tokio::test]
async fn a_series_that_was_removed_gives_its_label_back() {
    let deployment = Deployment::embedded();
    let mut file = String::new();
    for index in 0..LABELS_MAX {
        file += &format!(
            "[[series]]\ncode = \"GONE{index}\"\nname = \"G\"\ntemplate = \"G{index}-{{SEQ:3}}\"\n\
             serves = {{ types = [\"GONE{index}\"] }}\nserials = [{{ counter = [\"type\"] }}]\n"
        );
    }
    let path = deployment.path("gone.toml");
    std::fs::write(&path, file).unwrap();
    deployment.apply(&[path]);
    let service = deployment.serve();
    let configs = format!("{}/api/v1/document-numbering/configs", service.url);
    loop {
        let list: Value = testkit::get(&configs).await.unwrap().json().await.unwrap();
        let page = list["configs"].as_array().unwrap();
        if page.is_empty() {
            break;
        }
        for config in page {
            let url = format!("{configs}/{}?reason=typing%20error", config["config_id"]);
            let request =
                testkit::client().request(Method::DELETE, url).header("if-match", "\"1\"");
            let told = request.send().await.unwrap();
            assert_eq!(told.status(), 204, "{config}: {:?}", told.text().await);
        }
    }
    let real = json!({
        "code": "REAL", "name": "REAL", "template": "R-{SEQ:3}", "serves": { "types": ["REAL"] },
        "serials": [{ "counter": ["type"] }], "reason": "test",
    });
    let (status, body) = testkit::load::post(&testkit::client(), &configs, &real).await;
    assert_eq!(status, 201, "{body}");
    let url = format!("{}/api/v1/documents/d1/generate-number", service.url);
    let order = json!({ "type": "REAL" });
    for status in [201, 200] {
        assert_eq!(testkit::load::post(&testkit::client(), &url, &order).await.0, status);
    }
    let metrics = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for line in [
        "numerator_issued_total{series=\"REAL\",path=\"database\"} 1\n",
        "numerator_issued_total{series=\"REAL\",path=\"redis\"} 0\n",
        "numerator_replayed_total{series=\"REAL\"} 1\n",
    ] {
        assert!(metrics.contains(line), "{line} is missing from\n{metrics}");
    }
    for gone in ["series=\"GONE", "series=\"other\""] {
        assert!(!metrics.contains(gone), "{gone} is there still");
    }
}

//! Bytes that no client sends: requests of every kind, corrupted at random, in pieces, cut short,
//! one after the other, by callers that leave without their answer. What it cannot express: more
//! callers than a connection bound, slow ones (`shares`), and a lost store (`faults`).

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use testkit::load::post;

use crate::deployment::Deployment;

/// Time of the test if `WIRE_TEST_TIME_MS` is not set: short, for runs of all tests.
const GLANCE: Duration = Duration::from_secs(2);

/// Longest wait for the end of a connection; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a caller waits for bytes before it ends its sending side.
const TIMEOUT: Duration = Duration::from_millis(20);

/// Connections at a time.
const CALLERS: u64 = 8;

/// A request's line and body; without a body there is none.
const REQUESTS: [(&str, &str); 22] = [
    ("POST /api/v1/documents/d#/generate-number", r#"{"type":"SPO","date":"2024-01-22"}"#),
    ("POST /api/v1/documents/d#/generate-number", r#"{"type":"DRAWING","context":{"A":"ก"}}"#),
    ("POST /api/v1/document-numbering/batches", r#"{"type":"SPO","count":3,"expand":true}"#),
    (
        "POST /api/v1/document-numbering/batches",
        r#"{"documents":[{"document_id":"b#","type":"SPO","date":"2024-01-23"},{"type":"X"}]}"#,
    ),
    ("POST /api/v1/document-numbering/preview", r#"{"type":"SPO","date":"2024-01-22"}"#),
    ("GET /api/v1/documents/d#/numbers", ""),
    ("POST /api/v1/documents/d#/revisions", r#"{"rev":"A"}"#),
    ("GET /api/v1/document-numbering/configs", ""),
    (
        "POST /api/v1/document-numbering/configs",
        r#"{"code":"W#","name":"W","template":"W#-{SEQ:4}","serves":{"types":["W#"]},
            "serials":[{"reset":"none"}],"reason":"spoilt"}"#,
    ),
    (
        "PUT /api/v1/document-numbering/configs/99",
        r#"{"code":"W#","name":"W","template":"{SEQ:4}","serves":{"types":["W#"]},
            "serials":[{"reset":"none"}],"reason":"spoilt"}"#,
    ),
    ("GET /api/v1/document-numbering/configs/1", ""),
    ("GET /api/v1/document-numbering/configs/1/versions/1", ""),
    ("GET /api/v1/document-numbering/numbers?type=SPO&limit=10", ""),
    ("GET /api/v1/document-numbering/numbers/SPO-20240122-001", ""),
    (
        "POST /api/v1/serials/unified",
        r#"{"source":{"system":"C0001","module":"A01","instance":"01"}}"#,
    ),
    ("POST /api/v1/serials/interface/check", r#"{"serial":"C0001","window":"1d"}"#),
    ("POST /api/v1/serials/system/begin", r#"{"serial":"C0001A01012024012200000001"}"#),
    ("GET /api/v1/serials/unified/C0001A01012024012200000001", ""),
    ("GET /healthz", ""),
    ("GET /readyz", ""),
    ("GET /metrics", ""),
    ("GET /openapi.json", ""),
];

/// What is inserted into a request: the elements of its language, and others.
const WORDS: [&str; 40] = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    ":",
    "/",
    "?",
    "&",
    "%",
    "%2e%2e",
    "%ff",
    "\"",
    "\\",
    "\\u0000",
    "{",
    "}",
    "[",
    "]",
    ",",
    "null",
    "-1",
    "1e999",
    "9007199254740993",
    "\u{202e}",
    "\u{feff}",
    "ก",
    "HTTP/1.1",
    "HTTP/1.0",
    "HEAD ",
    "OPTIONS ",
    "transfer-encoding: chunked\r\n",
    "0\r\n\r\n",
    "ffffffffffffffff\r\n",
    "content-length: 5\r\n",
    "host: evil.example\r\n",
    "expect: 100-continue\r\n",
    "idempotency-key: k\r\n",
    "content-encoding: gzip\r\n",
    "upgrade: h2c\r\n",
];

/// A sound request of the list.
fn request(rng: &mut Rng) -> Vec<u8> {
    let (line, body) = REQUESTS[rng.usize(..REQUESTS.len())];
    let own = rng.u32(..).to_string();
    let (line, body) = (line.replace('#', &own), body.replace('#', &own));
    let close = if rng.bool() { "connection: close\r\n" } else { "" };
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\n{close}content-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Changes the bytes in some places.
fn spoil(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        let end = (at + rng.usize(..16)).min(bytes.len());
        match rng.u8(..6) {
            0 => bytes.splice(at..end, WORDS[rng.usize(..WORDS.len())].bytes()).for_each(drop),
            1 => bytes.splice(at..at, WORDS[rng.usize(..WORDS.len())].bytes()).for_each(drop),
            2 => bytes.splice(at..end, []).for_each(drop),
            3 => bytes[at..end].iter_mut().for_each(|byte| *byte = rng.u8(..)),
            4 => {
                let again = bytes[at..end].repeat(rng.usize(1..400));
                bytes.splice(at..at, again).for_each(drop);
            }
            _ => bytes.truncate(at),
        }
    }
}

/// The answers in the bytes that a service sent: status and body. Ends at what has no length.
fn answers(mut bytes: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let status = head.strip_prefix("http/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        let Some(status) = status else { break };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        let rest = &bytes[end + 4..];
        // That of HEAD has a length and no body.
        found.push((status, rest.get(..length).unwrap_or_default()));
        bytes = rest.get(length..).unwrap_or_default();
    }
    found
}

/// Reads until the service closes, or, if the caller leaves, until nothing comes for a moment.
fn read(stream: &mut TcpStream, leaves: bool) -> Vec<u8> {
    let (mut received, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    let mut is_open = true;
    let deadline = Instant::now() + LIMIT;
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return received,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                if leaves {
                    return received;
                }
                if is_open && stream.shutdown(Shutdown::Write).is_err() {
                    return received;
                }
                is_open = false;
                assert!(Instant::now() < deadline, "a connection that is not closed");
            }
            // Closed with something unread.
            Err(_) => return received,
        }
    }
}

/// Sends some requests over one connection; returns what came back.
fn converse(rng: &mut Rng, address: &str) -> (Vec<u8>, Vec<u8>) {
    let mut sent = Vec::new();
    for _ in 0..rng.usize(1..4) {
        let mut one = request(rng);
        if rng.u8(..4) > 0 {
            spoil(rng, &mut one);
        }
        sent.extend(one);
    }
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    let pieces = if rng.u8(..4) == 0 { rng.usize(1..64) } else { sent.len().max(1) };
    for piece in sent.chunks(pieces) {
        // The service may have closed already.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let leaves = rng.u8(..8) == 0;
    let received = if rng.u8(..16) == 0 { Vec::new() } else { read(&mut stream, leaves) };
    (sent, received)
}

/// What one caller saw: answers by status, and each number with the document that it was given to.
#[derive(Default)]
struct Seen {
    statuses: BTreeMap<u16, u64>,
    numbers: Vec<(String, Value)>,
}

/// Talks until the time is over.
fn talk(seed: u64, address: &str, until: Instant) -> Seen {
    let (mut rng, mut seen) = (Rng::with_seed(seed), Seen::default());
    while Instant::now() < until {
        let (sent, received) = converse(&mut rng, address);
        for (status, body) in answers(&received) {
            let told = || String::from_utf8_lossy(&sent).into_owned();
            assert!(
                status < 500 || status == 501,
                "{status} {}\n{}",
                String::from_utf8_lossy(body),
                told()
            );
            *seen.statuses.entry(status).or_default() += 1;
            let body: Value = serde_json::from_slice(body).unwrap_or_default();
            if let (201, Some(number)) = (status, body["document_number"].as_str()) {
                seen.numbers.push((number.to_owned(), body["document_id"].clone()));
            }
        }
    }
    seen
}

/// Goal: whatever arrives, the service answers below 500, or 501 to a coding, or closes, loses no
/// number that it answered, gives none to two documents, and serves the next caller. Method: eight
/// callers send corrupted requests for as long as `WIRE_TEST_TIME_MS` says; `WIRE_TEST_SEED`
/// repeats a failure.
#[tokio::test]
async fn spoilt_bytes_cost_no_number_no_answer_above_499_and_no_service() {
    let set = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let time = set("WIRE_TEST_TIME_MS").map_or(GLANCE, Duration::from_millis);
    let seed = set("WIRE_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("WIRE_TEST_SEED={seed}");
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let address = service.url.trim_start_matches("http://").to_owned();
    let until = Instant::now() + time;
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let address = address.clone();
            std::thread::spawn(move || talk(seed.wrapping_add(caller), &address, until))
        })
        .collect();
    let (mut statuses, mut holders) = (BTreeMap::new(), BTreeMap::new());
    for caller in callers {
        let seen = caller.join().unwrap();
        for (status, count) in seen.statuses {
            *statuses.entry(status).or_insert(0) += count;
        }
        for (number, document) in seen.numbers {
            let holder = holders.entry(number.clone()).or_insert_with(|| document.clone());
            assert_eq!(*holder, document, "{number} was given to two documents");
        }
    }
    println!("answers by status: {statuses:?}; numbers: {}", holders.len());
    for expected in [200, 201, 400, 422] {
        assert!(statuses.contains_key(&expected), "none of {expected}: {statuses:?}");
    }

    let next = format!("{}/api/v1/documents/next/generate-number", service.url);
    let body = json!({ "type": "SPO", "date": "2024-01-22" });
    let (status, answer) = post(&testkit::client(), &next, &body).await;
    assert_eq!(status, 201, "{answer}");
    let log = service.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(service.terminate());
    let ledger = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    for (number, document) in &holders {
        let row = "select document_id from journal where number = ?";
        let row: Option<Option<String>> =
            sqlx::query_scalar(row).bind(number).fetch_optional(&ledger).await.unwrap();
        assert_eq!(row.map(|id| json!(id)).as_ref(), Some(document), "{number}");
    }
    ledger.close().await;
    deployment.assert_clean();
}

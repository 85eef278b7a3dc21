//! How much of the process's memory and of the ledger's connections one caller can hold: bodies
//! that never end, answers that are never read, reads that take long.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::Client;
use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::service::Service;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinHandle;

use crate::deployment::Deployment;
use crate::load::is_long;
use crate::shares::{clients, resident_mib};

/// Longest wait for an expected event; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// Connections of one caller that sends bodies and never ends them, in the long form too.
const SENDERS: [usize; 2] = [300, 1_500];

/// Connections of one caller that ask for a batch at once, in the long form too.
const ASKERS: [usize; 2] = [200, 1_500];

/// A connection whose answer is hardly read.
type Unread = tokio::net::TcpStream;

/// A body's bytes as they are announced, and how many of them are sent.
const BODY_BYTES: (usize, usize) = (1_040_000, 1_030_000);

/// Versions of one series, of some 40 KiB each.
const VERSIONS: u32 = 400;

/// Series of some 40 KiB each, which are more than a page, and small ones.
const LARGE: usize = 30;
const SMALL: usize = 110;

/// The highest memory use of a process so far, in MiB.
fn peak_mib(service: &Service) -> u64 {
    resident_mib(service, "VmHWM:")
}

fn batches(service: &Service) -> String {
    format!("{}/api/v1/document-numbering/batches", service.url)
}

/// A connection over which most of a batch was sent, as far as the service took it.
fn send_and_stall(address: &str, token: &str, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    let (announced, _) = BODY_BYTES;
    let head = format!(
        "POST /api/v1/document-numbering/batches HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {announced}\r\n\r\n"
    );
    // A connection without room is answered and closed meanwhile.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(sent));
    stream
}

/// Waits until the service has read everything that was sent to it and that it intends to read.
async fn until_all_is_read(service: &Service) {
    let port: u16 = service.url.rsplit_once(':').unwrap().1.parse().unwrap();
    let own = format!(":{port:04X}");
    let unread = || {
        let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
        // Its own address, the other one, the state, what waits to be sent and to be read.
        let waits = |line: &&str| {
            let parts: Vec<&str> = line.split_whitespace().collect();
            let is_open = parts[3] == "01" && parts[1].ends_with(&own);
            is_open && !parts[4].ends_with(":00000000")
        };
        sockets.lines().skip(1).filter(waits).count()
    };
    let deadline = Instant::now() + LIMIT;
    while unread() > 0 {
        assert!(Instant::now() < deadline, "{} connections have something unread", unread());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A body of about this many bytes, of a batch of one document.
fn batch(document: &str, bytes: usize) -> Value {
    json!({ "documents": [
        { "document_id": document, "type": "LOAD", "context": { "BLANKS": " ".repeat(bytes) } },
    ] })
}

/// Goal: one caller's bodies take a small part of the memory, however many connections it has, and
/// exclude no other caller. Method: as many connections send nearly a whole batch each, and stop.
#[tokio::test]
async fn bodies_of_one_caller_take_a_small_part_of_the_memory_and_keep_nobody_else_out() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let callers = clients(&mut deployment, &[("heavy", ""), ("light", "")]);
    let service = deployment.serve();
    let before = peak_mib(&service);
    let address = service.url.trim_start_matches("http://").to_owned();
    let (token, count) = (callers[0].token.clone(), SENDERS[usize::from(is_long())]);
    let sending = move || {
        let sent = [b"{\"documents\":[", " ".repeat(BODY_BYTES.1).as_bytes()].concat();
        (0..count).map(|_| send_and_stall(&address, &token, &sent)).collect::<Vec<_>>()
    };
    let senders = tokio::task::spawn_blocking(sending).await.unwrap();
    until_all_is_read(&service).await;
    let grown = peak_mib(&service) - before;
    assert!(grown < 128, "{grown} MiB more than before");

    let (heavy, light) = (&callers[0].client, &callers[1].client);
    let (url, large) = (batches(&service), batch("d1", 6_000));
    let refused = heavy.post(&url).json(&large).send().await.unwrap();
    let wait_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert_eq!(wait_s, 1);
    let refused: Value = refused.json().await.unwrap();
    assert_eq!(
        (&refused["code"], &refused["number_taken"], &refused["retryable"]),
        (&json!("queue-full"), &json!("no"), &json!(true)),
        "{refused}"
    );
    assert_eq!(post(light, &url, &large).await.0, 200, "another caller has its own part");
    let one = format!("{}/api/v1/documents/one/generate-number", service.url);
    let (status, body) = post(heavy, &one, &json!({ "type": "LOAD" })).await;
    assert_eq!(status, 201, "what is small has room: {body}");

    drop(senders);
    let deadline = Instant::now() + LIMIT;
    while post(heavy, &url, &large).await.0 != 200 {
        assert!(Instant::now() < deadline, "its room does not come back: {}", service.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(service.terminate());
}

/// Connections that send a batch, its last byte when all have sent the rest: each is answered
/// before it may know of another one.
async fn ask_all_at_once(address: &str, token: &str, body: &str, count: usize) -> Vec<Unread> {
    let request = format!(
        "POST /api/v1/document-numbering/batches HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (most, last) = request.split_at(request.len() - 1);
    let mut streams = Vec::new();
    for _ in 0..count {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        stream.write_all(most.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    for stream in &mut streams {
        stream.write_all(last.as_bytes()).await.unwrap();
    }
    streams
}

/// Goal: answers to one caller's simultaneous batches take a small part of the memory, and exclude
/// no other caller. Method: lists of a thousand things that are not documents, which cost their
/// caller nothing and are answered one by one.
#[tokio::test]
async fn answers_of_batches_that_come_at_once_take_a_small_part_of_the_memory() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let callers = clients(&mut deployment, &[("heavy", ""), ("light", "")]);
    let service = deployment.serve();
    let before = peak_mib(&service);
    let address = service.url.trim_start_matches("http://").to_owned();
    let (count, wrong) = (ASKERS[usize::from(is_long())], json!({ "documents": vec![0; 1_000] }));
    let mut unread = ask_all_at_once(&address, &callers[0].token, &wrong.to_string(), count).await;
    let mut statuses = std::collections::BTreeMap::<String, usize>::new();
    for stream in &mut unread {
        let mut start = [0; 12];
        let reading = tokio::time::timeout(LIMIT, stream.read_exact(&mut start));
        reading.await.expect("an answer").unwrap();
        *statuses.entry(String::from_utf8_lossy(&start[9..]).into()).or_default() += 1;
    }
    let grown = peak_mib(&service) - before;
    assert!(grown < 96, "{grown} MiB more than before: {statuses:?}");
    assert!(statuses.keys().eq(["200", "503"]), "{statuses:?}");

    let document = |id| json!({ "document_id": format!("d{id}"), "type": "LOAD" });
    let all = json!({ "documents": (0..1_000).map(document).collect::<Vec<_>>() });
    let (status, body) = post(&callers[1].client, &batches(&service), &all).await;
    assert_eq!(status, 200, "another caller has its own part: {body}");
    let one = json!({ "documents": [document(5_000)] });
    let (status, body) = post(&callers[0].client, &batches(&service), &one).await;
    assert_eq!(status, 200, "what is small has room: {body}");
    drop(unread);
    assert!(service.terminate());
}

/// A deployment with a series of many large versions, one of which is in force, and many series.
async fn with_large_versions() -> Deployment {
    let deployment = Deployment::embedded();
    let projects: Vec<String> = (0..700).map(|i| format!("\"{i:0>50}\"")).collect();
    let mut texts = [String::new(), String::new()];
    for i in 0..LARGE + SMALL {
        let (description, projects) = match i {
            0..LARGE => ("𝒳".repeat(1_000), projects.join(", ")),
            _ => (String::new(), String::new()),
        };
        // A file has a mebibyte at most.
        texts[i % 2] += &format!(
            "[[series]]\ncode = \"S{i:03}\"\nname = \"S\"\ndescription = \"{description}\"\n\
             template = \"S{i:03}-{{SEQ:4}}\"\n\
             serves = {{ types = [\"S{i:03}\"], projects = [{projects}] }}\n\
             [[series.serials]]\ncounter = [\"type\"]\n"
        );
    }
    let file = |(place, text): (usize, String)| {
        let file = deployment.path(&format!("many-{place}.toml"));
        std::fs::write(&file, text).unwrap();
        file
    };
    let files: Vec<_> = texts.into_iter().enumerate().map(file).collect();
    deployment.apply(&files);
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let copies = "insert into series_version \
                  (series_id, version, definition, saved_by, reason, saved_at_us, active) \
                  with recursive n(i) as (select 2 union all select i + 1 from n where i < $1) \
                  select v.series_id, n.i, v.definition, v.saved_by, v.reason, v.saved_at_us, \
                  v.active from series_version v join series s using (series_id), n \
                  where s.code = 'S000' and v.version = 1";
    sqlx::query(copies).bind(VERSIONS).execute(&pool).await.unwrap();
    pool.close().await;
    deployment
}

/// All rows of a list, page by page; and how many the first page has.
async fn pages(url: &str, list: &str, from: &str) -> (Vec<Value>, usize) {
    let (mut rows, mut first, mut next) = (Vec::new(), 0, None::<String>);
    loop {
        let between = if url.contains('?') { '&' } else { '?' };
        let place = next.map(|next| format!("{between}{from}={next}")).unwrap_or_default();
        let answer = testkit::get(format!("{url}{place}")).await.unwrap();
        let text = answer.text().await.unwrap();
        assert!(text.len() <= 1_100_000, "{} bytes", text.len());
        let page: Value = serde_json::from_str(&text).unwrap();
        let found = page[list].as_array().unwrap_or_else(|| panic!("{text}"));
        assert!(!found.is_empty(), "an empty page");
        rows.extend(found.iter().cloned());
        first = if first == 0 { rows.len() } else { first };
        next = match &page["next"] {
            Value::Null => return (rows, first),
            Value::String(next) => Some(next.clone()),
            number => Some(number.to_string()),
        };
    }
}

/// Clients that request a path some times and never read.
fn deaf_clients(address: &str, path: &str, count: usize) -> Vec<TcpStream> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").repeat(8);
    let connect = |_| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    };
    (0..count).map(connect).collect()
}

/// Goal: pages of large rows end by their bytes, and pages that are never read take a small part of
/// the memory and delay no other caller. Method: clients that never read request the versions of a
/// series that has 16 MiB of them; what they have not read is not kept.
#[tokio::test]
async fn pages_of_configs_and_versions_end_at_a_mebibyte_and_unread_ones_take_little_memory() {
    let deployment = with_large_versions().await;
    let service = deployment.serve();
    let configs = format!("{}/api/v1/document-numbering/configs", service.url);
    let (all, first) = pages(&configs, "configs", "after").await;
    let codes: Vec<&str> = all.iter().filter_map(|config| config["code"].as_str()).collect();
    assert!(codes.is_sorted() && codes.len() >= LARGE + SMALL, "{codes:?}");
    assert!((1..100).contains(&first), "{first} in a page");
    for (query, rows, last) in [("after=S029", 100, "S129"), ("after=S029&limit=7", 7, "S036")] {
        let page = testkit::get(format!("{configs}?{query}")).await.unwrap();
        let page: Value = page.json().await.unwrap();
        assert_eq!(page["configs"].as_array().map(Vec::len), Some(rows), "{query}");
        assert_eq!(page["next"], last, "{query}");
    }

    let versions = format!("{configs}/S000/versions");
    for from in ["upto", "after"] {
        let (all, first) = pages(&versions, "versions", from).await;
        let numbers: Vec<u64> = all.iter().filter_map(|it| it["version"].as_u64()).collect();
        let wanted: Vec<u64> = (1..=u64::from(VERSIONS)).rev().collect();
        assert_eq!(numbers, wanted);
        assert!((2..100).contains(&first), "{first} in a page");
    }
    let few = testkit::get(format!("{versions}?limit=2")).await.unwrap();
    let few: Value = few.json().await.unwrap();
    assert_eq!(few["versions"].as_array().map(Vec::len), Some(2));
    assert_eq!(few["next"], VERSIONS - 2);

    let before = peak_mib(&service);
    let address = service.url.trim_start_matches("http://").to_owned();
    let deaf = deaf_clients(&address, "/api/v1/document-numbering/configs/S000/versions", 12);
    let answered = tokio::task::spawn_blocking(move || {
        deaf.iter().for_each(|stream| assert!(stream.peek(&mut [0]).is_ok_and(|n| n == 1)));
        deaf
    });
    let deaf = answered.await.unwrap();
    let grown = peak_mib(&service) - before;
    assert!(grown < 64, "{grown} MiB more than before");
    drop(deaf);
    assert!(service.terminate());
}

/// A caller that asks for something over and over, each time over a connection of its own.
fn ask_at_once(client: &Client, url: &str, count: usize) -> Vec<JoinHandle<u16>> {
    let ask = |_| {
        let request = client.get(url);
        tokio::spawn(async move { request.send().await.map_or(0, |it| it.status().as_u16()) })
    };
    (0..count).map(ask).collect()
}

/// Goal: whatever one caller reads, half of the ledger's connections are left to others: numbers
/// are taken, and another one's reads have their turns. Method: a table that is only read is locked
/// by another session, while one caller requests it three hundred times at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_of_one_caller_leave_the_ledger_to_who_takes_numbers_and_others_their_turns() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("reads"), None);
    deployment.apply_load_series();
    let further = "roles = [\"caller\", \"operator\"]";
    let callers = clients(&mut deployment, &[("eve", further), ("light", further)]);
    let service = deployment.serve();
    let (eve, light) = (&callers[0].client, &callers[1].client);
    let number =
        |document: &str| format!("{}/api/v1/documents/{document}/generate-number", service.url);
    let load = json!({ "type": "LOAD" });
    assert_eq!(post(light, &number("d0"), &load).await.0, 201);

    let pool = sqlx::PgPool::connect(&postgres.url("reads")).await.unwrap();
    let mut holder = pool.begin().await.unwrap();
    let lock = "lock table event in access exclusive mode";
    sqlx::query(lock).execute(&mut *holder).await.unwrap();
    let events = format!("{}/api/v1/document-numbering/events", service.url);
    let done = Arc::new(AtomicUsize::new(0));
    let asked = ask_at_once(eve, &events, 300).into_iter().map(|asked| {
        let done = Arc::clone(&done);
        tokio::spawn(async move {
            let status = asked.await.unwrap();
            done.fetch_add(1, Ordering::Relaxed);
            status
        })
    });
    let asked: Vec<_> = asked.collect();
    // A caller with a full queue of them is refused immediately, and is sent no further.
    let deadline = Instant::now() + LIMIT;
    while done.load(Ordering::Relaxed) < 30 {
        assert!(Instant::now() < deadline, "all of them wait: {}", service.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for document in ["d1", "d2", "d3"] {
        let (status, body) = post(light, &number(document), &load).await;
        assert_eq!(status, 201, "{body} {}", service.log());
    }
    let refused = done.load(Ordering::Relaxed);
    assert!(refused < 60, "{refused} of three hundred were answered under the lock");

    let mut own = ask_at_once(light, &events, 1);
    // It is in the queue by then; nothing shows that.
    tokio::time::sleep(Duration::from_millis(300)).await;
    holder.rollback().await.unwrap();
    assert_eq!(own.pop().unwrap().await.unwrap(), 200, "{}", service.log());
    let before = done.load(Ordering::Relaxed) - refused;
    let mut statuses = Vec::new();
    for asked in asked {
        statuses.push(asked.await.unwrap());
    }
    let served = statuses.iter().filter(|status| **status == 200).count();
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    assert!(
        served >= 200 && before <= served / 2,
        "{before} of {served} came before another one's"
    );
    assert!(service.terminate());
    deployment.assert_clean();
}

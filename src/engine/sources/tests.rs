//! Sources of all kinds, at a real server on loopback: the requests that they get, and the outcome
//! of their answers.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::*;

/// Lines of refusals in a second.
const LINES_MAX: u32 = 100;

/// What a server does with a request.
#[derive(Clone, Debug)]
enum Act {
    /// Answers with a status and a body.
    Answer(u16, String),
    /// Leads elsewhere.
    Redirect(String),
    /// Sends nothing, and keeps the connection.
    Silence,
    /// Sends header lines forever.
    Drip,
    /// Breaks off in the middle of its answer.
    Break,
}

/// The server of a source, which does one thing after the other, and then the last one again.
struct Server {
    url: String,
    /// The requests so far.
    asked: watch::Receiver<Vec<String>>,
}

impl Server {
    async fn start(acts: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/next?kind=ht", listener.local_addr().expect("an address"));
        let (requests, asked) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let (mut acts, mut open) = (acts.into_iter().peekable(), Vec::new());
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                requests.send_modify(|requests: &mut Vec<String>| requests.push(request));
                let last = acts.peek().cloned();
                let act = acts.next().or(last).expect("an act");
                if acts.peek().is_none() {
                    acts = vec![act.clone()].into_iter().peekable();
                }
                open.push(tokio::spawn(perform(stream, act)));
            }
        });
        Server { url, asked }
    }

    fn requests(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    /// The source of this server, with some attempts of 200 ms.
    fn sources(&self, attempts_max: u32) -> Arc<Sources> {
        let settings = SourceSettings { attempts_max, ..settings(&self.url) };
        Arc::new(Sources::open(&[settings], LINES_MAX).expect("open"))
    }
}

fn settings(url: &str) -> SourceSettings {
    SourceSettings {
        name: "erp".into(),
        address: url.parse().expect("an address"),
        time_limit: Duration::from_millis(200),
        attempts_max: 1,
        concurrency_max: 1,
        token_file: None,
    }
}

async fn perform(mut stream: TcpStream, act: Act) {
    match act {
        Act::Answer(status, body) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
            // A client that is sent too much closes before the end.
            let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        }
        Act::Redirect(to) => {
            let head = format!("HTTP/1.1 307 X\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await.expect("written");
        }
        Act::Silence => {
            let _ = stream.read_u8().await;
        }
        Act::Drip => {
            let mut line = b"HTTP/1.1 200 OK\r\n".to_vec();
            while stream.write_all(&line).await.is_ok() {
                line = b"x: y\r\n".to_vec();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Act::Break => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"value\":";
            stream.write_all(head.as_bytes()).await.expect("written");
        }
    }
}

/// A request to the end of its body.
async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.expect("a request"));
    }
    let head = String::from_utf8(text.clone()).expect("text").to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a length"))];
    stream.read_exact(&mut body).await.expect("a body");
    text.extend(body);
    String::from_utf8(text).expect("text")
}

fn value(text: &str) -> Act {
    Act::Answer(200, format!("{{\"value\": \"{text}\", \"more\": [1]}}"))
}

async fn ask(sources: &Sources) -> Result<String, SourceError> {
    let context = [("UNIT".to_owned(), "A\"".to_owned())].into();
    let question = SourceQuestion {
        series: "CONTRACT",
        type_code: "HT",
        project: None,
        date: "2025-12-02",
        document_id: Some("d1"),
        context: &context,
    };
    sources.ask("erp", "ci", "0a1b", &question).await
}

fn name() -> String {
    "erp".into()
}

#[tokio::test]
async fn a_source_is_asked_under_one_key_until_it_answers_and_not_again() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cret\n").expect("written");
    let busy = |status| Act::Answer(status, "busy".into());
    let server = Server::start(vec![busy(503), busy(409), value("4711")]).await;
    let settings =
        SourceSettings { attempts_max: 3, token_file: Some(file), ..settings(&server.url) };
    let sources = Sources::open(&[settings], LINES_MAX).expect("open");
    assert_eq!(ask(&sources).await, Ok("4711".into()));
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| *request == requests[0]), "{requests:?}");
    let (head, body) = requests[0].split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("POST /next?kind=ht HTTP/1.1\r\n"), "{head}");
    for line in ["idempotency-key: 0a1b", "authorization: Bearer s3cret"] {
        assert!(head.lines().any(|one| one == line), "{head}");
    }
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let asked = serde_json::json!({
        "series": "CONTRACT", "type": "HT", "project": null, "date": "2025-12-02",
        "document_id": "d1", "context": { "UNIT": "A\"" },
    });
    assert_eq!(body, asked);
}

/// Goal: whatever a source does, no request goes elsewhere, takes longer or reads more than the
/// settings allow, or is repeated after a refusal.
#[tokio::test]
async fn a_source_that_gives_no_value_is_asked_as_often_as_is_of_use() {
    let elsewhere = Server::start(vec![value("1")]).await;
    let (away, refused) = (SourceError::Away { name: name() }, |status| SourceError::Refused {
        name: name(),
        status,
    });
    let reason = "its answer is no JSON object with a text `value`".to_owned();
    let invalid = SourceError::Invalid { name: name(), reason };
    let answer = |body: &str| Act::Answer(200, body.into());
    for (act, error, asked) in [
        (Act::Redirect(elsewhere.url.clone()), refused(307), 1),
        (Act::Answer(404, "no".into()), refused(404), 1),
        (Act::Answer(201, "{\"value\": \"1\"}".into()), refused(201), 1),
        (Act::Answer(500, "oh".into()), away.clone(), 2),
        (Act::Answer(429, "later".into()), away.clone(), 2),
        (Act::Silence, away.clone(), 2),
        (Act::Drip, away.clone(), 2),
        (Act::Break, away.clone(), 2),
        (answer(&format!("{{\"value\": \"{}\"}}", "1".repeat(20_000))), away.clone(), 2),
        (answer("<html>"), invalid.clone(), 1),
        (answer("{\"value\": 4711}"), invalid.clone(), 1),
        (answer("{\"number\": \"1\"}"), invalid.clone(), 1),
    ] {
        let server = Server::start(vec![act.clone()]).await;
        let sources = server.sources(2);
        assert_eq!(ask(&sources).await, Err(error.clone()), "{act:?}");
        assert_eq!(server.requests().len(), asked, "{act:?}");
        assert_eq!(error.retry_useful(), error == away, "{act:?}");
    }
    assert!(elsewhere.requests().is_empty());
    let unknown = ask(&Sources::open(&[], LINES_MAX).expect("open")).await;
    assert_eq!(unknown, Err(SourceError::Unknown { name: name() }));
}

#[tokio::test]
async fn more_calls_than_a_source_may_have_wait_for_a_place_and_are_refused_where_none_comes_free()
{
    let ask_first = |sources: &Arc<Sources>| {
        let sources = Arc::clone(sources);
        tokio::spawn(async move { ask(&sources).await })
    };
    let is_asked = async |server: &Server| {
        let mut asked = server.asked.clone();
        asked.wait_for(|requests| !requests.is_empty()).await.expect("the server lives");
    };
    let server = Server::start(vec![Act::Silence, value("1")]).await;
    let sources = server.sources(2);
    let first = ask_first(&sources);
    is_asked(&server).await;
    assert_eq!(ask(&sources).await, Ok("1".into()), "behind the first one");
    assert_eq!(first.await.expect("no panic"), Ok("1".into()));

    let server = Server::start(vec![Act::Silence]).await;
    let settings = SourceSettings { time_limit: Duration::from_secs(20), ..settings(&server.url) };
    let sources = Arc::new(Sources::open(&[settings], LINES_MAX).expect("open"));
    let first = ask_first(&sources);
    is_asked(&server).await;
    assert_eq!(ask(&sources).await, Err(SourceError::Busy { name: name() }));
    first.abort();
}

#[test]
fn a_token_that_cannot_be_sent_keeps_the_process_from_starting_and_is_not_shown() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("token");
    let open = |text: Option<&str>| {
        if let Some(text) = text {
            std::fs::write(&file, text).expect("written");
        }
        let settings =
            SourceSettings { token_file: Some(file.clone()), ..settings("https://erp.example/") };
        Sources::open(&[settings], LINES_MAX).map(drop).map_err(|error| format!("{error:#}"))
    };
    assert!(open(None).expect_err("no file").contains("external.erp.token_file"));
    for wrong in ["", "\n", "two words", "s3cret\u{e9}", &"x".repeat(TOKEN_BYTES_MAX + 1)] {
        let error = open(Some(wrong)).expect_err(wrong);
        assert!(error.contains("must hold one token") && !error.contains("s3cret"), "{error}");
    }
    assert_eq!(open(Some("s3cret\n")), Ok(()));
}

//! Keys that change while the service runs, asked for at a real server on loopback.

use std::sync::Mutex;

use hyper::Uri;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::super::keyring::ANSWER_BYTES_MAX;
use super::*;

/// No regular read happens while a test runs, and a request waits for its answer.
const RARE: KeyRefresh =
    KeyRefresh { gap: Duration::from_secs(3_600), wait: Duration::from_secs(60), ..QUICK };
/// A read whenever a request asks for one.
const OFTEN: KeyRefresh =
    KeyRefresh { gap: Duration::ZERO, wait: Duration::from_secs(60), ..QUICK };

/// What the server answers with.
#[derive(Clone)]
enum Answer {
    Set(Value),
    Redirect(String),
    TooMuch,
    Nothing,
}

/// The address of an issuer's keys.
struct Server {
    url: String,
    answer: Arc<Mutex<Answer>>,
    asked: watch::Receiver<usize>,
}

impl Server {
    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/jwks?v=1", listener.local_addr().expect("an address"));
        let answer = Arc::new(Mutex::new(answer));
        let (count, asked) = watch::channel(0);
        let given = Arc::clone(&answer);
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let asks = read_request(&mut stream).await;
                assert!(asks.starts_with("GET /jwks?v=1 HTTP/1.1\r\n"), "{asks}");
                count.send_modify(|count| *count += 1);
                let answer = given.lock().expect("lock").clone();
                // A client that is sent too much closes before the end.
                let _ = stream.write_all(&written(&answer)).await;
                open.extend(matches!(answer, Answer::Nothing).then_some(stream));
            }
        });
        Server { url, answer, asked }
    }

    fn answers(&self, answer: Answer) {
        *self.answer.lock().expect("lock") = answer;
    }

    fn count(&self) -> usize {
        *self.asked.borrow()
    }

    /// Waits until it was asked so often.
    async fn is_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        asked.wait_for(|count| *count >= times).await.expect("the server lives");
    }

    /// The callers that its keys admit; the task fetches the keys.
    fn jwts(&self, request_rate: KeyRefresh) -> (Arc<Jwts>, Task) {
        let place = JwtKeys::SetAddress(self.url.parse::<Uri>().expect("an address"));
        let jwts = Jwts::open(settings(&[JwtAlgorithm::EdDsa], place), clock(), request_rate);
        let jwts = Arc::new(jwts.expect("open"));
        let task = Arc::clone(&jwts).follow_keys();
        (jwts, task)
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.expect("a request"));
    }
    String::from_utf8(text).expect("text")
}

fn written(answer: &Answer) -> Vec<u8> {
    let ok =
        |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    match answer {
        Answer::Set(set) => ok(&set.to_string()),
        Answer::Redirect(to) => {
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        }
        Answer::TooMuch => {
            let set = set_of("one").to_string();
            ok(&format!("{set}{}", " ".repeat(ANSWER_BYTES_MAX)))
        }
        Answer::Nothing => String::new(),
    }
    .into_bytes()
}

/// A set whose key has that name.
fn set_of(kid: &str) -> Value {
    let mut jwk = ed25519().jwk();
    jwk["kid"] = json!(kid);
    json!({ "keys": [jwk] })
}

/// A JWT that names that key.
fn token(kid: &str) -> String {
    let mut header = ed25519().header();
    header["kid"] = json!(kid);
    jwt(&header, &claims(), &ed25519())
}

async fn admit(jwts: &Jwts, kid: &str) -> Result<(), JwtRefusal> {
    jwts.admit(&token(kid)).await.map(drop)
}

#[tokio::test]
async fn a_new_key_is_asked_for_when_a_jwt_names_it_and_one_that_is_gone_lets_in_no_more() {
    let server = Server::start(Answer::Set(set_of("one"))).await;
    let (jwts, _task) = server.jwts(OFTEN);
    assert_eq!(admit(&jwts, "one").await, Ok(()), "the first request waits for the first keys");
    assert_eq!(admit(&jwts, "one").await, Ok(()));
    server.answers(Answer::Set(set_of("two")));
    assert_eq!(admit(&jwts, "two").await, Ok(()));
    // Although it was verified before.
    assert_eq!(admit(&jwts, "one").await, Err(JwtRefusal::UnknownKey));
    // Withdrawn by an empty set.
    server.answers(Answer::Set(json!({ "keys": [] })));
    assert_eq!(admit(&jwts, "three").await, Err(JwtRefusal::UnknownKey));
    assert_eq!(admit(&jwts, "two").await, Err(JwtRefusal::UnknownKey));
}

#[tokio::test]
async fn a_flood_of_unknown_keys_asks_once() {
    let server = Server::start(Answer::Set(set_of("one"))).await;
    let (jwts, _task) = server.jwts(RARE);
    let all = (0..200).map(|index| {
        let jwts = Arc::clone(&jwts);
        tokio::spawn(async move { admit(&jwts, &format!("unknown-{index}")).await })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(one.await.expect("no panic"), Err(JwtRefusal::UnknownKey));
    }
    assert_eq!(admit(&jwts, "one").await, Ok(()));
    assert_eq!(admit(&jwts, "unknown").await, Err(JwtRefusal::UnknownKey));
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn while_the_address_is_silent_known_keys_let_in_at_once_and_the_silence_ends() {
    let server = Server::start(Answer::Set(set_of("one"))).await;
    let (jwts, _task) = server.jwts(KeyRefresh { limit: Duration::from_millis(300), ..OFTEN });
    assert_eq!(admit(&jwts, "one").await, Ok(()));
    server.answers(Answer::Nothing);
    let asked = server.count();
    let waiting = Arc::clone(&jwts);
    let waiting = tokio::spawn(async move { admit(&waiting, "two").await });
    server.is_asked(asked + 1).await;
    assert_eq!(admit(&jwts, "one").await, Ok(()));
    assert!(!waiting.is_finished(), "it waits for the answer");
    assert_eq!(waiting.await.expect("no panic"), Err(JwtRefusal::UnknownKey));
    assert_eq!(admit(&jwts, "one").await, Ok(()), "what was read stays in force");
}

#[tokio::test]
async fn an_answer_that_leads_elsewhere_or_has_no_end_is_none_and_the_next_good_one_counts() {
    let elsewhere = Server::start(Answer::Set(set_of("one"))).await;
    let elsewhere_url = elsewhere.url.clone();
    for answer in [
        Answer::Redirect(elsewhere_url),
        Answer::TooMuch,
        Answer::Set(json!({ "error": "maintenance" })),
    ] {
        let server = Server::start(answer).await;
        let (jwts, _task) = server.jwts(OFTEN);
        let refused = admit(&jwts, "one").await.expect_err("no keys");
        assert!(refused == JwtRefusal::NoKeys && refused.retry_useful());
        server.answers(Answer::Set(set_of("one")));
        assert_eq!(admit(&jwts, "one").await, Ok(()));
    }
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn keys_that_cannot_be_read_again_for_too_long_are_in_force_no_more() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("set");
    std::fs::write(&path, set_of("one").to_string()).expect("written");
    let settings = settings(&[JwtAlgorithm::EdDsa], JwtKeys::SetFile(path));
    let request_rate = KeyRefresh { kept: Duration::ZERO, ..QUICK };
    let jwts = Jwts::open(settings, clock(), request_rate).expect("a set");
    assert_eq!(admit(&jwts, "one").await, Err(JwtRefusal::NoKeys));
}

#[tokio::test]
async fn a_file_is_read_again_when_a_jwt_names_a_new_key() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("set");
    std::fs::write(&path, set_of("one").to_string()).expect("written");
    let settings = settings(&[JwtAlgorithm::EdDsa], JwtKeys::SetFile(path.clone()));
    let jwts = Arc::new(Jwts::open(settings, clock(), OFTEN).expect("a set"));
    let _task = Arc::clone(&jwts).follow_keys();
    assert_eq!(admit(&jwts, "one").await, Ok(()));
    std::fs::write(&path, set_of("two").to_string()).expect("written");
    assert_eq!(admit(&jwts, "two").await, Ok(()));
    assert_eq!(admit(&jwts, "one").await, Err(JwtRefusal::UnknownKey));
}

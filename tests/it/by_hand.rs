//! Numbers that were given by hand, over HTTP and by the command: who registers them, what is
//! refused and how, what they pass over, and what auditors see.

mod loans;
mod told_again;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const API: &str = "/api/v1/document-numbering";
const REGISTER: &str = "/api/v1/document-numbering/numbers/register";
const REASON: &str = "written while the line was down";

/// Longest wait for what a test waits for.
const LIMIT: Duration = Duration::from_secs(60);

const SHOP: usize = 0;
const HEAD: usize = 1;
const OTHER: usize = 2;
const NARROW: usize = 3;

/// A series whose numbers do not show their project.
const WIDE: &str = "
[[series]]
code = 'WIDE'
name = 'WIDE'
template = 'WIDE-{SEQ:4}'
policy = 'gapless'
by_hand = true
serves = { types = ['WIDE'], projects = ['A', 'B'] }
serials = [{ counter = ['type'] }]
";

/// A service, and the tokens of a caller, of two registrars, and of one for project `A` alone.
struct Scene {
    service: Service,
    tokens: [String; 4],
}

impl Scene {
    /// A gapless series, a fast one, one that keeps dates in order and one of two projects, which
    /// take numbers by hand; and one that takes none.
    fn start(deployment: &mut Deployment) -> Self {
        deployment.extra += "[auth]\nmode = \"on\"\n";
        let by_hand = |code: &str, more: &str| {
            let settings = format!("by_hand = true\n{more}");
            deployment.series_file(code, &format!("{code}-{{YEAR}}-{{SEQ:4}}"), &settings)
        };
        let wide = deployment.path("WIDE.toml");
        std::fs::write(&wide, WIDE).unwrap();
        let files = [
            wide,
            by_hand("INV", "policy = \"gapless\""),
            by_hand("FAST", ""),
            by_hand("DATED", "policy = \"gapless\"\nchronology = true"),
            by_hand("SHUT", "closed_before = \"2026-01-01\""),
            deployment.series_file("NONE", "NONE-{SEQ:4}", ""),
        ];
        deployment.apply(&files);
        let tokens: [(&str, &[&str]); 4] = [
            ("shop", &["caller"]),
            ("head", &["registrar"]),
            ("other", &["registrar"]),
            ("narrow", &["registrar", "--project", "A"]),
        ];
        let tokens = tokens.map(|(name, options)| {
            let command = [&["token", "create", name, "--role"], options].concat();
            deployment.ok(&command).trim().to_owned()
        });
        Scene { service: deployment.serve(), tokens }
    }

    async fn ask(
        &self,
        who: usize,
        (method, path): (Method, &str),
        body: Option<Value>,
    ) -> (u16, Value) {
        let request = testkit::client().request(method, format!("{}{path}", self.service.url));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.bearer_auth(&self.tokens[who]).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn register(&self, who: usize, body: Value) -> (u16, Value) {
        self.ask(who, (Method::POST, REGISTER), Some(body)).await
    }

    async fn take(&self, kind: &str, document: &str) -> String {
        let path = format!("/api/v1/documents/{document}/generate-number");
        let body = json!({ "type": kind, "date": "2026-02-03" });
        let (status, told) = self.ask(SHOP, (Method::POST, &path), Some(body)).await;
        assert_eq!(status, 201, "{told}");
        told["document_number"].as_str().unwrap().to_owned()
    }
}

/// A number of the third of February.
fn by_hand(kind: &str, number: &str, document: &str) -> Value {
    json!({
        "number": number, "type": kind, "date": "2026-02-03", "document_id": document,
        "reason": REASON,
    })
}

#[tokio::test]
async fn what_a_gapless_number_by_hand_passes_over_is_issued_next() {
    let mut deployment = Deployment::sqlite(None);
    let scene = Scene::start(&mut deployment);
    assert_eq!(scene.take("INV", "a").await, "INV-2026-0001");
    let body = by_hand("INV", "INV-2026-0004", "paper");
    let (status, told) = scene.register(SHOP, body.clone()).await;
    assert_eq!((status, &told["code"]), (403, &json!("not-permitted")), "{told}");
    let (status, told) = scene.register(HEAD, body.clone()).await;
    assert_eq!(status, 201, "{told}");
    let passed = json!({ "became": "returned", "first": "2", "last": "3", "count": 2 });
    assert_eq!((&told["passed_over"], &told["replayed"]), (&passed, &json!(false)), "{told}");
    assert_eq!((&told["registered_by"], &told["reason"]), (&json!("head"), &json!(REASON)));
    let (status, again) = scene.register(HEAD, body.clone()).await;
    assert_eq!((status, &again["replayed"]), (200, &json!(true)), "{again}");
    assert_eq!(again["passed_over"], passed);
    for (who, body) in [(OTHER, body), (HEAD, by_hand("INV", "INV-2026-0004", "another"))] {
        let (status, told) = scene.register(who, body).await;
        let said = (status, &told["code"], &told["number_taken"]);
        assert_eq!(said, (409, &json!("number-taken"), &json!("no")), "{told}");
    }
    let (status, told) = scene.register(HEAD, by_hand("INV", "INV-2026-0009", "paper")).await;
    assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
    // The next value passes over nothing.
    let (status, told) = scene.register(HEAD, by_hand("INV", "INV-2026-0005", "next")).await;
    assert_eq!((status, &told["passed_over"]), (201, &Value::Null), "{told}");
    for (document, expected) in [("b", 2), ("c", 3), ("d", 6)] {
        assert_eq!(scene.take("INV", document).await, format!("INV-2026-{expected:04}"));
    }
    let (_, found) =
        scene.ask(HEAD, (Method::GET, &format!("{API}/numbers/INV-2026-0004")), None).await;
    let row = &found["numbers"][0];
    assert_eq!((&row["path"], &row["document_id"]), (&json!("registered"), &json!("paper")));
    let statement = format!("{API}/statements?series=INV&period=2026&format=json");
    let (_, paper) = scene.ask(HEAD, (Method::GET, &statement), None).await;
    let text = paper.to_string();
    assert!(text.contains("\"registered\"") && text.contains(REASON), "{paper}");
    assert!(scene.service.terminate());
    deployment.assert_clean();
}

#[tokio::test]
async fn what_is_wrong_with_a_number_by_hand_is_refused_in_its_field() {
    let mut deployment = Deployment::sqlite(None);
    let scene = Scene::start(&mut deployment);
    let dated = |body: Value, date: &str| {
        let mut body = body;
        body["date"] = json!(date);
        body
    };
    let inv = |number: &str| by_hand("INV", number, "d");
    let short = json!({ "number": "INV-2026-0001", "type": "INV", "reason": "because" });
    for (body, field, says) in [
        (by_hand("NONE", "NONE-0001", "d"), "type", "by_hand = true"),
        (inv("INV-2026-001"), "number", "serial SEQ"),
        (inv("INV-2026-0000"), "number", "0"),
        (inv("INV-2025-0001"), "number", "INV-2026-0001"),
        (inv("inv-2026-0001"), "number", "INV-"),
        (inv("INV-2026-9999999"), "number", ""),
        (dated(inv("INV-1926-0001"), "1926-02-03"), "date", ""),
        (dated(by_hand("SHUT", "SHUT-2025-0001", "d"), "2025-02-03"), "date", "2026-01-01"),
        (short, "reason", "10 characters"),
    ] {
        let (status, told) = scene.register(HEAD, body.clone()).await;
        assert_eq!((status, &told["field"]), (422, &json!(field)), "{body}: {told}");
        assert!(told["detail"].as_str().unwrap().contains(says), "{says}: {told}");
    }
    scene.take("DATED", "a").await;
    let late = dated(by_hand("DATED", "DATED-2026-0003", "late"), "2026-02-02");
    let (status, told) = scene.register(HEAD, late).await;
    assert_eq!((status, &told["code"]), (422, &json!("date-before-last")), "{told}");
    // Where dates are in order, what is passed over would come too late.
    let (status, told) = scene.register(HEAD, by_hand("DATED", "DATED-2026-0003", "b")).await;
    assert_eq!((status, &told["passed_over"]["became"]), (201, &json!("skipped")), "{told}");
    assert_eq!(scene.take("DATED", "c").await, "DATED-2026-0004");
    // The date of a number by hand counts: no earlier one comes after it.
    let later = dated(by_hand("DATED", "DATED-2026-0005", "e"), "2026-02-07");
    let (status, told) = scene.register(HEAD, later).await;
    assert_eq!(status, 201, "{told}");
    let early = json!({ "type": "DATED", "date": "2026-02-03" });
    let path = "/api/v1/documents/f/generate-number";
    let (status, told) = scene.ask(SHOP, (Method::POST, path), Some(early)).await;
    assert_eq!((status, &told["code"]), (422, &json!("date-before-last")), "{told}");
    // Reserved, and given back: from then on it may be registered.
    let reserve = json!({ "type": "INV", "date": "2026-02-03", "document_id": "held" });
    let path = format!("{API}/reservations");
    let (status, held) = scene.ask(SHOP, (Method::POST, &path), Some(reserve)).await;
    assert_eq!((status, &held["document_number"]), (201, &json!("INV-2026-0001")), "{held}");
    let (status, told) = scene.register(HEAD, inv("INV-2026-0001")).await;
    assert_eq!((status, &told["code"]), (409, &json!("number-reserved")), "{told}");
    let cancel = format!("{path}/{}/cancel", held["reservation_id"].as_str().unwrap());
    let (status, told) = scene.ask(SHOP, (Method::POST, &cancel), Some(json!({}))).await;
    assert_eq!(status, 200, "{told}");
    let registered = async || {
        let (status, told) = scene.register(HEAD, inv("INV-2026-0001")).await;
        if status == 201 { Ok(()) } else { Err(told) }
    };
    eventually(LIMIT, registered).await;
    assert!(scene.service.terminate());
    // The command says the same, and where a series never issues what is passed over, that.
    let args = ["register", "FAST", "FAST-2026-0003", "--date", "2026-02-03", "--reason", REASON];
    assert!(deployment.ok(&args).contains("FAST-2026-0003"));
    let gaps = deployment.ok(&["gaps", "--explain", "--json"]);
    assert!(gaps.contains("FAST-2026-0003") && gaps.contains(REASON), "{gaps}");
    deployment.assert_clean();
}

/// Goal: a number of an old book is found and counted apart, and no series ever issues it. Method:
/// over HTTP first, then the command, and a series file that would read it.
#[tokio::test]
async fn a_number_that_no_template_reads_is_kept_as_written() {
    let mut deployment = Deployment::sqlite(None);
    let scene = Scene::start(&mut deployment);
    let as_written = |kind: &str, number: &str| {
        let mut body = by_hand(kind, number, "paper");
        body["as_written"] = json!(true);
        body
    };
    let body = as_written("INV", "OLD-7");
    let (status, told) = scene.register(SHOP, body.clone()).await;
    assert_eq!((status, &told["code"]), (403, &json!("not-permitted")), "{told}");
    let (status, told) = scene.register(HEAD, body.clone()).await;
    let said = (status, &told["as_written"], &told["document_number"], &told["passed_over"]);
    assert_eq!(said, (201, &json!(true), &json!("OLD-7"), &Value::Null), "{told}");
    let (status, told) = scene.register(HEAD, body).await;
    assert_eq!((status, &told["replayed"]), (200, &json!(true)), "{told}");
    let mut narrow = as_written("WIDE", "INV-2026-0009");
    narrow["project"] = json!("A");
    let long = "x".repeat(129);
    for (who, body, field, says) in [
        (HEAD, as_written("NONE", "OLD-8"), "type", "by_hand = true"),
        (HEAD, as_written("INV", "INV-2026-0009"), "number", "version 1 of series INV"),
        (HEAD, as_written("INV", "FAST-1999-12345"), "number", "series FAST"),
        (NARROW, narrow, "number", "beyond your reach"),
        (HEAD, as_written("INV", " OLD-8"), "number", "blank"),
        (HEAD, as_written("INV", &long), "number", "128"),
        (HEAD, by_hand("INV", "OLD-8", "d"), "number", "INV-"),
    ] {
        let (status, told) = scene.register(who, body.clone()).await;
        assert_eq!((status, &told["field"]), (422, &json!(field)), "{body}: {told}");
        assert!(told["detail"].as_str().unwrap().contains(says), "{says}: {told}");
    }
    // Its document is numbered, and no counter has moved.
    let path = "/api/v1/documents/paper/generate-number";
    let asked = json!({ "type": "INV", "date": "2026-02-03" });
    let (status, told) = scene.ask(SHOP, (Method::POST, path), Some(asked)).await;
    assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
    assert_eq!(scene.take("INV", "a").await, "INV-2026-0001");
    let (_, found) = scene.ask(HEAD, (Method::GET, &format!("{API}/numbers/OLD-7")), None).await;
    let row = &found["numbers"][0];
    assert_eq!((&row["path"], &row["document_id"]), (&json!("as-written"), &json!("paper")));
    let statement = format!("{API}/statements?series=INV&period=2026&format=json");
    let (_, paper) = scene.ask(HEAD, (Method::GET, &statement), None).await;
    let text = paper.to_string();
    assert!(text.contains("\"as-written\"") && text.contains(REASON), "{paper}");
    let void = json!({ "number": "OLD-7", "reason": "the order was withdrawn" });
    let path = format!("{API}/numbers/void");
    let (status, told) = scene.ask(HEAD, (Method::POST, &path), Some(void)).await;
    assert_eq!(status, 200, "{told}");
    assert!(scene.service.terminate());
    let args = ["register", "INV", "17/26 b", "--as-written", "--date", "2026-02-03"];
    let args = [&args[..], &["--reason", REASON]].concat();
    assert!(deployment.ok(&args).contains("17/26 b"));
    let found = deployment.ok(&["find", "--path", "as-written"]);
    assert!(found.contains("OLD-7") && found.contains("17/26 b"), "{found}");
    // A void number keeps its text.
    let old = deployment.series_file("OLD", "OLD-{SEQ}", "");
    let refused = deployment.run(&["series", "apply", old.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("kept as written"), "{said}");
    deployment.assert_clean();
}

#[tokio::test]
async fn the_document_that_holds_a_number_is_told_only_to_those_who_see_the_number() {
    let mut deployment = Deployment::sqlite(None);
    let scene = Scene::start(&mut deployment);
    let path = format!("{API}/reservations");
    let document = "b/secret-merger";
    let reserve = json!({
        "type": "WIDE", "project": "B", "date": "2026-02-03", "document_id": document,
    });
    let (status, held) = scene.ask(SHOP, (Method::POST, &path), Some(reserve)).await;
    assert_eq!((status, &held["document_number"]), (201, &json!("WIDE-0001")), "{held}");
    for (who, shown) in [(NARROW, "its caller"), (HEAD, document)] {
        let mut body = by_hand("WIDE", "WIDE-0001", "paper");
        body["project"] = json!("A");
        let (status, told) = scene.register(who, body).await;
        assert_eq!((status, &told["code"]), (409, &json!("number-reserved")), "{told}");
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("reserved for {shown} until")), "{detail}");
        assert_eq!(told.to_string().contains(document), shown == document, "{told}");
    }
    assert!(scene.service.terminate());
    deployment.assert_clean();
}

/// Goal: a counter that Redis counts goes on above a number by hand, and Redis counts it again.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_by_hand_of_a_counter_in_redis_is_registered_on_loan() {
    let redis = Redis::start();
    let mut deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.extra = "return_after = \"1s\"\n".into();
    let scene = Scene::start(&mut deployment);
    assert_eq!(scene.take("FAST", "a").await, "FAST-2026-0001");
    let body = by_hand("FAST", "FAST-2026-0005", "paper");
    let (status, told) = scene.register(HEAD, body.clone()).await;
    assert_eq!(status, 201, "{told}");
    let passed = json!({ "became": "skipped", "first": "2", "last": "4", "count": 3 });
    assert_eq!(told["passed_over"], passed);
    let (status, told) = scene.register(HEAD, body).await;
    assert_eq!((status, &told["replayed"]), (200, &json!(true)), "{told}");
    assert_eq!(scene.take("FAST", "b").await, "FAST-2026-0006");
    // The document has its number on every path, and another caller is not told which.
    let path = "/api/v1/documents/paper/generate-number";
    let asked = json!({ "type": "FAST", "date": "2026-02-03" });
    let (status, told) = scene.ask(SHOP, (Method::POST, path), Some(asked)).await;
    assert_eq!((status, &told["code"]), (409, &json!("document-already-numbered")), "{told}");
    let found = by_hand("FAST", "FAST-2026-0003", "found");
    let (status, told) = scene.register(HEAD, found).await;
    assert_eq!((status, &told["passed_over"]), (201, &Value::Null), "{told}");
    let mut value = 6;
    eventually(LIMIT, async || {
        value += 1;
        let path = format!("/api/v1/documents/again{value}/generate-number");
        let body = json!({ "type": "FAST", "date": "2026-02-03" });
        let (_, told) = scene.ask(SHOP, (Method::POST, &path), Some(body)).await;
        assert_eq!(told["document_number"], format!("FAST-2026-{value:04}"), "{told}");
        if told["path"] == "redis" { Ok(()) } else { Err(told) }
    })
    .await;
    assert!(scene.service.terminate());
    deployment.assert_clean();
}

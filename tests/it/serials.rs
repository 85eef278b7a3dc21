//! Exchange serials as callers see them, on Redis and PostgreSQL, and on SQLite alone:
//! generation and chains here, checks and steps in `runs`.

mod runs;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

/// A deployment with the example series, and its servers.
struct Stand {
    deployment: Deployment,
    service: Service,
    redis: Option<Redis>,
    postgres: Option<Postgres>,
}

impl Stand {
    fn on_redis_and_postgres() -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start_durable());
        let deployment = Deployment::new(&postgres.url("serials"), Some(&redis.url()));
        deployment.apply_examples();
        let service = deployment.serve();
        Stand { deployment, service, redis: Some(redis), postgres: Some(postgres) }
    }

    fn embedded() -> Self {
        let deployment = Deployment::embedded();
        let service = deployment.serve();
        Stand { deployment, service, redis: None, postgres: None }
    }

    fn both() -> [Self; 2] {
        [Self::on_redis_and_postgres(), Self::embedded()]
    }
}

/// Posts to a route under `/api/v1/serials/`.
async fn ask(service: &Service, route: &str, body: &Value) -> (u16, Value) {
    post(&testkit::client(), &format!("{}/api/v1/serials/{route}", service.url), body).await
}

async fn ask_with_key(service: &Service, route: &str, key: &str, body: &Value) -> (u16, Value) {
    let url = format!("{}/api/v1/serials/{route}", service.url);
    let request = testkit::client().post(url).header("Idempotency-Key", key).json(body);
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn source() -> Value {
    json!({ "system": "C0001", "module": "A01", "instance": "01" })
}

/// The source's fields and others.
fn with(fields: &Value) -> Value {
    let mut all = source();
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    all
}

const UNIFIED: &str = "C0001A0101201507100000000001";
const STEP: &str = "C0001A010120150710000000000001";
const INTERFACE: &str = "C0001A0101D0002201507102301100000000001";

/// How long something that follows an answer may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// A step of a transaction, as its system asks for the serial.
fn pay() -> Value {
    with(&json!({ "unified_serial": UNIFIED, "step": "pay", "date": "2015-07-10" }))
}

#[tokio::test]
async fn serials_come_out_exactly_and_count_by_system_module_instance_and_day() {
    for stand in Stand::both() {
        let service = &stand.service;
        let unified = |fields: Value| with(&fields);
        for (order, serial) in [
            (unified(json!({ "date": "2015-07-10" })), UNIFIED),
            (unified(json!({ "date": "2015-07-10" })), "C0001A0101201507100000000002"),
            (unified(json!({ "date": "2015-07-11" })), "C0001A0101201507110000000001"),
            (
                unified(json!({ "date": "2015-07-10", "instance": "02" })),
                "C0001A0102201507100000000001",
            ),
            // Midnight has passed in Shanghai.
            (unified(json!({ "date": "2015-07-09T16:00:00Z" })), "C0001A0101201507100000000003"),
        ] {
            let (status, answer) = ask(service, "unified", &order).await;
            assert_eq!((status, &answer["serial"]), (201, &json!(serial)), "{order}: {answer}");
        }
        let (status, answer) = ask(service, "system", &pay()).await;
        assert_eq!((status, &answer["serial"]), (201, &json!(STEP)), "{answer}");
        for (target, serial) in [
            ("D0002", INTERFACE),
            // It is shown, and not counted by.
            ("D0003", "C0001A0101D0003201507102301100000000002"),
        ] {
            let order = with(&json!({
                "target": target, "unified_serial": UNIFIED, "system_serial": STEP,
                "date": "2015-07-10T23:01:10+08:00",
            }));
            let (status, answer) = ask(service, "interface", &order).await;
            assert_eq!(status, 201, "{answer}");
            let parts = json!({
                "serial": serial, "kind": "interface", "system": "C0001", "module": "A01",
                "instance": "01", "target": target, "date": "2015-07-10", "time": "23:01:10",
                "sequence": serial[29..].trim_start_matches('0'), "replayed": false,
            });
            assert_eq!(answer, parts);
        }
        stand.deployment.assert_clean();
    }
}

#[tokio::test]
async fn a_step_gets_its_first_serial_again_from_whichever_instance() {
    for stand in Stand::both() {
        let service = &stand.service;
        let at_once = (1..=32).map(|instance| {
            let url = service.url.clone();
            let mut order = pay();
            order["instance"] = json!(format!("{:02}", instance % 4));
            tokio::spawn(async move {
                post(&testkit::client(), &format!("{url}/api/v1/serials/system"), &order).await
            })
        });
        let mut serials = std::collections::BTreeSet::new();
        let mut created = 0;
        for call in at_once.collect::<Vec<_>>() {
            let (status, answer) = call.await.unwrap();
            assert!(matches!(status, 200 | 201), "{answer}");
            created += usize::from(status == 201);
            serials.insert(answer["serial"].as_str().unwrap().to_owned());
        }
        assert_eq!((created, serials.len()), (1, 1), "{serials:?}");
        let first = serials.pop_first().unwrap();
        let mut tomorrow = pay();
        tomorrow["date"] = json!("2015-07-11");
        let (status, answer) = ask(service, "system", &tomorrow).await;
        assert_eq!((status, answer["serial"].as_str()), (200, Some(&*first)), "{answer}");
        for (field, value) in [
            ("step", "book"),
            ("module", "A02"),
            ("system", "C0002"),
            ("unified_serial", "C0001A0101201507100000000002"),
        ] {
            let mut other = pay();
            other[field] = json!(value);
            let (status, answer) = ask(service, "system", &other).await;
            assert_eq!(status, 201, "{field}: {answer}");
            assert_ne!(answer["serial"].as_str(), Some(&*first), "{field}");
        }
    }
}

#[tokio::test]
async fn a_step_keeps_its_serial_beyond_the_window_of_other_documents() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[idempotency]\nwindow = \"1s\"\n".into();
    let service = deployment.serve();
    let (status, first) = ask(&service, "system", &pay()).await;
    assert_eq!(status, 201, "{first}");
    // A document that was numbered later gets another number: so the window has passed.
    let document = format!("{}/api/v1/documents/d1/generate-number", service.url);
    let spo = json!({ "type": "SPO", "date": "2024-01-22" });
    let client = testkit::client();
    let began = Instant::now();
    let (_, number) = post(&client, &document, &spo).await;
    loop {
        let (_, again) = post(&client, &document, &spo).await;
        if again["document_number"] != number["document_number"] {
            break;
        }
        assert!(began.elapsed() < LIMIT, "the window does not pass: {again}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let (status, again) = ask(&service, "system", &pay()).await;
    assert_eq!((status, &again["serial"]), (200, &first["serial"]), "{again}");
}

#[tokio::test]
async fn a_call_with_a_key_gets_its_serial_again_and_one_without_a_new_one() {
    for stand in Stand::both() {
        let service = &stand.service;
        let call = with(&json!({ "target": "D0002", "unified_serial": UNIFIED }));
        let (status, first) = ask_with_key(service, "interface", "k1", &call).await;
        assert_eq!(status, 201, "{first}");
        let (status, again) = ask_with_key(service, "interface", "k1", &call).await;
        assert_eq!((status, &again["serial"]), (200, &first["serial"]));
        let mut other = call.clone();
        other["target"] = json!("D0003");
        let (status, problem) = ask_with_key(service, "interface", "k1", &other).await;
        assert_eq!((status, &problem["code"]), (422, &json!("idempotency-key-reused")));
        for _ in 0..2 {
            let (status, new) = ask(service, "interface", &call).await;
            assert_eq!(status, 201);
            assert_ne!(new["serial"], first["serial"]);
        }
    }
}

/// Route, body, the field at fault and a part of the message.
fn bad_requests() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    vec![
        ("unified", with(&json!({ "system": "C001" })), "system", "4 characters"),
        ("unified", with(&json!({ "module": "A-1" })), "module", "character 2, '-'"),
        ("unified", with(&json!({ "instance": "1" })), "instance", "exactly 2"),
        ("unified", with(&json!({ "instance": "AB" })), "instance", "write a digit"),
        ("unified", with(&json!({ "target": "D0002" })), "target", "unknown field"),
        ("unified", with(&json!({ "date": "2015-02-30" })), "date", "2015-02-30"),
        ("system", source(), "unified_serial", "`unified_serial` is missing; write"),
        ("system", with(&json!({ "unified_serial": UNIFIED, "step": "" })), "step", "1 to 200"),
        (
            "system",
            with(&json!({ "unified_serial": STEP, "step": "a" })),
            "unified_serial",
            "has 30 characters, but a unified serial has exactly 28",
        ),
        (
            "interface",
            with(&json!({ "target": "ก0002", "unified_serial": UNIFIED })),
            "target",
            "character 1, 'ก'",
        ),
        (
            "interface",
            with(&json!({ "target": "D0002", "unified_serial": UNIFIED, "date": "2015-07-10" })),
            "date",
            "time of day",
        ),
        (
            "interface/check",
            json!({ "serial": INTERFACE.replace("20150710230110", "20150710236110"),
                    "window": "1h" }),
            "serial",
            "characters 16 to 29",
        ),
        ("interface/check", json!({ "serial": INTERFACE, "window": "0s" }), "window", "366d"),
        ("interface/check", json!({ "serial": INTERFACE, "window": "an hour" }), "window", "unit"),
        ("system/begin", json!({ "serial": UNIFIED }), "serial", "exactly 30"),
        (
            "system/begin",
            json!({ "serial": STEP, "unified_serial": "x" }),
            "unified_serial",
            "exactly 28",
        ),
        ("system/begin", json!({ "serial": STEP, "on_repeat": "x" }), "on_repeat", "`refuse`"),
        (
            "system/succeed",
            json!({ "serial": STEP, "attempt": 1, "result": "x".repeat(16 * 1024) }),
            "result",
            "at most 16384",
        ),
        (
            "system/fail",
            json!({ "serial": STEP, "attempt": 1, "reason": "" }),
            "reason",
            "1 to 500",
        ),
    ]
}

#[tokio::test]
async fn a_bad_serial_request_names_its_field_and_takes_nothing() {
    let stand = Stand::embedded();
    for (route, order, field, told) in bad_requests() {
        let (status, problem) = ask(&stand.service, route, &order).await;
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{route} {order}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(told), "{route}: {problem}");
        assert_eq!(problem["number_taken"], "no");
        // By the names that every other route uses.
        let slug = match told {
            "4 characters" | "exactly 2" | "exactly 28" | "exactly 30" => "value-too-short",
            _ if told.contains("exactly") => "value-too-long",
            _ if told.starts_with("character ") || told == "write a digit" => "wrong-alphabet",
            "2015-02-30" => "invalid-date",
            "time of day" => "time-required",
            _ => "invalid-field",
        };
        assert_eq!(problem["code"], slug, "{route} {order}: {problem}");
    }
    let (status, problem) =
        ask(&stand.service, "system/succeed", &json!({ "serial": STEP, "attempt": 1 })).await;
    assert_eq!((status, &problem["code"]), (404, &json!("step-not-found")));
    let (_, report) = stand.deployment.verify();
    assert_eq!(report["totals"]["journal"], 0, "nothing was taken: {report}");
}

#[tokio::test]
async fn where_the_series_make_something_else_no_serial_is_taken() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("bare"), None);
    let file = deployment.series_file("UNIFIED-SERIAL", "U-{SEQ:4}", "");
    deployment.apply(&[file]);
    let service = deployment.serve();
    let (status, problem) = ask(&service, "unified", &source()).await;
    assert_eq!((status, &problem["code"]), (422, &json!("type-not-configured")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("hivenet-serials.toml"), "{problem}");
    assert_eq!(deployment.verify().1["totals"]["journal"], 0);
}

/// The chain of the unified serial, a page of `limit` links at a time.
async fn chain(service: &Service, limit: usize) -> Vec<Value> {
    let mut links = Vec::new();
    let mut after = String::new();
    loop {
        let url = format!("{}/api/v1/serials/unified/{UNIFIED}?limit={limit}{after}", service.url);
        let answer = testkit::client().get(url).send().await.unwrap();
        if answer.status().as_u16() == 404 {
            return links;
        }
        let page: Value = answer.json().await.unwrap();
        links.extend(page["links"].as_array().unwrap().iter().cloned());
        let Some(next) = page["next"].as_str() else { return links };
        after = format!("&after={next}");
    }
}

#[tokio::test]
async fn the_chain_of_a_unified_serial_shows_all_that_carried_it() {
    for stand in Stand::both() {
        let service = &stand.service;
        assert_eq!(chain(service, 10).await, Vec::<Value>::new());
        let unified = with(&json!({ "date": "2015-07-10" }));
        assert_eq!(ask(service, "unified", &unified).await.0, 201);
        let mut step = pay();
        step["step"] = json!("pay/1");
        assert_eq!(ask(service, "system", &step).await.0, 201);
        let call = with(&json!({
            "target": "D0002", "unified_serial": UNIFIED, "date": "2015-07-10T23:01:10+08:00",
        }));
        assert_eq!(ask(service, "interface", &call).await.1["serial"], INTERFACE);
        let check = json!({ "serial": INTERFACE, "window": "1h", "unified_serial": UNIFIED });
        assert_eq!(ask(service, "interface/check", &check).await.0, 200);
        let begin = json!({ "serial": STEP, "unified_serial": UNIFIED });
        assert_eq!(ask(service, "system/begin", &begin).await.0, 201);
        let fail = json!({ "serial": STEP, "attempt": 1, "reason": "no money" });
        assert_eq!(ask(service, "system/fail", &fail).await.0, 200);
        let began = Instant::now();
        // The journal follows after the answers.
        let links = loop {
            let links = chain(service, 100).await;
            if links.len() == 6 {
                break links;
            }
            assert!(began.elapsed() < LIMIT, "{links:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let told: Vec<_> = links
            .iter()
            .map(|link| (link["event"].as_str().unwrap(), link["serial"].as_str().unwrap()))
            .collect();
        let expected = [
            ("issued", UNIFIED),
            ("issued", STEP),
            ("issued", INTERFACE),
            ("accepted", INTERFACE),
            ("begun", STEP),
            ("failed", STEP),
        ];
        assert_eq!(told, expected);
        assert_eq!((&links[1]["step"], &links[1]["kind"]), (&json!("pay/1"), &json!("system")));
        assert_eq!((&links[5]["attempt"], &links[5]["reason"]), (&json!(1), &json!("no money")));
        assert_eq!(chain(service, 1).await, links, "in pages of one");
        let url = format!("{}/api/v1/serials/unified/{STEP}", service.url);
        assert_eq!(testkit::client().get(url).send().await.unwrap().status().as_u16(), 422);
    }
}

//! A request without a date across the day on which a successor takes over: its repetition is the
//! same request (F40). The processes are within the test, each with a clock that the test sets.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp, Unit};
use numbering::Inputs;
use numerator::auth::Identity;
use numerator::clock::{Clock as _, ManualClock, SystemClock};
use numerator::config::{Settings, Sources};
use numerator::engine::allocator::{AllocError, Issued, Request};
use numerator::startup::{Mode, Service};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// How long the tests wait for a store that comes back.
const LIMIT: Duration = Duration::from_secs(30);

/// A midnight of some zone that is not far from now, and that zone: no process may be of another
/// day than the ledger.
fn midnight() -> (Timestamp, String) {
    let at = SystemClock.now().round(Unit::Hour).unwrap();
    let hour = i64::from(at.to_zoned(jiff::tz::TimeZone::UTC).hour());
    // `Etc/GMT-3` is three hours ahead of UTC.
    let zone =
        if hour <= 12 { format!("Etc/GMT+{hour}") } else { format!("Etc/GMT-{}", 24 - hour) };
    (at, zone)
}

/// Two series in turn for each of these types, with settings of theirs: `T` until the midnight,
/// `T2` from then on.
fn apply(deployment: &Deployment, types: &[(&str, &str)]) -> Timestamp {
    let (at, zone) = midnight();
    let day = at.to_zoned(jiff::tz::TimeZone::get(&zone).unwrap()).date();
    let of = |(code, settings): &(&str, &str)| {
        let one = |name: &str, days: String| {
            format!(
                "[[series]]\ncode = \"{name}\"\nname = \"{name}\"\n\
                 template = \"{name}-{{SEQ:4}}\"\n\
                 timezone = \"{zone}\"\n{settings}\n\
                 serves = {{ types = [\"{code}\"], {days} = \"{day}\" }}\nserials = [{{}}]\n"
            )
        };
        one(code, "dated_before".into()) + &one(&format!("{code}2"), "dated_from".into())
    };
    let file = deployment.path("turns.toml");
    std::fs::write(&file, types.iter().map(of).collect::<String>()).unwrap();
    deployment.apply(&[file]);
    at
}

/// A process within the test, and its clock.
struct Process {
    service: Arc<Service>,
    clock: Arc<ManualClock>,
    turn: Timestamp,
}

impl Process {
    async fn start(deployment: &Deployment, turn: Timestamp, seconds: i64) -> Self {
        deployment.ok(&["series", "list"]);
        let file = Some(deployment.path("numerator-0.toml"));
        let settings = Settings::load(&Sources { file, ..Sources::default() }).unwrap();
        let clock = Arc::new(ManualClock::at(turn.as_microsecond() + seconds * 1_000_000));
        let service = Service::start(&settings, clock.clone(), Mode::Serve).await.unwrap();
        Process { service, clock, turn }
    }

    /// This many seconds after the turn.
    fn at(&self, seconds: i64) {
        self.clock.set((self.turn + SignedDuration::from_secs(seconds)).as_microsecond());
    }

    async fn ask(&self, request: &Request) -> Result<Issued, AllocError> {
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let answer = self.service.allocator.issue(request.clone()).await;
            match answer {
                Err(error) if error.retry_useful() && tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                answer => return answer,
            }
        }
    }

    async fn number(&self, request: &Request) -> (String, bool) {
        let issued = self.ask(request).await.unwrap();
        (issued.entry.number, issued.replayed)
    }
}

fn request(type_code: &str, document: Option<&str>, key: Option<&str>) -> Request {
    let user_id = "local".to_owned();
    Request {
        inputs: Inputs { type_code: type_code.into(), ..Inputs::default() },
        document_id: document.map(Into::into),
        count: 1,
        reserve_for: None,
        again: false,
        replaces: None,
        idempotency_key: key.map(Into::into),
        identity: Arc::new(Identity::local(&user_id, 1_000)),
        user_id,
        ip_address: None,
    }
}

const TYPES: [(&str, &str); 4] = [
    ("FAST", ""),
    ("SURE", "policy = \"durable\""),
    ("EACH", "policy = \"gapless\""),
    ("ONCE", "once_per_document = true"),
];

/// Requests that are known by their document, by their key, or by both, of each type.
fn requests(name: &str) -> Vec<Request> {
    let mut all = Vec::new();
    for (type_code, _) in TYPES {
        let text = |kind: &str| format!("{name}-{kind}");
        let (document, key) = (text("d"), text("k"));
        all.push(request(type_code, Some(&document), None));
        all.push(request(type_code, None, Some(&key)));
        all.push(request(type_code, Some(&text("b")), Some(&text("bk"))));
        all.push(Request { count: 3, ..request(type_code, None, Some(&text("range"))) });
        // Of a document of its own: it replaces the earlier number there.
        let other = request(type_code, Some(&text("c")), Some(&text("a")));
        let again = Request { again: true, ..other };
        all.push(again);
    }
    all
}

/// Goal: what was answered on one side of the turn is answered on the other. Method: requests of
/// every form, first before the turn and then after it; others after it, and then by a clock that
/// is set back.
async fn is_answered_by_what_it_was(deployment: &Deployment, flush: impl AsyncFn()) {
    let turn = apply(deployment, &TYPES);
    let mut process = Process::start(deployment, turn, -2).await;
    let mut known = Vec::new();
    for request in requests("early") {
        let (number, replayed) = process.number(&request).await;
        assert!(!replayed && !number.contains("2-"), "{number}");
        known.push((request, number));
    }
    process.at(2);
    for (request, number) in &known {
        assert_eq!(process.number(request).await, (number.clone(), true), "{request:?}");
    }
    for request in requests("late") {
        let (number, replayed) = process.number(&request).await;
        assert!(!replayed && number.contains("2-"), "{number}");
        known.push((request, number));
    }
    // Another request for a document that has a number is refused, and shows it.
    let other = request("ONCE", Some("early-d"), None);
    let other = Request { count: 2, ..other };
    let refused = process.ask(&other).await;
    let shown = matches!(&refused, Err(AllocError::DocumentNumbered { number: Some(_) }));
    assert!(shown, "{refused:?}");
    // A clock that is set back, hours after the turn, and after everything in memory is gone.
    for seconds in [-2, 3 * 3_600, -1] {
        process.at(seconds);
        for (request, number) in &known {
            assert_eq!(process.number(request).await, (number.clone(), true), "{request:?}");
        }
        flush().await;
    }
    process.at(2);
    process.service.stop().await.unwrap();
    process = Process::start(deployment, turn, 2).await;
    for (request, number) in &known {
        assert_eq!(process.number(request).await, (number.clone(), true), "{request:?}");
    }
    process.service.stop().await.unwrap();
    deployment.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_date_is_answered_across_the_turn_where_redis_takes_the_numbers() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("turns"), Some(&redis.url()));
    let flush = async || {
        redis.flushall();
    };
    is_answered_by_what_it_was(&deployment, flush).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_date_is_answered_across_the_turn_where_the_ledger_takes_the_numbers() {
    is_answered_by_what_it_was(&Deployment::embedded(), async || {}).await;
}

/// Goal: nor do two processes whose clocks are on either side of the turn, asked at once. Method:
/// each document of each type is asked for twice at both.
async fn gets_one_number_of_two_clocks(deployment: &Deployment) {
    let turn = apply(deployment, &TYPES);
    let early = Process::start(deployment, turn, -1).await;
    let late = Process::start(deployment, turn, 1).await;
    let mut asking = Vec::new();
    for index in 0..12 {
        for (type_code, _) in TYPES {
            let (document, key) = (format!("d{index}"), format!("k{index}"));
            let forms =
                [request(type_code, Some(&document), None), request(type_code, None, Some(&key))];
            for request in forms {
                let (early, late) = (&early, &late);
                asking.push(async move {
                    let both = [early, late, early, late].map(|process| process.ask(&request));
                    let answers = futures_util::future::join_all(both).await;
                    (request, answers)
                });
            }
        }
    }
    for (request, answers) in futures_util::future::join_all(asking).await {
        let numbers: std::collections::BTreeSet<String> =
            answers.into_iter().map(|answer| answer.unwrap().entry.number).collect();
        assert_eq!(numbers.len(), 1, "{request:?}: {numbers:?}");
    }
    early.service.stop().await.unwrap();
    late.service.stop().await.unwrap();
    deployment.assert_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clocks_on_either_side_of_the_turn_give_a_request_one_number() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let url = postgres.url("clocks");
    gets_one_number_of_two_clocks(&Deployment::new(&url, Some(&redis.url()))).await;
    gets_one_number_of_two_clocks(&Deployment::new(&postgres.url("alone"), None)).await;
}

/// Goal: no tenant's document is dated by the moment of another's. Method: two projects ask for one
/// id, the second one after the turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_another_project_is_dated_by_its_own_moment() {
    let deployment = Deployment::embedded();
    let turn = apply(&deployment, &[("TENANTS", "documents = \"project\"")]);
    let process = Process::start(&deployment, turn, -2).await;
    let of = |project: &str| {
        let mut request = request("TENANTS", Some("d"), None);
        request.inputs.project = Some(project.into());
        request
    };
    let (early, _) = process.number(&of("P1")).await;
    assert!(!early.contains("2-"), "{early}");
    process.at(2);
    let (late, replayed) = process.number(&of("P2")).await;
    assert!(!replayed && late.contains("2-"), "{late}");
    assert_eq!(process.number(&of("P1")).await, (early, true));
    assert_eq!(process.number(&of("P2")).await, (late, true));
    process.service.stop().await.unwrap();
    deployment.assert_clean();
}

//! People for whom services ask: who is journaled, who may name them, and how often they may ask,
//! at whichever node.

use std::time::{Duration, Instant};

use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};

use crate::deployment::Deployment;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

const NUMBERS: &str = "/api/v1/document-numbering/numbers";
const PREVIEW: &str = "/api/v1/document-numbering/preview";

/// How long limits may take to reach another node; a fifth of a second, by their documentation.
const SHARED_MAX: Duration = Duration::from_secs(10);

/// Requests a minute of one person here.
const QUOTA: usize = 50;

/// A person, and an address.
const ANN: [(&str, &str); 2] = [("on-behalf-of", "ann"), ("on-behalf-of-ip", "203.0.113.9")];

fn spo() -> Value {
    json!({ "type": "SPO", "date": "2024-01-22" })
}

/// A token, at a service.
#[derive(Clone, Copy)]
struct Desk<'s> {
    service: &'s Service,
    token: &'s str,
}

impl Desk<'_> {
    fn post(&self, path: &str, person: &[(&'static str, &str)]) -> RequestBuilder {
        let request = testkit::client().post(format!("{}{path}", self.service.url)).json(&spo());
        let request = request.bearer_auth(self.token);
        person.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    }

    async fn number(&self, document: &str, person: &[(&'static str, &str)]) -> (u16, Value) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        told(self.post(&path, person).send().await.unwrap()).await
    }

    async fn preview(&self, person: &str) -> Response {
        self.post(PREVIEW, &[("on-behalf-of", person)]).send().await.unwrap()
    }

    /// The entries of the list that answers a query: person, service, address.
    async fn listed(&self, query: &str) -> Value {
        let url = format!("{}{NUMBERS}?{query}", self.service.url);
        let answer = testkit::client().get(url).bearer_auth(self.token).send().await.unwrap();
        let (status, list) = told(answer).await;
        assert_eq!(status, 200, "{list}");
        let rows = list["numbers"].as_array().unwrap().iter();
        rows.map(|row| json!([row["user_id"], row["service"], row["ip_address"]])).collect()
    }
}

async fn told(answer: Response) -> (u16, Value) {
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

/// Waits until the journal lists this many rows.
async fn journaled(desk: &Desk<'_>, query: &str, rows: usize) -> Value {
    let deadline = Instant::now() + SHARED_MAX;
    loop {
        let listed = desk.listed(query).await;
        if listed.as_array().unwrap().len() == rows {
            return listed;
        }
        assert!(Instant::now() < deadline, "{query}: {listed}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Both are in the journal; the service sees what it took, for any person.
async fn person_and_service_are_journaled(erp: Desk<'_>, other: Desk<'_>, auditor: Desk<'_>) {
    let (status, number) = erp.number("d1", &ANN).await;
    assert_eq!(status, 201, "{number}");
    let (status, again) = other.number("d1", &ANN).await;
    assert_eq!((status, &again["document_number"]), (200, &number["document_number"]));
    assert_eq!(erp.number("d2", &[("on-behalf-of", "%E0%B8%AA%E0%B8%A1")]).await.0, 201);
    assert_eq!(erp.number("d3", &[]).await.0, 201);
    let of_ann = journaled(&auditor, "user_id=ann", 1).await;
    assert_eq!(of_ann, json!([["ann", "erp", "203.0.113.9"]]));
    assert_eq!(journaled(&auditor, "service=erp", 3).await[1], json!(["สม", "erp", null]));
    assert_eq!(erp.listed("from=2020-01-01").await.as_array().unwrap().len(), 3);
    assert_eq!(erp.listed("user_id=ann").await, of_ann);
}

/// A service that may not ask for people names none, in any way.
async fn nobody_else_names_a_person(crm: Desk<'_>) {
    assert_eq!(crm.listed("user_id=ann").await, json!([]), "another's numbers");
    let (status, refused) = crm.number("d4", &ANN).await;
    assert_eq!((status, &refused["code"]), (403, &json!("not-permitted")), "{refused}");
    let url = format!("{}/api/v1/documents/d4/generate-number", crm.service.url);
    let mut body = spo();
    body["on_behalf_of"] = json!({ "user": "ann" });
    let in_body =
        testkit::client().post(url).json(&body).bearer_auth(crm.token).send().await.unwrap();
    assert_eq!(in_body.status(), 422);
    assert_eq!(crm.number("d4", &[("x-forwarded-for", "203.0.113.9")]).await.0, 201);
    let own = journaled(&crm, "from=2020-01-01", 1).await;
    assert_eq!(own, json!([["crm", null, "127.0.0.1"]]), "nobody believes the header");
}

/// A person uses up a quota at one node, and has none at the other once they have shared it.
async fn a_quota_is_one_at_all_nodes(erp: Desk<'_>, other: Desk<'_>) {
    for left in (0..QUOTA).rev() {
        let answer = erp.preview("bob").await;
        assert_eq!(answer.status(), 200);
        let rate = answer.headers()["ratelimit"].to_str().unwrap().to_owned();
        // Some come back while others are used.
        let shown = rate.split(";r=").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        assert!(shown.parse::<usize>().unwrap() >= left, "{left}: {rate}");
    }
    let refused = loop {
        let answer = erp.preview("bob").await;
        if answer.status() != 200 {
            break answer;
        }
    };
    let wait_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait_s), "{wait_s}");
    assert!(refused.headers().contains_key("ratelimit-policy"));
    let (status, body) = told(refused).await;
    assert_eq!((status, &body["code"]), (429, &json!("too-many-requests")), "{body}");
    let (deadline, mut admitted) = (Instant::now() + SHARED_MAX, 0);
    while other.preview("bob").await.status() == 200 {
        admitted += 1;
        assert!(admitted < QUOTA / 2 && Instant::now() < deadline, "{admitted} more at the other");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(other.preview("cid").await.status(), 200, "others go on");
}

#[tokio::test]
async fn a_person_is_journaled_with_the_service_and_limited_at_every_node() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("people"), Some(&redis.url()));
    deployment.extra = format!(
        "[auth]\nmode = \"on\"\n[limits]\nuser_per_minute = {QUOTA}\naddress_per_minute = 0\n"
    );
    deployment.apply_examples();
    let create = |name: &str, rest: &[&str]| {
        deployment.ok(&[&["token", "create", name][..], rest].concat()).trim().to_owned()
    };
    let erp = create("erp", &["--speaks-for-people", "--requests-per-minute", "1000000"]);
    let crm = create("crm", &[]);
    let auditor = create("audit", &["--role", "auditor"]);
    let slow = create("slow", &["--requests-per-minute", "1"]);
    let nodes = [deployment.serve(), deployment.serve()];
    let desk = |node: usize, token| Desk { service: &nodes[node], token };
    let (erp, other) = (desk(0, &*erp), desk(1, &*erp));
    person_and_service_are_journaled(erp, other, desk(1, &*auditor)).await;
    nobody_else_names_a_person(desk(0, &*crm)).await;

    // A token has a limit of its own.
    assert_eq!(desk(0, &*slow).number("d5", &[]).await.0, 201);
    let (status, refused) = desk(0, &*slow).number("d6", &[]).await;
    assert_eq!((status, &refused["number_taken"]), (429, &json!("no")), "{refused}");

    a_quota_is_one_at_all_nodes(erp, other).await;

    // Without Redis each node enforces the limits on its own; some come back meanwhile.
    drop(redis);
    let mut admitted = 0;
    while other.preview("dan").await.status() == 200 {
        admitted += 1;
        assert!(admitted < 2 * QUOTA, "{admitted}");
    }
    assert!(admitted >= QUOTA, "{admitted}");
}

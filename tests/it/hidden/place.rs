//! A service, what every caller sees of it, and what some do not.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::service::Service;
use uuid::Uuid;

use super::OBSERVERS;
use super::asks::Ask;
use crate::deployment::Deployment;

/// Longest wait for the journal.
const LIMIT: Duration = Duration::from_secs(30);

/// Headers that depend on the moment or on the length of a body, which is compared itself.
const NOT_COMPARED: [&str; 2] = ["date", "content-length"];

/// Series that exist in each place.
const SERIES: &str = include_str!("series.toml");

/// Callers that reserve in each place.
const HOLDERS: [&str; 4] = ["own", "own-p", "admin-own", "all-p"];

/// What a place has in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden {
    /// Nothing.
    Nothing,
    /// What others were issued: hidden from a caller.
    Numbers,
    /// Another project and other series with it: hidden from a narrowed caller.
    Everything,
}

/// Ids by which asks name what exists, and what is hidden.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    pub(super) one: i64,
    pub(super) spare: i64,
    pub(super) hidden: i64,
    pub(super) counter: i64,
    pub(super) unified: String,
    pub(super) reservation: Uuid,
}

impl Ids {
    /// What does not exist.
    pub(super) const UNKNOWN: Ids = Ids {
        one: 0,
        spare: 0,
        hidden: 4_242_424,
        counter: 4_343_434,
        unified: String::new(),
        reservation: Uuid::from_u128(42),
    };
}

/// An answer, as far as it is compared.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    headers: BTreeMap<String, String>,
    pub(super) body: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {}", self.status, self.headers, self.body)
    }
}

/// A service and its callers.
pub(super) struct Place {
    service: Service,
    _deployment: Deployment,
    tokens: BTreeMap<&'static str, String>,
    /// Two reservations and a block of each caller that may have any.
    held: BTreeMap<&'static str, [Uuid; 3]>,
    client: Client,
    pub(super) hidden: Hidden,
    pub(super) ids: Ids,
}

/// A unified serial's caller.
fn system(name: &str, more: &Value) -> Value {
    let mut all =
        json!({ "system": name, "module": "A01", "instance": "01", "date": "2015-07-10" });
    all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    all
}

impl Place {
    /// Places with those in them, by name, and the same tokens. What is not hidden comes first, and
    /// some of it last: what is hidden lies between.
    pub(super) async fn build(places: Vec<(Deployment, Hidden)>) -> Vec<Self> {
        let Some((first, _)) = places.first() else { return Vec::new() };
        let mut tokens = BTreeMap::new();
        let mut settings = String::new();
        let all = [("all", "roles = [\"caller\", \"super-admin\"]"), ("other", "")];
        for (name, lines) in OBSERVERS.iter().map(|(name, lines, _)| (*name, *lines)).chain(all) {
            let made = first.ok(&["token", "create", name, "--for-settings", "--json"]);
            let made: Value = serde_json::from_str(&made).unwrap();
            let hash = &made["sha256"];
            settings += &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\n{lines}\n");
            tokens.insert(name, made["token"].as_str().unwrap().to_owned());
        }
        // What blocks comes before what is waited for: no connection idles meanwhile.
        let mut places: Vec<Self> = places
            .into_iter()
            .map(|(mut deployment, hidden)| {
                let file = deployment.path("series.toml");
                std::fs::write(&file, SERIES).unwrap();
                let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/series");
                deployment.apply(&[file, examples.join("hivenet-serials.toml")]);
                deployment.extra += &settings;
                // A connection is given up before the service ends it, which it does after ten idle
                // seconds: a request that crosses its end has no answer.
                let client = testkit::client_builder().pool_idle_timeout(Duration::from_secs(5));
                let client = client.build().unwrap();
                let (service, ids) = (deployment.serve(), Ids::UNKNOWN);
                let tokens = tokens.clone();
                let held = BTreeMap::new();
                Place { service, _deployment: deployment, tokens, held, client, hidden, ids }
            })
            .collect();
        join_all(places.iter_mut().map(Place::fill)).await;
        places
    }

    async fn fill(&mut self) {
        let reference = |table: &str| format!("/api/v1/document-numbering/reference/{table}");
        let row = |id: &str, code: &str| json!({ "id": id, "code": code });
        let belongs = |id: &str, of: &str| json!({ "id": id, "of_table": "projects", "of_id": of });
        let rows = |rows: Value| json!({ "rows": rows, "reason": "new" });
        self.done("all", &reference("projects"), &rows(json!([row("1", "P1")]))).await;
        self.done("all", &reference("orgs"), &rows(json!([row("1", "A"), row("2", "B")]))).await;
        let memberships = json!({ "memberships": [belongs("1", "1")], "reason": "new" });
        self.done("all", &reference("orgs"), &memberships).await;
        for (who, kind, document) in [
            ("own", "OPEN", "shared"),
            ("own", "BOTH", "labelled"),
            ("own", "SHARED", "counted"),
            ("own-p", "OPEN", "narrow"),
            ("own-s", "ONE", "narrow"),
            ("all", "MINE", "mine"),
        ] {
            self.number(who, document, &json!({ "type": kind, "project": "P1" })).await;
        }
        let of_member =
            json!({ "type": "REFD", "project": "P1", "context": { "ORIGINATOR": "A" } });
        self.number("all", "referred", &of_member).await;
        let range = json!({ "type": "OPEN", "project": "P1", "count": 5 });
        self.done("own", "/api/v1/document-numbering/batches", &range).await;
        let unified =
            self.done("own", "/api/v1/serials/unified", &system("C0001", &json!({}))).await;
        self.ids.unified = unified["serial"].as_str().unwrap().to_owned();
        let step = json!({ "unified_serial": self.ids.unified, "step": "pay" });
        self.done("own", "/api/v1/serials/system", &system("C0001", &step)).await;
        (self.ids.one, self.ids.spare) = (self.config("ONE").await, self.config("SPARE").await);
        self.hold().await;
        let label = json!({ "rev": "C", "series": "BOTH" });
        self.labelled("own", "labelled", &label).await;
        match self.hidden {
            Hidden::Nothing => {}
            Hidden::Numbers => {
                self.hide_numbers().await;
                self.ids.reservation = self.reserved("other", "P4", "hidden").await;
            }
            Hidden::Everything => {
                self.hide_series().await;
                self.hide_numbers().await;
                self.ids.reservation = self.reserved("other", "P2", "hidden").await;
            }
        }
        let again = json!({ "type": "OPEN", "project": "P1", "again": true });
        self.number("own", "shared", &again).await;
        self.number("own", "shared", &json!({ "type": "ONE", "project": "P1" })).await;
        if self.hidden != Hidden::Nothing {
            self.number(
                "other",
                "shared",
                &json!({ "type": "SHARED", "project": "P4", "again": true }),
            )
            .await;
        }
        self.must_be_journaled().await;
    }

    /// Two reservations and a block of each caller that may have any.
    async fn hold(&mut self) {
        for who in HOLDERS {
            let (held, other) = (format!("{who}-held"), format!("{who}-given-up"));
            let [held, other] =
                [self.reserved(who, "P1", &held).await, self.reserved(who, "P1", &other).await];
            let block = self.block(who).await;
            self.held.insert(who, [held, other, block]);
        }
    }

    /// Waits until the journal has all numbers: once the last of each is there, all are.
    async fn must_be_journaled(&self) {
        let numbers = "/api/v1/document-numbering/numbers?from=2020-01-01&limit=1000";
        let last = json!({ "type": "OPEN", "project": "P1", "count": 1, "document_id": "last" });
        self.done("other", "/api/v1/document-numbering/batches", &last).await;
        eventually(LIMIT, async || {
            let list = self.ask(Some("all"), &Ask::get(numbers, numbers), &self.ids).await.body;
            let all = ["\"last\"", "\"referred\"", "\"counted\"", "\"mine\"", "\"labelled\""];
            match all.iter().all(|document| list.contains(document)) {
                true => Ok(()),
                false => Err(list),
            }
        })
        .await;
    }

    /// What others were issued, under names that are known to all.
    async fn hide_numbers(&self) {
        for (kind, project) in [("BOTH", "P4"), ("SHARED", "P4")] {
            for document in ["shared", "labelled", "counted", "hidden"] {
                let order = json!({ "type": kind, "project": project, "again": true });
                self.number("other", document, &order).await;
            }
        }
        let (unified, spy) = (&self.ids.unified, "D0002");
        let step = system(spy, &json!({ "unified_serial": unified, "step": "spy" }));
        let serial = self.done("other", "/api/v1/serials/system", &step).await["serial"].clone();
        let begin = json!({ "serial": serial, "unified_serial": unified });
        self.done("other", "/api/v1/serials/system/begin", &begin).await;
        let call = json!({ "unified_serial": unified, "target": "C0001", "date": null });
        let call = self.done("other", "/api/v1/serials/interface", &system(spy, &call)).await;
        let check = json!({ "serial": call["serial"], "window": "1h", "unified_serial": unified });
        self.done("other", "/api/v1/serials/interface/check", &check).await;
        self.labelled("other", "hidden", &json!({ "rev": "B", "series": "BOTH" })).await;
    }

    /// A reservation of a caller, for a day.
    async fn reserved(&self, who: &str, project: &str, document: &str) -> Uuid {
        let order = json!({
            "type": "HELD", "project": project, "document_id": document, "ttl": "1d",
        });
        let path = "/api/v1/document-numbering/reservations";
        let made = self.done(who, path, &order).await;
        made["reservation_id"].as_str().unwrap().parse().unwrap()
    }

    /// A block of a caller.
    async fn block(&self, who: &str) -> Uuid {
        let order = json!({ "type": "HELD", "project": "P1", "count": 2 });
        let url = format!("{}/api/v1/document-numbering/reservations", self.service.url);
        let request = self.client.post(url).bearer_auth(&self.tokens[who]);
        let request = request.header("Idempotency-Key", format!("block-{who}"));
        let answer = request.json(&order).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{who}");
        let made: Value = answer.json().await.unwrap();
        made["reservation_id"].as_str().unwrap().parse().unwrap()
    }

    /// A label for a number that the journal may not have yet.
    async fn labelled(&self, who: &str, document: &str, label: &Value) {
        let mut ask = Ask::post("", "", label.clone());
        ask.path = format!("/api/v1/documents/{document}/revisions");
        eventually(LIMIT, async || {
            let told = self.ask(Some(who), &ask, &self.ids).await;
            if told.status < 300 { Ok(()) } else { Err(told) }
        })
        .await;
    }

    /// Another project: its row, its members, its series, in each state, and their numbers.
    async fn hide_series(&mut self) {
        let reference = |table: &str| format!("/api/v1/document-numbering/reference/{table}");
        let row = |id: &str, code: &str| json!({ "id": id, "code": code });
        let belongs = |id: &str| json!({ "id": id, "of_table": "projects", "of_id": "2" });
        let rows = |rows: Value| json!({ "rows": rows, "reason": "new" });
        self.done("all", &reference("projects"), &rows(json!([row("2", "P2"), row("3", "P3")])))
            .await;
        let memberships = json!({ "memberships": [belongs("1"), belongs("2")], "reason": "new" });
        self.done("all", &reference("orgs"), &memberships).await;
        self.done("all", &reference("secret"), &rows(json!([row("1", "S")]))).await;
        let configs = "/api/v1/document-numbering/configs";
        let series = |code: &str, template: &str| {
            json!({
                "code": code, "name": "hidden", "template": template, "reason": "hidden",
                "serves": { "types": [code], "projects": ["P2"] },
                "variables": { "X": { "reference": "secret" } },
                "serials": [{ "counter": ["project"] }],
            })
        };
        for (code, template) in [
            ("HID", "HID{PROJECT}-{SEQ:4}"),
            ("HIDOFF", "HOFF{PROJECT}-{SEQ:4}"),
            ("HIDOUT", "HOUT-{SEQ:4}"),
        ] {
            self.done("all", configs, &series(code, template)).await;
        }
        self.ids.hidden = self.config("HID").await;
        let reason = json!({ "reason": "hidden" });
        let off = self.config("HIDOFF").await;
        self.done("all", &format!("{configs}/{off}/deactivate"), &reason).await;
        let out = self.config("HIDOUT").await;
        let mut removal = Ask::get(configs, configs);
        (removal.method, removal.if_match) = (Method::DELETE, Some("\"1\"".to_owned()));
        removal.path = format!("{configs}/{out}?reason=hidden");
        assert_eq!(self.ask(Some("all"), &removal, &self.ids).await.status, 204);
        for document in ["shared", "labelled", "hidden"] {
            self.number("other", document, &json!({ "type": "HID", "project": "P2" })).await;
        }
        let counters = "/api/v1/document-numbering/counters?series=HID";
        let found = self.ask(Some("all"), &Ask::get(counters, counters), &self.ids).await.body;
        let found: Value = serde_json::from_str(&found).unwrap();
        self.ids.counter = found["counters"][0]["counter_id"].as_i64().unwrap();
        let order = json!({
            "counter_id": self.ids.counter, "next_value": 100,
            "reason": "hidden from narrowed ones",
        });
        self.done("all", &format!("{configs}/{}/reset-counter", self.ids.hidden), &order).await;
    }

    async fn config(&self, code: &str) -> i64 {
        let path = format!("/api/v1/document-numbering/configs/{code}");
        let mut ask = Ask::get("", "");
        ask.path = path;
        let config = self.ask(Some("all"), &ask, &self.ids).await.body;
        serde_json::from_str::<Value>(&config).unwrap()["config_id"].as_i64().unwrap()
    }

    async fn number(&self, who: &str, document: &str, order: &Value) {
        let path = format!("/api/v1/documents/{document}/generate-number");
        self.done(who, &path, order).await;
    }

    /// What must be done.
    async fn done(&self, who: &str, path: &str, body: &Value) -> Value {
        let mut ask = Ask::post("", "", body.clone());
        path.clone_into(&mut ask.path);
        let told = self.ask(Some(who), &ask, &self.ids).await;
        assert!(told.status < 300, "{who} {path} {body}: {told}");
        serde_json::from_str(&told.body).unwrap_or_default()
    }

    /// The answer to a caller; ids of what is hidden are those given.
    pub(super) async fn ask(&self, who: Option<&str>, ask: &Ask, ids: &Ids) -> Answer {
        let said = |text: &str| {
            let text = text.replace("{one}", &self.ids.one.to_string());
            let text = text.replace("{spare}", &self.ids.spare.to_string());
            let text = text.replace("{hidden}", &ids.hidden.to_string());
            let text = text.replace("{counter}", &ids.counter.to_string());
            let text = text.replace("{unified}", &self.ids.unified);
            let none = [Ids::UNKNOWN.reservation; 3];
            let [held, given_up, block] = who.and_then(|who| self.held.get(who)).unwrap_or(&none);
            let text = text.replace("{block}", &block.to_string());
            let text = text.replace("{held}", &held.to_string());
            let text = text.replace("{given_up}", &given_up.to_string());
            let text = text.replace("{reservation}", &ids.reservation.to_string());
            text.replace("{who}", who.unwrap_or("nobody"))
        };
        let url = format!("{}{}", self.service.url, said(&ask.path));
        let mut request = self.client.request(ask.method.clone(), url);
        request = request.header("X-Request-Id", "asked");
        if let Some(who) = who {
            request = request.bearer_auth(&self.tokens[who]);
        }
        if let Some(tag) = &ask.if_match {
            request = request.header("If-Match", said(tag));
        }
        if let Some(body) = &ask.body {
            request =
                request.header("Content-Type", "application/json").body(said(&body.to_string()));
        }
        let answer = request.send().await.unwrap();
        let headers =
            answer.headers().iter().filter(|(name, _)| !NOT_COMPARED.contains(&name.as_str()));
        let text = |value: &reqwest::header::HeaderValue| value.to_str().unwrap_or("?").to_owned();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
        Answer { status: answer.status().as_u16(), headers, body: answer.text().await.unwrap() }
    }
}

//! The life of numbers over HTTP and on the command line: each cell of the table, replacements
//! whose link got lost, rights, and what is shown of it all.

mod commands;
mod ranges;
pub(crate) mod reserved;
mod shown;

use std::time::Duration;

use numerator::features::lifecycle::table::{Deed, Outcome, State, outcome};
use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

const REASON: &str = "typed for the wrong customer";
const REGISTER: &str = "document-numbering/numbers/register";

/// Numbers that show `REV` and count by nothing; `NOTE` is kept for the record alone.
const SETTINGS: &str = "once_per_document = true\n\
    variables = { REV = { default = 'A' }, NOTE = {}, TO = {} }\n";

fn apply(deployment: &Deployment, code: &str, template: &str) {
    deployment.apply(&[deployment.series_file(code, template, SETTINGS)]);
}

/// A number and the document that it was taken for.
#[derive(Clone, Debug)]
struct Numbered {
    number: String,
    document: String,
    /// The id of its allocation, which is that of its reservation, where it is known.
    allocation: String,
    /// The request that replaced it.
    replaced_with: Option<Value>,
}

/// The document for which a number is registered by hand: it has no other number.
fn other_document(number: &str) -> String {
    format!("paper-{number}")
}

/// A client of a service.
struct Desk<'a> {
    service: &'a Service,
    documents: std::cell::Cell<u32>,
}

impl<'a> Desk<'a> {
    fn of(service: &'a Service) -> Self {
        Desk { service, documents: std::cell::Cell::new(0) }
    }

    async fn call(&self, path: &str, body: &Value) -> (u16, Value) {
        let url = format!("{}/api/v1/{path}", self.service.url);
        post(&testkit::client(), &url, body).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let url = format!("{}/api/v1/document-numbering/{path}", self.service.url);
        let answer = testkit::client().get(url).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// The rows of a number, as soon as the ledger has them: what Redis took comes there later.
    async fn rows(&self, number: &str) -> Vec<Value> {
        eventually(Duration::from_secs(10), async || {
            let (status, body) = self.get(&format!("numbers/{number}")).await;
            let rows = body["numbers"].as_array().filter(|rows| status == 200 && !rows.is_empty());
            rows.cloned().ok_or(body)
        })
        .await
    }

    async fn generate(&self, document: &str, more: &Value) -> (u16, Value) {
        let mut body = json!({ "type": "LIFE", "date": "2024-01-22", "context": { "NOTE": "n" } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call(&format!("documents/{document}/generate-number"), &body).await
    }

    async fn void(&self, number: &str, reason: &str) -> (u16, Value) {
        let body = json!({ "number": number, "reason": reason });
        self.call("document-numbering/numbers/void", &body).await
    }

    async fn correct(&self, number: &str, context: Value) -> (u16, Value) {
        let body = json!({ "number": number, "context": context, "reason": REASON });
        self.call("document-numbering/numbers/correct", &body).await
    }

    /// A number that was just issued, or one that was voided or replaced since.
    async fn number(&self, state: State) -> Numbered {
        self.documents.set(self.documents.get() + 1);
        let document = format!("d{}", self.documents.get());
        let (status, body) = self.generate(&document, &json!({})).await;
        assert_eq!(status, 201, "{body}");
        let number = body["document_number"].as_str().unwrap().to_owned();
        let allocation = String::new();
        let mut numbered = Numbered { number, document, allocation, replaced_with: None };
        if state != State::Issued {
            let (status, body) = self.void(&numbered.number, REASON).await;
            assert_eq!((status, &body["status"]), (200, &json!("voided")), "{body}");
        }
        if state == State::Replaced {
            let request = json!({ "replaces": numbered.number });
            let (status, body) = self.generate(&numbered.document, &request).await;
            assert_eq!(status, 201, "{body}");
            numbered.replaced_with = Some(request);
        }
        numbered
    }

    /// Does something with a number.
    async fn act(&self, of: &Numbered, deed: Deed) -> (u16, Value) {
        let reservation = format!("document-numbering/reservations/{}", of.allocation);
        match deed {
            Deed::Reserve => {
                let document = &of.document;
                let body = json!({ "type": "LIFE", "date": "2024-01-22", "document_id": document,
                    "context": { "NOTE": "n" } });
                self.call("document-numbering/reservations", &body).await
            }
            Deed::Confirm => self.call(&format!("{reservation}/confirm"), &json!({})).await,
            Deed::Cancel => self.call(&format!("{reservation}/cancel"), &json!({})).await,
            Deed::HandBack => {
                self.call(&format!("{reservation}/hand-back"), &json!({ "used": [] })).await
            }
            Deed::Look => self.get(&format!("reservations/{}", of.allocation)).await,
            Deed::Void => self.void(&of.number, "another reason").await,
            Deed::VoidAgain => self.void(&of.number, REASON).await,
            Deed::Replace => {
                let other = json!({ "replaces": of.number, "date": "2024-01-23" });
                self.generate(&of.document, &other).await
            }
            Deed::ReplaceAgain => {
                let same = of.replaced_with.clone();
                let same = same.unwrap_or_else(|| json!({ "replaces": of.number }));
                self.generate(&of.document, &same).await
            }
            Deed::Correct => self.correct(&of.number, json!({ "NOTE": "better" })).await,
            Deed::Assign => {
                let body =
                    json!({ "number": of.number, "document_id": other_document(&of.number) });
                self.call("document-numbering/numbers/assign", &body).await
            }
            Deed::Revise => {
                let body = json!({ "rev": "B", "number": of.number });
                self.call(&format!("documents/{}/revisions", of.document), &body).await
            }
            Deed::GenerateAgain => self.generate(&of.document, &json!({})).await,
            Deed::Register => {
                let other = other_document(&of.number);
                let body = json!({ "type": "LIFE", "date": "2024-01-22", "document_id": other,
                    "number": of.number, "context": { "NOTE": "n" }, "reason": REASON });
                self.call(REGISTER, &body).await
            }
            Deed::Archive => unreachable!("a command"),
        }
    }

    /// What a number is, as a look-up shows it.
    async fn state(&self, number: &str) -> State {
        let (status, body) = self.get(&format!("numbers?number={number}")).await;
        match (status, body["numbers"][0]["status"].as_str()) {
            (200, Some("issued")) => State::Issued,
            (200, Some("voided")) => State::Voided,
            (200, Some("replaced")) => State::Replaced,
            (404, _) if body["detail"].as_str().unwrap().contains("archive") => State::Archived,
            (404, _) => State::None,
            other => panic!("{number}: {other:?}: {body}"),
        }
    }
}

/// Each deed over HTTP upon a number in a state of its own. What is done with reservations is tried
/// upon reserved numbers, and upon archived ones here.
async fn each_cell(desk: &Desk<'_>, state: State, mut next: impl AsyncFnMut() -> Numbered) {
    let is_tried = |deed: &Deed| {
        *deed != Deed::Archive && (state == State::Archived || !deed.is_of_reservations())
    };
    // Registering comes last: of some states all calls have one number, which is issued then.
    for deed in Deed::ALL.into_iter().filter(is_tried) {
        let Some(Outcome { status, code, then }) = outcome(state, deed) else { continue };
        let number = next().await;
        let before = desk.state(&number.number).await;
        let (found, body) = desk.act(&number, deed).await;
        let said = (found, body["code"].as_str());
        assert_eq!(said, (status, code), "{state:?}, {deed:?}: {body}");
        let taken = if code.is_some() { json!("no") } else { Value::Null };
        assert_eq!(body["number_taken"], taken, "{state:?}, {deed:?}: {body}");
        let expected = if then == state { before } else { then };
        assert_eq!(desk.state(&number.number).await, expected, "{state:?}, {deed:?}");
    }
}

/// Goal: the table of lives is what the service does. Method: walks its function, each cell with a
/// number of its own, and compares answer and state; the clock is three days behind while the
/// numbers are taken that are archived.
#[tokio::test(flavor = "multi_thread")]
async fn each_call_answers_in_each_state_as_the_table_of_lives_says() {
    let (postgres, folder) = (Postgres::start(), tempfile::tempdir().unwrap());
    let offset = folder.path().join("offset");
    let program = || program_with(&off_by(&offset));
    for mut deployment in [
        Deployment::sqlite_of(program(), None),
        Deployment::of(program(), &postgres.url("lives"), None),
    ] {
        std::fs::write(&offset, "-3d").unwrap();
        deployment.extra = "[node]\nclock_offset_max = \"3650d\"\n".into();
        let gapless = format!("{SETTINGS}policy = \"gapless\"\nby_hand = true\n");
        deployment.apply(&[deployment.series_file("LIFE", "LIFE-{SEQ:4}-{REV}", &gapless)]);
        let service = deployment.serve();
        let desk = Desk::of(&service);
        let mut old = Vec::new();
        for _ in Deed::ALL {
            let numbered = desk.number(State::Issued).await;
            let row = desk.rows(&numbered.number).await.remove(0);
            let allocation = row["allocation_id"].as_str().unwrap().to_owned();
            old.push(Numbered { allocation, ..numbered });
        }
        let stays = [desk.number(State::Voided).await, desk.number(State::Replaced).await];
        let corrected = desk.number(State::Issued).await;
        assert_eq!(desk.correct(&corrected.number, json!({ "NOTE": "x" })).await.0, 200);
        for state in [State::Issued, State::Voided, State::Replaced] {
            each_cell(&desk, state, async || desk.number(state).await).await;
        }
        let nobodys = Numbered {
            number: "LIFE-9000-A".into(),
            document: "nobody".into(),
            allocation: String::new(),
            replaced_with: None,
        };
        each_cell(&desk, State::None, async || nobodys.clone()).await;
        assert!(service.terminate());
        std::fs::write(&offset, "+0").unwrap();
        // The value behind the last one is passed over.
        let counters: Value =
            serde_json::from_str(&deployment.ok(&["counters", "--json"])).unwrap();
        let counter = &counters["counters"][0];
        let value = counter["value"].as_str().unwrap().parse::<u64>().unwrap();
        let id = counter["counter_id"].to_string();
        let next = (value + 2).to_string();
        deployment.ok(&["move-counter", &id, "--next", &next, "--reason", "a blank sheet"]);
        let to = deployment.path("archive").display().to_string();
        let before = crate::archive::days_ago_text();
        deployment.ok(&["archive", "--before", &before, "--to", &to]);
        let service = deployment.serve();
        let desk = Desk::of(&service);
        let spent = Numbered { number: format!("LIFE-{:04}-A", value + 1), ..nobodys };
        each_cell(&desk, State::Spent, async || spent.clone()).await;
        assert_eq!(desk.state(&old[0].number).await, State::Archived);
        for (number, state) in stays.iter().zip([State::Voided, State::Replaced]) {
            let archived = outcome(state, Deed::Archive).unwrap();
            assert_eq!(desk.state(&number.number).await, archived.then);
        }
        assert_eq!(desk.state(&corrected.number).await, State::Issued, "a correction keeps it");
        let mut old = old.into_iter();
        each_cell(&desk, State::Archived, async || old.next().unwrap()).await;
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// The services on which replacements are tried: on SQLite alone, and where Redis takes the numbers
/// and PostgreSQL remembers them.
fn deployments(postgres: &Postgres, redis: &Redis, schema: &str) -> [Deployment; 2] {
    [Deployment::embedded(), Deployment::new(&postgres.url(schema), Some(&redis.url()))]
}

/// Goal: a process that dies between a number and its link leaves nothing that a retry does not
/// repair (L17). Method: the link of a finished replacement is removed, as if it had never been
/// written; the same request comes again, and then another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_whose_link_got_lost_is_linked_by_its_retry() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "unlinked") {
        apply(&deployment, "LIFE", "LIFE-{SEQ:4}-{REV}");
        let service = deployment.serve();
        let desk = Desk::of(&service);
        let old = desk.number(State::Replaced).await;
        let request = old.replaced_with.clone().unwrap();
        let row = desk.rows(&old.number).await.remove(0);
        let new = row["replaced_by"].as_str().unwrap().to_owned();
        forget_links(&deployment).await;
        assert_eq!(desk.state(&old.number).await, State::Voided);
        let (status, body) = desk.generate(&old.document, &request).await;
        assert_eq!((status, body["document_number"].as_str()), (200, Some(&*new)), "{body}");
        assert_eq!(body["status"], "issued");
        let row = desk.rows(&old.number).await.remove(0);
        assert_eq!((&row["status"], &row["replaced_by"]), (&json!("replaced"), &json!(new)));
        // Another request for the same place takes nothing, in either document's name.
        for document in [old.document.as_str(), "another"] {
            let other = json!({ "replaces": old.number, "date": "2024-01-25" });
            let (status, body) = desk.generate(document, &other).await;
            let said = (status, &body["code"], &body["number_taken"]);
            assert_eq!(said, (409, &json!("already-replaced"), &json!("no")), "{body}");
            assert!(body["detail"].as_str().unwrap().contains(&new), "{body}");
        }
        // A number that was taken for the place, and came second: it is named.
        let first = desk.number(State::Voided).await;
        let late = json!({ "replaces": first.number, "date": "2024-01-26" });
        let (_, taken) = desk.generate("late", &late).await;
        forget_links(&deployment).await;
        let (status, _) = desk.generate("early", &json!({ "replaces": first.number })).await;
        assert_eq!(status, 201);
        let (status, body) = desk.generate("late", &late).await;
        let said = (status, &body["code"], &body["number_taken"], &body["document_number"]);
        let number = &taken["document_number"];
        assert_eq!(said, (409, &json!("already-replaced"), &json!("maybe"), number), "{body}");
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// Removes every link, against the trigger that keeps them.
async fn forget_links(deployment: &Deployment) {
    let url = deployment.database_url();
    if url.starts_with("sqlite") {
        let pool = sqlx::SqlitePool::connect(url).await.unwrap();
        let kept: String =
            "select sql from sqlite_schema where name = 'life_is_not_removed'".into();
        let kept: String =
            sqlx::query_scalar(sqlx::AssertSqlSafe(kept)).fetch_one(&pool).await.unwrap();
        for sql in
            ["drop trigger life_is_not_removed", "delete from life where act = 'replaced'", &kept]
        {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&pool).await.unwrap();
        }
        pool.close().await;
    } else {
        let pool = sqlx::PgPool::connect(url).await.unwrap();
        let sql = "alter table life disable trigger life_stays; \
                   delete from life where act = 'replaced'; \
                   alter table life enable trigger life_stays";
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&pool).await.unwrap();
    }
}

/// Two requests with different payloads want one place at once: one has it, and the other one is
/// told which number it took in vain, unless it took none.
#[tokio::test(flavor = "multi_thread")]
async fn of_replacements_that_come_at_once_one_stands_and_the_others_are_told() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    for deployment in deployments(&postgres, &redis, "at_once") {
        apply(&deployment, "LIFE", "LIFE-{SEQ:4}-{REV}");
        let service = deployment.serve();
        let desk = Desk::of(&service);
        let old = desk.number(State::Voided).await;
        let requests = (0..8).map(|index| {
            let url = format!("{}/api/v1/documents/r{index}/generate-number", service.url);
            let body = json!({ "type": "LIFE", "date": "2024-01-22", "replaces": old.number });
            async move { post(&testkit::client(), &url, &body).await }
        });
        let answers = futures_util::future::join_all(requests).await;
        let given: Vec<_> = answers.iter().filter(|(status, _)| *status == 201).collect();
        assert_eq!(given.len(), 1, "{answers:?}");
        let row = desk.rows(&old.number).await.remove(0);
        assert_eq!(row["replaced_by"], given[0].1["document_number"]);
        let mut in_vain = Vec::new();
        for (status, body) in answers.iter().filter(|(status, _)| *status != 201) {
            assert_eq!((*status, &body["code"]), (409, &json!("already-replaced")), "{body}");
            if body["number_taken"] == "maybe" {
                in_vain.push(body["document_number"].as_str().unwrap().to_owned());
            } else {
                assert_eq!(body["document_number"], Value::Null, "{body}");
            }
        }
        for number in in_vain {
            let (status, body) = desk.void(&number, "taken for a place that was not free").await;
            assert_eq!(status, 200, "{body}");
        }
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

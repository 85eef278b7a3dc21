//! The table of lives where reservations are: each state made over HTTP, each call upon it, on both
//! engines.

use std::time::Duration;

use numerator::features::lifecycle::table::{Deed, Outcome, State, outcome};
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use testkit::eventually::eventually;
use testkit::postgres::Postgres;

use super::{Desk, Numbered, REASON, REGISTER, other_document};
use crate::deployment::Deployment;

/// How soon a state is reached: a sweep has done what is due.
const LIMIT: Duration = Duration::from_secs(30);

/// States that a sweep would end while they are looked at.
const PASSING: [State; 3] = [State::Over, State::Confirmed, State::Cancelled];

/// States that are made with one process and no transaction of a caller.
const STATES: [State; 10] = [
    State::None,
    State::Reserved,
    State::Over,
    State::Confirmed,
    State::Cancelled,
    State::Returned,
    State::Spent,
    State::Issued,
    State::Voided,
    State::Replaced,
];

/// A number with its reservation, on a counter of its own.
#[derive(Debug)]
struct Held {
    of: Numbered,
    code: &'static str,
    lot: String,
}

impl Held {
    /// What was asked for it.
    fn request(&self, more: &[(&str, &str)]) -> Value {
        let context = json!({ "NOTE": "n", "LOT": self.lot });
        let mut body = json!({ "type": self.code, "date": "2024-01-22", "context": context });
        for (name, value) in more {
            body[*name] = json!(value);
        }
        body
    }
}

/// Two series of which each lot has a counter; `KEEP` keeps its order of dates, so that what ends
/// is a gap for good.
fn apply(deployment: &Deployment) {
    let series = |code: &str, more: &str| {
        format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\n\
             template = \"{code}-{{LOT}}-{{SEQ:4}}-{{REV}}\"\npolicy = \"gapless\"\n\
             once_per_document = true\nby_hand = true\n{more}serves = {{ types = [\"{code}\"] }}\n\
             variables = {{ REV = {{ default = \"A\" }}, NOTE = {{}}, \
             LOT = {{ alphabet = \"0-9\", width_max = 6 }} }}\n\
             [[series.serials]]\ncounter = [\"type\", \"LOT\"]\n"
        )
    };
    for (code, more) in [("LIFE", ""), ("KEEP", "chronology = true\n")] {
        let file = deployment.path(&format!("{code}.toml"));
        std::fs::write(&file, series(code, more)).unwrap();
        deployment.apply(&[file]);
    }
}

/// Runs statements of the ledger past the program.
async fn run(deployment: &Deployment, sqlite: &[&str], postgres: &[&str]) {
    let url = deployment.database_url();
    if url.starts_with("sqlite") {
        let pool = sqlx::SqlitePool::connect(url).await.unwrap();
        for sql in sqlite {
            sqlx::raw_sql(AssertSqlSafe((*sql).to_owned())).execute(&pool).await.unwrap();
        }
        pool.close().await;
    } else {
        let pool = sqlx::PgPool::connect(url).await.unwrap();
        for sql in postgres {
            sqlx::raw_sql(AssertSqlSafe((*sql).to_owned())).execute(&pool).await.unwrap();
        }
        pool.close().await;
    }
}

/// Keeps every reservation where it is: no sweep can remove one, and each is rolled back.
pub(crate) async fn keep(deployment: &Deployment) {
    let sqlite = "create trigger kept before delete on reservation \
                  begin select raise(ignore); end";
    let function = "create function kept() returns trigger language plpgsql \
                    as $$ begin return null; end $$";
    let trigger = "create trigger kept before delete on reservation \
                   for each row execute function kept()";
    run(deployment, &[sqlite], &[function, trigger]).await;
}

/// Lets sweeps go on.
pub(crate) async fn let_go(deployment: &Deployment) {
    let postgres = ["drop trigger kept on reservation", "drop function kept()"];
    run(deployment, &["drop trigger kept"], &postgres).await;
}

/// Whether a call upon a number in a passing state ends its reservation, or has it journaled.
fn ends_it(state: State, deed: Deed) -> bool {
    match deed {
        Deed::Reserve | Deed::GenerateAgain => state != State::Confirmed,
        Deed::Register => matches!(state, State::Over | State::Cancelled),
        Deed::Confirm | Deed::Cancel | Deed::HandBack | Deed::Look | Deed::Archive => false,
        _ => state == State::Confirmed,
    }
}

impl Desk<'_> {
    async fn reserve(&self, held: &Held, ttl: &str) -> (u16, Value) {
        let more = [("document_id", held.of.document.as_str()), ("ttl", ttl)];
        self.call("document-numbering/reservations", &held.request(&more)).await
    }

    async fn decide(&self, held: &Held, act: &str) -> (u16, Value) {
        let path = format!("document-numbering/reservations/{}/{act}", held.of.allocation);
        self.call(&path, &json!({})).await
    }

    async fn take(&self, held: &Held, more: &[(&str, &str)]) -> (u16, Value) {
        let path = format!("documents/{}/generate-number", held.of.document);
        self.call(&path, &held.request(more)).await
    }

    /// A number in a state of reservations, or one that was reserved before.
    async fn hold(&self, state: State) -> Held {
        self.documents.set(self.documents.get() + 1);
        let (lot, code) = (
            self.documents.get().to_string(),
            match state {
                State::Spent => "KEEP",
                _ => "LIFE",
            },
        );
        let (number, document) = (format!("{code}-{lot}-9000-A"), format!("r{lot}"));
        let allocation = uuid::Uuid::new_v4().to_string();
        let of = Numbered { number, document, allocation, replaced_with: None };
        let mut held = Held { of, code, lot };
        if state == State::None {
            return held;
        }
        let ttl = if state == State::Over { "1s" } else { "10m" };
        let (status, body) = self.reserve(&held, ttl).await;
        assert_eq!(status, 201, "{body}");
        held.of.allocation = body["reservation_id"].as_str().unwrap().to_owned();
        held.of.number = body["document_number"].as_str().unwrap().to_owned();
        let act = match state {
            State::Reserved | State::Over | State::Open => None,
            State::Cancelled | State::Returned | State::Spent => Some("cancel"),
            _ => Some("confirm"),
        };
        if let Some(act) = act {
            let (status, body) = self.decide(&held, act).await;
            assert_eq!(status, 200, "{act}: {body}");
        }
        if matches!(state, State::Voided | State::Replaced) {
            let (status, body) = self.void(&held.of.number, REASON).await;
            assert_eq!(status, 200, "{body}");
        }
        if state == State::Replaced {
            let replaces = held.of.number.clone();
            let (status, body) = self.take(&held, &[("replaces", &replaces)]).await;
            assert_eq!(status, 201, "{body}");
        }
        self.becomes(&held, state).await;
        held
    }

    /// What a number is, as the look-up of its text shows it.
    async fn standing(&self, held: &Held) -> Option<State> {
        let (status, body) = self.get(&format!("numbers/{}", held.of.number)).await;
        if status == 404 {
            return Some(State::None);
        }
        let reserved = body["reservations"][0]["status"].as_str();
        let gap = body["gaps"][0]["reason"].as_str();
        match (body["numbers"][0]["status"].as_str(), gap, reserved) {
            (Some("issued"), ..) => Some(State::Issued),
            (Some("voided"), ..) => Some(State::Voided),
            (Some("replaced"), ..) => Some(State::Replaced),
            (_, Some("returned"), _) => Some(State::Returned),
            (_, Some("cancelled"), _) => Some(State::Spent),
            (_, _, Some("reserved")) => Some(State::Reserved),
            (_, _, Some("expired")) => Some(State::Over),
            (_, _, Some("issued")) => Some(State::Confirmed),
            (_, _, Some("cancelled")) => Some(State::Cancelled),
            (None, None, None) => Some(State::None),
            // It moved on between two places that the look-up asks.
            _ => None,
        }
    }

    /// Waits until a number is in a state, or in the one to which a sweep takes it on.
    async fn becomes(&self, held: &Held, state: State) {
        let swept = match state {
            State::Confirmed => State::Issued,
            State::Cancelled => State::Returned,
            other => other,
        };
        eventually(LIMIT, async || {
            let found = self.standing(held).await;
            let is_it = found == Some(state) || found == Some(swept);
            if is_it { Ok(()) } else { Err(format!("{held:?}: {found:?}, not {state:?}")) }
        })
        .await;
    }

    /// Does something with a number that is reserved or was.
    async fn act_on(&self, held: &Held, deed: Deed) -> (u16, Value) {
        let number = held.of.number.as_str();
        match deed {
            Deed::Reserve => self.reserve(held, "10m").await,
            Deed::Replace => self.take(held, &[("replaces", number), ("date", "2024-01-23")]).await,
            Deed::ReplaceAgain => self.take(held, &[("replaces", number)]).await,
            Deed::GenerateAgain => self.take(held, &[]).await,
            Deed::Register => {
                let other = other_document(number);
                let more =
                    [("number", number), ("document_id", other.as_str()), ("reason", REASON)];
                self.call(REGISTER, &held.request(&more)).await
            }
            other => self.act(&held.of, other).await,
        }
    }
}

/// One call upon a number of its own.
async fn cell(desk: &Desk<'_>, deployment: &Deployment, state: State, deed: Deed) {
    let Some(Outcome { status, code, then }) = outcome(state, deed) else { return };
    let is_kept = PASSING.contains(&state);
    if is_kept {
        keep(deployment).await;
    }
    let held = desk.hold(state).await;
    if is_kept && ends_it(state, deed) {
        let_go(deployment).await;
    }
    let (found, body) = desk.act_on(&held, deed).await;
    let said = (found, body["code"].as_str());
    assert_eq!(said, (status, code), "{state:?}, {deed:?}: {body}");
    let taken = if code.is_some() { json!("no") } else { Value::Null };
    assert_eq!(body["number_taken"], taken, "{state:?}, {deed:?}: {body}");
    desk.becomes(&held, then).await;
    if is_kept && !ends_it(state, deed) {
        let_go(deployment).await;
    }
}

/// Goal: the table of lives is what the service does with reserved numbers. Method: walks its
/// function; a trigger keeps the states from which a sweep would take a number on.
#[tokio::test(flavor = "multi_thread")]
async fn each_call_answers_in_each_state_of_a_reservation_as_the_table_of_lives_says() {
    let postgres = Postgres::start();
    for deployment in [Deployment::embedded(), Deployment::new(&postgres.url("held"), None)] {
        apply(&deployment);
        let service = deployment.serve();
        let desk = Desk::of(&service);
        for state in STATES {
            for deed in Deed::ALL.into_iter().filter(|deed| *deed != Deed::Archive) {
                cell(&desk, &deployment, state, deed).await;
            }
        }
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// Goal: nobody waits for a caller's transaction but who confirms or cancels what it holds. Method:
/// each call while a transaction has confirmed the reservation and is open.
#[tokio::test(flavor = "multi_thread")]
async fn each_call_answers_beside_an_open_transaction_as_the_table_of_lives_says() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("open"), None);
    deployment.database = "lock_timeout = \"500ms\"\n".into();
    apply(&deployment);
    let service = deployment.serve();
    let desk = Desk::of(&service);
    let pool = sqlx::PgPool::connect(deployment.database_url()).await.unwrap();
    for deed in Deed::ALL.into_iter().filter(|deed| *deed != Deed::Archive) {
        let Outcome { status, code, then } = outcome(State::Open, deed).unwrap();
        assert_eq!(then, State::Open, "{deed:?}");
        let held = desk.hold(State::Reserved).await;
        let mut tx = pool.begin().await.unwrap();
        let confirmed: String = sqlx::query_scalar("select confirm($1::uuid)")
            .bind(&held.of.allocation)
            .fetch_one(&mut *tx)
            .await
            .unwrap();
        assert_eq!(confirmed, held.of.number);
        let (found, body) = desk.act_on(&held, deed).await;
        assert_eq!((found, body["code"].as_str()), (status, code), "{deed:?}: {body}");
        assert_eq!(desk.standing(&held).await, Some(State::Reserved), "{deed:?}");
        tx.rollback().await.unwrap();
        desk.becomes(&held, State::Reserved).await;
    }
    pool.close().await;
    assert!(service.terminate());
    deployment.assert_clean();
}

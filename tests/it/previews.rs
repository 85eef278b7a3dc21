//! Previews over HTTP: what comes next, and nothing is taken.

use serde_json::json;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::api::{generate, numbering, services, spo};
use crate::deployment::Deployment;

#[tokio::test]
async fn a_preview_takes_nothing() {
    for (_deployment, service, _redis) in services() {
        let client = testkit::client();
        for _ in 0..3 {
            let (status, body) = post(&client, &numbering(&service, "preview"), &spo()).await;
            assert_eq!((status, &body["document_number"]), (200, &json!("SPO-20240122-001")));
            assert_eq!(body["serials"][0]["new_counter"], true, "{body}");
        }
        let (_, body) = post(&client, &generate(&service, "d1"), &spo()).await;
        assert_eq!(body["document_number"], "SPO-20240122-001");
    }
}

/// Two projects that differ in a letter's case give the same text, each its first: only the opened
/// counter shows the mistake.
#[tokio::test]
async fn the_first_number_of_a_counter_says_so_where_its_text_does_not_show_which_one_it_is() {
    for (deployment, service, _redis) in services() {
        let client = testkit::client();
        let letter = |project: &str| {
            let context = json!({ "ORIGINATOR": "คคง.", "RECIPIENT": "ผรม.2" });
            json!({ "type": "LETTER", "project": project, "date": "2026-01-05",
                    "context": context })
        };
        let mut documents = 0..;
        let mut take = async |body| {
            let document = format!("d{}", documents.next().unwrap());
            post(&client, &generate(&service, &document), &body).await.1
        };
        let first = take(letter("LCBP3-C2")).await;
        assert_eq!(first["new_counter"], true, "{first}");
        let second = take(letter("LCBP3-C2")).await;
        assert!(second.get("new_counter").is_none(), "{second}");
        let mistyped = take(letter("lcbp3-c2")).await;
        assert_eq!(mistyped["document_number"], first["document_number"], "in another project");
        assert_eq!(mistyped["new_counter"], true, "{mistyped}");
        let spo = take(spo()).await;
        assert!(spo.get("new_counter").is_none(), "its number shows what it counts by: {spo}");
        let blank = take(letter("LCBP3-C2 ")).await;
        assert_eq!(blank["code"], "wrong-alphabet", "{blank}");
        let again = post(&client, &generate(&service, "d0"), &letter("LCBP3-C2")).await.1;
        assert_eq!((&again["replayed"], &again["new_counter"]), (&json!(true), &json!(true)));
        let next = |project: &str| {
            let named = ["next", "LETTER", "--project", project, "--date", "2026-01-05"];
            let set = ["--set", "ORIGINATOR=คคง.", "--set", "RECIPIENT=ผรม.2"];
            let output = deployment.run(&[&named[..], &set].concat());
            String::from_utf8(output.stderr).unwrap()
        };
        let says = "the first number of a new counter: project=LCBP3-c2;";
        assert!(next("LCBP3-c2").contains(says) && !next("LCBP3-c2").contains(says));
    }
}

/// Goal: a preview shows the number that comes next, however far the journal is behind. Method: a
/// session blocks the writes of the journal.
#[tokio::test]
async fn a_preview_right_after_a_number_shows_the_next_one() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("ahead"), Some(&redis.url()));
    deployment.apply_examples();
    let (service, client) = (deployment.serve(), testkit::client());
    let mut holder = PgConnection::connect(&postgres.url("ahead")).await.unwrap();
    let (_, first) = post(&client, &generate(&service, "d1"), &spo()).await;
    assert_eq!(first["document_number"], "SPO-20240122-001");
    let hold = "begin; lock table journal in exclusive mode";
    sqlx::raw_sql(hold).execute(&mut holder).await.unwrap();
    let (_, second) = post(&client, &generate(&service, "d2"), &spo()).await;
    assert_eq!(second["document_number"], "SPO-20240122-002");
    let (_, next) = post(&client, &numbering(&service, "preview"), &spo()).await;
    assert_eq!(next["document_number"], "SPO-20240122-003", "{next}");
    assert_eq!(next["serials"][0]["new_counter"], false, "{next}");
    sqlx::raw_sql("commit").execute(&mut holder).await.unwrap();
    assert!(service.terminate());
}

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

//! An ambiguity is accepted if the ledger answers before the caller is answered: every series of
//! the pair is gapless (F43).

use serde_json::{Value, json};
use testkit::load::post;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::Deployment;

const ACCEPTED: &str = "ambiguity_accepted = \"The other office asks for it.\"";

async fn take(service: &Service, type_code: &str, document: &str) -> (u16, Value) {
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    post(&testkit::client(), &url, &json!({ "type": type_code })).await
}

/// What `series apply` says of a series.
fn apply(
    deployment: &Deployment,
    code: &str,
    template: &str,
    settings: &str,
) -> Result<(), String> {
    let file = deployment.series_file(code, template, settings);
    let output = deployment.run(&["series", "apply", &file.display().to_string()]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(told) }
}

/// The numbers of two series that accept to be alike, as far as they may be saved: each once.
#[tokio::test]
async fn accepted_series_beside_each_other_issue_no_text_twice() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("accepted"), Some(&redis.url()));
    let service = deployment.serve();
    let mut told = Vec::new();
    for policies in [["fast", "fast"], ["durable", "gapless"], ["gapless", "fast"]] {
        let [one, other] = policies.map(|policy| format!("{ACCEPTED}\npolicy = \"{policy}\""));
        let name = format!("{}{}", &policies[0][..1], &policies[1][..1]);
        let (a, b) = (format!("{name}A"), format!("{name}B"));
        let template = format!("{name}-{{SEQ:4}}");
        let mut numbers = Vec::new();
        let saved = apply(&deployment, &a, &template, &one)
            .and_then(|()| apply(&deployment, &b, &template, &other));
        for type_code in [&a, &b] {
            let (status, body) = take(&service, type_code, &format!("{type_code}-1")).await;
            if status == 201 {
                numbers.push(body["document_number"].clone());
            }
        }
        assert!(numbers.len() < 2 || numbers[0] != numbers[1], "{policies:?}: {numbers:?} twice");
        told.push(saved.expect_err("not gapless throughout"));
    }
    for told in told {
        assert!(told.contains("gapless") && told.contains("[template-ambiguous]"), "{told}");
    }
    assert!(service.terminate());
    deployment.assert_clean();
}

/// A state that no save allows, written past the program: series `A` with the text of series `B`.
async fn stored(deployment: &Deployment, policies: [&str; 2]) {
    for (code, policy) in ["A", "B"].into_iter().zip(policies) {
        let settings = format!("policy = \"{policy}\"");
        apply(deployment, code, &format!("{code}-{{SEQ:4}}"), &settings).unwrap();
    }
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let edit = "update series_version set definition = replace(definition, \
                '\"template\":\"A-{SEQ:4}\"', '\"template\":\"B-{SEQ:4}\",\
                \"ambiguity_accepted\":\"Agreed with the auditors.\"')";
    let edit = sqlx::AssertSqlSafe(testkit::forge::sqlite(edit));
    sqlx::raw_sql(edit).execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn a_version_accepted_before_that_is_not_gapless_throughout_is_set_aside_at_start() {
    for (policies, serves) in [
        (["fast", "fast"], false),
        (["durable", "gapless"], false),
        (["gapless", "durable"], false),
        (["gapless", "fast"], false),
        (["gapless", "gapless"], true),
    ] {
        let deployment = Deployment::embedded();
        stored(&deployment, policies).await;
        let service = deployment.serve();
        let (status, body) = take(&service, "A", "a").await;
        assert_eq!(status == 201, serves, "{policies:?}: {body}");
        let url = format!("{}/metrics", service.url);
        let metrics = testkit::get(url).await.unwrap().text().await.unwrap();
        let set_aside = format!("numerator_series_set_aside {}\n", u8::from(!serves));
        assert!(metrics.contains(&set_aside), "{policies:?}");
        if !serves {
            assert_eq!(body["code"], "type-not-configured", "{body}");
            let told = body["detail"].as_str().unwrap();
            assert!(told.contains("series A") && told.contains("set aside"), "{told}");
            assert!(service.log().contains("is set aside"), "{}", service.log());
            // The other series of the pair continues, and its numbers can still be looked up.
            let (status, body) = take(&service, "B", "b").await;
            assert_eq!((status, &body["document_number"]), (201, &"B-0001".into()), "{body}");
        }
        assert!(service.terminate());
    }
}

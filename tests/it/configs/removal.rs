//! Series that are removed.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use super::{PICKED_UP_LIMIT, configs, create, get, send, series, take, told};
use crate::deployment::Deployment;

/// Goal: a series that was saved by mistake can be removed as long as no number of it exists; every
/// other one stays, and the refusal names the remedy.
#[tokio::test]
async fn configs_a_series_that_has_issued_nothing_is_removed_and_its_code_is_free_again() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let id = create(&service, &series("TYPO", "T-{SEQ:3}")).await;
    let url = configs(&service, &format!("/{id}"));
    let remove = async |version: Option<u64>, query: &str| {
        let request = testkit::client().delete(format!("{url}{query}"));
        let answer = match version {
            Some(version) => request.header("If-Match", format!("\"{version}\"")),
            None => request,
        };
        let answer = answer.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.json::<Value>().await.unwrap_or_default())
    };
    let why = "?reason=typing%20error";
    for (version, query, status, slug) in [
        (None, why, 428, "precondition-required"),
        (Some(7), why, 409, "version-conflict"),
        (Some(1), "", 422, "invalid-field"),
    ] {
        let (found, problem) = remove(version, query).await;
        assert_eq!((found, &problem["code"]), (status, &json!(slug)), "{problem}");
    }
    assert_eq!(remove(Some(1), why).await, (204, Value::Null));
    assert_eq!(remove(Some(1), why).await.0, 404, "there is no such series any more");
    assert_eq!(get(&url).await.0, 404);
    for below in ["", "?active=false"] {
        let (_, list) = get(&configs(&service, below)).await;
        assert!(!list.to_string().contains("TYPO"), "{list}");
    }
    let (status, problem) = take(&service, "TYPO", "d1").await;
    assert_eq!(status, 422, "{problem}");
    let events = deployment.ok(&["events", "--json"]);
    assert!(events.contains("series-removed") && events.contains("typing error"), "{events}");

    // The code, the type and the text are free.
    let again = create(&service, &series("TYPO", "T-{SEQ:3}")).await;
    assert_ne!(again, id, "an id names one series for ever");
    assert_eq!(take(&service, "TYPO", "d1").await.1["document_number"], "T-001");
    let url = configs(&service, &format!("/{again}{why}"));
    let (status, problem) = told(send(Method::DELETE, &url, Some(1), &json!({})).await).await;
    assert_eq!((status, &problem["code"]), (409, &json!("series-in-use")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("series deactivate TYPO"), "{problem}");

    // By command, next to the running service, which sees it within a second.
    create(&service, &series("GONE", "G-{SEQ:3}")).await;
    let told = deployment.ok(&["series", "remove", "GONE", "--reason", "never used"]);
    assert_eq!(told, "GONE removed\n");
    let since = Instant::now();
    while get(&configs(&service, "")).await.1.to_string().contains("GONE") {
        assert!(since.elapsed() < PICKED_UP_LIMIT, "the service does not see the command's change");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let refused = deployment.run(&["series", "remove", "TYPO", "--reason", "x"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && error.contains("series deactivate TYPO"),
        "{error}"
    );
    deployment.assert_clean();
}

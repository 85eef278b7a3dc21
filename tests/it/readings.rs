//! What a text is read as: numbers that no version of a series can have issued are none, and those
//! of a range and of an earlier version are found.

use harness::load::post;
use reqwest::Client;
use serde_json::{Value, json};

use crate::deployment::Deployment;

fn apply(deployment: &Deployment, name: &str, text: &str) -> String {
    let file = deployment.path(name);
    std::fs::write(&file, text).unwrap();
    deployment.ok(&["series", "apply", file.to_str().unwrap()])
}

async fn look_up(service: &str, number: &str) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/numbers/{number}");
    let answer = Client::new().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn codes(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect()
}

fn block(code: &str, first: u64, last: u64) -> String {
    format!(
        "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{{PROJECT}}-{{SEQ:4}}\"\n\
         serves = {{ types = [\"{code}\"] }}\n\
         serials = [{{ counter = [\"project\"], start = {first}, max = {last} }}]\n"
    )
}

/// Goal: two series that are told apart by their values alone are told apart by whoever reads them.
#[tokio::test]
async fn a_value_that_no_version_of_a_series_can_have_is_no_reading() {
    let deployment = Deployment::embedded();
    apply(&deployment, "plan.toml", &block("PLAN", 1000, 1999));
    assert_eq!(deployment.ok(&["next", "PLAN", "--project", "P"]), "P-1000\n");
    let told = apply(&deployment, "section.toml", &block("SECTION", 2000, 2999));
    assert!(!told.contains("reads like"), "{told}");
    assert_eq!(deployment.ok(&["next", "SECTION", "--project", "P"]), "P-2000\n");
    for (number, code) in [("P-1001", "PLAN"), ("P-1999", "PLAN"), ("P-2000", "SECTION")] {
        let told: Value =
            serde_json::from_str(&deployment.ok(&["parse", "--json", number])).unwrap();
        assert_eq!(codes(&told), [code], "{number}");
    }
    for number in ["P-0999", "P-9999", "P-3000"] {
        for asked in [&["parse", number][..], &["parse", "PLAN", number]] {
            let output = deployment.run(asked);
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{number}");
            assert!(error.contains("serial SEQ shows") && error.contains("to"), "{error}");
        }
    }
    let service = deployment.serve();
    for (number, candidates) in [("P-1000", vec!["PLAN"]), ("P-1500", vec!["PLAN"])] {
        let (status, told) = look_up(&service.url, number).await;
        assert_eq!((status, codes(&told["candidates"])), (200, candidates), "{told}");
    }
    assert_eq!(look_up(&service.url, "P-9999").await.0, 404);
    // A dry run names no other reader of the next numbers.
    let configs = format!("{}/api/v1/document-numbering/configs", service.url);
    let list: Value = reqwest::get(&configs).await.unwrap().json().await.unwrap();
    let plan = list["configs"].as_array().unwrap();
    let plan = plan.iter().find(|config| config["code"] == "PLAN").unwrap();
    let url = format!("{configs}/{}?dry_run=true", plan["config_id"]);
    let mut body = plan["definition"].clone();
    body["name"] = json!("Plans");
    body["reason"] = json!("another name");
    let tag = format!("\"{}-{}\"", plan["config_id"].as_i64().unwrap(), plan["version"]);
    let put = Client::new().put(&url).header("If-Match", tag);
    let answer = put.json(&body).send().await.unwrap();
    let told: Value = answer.json().await.unwrap();
    assert_eq!(told["effect"]["readers"], json!([]), "{told}");
    assert!(service.terminate());
}

/// A series whose numbers do not show the project that they are counted by.
fn hidden(width: usize) -> String {
    format!(
        "[[series]]\ncode = \"HID\"\nname = \"Hidden\"\ntemplate = \"{{SEQ:{width}}}\"\n\
         unique_within = [\"project\"]\nserves = {{ types = [\"HID\"] }}\n\
         serials = [{{ counter = [\"project\"] }}]\n"
    )
}

/// Goal: each number of a range is found, whatever its counter counts by and whichever version
/// issued it; `parse` reads what an earlier version wrote; and who revises a member is told what it
/// is.
#[tokio::test]
async fn members_of_a_range_are_found_in_hidden_dimensions_and_after_a_widening() {
    let deployment = Deployment::embedded();
    apply(&deployment, "hidden.toml", &hidden(4));
    for project in ["P1", "P2"] {
        deployment.ok(&["next", "HID", "--project", project, "--count", "147"]);
    }
    let asked = ["next", "HID", "--project", "P2", "--count", "10", "--document", "order-7"];
    let range = deployment.ok(&asked);
    assert!(range.starts_with("0148\n") && range.ends_with("0157\n"), "{range}");
    let found = |number: &str| {
        let told = deployment.ok(&["find", "--number", number, "--json"]);
        assert!(told.contains("\"range\"") && told.contains("order-7"), "{number}: {told}");
    };
    found("0150");
    let service = deployment.serve();
    let (status, told) = look_up(&service.url, "0150").await;
    assert_eq!((status, &told["issued"]), (200, &json!(true)), "{told}");
    assert_eq!(told["numbers"][0]["found_as"], "range");
    assert_eq!(told["numbers"].as_array().unwrap().len(), 1, "P1 has no such number: {told}");
    let (_, told) = look_up(&service.url, "0100").await;
    assert_eq!(told["numbers"].as_array().unwrap().len(), 2, "both have it: {told}");
    let (_, told) = look_up(&service.url, "0158").await;
    assert_eq!(told["issued"], false, "{told}");
    revised_at_once(&service.url, "0150").await;
    assert!(service.terminate());

    apply(&deployment, "hidden.toml", &hidden(6));
    assert_eq!(deployment.ok(&["next", "HID", "--project", "P2"]), "000158\n");
    found("0150");
    let read: Value = serde_json::from_str(&deployment.ok(&["parse", "--json", "0150"])).unwrap();
    assert_eq!(codes(&read), ["HID"]);
    assert_eq!((&read[0]["version"], &read[0]["serials"][0]["value"]), (&json!(1), &json!("150")));
    let read: Value =
        serde_json::from_str(&deployment.ok(&["parse", "--json", "HID", "000158"])).unwrap();
    assert_eq!(read[0]["version"], 2);
    let service = deployment.serve();
    let (_, told) = look_up(&service.url, "0150").await;
    assert_eq!(
        (&told["issued"], codes(&told["candidates"])),
        (&json!(true), vec!["HID"]),
        "{told}"
    );
    revised_at_once(&service.url, "0150").await;
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Whoever revises a member of a range is told that it is one, without a wait for a record that is
/// there already.
async fn revised_at_once(service: &str, number: &str) {
    let url = format!("{service}/api/v1/documents/order-7/revisions");
    let body = json!({ "rev": "B", "number": number });
    let (status, told) = post(&Client::new(), &url, &body).await;
    assert_eq!((status, &told["field"]), (422, &json!("number")), "{told}");
    let why = told["detail"].as_str().unwrap();
    assert!(why.contains(number) && why.contains("0148") && why.contains("range"), "{why}");
    assert_eq!(told["retryable"], false, "{told}");
}

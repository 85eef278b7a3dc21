//! What a text is read as: numbers that no version of a series can have issued are none, and those
//! of a range and of an earlier version are found.

use serde_json::{Value, json};
use testkit::load::post;

use crate::deployment::Deployment;

fn apply(deployment: &Deployment, name: &str, text: &str) -> String {
    let file = deployment.path(name);
    std::fs::write(&file, text).unwrap();
    deployment.ok(&["series", "apply", file.to_str().unwrap()])
}

async fn look_up(service: &str, number: &str) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/numbers/{number}");
    let answer = testkit::client().get(url).send().await.unwrap();
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

/// Goal: two series that differ in their values alone are distinguished by every reader.
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
    let list: Value = testkit::get(&configs).await.unwrap().json().await.unwrap();
    let plan = list["configs"].as_array().unwrap();
    let plan = plan.iter().find(|config| config["code"] == "PLAN").unwrap();
    let url = format!("{configs}/{}?dry_run=true", plan["config_id"]);
    let mut body = plan["definition"].clone();
    body["name"] = json!("Plans");
    body["reason"] = json!("another name");
    let tag = format!("\"{}-{}\"", plan["config_id"].as_i64().unwrap(), plan["version"]);
    let put = testkit::client().put(&url).header("If-Match", tag);
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
/// issued it; `parse` reads what an earlier version wrote; and a revision of a member reports that
/// it is one.
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

/// A revision of a member of a range reports that it is one, without a wait for a record that
/// already exists.
async fn revised_at_once(service: &str, number: &str) {
    let url = format!("{service}/api/v1/documents/order-7/revisions");
    let body = json!({ "rev": "B", "number": number });
    let (status, told) = post(&testkit::client(), &url, &body).await;
    assert_eq!((status, &told["field"]), (422, &json!("number")), "{told}");
    let why = told["detail"].as_str().unwrap();
    assert!(why.contains(number) && why.contains("0148") && why.contains("range"), "{why}");
    assert_eq!(told["retryable"], false, "{told}");
}

/// Two series that differ in their type alone, each of 40 listed projects that its numbers do not
/// show.
fn of_many_projects() -> String {
    let series = |code: &str, from: usize| {
        let projects: Vec<String> = (from..from + 40).map(|it| format!("\"P{it}\"")).collect();
        format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{{SEQ:4}}\"\n\
             unique_within = [\"project\", \"type\"]\n\
             serves = {{ types = [\"{code}\"], projects = [{}] }}\n\
             serials = [{{ counter = [\"project\"] }}]\n",
            projects.join(", ")
        )
    };
    series("LET", 1) + &series("MEMO", 41)
}

/// Goal: a range is found each time, whichever of many counters it belongs to. Method: 80 counters
/// by their names, the last of which has it.
#[tokio::test]
async fn a_number_that_many_counters_may_have_is_found_each_time() {
    let deployment = Deployment::embedded();
    apply(&deployment, "many.toml", &of_many_projects());
    deployment.ok(&["next", "MEMO", "--project", "P80", "--count", "157"]);
    let service = deployment.serve();
    for turn in 0..40 {
        let (status, told) = look_up(&service.url, "0150").await;
        assert_eq!((status, &told["issued"]), (200, &json!(true)), "turn {turn}: {told}");
        assert_eq!(told["numbers"][0]["found_as"], "range", "turn {turn}: {told}");
    }
    let (_, told) = look_up(&service.url, "0158").await;
    assert_eq!(told["issued"], false, "{told}");
    assert!(service.terminate());
}

/// A token of the settings with these lines.
fn token(deployment: &mut Deployment, name: &str, lines: &str) -> String {
    let made = deployment.ok(&["token", "create", name, "--for-settings", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    let hash = &made["sha256"];
    deployment.extra += &format!("[[auth.tokens]]\nname = \"{name}\"\nsha256 = {hash}\n{lines}\n");
    made["token"].as_str().unwrap().to_owned()
}

/// Goal: a caller that does not see a project learns by no answer whether it has a number. Method:
/// nine series whose numbers do not show their project, of which eight are searched; one range of a
/// project that is hidden.
#[tokio::test]
async fn a_hidden_range_is_answered_like_none_where_not_all_is_searched() {
    let mut deployment = Deployment::embedded();
    let series = |number: usize| {
        format!(
            "[[series]]\ncode = \"S{number}\"\nname = \"S\"\ntemplate = \"{{SEQ:4}}\"\n\
             unique_within = [\"project\", \"type\"]\n\
             serves = {{ types = [\"S{number}\"] }}\nserials = [{{ counter = [\"project\"] }}]\n"
        )
    };
    apply(&deployment, "nine.toml", &(1..=9).map(series).collect::<String>());
    deployment.ok(&["next", "S1", "--project", "P2", "--count", "180"]);
    deployment.ok(&["next", "S9", "--project", "P1", "--count", "300"]);
    let narrow = token(&mut deployment, "narrow", "roles = [\"auditor\"]\nprojects = [\"P1\"]");
    let whole = token(&mut deployment, "whole", "roles = [\"auditor\"]");
    let service = deployment.serve();
    let ask = async |token: &str, query: &str| {
        let url = format!("{}/api/v1/document-numbering/numbers{query}", service.url);
        let answer = testkit::client().get(url).bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, told) = ask(&whole, "/0150").await;
    assert_eq!((status, &told["numbers"][0]["project"]), (200, &json!("P2")), "{told}");
    for query in ["/0150", "?number=0150"] {
        let (status, hidden) = ask(&narrow, query).await;
        let (_, nowhere) = ask(&narrow, &query.replace("0150", "0200")).await;
        assert_eq!((status, &hidden["detail"]), (422, &nowhere["detail"]), "{hidden} {nowhere}");
        let why = hidden["detail"].as_str().unwrap();
        assert!(why.contains("S9") && why.contains("code of its series"), "{why}");
    }
    let (status, told) = ask(&narrow, "?number=0250&series=S9").await;
    assert_eq!((status, &told["numbers"][0]["found_as"]), (200, &json!("range")), "{told}");
    let (status, told) = ask(&narrow, "?number=0150&series=S1").await;
    assert_eq!((status, &told["code"]), (404, &json!("number-not-found")), "{told}");
    assert!(service.terminate());
}

/// Goal: a revision of a number of an own range reports that it is one, however many older numbers
/// of others the document has.
#[tokio::test]
async fn numbers_of_others_do_not_hide_that_ones_own_is_in_a_range() {
    let mut deployment = Deployment::embedded();
    let others = "[[series]]\ncode = \"OTH\"\nname = \"Others\"\ntemplate = \"OTH{SEQ:4}\"\n\
                  serves = { types = [\"OTH\"] }\nserials = [{}]\n";
    apply(&deployment, "both.toml", &(hidden(4) + others));
    let [own, other] = ["own", "other"].map(|name| token(&mut deployment, name, ""));
    let service = deployment.serve();
    let client = testkit::client();
    let post = async |token: &str, path: &str, body: &Value| {
        let url = format!("{}/api/v1/{path}", service.url);
        let sent = client.post(url).bearer_auth(token).json(body).send().await.unwrap();
        (sent.status().as_u16(), sent.json::<Value>().await.unwrap())
    };
    for place in 0..101 {
        let date = format!("2024-{:02}-{:02}", 1 + place / 28, 1 + place % 28);
        let order = json!({ "type": "OTH", "again": true, "date": date });
        let (status, told) = post(&other, "documents/order-7/generate-number", &order).await;
        assert_eq!(status, 201, "{told}");
    }
    let order = json!({ "type": "HID", "project": "P1", "count": 10, "document_id": "order-7" });
    let (status, told) = post(&own, "document-numbering/batches", &order).await;
    assert_eq!(status, 201, "{told}");
    let label = json!({ "rev": "B", "number": "0005" });
    let (status, told) = post(&own, "documents/order-7/revisions", &label).await;
    assert_eq!((status, &told["field"]), (422, &json!("number")), "{told}");
    let (status, told) = post(&other, "documents/order-7/revisions", &label).await;
    assert_eq!((status, &told["code"]), (404, &json!("document-not-numbered")), "{told}");
    assert!(service.terminate());
}

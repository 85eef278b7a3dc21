//! The auditor's paper, in every language and form: of a record that is whole, and of one that was
//! manipulated.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::eventually::eventually;
use testkit::forge;
use testkit::load::post;

use crate::deployment::Deployment;

const LANGUAGES: [&str; 4] = ["th", "zh-Hans", "zh-Hant", "en"];

/// Words that operators know, and no auditor.
const INSIDE: [&str; 8] =
    ["epoch", "flight", "outbox", "fenced", "partition", "redis", "ceiling", "trim"];

async fn take(service: &str, document: &str, body: &Value) {
    let url = format!("{service}/api/v1/documents/{document}/generate-number");
    let (status, answer) = post(&testkit::client(), &url, body).await;
    assert_eq!(status, 201, "{answer}");
}

/// The answer of the route, and its language and form.
async fn get(service: &str, query: &str, language: &str) -> (u16, [String; 2], String) {
    let url = format!("{service}/api/v1/document-numbering/statements?{query}");
    let answer =
        testkit::client().get(url).header("Accept-Language", language).send().await.unwrap();
    let said =
        |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let named = ["Content-Language", "Content-Type"].map(|name| said(name).unwrap_or_default());
    (answer.status().as_u16(), named, answer.text().await.unwrap())
}

fn paper(deployment: &Deployment, arguments: &[&str]) -> (bool, String) {
    let output = deployment.run(&[&["statement", "--series", "SPO"], arguments].concat());
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

fn line<'a>(run: &'a Value, what: &str) -> &'a Value {
    let found = run["lines"].as_array().unwrap().iter().find(|line| line["what"] == what);
    found.map_or(&Value::Null, |line| &line["count"])
}

/// Goal: part 5 of the record: a paper that accounts for every number, on the command and over
/// HTTP. Method: ten numbers of a day and one of another month, signed; then a person who may write
/// the database leaves a gap of each reason, a hole and an overlap whose sums cancel out.
#[tokio::test(flavor = "multi_thread")]
async fn the_paper_tells_what_became_of_every_number_in_every_language_and_form() {
    let mut deployment = Deployment::embedded();
    let key = deployment.path("audit.pem");
    let public = deployment.ok(&["audit", "keygen", key.to_str().unwrap()]).trim().to_owned();
    deployment.apply_examples();
    let none = paper(&deployment, &["--period", "2024"]);
    assert!(none.0 && none.1.contains("No number was taken"), "{}", none.1);
    assert!(none.1.contains("Not sealed: there is no signed checkpoint"), "{}", none.1);
    let extra = format!("[audit]\nkey = \"{}\"\ncheckpoint = \"1s\"\n", key.display());
    deployment.extra.push_str(&extra);
    let service = deployment.serve();
    for number in 1..=10 {
        let body = json!({ "type": "SPO", "date": "2024-01-22" });
        take(&service.url, &format!("d{number}"), &body).await;
    }
    take(&service.url, "later", &json!({ "type": "SPO", "date": "2024-02-01" })).await;

    eventually(Duration::from_secs(20), async || {
        let (_, _, body) = get(&service.url, "series=SPO&period=2024", "en").await;
        if body.contains("\"sealed\":true") { Ok(()) } else { Err(body) }
    })
    .await;
    let (status, named, body) = get(&service.url, "series=SPO&period=2024-01", "zh-TW").await;
    assert_eq!((status, &*named[0]), (200, "zh-Hant"), "{body}");
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&told["verdict"], &told["series"]), (&"complete".into(), &"SPO".into()), "{told}");
    assert_eq!(told["runs"].as_array().unwrap().len(), 1, "of January alone: {told}");
    let run = &told["runs"][0];
    assert_eq!(run["counter_key"], "type=SPO;day=2024-01-22");
    assert_eq!(run["first"]["document_number"], "SPO-20240122-001");
    assert_eq!(run["last"]["document_number"], "SPO-20240122-010");
    assert_eq!(
        (&run["values"], &run["sum"], line(run, "issued")),
        (&10.into(), &10.into(), &10.into())
    );
    let seal = &told["seal"];
    assert_eq!((&seal["public_key"], seal["sha256"].as_str().unwrap().len()), (&public.into(), 64));
    assert_eq!((&seal["records_sealed"], &seal["records_later"]), (&10.into(), &0.into()));
    for (format, kind) in [("text", "text/plain"), ("csv", "text/csv"), ("html", "text/html")] {
        let query = format!("series=SPO&period=2024&format={format}");
        let (status, named, body) = get(&service.url, &query, "th").await;
        assert_eq!((status, &*named[0]), (200, "th"), "{body}");
        assert!(named[1].starts_with(kind), "{named:?}");
        assert!(body.contains("SPO-20240122-010") && body.contains("ครบถ้วน"), "{body}");
    }
    let page = "/api/v1/document-numbering/statements?series=SPO&period=2024&format=html";
    let page = testkit::get(format!("{}{page}", service.url)).await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    refusals(&service.url).await;
    assert!(service.terminate());
    bend(&deployment).await;
    assert_told_to_people(&deployment);
    assert_told_to_programs(&deployment);
}

/// What was manipulated is named in each language, and nothing of the inside is.
fn assert_told_to_people(deployment: &Deployment) {
    for (index, language) in LANGUAGES.iter().enumerate() {
        let (whole, text) = paper(deployment, &["--period", "2024", "--language", language]);
        assert!(!whole, "{text}");
        let [missing, twice] = [
            ["ไม่มีบันทึกใด ๆ", "มีบันทึกซ้ำ"],
            ["没有任何记录", "重复登记"],
            ["沒有任何記錄", "重複登記"],
            ["WITHOUT ANY RECORD", "RECORDED TWICE"],
        ][index];
        assert!(text.contains(missing) && text.contains(twice), "{text}");
        for number in ["002", "003", "004", "005"] {
            assert!(text.contains(&format!("SPO-20240122-{number}")), "{number}: {text}");
        }
        let lower = text.to_lowercase();
        assert!(!INSIDE.iter().any(|word| lower.contains(word)), "{text}");
        let page = ["--period", "2024", "--language", language, "--format", "html"];
        let (_, page) = paper(deployment, &page);
        assert!(page.contains(&format!("<html lang=\"{language}\">")), "{page}");
        assert!(page.contains("@media print") && page.contains(missing), "{page}");
        assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
    }
}

/// The same in JSON and CSV.
fn assert_told_to_programs(deployment: &Deployment) {
    let (_, json) = paper(deployment, &["--period", "2024", "--json"]);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["verdict"], "not-complete", "{told}");
    let run = &told["runs"][0];
    for (what, count) in [
        ("issued", 6),
        ("discarded", 1),
        ("unaccounted", 1),
        ("collided", 1),
        ("before-import", 1),
        ("missing", 1),
        ("twice", 1),
    ] {
        assert_eq!(line(run, what), &Value::from(count), "{what}: {told}");
    }
    assert_eq!((&run["values"], &run["sum"]), (&10.into(), &10.into()), "the sums say nothing");
    let entries = run["entries"].as_array().unwrap();
    let gap = entries.iter().find(|entry| entry["what"] == "discarded").unwrap();
    assert_eq!(gap["first_number"], "SPO-20240122-002");
    assert!(gap["evidence"].as_str().unwrap().starts_with("Entry "), "{gap}");
    assert_eq!(told["runs"][1]["verdict"], "complete", "the other run is as it was: {told}");
    let (_, csv) = paper(deployment, &["--period", "2024", "--format", "csv"]);
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(csv.as_bytes()).records().map(Result::unwrap).collect();
    let of = |row: &str| rows.iter().filter(|cells| &cells[0] == row).count();
    assert_eq!((of("paper"), of("seal"), of("run"), of("entry")), (1, 1, 2, 6), "{csv}");
}

async fn refusals(service: &str) {
    for (query, field) in [
        ("period=2024", "series"),
        ("series=NOBODY&period=2024", "series"),
        ("series=SPO", "period"),
        ("series=SPO&period=2567", "period"),
        ("series=SPO&period=2024-13", "period"),
        ("series=SPO&period=2024&project=NONE", "project"),
        ("series=SPO&period=2024&format=pdf", "format"),
    ] {
        let (status, _, body) = get(service, query, "en").await;
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &problem["field"]), (422, &field.into()), "{query}: {problem}");
    }
}

/// What a person does who may write the database: a gap of each reason, a hole, an overlap.
async fn bend(deployment: &Deployment) {
    let gap = |value: u8, reason: &str| {
        format!(
            "delete from journal where counter_id = ONE and first_value = {value}; \
             insert into gap (counter_id, first_value, last_value, step, reason, epoch, \
             noted_at_us) values (ONE, {value}, {value}, 1, '{reason}', 1, 1700000000000000); "
        )
    };
    let mut sql = gap(2, "discarded") + &gap(3, "unaccounted");
    sql += &(gap(4, "collided") + &gap(5, "before-import"));
    sql += "delete from journal where counter_id = ONE and first_value = 7; \
            update journal set last_value = 9 where counter_id = ONE and first_value = 8";
    let one = "(select counter_id from counter where key = 'type=SPO;day=2024-01-22')";
    let sql = forge::sqlite(&sql.replace("ONE", one));
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&pool).await.unwrap();
    pool.close().await;
}

//! The register as lists and files: numbers, revisions and gaps where they are, with all that is
//! kept of them, in the time of their series; and read back by an import.

use serde_json::{Value, json};
use testkit::postgres::Postgres;

use crate::deployment::Deployment;

const SERIES: &str = "[[series]]
code = 'LTR'
name = 'Letter'
template = 'L-{SEQ:4}-{REV}'
timezone = 'Asia/Bangkok'
serves = { types = ['LTR'] }
serials = [{}]
[series.variables]
REV = { required = true, alphabet = 'A-Z', width_max = 1 }
RECIPIENT = { width_max = 20 }
SUBJECT = { width_max = 40 }
[[series]]
code = 'NY'
name = 'NY'
template = 'NY-{SEQ:4}'
timezone = 'America/New_York'
serves = { types = ['NY'] }
serials = [{}]
[[series]]
code = 'LOST'
name = 'Without a number'
template = 'LOST-{SEQ:4}'
serves = { types = ['LOST'] }
serials = [{}]
";

/// Numbers of another system, with a hole: `L-0001-A` and `NY-0001` within one hour, the one on the
/// new year's first day of its series, the other on the old year's last.
const NUMBERS: &str = "\
number,document_id,issued_at,user,RECIPIENT
L-0001-A,d1,2026-01-01 00:30:00,ann,สคฉ.3
L-0004-A,=d4,2026-01-02 09:00:00,crm/bob,=คคง.
NY-0001,n1,2025-12-31 12:40:00,ann,
";

/// Counters of an export that have counted further: one above its number, one without any.
const COUNTERS: &str = "\
generated_number,kind,series,counter_key,serial,serials
,counter,NY,{},SEQ,\"[{\"\"first\"\":\"\"2\"\",\"\"last\"\":\"\"5\"\",\"\"step\"\":\"\"1\"\"}]\"
,counter,LOST,{},SEQ,\"[{\"\"first\"\":\"\"1\"\",\"\"last\"\":\"\"9\"\",\"\"step\"\":\"\"1\"\"}]\"
";

fn apply(deployment: &Deployment) {
    let file = deployment.path("listings.toml");
    std::fs::write(&file, SERIES).unwrap();
    deployment.apply(&[file]);
}

fn import(deployment: &Deployment, text: &str) -> String {
    let file = deployment.path("list.csv").display().to_string();
    std::fs::write(&file, text).unwrap();
    deployment.ok(&["import", &file, "--apply"])
}

/// `L-0001-A`, a gap of two, `L-0004-A` and its revision `L-0004-B`, `L-0005-A`, the range
/// `L-0006-A` to `L-0008-A`; `NY-0001` and a gap above it; a gap of nine in a counter without a
/// number.
fn fill(deployment: &Deployment) {
    apply(deployment);
    import(deployment, NUMBERS);
    import(deployment, COUNTERS);
    deployment.ok(&["revise", "=d4", "B", "--reason", "a wrong name"]);
    let next = ["next", "LTR", "--set", "REV=A"];
    let one = ["--set", "SUBJECT=\"x\"", "--document", "d5"];
    assert_eq!(deployment.ok(&[&next[..], &one].concat()), "L-0005-A\n");
    deployment.ok(&[&next[..], &["--count", "3", "--document", "d6"]].concat());
}

fn find(deployment: &Deployment, asked: &[&str]) -> Value {
    serde_json::from_str(&deployment.ok(&[&["find", "--json"], asked].concat())).unwrap()
}

/// The rows of a list, each as its kind and its number.
fn shown(list: &Value) -> Vec<String> {
    let rows = list["numbers"].as_array().unwrap().iter();
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("-").to_owned();
    rows.map(|row| format!("{} {}", text(row, "kind"), text(row, "document_number"))).collect()
}

async fn get(service: &str, query: &[(&str, &str)]) -> (u16, Value) {
    let url = format!("{service}/api/v1/document-numbering/numbers");
    let url = reqwest::Url::parse_with_params(&url, query).unwrap();
    let answer = testkit::client().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

const BY_NUMBER: [&str; 9] = [
    "number L-0001-A",
    "gap L-0002-A",
    "number L-0004-A",
    "revision L-0004-B",
    "number L-0005-A",
    "number L-0006-A",
    "number NY-0001",
    "gap NY-0002",
    "gap -",
];

/// Goal: a list has every number, revision and gap once, next to each other, however long its pages
/// are, over HTTP as by the command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_and_gaps_are_in_lists_where_they_belong() {
    let postgres = Postgres::start();
    for deployment in [Deployment::embedded(), Deployment::new(&postgres.url("listings"), None)] {
        fill(&deployment);
        let service = deployment.serve();
        let all = find(&deployment, &["--sort", "number"]);
        let rows = all["numbers"].as_array().unwrap();
        assert_eq!(shown(&all), BY_NUMBER, "{all}");
        // Of what each says.
        let gap = &rows[1];
        assert_eq!((&gap["last_number"], &gap["count"]), (&json!("L-0003-A"), &json!("2")));
        assert_eq!((&gap["reason"], &gap["series"]), (&json!("before-import"), &json!("LTR")));
        assert!(gap["explanation"].as_str().unwrap().contains("were not among"), "{gap}");
        let revision = &rows[3];
        assert_eq!(revision["revision_of"], "L-0004-A", "{revision}");
        assert_eq!((&revision["rev"], &revision["reason"]), (&json!("B"), &json!("a wrong name")));
        assert_eq!(revision["document_id"], "=d4");
        assert_eq!(rows[2]["user_id"], "bob", "{}", rows[2]);
        assert_eq!(rows[2]["context"], json!({ "RECIPIENT": "=คคง.", "REV": "A" }));
        assert_eq!(rows[4]["context"], json!({ "REV": "A", "SUBJECT": "\"x\"" }));
        assert_eq!(rows[5]["last_number"], "L-0008-A");
        assert_eq!(rows[7]["serials"][0]["last"], "5");
        assert_eq!((&rows[8]["series"], &rows[8]["count"]), (&json!("LOST"), &json!("9")));
        // The times of a series, with its offset.
        assert_eq!(rows[0]["issued_at"], "2026-01-01T00:30:00.000000+07:00");
        assert_eq!(rows[6]["issued_at"], "2025-12-31T12:40:00.000000-05:00");
        // Page by page.
        for sort in ["number", "time"] {
            let whole = find(&deployment, &["--sort", sort]);
            for limit in ["1", "2", "3"] {
                let (mut pages, mut after) = (Vec::new(), None::<String>);
                loop {
                    let mut query = vec![("from", "2020-01-01"), ("sort", sort), ("limit", limit)];
                    query.extend(after.as_deref().map(|after| ("after", after)));
                    let (status, page) = get(&service.url, &query).await;
                    assert_eq!(status, 200, "{query:?}: {page}");
                    pages.extend(page["numbers"].as_array().unwrap().iter().cloned());
                    match page["next"].as_str() {
                        Some(next) => after = Some(next.to_owned()),
                        None => break,
                    }
                }
                assert_eq!(json!(pages), whole["numbers"], "{sort}, {limit}");
            }
        }
        let by_time = find(&deployment, &["--series", "LTR"]);
        let newest = ["revision L-0004-B", "number L-0004-A", "gap L-0002-A", "number L-0001-A"];
        assert!(
            shown(&by_time).join("\n").contains("number L-0004-A\ngap L-0002-A\nnumber L-0001")
        );
        assert!(newest.iter().all(|row| shown(&by_time).contains(&(*row).to_owned())), "{by_time}");
        filtered(&deployment, &service.url).await;
        missing(&deployment, &service.url).await;
        assert!(service.terminate());
        deployment.assert_clean();
    }
}

/// Filters by kind, variable and day.
async fn filtered(deployment: &Deployment, service: &str) {
    let from = ("from", "2020-01-01");
    let day = |first, end| vec![("from", first), ("until", end), ("kinds", "number")];
    for (query, expected) in [
        (
            vec![from, ("kinds", "gap"), ("sort", "number")],
            vec!["gap L-0002-A", "gap NY-0002", "gap -"],
        ),
        (vec![from, ("kinds", "revision")], vec!["revision L-0004-B"]),
        (vec![("document_id", "=d4")], vec!["revision L-0004-B", "number L-0004-A"]),
        (vec![("number_prefix", "L-0004-B")], vec!["revision L-0004-B"]),
        (vec![("number_prefix", "L-000"), ("kinds", "gap")], vec!["gap L-0002-A"]),
        (vec![("user_id", "bob")], vec!["number L-0004-A"]),
        (vec![("service", "local"), ("kinds", "revision")], vec!["revision L-0004-B"]),
        (vec![("user_id", "ocal"), ("kinds", "revision")], vec![]),
        (vec![("service", "crm")], vec!["number L-0004-A"]),
        (vec![from, ("recipient", "สคฉ.3")], vec!["number L-0001-A"]),
        (vec![from, ("context", r#"{"SUBJECT":"\"x\""}"#)], vec!["number L-0005-A"]),
        (
            vec![from, ("context", r#"{"RECIPIENT":"=คคง.","REV":"A"}"#), ("kinds", "number")],
            vec!["number L-0004-A"],
        ),
        (vec![from, ("context", r#"{"REV":"A","SUBJECT":"x"}"#)], vec![]),
        // In UTC, the one is of the day before and the other of this one.
        (day("2025-12-31", "2026-01-01"), vec!["number NY-0001"]),
        (day("2026-01-01", "2026-01-02"), vec!["number L-0001-A"]),
        (day("2025-12-31T17:30:00Z", "2025-12-31T17:40:00Z"), vec!["number L-0001-A"]),
    ] {
        let (status, list) = get(service, &query).await;
        assert_eq!((status, shown(&list)), (200, expected.iter().map(|&it| it.into()).collect()));
    }
    let of_day = ["--from", "2026-01-01", "--until", "2026-01-02", "--kinds", "number"];
    assert_eq!(shown(&find(deployment, &of_day)), ["number L-0001-A"]);
    let of_variable = ["--set", "RECIPIENT==คคง.", "--kinds", "number"];
    assert_eq!(shown(&find(deployment, &of_variable)), ["number L-0004-A"]);
    assert_eq!(shown(&find(deployment, &["--recipient", "สคฉ.3"])), ["number L-0001-A"]);
    for (query, field) in [
        (vec![from, ("kinds", "holes")], "kinds"),
        (vec![("user_id", "bob"), ("kinds", "gap")], "kinds"),
        (vec![from, ("context", "RECIPIENT=x")], "context"),
        (vec![from, ("context", r#"{"RECIPIENT":1}"#)], "context"),
        (vec![from, ("recipient", "a"), ("context", r#"{"RECIPIENT":"b"}"#)], "context"),
        (vec![("context", r#"{"RECIPIENT":"b"}"#)], "from"),
        (vec![("from", "2026-01-01"), ("until", "2026-01-01")], "until"),
    ] {
        let (status, problem) = get(service, &query).await;
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{query:?}: {problem}");
    }
}

/// A number that is missing says which gap it is.
async fn missing(deployment: &Deployment, service: &str) {
    for number in ["L-0002-A", "L-0003-A", "NY-0003", "LOST-0009"] {
        let output = deployment.run(&["find", "--number", number]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && why.contains("was not issued"), "{why}");
        assert!(why.contains("not among the numbers that were imported"), "{why}");
        let (status, problem) = get(service, &[("number", number)]).await;
        assert_eq!((status, &problem["code"]), (404, &json!("number-not-found")));
        assert!(problem["detail"].as_str().unwrap().contains("was not issued"), "{problem}");
        let url = format!("{service}/api/v1/document-numbering/numbers/{number}");
        let told: Value = testkit::get(&url).await.unwrap().json().await.unwrap();
        assert_eq!(
            (&told["issued"], &told["gaps"][0]["reason"]),
            (&json!(false), &json!("before-import"))
        );
    }
    let (_, problem) = get(service, &[("number", "L-0999-A")]).await;
    assert!(!problem["detail"].as_str().unwrap().contains("was not issued"), "{problem}");
}

/// Goal: a caller that is not shown all numbers is shown no gap, and learns so where it asks.
#[tokio::test]
async fn gaps_are_shown_to_callers_that_see_all_numbers_alone() {
    let mut deployment = Deployment::embedded();
    fill(&deployment);
    let made = deployment.ok(&["token", "create", "narrow", "--for-settings", "--json"]);
    let made: Value = serde_json::from_str(&made).unwrap();
    deployment.extra += &format!(
        "[[auth.tokens]]\nname = \"narrow\"\nsha256 = {}\nroles = [\"auditor\"]\n\
         series = [\"LTR\"]\n",
        made["sha256"]
    );
    let service = deployment.serve();
    let ask = async |query: &str| {
        let url = format!("{}/api/v1/document-numbering/numbers{query}", service.url);
        let token = made["token"].as_str().unwrap();
        let answer = testkit::client().get(url).bearer_auth(token).send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, list) = ask("?series=LTR&from=2020-01-01&sort=number").await;
    let without: Vec<&str> =
        BY_NUMBER[..6].iter().copied().filter(|row| !row.starts_with("gap")).collect();
    assert_eq!((status, shown(&list)), (200, without.iter().map(|&it| it.into()).collect()));
    let (status, problem) = ask("?series=LTR&from=2020-01-01&kinds=gap").await;
    assert_eq!((status, &problem["field"]), (422, &json!("kinds")), "{problem}");
    let (_, problem) = ask("?number=L-0002-A").await;
    assert!(!problem["detail"].as_str().unwrap().contains("was not issued"), "{problem}");
    let (_, told) = ask("/L-0002-A").await;
    assert!(told["gaps"].is_null(), "{told}");
    assert!(service.terminate());
}

/// The rows of a CSV text as maps of its columns.
fn rows_of(text: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().collect::<Result<_, _>>().unwrap()
}

/// Goal: an import reads back what an export wrote: the same numbers, ranges, documents, people,
/// variables and times, and counters that go on where they stand.
#[test]
fn an_export_that_is_imported_gives_the_same_register() {
    let postgres = Postgres::start();
    let old = Deployment::new(&postgres.url("exported"), None);
    fill(&old);
    let export = ["export", "--sort", "number"];
    let text = old.ok(&[&export[..], &["--bom", "--counters"]].concat());
    assert!(text.starts_with('\u{feff}'), "{text}");
    let own = ["kind", "revision", "path", "allocation_id", "journaled_at", "explanation"];
    let comparable = |text: &str| -> Vec<_> {
        let mut rows = rows_of(text.trim_start_matches('\u{feff}'));
        rows.retain(|row| row["kind"] != "revision" && row["kind"] != "counter");
        for row in &mut rows {
            // Who asked this service, and when it noted a gap.
            for name in own.iter().chain(&["ip_address", "idempotency_key", "retry_count"]) {
                row.remove(*name);
            }
            if row["document_id"].is_empty() && row["reason"] == "before-import" {
                row.remove("timestamp");
            }
        }
        rows
    };
    let before = comparable(&text);
    assert_eq!(before.len(), 8, "{text}");
    assert_eq!(before[2]["document_id"], "'=d4");
    assert_eq!((&*before[5]["RECIPIENT"], &*before[3]["SUBJECT"]), ("", "\"x\""), "{text}");
    for new in [Deployment::embedded(), Deployment::new(&postgres.url("imported"), None)] {
        apply(&new);
        let report = import(&new, &text);
        assert!(report.contains("skipped 7, numbers 7"), "{report}");
        assert_eq!(comparable(&new.ok(&export)), before, "{report}");
        for (kind, set, number) in [
            ("LTR", &["--set", "REV=A"][..], "L-0009-A\n"),
            ("NY", &[], "NY-0006\n"),
            ("LOST", &[], "LOST-0010\n"),
        ] {
            assert_eq!(new.ok(&[&["next", kind], set].concat()), number);
        }
        let again = new.path("list.csv").display().to_string();
        let refused = new.run(&["import", &again]);
        assert!(!refused.status.success(), "what is there is not imported twice");
        new.assert_clean();
    }
}

/// Goal: a part of an export is not taken for the whole: of a range for its first number, of a gap
/// for a number, of the rows that are there for all that was issued.
#[test]
fn an_export_that_leaves_something_out_is_not_read_back() {
    let (old, new) = (Deployment::embedded(), Deployment::embedded());
    fill(&old);
    apply(&new);
    let refused = |asked: &[&str], says: &str| {
        let file = new.path("part.csv");
        std::fs::write(&file, old.ok(&[&["export"], asked].concat())).unwrap();
        let output = new.run(&["import", &file.display().to_string(), "--apply"]);
        let why = [output.stdout, output.stderr].concat();
        let why = String::from_utf8_lossy(&why).into_owned();
        assert!(!output.status.success() && why.contains(says), "{asked:?}: {why}");
    };
    refused(&[], "export --counters");
    refused(&["--kinds", "number"], "export --counters");
    let all = ["kind", "series", "counter_key", "serials"];
    for missing in all {
        let named: Vec<&str> = all.into_iter().filter(|name| *name != missing).collect();
        let named = format!("generated_number,{}", named.join(","));
        refused(&["--counters", "--columns", &named], missing);
    }
    assert_eq!(new.ok(&["next", "LTR", "--set", "REV=A"]), "L-0001-A\n");
}

/// One part of a workbook.
fn part(file: &std::path::Path, name: &str) -> String {
    let mut book = zip::ZipArchive::new(std::fs::File::open(file).unwrap()).unwrap();
    std::io::read_to_string(book.by_name(name).unwrap()).unwrap()
}

/// Goal: a sheet of chosen columns, with heads in the language of the reader that stay in sight, a
/// filter, and days and times that are dates.
#[test]
fn a_workbook_is_one_that_people_work_with() {
    let deployment = Deployment::embedded();
    fill(&deployment);
    let file = deployment.path("register.xlsx");
    let to = file.display().to_string();
    let columns = "generated_number,timestamp,document_date,RECIPIENT,first";
    let export = ["export", "--series", "LTR", "--sort", "number", "--columns", columns];
    for (language, head) in
        [("th", "เลขที่"), ("zh-Hant", "編號"), ("zh-Hans", "编号"), ("en", "Number")]
    {
        let book = ["--format", "xlsx", "--to", &to, "--language", language];
        deployment.ok(&[&export[..], &book].concat());
        let sheet = part(&file, "xl/worksheets/sheet1.xml");
        assert!(sheet.contains(head) && !sheet.contains("generated_number"), "{sheet}");
        assert!(sheet.contains("RECIPIENT") && sheet.contains("สคฉ.3"), "{sheet}");
        assert!(sheet.contains("state=\"frozen\""), "{sheet}");
        // The head, four numbers, a revision and a gap.
        assert!(sheet.contains("<autoFilter ref=\"A1:E7\"/>"), "{sheet}");
        // 2026-01-01 00:30 in the series' zone, and that day.
        assert!(sheet.contains("46023.0208333"), "{sheet}");
    }
    let text = deployment.ok(&export);
    assert_eq!(text.lines().next(), Some(columns));
    assert_eq!(text.lines().count(), 7, "{text}");
    assert!(text.contains("L-0002-A,"), "{text}");
    let headed = deployment.ok(&[&export[..], &["--language", "th"]].concat());
    assert!(headed.starts_with("เลขที่,เวลาออกเลข,วันที่เอกสาร,RECIPIENT,ค่าแรก\n"), "{headed}");
    for (asked, says) in [
        (&["--columns", "number"][..], "there is no column \"number\""),
        (&["--columns", "first,first"], "appears twice"),
        (&["--format", "jsonl", "--columns", "first"], "JSON lines"),
        (&["--format", "jsonl", "--bom"], "CSV"),
        (&["--language", "de"], "th, zh-Hant"),
    ] {
        let refused = deployment.run(&[&["export"], asked].concat());
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && why.contains(says), "{asked:?}: {why}");
    }
}

//! Lists of numbers.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::load::{Running, post};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// A duplicate, a hole, a line that no series reads, a line without its column, and good ones.
const FAULTY: &str = "number,document_id,date,user,issued_at\n\
    SPO-20240122-001,D1,2024-01-22,ann,2024-01-22 09:00\n\
    SPO-20240122-004,D4,,bob,2024-01-22T10:00:00+08:00\n\
    SPO-20240122-004,D5,,bob,\n\
    SPO-20240122-O05,D6,,bob,\n\
    SPO-20240122-006\n\
    SPO-20240122-007,D7,2024-01-23,,\n\
    BPO-20240122-001,D8,,,\n";

const SOUND: &str = "number,document_id,date,user,issued_at\n\
    SPO-20240122-001,D1,2024-01-22,ann,2024-01-22 09:00\n\
    SPO-20240122-004,D4,,bob,2024-01-22T10:00:00+08:00\n\
    BPO-20240122-001,D8,,,\n";

fn reported_then_imported(deployment: &Deployment) {
    let faulty = file(deployment, "faulty.csv", FAULTY);
    for arguments in [&[&*faulty][..], &[&faulty, "--apply"]] {
        let (code, report, stderr) = import(deployment, arguments);
        assert_eq!(code, 1, "{report}");
        assert!(stderr.contains("nothing is imported"), "{stderr}");
        let told = |place: &str, kind: &str| (place.to_owned(), kind.to_owned());
        let expected = [
            told("line 4", "twice"),
            told("line 5", "not-read"),
            told("line 6", "unreadable-line"),
            told("line 7", "contradiction"),
        ];
        assert_eq!(problems(&report), expected);
        assert_eq!((&report["rows"], &report["numbers"]), (&7.into(), &3.into()), "{report}");
        let reason = report["problems"][1]["detail"].as_str().unwrap();
        assert!(reason.contains("series SPO:") && reason.contains("character 14"), "{reason}");
        let spo = &report["counters"][1];
        assert_eq!((&spo["series"], &spo["missing"]), (&"SPO".into(), &2.into()), "{report}");
        assert_eq!(spo["holes"], json!([{ "first": 2, "last": 3 }]));
        let (clean, verified) = deployment.verify();
        assert!(clean && verified["counters"] == 0, "nothing is written: {verified}");
    }
    let sound = file(deployment, "sound.csv", SOUND);
    let report = imported(deployment, &[&sound]);
    assert_eq!((&report["applied"], &report["numbers"]), (&false.into(), &3.into()));
    assert_eq!(deployment.verify().1["counters"], 0, "only reported");
    assert_eq!(imported(deployment, &[&sound, "--apply"])["applied"], true);
    let (clean, verified) = deployment.verify();
    assert!(clean, "{verified}");
    assert_eq!((&verified["counters"], &verified["values"]), (&2.into(), &5.into()));
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-005\n");
    assert_eq!(deployment.ok(&["next", "BPO", "--date", "2024-01-22"]), "BPO-20240122-002\n");
    let gaps = deployment.ok(&["gaps", "--explain", "--reason", "before-import"]);
    assert!(gaps.contains("SPO-20240122-002 to SPO-20240122-003 were not among"), "{gaps}");
    // What exists is not imported again, whole or in part.
    let (code, report, _) = import(deployment, &[&sound, "--apply"]);
    assert_eq!((code, &report["problems_total"]), (1, &5.into()), "{report}");
    let kinds: Vec<_> = problems(&report).into_iter().map(|(_, kind)| kind).collect();
    assert_eq!(kinds, ["issued", "issued", "issued", "counter-passed", "counter-passed"]);
    let (clean, verified) = deployment.verify();
    assert!(clean && verified["totals"]["journal"] == 5, "{verified}");
}

#[test]
fn an_import_reports_first_and_is_all_or_nothing_on_sqlite() {
    let deployment = Deployment::embedded();
    deployment.apply_examples();
    reported_then_imported(&deployment);
}

#[test]
fn an_import_reports_first_and_is_all_or_nothing_on_postgres() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("import"), None);
    deployment.apply_examples();
    reported_then_imported(&deployment);
}

#[test]
fn what_a_number_does_not_show_is_asked_for() {
    let deployment = Deployment::embedded();
    // A letter and a memo are written the same way, and both count by project.
    let list = file(&deployment, "letters.txt", "คคง.-สคฉ.3-0001-2568\n\nคคง.-สคฉ.3-0002-2568\n");
    let (code, report, _) = import(&deployment, &[&list]);
    assert_eq!((code, &report["problems_total"]), (1, &2.into()), "{report}");
    let told = |report: &Value| report["problems"][0]["detail"].as_str().unwrap().to_owned();
    let (_, report, _) = import(&deployment, &[&list, "--type", "MEMO"]);
    assert!(told(&report).contains("project"), "{report}");
    let arguments = [&*list, "--type", "MEMO", "--project", "P1", "--apply"];
    let report = imported(&deployment, &arguments);
    let key = "project=P1;ORIGINATOR=คคง.;RECIPIENT=สคฉ.3;type=MEMO;year=2025";
    assert_eq!(report["counters"][0]["counter_key"], key, "{report}");
    assert_eq!(report["counters"][0]["series"], "CORRESPONDENCE");
    // A counter by the day needs a day; the number shows the year, as the older system had it.
    let accepted = "policy = \"gapless\"\n\
                    ambiguity_accepted = \"The older system showed no day either.\"";
    let series = deployment.series_file("DAILY", "{YEAR}/{SEQ:4}", accepted);
    let text = std::fs::read_to_string(&series).unwrap() + "reset = \"day\"\n";
    std::fs::write(&series, text).unwrap();
    deployment.apply(&[series]);
    let list = file(&deployment, "daily.txt", "2025/0001\n");
    let (_, report, _) = import(&deployment, &[&list, "--series", "DAILY"]);
    assert!(told(&report).contains("add a column date"), "{report}");
    let list = file(&deployment, "daily.csv", "number,date\n2025/0001,2025-03-04\n");
    let report = imported(&deployment, &[&list, "--series", "DAILY"]);
    assert_eq!(report["counters"][0]["counter_key"], "type=DAILY;day=2025-03-04", "{report}");
    // A fiscal year is enough for a counter by the fiscal year.
    let series = deployment.series_file("FISCAL", "FY{FY}/{SEQ:4}", "fiscal_year_start = 4");
    let text = std::fs::read_to_string(&series).unwrap() + "reset = \"fiscal-year\"\n";
    std::fs::write(&series, text).unwrap();
    deployment.apply(&[series]);
    let fiscal = file(&deployment, "fiscal.txt", "FY2026/0007\n");
    let report = imported(&deployment, &[&fiscal, "--series", "FISCAL"]);
    let key = report["counters"][0]["counter_key"].as_str().unwrap();
    assert!(key.starts_with("type=FISCAL;") && key.ends_with("2026"), "{report}");
    let (code, _, stderr) = import(&deployment, &[&list, "--series", "NOBODY"]);
    assert!(code == 1 && stderr.contains("NOBODY"), "{stderr}");
    let usage = deployment.run(&["import", &list, "--map", "codes.csv"]);
    assert_eq!(usage.status.code(), Some(2), "a map needs tables");
}

/// Goal: an import needs no pause of the service. Method: a service on Redis issues from one
/// counter all the time; others are imported meanwhile.
#[tokio::test]
async fn an_import_beside_a_running_service_is_continued_by_it() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("beside"), Some(&redis.url()));
    deployment.apply_examples();
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 4);
    load.reach(50).await;
    let client = testkit::client();
    let spo = |document: &str, day: &str| {
        let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
        (url, json!({ "type": "SPO", "date": day }))
    };
    let (url, body) = spo("used", "2024-01-23");
    assert_eq!(post(&client, &url, &body).await.0, 201);
    let list = file(&deployment, "used.txt", "SPO-20240123-001\nSPO-20240122-001\n");
    let (code, report, _) = import(&deployment, &[&list, "--apply"]);
    assert_eq!(code, 1, "it was issued here: {report}");
    let list = file(&deployment, "new.csv", SOUND);
    imported(&deployment, &[&list, "--apply"]);
    let (url, body) = spo("next", "2024-01-22");
    let (status, answer) = post(&client, &url, &body).await;
    assert_eq!((status, &answer["document_number"]), (201, &"SPO-20240122-005".into()), "{answer}");
    let find = format!("{}/api/v1/document-numbering/numbers?number=SPO-20240122-004", service.url);
    let found: Value = client.get(&find).send().await.unwrap().json().await.unwrap();
    let row = &found["numbers"][0];
    assert_eq!((&row["document_id"], &row["user_id"]), (&"D4".into(), &"bob".into()), "{found}");
    assert_eq!(
        (&row["path"], &row["issued_at"]),
        (&"imported".into(), &"2024-01-22T10:00:00.000000+08:00".into())
    );
    let more = load.asked() + 50;
    load.reach(more).await;
    let seen = load.finish().await;
    assert_eq!(seen.failures.len(), 0, "{:?}", seen.failures);
    seen.assert_contiguous(seen.numbers.len());
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a service and an import that need the same new counter at the same moment never issue one
/// number twice. Method: both at once, for one day after the other.
#[tokio::test]
async fn a_service_and_an_import_at_the_same_counter_never_issue_a_number_twice() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("race"), Some(&redis.url()));
    deployment.apply_examples();
    let service = deployment.serve();
    let client = testkit::client();
    let mut first = 0;
    for day in 1..=8 {
        let list = format!("SPO-202402{day:02}-001\nSPO-202402{day:02}-002\n");
        let list = file(&deployment, "race.txt", &list);
        let mut command = deployment.command(&["import", &list, "--apply"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut numbers = Vec::new();
        let mut asked = 0;
        let succeeded = loop {
            asked += 1;
            let url = format!("{}/api/v1/documents/d{day}-{asked}/generate-number", service.url);
            // Ever later in the life of the other process, so that they meet.
            if child.try_wait().unwrap().is_none() && numbers.is_empty() {
                tokio::time::sleep(Duration::from_millis(10 * day)).await;
            }
            let body = json!({ "type": "SPO", "date": format!("2024-02-{day:02}") });
            let (status, answer) = post(&client, &url, &body).await;
            assert_eq!(status, 201, "{answer}");
            numbers.push(answer["document_number"].as_str().unwrap().to_owned());
            if let Some(status) = child.try_wait().unwrap() {
                break status.success();
            }
        };
        let start = if succeeded { 3 } else { 1 };
        first += u64::from(succeeded);
        let numbered = |place: usize| format!("SPO-202402{day:02}-{:03}", start + place);
        let expected: Vec<String> = (0..numbers.len()).map(numbered).collect();
        assert_eq!(numbers, expected, "imported: {succeeded}");
    }
    println!("of 8 races the import came first in {first}");
    assert!(service.terminate());
    deployment.assert_clean();
}

/// Goal: a process that dies in the middle of an import leaves nothing; a whole one takes memory
/// that does not grow with its rows. Method: 100,000 rows, killed while the journal is written;
/// then the same file again.
#[tokio::test]
async fn an_import_that_is_killed_leaves_nothing_and_a_large_one_takes_little_memory() {
    const ROWS: u64 = 50_000;
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("large"), None);
    deployment.apply_load_series();
    let lines: Vec<String> =
        (1..=ROWS).map(|value| format!("L-{value:08},document {value}")).collect();
    let list = format!("number,document_id\n{}\n", lines.join("\n"));
    let list = file(&deployment, "large.csv", &list);
    let arguments = ["import", &list, "--series", "LOAD", "--apply", "--json"];
    let start = || {
        let mut command = deployment.command(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut killed = start();
    let deadline = Instant::now() + Duration::from_secs(120);
    let writing = "select count(*) from pg_stat_activity \
                   where query like 'with name as materialized%' and xact_start is not null";
    while postgres.sql(writing) == "0" {
        assert!(Instant::now() < deadline, "it never writes");
        assert!(killed.try_wait().unwrap().is_none(), "it ended before it could be killed");
        // Between two looks: what is waited for needs the processor too.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (clean, report) = deployment.verify();
    assert!(clean && report["counters"] == 0 && report["totals"]["journal"] == 0, "{report}");
    // The import that follows must not rely on what is known of an empty journal.
    postgres.sql("analyze");

    let (begin, mut child, mut peak) = (Instant::now(), start(), String::new());
    let status = format!("/proc/{}/status", child.id());
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        peak = text.lines().find(|line| line.starts_with("VmHWM")).map_or(peak, str::to_owned);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    println!("{ROWS} rows in {:?}, {peak}", begin.elapsed());
    let peak_kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(peak_kib < 100 * 1024, "{peak}");
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["journal"] == ROWS, "{report}");
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00050001\n");
}

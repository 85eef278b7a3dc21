//! The auditor's paper of a period that is not the one its counters count by: it never denies a
//! number that was taken.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::deployment::Deployment;

/// Each reset with the code of its series. The fiscal year begins in April.
const RESETS: [(&str, &str); 7] = [
    ("YEARLY", "year"),
    ("FISCAL", "fiscal-year"),
    ("QUARTERLY", "quarter"),
    ("MONTHLY", "month"),
    ("WEEKLY", "week"),
    ("DAILY", "day"),
    ("NEVER", "none"),
];

/// The days of which each series has a number, two of the last one.
const DATES: [&str; 6] =
    ["2024-12-30", "2025-01-05", "2025-01-28", "2025-05-18", "2025-12-31", "2025-12-31"];

/// Periods, with their first and last days.
const PERIODS: [(&str, &str, &str); 13] = [
    ("2024", "2024-01-01", "2024-12-31"),
    ("2025", "2025-01-01", "2025-12-31"),
    ("2026", "2026-01-01", "2026-12-31"),
    ("2025-Q1", "2025-01-01", "2025-03-31"),
    ("2025-Q2", "2025-04-01", "2025-06-30"),
    ("2025-01", "2025-01-01", "2025-01-31"),
    ("2025-02", "2025-02-01", "2025-02-28"),
    ("2025-12", "2025-12-01", "2025-12-31"),
    // Of the days before and after New Year.
    ("2025-W01", "2024-12-30", "2025-01-05"),
    ("2026-W01", "2025-12-29", "2026-01-04"),
    ("2025-W05", "2025-01-27", "2025-02-02"),
    ("2025-05-18", "2025-05-18", "2025-05-18"),
    ("2025-01-06", "2025-01-06", "2025-01-06"),
];

const EMPTY: [(&str, &str); 4] = [
    ("th", "ไม่มีการออกเลขที่ในงวดนี้"),
    ("zh-Hans", "本期间没有发出编号"),
    ("zh-Hant", "本期間沒有發出編號"),
    ("en", "No number was taken"),
];

/// A series for each reset, which counts by project.
fn series() -> String {
    let mut file = String::new();
    for (code, reset) in RESETS {
        // Shows all that its counters count by.
        let _ = write!(
            file,
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\n\
             template = \"{code}-{{PROJECT}}-{{DATE:yyyyMMdd}}-{{SEQ:4}}\"\n\
             serves = {{ types = [\"{code}\"] }}\nfiscal_year_start = 4\n\
             document_date = {{ past = \"50y\", future = \"5y\" }}\n\
             serials = [{{ counter = [\"project\"], reset = \"{reset}\" }}]\n\n"
        );
    }
    file
}

async fn get(service: &str, query: &str, language: &str) -> (u16, String) {
    let url = format!("{service}/api/v1/document-numbering/statements?{query}");
    let answer =
        testkit::client().get(url).header("Accept-Language", language).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// How many numbers a paper shows of its period: those of whole runs, and the parts of the others.
fn shown(paper: &Value) -> u64 {
    let runs = paper["runs"].as_array().unwrap();
    let count = |run: &Value| match run["part"]["count"].as_u64() {
        Some(part) => part,
        None => run["values"].as_u64().unwrap(),
    };
    runs.iter().map(count).sum()
}

/// Goal: whichever period is requested, and whatever the counters count by, each number whose
/// document is dated in the period is on the paper, with the run that it belongs to. Method: every
/// pair of them, numbers on both sides of New Year, of two projects; over HTTP, by the command, in
/// every language.
#[tokio::test(flavor = "multi_thread")]
async fn no_pair_of_a_period_and_a_reset_denies_numbers_that_were_taken() {
    let deployment = Deployment::embedded();
    let file = deployment.path("periods.toml");
    std::fs::write(&file, series()).unwrap();
    deployment.apply(&[file]);
    let service = deployment.serve();
    let client = testkit::client();
    for (code, _) in RESETS {
        for (index, (project, date)) in
            DATES.iter().map(|date| ("P1", *date)).chain([("P2", "2025-01-05")]).enumerate()
        {
            let url = format!("{}/api/v1/documents/{code}{index}/generate-number", service.url);
            let body = json!({ "type": code, "project": project, "date": date });
            let answer = client.post(url).json(&body).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 201, "{}", answer.text().await.unwrap());
        }
    }
    for (code, reset) in RESETS {
        for (period, first, last) in PERIODS {
            let is_fiscal = reset == "fiscal-year" && period.len() == 4;
            // The fiscal year of that name is shown whole, and of another one its part.
            let first = match period {
                "2024" if is_fiscal => "2023-04-01",
                "2025" if is_fiscal => "2024-04-01",
                "2026" if is_fiscal => "2025-04-01",
                _ => first,
            };
            let within = |date: &&&str| (first..=last).contains(*date);
            let dated = DATES.iter().filter(within).count() as u64;
            let query = format!("series={code}&period={period}&project=P1");
            let (status, paper) = get(&service.url, &query, "en").await;
            assert_eq!(status, 200, "{paper}");
            let told: Value = serde_json::from_str(&paper).unwrap();
            assert_eq!(shown(&told), dated, "{code} {period}: {told}");
            let is_empty = told["sentence"].as_str().unwrap().starts_with(EMPTY[3].1);
            assert!(!is_empty || told["runs"] == json!([]), "{code} {period}: {told}");
            assert!(!is_empty || dated == 0, "{code} {period}: {told}");
        }
    }
    told_in_every_language(&service.url).await;
    assert!(service.terminate());
    told_by_the_command(&deployment);
    told_whenever_the_fiscal_year_began(&deployment);
}

/// The part of a run is shown with its first and last number and the run that it belongs to.
async fn told_in_every_language(service: &str) {
    for (language, empty) in EMPTY {
        for (code, key) in [("YEARLY", "project=P1;year=2025"), ("NEVER", "project=P1")] {
            let query = format!("series={code}&period=2025-01&project=P1");
            for format in ["text", "html", "csv"] {
                let (status, told) =
                    get(service, &format!("{query}&format={format}"), language).await;
                assert_eq!(status, 200, "{told}");
                let (first, last) =
                    (format!("{code}-P1-20250105-000"), format!("{code}-P1-20250128-000"));
                assert!(told.contains(&first) && told.contains(&last), "{language}: {told}");
                assert!(!told.contains(empty), "{told}");
                assert!(told.contains(key), "the run that it belongs to: {told}");
                assert!(!told.contains("-P2-"), "{told}");
            }
        }
        let (_, told) = get(service, "series=YEARLY&period=2019&format=text", language).await;
        assert!(told.contains(empty), "of that year there is none: {told}");
    }
}

/// Counters keep the names that they got while the fiscal year began in another month.
fn told_whenever_the_fiscal_year_began(deployment: &Deployment) {
    for (code, later) in [
        ("OCTOBER", "OCT-{FY}-{SEQ:4}|fiscal_year_start = 10|fiscal-year"),
        ("CALENDAR", "CAL-{YEAR}-{SEQ:4}||year"),
    ] {
        let first = format!("{code}-{{FY}}-{{SEQ:4}}|fiscal_year_start = 4|fiscal-year");
        for version in [&*first, later] {
            let parts: Vec<&str> = version.split('|').collect();
            let file = deployment.path("moved.toml");
            let text = format!(
                "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{}\"\n\
                 serves = {{ types = [\"{code}\"] }}\n{}\n\
                 document_date = {{ past = \"50y\", future = \"5y\" }}\n\
                 serials = [{{ reset = \"{}\" }}]\n",
                parts[0], parts[1], parts[2]
            );
            std::fs::write(&file, text).unwrap();
            deployment.ok(&["series", "apply", file.to_str().unwrap()]);
            if version == first {
                let number = deployment.ok(&["next", code, "--date", "2026-05-10"]);
                assert_eq!(number.trim(), format!("{code}-2027-0001"));
            }
        }
        for period in ["2026", "2026-Q2", "2026-05", "2026-W19", "2026-05-10"] {
            let told = deployment.ok(&["statement", "--series", code, "--period", period]);
            assert!(told.contains(&format!("{code}-2027-0001")), "{period}: {told}");
            assert!(!told.contains(EMPTY[3].1), "{period}: {told}");
        }
    }
}

/// The command says the same, in the example of the documentation among others.
fn told_by_the_command(deployment: &Deployment) {
    for (code, _) in RESETS {
        for period in ["2025-Q1", "2025-01", "2025-W05", "2025-01-28"] {
            let asked = ["--series", code, "--period", period, "--project", "P1"];
            let told = deployment.ok(&[&["statement"], &asked[..]].concat());
            let number = format!("{code}-P1-20250128-000");
            assert!(told.contains(&number) && !told.contains(EMPTY[3].1), "{period}: {told}");
        }
    }
    let told = deployment.ok(&["statement", "--series", "WEEKLY", "--period", "2025", "--json"]);
    let told: Value = serde_json::from_str(&told).unwrap();
    let part = &told["runs"].as_array().unwrap()[0]["part"];
    assert_eq!(
        (&part["dated_from"], &part["dated_upto"]),
        (&json!("2025-01-01"), &json!("2025-12-31"))
    );
}

//! The runbook's chapter on backups, line by line with running services: what the copies hold.

use std::process::Command;

use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

const RUNBOOK: &str = include_str!("../../docs/runbook.md");

/// Numbers that are journaled before the copies are made.
const NUMBERS: u64 = 20;

/// The lines of the chapter, each with what its comment quotes.
fn lines() -> Vec<(&'static str, Option<&'static str>)> {
    let (_, chapter) = RUNBOOK.split_once("\n## Backups\n").expect("a chapter on backups");
    let chapter = chapter.split("\n## ").next().unwrap_or_default();
    let blocks = chapter.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let quoted = |line: &'static str| line.split_once(" # `")?.1.split('`').next();
    lines.map(|line| (line, quoted(line))).collect()
}

#[tokio::test]
async fn the_lines_on_backups_run_beside_services_and_the_copies_hold_every_number() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let shared = Deployment::new(&postgres.url("shop"), Some(&redis.url()));
    let embedded = Deployment::embedded();
    let mut services = Vec::new();
    for deployment in [&shared, &embedded] {
        deployment.apply_load_series();
        let service = deployment.serve();
        load::documents(&service.url, 4, NUMBERS).await.assert_contiguous(20);
        services.push(service);
    }
    // Everything is in the journal.
    shared.assert_clean();
    let home = tempfile::tempdir().unwrap();
    // psql requires the second equals sign to be encoded.
    let url = shared.database_url().replace("search_path=", "search_path%3D");
    let run = |line: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(home.path());
        command.env("DATABASE_URL", &url).env("REDIS_URL", redis.url());
        let output = command.env("DATA_DIR", embedded.path("")).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}\n{error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let lines = lines();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for (line, quoted) in lines {
        let output = run(line);
        assert!(output.contains(quoted.unwrap_or_default()), "{line}\n{output}");
    }
    let copied = run("sqlite3 ledger-copy.db 'select count(*) from journal'");
    assert_eq!(copied, NUMBERS.to_string());
    for mut service in services {
        service.kill();
    }
    run("pg_restore --clean --if-exists --dbname=\"$DATABASE_URL\" ledger.dump");
    let restored = postgres.sql("select count(*) from shop.journal");
    assert_eq!(restored, NUMBERS.to_string());
}

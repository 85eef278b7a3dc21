//! `numerator archive` on the command line, killed again and again during a service that takes
//! numbers.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use numerator::clock::{Clock as _, SystemClock};
use serde_json::Value;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

/// Archivers that are killed before one may end.
const KILLED: u64 = 10;

/// Documents that are numbered before.
const OLD: u64 = 1_000;

/// Documents that are numbered meanwhile.
const YOUNG: u64 = 300;

/// This moment, as a command takes it.
pub(crate) fn now_text() -> String {
    text_of(SystemClock.now_us())
}

/// The moment two days ago.
pub(crate) fn days_ago_text() -> String {
    text_of(SystemClock.now_us() - 2 * 86_400_000_000)
}

fn text_of(at_us: i64) -> String {
    jiff::Timestamp::from_microsecond(at_us).unwrap().to_string()
}

/// How many numbers an export writes, and its message.
fn exported(deployment: &Deployment, args: &[&str]) -> (u64, String) {
    let output = deployment.run(&[&["export", "--format", "jsonl"], args].concat());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(output.status.success());
    (text(output.stdout).lines().count() as u64, text(output.stderr))
}

fn refusal(deployment: &Deployment, args: &[&str]) -> String {
    let output = deployment.run(args);
    assert!(!output.status.success(), "{args:?} is not refused");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A deployment on both stores whose ledger is signed, and the same for a process with an earlier
/// clock: its rows are old for all others, and a wide bound admits them.
struct Ages {
    postgres: Postgres,
    _redis: Redis,
    folder: tempfile::TempDir,
    now: Deployment,
    earlier: Deployment,
}

impl Ages {
    fn start() -> Self {
        let (postgres, redis) = (Postgres::start(), Redis::start());
        let url = postgres.url("archived");
        let folder = tempfile::tempdir().unwrap();
        let offset = folder.path().join("offset");
        std::fs::write(&offset, "+0").unwrap();
        let mut now = Deployment::new(&url, Some(&redis.url()));
        let mut earlier = Deployment::of(program_with(&off_by(&offset)), &url, Some(&redis.url()));
        earlier.extra = "[node]\nclock_offset_max = \"3650d\"\n".into();
        let key = folder.path().join("audit.pem");
        now.ok(&["audit", "keygen", key.to_str().unwrap()]);
        for deployment in [&mut now, &mut earlier] {
            let audit = format!("[audit]\nkey = \"{}\"\ncheckpoint = \"1s\"\n", key.display());
            deployment.extra.push_str(&audit);
        }
        now.apply_load_series();
        Ages { postgres, _redis: redis, folder, now, earlier }
    }

    /// Starts a service whose clock is earlier by this much.
    fn serve_earlier(&self, offset: &str) -> Service {
        std::fs::write(self.folder.path().join("offset"), offset).unwrap();
        self.earlier.serve()
    }

    fn archive(&self) -> String {
        self.folder.path().join("archive").to_str().unwrap().to_owned()
    }

    /// Starts archivers and kills each, a little further on its way each time.
    async fn kill_archivers(&self, args: &[&str]) {
        for killed in 0..KILLED {
            let mut command = self.now.command(args);
            command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut archiver = command.spawn().expect("started");
            tokio::time::sleep(Duration::from_millis(60 + 60 * killed)).await;
            archiver.kill().expect("killed");
            archiver.wait().expect("gone");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archivers_are_killed_again_and_again_and_nothing_is_lost() {
    let ages = Ages::start();
    let (now, to) = (&ages.now, ages.archive());
    let client = testkit::client();
    let service = ages.serve_earlier("-3000d");
    let (status, first) = load::take(&client, &service.url, "first").await;
    assert_eq!(status, 201, "{first}");
    assert!(service.terminate());
    let service = ages.serve_earlier("-3d");
    let old = load::documents(&service.url, 16, OLD).await;
    assert!(service.terminate());
    let service = now.serve();
    let young = refusal(now, &["archive", "--before", &now_text(), "--to", &to]);
    assert!(young.contains("rows of the last 24 hours stay in the ledger"), "{young}");
    now.ok(&["archive", "--before", "2020-01-01", "--to", &to]);
    let before = days_ago_text();
    let args = ["archive", "--before", &before, "--to", &to, "--file-rows", "400"];
    let url = service.url.clone();
    let young = tokio::spawn(async move { load::run_of(&url, "young", YOUNG).await });
    ages.kill_archivers(&args).await;
    let young = young.await.unwrap();
    now.ok(&args);
    assert!(service.terminate());
    now.ok(&["verify", "--archive", &to]);
    now.ok(&["audit", "verify", "--archive", &to]);
    now.ok(&["audit", "verify"]);
    // Each number that a caller has is in the journal or in the archive, and in only one of them.
    let (kept, told) = exported(now, &[]);
    assert!(told.contains("may have some: numerator archive list"), "{told}");
    let (_, told) = exported(now, &["--from", &before]);
    assert!(!told.contains("archive"), "{told}");
    let files: Vec<Value> =
        serde_json::from_str(&now.ok(&["archive", "list", "--json"])).expect("JSON");
    let moved: u64 = files.iter().map(|file| file["rows"].as_u64().expect("rows")).sum();
    let numbers = old.numbers.values().chain(young.numbers.values());
    let all = numbers.collect::<BTreeSet<_>>().len() as u64 + 1;
    assert_eq!((kept + moved, all), (OLD + YOUNG + 1, OLD + YOUNG + 1), "{files:?}");
    assert!(moved > OLD / 2, "{moved} of {OLD}");
    looked_up(&ages, first["document_number"].as_str().unwrap());
    given_up(&ages);
    let [oldest, next] = [0, 1].map(|place| files[place]["file"].as_str().unwrap());
    deleted(&ages, oldest, next);
}

/// A number and a document that moved are reported as archived, and found there.
fn looked_up(ages: &Ages, number: &str) {
    let (now, to) = (&ages.now, ages.archive());
    let told = refusal(now, &["find", "--number", number]);
    assert!(told.contains("in the archive, file journal-"), "{told}");
    let document = now.run(&["find", "--document", "first"]);
    let told = String::from_utf8_lossy(&document.stderr).into_owned();
    assert!(told.contains("in the archive, file journal-"), "{told}");
    let found = now.ok(&["find", "--archive", &to, "--document", "first"]);
    assert!(found.contains(number), "{found}");
}

/// A file that was lost before its rows were removed blocks archivers until it is given up.
fn given_up(ages: &Ages) {
    let (now, to) = (&ages.now, ages.archive());
    ages.postgres.sql(
        "insert into archived.archive_file (name, sha256, row_count, manifest, before_us, \
         last_issued_us, written_by, written_at_us) \
         values ('journal-0.parquet', decode(repeat('ab', 32), 'hex'), 1, '', 0, 0, 'u', 0)",
    );
    let archive = ["archive", "--before", "2020-01-01", "--to", &to];
    let lost = refusal(now, &archive);
    let remedy = "numerator archive delete journal-0.parquet";
    assert!(lost.contains(remedy), "{lost}");
    now.ok(&["archive", "delete", "journal-0.parquet", "--from", &to, "--reason", "lost"]);
    now.ok(&archive);
}

/// What must be kept is kept; the rest is deleted on request.
fn deleted(ages: &Ages, oldest: &str, next: &str) {
    let (now, to) = (&ages.now, ages.archive());
    let kept = refusal(now, &["archive", "delete", next, "--from", &to, "--reason", "too early"]);
    assert!(kept.contains("numbers are kept for 7 years"), "{kept}");
    let unknown = refusal(now, &["archive", "delete", "f", "--from", &to, "--reason", "so"]);
    assert!(unknown.contains("the ledger knows no such file"), "{unknown}");
    now.ok(&["archive", "delete", oldest, "--from", &to, "--reason", "old enough"]);
    now.ok(&["verify", "--archive", &to]);
}

#[test]
fn an_archive_folder_that_takes_no_file_changes_nothing() {
    let deployment = Deployment::embedded();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let file = deployment.path("file");
    std::fs::write(&file, "").unwrap();
    let args = |to: &str| -> Vec<String> {
        ["archive", "--before", "2020-01-01", "--to", to].map(str::to_owned).to_vec()
    };
    let run = |args: &[String]| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        refusal(&deployment, &args)
    };
    let told = run(&args(file.to_str().unwrap()));
    assert!(told.contains("cannot be made"), "{told}");
    let wrong = refusal(&deployment, &["archive", "--before", "soon", "--to", "x"]);
    assert!(wrong.contains("before: must be a date such as"), "{wrong}");
    let none = refusal(&deployment, &["find", "--archive", "/nowhere/at/all"]);
    assert!(none.contains("is no folder that can be read"), "{none}");
    deployment.assert_clean();
}

//! No evidence depends on one machine's clock (F37): the effects of a process, an archiver or a
//! sweep with a wrong clock, and of a ledger whose rows were written by one.

use std::path::PathBuf;
use std::time::Duration;

use testkit::eventually::eventually;
use testkit::load::take;
use testkit::postgres::Postgres;
use testkit::redis::Redis;
use testkit::service::Service;

use crate::archive::now_text;
use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

/// Longest wait for what a test waits for; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// The bound between clocks.
const BOUND: &str = "node.clock_offset_max";

/// Heartbeats so often that a test need not wait.
const QUICK: &str = "[node]\nttl = \"1s\"\n";

/// Two ways to one ledger: of a process whose clock is right, and of one whose clock is off.
struct Clocks {
    right: Deployment,
    off: Deployment,
    offset: PathBuf,
    _folder: tempfile::TempDir,
}

impl Clocks {
    /// On PostgreSQL, or on a file.
    fn at(url: Option<&str>, redis: Option<&str>, offset: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("offset");
        std::fs::write(&file, offset).unwrap();
        let right = match url {
            Some(url) => Deployment::new(url, redis),
            None => Deployment::sqlite(redis),
        };
        let program = program_with(&off_by(&file));
        let off = Deployment::of(program, right.database_url(), redis);
        let mut clocks = Clocks { right, off, offset: file, _folder: folder };
        clocks.say("");
        clocks.right.apply_load_series();
        clocks
    }

    /// Both have further sections of settings.
    fn say(&mut self, sections: &str) {
        for deployment in [&mut self.right, &mut self.off] {
            deployment.extra = QUICK.to_owned() + sections;
        }
    }

    fn jump(&self, offset: &str) {
        std::fs::write(&self.offset, offset).unwrap();
    }

    /// The refusal of a command of the process whose clock is off.
    fn refusal(&self, args: &[&str]) -> String {
        refusal(&self.off, args)
    }

    /// What is in the log of a service that does not start.
    fn does_not_start(&self) -> String {
        let mut service = self.off.launch();
        assert!(!service.has_ended_well(), "{}", service.log());
        assert!(!service.is_running(), "it runs: {}", service.log());
        service.log()
    }
}

fn refusal(deployment: &Deployment, args: &[&str]) -> String {
    let output = deployment.run(args);
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(!output.status.success(), "{args:?} is not refused: {said:?}");
    said.concat()
}

async fn number(service: &Service, document: &str, expected: u16) -> String {
    let (status, body) = take(&testkit::client(), &service.url, document).await;
    assert_eq!(status, expected, "{body} {}", service.log());
    body["document_number"].as_str().unwrap().to_owned()
}

/// A metric without labels, or of the partition 0.
async fn metric(service: &Service, name: &str) -> f64 {
    let values = values(service, name).await;
    *values.first().unwrap_or_else(|| panic!("no {name}"))
}

/// The sum of a metric's values.
async fn sum(service: &Service, name: &str) -> f64 {
    values(service, name).await.into_iter().sum()
}

async fn values(service: &Service, name: &str) -> Vec<f64> {
    let page = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    let page = page.text().await.unwrap();
    let of = |line: &str| Some(line.strip_prefix(name)?.rsplit_once(' ')?.1.parse().unwrap());
    page.lines().filter_map(of).collect()
}

/// Goal: a process that is a month ahead does nothing at all, and reports the error (V4).
#[tokio::test]
async fn a_process_whose_clock_is_off_does_not_join() {
    let postgres = Postgres::start();
    let clocks = Clocks::at(Some(&postgres.url("apart")), None, "+32d");
    for offset in ["+32d", "+1h", "-1h"] {
        clocks.jump(offset);
        for said in [clocks.does_not_start(), clocks.refusal(&["next", "LOAD"])] {
            assert!(said.contains(BOUND) && said.contains("PostgreSQL"), "{offset}: {said}");
        }
    }
    let joined = postgres.sql("select count(*) from apart.node");
    assert_eq!(joined, "0", "a process whose clock is off has joined");
    clocks.jump("+2m");
    assert!(clocks.off.serve().terminate(), "two minutes are within the bound");
    clocks.right.assert_clean();
}

/// Goal: if no server shows the time, a clock behind what is written is wrong, and so is one that
/// agrees with no other process; a dead process does not count.
#[tokio::test]
async fn a_process_whose_clock_is_off_does_not_join_at_a_file() {
    let mut clocks = Clocks::at(None, None, "-1d");
    clocks.right.ok(&["next", "LOAD"]);
    for said in [clocks.does_not_start(), clocks.refusal(&["next", "LOAD"])] {
        assert!(said.contains(BOUND) && said.contains("journal"), "{said}");
    }
    clocks.jump("+1d");
    let mut service = clocks.right.serve();
    for said in [clocks.does_not_start(), clocks.refusal(&["next", "LOAD"])] {
        assert!(said.contains(BOUND) && said.contains("another process"), "{said}");
    }
    service.kill();
    // It cannot be distinguished from a file that was at rest for a day.
    let other = clocks.off.serve();
    assert_eq!(number(&other, "d1", 201).await, "L-00000002");
    assert!(other.terminate());
    // The row that it wrote is all there is: the settings can override that.
    let said = refusal(&clocks.right, &["next", "LOAD"]);
    assert!(said.contains(BOUND), "{said}");
    clocks.say("clock_offset_max = \"2d\"\n");
    assert_eq!(clocks.right.ok(&["next", "LOAD"]), "L-00000003\n");
    clocks.say("");
    assert_eq!(clocks.right.ok(&["next", "LOAD"]), "L-00000004\n", "the newest row is right again");
}

/// Goal: a clock that jumps during a running process is seen immediately, by every process that
/// checks, and nothing is swept meanwhile (B10).
#[tokio::test]
async fn a_clock_that_jumps_is_noticed_and_nothing_is_swept_until_it_is_right() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut clocks = Clocks::at(Some(&postgres.url("jumps")), Some(&redis.url()), "+0");
    clocks.say("[idempotency]\nwindow = \"10m\"\n[sweep]\nkeep = \"12m\"\n");
    let service = clocks.off.serve();
    let ready = async || {
        let answer = testkit::get(format!("{}/readyz", service.url)).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let sweeps = async || !metric(&service, "numerator_redis_counters").await.is_nan();
    eventually(LIMIT, async || if sweeps().await { Ok(()) } else { Err(service.log()) }).await;
    clocks.jump("+1h");
    eventually(LIMIT, async || {
        let (status, body) = ready().await;
        let is_told = status == 503 && body.contains("clock");
        if is_told { Ok(()) } else { Err(format!("{status} {body}")) }
    })
    .await;
    let offset = metric(&service, "numerator_clock_offset_seconds").await;
    assert!((3_500.0..3_700.0).contains(&offset), "{offset}");
    eventually(LIMIT, async || if sweeps().await { Err(service.log()) } else { Ok(()) }).await;
    let page = clocks.right.run(&["status"]);
    let status = String::from_utf8_lossy(&page.stdout);
    assert!(!page.status.success() && status.contains("1 node whose clock is off"), "{page:?}");
    number(&service, "d1", 201).await;
    clocks.jump("+0");
    eventually(LIMIT, async || {
        let (status, body) = ready().await;
        if status == 200 { Ok(()) } else { Err(format!("{status} {body}")) }
    })
    .await;
    eventually(LIMIT, async || if sweeps().await { Ok(()) } else { Err(service.log()) }).await;
    let told = service.log().matches("THE CLOCK IS OFF").count();
    assert_eq!(told, 1, "{}", service.log());
}

/// Goal: a sweep uses the ledger's time if that is behind the process's own, and so does the
/// planned end that makes one possible (V6). Method: the bound is as wide as an operator sets it
/// who cannot set a clock, and the process that sweeps is two hours ahead.
#[tokio::test]
async fn a_sweep_goes_by_the_ledgers_time() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut clocks = Clocks::at(Some(&postgres.url("ahead")), Some(&redis.url()), "+2h");
    clocks.say(
        "clock_offset_max = \"1d\"\n[idempotency]\nwindow = \"1s\"\n[sweep]\nkeep = \"1h\"\n\
         counters_max = 1\n",
    );
    let strict = clocks.right.series_file("STRICT", "S-{SEQ}", "policy = \"gapless\"");
    let daily = clocks.right.path("daily.toml");
    let text = "[[series]]\ncode = \"DAY\"\nname = \"DAY\"\n\
                template = \"{DATE:yyyyMMdd}-{SEQ:3}\"\nserves = { types = [\"DAY\"] }\n\
                serials = [{ counter = [\"type\"], reset = \"day\" }]\n";
    std::fs::write(&daily, text).unwrap();
    clocks.right.apply(&[strict, daily]);
    for day in ["2024-01-01", "2024-01-02", "2024-01-03"] {
        clocks.right.ok(&["next", "DAY", "--date", day]);
    }
    // A command that touches no Redis: nothing names its node.
    clocks.right.ok(&["next", "STRICT"]);
    let ended = "select count(*) from ahead.node where left_at_us is not null";
    assert_eq!(postgres.sql(ended), "4");
    let service = clocks.off.serve();
    // Rows first, then each partition's counters: the sum of all shows that a round was made.
    eventually(LIMIT, async || {
        let counted = sum(&service, "numerator_redis_counters{").await;
        if counted == 3.0 { Ok(()) } else { Err(format!("{counted} {}", service.log())) }
    })
    .await;
    assert_eq!(postgres.sql(ended), "4", "a node that has just ended was swept");
    assert!(!service.log().contains("the epoch ends by plan"), "{}", service.log());
    assert!(service.terminate());
}

/// Goal: rows of this minute stay, whatever the archiver's clock says, and a retry finds its number
/// (V6). Method: the window between what is young and what is old is a day.
#[tokio::test]
async fn an_archiver_whose_clock_is_ahead_moves_nothing_of_this_minute() {
    let postgres = Postgres::start();
    for url in [Some(postgres.url("ahead")), None] {
        let clocks = Clocks::at(url.as_deref(), None, "+5d");
        let to = clocks.right.path("archive");
        let service = clocks.right.serve();
        let first = number(&service, "d1", 201).await;
        let before = now_text();
        let args = ["archive", "--before", &before, "--to", to.to_str().unwrap()];
        let said = clocks.refusal(&args);
        assert!(said.contains(BOUND), "{said}");
        assert!(service.terminate());
        let said = clocks.refusal(&args);
        // In a file that no process has open only its rows show the time.
        let expected = if url.is_some() { BOUND } else { "stay in the ledger" };
        assert!(said.contains(expected), "{said}");
        let service = clocks.right.serve();
        assert_eq!(number(&service, "d1", 200).await, first);
        assert!(service.terminate());
        clocks.right.assert_clean();
    }
}

/// Goal: what must be kept for years is kept, whatever the clock of the deleting process says (V6).
#[tokio::test]
async fn an_archive_file_of_today_is_not_deleted_by_a_clock_nine_years_ahead() {
    let postgres = Postgres::start();
    for url in [Some(postgres.url("years")), None] {
        let clocks = Clocks::at(url.as_deref(), None, "+3290d");
        clocks.right.ok(&["next", "LOAD"]);
        let note = |hash: &str, schema: &str| {
            format!(
                "insert into {schema}archive_file (name, sha256, row_count, manifest, before_us, \
                 last_issued_us, written_by, written_at_us, ended_at_us) select \
                 'journal-1.parquet', {hash}, 1, '', journaled_at_us, journaled_at_us, 'u', \
                 journaled_at_us, journaled_at_us from {schema}journal_batch"
            )
        };
        if url.is_some() {
            postgres.sql(&note("decode(repeat('ab', 32), 'hex')", "years."));
        } else {
            let pool = sqlx::SqlitePool::connect(clocks.right.database_url()).await.unwrap();
            let note = sqlx::AssertSqlSafe(note("zeroblob(32)", ""));
            sqlx::raw_sql(note).execute(&pool).await.unwrap();
            pool.close().await;
        }
        let file = clocks.right.path("journal-1.parquet");
        std::fs::write(&file, "").unwrap();
        let from = file.parent().unwrap().to_str().unwrap();
        let args =
            ["archive", "delete", "journal-1.parquet", "--from", from, "--reason", "old enough"];
        let said = clocks.refusal(&args);
        let expected = if url.is_some() { BOUND } else { "numbers are kept for 7 years" };
        assert!(said.contains(expected), "{said}");
        assert!(file.exists());
    }
}

/// Goal: not a command's own setting of the window decides which rows stay: the ledger's does.
#[tokio::test]
async fn rows_of_the_window_that_services_keep_stay_whatever_a_command_is_set_to() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[idempotency]\nwindow = \"10d\"\n".into();
    assert!(deployment.serve().terminate());
    deployment.extra = String::new();
    let to = deployment.path("archive");
    let before = "2020-01-01";
    deployment.ok(&["archive", "--before", before, "--to", to.to_str().unwrap()]);
    let said = refusal(&deployment, &["archive", "--before", &now_text(), "--to", "x"]);
    assert!(said.contains("rows of the last 240 hours stay in the ledger"), "{said}");
}

/// Goal: a retry at a process whose clock is ahead, by less than the bound, is looked for as far
/// back as one at any other. Method: a window so short that the difference of the clocks is more
/// than that and the margin for clocks together; and in a file a jump by days.
#[tokio::test]
async fn a_retry_is_looked_for_by_the_ledgers_time() {
    let postgres = Postgres::start();
    let mut clocks = Clocks::at(Some(&postgres.url("asked")), None, "+20m");
    clocks.say("[idempotency]\nwindow = \"5m\"\n");
    let (right, off) = (clocks.right.serve(), clocks.off.serve());
    let first = number(&right, "d1", 201).await;
    assert_eq!(number(&off, "d1", 200).await, first);

    let clocks = Clocks::at(None, None, "+0");
    let alone = clocks.off.serve();
    let first = number(&alone, "d1", 201).await;
    clocks.jump("+3d");
    assert_eq!(number(&alone, "d1", 200).await, first);
}

//! What the machine does to a node: its wall clock jumps, its disk is full.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::load::{Running, take};
use testkit::postgres::Postgres;
use testkit::process::faketime;
use testkit::redis::Redis;

use crate::deployment::{Deployment, program, program_with};
use crate::load::open;
use crate::stage::Stage;

/// Variables of a program whose clock is off by the value in a file.
pub(crate) fn off_by(offset: &Path) -> [String; 4] {
    let library = faketime().expect("install the Debian package faketime");
    [
        format!("LD_PRELOAD={}", library.display()),
        format!("FAKETIME_TIMESTAMP_FILE={}", offset.display()),
        "FAKETIME_NO_CACHE=1".to_owned(),
        // A real clock jumps on the wall only.
        "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
    ]
}

/// Goal: a retry finds its number although it comes to a process whose clock is ahead of that of
/// the process that issued it by more than the window (F29).
#[tokio::test]
async fn a_retry_finds_its_number_where_another_clock_tells_that_its_window_is_over() {
    let postgres = Postgres::start();
    let url = postgres.url("ahead");
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    std::fs::write(&offset, "+15m").unwrap();
    let mut right = Deployment::new(&url, None);
    let mut ahead = Deployment::of(program_with(&off_by(&offset)), &url, None);
    for deployment in [&mut right, &mut ahead] {
        deployment.extra = "[idempotency]\nwindow = \"10m\"\n".into();
    }
    right.apply_load_series();
    let (one, other) = (right.serve(), ahead.serve());
    let client = testkit::client();
    let (status, first) = take(&client, &one.url, "d1").await;
    assert_eq!(status, 201, "{first}");
    let (status, again) = take(&client, &other.url, "d1").await;
    let number = &first["document_number"];
    assert_eq!((status, &again["document_number"]), (200, number), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_a_nodes_clock_jumps_by_an_hour_and_back_and_nobody_falls_silent() {
    let redis = Redis::start();
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let jump = |to: &str| std::fs::write(&offset, to).unwrap();
    jump("+0");
    let variables = off_by(&offset);
    let stage = Stage::start_with_variables(&redis, &variables).await;
    for to in ["+1h", "-1h", "+0"] {
        jump(to);
        stage.advance().await;
    }
    let minutes = stage.spread_of_journal_minutes();
    assert!(minutes > 110, "the clock did not jump: rows lie within {minutes} minutes");
    assert_eq!(stage.recoveries(), 0, "a time of day decides nothing");
    let outcome = stage.close("clock jumps").await;
    assert_eq!((outcome.gaps, outcome.failures), (String::new(), 0));
}

/// A small file system in memory, removed with this value.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one, if this process may.
    pub(crate) fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m", "numerator-test"]).arg(&folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        mounted.then_some(SmallDisk(folder))
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }

    /// Leaves no room at all.
    pub(crate) fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.filler()).unwrap();
        for size in [1 << 20, 1 << 12] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    /// Removes what fills it.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_the_ledgers_disk_is_full_and_everything_is_journaled_once_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path().join("disk")) else {
        println!("NOT RUN: the ledger's disk is full (this process may not mount a tmpfs)");
        return;
    };
    let redis = Redis::start();
    let url = format!("sqlite:{}", disk.path().join("ledger.db").display());
    let mut deployment = Deployment::of(program(), &url, Some(&redis.url()));
    deployment.extra = "[ceiling]\nstep_min = 5000\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    let load = Running::start(&service.url, 16);
    load.reach(500).await;
    disk.fill();
    let asked = load.asked();
    let goes_on = tokio::time::timeout(Duration::from_secs(30), load.reach(asked + 300)).await;
    assert!(goes_on.is_ok(), "a full disk stops issuing: {}", service.log());
    disk.make_room();
    let asked = load.asked();
    let goes_on = tokio::time::timeout(Duration::from_secs(30), load.reach(asked + 500)).await;
    assert!(goes_on.is_ok(), "issuing does not go on: {}", service.log());
    let seen = load.finish().await;
    seen.assert_no_duplicate();
    let log = service.log();
    assert!(service.terminate(), "the journal is not drained: {log}");
    crate::faults::assert_all_journaled(&open(&deployment).await, &seen).await;
    deployment.assert_clean();
    println!("disk full: {} numbers, failures {:?}", seen.numbers.len(), seen.failures);
}

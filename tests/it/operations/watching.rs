//! `status --watch`: page after page, and an end that is not an error.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::redis::Redis;

use crate::deployment::Deployment;

/// Longest wait for the end; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// A watch, and the lines that it prints.
struct Watch {
    child: Child,
    /// None: the reader has gone.
    lines: Option<std::io::Lines<BufReader<std::process::ChildStdout>>>,
}

impl Watch {
    fn start(deployment: &Deployment) -> Self {
        let mut command = deployment.command(&["status", "--watch", "100ms", "--patience", "1ms"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Watch { child, lines: Some(lines) }
    }

    /// The next page.
    fn page(&mut self) -> Vec<String> {
        let lines = self.lines.as_mut().unwrap().map(Result::unwrap);
        let page: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        assert!(page[0].starts_with("numerator status at "), "{page:?}");
        page
    }

    /// Waits until it has ended; its exit code.
    fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it goes on");
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watch_follows_what_happens_until_it_is_interrupted() {
    let mut redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_load_series();
    deployment.ok(&["next", "LOAD"]);
    let mut watch = Watch::start(&deployment);
    let shows = |page: &[String], part: &str| page.iter().any(|line| line.contains(part));
    let page = watch.page();
    assert!(shows(&page, "journal 1 ") && shows(&page, "hazard of redis"), "{page:?}");
    assert!(page.iter().all(|line| !line.contains('\u{1b}')), "colours in a pipe: {page:?}");
    deployment.ok(&["next", "LOAD"]);
    let deadline = Instant::now() + LIMIT;
    while !shows(&watch.page(), "journal 2 ") {
        assert!(Instant::now() < deadline, "it does not follow");
    }
    redis.kill();
    while !shows(&watch.page(), "redis does not answer") {
        assert!(Instant::now() < deadline, "it does not follow");
    }
    let pid = watch.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(watch.end(), Some(0));
}

#[test]
fn a_watch_whose_reader_has_gone_ends_well() {
    let deployment = Deployment::embedded();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let mut watch = Watch::start(&deployment);
    for _ in 0..3 {
        watch.page();
    }
    watch.lines = None;
    assert_eq!(watch.end(), Some(0));
    let refused = deployment.run(&["status", "--watch", "1ms"]);
    assert_eq!(refused.status.code(), Some(2));
}

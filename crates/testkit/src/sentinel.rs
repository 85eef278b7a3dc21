//! A private set of sentinels before a master of the test: free ports, killed at the end.

use std::time::{Duration, Instant};

use super::process::{Process, find_program, free_port};
use super::redis::{Redis, cli};

/// Longest wait for the sentinels to know each other, or to agree on another master.
const LIMIT: Duration = Duration::from_secs(40);

/// When a silent server counts as down. A replica that was cut off for ten times as long is never
/// promoted: on a busy machine a test may hold one back for seconds.
const DOWN_AFTER_MS: u32 = 2_000;

/// The name under which they watch the master.
const SERVICE: &str = "numbers";

/// How often they look, and at first also talk, in milliseconds; by default they do so in seconds.
const PERIOD_MS: &str = "100";

/// How often they talk once they know each other: the default. A replica that is promoted before
/// the others know of it is demoted again after four times this period.
const TALK_PERIOD_MS: &str = "2000";

/// Running sentinels, a quorum of which is the majority.
pub struct Sentinels {
    ports: Vec<u16>,
    _processes: Vec<Process>,
    _folder: tempfile::TempDir,
}

impl Sentinels {
    /// Starts three sentinels and waits until they know each other and `replicas` of the master.
    pub fn start(master: &Redis, replicas: usize) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let (mut ports, mut processes) = (Vec::new(), Vec::new());
        while ports.len() < 3 {
            let port = free_port();
            let home = folder.path().join(port.to_string());
            std::fs::create_dir(&home).expect("a sentinel's folder");
            let file = home.join("sentinel.conf");
            let text = format!(
                "port {port}\nbind 127.0.0.1\ndir {}\n\
                 sentinel monitor {SERVICE} 127.0.0.1 {} 2\n\
                 sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n\
                 sentinel failover-timeout {SERVICE} 2000\n",
                home.display(),
                master.port()
            );
            std::fs::write(&file, text).expect("a sentinel's settings");
            let args = [file.display().to_string(), "--sentinel".to_owned()];
            let program = find_program("redis-server", &[]);
            let process = Process::start(&program, &args, &home.join("log"));
            if answers(port) {
                ports.push(port);
                processes.push(process);
            }
        }
        let sentinels = Sentinels { ports, _processes: processes, _folder: folder };
        let know = |port: &u16| {
            let info = cli(*port, &["sentinel", "master", SERVICE]);
            let field = |name: &str| -> Option<usize> {
                let mut lines = info.lines().skip_while(|line| *line != name);
                lines.nth(1)?.parse().ok()
            };
            field("num-other-sentinels") == Some(2) && field("num-slaves") == Some(replicas)
        };
        sentinels.wait("they do not know each other", || sentinels.ports.iter().all(know));
        for port in &sentinels.ports {
            let talk = ["sentinel", "debug", "publish-period", TALK_PERIOD_MS];
            assert_eq!(cli(*port, &talk), "OK");
        }
        sentinels
    }

    /// The URL for clients: the first sentinel, and the others as further nodes.
    pub fn url(&self) -> String {
        let first = self.ports[0];
        let others = self.ports[1..].iter().map(|port| format!("&node=127.0.0.1:{port}"));
        let others: String = others.collect();
        format!("redis-sentinel://127.0.0.1:{first}?sentinelServiceName={SERVICE}{others}")
    }

    /// Waits until all of them name this server as the master.
    pub fn wait_for_master(&self, server: &Redis) {
        let wanted = server.port().to_string();
        let is_named = |port: &u16| master(*port).as_deref() == Some(&wanted);
        self.wait("they name another master", || self.ports.iter().all(is_named));
    }

    /// Has a replica promoted although the master is well; waits until all name it the master. On a
    /// busy machine sentinels give a fail-over up half way: it is requested again.
    pub fn fail_over_to(&self, replica: &Redis) {
        let wanted = replica.port().to_string();
        self.wait("they do not fail over", || {
            let is_named = |port: &u16| master(*port).as_deref() == Some(&wanted);
            // One that has begun is refused as in progress, one that is over is not begun anew.
            if !is_named(&self.ports[0]) {
                cli(self.ports[0], &["sentinel", "failover", SERVICE]);
            }
            self.ports.iter().all(is_named)
        });
    }

    fn wait(&self, complaint: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + LIMIT;
        while !done() {
            let said = cli(self.ports[0], &["sentinel", "master", SERVICE]);
            assert!(Instant::now() < deadline, "{complaint}: {said}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }
}

/// The port of the master that a sentinel names.
fn master(port: u16) -> Option<String> {
    let address = cli(port, &["sentinel", "get-master-addr-by-name", SERVICE]);
    address.lines().nth(1).map(str::to_owned)
}

/// Whether a sentinel came up on a port; sets it to look and talk often.
fn answers(port: u16) -> bool {
    let deadline = Instant::now() + Duration::from_secs(3);
    let often = ["info-period", "ping-period", "ask-period", "publish-period"]
        .map(|period| [period, PERIOD_MS]);
    let arguments: Vec<&str> = ["sentinel", "debug"].into_iter().chain(often.concat()).collect();
    while Instant::now() < deadline {
        if cli(port, &arguments) == "OK" {
            return true;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    false
}

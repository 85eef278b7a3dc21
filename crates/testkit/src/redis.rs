//! A private redis-server per test: free port, temporary folder, killed at the end.

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{Process, find_program, free_port};

/// Longest wait for a server to answer.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running redis-server.
pub struct Redis {
    process: Process,
    folder: tempfile::TempDir,
    port: u16,
    options: Vec<String>,
}

impl Redis {
    /// Starts a server that keeps nothing on disk.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server that keeps every write on disk.
    pub fn start_durable() -> Self {
        Self::start_with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    /// Starts a server with further options.
    pub fn start_with(options: &[&str]) -> Self {
        let mut folder = tempfile::tempdir().expect("temporary folder");
        let mut options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let deadline = Instant::now() + START_LIMIT;
        loop {
            // Another process may take the port between the search for it and the listening on it.
            let port = free_port();
            let process = spawn(&folder, port, &options);
            let mut server = Redis { process, folder, port, options };
            if server.wait_until_ready() {
                return server;
            }
            assert!(Instant::now() < deadline, "redis-server does not start: {}", server.log());
            server.process.kill();
            Redis { folder, options, .. } = server;
        }
    }

    /// Starts a replica of this server and waits until it holds its data.
    pub fn start_replica(&self, options: &[&str]) -> Self {
        let port = self.port.to_string();
        let mut all = vec!["--replicaof", "127.0.0.1", &port];
        all.extend(options);
        let replica = Self::start_with(&all);
        replica.wait_until_follower();
        replica
    }

    /// Makes this server a replica of another one and waits until it holds its data.
    pub fn follow(&self, master: &Redis) {
        assert_eq!(self.cli(&["replicaof", "127.0.0.1", &master.port.to_string()]), "OK");
        self.wait_until_follower();
    }

    /// Waits until this server is a replica that holds its master's data.
    pub fn wait_until_follower(&self) {
        let deadline = Instant::now() + START_LIMIT;
        while !self.cli(&["info", "replication"]).contains("master_link_status:up") {
            assert!(Instant::now() < deadline, "replica does not follow: {}", self.log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Makes a replica a master, as an operator would.
    pub fn promote(&self) {
        assert_eq!(self.cli(&["replicaof", "no", "one"]), "OK");
    }

    /// Keeps all replicas from following, as a broken link would; clients notice nothing.
    pub fn hold_replicas_back(&self) {
        assert_eq!(self.cli(&["acl", "setuser", "default", "-psync", "-sync"]), "OK");
        self.cli(&["client", "kill", "type", "replica"]);
    }

    /// Waits until a replica has everything that was written here before.
    pub fn wait_for_copy(&self, replica: &Redis) {
        let offset = |server: &Redis, field: &str| -> u64 {
            let info = server.cli(&["info", "replication"]);
            let line = info.lines().find_map(|line| line.strip_prefix(field));
            line.and_then(|value| value.trim().parse().ok()).expect("offset of replication")
        };
        let written = offset(self, "master_repl_offset:");
        let deadline = Instant::now() + START_LIMIT;
        while offset(replica, "slave_repl_offset:") < written {
            assert!(Instant::now() < deadline, "replica lags: {}", replica.log());
        }
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Runs one command and returns the output of redis-cli, without the last line feed.
    pub fn cli(&self, arguments: &[&str]) -> String {
        cli(self.port, arguments)
    }

    /// Removes all data, as an operator's mistake would.
    pub fn flushall(&self) {
        assert_eq!(self.cli(&["flushall"]), "OK");
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Ends the server immediately, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again on its port; its data on disk come back.
    pub fn restart(&mut self) {
        self.process.kill();
        let deadline = Instant::now() + START_LIMIT;
        loop {
            self.process = spawn(&self.folder, self.port, &self.options);
            if self.wait_until_ready() {
                return;
            }
            // The port may still be held by the last moments of an old connection.
            assert!(Instant::now() < deadline, "redis-server does not restart: {}", self.log());
            self.process.kill();
        }
    }

    /// Starts the server again on its port with an empty folder.
    pub fn restart_empty(&mut self) {
        self.process.kill();
        self.folder = tempfile::tempdir().expect("temporary folder");
        self.restart();
    }

    /// Whether the server came up as this process; false when it ended before.
    fn wait_until_ready(&mut self) -> bool {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            if self.log().contains("Ready to accept connections")
                && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
            {
                return self
                    .cli(&["info", "server"])
                    .contains(&format!("process_id:{}", self.process.id()));
            }
            if self.log().contains("Failed listening on port") {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(5));
        }
        false
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("redis.log")).unwrap_or_default()
    }
}

/// Runs one command on any server on a port of this machine, and returns the output of redis-cli,
/// without the last line feed.
pub fn cli(port: u16, arguments: &[&str]) -> String {
    let output = Command::new(find_program("redis-cli", &[]))
        .args(["-p", &port.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("redis-cli runs");
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

fn spawn(folder: &tempfile::TempDir, port: u16, options: &[String]) -> Process {
    let program = find_program("redis-server", &[]);
    let dir = folder.path().to_string_lossy().into_owned();
    let port = port.to_string();
    // Otherwise a master lets its first replica wait for others, 5 s long.
    let fixed = [
        "--repl-diskless-sync-delay",
        "0",
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--dir",
        &dir,
        "--save",
        "",
    ];
    let args: Vec<String> =
        fixed.iter().map(|&arg| arg.to_owned()).chain(options.iter().cloned()).collect();
    Process::start(&program, &args, &folder.path().join("redis.log"))
}

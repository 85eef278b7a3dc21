//! A private Prometheus per test: free port, temporary folder, killed at the end.

use std::fmt::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Process, find_program, free_port};

/// Longest wait for the server to be ready.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How often it scrapes and evaluates.
const PERIOD: &str = "1s";

/// A running prometheus.
pub struct Prometheus {
    process: Process,
    folder: tempfile::TempDir,
    port: u16,
    client: reqwest::Client,
}

impl Prometheus {
    /// Starts a server that scrapes these services under a job, every second, by some rules.
    pub async fn start(job: &str, services: &[&str], rules: &Path) -> Self {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            // Another process may take the port between the search for it and the listening on it.
            let mut server = spawn(job, services, rules, free_port());
            if server.wait_until_ready(deadline).await {
                return server;
            }
            assert!(Instant::now() < deadline, "prometheus does not start: {}", server.log());
            server.process.kill();
        }
    }

    /// The present value of an expression: one element per series.
    ///
    /// # Errors
    /// The server's error about it.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let url = format!("http://127.0.0.1:{}/api/v1/query", self.port);
        let url = reqwest::Url::parse_with_params(&url, [("query", expression)]).unwrap();
        let answer = self.client.get(url).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        let answer: Value = answer.json().await.map_err(|error| error.to_string())?;
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        Ok(answer["data"]["result"].as_array().cloned().unwrap_or_default())
    }

    /// The rules that it evaluates, recorded ones included.
    pub async fn rules(&self) -> Vec<Value> {
        let url = format!("http://127.0.0.1:{}/api/v1/rules", self.port);
        let answer: Value = self.client.get(url).send().await.unwrap().json().await.unwrap();
        let groups = answer["data"]["groups"].as_array().cloned().unwrap_or_default();
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
    }

    async fn wait_until_ready(&mut self, deadline: Instant) -> bool {
        let ready = format!("http://127.0.0.1:{}/-/ready", self.port);
        while Instant::now() < deadline && self.process.is_running() {
            let is_open = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            if is_open
                && let Ok(answer) = self.client.get(&ready).send().await
                && answer.status().is_success()
            {
                // Another one may answer at a port that this one did not get.
                return self.process.is_running();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("prometheus.log")).unwrap_or_default()
    }
}

fn spawn(job: &str, services: &[&str], rules: &Path, port: u16) -> Prometheus {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut text = format!(
        "global: {{ scrape_interval: {PERIOD}, scrape_timeout: {PERIOD}, \
         evaluation_interval: {PERIOD} }}\n\
         rule_files: [\"{}\"]\nscrape_configs:\n  - job_name: {job}\n    static_configs:\n",
        rules.display()
    );
    for url in services {
        let target = url.trim_start_matches("http://");
        writeln!(text, "      - targets: [\"{target}\"]").unwrap();
    }
    let settings = folder.path().join("prometheus.yml");
    std::fs::write(&settings, text).expect("settings of prometheus");
    let args = [
        format!("--config.file={}", settings.display()),
        format!("--storage.tsdb.path={}", folder.path().join("data").display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let program = find_program("prometheus", &[]);
    let process = Process::start(&program, &args, &folder.path().join("prometheus.log"));
    Prometheus { process, folder, port, client: crate::client() }
}

/// Runs promtool in a folder; whether it succeeds, and its output.
pub fn promtool(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(find_program("promtool", &[]))
        .args(arguments)
        // A quarter of its time was spent in collecting the garbage of a small heap.
        .env("GOGC", "400")
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("promtool runs");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

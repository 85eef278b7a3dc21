//! The real program: `numerator serve` on servers of the test, and its one-shot commands.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::process::{Process, free_port};

/// Longest wait for the service to be ready, or to end.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Settings of one deployment: where its stores are. Services and commands share it.
pub(crate) struct Deployment {
    folder: tempfile::TempDir,
    database_url: String,
    redis_url: Option<String>,
    /// Further lines of the section `http`.
    pub http: String,
    /// Further lines of the section `database`.
    pub database: String,
    /// Further sections of the settings file.
    pub extra: String,
}

impl Deployment {
    /// On PostgreSQL and Redis.
    pub(crate) fn new(database_url: &str, redis_url: Option<&str>) -> Self {
        Deployment {
            folder: tempfile::tempdir().expect("temporary folder"),
            database_url: database_url.into(),
            redis_url: redis_url.map(Into::into),
            http: String::new(),
            database: String::new(),
            extra: String::new(),
        }
    }

    /// Embedded: SQLite in a folder of its own, no Redis.
    pub(crate) fn embedded() -> Self {
        Self::sqlite(None)
    }

    /// SQLite in a folder of its own.
    pub(crate) fn sqlite(redis_url: Option<&str>) -> Self {
        let mut deployment = Self::new("", redis_url);
        deployment.database_url = format!("sqlite:{}", deployment.path("numerator.db").display());
        deployment
    }

    /// A path in the deployment's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the ledger is.
    pub(crate) fn database_url(&self) -> &str {
        &self.database_url
    }

    fn settings(&self, port: u16) -> PathBuf {
        let file = self.path(&format!("numerator-{port}.toml"));
        let redis = self.redis_url.as_ref().map(|url| format!("[redis]\nurl = \"{url}\"\n"));
        let text = format!(
            "[http]\nlisten = \"127.0.0.1:{port}\"\n{}[data]\ndir = \"{}\"\n\
             [database]\nurl = \"{}\"\n{}{}{}",
            self.http,
            self.folder.path().display(),
            self.database_url,
            self.database,
            redis.unwrap_or_default(),
            self.extra
        );
        // Moved into place as a whole: another command may be reading the file right now.
        let mut whole = tempfile::NamedTempFile::new_in(self.folder.path()).expect("settings file");
        std::io::Write::write_all(&mut whole, text.as_bytes()).expect("settings file");
        whole.persist(&file).expect("settings file");
        file
    }

    /// Runs a command of the program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("numerator runs")
    }

    /// A command of the program, not started yet.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_numerator"));
        command.arg("--config").arg(self.settings(0)).args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a command that must succeed; its standard output.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?} failed: {out}{error}");
        out.into_owned()
    }

    /// Applies series files.
    pub(crate) fn apply(&self, files: &[PathBuf]) {
        let mut arguments = vec!["series".to_owned(), "apply".to_owned()];
        arguments.extend(files.iter().map(|file| file.display().to_string()));
        self.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Applies all example series.
    pub(crate) fn apply_examples(&self) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/series");
        let mut files: Vec<PathBuf> =
            folder.read_dir().expect("examples").map(|entry| entry.unwrap().path()).collect();
        files.sort();
        self.apply(&files);
    }

    /// Applies a series `LOAD` of eight digits that never resets: one counter.
    pub(crate) fn apply_load_series(&self) {
        let file = self.series_file("LOAD", "L-{SEQ:8}", "");
        self.apply(&[file]);
    }

    /// Writes a series file: a type and code, one counter that never resets, further settings.
    pub(crate) fn series_file(&self, code: &str, template: &str, settings: &str) -> PathBuf {
        let file = self.path(&format!("{code}.toml"));
        let text = format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
             {settings}\nserves = {{ types = [\"{code}\"] }}\n[[series.serials]]\n\
             counter = [\"type\"]\n"
        );
        std::fs::write(&file, text).expect("series file");
        file
    }

    /// Runs `verify`; whether it exits 0, and what it prints.
    pub(crate) fn verify(&self) -> (bool, Value) {
        let output = self.run(&["verify", "--json"]);
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "verify prints no JSON ({error}): {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        });
        (output.status.success(), report)
    }

    /// Starts the service and waits until it is ready.
    pub(crate) fn serve(&self) -> Service {
        let port = free_port();
        let log = self.path(&format!("serve-{port}.log"));
        let arguments =
            ["--config".to_owned(), self.settings(port).display().to_string(), "serve".to_owned()];
        let program = PathBuf::from(env!("CARGO_BIN_EXE_numerator"));
        let process = Process::start(&program, &arguments, &log);
        let service = Service { process, url: format!("http://127.0.0.1:{port}"), log };
        service.wait_until_ready();
        service
    }
}

/// A running `numerator serve`.
pub(crate) struct Service {
    process: Process,
    /// Where it listens.
    pub url: String,
    log: PathBuf,
}

impl Service {
    fn wait_until_ready(&self) {
        let deadline = Instant::now() + START_LIMIT;
        let ready = format!("{}/readyz", self.url);
        std::thread::scope(|scope| {
            // A thread of its own: the caller may already be inside a runtime.
            scope.spawn(|| {
                let builder = &mut tokio::runtime::Builder::new_current_thread();
                builder.enable_all().build().unwrap().block_on(async {
                    let client = reqwest::Client::new();
                    loop {
                        let answer = client.get(&ready).send().await;
                        if answer.is_ok_and(|answer| answer.status().is_success()) {
                            return;
                        }
                        assert!(Instant::now() < deadline, "not ready: {}", self.log());
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
            });
        });
    }

    /// What it wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Asks it to end, and waits until it has; true when it ended well.
    pub(crate) fn terminate(mut self) -> bool {
        self.signal("TERM");
        self.process.wait(START_LIMIT).is_some_and(|status| status.success())
    }
}

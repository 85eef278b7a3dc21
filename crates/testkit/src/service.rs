//! The real program: `numerator serve` on servers of the test, and its one-shot commands.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Process, free_port};

/// Longest wait for the service to be ready, or to end.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Name of an SQLite ledger in its deployment's folder.
pub const SQLITE_FILE: &str = "numerator.db";

/// How to start the program: an executable, and the arguments before the program's own.
#[derive(Clone, Debug)]
pub struct Program {
    /// The executable.
    pub path: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<String>,
}

/// Settings of one deployment: where its stores are. Services and commands share it.
pub struct Deployment {
    /// The program to start.
    pub program: Program,
    folder: tempfile::TempDir,
    database_url: String,
    redis_url: Option<String>,
    /// Further lines of the section `http`.
    pub http: String,
    /// Further lines of the section `database`.
    pub database: String,
    /// Further sections of the settings file.
    pub extra: String,
    /// The log of the services; files in the folder without it.
    pub log: Option<PathBuf>,
}

impl Deployment {
    /// On PostgreSQL and Redis.
    pub fn new(program: Program, database_url: &str, redis_url: Option<&str>) -> Self {
        Deployment {
            program,
            folder: tempfile::tempdir().expect("temporary folder"),
            database_url: database_url.into(),
            redis_url: redis_url.map(Into::into),
            http: String::new(),
            database: String::new(),
            extra: String::new(),
            log: None,
        }
    }

    /// Whether its services use Redis.
    pub fn has_redis(&self) -> bool {
        self.redis_url.is_some()
    }

    /// SQLite in its own folder.
    pub fn sqlite(program: Program, redis_url: Option<&str>) -> Self {
        let mut deployment = Self::new(program, "", redis_url);
        deployment.database_url = format!("sqlite:{}", deployment.path(SQLITE_FILE).display());
        deployment
    }

    /// The files in which processes have recorded what the ledger confirmed to them.
    ///
    /// # Panics
    /// Where its folder cannot be read.
    #[must_use]
    pub fn witnesses(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.path("")).expect("its folder");
        let files = files.map(|file| file.expect("a file").path());
        files.filter(|file| file.to_string_lossy().contains("witness-")).collect()
    }

    /// A path in the deployment's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the ledger is.
    pub fn database_url(&self) -> &str {
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
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("numerator runs")
    }

    /// A command of the program, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program.path);
        command.args(&self.program.arguments);
        command.arg("--config").arg(self.settings(0)).args(arguments).stdin(Stdio::null());
        command
    }

    /// Starts a command of the program, whose output goes to `log`; dropping the result ends it.
    pub fn start(&self, arguments: &[&str], log: &Path) -> Process {
        let settings = self.settings(0).display().to_string();
        let command = ["--config", settings.as_str()].into_iter().chain(arguments.iter().copied());
        let own = self.program.arguments.iter().cloned();
        let arguments: Vec<String> = own.chain(command.map(str::to_owned)).collect();
        Process::start(&self.program.path, &arguments, log)
    }

    /// Runs a command that must succeed; its standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?} failed: {out}{error}");
        out.into_owned()
    }

    /// The output of `status`, whatever its result, and its exit code.
    ///
    /// # Panics
    /// When a signal ends it.
    pub fn status(&self, options: &[&str]) -> (i32, String) {
        let output = self.run(&[&["status"], options].concat());
        let code = output.status.code().expect("it ends by itself");
        (code, String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies series files.
    pub fn apply(&self, files: &[PathBuf]) {
        let mut arguments = vec!["series".to_owned(), "apply".to_owned()];
        arguments.extend(files.iter().map(|file| file.display().to_string()));
        self.ok(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Applies all example series.
    pub fn apply_examples(&self) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/series");
        let mut files: Vec<PathBuf> =
            folder.read_dir().expect("examples").map(|entry| entry.unwrap().path()).collect();
        files.sort();
        self.apply(&files);
    }

    /// Applies a series `LOAD` of eight digits that never resets: one counter.
    pub fn apply_load_series(&self) {
        let file = self.series_file("LOAD", "L-{SEQ:8}", "");
        self.apply(&[file]);
    }

    /// Writes a series file: a type and code, one counter that never resets, further settings.
    pub fn series_file(&self, code: &str, template: &str, settings: &str) -> PathBuf {
        let file = self.path(&format!("{code}.toml"));
        let text = format!(
            "[[series]]\ncode = \"{code}\"\nname = \"{code}\"\ntemplate = \"{template}\"\n\
             {settings}\nserves = {{ types = [\"{code}\"] }}\n[[series.serials]]\n\
             counter = [\"type\"]\n"
        );
        std::fs::write(&file, text).expect("series file");
        file
    }

    /// Runs `verify`; whether it exits 0, and its output.
    pub fn verify(&self) -> (bool, Value) {
        self.verify_with(&[])
    }

    /// The same with further options.
    pub fn verify_with(&self, options: &[&str]) -> (bool, Value) {
        let output = self.run(&[&["verify", "--json"], options].concat());
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "verify prints no JSON ({error}): {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        });
        (output.status.success(), report)
    }

    /// Panics unless `verify` finds that no number occurs twice and none is lost; its output.
    #[track_caller]
    pub fn assert_clean(&self) -> Value {
        let (clean, report) = self.verify();
        assert!(clean, "{report}");
        report
    }

    /// Starts the service and waits until it is ready.
    pub fn serve(&self) -> Service {
        let service = self.launch();
        service.wait_until_ready();
        service
    }

    /// Starts the service; it may not be ready yet, nor ever.
    pub fn launch(&self) -> Service {
        let port = free_port();
        let log = self.log.clone();
        let log = log.unwrap_or_else(|| self.path(&format!("serve-{port}.log")));
        let mut arguments = self.program.arguments.clone();
        let settings = self.settings(port).display().to_string();
        arguments.extend(["--config".to_owned(), settings, "serve".to_owned()]);
        let process = Process::start(&self.program.path, &arguments, &log);
        let url = format!("http://127.0.0.1:{port}");
        let own = self.http.lines().find_map(|line| line.strip_prefix("health_listen = "));
        let health_url = own.map(|address| format!("http://{}", address.trim_matches('"')));
        Service { process, health_url: health_url.unwrap_or_else(|| url.clone()), url, log }
    }
}

/// A running `numerator serve`.
pub struct Service {
    process: Process,
    /// Where it listens.
    pub url: String,
    /// The address of its health: `http.health_listen`, or the main one.
    pub health_url: String,
    log: PathBuf,
}

impl Service {
    fn wait_until_ready(&self) {
        let deadline = Instant::now() + START_LIMIT;
        let ready = format!("{}/readyz", self.health_url);
        std::thread::scope(|scope| {
            // A separate thread: the caller may already be inside a runtime.
            scope.spawn(|| {
                let builder = &mut tokio::runtime::Builder::new_current_thread();
                builder.enable_all().build().unwrap().block_on(async {
                    let client = crate::client();
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

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// The content of its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends it immediately, as a crash would.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Whether it still exists, stopped by a signal or not.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Asks it to end, and waits until it has; true when it ended well.
    pub fn terminate(mut self) -> bool {
        self.signal("TERM");
        self.has_ended_well()
    }

    /// Waits until it has ended; true when it ended well.
    pub fn has_ended_well(&mut self) -> bool {
        self.process.wait(START_LIMIT).is_some_and(|status| status.success())
    }
}

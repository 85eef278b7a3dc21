//! A private PostgreSQL: its own data folder, its own port, gone at the end.
//!
//! The data folder is copied from a [`template`]. As root the server runs as the user `postgres`,
//! since it refuses to run as root.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::process::{Process, find_program, free_port};

mod copies;
mod shared;
mod standby;
mod template;

pub use shared::Database;
pub use standby::STANDBY;

const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Settings of a server that tests share the machine with.
const SMALL: [&str; 2] = ["shared_buffers=16MB", "max_connections=50"];

/// Settings of a server under load, as a careful operator would have them.
const LARGE: [&str; 3] = ["shared_buffers=512MB", "max_connections=100", "max_wal_size=4GB"];

/// A running server.
pub struct Postgres {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
    settings: &'static [&'static str],
}

/// How often a dump is put back that a user's transaction gets in the way of.
const PUT_BACK_TRIES: u32 = 20;

impl Postgres {
    /// Starts a server with nothing in its database but schemas that wait to be used.
    pub fn start() -> Self {
        Self::start_with(&SMALL, &template::small())
    }

    /// Starts one that is measured: buffers and log of the size of a real one, an empty database.
    pub fn start_for_load() -> Self {
        Self::start_with(&LARGE, &template::large())
    }

    fn start_with(settings: &'static [&'static str], template: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("numerator-postgres-").tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        run(Command::new("cp").arg("-a").arg(template).arg(&data));
        give_to_server(folder.path());
        let mut server = Postgres { process: None, folder, port: free_port(), settings };
        server.run();
        server
    }

    /// The URL of a separate ledger schema. A missing one is taken from the waiting ones, which are
    /// up to date, or is empty once those are used up.
    pub fn url(&self, schema: &str) -> String {
        self.url_by(self.port, schema)
    }

    /// The URL of an empty schema, for a future ledger, or for none.
    pub fn empty_url(&self, schema: &str) -> String {
        self.sql(&format!("create schema {schema}"));
        url(self.port, schema)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the server, the parent of all its processes.
    ///
    /// # Panics
    /// While it is not running.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("a running server").id()
    }

    /// The URL of such a schema by way of another port, a proxy's.
    pub fn url_by(&self, port: u16, schema: &str) -> String {
        self.sql(&template::using(schema));
        url(port, schema)
    }

    /// Runs SQL as the superuser and returns what it prints.
    pub fn sql(&self, sql: &str) -> String {
        let output = self.psql(sql).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs SQL as the superuser in a separate session, which ends with it.
    pub fn sql_behind(&self, sql: &str) {
        let mut psql = self.psql(sql);
        let mut session = psql.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::spawn(move || session.wait());
    }

    /// Runs a query as the superuser and gives each row, its columns parted by tabs, as it comes:
    /// however many rows, none stays in memory.
    pub fn rows(&self, query: &str, mut each: impl FnMut(&[&str])) {
        let mut psql = self.psql(&format!("copy ({query}) to stdout"));
        let mut child = psql.stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().expect("piped");
        for line in BufReader::new(output).lines() {
            each(&line.unwrap().split('\t').collect::<Vec<_>>());
        }
        assert!(child.wait().unwrap().success(), "{query}");
    }

    /// Backs up a schema as `pg_dump` does.
    pub fn dump(&self, schema: &str) {
        let mut dump = Command::new(installed("pg_dump"));
        dump.args(["-n", schema, "-h", "127.0.0.1", "-U", "postgres", "-p"]);
        run(dump.args([&self.port.to_string(), "-f"]).arg(self.dumped(schema)).arg("postgres"));
    }

    /// Puts the last dump of a schema in its place, on this running server: in one transaction, so
    /// that its users see one or the other, repeated after a deadlock with a user's transaction.
    pub fn put_back(&self, schema: &str) {
        let put_back = || {
            let mut psql = Command::new(installed("psql"));
            psql.args(["-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1"]);
            psql.args(["-U", "postgres", "-p", &self.port.to_string(), "-o", "/dev/null"]);
            // Of two that wait for each other, the other one gives way.
            psql.args(["-c", "set deadlock_timeout = '30s'"]);
            psql.args(["-c", &format!("drop schema {schema} cascade"), "-f"]);
            psql.arg(self.dumped(schema)).arg("postgres").output().expect("psql runs")
        };
        for _ in 0..PUT_BACK_TRIES {
            let output = put_back();
            if output.status.success() {
                return;
            }
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("deadlock"), "{error}");
        }
        panic!("the dump was not put back in {PUT_BACK_TRIES} tries");
    }

    /// Restores the last dump of a schema statement by statement, as `pg_restore` does: its users
    /// see some of its tables meanwhile, and none of their keys.
    pub fn put_back_piecemeal(&self, schema: &str) {
        let mut psql = Command::new(installed("psql"));
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "postgres"]);
        psql.args(["-p", &self.port.to_string(), "-o", "/dev/null", "-f"]);
        run(psql.arg(self.dumped(schema)).arg("postgres"));
    }

    fn dumped(&self, schema: &str) -> PathBuf {
        self.folder.path().join(format!("{schema}.sql"))
    }

    /// The content of its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends the server immediately, as a crash would, and waits until all its processes are gone.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let id = process.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        process.kill();
        for child in children.unwrap_or_default().split_whitespace() {
            let alive = Path::new("/proc").join(child);
            wait_until(|| !alive.exists(), "the server's processes did not end");
        }
    }

    /// Starts the server again on the same data and port.
    pub fn restart(&mut self) {
        self.kill();
        self.run();
    }

    fn run(&mut self) {
        let (program, args) = server_command(self.folder.path(), self.port, self.settings);
        let log = self.folder.path().join("log");
        self.process = Some(Process::start(&program, &args, &log));
        wait_until_ready(self.port, || fs::read_to_string(&log).unwrap_or_default());
    }

    fn psql(&self, sql: &str) -> Command {
        psql(self.port, sql)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // An immediate shutdown gives the machine's shared memory back, a kill would not.
        if let Some(process) = &self.process {
            let _ = Command::new("kill").args(["-QUIT", &process.id().to_string()]).output();
            let running = self.folder.path().join("data/postmaster.pid");
            let asked = Instant::now();
            while running.exists() && asked.elapsed() < STOP_DEADLINE {
                std::thread::park_timeout(POLL);
            }
        }
        self.kill();
    }
}

/// How a server is started on the data in a folder: a program and its arguments. It ends with the
/// process that starts it.
fn server_command(folder: &Path, port: u16, wanted: &[&str]) -> (PathBuf, Vec<String>) {
    let mut args: Vec<String> = Vec::new();
    let mut program = installed("postgres");
    if is_root() {
        args.extend(as_server().map(str::to_owned));
        args.extend(["--pdeathsig=KILL".to_owned(), program.display().to_string()]);
        program = find_program("setpriv", &[]);
    }
    args.extend(["-D".into(), folder.join("data").display().to_string()]);
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        format!("port={port}"),
        format!("unix_socket_directories={}", folder.display()),
        "fsync=on".to_owned(),
        // Within the data folder: a killed server leaves nothing in the machine's memory.
        "dynamic_shared_memory_type=mmap".to_owned(),
        // A standby that may follow again does so immediately.
        "wal_retrieve_retry_interval=50ms".to_owned(),
    ];
    for setting in settings.into_iter().chain(wanted.iter().map(|&setting| setting.to_owned())) {
        args.extend(["-c".to_owned(), setting]);
    }
    (program, args)
}

/// Runs SQL as the superuser in the database `postgres` of the server on a port.
fn psql(port: u16, sql: &str) -> Command {
    let mut command = Command::new(installed("psql"));
    command
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U"])
        .args(["postgres", "-p", &port.to_string(), "-c", sql, "postgres"]);
    command
}

/// Waits until the server on a port answers; `said` is its output for the error otherwise.
fn wait_until_ready(port: u16, said: impl Fn() -> String) {
    let ready = || psql(port, "select 1").output().unwrap().status.success();
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < START_DEADLINE, "PostgreSQL did not start: {}", said());
        std::thread::park_timeout(POLL);
    }
}

fn url(port: u16, schema: &str) -> String {
    url_in(port, "postgres", schema)
}

fn url_in(port: u16, database: &str, schema: &str) -> String {
    format!(
        "postgres://postgres@127.0.0.1:{port}/{database}?sslmode=disable\
         &options=-csearch_path={schema}"
    )
}

/// A program of PostgreSQL: the one next to the server, else one on the PATH. Debian has scripts on
/// the PATH, which look for a version before they start the program: for a query of a test that
/// takes longer than the query.
fn installed(program: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let of_server = || find_program("postgres", &of_debian()).canonicalize().unwrap();
    let beside = FOLDER.get_or_init(|| of_server().with_file_name("")).join(program);
    if beside.is_file() { beside } else { find_program(program, &of_debian()) }
}

/// Debian's folders of the programs of PostgreSQL, the newest version first.
fn of_debian() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    let version = |folder: &PathBuf| -> u32 {
        let name = folder.parent().and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().parse().unwrap_or(0)
    };
    folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders
}

/// The version that the installed server reports.
pub fn version() -> String {
    run(Command::new(installed("postgres")).arg("--version")).trim().to_owned()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn as_server() -> impl Iterator<Item = &'static str> {
    ["--reuid=postgres", "--regid=postgres", "--init-groups"].into_iter()
}

/// A program of PostgreSQL, run by the user of the server.
fn command_as_server(program: &str) -> Command {
    if !is_root() {
        return Command::new(installed(program));
    }
    let mut command = Command::new(find_program("setpriv", &[]));
    command.args(as_server()).arg(installed(program));
    command
}

fn give_to_server(folder: &Path) {
    if is_root() {
        run(Command::new("chown").args(["-R", "postgres:postgres"]).arg(folder));
    }
}

fn run(command: &mut Command) -> String {
    // A folder for every user: the server's user may not enter the one of the tests.
    let output = command.current_dir("/").output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn wait_until(done: impl Fn() -> bool, otherwise: &str) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < START_DEADLINE, "{otherwise}");
        std::thread::park_timeout(POLL);
    }
}

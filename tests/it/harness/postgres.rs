//! A private PostgreSQL: its own data folder, its own port, gone at the end.
//!
//! The data folder is copied from a template that `initdb` made once per build folder. As root the
//! server runs as the user `postgres`, since it refuses to run as root.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{Process, find_program, free_port};

const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// A running server.
pub(crate) struct Postgres {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
}

impl Postgres {
    /// Starts a server with an empty database.
    pub(crate) fn start() -> Self {
        let template = template();
        let folder = tempfile::Builder::new().prefix("numerator-postgres-").tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("data");
        run(Command::new("cp").arg("-a").arg(&template).arg(&data));
        give_to_server(folder.path());
        let mut server = Postgres { process: None, folder, port: free_port() };
        server.run();
        server
    }

    /// The port that it listens on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a schema of its own, which is created where it is missing.
    pub(crate) fn url(&self, schema: &str) -> String {
        self.sql(&format!("create schema if not exists {schema}"));
        let port = self.port;
        format!(
            "postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable\
             &options=-csearch_path={schema}"
        )
    }

    /// Runs SQL as the superuser and returns what it prints.
    pub(crate) fn sql(&self, sql: &str) -> String {
        let output = self.psql(sql);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {error}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Ends the server at once, as a crash would, and waits until all its processes are gone.
    pub(crate) fn kill(&mut self) {
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
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.run();
    }

    fn run(&mut self) {
        let data = self.folder.path().join("data");
        let mut args: Vec<String> = Vec::new();
        let mut program = installed("postgres");
        if is_root() {
            args.extend(as_server().map(str::to_owned));
            args.extend(["--pdeathsig=KILL".to_owned(), program.display().to_string()]);
            program = find_program("setpriv", &[]);
        }
        args.extend(["-D".into(), data.display().to_string()]);
        let settings = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", self.folder.path().display()),
            "shared_buffers=16MB".to_owned(),
            "max_connections=50".to_owned(),
            "fsync=on".to_owned(),
            // Within the data folder: a killed server leaves nothing in the machine's memory.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        for setting in settings {
            args.extend(["-c".to_owned(), setting]);
        }
        let log = self.folder.path().join("log");
        self.process = Some(Process::start(&program, &args, &log));
        let said = || fs::read_to_string(&log).unwrap_or_default();
        let ready = || self.psql("select 1").status.success();
        let started = Instant::now();
        while !ready() {
            assert!(started.elapsed() < START_DEADLINE, "PostgreSQL did not start: {}", said());
            std::thread::park_timeout(POLL);
        }
    }

    fn psql(&self, sql: &str) -> Output {
        Command::new(installed("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U"])
            .args(["postgres", "-p", &self.port.to_string(), "-c", sql, "postgres"])
            .output()
            .unwrap()
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

/// A program of PostgreSQL, of the newest version: Debian keeps most of them off the PATH.
fn installed(program: &str) -> PathBuf {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    let version = |folder: &PathBuf| -> u32 {
        let name = folder.parent().and_then(Path::file_name).unwrap_or_default();
        name.to_string_lossy().parse().unwrap_or(0)
    };
    folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    find_program(program, &folders)
}

/// The data folder that servers are copied from; made by whichever test comes first.
fn template() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(home).unwrap();
    let version = run(Command::new(installed("postgres")).arg("--version"));
    let version: String = version.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let template = home.join(format!("postgres-template-{version}"));
    let lock = File::create(home.join("postgres-template.lock")).unwrap();
    lock.lock().unwrap();
    if !template.exists() {
        // Made where the server's user may write, then moved in as a whole.
        let work = tempfile::tempdir().unwrap();
        fs::set_permissions(work.path(), Permissions::from_mode(0o755)).unwrap();
        give_to_server(work.path());
        let data = work.path().join("data");
        let mut initdb = if is_root() {
            let mut command = Command::new(find_program("setpriv", &[]));
            command.args(as_server()).arg(installed("initdb"));
            command
        } else {
            Command::new(installed("initdb"))
        };
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
        initdb.args(["--wal-segsize=1", "--username=postgres", "-D"]).arg(&data);
        run(&mut initdb);
        let partial = home.join("postgres-template.partial");
        let _ = fs::remove_dir_all(&partial);
        run(Command::new("cp").arg("-a").arg(&data).arg(&partial));
        fs::rename(&partial, &template).unwrap();
    }
    template
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn as_server() -> impl Iterator<Item = &'static str> {
    ["--reuid=postgres", "--regid=postgres", "--init-groups"].into_iter()
}

fn give_to_server(folder: &Path) {
    if is_root() {
        run(Command::new("chown").args(["-R", "postgres:postgres"]).arg(folder));
    }
}

fn run(command: &mut Command) -> String {
    // Nobody's home: the server's user may not enter the folder that the tests run in.
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

//! A server that tests share, also those of other processes: each has its own database, with a
//! ledger's schema that is up to date.
//!
//! The first test that needs it starts it, and a guard with it: a process that ends the server and
//! removes its folder once no test has used it for a moment, however the tests ended. Users hold a
//! lock, which the kernel releases with their process, and the guard waits for it.

use std::fs::{self, File, Permissions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::template::{self, MIGRATED, SCHEMA};
use super::{give_to_server, psql, run, server_command, url_in, wait_until_ready};
use crate::process::free_port;

/// Settings of a server with a few connections for each of many tests.
const SHARED: [&str; 3] = ["shared_buffers=64MB", "max_connections=300", "max_wal_size=128MB"];

/// Waits until no process holds the lock of users ($1) and none comes for two seconds. Then no
/// other can come: it ends the server and removes its folder ($2). Its standard input is a lock
/// that shows that it is alive.
const GUARD: &str = r#"
users=$1 folder=$2
shift 2
cd /
exec 9<"$users"
"$@" </dev/null >"$folder/log" 2>&1 9<&- &
flock 9
while flock -u 9 && sleep 2 && ! flock -n 9; do flock 9; done
kill -QUIT $!
wait
rm -rf "$folder"
exec <&-
"#;

/// A database of a test on the shared server, dropped at the end.
pub struct Database {
    port: u16,
    name: String,
}

impl Database {
    /// Makes one, and starts the server where none runs.
    pub fn create() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (port, name) = (port(), format!("test_{}_{number}", std::process::id()));
        // A test that was killed leaves its own, and process ids come again.
        run(&mut psql(port, &format!("drop database if exists {name} with (force)")));
        run(&mut psql(port, &format!("create database {name} template {MIGRATED}")));
        Database { port, name }
    }

    /// The URL of its ledger's schema.
    #[must_use]
    pub fn url(&self) -> String {
        url_in(self.port, &self.name, SCHEMA)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The rest is removed with the server.
        let _ = psql(self.port, &format!("drop database {} with (force)", self.name)).output();
    }
}

/// The port of the shared server, which runs until this process has ended.
fn port() -> u16 {
    static USED: OnceLock<(u16, File)> = OnceLock::new();
    USED.get_or_init(use_server).0
}

/// Joins the users of the server, and starts one where none runs: its port, and the lock.
fn use_server() -> (u16, File) {
    let data = template::migrated();
    let home = data.with_file_name(format!("postgres-shared-{:016x}", whose(&data)));
    fs::create_dir_all(&home).unwrap();
    let [starting, users, guard] = ["starting", "users", "guard"].map(|name| {
        let mut file = File::options();
        file.create(true).truncate(false).read(true).write(true).open(home.join(name)).unwrap()
    });
    starting.lock().unwrap();
    // While a guard is about to end its server, this waits until it has.
    users.lock_shared().unwrap();
    match guard.try_lock() {
        Ok(()) => start(&data, &home, guard),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => panic!("{}: {error}", home.display()),
    }
    let said = fs::read_to_string(home.join("guard")).unwrap();
    (said.trim().parse().expect("the port of the server"), users)
}

/// Servers of the same template in the same temporary folder are one.
fn whose(template: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    (template, std::env::temp_dir(), SHARED).hash(&mut hasher);
    hasher.finish()
}

/// Starts a guard with its server. The file is its lock, and contains the port.
fn start(template: &Path, home: &Path, guard: File) {
    let folder = tempfile::Builder::new().prefix("numerator-postgres-").tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    run(Command::new("cp").arg("-a").arg(template).arg(folder.path().join("data")));
    give_to_server(folder.path());
    let port = free_port();
    fs::write(home.join("guard"), port.to_string()).unwrap();
    let folder = folder.keep();
    let (program, args) = server_command(&folder, port, &SHARED);
    let mut command = Command::new("sh");
    command.args(["-c", GUARD, "guard"]).arg(home.join("users")).arg(&folder);
    command.args(["setpriv", "--pdeathsig=KILL"]).arg(program).args(args);
    // A signal to the test and its children does not end it.
    command.process_group(0).stdin(guard).stdout(Stdio::null()).stderr(Stdio::null());
    let mut guard = command.spawn().expect("sh runs");
    std::thread::spawn(move || guard.wait());
    let log = folder.join("log");
    wait_until_ready(port, || fs::read_to_string(&log).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_has_a_database_of_its_own_with_a_ledgers_schema() {
        let (one, other) = (Database::create(), Database::create());
        assert_ne!(one.url(), other.url());
        let query = format!(
            "select count(*) from pg_database where datname in ('{}', '{}')",
            one.name, other.name
        );
        assert_eq!(run(&mut psql(one.port, &query)).trim(), "2");
        drop(other);
        assert_eq!(run(&mut psql(one.port, &query)).trim(), "1");
    }
}

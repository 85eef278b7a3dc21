//! What commands leave next to a ledger and in `data.dir` is usable by the service, whichever user
//! runs them (F46). The tests change users: without the right to do that they run none of them.

use std::fs::{Permissions, metadata, read_dir, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::process::{find_program, free_port};

/// The service's user, and another one; root runs commands.
const SERVICE: u32 = 65_534;
const STRANGER: u32 = 65_533;
const ROOT: u32 = 0;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// A ledger, and `data.dir` in a folder that belongs to the service.
struct Place {
    home: tempfile::TempDir,
    url: String,
}

impl Place {
    /// `None` if the tests may not change users.
    fn new(url: Option<String>) -> Option<Self> {
        if metadata("/proc/self").unwrap().uid() != ROOT {
            println!("not run: this needs root, to be somebody else");
            return None;
        }
        let home = tempfile::tempdir().unwrap();
        set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
        let data = home.path().join("data");
        std::fs::create_dir(&data).unwrap();
        set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
        chown(&data, Some(SERVICE), Some(SERVICE)).unwrap();
        let url = url.unwrap_or_else(|| format!("sqlite:{}", data.join("own.db").display()));
        Some(Place { home, url })
    }

    /// Saves a series `LOAD`, as root.
    fn apply_series(&self) {
        let file = self.home.path().join("load.toml");
        let text = "[[series]]\ncode = \"LOAD\"\nname = \"LOAD\"\ntemplate = \"L-{SEQ:8}\"\n\
                    serves = { types = [\"LOAD\"] }\n[[series.serials]]\ncounter = [\"type\"]\n";
        std::fs::write(&file, text).unwrap();
        self.ok(ROOT, &["series", "apply", &file.display().to_string()]);
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn command(&self, user: u32, arguments: &[&str]) -> Command {
        self.command_through(&[], user, arguments)
    }

    /// A command of the program that another one starts.
    fn command_through(&self, other: &[&str], user: u32, arguments: &[&str]) -> Command {
        let mut command = Command::new(find_program("setpriv", &[]));
        command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
        command.args(["--clear-groups", "--pdeathsig=KILL"]).args(other);
        command
            .arg(env!("CARGO_BIN_EXE_numerator"))
            .args(arguments)
            .stdin(Stdio::null())
            .current_dir("/");
        command.env("NUMERATOR__DATABASE__URL", &self.url);
        command.env("NUMERATOR__DATA__DIR", self.data()).env("HOME", self.home.path());
        command
    }

    fn ok(&self, user: u32, arguments: &[&str]) {
        let output: Output = self.command(user, arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    /// The message of a command that must fail.
    fn refused(&self, user: u32, arguments: &[&str]) -> String {
        // A command that serves instead would not end.
        let limited = ["timeout", "--signal=KILL", "60"];
        let output = self.command_through(&limited, user, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Serves as the service's user until it is ready, and ends it: well, or immediately.
    async fn serves(&self, signal: &str) {
        let address = format!("127.0.0.1:{}", free_port());
        let log = std::fs::File::create(self.home.path().join("log")).unwrap();
        let mut command = self.command(SERVICE, &["--listen", &address, "serve"]);
        let mut service: Child = command.stderr(log).spawn().unwrap();
        eventually(LIMIT, async || {
            assert_eq!(service.try_wait().unwrap(), None, "{}", self.log());
            let answer = testkit::get(format!("http://{address}/readyz")).await;
            let is_ready = answer.is_ok_and(|answer| answer.status().is_success());
            is_ready.then_some(()).ok_or_else(|| self.log())
        })
        .await;
        let id = service.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        service.wait().unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }

    /// The files in `data.dir`.
    fn files(&self) -> Vec<PathBuf> {
        read_dir(self.data()).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    fn witness(&self) -> PathBuf {
        let is_one = |path: &PathBuf| path.extension().is_some_and(|name| name == "json");
        self.files().into_iter().find(is_one).expect("a witness")
    }

    #[track_caller]
    fn all_belong_to_the_service(&self) {
        for path in self.files() {
            assert_eq!(metadata(&path).unwrap().uid(), SERVICE, "{}", path.display());
        }
    }
}

fn mode(path: &Path) -> u32 {
    metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn after_commands_of_root_the_service_starts_again() {
    let postgres = Postgres::start();
    for url in [Some(postgres.empty_url("owners")), None] {
        let Some(place) = Place::new(url) else { return };
        // The first files are made by root.
        place.apply_series();
        place.ok(ROOT, &["next", "LOAD"]);
        place.all_belong_to_the_service();
        assert_eq!(mode(&place.witness()), 0o600);
        place.serves("-KILL").await;
        // A user lets a group read it.
        set_permissions(place.witness(), Permissions::from_mode(0o640)).unwrap();
        for arguments in
            [&["drain", "--apply"][..], &["reconcile", "--apply"], &["next", "LOAD"], &["verify"]]
        {
            place.ok(ROOT, arguments);
            place.all_belong_to_the_service();
        }
        assert_eq!(mode(&place.witness()), 0o640);
        place.serves("-TERM").await;
    }
}

#[tokio::test]
async fn who_could_not_leave_it_to_the_service_is_refused_before_anything_is_done() {
    let postgres = Postgres::start();
    for url in [Some(postgres.empty_url("strangers")), None] {
        let Some(place) = Place::new(url) else { return };
        set_permissions(place.data(), Permissions::from_mode(0o777)).unwrap();
        let said = place.refused(STRANGER, &["next", "LOAD"]);
        assert!(said.contains("belongs to the user 65534"), "{said}");
        assert_eq!(place.files(), Vec::<PathBuf>::new());
        place.apply_series();
        place.serves("-TERM").await;
        let said = place.refused(STRANGER, &["drain", "--apply"]);
        assert!(said.contains("sudo -u '#65534'"), "{said}");
        place.ok(SERVICE, &["next", "LOAD"]);
        place.all_belong_to_the_service();
    }
}

#[tokio::test]
async fn a_witness_of_root_is_told_with_its_cure_and_stays() {
    let postgres = Postgres::start();
    let Some(place) = Place::new(Some(postgres.empty_url("locked"))) else { return };
    place.serves("-TERM").await;
    let witness = place.witness();
    chown(&witness, Some(ROOT), Some(ROOT)).unwrap();
    let said = place.refused(SERVICE, &["--listen", "127.0.0.1:0", "serve"]);
    let log = said.lines().last().unwrap_or_default();
    assert!(log.contains(&format!("chown USER {}", witness.display())), "{said}");
    assert!(log.contains("do not delete it") && !log.contains("; delete"), "{said}");
    chown(&witness, Some(SERVICE), Some(SERVICE)).unwrap();
    place.serves("-TERM").await;
}

#[tokio::test]
async fn a_ledger_that_needs_its_witness_is_not_served_where_none_can_be_left() {
    let postgres = Postgres::start();
    let Some(place) = Place::new(Some(postgres.empty_url("unwritable"))) else { return };
    chown(place.data(), Some(ROOT), Some(ROOT)).unwrap();
    set_permissions(place.data(), Permissions::from_mode(0o755)).unwrap();
    let said = place.refused(SERVICE, &["--listen", "127.0.0.1:0", "serve"]);
    assert!(said.contains("data.dir: ") && said.contains("chown USER"), "{said}");
    let nodes = postgres.sql("select count(*) from unwritable.node");
    assert_eq!(nodes, "0", "nothing is done");
    // A SQLite file elsewhere has its mark.
    let elsewhere = place.home.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    chown(&elsewhere, Some(SERVICE), Some(SERVICE)).unwrap();
    let url = format!("sqlite:{}", elsewhere.join("own.db").display());
    Place { url, ..place }.serves("-TERM").await;
}

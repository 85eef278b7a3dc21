//! `numerator doctor`: a healthy deployment is reported as such and nothing is written; each wrong
//! input is a finding with its remedy; an unavailable store is one, too, and the rest is examined.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::process::free_port;
use testkit::redis::Redis;

use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

/// Longest wait; only a failing test waits that long.
const LIMIT: Duration = Duration::from_secs(30);

/// A user that the tests do not use otherwise.
const SERVICE: &str = "65534";

/// What a doctor found.
struct Found {
    code: i32,
    answer: Value,
}

impl Found {
    fn of(deployment: &Deployment, options: &[&str]) -> Self {
        let output = deployment.run(&[&["doctor", "--json"][..], options].concat());
        let [out, error] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        let answer = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{error}"));
        Found { code: output.status.code().expect("no signal"), answer }
    }

    /// The finding of a check with this result: the remedy after the text.
    fn says(&self, check: &str, verdict: &str) -> Vec<String> {
        let findings = self.answer["findings"].as_array().expect("findings").iter();
        let such = findings.filter(|one| one["check"] == check && one["verdict"] == verdict);
        such.map(|one| {
            let remedy = one["remedy"].as_str().unwrap_or_default();
            format!("{}; {remedy}", one["says"].as_str().expect("a text"))
        })
        .collect()
    }

    #[track_caller]
    fn has(&self, check: &str, verdict: &str, parts: &[&str]) {
        let said = self.says(check, verdict);
        let is_it = |one: &String| parts.iter().all(|part| one.contains(part));
        assert!(
            said.iter().any(is_it),
            "{check}, {verdict}: {parts:?} is not in {:#}",
            self.answer
        );
    }

    #[track_caller]
    fn comes_to(&self, code: i32, verdict: &str) {
        assert_eq!(
            (self.code, &self.answer["verdict"]),
            (code, &verdict.into()),
            "{:#}",
            self.answer
        );
    }
}

/// The files of a folder with what they hold, their owners and modes.
fn files(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, u32)> {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("a file").path());
    let of = |path: PathBuf| {
        let found = path.metadata().expect("a file");
        (path.clone(), (std::fs::read(&path).unwrap_or_default(), found.uid(), found.mode()))
    };
    entries.map(of).collect()
}

/// What a ledger holds: its tables, each with the digest of its rows.
fn written(postgres: &Postgres, schema: &str) -> String {
    postgres.sql(&format!(
        "select string_agg(c.relname || ' ' || coalesce((xpath('/row/d/text()', query_to_xml( \
         format('select md5(string_agg(t::text, '''' order by t::text)) as d from %I.%I t', \
         n.nspname, c.relname), false, true, '')))[1]::text, ''), E'\\n' order by c.relname) \
         from pg_class c join pg_namespace n on n.oid = c.relnamespace \
         where n.nspname = '{schema}' and c.relkind = 'r'"
    ))
}

#[test]
fn what_is_well_is_told_so_before_a_start_and_beside_a_service_and_nothing_is_written() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.empty_url("well"), Some(&redis.url()));
    let (folder, none) = (deployment.path(""), Vec::<&str>::new());
    // The check itself creates its settings file.
    Found::of(&deployment, &none);
    let before = files(&folder);
    let empty = Found::of(&deployment, &none);
    empty.comes_to(0, "well");
    empty.has("ledger", "well", &["is empty: the first process sets it up"]);
    assert_eq!(written(&postgres, "well"), "", "a look sets nothing up");
    assert_eq!((files(&folder), redis.cli(&["dbsize"]).as_str()), (before, "0"));

    deployment.apply_load_series();
    let service = deployment.serve();
    let beside = Found::of(&deployment, &none);
    beside.comes_to(0, "well");
    beside.has("redis", "well", &["answers in 8 partitions"]);
    beside.has("rights", "hazard", &["owns the tables", "roles.sql"]);
    beside.has("connections", "well", &["1 process and a command may open 22 connections"]);
    beside.has("data.dir", "well", &["has the ledger's witness"]);
    assert_eq!(
        beside.says("clock", "well").len(),
        2,
        "PostgreSQL's and Redis': {:#}",
        beside.answer
    );
    let ntp = [beside.says("ntp", "well"), beside.says("ntp", "hazard")].concat();
    assert_eq!(ntp.len(), 1, "whatever the kernel says: {:#}", beside.answer);
    assert!(service.terminate());

    let before = (written(&postgres, "well"), files(&folder));
    Found::of(&deployment, &none).comes_to(0, "well");
    assert_eq!((written(&postgres, "well"), files(&folder)), before);
    let plain = deployment.run(&["doctor"]);
    let plain = String::from_utf8_lossy(&plain.stdout).into_owned();
    assert!(plain.starts_with("all is well, with "), "{plain}");
    let grades: Vec<&str> =
        plain.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert!(grades.is_sorted_by(|one, next| one == next || *one == "hazard"), "{plain}");
}

#[test]
fn a_file_is_looked_at_and_nothing_is_made_beside_it() {
    let deployment = Deployment::embedded();
    let data = deployment.path("data-of-its-own");
    let data = data.display().to_string();
    let elsewhere = ["--data-dir", &data];
    Found::of(&deployment, &elsewhere).comes_to(0, "well");
    assert!(!Path::new(&data).exists());
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let before = files(&deployment.path(""));
    let found = Found::of(&deployment, &[]);
    found.comes_to(0, "well");
    found.has("ledger", "well", &["a file, and its schema is up to date"]);
    assert_eq!(files(&deployment.path("")), before, "neither a log nor a lock");
    let service = deployment.serve();
    Found::of(&deployment, &[]).comes_to(0, "well");
    assert!(service.terminate());
    let is_log = |path: &PathBuf| path.display().to_string().contains("-wal");
    assert!(!files(&deployment.path("")).keys().any(is_log), "the ledger is one file again");

    let ledger = deployment.path(testkit::service::SQLITE_FILE);
    std::fs::remove_file(&ledger).unwrap();
    let gone = Found::of(&deployment, &[]);
    gone.comes_to(1, "something-to-do");
    gone.has("ledger", "something-to-do", &["is gone", "put the ledger back"]);
    assert!(!ledger.exists());
}

/// A certificate for this machine that expires in this many days, and its key.
fn certificate(deployment: &Deployment, name: &str, days: i64) -> [String; 2] {
    let file = deployment.path(&format!("{name}.pem"));
    crate::endings::certificate(&file, days);
    [file.with_extension("key"), file].map(|path| path.display().to_string())
}

/// Goal: all errors of a deployment are reported at once before a start. Method: as many as one
/// deployment can have, each of which must be found with its remedy.
#[test]
fn each_wrong_input_is_a_finding_with_its_remedy() {
    let (postgres, redis) = (Postgres::start(), Redis::start_durable());
    let url = postgres.url("wrong");
    let right = Deployment::new(&url, Some(&redis.url()));
    right.apply_load_series();
    assert!(right.serve().terminate());
    postgres.sql(
        "create role clerk login; grant usage on schema wrong to clerk; \
         grant select, insert, update, delete on all tables in schema wrong to clerk; \
         grant usage on all sequences in schema wrong to clerk; \
         revoke insert on wrong.journal_batch from clerk; \
         revoke update on wrong.counter from clerk",
    );
    redis.cli(&["config", "set", "requirepass", "secret"]);

    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    std::fs::write(&offset, "+90m").unwrap();
    let url = url.replace("//postgres@", "//clerk@");
    let redis_url = format!("redis://:other@127.0.0.1:{}", redis.port());
    let mut wrong = Deployment::of(program_with(&off_by(&offset)), &url, Some(&redis_url));
    let [[soon_key, soon], [other_key, _]] =
        [("soon", 5), ("other", 500)].map(|(name, days)| certificate(&wrong, name, days));
    std::fs::set_permissions(&soon_key, Permissions::from_mode(0o640)).unwrap();
    let data = wrong.path("data");
    std::fs::create_dir(&data).unwrap();
    for open in [&data, &wrong.path("")] {
        std::fs::set_permissions(open, Permissions::from_mode(0o755)).unwrap();
    }
    wrong.http = format!("tls_certificate = \"{soon}\"\ntls_key = \"{other_key}\"\n");
    wrong.database = "connections_max = 60\n".into();
    wrong.extra = format!("[audit]\nkey = \"{}\"\n", wrong.path("none.key").display());
    let data = data.display().to_string();
    let partitions = ["--setting", "partitions=16", "--data-dir", &data, "--user", SERVICE];
    let found = Found::of(&wrong, &partitions);
    found.comes_to(1, "something-to-do");
    for (check, parts) in [
        ("settings", &["partitions is 16 here and 8 in the ledger", "write partitions = 8"][..]),
        ("files", &["http.tls_key", "is not the key of the certificate"]),
        ("files", &["audit.key", "none.key", "No such file", "name a file that is there"]),
        ("certificates", &["soon.pem ends on", "in ", "days; renew it into the same file"]),
        ("data.dir", &["the service's user", "cannot write there", "install -d -o"]),
        ("rights", &["lacks the right to insert on journal_batch; run deploy/postgres/roles.sql"]),
        ("rights", &["lacks the right to update on counter; run deploy/postgres/roles.sql"]),
        ("connections", &["1 process and a command may open 126", "raise max_connections to"]),
        ("redis", &["redis refuses the password: WRONGPASS", "correct user and password"]),
        ("clock", &["1h ", "ahead of that of PostgreSQL", "node.clock_offset_max", "NTP"]),
    ] {
        found.has(check, "something-to-do", parts);
    }
    let key =
        Found::of(&wrong, &["--setting", &format!("http.tls_key={soon_key}"), "--user", SERVICE]);
    key.has("files", "something-to-do", &["http.tls_key", "soon.key", "mode 0640", "chown"]);
    // Nothing may be wrong in the settings file itself, which is checked first.
    let output = wrong.run(&["doctor", "--setting", "partitions=none"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("to do        settings     setting partitions"), "{said}");
}

/// Goal: a machine that lost its power is reported well before its start. Method: the process is
/// killed, and Redis comes back as another incarnation of its data.
#[tokio::test(flavor = "multi_thread")]
async fn processes_that_died_do_not_have_their_restarted_redis_called_another_one() {
    let (postgres, mut redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.url("power"), Some(&redis.url()));
    deployment.apply_load_series();
    let mut service = deployment.serve();
    testkit::load::documents(&service.url, 2, 20).await.assert_contiguous(20);
    service.kill();
    redis.kill();
    redis.restart();
    let found = Found::of(&deployment, &[]);
    found.comes_to(0, "well");
    found.has("ledger", "hazard", &["no heartbeat for 3s", "adopts what they left"]);
    found.has("redis", "hazard", &["another data set", "brings a recovery"]);
}

/// Goal: root learns what the service's user may not do. Method: `data.dir` is another user's, and
/// its contents are root's.
#[test]
fn root_is_told_what_the_owner_of_the_data_folder_may_not_do() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return println!("not run: this needs root, to give files away");
    }
    let deployment = Deployment::embedded();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let folder = deployment.path("");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let id: u32 = SERVICE.parse().unwrap();
    for path in files(&folder).into_keys() {
        chown(path, Some(id), Some(id)).unwrap();
    }
    chown(&folder, Some(id), Some(id)).unwrap();
    // The settings file is root's each time.
    let well = Found::of(&deployment, &[]);
    well.has("data.dir", "well", &["has the ledger's witness"]);
    assert_eq!(well.says("ledger", "something-to-do"), Vec::<String>::new());
    let witness = deployment.witnesses().remove(0);
    let ledger = deployment.path(testkit::service::SQLITE_FILE);
    for path in [&witness, &ledger] {
        chown(path, Some(0), Some(0)).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let found = Found::of(&deployment, &[]);
    found.comes_to(1, "something-to-do");
    found.has("data.dir", "something-to-do", &["witness-", "mode 0600, of root", "chown"]);
    found.has("ledger", "something-to-do", &["cannot write to the ledger", "chown"]);
    std::fs::write(&witness, "{").unwrap();
    chown(&witness, Some(id), Some(id)).unwrap();
    Found::of(&deployment, &[]).has("data.dir", "something-to-do", &["is damaged"]);
}

/// Goal: the shipped unit with keys has the result 0. Method: a secret of root's, closed to all
/// others, and one that is open to a group.
#[test]
fn a_secret_that_root_keeps_for_a_unit_to_hand_over_is_no_more_than_a_hazard() {
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return println!("not run: this needs root, to ask for another user");
    }
    let mut deployment = Deployment::embedded();
    let key = deployment.path("audit.pem");
    deployment.ok(&["audit", "keygen", &key.display().to_string()]);
    deployment.extra = format!("[audit]\nkey = \"{}\"\n", key.display());
    std::fs::set_permissions(deployment.path(""), Permissions::from_mode(0o755)).unwrap();
    let look = |mode| {
        std::fs::set_permissions(&key, Permissions::from_mode(mode)).unwrap();
        Found::of(&deployment, &["--user", SERVICE])
    };
    let handed = look(0o600);
    handed.has("files", "hazard", &["audit.key: root alone may read", "LoadCredential="]);
    let is_of_key = |one: &String| one.contains("audit.key");
    assert!(!handed.says("files", "something-to-do").iter().any(is_of_key), "{:#}", handed.answer);
    look(0o640).has("files", "something-to-do", &["audit.key", "mode 0640"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_ledgers_redis_another_redis_than_the_processes_and_a_wrong_port_are_found() {
    let (postgres, redis, other) =
        (Postgres::start(), Redis::start_durable(), Redis::start_durable());
    let [one, two] = ["one", "two"].map(|schema| {
        let deployment = Deployment::new(&postgres.url(schema), Some(&redis.url()));
        deployment.apply_load_series();
        deployment
    });
    let service = one.serve();
    eventually(LIMIT, async || {
        let owned = "select count(*) from one.partition where owner = 'redis' and state = 'open'";
        let owned = postgres.sql(owned);
        if owned == "8" { Ok(()) } else { Err(format!("{owned} of 8")) }
    })
    .await;
    let to_do = |deployment: &Deployment, url: &str, parts: &[&str]| {
        let found = Found::of(deployment, &["--redis-url", url]);
        found.comes_to(1, "something-to-do");
        found.has("redis", "something-to-do", parts);
    };
    Found::of(&one, &[]).comes_to(0, "well");
    to_do(&two, &redis.url(), &["are those of another ledger", "partitions 0, 1, 2"]);
    for command in ["drain", "verify"] {
        let told = two.run(&[command]);
        assert_eq!(told.status.code(), Some(1), "{told:?}");
        let says = String::from_utf8_lossy(&told.stderr);
        assert!(says.contains("are those of another ledger"), "{command}: {says}");
    }
    to_do(&one, &other.url(), &["another Redis than the one that the other processes see"]);
    let nowhere = format!("redis://127.0.0.1:{}", free_port());
    let unreached = Found::of(&one, &["--redis-url", &nowhere]);
    unreached.comes_to(2, "cannot-tell");
    unreached.has("redis", "cannot-tell", &["redis is not reached", "start it, or correct host"]);
    let mut without = Deployment::new(one.database_url(), None);
    let found = Found::of(&without, &[]);
    found.has("redis", "something-to-do", &["redis owns 8 partitions", "fallback on"]);
    without.extra = "[idempotency]\nwindow = \"1h\"\n".into();
    let found = Found::of(&without, &[]);
    found.has("settings", "something-to-do", &["idempotency.window is 3600000 ms here"]);
    other.follow(&redis);
    to_do(&one, &other.url(), &["the server is no master", "lead redis.url to the master"]);
    assert!(service.terminate());
}

#[test]
fn a_store_that_is_away_is_told_and_the_other_is_looked_at() {
    let (mut postgres, mut redis) = (Postgres::start(), Redis::start_durable());
    let deployment = Deployment::new(&postgres.url("away"), Some(&redis.url()));
    deployment.apply_load_series();
    postgres.sql(
        "create role reader superuser login; \
         alter role reader set default_transaction_read_only = on",
    );
    let reader = deployment.database_url().replace("//postgres@", "//reader@");
    let read_only = Found::of(&deployment, &["--database-url", &reader]);
    read_only.comes_to(1, "something-to-do");
    read_only.has("ledger", "something-to-do", &["default_transaction_read_only", "set it off"]);
    redis.signal("STOP");
    let silent = Found::of(&deployment, &[]);
    silent.comes_to(2, "cannot-tell");
    assert_eq!(silent.says("ledger", "cannot-tell"), Vec::<String>::new());
    assert_eq!(silent.says("redis", "cannot-tell").len(), 1, "{:#}", silent.answer);
    redis.signal("CONT");
    postgres.kill();
    let without = Found::of(&deployment, &[]);
    without.comes_to(2, "cannot-tell");
    without.has("ledger", "cannot-tell", &["Connection refused", "start it"]);
    assert_eq!(without.says("clock", "well").len(), 1, "Redis': {:#}", without.answer);
    redis.kill();
    let none = Found::of(&deployment, &[]);
    none.comes_to(2, "cannot-tell");
    none.has("redis", "cannot-tell", &["redis is not reached", "start it"]);
    none.has("clock", "well", &["nobody else tells the time"]);
    let missing = deployment.database_url().replace("/postgres?", "/none?");
    postgres.restart();
    let missing = Found::of(&deployment, &["--database-url", &missing]);
    missing.has("ledger", "something-to-do", &["3D000", "create database"]);
}

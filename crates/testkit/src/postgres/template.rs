//! The data folders that servers are copied from: each made once per build folder, by the first
//! test that needs it.
//!
//! To set a ledger up takes PostgreSQL a third of a second, which hundreds of tests would spend,
//! and some for each of their cases. So the small one has waiting schemas that are up to date. A
//! test of how a schema becomes so takes an empty one.

use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::migrate::Migrator;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{Postgres, SMALL, START_DEADLINE, command_as_server, give_to_server, run, version};
use crate::process::free_port;

/// Megabytes of a segment of the write-ahead log: PostgreSQL's own default under load.
const SEGMENT_SMALL: u32 = 1;
const SEGMENT_LARGE: u32 = 16;

/// Schemas that wait to be used: most tests use one, and each takes a megabyte of each server.
const WAITING: u32 = 4;

/// The prefix of their names, which nothing else in them may contain.
const NAMED: &str = "waiting_for_a_test_";

/// The database of the shared server that those of tests are copied from, and the schema in it.
pub(super) const MIGRATED: &str = "migrated";
pub(super) const SCHEMA: &str = "ledger";

const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres");

/// The data folder of a server that tests share the machine with.
pub(super) fn small() -> PathBuf {
    let name = format!("{SEGMENT_SMALL}-{:016x}", digest());
    template(&name, SEGMENT_SMALL, |server| {
        let schemas = (0..WAITING).map(|number| format!("{NAMED}{number:02}"));
        set_up(server, "postgres", schemas.collect());
    })
}

/// That of a server that tests share with each other.
pub(super) fn migrated() -> PathBuf {
    let name = format!("shared-{:016x}", digest());
    template(&name, SEGMENT_LARGE, |server| {
        server.sql(&format!("create database {MIGRATED}"));
        set_up(server, MIGRATED, vec![SCHEMA.to_owned()]);
    })
}

/// That of one that is measured: its database is empty.
pub(super) fn large() -> PathBuf {
    template(&SEGMENT_LARGE.to_string(), SEGMENT_LARGE, |_| {})
}

/// The statement that makes a schema of this name. Functions may name the schema that they are in.
pub(super) fn using(schema: &str) -> String {
    format!(
        "do $use$ declare waiting text; definition text; begin \
         if to_regnamespace('{schema}') is not null then return; end if; \
         select nspname::text into waiting from pg_namespace \
         where starts_with(nspname::text, '{NAMED}') order by nspname limit 1; \
         if waiting is null then create schema {schema}; return; end if; \
         execute format('alter schema %I rename to {schema}', waiting); \
         for definition in select pg_get_functiondef(oid) from pg_proc \
         where pronamespace = to_regnamespace('{schema}') loop \
         if strpos(definition, waiting) > 0 then \
         execute replace(definition, waiting, '{schema}'); end if; \
         end loop; end $use$"
    )
}

/// The template of this name, with the content that is filled in as it is made.
fn template(name: &str, segment_mb: u32, fill: impl Fn(&Postgres)) -> PathBuf {
    let home = template_folder();
    fs::create_dir_all(&home).unwrap();
    let version: String = version().chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let template = home.join(format!("postgres-template-{version}-{name}"));
    let lock = File::create(home.join("postgres-template.lock")).unwrap();
    lock.lock().unwrap();
    if !template.exists() {
        // Made where the server's user may write, then moved as a whole.
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        give_to_server(folder.path());
        let data = folder.path().join("data");
        initialize(&data, segment_mb);
        let mut server = Postgres { process: None, folder, port: free_port(), settings: &SMALL };
        server.run();
        fill(&server);
        server.end();
        let partial = home.join("postgres-template.partial");
        let _ = fs::remove_dir_all(&partial);
        run(Command::new("cp").arg("-a").arg(&data).arg(&partial));
        fs::rename(&partial, &template).unwrap();
    }
    template
}

/// Where templates are kept: the build folder's `tmp`, which cargo gives to tests.
fn template_folder() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let is_build_folder = |folder: &&Path| folder.join("CACHEDIR.TAG").is_file();
    let build_folder = program.ancestors().find(is_build_folder);
    build_folder.map_or_else(std::env::temp_dir, |folder| folder.join("tmp"))
}

fn initialize(data: &Path, segment_mb: u32) {
    let mut initdb = command_as_server("initdb");
    initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    initdb.arg(format!("--wal-segsize={segment_mb}"));
    initdb.args(["--username=postgres", "-D"]).arg(data);
    run(&mut initdb);
}

/// Sets schemas up in a database.
fn set_up(server: &Postgres, database: &'static str, schemas: Vec<String>) {
    let port = server.port;
    // The caller may be within a runtime.
    let in_its_own = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(migrate(port, database, &schemas));
    };
    std::thread::spawn(in_its_own).join().expect("the migrations run");
}

async fn migrate(port: u16, database: &str, schemas: &[String]) {
    let migrations = Migrator::new(Path::new(MIGRATIONS)).await.unwrap();
    for schema in schemas {
        let url = super::url_in(port, database, schema);
        let mut connection = PgConnection::connect(&url).await.unwrap();
        let create = AssertSqlSafe(format!("create schema {schema}"));
        sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
        migrations.run(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// A digest of the present migrations and of the waiting schemas.
fn digest() -> u64 {
    let entries = fs::read_dir(MIGRATIONS).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    (NAMED, WAITING).hash(&mut hasher);
    for file in files {
        (file.file_name(), fs::read(&file).unwrap()).hash(&mut hasher);
    }
    hasher.finish()
}

impl Postgres {
    /// Ends the server as an operator would: nothing is left to recover.
    fn end(&mut self) {
        let mut process = self.process.take().expect("a running server");
        process.signal("INT");
        assert!(process.wait(START_DEADLINE).is_some(), "the server does not end");
    }
}

//! Roles of PostgreSQL: what each may do, that no less would suffice, and that the pages work under
//! them.

mod statements;

use std::process::Command;
use std::time::Duration;

use sqlx::AssertSqlSafe;
use statements::granted;
use testkit::eventually::eventually;
use testkit::load::{self, Running};
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::Deployment;

const DEPLOY: &str = include_str!("../../docs/deploy.md");
const RUNBOOK: &str = include_str!("../../docs/runbook.md");

const LIMIT: Duration = Duration::from_secs(60);

/// Tables that only the archiver writes to.
const ARCHIVERS: [&str; 2] = ["archive_file", "archived_number"];

/// The names of the roles behind `numerator_`, but for the owner's.
const BESIDE: [&str; 4] = ["writer", "archiver", "auditor", "backup"];

/// A server on which the pages are followed, and the user that they name.
struct Scene {
    postgres: Postgres,
    home: tempfile::TempDir,
    /// The user that makes roles and databases.
    administrator: &'static str,
}

impl Scene {
    /// Its server has only its superuser.
    fn start() -> Self {
        let (postgres, home) = (Postgres::start(), tempfile::tempdir().unwrap());
        Scene { postgres, home, administrator: "postgres" }
    }

    /// One on which the roles and a ledger of theirs were made by the page.
    fn made() -> Self {
        let scene = Scene::start();
        for line in lines(DEPLOY, "\n## Roles of PostgreSQL\n") {
            scene.ok(line);
        }
        scene
    }

    fn url(&self, user: &str) -> String {
        self.url_of(user, "numerator")
    }

    fn url_of(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}?sslmode=disable", self.postgres.port())
    }

    /// Runs one line as a shell does: whether it succeeds, and what it prints.
    fn run(&self, line: &str) -> (bool, String) {
        let bin = self.home.path().join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        let program = format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_numerator"));
        let file = bin.join("numerator");
        std::fs::write(&file, program).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", bin.display()));
        command.env("NUMERATOR__DATA__DIR", self.home.path()).env("DUMP", self.dump());
        command.env("ADMIN_URL", self.url_of(self.administrator, "postgres"));
        command.env("NEW_URL", self.url_of("numerator_owner", "numerator_new"));
        for role in ["owner", "writer", "archiver", "auditor", "backup"] {
            let variable = format!("{}_URL", role.to_uppercase());
            command.env(variable, self.url(&format!("numerator_{role}")));
        }
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs one line of a page: it succeeds, and prints what its comment quotes.
    fn ok(&self, line: &str) -> String {
        let (is_done, text) = self.run(line);
        let quoted = line.split_once(" # ").and_then(|(_, comment)| comment.split('`').nth(1));
        assert!(is_done && text.contains(quoted.unwrap_or_default()), "{line}\n{text}");
        text
    }

    fn dump(&self) -> std::path::PathBuf {
        self.home.path().join("ledger.dump")
    }

    fn sql(&self, sql: &str) -> String {
        self.ok(&format!("psql -qAtX \"{}\" -c \"{sql}\"", self.url("postgres"))).trim().to_owned()
    }

    fn deployment(&self, user: &str) -> Deployment {
        Deployment::new(&self.url(user), None)
    }
}

/// The lines of the first block of a part of a page.
fn lines(page: &'static str, title: &str) -> Vec<&'static str> {
    let (_, part) = page.split_once(title).unwrap_or_else(|| panic!("no {title}"));
    let (_, block) = part.split_once("```sh\n").expect("a block");
    let block = block.split("```").next().unwrap_or_default();
    block.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

/// Goal: from an empty server to numbers, and the next version, by the page alone. Method: its
/// lines; then what a stolen password of each role can do.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_on_roles_is_walked_from_an_empty_server() {
    let scene = Scene::made();
    assert_eq!(scene.sql("select count(*) from pg_authid where rolpassword is not null"), "5");
    let writer = scene.deployment("numerator_writer");
    writer.apply_load_series();
    let service = writer.serve();
    load::documents(&service.url, 2, 20).await.assert_contiguous(20);
    // Again, during a service.
    scene.ok("numerator --database-url \"$OWNER_URL\" migrate --roles");
    scene.ok("psql --set ON_ERROR_STOP=1 --file deploy/postgres/roles.sql \"$OWNER_URL\"");
    load::documents(&service.url, 2, 40).await.assert_contiguous(40);
    assert!(service.terminate());
    writer.assert_clean();
    may_do_what_the_list_says(&scene);
    may_not(&scene).await;
    // The auditor sees what there is, and no hash.
    writer.ok(&["token", "create", "desk"]);
    let auditor = scene.deployment("numerator_auditor");
    assert!(auditor.ok(&["token", "list"]).contains("desk"));
    assert!(auditor.ok(&["verify"]).contains("not the secrets of tokens"), "it says what it left");
    assert!(!writer.ok(&["verify"]).contains("not the secrets of tokens"));
    let events = writer.ok(&["events", "--kind", "roles-granted", "--json"]);
    assert_eq!(events.matches("roles-granted").count(), 1, "the second changed nothing: {events}");
}

/// Goal: where no superuser login is possible, the page can still be followed. Method: its lines by
/// the role that it names for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_managed_servers_administrator_makes_the_roles_and_the_database() {
    let mut scene = Scene::start();
    scene.postgres.sql(
        "create role administrator login createrole createdb; \
         grant pg_monitor, pg_signal_backend to administrator with admin option",
    );
    scene.administrator = "administrator";
    let lines = lines(DEPLOY, "\n## Roles of PostgreSQL\n");
    for line in lines.iter().chain(&lines[..1]) {
        scene.ok(line);
    }
    let owns = "select pg_has_role('administrator', 'numerator_owner', 'usage')";
    assert_eq!(scene.sql(owns), "f", "it belongs to the owner for a moment only");
    let writer = scene.deployment("numerator_writer");
    writer.apply_load_series();
    let service = writer.serve();
    load::documents(&service.url, 2, 20).await.assert_contiguous(20);
    assert!(service.terminate());
}

/// What each role is granted is the list of the file, and every table is on it.
fn may_do_what_the_list_says(scene: &Scene) {
    let granted = granted();
    for role in BESIDE {
        let may =
            |right: &str| format!("has_table_privilege('numerator_{role}', c.oid, '{right}')");
        let rights = ["select", "insert", "delete", "truncate", "references", "trigger"].map(may);
        let found = scene.sql(&format!(
            "select relname, {}, (select string_agg(attname, ',' order by attname) \
             from pg_attribute a where a.attrelid = c.oid and attnum > 0 and not attisdropped \
             and has_column_privilege('numerator_{role}', c.oid, attnum, 'update')) \
             from pg_class c where relkind in ('r', 'p') \
             and relnamespace = 'public'::regnamespace",
            rights.join(", ")
        ));
        assert!(found.lines().count() > 40, "{found}");
        for line in found.lines() {
            let cells: Vec<&str> = line.split('|').collect();
            let [table, reads, inserts, deletes, empties, refers, triggers, updates] = cells[..]
            else {
                panic!("{line}");
            };
            let Some((rights, _)) = granted.get(table) else {
                panic!("table {table} is new: say in deploy/postgres/roles.sql who may do what");
            };
            let writes = ["writer", "archiver"].contains(&role);
            let archives = role == "archiver" && ARCHIVERS.contains(&table);
            let is = |right: bool| if right { "t" } else { "f" };
            let at = format!("numerator_{role}, {table}");
            assert_eq!(reads, is(role != "auditor" || table != "token"), "{at}: select");
            assert_eq!(inserts, is(writes && rights.insert || archives), "{at}: insert");
            let forgets = archives && table == "archived_number";
            assert_eq!(deletes, is(writes && rights.delete || forgets), "{at}: delete");
            assert_eq!([empties, refers, triggers], ["f"; 3], "{at}: truncate and the like");
            let updates: Vec<&str> = updates.split(',').filter(|it| !it.is_empty()).collect();
            match rights.update.as_ref().filter(|_| writes) {
                None if archives && table == "archive_file" => assert_eq!(updates.len(), 4, "{at}"),
                None => assert_eq!(updates, [""; 0], "{at}: update"),
                Some(columns) if columns.is_empty() => assert!(!updates.is_empty(), "{at}"),
                Some(columns) => {
                    assert_eq!(updates, columns.iter().collect::<Vec<_>>(), "{at}: update");
                }
            }
        }
    }
}

/// What only the owner may do to what stays.
async fn may_not(scene: &Scene) {
    let everybody = [
        "update event set kind = 'x'",
        "delete from event",
        "delete from revision",
        "update revision set rev = 'x'",
        "update series_version set definition = 'x'",
        "delete from series_version",
        "delete from token",
        "update token set roles = '[]'",
        "update token set name = 'x'",
        "delete from change_request",
        "insert into change_request (series_id, counter_id, step, next_value, reason, \
         requested_by, requested_at_us, expires_at_us, state, decided_by, decided_at_us) \
         values (1, 1, 1, 9, 'r', 'ann', 1, 2, 'approved', 'bob', 1)",
        "update counter set key = 'x'",
        "delete from counter",
        "update gap set counter_id = 1",
        "delete from closed_epoch",
        "delete from swept_node",
        "delete from series",
        "create table public.own (id integer)",
        "alter table journal disable trigger user",
        "set session_replication_role = replica",
        "create role own",
    ];
    let readers = [
        "insert into event (at_us, kind, detail) values (1, 'x', '{}')",
        "select sha256 from token",
        "select pg_advisory_lock(1)",
        "select pg_try_advisory_xact_lock_shared(1)",
        "select nextval('journal_batch_batch_id_seq')",
    ];
    for role in BESIDE {
        let readers = readers.iter().filter(|_| role == "auditor");
        let pool = sqlx::PgPool::connect(&scene.url(&format!("numerator_{role}"))).await.unwrap();
        for act in everybody.iter().chain(readers) {
            let done = sqlx::raw_sql(AssertSqlSafe(*act)).execute(&pool).await;
            let Err(refused) = done else { panic!("numerator_{role}: {act}") };
            let why = refused.to_string();
            let is_for_that = ["permission denied", "must be owner", "keeps its rows", "to set"];
            assert!(
                is_for_that.iter().any(|it| why.contains(it)),
                "numerator_{role}: {act}: {why}"
            );
        }
        pool.close().await;
    }
}

/// Goal: a backup is made and restored by the pages, under the roles, in place and into a new
/// database. Method: the lines of both chapters.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_made_and_put_back_by_the_roles_for_it() {
    let scene = Scene::made();
    let writer = scene.deployment("numerator_writer");
    writer.apply_load_series();
    let service = writer.serve();
    load::documents(&service.url, 2, 20).await.assert_contiguous(20);
    assert!(service.terminate());
    let dump = lines(RUNBOOK, "\n## Backups\n")[0];
    assert!(dump.contains("BACKUP_URL"), "{dump}");
    scene.ok(&dump.replace("ledger.dump", "\"$DUMP\""));
    for role in ["writer", "auditor"] {
        let (is_done, said) = scene.run(&format!(
            "pg_dump --format=custom --file=/dev/null \"${}_URL\"",
            role.to_uppercase()
        ));
        assert!(!is_done, "{role}: {said}");
    }
    let (_, chapter) = RUNBOOK.split_once("\n## Backups\n").unwrap();
    let (_, rest) = chapter.split_once("Put it back with `").expect("how it is put back");
    let restore = rest.split('`').next().unwrap().replace("ledger.dump", "\"$DUMP\"");
    assert!(restore.contains("OWNER_URL"), "{restore}");
    scene.ok(&restore);
    let (is_done, said) = scene.run(&restore.replace("OWNER_URL", "WRITER_URL"));
    assert!(!is_done, "{said}");
    let rows = "select count(*) from journal";
    assert_eq!(scene.sql(rows), "20");
    let events = "select has_table_privilege('numerator_writer', 'event', 'insert'), \
                  has_table_privilege('numerator_writer', 'event', 'delete')";
    assert_eq!(scene.sql(events), "t|f", "rights come back with the tables");
    writer.ok(&["find", "--document", "doc-1"]);
}

/// Goal: a restore whose tables would be missing for minutes costs a second, and no number comes
/// twice. Method: the runbook's lines during a service under load, which continues automatically.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_backup_is_put_back_beside_services_in_a_new_database() {
    let (scene, redis) = (Scene::made(), Redis::start());
    let writer = Deployment::new(&scene.url("numerator_writer"), Some(&redis.url()));
    writer.apply_load_series();
    let service = writer.serve();
    let load = Running::start(&service.url, 2);
    load.reach(50).await;
    let dump = lines(RUNBOOK, "\n## Backups\n")[0];
    scene.ok(&dump.replace("ledger.dump", "\"$DUMP\""));
    load.reach(load.asked() + 50).await;
    for line in lines(RUNBOOK, "\n### Restoring the ledger\n") {
        scene.ok(&line.replace("ledger.dump", "\"$DUMP\""));
    }
    eventually(LIMIT, async || {
        match scene.sql("select count(*) from event where kind = 'ledger-agreed'").as_str() {
            "0" => Err(service.log()),
            _ => Ok(()),
        }
    })
    .await;
    load.reach(load.asked() + 50).await;
    load.finish().await.assert_no_duplicate();
    assert!(service.terminate());
    writer.assert_clean();
    // Rights of a database, too, and not only those of its tables.
    may_not(&scene).await;
}

/// Goal: the service's password changes, and no request waits for that. Method: the runbook's
/// lines.
#[tokio::test(flavor = "multi_thread")]
async fn two_logins_take_turns_where_a_password_changes() {
    let scene = Scene::made();
    let writer = scene.deployment("numerator_writer");
    writer.apply_load_series();
    let first = writer.serve();
    load::documents(&first.url, 2, 20).await.assert_contiguous(20);
    let lines = lines(RUNBOOK, "\n### A new database password\n");
    let [make, replaced, close] = lines[..] else { panic!("{lines:?}") };
    assert!(replaced.starts_with("# each process is replaced"), "{replaced}");
    scene.ok(make);
    let other = scene.deployment("numerator_writer_b");
    let second = other.serve();
    assert!(first.terminate());
    scene.ok(close);
    load::documents(&second.url, 2, 40).await.assert_contiguous(40);
    let (is_let_in, said) = scene.run("numerator --database-url \"$WRITER_URL\" series list");
    assert!(!is_let_in && said.contains("not permitted to log in"), "{said}");
    assert!(second.terminate());
    other.assert_clean();
}

/// Goal: an error for a missing right names what grants it. Method: the service's user sets up and
/// migrates, the owner lacks the roles, and roles.sql is run by another user.
#[test]
fn a_right_that_is_missing_names_what_gives_it() {
    let scene = Scene::start();
    scene.ok("psql \"$ADMIN_URL\" --file deploy/postgres/create.sql");
    let remedies = ["permission denied", "deploy/postgres/roles.sql", "numerator migrate"];
    let refused = |line: &str, parts: &[&str]| {
        let (is_done, said) = scene.run(line);
        assert!(!is_done, "{line} is not refused");
        for part in parts {
            assert!(said.contains(part), "{line}: no {part}: {said}");
        }
    };
    // Nothing is there yet.
    for command in ["serve", "next SPO", "migrate"] {
        refused(&format!("numerator --database-url \"$WRITER_URL\" {command}"), &remedies);
    }
    let roles = "psql --set ON_ERROR_STOP=1 --file deploy/postgres/roles.sql";
    refused(&format!("{roles} \"$OWNER_URL\""), &["no ledger in schema public", "migrate"]);
    // A ledger whose owner has not run it.
    scene.ok("numerator --database-url \"$OWNER_URL\" migrate");
    refused("numerator --database-url \"$WRITER_URL\" next SPO", &remedies);
    refused(&format!("{roles} \"$WRITER_URL\""), &["the ledger belongs to numerator_owner"]);
    refused("numerator --database-url \"$WRITER_URL\" migrate --roles", &remedies[1..]);
    scene.ok(&format!("{roles} \"$OWNER_URL\""));
    scene.ok("numerator --database-url \"$WRITER_URL\" series list");
    // An older one, which the service's user cannot migrate.
    scene.sql(
        "delete from _sqlx_migrations where version = (select max(version) from \
               _sqlx_migrations)",
    );
    refused("numerator --database-url \"$WRITER_URL\" migrate", &remedies[1..]);
    // A missing role gets nothing, and does not prevent the others from being granted.
    scene.sql("drop owned by numerator_auditor");
    scene.ok("psql \"$ADMIN_URL\" -c 'drop role numerator_auditor'");
    let said = scene.ok(&format!("{roles} \"$OWNER_URL\""));
    assert!(said.contains("numerator_auditor"), "{said}");
    scene.sql("grant delete on event to numerator_writer");
    scene.ok(&format!("{roles} \"$OWNER_URL\""));
    let removes = "select has_table_privilege('numerator_writer', 'event', 'delete')";
    assert_eq!(scene.sql(removes), "f", "a right of before is taken");
    // All or nothing.
    scene.sql("grant delete on event to numerator_writer; alter table token owner to postgres");
    refused(&format!("{roles} \"$OWNER_URL\""), &["table token belongs to postgres"]);
    assert_eq!(scene.sql(removes), "t", "nothing was done");
}

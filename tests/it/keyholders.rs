//! Who may write into a ledger that is under seal: a process that has the key, or was allowed to
//! write without it; and what the shipped roles can do to the record.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use testkit::eventually::eventually;
use testkit::load;
use testkit::postgres::Postgres;

use crate::archive::days_ago_text;
use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

/// Longest wait for a checkpoint.
const LIMIT: Duration = Duration::from_secs(20);

fn refusal(deployment: &Deployment, args: &[&str]) -> String {
    let output = deployment.run(args);
    assert!(!output.status.success(), "{args:?} is not refused");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A key in the folder of a deployment, which signs every second; its public half.
fn sign(deployment: &mut Deployment) -> String {
    let file = deployment.path("audit.pem");
    let public = deployment.ok(&["audit", "keygen", file.to_str().unwrap()]).trim().to_owned();
    deployment.extra += &format!("[audit]\nkey = \"{}\"\ncheckpoint = \"1s\"\n", file.display());
    public
}

/// Waits until checkpoints bind this many rows.
async fn bound(deployment: &Deployment, public: &str, rows: u64) {
    eventually(LIMIT, async || {
        let report = deployment.run(&["audit", "verify", "--json", "--public-key", public]);
        let said: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap_or_default();
        let is_whole = said["rows"] == rows && said["unbound_batches"] == 0;
        if is_whole { Ok(()) } else { Err(format!("{report:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_key_is_refused_where_the_ledger_knows_one() {
    let mut deployment = Deployment::embedded();
    deployment.apply_load_series();
    let next = ["next", "LOAD", "--document", "by-hand"];
    // No process knows a key yet.
    deployment.ok(&["next", "LOAD"]);
    let public = sign(&mut deployment);
    let service = deployment.serve();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 201, "{body}");
    bound(&deployment, &public, 2).await;
    assert!(service.terminate());
    let sealed = std::mem::take(&mut deployment.extra);
    let list = deployment.path("list.csv");
    std::fs::write(&list, "number\nL-00000090\n").unwrap();
    let import = ["import", list.to_str().unwrap(), "--series", "LOAD", "--apply"];
    for writes in [
        &next[..],
        &["revise", "d1", "B"],
        &["archive", "--before", "2020-01-01", "--to", "archive"],
        &["reconcile", "--rejected", "--apply"],
        &["serve"],
        &import,
    ] {
        let refused = refusal(&deployment, writes);
        let remedy = refused.contains("audit.key") && refused.contains("--without-key");
        assert!(remedy, "{writes:?}: {refused}");
    }
    // A read-only command needs none.
    deployment.ok(&["preview", "LOAD"]);
    deployment.ok(&["find", "--document", "d1"]);
    deployment.ok(&["audit", "verify", "--public-key", &public]);
    deployment.ok(&import[..4]);
    deployment.ok(&[&next[..], &["--without-key"]].concat());
    deployment.ok(&[&import[..], &["--without-key"]].concat());
    deployment.extra = "[audit]\nwithout_key = true\n".into();
    let service = deployment.serve();
    assert!(service.terminate());
    let events = deployment.ok(&["events", "--json"]);
    assert_eq!(events.matches("without-key").count(), 3, "{events}");
    // What was written like this is named, and no paper calls it sealed.
    deployment.extra = sealed;
    let named = refusal(&deployment, &["audit", "verify"]);
    assert!(named.contains("by a process without the key"), "{named}");
    let service = deployment.serve();
    eventually(LIMIT, async || {
        let paper =
            deployment.run(&["statement", "--series", "LOAD", "--period", "2024", "--json"]);
        let said: serde_json::Value = serde_json::from_slice(&paper.stdout).unwrap_or_default();
        let seal = &said["seal"];
        let is_told = seal["sealed"] == false && seal["records_without_key"] == 2;
        if is_told { Ok(()) } else { Err(format!("{paper:?}")) }
    })
    .await;
    assert!(service.terminate());
}

/// Goal: the roles that are shipped can neither add a number nor remove one undetected. Method:
/// what each of them is granted, with triggers in place, and the comparison with what was kept.
#[tokio::test(flavor = "multi_thread")]
async fn no_role_adds_or_removes_a_number_unseen() {
    const ROLES: &str = include_str!("../../deploy/postgres/roles.sql");
    let postgres = Postgres::start();
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let program = program_with(&off_by(&offset));
    let mut owned = Deployment::of(program, &postgres.url("held"), None);
    owned.extra = "[node]\nclock_offset_max = \"10d\"\n".into();
    let public = sign(&mut owned);
    // Four numbers of three days ago, in one batch: they move to an archive.
    std::fs::write(&offset, "-3d").unwrap();
    owned.apply_load_series();
    let list = owned.path("list.csv");
    std::fs::write(&list, "number\nL-00000001\nL-00000002\nL-00000003\nL-00000004\n").unwrap();
    owned.ok(&["import", list.to_str().unwrap(), "--series", "LOAD", "--apply"]);
    std::fs::write(&offset, "+0").unwrap();
    let service = owned.serve();
    let client = testkit::client();
    for document in ["d1", "d2", "d3", "d4", "d5", "d6"] {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!(status, 201, "{body}");
    }
    bound(&owned, &public, 10).await;
    assert!(service.terminate());
    let to = owned.path("archive");
    owned.ok(&["archive", "--before", &days_ago_text(), "--to", to.to_str().unwrap()]);
    postgres.sql(
        "create role numerator_writer login; create role numerator_archiver login; \
         create role numerator_auditor login",
    );
    postgres.sql(&format!("set search_path = held; {ROLES}"));
    let kept = owned.path("kept.jsonl");
    std::fs::write(&kept, owned.ok(&["audit", "checkpoints"])).unwrap();
    let verify = ["audit", "verify", "--public-key", &public, "--with", kept.to_str().unwrap()];
    let said = owned.ok(&verify);
    assert!(said.contains("4 rows are in an archive"), "{said}");
    // As the owner finds it, and restores it.
    for (role, does) in acts() {
        owned_is_kept(&postgres);
        let url = postgres.url("held").replace("//postgres@", &format!("//numerator_{role}@"));
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        let done = sqlx::raw_sql(AssertSqlSafe(does.clone())).execute(&pool).await;
        pool.close().await;
        if done.is_ok() {
            let named = refusal(&owned, &verify);
            assert!(named.contains("NOT AS IT WAS"), "{role}: {does}:\n{named}");
        }
        assert!(done.is_ok() || !does.starts_with("begin"), "{role}: {does}: {done:?}");
        owned_is_put_back(&postgres);
    }
    owned.ok(&verify);
}

/// The columns of a row except its place, its number and its batch.
const ROW: &str = "last_value, step, allocation_id, scope, mask, outline, rest, context, \
    document_id, idempotency_key, document_day, digest, issued_at_us, retry_count, path, \
    kind_id, user_name_id, address_name_id";

/// An additional number, in a batch.
fn row(batch: &str) -> String {
    format!(
        "insert into journal (counter_id, first_value, number, batch_id, {ROW}) \
         select counter_id, first_value + 90, number || '9', {batch}, {ROW} from journal \
         where number is not null order by first_value limit 1"
    )
}

/// An additional batch, with the proof of another.
fn batch(id: &str) -> String {
    format!(
        "insert into journal_batch (batch_id, epoch, journaled_at_us, partition_id, node_id, \
         line_count, seal, proof) overriding system value select {id}, epoch, \
         journaled_at_us, partition_id, node_id, 1, seal, proof from journal_batch limit 1"
    )
}

/// Removes numbers, and puts a segment of no file, of a batch, in their place.
fn erase(rows: u32, batch: &str) -> String {
    let more = rows - 1;
    let note = serde_json::json!({
        "file": "journal-0.parquet", "sha256": "ab".repeat(32), "rows": rows, "digest": "00",
    });
    format!(
        "begin; insert into archive_file (name, sha256, row_count, manifest, before_us, \
         last_issued_us, written_by, written_at_us) values ('journal-0.parquet', \
         decode(repeat('ab', 32), 'hex'), {rows}, '', 0, 0, 'u', 0); \
         create temp table one as select * from journal where number is not null \
         order by first_value offset 2 limit 1; \
         select make_room(counter_id, first_value, first_value + {more}) from one; \
         insert into journal (counter_id, first_value, last_value, allocation_id, context, \
         document_day, issued_at_us, kind_id, user_name_id, batch_id) select counter_id, \
         first_value, first_value + {more}, decode(repeat('ab', 16), 'hex'), '{note}', \
         document_day, issued_at_us, kind_id, user_name_id, {batch} from one; commit; \
         update archive_file set ended_at_us = 1"
    )
}

/// What each role does.
fn acts() -> Vec<(&'static str, String)> {
    vec![
        ("writer", row("777")),
        ("writer", format!("{}; {}", batch("-5"), row("-5"))),
        ("writer", format!("{}; {}", batch("90000"), row("90000"))),
        (
            "writer",
            "insert into event (event_id, at_us, kind, detail) overriding system value \
             values (-5, 1, 'act', '{}')"
                .to_owned(),
        ),
        ("writer", "update counter set key = 'x'".to_owned()),
        ("writer", "update series set code = 'x' where code = 'LOAD'".to_owned()),
        ("archiver", erase(4, "777")),
        ("archiver", erase(4, "-5")),
        ("archiver", format!("{}; {}", batch("90000"), erase(4, "90000"))),
        ("archiver", erase(4, "(select max(batch_id) from journal_batch)")),
        // A batch that lacks its rows: they are in the archive.
        ("archiver", erase(1, "(select min(batch_id) from journal_batch where line_count = 4)")),
    ]
}

/// Tables that the roles write to.
const WRITTEN: [&str; 6] =
    ["journal", "journal_batch", "event", "counter", "series", "archive_file"];

fn owned_is_kept(postgres: &Postgres) {
    for table in WRITTEN {
        postgres.sql(&format!(
            "create table if not exists public.kept_{table} as select * from held.{table}"
        ));
    }
}

fn owned_is_put_back(postgres: &Postgres) {
    for table in WRITTEN {
        postgres.sql(&testkit::forge::postgres(&format!(
            "delete from held.{table}; insert into held.{table} overriding system value \
             select * from public.kept_{table}"
        )));
    }
}

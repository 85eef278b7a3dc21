//! `numerator audit` on the command line, together with a service that signs.

use std::time::Duration;

use testkit::eventually::eventually;
use testkit::forge;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::archive::days_ago_text;
use crate::deployment::{Deployment, program_with};
use crate::machine::off_by;

/// Longest wait for a checkpoint.
const LIMIT: Duration = Duration::from_secs(20);

/// A key in the folder of a deployment, which signs every second; its public half.
fn sign(deployment: &mut Deployment) -> String {
    let file = deployment.path("audit.pem");
    let public = deployment.ok(&["audit", "keygen", file.to_str().unwrap()]).trim().to_owned();
    let again = deployment.run(&["audit", "keygen", file.to_str().unwrap()]);
    let refused = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && refused.contains("cannot be made"), "{refused}");
    let extra = format!("[audit]\nkey = \"{}\"\ncheckpoint = \"1s\"\n", file.display());
    deployment.extra.push_str(&extra);
    public
}

fn refusal(deployment: &Deployment, args: &[&str]) -> String {
    let output = deployment.run(args);
    assert!(!output.status.success(), "{args:?} is not refused");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_a_service_signs_what_it_wrote_and_whoever_changes_it_is_found() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let mut deployment = Deployment::new(&postgres.url("sealed"), Some(&redis.url()));
    deployment.apply_load_series();
    let nothing = refusal(&deployment, &["audit", "verify"]);
    assert!(nothing.contains("no key to trust"), "{nothing}");
    let public = sign(&mut deployment);
    let none = refusal(&deployment, &["audit", "verify"]);
    assert!(none.contains("there is no checkpoint"), "{none}");
    let service = deployment.serve();
    let client = testkit::client();
    for document in ["d1", "d2", "d3"] {
        let (status, body) = load::take(&client, &service.url, document).await;
        assert_eq!(status, 201, "{body}");
    }
    let rows = async || {
        let report = deployment.run(&["audit", "verify", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap_or_default();
        if report["rows"] == 3 && report["unbound_batches"] == 0 {
            Ok(())
        } else {
            Err(format!("{report}: {}", service.log()))
        }
    };
    eventually(LIMIT, rows).await;
    // Elsewhere only the public key is known.
    let kept = deployment.ok(&["audit", "checkpoints"]);
    let file = deployment.path("kept.jsonl");
    std::fs::write(&file, &kept).unwrap();
    let with = file.to_str().unwrap();
    let clean = deployment.ok(&["audit", "verify", "--public-key", &public, "--with", with]);
    assert!(clean.contains("all is as it was bound"), "{clean}");
    let changed = forge::postgres("update journal set document_id = 'd9' where document_id = 'd2'");
    postgres.sql(&format!("set search_path = sealed; {changed}"));
    let found = refusal(&deployment, &["audit", "verify"]);
    assert!(found.contains("NOT AS IT WAS: batch"), "{found}");
    assert!(service.terminate());
    // Bad input.
    let wrong = refusal(&deployment, &["audit", "verify", "--public-key", "12"]);
    assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    let other = "0".repeat(64);
    let foreign = refusal(&deployment, &["audit", "verify", "--public-key", &other]);
    assert!(foreign.contains("is signed by a key that is not trusted"), "{foreign}");
    let far = refusal(&deployment, &["audit", "verify", "--from", "9999"]);
    assert!(far.contains("there is no checkpoint 9998"), "{far}");
    std::fs::write(&file, kept + "{}\n").unwrap();
    let torn = refusal(&deployment, &["audit", "verify", "--with", with]);
    assert!(torn.contains("is no checkpoint; keep the lines"), "{torn}");
    let gone = refusal(&deployment, &["audit", "verify", "--with", "nowhere.jsonl"]);
    assert!(gone.contains("--with nowhere.jsonl: cannot be read"), "{gone}");
    let setting = format!("audit.key={}", file.display());
    let no_key = refusal(&deployment, &["--setting", &setting, "status"]);
    assert!(no_key.contains("audit.key") && no_key.contains("keygen"), "{no_key}");
}

/// Goal: the service runs under a role that cannot remove the triggers, and an auditor reads.
/// Method: the shipped file of roles, on a ledger that the owner has set up.
#[tokio::test(flavor = "multi_thread")]
async fn audit_neither_the_writer_nor_the_auditor_can_change_the_record() {
    const ROLES: &str = include_str!("../../deploy/postgres/roles.sql");
    let postgres = Postgres::start();
    let owned = Deployment::new(&postgres.url("roles"), None);
    owned.apply_load_series();
    postgres.sql(
        "create role numerator_writer login; create role numerator_archiver login; \
             create role numerator_auditor login",
    );
    postgres.sql(&format!("set search_path = roles; {ROLES}"));
    let url_of = |role: &str| postgres.url("roles").replace("//postgres@", &format!("//{role}@"));
    let of = |role: &str| Deployment::new(&url_of(role), None);
    // Three days ago: what is young is not archived.
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    std::fs::write(&offset, "-3d").unwrap();
    let early = program_with(&off_by(&offset));
    let mut written = Deployment::of(early, &url_of("numerator_writer"), None);
    written.extra = "[node]\nclock_offset_max = \"10d\"\n".into();
    let public = sign(&mut written);
    let service = written.serve();
    let client = testkit::client();
    let (status, body) = load::take(&client, &service.url, "d1").await;
    assert_eq!(status, 201, "{body}");
    let audited = of("numerator_auditor");
    let look = async || {
        let args = ["audit", "verify", "--public-key", &public, "--json"];
        let report = audited.run(&args);
        let said: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap_or_default();
        let is_whole = said["rows"] == 1 && said["unbound_batches"] == 0;
        if is_whole && report.status.success() { Ok(()) } else { Err(format!("{report:?}")) }
    };
    eventually(LIMIT, look).await;
    let found = audited.ok(&["find", "--document", "d1", "--json"]);
    assert!(found.contains("\"d1\""), "{found}");
    assert!(service.terminate());
    written.assert_clean();
    for role in ["numerator_writer", "numerator_auditor"] {
        let url = postgres.url("roles").replace("//postgres@", &format!("//{role}@"));
        let pool = sqlx::PgPool::connect(&url).await.unwrap();
        for change in [
            "update journal set document_id = 'd9'",
            "delete from journal",
            "truncate journal",
            "update journal_batch set epoch = 9",
            "delete from checkpoint",
            "alter table journal disable trigger user",
            "set session_replication_role = replica",
            "select make_room(1, 1, 1)",
        ] {
            let refused = sqlx::raw_sql(change).execute(&pool).await;
            assert!(refused.is_err(), "{role}: {change}");
        }
    }
    // The rows that a segment replaces may be deleted.
    let mut archiver = of("numerator_archiver");
    archiver.extra.clone_from(&written.extra);
    // A ledger without writes since then does not know that it is old.
    assert!(archiver.serve().terminate());
    let (to, before) = (written.path("archive"), days_ago_text());
    let moved = archiver.ok(&["archive", "--before", &before, "--to", to.to_str().unwrap()]);
    assert_eq!(moved.lines().count(), 1, "{moved}");
    audited.ok(&["verify", "--archive", to.to_str().unwrap()]);
}

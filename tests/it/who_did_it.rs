//! The actions of commands are events that name the user who ran them: by the system, whatever the
//! environment says.

use std::process::Command;

use serde_json::Value;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

use crate::deployment::{Deployment, program_with};

/// The user of this process at this machine, as the system knows them.
fn system_user() -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    format!("{}@{}", said("id", &["-un"]), said("uname", &["-n"]))
}

/// Events of a kind, newest first: the detail of each.
fn events(deployment: &Deployment, kind: &str) -> Vec<Value> {
    let listed = deployment.ok(&["events", "--kind", kind, "--limit", "100", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    listed.into_iter().map(|event| event["detail"].clone()).collect()
}

/// Goal: no command does anything grave without its event, and no variable gives it another's name.
/// Method: all of them run by a user who calls herself maria.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_does_is_told_with_who_ran_it_by_the_system() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let claims = ["USER=maria", "LOGNAME=maria", "SUDO_USER="].map(str::to_owned);
    let deployment =
        Deployment::of(program_with(&claims), &postgres.empty_url("who"), Some(&redis.url()));
    let (system, name) = (system_user(), "(USER=maria)");
    let is_hers = |user: &Value| {
        let user = user.as_str().unwrap_or_default();
        assert!(user.starts_with(&format!("{system} ")) && user.ends_with(name), "{user:?}");
    };
    deployment.ok(&["migrate"]);
    let migrated = events(&deployment, "migrated");
    assert_eq!((migrated.len(), &migrated[0]["from"]), (1, &Value::from(0)), "{migrated:?}");
    is_hers(&migrated[0]["user"]);
    deployment.ok(&["migrate"]);
    assert_eq!(events(&deployment, "migrated").len(), 1, "nothing was done");
    // As an older one.
    postgres.sql(
        "set search_path = who; \
         delete from _sqlx_migrations where version = (select max(version) from _sqlx_migrations)",
    );
    deployment.ok(&["migrate"]);
    deployment.apply_load_series();
    let migrated = events(&deployment, "migrated");
    assert_eq!(migrated.len(), 2, "{migrated:?}");
    for told in [&migrated, &events(&deployment, "series-changed")] {
        is_hers(&told[0]["user"]);
    }
    for command in ["deactivate", "activate"] {
        deployment.ok(&["series", command, "LOAD", "--reason", "test"]);
        is_hers(&events(&deployment, "series-changed")[0]["user"]);
    }
    numbers_name_who_took_them(&deployment);
    deployment.ok(&["token", "create", "desk"]);
    is_hers(&events(&deployment, "token-created")[0]["user"]);
    // A name that is given is shown next to the system's.
    deployment.ok(&["fallback", "on", "--user", "boss"]);
    let wanted = &events(&deployment, "fallback-wanted")[0];
    assert_eq!(wanted["user"], "boss");
    is_hers(&wanted["by"]);
    deployment.ok(&["fallback", "off"]);
    is_hers(&events(&deployment, "fallback-wanted")[0]["user"]);
    deployment.ok(&["drain"]);
    assert_eq!(events(&deployment, "drained"), [Value::Null; 0], "it only looked");
    deployment.ok(&["drain", "--apply"]);
    let drained = &events(&deployment, "drained")[0];
    assert_eq!(drained["drained"], true);
    is_hers(&drained["user"]);
    a_failed_drain_is_told(&deployment, &postgres, is_hers);
    deployment.ok(&["reconcile"]);
    assert_eq!(events(&deployment, "reconciled"), [Value::Null; 0], "it only looked");
    deployment.ok(&["reconcile", "--apply", "--new-epoch", "--partition", "0"]);
    let reconciled = &events(&deployment, "reconciled")[0];
    assert_eq!((&reconciled["new_epoch"], &reconciled["partition"]), (&true.into(), &0.into()));
    is_hers(&reconciled["user"]);
    deployment.ok(&["reconcile", "--rejected", "--apply"]);
    assert_eq!(events(&deployment, "reconciled")[0]["rejected"], true);
    a_restored_ledger_is_told(&deployment, is_hers);
}

/// By the login name of the system; another name stands beside it, as claimed.
fn numbers_name_who_took_them(deployment: &Deployment) {
    let user_of = |arguments: &[&str]| {
        let number = deployment.ok(&[&["next", "LOAD"], arguments].concat());
        let found = deployment.ok(&["find", "--number", number.trim(), "--json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        found["numbers"][0]["user_id"].as_str().unwrap().to_owned()
    };
    let system = system_user();
    let login = system.split('@').next().unwrap();
    assert_eq!(user_of(&[]), format!("{login} (USER=maria)"));
    let claimed = format!("Ann Lee (claimed by {login} (USER=maria))");
    assert_eq!(user_of(&["--user", " Ann Lee "]), claimed);
    for wrong in ["", "  ", "a\tb", &"a".repeat(129)] {
        let refused = deployment.run(&["next", "LOAD", "--user", wrong]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains("--user: must be 1 to 128"), "{said}");
    }
}

fn a_restored_ledger_is_told(deployment: &Deployment, is_hers: impl Fn(&Value)) {
    let restore = ["reconcile", "--ledger-restored", "--hold", "--apply", "--margin", "7"];
    deployment.ok(&restore);
    let reconciled = &events(deployment, "reconciled")[0];
    assert_eq!((&reconciled["margin"], &reconciled["hold"]), (&7.into(), &true.into()));
    let restored = events(deployment, "ledger-restored");
    assert_eq!(restored.len(), 9, "one for each partition");
    for it in &restored {
        assert_eq!((&it["margin"], &it["without_redis"]), (&7.into(), &false.into()));
        is_hers(&it["user"]);
    }
}

/// One that cannot adopt what a process left, as the ledger takes no heartbeats.
fn a_failed_drain_is_told(deployment: &Deployment, postgres: &Postgres, is_hers: impl Fn(&Value)) {
    deployment.serve().kill();
    postgres.sql(
        "set search_path = who; \
         create function numb() returns trigger language plpgsql as 'begin if new.beat <> old.beat \
         then raise exception ''numb''; end if; return new; end'; \
         create trigger numb before update on node for each row execute function numb()",
    );
    let failed = deployment.run(&["drain", "--apply", "--patience", "5s"]);
    assert!(!failed.status.success(), "{failed:?}");
    let drained = &events(deployment, "drained")[0];
    let why = drained["failed"].as_str().unwrap_or_default();
    assert!(drained["drained"] == false && why.contains("heartbeats"), "{drained}");
    is_hers(&drained["user"]);
    postgres.sql("set search_path = who; drop trigger numb on node; drop function numb()");
    deployment.ok(&["drain", "--apply"]);
}

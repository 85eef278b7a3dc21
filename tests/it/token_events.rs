//! A token that is written into the ledger past the program is detected: it has no event, or is not
//! what its last event left.

use std::time::Duration;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use testkit::eventually::eventually;
use testkit::postgres::Postgres;
use testkit::service::Service;

use crate::deployment::Deployment;

const LIMIT: Duration = Duration::from_secs(20);

/// What is written past the program, whose token it is then, and what is wrong with it. `HASH` is
/// one of the engine's.
const ACTS: [(&str, &str, &str); 9] = [
    (
        "insert into token (name, sha256, roles, series, projects, created_by, created_at_us) \
         values ('intruder', HASH, '[\"super-admin\"]', '[]', '[]', 'boss', 1)",
        "intruder",
        "no-event",
    ),
    ("update token set sha256 = HASH where name = 'desk'", "desk", "changed"),
    ("update token set roles = '[\"super-admin\"]' where name = 'desk'", "desk", "changed"),
    (
        "update token set revoked_by = null, revoked_at_us = null where name = 'gone'",
        "gone",
        "revoked",
    ),
    (
        "update token set former_sha256 = HASH, former_until_us = 9000000000000000 \
         where name = 'desk'",
        "desk",
        "changed",
    ),
    ("update token set expires_at_us = null where name = 'brief'", "brief", "changed"),
    ("update token set projects = '[]' where name = 'narrow'", "narrow", "changed"),
    // What was used, and is hidden again.
    (
        "update token set revoked_by = 'boss', revoked_at_us = 5 where name = 'desk'",
        "desk",
        "changed",
    ),
    (
        "insert into token (name, sha256, roles, series, projects, created_by, created_at_us, \
         revoked_by, revoked_at_us) \
         values ('intruder', HASH, '[\"super-admin\"]', '[]', '[]', 'boss', 1, 'boss', 2)",
        "intruder",
        "no-event",
    ),
];

/// What no process can read: a series as it is now, and an event of a token.
const BROKEN: &str = "insert into series_version (series_id, version, definition, saved_by, \
    saved_at_us, reason) select series_id, version + 7, '{', saved_by, saved_at_us, reason \
    from series_version where series_version_id = (select max(series_version_id) \
    from series_version); update series set active_version = active_version + 7 where series_id = \
    (select series_id from series_version where definition = '{'); \
    insert into event (at_us, kind, detail) values (1, 'token-created', 'no json')";

/// A ledger with tokens, on one engine.
struct Ledger<'a> {
    deployment: Deployment,
    postgres: Option<&'a Postgres>,
}

impl Ledger<'_> {
    /// Writes past the program, so that running processes notice it.
    async fn write(&self, sql: &str) {
        let hash = "ab".repeat(32);
        let sql = |hash: &str| {
            // Ids are the engine's own.
            let own = if self.postgres.is_some() { "overriding system value" } else { "" };
            let sql = sql.replace("HASH", hash).replace("OWN", own);
            format!("{sql}; update token_stamp set stamp = stamp + 1")
        };
        match self.postgres {
            Some(postgres) => {
                let sql = sql(&format!("'\\x{hash}'"));
                postgres.sql(&format!("set search_path = told; {sql}"));
            }
            None => {
                let pool = sqlx::SqlitePool::connect(self.deployment.database_url()).await.unwrap();
                let sql = sql(&format!("x'{hash}'"));
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&pool).await.unwrap();
                pool.close().await;
            }
        }
    }

    /// The tokens that `verify` names, each with why.
    fn untold(&self) -> Vec<(String, String)> {
        let (is_clean, report) = self.deployment.verify();
        let found = report["untold_tokens"].as_array().cloned().unwrap_or_default();
        assert_eq!(is_clean, found.is_empty(), "{report}");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        found.iter().map(|token| (text(&token["name"]), text(&token["why"]))).collect()
    }

    /// Each act is reported by the commands, by the log and by a metric, and nothing else is.
    async fn play(mut self) {
        self.deployment.extra = "[auth]\nmode = \"on\"\n".into();
        self.deployment.apply_load_series();
        for arguments in [
            &["create", "desk"][..],
            &["create", "gone"],
            &["create", "brief", "--expires", "2099-12-31"],
            &["create", "narrow", "--role", "project-admin", "--project", "P1"],
            &["rotate", "brief", "--grace", "1h"],
            &["revoke", "gone", "--reason", "test"],
        ] {
            self.deployment.ok(&[&["token"], arguments].concat());
        }
        let service = self.deployment.serve();
        assert_eq!(self.untold(), [], "what the program did is told");
        self.write("create table kept as select * from token").await;
        for (act, name, why) in ACTS {
            self.write(act).await;
            assert_eq!(self.untold(), [(name.to_owned(), why.to_owned())], "{act}");
            let (code, page) = self.deployment.status(&[]);
            assert!(code == 1 && page.contains("1 token that no event tells of"), "{act}: {page}");
            assert!(page.contains(&format!("token {name}: ")), "{act}: {page}");
            eventually(LIMIT, async || {
                let page = metrics(&service).await;
                let (log, told) = (service.log(), page.contains("\nnumerator_tokens_untold 1\n"));
                let is_said = log.matches("A TOKEN THAT NO EVENT TELLS OF").count() > 0;
                if told && is_said && log.contains(name) { Ok(()) } else { Err(log) }
            })
            .await;
            self.write("delete from token; insert into token OWN select * from kept").await;
            assert_eq!(self.untold(), [], "as it was before {act}");
        }
        // Revoking one that was revoked past the program is an event, too.
        self.write(ACTS[7].0).await;
        self.deployment.ok(&["token", "revoke", "desk", "--reason", "revoked past us"]);
        assert_eq!(self.untold(), [], "an event says so now");
        let page = metrics(&service).await;
        assert!(!page.contains("\nnumerator_tokens_untold_total 0\n"), "{page}");
        self.write("delete from token where name <> 'narrow'").await;
        self.write(ACTS[6].0).await;
        assert_eq!(self.untold().len(), 1);
        // Revoking it is an event, and what was reported is over.
        self.deployment.ok(&["token", "revoke", "narrow", "--reason", "written past us"]);
        assert_eq!(self.untold(), []);
        self.nothing_hides_it(&service).await;
        assert!(service.terminate());
    }

    /// What cannot be read hides no token that was not reported, and no process that knows tokens.
    async fn nothing_hides_it(&self, service: &Service) {
        let told = || service.log().matches("A TOKEN THAT NO EVENT TELLS OF").count();
        let before = told();
        self.write(BROKEN).await;
        let warning = "cannot look for changed series";
        eventually(LIMIT, async || {
            if service.log().contains(warning) { Ok(()) } else { Err(service.log()) }
        })
        .await;
        self.write(ACTS[0].0).await;
        eventually(LIMIT, async || {
            let page = metrics(service).await;
            let is_told = told() > before && page.contains("\nnumerator_tokens_untold 1\n");
            if is_told { Ok(()) } else { Err(service.log()) }
        })
        .await;
        assert_eq!(service.log().matches(warning).count(), 1, "it is told once");
        if let Some(postgres) = self.postgres {
            let known = "select count(*) from told.node where left_at_us is null \
                         and tokens_known = (select stamp from told.token_stamp)";
            eventually(LIMIT, async || match postgres.sql(known).as_str() {
                "1" => Ok(()),
                other => Err(format!("{other} know of it")),
            })
            .await;
        }
    }
}

async fn metrics(service: &Service) -> String {
    let page = testkit::get(format!("{}/metrics", service.url)).await.unwrap();
    page.text().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_written_past_the_program_is_seen_on_postgresql() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("told"), None);
    Ledger { deployment, postgres: Some(&postgres) }.play().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_written_past_the_program_is_seen_in_a_file() {
    Ledger { deployment: Deployment::embedded(), postgres: None }.play().await;
}

//! The commands as an operator runs them.

use std::process::Stdio;

use crate::deployment::Deployment;
use testkit::postgres::Postgres;
use testkit::redis::Redis;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn next_works_on_a_fresh_machine_and_prints_the_number_only() {
    let deployment = Deployment::embedded();
    let next = ["next", "SPO", "--date", "2024-01-22"];
    let first = deployment.run(&next);
    assert_eq!(text(&first.stdout), "SPO-20240122-001\n");
    assert!(text(&first.stderr).contains("built-in"), "an empty ledger says what it loaded");
    let second = deployment.run(&next);
    assert_eq!(text(&second.stdout), "SPO-20240122-002\n");
    assert_eq!(text(&second.stderr), "", "nothing to say the second time");
    deployment.assert_clean();
}

#[test]
fn ten_next_at_once_on_one_fresh_sqlite_file_give_ten_numbers() {
    let deployment = Deployment::embedded();
    let children: Vec<_> = (0..10)
        .map(|_| {
            let mut command = deployment.command(&["next", "SPO", "--date", "2024-01-22"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut numbers: Vec<String> = Vec::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        numbers.push(text(&output.stdout).trim().to_owned());
    }
    numbers.sort();
    let expected: Vec<String> = (1..=10).map(|n| format!("SPO-20240122-{n:03}")).collect();
    assert_eq!(numbers, expected);
    deployment.assert_clean();
}

#[test]
fn next_on_a_ledger_with_redis_joins_takes_its_numbers_and_leaves_nothing_behind() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("next"), Some(&redis.url()));
    deployment.apply_examples();
    let next = ["next", "SPO", "--date", "2024-01-22", "--count", "3"];
    assert_eq!(deployment.ok(&next), "SPO-20240122-001\nSPO-20240122-002\nSPO-20240122-003\n");
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-004\n");
    let outboxes = redis.cli(&["--scan", "--pattern", "nbr:*outbox*"]);
    for outbox in outboxes.lines() {
        assert_eq!(redis.cli(&["xlen", outbox]), "0", "{outbox} is drained");
    }
    let (clean, report) = deployment.verify();
    assert!(clean && report["totals"]["journal"] == 2, "{report}");
}

#[test]
fn a_command_without_redis_never_moves_a_partition_that_redis_owns() {
    let (postgres, redis) = (Postgres::start(), Redis::start());
    let with = Deployment::new(&postgres.url("moves"), Some(&redis.url()));
    with.apply_examples();
    with.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let without = Deployment::new(&postgres.url("moves"), None);
    let output = without.run(&["next", "SPO", "--date", "2024-01-22"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("redis.url"), "{}", text(&output.stderr));
    assert_eq!(with.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-002\n");
}

#[test]
fn a_ledger_that_begins_alone_goes_over_to_redis_without_a_gap() {
    let redis = Redis::start();
    let alone = Deployment::embedded();
    assert_eq!(alone.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-001\n");
    let mut joined = Deployment::new(alone.database_url(), Some(&redis.url()));
    joined.extra = "return_after = \"200ms\"\n".into();
    // Services hand a ledger over, once they have seen Redis healthy for long enough.
    let service = joined.serve();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while joined.status(&["--json"]).1.matches("\"owner\": \"redis\"").count() < 8 {
        assert!(std::time::Instant::now() < deadline, "{}", service.log());
    }
    assert!(service.terminate());
    let out = joined.ok(&["next", "SPO", "--date", "2024-01-22", "--json"]);
    assert!(out.contains("SPO-20240122-002") && out.contains("\"redis\""), "{out}");
    joined.assert_clean();
}

/// Goal: a command that only reads series needs nothing but the ledger. Method: a Redis that does
/// not answer would be reported, and a node that joined would have left its row.
#[tokio::test]
async fn commands_that_read_series_neither_join_nor_ask_redis() {
    let deployment = Deployment::sqlite(Some("redis://127.0.0.1:1"));
    deployment.apply_examples();
    for arguments in [
        &["series", "list"][..],
        &["series", "show", "SPO", "--json"],
        &["parse", "SPO", "SPO-20240122-015"],
    ] {
        let output = deployment.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("SPO"), "{}", text(&output.stdout));
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let nodes: i64 =
        sqlx::query_scalar("select count(*) from node").fetch_one(&pool).await.unwrap();
    assert_eq!(nodes, 0, "nobody joined");
}

#[test]
fn a_number_that_stdout_does_not_take_is_named_on_stderr() {
    let deployment = Deployment::embedded();
    for (arguments, taken) in [
        (&["next", "SPO", "--date", "2024-01-22"][..], "SPO-20240122-001 is taken"),
        (&["next", "SPO", "--date", "2024-01-22", "--json"], "SPO-20240122-002 is taken"),
        (
            &["next", "SPO", "--date", "2024-01-22", "--count", "3"],
            "SPO-20240122-003 to SPO-20240122-005 are taken",
        ),
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = deployment.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(taken), "{}", text(&output.stderr));
    }
    deployment.assert_clean();
}

#[test]
fn again_gives_a_numbered_document_another_number() {
    let deployment = Deployment::embedded();
    let next =
        |more: &[&str]| deployment.run(&[&["next", "SPO", "--document", "D"], more].concat());
    let first = next(&["--date", "2024-01-22"]);
    assert_eq!(text(&first.stdout), "SPO-20240122-001\n");
    let refused = next(&["--date", "2024-01-23"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--again"), "{}", text(&refused.stderr));
    let second = next(&["--date", "2024-01-23", "--again"]);
    assert_eq!(text(&second.stdout), "SPO-20240123-001\n");
    let alone = deployment.run(&["next", "SPO", "--again"]);
    assert_eq!(alone.status.code(), Some(2), "again needs a document");
}

#[test]
fn a_port_that_is_taken_is_told_by_its_setting() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = Deployment::embedded().run(&["serve", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains(&address) && error.contains("choose another http.listen"), "{error}");
}

/// Goal: a preview shows what comes after an epoch that is over. Method: the marks of its closing
/// in the tables, and of another one since.
#[tokio::test]
async fn a_preview_goes_on_as_the_epoch_of_its_counter_was_closed() {
    let deployment = Deployment::embedded();
    let preview = || deployment.ok(&["preview", "SPO", "--date", "2024-01-22"]);
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let pool = sqlx::SqlitePool::connect(deployment.database_url()).await.unwrap();
    let over = "update counter set ceiling = 9; insert into closed_epoch \
        (partition_id, epoch, closing, closed_at_us) \
        select partition_id, epoch, 'exact', 0 from partition where epoch > 0; \
        update partition set epoch = epoch + 2, last_ceiling_epoch = epoch + 1 where epoch > 0";
    let at_ceiling = "update closed_epoch set closing = 'ceiling'";
    for (sql, number) in [(over, "SPO-20240122-002\n"), (at_ceiling, "SPO-20240122-010\n")] {
        sqlx::raw_sql(sql).execute(&pool).await.unwrap();
        assert_eq!(preview(), number, "{sql}");
    }
}

#[test]
fn preview_and_parse_take_nothing() {
    let deployment = Deployment::embedded();
    let preview = deployment.ok(&["preview", "SPO", "--date", "2024-01-22"]);
    assert_eq!(preview, "SPO-20240122-001\n");
    let new = deployment.run(&["preview", "SPO", "--date", "2024-01-22"]);
    assert!(text(&new.stderr).contains("the first number of a new counter: "), "a typing error");
    let parsed = deployment.ok(&["parse", "SPO", "SPO-20240122-015", "--json"]);
    let parsed: serde_json::Value = serde_json::from_str(&parsed).unwrap();
    assert!(parsed.to_string().contains("15") && parsed.to_string().contains("2024-01-22"));
    let refused = deployment.run(&["parse", "SPO", "SPO-2024012-015"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = text(&refused.stderr);
    assert!(error.contains("series SPO: character 11: expected a date part"), "{error}");
    // The project is not given, and the text alone shows which series of the type it is of.
    let several = deployment.ok(&["parse", "RFA", "TEAM-RFA-STR-2025-0001"]);
    assert!(several.contains("series LCBP3-RFA") && several.contains("ORG_CODE TEAM"), "{several}");
    let elsewhere = ["parse", "RFA", "TEAM-RFA-STR-2025-0001", "--project", "LCBP3-C2"];
    assert_eq!(deployment.run(&elsewhere).status.code(), Some(1));
    let unserved = deployment.run(&["parse", "NONE", "SPO-20240122-015", "--json"]);
    let line: serde_json::Value = serde_json::from_str(&text(&unserved.stderr)).expect("JSON");
    assert!(line["error"].as_str().unwrap().contains("unknown-type"), "{line}");
    let unset = deployment.run(&["preview", "LETTER", "--project", "P", "--set", "RECIPIENT=B"]);
    let hint = "on the command line it is --set ORIGINATOR=…";
    assert!(text(&unset.stderr).contains(hint), "{}", text(&unset.stderr));
    let other = deployment.run(&["preview", "LETTER", "--project", "P", "--set", "recipient=B"]);
    let error = text(&other.stderr);
    assert!(error.contains("takes") && error.contains("RECIPIENT"), "{error}");
    assert!(!error.contains("--set recipient"), "the mistake is no remedy: {error}");
    let unserved = deployment.run(&["parse", "NONE", "SPO-20240122-015"]);
    assert!(text(&unserved.stderr).contains("unknown-type"), "{}", text(&unserved.stderr));
    let listed = deployment.ok(&["parse", "SPO-20240122-015"]);
    for line in ["series SPO", "type SPO", "date 2024-01-22", "SEQ 15"] {
        assert!(listed.lines().any(|found| found == line), "{line}: {listed}");
    }
    // Letters and memos share a template: the text alone does not show which it is.
    let several = deployment.ok(&["parse", "A-B-0042-2568", "--json"]);
    let several: serde_json::Value = serde_json::from_str(&several).unwrap();
    let types = several.as_array().unwrap().iter().flat_map(|r| r["types"].as_array().unwrap());
    let types: Vec<&str> = types.map(|name| name.as_str().unwrap()).collect();
    assert!(types.contains(&"LETTER") && types.contains(&"MEMO"), "{types:?}");
    let short = deployment.run(&["parse", "SPO-20240122-01"]);
    let error = text(&short.stderr);
    assert!(
        error.contains("series SPO comes nearest: character 14: expected serial SEQ"),
        "{error}"
    );
    let unknown = deployment.run(&["parse", "nobody's"]);
    assert_eq!((unknown.status.code(), text(&unknown.stdout).as_str()), (Some(1), ""));
    assert_eq!(deployment.ok(&["next", "SPO", "--date", "2024-01-22"]), "SPO-20240122-001\n");
}

#[test]
fn a_mistake_in_a_series_file_is_shown_with_line_column_and_reason() {
    let deployment = Deployment::embedded();
    let file = deployment.path("bad.toml");
    let apply = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = deployment.run(&["series", "apply", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{text}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let head = "[[series]]\ncode = \"X\"\nname = \"x\"\nserves = { types = [\"X\"] }\n";
    let serial = "[[series.serials]]\ncounter = [\"type\"]\n";
    let unknown_field = apply(&format!("{head}colour = 1\ntemplate = \"{{SEQ:3}}\"\n{serial}"));
    assert!(
        unknown_field.contains("line 5") && unknown_field.contains("colour"),
        "{unknown_field}"
    );
    let unknown_token = apply(&format!("{head}template = \"A-{{COLOUR}}-{{SEQ:3}}\"\n{serial}"));
    assert!(
        unknown_token.contains("line 5") && unknown_token.contains("COLOUR"),
        "{unknown_token}"
    );
    assert!(unknown_token.contains("column"), "{unknown_token}");
    let deprecated = apply(&format!("{head}template = \"{{ORG}}-{{SEQ:3}}\"\n{serial}"));
    assert!(deprecated.contains("ORIGINATOR"), "{deprecated}");
    assert!(!deployment.ok(&["series", "list"]).contains("\nX"), "nothing was saved");
}

#[test]
fn a_series_whose_numbers_could_be_equal_is_refused_with_two_requests() {
    let deployment = Deployment::embedded();
    let file = deployment.path("yearly.toml");
    let text = "[[series]]\ncode = \"INV\"\nname = \"Invoice\"\ntemplate = \"INV-{SEQ:5}\"\n\
                serves = { types = [\"INV\"] }\nserials = [{ reset = \"year\" }]\n";
    std::fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    for command in ["check", "apply"] {
        let output = deployment.run(&["series", command, path]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        for says in ["date \"2025-01-01\"", "date \"2026-01-01\"", "both get \"INV-00001\""] {
            assert!(error.contains(says), "{command}: {error}");
        }
        assert!(error.trim_end().ends_with("[template-ambiguous]"), "{command}: {error}");
    }
    std::fs::write(&file, text.replace("INV-{SEQ", "INV-{YEAR}-{SEQ")).unwrap();
    assert_eq!(deployment.ok(&["series", "check", path]), "INV proved\n");
    deployment.ok(&["series", "apply", path]);
    let accepted = "policy = \"gapless\"\n\
                    ambiguity_accepted = \"The year stands on the letterhead.\"\ntemplate";
    std::fs::write(&file, text.replace("template", accepted)).unwrap();
    let told = deployment.ok(&["series", "check", path]);
    assert!(told.starts_with("INV accepted: INV (type \"INV\""), "{told}");
    deployment.ok(&["series", "apply", path]);
}

#[test]
fn a_wrong_setting_is_refused_at_start_with_its_name() {
    let mut deployment = Deployment::embedded();
    deployment.extra = "[node]\nttl = \"3 parsecs\"\n".into();
    let output = deployment.run(&["next", "SPO"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("node.ttl"), "{}", text(&output.stderr));
    deployment.extra.clear();
    deployment.ok(&["next", "SPO"]);
    deployment.extra = "partitions = 4\n".into();
    let mut other = Deployment::new(deployment.database_url(), None);
    other.extra = "[allocator]\nflight_max = 0\n".into();
    let output = other.run(&["next", "SPO"]);
    assert!(text(&output.stderr).contains("allocator.flight_max"), "{}", text(&output.stderr));
}

#[test]
fn an_address_beyond_loopback_needs_tokens_and_a_token_opens_the_door() {
    let deployment = Deployment::embedded();
    let output = deployment.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("http.listen"), "{}", text(&output.stderr));
    let made = deployment.ok(&["token", "create", "orders", "--for-settings", "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    assert!(made["token"].is_string() && made["sha256"].is_string(), "{made}");
}

#[test]
fn status_and_series_print_what_there_is() {
    let deployment = Deployment::embedded();
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let status = deployment.ok(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert!(status.to_string().contains("database"), "{status}");
    assert!(deployment.ok(&["status"]).contains("database"));
    let list = deployment.ok(&["series", "list"]);
    for code in ["SPO", "BPO", "IAO", "RFA"] {
        assert!(list.contains(code), "{code} is built in: {list}");
    }
    assert!(deployment.ok(&["series", "show", "SPO"]).contains("{PREFIX}-{DATE:yyyyMMdd}-{SEQ:3}"));
}

/// Goal: a command that succeeded does not end in a warning. Method: Redis is unavailable, which is
/// reported once; what its client says of its own end is not.
#[test]
fn short_commands_do_not_warn_of_the_end_of_their_own_redis_client() {
    let nobody = testkit::process::free_port();
    let deployment = Deployment::sqlite(Some(&format!("redis://127.0.0.1:{nobody}")));
    let status = &["status", "--patience", "1ms"];
    for (command, code) in [(&["next", "SPO"][..], 0), (status, 1), (&["preview", "SPO"], 0)] {
        let output = deployment.run(command);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{command:?}: {told}");
        assert!(told.contains("redis connection"), "{told}");
        assert!(!told.contains("redis client ended"), "{command:?}: {told}");
    }
}

/// Goal: an import leaves no large file next to the ledger. Method: another process has it open.
#[tokio::test]
async fn an_import_gives_back_the_room_of_the_write_ahead_log() {
    let deployment = Deployment::embedded();
    let service = deployment.serve();
    let lines: Vec<String> = (1..=900).map(|value| format!("SPO-20240122-{value:03}")).collect();
    let list = deployment.path("list.txt");
    std::fs::write(&list, lines.join("\n")).unwrap();
    deployment.ok(&["import", &list.display().to_string(), "--apply"]);
    let log = deployment.path(&format!("{}-wal", testkit::service::SQLITE_FILE));
    let bytes = std::fs::metadata(&log).unwrap().len();
    // The event of the import, and the heartbeats of the service since.
    assert!(bytes < 200_000, "{bytes}");
    assert!(service.terminate());
    deployment.assert_clean();
}

//! Counters of another ledger of this program, which has another number of partitions.

use serde_json::Value;
use testkit::postgres::Postgres;

use super::{imported, problems};
use crate::deployment::Deployment;

/// A number with two serials.
const TWO_SERIALS: &str = "\
[[series]]\n\
code = \"TWO\"\n\
name = \"TWO\"\n\
template = \"T-{SEQ:3:A}-{SEQ:4:B}\"\n\
serves = { types = [\"TWO\"] }\n\
[[series.serials]]\n\
name = \"A\"\n\
counter = [\"type\"]\n\
[[series.serials]]\n\
name = \"B\"\n\
counter = [\"type\"]\n\
start = 5\n\
step = 5\n";

/// The old ledger and one with twice as many partitions, with the same series.
struct Move {
    postgres: Postgres,
    old: Deployment,
    new: Deployment,
}

impl Move {
    fn start() -> Self {
        let postgres = Postgres::start();
        let [old, new] = ["old", "new"].map(|schema| Deployment::new(&postgres.url(schema), None));
        let this = Move { postgres, old, new };
        std::fs::write(this.old.path("two.toml"), TWO_SERIALS).unwrap();
        let two = this.old.path("two.toml").display().to_string();
        let load = this.old.series_file("LOAD", "L-{SEQ:8}", "").display().to_string();
        this.old.ok(&["series", "apply", &load, &two]);
        this.renewed(&["series", "apply", &load, &two]);
        this
    }

    /// A command at the new ledger that must succeed.
    fn renewed(&self, arguments: &[&str]) -> String {
        self.new.ok(&[&["--setting", "partitions=16"], arguments].concat())
    }

    /// Moves the counters; returns the result.
    fn counters(&self) -> (Option<i32>, Value, String) {
        let arguments = ["--setting", "partitions=16", "import", self.old.database_url()];
        let further = ["--from-ledger", "--apply", "--json"];
        let output = self.new.run(&[&arguments[..], &further].concat());
        let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), report, error)
    }

    /// The same if nothing may prevent it; the report.
    fn moved(&self) -> Value {
        let (code, report, error) = self.counters();
        assert_eq!(code, Some(0), "{report} {error}");
        report
    }
}

#[test]
fn counters_go_on_above_ranges_and_in_every_serial() {
    let this = Move::start();
    this.old.ok(&["next", "LOAD"]);
    this.old.ok(&["next", "LOAD", "--count", "50"]);
    assert_eq!(this.old.ok(&["next", "TWO"]), "T-001-0005\n");
    assert_eq!(this.old.ok(&["next", "TWO"]), "T-002-0010\n");
    let report = this.moved();
    assert_eq!(report["counters_total"], 3, "{report}");
    assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000052\n");
    assert_eq!(this.renewed(&["next", "TWO"]), "T-003-0015\n");
    // Again it changes nothing.
    this.moved();
    assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000053\n");
}

/// Goal: what the old ledger cannot rule out is skipped. Method: the marks of three stories in its
/// tables: an epoch that was never closed; one that was closed at the ceiling after the counter's
/// own, as a restored ledger is released; a process retired without a whole outbox.
#[test]
fn a_counter_that_is_not_accounted_for_goes_on_above_its_ceiling() {
    let unclosed = "update old.partition set epoch = epoch + 1";
    let released = "insert into old.closed_epoch select partition_id, epoch, 'exact', 0 \
        from old.partition on conflict do nothing; \
        update old.partition set epoch = epoch + 3, last_ceiling_epoch = epoch + 2, \
        lifted_epoch = epoch + 2";
    let retired = "insert into old.participant \
        select partition_id, epoch, 'gone', 'joined', 0 from old.partition";
    for story in [unclosed, released, retired] {
        let this = Move::start();
        this.old.ok(&["next", "LOAD"]);
        this.postgres.sql(&format!("update old.counter set ceiling = 700; {story}"));
        this.moved();
        assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000701\n", "{story}");
    }
}

#[test]
fn an_epoch_that_was_closed_exact_is_accounted_for() {
    let later = "update old.partition set epoch = epoch + 1";
    let later_at_ceiling = "update old.partition set epoch = epoch + 2, \
        last_ceiling_epoch = epoch + 1";
    for since in [later, later_at_ceiling] {
        let this = Move::start();
        this.old.ok(&["next", "LOAD"]);
        this.postgres.sql(&format!(
            "update old.counter set ceiling = 700; insert into old.closed_epoch select \
             partition_id, epoch, 'exact', 0 from old.partition on conflict do nothing; {since}",
        ));
        this.moved();
        assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000002\n", "{since}");
    }
}

#[test]
fn a_ledger_that_is_held_is_not_moved() {
    let this = Move::start();
    this.old.ok(&["next", "LOAD"]);
    this.postgres.sql("update old.partition set state = 'held' where partition_id = 3");
    let (code, _, error) = this.counters();
    assert!(code == Some(1) && error.contains("it is held"), "{error}");
}

#[test]
fn a_ledger_whose_processes_run_is_not_moved() {
    let this = Move::start();
    let service = this.old.serve();
    this.old.ok(&["next", "LOAD"]);
    let (code, _, error) = this.counters();
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("1 of its processes have not left"), "{error}");
    assert!(service.terminate());
    this.moved();
    assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000002\n");
}

/// Goal: the remedy in the refusal also works without Redis. Method: the only process is killed,
/// and the command that it names is run.
#[test]
fn a_ledger_whose_only_process_was_killed_is_moved_once_it_is_drained() {
    let this = Move::start();
    let mut service = this.old.serve();
    this.old.ok(&["next", "LOAD"]);
    service.kill();
    let (code, _, error) = this.counters();
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("`numerator drain --apply` for those that died"), "{error}");
    let drain = ["--setting", "node.ttl=1s", "drain", "--apply", "--patience", "60s"];
    let drained = this.old.ok(&drain);
    assert!(drained.contains("silent nodes 1, not adopted 0"), "{drained}");
    this.moved();
    assert_eq!(this.renewed(&["next", "LOAD"]), "L-00000002\n");
}

#[test]
fn a_series_that_is_another_one_here_is_a_problem() {
    let this = Move::start();
    this.old.ok(&["next", "LOAD"]);
    this.old.ok(&["next", "TWO"]);
    let wider = this.new.series_file("LOAD", "L-{SEQ:9}", "").display().to_string();
    this.renewed(&["series", "apply", &wider]);
    let (code, report, error) = this.counters();
    assert_eq!(code, Some(1), "{report} {error}");
    let expected = [("counter row 1".to_owned(), "not-mapped".to_owned())];
    assert_eq!(problems(&report), expected, "{report}");
    // All or nothing.
    assert_eq!(this.renewed(&["next", "TWO"]), "T-001-0005\n");
}

#[test]
fn a_ledger_in_a_file_moves_too() {
    let [old, new] = [Deployment::embedded(), Deployment::embedded()];
    let load = old.series_file("LOAD", "L-{SEQ:8}", "");
    old.apply(std::slice::from_ref(&load));
    new.apply(&[load]);
    old.ok(&["next", "LOAD", "--count", "30"]);
    let report = imported(&new, &[old.database_url(), "--from-ledger", "--apply"]);
    assert_eq!(report["applied"], true, "{report}");
    assert_eq!(new.ok(&["next", "LOAD"]), "L-00000031\n");
    let (clean, verified) = new.verify();
    assert!(clean, "{verified}");
}

//! What must be the same if counters of another ledger continue: what their keys name.

use std::sync::Arc;

use numerator::clock::SystemClock;
use numerator::engine::allocator::Catalog;
use numerator::features::import::{Choice, Import, apply_ledger, plan_ledger};
use numerator::ledger::{LedgerSettings, open};
use serde_json::Value;
use testkit::postgres::Postgres;

use super::{file, import, imported, problems};
use crate::deployment::Deployment;

/// Counts for each organization, by its id, and shows its code.
const BY_ORGANIZATION: &str = "\
[[series]]\n\
code = \"ORG\"\n\
name = \"ORG\"\n\
template = \"{ORIGINATOR}-{SEQ:4}\"\n\
serves = { types = [\"ORG\"] }\n\
serials = [{ counter = [\"ORIGINATOR\"] }]\n\
[series.variables]\n\
ORIGINATOR = { reference = \"organizations\", required = true, excluded = \"-\", width_max = 9 }\n";

/// A ledger from which numbers are moved, and the one that receives them.
struct Pair {
    old: Deployment,
    new: Deployment,
    /// The server of both, if there is one.
    _postgres: Option<Postgres>,
}

impl Pair {
    /// One pair on each engine.
    fn all() -> [Self; 2] {
        let postgres = Postgres::start();
        let [old, new] = ["old", "new"].map(|schema| Deployment::new(&postgres.url(schema), None));
        let on_postgres = Pair { old, new, _postgres: Some(postgres) };
        let [old, new] = [Deployment::embedded(), Deployment::embedded()];
        [on_postgres, Pair { old, new, _postgres: None }]
    }

    /// Applies a series file in both.
    fn apply(&self, text: &str) {
        for deployment in [&self.old, &self.new] {
            deployment.ok(&["series", "apply", &file(deployment, "series.toml", text)]);
        }
    }

    /// Moves the counters; exit code, report and stderr.
    fn moved(&self) -> (i32, Value, String) {
        import(&self.new, &[self.old.database_url(), "--from-ledger", "--apply"])
    }
}

/// Gives organizations codes, one after the other.
fn organizations(deployment: &Deployment, rows: &[(u32, &str)]) {
    for (id, code) in rows {
        let rows = file(deployment, "rows.csv", &format!("id,code\n{id},{code}\n"));
        deployment.ok(&["reference", "import", &rows, "--table", "organizations", "--apply"]);
    }
}

fn next(deployment: &Deployment, organization: &str) -> String {
    let originator = format!("ORIGINATOR={organization}");
    deployment.ok(&["next", "ORG", "--set", &originator]).trim().to_owned()
}

/// The report of counters that do not move because of the codes of both organizations.
fn refused_for_both(pair: &Pair) -> Value {
    let (code, report, error) = pair.moved();
    assert_eq!(code, 1, "{report} {error}");
    let expected = ["organizations AAA", "organizations BBB"]
        .map(|place| (place.to_owned(), "not-mapped".to_owned()));
    assert_eq!(problems(&report), expected, "{report}");
    report
}

#[test]
fn counters_do_not_move_to_other_rows_of_reference_data() {
    for pair in Pair::all() {
        organizations(&pair.old, &[(1, "AAA"), (2, "BBB")]);
        organizations(&pair.new, &[(2, "AAA"), (1, "BBB")]);
        pair.apply(BY_ORGANIZATION);
        assert_eq!(next(&pair.old, "AAA"), "AAA-0001");
        let report = refused_for_both(&pair);
        let detail = report["problems"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("id 1 there and id 2 here"), "{detail}");
        assert_eq!(next(&pair.new, "BBB"), "BBB-0001", "all or nothing");
    }
}

/// Goal: a code that a row had once cannot go to another row in the new ledger, whose counter would
/// show its numbers again. Method: a row that was renamed, and one that does not exist.
#[test]
fn counters_do_not_move_without_the_former_codes_of_their_rows() {
    for pair in Pair::all() {
        organizations(&pair.old, &[(1, "AAA"), (1, "CCC"), (2, "BBB")]);
        organizations(&pair.new, &[(1, "CCC")]);
        pair.apply(BY_ORGANIZATION);
        assert_eq!(next(&pair.old, "CCC"), "CCC-0001");
        let report = refused_for_both(&pair);
        let detail = |index: usize| report["problems"][index]["detail"].as_str().unwrap();
        assert!(detail(0).contains("import it as AAA, and then again as CCC"), "{report}");
        assert!(detail(1).contains("import the row id 2, code BBB"), "{report}");
        // The remedy, word by word.
        organizations(&pair.new, &[(1, "AAA"), (1, "CCC"), (2, "BBB")]);
        imported(&pair.new, &[pair.old.database_url(), "--from-ledger", "--apply"]);
        assert_eq!(next(&pair.new, "CCC"), "CCC-0002");
        assert_eq!(next(&pair.new, "AAA"), "CCC-0003", "it is the same organization");
        assert!(pair.new.verify().0);
    }
}

/// A series `MARK` with other text, serials and settings.
fn mark(template: &str, serials: &str) -> String {
    format!(
        "[[series]]\ncode = \"MARK\"\nname = \"MARK\"\ntemplate = \"{template}\"\n\
         serves = {{ types = [\"MARK\"] }}\n{serials}"
    )
}

/// Two serials, the second in steps of five.
const A_AND_B: &str = "\
[[series.serials]]\n\
name = \"A\"\n\
[[series.serials]]\n\
name = \"B\"\n\
start = 5\n\
step = 5\n";

#[test]
fn a_serial_that_was_dropped_goes_on_where_a_later_version_has_it_again() {
    let without = mark("U-{SEQ:3:A}", "serials = [{ name = \"A\" }]\n");
    for pair in Pair::all() {
        let apply = |deployment: &Deployment, text: &str| {
            deployment.ok(&["series", "apply", &file(deployment, "mark.toml", text)]);
        };
        apply(&pair.old, &mark("T-{SEQ:3:A}-{SEQ:4:B}", A_AND_B));
        for number in ["T-001-0005\n", "T-002-0010\n"] {
            assert_eq!(pair.old.ok(&["next", "MARK"]), number);
        }
        pair.apply(&without);
        assert_eq!(pair.old.ok(&["next", "MARK"]), "U-003\n");
        let (code, report, error) = pair.moved();
        assert_eq!((code, &report["counters_total"]), (0, &2.into()), "{report} {error}");
        assert_eq!(pair.new.ok(&["next", "MARK"]), "U-004\n");
        // The old one would have continued in the same way.
        apply(&pair.new, &mark("V-{SEQ:3:A}-{SEQ:4:B}", A_AND_B));
        assert_eq!(pair.new.ok(&["next", "MARK"]), "V-005-0015\n");
        assert!(pair.new.verify().0);
    }
}

/// Goal: what an earlier version has issued stays out of reach in the new ledger too. Method: a
/// series whose text was changed; the new ledger knows its last version alone, and is asked for the
/// first one's text again, with counters that restart each year.
#[test]
fn the_versions_that_numbers_were_issued_under_come_along() {
    for pair in Pair::all() {
        let apply = |deployment: &Deployment, text: &str| {
            let file = file(deployment, "mark.toml", text);
            deployment.run(&["series", "apply", &file])
        };
        let never = "serials = [{ counter = [\"type\"] }]\n";
        apply(&pair.old, &mark("L-{SEQ:8}", never));
        assert_eq!(pair.old.ok(&["next", "MARK"]), "L-00000001\n");
        pair.apply(&mark("M-{SEQ:8}", never));
        let listed = || {
            let listed = pair.new.ok(&["series", "versions", "MARK", "--json"]);
            serde_json::from_str::<Value>(&listed).unwrap().as_array().map(Vec::len)
        };
        // Again it brings nothing.
        for _ in 0..2 {
            let (code, report, error) = pair.moved();
            assert_eq!(code, 0, "{report} {error}");
            assert_eq!(listed(), Some(3), "its own, the earlier one, its own again");
        }
        assert_eq!(pair.new.ok(&["next", "MARK"]), "M-00000002\n");
        let yearly = "serials = [{ counter = [\"type\"], reset = \"year\" }]\n\
            ambiguity_accepted = \"The books of each year stand apart.\"\n";
        for deployment in [&pair.old, &pair.new] {
            let output = apply(deployment, &mark("L-{SEQ:8}", yearly));
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success() && error.contains("as of version"), "{error}");
        }
        assert!(pair.new.verify().0);
    }
}

/// Goal: what is moved is all that was issued. Method: a number is taken there between the read and
/// the move.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_taken_there_after_the_look_stops_the_move() {
    for pair in Pair::all() {
        pair.apply(&mark("M-{SEQ:4}", "serials = [{ counter = [\"type\"] }]\n"));
        pair.old.ok(&["next", "MARK"]);
        let settings = LedgerSettings::default();
        let ledger = open(pair.new.database_url(), settings, Arc::new(SystemClock)).await.unwrap();
        let catalog = Catalog::load(&ledger).await.unwrap();
        let choice = Choice { user_id: "me".into(), ..Choice::default() };
        let (now, progress) = (jiff::Timestamp::UNIX_EPOCH, &|_| {});
        let (ledger, catalog, choice) = (&ledger, &catalog, &choice);
        let import = Import { ledger, catalog, choice, now, progress };
        let old = pair.old.database_url();
        let early = plan_ledger(&import, old).await.unwrap();
        assert_eq!(pair.old.ok(&["next", "MARK"]), "M-0002\n");
        let refused = apply_ledger(&import, old, &early).await.expect_err("too early").to_string();
        assert!(refused.contains("somebody has taken numbers there"), "{refused}");
        assert_eq!(ledger.counters().page(0, 10).await.unwrap(), [], "nothing is imported");
        let plan = plan_ledger(&import, old).await.unwrap();
        apply_ledger(&import, old, &plan).await.unwrap();
        assert_eq!(pair.new.ok(&["next", "MARK"]), "M-0003\n");
    }
}

/// Goal: no series here issues a text that is kept as written there. Method: counters that do not
/// move before it is kept here too.
#[test]
fn counters_move_once_numbers_as_written_are_registered_here() {
    for pair in Pair::all() {
        pair.apply(
            "[[series]]\ncode = \"HAND\"\nname = \"HAND\"\ntemplate = \"HAND-{SEQ:4}\"\n\
             by_hand = true\nserves = { types = [\"HAND\"] }\n\
             serials = [{ counter = [\"type\"] }]\n",
        );
        let reason = "found in the book of the old shop";
        let keep = ["register", "HAND", "old/17", "--as-written", "--reason", reason];
        assert_eq!(pair.old.ok(&["next", "HAND"]).trim(), "HAND-0001");
        pair.old.ok(&keep);
        let (code, report, error) = pair.moved();
        assert_eq!(code, 1, "{report} {error}");
        let place = "series HAND, numbers as written".to_owned();
        assert_eq!(problems(&report), [(place, "not-mapped".to_owned())], "{report}");
        let detail = report["problems"][0]["detail"].as_str().unwrap();
        assert!(detail.starts_with("1 are kept there and 0 here"), "{detail}");
        // The remedy.
        pair.new.ok(&keep);
        imported(&pair.new, &[pair.old.database_url(), "--from-ledger", "--apply"]);
        assert_eq!(pair.new.ok(&["next", "HAND"]).trim(), "HAND-0002");
        assert!(pair.new.verify().0);
    }
}

//! How each list query is planned, on both engines: none reads the whole journal. For tests alone.

use std::sync::{Arc, Mutex};

use crate::dialect::Conn;
use crate::query::SqlQuery;

mod lists;

/// Plans of the statements that were run while this was in force.
pub(crate) struct Explained {
    /// What asks an engine for a plan, and the column in which the plan stands.
    ask: (&'static str, &'static str),
    /// Each statement with the lines of its plan.
    plans: Mutex<Vec<(String, Vec<String>)>>,
}

tokio::task_local! {
    static EXPLAINED: Arc<Explained>;
}

/// Notes how a statement is planned, with the values that are bound to it.
pub(crate) async fn note(conn: &mut Conn, statement: &SqlQuery<'_>) {
    let Ok(explained) = EXPLAINED.try_with(Arc::clone) else { return };
    let (ask, column) = explained.ask;
    let rows = conn.all(statement.behind(ask)).await.expect("a plan");
    let lines = rows.iter().map(|row| row.try_get(column).expect("a line of the plan")).collect();
    let plan = (statement.text().to_owned(), lines);
    explained.plans.lock().expect("no holder panics").push(plan);
}

impl Explained {
    /// Of an engine.
    fn of(engine: &str) -> Arc<Self> {
        let ask = match engine {
            "sqlite" => ("explain query plan ", "detail"),
            _ => ("explain ", "QUERY PLAN"),
        };
        Arc::new(Explained { ask, plans: Mutex::default() })
    }

    /// The plans that read the whole journal, each behind its statement. Empties the list.
    fn whole_journals(&self) -> Vec<String> {
        let plans = std::mem::take(&mut *self.plans.lock().expect("no holder panics"));
        let whole = plans.into_iter().filter(|(text, plan)| {
            let mut aliases = aliases(text);
            // What a part of the statement has found, under the name of the journal.
            aliases.retain(|alias| !plan.iter().any(|line| is_part(line, alias)));
            plan.iter().any(|line| is_whole(line, &aliases))
        });
        whole.map(|(text, plan)| format!("{text}\n{}", plan.join("\n"))).collect()
    }

    /// How many statements were explained and not asked for yet.
    fn count(&self) -> usize {
        self.plans.lock().expect("no holder panics").len()
    }
}

/// What a statement calls the journal; the view of its rows calls it `j`.
fn aliases(text: &str) -> Vec<&str> {
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let pairs = words.windows(2).filter(|pair| matches!(pair[0], "journal" | "journal_row"));
    pairs.map(|pair| pair[1]).chain(["journal", "j"]).collect()
}

/// Whether a line of a plan of SQLite says that a name is that of a part of the statement.
fn is_part(line: &str, name: &str) -> bool {
    let part = line.strip_prefix("CO-ROUTINE ").or_else(|| line.strip_prefix("MATERIALIZE "));
    part == Some(name)
}

/// Whether a line of a plan reads the journal from its first row to its last, by no index.
fn is_whole(line: &str, aliases: &[&str]) -> bool {
    let scanned = line.strip_prefix("SCAN ");
    let on_sqlite = scanned.is_some_and(|name| aliases.contains(&name));
    on_sqlite || line.contains("Seq Scan on journal ")
}

#[test]
fn a_plan_that_reads_the_whole_journal_is_known() {
    let text = "select 1 from journal i join journal_row r on r.counter_id = i.counter_id";
    let is_found = |line| is_whole(line, &aliases(text));
    for line in ["SCAN i", "SCAN r", "SCAN j", "  ->  Parallel Seq Scan on journal i  (cost=0.00"] {
        assert!(is_found(line), "{line}");
    }
    assert!(is_part("CO-ROUTINE j", "j") && is_part("MATERIALIZE j", "j"));
    assert!(!is_part("CO-ROUTINE jj", "j") && !is_part("SCAN j", "j"));
    for line in [
        "SCAN i USING INDEX journal_issued",
        "SEARCH i USING PRIMARY KEY (counter_id=?)",
        "SCAN c",
        "Seq Scan on journal_batch b  (cost=0.00",
        "Index Scan using journal_value_once on journal j  (cost=0.29",
    ] {
        assert!(!is_found(line), "{line}");
    }
}

//! Every single change of every column of every row: named by the comparison with the checkpoints,
//! or on the list of `docs/record.md`. Tables and columns are those of the schema, so that a new
//! one must be on either side. The trace of a change does not depend on who made it: all are made
//! by a user whom only the conditions of the tables stop.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, PgPool, SqlitePool};

use super::forged::{Forge, KEPT};
use super::shelf::{BEFORE_US, Shelf};
use super::world::{World, entry, spec, with};

/// Tables from which rows are also removed, and into which rows are put with ids below 1.
const BOUND: [(&str, &str); 6] = [
    ("journal_batch", "batch_id"),
    ("event", "event_id"),
    ("series_version", "series_version_id"),
    ("counter", "counter_id"),
    ("series", "series_id"),
    ("life", "life_id"),
];

/// Ids that PostgreSQL lets only a user change who has altered their columns.
const IDENTITIES: [(&str, &str); 8] = [
    ("counter", "counter_id"),
    ("event", "event_id"),
    ("journal_batch", "batch_id"),
    ("journal_kind", "kind_id"),
    ("journal_name", "name_id"),
    ("life", "life_id"),
    ("series", "series_id"),
    ("series_version", "series_version_id"),
];

/// What the page lists as not compared: columns by table; none means all of them.
fn listed() -> BTreeMap<String, BTreeSet<String>> {
    const PAGE: &str = include_str!("../../../docs/record.md");
    let (_, list) = PAGE.split_once("### What is not compared").expect("the heading");
    let list = list.split("\n#").next().unwrap_or_default();
    let marked = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut all = BTreeMap::new();
    for line in list.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = line.trim_matches('|').split('|');
        let (tables, columns) =
            (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        for table in marked(tables) {
            all.insert(table, marked(columns).into_iter().collect());
        }
    }
    assert!(!all.is_empty(), "the page lists nothing");
    all
}

/// Columns with their types, by table.
type Columns = BTreeMap<String, Vec<(String, String)>>;

async fn columns(world: &World) -> Columns {
    let rows: Vec<(String, String, String)> = if world.ledger.engine() == "sqlite" {
        let pool = SqlitePool::connect(&world.url).await.unwrap();
        let all = "select t.name, c.name, lower(c.type) from sqlite_schema t \
                   join pragma_table_info(t.name) c where t.type = 'table' \
                   and t.name not like 'sqlite_%'";
        sqlx::query_as(all).fetch_all(&pool).await.unwrap()
    } else {
        let pool = PgPool::connect(&world.url).await.unwrap();
        let all = "select c.table_name::text, c.column_name::text, c.data_type::text \
                   from information_schema.columns c join information_schema.tables t \
                   using (table_schema, table_name) where table_schema = current_schema() \
                   and t.table_type = 'BASE TABLE' order by c.ordinal_position";
        sqlx::query_as(all).fetch_all(&pool).await.unwrap()
    };
    let mut all = Columns::new();
    for (table, column, kind) in rows {
        if table != "_sqlx_migrations" && !table.starts_with(KEPT) {
            all.entry(table).or_default().push((column, kind));
        }
    }
    all
}

async fn count(world: &World, table: &str) -> i64 {
    let count = AssertSqlSafe(format!("select count(*) from {table}"));
    if world.ledger.engine() == "sqlite" {
        let pool = SqlitePool::connect(&world.url).await.unwrap();
        sqlx::query_scalar(count).fetch_one(&pool).await.unwrap()
    } else {
        let pool = PgPool::connect(&world.url).await.unwrap();
        sqlx::query_scalar(count).fetch_one(&pool).await.unwrap()
    }
}

/// Other values for a column.
fn others(column: &str, kind: &str) -> Vec<String> {
    let other = match kind {
        "bigint" | "integer" if column == "active" => "1 - active".to_owned(),
        "bigint" | "integer" => format!("coalesce({column}, 0) + 1000"),
        "date" => format!("coalesce({column}, '2020-01-01') + 1"),
        "boolean" => format!("not coalesce({column}, false)"),
        "bytea" => format!("set_byte(coalesce({column}, '\\x00'), 0, 255)"),
        "blob" => format!("cast(substr({column}, 1, length({column}) - 1) || 'x' as blob)"),
        _ => format!("coalesce({column}, '') || 'x'"),
    };
    let longer = match kind {
        "bytea" => Some(format!("coalesce({column}, '') || '\\x01'")),
        "blob" => Some(format!("cast(coalesce({column}, '') || 'x' as blob)")),
        _ if column == "path" => Some("'imported'".to_owned()),
        // Above the last value is refused by the table.
        _ if column == "first_value" => Some("first_value - 1".to_owned()),
        _ => (column == "act").then(|| "'cancelled'".to_owned()),
    };
    [other, "null".to_owned()].into_iter().chain(longer).collect()
}

/// The statement that changes a row, by its place, if that makes a difference.
fn change(is_sqlite: bool, table: &str, row: i64, (column, other): (&str, &str)) -> String {
    let (id, differs) = if is_sqlite {
        ("rowid", format!("{column} is not ({other})"))
    } else {
        ("ctid", format!("{column} is distinct from ({other})"))
    };
    format!(
        "update {table} set {column} = {other} where {differs} and {id} = \
         (select {id} from {table} order by {id} limit 1 offset {row})"
    )
}

/// A ledger of everything: batches of each kind, one of them partly in an archive, a series, an
/// event, a number that a checkpoint binds together with those of others, one that was corrected,
/// voided and replaced.
async fn everything(world: World) -> Shelf {
    let shelf = Shelf::of(world).await;
    let kit = &shelf.kit;
    kit.name_series().await;
    kit.world.sql("insert into event (at_us, kind, detail) values (1, 'act', '{}')").await;
    let (id, ..) = kit.world.seed(kit.at, &spec("part")).await;
    let young = with(entry(kit.at, id, 2), |record| record.issued_at_us = BEFORE_US);
    kit.world.append(&[entry(kit.at, id, 1), young]).await;
    let (id, ..) = kit.world.seed(kit.at, &spec("void")).await;
    let void = with(entry(kit.at, id, 1), |record| record.issued_at_us = BEFORE_US);
    kit.world.append(std::slice::from_ref(&void)).await;
    super::lives::live_it_all(&kit.world, &void).await;
    kit.checkpoint().await;
    kit.world.clock.set(BEFORE_US + 1);
    kit.write("l").await;
    shelf.archive().await;
    kit.checkpoint().await;
    shelf
}

pub(super) async fn each_change_of_each_column_is_named_or_listed_by_the_page(world: World) {
    Box::pin(try_each_change(world)).await;
}

async fn try_each_change(world: World) {
    let shelf = everything(world).await;
    let (kit, listed) = (&shelf.kit, listed());
    let is_sqlite = kit.world.ledger.engine() == "sqlite";
    let all = columns(&kit.world).await;
    let tables: Vec<String> = all
        .keys()
        .filter(|table| listed.get(*table).is_none_or(|columns| !columns.is_empty()))
        .cloned()
        .collect();
    let forge = Forge::keep(&kit.world, &tables).await;
    let kept = kit.lines().await;
    if !is_sqlite {
        for (table, key) in IDENTITIES {
            let by_default = format!("alter table {table} alter {key} set generated by default");
            forge.run(&by_default).await.unwrap();
        }
    }
    let report = kit.report_with(Some(&kept)).await;
    assert!(report.is_clean() && report.rows_archived == 6, "{report}");
    assert_eq!(report.rows_beside_archive, 1, "{report}");
    let (wrong, untried) = (String::new(), Vec::new());
    let mut trial = Trial { shelf: &shelf, forge, kept, is_sqlite, wrong, tried: 0, untried };
    for table in &tables {
        let rows = count(&kit.world, table).await;
        assert!(rows > 0, "{table} has no row to change");
        for column in &all[table] {
            let is_listed = listed.get(table).is_some_and(|columns| columns.contains(&column.0));
            trial.change(table, rows, column, is_listed).await;
        }
        trial.remove(table, rows).await;
        if let Some((_, key)) = BOUND.iter().find(|(bound, _)| bound == table) {
            trial.add(table, key).await;
        }
    }
    let Trial { wrong, tried, untried, .. } = trial;
    assert!(wrong.is_empty(), "of {tried}:\n{wrong}");
    assert!(tried > 300 && untried.is_empty(), "{tried} changes were tried, none of {untried:?}");
    for table in listed.keys() {
        let is_of_sqlite = !is_sqlite && table == "making_room";
        assert!(all.contains_key(table) || is_of_sqlite, "{table} is listed, and there is none");
    }
}

/// Changes that are tried, each alone.
struct Trial<'a> {
    shelf: &'a Shelf,
    forge: Forge,
    kept: String,
    is_sqlite: bool,
    wrong: String,
    tried: u32,
    /// Columns of which no change could be made.
    untried: Vec<String>,
}

impl Trial<'_> {
    /// Whether nothing is named of the change that was made; it is taken back.
    async fn is_unseen(&self, table: &str) -> bool {
        let report = self.shelf.kit.report_with(Some(&self.kept)).await;
        let mut is_clean = report.is_clean();
        // What stayed next to archived rows is compared with the files; the page says so.
        if is_clean && report.rows_beside_archive > 0 && table.starts_with("journal") {
            is_clean = self.shelf.report(true).await.is_clean();
        }
        self.forge.put_rows_back(&[table.to_owned()]).await;
        is_clean
    }

    /// Gives a column another value, row by row.
    async fn change(
        &mut self,
        table: &str,
        rows: i64,
        (column, kind): &(String, String),
        is_listed: bool,
    ) {
        let (mut unseen, tried_before) = (0, self.tried);
        for row in 0..rows {
            for other in others(column, kind) {
                let sql = change(self.is_sqlite, table, row, (column, &other));
                // A condition of the table refuses it, for every user.
                if self.forge.run(&sql).await.is_err() || self.forge.is_unchanged(table).await {
                    continue;
                }
                self.tried += 1;
                let is_unseen = self.is_unseen(table).await;
                unseen += u32::from(is_unseen);
                if is_unseen && !is_listed {
                    let _ = writeln!(self.wrong, "{table}.{column}: row {row} = {other}: unseen");
                }
            }
        }
        if !is_listed && self.tried == tried_before {
            self.untried.push(format!("{table}.{column}"));
        }
        if is_listed && self.tried > tried_before && unseen == 0 {
            let _ = writeln!(self.wrong, "{table}.{column}: listed, and never unseen");
        }
    }

    /// Removes each row once.
    async fn remove(&mut self, table: &str, rows: i64) {
        let id = if self.is_sqlite { "rowid" } else { "ctid" };
        for row in 0..rows {
            let gone = format!(
                "delete from {table} where {id} = \
                 (select {id} from {table} order by {id} limit 1 offset {row})"
            );
            self.forge.run(&gone).await.unwrap();
            if self.is_unseen(table).await {
                let _ = writeln!(self.wrong, "{table}: row {row} is gone: unseen");
            }
        }
    }

    /// Puts a row in with an id below 1.
    async fn add(&mut self, table: &str, key: &str) {
        let apart = match table {
            "series" => ", code = 'T'",
            "counter" => ", key = 'x'",
            "series_version" => ", version = 99",
            "life" => ", first_value = 77, last_value = 77",
            _ => "",
        };
        let own_ids = self.shelf.kit.own_ids();
        let added = format!(
            "create table kept_added as select * from {table} limit 1; \
             update kept_added set {key} = -5{apart}; \
             insert into {table} {own_ids} select * from kept_added; drop table kept_added"
        );
        self.forge.run(&added).await.unwrap();
        if self.is_unseen(table).await {
            let _ = writeln!(self.wrong, "{table}: a row with an id below 1: unseen");
        }
    }
}

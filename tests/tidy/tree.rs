//! Rules for the tree as a whole: migrations, unfinished work, paths of one machine.

use std::collections::BTreeSet;

use crate::source::{Source, line_of, words};

/// Migrations that one engine has and another has not.
pub(crate) fn missing_migrations(paths: &[String]) -> Vec<String> {
    let split = |path: &str| {
        let (engine, name) = path.strip_prefix("migrations/")?.split_once('/')?;
        Some((engine.to_owned(), name.to_owned()))
    };
    let all: BTreeSet<_> = paths.iter().filter_map(|path| split(path)).collect();
    let engines: BTreeSet<_> = all.iter().map(|(engine, _)| engine).collect();
    let names: BTreeSet<_> = all.iter().map(|(_, name)| name).collect();
    let mut findings = Vec::new();
    for engine in engines {
        let missing =
            names.iter().filter(|name| !all.contains(&(engine.clone(), name.to_string())));
        findings.extend(missing.map(|name| format!("migrations/{engine}/{name} is missing")));
    }
    findings
}

/// Marks of unfinished work, in code and in texts.
pub(crate) fn left_for_later(source: &Source) -> Vec<String> {
    // Assembled here, otherwise this file would find itself.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let macros = [concat!("todo", "!"), concat!("unimplemented", "!")];
    let marked = marks.iter().flat_map(|mark| words(&source.text, mark).map(move |at| (at, mark)));
    let called = macros
        .iter()
        .flat_map(|name| source.text.match_indices(name).map(move |(at, _)| (at, name)));
    marked
        .chain(called)
        .map(|(at, mark)| format!("{}:{}: {mark}", source.path, line_of(&source.text, at)))
        .collect()
}

/// Paths that exist on one machine only.
pub(crate) fn machine_paths(source: &Source) -> Vec<String> {
    let places = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let found = places.iter().flat_map(|place| {
        source.text.match_indices(place).map(move |(at, _)| (at, place)).filter(|(at, _)| {
            // Inside a longer path or an address it is an ordinary name.
            !source.text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-}".contains(c))
        })
    });
    found
        .map(|(at, place)| format!("{}:{}: {place}", source.path, line_of(&source.text, at)))
        .collect()
}

/// Statements that read all columns: a column that a newer version adds would stop the processes of
/// this one, whose prepared statements must not change their results.
pub(crate) fn unnamed_columns(source: &Source) -> Vec<String> {
    let stars = source.text.match_indices('*').filter(|(at, _)| {
        let (before, after) = (&source.text[..*at], &source.text[at + 1..]);
        let is_list = after.starts_with([',', ' ', '"', '\n', ')']);
        let of_table = before.strip_suffix('.').is_some_and(|table| {
            table.ends_with(|c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        });
        is_list && (of_table || ["select ", "returning "].iter().any(|verb| before.ends_with(verb)))
    });
    let is_code = |at: &usize| {
        let line = source.text[..*at].rsplit('\n').next().unwrap_or_default();
        !["//", "--"].iter().any(|comment| line.trim_start().starts_with(comment))
    };
    stars
        .filter(|(at, _)| is_code(at))
        .map(|(at, _)| format!("{}:{}: name the columns", source.path, line_of(&source.text, at)))
        .collect()
}

/// Migrations that lock a table against writers while an index of it is built. On a table that the
/// migration itself creates it takes no time.
pub(crate) fn blocking_indexes(source: &Source) -> Vec<String> {
    if !source.path.starts_with("migrations/postgres/") {
        return Vec::new();
    }
    let bare = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
    let sql = source.text.lines().map(bare).collect::<Vec<_>>().join(" ");
    let statements: Vec<Vec<&str>> =
        sql.split(';').map(|one| one.split_whitespace().collect()).collect();
    let statements: Vec<_> = statements.into_iter().filter(|words| !words.is_empty()).collect();
    let creates = |words: &[&str]| words.first() == Some(&"create") && words.contains(&"index");
    let on = |words: &[&str]| {
        let on = words.iter().position(|word| *word == "on")?;
        words.get(on + 1).map(|table| table.split('(').next().unwrap_or_default().to_owned())
    };
    let is_new =
        |table: &str| statements.iter().any(|words| words.starts_with(&["create", "table", table]));
    let mut findings = Vec::new();
    for words in statements.iter().filter(|words| creates(words)) {
        if on(words).is_some_and(|table| is_new(&table)) {
            continue;
        }
        let is_alone = statements.len() == 1 && source.text.starts_with("-- no-transaction");
        let is_repeatable = words.contains(&"concurrently") && words.contains(&"exists");
        if !is_alone || !is_repeatable {
            findings.push(format!(
                "{}: begin with `-- no-transaction` and write one statement alone, `create index \
                 concurrently if not exists`",
                source.path
            ));
        }
    }
    findings
}

#[test]
fn a_star_for_columns_is_found_and_a_count_is_not() {
    let star = |text: &str| unnamed_columns(&Source::sample("crates/ledger/src/a.rs", text)).len();
    let stars = ["select *", "q.place, j.*", "returning *"];
    for text in stars {
        assert_eq!(star(&format!("\"{text}, c.key from journal\"")), 1, "{text}");
    }
    for text in ["\"select count(*) from journal\"", "// `journal.*`, of `select * from`", "a * b"]
    {
        assert_eq!(star(text), 0, "{text}");
    }
}

#[test]
fn an_index_that_locks_a_table_that_is_there_is_found() {
    let found =
        |sql: &str| blocking_indexes(&Source::sample("migrations/postgres/0021_x.sql", sql)).len();
    assert_eq!(found("-- why\ncreate index journal_x on journal (x);"), 1);
    assert_eq!(found("create table x (y text);\ncreate unique index x_y on x(y);"), 0);
    let alone = "create index concurrently if not exists journal_x on journal (x);";
    assert_eq!(found(alone), 1, "in a transaction");
    assert_eq!(found(&format!("-- no-transaction\n-- why\n{alone}")), 0);
    assert_eq!(found(&format!("-- no-transaction\n{alone}\nselect 1;")), 1);
}

#[test]
fn a_migration_missing_in_one_engine_is_found() {
    let paths = |names: &[&str]| names.iter().map(|name| format!("migrations/{name}")).collect();
    let count = |names: &[&str]| {
        let paths: Vec<_> = paths(names);
        missing_migrations(&paths).len()
    };
    assert_eq!(count(&["postgres/0001_a.sql", "sqlite/0001_a.sql"]), 0);
    assert_eq!(count(&["postgres/0001_a.sql", "sqlite/0001_b.sql"]), 2);
    assert_eq!(count(&["postgres/0001_a.sql", "postgres/0002_b.sql", "sqlite/0001_a.sql"]), 1);
}

#[test]
fn unfinished_work_is_found() {
    let count = |text: &str| left_for_later(&Source::sample("a.md", text)).len();
    assert_eq!(count(concat!("fn f() { todo", "!() }")), 1);
    assert_eq!(count(concat!("-- FIX", "ME later, TO", "DO too")), 2);
    assert_eq!(count("METHODOLOGY, todo list"), 0);
}

#[test]
fn a_place_on_a_machine_is_found() {
    let count = |text: &str| machine_paths(&Source::sample("a.md", text)).len();
    assert_eq!(count(concat!("see /wo", "rk/shared and \"/ro", "ot/x\"")), 2);
    assert_eq!(count(concat!("https://example.com/wo", "rk/x, $CARGO}/ho", "me/y")), 0);
}

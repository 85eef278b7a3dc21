//! Rules for the tree as a whole: migrations, what is left for later, places on a machine.

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
    // Put together here, or this file would find itself.
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

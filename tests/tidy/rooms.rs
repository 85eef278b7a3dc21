//! Who may name whom: the arrows between rooms, the client libraries, the names of modules.

use crate::source::{Source, code, is_word, line_of, words};

/// Rooms of the service by floor; a room may name those on lower floors. Those of one floor do not
/// know each other.
const FLOORS: [&[&str]; 10] = [
    &["access"],
    &["external", "journal", "language", "limits", "log_lines", "revision"],
    &["process"],
    &["audit", "reconciler"],
    &["allocator"],
    &["archive", "gauges", "import", "statement"],
    &["config"],
    &["service"],
    &["http"],
    &["cli"],
];

/// Client libraries and the rooms of the service that alone see them: the ledger, a crate of its
/// own, is one database, and imports read others. Redis' library is no dependency of the service.
const LIBRARIES: [(&str, &[&str]); 1] = [("sqlx", &["import"])];

/// Files of routes that may name the ledger by themselves: the one that gives places, and those
/// whose work runs within the place of a check.
const AT_THE_LEDGER: [&str; 5] = [
    "src/http/effort.rs",
    "src/http/config_changes.rs",
    "src/http/config_effect.rs",
    "src/http/config_saving.rs",
    "src/http/reference_changes.rs",
];

/// Names that say nothing of what a module owns.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "common", "types", "models"];

/// The room that a file belongs to; none for the map and the entrance.
fn room(path: &str) -> Option<&str> {
    let inner = path.strip_prefix("src/")?;
    let name = inner.split('/').next()?;
    let name = name.strip_suffix(".rs").unwrap_or(name);
    (!["lib", "main"].contains(&name)).then_some(name)
}

fn floor(room: &str) -> Option<usize> {
    FLOORS.iter().position(|rooms| rooms.contains(&room))
}

fn may_name(from: &str, to: &str) -> bool {
    if from == to {
        return true;
    }
    match (floor(from), floor(to)) {
        (Some(from), Some(to)) => to < from,
        _ => false,
    }
}

/// Names of rooms that the file must not name.
pub(crate) fn wrong_arrows(source: &Source) -> Vec<String> {
    let Some(from) = room(&source.path) else { return Vec::new() };
    if floor(from).is_none() {
        return vec![format!("{}: room `{from}` is not on the map", source.path)];
    }
    let code = code(&source.text);
    let depth = source.path.matches('/').count() - usize::from(source.path.ends_with("/mod.rs"));
    let mut named = Vec::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            if !code[..at].ends_with(|c: char| is_word(c) || c == ':') {
                named.extend(first_names(&code[at + root.len()..]).map(|name| (at, name)));
            }
        }
    }
    named.retain(|(_, name)| floor(name).is_some() && !may_name(from, name));
    let finding = |(at, to): (usize, &str)| {
        format!("{}:{}: {from} names {to}", source.path, line_of(&code, at))
    };
    named.into_iter().map(finding).collect()
}

/// The name that follows a path's root, or the first names of a group in braces.
fn first_names(rest: &str) -> impl Iterator<Item = &str> {
    let group = rest.strip_prefix('{');
    let mut depth = 0_usize;
    let end = rest
        .find(|c: char| {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (group.is_some() || !is_word(c))
        })
        .unwrap_or(rest.len());
    let names = if group.is_some() { &rest[1..end.max(1)] } else { &rest[..end] };
    top_items(names).map(|item| item.trim().split(|c| !is_word(c)).next().unwrap_or_default())
}

/// Splits at the commas that are in no inner braces.
fn top_items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    })
}

/// Client libraries that the file must not name.
pub(crate) fn strange_libraries(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let from = room(&source.path);
    let mut findings = Vec::new();
    for (library, owners) in LIBRARIES {
        let is_owner = from.is_some_and(|from| owners.contains(&from));
        if source.path.starts_with("src/") && !is_owner {
            let lines = words(&code, library).map(|at| line_of(&code, at));
            let owners = owners.join(" and ");
            let finding = |line| format!("{}:{line}: only {owners} sees {library}", source.path);
            findings.extend(lines.map(finding));
        }
    }
    findings
}

/// Routes that come to the ledger without a place of their kind: whoever has one is given the
/// ledger by it.
pub(crate) fn ledgers_without_a_place(source: &Source) -> Vec<String> {
    let is_at_it = AT_THE_LEDGER.contains(&&*source.path);
    if is_at_it || !source.path.starts_with("src/http/") || source.path.ends_with("tests.rs") {
        return Vec::new();
    }
    let code = code(&source.text);
    let is_taken = |at: &usize| {
        let before = code[..*at].trim_end();
        before.ends_with('.') || before.ends_with("Service {")
    };
    let calls = words(&code, "finish").filter(|at| {
        let is_call = code[*at..].starts_with("finish(");
        is_call && !code[..*at].ends_with('.') && !code[..*at].ends_with("fn ")
    });
    let places = words(&code, "ledger").filter(is_taken).chain(calls);
    let finding = |at| {
        let line = line_of(&code, at);
        format!("{}:{line}: the ledger without a place (`App::read` gives both)", source.path)
    };
    places.map(finding).collect()
}

/// Parts of the path that say nothing.
pub(crate) fn empty_names(source: &Source) -> Vec<String> {
    let path = source.path.trim_end_matches(".rs");
    let named_by_path = path.split('/').filter(|part| EMPTY_NAMES.contains(part));
    let mut findings: Vec<_> =
        named_by_path.map(|name| format!("{}: `{name}` says nothing", source.path)).collect();
    let code = code(&source.text);
    for name in EMPTY_NAMES {
        if words(&code, name).any(|at| code[..at].trim_end().ends_with("mod")) {
            findings.push(format!("{}: module `{name}` says nothing", source.path));
        }
    }
    findings
}

#[test]
fn a_wrong_arrow_is_found() {
    let count = |path: &str, text: &str| wrong_arrows(&Source::sample(path, text)).len();
    assert_eq!(count("src/journal.rs", "use crate::http::Problem;"), 1);
    assert_eq!(count("src/gauges/mod.rs", "fn f() { crate::service::g(); }"), 1);
    assert_eq!(count("src/import/mod.rs", "use crate::{node::NodeId, config::{A, B}};"), 1);
    assert_eq!(count("src/http/mod.rs", "use crate::cli;"), 1);
    assert_eq!(count("src/import/a.rs", "use super::super::config::Row;"), 1);
    assert_eq!(count("src/import/mod.rs", "use super::config::Row;"), 1);
    assert_eq!(count("src/journal.rs", "use super::config::Row;"), 1);
    assert_eq!(count("src/attic.rs", ""), 1);
    assert_eq!(count("src/journal.rs", "use crate::allocator::Allocator;"), 1);
    assert_eq!(count("src/journal.rs", "use crate::revision::Revision;"), 1);
    assert_eq!(count("src/allocator/a.rs", "use crate::{counter, journal, ledger::{self, R}};"), 0);
    assert_eq!(count("src/import/a.rs", "use super::config::Row; // crate::config"), 0);
    assert_eq!(count("src/cli/serve.rs", "use crate::http;"), 0);
    assert_eq!(count("tests/it/a.rs", "use crate::ledger;"), 0);
}

#[test]
fn a_strange_library_is_found() {
    let count = |path: &str, text: &str| strange_libraries(&Source::sample(path, text)).len();
    assert_eq!(count("src/allocator/mod.rs", "use sqlx::Row;"), 1);
    assert_eq!(count("src/main.rs", "fn f() { sqlx::query(1); }"), 1);
    assert_eq!(count("src/import/database.rs", "use sqlx::Row;"), 0);
    assert_eq!(count("src/config.rs", "// sqlx\nlet ql = \"sqlx\";"), 0);
}

#[test]
fn a_ledger_without_a_place_is_found() {
    let count = |path: &str, text: &str| ledgers_without_a_place(&Source::sample(path, text)).len();
    let take = "fn f() { let ledger = app.service.ledger.clone(); }";
    assert_eq!(count("src/http/events.rs", take), 1);
    assert_eq!(count("src/http/events.rs", "let Service { ledger, .. } = &*own.service;"), 1);
    assert_eq!(count("src/http/serials/a.rs", "super::finish(async move { 1 }).await"), 1);
    assert_eq!(count("src/http/effort.rs", take), 0);
    assert_eq!(count("src/cli/events.rs", take), 0);
    let placed = "app.read(&caller, |ledger| async move { ledger.series().await }); list.finish()";
    assert_eq!(count("src/http/events.rs", placed), 0);
    assert_eq!(count("src/http/events.rs", "use crate::ledger::Event; // service.ledger"), 0);
}

#[test]
fn a_name_that_says_nothing_is_found() {
    let count = |path: &str, text: &str| empty_names(&Source::sample(path, text)).len();
    assert_eq!(count("src/import/utils.rs", ""), 1);
    assert_eq!(count("src/helpers/mod.rs", ""), 1);
    assert_eq!(count("src/a.rs", "pub(crate) mod types {}"), 1);
    assert_eq!(count("src/a.rs", "use sqlx::types::Value; // mod types"), 0);
}

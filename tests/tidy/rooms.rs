//! Which room may name which: the arrows between rooms, the client libraries, the names of modules.

use crate::source::{Source, code, is_word, line_of, words};

/// Rooms of the service by floor; a room may name those on lower floors. Those of one floor do not
/// know each other.
const FLOORS: [&[&str]; 20] = [
    &["language"],
    &["engine/sources", "engine/journal"],
    &["auth"],
    &["engine/node"],
    &["engine/reconciler", "engine/sealing"],
    &["engine/allocator"],
    &["telemetry"],
    &["config"],
    &["startup"],
    &["web"],
    &["terminal"],
    &["features/lifecycle"],
    &["features/archive", "features/numbers"],
    &[
        "features/checkpoints",
        "features/exchange",
        "features/register",
        "features/reservations",
        "features/series",
    ],
    &[
        "features/approvals",
        "features/assignments",
        "features/by_hand",
        "features/import",
        "features/statement",
        "features/tokens",
    ],
    &["features/operations", "features/reference"],
    &["features"],
    &["engine"],
    &["routes"],
    &["commands"],
];

/// Client libraries and the rooms of the service that alone use them: the ledger, a crate of its
/// own, is one database, and imports read others. Redis' library is no dependency of the service.
const LIBRARIES: [(&str, &[&str]); 1] = [("sqlx", &["features/import"])];

/// Files of routes that may name the ledger themselves: the one that gives places, and those whose
/// work runs within the place of a check.
const AT_THE_LEDGER: [&str; 5] = [
    "src/features/reference/changes.rs",
    "src/features/series/changes.rs",
    "src/features/series/effect.rs",
    "src/features/series/saving.rs",
    "src/web/admission.rs",
];

/// Names that do not say what a module owns.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "common", "types", "models"];

/// Names of a path that say which room it is in, and whether it is a caller there.
const NAMES_MAX: usize = 3;

/// Folders whose own folders are rooms.
const WINGS: [&str; 2] = ["engine", "features"];

/// The path of a file's module.
pub(crate) fn module_of(path: &str) -> Option<Vec<&str>> {
    let inner = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut names: Vec<&str> = inner.split('/').collect();
    names.pop_if(|last| *last == "mod");
    (!["lib", "main"].contains(&names[0])).then_some(names)
}

/// The room of a module.
pub(crate) fn room(module: &[&str]) -> Option<String> {
    match module {
        [wing, room, ..] if WINGS.contains(wing) => Some(format!("{wing}/{room}")),
        [room, ..] => Some((*room).to_owned()),
        [] => None,
    }
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

/// Tests look at what they test from above.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Every module of the crate that a file names, with where: so many names of each path at most.
pub(crate) fn named_modules<'c>(
    code: &'c str,
    module: &[&'c str],
    depth_max: usize,
) -> Vec<(usize, Vec<&'c str>)> {
    let mut named = Vec::new();
    for (at, _) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if code[..at].ends_with(|c: char| is_word(c) || c == ':') {
            continue;
        }
        let mut rest = &code[at..];
        let mut head = module.to_vec();
        if let Some(tree) = rest.strip_prefix("crate::") {
            (rest, head) = (tree, Vec::new());
        }
        while let Some(tree) = rest.strip_prefix("super::") {
            rest = tree;
            head.pop();
        }
        let mut paths = Vec::new();
        add_paths(rest, &head, depth_max, &mut paths);
        named.extend(paths.into_iter().map(|path| (at, path)));
    }
    named
}

/// The paths of a tree of names, so many names of each at most.
pub(crate) fn add_paths<'c>(
    tree: &'c str,
    head: &[&'c str],
    depth_max: usize,
    found: &mut Vec<Vec<&'c str>>,
) {
    if let Some(group) = tree.strip_prefix('{') {
        let mut depth = 1_usize;
        let end = group.find(|c| {
            depth = depth + usize::from(c == '{') - usize::from(c == '}');
            depth == 0
        });
        for item in top_items(&group[..end.unwrap_or(group.len())]) {
            add_paths(item.trim(), head, depth_max, found);
        }
        return;
    }
    let end = tree.find(|c| !is_word(c)).unwrap_or(tree.len());
    let path = [head, &[&tree[..end]]].concat();
    match tree[end..].strip_prefix("::") {
        Some(rest) if path.len() < depth_max => add_paths(rest, &path, depth_max, found),
        _ => found.push(path),
    }
}

/// Rooms that the file must not name; routes and commands of another feature, and the routes of its
/// own where the file is a command.
pub(crate) fn wrong_arrows(source: &Source) -> Vec<String> {
    let Some(module) = module_of(&source.path) else { return Vec::new() };
    let from = room(&module).expect("a module has a room");
    if floor(&from).is_none() {
        return vec![format!("{}: room `{from}` is not on the map", source.path)];
    }
    if is_test(&source.path) {
        return Vec::new();
    }
    let code = code(&source.text);
    let mut findings = Vec::new();
    for (at, path) in named_modules(&code, &module, NAMES_MAX) {
        let Some(to) = room(&path).filter(|to| floor(to).is_some()) else { continue };
        let is_caller = |name: &str| name.ends_with("routes") || name.ends_with("command");
        let is_command = module.iter().any(|name| name.ends_with("command"));
        let is_kept_apart = |name: &&str| match from == to {
            true => is_command && name.ends_with("routes"),
            false => is_caller(name),
        };
        let is_of_callers = from.starts_with("features/")
            && to.starts_with("features/")
            && path.get(2).is_some_and(is_kept_apart);
        if !may_name(&from, &to) || is_of_callers {
            let line = line_of(&code, at);
            findings.push(format!("{}:{line}: {from} names {}", source.path, path.join("::")));
        }
    }
    findings
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
    let from = module_of(&source.path).and_then(|module| room(&module));
    let mut findings = Vec::new();
    for (library, owners) in LIBRARIES {
        let is_owner = from.as_deref().is_some_and(|from| owners.contains(&from));
        if source.path.starts_with("src/") && !is_owner {
            let lines = words(&code, library).map(|at| line_of(&code, at));
            let owners = owners.join(" and ");
            let finding = |line| format!("{}:{line}: only {owners} sees {library}", source.path);
            findings.extend(lines.map(finding));
        }
    }
    findings
}

/// Whether a file has routes, or what all of them share.
fn is_of_a_route(source: &Source) -> bool {
    let has_routes = || source.text.contains("utoipa::path");
    let path = &source.path;
    (path.starts_with("src/web/") || path.starts_with("src/features/") && has_routes())
        && !is_test(path)
}

/// Routes that use the ledger without a place of their kind: a place gives access to the ledger.
pub(crate) fn ledgers_without_a_place(source: &Source) -> Vec<String> {
    let is_at_it = AT_THE_LEDGER.contains(&&*source.path);
    if is_at_it || !is_of_a_route(source) {
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

/// Parts of the path without a meaning.
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
    assert_eq!(count("src/engine/journal.rs", "use crate::web::Problem;"), 1);
    assert_eq!(count("src/telemetry/gauges/mod.rs", "fn f() { crate::startup::g(); }"), 1);
    let both = "use crate::{node::NodeId, features::{import::A, numbers}};";
    assert_eq!(count("src/config/mod.rs", both), 2);
    assert_eq!(count("src/web/mod.rs", "use crate::commands;"), 1);
    assert_eq!(count("src/engine/node/a.rs", "use super::super::allocator::Row;"), 1);
    assert_eq!(count("src/engine/journal.rs", "use super::super::config::Row;"), 1);
    assert_eq!(count("src/attic.rs", ""), 1);
    assert_eq!(count("src/engine/journal.rs", "use crate::engine::allocator::Allocator;"), 1);
    let callers = "use crate::features::numbers::{answer, next_command, routes::A};";
    assert_eq!(count("src/features/register/a.rs", callers), 2);
    assert_eq!(count("src/features/numbers/a.rs", callers), 0);
    assert_eq!(count("src/features/numbers/find_command.rs", callers), 1);
    assert_eq!(count("src/features/numbers/find_command/lines.rs", callers), 1);
    let below = "use crate::{redis, engine::journal, ledger::{self, R}};";
    assert_eq!(count("src/engine/allocator/a.rs", below), 0);
    assert_eq!(count("src/features/import/a.rs", "use super::config::Row; // crate::routes"), 0);
    assert_eq!(count("src/commands/serve.rs", "use crate::web;"), 0);
    assert_eq!(count("src/web/server/tests.rs", "use crate::routes;"), 0);
    assert_eq!(count("tests/it/a.rs", "use crate::ledger;"), 0);
}

#[test]
fn a_strange_library_is_found() {
    let count = |path: &str, text: &str| strange_libraries(&Source::sample(path, text)).len();
    assert_eq!(count("src/engine/allocator/mod.rs", "use sqlx::Row;"), 1);
    assert_eq!(count("src/main.rs", "fn f() { sqlx::query(1); }"), 1);
    assert_eq!(count("src/features/import/database.rs", "use sqlx::Row;"), 0);
    assert_eq!(count("src/config.rs", "// sqlx\nlet ql = \"sqlx\";"), 0);
}

#[test]
fn a_ledger_without_a_place_is_found() {
    let count = |path: &str, text: &str| ledgers_without_a_place(&Source::sample(path, text)).len();
    let take = "fn f() { let ledger = app.service.ledger.clone(); }";
    assert_eq!(count("src/web/events.rs", take), 1);
    assert_eq!(count("src/web/events.rs", "let Service { ledger, .. } = &*own.service;"), 1);
    assert_eq!(count("src/web/serials/a.rs", "super::finish(async move { 1 }).await"), 1);
    assert_eq!(count("src/web/admission.rs", take), 0);
    assert_eq!(count("src/features/operations/events.rs", take), 0);
    let placed =
        "app.read(&caller, |ledger| async move { ledger.series().list().await }); list.finish()";
    assert_eq!(count("src/web/events.rs", placed), 0);
    assert_eq!(count("src/web/events.rs", "use crate::ledger::Event; // service.ledger"), 0);
}

#[test]
fn a_name_that_says_nothing_is_found() {
    let count = |path: &str, text: &str| empty_names(&Source::sample(path, text)).len();
    assert_eq!(count("src/import/utils.rs", ""), 1);
    assert_eq!(count("src/helpers/mod.rs", ""), 1);
    assert_eq!(count("src/a.rs", "pub(crate) mod types {}"), 1);
    assert_eq!(count("src/a.rs", "use sqlx::types::Value; // mod types"), 0);
}

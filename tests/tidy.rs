//! Style as a test: the few rules that decay unless they are checked.
//!
//! Reads the tree as it would be committed and changes nothing. Each rule is a function from texts
//! to findings, with a small test that proves that it can find something.
#![allow(missing_docs, reason = "tests say what they do in their names")]

#[path = "tidy/budgets.rs"]
mod budgets;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/excerpts.rs"]
mod excerpts;
#[path = "tidy/form.rs"]
mod form;
#[path = "tidy/guards.rs"]
mod guards;
#[path = "tidy/lua.rs"]
mod lua;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/phrases.rs"]
mod phrases;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tree.rs"]
mod tree;

use source::{Source, sources};

/// Applies a rule to every file whose path has this ending.
fn check(ending: &str, rule: fn(&Source) -> Vec<String>) {
    let sources = sources();
    let matching: Vec<_> = sources.iter().filter(|s| s.path.ends_with(ending)).collect();
    assert!(!matching.is_empty(), "no {ending} file was looked at");
    report(&matching.into_iter().flat_map(rule).collect::<Vec<_>>());
}

fn report(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn rooms_depend_one_way() {
    check(".rs", rooms::wrong_arrows);
}

#[test]
fn few_files_name_each_other_in_a_circle() {
    let sources = sources();
    let circles = circles::AREAS.iter().flat_map(|area| circles::large_circles(&sources, *area));
    report(&circles.collect::<Vec<_>>());
}

#[test]
fn no_room_grows_beyond_its_budget() {
    let budgets = std::fs::read_to_string("tests/budgets.toml").expect("the budgets");
    let budgets = toml::from_str(&budgets).expect("rooms with their lines");
    report(&budgets::overdrawn(&budgets, &budgets::lines_of_rooms(&sources())));
}

#[test]
fn routes_come_to_the_ledger_in_a_place_alone() {
    check(".rs", rooms::ledgers_without_a_place);
}

#[test]
fn only_one_room_sees_each_client_library() {
    check(".rs", rooms::strange_libraries);
}

#[test]
fn no_module_has_a_name_that_says_nothing() {
    check(".rs", rooms::empty_names);
}

#[test]
fn no_room_calls_two_types_alike() {
    report(&names::types_of_one_name(&sources()));
}

#[test]
fn every_file_opens_with_what_it_owns() {
    check(".rs", form::without_opening);
}

#[test]
fn no_line_is_wider_than_the_page() {
    check(".rs", form::wide_lines);
}

#[test]
fn no_file_is_longer_than_one_sitting() {
    check(".rs", form::long_files);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    check(".rs", form::long_functions);
}

#[test]
fn every_script_uses_what_its_header_says() {
    check(".lua", lua::wrong_headers);
}

#[test]
fn every_engine_has_every_migration() {
    let paths: Vec<_> = sources().into_iter().map(|source| source.path).collect();
    report(&tree::missing_migrations(&paths));
}

#[test]
fn every_statement_names_its_columns() {
    let sources = sources();
    let rooms =
        ["crates/ledger/src/", "src/features/import/", "migrations/", "loadtest/src/baselines/"];
    let is_sql = |source: &&Source| rooms.iter().any(|room| source.path.starts_with(room));
    report(&sources.iter().filter(is_sql).flat_map(tree::unnamed_columns).collect::<Vec<_>>());
}

#[test]
fn no_migration_locks_a_table_while_it_builds_an_index() {
    check(".sql", tree::blocking_indexes);
}

#[test]
fn every_test_that_the_protocol_promises_exists() {
    report(&guards::missing_guards(&sources()));
}

#[test]
fn the_protocol_has_a_heading_for_every_rule_that_the_code_names() {
    report(&guards::unexplained_rules(&sources()));
}

#[test]
fn nothing_is_left_for_later() {
    check("", tree::left_for_later);
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    check("", tree::machine_paths);
}

#[test]
fn every_piece_of_a_client_on_a_page_is_of_a_program_that_runs() {
    let sources = sources();
    report(&excerpts::strange_excerpts(&sources));
    let shown = sources.iter().filter(|source| source.path == "docs/integrate.md");
    let shown = shown.flat_map(|page| excerpts::excerpts(&page.text)).count();
    assert!(shown > 10, "docs/integrate.md shows {shown} pieces");
}

#[test]
fn comments_and_pages_are_plain_english() {
    for ending in [".rs", ".md", ".lua", ".toml"] {
        check(ending, phrases::strange_phrases);
    }
}

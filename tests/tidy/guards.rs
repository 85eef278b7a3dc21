//! `docs/protocol.md` promises tests: each that it names must exist.

use std::collections::BTreeSet;

use crate::source::{Source, line_of};

/// The page that promises.
const PAGE: &str = "docs/protocol.md";

/// Names have at least so many words; shorter ones in backticks are settings and commands.
const WORDS_MIN: usize = 5;

/// Tests that the page names and nobody wrote.
pub(crate) fn missing_guards(sources: &[Source]) -> Vec<String> {
    let is_code = |source: &&Source| source.path.ends_with(".rs");
    let known: BTreeSet<&str> =
        sources.iter().filter(is_code).flat_map(|source| functions(&source.text)).collect();
    let page = sources.iter().find(|source| source.path == PAGE).expect("the page is there");
    promised(&page.text)
        .filter(|(_, name)| !known.contains(name))
        .map(|(at, name)| format!("{PAGE}:{}: no test is called {name}", line_of(&page.text, at)))
        .collect()
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("fn ").map(|(at, _)| {
        let rest = &text[at + 3..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

/// The names in backticks that read like a test's.
fn promised(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let quoted = text.split('`').scan(0, |at, part| {
        let start = *at;
        *at += part.len() + 1;
        Some((start, part))
    });
    let is_name = |part: &str| {
        part.split('_').count() >= WORDS_MIN
            && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    quoted.skip(1).step_by(2).filter(move |(_, part)| is_name(part))
}

#[test]
fn a_promised_test_that_nobody_wrote_is_found() {
    let page = "the `a_test_that_is_there` and `a_test_that_is_not`, `recovery.barrier_max`";
    let code = "async fn a_test_that_is_there() {}";
    let sources = [Source::sample(PAGE, page), Source::sample("a.rs", code)];
    let findings = missing_guards(&sources);
    assert_eq!(findings, [format!("{PAGE}:1: no test is called a_test_that_is_not")]);
}

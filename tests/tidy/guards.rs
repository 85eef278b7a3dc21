//! `docs/protocol.md` promises tests: each that it names must exist. It explains the rules of the
//! protocol: each that the code names must have a heading.

use std::collections::BTreeSet;

use crate::source::{Source, line_of};

/// The page that promises.
const PAGE: &str = "docs/protocol.md";

/// Names have at least this many words; shorter ones in backticks are settings and commands.
const WORDS_MIN: usize = 5;

/// Tests that the page names and that do not exist.
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

/// Rules that the code names and the page has no heading for.
pub(crate) fn unexplained_rules(sources: &[Source]) -> Vec<String> {
    let page = sources.iter().find(|source| source.path == PAGE).expect("the page is there");
    let explained: BTreeSet<&str> = page.text.lines().filter_map(explained_rule).collect();
    let is_code = |source: &&Source| [".rs", ".lua"].iter().any(|end| source.path.ends_with(end));
    let named = sources
        .iter()
        .filter(is_code)
        .flat_map(|source| rules(&source.text).map(move |(at, rule)| (source, at, rule)));
    named
        .filter(|(_, _, rule)| !explained.contains(rule))
        .map(|(source, at, rule)| {
            format!("{}:{}: {PAGE} explains no {rule}", source.path, line_of(&source.text, at))
        })
        .collect()
}

/// The rule of a heading such as `### F9: a ledger that went back is held`.
fn explained_rule(line: &str) -> Option<&str> {
    line.strip_prefix("### ")?.split_once(':').map(|(rule, _)| rule)
}

/// The ids of rules in a text, `F` with one or two digits, and their places.
fn rules(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices('F').filter_map(move |(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let digits = &rest[1..end];
        let is_rule = (1..=2).contains(&digits.len())
            && digits.bytes().all(|digit| digit.is_ascii_digit())
            && !text[..at].ends_with(is_word);
        is_rule.then_some((at, &rest[..end]))
    })
}

#[test]
fn a_promised_test_that_nobody_wrote_is_found() {
    let page = "the `a_test_that_is_there` and `a_test_that_is_not`, `recovery.barrier_max`";
    let code = "async fn a_test_that_is_there() {}";
    let sources = [Source::sample(PAGE, page), Source::sample("a.rs", code)];
    let findings = missing_guards(&sources);
    assert_eq!(findings, [format!("{PAGE}:1: no test is called a_test_that_is_not")]);
}

#[test]
fn a_rule_without_a_heading_is_found() {
    // Assembled here, otherwise this file would be found.
    let unknown = concat!("F", "99");
    let page = format!("### F9: a ledger that went back\n\nAs {unknown}, it is held.");
    let code = format!("// As F9 and 0xF9 say.\n// As {unknown} says.");
    let sources = [Source::sample(PAGE, &page), Source::sample("a.rs", &code)];
    let findings = unexplained_rules(&sources);
    assert_eq!(findings, [format!("a.rs:2: {PAGE} explains no {unknown}")]);
}

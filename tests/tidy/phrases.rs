//! Plain English: phrases that comments and pages do without. Texts that the program prints are
//! not looked at.

use crate::source::{Source, is_word, line_of};

/// Each phrase with what to write.
const PHRASES: [(&str, &str); 10] = [
    ("of before", "earlier, former"),
    ("whoever", "the caller, the operator, who"),
    ("is told", "name the report, the answer or the log"),
    ("are told", "name the report, the answer or the log"),
    ("let in", "admitted, authenticated"),
    ("lets in", "admits, authenticates"),
    ("stands there", "is there"),
    ("somebody", "name who: a caller, a process, an operator"),
    ("it be", "state it as a condition"),
    ("a moment of its own", "name the transaction or the time"),
];

/// Comments and pages with one of the phrases.
pub(crate) fn strange_phrases(source: &Source) -> Vec<String> {
    let is_page = source.path.ends_with(".md");
    let prose = if is_page { page(&source.text) } else { comments(source) };
    let lower = prose.to_lowercase();
    let mut findings = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in lower.match_indices(phrase) {
            let before = lower[..at].chars().next_back().is_some_and(is_word);
            let after = lower[at + phrase.len()..].chars().next().is_some_and(is_word);
            if !before && !after {
                let (path, line) = (&source.path, line_of(&lower, at));
                findings.push(format!("{path}:{line}: `{phrase}`; write {instead}"));
            }
        }
    }
    findings
}

/// The comments of a file, each at its line; all else is blank.
fn comments(source: &Source) -> String {
    let mark = match source.path.rsplit_once('.') {
        Some((_, "rs")) => "//",
        Some((_, "lua")) => "--",
        _ => "#",
    };
    let comment = |line: &str| {
        let line = line.trim_start();
        if line.starts_with(mark) { line.to_owned() } else { String::new() }
    };
    source.text.lines().map(comment).collect::<Vec<_>>().join("\n")
}

/// A page without its fenced blocks and code spans.
fn page(text: &str) -> String {
    let mut is_fenced = false;
    let prose = text.lines().map(|line| {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            return String::new();
        }
        let spans = line.split('`').step_by(2);
        if is_fenced { String::new() } else { spans.collect::<Vec<_>>().join("`") }
    });
    prose.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_phrase_is_found_in_comments_and_pages_alone() {
    let code = Source::sample("a.rs", "// Whoever asks.\nlet said = \"whoever\"; // of before\n");
    assert_eq!(strange_phrases(&code).len(), 1, "{:?}", strange_phrases(&code));
    let page = Source::sample(
        "a.md",
        "It is told, `whoever` asks.\n```\nof before\n```\nIt is toldest.\n",
    );
    assert_eq!(
        strange_phrases(&page),
        ["a.md:1: `is told`; write name the report, the answer or the log"]
    );
}

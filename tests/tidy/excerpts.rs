//! Code of clients on the pages: each piece is in a program that `scripts/check-clients` runs.

use crate::source::{Source, line_of};

/// The languages of the clients, by the names of their fenced blocks and folders.
const LANGUAGES: [&str; 3] = ["python", "typescript", "java"];

/// Fenced blocks of pages that no client has, whole and in this order.
pub(crate) fn strange_excerpts(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for page in sources.iter().filter(|source| source.path.ends_with(".md")) {
        for (at, language, block) in excerpts(&page.text) {
            let folder = format!("examples/clients/{language}/");
            let mut clients = sources.iter().filter(|source| source.path.starts_with(&folder));
            if !clients.any(|client| has(&client.text, block)) {
                let line = line_of(&page.text, at);
                findings.push(format!("{}:{line}: no program in {folder} has this", page.path));
            }
        }
    }
    findings
}

/// The blocks of a page in one of the languages: where, which, and their lines.
pub(crate) fn excerpts(page: &str) -> Vec<(usize, &'static str, &str)> {
    let of = |language: &'static str| {
        let fence = format!("\n```{language}\n");
        let starts: Vec<_> = page.match_indices(&fence).map(|(at, _)| at).collect();
        starts.into_iter().map(move |at| {
            let inner = &page[at + fence.len()..];
            (at, language, inner.split("\n```").next().unwrap_or_default())
        })
    };
    LANGUAGES.into_iter().flat_map(of).collect()
}

/// Whether a program has these lines one after the other, all indented alike.
fn has(program: &str, block: &str) -> bool {
    let (lines, wanted): (Vec<&str>, Vec<&str>) =
        (program.lines().collect(), block.lines().collect());
    let Some(first) = wanted.first().filter(|first| !first.is_empty()) else { return false };
    lines.windows(wanted.len()).any(|window| {
        let Some(indent) = window[0].strip_suffix(first) else { return false };
        indent.trim().is_empty()
            && window.iter().zip(&wanted).all(|(line, wanted)| {
                if wanted.is_empty() {
                    line.is_empty()
                } else {
                    line.strip_prefix(indent) == Some(wanted)
                }
            })
    })
}

#[test]
fn a_block_that_no_program_has_is_found() {
    let program = "class A {\n    int b() {\n        return 1;\n\n    }\n}\n";
    let page = |block: &str| {
        let page = format!("text\n```java\n{block}\n```\n");
        let client = Source::sample("examples/clients/java/A.java", program);
        strange_excerpts(&[Source::sample("docs/a.md", &page), client])
    };
    for shown in ["int b() {\n    return 1;\n\n}", "    return 1;", "class A {"] {
        assert!(page(shown).is_empty(), "{shown}");
    }
    for strange in ["int b() {\n    return 2;\n\n}", "int b() {\n\n}", "return 1;\n}", ""] {
        assert_eq!(page(strange).len(), 1, "{strange}");
    }
}

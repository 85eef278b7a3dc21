//! The commands that the pages show exist, and the tables that they print have the columns that the
//! pages show. The runbook's procedures are run by their own test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use numerator::commands::Cli;
use testkit::redis::Redis;

use crate::deployment::Deployment;

/// A line of a page in a fenced block.
struct Line {
    /// Page and number.
    place: String,
    /// The block's language.
    language: String,
    text: String,
}

/// Every page for people, with its text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = root.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = docs.filter(|path| path.extension().is_some()).collect();
    files.push(root.join("README.md"));
    files.sort();
    let read = |path: PathBuf| (path.clone(), std::fs::read_to_string(path).unwrap());
    files.into_iter().map(read).collect()
}

/// The lines of all fenced blocks.
fn fenced() -> Vec<Line> {
    let mut lines = Vec::new();
    for (path, text) in pages() {
        let mut language: Option<String> = None;
        for (index, text) in text.lines().enumerate() {
            match (text.strip_prefix("```"), &language) {
                (Some(_), Some(_)) => language = None,
                (Some(word), None) => language = Some(word.to_owned()),
                (None, Some(language)) => lines.push(Line {
                    place: format!("{}:{}", path.display(), index + 1),
                    language: language.clone(),
                    text: text.to_owned(),
                }),
                (None, None) => {}
            }
        }
    }
    lines
}

/// The command line of the program that a line runs, in a container or not; none if it runs
/// something else.
fn command(line: &Line) -> Option<Vec<String>> {
    let text = match &*line.language {
        "sh" => &*line.text,
        "console" => line.text.strip_prefix("$ ")?,
        _ => return None,
    };
    if !text.contains("numerator") {
        return None;
    }
    let words = shlex::split(text.trim_end_matches('\\')).expect(&line.place);
    let is_end = |word: &String| ["|", ">", "&&", "2>"].contains(&&**word);
    let words: Vec<String> = words.into_iter().take_while(|word| !is_end(word)).collect();
    let is_ours = |word: &String| ["numerator", "numerator-new"].contains(&&**word);
    let first = words.iter().rposition(is_ours)?;
    Some(words[first..].to_vec())
}

#[test]
fn every_command_of_the_pages_is_one() {
    let mut seen = BTreeSet::new();
    for line in fenced() {
        let Some(words) = command(&line) else { continue };
        if let Err(error) = Cli::try_parse_from(&words) {
            panic!("{}: {}\n{error}", line.place, line.text);
        }
        seen.extend(words.into_iter().nth(1));
    }
    // A test that finds no commands finds no mistakes.
    for command in ["status", "verify", "reconcile", "drain", "fallback", "gaps", "import"] {
        assert!(seen.contains(command), "{command}: {seen:?}");
    }
}

/// A line with one space between its words.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn tables_of_the_pages_have_the_columns_that_commands_print() {
    let redis = Redis::start();
    let deployment = Deployment::sqlite(Some(&redis.url()));
    deployment.apply_examples();
    let numbers = deployment.path("numbers.csv");
    std::fs::write(&numbers, "number\nSPO-20240122-001\nSPO-20240122-004\n").unwrap();
    deployment.ok(&["import", numbers.to_str().unwrap(), "--apply"]);
    deployment.ok(&["next", "SPO", "--date", "2024-01-22"]);
    let lines = |text: String| -> Vec<String> { text.lines().map(squeezed).collect() };
    let heads = |arguments: &[&str]| lines(deployment.ok(arguments));
    // No process runs: only an operator starts it.
    let (code, status) = deployment.status(&[]);
    assert_eq!(code, 1, "{status}");
    let status = lines(status);
    for (command, first, printed) in [
        ("status", "partition", status.clone()),
        ("status", "node", status.clone()),
        ("status", "counter", status),
        ("gaps", "counter", heads(&["gaps"])),
        ("counters", "counter", heads(&["counters"])),
        ("events", "at", heads(&["events"])),
        ("fallback", "partition", heads(&["fallback", "on", "--partition", "2"])),
    ] {
        let begins = |line: &&String| line.split(' ').next() == Some(first);
        let head = printed.iter().find(begins).unwrap_or_else(|| panic!("{command}: {printed:?}"));
        let mut shown = 0;
        let mut is_of_command = false;
        for line in fenced() {
            if line.text.starts_with("$ ") {
                is_of_command = line.text.starts_with(&format!("$ numerator {command}"));
            }
            let text = squeezed(&line.text);
            // Output is indented by one.
            if is_of_command
                && line.language == "console"
                && line.text.starts_with(' ')
                && begins(&&text)
            {
                assert_eq!(text, *head, "{}", line.place);
                shown += 1;
            }
        }
        assert!(shown > 0, "no page shows {head}");
    }
}

//! Lua scripts: a header in the fixed form that says what the script uses, and nothing else.

use crate::source::Source;

const LINES_MAX: usize = 100;

/// Differences between a script's header and its use.
pub(crate) fn wrong_headers(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let is_comment = |line: &&str| line.starts_with("--");
    let header: Vec<_> = source.text.lines().take_while(is_comment).collect();
    let body: Vec<_> = source
        .text
        .lines()
        .skip(header.len())
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect();
    let (header, body) = (header.join("\n"), body.join("\n"));

    let stem = source.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".lua");
    if !header.starts_with(&format!("-- {stem}: ")) {
        findings.push(format!("header does not begin with `-- {stem}: `"));
    }
    if !header.lines().any(|line| line.starts_with("-- Returns ")) {
        findings.push("header does not say what it `Returns`".into());
    }
    if source.text.lines().count() > LINES_MAX {
        findings.push(format!("over {LINES_MAX} lines"));
    }
    if source.path.contains("lua/lib/") {
        let reads = ["KEYS", "ARGV"].into_iter().filter(|list| body.contains(list));
        findings.extend(reads.map(|list| format!("a shared function reads {list}")));
        if !body.trim_start().starts_with(&format!("local function {stem}(")) {
            findings.push(format!("does not hold the local function `{stem}`"));
        }
    } else {
        findings.extend(["KEYS", "ARGV"].iter().flat_map(|list| differences(list, &header, &body)));
    }
    findings.iter().map(|finding| format!("{}: {finding}", source.path)).collect()
}

/// What of a list is used and not declared, or declared and not used.
fn differences(list: &str, header: &str, body: &str) -> Vec<String> {
    let declared = indexes(list, header);
    let used = indexes(list, body);
    let numbers = |all: &[String]| -> Vec<usize> {
        all.iter().filter_map(|index| index.parse().ok()).collect()
    };
    // `KEYS[3..]` in the header means every index that the script computes.
    let tail = declared.iter().find_map(|index| index.strip_suffix("..")?.parse::<usize>().ok());
    let (declared, literal) = (numbers(&declared), numbers(&used));
    let is_computed = used.len() > literal.len();

    let mut findings = Vec::new();
    let missing = literal.iter().filter(|i| !declared.contains(i) && tail.is_none_or(|t| **i < t));
    findings.extend(missing.map(|i| format!("{list}[{i}] is not in the header")));
    let unused = declared.iter().filter(|i| !literal.contains(i));
    findings.extend(unused.map(|i| format!("{list}[{i}] of the header is not used")));
    match (tail, is_computed) {
        (Some(from), false) => findings.push(format!("{list}[{from}..] of the header is not used")),
        (None, true) => findings.push(format!("{list} beyond the header is used")),
        _ => {}
    }
    findings
}

/// The text between the brackets after each mention of a list.
fn indexes(list: &str, text: &str) -> Vec<String> {
    let opening = format!("{list}[");
    let after = text.match_indices(&opening).map(|(at, _)| &text[at + opening.len()..]);
    after.filter_map(|rest| Some(rest[..rest.find(']')?].trim().to_owned())).collect()
}

#[test]
fn a_header_that_does_not_match_its_use_is_found() {
    let count = |text: &str| wrong_headers(&Source::sample("lua/a.lua", text)).len();
    let header =
        "-- a: does it.\n-- KEYS[1] owner  KEYS[2..] rest\n-- ARGV[1] echo\n-- Returns x\n";
    let with = |body: &str| format!("{header}{body}");
    assert_eq!(count(&with("f(KEYS[1], KEYS[1 + i], ARGV[1])")), 0);
    assert_eq!(count(&with("f(KEYS[1], KEYS[1 + i])")), 1);
    assert_eq!(count(&with("f(KEYS[1], KEYS[1 + i], ARGV[1], ARGV[2])")), 1);
    assert_eq!(count(&with("f(KEYS[1], ARGV[1])")), 1);
    assert_eq!(count(&with("f(KEYS[1], KEYS[2 + i], ARGV[1], ARGV[i])")), 1);
    assert_eq!(count(&with("f(KEYS[1], KEYS[2 + i]) -- ARGV[1]")), 1);
    assert_eq!(count(&header.replace("a: does", "b: does").replace("KEYS[1] owner", "")), 3);
    assert_eq!(count("-- a: does it.\nreturn 1"), 1);
    assert_eq!(count(&format!("-- a: x.\n-- Returns 1\n{}", "f()\n".repeat(99))), 1);
}

#[test]
fn a_shared_function_that_reads_the_callers_lists_is_found() {
    let count = |text: &str| wrong_headers(&Source::sample("lua/lib/a.lua", text)).len();
    let header = "-- a: does it.\n-- Returns x\n";
    assert_eq!(count(&format!("{header}local function a(x) return x end")), 0);
    assert_eq!(count(&format!("{header}local function a() return KEYS[1], ARGV end")), 2);
    assert_eq!(count(&format!("{header}function b() end")), 1);
}

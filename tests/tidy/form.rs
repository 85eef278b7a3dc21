//! The form of Rust files: opening, width, length, length of functions.

use crate::source::{Source, code, is_word, line_of, words};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;

/// A file must begin with `//!`.
pub(crate) fn without_opening(source: &Source) -> Vec<String> {
    let opens = source.text.starts_with("//! ");
    let finding = format!("{}: does not open with `//!`: what it owns and never does", source.path);
    if opens { Vec::new() } else { vec![finding] }
}

/// Lines wider than the page.
pub(crate) fn wide_lines(source: &Source) -> Vec<String> {
    let wide = source.text.lines().enumerate().filter(|(_, l)| l.chars().count() > COLUMNS_MAX);
    wide.map(|(i, _)| format!("{}:{}: over {COLUMNS_MAX} columns", source.path, i + 1)).collect()
}

/// A file longer than the limit, without its unit tests.
pub(crate) fn long_files(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let tests = code.find("#[cfg(test)]\nmod tests {");
    let tests = tests.map_or(0, |at| block_lines(&code, at).unwrap_or_default());
    let lines = source.text.lines().count() - tests;
    if lines <= FILE_LINES_MAX {
        return Vec::new();
    }
    vec![format!("{}: {lines} lines, at most {FILE_LINES_MAX}", source.path)]
}

/// Functions longer than the limit.
pub(crate) fn long_functions(source: &Source) -> Vec<String> {
    let code = code(&source.text);
    let named = |at: &usize| {
        let rest = code[at + 2..].trim_start();
        rest.starts_with(|c: char| is_word(c))
    };
    let mut findings = Vec::new();
    for at in words(&code, "fn").filter(named) {
        let lines = block_lines(&code, at).unwrap_or_default();
        if lines > FUNCTION_LINES_MAX {
            let (path, line) = (&source.path, line_of(&code, at));
            findings.push(format!("{path}:{line}: {lines} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
    findings
}

/// Lines from `at` to the end of the block that opens first; none if a `;` ends it before.
fn block_lines(code: &str, at: usize) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (i, c) in code[at..].char_indices() {
        match c {
            // The attribute `#[…]` and the array `[T; N]` have brackets of their own.
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(code[at..at + i].matches('\n').count() + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[test]
fn a_missing_opening_is_found() {
    assert_eq!(without_opening(&Source::sample("a.rs", "use x;\n//! late")).len(), 1);
    assert_eq!(without_opening(&Source::sample("a.rs", "")).len(), 1);
    assert_eq!(without_opening(&Source::sample("a.rs", "//! Owns a.\n")).len(), 0);
}

#[test]
fn a_wide_line_is_found_by_its_characters() {
    let count = |text: String| wide_lines(&Source::sample("a.rs", &text)).len();
    assert_eq!(count("x".repeat(101)), 1);
    assert_eq!(count(format!("{}\n{}", "ก".repeat(100), "x".repeat(100))), 0);
}

#[test]
fn a_long_file_is_found_without_its_tests() {
    let count = |text: String| long_files(&Source::sample("a.rs", &text)).len();
    let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// t\n".repeat(50));
    assert_eq!(count("// x\n".repeat(401)), 1);
    assert_eq!(count("// x\n".repeat(400) + &tests), 0);
    assert_eq!(count("// x\n".repeat(401) + &tests), 1);
    assert_eq!(count("// x\n".repeat(300) + &tests + &"// y\n".repeat(101)), 1);
}

#[test]
fn a_long_function_is_found() {
    let body = |lines| format!("fn f(a: [u8; 4]) {{\n{}}}\n", "  if x { y; }\n".repeat(lines));
    let count = |text: String| long_functions(&Source::sample("a.rs", &text)).len();
    assert_eq!(count(body(69)), 1);
    assert_eq!(count(body(68)), 0);
    assert_eq!(count(body(40) + &body(40)), 0);
    assert_eq!(count(format!("trait T {{ fn f(&self);\n{}}}", "// \n".repeat(99))), 0);
    assert_eq!(count(format!("impl A {{\nfn g(f: fn(u8)) {{}}\n{}}}", body(70))), 1);
}

//! The files of the tree, and Rust text without its comments and strings.

use std::path::Path;
use std::process::Command;

/// A text file, its path relative to the root.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// A made-up file for a rule's own test.
    pub(crate) fn sample(path: &str, text: &str) -> Self {
        Source { path: path.into(), text: text.into() }
    }
}

/// All text files that are committed or would be.
pub(crate) fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .expect("git lists the tree");
    assert!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr));
    let names = String::from_utf8(listing.stdout).expect("paths are text");
    // A file that is not text, or was deleted and not committed yet, has no style.
    let read =
        |path: &str| Some(Source::sample(path, &std::fs::read_to_string(root.join(path)).ok()?));
    names.split('\0').filter(|path| !path.is_empty()).filter_map(read).collect()
}

/// The code of a Rust text: comments, strings and characters blanked, line breaks kept.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skip(&chars, at);
        if end == at {
            code.push(chars[at]);
            at += 1;
        } else {
            code.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    code
}

/// The end of the comment, string or character that begins at `at`; `at` itself if none does.
fn skip(chars: &[char], at: usize) -> usize {
    let starts = |text: &str| text.chars().enumerate().all(|(i, c)| chars.get(at + i) == Some(&c));
    let is_inside_word = at > 0 && is_word(chars[at - 1]);
    if starts("//") {
        return (at..chars.len()).find(|&i| chars[i] == '\n').unwrap_or(chars.len());
    }
    if starts("/*") {
        let closes = |&i: &usize| chars[i - 1] == '*' && chars[i] == '/';
        return (at + 3..chars.len()).find(closes).map_or(chars.len(), |i| i + 1);
    }
    if chars[at] == '"' {
        return quoted(chars, at, '"');
    }
    if chars[at] == '\'' {
        // A lifetime has no second quote after one character.
        let is_char = chars.get(at + 1) == Some(&'\\') || chars.get(at + 2) == Some(&'\'');
        return if is_char { quoted(chars, at, '\'') } else { at };
    }
    if chars[at] == 'r' && !is_inside_word {
        let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
        if chars.get(at + 1 + hashes) == Some(&'"') {
            let closing: Vec<char> =
                std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
            let from = at + 2 + hashes;
            let found = chars[from..].windows(closing.len()).position(|w| w == closing);
            return found.map_or(chars.len(), |i| from + i + closing.len());
        }
    }
    at
}

fn quoted(chars: &[char], at: usize, quote: char) -> usize {
    let mut end = at + 1;
    while end < chars.len() && chars[end] != quote {
        end += if chars[end] == '\\' { 2 } else { 1 };
    }
    (end + 1).min(chars.len())
}

/// Whether a character continues a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The places where `word` is a whole word.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The line of a position, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[test]
fn comments_strings_and_characters_are_not_code() {
    let text = "a // {\nb /* { */ c \"{ \\\" {\" r#\"{ \" {\"# '{' '\\'' &'x d";
    let kept: String = code(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(kept, "a b c &'x d");
    assert_eq!(code(text).matches('\n').count(), 1);
    assert_eq!(code("r\"{\" br \"{\" 'a: b").trim(), "br     'a: b");
}

#[test]
fn a_word_is_found_only_where_it_stands_alone() {
    assert_eq!(words("fred freddy alfred fred::x _fred", "fred").collect::<Vec<_>>(), [0, 19]);
}

//! Which text a number may hold: printable, in Unicode normal form C.
//!
//! Parts that pass here can be joined in any order and the whole is in normal form C again: no part
//! begins with a character that could combine with the one before it.

use std::borrow::Cow;

use thiserror::Error;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc, is_nfc_quick};
use unicode_script::{Script, UnicodeScript};

use super::TEXT_CHARS_MAX;

/// More bytes than any spelling of a code has: four for a character, and four characters for a
/// composed one.
const CODE_BYTES_MAX: usize = 4 * 4 * TEXT_CHARS_MAX;

/// Whether a text may have several lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// It has one.
    One,
    /// It may have line breaks and tabs.
    Many,
}

/// A character that no stored text may hold: a control, one that is invisible or changes the
/// direction of others, or one without a meaning in Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("character {position}, U+{:04X}, is not printable; remove it", u32::from(*character))]
pub struct Unprintable {
    /// Its place, counted from 1.
    pub position: usize,
    /// The character.
    pub character: char,
}

/// Checks a text that is stored: all of it must be visible. The one definition of printable text,
/// in numbers and elsewhere.
///
/// # Errors
/// The first character that is not printable.
pub fn check_printable(text: &str, lines: Lines) -> Result<(), Unprintable> {
    let breaks = |c: char| lines == Lines::Many && matches!(c, '\n' | '\t');
    let flaw = text.chars().enumerate().find(|(_, c)| !is_printable(*c) && !breaks(*c));
    flaw.map_or(Ok(()), |(before, character)| Err(Unprintable { position: before + 1, character }))
}

/// A text as it may be shown on a terminal: what is not printable is escaped as `\u{1b}`, except
/// line breaks and tabs.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    if check_printable(text, Lines::Many).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' | '\t' => shown.push(character),
            _ if is_printable(character) => shown.push(character),
            _ => shown.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
    text
}

/// The text in normal form C.
pub(super) fn normalise(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.nfc().collect())
    }
}

/// A code to look up, in normal form C. One that is longer than any code stays as it is:
/// normalising takes time, and it would not be found.
pub(super) fn normal_code(text: &str) -> Cow<'_, str> {
    if text.len() > CODE_BYTES_MAX { Cow::Borrowed(text) } else { normalise(text) }
}

/// Whether a number may hold the character: visible, or the plain space.
///
/// Invisible formatting characters are refused because two codes that look the same would name two
/// counters.
pub(super) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // Unicode's property Default_Ignorable_Code_Point: joiners, fillers, variation selectors, tags.
    let ignorable = matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}');
    // The marks of annotations, and the Braille pattern without a dot.
    let invisible = matches!(character, '\u{fff9}'..='\u{fffb}' | '\u{2800}');
    let blank = character.is_whitespace() && character != ' ';
    // Code points that are not assigned, for private use, or no characters.
    let meaningless = || character.script() == Script::Unknown;
    !(character.is_control() || ignorable || invisible || blank || meaningless())
}

/// Whether a part may begin with the character: it never changes what precedes it.
pub(super) fn may_begin(character: char) -> bool {
    let changes_nothing = |character| {
        !is_combining_mark(character)
            && is_nfc_quick(std::iter::once(character)) == IsNormalized::Yes
    };
    is_printable(character) && (character.is_ascii() || changes_nothing(character))
}

/// The first character that keeps a literal out of a number, with its byte offset.
pub(super) fn flaw_of_literal(text: &str) -> Option<(usize, char)> {
    let first = text.char_indices().next().filter(|(_, first)| !may_begin(*first));
    first.or_else(|| text.char_indices().find(|(_, c)| !is_printable(*c))).or_else(|| {
        // Not normal: name the first place where the normal form differs.
        let departs = text.char_indices().zip(text.nfc()).find(|((_, c), n)| c != n);
        let shorter = || text.char_indices().nth(text.nfc().count());
        departs.map(|(at, _)| at).or_else(shorter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thai_and_chinese_codes_are_printable() {
        for text in ["คคง.", "สคฉ.3", "ผรม.1", "กทท.", "業務員訂貨單", "ก่ำ", "A B"]
        {
            assert_eq!(flaw_of_literal(text), None, "{text}");
        }
    }

    #[test]
    fn invisible_characters_are_refused_and_named() {
        for c in [
            '\0',
            '\n',
            '\u{7f}',
            '\u{a0}',
            '\u{34f}',
            '\u{115f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{180b}',
            '\u{180f}',
            '\u{200b}',
            '\u{2028}',
            '\u{202e}',
            '\u{2800}',
            '\u{3164}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{ffff}',
            '\u{fdd0}',
            '\u{378}',
            '\u{e000}',
            '\u{f8ff}',
            '\u{10fffd}',
            '\u{2066}',
            '\u{2069}',
            '\u{200f}',
            '\u{85}',
            '\u{1d173}',
            '\u{e0100}',
        ] {
            let text = format!("AB{c}C");
            assert_eq!(flaw_of_literal(&text), Some((2, c)), "{c:?}");
        }
    }

    #[test]
    fn a_stored_text_is_seen_as_a_whole() {
        for text in ["", "A b", "ทำน้ำ", "è 業務 ✓ 😀", "ก่ำ"] {
            assert_eq!(check_printable(text, Lines::One), Ok(()), "{text}");
            assert_eq!(escaped(text), text);
        }
        assert_eq!(check_printable("a\n\tb", Lines::Many), Ok(()));
        let refused = check_printable("a\nb", Lines::One).unwrap_err();
        assert_eq!((refused.position, refused.character), (2, '\n'));
        let bidi = check_printable("invoice \u{202e}fdp", Lines::Many).unwrap_err();
        assert!(bidi.to_string().contains("character 9, U+202E"), "{bidi}");
        assert_eq!(escaped("a\u{1b}[2J\nb\u{9b}\u{202e}"), "a\\u{1b}[2J\nb\\u{9b}\\u{202e}");
    }

    #[test]
    fn a_part_does_not_begin_with_a_character_that_combines_with_the_one_before() {
        for c in ['\u{301}', '\u{e48}', '\u{e34}', '\u{1161}', '\u{3099}'] {
            assert!(!may_begin(c), "{c:?}");
        }
        assert!(may_begin('ก') && may_begin('é') && may_begin('單') && may_begin('-'));
    }

    #[test]
    fn text_outside_normal_form_c_is_named_where_it_departs() {
        assert_eq!(flaw_of_literal("Ae\u{301}"), Some((1, 'e')));
        assert_eq!(normalise("Ae\u{301}"), "Aé");
        assert!(matches!(normalise("คคง."), Cow::Borrowed(_)));
    }
}

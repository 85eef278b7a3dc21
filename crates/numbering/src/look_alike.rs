//! Values that look like others but count separately: `АСМЕ` in Cyrillic letters and `ACME`. By the
//! tables of Unicode TR39, and by the value alone: no table of counted values is read, so that it
//! costs nothing where numbers are taken.
//!
//! Never compares within ASCII: that `O` looks like `0`, and `rn` like `m`, is not an error; nor
//! within a script: the same tables call `ค`, `ด` and `ต` alike, which are letters of every other
//! Thai code. Misses values of two scripts that look alike and not like ASCII (`ГП`, `ΓΠ`).

use unicode_script::{Script, UnicodeScript};
use unicode_security::skeleton;

/// Scripts that have letters of the same look as Latin ones.
const TWINS: [Script; 6] = [
    Script::Greek,
    Script::Cyrillic,
    Script::Armenian,
    Script::Cherokee,
    Script::Coptic,
    Script::Lisu,
];

/// A character by which a text looks like another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LookAlike {
    /// Its place, counted from 1.
    pub(super) position: usize,
    pub(super) character: char,
    /// What it looks like, and the remedy.
    pub(super) why: String,
}

/// What a text looks like but is not. `takes`: whether a text might be another value of the same
/// place; letters of another script look like nothing if Latin ones are not taken.
pub(super) fn look_alike(text: &str, takes: impl Fn(&str) -> bool) -> Option<LookAlike> {
    if text.is_ascii() {
        return None;
    }
    misspelt(text).or_else(|| wide(text)).or_else(|| mixed(text)).or_else(|| foreign(text, takes))
}

/// Thai that is written in two characters and looks like one, or in an order that is not visible.
fn misspelt(text: &str) -> Option<LookAlike> {
    let chars: Vec<char> = text.chars().collect();
    let found = |at: usize, why: &str| {
        Some(LookAlike { position: at + 1, character: chars[at], why: why.into() })
    };
    for at in 0..chars.len() {
        let next = chars.get(at + 1).copied().unwrap_or_default();
        let behind_tone = if is_tone(next) { chars.get(at + 2).copied() } else { None };
        match chars[at] {
            '\u{e4d}' if next == '\u{e32}' || behind_tone == Some('\u{e32}') => {
                return found(at, "with า behind it, it looks like ำ (U+0E33); write that");
            }
            '\u{ecd}' if next == '\u{eb2}' => {
                return found(at, "with າ behind it, it looks like ຳ (U+0EB3); write that");
            }
            '\u{e40}' if next == '\u{e40}' => {
                return found(at, "twice, it looks like แ (U+0E41); write that");
            }
            tone if is_tone(tone) && is_above(next) => {
                return found(at, "a tone mark stands behind its vowel; write it there");
            }
            _ => {}
        }
    }
    None
}

/// A Thai tone mark.
fn is_tone(character: char) -> bool {
    matches!(character, '\u{e48}'..='\u{e4b}')
}

/// A Thai sign above or below its consonant, before the tone mark.
fn is_above(character: char) -> bool {
    matches!(character, '\u{e31}' | '\u{e34}'..='\u{e3a}' | '\u{e47}' | '\u{e4d}')
}

/// Letters and digits of ASCII in another width or in a mathematical style.
fn wide(text: &str) -> Option<LookAlike> {
    let is_styled = |c: char| {
        matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
            || matches!(c, '\u{1d400}'..='\u{1d7ff}') && c.is_alphanumeric()
    };
    let (before, character) = text.chars().enumerate().find(|(_, c)| is_styled(*c))?;
    let why = "a form of a letter or digit that has a plain one; write that".into();
    Some(LookAlike { position: before + 1, character, why })
}

/// Letters of Latin and of a script that shares their looks, or of two such scripts.
fn mixed(text: &str) -> Option<LookAlike> {
    let mut first = None;
    for (before, character) in text.chars().enumerate() {
        let script = character.script();
        if !character.is_alphabetic() || script != Script::Latin && !TWINS.contains(&script) {
            continue;
        }
        let known = *first.get_or_insert(script);
        if known != script {
            let (one, other) = (known.full_name(), script.full_name());
            let why = format!(
                "a letter of {other} beside letters of {one} that look the same; write all in one \
                 script"
            );
            return Some(LookAlike { position: before + 1, character, why });
        }
    }
    None
}

/// Letters of another script that all look like ASCII: the two texts are indistinguishable.
fn foreign(text: &str, takes: impl Fn(&str) -> bool) -> Option<LookAlike> {
    let mut seen = String::with_capacity(text.len());
    let mut first = None;
    for (before, character) in text.chars().enumerate() {
        if !TWINS.contains(&character.script()) {
            seen.push(character);
            continue;
        }
        // A character that looks like nothing else shows what the others are.
        seen.extend(plain(character)?);
        first.get_or_insert((before + 1, character));
    }
    let (position, character) = first.filter(|_| takes(&seen))?;
    let why = format!(
        "the whole looks like {seen:?} of Latin letters; write that, or have the series declare \
         an alphabet without them, or a table, or `look_alikes = \"allow\"`"
    );
    Some(LookAlike { position, character, why })
}

/// The letters or digits of ASCII that a character looks like.
fn plain(character: char) -> Option<Vec<char>> {
    let mut buffer = [0; 4];
    let like: Vec<char> = skeleton(character.encode_utf8(&mut buffer)).collect();
    let is_plain = like.iter().all(char::is_ascii_alphanumeric);
    // One sign represents `I` and `l` there.
    let shown = if like == ['l'] && character.is_uppercase() { vec!['I'] } else { like };
    is_plain.then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(usize, String)> {
        look_alike(text, |_| true).map(|found| (found.position, found.why))
    }

    #[test]
    fn what_looks_like_latin_letters_is_found_in_every_script_that_has_them() {
        for (text, position, says) in [
            ("АСМЕ", 1, "looks like \"ACME\" of Latin letters"),
            ("ΑΜΕ", 1, "looks like \"AME\""),
            ("ІНН-7", 1, "looks like \"IHH-7\""),
            ("ACМE", 3, "a letter of Cyrillic beside letters of Latin"),
            ("ΔP", 2, "a letter of Latin beside letters of Greek"),
            ("\u{ff21}\u{ff23}\u{ff2d}\u{ff25}", 1, "write that"),
            ("PO-\u{ff11}", 4, "write that"),
            ("𝐀CME", 1, "write that"),
        ] {
            let (found, why) = told(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found, position, "{text}");
            assert!(why.contains(says), "{text}: {why}");
        }
        // Without Latin letters there is nothing to look like; a mixture is never intended.
        assert_eq!(look_alike("АСМЕ", |other| other != "ACME"), None);
        assert!(look_alike("ACМE", |_| false).is_some());
    }

    #[test]
    fn thai_that_looks_like_other_thai_is_found() {
        for (text, position) in [
            ("ท\u{e4d}\u{e32}", 2),
            ("น\u{e4d}\u{e49}\u{e32}", 2),
            ("น\u{e49}\u{e4d}\u{e32}", 2),
            ("\u{e40}\u{e40}ก", 1),
            ("ท\u{e48}\u{e35}", 2),
        ] {
            assert_eq!(told(text).map(|(at, _)| at), Some(position), "{text}");
        }
    }

    #[test]
    fn what_people_write_is_not_taken_for_anything_else() {
        for text in [
            "ACME",
            "O0-l1",
            "rn",
            "ทำ",
            "น้ำ",
            "ที่",
            "แก",
            "เก",
            "ผรม.1-ABC",
            "สคฉ",
            "สดฉ",
            "คคง.",
            "๑๐",
            "ก่ำ",
            "業務員訂貨單",
            "二〇二四",
            "一",
            "カタカナ-7",
            "Straße",
            "Kadıköy",
            "Đà Nẵng",
            "été",
            "Договор",
            "ЗАО Мир",
            "Δ",
            "Ωμ",
            "Ⅳ",
            "（2024）",
            "№ 7",
            "m²",
            "서울-A",
            "กทท-業務",
            "สิทธิ์",
            "เสร็จ",
            "ก็",
            "ปี๊บ",
            "ฟุ้ง",
            "กู้",
        ] {
            assert_eq!(told(text), None, "{text}");
        }
    }
}

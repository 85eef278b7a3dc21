//! Which of some texts a mistyped one is nearest to, by the number of edits between them.
//!
//! Costs little for many and long texts: lengths are compared first, then the beginnings alone, and
//! of these only as far as they are near. A text that is far from all of them is nearest to none.

use super::error::EXCERPT_CHARS_MAX;

/// Most edits between two texts that are near: a character inserted, removed or changed, or two
/// neighbours swapped.
const EDITS_MAX: u8 = 3;

/// More edits than that.
const FAR: u8 = EDITS_MAX + 1;

/// How much of a text is compared, in characters: as much as an error quotes.
const HEAD_CHARS_MAX: usize = EXCERPT_CHARS_MAX;

/// A text as it is compared.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// Its beginning, in lower case.
    text: Box<str>,
    /// How long the whole is, in characters.
    chars: usize,
}

impl Head {
    pub(super) fn of(text: &str) -> Self {
        let lower = || text.chars().flat_map(char::to_lowercase);
        let head: String = lower().take(HEAD_CHARS_MAX).collect();
        Head { text: head.into(), chars: lower().count() }
    }
}

/// The index of the nearest one, the first of equally near ones; `None` if none is near.
pub(super) fn nearest<'h>(heads: impl IntoIterator<Item = &'h Head>, text: &str) -> Option<usize> {
    within(heads, &Head::of(text), EDITS_MAX)
}

/// The index of the name that a mistyped one probably means: the nearest of those from which at
/// most a third of its letters differ. Short names are all near to each other.
pub(super) fn meant<'h>(
    heads: impl IntoIterator<Item = &'h Head>,
    mistyped: &str,
) -> Option<usize> {
    let wanted = Head::of(mistyped);
    let third = u8::try_from(wanted.chars.div_ceil(3)).unwrap_or(EDITS_MAX);
    within(heads, &wanted, third.min(EDITS_MAX))
}

fn within<'h>(
    heads: impl IntoIterator<Item = &'h Head>,
    wanted: &Head,
    edits_max: u8,
) -> Option<usize> {
    let chars: Vec<char> = wanted.text.chars().collect();
    let (mut found, mut most) = (None, edits_max);
    for (index, head) in heads.into_iter().enumerate() {
        if head.chars.abs_diff(wanted.chars) > usize::from(most) {
            continue;
        }
        let Some(edits) = edits(&head.text, &chars, most) else { continue };
        found = Some(index);
        // Another one has to be nearer.
        match edits.checked_sub(1) {
            Some(fewer) => most = fewer,
            None => break,
        }
    }
    found
}

/// Edits between two beginnings, if they are at most this many. Each row of the table is examined
/// only within that distance of its diagonal, and none below a row without a near cell.
fn edits(one: &str, other: &[char], most: u8) -> Option<u8> {
    let (width, band) = (other.len(), usize::from(most));
    // The row of a character, the one before it, and the one before that.
    let mut rows = [[FAR; HEAD_CHARS_MAX + 1]; 3];
    for (cell, edits) in rows[1].iter_mut().zip(0..=most) {
        *cell = edits;
    }
    let mut before = None;
    for (index, character) in one.chars().enumerate() {
        let line = index + 1;
        let [two_back, back, row] = &mut rows;
        row.fill(FAR);
        if line <= band {
            row[0] = back[0] + 1;
        }
        let mut least = row[0];
        for at in line.saturating_sub(band).max(1)..=(line + band).min(width) {
            let is_same = other[at - 1] == character;
            let changed = back[at - 1] + u8::from(!is_same);
            let mut edits = changed.min(back[at] + 1).min(row[at - 1] + 1);
            if at > 1 && other[at - 2] == character && before == Some(other[at - 1]) {
                edits = edits.min(two_back[at - 2] + 1);
            }
            row[at] = edits.min(FAR);
            least = least.min(edits);
        }
        if least > most {
            return None;
        }
        before = Some(character);
        rows.rotate_left(1);
    }
    Some(rows[1][width]).filter(|edits| *edits <= most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn among(texts: &[&str], text: &str) -> Option<usize> {
        let heads: Vec<Head> = texts.iter().map(|text| Head::of(text)).collect();
        nearest(&heads, text)
    }

    #[test]
    fn the_nearest_is_found_by_every_kind_of_edit_and_the_first_of_two_that_are_as_near() {
        for (text, wanted) in [
            ("ACME", Some(0)),
            ("acme", Some(0)),
            ("ACMEE", Some(0)),
            ("CME", Some(0)),
            ("AXME", Some(0)),
            ("CAME", Some(0)),
            ("BLOT", Some(1)),
            ("BOLTXYZ", Some(1)),
            ("BOLTWXYZ", None),
            ("", None),
        ] {
            assert_eq!(among(&["ACME", "BOLT", "ACME"], text), wanted, "{text}");
        }
        assert_eq!(among(&["AB", "AC"], "AD"), Some(0));
        assert_eq!(among(&["AAAA", "AC"], "AD"), Some(1));
        assert_eq!(among(&[], "AD"), None);
    }

    #[test]
    fn the_name_that_is_most_like_the_mistyped_one_is_meant_and_none_that_is_unlike_it() {
        let names = ["ADJ", "BPO", "INVITE", "INVOICE", "SPO", "VOICE"];
        let heads: Vec<Head> = names.iter().map(|name| Head::of(name)).collect();
        for (mistyped, name) in [
            ("INVOCE", Some("INVOICE")),
            ("invoice", Some("INVOICE")),
            ("SOP", Some("SPO")),
            ("LETTER", None),
            ("", None),
        ] {
            assert_eq!(meant(&heads, mistyped).map(|index| names[index]), name, "{mistyped}");
        }
        assert_eq!(meant(&heads, &"x".repeat(1_000_000)), None);
    }

    #[test]
    fn of_long_texts_the_beginning_decides_and_the_length_of_the_whole() {
        let long = |end: &str| format!("{}{end}", "x".repeat(HEAD_CHARS_MAX));
        assert_eq!(among(&[&long("one")], &long("two")), Some(0));
        assert_eq!(among(&[&long("1234")], &long("")), None);
        assert_eq!(among(&[&"ab".repeat(500)], &"ac".repeat(500)), None);
    }

    proptest! {
        /// As the library computes it, which examines the whole table.
        #[test]
        fn near_texts_are_as_far_apart_as_they_are((one, other) in ("[abc]{0,12}", "[abc]{0,12}")) {
            let chars: Vec<char> = other.chars().collect();
            let whole = strsim::osa_distance(&one, &other);
            for most in 0..=EDITS_MAX {
                let wanted = u8::try_from(whole).ok().filter(|whole| *whole <= most);
                prop_assert_eq!(edits(&one, &chars, most), wanted, "{} {} {}", one, other, most);
            }
        }
    }
}

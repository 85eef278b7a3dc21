//! Check characters: computed over everything to their left, so that a mistyped number is noticed.
//!
//! Signs that are neither letters nor digits separate and are skipped. Which characters may appear
//! to the left is decided when a series is compiled, never here.

use unicode_normalization::char::is_combining_mark;

/// A check character algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Check {
    /// Luhn, ISO/IEC 7812-1 annex B: digits, one digit.
    Luhn,
    /// ISO/IEC 7064 MOD 97-10: digits and capital letters (A = 10 … Z = 35), two digits.
    Mod97,
    /// ISO/IEC 7064 MOD 37,36: digits and capital letters, one of them.
    Mod37,
    /// Damm (2004): digits, one digit.
    Damm,
}

/// The names in templates, and in partially rendered numbers.
const NAMES: [(&str, Check); 4] = [
    ("luhn", Check::Luhn),
    ("mod97-10", Check::Mod97),
    ("mod37-36", Check::Mod37),
    ("damm", Check::Damm),
];

/// Damm's totally anti-symmetric quasigroup of order 10.
const DAMM: [[u8; 10]; 10] = [
    [0, 3, 1, 7, 5, 9, 8, 6, 4, 2],
    [7, 0, 9, 2, 1, 5, 4, 8, 6, 3],
    [4, 2, 0, 6, 8, 7, 1, 3, 5, 9],
    [1, 7, 5, 0, 9, 8, 3, 4, 2, 6],
    [6, 1, 2, 3, 0, 4, 5, 9, 7, 8],
    [3, 6, 7, 4, 2, 0, 9, 5, 8, 1],
    [5, 8, 6, 9, 7, 2, 0, 1, 3, 4],
    [8, 9, 4, 5, 3, 6, 2, 0, 1, 7],
    [9, 4, 3, 8, 6, 1, 7, 2, 0, 5],
    [2, 5, 8, 1, 4, 3, 6, 7, 9, 0],
];

impl Check {
    /// The algorithm of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        let known = NAMES.iter().find(|(_, check)| *check == self);
        known.expect("every algorithm has a name").0
    }

    /// The number of its check characters.
    pub(super) fn width(self) -> usize {
        if self == Check::Mod97 { 2 } else { 1 }
    }

    /// What it reads, in words.
    pub(super) fn reads(self) -> &'static str {
        match self {
            Check::Luhn | Check::Damm => "0-9",
            Check::Mod97 | Check::Mod37 => "0-9A-Z",
        }
    }

    /// Whether a character to its left would change nothing although it has a meaning: a letter or
    /// digit that the algorithm cannot read.
    pub(super) fn overlooks(self, character: char) -> bool {
        let means = character.is_alphanumeric() || is_combining_mark(character);
        means && self.value(character).is_none()
    }

    /// The value of a character that it reads.
    fn value(self, character: char) -> Option<u8> {
        let value = match character {
            '0'..='9' => u32::from(character) - u32::from('0'),
            'A'..='Z' if self.reads_letters() => u32::from(character) - u32::from('A') + 10,
            _ => return None,
        };
        u8::try_from(value).ok()
    }

    pub(super) fn reads_letters(self) -> bool {
        matches!(self, Check::Mod97 | Check::Mod37)
    }

    /// Appends the check characters of the text so far.
    pub(super) fn push(self, text: &mut String) {
        let (characters, width) = self.characters(text.chars());
        text.extend(&characters[..width]);
    }

    /// The check characters of a text, and their number.
    pub(super) fn characters(self, text: impl Iterator<Item = char>) -> ([char; 2], usize) {
        let mut running = Running::of(self);
        text.for_each(|character| running.read(character));
        running.characters()
    }
}

/// A check over text that is read from left to right: few states, so that a search can follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Running {
    check: Check,
    /// The state after the text so far. For Luhn, the sum if the last digit counts twice.
    state: u8,
    /// For Luhn, the sum if the last digit counts once.
    other: u8,
}

impl Running {
    /// Before the first character.
    pub(super) fn of(check: Check) -> Self {
        Running { check, state: if check == Check::Mod37 { 36 } else { 0 }, other: 0 }
    }

    /// Reads the next character.
    pub(super) fn read(&mut self, character: char) {
        let Some(value) = self.check.value(character) else { return };
        match self.check {
            // From the right, every second digit counts twice, its own digits summed.
            Check::Luhn => {
                let twice = 2 * value / 10 + 2 * value % 10;
                (self.state, self.other) = ((self.other + twice) % 10, (self.state + value) % 10);
            }
            Check::Damm => self.state = DAMM[usize::from(self.state)][usize::from(value)],
            // A letter counts as two digits.
            Check::Mod97 => {
                let base: u16 = if value < 10 { 10 } else { 100 };
                let remainder = (u16::from(self.state) * base + u16::from(value)) % 97;
                self.state = u8::try_from(remainder).expect("below 97");
            }
            // The hybrid system of the moduli 37 and 36.
            Check::Mod37 => {
                let sum = (self.state + value) % 36;
                self.state = (if sum == 0 { 36 } else { sum }) * 2 % 37;
            }
        }
    }

    /// The check characters of what was read, and their number.
    pub(super) fn characters(self) -> ([char; 2], usize) {
        let check = match self.check {
            Check::Luhn => (10 - self.state) % 10,
            Check::Damm => self.state,
            Check::Mod37 => (37 - self.state) % 36,
            // The two digits after which the value leaves the remainder 1.
            Check::Mod97 => {
                let check = 98 - u16::from(self.state) * 100 % 97;
                let check = u8::try_from(check).expect("at most 98");
                return ([sign(check / 10), sign(check % 10)], 2);
            }
        };
        ([sign(check), ' '], 1)
    }
}

/// The sign of a value below 36.
fn sign(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'A' + value - 10 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checked(check: Check, text: &str) -> String {
        let mut text = text.to_owned();
        check.push(&mut text);
        text
    }

    #[test]
    fn published_numbers_have_the_published_check_characters() {
        for (check, text, expected) in [
            // The example of ISO/IEC 7812-1's algorithm that most texts repeat, and a test card.
            (Check::Luhn, "7992739871", "3"),
            (Check::Luhn, "411111111111111", "1"),
            // ISO/IEC 7064's own example; the LEI of ISO 17442; the IBAN of ISO 13616, rearranged.
            (Check::Mod97, "794", "44"),
            (Check::Mod97, "5493001KJTIIGC8Y1R", "12"),
            (Check::Mod97, "WEST12345698765432GB", "82"),
            // IFPI's GRid standard.
            (Check::Mod37, "A12425GABC1234002", "M"),
            (Check::Mod37, "A1-2425G-ABC1234002-", "M"),
            // Damm, "Total anti-symmetrische Quasigruppen" (2004).
            (Check::Damm, "572", "4"),
        ] {
            assert_eq!(checked(check, text), format!("{text}{expected}"), "{check:?}");
        }
    }

    #[test]
    fn separators_are_skipped_and_letters_that_are_not_read_are_overlooked() {
        assert_eq!(checked(Check::Luhn, "799-273.98/71"), "799-273.98/713");
        for check in NAMES.map(|(_, check)| check) {
            for (character, overlooked) in
                [('0', false), ('-', false), (' ', false), ('a', true), ('ค', true), ('่', true)]
            {
                assert_eq!(check.overlooks(character), overlooked, "{check:?} {character:?}");
            }
            assert_eq!(check.overlooks('A'), !check.reads_letters(), "{check:?}");
            assert_eq!(Check::named(check.name()), Some(check));
        }
    }

    proptest! {
        #[test]
        fn a_single_wrong_character_is_noticed(
            (which, text) in (0..NAMES.len(), "[0-9]{1,20}"),
            (place, wrong) in (0..20_usize, 1..10_u8),
        ) {
            let check = NAMES[which].1;
            let number = checked(check, &text);
            let mut typed = text.into_bytes();
            let place = place % typed.len();
            typed[place] = b'0' + (typed[place] - b'0' + wrong) % 10;
            let typed = String::from_utf8(typed).unwrap();
            let right = &number[typed.len()..];
            prop_assert!(!checked(check, &typed).ends_with(right), "{:?} {}", check, number);
        }

        #[test]
        fn two_swapped_neighbours_are_noticed(text in "[0-9]{2,20}", place in 0..19_usize) {
            // The others notice most: Luhn does not distinguish 09 from 90.
            for check in [Check::Mod97, Check::Damm] {
                let number = checked(check, &text);
                let mut typed = text.clone().into_bytes();
                let place = place % (typed.len() - 1);
                prop_assume!(typed[place] != typed[place + 1]);
                typed.swap(place, place + 1);
                let typed = String::from_utf8(typed).unwrap();
                let right = &number[typed.len()..];
                prop_assert!(!checked(check, &typed).ends_with(right), "{:?} {}", check, number);
            }
        }
    }
}

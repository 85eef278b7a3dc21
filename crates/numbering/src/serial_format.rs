//! How a serial's value is written: digits or letters, how many, and whether there may be more. The
//! only place that turns values into text and back.

use super::{NUMBER_MAX, Overflow, Style};

/// Largest width of a `{SEQ:n}`: every value of this many digits is below `NUMBER_MAX`.
pub(super) const WIDTH_MAX: usize = 15;

/// Digits of the widest value, `NUMBER_MAX`; its letters are fewer.
pub(super) const SERIAL_CHARS_MAX: usize = 16;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SerialFormat {
    /// The signs in use.
    pub(super) style: Style,
    /// Least characters: smaller values have leading zeros, or leading `A`s.
    pub(super) width: usize,
    /// Whether a value that does not fit gets more of them.
    pub(super) widens: bool,
}

impl SerialFormat {
    /// Digits, as many as the value has.
    pub(super) const PLAIN: SerialFormat =
        SerialFormat { style: Style::Digits, width: 1, widens: true };

    /// The format of a token; one without a width takes as many characters as a value needs.
    pub(super) fn of(style: Style, width: Option<usize>, overflow: Overflow) -> Self {
        let widens = width.is_none() || overflow == Overflow::Widen;
        SerialFormat { style, width: width.unwrap_or(1), widens }
    }

    /// The largest value that it can show.
    pub(super) fn value_max(self) -> u64 {
        if self.widens {
            return NUMBER_MAX;
        }
        let texts = texts_of(self.style, self.width);
        NUMBER_MAX.min(match self.style {
            // One text of digits is zero.
            Style::Digits => texts - 1,
            Style::Letters => texts,
        })
    }

    /// Most characters.
    pub(super) fn width_max(self) -> usize {
        if self.widens { SERIAL_CHARS_MAX } else { self.width }
    }

    /// Characters of a value that it can show.
    pub(super) fn chars(self, value: u64) -> usize {
        match self.style {
            Style::Digits => digits(value).max(self.width),
            Style::Letters => letters(value, self.width).0,
        }
    }

    /// Characters of a value without those that only fill its width.
    pub(super) fn chars_used(self, value: u64) -> usize {
        let chars = self.chars(value);
        match self.style {
            _ if chars > self.width => chars,
            Style::Digits => digits(value),
            // As many as its place among the texts of the width has, counted in letters.
            Style::Letters => {
                value.saturating_sub(1).checked_ilog(26).map_or(1, |log| log as usize + 1)
            }
        }
    }

    /// Appends a value; false if it does not fit, and then nothing is appended.
    pub(super) fn push(self, text: &mut String, value: u64) -> bool {
        if value > self.value_max() {
            return false;
        }
        match self.style {
            Style::Digits => push_padded(text, value, self.width),
            Style::Letters if value == 0 => return false,
            Style::Letters => {
                let (chars, mut rest) = letters(value, self.width);
                let mut buffer = [b'A'; SERIAL_CHARS_MAX];
                for letter in buffer[..chars].iter_mut().rev() {
                    *letter += u8::try_from(rest % 26).expect("a letter fits a byte");
                    rest /= 26;
                }
                text.push_str(std::str::from_utf8(&buffer[..chars]).expect("letters are ASCII"));
            }
        }
        true
    }

    /// The value that is written like this; `None` if there is none. Values start at 1, each has
    /// one text only, and digits of other scripts would be another one.
    pub(super) fn read(self, shown: &[char]) -> Option<u64> {
        let wider = shown.len() > self.width;
        if shown.len() < self.width || shown.len() > SERIAL_CHARS_MAX || wider && !self.widens {
            return None;
        }
        let value = match self.style {
            Style::Digits if wider && shown[0] == '0' => return None,
            Style::Digits => number(shown)?,
            Style::Letters => {
                let place = |place: u64, letter: &char| {
                    let letter = u32::from(*letter).checked_sub(u32::from('A'))?;
                    place.checked_mul(26)?.checked_add(u64::from((letter < 26).then_some(letter)?))
                };
                let place = shown.iter().try_fold(0, place)?;
                let shorter = (self.width..shown.len()).try_fold(0_u64, |values, width| {
                    values.checked_add(texts_of(Style::Letters, width))
                });
                place.checked_add(shorter?)?.checked_add(1)?
            }
        };
        (1..=NUMBER_MAX).contains(&value).then_some(value)
    }

    /// In words, for an error message.
    pub(super) fn describe(self) -> String {
        let signs = match self.style {
            Style::Digits => "digits",
            Style::Letters => "letters A-Z",
        };
        match (self.widens, self.width) {
            (true, 1) => format!("of {signs} that are needed"),
            (true, width) => format!("of at least {width} {signs}"),
            (false, width) => format!("of {width} {signs}"),
        }
    }
}

/// How many texts of `width` characters there are, at most the largest `u64`.
fn texts_of(style: Style, width: usize) -> u64 {
    let base: u64 = match style {
        Style::Digits => 10,
        Style::Letters => 26,
    };
    base.saturating_pow(u32::try_from(width).unwrap_or(u32::MAX))
}

/// How many letters a value has, and its place among the texts of that many, from 0: all texts of
/// the least width come first, then those of one letter more.
fn letters(value: u64, width: usize) -> (usize, u64) {
    let (mut chars, mut place) = (width, value.saturating_sub(1));
    while place >= texts_of(Style::Letters, chars) {
        place -= texts_of(Style::Letters, chars);
        chars += 1;
    }
    (chars, place)
}

/// How many digits a value has.
fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The value of ASCII digits; `None` for other characters.
pub(super) fn number(digits: &[char]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit.to_digit(10)?))
    })
}

/// Appends a value with leading zeros to at least `width` digits.
pub(super) fn push_padded(text: &mut String, value: u64, width: usize) {
    // 20 digits hold every u64; widths are at most 16.
    let mut buffer = [b'0'; 20];
    let mut at = buffer.len();
    let mut rest = value;
    while rest > 0 {
        at -= 1;
        buffer[at] += u8::try_from(rest % 10).expect("a digit fits a byte");
        rest /= 10;
    }
    let from = at.min(buffer.len() - width.clamp(1, buffer.len()));
    text.push_str(std::str::from_utf8(&buffer[from..]).expect("digits are ASCII"));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn format(style: Style, width: usize, widens: bool) -> SerialFormat {
        SerialFormat { style, width, widens }
    }

    fn shown(format: SerialFormat, value: u64) -> Option<String> {
        let mut text = String::new();
        format.push(&mut text, value).then_some(text)
    }

    fn read(format: SerialFormat, text: &str) -> Option<u64> {
        format.read(&text.chars().collect::<Vec<_>>())
    }

    #[test]
    fn letters_count_like_columns_of_a_sheet() {
        let plain = format(Style::Letters, 1, true);
        for (value, text) in [(1, "A"), (26, "Z"), (27, "AA"), (702, "ZZ"), (703, "AAA")] {
            assert_eq!(shown(plain, value).as_deref(), Some(text));
            assert_eq!(read(plain, text), Some(value));
        }
        assert_eq!(shown(plain, NUMBER_MAX).map(|text| text.len()), Some(12));
        assert_eq!(shown(plain, 0), None);
    }

    #[test]
    fn letters_of_a_width_begin_at_a_and_end_at_z() {
        let two = format(Style::Letters, 2, false);
        assert_eq!(two.value_max(), 676);
        for (value, text) in [(1, "AA"), (26, "AZ"), (27, "BA"), (676, "ZZ")] {
            assert_eq!(shown(two, value).as_deref(), Some(text));
            assert_eq!(read(two, text), Some(value));
        }
        assert_eq!(shown(two, 677), None);
        let widening = format(Style::Letters, 2, true);
        assert_eq!(shown(widening, 677).as_deref(), Some("AAA"));
        assert_eq!(read(widening, "AAA"), Some(677));
        assert_eq!(format(Style::Letters, 15, false).value_max(), NUMBER_MAX);
    }

    #[test]
    fn what_only_fills_a_width_is_not_used() {
        for (format, used) in [
            (format(Style::Digits, 3, false), [(1, 1), (9, 1), (10, 2), (999, 3)]),
            (format(Style::Digits, 1, true), [(1, 1), (10, 2), (999, 3), (NUMBER_MAX, 16)]),
            (format(Style::Letters, 2, false), [(1, 1), (26, 1), (27, 2), (676, 2)]),
            (format(Style::Letters, 2, true), [(1, 1), (27, 2), (676, 2), (677, 3)]),
        ] {
            for (value, chars) in used {
                assert_eq!(format.chars_used(value), chars, "{format:?} {value}");
            }
        }
    }

    #[test]
    fn a_widening_figure_shows_the_digit_more_and_nothing_else() {
        let three = format(Style::Digits, 3, true);
        for (value, text) in [(7, "007"), (999, "999"), (1000, "1000")] {
            assert_eq!(shown(three, value).as_deref(), Some(text));
            assert_eq!(read(three, text), Some(value));
        }
        assert_eq!(shown(format(Style::Digits, 3, false), 1000), None);
    }

    #[test]
    fn a_text_that_no_value_has_is_not_read() {
        let (fixed, widening) = (format(Style::Digits, 3, false), format(Style::Digits, 3, true));
        let (letters, plain) = (format(Style::Letters, 3, true), format(Style::Digits, 1, true));
        for (format, text) in [
            (fixed, "000"),
            (fixed, "0001"),
            (fixed, "12"),
            (fixed, "๐๐๑"),
            (widening, "0999"),
            (widening, "99999999999999999"),
            (plain, "0"),
            (plain, "9007199254740992"),
            (letters, "AA"),
            (letters, "AaA"),
            (letters, "A0A"),
            (letters, "ZZZZZZZZZZZZZZZZ"),
        ] {
            assert_eq!(read(format, text), None, "{format:?} {text}");
        }
    }

    proptest! {
        #[test]
        fn a_value_is_read_back_from_its_one_text(
            (letters, width, widens) in (any::<bool>(), 1..=WIDTH_MAX, any::<bool>()),
            value in prop_oneof![1..20_000_u64, 1..=NUMBER_MAX],
        ) {
            let style = if letters { Style::Letters } else { Style::Digits };
            let format = format(style, width, widens);
            let text = shown(format, value);
            prop_assert_eq!(text.is_some(), value <= format.value_max());
            if let Some(text) = text {
                prop_assert_eq!(text.len(), format.chars(value));
                prop_assert!(text.len() <= SERIAL_CHARS_MAX);
                prop_assert_eq!(read(format, &text), Some(value));
            }
        }

        #[test]
        fn no_two_texts_are_one_value(text in "[0A-C]{1,4}|[0-9]{1,4}", width in 1..4_usize) {
            for style in [Style::Letters, Style::Digits] {
                let format = format(style, width, true);
                if let Some(value) = read(format, &text) {
                    prop_assert_eq!(shown(format, value), Some(text.clone()));
                }
            }
        }
    }
}

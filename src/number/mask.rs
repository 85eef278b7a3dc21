//! A number with everything decided but its serial values. Filling it is on the path of every
//! number: one allocation, no parsing, no formatting machinery.

use super::template_error::Place;
use super::{InputError, NUMBER_MAX, TEXT_CHARS_MAX, TemplateError};

/// Digits of the widest value, `NUMBER_MAX`.
pub(super) const DIGITS_MAX: usize = 16;

/// Largest width of a `{SEQ:n}`: every value of so many digits is below `NUMBER_MAX`.
pub(super) const WIDTH_MAX: usize = 15;

/// Most serials of one series.
pub(super) const SERIALS_MAX: usize = 8;

/// Longest text form of a mask, in bytes: every character escaped, or of four bytes.
const MASK_BYTES_MAX: usize = 8 * TEXT_CHARS_MAX;

/// What is left of a template once variables, dates and dimensions are filled in: literal text and
/// places for serial values. It travels with an allocation (outbox, journal), so that whoever holds
/// the record can render the number without the series.
///
/// Text form: literal text with `{index:width}` for the serial `index` (0-based) padded with zeros
/// to `width`, `{index}` for one without padding; `{{` and `}}` are braces. For example
/// `SPO-20240122-{0:3}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mask {
    /// All literal text, without the serials.
    literal: String,
    /// Places of serials, from left to right.
    slots: Vec<Slot>,
}

/// A place for a serial's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Bytes of `literal` before it.
    offset: usize,
    /// Which serial.
    serial: usize,
    /// Digits with leading zeros; without one as many as the value has.
    width: Option<usize>,
}

impl Mask {
    /// An empty mask for so many serials, with room for a number of ordinary length.
    pub(super) fn with_room(serials: usize) -> Self {
        Mask { literal: String::with_capacity(64), slots: Vec::with_capacity(serials) }
    }

    /// Appends literal text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.literal.push_str(text);
    }

    /// Appends a number padded with zeros; `value` has at most `width` digits.
    pub(super) fn push_digits(&mut self, value: u64, width: usize) {
        push_padded(&mut self.literal, value, width);
    }

    /// Appends the place of a serial.
    pub(super) fn push_serial(&mut self, serial: usize, width: Option<usize>) {
        self.slots.push(Slot { offset: self.literal.len(), serial, width });
    }

    /// Length of the longest number, in characters; `widest` gives the most digits of a serial
    /// without a width.
    pub(super) fn chars_max(&self, widest: impl Fn(usize) -> usize) -> usize {
        let digits = |slot: &Slot| slot.width.unwrap_or_else(|| widest(slot.serial));
        self.literal.chars().count() + self.slots.iter().map(digits).sum::<usize>()
    }

    /// Renders the number for one value per serial, in the order of the series' serials.
    ///
    /// # Errors
    /// `InputError::SerialTooWide` when a value does not fit its width: never a silent widening
    /// (R2.5). `InputError::SerialMissing` when there are fewer values than serials.
    pub fn fill(&self, values: &[u64]) -> Result<String, InputError> {
        let room = self.slots.iter().map(|slot| slot.width.unwrap_or(DIGITS_MAX)).sum::<usize>();
        let mut number = String::with_capacity(self.literal.len() + room);
        let mut from = 0;
        for &Slot { offset, serial, width } in &self.slots {
            number.push_str(&self.literal[from..offset]);
            from = offset;
            let value = *values.get(serial).ok_or(InputError::SerialMissing { serial })?;
            if value > NUMBER_MAX || digits(value) > width.unwrap_or(DIGITS_MAX) {
                let width = width.unwrap_or(DIGITS_MAX);
                return Err(InputError::SerialTooWide { serial, value, width });
            }
            push_padded(&mut number, value, width.unwrap_or(1));
        }
        number.push_str(&self.literal[from..]);
        Ok(number)
    }

    /// The text form.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.literal.len() + 8 * self.slots.len());
        let mut from = 0;
        for slot in &self.slots {
            push_escaped(&mut text, &self.literal[from..slot.offset]);
            from = slot.offset;
            text.push('{');
            push_padded(&mut text, slot.serial as u64, 1);
            if let Some(width) = slot.width {
                text.push(':');
                push_padded(&mut text, width as u64, 1);
            }
            text.push('}');
        }
        push_escaped(&mut text, &self.literal[from..]);
        text
    }

    /// The number with `%s` in place of each serial; a percent sign of the text is doubled.
    pub(super) fn rule_format(&self) -> String {
        let constant = |from: usize, to: usize| self.literal[from..to].replace('%', "%%");
        let mut text = String::with_capacity(self.literal.len() + 2 * self.slots.len());
        let mut from = 0;
        for slot in &self.slots {
            text.push_str(&constant(from, slot.offset));
            text.push_str("%s");
            from = slot.offset;
        }
        text + &constant(from, self.literal.len())
    }

    /// Reads the text form back.
    ///
    /// # Errors
    /// Where the text is not a mask.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let fail =
            |offset, reason| Err(TemplateError::Mask { at: Place::of(text, offset), reason });
        if text.len() > MASK_BYTES_MAX {
            return fail(0, "a shorter text; no number is as long");
        }
        let mut mask = Mask::default();
        let mut offset = 0;
        while let Some(brace) = text[offset..].find(['{', '}']).map(|at| offset + at) {
            mask.literal.push_str(&text[offset..brace]);
            let rest = &text[brace..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                mask.literal.push_str(&rest[..1]);
                offset = brace + 2;
                continue;
            }
            let Some(end) = rest.find('}').filter(|end| *end > 0) else {
                return fail(brace, "`{{`, `}}` or a place such as {0:4}");
            };
            let (serial, width) = match rest[1..end].split_once(':') {
                Some((serial, width)) => (small(serial), Some(small(width))),
                None => (small(&rest[1..end]), None),
            };
            match (serial, width) {
                (Some(serial), None) if serial < SERIALS_MAX => mask.push_serial(serial, None),
                (Some(serial), Some(Some(width)))
                    if serial < SERIALS_MAX && (1..=WIDTH_MAX).contains(&width) =>
                {
                    mask.push_serial(serial, Some(width));
                }
                _ => return fail(brace, "a place such as {0:4}: serial 0 to 7, width 1 to 15"),
            }
            if mask.slots.len() > SERIALS_MAX {
                return fail(brace, "at most 8 serials");
            }
            offset = brace + end + 1;
        }
        mask.literal.push_str(&text[offset..]);
        Ok(mask)
    }
}

/// A number of one or two digits without a leading zero.
fn small(text: &str) -> Option<usize> {
    let canonical = matches!(text.as_bytes(), [b'0'..=b'9'] | [b'1'..=b'9', b'0'..=b'9']);
    canonical.then(|| text.parse().ok()).flatten()
}

fn push_escaped(text: &mut String, literal: &str) {
    for character in literal.chars() {
        text.push(character);
        if matches!(character, '{' | '}') {
            text.push(character);
        }
    }
}

/// How many digits a value has.
pub(super) fn digits(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
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

    #[test]
    fn values_are_padded_to_their_width() {
        let mask = Mask::parse("SPO-20240122-{0:3}").unwrap();
        for (value, number) in [(1, "001"), (15, "015"), (999, "999"), (0, "000")] {
            assert_eq!(mask.fill(&[value]).unwrap(), format!("SPO-20240122-{number}"));
        }
        assert_eq!(Mask::parse("{1:2}/{0}").unwrap().fill(&[120, 7]).unwrap(), "07/120");
        assert_eq!(Mask::parse("{0}").unwrap().fill(&[0]).unwrap(), "0");
        assert_eq!(Mask::parse("{{{0:1}}}").unwrap().fill(&[7]).unwrap(), "{7}");
    }

    #[test]
    fn a_serial_past_its_width_is_refused() {
        let refused = |text, value| Mask::parse(text).unwrap().fill(&[value]).unwrap_err();
        let expected = InputError::SerialTooWide { serial: 0, value: 1000, width: 3 };
        assert_eq!(refused("A{0:3}", 1000), expected);
        assert_eq!(refused("A{0:3}", 1000).slug(), "sequence-exhausted");
        assert_eq!(refused("{0}", NUMBER_MAX + 1).slug(), "sequence-exhausted");
        assert_eq!(refused("{0:3}", u64::MAX).slug(), "sequence-exhausted");
        let full = Mask::parse("{0}").unwrap().fill(&[NUMBER_MAX]).unwrap();
        assert_eq!(full, "9007199254740991");
    }

    #[test]
    fn a_value_too_few_is_an_error_and_no_panic() {
        let mask = Mask::parse("{0:3}-{1:3}").unwrap();
        assert_eq!(mask.fill(&[1]), Err(InputError::SerialMissing { serial: 1 }));
    }

    #[test]
    fn text_that_is_no_mask_is_refused_at_its_place() {
        let long = "x".repeat(MASK_BYTES_MAX + 1);
        for (text, position) in [
            ("a{", 2),
            ("ก}b", 2),
            ("{}", 1),
            ("{x}", 1),
            ("{0:}", 1),
            ("{0:0}", 1),
            ("{0:16}", 1),
            ("{0:04}", 1),
            ("{8:3}", 1),
            ("a{0:3}{+1:3}", 7),
            ("{0}{0}{0}{0}{0}{0}{0}{0}{0}", 25),
            (long.as_str(), 1),
        ] {
            match Mask::parse(text) {
                Err(TemplateError::Mask { at, .. }) => assert_eq!(at.position, position, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    /// Places, each with the text before it, and the text behind the last.
    type Shape = (Vec<(String, usize, Option<usize>)>, String);

    /// Few characters, so that braces meet often.
    fn shape() -> impl Strategy<Value = Shape> {
        let text = || "[a{}ก]{0,3}";
        let place = (text(), 0..SERIALS_MAX, prop::option::of(1..=WIDTH_MAX));
        (prop::collection::vec(place, 0..=SERIALS_MAX), text())
    }

    fn mask((places, tail): &Shape) -> Mask {
        let mut mask = Mask::default();
        for (text, serial, width) in places {
            mask.push_text(text);
            mask.push_serial(*serial, *width);
        }
        mask.push_text(tail);
        mask
    }

    proptest! {
        #[test]
        fn a_mask_survives_its_text(shape in shape()) {
            let mask = mask(&shape);
            prop_assert_eq!(Mask::parse(&mask.to_text()), Ok(mask));
        }

        #[test]
        fn a_filled_mask_shows_the_padded_values(
            shape in shape(),
            values in prop::collection::vec(prop_oneof![0..1000_u64, 0..=NUMBER_MAX], SERIALS_MAX),
        ) {
            let (places, tail) = &shape;
            let show = |(text, serial, width): &(String, usize, Option<usize>)| {
                format!("{text}{:0width$}", values[*serial], width = width.unwrap_or(1))
            };
            let expected = places.iter().map(show).collect::<String>() + tail;
            let narrow = places.iter().find(|(_, serial, width)| {
                width.is_some_and(|width| values[*serial].to_string().len() > width)
            });
            match (mask(&shape).fill(&values), narrow) {
                (Ok(number), None) => prop_assert_eq!(number, expected),
                (Err(InputError::SerialTooWide { serial, value, width }), Some(place)) => {
                    prop_assert_eq!((serial, Some(width)), (place.1, place.2));
                    prop_assert_eq!(value, values[serial]);
                }
                (filled, narrow) => prop_assert!(false, "{filled:?}, {narrow:?}"),
            }
        }

        #[test]
        fn no_text_makes_reading_a_mask_panic(text in "[{}0-9:aก]{0,20}") {
            if let Ok(mask) = Mask::parse(&text) {
                prop_assert_eq!(mask.to_text(), text);
            }
        }
    }
}

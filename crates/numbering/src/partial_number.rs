//! A number with everything decided except its serial values. Every number is filled in here: one
//! allocation, no parsing, no formatting machinery.

use super::check::Check;
use super::serial_format::{SERIAL_CHARS_MAX, SerialFormat, WIDTH_MAX, push_padded};
use super::template_error::Place;
use super::{InputError, Style, TEXT_CHARS_MAX, TemplateError};

/// Most serials of one series.
pub(super) const SERIALS_MAX: usize = 8;

/// Longest text form, in bytes: every character escaped, or of four bytes.
const PARTIAL_BYTES_MAX: usize = 8 * TEXT_CHARS_MAX;

/// What remains of a template once variables, dates and dimensions are filled in: literal text and
/// places for serial values. It is part of an allocation's record (outbox, journal), so that the
/// number can be rendered from the record without the series.
///
/// Text form: literal text with `{index:width}` for the serial `index` (0-based) padded with zeros
/// to `width`, `{index:width+}` for one that may be wider, `{index}` for one without padding; an
/// `A` before the width for letters (`{index:A2}`, `{index:A}`); `{luhn}` and so on for check
/// characters; `{{` and `}}` are braces. For example `SPO-20240122-{0:3}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartialNumber {
    /// All literal text, without serials and check characters.
    literal: String,
    /// The places of these, from left to right.
    slots: Vec<Slot>,
}

/// A place for what the values decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    /// Bytes of `literal` before it.
    offset: usize,
    /// What it shows.
    shows: Shows,
}

/// What a place shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// The value of the serial of an index.
    Serial(usize, SerialFormat),
    /// The check characters of everything to its left.
    Check(Check),
}

/// Most places: every serial and a check.
const SLOTS_MAX: usize = SERIALS_MAX + 1;

impl PartialNumber {
    /// An empty one for `serials` serials, with room for a number of ordinary length.
    pub(super) fn with_room(serials: usize) -> Self {
        PartialNumber { literal: String::with_capacity(64), slots: Vec::with_capacity(serials) }
    }

    /// Appends literal text.
    pub(super) fn push_text(&mut self, text: &str) {
        self.literal.push_str(text);
    }

    /// Length of the literal text so far, in bytes.
    pub(super) fn literal_len(&self) -> usize {
        self.literal.len()
    }

    /// Replaces text by other text of the same length.
    pub(super) fn replace_text(&mut self, offset: usize, text: &str) {
        self.literal.replace_range(offset..offset + text.len(), text);
    }

    /// Appends a number padded with zeros; `value` has at most `width` digits.
    pub(super) fn push_digits(&mut self, value: u64, width: usize) {
        push_padded(&mut self.literal, value, width);
    }

    /// Appends the place of a serial.
    pub(super) fn push_serial(&mut self, serial: usize, format: SerialFormat) {
        self.push_slot(Shows::Serial(serial, format));
    }

    /// Appends the place of check characters.
    pub(super) fn push_check(&mut self, check: Check) {
        self.push_slot(Shows::Check(check));
    }

    fn push_slot(&mut self, shows: Shows) {
        self.slots.push(Slot { offset: self.literal.len(), shows });
    }

    /// Whether it contains the value of a serial.
    #[must_use]
    pub fn shows_serial(&self, wanted: usize) -> bool {
        let is_it =
            |slot: &Slot| matches!(slot.shows, Shows::Serial(serial, _) if serial == wanted);
        self.slots.iter().any(is_it)
    }

    /// Length of the longest number, in characters; `largest` gives the largest value of a serial.
    pub(super) fn chars_max(&self, largest: impl Fn(usize) -> u64) -> usize {
        let chars = |slot: &Slot| match slot.shows {
            Shows::Serial(serial, format) => format.chars(largest(serial)),
            Shows::Check(check) => check.width(),
        };
        self.literal.chars().count() + self.slots.iter().map(chars).sum::<usize>()
    }

    /// Renders the number for one value per serial, in the order of the series' serials.
    ///
    /// # Errors
    /// `InputError::SerialTooWide` when a value does not fit its width: never a silent widening.
    /// `InputError::SerialMissing` when there are fewer values than serials.
    pub fn fill(&self, values: &[u64]) -> Result<String, InputError> {
        let room = self.slots.len() * SERIAL_CHARS_MAX;
        let mut number = String::with_capacity(self.literal.len() + room);
        let mut from = 0;
        for &Slot { offset, shows } in &self.slots {
            number.push_str(&self.literal[from..offset]);
            from = offset;
            match shows {
                Shows::Check(check) => check.push(&mut number),
                Shows::Serial(serial, format) => {
                    let value = *values.get(serial).ok_or(InputError::SerialMissing { serial })?;
                    if !format.push(&mut number, value) {
                        let width = format.width_max();
                        return Err(InputError::SerialTooWide { serial, value, width });
                    }
                }
            }
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
            match slot.shows {
                Shows::Check(check) => text.push_str(check.name()),
                Shows::Serial(serial, format) => {
                    push_padded(&mut text, serial as u64, 1);
                    push_format(&mut text, format);
                }
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
    /// When the text is not a partially rendered number.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let fail = |offset, reason| {
            Err(TemplateError::PartialNumber { at: Place::of(text, offset), reason })
        };
        if text.len() > PARTIAL_BYTES_MAX {
            return fail(0, "a shorter text; no number is as long");
        }
        let mut partial = PartialNumber::default();
        let mut offset = 0;
        while let Some(brace) = text[offset..].find(['{', '}']).map(|at| offset + at) {
            partial.literal.push_str(&text[offset..brace]);
            let rest = &text[brace..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                partial.literal.push_str(&rest[..1]);
                offset = brace + 2;
                continue;
            }
            let Some(end) = rest.find('}').filter(|end| *end > 0) else {
                return fail(brace, "`{{`, `}}` or a place such as {0:4}");
            };
            let Some(shows) = shows(&rest[1..end]) else {
                let expected = "a place such as {0:4}, {0:4+}, {0:A} or {luhn}: serial 0 to 7, \
                                width 1 to 15";
                return fail(brace, expected);
            };
            partial.push_slot(shows);
            if partial.slots.len() > SLOTS_MAX {
                return fail(brace, "at most 8 serials and a check");
            }
            offset = brace + end + 1;
        }
        partial.literal.push_str(&text[offset..]);
        Ok(partial)
    }
}

/// What a place of the text form shows.
fn shows(text: &str) -> Option<Shows> {
    if let Some(check) = Check::named(text) {
        return Some(Shows::Check(check));
    }
    let (serial, format) = match text.split_once(':') {
        Some((serial, format)) => (serial, format_of(format)?),
        None => (text, SerialFormat::PLAIN),
    };
    let serial = small(serial).filter(|serial| *serial < SERIALS_MAX)?;
    Some(Shows::Serial(serial, format))
}

/// Appends the format of a place with its colon; a plain one has none.
fn push_format(text: &mut String, format: SerialFormat) {
    if format == SerialFormat::PLAIN {
        return;
    }
    let SerialFormat { style, width, widens } = format;
    text.push(':');
    if style == Style::Letters {
        text.push('A');
    }
    // A format that widens from one character on need not give its width.
    if !widens || width > 1 {
        push_padded(text, width as u64, 1);
        text.push_str(if widens { "+" } else { "" });
    }
}

/// Reads a format back.
fn format_of(text: &str) -> Option<SerialFormat> {
    let (style, width) = match text.strip_prefix('A') {
        Some("") => return Some(SerialFormat { style: Style::Letters, ..SerialFormat::PLAIN }),
        Some(width) => (Style::Letters, width),
        None => (Style::Digits, text),
    };
    let (width, widens) = match width.strip_suffix('+') {
        Some(width) => (small(width)?, true),
        None => (small(width)?, false),
    };
    let sound = (1..=WIDTH_MAX).contains(&width) && !(widens && width == 1);
    sound.then_some(SerialFormat { style, width, widens })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NUMBER_MAX;

    #[test]
    fn values_are_padded_to_their_width() {
        let partial = PartialNumber::parse("SPO-20240122-{0:3}").unwrap();
        for (value, number) in [(1, "001"), (15, "015"), (999, "999"), (0, "000")] {
            assert_eq!(partial.fill(&[value]).unwrap(), format!("SPO-20240122-{number}"));
        }
        assert_eq!(PartialNumber::parse("{1:2}/{0}").unwrap().fill(&[120, 7]).unwrap(), "07/120");
        assert_eq!(PartialNumber::parse("{0}").unwrap().fill(&[0]).unwrap(), "0");
        assert_eq!(PartialNumber::parse("{{{0:1}}}").unwrap().fill(&[7]).unwrap(), "{7}");
    }

    #[test]
    fn a_serial_past_its_width_is_refused() {
        let refused = |text, value| PartialNumber::parse(text).unwrap().fill(&[value]).unwrap_err();
        let expected = InputError::SerialTooWide { serial: 0, value: 1000, width: 3 };
        assert_eq!(refused("A{0:3}", 1000), expected);
        assert_eq!(refused("A{0:3}", 1000).slug(), "sequence-exhausted");
        assert_eq!(refused("{0}", NUMBER_MAX + 1).slug(), "sequence-exhausted");
        assert_eq!(refused("{0:3}", u64::MAX).slug(), "sequence-exhausted");
        let full = PartialNumber::parse("{0}").unwrap().fill(&[NUMBER_MAX]).unwrap();
        assert_eq!(full, "9007199254740991");
    }

    #[test]
    fn letters_widening_serials_and_checks_have_places_of_their_own() {
        for (text, value, number) in [
            ("A{0:3+}", 1000, "A1000"),
            ("{0:A}-{0:A2}", 27, "AA-BA"),
            ("{0:A2+}", 677, "AAA"),
            ("799-{0:7}-{luhn}", 2_739_871, "799-2739871-3"),
            ("{0:3}{mod97-10}/{0:1}", 7, "00777/7"),
        ] {
            let partial = PartialNumber::parse(text).unwrap();
            assert_eq!(partial.to_text(), text);
            assert_eq!(partial.fill(&[value]).unwrap(), number);
        }
    }

    #[test]
    fn a_value_too_few_is_an_error_and_no_panic() {
        let partial = PartialNumber::parse("{0:3}-{1:3}").unwrap();
        assert_eq!(partial.fill(&[1]), Err(InputError::SerialMissing { serial: 1 }));
    }

    #[test]
    fn text_that_is_no_partial_number_is_refused_at_its_place() {
        let long = "x".repeat(PARTIAL_BYTES_MAX + 1);
        for (text, position) in [
            ("a{", 2),
            ("ก}b", 2),
            ("{}", 1),
            ("{x}", 1),
            ("{0:}", 1),
            ("{0:0}", 1),
            ("{0:16}", 1),
            ("{0:3-}", 1),
            ("{0:+}", 1),
            ("{0:1+}", 1),
            ("{0:A0}", 1),
            ("{0:A1+}", 1),
            ("{0:B}", 1),
            ("{LUHN}", 1),
            ("{0:04}", 1),
            ("{8:3}", 1),
            ("a{0:3}{+1:3}", 7),
            ("{0}{0}{0}{0}{0}{0}{0}{0}{luhn}{0}", 31),
            (long.as_str(), 1),
        ] {
            match PartialNumber::parse(text) {
                Err(TemplateError::PartialNumber { at, .. }) => {
                    assert_eq!(at.position, position, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    /// Places, each with the text before it, and the text after the last.
    type Shape = (Vec<(String, Shows)>, String);

    /// Few characters, so that braces meet often.
    fn shape() -> impl Strategy<Value = Shape> {
        let text = || "[a{}ก]{0,3}";
        let format =
            (any::<bool>(), 1..=WIDTH_MAX, any::<bool>()).prop_map(|(letters, width, widens)| {
                let style = if letters { Style::Letters } else { Style::Digits };
                SerialFormat { style, width, widens }
            });
        let serial = (0..SERIALS_MAX, format).prop_map(|(serial, f)| Shows::Serial(serial, f));
        let checks = [Check::Luhn, Check::Mod97, Check::Mod37, Check::Damm];
        let check = prop::sample::select(checks.to_vec()).prop_map(Shows::Check);
        let place = (text(), prop_oneof![4 => serial, 1 => check]);
        (prop::collection::vec(place, 0..=SERIALS_MAX), text())
    }

    fn partial((places, tail): &Shape) -> PartialNumber {
        let mut partial = PartialNumber::default();
        for (text, shows) in places {
            partial.push_text(text);
            partial.push_slot(*shows);
        }
        partial.push_text(tail);
        partial
    }

    proptest! {
        #[test]
        fn a_partial_number_survives_its_text(shape in shape()) {
            let partial = partial(&shape);
            prop_assert_eq!(PartialNumber::parse(&partial.to_text()), Ok(partial));
        }

        #[test]
        fn a_filled_partial_number_shows_the_values_or_names_the_one_that_does_not_fit(
            shape in shape(),
            values in prop::collection::vec(prop_oneof![1..1000_u64, 1..=NUMBER_MAX], SERIALS_MAX),
        ) {
            let (places, tail) = &shape;
            let mut expected = Ok(String::new());
            for (text, shows) in places {
                let Ok(number) = &mut expected else { break };
                number.push_str(text);
                match *shows {
                    Shows::Check(check) => check.push(number),
                    Shows::Serial(serial, format) => {
                        let value = values[serial];
                        if !format.push(number, value) {
                            let width = format.width_max();
                            expected = Err(InputError::SerialTooWide { serial, value, width });
                        }
                    }
                }
            }
            prop_assert_eq!(partial(&shape).fill(&values), expected.map(|number| number + tail));
        }

        #[test]
        fn no_text_makes_reading_a_partial_number_panic(text in "[{}0-9:A+aก]{0,20}") {
            if let Ok(partial) = PartialNumber::parse(&text) {
                prop_assert_eq!(partial.to_text(), text);
            }
        }
    }
}

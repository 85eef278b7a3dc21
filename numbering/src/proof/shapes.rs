//! How a part may be written, place by place: each of its shapes is so many characters, of which
//! each is one of some whatever the others are.
//!
//! Leaves out no text that a part can show: where places depend on each other, a shape has more.

use std::collections::BTreeSet;

use super::super::figure::Figure;
use super::super::template::Part;
use super::super::value::ValueRule;
use super::super::{Series, Style};
use super::charset::CharSet;
use super::classes::representatives;
use super::grid::Grid;
use super::language::{Language, Reach, language};

/// Some characters of an alphabet, a bit for each.
pub(super) type Signs = u128;

/// What stands at each place.
pub(super) type Shape = Vec<Signs>;

/// Most values of a serial with steps that are written out each.
const VALUES_MAX: u64 = 100;

/// Characters that stand for all that no part tells apart, each digit and each capital letter
/// alone.
pub(super) struct Alphabet {
    characters: Vec<char>,
    /// Those that stand for themselves alone.
    exact: Signs,
}

impl Alphabet {
    /// `None` where there are more than are followed.
    pub(super) fn of(sets: &[CharSet]) -> Option<Self> {
        let alone: String = ('0'..='9').chain('A'..='Z').collect();
        let (characters, exact) = representatives(sets, &alone, 2);
        if characters.len() > Signs::BITS as usize {
            return None;
        }
        let exact = bits(&characters, |character| exact.contains(&character));
        Some(Alphabet { characters, exact })
    }

    /// The characters of a set.
    fn set(&self, set: &CharSet) -> Signs {
        bits(&self.characters, |character| set.has(character))
    }

    /// One character.
    pub(super) fn one(&self, character: char) -> Signs {
        bits(&self.characters, |other| other == character)
    }

    /// One digit.
    pub(super) fn digit(&self, digit: u8) -> Signs {
        self.one(char::from(b'0' + digit))
    }

    /// The characters of one place.
    pub(super) fn characters(&self, signs: Signs) -> impl Iterator<Item = char> {
        let all = self.characters.iter().enumerate();
        all.filter(move |(index, _)| signs >> index & 1 == 1).map(|(_, character)| *character)
    }

    /// Whether a place has one character, and no other one that it stands for.
    pub(super) fn is_known(&self, signs: Signs) -> bool {
        signs.count_ones() == 1 && signs & self.exact == signs
    }

    /// How a part may be written. `is_dated`: what a field of the date shows is judged otherwise.
    pub(super) fn shapes(
        &self,
        (series, grids): (&Series, &[Grid]),
        part: &Part,
        types: &[String],
        is_dated: bool,
    ) -> Vec<Shape> {
        let mut shapes = match part {
            Part::Serial { serial, figure } => {
                self.serial(grids[*serial], series.serials[*serial].max, *figure)
            }
            _ => match language(series, part, types, Reach::Everything) {
                Language::OneOf(texts) => self.texts(texts),
                Language::Value(rule) => self.values(&rule),
                Language::Number { least, most, width } => {
                    self.numbers(least, most, Figure { width, ..Figure::PLAIN })
                }
                Language::Letters { .. } => unreachable!("only serials are written in letters"),
            },
        };
        if is_dated || matches!(part, Part::Check(_)) {
            shapes = joined(shapes);
        }
        shapes
    }

    /// A value's shape is its length.
    fn values(&self, rule: &ValueRule) -> Vec<Shape> {
        let (least, most) = rule.widths();
        let (allowed, excluded) = rule.ranges();
        let any = CharSet::without(allowed, excluded);
        let visible = any.without_blank();
        let [first, within, last] =
            [visible.clone().at_the_beginning(), any, visible].map(|set| self.set(&set));
        let shape = |width: usize| {
            let mut shape = vec![within; width];
            shape[width - 1] = last;
            shape[0] = first;
            shape
        };
        (least.max(1)..=most).map(shape).collect()
    }

    /// Each text is a shape.
    fn texts(&self, texts: impl IntoIterator<Item = String>) -> Vec<Shape> {
        let texts: BTreeSet<String> = texts.into_iter().collect();
        texts.iter().map(|text| text.chars().map(|c| self.one(c)).collect()).collect()
    }

    /// The values of a serial up to its largest, all of them where those between the steps are too
    /// many to leave out.
    fn serial(&self, grid: Grid, max: u64, figure: Figure) -> Vec<Shape> {
        if grid.step == 1 || max.saturating_sub(grid.least) / grid.step >= VALUES_MAX {
            return self.numbers(grid.least, max, figure);
        }
        let values = (0..VALUES_MAX).map(|index| grid.least + index * grid.step);
        self.texts(values.take_while(|value| *value <= max).filter_map(|value| {
            let mut text = String::new();
            figure.push(&mut text, value).then_some(text)
        }))
    }

    /// The shapes of numbers from `least` to `most`.
    fn numbers(&self, least: u64, most: u64, figure: Figure) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let (least, most) = (u128::from(least), u128::from(most));
        let base = if figure.style == Style::Digits { 10_u8 } else { 26 };
        let power = |chars: usize| u128::from(base).pow(u32::try_from(chars).unwrap_or(u32::MAX));
        // What is written by no place, and by all: letters begin with 1, and those of more places
        // go on where those of fewer end.
        let mut first = u128::from(figure.style == Style::Letters);
        for chars in figure.width.. {
            let (from, to) = match figure.style {
                // Only numbers of the least width have zeros in front.
                Style::Digits if chars > figure.width => (power(chars - 1), power(chars) - 1),
                Style::Digits => (0, power(chars) - 1),
                Style::Letters => (first, first + power(chars) - 1),
            };
            let zero = if figure.style == Style::Digits { 0 } else { first };
            if from > most {
                break;
            }
            if from.max(least) <= to.min(most) {
                let (from, to) = (from.max(least) - zero, to.min(most) - zero);
                let [from, to] = [from, to].map(|place| digits_of(place, base, chars));
                self.between((&from, &to), base, &mut Vec::new(), &mut shapes);
            }
            first = to + 1;
        }
        shapes
    }

    /// The shapes of digits, or of letters, from some to others.
    fn between(
        &self,
        (from, to): (&[u8], &[u8]),
        base: u8,
        before: &mut Shape,
        shapes: &mut Vec<Shape>,
    ) {
        let zero = if base == 10 { b'0' } else { b'A' };
        let any = |from: u8, to: u8| {
            (from..=to).fold(0, |signs, digit| signs | self.one(char::from(zero + digit)))
        };
        let ([first, from @ ..], [last, to @ ..]) = (from, to) else {
            shapes.push(before.clone());
            return;
        };
        let mut with = |digit: u8, from: &[u8], to: &[u8]| {
            before.push(any(digit, digit));
            self.between((from, to), base, before, shapes);
            before.pop();
        };
        if first == last {
            with(*first, from, to);
            return;
        }
        let (mut low, mut high) = (i16::from(*first), i16::from(*last));
        if from.iter().any(|digit| *digit != 0) {
            with(*first, from, &vec![base - 1; from.len()]);
            low += 1;
        }
        if to.iter().any(|digit| *digit != base - 1) {
            with(*last, &vec![0; to.len()], to);
            high -= 1;
        }
        if let (Ok(low), Ok(high)) = (u8::try_from(low), u8::try_from(high))
            && low <= high
        {
            let rest = std::iter::repeat_n(any(0, base - 1), from.len());
            shapes.push(before.iter().copied().chain([any(low, high)]).chain(rest).collect());
        }
    }
}

/// The characters that fit, a bit for each.
fn bits(characters: &[char], fits: impl Fn(char) -> bool) -> Signs {
    let all = characters.iter().enumerate();
    all.fold(0, |signs, (index, character)| signs | Signs::from(fits(*character)) << index)
}

/// The digits of a number that has at most so many.
fn digits_of(value: u128, base: u8, width: usize) -> Vec<u8> {
    let mut rest = value;
    let mut digits = vec![0; width];
    for digit in digits.iter_mut().rev() {
        *digit = u8::try_from(rest % u128::from(base)).unwrap_or(0);
        rest /= u128::from(base);
    }
    digits
}

/// One shape of each length, where the places do not depend on each other.
fn joined(shapes: Vec<Shape>) -> Vec<Shape> {
    let mut joined: Vec<Shape> = Vec::new();
    for shape in shapes {
        match joined.iter_mut().find(|known| known.len() == shape.len()) {
            Some(known) => {
                for (signs, more) in std::iter::zip(known, shape) {
                    *signs |= more;
                }
            }
            None => joined.push(shape),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::VariableDefinition;
    use super::super::automaton::{Sets, automaton};
    use super::*;

    /// Whether some shape has the text.
    fn has(alphabet: &Alphabet, shapes: &[Shape], text: &str) -> bool {
        let is_of = |shape: &&Shape| {
            let mut places = std::iter::zip(*shape, text.chars());
            shape.len() == text.chars().count()
                && places.all(|(signs, character)| signs & alphabet.one(character) != 0)
        };
        shapes.iter().any(|shape| is_of(&shape))
    }

    /// The alphabet of some languages.
    fn alphabet(languages: &[Language]) -> Alphabet {
        let mut sets = Sets::default();
        automaton(languages, &mut sets);
        Alphabet::of(sets.all()).expect("few characters")
    }

    proptest! {
        /// Goal: exactly the values of a serial are written. Method: every text of up to three
        /// characters, and all values.
        #[test]
        fn exactly_the_values_of_a_serial_have_a_shape(
            (least, step) in (1..900_u64, prop_oneof![Just(1_u64), 1..40_u64]),
            further in 0..1_500_u64,
            (letters, width) in (any::<bool>(), 1..=3_usize),
        ) {
            let style = if letters { Style::Letters } else { Style::Digits };
            let figure = Figure { style, width, widens: true };
            let (grid, max) = (Grid { least, step }, least + further);
            let (from, to, base) = if letters { (b'A', b'Z', 26) } else { (b'0', b'9', 10) };
            let all = CharSet::without(Some(&[(from.into(), to.into())]), &[]);
            let alphabet = Alphabet::of(&[all]).expect("few characters");
            let shapes = alphabet.serial(grid, max, figure);
            let is_all = further / step >= VALUES_MAX;
            let is_value = |value: u64| {
                (least..=max).contains(&value) && (is_all || grid.has(value))
            };
            for value in 1..max + 100 {
                let mut text = String::new();
                prop_assert!(figure.push(&mut text, value));
                prop_assert_eq!(has(&alphabet, &shapes, &text), is_value(value), "{}", text);
            }
            for chars in 1..=3 {
                for place in 0..u128::from(base).pow(chars) {
                    let digits = digits_of(place, base, usize::try_from(chars).unwrap());
                    let text: String =
                        digits.iter().map(|digit| char::from(from + digit)).collect();
                    let value = figure.read(&text.chars().collect::<Vec<_>>());
                    let expected = value.is_some_and(is_value);
                    prop_assert_eq!(has(&alphabet, &shapes, &text), expected, "{}", text);
                }
            }
        }
    }

    #[test]
    fn the_widest_numbers_have_shapes() {
        let digits = CharSet::without(Some(&[('0', '9')]), &[]);
        let alphabet = Alphabet::of(&[digits]).expect("few characters");
        let id = Figure { width: 19, ..Figure::PLAIN };
        let shapes = alphabet.numbers(0, i64::MAX.unsigned_abs(), id);
        for (text, expected) in [
            ("0000000000000000000", true),
            ("9223372036854775807", true),
            ("9223372036854775808", false),
            ("9223372036854775799", true),
            ("922337203685477580", false),
        ] {
            assert_eq!(has(&alphabet, &shapes, text), expected, "{text}");
        }
    }

    #[test]
    fn a_value_is_as_its_rule_says() {
        let declared = VariableDefinition {
            excluded: Some("-".into()),
            width_max: Some(3),
            ..VariableDefinition::default()
        };
        let rule = ValueRule::compile("V", &declared).expect("a sound rule");
        let alphabet = alphabet(&[Language::Value(rule.clone())]);
        let shapes = alphabet.values(&rule);
        assert_eq!(shapes.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2, 3]);
        for text in ["A", "A A", "AB"] {
            assert!(has(&alphabet, &shapes, text), "{text}");
        }
        for text in ["", "A ", " A", "-", "ABAB"] {
            assert!(!has(&alphabet, &shapes, text), "{text}");
        }
    }
}

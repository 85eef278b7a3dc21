//! Which values a field takes: width and alphabet of a declared variable, of the project, of the
//! type. The same rule judges a value on its way into a number and on its way back.

use std::borrow::Cow;
use std::fmt::Display;

use super::characters::{self, ANY, CharRange};
use super::error::{InputError, excerpt};
use super::template_error::{FieldFlaw, TemplateError};
use super::text::{is_printable, may_begin, normalise};
use super::{TEXT_CHARS_MAX, VariableDefinition};

/// Largest width of a value if the declaration names none, in characters.
pub(super) const VALUE_CHARS_MAX: usize = 64;

/// What a value must look like.
#[derive(Clone, Debug)]
pub(super) struct ValueRule {
    /// Least characters.
    width_min: usize,
    /// Most characters.
    width_max: usize,
    /// The characters, in order and apart.
    characters: Cow<'static, [CharRange]>,
    /// The only characters as declared, where given,
    allowed: Option<String>,
    /// and those taken from these.
    excluded: Option<String>,
}

impl ValueRule {
    /// Any printable text: the rule of projects and types.
    pub(super) fn printable() -> Self {
        let (width_min, width_max) = (1, VALUE_CHARS_MAX);
        let characters = Cow::Borrowed(ANY);
        ValueRule { width_min, width_max, characters, allowed: None, excluded: None }
    }

    /// The rule of a declaration at `path`.
    pub(super) fn compile(
        path: &str,
        declared: &VariableDefinition,
    ) -> Result<Self, TemplateError> {
        for (name, width) in [("width", declared.width), ("width_max", declared.width_max)] {
            if let Some(width) = width
                && !(1..=TEXT_CHARS_MAX).contains(&width)
            {
                let (value, most) = (width as u64, TEXT_CHARS_MAX as u64);
                let flaw = FieldFlaw::Bounds { value, least: 1, most };
                return Err(TemplateError::at_field(format!("{path}.{name}"), flaw));
            }
        }
        if declared.width.is_some() && declared.width_max.is_some() {
            let flaw = FieldFlaw::Contradiction { other: "width_max" };
            return Err(TemplateError::at_field(format!("{path}.width"), flaw));
        }
        let read = |name: &str, text: &Option<String>| {
            let read = |text: &String| read_alphabet(&format!("{path}.{name}"), text);
            text.as_ref().map(read).transpose()
        };
        let allowed = read("alphabet", &declared.alphabet)?;
        let excluded = read("excluded", &declared.excluded)?;
        let mut characters = allowed.map_or(Cow::Borrowed(ANY), Cow::Owned);
        if let Some(excluded) = excluded {
            characters = Cow::Owned(characters::without(&characters, &excluded));
        }
        Ok(ValueRule {
            width_min: declared.width.unwrap_or(1),
            width_max: declared.width.or(declared.width_max).unwrap_or(VALUE_CHARS_MAX),
            characters,
            allowed: declared.alphabet.clone(),
            excluded: declared.excluded.clone(),
        })
    }

    /// Narrows the rule to an exact width; the declared widths in words if it contradicts them.
    pub(super) fn fix_width(&mut self, width: usize) -> Result<(), String> {
        if !(self.width_min..=self.width_max).contains(&width) {
            return Err(match self.width_min == self.width_max {
                true => format!("exactly {}", self.width_max),
                false => format!("at most {}", self.width_max),
            });
        }
        (self.width_min, self.width_max) = (width, width);
        Ok(())
    }

    /// Least and largest width, in characters.
    pub(super) fn widths(&self) -> (usize, usize) {
        (self.width_min, self.width_max)
    }

    /// The characters that it allows, printable or not.
    pub(super) fn ranges(&self) -> &[CharRange] {
        &self.characters
    }

    /// Whether a value may contain the character; `first`: as its first one.
    pub(super) fn takes(&self, character: char, first: bool) -> bool {
        let fits =
            if first { may_begin(character) && character != ' ' } else { is_printable(character) };
        fits && characters::has(&self.characters, character)
    }

    /// Whether there is any value at all: some character can begin one.
    pub(super) fn takes_something(&self) -> bool {
        self.all_printable().any(|character| self.takes(character, true))
    }

    /// A character that a value may hold and that is wanted, if there is one.
    pub(super) fn find(&self, wanted: impl Fn(char) -> bool) -> Option<char> {
        self.all_printable().find(|character| wanted(*character))
    }

    fn all_printable(&self) -> impl Iterator<Item = char> {
        characters::printable(&self.characters).flat_map(|(first, last)| first..=last)
    }

    /// Checks a value and brings it into normal form C. The caller must refuse an empty one.
    pub(super) fn check(&self, field: impl Display, given: &str) -> Result<String, InputError> {
        // Normalising costs time in proportion; no text of this length can become short enough.
        let chars = given.chars().count();
        if chars > 4 * TEXT_CHARS_MAX {
            let chars_max = self.width_max;
            let field = field.to_string();
            return Err(InputError::ValueTooLong { field, chars, chars_max });
        }
        let value = normalise(given).into_owned();
        let chars = value.chars().count();
        let last = chars.saturating_sub(1);
        // The alphabet is judged first: a control character is the clearer complaint.
        for (index, character) in value.chars().enumerate() {
            if !self.takes(character, index == 0) || (index == last && character == ' ') {
                let (position, expected) = (index + 1, self.expected());
                let field = field.to_string();
                return Err(InputError::WrongAlphabet { field, position, character, expected });
            }
        }
        if chars > self.width_max {
            let (field, chars_max) = (field.to_string(), self.width_max);
            return Err(InputError::ValueTooLong { field, chars, chars_max });
        }
        if chars < self.width_min {
            let (field, width) = (field.to_string(), self.width_min);
            return Err(InputError::ValueTooShort { field, chars, width });
        }
        Ok(value)
    }

    /// The alphabet in words.
    fn expected(&self) -> String {
        match (&self.allowed, &self.excluded) {
            (Some(allowed), Some(excluded)) => {
                format!("allowed are {allowed} without {excluded}")
            }
            (Some(allowed), None) => format!("allowed are {allowed}"),
            (None, Some(excluded)) => {
                format!("allowed are printable characters without {excluded}")
            }
            (None, None) => "allowed are printable characters, no blanks at the ends".into(),
        }
    }
}

/// Reads a set of characters of the field at `path`, written as in `A-Za-z0-9`; `-` at either end
/// is itself.
fn read_alphabet(path: &str, source: &str) -> Result<Vec<CharRange>, TemplateError> {
    let refuse = |flaw| Err(TemplateError::at_field(path, flaw));
    let chars: Vec<char> = source.chars().take(4 * TEXT_CHARS_MAX).collect();
    if chars.is_empty() {
        return refuse(FieldFlaw::Empty { what: "character" });
    }
    if chars.len() > TEXT_CHARS_MAX {
        let (found, most) = (chars.len(), TEXT_CHARS_MAX);
        return refuse(FieldFlaw::TooMany { found, most, what: "characters" });
    }
    let expected = "characters and ranges such as A-Za-z0-9, a `-` first or last";
    let syntax = || FieldFlaw::Syntax { value: excerpt(source), expected };
    let mut ranges = Vec::new();
    let mut index = 0;
    while index < chars.len() {
        let first = chars[index];
        let range = chars.get(index + 1) == Some(&'-') && index + 2 < chars.len();
        let last = if range { chars[index + 2] } else { first };
        index += if range { 3 } else { 1 };
        // `A-Z-9` is not clear: a `-` in the middle is refused unless it makes a range.
        let lone = index < chars.len() && first == '-' && index > 1;
        if first > last || lone || !is_printable(first) || !is_printable(last) {
            return refuse(syntax());
        }
        ranges.push((first, last));
    }
    Ok(characters::merged(ranges))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(declared: &VariableDefinition) -> ValueRule {
        ValueRule::compile("variables.X", declared).unwrap()
    }

    #[test]
    fn ranges_and_single_characters_make_an_alphabet() {
        let read = |source| read_alphabet("x", source).unwrap();
        let set = read("A-Cx0-9-");
        for (character, inside) in
            [('A', true), ('C', true), ('D', false), ('x', true), ('5', true), ('-', true)]
        {
            assert_eq!(characters::has(&set, character), inside, "{character}");
        }
        assert!(characters::has(&read("-"), '-'));
        assert!(characters::has(&read("-A-Z"), '-'));
        assert!(characters::has(&read("ก-ฮ"), 'ค'));
        assert_eq!(read("A-DC-FGB"), [('A', 'G')]);
    }

    #[test]
    fn an_alphabet_that_says_nothing_sensible_is_refused() {
        for source in ["", "Z-A", "A-Z-0-9", "a\nb", &"x".repeat(200)] {
            let error = read_alphabet("variables.X.alphabet", source).unwrap_err();
            assert_eq!(error.field(), "variables.X.alphabet", "{source:?}");
        }
    }

    #[test]
    fn widths_count_characters_after_normalisation() {
        let exact = rule(&VariableDefinition { width: Some(2), ..Default::default() });
        assert_eq!(exact.check("f", "e\u{301}A").unwrap(), "éA");
        assert!(matches!(exact.check("f", "A"), Err(InputError::ValueTooShort { width: 2, .. })));
        assert!(matches!(exact.check("f", "ABC"), Err(InputError::ValueTooLong { chars: 3, .. })));
        let huge = "x".repeat(100_000);
        assert_eq!(exact.check("f", &huge).unwrap_err().slug(), "value-too-long");
    }

    #[test]
    fn control_characters_and_outer_blanks_are_refused_with_their_position() {
        let any = ValueRule::printable();
        for (value, expected) in
            [("a\0b", 2), ("ab\n", 3), (" ab", 1), ("ab ", 3), ("\u{301}a", 1), ("a\u{200b}", 2)]
        {
            match any.check("project", value) {
                Err(InputError::WrongAlphabet { position, field, .. }) => {
                    assert_eq!((position, field.as_str()), (expected, "project"), "{value:?}");
                }
                other => panic!("{value:?}: {other:?}"),
            }
        }
        assert_eq!(any.check("project", "a b").unwrap(), "a b");
    }

    #[test]
    fn contradicting_or_absurd_widths_are_refused() {
        let both = VariableDefinition { width: Some(2), width_max: Some(3), ..Default::default() };
        let zero = VariableDefinition { width: Some(0), ..Default::default() };
        let wide = VariableDefinition { width_max: Some(129), ..Default::default() };
        for (declared, field) in [(both, "v.width"), (zero, "v.width"), (wide, "v.width_max")] {
            assert_eq!(ValueRule::compile("v", &declared).unwrap_err().field(), field);
        }
    }
}

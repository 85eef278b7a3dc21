//! The compressed mask: the partially rendered text of a number as the journal keeps it, short
//! since the same row has the number. Knows only which parts of that text are literal, and where
//! values are.

use super::LedgerError;
use super::columns::unreadable;

/// How the journal keeps a partially rendered text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form<'a> {
    /// Its outline: literal text is given by its length in bytes, since the number has it. For
    /// example `13{0:3}` for `SPO-20240122-{0:3}`.
    CompressedMask(String),
    /// The text itself: it has literal text between values, whose places the number does not show.
    Mask(&'a str),
}

impl<'a> Form<'a> {
    /// How the text of a number is kept.
    pub(super) fn of(mask: &'a str, number: &str) -> Self {
        match compressed_mask_of(mask)
            .filter(|compressed_mask| mask_of(compressed_mask, number).as_deref() == Some(mask))
        {
            Some(compressed_mask) => Form::CompressedMask(compressed_mask),
            None => Form::Mask(mask),
        }
    }

    /// The columns `mask` and `outline`.
    pub(super) fn columns(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Form::CompressedMask(compressed_mask) => (None, Some(compressed_mask)),
            Form::Mask(mask) => (Some(mask), None),
        }
    }
}

/// The text of a number, from the columns `mask` and `outline`.
///
/// # Errors
/// Where the row holds neither, or an outline that is not the number's.
pub(super) fn read_mask(
    mask: Option<String>,
    compressed_mask: Option<&str>,
    number: &str,
) -> Result<String, LedgerError> {
    match (mask, compressed_mask) {
        (Some(mask), _) => Ok(mask),
        (None, Some(compressed_mask)) => mask_of(compressed_mask, number)
            .ok_or_else(|| unreadable("journal.outline", compressed_mask)),
        (None, None) => Err(unreadable("journal.mask", "null")),
    }
}

/// The outline of a text; `None` where values are apart.
fn compressed_mask_of(mask: &str) -> Option<String> {
    let (mut before, mut after, mut values) = (0_usize, 0_usize, "");
    let mut rest = mask;
    while let Some(first) = rest.bytes().next() {
        let is_escaped = rest.starts_with("{{") || rest.starts_with("}}");
        if first == b'{' && !is_escaped {
            let length = rest.find('}')? + 1;
            if after > 0 {
                return None;
            }
            let start = mask.len() - rest.len() - values.len();
            values = &mask[start..start + values.len() + length];
            rest = &rest[length..];
            continue;
        }
        let literal = if is_escaped { 2 } else { rest.chars().next()?.len_utf8() };
        let bytes = if is_escaped { 1 } else { literal };
        if values.is_empty() {
            before += bytes;
        } else {
            after += bytes;
        }
        rest = &rest[literal..];
    }
    let length = |bytes: usize| if bytes == 0 { String::new() } else { bytes.to_string() };
    Some(format!("{}{values}{}", length(before), length(after)))
}

/// The text of a number, from its outline.
fn mask_of(compressed_mask: &str, number: &str) -> Option<String> {
    let length = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let from = compressed_mask.find('{').unwrap_or(compressed_mask.len());
    let to = compressed_mask.rfind('}').map_or(compressed_mask.len(), |last| last + 1);
    let (before, after): (usize, usize) =
        (length(&compressed_mask[..from])?, length(compressed_mask.get(to..)?)?);
    let ends = number.len().checked_sub(after)?;
    if ends < before || from == compressed_mask.len() && ends != before {
        return None;
    }
    let mut mask = String::with_capacity(number.len() + compressed_mask.len());
    escape(&mut mask, number.get(..before)?);
    mask.push_str(compressed_mask.get(from..to)?);
    escape(&mut mask, number.get(ends..)?);
    Some(mask)
}

fn escape(mask: &mut String, literal: &str) {
    for character in literal.chars() {
        mask.push(character);
        if matches!(character, '{' | '}') {
            mask.push(character);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_literal_is_told_by_its_length() {
        for (mask, number, compressed_mask) in [
            ("SPO-20240122-{0:3}", "SPO-20240122-001", "13{0:3}"),
            ("{0:5}{luhn}", "000018", "{0:5}{luhn}"),
            ("\u{e04}-{0:4}-2568", "\u{e04}-0001-2568", "4{0:4}5"),
            ("{{{0}}}", "{7}", "1{0}1"),
            ("no value {{at}} all", "no value {at} all", "17"),
        ] {
            let form = Form::of(mask, number);
            assert_eq!(form, Form::CompressedMask(compressed_mask.into()), "{mask}");
            let (mask_column, shape_column) = form.columns();
            let read = read_mask(mask_column.map(str::to_owned), shape_column, number);
            assert_eq!(read.expect("its own outline"), mask);
        }
    }

    #[test]
    fn a_text_that_the_number_does_not_tell_is_kept_itself() {
        for (mask, number) in [
            ("{0:3}-{1:3}", "001-002"),
            ("A-{0:3}", "B-001"),
            ("{", "x"),
            ("AB{0:3}", "A"),
            ("SPO", "SPO-1"),
        ] {
            assert_eq!(Form::of(mask, number), Form::Mask(mask), "{mask}");
        }
    }

    #[test]
    fn a_shape_of_another_number_is_refused() {
        for (compressed_mask, number) in
            [("13{0:3}", "short"), ("1", "\u{e04}"), ("x{0}", "1"), ("1{0}1", "7")]
        {
            assert!(read_mask(None, Some(compressed_mask), number).is_err(), "{compressed_mask}");
        }
        assert!(read_mask(None, None, "1").is_err());
    }
}

//! Headers that are lists (RFC 9110, 5.6): read entry by entry, as bytes. The content of one entry
//! does not affect the others: a proxy adds its own after those of a client.

use axum::http::HeaderValue;

/// The entries of a list whose values are not quoted, without the blanks around them.
pub(crate) fn entries(list: &HeaderValue) -> impl DoubleEndedIterator<Item = &[u8]> {
    list.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// The entries as far as they are text.
pub(crate) fn text_entries(list: &HeaderValue) -> impl Iterator<Item = &str> {
    entries(list).filter_map(|entry| std::str::from_utf8(entry).ok())
}

/// Parts between signs that are not in a quoted string.
pub(crate) fn split(bytes: &[u8], sign: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    bytes.split(move |byte| {
        let is_sign = *byte == sign && !is_quoted;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
        is_sign
    })
}

/// The same, the last part first, and quoted strings found from the end: an unclosed one belongs to
/// the text before it, and includes nothing that was added after it.
pub(crate) fn split_from_end(bytes: &[u8], sign: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let left = rest?;
        let mut is_quoted = false;
        let is_sign = |at: &usize| {
            let byte = left[*at];
            if byte == b'"' && !is_escaped(left, *at) {
                is_quoted = !is_quoted;
            }
            byte == sign && !is_quoted
        };
        let found = (0..left.len()).rev().find(is_sign);
        rest = found.map(|at| &left[..at]);
        Some(found.map_or(left, |at| &left[at + 1..]))
    })
}

/// Whether the place follows a backslash that is not itself escaped.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(parts: impl Iterator<Item = &'static [u8]>) -> Vec<String> {
        parts.map(|part| String::from_utf8_lossy(part).into_owned()).collect()
    }

    #[test]
    fn an_entry_that_cannot_be_read_takes_no_other_with_it() {
        let list = HeaderValue::from_bytes(b"a,\xff, b ,,c\x80,d").expect("a value");
        assert_eq!(text_entries(&list).collect::<Vec<_>>(), ["a", "b", "", "d"]);
        assert_eq!(entries(&list).next_back(), Some(&b"d"[..]));
    }

    #[test]
    fn a_quoted_sign_ends_no_part_from_either_end() {
        let whole = br#"a="1, 2", b="\", 3",c"#;
        let parts = [r#"a="1, 2""#, r#" b="\", 3""#, "c"];
        assert_eq!(text(split(whole, b',')), parts);
        let mut from_end = text(split_from_end(whole, b','));
        from_end.reverse();
        assert_eq!(from_end, parts);
        assert_eq!(text(split_from_end(b"", b',')), [""]);
        assert_eq!(text(split_from_end(b"a,", b',')), ["", "a"]);
    }

    #[test]
    fn a_quotation_that_is_left_open_swallows_nothing_that_was_added_behind() {
        for client in [r#"x="a"#, r#"x="a\""#, r#"""#, r#"x="a, b"c"#, "\\", r#"x=",y=\"#] {
            let whole = format!(r#"{client}, for="[2001:db8::7]:99""#);
            let last = split_from_end(whole.as_bytes(), b',').next().expect("a part");
            assert_eq!(last, br#" for="[2001:db8::7]:99""#, "{client}");
        }
    }
}

//! Cuts a statement of a dump into parts that are parsed one by one, and refuses what no dump
//! writes: a parser holds a whole statement in memory, and follows its expressions to any depth,
//! until the stack overflows.

/// Most parentheses within each other: those of a row or a table, and of a few calls within.
const DEPTH_MAX: usize = 8;

/// Most bytes outside texts, names and inner parentheses between two commas: a value is a literal,
/// and a column's or a table's options are a line.
const PLAIN_BYTES_MAX: usize = 512;

/// Most commas of one list in parentheses: columns of a table, values of an enumeration.
const COMMAS_MAX: usize = 65_536;

/// Most bytes before the rows of an INSERT: they are parsed again with each part.
const HEAD_BYTES_MAX: usize = 65_536;

/// A part of at least so many bytes ends with its current row.
const PART_BYTES: usize = 65_536;

/// The parts of an INSERT, each a statement of its own with the rows that it inserts: so many that
/// each is small, unless one row is not. What follows the last row comes with the last part.
///
/// # Errors
/// What is not supported, and the remedy.
pub(super) fn of_insert(text: &str) -> Result<Vec<String>, String> {
    let Some(rows) = walk(text)? else { return Ok(vec![text.to_owned()]) };
    let head = &text[..rows.begin];
    if head.len() > HEAD_BYTES_MAX {
        return Err(format!("more than {HEAD_BYTES_MAX} bytes come before its rows"));
    }
    let mut parts = Vec::new();
    let mut begin = rows.begin;
    for end in rows.ends {
        if end - begin >= PART_BYTES {
            parts.push(format!("{head}{}", &text[begin..end]));
            // The comma before the next row.
            begin = end + text[end..].find(',').map_or(0, |comma| comma + 1);
        }
    }
    let rest = text[begin..].trim();
    if parts.is_empty() || !rest.is_empty() {
        parts.push(format!("{head}{rest}"));
    }
    Ok(parts)
}

/// Refuses a statement that is nested too deep.
pub(super) fn must_be_flat(text: &str) -> Result<(), String> {
    walk(text).map(drop)
}

/// The places of an INSERT's rows.
struct RowEnds {
    /// The byte after `VALUES`.
    begin: usize,
    /// The byte after each row.
    ends: Vec<usize>,
}

/// A list that is being walked through.
#[derive(Clone, Copy, Default)]
struct List {
    commas: usize,
    /// Plain bytes since the last comma.
    plain: usize,
}

/// Walks through a statement; where its rows are, if it has any.
fn walk(text: &str) -> Result<Option<RowEnds>, String> {
    let mut lists = vec![List::default()];
    let (mut quote, mut is_escaped): (Option<u8>, bool) = (None, false);
    let mut rows: Option<RowEnds> = None;
    for (place, byte) in text.bytes().enumerate() {
        if let Some(sign) = quote {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if sign != b'`' => is_escaped = true,
                _ if byte == sign => quote = None,
                _ => {}
            }
            continue;
        }
        let list = lists.last_mut().expect("the statement itself is the first");
        match byte {
            b'\'' | b'"' | b'`' => quote = Some(byte),
            b'(' | b'[' | b'{' => {
                list.plain += 1;
                lists.push(List::default());
            }
            b')' | b']' | b'}' => {
                if lists.len() > 1 {
                    lists.pop();
                }
                if let (1, Some(rows)) = (lists.len(), &mut rows) {
                    rows.ends.push(place + 1);
                }
            }
            b',' => *list = List { commas: list.commas + 1, plain: 0 },
            _ if byte.is_ascii_whitespace() => {}
            _ => list.plain += 1,
        }
        let list = lists.last().expect("the statement itself is the first");
        if lists.len() > DEPTH_MAX + 1 {
            return Err(format!("more than {DEPTH_MAX} parentheses within each other"));
        }
        if list.plain > PLAIN_BYTES_MAX {
            let what = "it is no literal value, no column and no option of a table";
            return Err(format!("{what}: {PLAIN_BYTES_MAX} bytes without a comma"));
        }
        if list.commas > COMMAS_MAX && lists.len() > 1 {
            return Err(format!("a list of more than {COMMAS_MAX}"));
        }
        if rows.is_none() && lists.len() == 1 && ends_with_values(&text.as_bytes()[..=place]) {
            rows = Some(RowEnds { begin: place + 1, ends: Vec::new() });
        }
    }
    Ok(rows)
}

/// Whether the text read so far ends with the word before the rows. A letter after it makes another
/// word of it, which no dump has there.
fn ends_with_values(read: &[u8]) -> bool {
    let Some((before, word)) = read.len().checked_sub(6).map(|at| read.split_at(at)) else {
        return false;
    };
    let is_word = word.eq_ignore_ascii_case(b"values");
    is_word && before.last().is_some_and(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_are_parted_between_them_and_none_is_lost() {
        let row = |n: usize| format!("({n},'a); values (\\'{}',NULL)", "x".repeat(1_000));
        let rows: Vec<String> = (0..500).map(row).collect();
        let text = format!("INSERT INTO `values` (a, b, c) VALUES {}", rows.join(",\n"));
        let parts = of_insert(&text).expect("parts");
        assert!((7..=9).contains(&parts.len()), "{}", parts.len());
        let head = "INSERT INTO `values` (a, b, c) VALUES";
        let bodies = parts.iter().map(|part| part.strip_prefix(head).expect("its head").trim());
        assert_eq!(bodies.collect::<Vec<_>>().join(",\n"), rows.join(",\n"));
    }

    #[test]
    fn one_row_and_what_follows_it_stay_together() {
        for text in ["INSERT INTO t VALUES (1,2)", "insert into t(a) values(1) on duplicate key"] {
            let parts = of_insert(text).expect("parts");
            let squeezed = |text: &str| text.replace(' ', "");
            assert_eq!(parts.len(), 1);
            assert_eq!(squeezed(&parts[0]), squeezed(text));
        }
        assert_eq!(of_insert("INSERT INTO t SELECT 1").expect("whole").len(), 1);
    }

    #[test]
    fn what_is_deep_or_long_is_refused() {
        let deep = "(".repeat(100_000);
        assert!(must_be_flat(&deep).is_err() && of_insert(&deep).is_err());
        assert!(must_be_flat("((((((((1))))))))").is_ok());
        let long = format!("VALUES (1{})", "+1".repeat(1_000));
        assert!(of_insert(&long).is_err());
        assert!(of_insert(&format!("VALUES (f(1,2){})", "+f(1,2)".repeat(1_000))).is_err());
        assert!(of_insert(&format!("VALUES ({})", "1,".repeat(COMMAS_MAX + 1))).is_err());
        assert!(of_insert(&format!("VALUES {}", "(1),".repeat(COMMAS_MAX + 2))).is_ok());
    }
}

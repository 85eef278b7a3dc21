//! What callers ask for, and what they are given for it.

use serde_json::{Value, json};

/// Types of the drill, one series each but the last; the first letter leads the number.
pub(super) const TYPES: [&str; 5] = ["ALPHA", "BRAVO", "CHARLIE", "DELTA", TURNING];

/// The policies of the types that have one series.
pub(super) const POLICIES: [&str; TYPES.len() - 1] = ["fast", "durable", "fast", "gapless"];

/// The type whose numbers are gapless: its counters are those of reservations, too.
pub(super) const GAPLESS: usize = 3;

/// The type that a successor serves from a certain day on, and the series until then.
pub(super) const TURNING: &str = "ECHO";

/// Its series from that day on.
pub(super) const SUCCESSOR: &str = "FOXTROT";

/// Letters that begin numbers, one for each series, in the order of their counters.
pub(super) const LETTERS: &str = "ABCDEF";

/// Digits of the variable that each series counts by.
pub(super) const LINE_DIGITS: usize = 3;

/// Values of the variable that each series counts by: each series has this many counters.
pub(super) const LINES: u64 = 32;

/// Where ranges and several documents are asked for.
pub(super) const BATCHES: &str = "/api/v1/document-numbering/batches";

/// What is requested for one document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    /// The document, from 0.
    pub(super) document: u64,
    /// Index of the type.
    pub(super) kind: usize,
    /// Value of the variable.
    pub(super) line: u64,
    /// 1, or the length of a range.
    pub(super) count: u64,
    /// Whether it names the day on which the successor begins; otherwise it names none.
    pub(super) is_dated: bool,
}

impl Order {
    /// The document's name; names sort as documents do.
    pub(super) fn name(&self) -> String {
        format!("d{:012}", self.document)
    }

    pub(super) fn body(&self, day: &str) -> Value {
        let mut body = json!({
            "type": TYPES[self.kind], "context": { "LINE": format!("{:03}", self.line) }
        });
        if self.is_dated {
            body["date"] = day.into();
        }
        if self.count > 1 {
            body["document_id"] = self.name().into();
            body["count"] = self.count.into();
        }
        body
    }

    pub(super) fn path(&self) -> String {
        if self.count > 1 {
            return BATCHES.into();
        }
        format!("/api/v1/documents/{}/generate-number", self.name())
    }
}

/// A number, or a range of them, that a caller was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Received {
    /// For this document.
    pub(super) document: u64,
    /// The counter, among those of all series.
    pub(super) counter: u64,
    /// First value.
    pub(super) first: u64,
    /// Last value.
    pub(super) last: u64,
}

impl Received {
    /// Whether the successor of the series in turns gave it.
    pub(super) fn is_of_successor(&self) -> bool {
        self.counter / LINES == TYPES.len() as u64
    }

    /// The text that a value of a counter must have.
    pub(super) fn text(counter: u64, value: u64) -> String {
        let series = usize::try_from(counter / LINES).expect("an index of a series");
        format!("{}{:03}-{value:09}", &LETTERS[series..=series], counter % LINES)
    }

    /// What a caller must have been given for a row of the journal; `None` if its document or its
    /// number is not of the drill.
    pub(super) fn of_row(document: &str, number: &str, first: u64, last: u64) -> Option<Self> {
        let document = document.strip_prefix('d')?.parse().ok()?;
        let (counter, value) = Self::place(number)?;
        (value == first).then_some(Received { document, counter, first, last })
    }

    /// The counter, among those of all series, and the value that a text shows; `None` if it is no
    /// number of the drill.
    pub(super) fn place(number: &str) -> Option<(u64, u64)> {
        let (letter, line) = (number.get(..1)?, number.get(1..4)?.parse::<u64>().ok()?);
        let value = number.get(5..)?.parse().ok()?;
        let counter = LETTERS.find(letter)? as u64 * LINES + line;
        (line < LINES && Self::text(counter, value) == number).then_some((counter, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_shows_its_counter_and_its_value_or_is_none_of_the_drill() {
        let counter = GAPLESS as u64 * LINES + 7;
        assert_eq!(Received::place("D007-000000042"), Some((counter, 42)));
        assert_eq!(Received::text(counter, 42), "D007-000000042");
        for other in ["", "D", "D032-000000042", "D007-42", "X007-000000042", "D007_000000042"] {
            assert_eq!(Received::place(other), None, "{other}");
        }
    }

    #[test]
    fn reservations_are_made_in_the_gapless_series() {
        assert_eq!(POLICIES[GAPLESS], "gapless");
    }
}

//! Many numbers of one counter per request, told by their ends.

use super::{Counters, DOCUMENT_DIGITS, Naming, digits, post, text_of};
use crate::client::Answer;
use crate::load::Work;
use crate::tally::Tally;

/// Where ranges are asked for.
const PATH: &str = "/api/v1/document-numbering/batches";

/// Name of the idempotency keys, before a running number.
const KEY: &str = "idempotency-key: range-";

/// Requests for ranges, each with an `Idempotency-Key` of its own.
pub(crate) struct Ranges {
    counters: Counters,
    size: u64,
    template: Vec<u8>,
    key_at: usize,
    naming_at: usize,
    asked: u64,
    tally: Tally,
}

impl Ranges {
    /// Ranges of so many numbers of these counters.
    pub(crate) fn new(counters: Counters, size: u64) -> Self {
        let key = format!("{KEY}{}\r\n", "0".repeat(DOCUMENT_DIGITS));
        let body = format!("{{\"count\":{size},{}}}", Naming::TEXT);
        let template = post(PATH, &key, &body);
        let naming_at = template.len() - Naming::TEXT.len() - 1;
        let found = template.windows(KEY.len()).position(|bytes| bytes == KEY.as_bytes());
        let key_at = found.expect("the key is in the request") + KEY.len();
        let tally = Tally::new(counters.count());
        Ranges { counters, size, template, key_at, naming_at, asked: 0, tally }
    }
}

impl Work for Ranges {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        let place = self.counters.pick();
        digits(&mut self.template[self.key_at..self.key_at + DOCUMENT_DIGITS], self.asked);
        Naming::fill(&mut self.template[self.naming_at..], place);
        self.asked += 1;
        request.clear();
        request.extend_from_slice(&self.template);
        place.counter
    }

    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let value = |name| -> Result<u64, String> {
            let text = text_of(&answer, name)?;
            text.parse().map_err(|_| format!("{name} is {text}"))
        };
        let (first, last) = (value("first")?, value("last")?);
        if first == 0 || last.checked_sub(first) != Some(self.size - 1) {
            return Err(format!("{first} to {last} are not {} numbers", self.size));
        }
        self.tally.take(counter, first, last);
        Ok(Some(self.size))
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_overlap_or_are_too_short_are_noted() {
        let mut work = Ranges::new(Counters::in_turn(1), 1_000);
        let answer = |body: &'static [u8]| Answer { status: 201, body };
        assert_eq!(work.answered(0, answer(br#"{"first":"1","last":"1000"}"#)), Ok(Some(1_000)));
        assert!(work.answered(0, answer(br#"{"first":"1001","last":"1999"}"#)).is_err());
        assert!(work.findings().is_empty());
        assert_eq!(work.answered(0, answer(br#"{"first":"1000","last":"1999"}"#)), Ok(Some(1_000)));
        assert_eq!(work.findings().len(), 1);
    }
}

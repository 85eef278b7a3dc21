//! One number for one document per request.

use super::{Counters, DOCUMENT_DIGITS, Naming, Place, digits, note, post, text_of};
use crate::client::Answer;
use crate::load::Work;
use crate::tally::Tally;

/// Name of the documents, before their running number.
const DOCUMENT: &str = "/api/v1/documents/doc-";

/// Name of the idempotency keys, before the same number.
const KEY: &str = "idempotency-key: key-";

/// Requests for single numbers, each for a document of its own.
pub(crate) struct Single {
    counters: Counters,
    /// The request; series, line and running numbers are written over in it.
    template: Vec<u8>,
    key_at: Option<usize>,
    naming_at: usize,
    asked: u64,
    tally: Tally,
    is_checked: bool,
}

impl Single {
    /// For these counters; with a header `Idempotency-Key` on request.
    pub(crate) fn new(counters: Counters, has_key: bool) -> Self {
        let zeros = "0".repeat(DOCUMENT_DIGITS);
        let path = format!("{DOCUMENT}{zeros}/generate-number");
        let key = if has_key { format!("{KEY}{zeros}\r\n") } else { String::new() };
        let template = post(&path, &key, &format!("{{{}}}", Naming::TEXT));
        let find = |text: &str| {
            let found = template.windows(text.len()).position(|bytes| bytes == text.as_bytes());
            found.map(|at| at + text.len())
        };
        let naming_at = template.len() - Naming::TEXT.len() - 1;
        let tally = Tally::new(counters.count());
        let key_at = find(KEY);
        Single { counters, template, key_at, naming_at, asked: 0, tally, is_checked: true }
    }

    /// For counters that have given numbers before; none of its documents has one.
    pub(crate) fn after(counters: Counters, tally: Tally) -> Self {
        let asked = tally.numbers();
        Single { tally, asked, ..Self::new(counters, false) }
    }

    /// The same requests to a server that makes its numbers up: they are read and not checked.
    pub(crate) fn unchecked(counters: Counters) -> Self {
        Single { is_checked: false, ..Self::new(counters, false) }
    }

    fn place(&self, counter: usize) -> Place {
        self.counters.place(counter)
    }
}

impl Work for Single {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        let place = self.counters.pick();
        let document_at = "POST ".len() + DOCUMENT.len();
        for at in [Some(document_at), self.key_at].into_iter().flatten() {
            digits(&mut self.template[at..at + DOCUMENT_DIGITS], self.asked);
        }
        Naming::fill(&mut self.template[self.naming_at..], place);
        self.asked += 1;
        request.clear();
        request.extend_from_slice(&self.template);
        place.counter
    }

    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let text = text_of(&answer, "document_number")?;
        if self.is_checked {
            let place = self.place(counter);
            note(text, place, &mut self.tally)?;
        }
        Ok(Some(1))
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_names_its_document_key_and_counter() {
        let mut work = Single::new(Counters::in_turn(10), true);
        let mut request = Vec::new();
        for _ in 0..9 {
            work.next(&mut request);
        }
        assert_eq!(work.next(&mut request), 9);
        let text = String::from_utf8(request).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("POST /api/v1/documents/doc-000000000009/generate-number "));
        assert!(head.contains("\r\nidempotency-key: key-000000000009\r\n"), "{head}");
        assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())), "{head}");
        assert_eq!(body, r#"{"type":"LOAD1","context":{"LINE":"0000001"}}"#);
    }

    #[test]
    fn a_number_that_comes_twice_is_noted() {
        let mut work = Single::new(Counters::in_turn(1), false);
        let body = br#"{"document_number":"L0-0000000-000000000001"}"#;
        let answer = Answer { status: 201, body };
        assert_eq!(work.answered(0, answer), Ok(Some(1)));
        assert!(work.findings().is_empty());
        assert_eq!(work.answered(0, answer), Ok(Some(1)));
        assert_eq!(work.findings().len(), 1);
    }
}

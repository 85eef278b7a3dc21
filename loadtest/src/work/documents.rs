//! Many documents per request, each with a number of its own.

use std::io::Write as _;

use super::{Counters, Naming, note, post};
use crate::client::Answer;
use crate::load::Work;
use crate::tally::Tally;

/// Where lists of documents are sent.
const PATH: &str = "/api/v1/document-numbering/batches";

/// What stands before the text of each number.
const NUMBER: &str = "\"document_number\":\"";

/// What stands in an item that was refused for now.
const REFUSED: &str = "\"status\":503";

/// Requests for lists of documents. The counters of a list follow one another.
pub(crate) struct Documents {
    counters: Counters,
    size: usize,
    asked: u64,
    tally: Tally,
}

impl Documents {
    /// Lists of so many documents, of these counters in turn.
    pub(crate) fn new(counters: usize, size: usize) -> Self {
        let tally = Tally::new(counters);
        Documents { counters: Counters::in_turn(counters), size, asked: 0, tally }
    }

    /// For counters that have given numbers before.
    pub(crate) fn after(counters: usize, size: usize, tally: Tally) -> Self {
        Documents { tally, ..Self::new(counters, size) }
    }

    /// What was received.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally
    }
}

impl Work for Documents {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        let mut body = Vec::with_capacity(self.size * 100);
        let mut first = None;
        body.extend_from_slice(b"{\"documents\":[");
        for index in 0..self.size {
            let place = self.counters.pick();
            first.get_or_insert(place.counter);
            let comma = if index == 0 { "" } else { "," };
            let asked = self.asked;
            write!(body, "{comma}{{\"document_id\":\"list-{asked}-{index}\",")
                .expect("memory takes everything");
            let at = body.len();
            body.extend_from_slice(Naming::TEXT.as_bytes());
            Naming::fill(&mut body[at..], place);
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        self.asked += 1;
        let text = String::from_utf8(body).expect("text");
        *request = post(PATH, "", &text);
        first.unwrap_or_default()
    }

    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let text = std::str::from_utf8(answer.body).map_err(|error| error.to_string())?;
        let count = text.matches(NUMBER).count();
        if count < self.size && text.contains(REFUSED) {
            // All of it is asked for again; those that have a number by now get the same.
            return Ok(None);
        }
        if count != self.size {
            let shown: String = text.chars().take(500).collect();
            return Err(format!("{count} numbers for {} documents: {shown}", self.size));
        }
        for (index, rest) in text.split(NUMBER).skip(1).enumerate() {
            let place = self.counters.place((counter + index) % self.counters.count());
            let number = rest.split('"').next().unwrap_or_default();
            note(number, place, &mut self.tally)?;
        }
        Ok(Some(count as u64))
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_checked_item_by_item() {
        let mut work = Documents::new(2, 2);
        let mut request = Vec::new();
        assert_eq!(work.next(&mut request), 0);
        let text = String::from_utf8(request).expect("text");
        assert!(text.contains(r#"{"document_id":"list-0-1","type":"LOAD1","context""#), "{text}");
        let answer = |body: &'static [u8]| Answer { status: 200, body };
        let both = br#"[{"document_number":"L0-0000000-1"},{"document_number":"L1-0000000-1"}]"#;
        assert_eq!(work.answered(0, answer(both)), Ok(Some(2)));
        let one = br#"[{"document_number":"L0-0000000-2"},{"status":503}]"#;
        assert_eq!(work.answered(0, answer(one)), Ok(None));
        assert!(work.answered(0, answer(br#"[{"document_number":"L0-0000000-2"}]"#)).is_err());
        let swapped = br#"[{"document_number":"L1-0000000-2"},{"document_number":"L0-0000000-3"}]"#;
        assert!(work.answered(0, answer(swapped)).is_err());
    }
}

//! Requests for numbers: one for a document, one for each document of a list, a range of them.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use uuid::{Builder, Uuid};

use super::{Counters, Place, text_of};
use crate::client::Answer;
use crate::load::Work;
use crate::tally::Tally;

/// Where lists of documents and ranges are asked for.
const BATCHES: &str = "/api/v1/document-numbering/batches";

/// The text before each number of a list.
const NUMBER: &str = "\"document_number\":\"";

/// The mark of an item that was refused for now.
const REFUSED: &str = "\"status\":503";

/// What one request asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ask {
    /// A number for a document of its own.
    One,
    /// The same, from a server that makes its numbers up: they are read and not checked.
    Unchecked,
    /// Numbers for this many documents; their counters follow one another.
    List(usize),
    /// The same under an `Idempotency-Key`, a UUID: each item's key is that and its place.
    KeyedList(usize),
    /// This many numbers of one counter, known by their ends, under an `Idempotency-Key`.
    Range(u64),
}

/// People for whom a service asks in turn, each from an address of its own.
const PEOPLE: u64 = 1_000;

/// How requests identify their caller.
#[derive(Clone, Debug, Default)]
pub(crate) enum Known {
    /// Not at all.
    #[default]
    Nobody,
    /// With this token.
    By(String),
    /// With this token, for people in turn.
    ForPeople(String),
}

impl Known {
    /// The lines of a request that identify it.
    fn headers(&self, asked: u64) -> String {
        let person = asked % PEOPLE;
        match self {
            Known::Nobody => String::new(),
            Known::By(token) => format!("authorization: Bearer {token}\r\n"),
            Known::ForPeople(token) => format!(
                "authorization: Bearer {token}\r\non-behalf-of: person-{person}\r\n\
                 on-behalf-of-ip: 10.0.{}.{}\r\n",
                person / 250,
                person % 250
            ),
        }
    }
}

/// Requests of one kind for some counters, and what they were given.
pub(crate) struct Numbers {
    ask: Ask,
    known: Known,
    counters: Counters,
    /// Requests so far: each names documents of its own.
    asked: u64,
    tally: Tally,
}

impl Numbers {
    /// For these counters.
    pub(crate) fn new(ask: Ask, counters: Counters) -> Self {
        let tally = Tally::new(counters.count);
        Numbers { ask, known: Known::default(), counters, asked: 0, tally }
    }

    /// For one counter.
    pub(crate) fn hot(ask: Ask) -> Self {
        Self::new(ask, Counters::in_turn(1))
    }

    /// Requested by a caller.
    pub(crate) fn known(self, known: Known) -> Self {
        Numbers { known, ..self }
    }

    /// For counters that have issued numbers before, none of them for one of its documents.
    pub(crate) fn after(self, tally: Tally) -> Self {
        Numbers { asked: tally.numbers(), tally, ..self }
    }

    /// Records the value of a number.
    fn note(&mut self, number: &str, place: Place) -> Result<(), String> {
        let value = place.value_of(number).ok_or_else(|| format!("{number} for {place:?}"))?;
        self.tally.take(place.counter, value, value);
        Ok(())
    }

    /// The body that asks for numbers for this many documents, the first of them of this counter. A
    /// document's id has 20 characters.
    fn list(&mut self, size: usize, asked: u64, first: Place) -> String {
        let mut body = String::from(r#"{"documents":["#);
        let mut place = first;
        for index in 0..size {
            if index > 0 {
                body.push(',');
                place = self.counters.pick();
            }
            let item = format_args!(r#"{{"document_id":"list-{asked:010}-{index:04}",{place}}}"#);
            body.write_fmt(item).expect("memory takes everything");
        }
        body + "]}"
    }

    fn note_list(&mut self, size: usize, first: usize, body: &[u8]) -> Result<Option<u64>, String> {
        let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
        let count = text.matches(NUMBER).count();
        if count < size && text.contains(REFUSED) {
            // All of it is asked for again; documents that have a number by now get the same one.
            return Ok(None);
        }
        if count != size {
            let shown: String = text.chars().take(500).collect();
            return Err(format!("{count} numbers for {size} documents: {shown}"));
        }
        for (index, rest) in text.split(NUMBER).skip(1).enumerate() {
            let place = self.counters.place((first + index) % self.counters.count);
            self.note(rest.split('"').next().unwrap_or_default(), place)?;
        }
        Ok(Some(count as u64))
    }

    fn note_range(&mut self, size: u64, counter: usize, answer: &Answer<'_>) -> Result<(), String> {
        let value = |name| -> Result<u64, String> {
            let text = text_of(answer, name)?;
            text.parse().map_err(|_| format!("{name} is {text}"))
        };
        let (first, last) = (value("first")?, value("last")?);
        if first == 0 || last.checked_sub(first) != Some(size - 1) {
            return Err(format!("{first} to {last} are not {size} numbers"));
        }
        self.tally.take(counter, first, last);
        Ok(())
    }
}

impl Work for Numbers {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        let place = self.counters.pick();
        let asked = self.asked;
        self.asked += 1;
        let one = format_args!("/api/v1/documents/doc-{asked:012}/generate-number");
        let who = self.known.headers(asked);
        match self.ask {
            Ask::One | Ask::Unchecked => post(request, one, &who, &format!("{{{place}}}")),
            Ask::Range(size) => {
                let key = format!("{who}idempotency-key: range-{asked:012}\r\n");
                post(request, BATCHES, &key, &format!(r#"{{"count":{size},{place}}}"#));
            }
            Ask::List(size) => {
                let body = self.list(size, asked, place);
                post(request, BATCHES, &who, &body);
            }
            Ask::KeyedList(size) => {
                let key = format!("{who}idempotency-key: {}\r\n", key_of(asked));
                let body = self.list(size, asked, place);
                post(request, BATCHES, &key, &body);
            }
        }
        place.counter
    }

    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        match self.ask {
            Ask::One => {
                let place = self.counters.place(counter);
                self.note(text_of(&answer, "document_number")?, place)?;
                Ok(Some(1))
            }
            Ask::Unchecked => text_of(&answer, "document_number").map(|_| Some(1)),
            Ask::List(size) | Ask::KeyedList(size) => self.note_list(size, counter, answer.body),
            Ask::Range(size) => self.note_range(size, counter, &answer).map(|()| Some(size)),
        }
    }

    fn tally(&self) -> Option<&Tally> {
        Some(&self.tally)
    }
}

/// The key of a list, random as a caller's would be, but the same in each run.
fn key_of(asked: u64) -> Uuid {
    let random: u128 = fastrand::Rng::with_seed(asked).u128(..);
    Builder::from_random_bytes(random.to_be_bytes()).into_uuid()
}

/// Writes a POST request over the last one, with more header lines.
pub(super) fn post(request: &mut Vec<u8>, path: impl Display, headers: &str, body: &str) {
    request.clear();
    let written = write!(
        request,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    written.expect("memory takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The next request: its head and its body.
    fn next(work: &mut Numbers) -> (String, String) {
        let mut request = Vec::new();
        work.next(&mut request);
        let text = String::from_utf8(request).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    fn answer(work: &mut Numbers, body: &str) -> Result<Option<u64>, String> {
        work.answered(0, Answer { status: 201, body: body.as_bytes() })
    }

    #[test]
    fn each_request_names_its_document_and_counter() {
        let mut work = Numbers::new(Ask::One, Counters::in_turn(10));
        (0..9).for_each(|_| drop(next(&mut work)));
        let (head, body) = next(&mut work);
        assert!(head.starts_with("POST /api/v1/documents/doc-000000000009/generate-number "));
        assert!(head.ends_with(&format!("\r\ncontent-length: {}", body.len())), "{head}");
        assert_eq!(body, r#"{"type":"LOAD1","context":{"LINE":"0000001"}}"#);
    }

    #[test]
    fn a_request_says_who_asks_and_each_person_comes_again_after_all_others() {
        let mut work = Numbers::hot(Ask::One).known(Known::ForPeople("secret".into()));
        let (first, _) = next(&mut work);
        let said = "\r\nauthorization: Bearer secret\r\non-behalf-of: person-0\r\n\
                    on-behalf-of-ip: 10.0.0.0\r\n";
        assert!(first.contains(said), "{first}");
        (2..PEOPLE).for_each(|_| drop(next(&mut work)));
        let (last, _) = next(&mut work);
        assert!(last.contains("person-999\r\non-behalf-of-ip: 10.0.3.249\r\n"), "{last}");
        assert!(next(&mut work).0.contains(said));
        let mut work = Numbers::hot(Ask::Range(2)).known(Known::By("secret".into()));
        let (head, _) = next(&mut work);
        assert!(head.contains("Bearer secret\r\nidempotency-key: range-0"), "{head}");
    }

    #[test]
    fn a_number_that_comes_twice_is_noted() {
        let mut work = Numbers::hot(Ask::One);
        let body = r#"{"document_number":"L0-0000000-000000000001"}"#;
        assert_eq!(answer(&mut work, body), Ok(Some(1)));
        assert!(work.findings().is_empty());
        assert_eq!(answer(&mut work, body), Ok(Some(1)));
        assert_eq!(work.findings().len(), 1);
    }

    #[test]
    fn ranges_that_overlap_or_are_too_short_are_noted() {
        let mut work = Numbers::hot(Ask::Range(1_000));
        let (head, body) = next(&mut work);
        assert!(head.contains("\r\nidempotency-key: range-000000000000\r\n"), "{head}");
        assert_eq!(body, r#"{"count":1000,"type":"LOAD0","context":{"LINE":"0000000"}}"#);
        assert_eq!(answer(&mut work, r#"{"first":"1","last":"1000"}"#), Ok(Some(1_000)));
        assert!(answer(&mut work, r#"{"first":"1001","last":"1999"}"#).is_err());
        assert!(work.findings().is_empty());
        assert_eq!(answer(&mut work, r#"{"first":"1000","last":"1999"}"#), Ok(Some(1_000)));
        assert_eq!(work.findings().len(), 1);
    }

    #[test]
    fn a_list_is_checked_item_by_item() {
        let mut work = Numbers::new(Ask::List(2), Counters::in_turn(2));
        let (_, body) = next(&mut work);
        let wanted = concat!(
            r#"{"documents":[{"document_id":"list-0000000000-0000","type":"LOAD0","#,
            r#""context":{"LINE":"0000000"}},{"document_id":"list-0000000000-0001","#,
            r#""type":"LOAD1","context":{"LINE":"0000000"}}]}"#
        );
        assert_eq!(body, wanted);
        let both = r#"[{"document_number":"L0-0000000-1"},{"document_number":"L1-0000000-1"}]"#;
        assert_eq!(answer(&mut work, both), Ok(Some(2)));
        let one = r#"[{"document_number":"L0-0000000-2"},{"status":503}]"#;
        assert_eq!(answer(&mut work, one), Ok(None));
        assert!(answer(&mut work, r#"[{"document_number":"L0-0000000-2"}]"#).is_err());
        let swapped = r#"[{"document_number":"L1-0000000-2"},{"document_number":"L0-0000000-3"}]"#;
        assert!(answer(&mut work, swapped).is_err());
    }

    #[test]
    fn each_list_that_has_a_key_has_one_of_its_own() {
        let mut work = Numbers::hot(Ask::KeyedList(2));
        let mut key = || {
            let (head, body) = next(&mut work);
            assert_eq!(body.matches("document_id").count(), 2, "{body}");
            let key = head.split("\r\nidempotency-key: ").nth(1).expect("a key").to_owned();
            key.lines().next().unwrap_or_default().to_owned()
        };
        let (one, other) = (key(), key());
        assert!(one.len() == 36 && other.len() == 36 && one != other, "{one} {other}");
        let both = r#"[{"document_number":"L0-0000000-1"},{"document_number":"L0-0000000-2"}]"#;
        assert_eq!(answer(&mut work, both), Ok(Some(2)));
        let (head, _) = next(&mut Numbers::hot(Ask::List(2)));
        assert!(!head.contains("idempotency-key"), "{head}");
    }
}

//! Requests for reservations of one counter, and what is then done with each: confirmed, cancelled,
//! or left for others to confirm.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::numbers::post;
use super::{Counters, Place, text_of};
use crate::client::Answer;
use crate::figures::Latencies;
use crate::load::Work;
use crate::tally::Tally;

/// Where reservations are made.
const RESERVATIONS: &str = "/api/v1/document-numbering/reservations";

/// What is done with a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: it waits.
    Wait,
    /// It is confirmed, before another one is made.
    Confirm,
    /// It is cancelled, before another one is made.
    Cancel,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    /// What it does to a reservation; `None` makes one.
    act: Option<Then>,
}

/// Reservations of one counter, and what they were given.
pub(crate) struct Reservations {
    /// What the next requests do with those that wait.
    pub(crate) then: Then,
    place: Place,
    /// Requests so far: each reservation is of a document of its own.
    asked: usize,
    under_way: HashMap<usize, Sent>,
    /// Ids of those that wait.
    waiting: VecDeque<String>,
    /// Every number that was reserved.
    tally: Tally,
    confirmed: u64,
    /// From the first sending of each request to its answer.
    pub(crate) reserving: Latencies,
    /// The same of confirmations.
    pub(crate) confirming: Latencies,
}

impl Reservations {
    /// Of one counter that has issued nothing.
    pub(crate) fn hot(then: Then) -> Self {
        Reservations {
            then,
            place: Counters::in_turn(1).pick(),
            asked: 0,
            under_way: HashMap::new(),
            waiting: VecDeque::new(),
            tally: Tally::new(1),
            confirmed: 0,
            reserving: Latencies::default(),
            confirming: Latencies::default(),
        }
    }

    /// Writes the request for another reservation.
    pub(crate) fn reserve(&mut self, request: &mut Vec<u8>) -> usize {
        let (asked, place) = (self.asked, self.place);
        let body = format!(r#"{{"document_id":"held-{asked:012}",{place}}}"#);
        post(request, RESERVATIONS, "", &body);
        self.send(None)
    }

    /// Takes the answer of one: its id, which waits, and how many numbers are confirmed by it.
    fn note_reserved(&mut self, answer: &Answer<'_>) -> Result<u64, String> {
        let number = text_of(answer, "document_number")?;
        let value = self.place.value_of(number).ok_or_else(|| format!("{number} was reserved"))?;
        if text_of(answer, "status")? != "reserved" {
            return Err(format!("{number} is not reserved"));
        }
        self.tally.take(0, value, value);
        self.waiting.push_back(text_of(answer, "reservation_id")?.to_owned());
        Ok(0)
    }

    /// The next one that waits.
    pub(crate) fn next_waiting(&mut self) -> Option<String> {
        self.waiting.pop_front()
    }

    /// Notes one that was confirmed without a request.
    pub(crate) fn note_confirmed(&mut self) {
        self.confirmed += 1;
    }

    fn send(&mut self, act: Option<Then>) -> usize {
        let request = self.asked;
        self.asked += 1;
        self.under_way.insert(request, Sent { at: Instant::now(), act });
        request
    }
}

impl Work for Reservations {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        let act = match self.then {
            Then::Wait => return self.reserve(request),
            Then::Confirm => "confirm",
            Then::Cancel => "cancel",
        };
        let Some(id) = self.waiting.pop_front() else { return self.reserve(request) };
        post(request, format_args!("{RESERVATIONS}/{id}/{act}"), "", "{}");
        self.send(Some(self.then))
    }

    fn answered(&mut self, request: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let sent = self.under_way.remove(&request);
        let Sent { at, act } = sent.ok_or_else(|| format!("no request {request} is under way"))?;
        let numbers = match act {
            None => {
                self.reserving.note(at.elapsed());
                self.note_reserved(&answer)?
            }
            Some(act) => {
                let (status, is_confirmed) = match act {
                    Then::Confirm => ("issued", true),
                    Then::Cancel | Then::Wait => ("cancelled", false),
                };
                if text_of(&answer, "status")? != status {
                    return Err(format!("not {status}: {}", String::from_utf8_lossy(answer.body)));
                }
                if is_confirmed {
                    self.confirming.note(at.elapsed());
                }
                u64::from(is_confirmed)
            }
        };
        self.confirmed += numbers;
        Ok(Some(numbers))
    }

    fn received(&self) -> u64 {
        self.confirmed
    }

    fn findings(&self) -> Vec<String> {
        self.tally.findings()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVED: &str =
        r#"{"reservation_id":"r-1","status":"reserved","document_number":"L0-0000000-1"}"#;

    fn sent(work: &mut Reservations) -> (usize, String) {
        let mut request = Vec::new();
        let number = work.next(&mut request);
        (number, String::from_utf8(request).expect("text"))
    }

    fn answer(work: &mut Reservations, request: usize, body: &str) -> Result<Option<u64>, String> {
        work.answered(request, Answer { status: 201, body: body.as_bytes() })
    }

    #[test]
    fn each_reservation_is_confirmed_before_another_is_made_and_counts_then() {
        let mut work = Reservations::hot(Then::Confirm);
        let (first, text) = sent(&mut work);
        assert!(text.starts_with(&format!("POST {RESERVATIONS} ")), "{text}");
        let body =
            r#"{"document_id":"held-000000000000","type":"LOAD0","context":{"LINE":"0000000"}}"#;
        assert!(text.ends_with(body), "{text}");
        assert_eq!(answer(&mut work, first, RESERVED), Ok(Some(0)));
        assert_eq!(work.received(), 0);
        let (second, text) = sent(&mut work);
        assert!(text.starts_with(&format!("POST {RESERVATIONS}/r-1/confirm ")), "{text}");
        let (third, text) = sent(&mut work);
        assert!(text.starts_with(&format!("POST {RESERVATIONS} ")), "{text}");
        assert!(answer(&mut work, third, r#"{"status":"issued"}"#).is_err());
        assert_eq!(answer(&mut work, second, r#"{"status":"issued"}"#), Ok(Some(1)));
        assert_eq!((work.received(), work.findings()), (1, Vec::new()));
    }

    #[test]
    fn a_number_that_is_reserved_twice_is_noted() {
        let mut work = Reservations::hot(Then::Wait);
        for _ in 0..2 {
            let (request, _) = sent(&mut work);
            assert_eq!(answer(&mut work, request, RESERVED), Ok(Some(0)));
        }
        assert_eq!(work.findings().len(), 1);
        work.then = Then::Cancel;
        let (request, text) = sent(&mut work);
        assert!(text.contains("/r-1/cancel "), "{text}");
        assert!(answer(&mut work, request, r#"{"status":"issued"}"#).is_err());
    }
}

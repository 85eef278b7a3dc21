//! Questions about numbers that were issued, of every kind in turn, about a random one.

use jiff::{SignedDuration, Timestamp};

use super::text_of;
use crate::client::Answer;
use crate::load::Work;

/// What is asked: the path, with the twelve digits of a number where `#` stands, and
/// times where `@` does.
const QUESTIONS: [&str; 6] = [
    "/api/v1/document-numbering/numbers?number=L0-0000000-#",
    "/api/v1/document-numbering/numbers/L0-0000000-#",
    "/api/v1/document-numbering/numbers?document_id=doc-#",
    "/api/v1/documents/doc-#/numbers",
    "/api/v1/document-numbering/numbers?user_id=user-7&limit=10",
    "/api/v1/document-numbering/numbers?from=@&until=@&limit=10",
];

/// What is asked for by its time was issued so long before the newest number of all, or less.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// Look-ups in a journal whose one counter has given so many numbers.
pub(crate) struct LookUps {
    questions: [String; QUESTIONS.len()],
    rows: u64,
    turn: usize,
    random: fastrand::Rng,
    answered: u64,
}

impl LookUps {
    /// Of a journal of so many rows, every hundredth of which is another user's; the newest was
    /// issued at that time.
    pub(crate) fn new(rows: u64, newest: Timestamp) -> Self {
        let [from, until] = [newest - WINDOW, newest].map(|time| time.to_string());
        let questions = QUESTIONS.map(|path| path.replacen('@', &from, 1).replacen('@', &until, 1));
        LookUps { questions, rows, turn: 0, random: fastrand::Rng::with_seed(rows), answered: 0 }
    }
}

impl Work for LookUps {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        // Documents belong to their callers: never one of another user. And never that of the
        // first number, which the others were made from.
        let value = self.random.u64(..self.rows / 100) * 100 + 2;
        let question = &self.questions[self.turn % QUESTIONS.len()];
        self.turn += 1;
        let path = question.replace('#', &format!("{value:012}"));
        *request = format!("GET {path} HTTP/1.1\r\nhost: numerator\r\n\r\n").into_bytes();
        usize::try_from(value).expect("a number of a row")
    }

    fn answered(&mut self, _value: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        text_of(&answer, "generated_number")?;
        self.answered += 1;
        Ok(Some(1))
    }

    fn received(&self) -> u64 {
        self.answered
    }

    fn findings(&self) -> Vec<String> {
        Vec::new()
    }
}

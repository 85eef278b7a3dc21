//! Questions about issued numbers, of every kind in turn, about a random one; and whether the
//! answer is the requested one.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};

use super::text_of;
use crate::client::Answer;
use crate::load::Work;

/// What is asked: the path, with the twelve digits of a number in place of `#`, and times in place
/// of `@`; and what identifies the answer.
const QUESTIONS: [(&str, About); 6] = [
    ("/api/v1/document-numbering/numbers?number=L0-0000000-#", About::Number),
    ("/api/v1/document-numbering/numbers/L0-0000000-#", About::Number),
    ("/api/v1/document-numbering/numbers?document_id=doc-#", About::Number),
    ("/api/v1/documents/doc-#/numbers", About::Number),
    ("/api/v1/document-numbering/numbers?user_id=user-7&limit=10", About::User("user-7")),
    ("/api/v1/document-numbering/numbers?from=@&until=@&limit=10", About::Time),
];

/// What a question is about.
#[derive(Clone, Copy, Debug)]
enum About {
    /// One number, or the document that has it and no other.
    Number,
    /// Numbers of a user.
    User(&'static str),
    /// Numbers of the window.
    Time,
}

/// A number asked for by its time was issued at most this long before the newest number of all.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// Look-ups in a journal whose one counter has issued this many numbers.
pub(crate) struct LookUps {
    questions: [String; QUESTIONS.len()],
    window: Range<Timestamp>,
    rows: u64,
    turn: usize,
    random: fastrand::Rng,
}

impl LookUps {
    /// For a journal of `rows` rows, every hundredth of which is another user's; the newest was
    /// issued at that time.
    pub(crate) fn new(rows: u64, newest: Timestamp) -> Self {
        let window = newest - WINDOW..newest;
        let questions = QUESTIONS.map(|(path, _)| {
            let path = path.replacen('@', &window.start.to_string(), 1);
            path.replacen('@', &window.end.to_string(), 1)
        });
        let random = fastrand::Rng::with_seed(rows);
        LookUps { questions, window, rows, turn: 0, random }
    }

    /// Whether the first number of an answer is a requested one.
    fn is_wanted(&self, about: About, value: usize, answer: &Answer<'_>) -> Result<bool, String> {
        let is = |name, wanted: &str| Ok(text_of(answer, name)? == wanted);
        match about {
            About::Number => Ok(is("document_number", &format!("L0-0000000-{value:012}"))?
                && is("document_id", &format!("doc-{value:012}"))?),
            About::User(user) => is("user_id", user),
            About::Time => {
                let time: Result<Timestamp, _> = text_of(answer, "issued_at")?.parse();
                Ok(time.is_ok_and(|time| self.window.contains(&time)))
            }
        }
    }
}

impl Work for LookUps {
    fn next(&mut self, request: &mut Vec<u8>) -> usize {
        // Documents belong to their callers: never one of another user. And never that of the first
        // number, from which the others were made.
        let value = self.random.u64(..self.rows / 100) * 100 + 2;
        let question = self.turn % QUESTIONS.len();
        self.turn += 1;
        let path = self.questions[question].replace('#', &format!("{value:012}"));
        *request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes();
        usize::try_from(value).expect("a number of a row") * QUESTIONS.len() + question
    }

    fn answered(&mut self, asked: usize, answer: Answer<'_>) -> Result<Option<u64>, String> {
        let (value, question) = (asked / QUESTIONS.len(), asked % QUESTIONS.len());
        if !self.is_wanted(QUESTIONS[question].1, value, &answer)? {
            let body = String::from_utf8_lossy(answer.body);
            return Err(format!("{} of {value} is answered: {body}", self.questions[question]));
        }
        Ok(Some(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_another_number_user_or_time_is_told() {
        let newest: Timestamp = "2025-12-02T03:04:05.5Z".parse().expect("a time");
        let mut work = LookUps::new(1_000, newest);
        let mut request = Vec::new();
        for (question, (_, about)) in QUESTIONS.into_iter().enumerate() {
            let asked = work.next(&mut request);
            assert_eq!(asked % QUESTIONS.len(), question);
            let value = asked / QUESTIONS.len();
            let mut body = |number: usize, document: usize, user: &str, time: &str| {
                let body = format!(
                    r#"{{"document_id":"doc-{document:012}","user_id":"{user}","issued_at":"{time}",
                    "document_number":"L0-0000000-{number:012}"}}"#
                );
                work.answered(asked, Answer { status: 200, body: body.as_bytes() }).is_ok()
            };
            let time = "2025-12-02T03:04:00.000001Z";
            assert!(body(value, value, "user-7", time), "{question}");
            let is_about = [
                !body(value + 1, value, "user-7", time),
                !body(value, value + 1, "user-7", time),
                !body(value, value, "local", time),
                !body(value, value, "user-7", "2025-12-02T03:04:05.500000Z"),
            ];
            let wanted = match about {
                About::Number => [true, true, false, false],
                About::User(_) => [false, false, true, false],
                About::Time => [false, false, false, true],
            };
            assert_eq!(is_about, wanted, "{question}");
            assert!(
                work.answered(asked, Answer { status: 200, body: b"{\"numbers\":[]}" }).is_err()
            );
        }
    }
}

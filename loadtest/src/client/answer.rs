//! Reads an answer from its bytes.

use std::io;
use std::ops::Range;

/// Headers that an answer may have.
const HEADERS_MAX: usize = 32;

/// An answer, valid until its connection is used again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    /// Its status code.
    pub(crate) status: u16,
    /// Its body, whole.
    pub(crate) body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The text of a JSON field, from the quote after its name to the next one: answers are read
    /// without a parser, and texts read in this way hold no escapes.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let body = std::str::from_utf8(self.body).ok()?;
        let mut rest = body;
        loop {
            let (_, behind) = rest.split_once(name)?;
            if let Some(value) = behind.strip_prefix("\":\"") {
                return value.split_once('"').map(|(text, _)| text);
            }
            rest = behind;
        }
    }
}

/// The head of an answer.
#[derive(Clone, Debug)]
pub(super) struct Head {
    status: u16,
    body: Range<usize>,
    /// Whether the server closes the connection after it.
    pub(super) closes: bool,
}

impl Head {
    /// Reads the head; `None` while it is not complete.
    pub(super) fn read(input: &[u8]) -> io::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(input).map_err(io::Error::other)?
        else {
            return Ok(None);
        };
        let value = |name: &str| {
            let named = |header: &&httparse::Header<'_>| header.name.eq_ignore_ascii_case(name);
            let header = response.headers.iter().find(named)?;
            std::str::from_utf8(header.value).ok()
        };
        let bytes = value("content-length").and_then(|value| value.parse::<usize>().ok());
        let bytes = bytes.ok_or_else(|| io::Error::other("an answer without content-length"))?;
        let closes = value("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let status = response.code.expect("a whole head has a status");
        Ok(Some(Head { status, body: length..length.saturating_add(bytes), closes }))
    }

    /// Where the answer ends.
    pub(super) fn end(&self) -> usize {
        self.body.end
    }

    /// The answer in its bytes.
    pub(super) fn answer<'a>(&self, input: &'a [u8]) -> Answer<'a> {
        Answer { status: self.status, body: &input[self.body.clone()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_however_it_is_cut() {
        let text = b"HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello";
        let head = Head::read(text).expect("an answer").expect("a whole one");
        let answer = head.answer(text);
        assert_eq!((answer.status, answer.body, head.closes), (201, &b"hello"[..], false));
        for cut in 0..text.len() - "hello".len() {
            assert!(Head::read(&text[..cut]).expect("no error").is_none(), "{cut}");
        }
    }

    #[test]
    fn an_answer_without_a_length_is_an_error() {
        let text = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        assert!(Head::read(text).is_err());
    }

    #[test]
    fn a_field_is_found_behind_its_own_name_only() {
        let body = br#"{"note":"document_number","document_number":"A-1","x":"2"}"#;
        let answer = Answer { status: 200, body };
        assert_eq!(answer.text("document_number"), Some("A-1"));
        assert_eq!(answer.text("missing"), None);
    }
}

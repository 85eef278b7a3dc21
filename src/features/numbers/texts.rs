//! The texts of a range, one after the other: rendered as they are read, never all in memory.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use numbering::{InputError, PartialNumber, TemplateError};

use crate::engine::allocator::Issued;

/// Texts rendered into one chunk of a streamed answer.
const TEXTS_PER_CHUNK: usize = 1_000;

/// The numbers of an allocation in rising order.
pub struct Texts {
    partial: PartialNumber,
    /// First value and step of each serial.
    serials: Vec<(u64, u64)>,
    /// Index of the next number.
    next: u64,
    /// Their total number.
    count: u64,
}

impl Texts {
    /// The numbers of an allocation.
    ///
    /// # Errors
    /// When its record holds no partially rendered number: it was written by something else.
    pub fn of(issued: &Issued) -> Result<Self, TemplateError> {
        let taken = &issued.entry.taken;
        Ok(Texts {
            partial: PartialNumber::parse(&issued.entry.record.mask)?,
            serials: taken.iter().map(|taken| (taken.range.first, taken.range.step)).collect(),
            next: 0,
            count: taken.first().map_or(0, |taken| taken.range.count()),
        })
    }
}

impl Iterator for Texts {
    type Item = Result<String, InputError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let values: Vec<u64> =
            self.serials.iter().map(|(first, step)| first + step * self.next).collect();
        self.next += 1;
        Some(self.partial.fill(&values))
    }
}

/// A JSON object with the texts as its last member, `numbers`.
pub(crate) struct StreamedTexts<T> {
    texts: T,
    /// The object without its closing brace, until it is sent.
    head: Option<Vec<u8>>,
    is_done: bool,
}

impl<T: Iterator<Item = Result<String, InputError>>> StreamedTexts<T> {
    /// `object` is the JSON of an object with at least one member.
    pub(crate) fn new(mut object: Vec<u8>, texts: T) -> Self {
        assert_eq!(object.pop(), Some(b'}'), "an object ends with a brace");
        object.extend_from_slice(b",\"numbers\":[");
        StreamedTexts { texts, head: Some(object), is_done: false }
    }

    /// The next piece of the object; `None` after its last one.
    fn chunk(&mut self) -> Result<Option<Bytes>, InputError> {
        if self.is_done {
            return Ok(None);
        }
        let mut is_first = self.head.is_some();
        let mut chunk = self.head.take().unwrap_or_default();
        for _ in 0..TEXTS_PER_CHUNK {
            let Some(text) = self.texts.next() else {
                chunk.extend_from_slice(b"]}");
                self.is_done = true;
                break;
            };
            if !std::mem::take(&mut is_first) {
                chunk.push(b',');
            }
            serde_json::to_writer(&mut chunk, &text?).expect("a text is JSON");
        }
        Ok(Some(chunk.into()))
    }
}

impl<T: Iterator<Item = Result<String, InputError>> + Unpin> HttpBody for StreamedTexts<T> {
    type Data = Bytes;
    // A text that cannot be rendered breaks the connection: the caller must not take a short list
    // for a complete one.
    type Error = InputError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, InputError>>> {
        Poll::Ready(self.chunk().transpose().map(|chunk| chunk.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};

    use super::*;

    async fn stream(count: usize) -> serde_json::Value {
        let texts = (0..count).map(|value| Ok(format!("ใบ\"{value}")));
        let body = Body::new(StreamedTexts::new(b"{\"count\":1}".to_vec(), texts));
        let bytes = to_bytes(body, usize::MAX).await.expect("body");
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[tokio::test]
    async fn a_streamed_range_is_one_json_object() {
        for count in [0, 1, 2, TEXTS_PER_CHUNK, TEXTS_PER_CHUNK + 1, 3 * TEXTS_PER_CHUNK] {
            let object = stream(count).await;
            assert_eq!(object["count"], 1);
            let numbers = object["numbers"].as_array().expect("numbers");
            assert_eq!(numbers.len(), count);
            for (value, number) in numbers.iter().enumerate() {
                assert_eq!(number, &format!("ใบ\"{value}"));
            }
        }
    }

    #[tokio::test]
    async fn a_text_that_cannot_be_rendered_breaks_the_answer_off() {
        let wide = InputError::SerialTooWide { serial: 0, value: 1_000, width: 3 };
        let texts = vec![Ok("A-999".to_owned()), Err(wide)].into_iter();
        let body = Body::new(StreamedTexts::new(b"{\"count\":2}".to_vec(), texts));
        assert!(to_bytes(body, usize::MAX).await.is_err());
    }
}

//! What a caller asks for and what it gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use numbering::{Inputs, Lines, check_printable};

use super::AllocError;
use crate::auth::Identity;
use crate::ledger::{Entry, Record};

/// Longest document id and idempotency key, in characters.
pub const KEY_CHARS_MAX: usize = 255;

/// Checks a document id or an idempotency key: 1 to `chars_max` characters, all of them printable,
/// no blank at either end. No ledger stores control characters (F13), and invisible characters make
/// two texts look alike.
///
/// # Errors
/// What is wrong, without the name of the field, which differs between callers.
pub fn check_key(text: &str, chars_max: usize) -> Result<(), String> {
    let chars = text.chars().count();
    if !(1..=chars_max).contains(&chars) {
        return Err(format!("must be 1 to {chars_max} characters long, not {chars}"));
    }
    if text.trim() != text {
        return Err("begins or ends with a blank; send it without".to_owned());
    }
    check_printable(text, Lines::One).map_err(|flaw| flaw.to_string())
}

/// A request for a number, or for a range of one counter.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the numbering language reads.
    pub inputs: Inputs,
    /// The document to number; a range may have none.
    pub document_id: Option<String>,
    /// How many numbers, 1 to [`COUNT_MAX`]; more than one is a contiguous range of one counter.
    pub count: u64,
    /// For how long the number is reserved for its document, or [`super::BLOCK_TIME`] for a block;
    /// without it, it is issued.
    pub reserve_for: Option<Duration>,
    /// Give a document that has a number already another one.
    pub again: bool,
    /// The void number in whose place this one is to stand: part of what a retry must repeat. The
    /// allocator takes the number; who asks writes the link.
    pub replaces: Option<Box<str>>,
    /// The caller's key for safe retries, at most [`KEY_CHARS_MAX`] characters.
    pub idempotency_key: Option<String>,
    /// The caller: its visibility and its scope.
    pub identity: Arc<Identity>,
    /// Whose request it is, as the journal keeps it.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
}

/// Which refusals have hints: each of them, or the first few of requests that come together. A hint
/// has to be looked for, and is not worth it a thousand times.
#[derive(Clone, Debug, Default)]
pub struct Hints(Option<Arc<AtomicUsize>>);

impl Hints {
    /// So many, of all requests that share these.
    #[must_use]
    pub fn first(count: usize) -> Self {
        Hints(Some(Arc::new(AtomicUsize::new(count))))
    }

    /// Whether one more refusal has hints.
    pub(super) fn take(&self) -> bool {
        let Some(left) = &self.0 else { return true };
        let fewer = |left: usize| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok()
    }
}

impl Request {
    /// The same as the series read it: projects out of scope of the caller are missing.
    pub(super) fn within_scope(mut self) -> Self {
        self.inputs.projects_within = self.identity.scope.projects_within();
        self
    }
}

/// What an order still has to ask a source.
pub(super) struct Asking {
    /// What was drafted with a placeholder, and is drafted again with the value.
    pub(super) inputs: Inputs,
    /// The time of the draft.
    pub(super) now: Timestamp,
}

impl Asking {
    /// What the present draft leaves to ask; nothing where its series asks no source.
    ///
    /// # Errors
    /// More than one number: each asks for itself.
    pub(super) fn of(
        request: &Request,
        source: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<Self>, AllocError> {
        let Some(source) = source else { return Ok(None) };
        if request.count > 1 {
            let reason = format!(
                "must be 1: the source {source} is asked for each number of the series; ask for a \
                 list of documents"
            );
            return Err(AllocError::Field { field: "count", reason });
        }
        Ok(Some(Asking { inputs: request.inputs.clone(), now }))
    }
}

/// A number handed out.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The allocation; `entry.number` is the (first) number, and its record names every serial.
    pub entry: Entry,
    /// Code of its series.
    pub series: String,
    /// Text of the last number of a range; `None` for a single number.
    pub last_number: Option<String>,
    /// Whether an earlier allocation answered.
    pub replayed: bool,
    /// Keys of the counters that begin with it, in a series whose scope of uniqueness has a
    /// dimension that its numbers do not show: a typing error in that opens a counter, and repeats
    /// the texts of another one. Empty in other series.
    pub new_counters: Vec<String>,
    /// Where the number is reserved and not confirmed: it cannot be confirmed from then on, in
    /// microseconds of UTC by the ledger's clock; of a block [`crate::ledger::NO_END_US`].
    pub reserved_until_us: Option<i64>,
}

/// What a number would look like.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The text with the next values; another request may take them first.
    pub number: String,
    /// Code of its series.
    pub series: String,
    /// What the journal would know of it.
    pub record: Arc<Record>,
    /// The expected value of each serial.
    pub nexts: Vec<NextValue>,
}

/// The value that a counter would give next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextValue {
    /// The value.
    pub value: u64,
    /// Whether these dimensions have never been counted before: the first number may show a typing
    /// error.
    pub is_new_counter: bool,
    /// The counter, where it is there.
    pub counter_id: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_requests_that_come_together_the_first_few_refusals_tell_what_would_have_been_right() {
        let (few, all) = (Hints::first(2), Hints::default());
        let shared = few.clone();
        assert_eq!(
            [few.take(), shared.take(), few.take(), shared.take()],
            [true, true, false, false]
        );
        assert!((0..9).all(|_| all.take()));
    }

    #[test]
    fn a_key_is_255_characters_at_most_and_all_of_them_are_seen() {
        for right in ["a", "order 7", &"ก".repeat(KEY_CHARS_MAX)] {
            assert_eq!(check_key(right, KEY_CHARS_MAX), Ok(()), "{right}");
        }
        for wrong in [
            "",
            "a\nb",
            "\u{0}",
            "\u{85}",
            "a\u{200b}",
            "a\u{202e}b",
            "a\u{e000}",
            "order-1 ",
            " order-1",
            &"x".repeat(KEY_CHARS_MAX + 1),
        ] {
            assert!(check_key(wrong, KEY_CHARS_MAX).is_err(), "{wrong:?}");
        }
        let reason = check_key("abc", 2).expect_err("too long");
        assert_eq!(reason, "must be 1 to 2 characters long, not 3");
    }
}

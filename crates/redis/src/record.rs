//! How the scripts name an idempotency record, and what a request shows them of its own (F1, F21).
//!
//! Names are hashes: the scripts compare them and never read them back. Must never be so short that
//! two keys of one partition may share a name.

use sha2::{Digest, Sha256};

/// Bytes of a record's name: with 10,000,000 records two keys share one with a chance below 10⁻¹⁴.
const NAME_BYTES: usize = 12;

/// Bytes of one request in a flight's marks.
const MARK_BYTES: usize = 2 + 1 + 8 + 2 * NAME_BYTES;

/// First half of a payload's hash. Two payloads that share it count as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadMark([u8; 8]);

impl PayloadMark {
    /// The mark of a payload's hash in hexadecimal, of at least 16 digits.
    #[must_use]
    pub fn of(digest: &str) -> Self {
        let half = digest.get(..16).and_then(|half| u64::from_str_radix(half, 16).ok());
        PayloadMark(half.expect("a digest is hexadecimal").to_be_bytes())
    }
}

/// What a flight says of one request in addition to its allocation's record.
pub(super) struct Mark<'a> {
    /// Place of what it takes among the flight's baskets, from 1.
    pub(super) basket: u16,
    /// Whether a document that already has a number gets another one.
    pub(super) again: bool,
    /// Whether the journal was asked for its keys in this epoch (F1).
    pub(super) asked: bool,
    /// Whether it must be asked for a document that has no record.
    pub(super) once_per_document: bool,
    /// The payload's mark.
    pub(super) payload: PayloadMark,
    /// Key of the caller's idempotency record.
    pub(super) caller: Option<&'a str>,
    /// Key of the document's idempotency record.
    pub(super) document: Option<&'a str>,
}

/// Appends what `issue.lua` reads of one request; zeros are the name of a missing record.
pub(super) fn mark(marks: &mut Vec<u8>, mark: &Mark<'_>) {
    let end = marks.len() + MARK_BYTES;
    marks.extend(mark.basket.to_be_bytes());
    let asks = [mark.again, mark.asked, mark.once_per_document];
    marks.push(asks.iter().rev().fold(0, |byte, ask| 2 * byte + u8::from(*ask)));
    marks.extend(mark.payload.0);
    for key in [mark.caller, mark.document] {
        marks.extend(key.map_or([0; NAME_BYTES], name));
    }
    assert_eq!(marks.len(), end, "the script reads places");
}

/// The name of the record for a key, `k:…` the caller's or `d:…` the document's.
fn name(key: &str) -> [u8; NAME_BYTES] {
    let hash = Sha256::digest(key.as_bytes());
    hash.first_chunk().copied().expect("a hash is longer than a name")
}

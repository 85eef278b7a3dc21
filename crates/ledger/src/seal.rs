//! The seal of a journal batch: the SHA-256 of the content of its rows, which has one form for
//! every engine (`row_text`). Owns no statement. The form is part of the record and is described in
//! `docs/record.md`: a change of it breaks every earlier seal.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use numerator_runtime::node::NodeId;
use sha2::{Digest as _, Sha256};

use super::SealedBatch;
use super::new_row::NewRow;
pub(super) use super::row_text::ARCHIVED;
use super::row_text::{RowText, SealedValue as _};
use super::sharing::Batch;

/// The beginning of every seal: its form.
const FORM: &[u8] = b"numerator journal batch 1\n";

/// The key of proofs is made from this and the secret.
const MAC_CONTEXT: &[u8] = b"numerator journal batch proof 1";

/// The key of those who may write batches: with it a process proves that a seal is its own. Made
/// from a secret that the database never sees.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MacKey([u8; 32]);

impl MacKey {
    /// The key that belongs to a secret.
    #[must_use]
    pub fn of(secret: &[u8]) -> Self {
        MacKey(authenticate(secret, MAC_CONTEXT))
    }

    /// The proof that the author of a seal has the key.
    #[must_use]
    pub fn prove(&self, seal: &[u8; 32]) -> [u8; 32] {
        authenticate(&self.0, seal)
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProofKey(..)")
    }
}

/// HMAC-SHA-256 (RFC 2104).
fn authenticate(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("keys of any length are taken");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// The writer of lines, and the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub(super) node: NodeId,
    pub(super) now_us: i64,
    /// Without one, batches have a seal and no proof.
    pub(super) mac_key: Option<MacKey>,
}

/// The common part of the rows of a batch, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchHead<'b> {
    pub(super) node: &'b [u8],
    pub(super) partition_id: i32,
    pub(super) epoch: i64,
    pub(super) journaled_at_us: i64,
    pub(super) rows: i32,
}

/// A seal in the making: the rows come in the order of their counters and first values.
pub(super) struct Sealing(Sha256);

impl Sealing {
    /// Of a batch.
    pub(super) fn begin(head: BatchHead<'_>) -> Self {
        let mut bytes = FORM.to_vec();
        head.node.write(&mut bytes);
        for integer in
            [i64::from(head.partition_id), head.epoch, head.journaled_at_us, i64::from(head.rows)]
        {
            integer.write(&mut bytes);
        }
        Sealing(Sha256::new_with_prefix(bytes))
    }

    /// Adds the bytes of the next row.
    pub(super) fn add(&mut self, row: &[u8]) {
        self.0.update(row);
    }

    /// The seal.
    pub(super) fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// The fields of a batch's own row about its rows.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    pub(super) rows: i32,
    pub(super) seal: [u8; 32],
    pub(super) proof: Option<[u8; 32]>,
}

impl Sealed {
    /// The seal of these lines, all of one batch.
    pub(super) fn of(batch: Batch, mut new_rows: Vec<&NewRow<'_>>, writing: &Writing) -> Self {
        new_rows.sort_unstable_by_key(|new_row| {
            (new_row.value_range.counter_id, new_row.value_range.first)
        });
        let rows = i32::try_from(new_rows.len()).expect("a batch has no 2^31 rows");
        let mut sealing = Sealing::begin(BatchHead {
            node: writing.node.0.as_bytes(),
            partition_id: batch.partition_id,
            epoch: batch.epoch,
            journaled_at_us: writing.now_us,
            rows,
        });
        let mut bytes = Vec::new();
        for new_row in new_rows {
            bytes.clear();
            RowText::of(new_row).write(&mut bytes);
            sealing.add(&bytes);
        }
        let seal = sealing.end();
        Sealed { rows, seal, proof: writing.mac_key.map(|key| key.prove(&seal)) }
    }
}

impl SealedBatch {
    /// The seal of these rows, which are all of the batch, in any order.
    #[must_use]
    pub fn seal_of(&self, mut rows: Vec<(i64, i64, Vec<u8>)>) -> [u8; 32] {
        rows.sort_unstable();
        let mut sealing = Sealing::begin(BatchHead {
            node: &self.node,
            partition_id: self.partition_id,
            epoch: self.epoch,
            journaled_at_us: self.journaled_at_us,
            rows: i32::try_from(rows.len()).unwrap_or(i32::MAX),
        });
        for (_, _, bytes) in &rows {
            sealing.add(bytes);
        }
        sealing.end()
    }
}

/// A SHA-256 over rows of other tables: their columns like those of the journal.
pub(super) struct RowDigest(Vec<u8>);

impl RowDigest {
    /// Of a table's row.
    pub(super) fn of(table: &str) -> Self {
        let mut bytes = b"numerator ".to_vec();
        bytes.extend(table.as_bytes());
        bytes.extend(b" 1\n");
        RowDigest(bytes)
    }

    pub(super) fn integer(mut self, integer: Option<i64>) -> Self {
        let bytes = integer.map(i64::to_be_bytes);
        bytes.as_ref().map(<[u8; 8]>::as_slice).write(&mut self.0);
        self
    }

    pub(super) fn bytes(mut self, bytes: Option<&[u8]>) -> Self {
        bytes.write(&mut self.0);
        self
    }

    pub(super) fn end(self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

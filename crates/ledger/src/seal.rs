//! The seal of a journal batch: the content of its rows, as bytes of one form for every engine, and
//! their SHA-256. Owns no statement. The form is part of the record and is described in
//! `docs/record.md`: a change of it breaks every earlier seal.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use numerator_runtime::node::NodeId;
use sha2::{Digest as _, Sha256};

use super::SealedBatch;
use super::new_row::NewRow;
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

/// The path of a segment, which represents archived rows, in `journal_row`.
pub(super) const ARCHIVED: &str = "archived";

/// Room for a row of usual size.
const BYTES_USUAL: usize = 320;

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

/// The word that `journal_row` shows as a row's path: that of the column, or of segments.
pub(super) fn path_of<'r>(
    path: Option<&'r str>,
    number: Option<&str>,
    context: Option<&str>,
) -> &'r str {
    if number.is_none() && context.is_some() { ARCHIVED } else { path.unwrap_or("redis") }
}

/// The content of a row of the journal, without its batch's part.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowText<'r> {
    pub(super) counter_id: i64,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) step: i64,
    pub(super) allocation_id: &'r [u8],
    pub(super) number: Option<&'r str>,
    pub(super) scope: Option<&'r str>,
    pub(super) mask: Option<&'r str>,
    pub(super) compressed_mask: Option<&'r str>,
    pub(super) rest: Option<&'r str>,
    pub(super) context: Option<&'r str>,
    pub(super) document_id: Option<&'r str>,
    pub(super) idempotency_key: Option<&'r str>,
    pub(super) series_id: i64,
    pub(super) version: i32,
    pub(super) type_code: &'r str,
    pub(super) project: Option<&'r str>,
    pub(super) document_date: &'r str,
    pub(super) user_id: &'r str,
    pub(super) ip_address: Option<&'r str>,
    pub(super) digest: Option<&'r [u8]>,
    pub(super) issued_at_us: i64,
    pub(super) retry_count: i32,
    pub(super) path: &'r str,
}

impl<'r> RowText<'r> {
    /// The content of a line.
    fn of(new_row: &'r NewRow<'_>) -> Self {
        let head = new_row.head.as_ref();
        RowText {
            counter_id: new_row.value_range.counter_id,
            first: new_row.value_range.first,
            last: new_row.value_range.last,
            step: new_row.step,
            allocation_id: new_row.allocation_id,
            number: head.map(|head| head.number),
            scope: head.map(|head| head.scope),
            mask: new_row.mask(),
            compressed_mask: new_row.compressed_mask(),
            rest: head.and_then(|head| head.rest.as_deref()),
            context: new_row.context(),
            document_id: head.and_then(|head| head.document_id),
            idempotency_key: head.and_then(|head| head.idempotency_key),
            series_id: new_row.series_id,
            version: new_row.version,
            type_code: new_row.type_code,
            project: new_row.project,
            document_date: new_row.document_date,
            user_id: new_row.user_id,
            ip_address: new_row.ip_address,
            digest: new_row.digest.as_deref(),
            issued_at_us: new_row.issued_at_us,
            retry_count: new_row.retry_count,
            path: path_of(
                Some(new_row.path.name()),
                head.map(|head| head.number),
                new_row.context(),
            ),
        }
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES_USUAL);
        self.write(&mut bytes);
        bytes
    }

    /// Adds its bytes: integers of 8 bytes, the highest first; texts and bytes after their length
    /// of 4; optional values after a 0, or a 1 and then the value.
    pub(super) fn write(&self, to: &mut Vec<u8>) {
        for integer in [self.counter_id, self.first, self.last, self.step] {
            to.extend(integer.to_be_bytes());
        }
        write_bytes(to, self.allocation_id);
        for text in [
            self.number,
            self.scope,
            self.mask,
            self.compressed_mask,
            self.rest,
            self.context,
            self.document_id,
            self.idempotency_key,
        ] {
            write_option(to, text.map(str::as_bytes));
        }
        for integer in [self.series_id, i64::from(self.version)] {
            to.extend(integer.to_be_bytes());
        }
        write_bytes(to, self.type_code.as_bytes());
        write_option(to, self.project.map(str::as_bytes));
        write_bytes(to, self.document_date.as_bytes());
        write_bytes(to, self.user_id.as_bytes());
        write_option(to, self.ip_address.map(str::as_bytes));
        write_option(to, self.digest);
        for integer in [self.issued_at_us, i64::from(self.retry_count)] {
            to.extend(integer.to_be_bytes());
        }
        write_bytes(to, self.path.as_bytes());
    }
}

fn write_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("a row has no text of 4 GiB");
    to.extend(length.to_be_bytes());
    to.extend(bytes);
}

fn write_option(to: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => to.push(0),
        Some(bytes) => {
            to.push(1);
            write_bytes(to, bytes);
        }
    }
}

/// A seal in the making: the rows come in the order of their counters and first values.
pub(super) struct Sealing(Sha256);

impl Sealing {
    /// Of a batch.
    pub(super) fn begin(head: BatchHead<'_>) -> Self {
        let mut bytes = FORM.to_vec();
        write_bytes(&mut bytes, head.node);
        for integer in
            [i64::from(head.partition_id), head.epoch, head.journaled_at_us, i64::from(head.rows)]
        {
            bytes.extend(integer.to_be_bytes());
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
        write_option(&mut self.0, bytes.as_ref().map(<[u8; 8]>::as_slice));
        self
    }

    pub(super) fn bytes(mut self, bytes: Option<&[u8]>) -> Self {
        write_option(&mut self.0, bytes);
        self
    }

    pub(super) fn end(self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

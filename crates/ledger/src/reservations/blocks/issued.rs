//! The numbers of a block that were used, as the journal has them. Each has an allocation that
//! follows from the block and its text: a repeated request finds it. Writes nothing.

use std::sync::Arc;

use numbering::{Range, TakenRange};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::used::{Used, UsedValues};
use crate::dialect::Conn;
use crate::last_seen::takes::known::Sighting;
use crate::register::lookup;
use crate::{Counter, Entry, HandBack, LedgerError, Record, Reservation};

/// The numbers that were used, as the journal is to have them, the lowest first.
pub(super) fn entries_of(
    block: &Reservation,
    used: &UsedValues<'_>,
    now_us: i64,
) -> Result<Vec<Entry>, LedgerError> {
    let none = || LedgerError::Fault("reservation.raw holds no value".into());
    let taken = block.entry.taken.first().ok_or_else(none)?;
    let (counter_id, step) = (taken.counter_id, taken.range.step);
    let entry = |(value, number): (u64, &Used<'_>)| {
        let record = Record {
            allocation_id: allocation_of(block.id(), number.number),
            document_id: Some(number.document_id.to_owned()),
            // The block's: it names no number of it.
            idempotency_key: None,
            issued_at_us: now_us,
            ..(*block.entry.record).clone()
        };
        let range = Range { first: value, last: value, step };
        Entry {
            record: Arc::new(record),
            taken: vec![TakenRange { counter_id, range }],
            number: number.number.to_owned(),
            ..block.entry.clone()
        }
    };
    Ok(used.all().map(entry).collect())
}

/// What this process notes of them, by where their locked counter stands (L12).
pub(super) fn seen_of(entries: &[Entry], counter: &Counter) -> impl Iterator<Item = Sighting> {
    let reissued = i64::try_from(counter.reissued).unwrap_or(i64::MAX);
    let turn = counter.taken.saturating_add(reissued);
    entries.iter().filter_map(move |entry| Sighting::handed_back(entry, turn))
}

/// The numbers that an earlier request issued, as the journal has them: those that moved to an
/// archive since are missing.
pub(super) async fn found(conn: &mut Conn, order: &HandBack) -> Result<Vec<Entry>, LedgerError> {
    let ids = order.used.iter().map(|used| allocation_of(order.id, &used.number));
    let ids: Vec<Uuid> = ids.collect();
    let mut found = lookup::earlier(conn, &ids).await?;
    Ok(ids.iter().filter_map(|id| found.remove(id)).collect())
}

/// The allocation of a number of a block, no two of whose numbers have one text.
fn allocation_of(block: Uuid, number: &str) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(b"numerator block");
    hash.update(block.as_bytes());
    hash.update(number.as_bytes());
    let mut head = [0; 16];
    head.copy_from_slice(&hash.finalize()[..16]);
    Uuid::from_bytes(head)
}

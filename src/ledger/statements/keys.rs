//! Keys under which a document or a caller is numbered once, and the names of their locks.
//! Owns no statement.

use crate::ledger::TakeOrder;
use crate::ledger::columns::hash64;

/// A key under which a document or a caller is numbered once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Caller { series_id: i64, user_id: String, key: String },
    Document { series_id: i64, document_id: String },
}

impl Key {
    /// The caller's own, where there is one.
    pub(super) fn caller(series_id: i64, user_id: &str, key: Option<&String>) -> Option<Self> {
        let key = key?.clone();
        Some(Key::Caller { series_id, user_id: user_id.to_owned(), key })
    }

    /// The document's, where there is one.
    pub(super) fn document(series_id: i64, document_id: Option<&String>) -> Option<Self> {
        Some(Key::Document { series_id, document_id: document_id?.clone() })
    }

    /// The keys that an order's number will stand under.
    pub(super) fn all_of(order: &TakeOrder) -> impl Iterator<Item = Key> {
        let record = &order.record;
        let caller =
            Key::caller(record.series_id, &record.user_id, record.idempotency_key.as_ref());
        caller.into_iter().chain(Key::document(record.series_id, record.document_id.as_ref()))
    }
}

/// Locks of one partition: a database has room for some thousands of locks in all, so names share
/// them.
const LOCKS_PER_PARTITION: u64 = 64;

/// Names of everything that may be numbered only once, hashed, in rising order.
pub(super) fn lock_names(partition: u32, orders: &[TakeOrder]) -> Vec<i64> {
    let mut names: Vec<i64> = Vec::with_capacity(orders.len());
    for order in orders {
        for key in Key::all_of(order) {
            // An equal lock of two names only makes them wait for each other.
            let lock = hash64(&format!("{key:?}")) % LOCKS_PER_PARTITION;
            let name = hash64(&format!("numerator partition {partition} lock {lock}"));
            names.push(i64::from_be_bytes(name.to_be_bytes()));
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

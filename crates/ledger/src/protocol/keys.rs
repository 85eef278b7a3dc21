//! Keys under which a document or a caller is numbered once, and the names of their locks.
//! Owns no statement.

use numbering::DocumentsOf;

use crate::columns::hash64;
use crate::{Question, Record, TakeRequest};

/// A key under which a document or a caller is numbered once. The documents that projects have by
/// one id share a key, and wait for each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Caller { series_id: i64, user_id: String, key: String },
    Document { series_id: i64, document_id: String },
}

impl Key {
    /// The caller's own, where there is one.
    fn caller(series_id: i64, user_id: &str, key: Option<&String>) -> Option<Self> {
        let key = key?.clone();
        Some(Key::Caller { series_id, user_id: user_id.to_owned(), key })
    }

    /// The document's, where there is one.
    fn document(series_id: i64, document_id: Option<&String>) -> Option<Self> {
        Some(Key::Document { series_id, document_id: document_id?.clone() })
    }

    /// The keys under which a number is recorded.
    pub(crate) fn all_of(record: &Record) -> impl Iterator<Item = Key> + use<> {
        let Record { series_id, user_id, idempotency_key, document_id, .. } = record;
        Key::both(*series_id, user_id, idempotency_key.as_ref(), document_id.as_ref())
    }

    /// The keys under which a request's earlier number is looked for.
    pub(crate) fn all_asked(question: &Question) -> impl Iterator<Item = Key> + use<> {
        let Question { series_id, user_id, idempotency_key, document_id, .. } = question;
        Key::both(*series_id, user_id, idempotency_key.as_ref(), document_id.as_ref())
    }

    /// The text from which its lock is named. It never changes: programs of two versions on one
    /// ledger must name one lock, so it has no form of the language or its library.
    fn lock_text(&self) -> String {
        match self {
            Key::Caller { series_id, user_id, key } => {
                format!("caller {series_id} {}:{user_id} {key}", user_id.len())
            }
            Key::Document { series_id, document_id } => {
                format!("document {series_id} {document_id}")
            }
        }
    }

    fn both(
        series_id: i64,
        user_id: &str,
        key: Option<&String>,
        document_id: Option<&String>,
    ) -> impl Iterator<Item = Key> + use<> {
        let caller = Key::caller(series_id, user_id, key);
        caller.into_iter().chain(Key::document(series_id, document_id))
    }
}

/// A key and the owner of its document: a transaction distinguishes its orders by them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    key: Key,
    of: DocumentsOf,
}

impl Named {
    /// The caller's own, where there is one.
    pub(crate) fn caller(question: &Question) -> Option<Self> {
        let Question { series_id, user_id, idempotency_key, .. } = question;
        let key = Key::caller(*series_id, user_id, idempotency_key.as_ref())?;
        Some(Named::of(key, question))
    }

    /// The document's, where there is one.
    pub(crate) fn document(question: &Question) -> Option<Self> {
        let key = Key::document(question.series_id, question.document_id.as_ref())?;
        Some(Named::of(key, question))
    }

    /// The keys under which the number of an order is recorded.
    pub(crate) fn all_of(order: &TakeRequest) -> impl Iterator<Item = Named> {
        Key::all_of(&order.record).map(move |key| Named::of(key, &order.question))
    }

    fn of(key: Key, question: &Question) -> Self {
        let of = match key {
            Key::Caller { .. } => DocumentsOf::Series,
            Key::Document { .. } => question.documents.clone(),
        };
        Named { key, of }
    }
}

/// Locks of one partition: a database has room for some thousands of locks in all, so names share
/// them.
const LOCKS_PER_PARTITION: u64 = 64;

/// Names of everything that may be numbered only once, hashed, in rising order.
pub(crate) fn lock_names(partition: u32, keys: impl Iterator<Item = Key>) -> Vec<i64> {
    let name = |key: Key| {
        // An equal lock of two names only makes them wait for each other.
        let lock = hash64(&key.lock_text()) % LOCKS_PER_PARTITION;
        let name = hash64(&format!("numerator partition {partition} lock {lock}"));
        i64::from_be_bytes(name.to_be_bytes())
    };
    let mut names: Vec<i64> = keys.map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Name of the lock of all series and reference data: who saves one holds it alone from its begin
/// to its end, and who reserves shares it. It never changes, as the names of keys.
pub(crate) fn series_lock() -> i64 {
    i64::from_be_bytes(hash64("numerator series").to_be_bytes())
}

/// Locks of texts that no row keeps apart yet, over all partitions.
const TEXT_LOCKS: u64 = 64;

/// Names of the locks of texts in their scopes, in rising order: a number is reserved and a
/// revision is written one after the other where they want one text.
pub(crate) fn text_locks<'t>(texts: impl Iterator<Item = (&'t str, &'t str)>) -> Vec<i64> {
    let name = |(scope, number): (&str, &str)| {
        let lock = hash64(&format!("text {}:{scope} {number}", scope.len())) % TEXT_LOCKS;
        i64::from_be_bytes(hash64(&format!("numerator text lock {lock}")).to_be_bytes())
    };
    let mut names: Vec<i64> = texts.map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locks_of_keys_have_the_same_names_in_every_version() {
        let (series_id, text) = (7, |text: &str| text.to_owned());
        let caller = Key::Caller { series_id, user_id: text("ann"), key: text(r#"a "b""#) };
        let document = Key::Document { series_id, document_id: text("คำสั่ง/1") };
        assert_eq!(caller.lock_text(), r#"caller 7 3:ann a "b""#);
        assert_eq!(document.lock_text(), "document 7 คำสั่ง/1");
        let names = lock_names(3, [caller, document].into_iter());
        assert_eq!(names, [-2_304_750_305_440_755_355, 8_799_486_594_268_225_306]);
        assert_eq!(series_lock(), 2_373_150_711_042_061_335);
    }
}

//! The documents that an import numbers, and what else may number them meanwhile (F29).
//!
//! Never brings a document's number beside one that is taken here at the same time: whoever takes
//! looks for the document under its name, and before the commit the import has all names of its
//! own. Who had looked before has committed by then, and the import is undone; who comes later
//! finds what was imported.

use std::collections::BTreeSet;

use numerator_runtime::node::NodeId;

use crate::dialect::{Conn, Moment};
use crate::protocol::keys::{self, Key};
use crate::protocol::partitions;
use crate::{Entry, LedgerError, Owner};

/// What an import brings of documents.
pub(super) struct BroughtDocuments {
    /// What is committed from here on came meanwhile.
    since: Moment,
    /// Partitions that get documents.
    partitions: BTreeSet<u32>,
    /// Their names.
    names: BTreeSet<i64>,
}

impl BroughtDocuments {
    /// At the beginning of an import, before anything is read that it goes by.
    pub(super) async fn begin(conn: &mut Conn) -> Result<Self, LedgerError> {
        let since = conn.moment().await?;
        Ok(BroughtDocuments { since, partitions: BTreeSet::new(), names: BTreeSet::new() })
    }

    /// Notes a number that comes along.
    pub(super) fn note(&mut self, entry: &Entry) {
        if entry.record.document_id.is_some() {
            let partition = entry.at.partition;
            self.partitions.insert(partition);
            self.names.extend(keys::lock_names(partition, Key::all_of(&entry.record)));
        }
    }

    /// Last of all: keeps everybody from numbering one of them, or from taking its partition over,
    /// until the import is committed. After counters, and before families, as everybody locks.
    ///
    /// # Errors
    /// `Refused` where one was numbered meanwhile, or Redis owns its partition; `LockTimeout` where
    /// somebody takes under one of their names for longer than a request may.
    pub(super) async fn must_be_new(
        &self,
        conn: &mut Conn,
        node: NodeId,
        counters: Vec<i64>,
    ) -> Result<(), LedgerError> {
        if self.partitions.is_empty() {
            return Ok(());
        }
        // While nobody is kept waiting yet.
        conn.know_rows().await?;
        let own: Vec<i64> = self.names.iter().copied().collect();
        conn.lock_names(&own).await?;
        let numbered = conn.numbered_since(self.since, node, counters).await?;
        if let Some((document_id, number)) = numbered {
            let why = "take its line out of the list, or its document out of the line, and import \
                       again";
            let text = format!("document {document_id} got the number {number} here meanwhile");
            return Err(LedgerError::Refused(format!("{text}; {why}")));
        }
        for partition in &self.partitions {
            must_not_be_of_redis(conn, *partition).await?;
        }
        Ok(())
    }
}

/// Keeps a partition that gets documents from having a new owner until the import is committed.
/// While Redis owns it, a document that it does not know is new to it; what it knows begins anew
/// when it takes the partition over (F29).
///
/// # Errors
/// `Refused` where Redis owns it.
async fn must_not_be_of_redis(conn: &mut Conn, partition: u32) -> Result<(), LedgerError> {
    match partitions::share(conn, partition).await?.owner {
        Owner::Redis { .. } => {
            let why = "import again, so that the database takes the partition over first";
            let text = format!("partition {partition} gets documents, and redis owns it: {why}");
            Err(LedgerError::Refused(text))
        }
        Owner::Database | Owner::None => Ok(()),
    }
}

//! The documents that an import numbers, and concurrent transactions that number them (F29).
//!
//! Never adds a document's number to one that is taken here, or assigned to it, at the same time:
//! takes and assignments look for the document under its name, and before the commit the import
//! has all names of its own. One that looked earlier has committed by then, and the import is
//! undone; a later one finds what was imported.

use std::collections::BTreeSet;

use numerator_runtime::node::NodeId;

use crate::dialect::{Conn, Moment};
use crate::protocol::keys::{self, Key};
use crate::protocol::partitions;
use crate::{Entry, LedgerError, Owner};

/// The documents of an import.
pub(super) struct BroughtDocuments {
    /// Commits from here on are concurrent.
    since: Moment,
    /// Partitions that get documents.
    partitions: BTreeSet<u32>,
    /// Their names.
    names: BTreeSet<i64>,
}

impl BroughtDocuments {
    /// At the beginning of an import, before any read that it relies on.
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

    /// The last step: keeps all others from numbering one of them, or from taking its partition
    /// over, until the import is committed. After counters, before families, in the order of locks.
    ///
    /// # Errors
    /// `Refused` where one was numbered meanwhile, or Redis owns its partition; `LockTimeout` where
    /// a take under one of their names lasts longer than a request may.
    pub(super) async fn must_be_new(
        &self,
        conn: &mut Conn,
        node: NodeId,
        counters: Vec<i64>,
    ) -> Result<(), LedgerError> {
        if self.partitions.is_empty() {
            return Ok(());
        }
        // While no other transaction waits yet.
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
/// While Redis owns it, a document that Redis does not know counts as new; its knowledge begins
/// anew when it takes the partition over (F29).
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

//! Every statement of the ledger, for all engines: what one says differently is asked of its
//! connection ([`crate::dialect`]). This page is the table of contents.

mod acceptance;
mod accounts;
mod activity;
mod actors;
mod adopt;
mod append;
mod archive;
mod archived_names;
mod archiving;
mod aside_again;
mod audits;
mod bindable;
mod blame;
mod chain;
mod changes;
mod checkpoints;
mod chronology;
mod clocks;
mod confirmed_takes;
mod counter_list;
mod counters;
mod documents;
mod entries;
mod exchange_serials;
mod find;
mod fitness;
mod found_aside;
mod gaps;
mod holding;
mod import;
mod in_force;
mod incarnation;
mod inquest;
mod keys;
mod known;
mod lift;
mod lineage;
mod loans;
mod lookup;
mod nodes;
mod partitions;
mod planned;
mod project_room;
mod projects;
mod proving;
mod put_aside;
mod records;
mod recovery;
mod reference;
mod removal;
mod restored;
mod safety;
mod seed;
mod series;
mod setup;
mod shown;
mod since;
mod snowflakes;
mod stamps;
mod starts;
mod succession;
mod sweeping;
mod take;
mod tall;
mod tokens;
mod told_tokens;
mod undated;
mod unsettled;
mod versions;
mod walk;

use numerator_runtime::node::NodeId;

use crate::calls::{CALL, SEARCH, WALK};
use crate::connections::Share;
use crate::dialect::{Conn, Moment, Transaction};
use crate::statement::{QueryBuilder, Row, query, query_scalar};
use crate::store::Store;
use crate::{Connections, Ledger, LedgerError};

pub(crate) use acceptance::KeptSeries;
pub(crate) use incarnation::agree;
pub use tall::TALL_ROOM_MIN;
pub use undated::undated_names;

impl Ledger {
    /// Name of the engine: `sqlite` or `postgres`.
    pub fn engine(&self) -> &'static str {
        self.0.name()
    }

    /// Its connections right now.
    pub fn connections(&self) -> Connections {
        self.0.store(Share::Common).pool().connections()
    }

    /// Which of these counters somebody else holds at this moment, where the engine has locks of
    /// rows: what waits for them may let the others go first. Waits for none.
    pub async fn held_counters(&self, counter_ids: &[i64]) -> Result<Vec<i64>, LedgerError> {
        self.call(CALL.of(Share::Journal), async |store| store.held_counters(counter_ids).await)
            .await
    }
}

/// Commits; only here may the outcome of a transaction be unknown.
async fn commit(transaction: Transaction) -> Result<(), LedgerError> {
    transaction.commit().await.map_err(LedgerError::at_commit)
}

/// Commits what no process reports again to a ledger that forgets it (F25).
async fn commit_alone(store: &Store, transaction: Transaction) -> Result<(), LedgerError> {
    commit(transaction).await?;
    store.witness.note_change();
    Ok(())
}

/// The sixteen bytes of a node's identity.
fn bytes(node: &NodeId) -> &[u8] {
    node.0.as_bytes().as_slice()
}

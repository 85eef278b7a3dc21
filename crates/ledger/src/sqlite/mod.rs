//! The ledger on SQLite: opens the file, and has what differs in this engine. The statements
//! themselves are shared.
//!
//! One connection writes, and every transaction on it begins `immediate`: there is nothing to lock
//! row by row. A transaction that began by reading and then wanted to write would fail immediately
//! while another process writes.

mod bulk;
mod check_up;
mod close;
mod definitions;
mod fitness;
mod life;
mod look;
mod mark;
mod names;
mod new_rows;
mod open;
mod place;
mod private;
mod runs;
mod slices;

use std::sync::Arc;

use async_trait::async_trait;

use crate::call_timeout::CallTimeout;
use crate::connections::Share;
use crate::engine::Engine;
use crate::store::Store;
use life::SqlitePools;

pub(super) use look::look;
pub(super) use open::open;
pub(crate) use slices::row_of;

/// The ledger in one SQLite file.
struct SqliteEngine {
    store: Arc<Store>,
    pools: Arc<SqlitePools>,
}

#[async_trait]
impl Engine for SqliteEngine {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    /// One connection writes, for all callers. It is granted in order, and few callers wait:
    /// background jobs are bounded, and the journal is one loop (F31).
    fn store(&self, _share: Share) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// A file has no peer that could vanish: calls take the time they take.
    async fn is_late(&self, _store: &Arc<Store>, _patience: CallTimeout) {
        std::future::pending::<()>().await;
    }

    fn give_up(&self, _store: &Arc<Store>, _why: &str) {}

    async fn close(&self) {
        self.pools.close().await;
    }

    async fn knock(&self) -> bool {
        true
    }
}

//! A database as the ledger uses it: its shares of connections, and their end. Owns no statement.

use std::sync::Arc;

use async_trait::async_trait;

use crate::call_timeout::CallTimeout;
use crate::connections::Share;
use crate::store::Store;

/// A database as the ledger uses it, independent of the state of its connections.
#[async_trait]
pub(crate) trait Engine: Send + Sync + 'static {
    /// Its name: `sqlite` or `postgres`.
    fn name(&self) -> &'static str;

    /// A share of the connections of now.
    fn store(&self, share: Share) -> Arc<Store>;

    /// Ends once a call on these connections has taken as long as it may.
    async fn is_late(&self, store: &Arc<Store>, call_timeout: CallTimeout);

    /// Lets no further call use these connections.
    fn give_up(&self, store: &Arc<Store>, why: &str);

    /// Ends all connections, and leaves the database in a state in which a copy has all of it.
    async fn close(&self) {}
    /// Tries once to connect, apart from all connections; whether the server accepted. True where
    /// there is no server.
    async fn knock(&self) -> bool;
}

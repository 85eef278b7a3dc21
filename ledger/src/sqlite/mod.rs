//! The ledger on SQLite: opens the file, and says what this engine says differently.
//! The statements themselves are shared (`statements`) and compiled once per engine.
//!
//! One connection writes, and every transaction on it begins `immediate`: there is nothing to lock
//! row by row. A transaction that began by reading and then wanted to write would fail at once
//! while another process writes.

mod bulk;
mod check_up;
mod life;
mod mark;
mod names;
mod open;
mod place;

/// A select whose rows stay as they are: the transaction is the only writer.
macro_rules! for_update {
    ($select:literal) => {
        $select
    };
}

/// A select whose rows stay as they are: the transaction is the only writer.
macro_rules! for_share {
    ($select:literal) => {
        $select
    };
}

#[path = "../statements/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the statements are compiled once per engine")]
mod statements;

use std::sync::Arc;

use crate::connections::Share;
use crate::patience::Patience;
use crate::witness::Witness;
use crate::{Connections, LedgerError};

use check_up::check_up;
use life::Transaction;
use mark::MarkFile;
use numerator_base::clock::SharedClock;
use numerator_base::metrics::LedgerMeter;
pub(super) use open::open;

type Db = sqlx::Sqlite;
type Conn = sqlx::SqliteConnection;
type Row = sqlx::sqlite::SqliteRow;

const ENGINE: &str = "sqlite";

/// The clause that locks what a built select returns: none, the transaction is the only writer.
const FOR_UPDATE: &str = "";

/// The ledger in one SQLite file.
struct Engine(Arc<Store>);

/// Its connections, and what lies beside the file.
#[derive(Clone)]
struct Store {
    writer: sqlx::SqlitePool,
    reader: sqlx::SqlitePool,
    clock: SharedClock,
    witness: Arc<Witness>,
    meter: Arc<LedgerMeter>,
    mark: Arc<MarkFile>,
}

impl Engine {
    /// One connection writes, whoever asks. Nobody is overtaken on the way to it, and few wait
    /// there: background jobs are bounded, and the journal is one loop (F31).
    fn store(&self, _share: Share) -> Arc<Store> {
        Arc::clone(&self.0)
    }

    /// A file has no peer that could vanish: calls take the time they take.
    async fn within<T>(
        &self,
        _store: &Arc<Store>,
        _patience: Patience,
        call: impl Future<Output = Result<T, LedgerError>>,
    ) -> Result<T, LedgerError> {
        call.await
    }
}

impl Store {
    fn connections(&self) -> Connections {
        let [writer, reader] = [&self.writer, &self.reader].map(|pool| {
            Connections::of_pool(pool.size(), pool.num_idle(), pool.options().get_max_connections())
        });
        Connections {
            used: writer.used + reader.used,
            idle: writer.idle + reader.idle,
            max: writer.max + reader.max,
        }
    }
}

/// Statements have no time limit here.
async fn allow_long_search(_conn: &mut Conn) -> Result<(), LedgerError> {
    Ok(())
}

/// Nor does a transaction.
async fn allow_import(_conn: &mut Conn) -> Result<(), LedgerError> {
    Ok(())
}

//! The ledger on PostgreSQL: opens the pool, and says what this engine says differently.
//! The statements themselves are shared (`statements`) and compiled once per engine.

mod bulk;
mod check_up;
mod engine;
mod life;
mod migrate;
mod names;
mod open;

/// A select that locks the rows it returns until the transaction ends.
macro_rules! for_update {
    ($select:literal) => {
        concat!($select, " for update")
    };
}

/// A select that keeps others from changing the rows it returns.
macro_rules! for_share {
    ($select:literal) => {
        concat!($select, " for share")
    };
}

#[path = "../statements/mod.rs"]
#[expect(clippy::duplicate_mod, reason = "the statements are compiled once per engine")]
mod statements;

use std::sync::Arc;
use std::time::Duration;

use crate::witness::Witness;
use crate::{Connections, LedgerError};

use check_up::check_up;
use engine::Engine;
use numerator_base::clock::SharedClock;
use numerator_base::metrics::LedgerMeter;
pub(super) use open::open;

type Db = sqlx::Postgres;
type Conn = sqlx::PgConnection;
type Row = sqlx::postgres::PgRow;
type Transaction = sqlx::Transaction<'static, Db>;

const ENGINE: &str = "postgres";

/// The clause that locks what a built select returns.
const FOR_UPDATE: &str = " for update";

/// The longest wait for one lock of work that is done again and again behind the answers (journal,
/// seeds, raises): what is not held goes first meanwhile (F31). Never longer than
/// `database.lock_timeout`.
const BRIEF_WAIT: Duration = Duration::from_secs(1);

/// One share of the connections of one time to a PostgreSQL database.
struct Store {
    writer: sqlx::PgPool,
    reader: sqlx::PgPool,
    clock: SharedClock,
    /// Outlives the connections.
    witness: Arc<Witness>,
    lock_timeout: Duration,
    /// Outlives the connections too.
    meter: Arc<LedgerMeter>,
}

impl Store {
    fn connections(&self) -> Connections {
        let pool = &self.writer;
        Connections::of_pool(pool.size(), pool.num_idle(), pool.options().get_max_connections())
    }
}

/// Lets this transaction wait for a file between its statements, and them run longer than a request
/// may. It holds nothing that others need until its end.
async fn allow_import(conn: &mut Conn) -> Result<(), LedgerError> {
    allow_long_search(conn).await?;
    sqlx::query("set local idle_in_transaction_session_timeout = '1min'").execute(conn).await?;
    Ok(())
}

/// Lets the statements of this transaction run longer than a request may: searches through all
/// values of a counter take as long as there are values.
async fn allow_long_search(conn: &mut Conn) -> Result<(), LedgerError> {
    sqlx::query("set local statement_timeout = '10min'").execute(conn).await?;
    Ok(())
}

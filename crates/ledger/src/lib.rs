//! The ledger: the SQL database that is the truth.
//!
//! Owns every statement. The fence of each write that depends on an epoch is the row that the write
//! changes, never a value read earlier (F4). Never cancels a statement on a connection that is used
//! again: callers run ledger work in tasks that are never aborted, because a dropped `begin` leaves
//! a transaction open on its connection. A call that takes too long ends with its connections.

mod accounting;
mod approvals;
mod archive;
mod audits;
mod batch;
mod bound;
mod call_failures;
mod call_timeout;
mod calls;
mod checkpoints;
mod clocks;
mod columns;
mod compressed_mask;
mod connections;
mod counters;
mod definitions;
mod dialect;
mod engine;
mod error;
mod events;
mod exchange;
mod fetch;
mod fitness;
mod giving_up;
mod imports;
mod incarnation;
mod journal_columns;
mod last_seen;
mod life;
mod look;
mod lookalikes;
mod new_row;
mod nodes;
mod opening;
#[cfg(test)]
mod plans;
mod postgres;
mod progression;
mod protocol;
mod query;
mod quorum_check;
mod raw_rows;
mod reference;
mod register;
mod reservations;
mod row_text;
mod safety;
mod schema;
mod seal;
mod series;
mod settings;
mod sharing;
mod snowflakes;
mod sqlite;
mod store;
mod sweeping;
mod tokens;

pub use approvals::{Approvals, rows::*};
pub use archive::{Archive, rows::*};
pub use audits::{Audits, rows::*};
pub use call_failures::CallFailure;
pub use checkpoints::{Checkpoints, rows::*};
pub use clocks::{Heard, LedgerTimes};
pub use connections::Connections;
pub use counters::{Counters, rows::*};
pub use definitions::Deviation as SchemaDeviation;
pub use error::LedgerError;
pub use events::{Events, rows::*};
pub use exchange::{Exchange, rows::*};
pub use fitness::{Lack, all_lacks};
pub use giving_up::{is_given_up, until_given_up};
pub use imports::{Imports, rows::*};
pub use incarnation::{Confirmed, OneIncarnation};
pub use last_seen::takes::RECORDS_KEPT;
pub use life::{Life, Standing, rows::*};
pub use look::{Inspection, ServerFacts, look};
pub use lookalikes::warnings;
pub use nodes::{Nodes, rows::*};
pub use postgres::{postgres_files, postgres_options};
pub use protocol::rows::*;
pub use protocol::tall::TALL_ROOM_MIN;
pub use protocol::undated::undated_names;
pub use quorum_check::{Agreement, Known, Report};
pub use reference::plan::{REFERENCE_CHANGE_MAX, plan_reference};
pub use reference::{Reference, rows::*};
pub use register::{Register, rows::*};
pub use reservations::by_number::{NamedEnd, NamedReservation, ReservedFilter};
pub use reservations::{Reservations, block_rows::*, rows::*};
pub use safety::{LedgerCheckup, LedgerConfigWarning};
pub use schema::{Migrated, Schema};
pub use seal::MacKey;
pub(crate) use series::project_names::*;
pub use series::{Series, rows::*};
pub use settings::{LedgerSettings, Migrate};
pub use snowflakes::Snowflakes;
pub use snowflakes::lease::{HeldNumber, SNOWFLAKE_LEASE_MAX, SnowflakeLease};
pub use sweeping::{Sweep, Swept};
pub use tokens::{Tokens, rows::*};

use std::path::Path;
use std::sync::Arc;

use calls::CALL;
use connections::Share;
use engine::Engine;
use numerator_runtime::clock::SharedClock;
pub(crate) use raw_rows::RawRows;

/// An open ledger, on any engine. Its own methods are the protocol: takes, epochs, recovery, the
/// journal's entry. All other methods are those of its nouns, as in `ledger.tokens().list(..)`.
/// Methods take whole batches; each is one transaction and safe to repeat unless its page says
/// otherwise.
pub struct Ledger(Box<dyn Engine>, Option<Migrated>);

impl Ledger {
    /// The migrations that ran as it was opened; none where its schema was up to date.
    #[must_use]
    pub fn migrated(&self) -> Option<Migrated> {
        self.1
    }

    /// Name of the engine: `sqlite` or `postgres`.
    pub fn engine(&self) -> &'static str {
        self.0.name()
    }

    /// Its connections right now.
    pub fn connections(&self) -> Connections {
        self.0.store(Share::Common).pool().connections()
    }

    /// The counters among these that another transaction holds now, where the engine has locks of
    /// rows: work that waits for them may let the others go first. Waits for none.
    pub async fn held_counters(&self, counter_ids: &[i64]) -> Result<Vec<i64>, LedgerError> {
        self.call(CALL.of(Share::Journal), async |store| store.held_counters(counter_ids).await)
            .await
    }

    /// Ends the connections once their calls have ended; later calls fail. The last process to end
    /// leaves a SQLite ledger in one file (F38).
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// Shared handle to a ledger.
pub type SharedLedger = Arc<Ledger>;

/// Opens the ledger that `url` names: `sqlite:<path>` (folder and file are created) or
/// `postgres://…`. Sets an empty one up, and migrates an older one where the settings say so.
///
/// # Errors
/// `Refused` for a URL of another kind and a database that may lose commits; `Migration` for a
/// schema newer than this binary, or older and not to be changed; `LockTimeout` where a migration
/// gets no lock; `Unreachable` when the database cannot be reached.
pub async fn open(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<SharedLedger, LedgerError> {
    let (engine, migrated) = if let Some(rest) = url.strip_prefix("sqlite:") {
        let path = rest.strip_prefix("//").unwrap_or(rest);
        if path.is_empty() || path.starts_with(":memory:") {
            let why = "database.url: sqlite needs the path of a file, as in sqlite:data/ledger.db";
            return Err(LedgerError::Refused(why.into()));
        }
        sqlite::open(Path::new(path), settings, clock).await?
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        postgres::open(url, settings, clock).await?
    } else {
        let why = "database.url: begins with neither `sqlite:` nor `postgres://`";
        return Err(LedgerError::Refused(why.into()));
    };
    Ok(Arc::new(Ledger(engine, migrated)))
}

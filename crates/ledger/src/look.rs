//! A ledger that is opened to be read. Nothing is set up, migrated, agreed on or written, whatever
//! the ledger lacks. A write fails on a ledger that is opened here.

use std::path::Path;
use std::sync::Arc;

use numerator_runtime::clock::SharedClock;

use crate::engine::Engine;
use crate::schema::Schema;
use crate::{Ledger, LedgerError, LedgerSettings, SharedLedger, postgres, sqlite};

/// A ledger that is looked at.
pub struct Inspection {
    /// Its statements that read.
    pub ledger: SharedLedger,
    /// How its schema compares to this program's.
    pub schema: Result<Schema, LedgerError>,
    /// Why no process would start on it, regardless of its content.
    pub refusal: Option<LedgerError>,
    /// Facts from its server; none where it is a file.
    pub server: Option<Result<ServerFacts, LedgerError>>,
}

/// A server's facts about itself, and about the user of `database.url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// Connections that it accepts in total,
    pub connections_max: u64,
    /// of which so many are kept for its administrators.
    pub connections_reserved: u64,
    /// How many this user may have, and how many the database; none: any number.
    pub connections_allowed: [Option<u64>; 2],
    /// Connections of other users, now.
    pub connections_of_others: u64,
    /// Whether it is a standby.
    pub is_standby: bool,
    /// Whether sessions are read-only, by a setting of the server, the database or the user.
    pub is_read_only: bool,
    /// Whether the schema for the tables exists.
    pub has_schema: bool,
    /// Whether the user may make tables in it.
    pub may_create: bool,
    /// Whether the user owns the record: its protection does not bind an owner.
    pub owns_record: bool,
}

impl ServerFacts {
    /// Connections that this user may have, if no other user takes more.
    #[must_use]
    pub fn connections(&self) -> u64 {
        let taken = self.connections_reserved.saturating_add(self.connections_of_others);
        let left = self.connections_max.saturating_sub(taken);
        self.connections_allowed.iter().flatten().fold(left, |least, allowed| least.min(*allowed))
    }
}

/// What an engine finds.
pub(crate) struct EngineInspection {
    pub(crate) engine: Box<dyn Engine>,
    pub(crate) schema: Result<Schema, LedgerError>,
    pub(crate) refusal: Option<LedgerError>,
    pub(crate) server: Option<Result<ServerFacts, LedgerError>>,
}

/// Looks at the ledger that `url` names.
///
/// # Errors
/// `Unreachable` and `Refused` where it does not exist, or does not accept the connection.
pub async fn look(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<Inspection, LedgerError> {
    let found = match url.strip_prefix("sqlite:") {
        Some(rest) => {
            let path = Path::new(rest.strip_prefix("//").unwrap_or(rest));
            sqlite::look(path, settings, clock).await?
        }
        None => postgres::look(url, settings, clock).await?,
    };
    let EngineInspection { engine, schema, refusal, server } = found;
    Ok(Inspection { ledger: Arc::new(Ledger(engine, None)), schema, refusal, server })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_have_and_what_a_user_may_not_have_is_no_room() {
        let facts = |others, allowed| ServerFacts {
            connections_max: 100,
            connections_reserved: 3,
            connections_allowed: allowed,
            connections_of_others: others,
            is_standby: false,
            is_read_only: false,
            has_schema: true,
            may_create: true,
            owns_record: true,
        };
        assert_eq!(facts(0, [None, None]).connections(), 97);
        assert_eq!(facts(20, [None, Some(80)]).connections(), 77);
        assert_eq!(facts(20, [Some(30), Some(80)]).connections(), 30);
        assert_eq!(facts(200, [None, None]).connections(), 0);
    }
}

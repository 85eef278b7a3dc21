//! The ledger of a drill, on either engine: where nodes find it, how its rows are read, and where
//! the engines' SQL differs.
//!
//! Read with plain SQL, not through the code that writes it. `{}` in a query is replaced by the
//! place of the tables.

use std::fmt;

use clap::ValueEnum;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;

use super::file::LedgerFile;

/// The schema of PostgreSQL that holds the ledger.
pub(super) const SCHEMA: &str = "drill";

/// What keeps the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Engine {
    /// A PostgreSQL of the drill's own.
    Postgres,
    /// A file that all nodes share.
    Sqlite,
}

/// The stores of a drill's nodes: a kind may have nothing to work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stores {
    /// What keeps the ledger.
    pub(super) ledger: Engine,
    /// Whether Redis takes numbers; otherwise the ledger alone does.
    pub(super) has_redis: bool,
}

impl fmt::Display for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ledger {
            Engine::Postgres => "PostgreSQL",
            Engine::Sqlite => "a SQLite file",
        })?;
        f.write_str(if self.has_redis { " and Redis" } else { " alone" })
    }
}

/// The ledger that the nodes use at present.
pub(super) enum Ledger {
    Postgres(Postgres),
    Sqlite(LedgerFile),
}

impl Ledger {
    /// Starts a server, or makes a folder for the file.
    pub(super) fn start(engine: Engine) -> Self {
        match engine {
            Engine::Postgres => Ledger::Postgres(Postgres::start()),
            Engine::Sqlite => Ledger::Sqlite(LedgerFile::within_a_new_folder()),
        }
    }

    /// A link to it on which faults may be injected; `None` for a file.
    pub(super) fn link(&self) -> Option<Proxy> {
        match self {
            Ledger::Postgres(postgres) => Some(Proxy::start(postgres.port())),
            Ledger::Sqlite(_) => None,
        }
    }

    /// Where a node finds it, by its link if it has one.
    pub(super) fn url(&self, link: Option<&Proxy>) -> String {
        match self {
            Ledger::Postgres(postgres) => {
                postgres.url_by(link.map_or(postgres.port(), Proxy::port), SCHEMA)
            }
            Ledger::Sqlite(file) => file.url(),
        }
    }

    /// Returns each row of a query, as texts.
    pub(super) fn rows(&self, query: &str, each: impl FnMut(&[&str])) {
        match self {
            Ledger::Postgres(postgres) => postgres.rows(&query.replace("{}", SCHEMA), each),
            Ledger::Sqlite(file) => file.rows(&query.replace("{}", "main"), each),
        }
    }

    /// The first columns of a query's rows, each after a comma except the first.
    pub(super) fn list(&self, query: &str) -> String {
        let mut all: Vec<String> = Vec::new();
        self.rows(query, |row| all.push(row[0].to_owned()));
        all.join(", ")
    }

    /// The expression that reads the cause from the details of an event.
    pub(super) fn cause(&self) -> &'static str {
        match self {
            Ledger::Postgres(_) => "detail::json ->> 'cause'",
            Ledger::Sqlite(_) => "detail ->> 'cause'",
        }
    }

    /// The expression that yields a node's id as text.
    pub(super) fn node_id(&self) -> &'static str {
        match self {
            Ledger::Postgres(_) => "encode(node_id, 'hex')",
            Ledger::Sqlite(_) => "lower(hex(node_id))",
        }
    }

    /// The server.
    ///
    /// # Panics
    /// When it is a file: a plan has no fault of a server for it.
    pub(super) fn server(&mut self) -> &mut Postgres {
        match self {
            Ledger::Postgres(postgres) => postgres,
            Ledger::Sqlite(_) => panic!("a fault of PostgreSQL for a file"),
        }
    }

    /// The file.
    ///
    /// # Panics
    /// When it is a server: a plan has no fault of a file for it.
    pub(super) fn file(&mut self) -> &mut LedgerFile {
        match self {
            Ledger::Sqlite(file) => file,
            Ledger::Postgres(_) => panic!("a fault of a file for PostgreSQL"),
        }
    }

    /// Stops its processes, as a crash of the machine's processes would.
    pub(super) fn kill(&mut self) {
        if let Ledger::Postgres(postgres) = self {
            postgres.kill();
        }
    }

    /// Starts it again on its data.
    pub(super) fn restart(&mut self) {
        if let Ledger::Postgres(postgres) = self {
            postgres.restart();
        }
    }
}

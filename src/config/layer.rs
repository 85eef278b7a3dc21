//! Every setting: its name, type, default, bounds and meaning. `docs/settings.md` is made from it.
//!
//! A default is in exactly one place: here, or in the `default` of the settings of a room.

mod audit_trail;
mod engine;
mod http;
mod principals;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::DurationText;
use super::bounds::{Checked, millis, secs, within};
use super::external::WrittenSource;
use super::section::Section;
use super::shared::WrittenTable;
use crate::engine::node::ProcessSettings;
use crate::ledger::{LedgerSettings, Migrate};

pub(super) use audit_trail::{Archive, Audit, Log, Metrics, Trace};
pub(super) use engine::{
    Allocator, Ceiling, Idempotency, Journal, Node, RECORDS_MAX_MAX, Recovery, Reservations, Retry,
    Series, Snowflake, Sweep,
};
pub(super) use http::Http;
pub(super) use principals::{Approval, Auth, Jwt, Limits};

/// The settings of each section, in the order of the page.
macro_rules! layer {
    ($($name:ident: $section:ident,)*) => {
        /// Everything that a settings file may hold.
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct Layer {
            /// Over how many partitions series are spread; fixed when a ledger is set up (F8).
            pub(super) partitions: u32,
            $(pub(crate) $name: $section,)*
            pub(super) external: BTreeMap<String, WrittenSource>,
            pub(super) reference: BTreeMap<String, WrittenTable>,
        }

        impl Default for Layer {
            fn default() -> Self {
                Layer {
                    partitions: 8,
                    $($name: $section::default(),)*
                    external: BTreeMap::new(),
                    reference: BTreeMap::new(),
                }
            }
        }

        impl Layer {
            /// Holds each setting to its own bounds.
            pub(super) fn check(&self) -> Checked<()> {
                within(|| "partitions".to_owned(), &self.partitions, &(1..=PARTITIONS_MAX))?;
                $(self.$name.check(stringify!($name))?;)*
                self.auth.jwt.check("auth.jwt")?;
                let each = self.external.iter();
                each.map(|(name, source)| source.check(&format!("external.{name}"))).collect()
            }

            /// The forms of settings whose default does not show it.
            pub(super) fn forms() -> Vec<numbering::Form> {
                let mut forms = Jwt::forms();
                forms.extend(WrittenSource::forms());
                $(forms.extend($section::forms());)*
                forms
            }

            /// The settings of each section.
            #[cfg(test)]
            pub(super) fn declared() -> Vec<(&'static str, Vec<super::page::Declared>)> {
                vec![$((stringify!($name), $section::declared()),)*]
            }
        }
    };
}

layer! {
    http: Http,
    database: Database,
    data: Data,
    redis: Redis,
    auth: Auth,
    limits: Limits,
    approval: Approval,
    node: Node,
    series: Series,
    idempotency: Idempotency,
    allocator: Allocator,
    snowflake: Snowflake,
    ceiling: Ceiling,
    recovery: Recovery,
    sweep: Sweep,
    reservations: Reservations,
    journal: Journal,
    retry: Retry,
    log: Log,
    audit: Audit,
    archive: Archive,
    trace: Trace,
    metrics: Metrics,
}

/// Each partition has its own workers.
pub(super) const PARTITIONS_MAX: u32 = 1_024;

/// The defaults of issuing, next to the doc comments of their meaning.
fn issuing() -> ProcessSettings {
    ProcessSettings::default()
}

section! {
    /// `database.*`
    Database {
        /// The ledger. It contains a password: protect the file, or use the environment. A
        /// PostgreSQL on another machine must show [a certificate of its name](#certificates).
        url: Option<String> = None, "begins with `sqlite:`, `postgres://` or `postgresql://`",
            absent "none: the file `numerator.db` in `data.dir`",
            like "an address in quotes" "\"postgres://numerator@db/numbers\"";
        /// Connections to the ledger that calls share; PostgreSQL gets four at least, and
        /// [three more](#who-may-hold-connections).
        connections_max: u32 = LedgerSettings::default().connections_max, 1..=1_000;
        /// Longest wait for one lock of the ledger.
        lock_timeout: DurationText = DurationText(LedgerSettings::default().lock_timeout),
            millis(100)..=secs(60);
        /// What brings an older schema up to date: any process that serves or takes a number
        /// (`auto`), or only `numerator migrate` ([schemas](#schemas)).
        migrate: Option<Migrate> = None, "`auto` or `explicit`",
            absent "none: `auto` for a file, `explicit` for a server", like "" "\"explicit\"";
    }
}

section! {
    /// `data.*`
    Data {
        /// Folder of the embedded ledger, and of the last-seen mark of a PostgreSQL one.
        dir: Option<PathBuf> = None, "a folder, made where it is missing",
            absent "none: `$XDG_DATA_HOME/numerator`, else `~/.local/share/numerator`",
            like "a path in quotes" "\"/var/lib/numerator\"";
    }
}

section! {
    /// `redis.*`
    Redis {
        /// The Redis of the fast path, in one of the topologies below. It needs `appendonly yes`
        /// and `maxmemory-policy noeviction`.
        url: Option<String> = None,
            "begins with `redis://`, `rediss://`, or the same with `-sentinel` or `-cluster` \
             before the colon",
            absent "none: the ledger takes the numbers",
            like "an address in quotes" "\"rediss://cache:6379\"";
        /// Whether Redis may be on another machine without TLS: `redis.url` must begin with
        /// `rediss` there otherwise. For private networks that no other party listens to.
        allow_plaintext: bool = false, "";
        /// Prefix of all keys; fixed when a ledger is set up.
        prefix: String = "nbr".into(), "1 to 32 visible ASCII characters without braces";
        /// After this long without a reply a call's outcome is unknown, and the same call is sent
        /// again.
        command_timeout: DurationText = secs(1), millis(10)..=secs(60);
        /// When all processes have seen the same healthy Redis for this long, it takes the numbers
        /// again ([the return](#the-return-to-redis)).
        return_after: DurationText = DurationText(issuing().return_after),
            millis(10)..=secs(3_600);
    }
}

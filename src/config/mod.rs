//! Settings: defaults, then a file, then the environment, then flags. Every limit has a name, a
//! unit, a default and bounds.
//!
//! Owns the reading of settings and nothing else: it starts nothing and connects to nothing. A
//! wrong setting is an error that names it, never a silent default.

#[macro_use]
mod section;

mod audit;
mod bounds;
mod checks;
mod duration;
mod external;
mod files;
mod forms;
mod idempotency;
mod jwt;
mod layer;
mod listening;
mod shared;
mod sources;
mod tokens;

pub use crate::auth::jwt::{JwtAlgorithm, JwtKeys, JwtSettings};
pub use crate::auth::tokens::Token;
pub use crate::engine::sealing::{AuditSettings, Keyless};
pub use crate::telemetry::certificates::CertificateFile;
pub use crate::telemetry::settings::{LogFormat, LogSettings, TraceSettings};
pub use duration::DurationText;
pub use files::NamedFile;
use layer::Layer;
pub use sources::{SettingsError, Sources};

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::auth::Shared;
use crate::auth::limits::LimitSettings;
use crate::engine::node::ProcessSettings;
use crate::engine::sources::SourceSettings;
use crate::ledger::LedgerSettings;
use crate::redis::RedisSettings;
use crate::telemetry::gauges::GaugeSettings;

/// The settings of a process. Holds passwords (in URLs), which `Debug` leaves out.
#[derive(Clone)]
pub struct Settings {
    /// `http.listen`.
    pub http_listen: SocketAddr,
    /// `http.health_listen`; absent: machines that watch ask [`Settings::http_listen`].
    pub health_listen: Option<SocketAddr>,
    /// The other `http.*`.
    pub http: HttpSettings,
    /// `data.dir`.
    pub data_dir: PathBuf,
    /// `database.url`: `sqlite:<path>` or `postgres://…`.
    pub database_url: String,
    /// The other `database.*`.
    pub database: LedgerSettings,
    /// `redis.*`; absent: no Redis.
    pub redis: Option<RedisSettings>,
    /// `redis.prefix`.
    pub redis_prefix: String,
    /// `partitions`.
    pub partitions: u32,
    /// `audit.*`.
    pub audit: AuditSettings,
    /// The effective `auth.mode`: whether callers must authenticate. If not, every caller of the
    /// (loopback) address may ask.
    pub asks_for_tokens: bool,
    /// `auth.tokens`.
    pub auth_tokens: Vec<Token>,
    /// `limits.*`: how much people may take in a minute.
    pub limits: LimitSettings,
    /// `auth.jwt`; absent: no JWT is accepted.
    pub auth_jwt: Option<JwtSettings>,
    /// `series.load`: the series for a ledger without any.
    pub series_load: Vec<SeriesSource>,
    /// `log.*`.
    pub log: LogSettings,
    /// `trace.*`.
    pub trace: TraceSettings,
    /// `external.*`: the sources of values.
    pub external: Vec<SourceSettings>,
    /// `external.*` and `reference.*`: for which series and projects sources and tables are.
    pub shared: Shared,
    /// Bounds and waits of issuing.
    pub allocator: ProcessSettings,
    /// `metrics.*`.
    pub gauges: GaugeSettings,
    /// Every setting as it was written, within its bounds: settings that need no further reading
    /// are read here, by the rooms above this one.
    pub(crate) written: Layer,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("http_listen", &self.http_listen)
            .field("health_listen", &self.health_listen)
            .field("http", &self.http)
            .field("database", &self.database)
            .field("redis", &self.redis)
            .field("partitions", &self.partitions)
            .field("allocator", &self.allocator)
            .finish_non_exhaustive()
    }
}

impl Settings {
    /// Reads all sources, later ones over earlier ones, and checks every bound.
    ///
    /// # Errors
    /// The first wrong setting, with its name, its place, what is wrong and the remedy.
    pub fn load(sources: &Sources) -> Result<Self, SettingsError> {
        let merged = sources.merge()?;
        checks::settings(&merged.layer, &sources.environment)
            .map_err(|wrong| merged.blame(&wrong.setting, wrong.reason))
    }
}

/// The header in which a proxy names its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Bounds of the HTTP server (`http.time_limit` is in [`ProcessSettings`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// `http.hosts`: names under which the service may be called, in addition to those of loopback.
    pub hosts: Vec<String>,
    /// `http.trusted_proxies`: networks of proxies that are trusted for the address of a client.
    pub trusted_proxies: Vec<IpNet>,
    /// `http.forwarded_header`: the header that they use.
    pub forwarded_header: ForwardedHeader,
    /// `http.tls_*`; absent: requests come in plain HTTP.
    pub tls: Option<TlsSettings>,
    /// `http.connections_max`: connections served at the same time; more wait to be accepted.
    pub connections_max: usize,
    /// `http.connections_per_peer_max`: connections of one address; more are closed immediately.
    pub connections_per_peer_max: usize,
    /// `http.drain_delay`: how long a process that is asked to stop still takes requests.
    pub drain_delay: Duration,
}

/// The certificate that `http.listen` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSettings {
    /// `http.tls_certificate`: the certificate and those that lead to its authority, in PEM form.
    pub certificate: PathBuf,
    /// `http.tls_key`: its private key, in PEM form.
    pub key: PathBuf,
    /// How often both files are read.
    pub reload_period: Duration,
}

/// The word for the series that ship with the program.
const BUILT_IN: &str = "built-in";

/// The source of a ledger's first series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesSource {
    /// Those that ship with the program, in an embedded ledger.
    BuiltIn,
    /// A series file, or a folder of them.
    Path(PathBuf),
}

impl fmt::Display for SeriesSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SeriesSource::BuiltIn => f.write_str("the built-in series"),
            SeriesSource::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;

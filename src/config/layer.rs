//! The form of the settings as written: sections, names, defaults. Bounds are in `checks`.
//!
//! A default stands in exactly one place: here, or in `ProcessSettings::default` for issuing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::external::WrittenSource;
use super::shared::WrittenTable;
use super::tokens::{AuthMode, WrittenToken};
use super::{DurationText, JwtAlgorithm, LogFormat};
use crate::engine::node::ProcessSettings;
use crate::ledger::{LedgerSettings, Migrate};
use crate::telemetry::gauges::GaugeSettings;

/// Everything that a settings file may hold. Tests compare `docs/settings.md` with it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Layer {
    pub(super) http: Http,
    pub(super) database: Database,
    pub(super) data: Data,
    pub(super) redis: Redis,
    /// Over how many partitions series are spread; fixed when a ledger is set up (F8).
    pub(super) partitions: u32,
    pub(super) auth: Auth,
    pub(super) limits: Limits,
    pub(super) approval: Approval,
    pub(super) node: Node,
    pub(super) series: Series,
    pub(super) idempotency: Idempotency,
    pub(super) allocator: Allocator,
    pub(super) snowflake: Snowflake,
    pub(super) external: BTreeMap<String, WrittenSource>,
    pub(super) reference: BTreeMap<String, WrittenTable>,
    pub(super) ceiling: Ceiling,
    pub(super) seed: Seed,
    pub(super) recovery: Recovery,
    pub(super) sweep: Sweep,
    pub(super) journal: Journal,
    pub(super) retry: Retry,
    pub(super) log: Log,
    pub(super) audit: Audit,
    pub(super) archive: Archive,
    pub(super) trace: Trace,
    pub(super) metrics: Metrics,
}

impl Default for Layer {
    fn default() -> Self {
        Layer {
            http: Http::default(),
            database: Database::default(),
            data: Data::default(),
            redis: Redis::default(),
            partitions: 8,
            auth: Auth::default(),
            limits: Limits::default(),
            approval: Approval::default(),
            node: Node::default(),
            series: Series::default(),
            idempotency: Idempotency::default(),
            allocator: Allocator::default(),
            snowflake: Snowflake::default(),
            external: BTreeMap::new(),
            reference: BTreeMap::new(),
            ceiling: Ceiling::default(),
            seed: Seed::default(),
            recovery: Recovery::default(),
            sweep: Sweep::default(),
            journal: Journal::default(),
            retry: Retry::default(),
            log: Log::default(),
            audit: Audit::default(),
            archive: Archive::default(),
            trace: Trace::default(),
            metrics: Metrics::default(),
        }
    }
}

mod http;

pub(super) use http::Http;

/// The defaults of issuing, which stand beside the doc comments of their meaning.
fn issuing() -> ProcessSettings {
    ProcessSettings::default()
}

section! {
    /// `database.*`
    Database {
        /// The ledger; without one, a SQLite file in `data.dir`.
        url: Option<String> = None,
        /// Connections to the ledger held at once.
        connections_max: u32 = LedgerSettings::default().connections_max,
        /// Longest wait for one lock of the ledger.
        lock_timeout: DurationText = DurationText(LedgerSettings::default().lock_timeout),
        /// How long a call may go without an answer before its connections are given up.
        call_limit: DurationText = DurationText(LedgerSettings::default().call_limit),
        /// Who brings an older schema up to date; without it, a file whoever serves from it, a
        /// server only `numerator migrate`.
        migrate: Option<Migrate> = None,
        /// Longest wait of a migration for one lock in one try.
        migrate_lock_timeout: DurationText =
            DurationText(LedgerSettings::default().migrate_lock_timeout),
        /// Tries of a migration that gets no lock, a second apart.
        migrate_attempts: u32 = LedgerSettings::default().migrate_attempts,
    }
}

section! {
    /// `data.*`
    Data {
        /// Folder of the embedded ledger; without one, where XDG puts data.
        dir: Option<PathBuf> = None,
    }
}

section! {
    /// `redis.*`
    Redis {
        /// The Redis of the fast path; without one, the ledger takes the numbers.
        url: Option<String> = None,
        /// Whether Redis may be on another machine without TLS.
        allow_plaintext: bool = false,
        /// What all keys begin with; fixed when a ledger is set up (F8).
        prefix: String = "nbr".into(),
        /// After this long without a reply a call's outcome is unknown.
        command_timeout: DurationText = DurationText(Duration::from_secs(1)),
        /// Longest wait between two attempts to connect.
        reconnect_max: DurationText = DurationText(Duration::from_millis(500)),
        fallback_after: DurationText = DurationText(issuing().fallback_after),
        return_after: DurationText = DurationText(issuing().return_after),
        probe_period: DurationText = DurationText(issuing().probe_period),
    }
}

section! {
    /// `audit.*`
    Audit {
        /// The key of checkpoints: its file, or the key itself.
        key: Option<String> = None,
        without_key: bool = false,
        checkpoint: DurationText = DurationText(Duration::from_secs(60)),
    }
}

section! {
    /// `archive.*`
    Archive {
        /// For so many years after its last number a file is not deleted.
        retention_years: u32 = 7,
    }
}

section! {
    /// `approval.*`
    Approval {
        /// How long a change that was asked for can be approved.
        time_limit: DurationText = DurationText(Duration::from_secs(86_400)),
    }
}

section! {
    /// `auth.*`
    Auth {
        /// Whether callers have to name themselves.
        mode: AuthMode = AuthMode::Auto,
        /// Who may call, beside those whose tokens are in the ledger.
        tokens: Vec<WrittenToken> = Vec::new(),
        /// The issuer whose JWTs are let in, too.
        jwt: Jwt = Jwt::default(),
    }
}

section! {
    /// `auth.jwt.*`: nothing of it is used without an issuer.
    Jwt {
        issuer: Option<String> = None,
        audience: Option<String> = None,
        algorithms: Vec<JwtAlgorithm> = Vec::new(),
        /// One secret, or one public key in PEM form.
        key_file: Option<PathBuf> = None,
        jwks_file: Option<PathBuf> = None,
        jwks_url: Option<String> = None,
        clock_skew: DurationText = DurationText(Duration::from_secs(30)),
        name_claim: String = "sub".into(),
        /// Whether those are people, who are limited as such.
        people: bool = true,
        roles_claim: String = "roles".into(),
        /// Roles by what stands in that claim.
        roles: Option<BTreeMap<String, Vec<String>>> = None,
        projects_claim: Option<String> = None,
        series_claim: Option<String> = None,
        /// Most numbers of one call; without it, 1 of people.
        count_max: Option<u64> = None,
    }
}

section! {
    /// `limits.*`
    Limits {
        /// Numbers and previews of one person a minute; 0: any number.
        user_per_minute: u64 = 10,
        /// The same of people from one address; 0: any number.
        address_per_minute: u64 = 50,
    }
}

section! {
    /// `node.*`
    Node {
        heartbeat: DurationText = DurationText(issuing().node_heartbeat),
        ttl: DurationText = DurationText(issuing().node_ttl),
        clock_offset_max: DurationText = DurationText(issuing().clock_offset_max),
    }
}

section! {
    /// `idempotency.*`
    Idempotency {
        window: DurationText = DurationText(issuing().idempotency_window),
        records_max: Option<u64> = None,
        keep_whole: bool = issuing().idempotency_keep_whole,
    }
}

section! {
    /// `allocator.*`
    Allocator {
        queue_max: usize = issuing().queue_max,
        caller_queue_max: usize = issuing().caller_queue_max,
        flight_max: usize = issuing().flight_max,
        counters_max: usize = issuing().counters_max,
        stop_max: DurationText = DurationText(issuing().stop_max),
    }
}

section! {
    /// `snowflake.*`
    Snowflake {
        lease: DurationText = DurationText(issuing().snowflake.lease),
        clock_wait_max: DurationText = DurationText(issuing().snowflake.clock_wait_max),
    }
}

section! {
    /// `ceiling.*`
    Ceiling {
        step_min: u64 = issuing().ceiling_step_min,
        horizon: DurationText = DurationText(issuing().ceiling_horizon),
    }
}

section! {
    /// `seed.*`
    Seed {
        grace: DurationText = DurationText(issuing().seed_grace),
    }
}

section! {
    /// `recovery.*`
    Recovery {
        open_timeout: DurationText = DurationText(issuing().recovery_open_timeout),
        barrier_max: DurationText = DurationText(issuing().recovery_barrier_max),
        per_minute_max: u64 = issuing().recovery_per_minute_max,
        settle_max: DurationText = DurationText(issuing().recovery_settle_max),
    }
}

section! {
    /// `sweep.*`
    Sweep {
        period: DurationText = DurationText(issuing().sweep.period),
        keep: DurationText = DurationText(issuing().sweep.keep),
        counters_max: u64 = issuing().sweep.counters_max,
        epoch_min: DurationText = DurationText(issuing().sweep.epoch_min),
    }
}

section! {
    /// `journal.*`
    Journal {
        queue_max: usize = issuing().journal.queue_max,
        keep: DurationText = DurationText(issuing().journal.keep),
        batch_rows_max: usize = issuing().journal.batch_rows_max,
    }
}

section! {
    /// `retry.*`
    Retry {
        delay_min: DurationText = DurationText(issuing().retry_delay_min),
        delay_max: DurationText = DurationText(issuing().retry_delay_max),
        attempts_max: u32 = issuing().retry_attempts_max,
        lock_attempts: u32 = issuing().database_retries.lock_attempts,
        lock_delay: DurationText = DurationText(issuing().database_retries.lock_delay),
        conflict_attempts: u32 = issuing().database_retries.conflict_attempts,
        connection_attempts: u32 = issuing().database_retries.connection_attempts,
        connection_delay: DurationText = DurationText(issuing().database_retries.connection_delay),
    }
}

section! {
    /// `series.*`
    Series {
        /// What a ledger without series gets.
        load: Vec<String> = vec![super::BUILT_IN.into()],
    }
}

section! {
    /// `log.*`
    Log {
        format: LogFormat = LogFormat::default(),
        filter: Option<String> = None,
        /// Lines in a second of requests that are refused.
        refused_per_second_max: u32 = 100,
    }
}

section! {
    /// `trace.*`
    Trace {
        /// Where spans go, over OTLP; without one, nowhere.
        otlp_url: Option<String> = None,
        /// How many of a hundred requests are traced, where the caller does not say.
        sampled_percent: u32 = 100,
    }
}

section! {
    /// `metrics.*`
    Metrics {
        counters_max: usize = GaugeSettings::default().counters_max,
        counter_keys: bool = GaugeSettings::default().counter_keys,
        period: DurationText = DurationText(GaugeSettings::default().period),
    }
}

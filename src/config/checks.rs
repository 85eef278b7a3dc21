//! Makes the settings of each room from the written ones, and refuses what is wrong in ways that no
//! range of values covers: texts, and settings that must fit together.

use std::path::PathBuf;
use std::time::Duration;

use super::audit::audit;
use super::bounds::{Checked, wrong};
use super::external::external;
use super::idempotency::idempotency;
use super::jwt::jwt;
use super::layer::{self, Layer};
use super::listening::http;
use super::shared::shared;
use super::tokens::{asks_for_tokens, tokens};
use super::{BUILT_IN, LogSettings, SeriesSource, Settings, TraceSettings};
use crate::auth::limits::LimitSettings;
use crate::engine::journal::JournalSettings;
use crate::engine::node::{ProcessSettings, ReservationSettings, SnowflakeSettings, SweepSettings};
use crate::ledger::{LedgerSettings, Migrate};
use crate::redis::{RedisSettings, unencrypted};
use crate::telemetry::gauges::GaugeSettings;

/// Files and folders of the first series.
const SERIES_SOURCES_MAX: usize = 100;
/// A prefix is part of every key of Redis, so it is short.
const PREFIX_CHARS_MAX: usize = 32;
/// Longest wait between two attempts to connect to Redis.
const RECONNECT_MAX: Duration = Duration::from_millis(500);

/// Checks the merged layer and makes the settings of it.
pub(super) fn settings(layer: &Layer, environment: &[(String, String)]) -> Checked<Settings> {
    layer.check()?;
    let (data_dir, database_url) = database(layer, environment)?;
    let auth_tokens = tokens(&layer.auth.tokens)?;
    let http_listen = layer.http.listen;
    let auth_jwt = jwt(&layer.auth.jwt)?;
    let asks_for_tokens = asks_for_tokens(layer, !auth_tokens.is_empty() || auth_jwt.is_some())?;
    Ok(Settings {
        http_listen,
        health_listen: layer.http.health_listen,
        http: http(&layer.http)?,
        data_dir,
        database: ledger(&layer.database, &database_url),
        audit: audit(&layer.audit),
        database_url,
        redis: redis(&layer.redis)?,
        redis_prefix: prefix(&layer.redis.prefix)?,
        partitions: layer.partitions,
        asks_for_tokens,
        auth_tokens,
        limits: LimitSettings {
            user_per_minute: layer.limits.user_per_minute,
            address_per_minute: layer.limits.address_per_minute,
        },
        auth_jwt,
        series_load: series_load(&layer.series.load)?,
        external: external(&layer.external)?,
        shared: shared(&layer.external, &layer.reference)?,
        log: log(&layer.log)?,
        trace: trace(&layer.trace)?,
        allocator: issuing(layer),
        gauges: gauges(&layer.metrics),
        written: layer.clone(),
    })
}

/// The sources of the first series.
fn series_load(entries: &[String]) -> Checked<Vec<SeriesSource>> {
    if entries.len() > SERIES_SOURCES_MAX {
        return wrong("series.load", format!("has more than {SERIES_SOURCES_MAX} entries"));
    }
    let source = |entry: &String| match &**entry {
        BUILT_IN => Ok(SeriesSource::BuiltIn),
        "" => wrong("series.load", "an entry is empty; name a file, or a folder of files".into()),
        path if path.contains('*') => {
            let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let why = format!("{path}: name the folder, \"{folder}\", for all its *.toml files");
            wrong("series.load", why)
        }
        path => Ok(SeriesSource::Path(path.into())),
    };
    entries.iter().map(source).collect()
}

/// The data folder and the ledger's URL; the folder matters only where the URL is left out.
fn database(layer: &Layer, environment: &[(String, String)]) -> Checked<(PathBuf, String)> {
    let dir = layer.data.dir.clone().or_else(|| data_home(environment));
    let url = match (&layer.database.url, &dir) {
        (Some(url), _) => url.clone(),
        (None, Some(dir)) => format!("sqlite:{}", dir.join("numerator.db").display()),
        (None, None) => {
            return wrong(
                "data.dir",
                "neither XDG_DATA_HOME nor HOME is set, so there is no default; name a folder, \
                 or set database.url"
                    .into(),
            );
        }
    };
    if ["sqlite:", "postgres://", "postgresql://"].iter().all(|scheme| !url.starts_with(scheme)) {
        return wrong(
            "database.url",
            "begins with no known scheme; write sqlite:<path> or postgres://<user>@<host>/<name>"
                .into(),
        );
    }
    Ok((dir.unwrap_or_default(), url))
}

/// The ledger's connections and waits.
fn ledger(database: &layer::Database, url: &str) -> LedgerSettings {
    let usual = if url.starts_with("sqlite:") { Migrate::Auto } else { Migrate::Explicit };
    let lock_timeout = database.lock_timeout.0;
    LedgerSettings {
        connections_max: database.connections_max,
        lock_timeout,
        call_limit: LedgerSettings::call_limit_for(lock_timeout),
        migrate: database.migrate.unwrap_or(usual),
        ..LedgerSettings::default()
    }
}

/// The XDG base directory specification's folder for data, with our name.
fn data_home(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable = |name: &str| {
        let found = environment.iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    variable("XDG_DATA_HOME")
        .or_else(|| variable("HOME").map(|home| home.join(".local").join("share")))
        .map(|home| home.join("numerator"))
}

/// How to reach Redis.
fn redis(redis: &layer::Redis) -> Checked<Option<RedisSettings>> {
    let Some(url) = redis.url.clone() else { return Ok(None) };
    let schemes = [
        "redis://",
        "rediss://",
        "redis-sentinel://",
        "rediss-sentinel://",
        "redis-cluster://",
        "rediss-cluster://",
    ];
    if schemes.iter().all(|scheme| !url.starts_with(scheme)) {
        return wrong(
            "redis.url",
            format!("begins with no known scheme; write one of {}", schemes.join(", ")),
        );
    }
    if let Some(server) = unencrypted(&url).filter(|_| !redis.allow_plaintext) {
        return wrong(
            "redis.url",
            format!(
                "{server} is another machine, and nothing would encrypt what it is told, the \
                 password included; write rediss instead of redis, or redis.allow_plaintext = \
                 true where nobody else is on that network"
            ),
        );
    }
    Ok(Some(RedisSettings {
        url,
        command_timeout: redis.command_timeout.0,
        reconnect_max: RECONNECT_MAX,
    }))
}

/// A brace in the prefix would move the keys' hash tag, and with it their slot.
fn prefix(prefix: &str) -> Checked<String> {
    let is_allowed = |c: char| c.is_ascii_graphic() && c != '{' && c != '}';
    let chars = prefix.chars().count();
    if chars == 0 || chars > PREFIX_CHARS_MAX || !prefix.chars().all(is_allowed) {
        return wrong(
            "redis.prefix",
            format!(
                "{prefix:?} is not a prefix; write 1 to {PREFIX_CHARS_MAX} ASCII characters \
                 without spaces and braces, such as \"nbr\""
            ),
        );
    }
    Ok(prefix.into())
}

/// The log. Its filter is compiled here once, so that a wrong one is refused at start.
fn log(log: &layer::Log) -> Checked<LogSettings> {
    if let Some(filter) = &log.filter
        && let Err(error) = tracing_subscriber::EnvFilter::builder().parse(filter)
    {
        return wrong(
            "log.filter",
            format!("{error}; write a level such as \"info\", or \"info,numerator::web=debug\""),
        );
    }
    Ok(LogSettings {
        format: log.format,
        filter: log.filter.clone(),
        refused_per_second_max: log.refused_per_second_max,
    })
}

/// The target of spans. TLS and other requirements of collectors are the business of one nearby.
fn trace(trace: &layer::Trace) -> Checked<TraceSettings> {
    if trace.otlp_url.as_ref().is_some_and(|url| !url.starts_with("http://")) {
        return wrong(
            "trace.otlp_url",
            "begins with no http://; name a collector nearby, such as \
             http://127.0.0.1:4318/v1/traces, and let it send on"
                .into(),
        );
    }
    Ok(TraceSettings { otlp_url: trace.otlp_url.clone(), sampled_percent: trace.sampled_percent })
}

/// Bounds and waits of issuing.
fn issuing(layer: &Layer) -> ProcessSettings {
    let Layer { node, allocator, ceiling, recovery, .. } = layer;
    let (idempotency_window, idempotency_records_max) = idempotency(layer);
    let node_ttl = node.ttl.0;
    ProcessSettings {
        queue_max: allocator.queue_max,
        caller_queue_max: allocator.caller_queue_max.min(allocator.queue_max),
        flight_max: allocator.flight_max,
        ceiling_step_min: ceiling.step_min,
        ceiling_horizon: ceiling.horizon.0,
        recovery_barrier_max: recovery.barrier_max.0,
        recovery_per_minute_max: recovery.per_minute_max,
        return_after: layer.redis.return_after.0,
        node_ttl,
        clock_offset_max: node.clock_offset_max.0,
        idempotency_window,
        idempotency_records_max,
        idempotency_keep_whole: layer.idempotency.keep_whole,
        journal: JournalSettings::of(layer.journal.queue_max),
        retry_delay: layer.retry.delay.0,
        snowflake: SnowflakeSettings { lease: layer.snowflake.lease.0 },
        sweep: sweep(&layer.sweep, idempotency_window.max(node_ttl * 10)),
        reservations: ReservationSettings {
            ttl: layer.reservations.ttl.0.min(layer.reservations.ttl_max.0),
            ttl_max: layer.reservations.ttl_max.0,
            live_max: layer.reservations.live_max,
        },
        stop_max: allocator.stop_max.0,
        time_limit: layer.http.time_limit.0,
    }
}

/// The sweep. What a retry, or a process that slept, may still ask for is never swept.
fn sweep(sweep: &layer::Sweep, keep_min: Duration) -> SweepSettings {
    SweepSettings::keeping(sweep.keep.0.max(keep_min), sweep.counters_max)
}

fn gauges(metrics: &layer::Metrics) -> GaugeSettings {
    GaugeSettings { counter_keys: metrics.counter_keys, period: metrics.period.0 }
}

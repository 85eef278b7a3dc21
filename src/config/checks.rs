//! Bounds of every setting, and what settings must be to each other.
//!
//! Bounds are there so that no setting can make the service unbounded or useless by a slip; they
//! are wider than any sensible value.

use std::path::PathBuf;
use std::time::Duration;

use super::audit::audit;
use super::bounds::{Checked, millis, secs, wait, within, wrong};
use super::external::external;
use super::idempotency::idempotency;
use super::jwt::jwt;
use super::layer::{self, Layer};
use super::listening::http;
use super::shared::shared;
use super::tokens::{asks_for_tokens, tokens};
use super::{BUILT_IN, DurationText, LogSettings, SeriesSource, Settings, TraceSettings};
use crate::auth::limits::LimitSettings;
use crate::engine::journal::JournalSettings;
use crate::engine::node::{DatabaseRetries, ProcessSettings, SnowflakeSettings, SweepSettings};
use crate::ledger::{LedgerSettings, Migrate, SNOWFLAKE_LEASE_MAX};
use crate::redis::{Flight, RedisSettings, unencrypted};
use crate::telemetry::gauges::GaugeSettings;

/// For windows that are written in days.
const DAY: Duration = Duration::from_secs(86_400);
/// Files and folders of the first series.
const SERIES_SOURCES_MAX: usize = 100;
/// A prefix stands in every key of Redis, so it is short.
const PREFIX_CHARS_MAX: usize = 32;

/// Checks the merged layer and makes the settings of it.
pub(super) fn settings(layer: &Layer, environment: &[(String, String)]) -> Checked<Settings> {
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
        database: ledger(&layer.database, &database_url)?,
        audit: audit(&layer.audit)?,
        archive_retention_years: within(
            "archive.retention_years",
            layer.archive.retention_years,
            1..=100,
        )?,
        database_url,
        redis: redis(&layer.redis)?,
        redis_prefix: prefix(&layer.redis.prefix)?,
        partitions: within("partitions", layer.partitions, 1..=1_024)?,
        asks_for_tokens,
        auth_tokens,
        limits: LimitSettings {
            user_per_minute: limit("limits.user_per_minute", layer.limits.user_per_minute)?,
            address_per_minute: limit(
                "limits.address_per_minute",
                layer.limits.address_per_minute,
            )?,
        },
        approval_limit: wait(
            "approval.time_limit",
            layer.approval.time_limit,
            secs(60)..=DurationText(30 * DAY),
        )?,
        auth_jwt,
        series_load: series_load(&layer.series.load)?,
        external: external(&layer.external)?,
        shared: shared(&layer.external, &layer.reference)?,
        log: log(&layer.log)?,
        trace: trace(&layer.trace)?,
        allocator: issuing(layer)?,
        gauges: gauges(&layer.metrics)?,
    })
}

/// A limit in numbers a minute; 0: none.
fn limit(setting: &'static str, per_minute: u64) -> Checked<u64> {
    within(setting, per_minute, 0..=1_000_000)
}

/// Where the first series come from.
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

/// Bounds of the ledger's connections and waits.
fn ledger(database: &layer::Database, url: &str) -> Checked<LedgerSettings> {
    let layer::Database { connections_max, lock_timeout, call_limit, .. } = *database;
    let usual = if url.starts_with("sqlite:") { Migrate::Auto } else { Migrate::Explicit };
    let lock_timeout = wait("database.lock_timeout", lock_timeout, millis(100)..=secs(60))?;
    // A statement that waits for its lock to the end has two seconds more.
    let call_limit_min = DurationText(lock_timeout + Duration::from_secs(3));
    Ok(LedgerSettings {
        connections_max: within("database.connections_max", connections_max, 1..=1_000)?,
        lock_timeout,
        call_limit: wait("database.call_limit", call_limit, call_limit_min..=secs(600))?,
        migrate: database.migrate.unwrap_or(usual),
        migrate_lock_timeout: wait(
            "database.migrate_lock_timeout",
            database.migrate_lock_timeout,
            millis(10)..=secs(60),
        )?,
        migrate_attempts: within(
            "database.migrate_attempts",
            database.migrate_attempts,
            1..=100_000,
        )?,
        proof_key: None,
    })
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

/// How to reach Redis. Its waits are checked even where no URL makes use of them: a typing error
/// should not wait for the day on which Redis is switched on.
fn redis(redis: &layer::Redis) -> Checked<Option<RedisSettings>> {
    let command_timeout =
        wait("redis.command_timeout", redis.command_timeout, millis(10)..=secs(60))?;
    let reconnect_max = wait("redis.reconnect_max", redis.reconnect_max, millis(10)..=secs(60))?;
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
    Ok(Some(RedisSettings { url, command_timeout, reconnect_max }))
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
            format!("{error}; write a level such as \"info\", or \"info,numerator::http=debug\""),
        );
    }
    let refused = log.refused_per_second_max;
    Ok(LogSettings {
        format: log.format,
        filter: log.filter.clone(),
        refused_per_second_max: within("log.refused_per_second_max", refused, 0..=1_000_000)?,
    })
}

/// Where spans go. TLS and what collectors ask for beyond it are the business of one nearby.
fn trace(trace: &layer::Trace) -> Checked<TraceSettings> {
    if trace.otlp_url.as_ref().is_some_and(|url| !url.starts_with("http://")) {
        return wrong(
            "trace.otlp_url",
            "begins with no http://; name a collector nearby, such as \
             http://127.0.0.1:4318/v1/traces, and let it send on"
                .into(),
        );
    }
    Ok(TraceSettings {
        otlp_url: trace.otlp_url.clone(),
        sampled_percent: within("trace.sampled_percent", trace.sampled_percent, 0..=100)?,
    })
}

/// Bounds and waits of issuing, and what they must be to each other.
fn issuing(layer: &Layer) -> Checked<ProcessSettings> {
    let Layer { node, allocator, ceiling, retry, recovery, redis, .. } = layer;
    let (idempotency_window, idempotency_records_max) = idempotency(layer)?;
    let queue_max = within("allocator.queue_max", allocator.queue_max, 1..=1_000_000)?;
    let heartbeat = wait("node.heartbeat", node.heartbeat, millis(10)..=secs(60))?;
    let delay_min = wait("retry.delay_min", retry.delay_min, millis(1)..=secs(60))?;
    // Fewer than four heartbeats in a time-to-live make live nodes look silent.
    let ttl_min = DurationText(heartbeat * 4);
    let ttl = wait("node.ttl", node.ttl, ttl_min..=secs(3_600))?;
    Ok(ProcessSettings {
        queue_max,
        caller_queue_max: within(
            "allocator.caller_queue_max",
            allocator.caller_queue_max,
            1..=1_000_000,
        )?
        .min(queue_max),
        flight_max: within("allocator.flight_max", allocator.flight_max, 1..=Flight::REQUESTS_MAX)?,
        counters_max: within("allocator.counters_max", allocator.counters_max, 1..=100_000_000)?,
        ceiling_step_min: within("ceiling.step_min", ceiling.step_min, 1..=1_000_000)?,
        ceiling_horizon: wait("ceiling.horizon", ceiling.horizon, millis(100)..=secs(3_600))?,
        seed_grace: wait("seed.grace", layer.seed.grace, millis(10)..=secs(60))?,
        recovery_open_timeout: wait(
            "recovery.open_timeout",
            recovery.open_timeout,
            millis(10)..=secs(60),
        )?,
        recovery_barrier_max: wait(
            "recovery.barrier_max",
            recovery.barrier_max,
            millis(10)..=secs(60),
        )?,
        recovery_per_minute_max: within(
            "recovery.per_minute_max",
            recovery.per_minute_max,
            1..=100,
        )?,
        recovery_settle_max: wait(
            "recovery.settle_max",
            recovery.settle_max,
            millis(1)..=secs(60),
        )?,
        fallback_after: wait(
            "redis.fallback_after",
            redis.fallback_after,
            millis(10)..=secs(3_600),
        )?,
        return_after: wait("redis.return_after", redis.return_after, millis(10)..=secs(3_600))?,
        probe_period: wait("redis.probe_period", redis.probe_period, millis(10)..=secs(60))?,
        node_heartbeat: heartbeat,
        node_ttl: ttl,
        clock_offset_max: clock_offset_max(node)?,
        idempotency_window,
        idempotency_records_max,
        idempotency_keep_whole: layer.idempotency.keep_whole,
        journal: journal(&layer.journal)?,
        retry_delay_min: delay_min,
        retry_delay_max: wait(
            "retry.delay_max",
            retry.delay_max,
            DurationText(delay_min)..=secs(60),
        )?,
        retry_attempts_max: within("retry.attempts_max", retry.attempts_max, 0..=100)?,
        database_retries: retries(retry)?,
        snowflake: snowflake(&layer.snowflake)?,
        sweep: sweep(&layer.sweep, idempotency_window.max(ttl * 10))?,
        stop_max: wait("allocator.stop_max", allocator.stop_max, millis(100)..=secs(3_600))?,
        time_limit: wait("http.time_limit", layer.http.time_limit, millis(100)..=secs(3_600))?,
    })
}

/// How far clocks may be apart; who cannot set one writes more than it is.
fn clock_offset_max(node: &layer::Node) -> Checked<Duration> {
    wait("node.clock_offset_max", node.clock_offset_max, secs(1)..=DurationText(DAY * 3_650))
}

/// Bounds of the journal.
fn journal(journal: &layer::Journal) -> Checked<JournalSettings> {
    let queue_max = within("journal.queue_max", journal.queue_max, 1..=10_000_000)?;
    Ok(JournalSettings {
        queue_max,
        keep: wait("journal.keep", journal.keep, millis(1)..=secs(3_600))?,
        batch_rows_max: within(
            "journal.batch_rows_max",
            journal.batch_rows_max,
            1..=queue_max.min(50_000),
        )?,
    })
}

/// Further tries on the database path: as few as leave each request its time limit.
fn retries(retry: &layer::Retry) -> Checked<DatabaseRetries> {
    let delay = |setting, delay| wait(setting, delay, millis(1)..=secs(60));
    let attempts = |setting, attempts| within(setting, attempts, 0..=10);
    Ok(DatabaseRetries {
        lock_attempts: attempts("retry.lock_attempts", retry.lock_attempts)?,
        lock_delay: delay("retry.lock_delay", retry.lock_delay)?,
        conflict_attempts: attempts("retry.conflict_attempts", retry.conflict_attempts)?,
        connection_attempts: attempts("retry.connection_attempts", retry.connection_attempts)?,
        connection_delay: delay("retry.connection_delay", retry.connection_delay)?,
    })
}

/// Ids of `{SNOWFLAKE}`.
fn snowflake(snowflake: &layer::Snowflake) -> Checked<SnowflakeSettings> {
    let lease_max = DurationText(SNOWFLAKE_LEASE_MAX);
    Ok(SnowflakeSettings {
        lease: wait("snowflake.lease", snowflake.lease, millis(100)..=lease_max)?,
        clock_wait_max: wait(
            "snowflake.clock_wait_max",
            snowflake.clock_wait_max,
            millis(1)..=secs(10),
        )?,
    })
}

/// The sweep. What a retry, or a process that slept, may still ask for is never swept.
fn sweep(sweep: &layer::Sweep, keep_min: Duration) -> Checked<SweepSettings> {
    let longest = DurationText(DAY * 3_650);
    Ok(SweepSettings {
        period: wait("sweep.period", sweep.period, secs(1)..=DurationText(DAY))?,
        keep: wait("sweep.keep", sweep.keep, secs(1)..=longest)?.max(keep_min),
        counters_max: within("sweep.counters_max", sweep.counters_max, 1..=1_000_000_000)?,
        epoch_min: wait("sweep.epoch_min", sweep.epoch_min, secs(1)..=longest)?,
    })
}

/// Bounds of the gauges: each counter shown is a label that Prometheus keeps.
fn gauges(metrics: &layer::Metrics) -> Checked<GaugeSettings> {
    Ok(GaugeSettings {
        counters_max: within("metrics.counters_max", metrics.counters_max, 0..=1_000)?,
        counter_keys: metrics.counter_keys,
        period: wait("metrics.period", metrics.period, millis(100)..=secs(600))?,
    })
}

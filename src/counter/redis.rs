//! The connection: fred, set up so that a command is written once and never again by the client.
//!
//! Must never let the client repeat a command (it does so by default), never drop a call that may
//! have been written, and never take a connection for a sign of health: only an answer is one.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fred::clients::Client;
use fred::interfaces::{ClientLike, EventInterface, LuaInterface};
use fred::types::config::{Config, ReconnectPolicy, TcpConfig, UnresponsiveConfig};
use fred::types::{Builder, Value};

use super::call::{Call, Verb};
use super::reply::{answer, garbled};
use super::{CounterError, Keys};

/// Calls that may wait inside the client; a node has one in the air per partition.
const WAITING_CALLS_MAX: usize = 4_096;

/// First wait before connecting again; doubles up to `reconnect_max`.
const RECONNECT_MIN_MS: u32 = 10;

/// How to reach Redis.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    /// `redis://`, `rediss://`, `redis-sentinel://` or `redis-cluster://`.
    pub url: String,
    /// After this long without a reply a call's outcome is unknown.
    pub command_timeout: Duration,
    /// Longest wait between two attempts to connect.
    pub reconnect_max: Duration,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether it is a master.
    pub is_master: bool,
    /// Its `master_replid`.
    pub incarnation: String,
}

/// A connection to the Redis that owns the fast path. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {
    client: Client,
    is_stopping: Arc<AtomicBool>,
}

impl Redis {
    /// Starts the client; connects in the background and reconnects for ever. Does not fail because
    /// Redis is down. Call it inside the runtime.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn start(settings: &RedisSettings) -> Result<Self, CounterError> {
        let client = build_client(settings)
            .map_err(|error| CounterError::NotExecuted(format!("redis.url: {error}")))?;
        let redis = Redis { client, is_stopping: Arc::default() };
        tokio::spawn(redis.clone().keep_connected(settings.reconnect_max));
        tokio::spawn(log_errors(&redis.client));
        Ok(redis)
    }

    /// Asks the server of a partition who it is (through a script, so that the answer comes from
    /// where the partition's keys live). On a master the script also writes, so that a server that
    /// refuses writes is not taken for healthy (F22).
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn probe(&self, keys: &Keys, partition: u32) -> Result<Probe, CounterError> {
        let echo = format!("probe {partition}");
        let call = Call::new(Verb::Probe, echo, vec![keys.probe(partition)], vec![]);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            if word != call.verb.word() {
                return Err(garbled(&format!("unexpected word {word:?}")));
            }
            let probe = Probe { is_master: parts.text()? == "master", incarnation: parts.text()? };
            parts.end()?;
            Ok(probe)
        })
        .await
    }

    /// Closes the connection.
    pub async fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        let client = self.client.clone();
        // A farewell that fails leaves a connection that the server closes by itself.
        let farewell = tokio::spawn(async move { client.quit().await });
        if let Ok(Err(error)) = farewell.await {
            tracing::debug!(%error, "redis did not say goodbye");
        }
    }

    /// Makes a call and reads its answer. An answer that cannot be read closes the connection: the
    /// replies behind it may be out of step.
    pub(super) async fn ask<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Call, Value) -> Result<T, CounterError>,
    ) -> Result<T, CounterError> {
        let result = self.call(call).await.and_then(|value| read(call, value));
        if let Err(error) = &result {
            if let CounterError::Garbled(reason) = error {
                tracing::error!(
                    call = call.echo,
                    reason,
                    "redis gave an answer that no script gives"
                );
                self.reconnect();
            } else if error.is_readonly() {
                self.reconnect();
            }
        }
        result
    }

    /// Sends a call in a task of its own: a caller that goes away cannot drop it half-way.
    async fn call(&self, call: &Call) -> Result<Value, CounterError> {
        let (client, call) = (self.client.clone(), call.clone());
        finish(async move {
            let script = call.verb.script();
            let (keys, args) = (call.keys.clone(), call.args.clone());
            match client.evalsha(script.sha1().clone(), keys, args).await {
                // The script was not known, so it did not run; sent with its text, it is from now on.
                Err(error) if error.details().starts_with("NOSCRIPT") => {
                    let text = script.lua().cloned().unwrap_or_default();
                    client.eval(text, call.keys, call.args).await
                }
                outcome => outcome,
            }
        })
        .await
    }

    /// Closes the connection and looks for the server again, without waiting for it.
    fn reconnect(&self) {
        let client = self.client.clone();
        tokio::spawn(async move {
            if let Err(error) = client.force_reconnection().await {
                tracing::warn!(%error, "redis connection could not be renewed");
            }
        });
    }

    /// Runs the client. It ends by itself only when stopped or on what it takes for a mistake in the
    /// settings, which a server that is being set up may cause for a while.
    async fn keep_connected(self, pause: Duration) {
        while !self.is_stopping.load(Ordering::SeqCst) {
            match self.client.connect().await {
                Ok(Err(error)) => tracing::warn!(%error, "redis client ended; starting it again"),
                Ok(Ok(())) => break,
                Err(error) => tracing::error!(%error, "redis client died; starting it again"),
            }
            tokio::time::sleep(pause).await;
        }
    }
}

/// The client, by the recipe: one write attempt, own time-outs, bounded queue.
fn build_client(settings: &RedisSettings) -> Result<Client, fred::error::Error> {
    let mut config = Config::from_url(&settings.url)?;
    // A server that is down at first is one to wait for.
    config.fail_fast = false;
    let timeout = settings.command_timeout;
    let reconnect_max_ms = u32::try_from(settings.reconnect_max.as_millis()).unwrap_or(u32::MAX);
    let policy = ReconnectPolicy::new_exponential(0, RECONNECT_MIN_MS, reconnect_max_ms.max(1), 2);
    Builder::from_config(config)
        .with_performance_config(|performance| performance.default_command_timeout = timeout)
        .with_connection_config(|connection| {
            connection.max_command_attempts = 1;
            connection.max_command_buffer_len = WAITING_CALLS_MAX;
            connection.connection_timeout = timeout;
            connection.internal_command_timeout = timeout;
            connection.tcp = TcpConfig {
                nodelay: Some(true),
                keepalive: Some(
                    fred::socket2::TcpKeepalive::new()
                        .with_time(Duration::from_secs(1))
                        .with_interval(Duration::from_secs(1)),
                ),
                ..TcpConfig::default()
            };
            // The second net: a connection that stays silent is closed and made anew.
            connection.unresponsive = UnresponsiveConfig {
                max_timeout: Some(timeout * 2),
                interval: (timeout / 2).max(Duration::from_millis(10)),
            };
        })
        .set_policy(policy)
        .build()
}

/// Runs a call to its end, whatever becomes of whoever waits for it.
async fn finish(
    call: impl Future<Output = Result<Value, fred::error::Error>> + Send + 'static,
) -> Result<Value, CounterError> {
    match tokio::spawn(call).await {
        Ok(outcome) => outcome.map_err(|error| CounterError::classify(&error)),
        Err(error) => Err(CounterError::Unknown(error.to_string())),
    }
}

/// Tells the log what happens to the connection outside of calls; ends with the client.
fn log_errors(client: &Client) -> impl Future<Output = ()> + Send + 'static {
    let mut errors = client.error_rx();
    async move {
        use tokio::sync::broadcast::error::RecvError;
        loop {
            match errors.recv().await {
                Ok((error, _)) => tracing::warn!(%error, "redis connection"),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    }
}

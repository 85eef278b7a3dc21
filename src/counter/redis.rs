//! The connection: fred, set up so that a command is written once and never again by the client.
//!
//! Must never let the client repeat a command (it does so by default), never drop a call that may
//! have been written, and never take a connection for a sign of health: only an answer is one.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface, LuaInterface};
use fred::types::config::{Config, ReconnectPolicy, TcpConfig, UnresponsiveConfig};
use fred::types::{Builder, ConnectHandle, Value};
use tokio::task::AbortHandle;

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
    /// The ledger that the partition's owner record belongs to; `None` where there is no record.
    pub deployment: Option<String>,
}

/// A connection to the Redis that owns the fast path. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {
    shared: Arc<Shared>,
}

/// What all clones share.
#[derive(Debug)]
struct Shared {
    settings: RedisSettings,
    link: Mutex<Link>,
    is_stopping: AtomicBool,
    /// Replies since the start, of any kind.
    replies: AtomicU64,
}

/// The client in use; replaced as a whole when its connection is given up.
#[derive(Clone, Debug)]
struct Link {
    generation: u64,
    client: Client,
    runner: AbortHandle,
}

impl Redis {
    /// Starts the client; connects in the background and reconnects for ever. Does not fail because
    /// Redis is down. Call it inside the runtime.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn start(settings: &RedisSettings) -> Result<Self, CounterError> {
        let link = Link::start(settings, 0)
            .map_err(|error| CounterError::NotExecuted(format!("redis.url: {error}")))?;
        let shared = Shared {
            settings: settings.clone(),
            link: Mutex::new(link),
            is_stopping: AtomicBool::new(false),
            replies: AtomicU64::new(0),
        };
        Ok(Redis { shared: Arc::new(shared) })
    }

    /// Asks the server of a partition who it is (through a script, so that the answer comes from
    /// where the partition's keys live). On a master the script also writes, so that a server that
    /// refuses writes is not taken for healthy (F22).
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn probe(&self, keys: &Keys, partition: u32) -> Result<Probe, CounterError> {
        let echo = format!("probe {partition}");
        let keys = vec![keys.probe(partition), keys.owner(partition)];
        let call = Call::new(Verb::Probe, echo, keys, vec![]);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            if word != call.verb.word() {
                return Err(garbled(&format!("unexpected word {word:?}")));
            }
            let probe = Probe {
                is_master: parts.text()? == "master",
                incarnation: parts.text()?,
                deployment: Some(parts.text()?).filter(|deployment| !deployment.is_empty()),
            };
            parts.end()?;
            Ok(probe)
        })
        .await
    }

    /// Closes the connection.
    pub async fn stop(&self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        let Link { client, runner, .. } = self.link();
        // A farewell that fails leaves a connection that goes with its runner.
        let farewell = tokio::spawn(async move { client.quit().await });
        if let Ok(Err(error)) = farewell.await {
            tracing::debug!(%error, "redis did not say goodbye");
        }
        runner.abort();
    }

    /// Makes a call and reads its answer. An answer that cannot be read closes the connection: the
    /// replies behind it may be out of step.
    pub(super) async fn ask<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Call, Value) -> Result<T, CounterError>,
    ) -> Result<T, CounterError> {
        let link = self.link();
        let result = self.call(&link, call).await.and_then(|value| read(call, value));
        match &result {
            Err(CounterError::Garbled(reason)) => {
                let call = &call.echo;
                tracing::error!(call, reason, "redis gave an answer that no script gives");
                self.renew(link.generation);
            }
            Err(error) if error.is_readonly() => self.renew(link.generation),
            _ => {}
        }
        result
    }

    /// Sends a call and judges its failure.
    async fn call(&self, link: &Link, call: &Call) -> Result<Value, CounterError> {
        let replies = &self.shared.replies;
        let replies_before = replies.load(Ordering::SeqCst);
        let error = match finish(send(link.client.clone(), call.clone())).await {
            Ok(value) => {
                replies.fetch_add(1, Ordering::SeqCst);
                return Ok(value);
            }
            Err(error) => error,
        };
        let judged = CounterError::classify(&error);
        if !matches!(judged, CounterError::Unknown(_)) {
            replies.fetch_add(1, Ordering::SeqCst);
        }
        // The client's own check starts anew with each write, so a peer that went silent would
        // never be noticed while calls go on. One that has answered nobody for a whole time-out is
        // given up.
        let is_silent = replies.load(Ordering::SeqCst) == replies_before;
        if *error.kind() == ErrorKind::Timeout && is_silent && link.client.is_connected() {
            tracing::warn!("redis is silent; connecting anew");
            self.renew(link.generation);
        }
        Err(judged)
    }

    fn link(&self) -> Link {
        self.shared.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives up a connection and makes another one. The client is replaced whole, because it would
    /// queue a wish to reconnect behind a write that a stopped peer never accepts.
    fn renew(&self, generation: u64) {
        let mut link = self.shared.link.lock().unwrap_or_else(PoisonError::into_inner);
        if link.generation != generation || self.shared.is_stopping.load(Ordering::SeqCst) {
            return;
        }
        match Link::start(&self.shared.settings, generation + 1) {
            Ok(next) => {
                link.runner.abort();
                *link = next;
            }
            Err(error) => tracing::error!(%error, "redis client cannot be started"),
        }
    }
}

impl Link {
    fn start(settings: &RedisSettings, generation: u64) -> Result<Self, Error> {
        let client = build_client(settings)?;
        tokio::spawn(log_errors(&client));
        let runner = tokio::spawn(keep_connected(client.clone(), settings.reconnect_max));
        Ok(Link { generation, client, runner: runner.abort_handle() })
    }
}

/// Runs the client until its task is aborted. The client ends by itself when it is told to quit, or
/// on what it takes for a mistake in the settings: a server that is being set up causes that too.
async fn keep_connected(client: Client, pause: Duration) {
    loop {
        let mut connection = Connection(client.connect());
        match (&mut connection.0).await {
            Ok(Ok(())) => tracing::debug!("redis client ended"),
            Ok(Err(error)) => tracing::warn!(%error, "redis client ended; starting it again"),
            Err(error) => tracing::error!(%error, "redis client died; starting it again"),
        }
        tokio::time::sleep(pause).await;
    }
}

/// The client's task, which holds the socket; ends with its runner.
struct Connection(ConnectHandle);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The client, by the recipe: one write attempt, own time-outs, bounded queue.
fn build_client(settings: &RedisSettings) -> Result<Client, Error> {
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

/// Calls a script by its hash, and by its text where the server does not know it: then it did not
/// run, and is known from then on.
async fn send(client: Client, call: Call) -> Result<Value, Error> {
    let script = call.verb.script();
    let (keys, args) = (call.keys.clone(), call.args.clone());
    match client.evalsha(script.sha1().clone(), keys, args).await {
        Err(error) if error.details().starts_with("NOSCRIPT") => {
            let text = script.lua().cloned().unwrap_or_default();
            client.eval(text, call.keys, call.args).await
        }
        outcome => outcome,
    }
}

/// Runs a call to its end in a task of its own: a caller that goes away cannot drop it half-way.
async fn finish(
    call: impl Future<Output = Result<Value, Error>> + Send + 'static,
) -> Result<Value, Error> {
    tokio::spawn(call)
        .await
        .unwrap_or_else(|error| Err(Error::new(ErrorKind::Canceled, error.to_string())))
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

//! The connection to one Redis server: fred, set up so that a command is written once and never
//! again by the client.
//!
//! Must never let the client repeat a command (it does so by default), never drop a call that may
//! have been written, and never take a connection for a sign of health: only an answer is one.
//! Always speaks to a single server: masters are located elsewhere.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface, LuaInterface};
use fred::types::config::{Config, ReconnectPolicy, ServerConfig, TcpConfig, UnresponsiveConfig};
use fred::types::{Builder, ClusterHash, ConnectHandle, CustomCommand, Value};
use numerator_runtime::task::spawn;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use super::call::Call;
use super::last_failure::LastFailure;
use super::{CounterError, RedisSettings};

/// Calls that may wait inside the client; a node has one in flight per partition.
const WAITING_CALLS_MAX: usize = 4_096;

/// First wait before connecting again; doubles up to `reconnect_max`.
const RECONNECT_MIN_MS: u32 = 10;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Address {
    /// Name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// What to connect with: credentials, TLS and database from the URL; the waits. `Debug` leaves the
/// credentials out.
#[derive(Clone)]
pub(super) struct Access {
    /// The client's settings; their server is replaced by the one to connect to.
    pub config: Config,
    /// The waits.
    pub settings: RedisSettings,
    /// The runtime that has the connections, whatever the caller.
    pub runtime: Handle,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The connection to one server: connects in the background and reconnects forever.
#[derive(Debug)]
pub(super) struct Link {
    access: Access,
    address: Address,
    wire: Mutex<Wire>,
    /// Shared with the runner, which ends with a client that was asked to stop.
    is_closed: Arc<AtomicBool>,
    /// Replies since the start, of any kind.
    replies: AtomicU64,
    /// Why it is not connected.
    last_failure: Arc<LastFailure>,
}

/// The client in use; replaced as a whole when its connection is given up.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    generation: u64,
    client: Client,
    runner: AbortHandle,
}

impl Link {
    /// Starts a client for one server.
    ///
    /// # Errors
    /// When the client refuses the settings.
    pub(super) fn start(access: &Access, address: &Address) -> Result<Self, Error> {
        let (is_closed, last_failure) = (Arc::new(AtomicBool::new(false)), Arc::default());
        Ok(Link {
            access: access.clone(),
            address: address.clone(),
            wire: Mutex::new(Wire::start(access, address, 0, (&is_closed, &last_failure))?),
            is_closed,
            replies: AtomicU64::new(0),
            last_failure,
        })
    }

    /// The server.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// The client at present. An error of a call concerns the wire by which the call went.
    pub(super) fn wire(&self) -> Wire {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls a script; a caller that is dropped does not cancel the call.
    ///
    /// # Errors
    /// What the client says.
    pub(super) async fn call(&self, wire: &Wire, call: &Call) -> Result<Value, Error> {
        self.watch(wire, finish(evaluate(wire.client.clone(), call.clone()))).await
    }

    /// Asks the server about itself and others: a command without keys that changes nothing.
    ///
    /// # Errors
    /// What the client says.
    pub(super) async fn inquire(
        &self,
        command: &'static str,
        arguments: Vec<String>,
    ) -> Result<Value, Error> {
        let wire = self.wire();
        let command = CustomCommand::new_static(command, ClusterHash::FirstKey, false);
        let client = wire.client.clone();
        let question = async move { client.custom::<Value, _>(command, arguments).await };
        self.watch(&wire, finish(question)).await
    }

    /// Counts replies, and gives the wire up when its peer is silent. The client's own check
    /// restarts with each write, so a peer that fell silent would never be noticed while calls go
    /// on. A peer that has answered no call for a whole time-out is given up.
    async fn watch(
        &self,
        wire: &Wire,
        call: impl Future<Output = Result<Value, Error>>,
    ) -> Result<Value, Error> {
        let replies_before = self.replies.load(Ordering::SeqCst);
        let outcome = call.await;
        let is_reply = match &outcome {
            Ok(_) => true,
            Err(error) => !matches!(CounterError::classify(error), CounterError::Unknown(_)),
        };
        if is_reply {
            self.replies.fetch_add(1, Ordering::SeqCst);
            self.last_failure.clear();
        }
        let timed_out = matches!(&outcome, Err(error) if *error.kind() == ErrorKind::Timeout);
        let is_silent = self.replies.load(Ordering::SeqCst) == replies_before;
        if timed_out && is_silent && wire.client.is_connected() {
            tracing::warn!(server = %self.address, "redis is silent; connecting anew");
            self.renew(wire);
        }
        outcome
    }

    /// What an error of a call proves, with the reason if the server is not reached: the call's own
    /// time-out does not name it.
    pub(super) fn judge(&self, wire: &Wire, error: &Error) -> CounterError {
        match CounterError::classify(error) {
            CounterError::Unknown(_)
                if !wire.client.is_connected() && self.failure_reason().is_some() =>
            {
                CounterError::Unknown(self.failure_reason().unwrap_or_default())
            }
            judged => judged,
        }
    }

    /// Why the server is not reached, if that is known.
    pub(super) fn failure_reason(&self) -> Option<String> {
        self.last_failure.failure_reason()
    }

    /// Gives up a wire and makes another one, unless that was done before. The client is replaced
    /// whole, because it would queue a request to reconnect behind a write that a stopped peer
    /// never accepts.
    pub(super) fn renew(&self, lost: &Wire) {
        let mut wire = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if wire.generation != lost.generation || self.is_closed.load(Ordering::SeqCst) {
            return;
        }
        let shared = (&self.is_closed, &self.last_failure);
        match Wire::start(&self.access, &self.address, lost.generation + 1, shared) {
            Ok(next) => {
                wire.runner.abort();
                *wire = next;
            }
            Err(error) => tracing::error!(%error, "redis client cannot be started"),
        }
    }

    /// Ends it immediately: calls in flight have an unknown outcome.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        self.wire().runner.abort();
    }

    /// Ends it in good order.
    pub(super) async fn stop(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let Wire { client, runner, .. } = self.wire();
        // If closing fails, the connection ends with its runner.
        let farewell = tokio::spawn(async move { client.quit().await });
        if let Ok(Err(error)) = farewell.await {
            tracing::debug!(%error, "redis did not say goodbye");
        }
        runner.abort();
    }
}

impl Wire {
    fn start(
        access: &Access,
        address: &Address,
        generation: u64,
        (is_closed, last_failure): (&Arc<AtomicBool>, &Arc<LastFailure>),
    ) -> Result<Self, Error> {
        let _runtime = access.runtime.enter();
        let client = build_client(access, address)?;
        tokio::spawn(log_errors(&client, address.clone(), Arc::clone(last_failure)));
        let shared = (Arc::clone(is_closed), Arc::clone(last_failure));
        let runner = keep_connected(client.clone(), access.settings.reconnect_max, shared);
        let runner = tokio::spawn(runner);
        Ok(Wire { generation, client, runner: runner.abort_handle() })
    }
}

/// Runs the client until its task is aborted. The client ends on its own when it is asked to quit,
/// or on what it takes for an error in the settings: a server during set-up also causes that.
async fn keep_connected(
    client: Client,
    pause: Duration,
    (is_closed, last_failure): (Arc<AtomicBool>, Arc<LastFailure>),
) {
    let mut last = None;
    loop {
        let mut connection = Connection(client.connect());
        match (&mut connection.0).await {
            // After a requested end, its result is of no interest.
            _ if is_closed.load(Ordering::SeqCst) => return,
            Ok(Ok(())) => tracing::debug!("redis client ended"),
            Ok(Err(error)) => {
                last_failure.note(&error);
                // Logged once, not at each attempt.
                if last.replace(error.to_string()).is_none_or(|last| last != error.to_string()) {
                    tracing::warn!(%error, "redis client ended; starting it again");
                }
            }
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

/// The client with its required settings: one write attempt, own time-outs, bounded queue.
fn build_client(access: &Access, address: &Address) -> Result<Client, Error> {
    let mut config = access.config.clone();
    config.server = ServerConfig::new_centralized(address.host.clone(), address.port);
    // A server that is down at first is waited for.
    config.fail_fast = false;
    let timeout = access.settings.command_timeout;
    let reconnect_max_ms = access.settings.reconnect_max.as_millis();
    let reconnect_max_ms = u32::try_from(reconnect_max_ms).unwrap_or(u32::MAX).max(1);
    let policy = ReconnectPolicy::new_exponential(0, RECONNECT_MIN_MS, reconnect_max_ms, 2);
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
            // The second safety net: a connection that stays silent is closed and made anew.
            connection.unresponsive = UnresponsiveConfig {
                max_timeout: Some(timeout * 2),
                interval: (timeout / 2).max(Duration::from_millis(10)),
            };
        })
        .set_policy(policy)
        .build()
}

/// Calls a script by its hash, and by its text if the server does not know the hash: then it did
/// not run, and is known from then on.
async fn evaluate(client: Client, call: Call) -> Result<Value, Error> {
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

/// Runs a call to its end in a task of its own: a dropped caller cannot cancel it half-way.
fn finish(
    call: impl Future<Output = Result<Value, Error>> + Send + 'static,
) -> impl Future<Output = Result<Value, Error>> + Send {
    let task = spawn(call);
    async move {
        task.await.unwrap_or_else(|error| Err(Error::new(ErrorKind::Canceled, error.to_string())))
    }
}

/// Logs what happens to the connection outside of calls; ends with the client.
fn log_errors(
    client: &Client,
    server: Address,
    last_failure: Arc<LastFailure>,
) -> impl Future<Output = ()> + Send + 'static {
    let mut errors = client.error_rx();
    async move {
        use tokio::sync::broadcast::error::RecvError;
        let mut last = String::new();
        loop {
            match errors.recv().await {
                Ok((error, _)) => {
                    last_failure.note(&error);
                    let text = error.to_string();
                    // Logged once, not at each attempt.
                    if text == last {
                        tracing::debug!(%server, %error, "redis connection");
                    } else {
                        tracing::warn!(%server, %error, "redis connection");
                    }
                    last = text;
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => break,
            }
        }
    }
}

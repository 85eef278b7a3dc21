//! Redis as the rest of the program sees it: one interface, whatever its shape.
//!
//! Sends each call to the master of its keys, once, and judges the reply. Must never send a call
//! again: an outcome that is unknown stays unknown, and its caller decides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fred::types::Value;
use numerator_runtime::metrics::RedisMeter;
use tokio::time::Instant;

use super::call::{Call, Verb};
use super::link::{Link, Wire};
use super::masters::Masters;
use super::reply::{answer, garbled};
use super::{Completeness, CounterError, Keys};

/// How to reach Redis. `Debug` leaves the URL out: it may hold a password.
#[derive(Clone)]
pub struct RedisSettings {
    /// `redis://`, `redis-sentinel://` or `redis-cluster://`; `rediss…` for TLS.
    pub url: String,
    /// After this long without a reply a call's outcome is unknown.
    pub command_timeout: Duration,
    /// Longest wait between two attempts to connect.
    pub reconnect_max: Duration,
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("command_timeout", &self.command_timeout)
            .field("reconnect_max", &self.reconnect_max)
            .finish_non_exhaustive()
    }
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether it is a master.
    pub is_master: bool,
    /// Its `master_replid`.
    pub incarnation: String,
    /// The ledger that the partition's owner record belongs to; `None` if there is no record.
    pub deployment: Option<String>,
    /// Which idempotency records the partition has; `None` if there is no record.
    pub records: Option<Completeness>,
}

/// The Redis that owns the fast path. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Redis {
    pub(super) masters: Arc<Masters>,
    meter: Arc<RedisMeter>,
}

impl Redis {
    /// Starts the clients; connects in the background and reconnects forever. Does not fail if
    /// Redis is down. Call it inside the runtime.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn start(settings: &RedisSettings) -> Result<Self, CounterError> {
        let masters = Masters::start(settings)
            .map_err(|error| CounterError::NotExecuted(format!("redis.url: {error}")))?;
        Ok(Redis { masters, meter: Arc::default() })
    }

    /// Asks the master of a partition for its identity (through a script, so that the answer comes
    /// from where the partition's keys are), after a new look for that master. On a master the
    /// script also writes, so that a server that refuses writes does not count as healthy (F22).
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn probe(&self, keys: &Keys, partition: u32) -> Result<Probe, CounterError> {
        let echo = format!("probe {partition}");
        let keys = vec![keys.probe(partition), keys.owner(partition)];
        let call = Call::new(Verb::Probe, echo, keys, Vec::<String>::new());
        self.masters.poll_again().await;
        let link = self.masters.link(call.key()).await?;
        let wire = link.wire();
        let probe = self.ask_by(&link, &wire, &call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            if word != call.verb.word() {
                return Err(garbled(&format!("unexpected word {word:?}")));
            }
            let (is_master, incarnation) = (parts.text()? == "master", parts.text()?);
            let deployment = Some(parts.text()?).filter(|deployment| !deployment.is_empty());
            let records = Completeness {
                continuous_since_ms: parts.text()?.parse().ok(),
                window_ms: parts.text()?.parse().ok(),
            };
            parts.end()?;
            let records = deployment.is_some().then_some(records);
            Ok(Probe { is_master, incarnation, deployment, records })
        });
        let probe = probe.await?;
        if !probe.is_master {
            // A demoted server keeps its clients' connections and answers all reads: a new
            // connection may reach its successor under the same name.
            self.masters.doubt();
            link.renew(&wire);
        }
        Ok(probe)
    }

    /// Closes the connections.
    pub async fn stop(&self) {
        self.masters.stop().await;
    }

    /// Makes a call and reads its answer.
    pub(super) async fn ask<T>(
        &self,
        call: &Call,
        read: impl FnOnce(&Call, Value) -> Result<T, CounterError>,
    ) -> Result<T, CounterError> {
        let link = self.masters.link(call.key()).await?;
        self.ask_by(&link, &link.wire(), call, read).await
    }

    /// Makes a call by a link. An answer that cannot be read closes the connection: the replies
    /// after it may be out of step.
    async fn ask_by<T>(
        &self,
        link: &Link,
        wire: &Wire,
        call: &Call,
        read: impl FnOnce(&Call, Value) -> Result<T, CounterError>,
    ) -> Result<T, CounterError> {
        let started = Instant::now();
        let outcome = link.call(wire, call).await;
        let took = started.elapsed();
        let result =
            outcome.map_err(|error| link.judge(wire, &error)).and_then(|value| read(call, value));
        let failure = result.as_ref().err().map(CounterError::reason);
        self.meter.count(call.verb.metered_as(), took, failure);
        match &result {
            Err(CounterError::Garbled(reason)) => {
                let call = &call.echo;
                tracing::error!(call, reason, "redis gave an answer that no script gives");
                link.renew(wire);
            }
            Err(CounterError::NotExecuted(text)) if text.starts_with("MOVED ") => {
                self.masters.moved(link.address(), text);
            }
            Err(CounterError::NotExecuted(text)) if text.starts_with("READONLY ") => {
                self.masters.doubt();
                link.renew(wire);
            }
            Err(CounterError::Unknown(_)) => self.masters.doubt(),
            _ => {}
        }
        result
    }
}

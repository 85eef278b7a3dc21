//! Which server is the master of a key, and the links to the masters.
//!
//! Looks at sentinels or cluster nodes when there is a sign that a master has changed, and
//! periodically: a master that was cut off from them continues to answer its clients. Must never
//! send a call twice; a master that was found says nothing about who owns a partition.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fred::error::Error;
use fred::types::Key;
use fred::util::redis_keyslot;
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::link::{Access, Address, Link};
use super::topology::{Parsed, Routes, Topology, parse, read_moved};
use super::{CounterError, RedisSettings};

/// Time between two periodic looks.
const POLL_PERIOD: Duration = Duration::from_secs(1);
/// Shortest time between two looks.
const POLL_PAUSE: Duration = Duration::from_millis(20);
/// How long a look waits for further answers once it has one.
const POLL_GRACE: Duration = Duration::from_millis(100);

/// The masters of one Redis.
#[derive(Debug)]
pub(super) struct Masters {
    topology: Topology,
    command_timeout: Duration,
    links: Links,
    informants: Links,
    seen: watch::Sender<Seen>,
    bell: Notify,
    scout: Mutex<Option<AbortHandle>>,
}

/// What the looks have shown.
#[derive(Clone, Debug)]
struct Seen {
    routes: Routes,
    /// Looks begun since the start, and the last of them that has ended.
    begun: u64,
    ended: u64,
}

/// Links to servers that are reached in the same way.
#[derive(Debug)]
struct Links {
    access: Access,
    by_address: Mutex<HashMap<Address, Arc<Link>>>,
    is_stopped: AtomicBool,
}

impl Masters {
    /// Starts looking. Does not fail if no server answers. Call it inside the runtime.
    ///
    /// # Errors
    /// When the URL is not one.
    pub(super) fn start(settings: &RedisSettings) -> Result<Arc<Self>, Error> {
        let Parsed { topology, masters, informants } = parse(&settings.url)?;
        let links = |config| Links {
            access: Access { config, settings: settings.clone(), runtime: Handle::current() },
            by_address: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        };
        let masters = Arc::new(Masters {
            command_timeout: settings.command_timeout,
            links: links(masters),
            informants: links(informants),
            seen: watch::Sender::new(Seen { routes: topology.first_routes(), begun: 0, ended: 0 }),
            bell: Notify::new(),
            scout: Mutex::default(),
            topology,
        });
        if let Topology::Single(server) = &masters.topology {
            // Connects now, and reports settings that the client refuses.
            masters.links.get(server)?;
        } else {
            let scout = tokio::spawn(Arc::clone(&masters).scout()).abort_handle();
            *masters.scout.lock().unwrap_or_else(PoisonError::into_inner) = Some(scout);
        }
        Ok(masters)
    }

    /// The link to the master of a key; waits a while for one to be found.
    ///
    /// # Errors
    /// [`CounterError::NotExecuted`] when no master is known: nothing was sent.
    pub(super) async fn link(&self, key: &Key) -> Result<Arc<Link>, CounterError> {
        let slot = redis_keyslot(key.as_bytes());
        let known = |seen: &Seen| seen.routes.server(slot).cloned();
        let mut address = known(&self.seen.borrow());
        if address.is_none() {
            self.doubt();
            let mut seen = self.seen.subscribe();
            let found = seen.wait_for(|seen| known(seen).is_some());
            if let Ok(Ok(seen)) = timeout(self.command_timeout, found).await {
                address = known(&seen);
            }
        }
        let unknown = || {
            let why =
                self.informants.failure_reason().map_or(String::new(), |why| format!(": {why}"));
            CounterError::NotExecuted(format!("no master is known for slot {slot}{why}"))
        };
        let address = address.ok_or_else(unknown)?;
        let refused = |error: Error| CounterError::NotExecuted(error.to_string());
        self.links.get(&address).map_err(refused)
    }

    /// The links to all masters, after a new look; none if no master is known.
    pub(super) async fn masters(&self) -> Vec<Arc<Link>> {
        self.poll_again().await;
        let mut servers = self.seen.borrow().routes.servers();
        servers.sort();
        servers.dedup();
        // Only a client that is being stopped gives none.
        servers.iter().filter_map(|server| self.links.get(server).ok()).collect()
    }

    /// The servers of the URL, without credentials.
    pub(super) fn seeds(&self) -> String {
        let seeds: Vec<_> = self.topology.seeds().iter().map(ToString::to_string).collect();
        seeds.join(", ")
    }

    /// Reports a sign that a master may have changed: a look follows soon.
    pub(super) fn doubt(&self) {
        self.bell.notify_one();
    }

    /// Looks anew; returns when a look that began after the call has ended, or when that takes
    /// longer than a call may.
    pub(super) async fn poll_again(&self) {
        if matches!(self.topology, Topology::Single(_)) {
            return;
        }
        let mut seen = self.seen.subscribe();
        let begun = seen.borrow().begun;
        self.doubt();
        let looked = seen.wait_for(|seen| seen.ended > begun);
        // If no server answers, what was known before must do.
        let _ = timeout(self.command_timeout, looked).await;
    }

    /// Notes a server's answer about a slot that it does not serve (any more).
    pub(super) fn moved(&self, informant: &Address, text: &str) {
        if let Some((slot, address)) = read_moved(informant, text) {
            self.seen.send_modify(|seen| seen.routes.moved(slot, address));
        }
    }

    /// Closes all links.
    pub(super) async fn stop(&self) {
        if let Some(scout) = &*self.scout.lock().unwrap_or_else(PoisonError::into_inner) {
            scout.abort();
        }
        self.links.stop().await;
        self.informants.stop().await;
    }

    /// Looks when asked to, and periodically.
    async fn scout(self: Arc<Self>) {
        loop {
            self.poll().await;
            sleep(POLL_PAUSE).await;
            // No request for a whole period: looks nevertheless.
            let _ = timeout(POLL_PERIOD, self.bell.notified()).await;
        }
    }

    /// Asks every server that may know; takes what arrives within a grace after the first answer.
    async fn poll(&self) {
        self.seen.send_modify(|seen| seen.begun += 1);
        let informants = self.topology.informants(&self.seen.borrow().routes);
        self.informants.keep(&informants);
        let mut asked = JoinSet::new();
        for address in informants {
            let Ok(link) = self.informants.get(&address) else { continue };
            let (command, arguments) = self.topology.question();
            asked.spawn(async move { (address, link.inquire(command, arguments).await) });
        }
        let mut reports = Vec::new();
        let mut until = Instant::now() + self.command_timeout;
        while let Ok(Some(told)) = timeout_at(until, asked.join_next()).await {
            match told {
                Ok((informant, Ok(answer))) => {
                    reports.extend(self.topology.read(&informant, answer));
                    until = until.min(Instant::now() + POLL_GRACE);
                }
                Ok((informant, Err(error))) => {
                    tracing::debug!(%informant, %error, "cannot be asked for the masters");
                }
                Err(error) => tracing::error!(%error, "a look at the masters died"),
            }
        }
        // Late answers are ignored, but their calls are not interrupted.
        asked.detach_all();
        self.publish(Routes::of(reports));
    }

    /// Publishes what was found, and closes links to servers that are masters no more.
    fn publish(&self, found: Option<Routes>) {
        if let Some(routes) = &found {
            self.links.keep(&routes.servers());
        }
        self.seen.send_modify(|seen| {
            seen.ended = seen.begun;
            let Some(routes) = found else { return };
            if seen.routes.servers() != routes.servers() {
                let masters: Vec<_> = routes.servers().iter().map(ToString::to_string).collect();
                tracing::info!(masters = masters.join(" "), "redis masters");
            }
            seen.routes = routes;
        });
    }
}

impl Links {
    /// The link to a server; started if there is none.
    fn get(&self, address: &Address) -> Result<Arc<Link>, Error> {
        let mut links = self.lock();
        if let Some(link) = links.get(address) {
            return Ok(Arc::clone(link));
        }
        if self.is_stopped.load(Ordering::SeqCst) {
            return Err(Error::new(fred::error::ErrorKind::Canceled, "stopped"));
        }
        let link = Arc::new(Link::start(&self.access, address)?);
        links.insert(address.clone(), Arc::clone(&link));
        Ok(link)
    }

    /// Closes all links but those to some servers: calls in flight have an unknown outcome.
    fn keep(&self, addresses: &[Address]) {
        self.lock().retain(|address, link| {
            let is_kept = addresses.contains(address);
            if !is_kept {
                link.close();
            }
            is_kept
        });
    }

    /// Why one of the servers is not reached.
    fn failure_reason(&self) -> Option<String> {
        self.lock().values().find_map(|link| link.failure_reason())
    }

    async fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        let links: Vec<Arc<Link>> = self.lock().values().cloned().collect();
        for link in links {
            link.stop().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Arc<Link>>> {
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! Builds the whole from its settings: ledger, Redis, node, journal, partition workers, reconciler;
//! and takes it down again in the opposite order. Decides nothing about numbers.

pub(crate) mod changes;
pub(crate) mod first_series;
pub(crate) mod fitness;
pub(crate) mod joining;
pub(crate) mod keyless;
pub(crate) mod known;
pub(crate) mod opened;
pub(crate) mod opening;
pub(crate) mod readiness;
pub(crate) mod unrecorded;

pub(crate) use first_series::read_series_file;
pub use fitness::Fitness;

pub(crate) use keyless::must_have_key;
pub use known::until_known;
pub(crate) use opened::{close_ledgers, open};
pub use opening::{foresee_catalog, load_catalog, open_catalog, open_ledger};
pub use readiness::{Readiness, Reason, Serving, Works};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, timeout_at};

use crate::auth::jwt::Jwts;
use crate::auth::limits::{self, Limits};
use crate::auth::tokens::Tokens;
use crate::backoff::Backoff;
use crate::clock::SharedClock;
use crate::config::{AuditSettings, Settings};
use crate::engine::allocator::Allocator;
use crate::engine::journal::{self, JournalQueue};
use crate::engine::node::{
    BACKOFF_MAX, BACKOFF_MIN, Clocks, ClusterHealth, Context, FlightNumbers, Incidents, Isolation,
    LiveReservations, Membership, Permits, PlannedEnds, ProcessSettings, QuorumCheck, RedisHealth,
    UnjournaledPartitions,
};
use crate::engine::reconciler::{
    Reconciler, settle_behind, sweep, sweep_last, sweep_reservations, watch_ceilings, watch_config,
};
use crate::engine::sealing::make_checkpoints;
use crate::engine::sources::Sources;
use crate::ledger::{Entry, LedgerError, SharedLedger};
use crate::metrics::Metrics;
use crate::redis::{Keys, Redis};
use crate::task::Task;
use crate::telemetry::certificates::Certificates;
use crate::telemetry::gauges::{CountersInUse, Gauges};
use changes::watch_changes;
use joining::{agree_window, join};
use opening::open_to_write;

/// The work of a serving process in the ledger apart from its numbers.
fn tend_the_ledger(context: &Arc<Context>, audit: &AuditSettings) -> anyhow::Result<Vec<Task>> {
    let mut tasks = vec![
        settle_behind(Arc::clone(context)),
        sweep(Arc::clone(context)),
        sweep_reservations(Arc::clone(context)),
        Clocks::start(Arc::clone(context)),
    ];
    if let Some(key) = audit.read_key()? {
        tasks.push(make_checkpoints(Arc::clone(context), key, audit.checkpoint));
    }
    Ok(tasks)
}

/// A running service, for `serve` and for commands that take numbers.
pub struct Service {
    /// Hands out numbers.
    pub allocator: Allocator,
    /// The ledger.
    pub ledger: SharedLedger,
    /// The tokens of callers; nothing where no authentication is required.
    pub tokens: Option<Arc<Tokens>>,
    /// How often callers may ask.
    pub limits: Arc<Limits>,
    /// The issuer whose JWTs are accepted, too.
    pub jwts: Option<Arc<Jwts>>,
    /// The clock.
    pub clock: SharedClock,
    /// What is counted.
    pub metrics: Metrics,
    /// What its parts share.
    pub context: Arc<Context>,
    /// How long certificates last.
    pub certificates: Certificates,
    gauges: Arc<Gauges>,
    /// What the database lacks.
    fitness: Arc<Fitness>,
    /// Not stopped before the workers: they hand over to it.
    journal: Mutex<Option<Task>>,
    loops: Mutex<Loops>,
    stop_max: Duration,
    /// Whether it was asked to stop.
    is_stopping: AtomicBool,
}

/// The background loops apart from partition workers and journal. None of them waits for another.
#[derive(Debug, Default)]
struct Loops {
    /// The workers need them as long as they serve.
    aides: Vec<Task>,
    /// Nothing needs them.
    onlookers: Vec<Task>,
}

impl Loops {
    /// Starts what the workers need.
    fn start(context: &Arc<Context>, fitness: &Arc<Fitness>) -> Self {
        let own = || Arc::clone(context);
        let mut aides = vec![
            Membership::start(own()),
            Membership::start_news(own()),
            Membership::start_proving(own()),
            QuorumCheck::start(own()),
            Reconciler::start(own()),
            Fitness::watch(fitness, &context.ledger),
        ];
        aides.extend(context.redis.clone().map(|redis| RedisHealth::start(own(), redis)));
        Loops { aides, onlookers: Vec::new() }
    }
}

/// The work of a serving process in Redis apart from its numbers: it watches the ceilings of
/// counters and the setup of the servers, and shares the rate limits with other nodes.
fn tend_redis(redis: Redis, limits: &Arc<Limits>, context: &Arc<Context>) -> Vec<Task> {
    let (keys, partitions) = (context.keys.clone(), context.deployment.partitions);
    vec![
        watch_ceilings(Arc::clone(context)),
        watch_config(Arc::clone(context), redis.clone()),
        limits::share(Arc::clone(limits), redis, keys, partitions),
    ]
}

/// Starts the journal, whose records the counters in use are learned from.
fn journal(
    bounds: &ProcessSettings,
    ledger: &SharedLedger,
    clock: &SharedClock,
    partitions: u32,
    metrics: &Metrics,
    in_use: &CountersInUse,
) -> (JournalQueue, Task) {
    let in_use = in_use.clone();
    let spectator = Box::new(move |entries: &[Entry]| in_use.note(entries));
    let backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
    journal::start(ledger, clock, partitions, bounds.journal, backoff, metrics, spectator)
}

/// How a process uses the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Serves for long: opens its partitions immediately and adopts what dead nodes left.
    Serve,
    /// Takes a number and leaves: touches only the partition it needs.
    Command,
}

/// By what callers of a process that serves name themselves, where they have to.
async fn callers(
    settings: &Settings,
    ledger: &SharedLedger,
    clock: &SharedClock,
    mode: Mode,
) -> anyhow::Result<(Option<Arc<Tokens>>, Option<Arc<Jwts>>)> {
    if mode == Mode::Command || !settings.asks_for_tokens {
        return Ok((None, None));
    }
    let jwts = settings.auth_jwt.clone().map(|jwt| Jwts::of(jwt, clock)).transpose()?;
    let tokens = Tokens::of(settings.auth_tokens.clone(), ledger, clock).await?;
    Ok((Some(tokens), jwts))
}

impl Service {
    /// Opens the ledger, loads the series, joins as a node, starts the loops.
    ///
    /// # Errors
    /// Settings that do not fit the ledger, an unreachable ledger, a broken Redis URL.
    pub async fn start(
        settings: &Settings,
        clock: SharedClock,
        mode: Mode,
    ) -> anyhow::Result<Arc<Self>> {
        let (ledger, deployment, catalog) = open_to_write(settings, &clock).await?;
        must_have_key(&ledger, &settings.audit, &clock).await?;
        let (tokens, jwts) = callers(settings, &ledger, &clock, mode).await?;
        let sources = Sources::open(&settings.external, settings.log.refused_per_second_max)?;
        let redis = settings.redis.as_ref().map(Redis::start).transpose().context("redis.url")?;
        let (metrics, in_use, fitness) = (Metrics::new(), CountersInUse::default(), Arc::default());
        let (bounds, partitions) = (&settings.allocator, deployment.partitions_total());
        let (queue, journal) = journal(bounds, &ledger, &clock, partitions, &metrics, &in_use);
        let joined = join(settings, &ledger, &clock, &deployment, redis.as_ref()).await?;
        agree_window(&ledger, joined.1.node(), bounds, mode).await?;
        let context = Arc::new(Context {
            keys: Keys::new(&deployment.prefix),
            redis_health: RedisHealth::new(deployment.partitions),
            cluster_health: ClusterHealth::default(),
            isolation: Isolation::default(),
            ledger: Arc::clone(&ledger),
            redis: redis.clone(),
            clock: Arc::clone(&clock),
            clocks: joined.0,
            settings: bounds.clone(),
            deployment,
            journal: queue,
            membership: joined.1,
            metrics: metrics.clone(),
            reservations: LiveReservations::default(),
            eager: mode == Mode::Serve,
            unjournaled: UnjournaledPartitions::new(mode == Mode::Serve),
            flights: FlightNumbers::default(),
            permits: Permits::new(&settings.database),
            lock_timeout: settings.database.lock_timeout,
            incidents: Incidents::default(),
            planned_ends: PlannedEnds::none(partitions),
            series_set_aside: AtomicU64::default(),
        });
        let (mut loops, own) = (Loops::start(&context, &fitness), || Arc::clone(&context));
        let allocator = Allocator::start(own(), catalog, sources);
        let limits = Arc::new(Limits::new(settings.limits, clock.clone(), redis.is_some()));
        let gauges = Arc::new(Gauges::new(&context, &allocator, in_use, settings.gauges));
        if mode == Mode::Serve {
            loops.onlookers.extend(watch_changes(&context, &allocator, tokens.as_ref()));
            loops.onlookers.extend(tokens.clone().map(Tokens::keep_uses));
            loops.onlookers.extend(jwts.clone().map(Jwts::follow_keys));
            loops.onlookers.extend(tend_the_ledger(&context, &settings.audit)?);
            loops.onlookers.push(Arc::clone(&gauges).start());
            let of_redis = redis.map(|redis| tend_redis(redis, &limits, &context));
            loops.onlookers.extend(of_redis.into_iter().flatten());
        }
        Ok(Arc::new(Service {
            allocator,
            ledger,
            tokens,
            limits,
            jwts,
            clock,
            metrics,
            context,
            certificates: Certificates::of(settings.certificates()),
            gauges,
            fitness,
            journal: Mutex::new(Some(journal)),
            loops: Mutex::new(loops),
            stop_max: bounds.stop_max,
            is_stopping: AtomicBool::new(false),
        }))
    }

    /// Sets the gauges that are read rather than counted.
    pub fn observe(&self) {
        self.gauges.observe();
        self.metrics.ready.set(f64::from(u8::from(self.readiness().is_ready())));
        let now_us = self.clock.now_us();
        self.certificates.observe(now_us, &self.metrics);
        let first_end = self.tokens.as_ref().and_then(|tokens| tokens.first_end_us(now_us));
        let seconds_to = |end_us: i64| end_us.saturating_sub(now_us) as f64 / 1e6;
        self.metrics.due.token_left.set(first_end.map_or(f64::INFINITY, seconds_to));
    }

    /// From here on the service is not ready, so that load balancers send it no more requests;
    /// requests that arrive are answered until [`Service::stop`].
    pub fn announce_stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// Refuses new requests, lets the waiting ones finish, drains the journal, journals what its
    /// callers have confirmed, leaves the ledger: all within `allocator.stop_max`, whichever store
    /// is silent.
    ///
    /// # Errors
    /// When records could not be journaled in time, or the ledger cannot be reached: then the node
    /// falls silent and what remains of its outbox is adopted.
    pub async fn stop(&self) -> anyhow::Result<()> {
        self.announce_stop();
        let now = Instant::now();
        // The last tenth is for leaving.
        let (workers_by, by) = (now + self.stop_max / 10 * 9, now + self.stop_max);
        let Loops { aides, onlookers } =
            std::mem::take(&mut *self.loops.lock().expect("not poisoned"));
        onlookers.iter().for_each(|task| task.request_stop(by));
        // Workers first: only they hand over to the journal, which ends after them.
        let workers = self.allocator.stop(workers_by).await;
        aides.iter().for_each(|task| task.request_stop(by));
        let journal = if workers.are_ended { self.take_journal() } else { None };
        for task in aides.into_iter().chain(onlookers).chain(journal) {
            if !task.stop(by).await {
                tracing::warn!("a background loop does not end in time");
            }
        }
        sweep_last(&self.context, by).await;
        if let Some(redis) = &self.context.redis {
            // The farewell is optional: a failure changes nothing.
            let _ = timeout_at(by, redis.stop()).await;
        }
        // A node that leaves reports its outbox as empty: no other node would take it over.
        let remain = "records may remain in the outbox; another node will adopt them";
        anyhow::ensure!(workers.are_drained, remain);
        let left = timeout_at(by, tokio::spawn(self.leave(by))).await;
        let left = left.context("leaving the ledger takes too long")?;
        left.context("leaving the ledger")?.context("leaving the ledger")
    }

    /// Leaves the ledger, again until `by` where that is of use: a session may have ended while it
    /// was idle.
    fn leave(&self, by: Instant) -> impl Future<Output = Result<(), LedgerError>> + use<> {
        let (ledger, node) = (Arc::clone(&self.ledger), self.context.membership.node());
        let mut backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
        async move {
            loop {
                match ledger.nodes().leave(node).await {
                    Err(error) if error.retry_useful() && Instant::now() < by => {
                        backoff.wait().await;
                    }
                    answer => return answer,
                }
            }
        }
    }

    fn take_journal(&self) -> Option<Task> {
        self.journal.lock().expect("not poisoned").take()
    }
}

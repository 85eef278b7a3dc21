//! Opens what a command works on: the whole service, only its ledger, or only the series there.

use std::sync::Arc;

use anyhow::{Context as _, bail};

use crate::clock::{SharedClock, SystemClock};
use crate::config::{Keyless, Settings};
use crate::engine::allocator::Catalog;
pub(crate) use crate::engine::node::operator;
use crate::engine::reconciler::Stores;
use crate::ledger::{Deployment, Event, SharedLedger};
use crate::redis::{Keys, Redis};
use crate::startup::{self, Mode, Service};
use crate::terminal::output::say;
use crate::terminal::ownership::{must_own_data, must_own_ledger};
use crate::web::{Problem, Slug};

/// The clock of a process.
pub(crate) fn clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// Runs work on a service that joins, and leaves again whatever the outcome of the work.
///
/// A number that was taken is good even where leaving fails: its record is in the outbox, and the
/// next node adopts it. So that failure is only a warning.
pub(crate) async fn with_service<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Service) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let service = join_for_command(settings).await?;
    let outcome = work(&service).await;
    leave(&service).await;
    outcome
}

/// A service that joins for a command; the command must [leave](leave) again.
pub(crate) async fn join_for_command(settings: &Settings) -> anyhow::Result<Arc<Service>> {
    must_own_data(settings)?;
    Service::start(settings, clock(), Mode::Command).await
}

/// Has a command's service leave.
pub(crate) async fn leave(service: &Service) {
    if let Err(error) = service.stop().await {
        tracing::warn!("could not leave cleanly: {error:#}");
    }
}

/// The same for work that writes no number: it needs no key, whatever the ledger knows.
pub(crate) async fn with_onlooker<T>(
    settings: &Settings,
    work: impl AsyncFnOnce(&Service) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut settings = settings.clone();
    settings.audit.keyless = Keyless::Onlooker;
    with_service(&settings, work).await
}

/// Opens the ledger alone for a command that writes into the journal.
pub(crate) async fn open_to_write(settings: &Settings) -> anyhow::Result<SharedLedger> {
    let ledger = open_ledger(settings).await?;
    startup::must_have_key(&ledger, &settings.audit, &clock()).await?;
    Ok(ledger)
}

/// Opens the ledger alone, without joining as a node.
pub(crate) async fn open_ledger(settings: &Settings) -> anyhow::Result<SharedLedger> {
    Ok(open_deployment(settings).await?.0)
}

/// Waits until the services on a ledger know what was just saved, and prints which of them do not.
pub(crate) async fn until_known(ledger: &SharedLedger) {
    let unaware = startup::until_known(ledger, None).await;
    if unaware > 0 {
        say(format_args!(
            "numerator: {unaware} processes have not said that they know of it: they do within a \
             second of reaching the ledger, or are gone"
        ));
    }
}

/// Opens the ledger alone and returns what it was set up with.
pub(crate) async fn open_deployment(
    settings: &Settings,
) -> anyhow::Result<(SharedLedger, Deployment)> {
    must_own_ledger(settings)?;
    startup::open_ledger(settings, &clock()).await
}

/// Opens the stores to read them, without joining as a node.
pub(crate) async fn open_stores(settings: &Settings) -> anyhow::Result<Stores> {
    Ok(open_stores_of(settings).await?.0)
}

async fn open_stores_of(settings: &Settings) -> anyhow::Result<(Stores, Deployment)> {
    let (ledger, deployment) = open_deployment(settings).await?;
    let redis = settings.redis.as_ref().map(Redis::start).transpose().context("redis.url")?;
    let keys = Keys::new(&deployment.prefix);
    Ok((Stores { ledger, redis, keys, clock: clock() }, deployment))
}

/// The same for a command that judges what Redis holds: the keys must be this ledger's.
///
/// # Errors
/// Also keys of another ledger. A Redis that does not answer is no error here; the command reports
/// it.
pub(crate) async fn open_own_stores(settings: &Settings) -> anyhow::Result<Stores> {
    let (stores, deployment) = open_stores_of(settings).await?;
    let Some(redis) = &stores.redis else { return Ok(stores) };
    let own = deployment.deployment_id.to_string();
    for partition in 0..deployment.partitions {
        let Ok(survey) = redis.survey(&stores.keys, partition, &[]).await else { break };
        if survey.owner.is_some_and(|owner| owner.deployment != own) {
            stores.close().await;
            bail!(
                "redis.url: the keys under {:?} are those of another ledger (partition \
                 {partition}); lead it to this ledger's Redis, or another database of it",
                deployment.prefix
            );
        }
    }
    Ok(stores)
}

/// A partition that an operator names must be one.
pub(crate) async fn check_partition(
    ledger: &SharedLedger,
    partition: Option<u32>,
) -> anyhow::Result<()> {
    let rows = ledger.partitions().await?;
    if let Some(one) = partition
        && rows.iter().all(|row| row.partition != one)
    {
        bail!("partition {one}: there are only 0 to {}", rows.len().saturating_sub(1));
    }
    Ok(())
}

/// Records among the events what a command did, and who ran it. The act is kept even where that
/// fails.
pub(crate) async fn note_act(ledger: &SharedLedger, kind: &str, mut detail: serde_json::Value) {
    detail["user"] = operator().into();
    let (at_us, kind) = (clock().now_us(), kind.to_owned());
    let (partition, epoch, node_id) = (None, None, None);
    let event = Event { at_us, kind, partition, epoch, node_id, detail };
    if let Err(error) = ledger.events().record(&event).await {
        say(format_args!("numerator: the event is not on record: {error}"));
    }
}

/// Reads the series that a service would serve, without joining as a node and without Redis.
pub(crate) async fn open_catalog(settings: &Settings) -> anyhow::Result<Catalog> {
    Ok(open_ledger_and_catalog(settings).await?.1)
}

/// The same for a read that writes nothing, not even the first series of a ledger.
pub(crate) async fn foresee_catalog(
    settings: &Settings,
) -> anyhow::Result<(SharedLedger, Catalog)> {
    must_own_ledger(settings)?;
    startup::foresee_catalog(settings, &clock()).await
}

/// The same, and the ledger that they are in.
pub(crate) async fn open_ledger_and_catalog(
    settings: &Settings,
) -> anyhow::Result<(SharedLedger, Catalog)> {
    must_own_ledger(settings)?;
    let (ledger, _, catalog) = startup::open_catalog(settings, &clock()).await?;
    Ok((ledger, catalog))
}

/// A refusal as one line: where, what, and the slug that the HTTP interface gives it.
pub(crate) fn refusal(problem: impl Into<Problem>) -> anyhow::Error {
    let problem = problem.into();
    // A request calls a variable otherwise than a command line does. One that is unknown is written
    // right, and its name is what is wrong.
    let is_named = problem.slug() != Slug::UnknownVariable;
    let field = problem.wrong_field().filter(|_| is_named);
    match field.and_then(|field| field.strip_prefix("context.")) {
        Some(name) => anyhow::anyhow!("{problem}; on the command line it is --set {name}=…"),
        None => anyhow::Error::msg(problem),
    }
}

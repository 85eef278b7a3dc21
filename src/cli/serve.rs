//! `numerator serve`: answers requests over HTTP until SIGTERM or SIGINT, then drains and leaves.
//! At `http.health_listen` it answers until it has left.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::descriptors;
use super::log_writer::Gathering;
use super::logs;
use super::session::clock;
use crate::config::Settings;
use crate::http;
use crate::metrics;
use crate::service::{Mode, Service};

/// Serves until it is asked to stop.
///
/// # Errors
/// An address that is taken, a service that cannot start, whatever kept it from leaving cleanly.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    let _gathering = start_log(settings)?;
    descriptors::provide(settings);
    let prometheus = metrics::install_recorder().context("the metrics recorder")?;
    // Before anything joins: a port that is taken should leave no trace in the ledger.
    let listener = listen("http.listen", settings.http_listen).await?;
    let health_listener = match settings.health_listen {
        Some(address) => Some(listen("http.health_listen", address).await?),
        None => None,
    };
    let tls = settings.http.tls.as_ref().map(http::Tls::open).transpose()?;
    let acceptor = tls.as_ref().map(http::Tls::acceptor);
    let address = listener.local_addr().context("the address of the listener")?;
    let (mut terminate, mut interrupt) =
        (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?);
    let service = tokio::select! {
        service = Service::start(settings, clock(), Mode::Serve) => service?,
        // It has handed out nothing, and waits for a store.
        () = told_to_stop(&mut terminate, &mut interrupt) => return Ok(()),
    };
    // Samples of histograms are kept until they are drained, asked for or not.
    let upkeep = tokio::spawn({
        let prometheus = prometheus.clone();
        async move {
            let mut ticks = tokio::time::interval(metrics::UPKEEP_INTERVAL);
            loop {
                ticks.tick().await;
                // It sorts every sample since the last time: too long for a worker of the runtime.
                let prometheus = prometheus.clone();
                let _ = tokio::task::spawn_blocking(move || prometheus.run_upkeep()).await;
            }
        }
    });
    let _followed = tls.map(http::Tls::follow);
    tracing::info!(%address, tls = acceptor.is_some(), "listening");
    let (stop, stopping) = watch::channel(false);
    let told = tokio::spawn({
        let service = service.clone();
        async move {
            told_to_stop(&mut terminate, &mut interrupt).await;
            service.announce_stop();
            stop.send_replace(true);
        }
    });
    let metrics = || service.metrics.clone();
    let doors = http::doors(service.clone(), settings, metrics(), prometheus.clone());
    let bounds = http::ConnectionBounds::of(settings);
    let health = async {
        if let Some(listener) = health_listener {
            let doors = http::health_doors(service.clone(), settings, metrics(), prometheus);
            let bounds = http::ConnectionBounds::of_health(settings);
            http::serve(listener, None, doors, bounds, pending()).await;
        }
        pending::<Infallible>().await
    };
    let main = async {
        http::serve(listener, acceptor, doors, bounds, until(stopping)).await;
        told.await.context("waiting for a signal")?;
        service.stop().await
    };
    // Whoever watches sees the drain to its end; nobody waits for those who watch.
    let stopped = tokio::select! {
        stopped = main => stopped,
        never = health => match never {},
    };
    upkeep.abort();
    tracing::info!("stopped");
    stopped
}

/// Starts the log, and the export of spans where it is wanted.
fn start_log(settings: &Settings) -> anyhow::Result<Gathering> {
    #[cfg(feature = "otlp")]
    let spans = super::traces::layer(&settings.trace).context("trace.otlp_url")?;
    #[cfg(not(feature = "otlp"))]
    let spans = None;
    #[cfg(not(feature = "otlp"))]
    anyhow::ensure!(
        settings.trace.otlp_url.is_none(),
        "trace.otlp_url: this program cannot send traces; build it with --features otlp"
    );
    Ok(logs::start_gathering(&settings.log, spans))
}

/// Binds an address.
async fn listen(setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{setting}: {address} cannot be listened on; choose another {setting}")
    })
}

/// Waits until the process is asked to stop.
async fn until(mut stopping: watch::Receiver<bool>) {
    // An error means that nobody waits for a signal any more.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// From here on the signal no longer ends the process by itself.
fn listen_for(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("signals cannot be listened for")
}

/// Waits for the first of both signals.
async fn told_to_stop(terminate: &mut Signal, interrupt: &mut Signal) {
    let told = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(told, "stopping");
}

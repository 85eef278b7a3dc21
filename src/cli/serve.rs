//! `numerator serve`: answers requests over HTTP until SIGTERM or SIGINT, then drains and leaves.

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::log_writer::Gathering;
use super::logs;
use super::session::clock;
use crate::config::Settings;
use crate::http;
use crate::metrics;
use crate::service::{Mode, Service};

/// Serves until it is told to stop.
///
/// # Errors
/// An address that is taken, a service that cannot start, whatever kept it from leaving cleanly.
pub async fn run(settings: &Settings) -> anyhow::Result<()> {
    let _gathering = start_log(settings)?;
    let prometheus = metrics::install_recorder().context("the metrics recorder")?;
    // Before anything joins: a port that is taken should leave no trace in the ledger.
    let listener = TcpListener::bind(settings.http_listen).await.with_context(|| {
        let address = settings.http_listen;
        format!("http.listen: {address} cannot be listened on; choose another http.listen")
    })?;
    let address = listener.local_addr().context("the address of the listener")?;
    let service = Service::start(settings, clock(), Mode::Serve).await?;
    let (terminate, interrupt) =
        (listen_for(SignalKind::terminate())?, listen_for(SignalKind::interrupt())?);
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
    tracing::info!(%address, "listening");
    let router = http::router(service.clone(), settings, service.metrics.clone(), prometheus);
    http::serve(listener, router, settings, told_to_stop(terminate, interrupt)).await;
    let stopped = service.stop().await;
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

/// From here on the signal no longer ends the process by itself.
fn listen_for(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("signals cannot be listened for")
}

/// Waits for the first of both signals.
async fn told_to_stop(mut terminate: Signal, mut interrupt: Signal) {
    let told = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(told, "stopping");
}

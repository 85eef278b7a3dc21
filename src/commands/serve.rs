//! `numerator serve`: answers requests over HTTP until SIGTERM or SIGINT, then drains and leaves.
//! At `http.health_listen` it answers until it has left. At SIGHUP it reads `log.filter` again.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::commands::{THREADS_STOP_MAX, descriptors};
use crate::config::Settings;
use crate::metrics;
use crate::routes;
use crate::startup::{Mode, Service};
use crate::telemetry::log::{self, LogFilter};
use crate::telemetry::log_writer::Gathering;
use crate::terminal::session::clock;
use crate::terminal::settings::SettingsArgs;
use crate::web;

/// Serves until a stop is requested.
///
/// # Errors
/// An address in use, a service that cannot start, anything that prevented a clean stop.
pub async fn run(settings: &Settings, sources: &SettingsArgs) -> anyhow::Result<()> {
    let (_gathering, filter) = start_log(settings)?;
    follow_filter(filter, sources.clone())?;
    descriptors::provide(settings);
    let prometheus = metrics::install_recorder().context("the metrics recorder")?;
    // Before the node joins: a port in use should leave no trace in the ledger.
    let listener = listen("http.listen", settings.http_listen).await?;
    let health_listener = match settings.health_listen {
        Some(address) => Some(listen("http.health_listen", address).await?),
        None => None,
    };
    let tls = settings.http.tls.as_ref().map(web::Tls::open).transpose()?;
    let acceptor = tls.as_ref().map(web::Tls::acceptor);
    let address = listener.local_addr().context("the address of the listener")?;
    let mut signals = Signals::listen()?;
    let service = tokio::select! {
        service = Service::start(settings, clock(), Mode::Serve) => service?,
        // It has handed out nothing, and waits for a store.
        () = signals.told_to_stop() => return Ok(()),
    };
    let upkeep = keep_up(&prometheus);
    let _followed = tls.map(|tls| tls.follow(&service.certificates));
    tracing::info!(%address, tls = acceptor.is_some(), "listening");
    let (stop, stopping) = watch::channel(false);
    let told = tokio::spawn({
        let (service, delay) = (service.clone(), settings.http.drain_delay);
        async move {
            signals.told_to_stop().await;
            service.announce_stop();
            signals.wait(delay).await;
            stop.send_replace(true);
        }
    });
    let metrics = || service.metrics.clone();
    let secondary = SecondaryRuntime::start().context("threads for the secondary runtime")?;
    let slow = secondary.handle();
    let routes = routes::routes(service.clone(), settings, metrics(), prometheus.clone());
    let bounds = web::ConnectionBounds::of(settings);
    let health = async {
        if let Some(listener) = health_listener {
            let routes = routes::health_routes(service.clone(), settings, metrics(), prometheus);
            let bounds = web::ConnectionBounds::of_health(settings);
            let answer = move |request, peer| routes.answer(request, peer);
            web::serve(listener, None, answer, None, bounds, pending()).await;
        }
        pending::<Infallible>().await
    };
    let main = async {
        let answer = move |request, peer| routes.answer(request, peer);
        web::serve(listener, acceptor, answer, Some(slow), bounds, until(stopping)).await;
        told.await.context("waiting for a signal")?;
        service.stop().await
    };
    // Observers see the drain to its end; the stop does not wait for them.
    let stopped = tokio::select! {
        stopped = main => stopped,
        never = health => match never {},
    };
    upkeep.abort();
    secondary.stop().await;
    tracing::info!("stopped");
    stopped
}

/// Starts the log, and the export of spans if it is configured.
fn start_log(settings: &Settings) -> anyhow::Result<(Gathering, Option<LogFilter>)> {
    #[cfg(feature = "otlp")]
    let spans = crate::telemetry::export::layer(&settings.trace).context("trace.otlp_url")?;
    #[cfg(not(feature = "otlp"))]
    let spans = None;
    #[cfg(not(feature = "otlp"))]
    anyhow::ensure!(
        settings.trace.otlp_url.is_none(),
        "trace.otlp_url: this program cannot send traces; build it with --features otlp"
    );
    Ok(log::start_gathering(&settings.log, spans))
}

/// At each SIGHUP reads the settings again and applies their `log.filter` to the log; all others
/// remain as they were at the start. Settings that cannot be read change nothing.
fn follow_filter(filter: Option<LogFilter>, sources: SettingsArgs) -> anyhow::Result<()> {
    let mut hangups = listen_for(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            match (sources.load(), &filter) {
                (Ok(settings), Some(filter)) => filter.replace(&settings.log),
                (Ok(_), None) => tracing::error!("SIGHUP: the log is another program's"),
                (Err(error), _) => {
                    tracing::error!(%error, "SIGHUP: the settings cannot be read; the log goes on \
                                             as before");
                }
            }
        }
    });
    Ok(())
}

/// Samples of histograms are kept until they are drained, whether they are requested or not.
fn keep_up(prometheus: &PrometheusHandle) -> JoinHandle<()> {
    let prometheus = prometheus.clone();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(metrics::UPKEEP_INTERVAL);
        loop {
            ticks.tick().await;
            // It sorts every sample since the last time: too long for a worker of the runtime.
            let prometheus = prometheus.clone();
            let _ = tokio::task::spawn_blocking(move || prometheus.run_upkeep()).await;
        }
    })
}

/// The runtime of the slow lane: connections that ask for large batches, or for no numbers, are
/// served here, so that calls for one number wait for none of them.
struct SecondaryRuntime(Option<Runtime>);

impl SecondaryRuntime {
    fn start() -> std::io::Result<Self> {
        let mut builder = crate::commands::runtime_builder();
        let runtime = builder.thread_name("secondary").build()?;
        Ok(SecondaryRuntime(Some(runtime)))
    }

    fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle().clone()
    }

    /// Ends it, with the connections that are open yet: their timers belong to the main runtime,
    /// which ends later. Waits for threads that are at work, as long as a command does.
    async fn stop(mut self) {
        if let Some(runtime) = self.0.take() {
            let stops = move || runtime.shutdown_timeout(THREADS_STOP_MAX);
            // It does not panic.
            let _ = tokio::task::spawn_blocking(stops).await;
        }
    }
}

impl Drop for SecondaryRuntime {
    fn drop(&mut self) {
        // A task of another runtime may not wait for its threads.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Binds an address.
async fn listen(setting: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{setting}: {address} cannot be listened on; choose another {setting}")
    })
}

/// Waits until a stop of the process is requested.
async fn until(mut stopping: watch::Receiver<bool>) {
    // An error means that no task waits for a signal any more.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// From here on the signal no longer ends the process automatically.
fn listen_for(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("signals cannot be listened for")
}

/// The signals that request a stop of the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let terminate = listen_for(SignalKind::terminate())?;
        Ok(Signals { terminate, interrupt: listen_for(SignalKind::interrupt())? })
    }

    /// Waits for the first of them.
    async fn told_to_stop(&mut self) {
        let told = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        };
        tracing::info!(told, "stopping");
    }

    /// Waits for this time, or until another signal comes.
    async fn wait(&mut self, delay: Duration) {
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.told_to_stop() => {}
        }
    }
}

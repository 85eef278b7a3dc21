//! How a command ends: when its work is done or by a signal, and never with its ledger open (F38).

use std::future::pending;
use std::process::exit;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::startup::close_ledgers;

/// Exit codes after a signal, as shells write them.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Runs work to its end, and closes what it opened.
pub(crate) async fn closing<T>(work: impl Future<Output = T>) -> T {
    let outcome = work.await;
    close_ledgers().await;
    outcome
}

/// The same for work that SIGINT and SIGTERM end: what is not committed by then is taken back. Work
/// that watches until it is interrupted ends well.
pub(crate) async fn interruptible<T>(work: impl Future<Output = T>, watches: bool) -> T {
    let (replay, told) = oneshot::channel::<()>();
    // A separate task: the work may be reading standard input.
    tokio::spawn(async move {
        let code = told_to_end(if watches { 0 } else { INTERRUPTED }).await;
        drop(replay);
        close_ledgers().await;
        exit(code)
    });
    closing(async {
        tokio::select! {
            outcome = work => outcome,
            _ = told => pending().await,
        }
    })
    .await
}

/// Waits for a signal; the exit code that it gives.
async fn told_to_end(interrupted: i32) -> i32 {
    let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(interrupt), signal(terminate)) else {
        // No handler is installed: the signal ends the process.
        return pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => interrupted,
        _ = terminate.recv() => TERMINATED,
    }
}

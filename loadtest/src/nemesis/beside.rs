//! The callers that reserve and void, beside the plain ones: started with the load, and ended after
//! it.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use fastrand::Rng;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::asking::{Addresses, Asker};
use super::holds::Told;
use super::progress::Progress;
use super::reservers::Reserver;
use super::transactions::OwnTable;
use super::voiders::Voider;
use super::world::World;

/// Callers that reserve.
const RESERVERS: usize = 6;

/// Callers that void.
const VOIDERS: usize = 2;

/// How soon the last reservations must have ended, or be journaled.
const RESERVATIONS_LIMIT: Duration = Duration::from_secs(30);

/// Pause between two looks.
const POLL: Duration = Duration::from_millis(200);

/// What callers find in a drill, beside the nodes.
#[derive(Clone, Debug)]
pub(super) struct Surroundings {
    /// Where transactions of callers save documents, if they can.
    pub(super) own_table: Option<OwnTable>,
    /// How far the ledger's clock is ahead of the machine's, in microseconds.
    pub(super) ahead_us: i64,
}

/// Callers that run until they are ended.
pub(super) struct Beside {
    stop: watch::Sender<bool>,
    callers: Vec<JoinHandle<Told>>,
}

impl Beside {
    /// Starts them.
    pub(super) fn start(
        addresses: &Arc<Addresses>,
        progress: &Arc<Progress>,
        seed: u64,
        around: &Surroundings,
    ) -> Self {
        let stop = watch::Sender::new(false);
        let next = Arc::new(AtomicU64::new(0));
        let mut seeds = Rng::with_seed(seed);
        let asker = || Asker::new(addresses, progress, stop.subscribe());
        let mut callers = Vec::with_capacity(RESERVERS + VOIDERS);
        for _ in 0..RESERVERS {
            let caller = Reserver {
                asker: asker(),
                rng: seeds.fork(),
                next: Arc::clone(&next),
                own_table: around.own_table.clone(),
                ahead_us: around.ahead_us,
                told: Told::default(),
            };
            callers.push(tokio::spawn(caller.run()));
        }
        for _ in 0..VOIDERS {
            let (rng, next, told) = (seeds.fork(), Arc::clone(&next), Told::default());
            callers.push(tokio::spawn(Voider { asker: asker(), rng, next, told }.run()));
        }
        Beside { callers, stop }
    }

    /// Ends them: each waits for its last answer.
    pub(super) async fn finish(self) -> Told {
        self.stop.send_replace(true);
        let mut all = Told::default();
        for caller in self.callers {
            all.add(caller.await.expect("a caller does not panic"));
        }
        all
    }
}

impl World {
    /// Waits until no reservation is live.
    ///
    /// # Errors
    /// What is left after the limit.
    pub(super) async fn reservations_end(&self) -> Result<(), String> {
        let deadline = Instant::now() + RESERVATIONS_LIMIT;
        loop {
            let left = self.ledger.list("select count(*) from {}.reservation");
            if left == "0" {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{left} are left"));
            }
            sleep(POLL).await;
        }
    }
}

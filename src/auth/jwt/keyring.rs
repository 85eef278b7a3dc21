//! The keys in force: read at the start, again every ten minutes, and when a JWT names an unknown
//! key; then at most once in ten seconds, however often it is asked for.
//!
//! One loop reads. Requests wake it and wait for a limited time; a JWT of a known key does not
//! wait. When the keys cannot be read, those read last stay in force for a day.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::claims::Verified;
use super::keys::Keys;
use crate::auth::jwt::{JwtAlgorithm, JwtKeys};
use crate::engine::sources::Address;
use crate::task::{Stop, Task};

/// Largest answer, and file, that is read; sets of keys have a few KiB.
pub(super) const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// JWTs whose signature is not verified again, of the keys in force.
const VERIFIED_MAX: usize = 10_000;

/// How often the keys are read, and for how long what waits for that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyRefresh {
    /// Between two regular reads.
    pub(super) period: Duration,
    /// Shortest time between two reads.
    pub(super) gap: Duration,
    /// How long one read may take.
    pub(super) limit: Duration,
    /// How long a request waits for a read.
    pub(super) wait: Duration,
    /// For how long keys stay in force that cannot be read again.
    pub(super) kept: Duration,
}

impl KeyRefresh {
    /// The usual one.
    pub(super) const USUAL: KeyRefresh = KeyRefresh {
        period: Duration::from_secs(600),
        gap: Duration::from_secs(10),
        limit: Duration::from_secs(5),
        wait: Duration::from_secs(2),
        kept: Duration::from_secs(86_400),
    };
}

/// Keys that were read, and the JWTs that they verified.
pub(super) struct InForce {
    /// The keys.
    pub(super) keys: Keys,
    /// What they were read from.
    bytes: Vec<u8>,
    verified: Mutex<HashMap<[u8; 32], Verified>>,
}

impl InForce {
    /// A JWT that was verified, by its hash.
    pub(super) fn verified(&self, hash: &[u8; 32]) -> Option<Verified> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    /// Remembers one. Where there are too many, all are verified again.
    pub(super) fn remember(&self, hash: [u8; 32], verified: Verified, now_us: i64) {
        let mut known = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= VERIFIED_MAX {
            known.retain(|_, one| !one.is_over(now_us));
        }
        if known.len() >= VERIFIED_MAX {
            known.clear();
        }
        known.insert(hash, verified);
    }
}

/// Where keys are read.
enum Source {
    File(std::path::PathBuf),
    Address(Box<Address>),
}

/// The state of the reads of the loop.
#[derive(Clone, Copy, Debug, Default)]
struct Polls {
    begun_at: Option<Instant>,
    is_running: bool,
    ended: u64,
}

/// The keys of an issuer.
pub(super) struct Keyring {
    place: JwtKeys,
    source: Source,
    pinned: Vec<JwtAlgorithm>,
    refresh: KeyRefresh,
    /// With the time at which they were read last.
    read: RwLock<Option<(Arc<InForce>, Instant)>>,
    wanted: Notify,
    polls: watch::Sender<Polls>,
}

impl Keyring {
    /// Reads the keys where they are in a file. The loop fetches those of an address: an issuer
    /// that does not answer does not stop the start.
    ///
    /// # Errors
    /// A file that cannot be read or has no usable key, or an address that cannot be asked.
    pub(super) fn open(
        place: JwtKeys,
        pinned: Vec<JwtAlgorithm>,
        refresh: KeyRefresh,
    ) -> anyhow::Result<Self> {
        let source = match &place {
            JwtKeys::File(path) | JwtKeys::SetFile(path) => Source::File(path.clone()),
            JwtKeys::SetAddress(uri) => {
                let address = Address::new(uri).with_context(|| place.to_string())?;
                Source::Address(Box::new(address))
            }
        };
        let (read, wanted, polls) = (RwLock::default(), Notify::new(), watch::Sender::default());
        let keyring = Keyring { place, source, pinned, refresh, read, wanted, polls };
        if let Source::File(path) = &keyring.source {
            let taken = read_file(path).map_err(anyhow::Error::from);
            let count = taken.and_then(|bytes| keyring.take(bytes));
            let count = count.with_context(|| keyring.place.to_string())?;
            anyhow::ensure!(
                count > 0,
                "{}: has no key that an algorithm of auth.jwt.algorithms can use",
                keyring.place
            );
        }
        Ok(keyring)
    }

    /// The keys in force; nothing where none was read yet, or not for too long.
    pub(super) fn in_force(&self) -> Option<Arc<InForce>> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        let (keys, at) = read.as_ref()?;
        (at.elapsed() <= self.refresh.kept).then(|| Arc::clone(keys))
    }

    /// Waits a moment for newer keys, where they may be read now. Safe to drop.
    pub(super) async fn poll_again(&self) {
        let mut polls = self.polls.subscribe();
        let now = *polls.borrow_and_update();
        if !now.is_running && !self.may_begin(now) {
            return;
        }
        self.wanted.notify_one();
        // A request that waited too long is refused as one to be retried.
        let _ = timeout(self.refresh.wait, polls.wait_for(|polls| polls.ended > now.ended)).await;
    }

    fn may_begin(&self, polls: Polls) -> bool {
        polls.begun_at.is_none_or(|at| at.elapsed() >= self.refresh.gap)
    }

    /// Reads the keys again, as often as that is due.
    pub(super) fn follow(self: Arc<Self>) -> Task {
        Task::start("jwt keys", async move |mut stop: Stop| {
            let is_read = self.in_force().is_some();
            let mut due =
                Instant::now() + if is_read { self.refresh.period } else { Duration::ZERO };
            let mut fails = false;
            loop {
                tokio::select! {
                    () = stop.requested() => return,
                    () = sleep_until(due) => {}
                    () = self.wanted.notified() => {
                        if !self.may_begin(*self.polls.borrow()) {
                            continue;
                        }
                    }
                }
                self.polls.send_modify(|polls| {
                    (polls.begun_at, polls.is_running) = (Some(Instant::now()), true);
                });
                let looked = tokio::select! {
                    () = stop.requested() => return,
                    looked = self.poll() => looked,
                };
                due = Instant::now()
                    + if looked.is_ok() { self.refresh.period } else { self.refresh.gap };
                self.tell(looked, &mut fails);
                self.polls.send_modify(|polls| {
                    (polls.ended, polls.is_running) = (polls.ended + 1, false);
                });
            }
        })
    }

    /// One line for each change: one every ten seconds would flood the log.
    fn tell(&self, looked: anyhow::Result<usize>, fails: &mut bool) {
        let place = &self.place;
        match looked {
            Err(error) if !*fails => {
                *fails = true;
                tracing::warn!(
                    %place, error = format!("{error:#}"),
                    "the keys of JWTs cannot be read; those read before stay in force for a day"
                );
            }
            Err(error) => tracing::debug!(%place, %error, "the keys of JWTs cannot be read yet"),
            Ok(keys) => {
                if std::mem::take(fails) {
                    tracing::info!(%place, keys, "the keys of JWTs were read again");
                }
            }
        }
    }

    async fn poll(&self) -> anyhow::Result<usize> {
        let bytes = match &self.source {
            Source::Address(address) => address.get(self.refresh.limit, ANSWER_BYTES_MAX).await?,
            Source::File(path) => {
                let path = path.clone();
                tokio::task::spawn_blocking(move || read_file(&path)).await??
            }
        };
        self.take(bytes)
    }

    /// Puts keys in force and returns how many. After a change every JWT is verified again.
    fn take(&self, bytes: Vec<u8>) -> anyhow::Result<usize> {
        let keys = match &self.place {
            JwtKeys::File(_) => Keys::of_file(&bytes, &self.pinned)?,
            JwtKeys::SetFile(_) | JwtKeys::SetAddress(_) => Keys::of_set(&bytes, &self.pinned)?,
        };
        let count = keys.count();
        if count == 0 {
            tracing::warn!(place = %self.place, "no JWT is let in: the set has no key for them");
        }
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        let in_force = match read.take() {
            Some((before, _)) if before.bytes == bytes => before,
            _ => Arc::new(InForce { keys, bytes, verified: Mutex::default() }),
        };
        *read = Some((in_force, Instant::now()));
        Ok(count)
    }
}

/// A file of keys: no longer than an answer may be.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let most = u64::try_from(ANSWER_BYTES_MAX).unwrap_or(u64::MAX);
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() > ANSWER_BYTES_MAX {
        true => Err(io::Error::other(format!("has more than {ANSWER_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}

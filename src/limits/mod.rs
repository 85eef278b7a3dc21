//! How often somebody may ask (R7.2): decided in memory, without asking anybody, and shared with
//! the other nodes through Redis a moment later. Knows no request and no number.
//!
//! Each node adds what it admitted to the schedule in Redis five times a second, and takes over
//! what all have admitted. So a limit costs no call on a request's way, and holds on each node
//! where Redis is away. What it does not hold: whoever asks several nodes within one such moment
//! may get its quota from each of them, once; it waits the longer afterwards.

mod gcra;
mod network;
mod sharing;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};

use sha2::{Digest as _, Sha256};

use crate::clock::SharedClock;
use gcra::{Rate, WINDOW_US};
pub use network::network_of;
pub use sharing::share;

/// Schedules kept at once. Those that are over are let go when there are as many; where none is,
/// who is new is admitted and not counted, which is logged.
const KEPT_MAX: usize = 100_000;

/// Limits of people, in requests a minute; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// `limits.user_per_minute`: of one person.
    pub user_per_minute: u64,
    /// `limits.address_per_minute`: of one address.
    pub address_per_minute: u64,
}

/// By what a request is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted<'a> {
    /// By the person, through the service where one asks for them.
    User(&'a str),
    /// By the address from which the person asks: by its network, where that is one machine's.
    Address(&'a str),
    /// By the service, which may ask so often a minute.
    Service(&'a str, u64),
}

/// Where a request stands with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// `user`, `address` or `service`.
    pub limit: &'static str,
    /// Requests of a minute.
    pub quota: u64,
    /// Requests that are left.
    pub remaining: u64,
    /// Until all are there again, in seconds.
    pub reset_s: u64,
}

/// What all limits say to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Of each limit.
    pub standings: Vec<Standing>,
    /// The limit that refuses it for longest, and after how many milliseconds it would not.
    pub exceeded: Option<(Standing, u64)>,
}

/// The limits of a node.
pub struct Limits {
    settings: LimitSettings,
    clock: SharedClock,
    is_shared: bool,
    kept: Mutex<Kept>,
}

/// A limited one: 128 bits of the SHA-256 of what it is. Redis is told no name.
type Key = [u8; 16];

#[derive(Default)]
struct Kept {
    /// Where each schedule stands, in microseconds.
    schedules: HashMap<Key, i64>,
    /// What was admitted since it was shared, in microseconds of the schedule; nothing where nobody
    /// is told.
    unshared: HashMap<Key, i64>,
    /// When those that are over were let go.
    swept_at_us: i64,
}

impl Limits {
    /// Limits that nobody has used yet. Of those that are shared, [`share`] tells the other nodes.
    #[must_use]
    pub fn new(settings: LimitSettings, clock: SharedClock, is_shared: bool) -> Self {
        Limits { settings, clock, is_shared, kept: Mutex::default() }
    }

    /// Judges a request and, unless a limit refuses it, counts it by all of them.
    ///
    /// # Panics
    /// Where another holder of the lock did, which none does.
    pub fn judge(&self, by: &[Counted<'_>]) -> Judgement {
        let limits: Vec<_> = by.iter().filter_map(|counted| self.limit(*counted)).collect();
        if limits.is_empty() {
            return Judgement::default();
        }
        let now_us = self.clock.now_us();
        let mut kept = self.kept();
        let mut judgement = Judgement::default();
        let mut scheduled = Vec::with_capacity(limits.len());
        for (limit, key, rate) in limits {
            let verdict = rate.judge(kept.schedules.get(&key).copied().unwrap_or(0), now_us);
            let standing = Standing {
                limit,
                quota: rate.quota().unsigned_abs(),
                remaining: verdict.remaining.unsigned_abs(),
                reset_s: seconds(verdict.reset_us),
            };
            judgement.standings.push(standing);
            match verdict.scheduled_us {
                Some(at_us) => scheduled.push((key, at_us, rate.spacing_us())),
                None => {
                    let wait_ms = verdict.retry_after_us.unsigned_abs().div_ceil(1_000);
                    // Of two, the one that refuses for longer: asking sooner is in vain.
                    if judgement.exceeded.is_none_or(|(_, other)| other < wait_ms) {
                        judgement.exceeded = Some((standing, wait_ms));
                    }
                }
            }
        }
        if judgement.exceeded.is_none() {
            for (key, at_us, spacing_us) in scheduled {
                if kept.has_room_for(&key, now_us) {
                    kept.schedules.insert(key, at_us);
                    if self.is_shared {
                        *kept.unshared.entry(key).or_default() += spacing_us;
                    }
                }
            }
        }
        judgement
    }

    /// The limit by which something is counted, if there is one.
    fn limit(&self, counted: Counted<'_>) -> Option<(&'static str, Key, Rate)> {
        let LimitSettings { user_per_minute, address_per_minute } = self.settings;
        let (limit, text, quota) = match counted {
            Counted::User(user) => ("user", user, user_per_minute),
            Counted::Address(address) => ("address", address, address_per_minute),
            Counted::Service(service, quota) => ("service", service, quota),
        };
        if quota == 0 {
            return None;
        }
        let network = match (counted, text.parse::<IpAddr>()) {
            (Counted::Address(_), Ok(address)) => Some(network_of(address).to_string()),
            _ => None,
        };
        let key = key_of(limit, network.as_deref().unwrap_or(text));
        Some((limit, key, Rate::per_minute(quota)))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }
}

impl Kept {
    /// Whether there is room for one more, or it is kept already.
    fn has_room_for(&mut self, key: &Key, now_us: i64) -> bool {
        if self.schedules.len() < KEPT_MAX || self.schedules.contains_key(key) {
            return true;
        }
        if now_us.abs_diff(self.swept_at_us) >= 1_000_000 {
            self.swept_at_us = now_us;
            self.schedules.retain(|_, at_us| *at_us > now_us);
            if self.schedules.len() == KEPT_MAX {
                tracing::warn!(KEPT_MAX, "more ask within a minute than are counted");
            }
        }
        self.schedules.len() < KEPT_MAX
    }
}

fn key_of(limit: &str, text: &str) -> Key {
    let hash = Sha256::new().chain_update(limit).chain_update([0]).chain_update(text).finalize();
    hash[..16].try_into().expect("a SHA-256 has 32 bytes")
}

/// Whole seconds, rounded up.
fn seconds(us: i64) -> u64 {
    us.clamp(0, 2 * WINDOW_US).unsigned_abs().div_ceil(1_000_000)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::{Clock as _, ManualClock};

    fn limits(user_per_minute: u64, address_per_minute: u64) -> (Arc<ManualClock>, Limits) {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000_000));
        let settings = LimitSettings { user_per_minute, address_per_minute };
        (clock.clone(), Limits::new(settings, clock, false))
    }

    #[test]
    fn what_one_limit_refuses_is_counted_by_none() {
        let (clock, limits) = limits(2, 3);
        let ask = |user| limits.judge(&[Counted::User(user), Counted::Address("192.0.2.1")]);
        assert!(ask("ann").exceeded.is_none() && ask("ann").exceeded.is_none());
        let (standing, wait_ms) = ask("ann").exceeded.expect("refused");
        assert_eq!((standing.limit, standing.quota, standing.remaining), ("user", 2, 0));
        assert_eq!(wait_ms, 30_000);
        // The address has one left, which the refusal did not use up.
        assert!(ask("bob").exceeded.is_none());
        assert_eq!(ask("cid").exceeded.expect("refused").0.limit, "address");
        // Both refuse: the person for 30 s, the address for 20.
        let (standing, wait_ms) = ask("ann").exceeded.expect("refused");
        assert_eq!((standing.limit, wait_ms), ("user", 30_000));
        clock.set(clock.now_us() + WINDOW_US);
        assert_eq!(ask("cid").standings.iter().map(|it| it.remaining).sum::<u64>(), 3);
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let (_, limits) = limits(0, 2);
        let ask = |address| limits.judge(&[Counted::Address(address)]).exceeded.is_none();
        assert!(ask("2001:db8::1") && ask("2001:db8::ffff:1:2:3"));
        assert!(!ask("2001:db8::2"), "its network has asked twice");
        assert!(ask("2001:db8:0:1::1"), "another network");
        assert!(ask("192.0.2.7") && ask("::ffff:192.0.2.7") && !ask("192.0.2.7"));
        assert!(ask("192.0.2.8") && ask("nowhere") && ask("nowhere") && !ask("nowhere"));
    }

    #[test]
    fn zero_is_no_limit_and_a_service_has_its_own() {
        let (_, limits) = limits(0, 0);
        let free = [Counted::User("ann"), Counted::Address("192.0.2.1")];
        assert_eq!(limits.judge(&free), Judgement::default());
        let service = [Counted::Service("erp", 1)];
        assert!(limits.judge(&service).exceeded.is_none());
        assert!(limits.judge(&service).exceeded.is_some());
        assert!(limits.judge(&[Counted::Service("crm", 1)]).exceeded.is_none());
    }

    #[test]
    fn schedules_that_are_over_make_room_and_none_that_is_not() {
        let (clock, limits) = limits(1, 0);
        for user in 0..KEPT_MAX {
            assert!(limits.judge(&[Counted::User(&user.to_string())]).exceeded.is_none());
        }
        let ask = || limits.judge(&[Counted::User("one more")]).exceeded.is_none();
        assert!(ask() && ask(), "not counted");
        assert!(limits.judge(&[Counted::User("0")]).exceeded.is_some(), "still counted");
        clock.set(clock.now_us() + WINDOW_US + 1);
        assert!(ask() && !ask());
    }
}

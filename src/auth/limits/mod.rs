//! How much an identity may ask for in a minute: decided in memory, without a call, and shared with
//! the other nodes through Redis a moment later. Knows no request and no number.
//!
//! People are limited by the numbers that they take, however many calls they need; a service is
//! limited by its calls. A load counts immediately, so that parallel requests gain nothing; a load
//! without a result is given back.
//!
//! Each node adds the loads that it kept to the schedule in Redis five times a second, and takes
//! over the sum of all nodes. So a limit costs no call on a request's way, and holds on each node
//! while Redis is away. It does not hold within one such moment: a caller that asks several nodes
//! then may get its quota from each of them, once, and waits longer afterwards.

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

/// Schedules kept at once. Expired ones are dropped when there are as many; where none has expired,
/// a new caller is admitted and not counted, which is logged.
const KEPT_MAX: usize = 100_000;

/// Limits of people, in numbers and previews a minute; 0: none.
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

/// How much a call asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Numbers that it takes, or previews.
    pub numbers: u64,
    /// 1 for the call itself, where it has not counted yet.
    pub calls: u64,
}

impl Load {
    /// A call for one number, or that counts like one.
    pub const ONE: Load = Load { numbers: 1, calls: 1 };
}

/// The limits by which a call is counted.
#[derive(Clone, Debug, Default)]
pub struct Account(Vec<Limit>);

impl Account {
    /// Whether nothing limits it.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it counts what calls take, and not the calls alone.
    #[must_use]
    pub fn counts_numbers(&self) -> bool {
        self.0.iter().any(|limit| !limit.is_of_calls)
    }
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Limit {
    name: &'static str,
    key: LimitKey,
    rate: Rate,
    /// Whether it counts calls, and not what they take.
    is_of_calls: bool,
}

impl Limit {
    /// How much of a load it counts.
    const fn of(&self, load: Load) -> u64 {
        if self.is_of_calls { load.calls } else { load.numbers }
    }
}

/// The state of a limit for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// `user`, `address` or `service`.
    pub limit: &'static str,
    /// How many a minute.
    pub quota: u64,
    /// How many are left.
    pub remaining: u64,
    /// Until all are there again, in seconds.
    pub reset_s: u64,
}

/// The judgement of all limits on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Of each limit.
    pub limit_states: Vec<LimitState>,
    /// The limit that refuses it for longest, and after how many milliseconds it would not;
    /// whatever asks for more than a minute's quota is refused forever.
    pub exceeded: Option<(LimitState, u64)>,
}

/// The limits of a node.
pub struct Limits {
    settings: LimitSettings,
    clock: SharedClock,
    is_shared: bool,
    kept: Mutex<Kept>,
}

/// A limited account: 128 bits of the SHA-256 of its name. Redis never receives the name.
type LimitKey = [u8; 16];

#[derive(Default)]
struct Kept {
    /// The time of each schedule, in microseconds.
    schedules: HashMap<LimitKey, i64>,
    /// What was kept since it was last shared, in microseconds of the schedule; nothing where
    /// limits are not shared.
    unshared: HashMap<LimitKey, i64>,
    /// When those that are over were let go.
    swept_at_us: i64,
}

impl Limits {
    /// Limits that are unused so far. [`share`] sends those that are shared to the other nodes.
    #[must_use]
    pub fn new(settings: LimitSettings, clock: SharedClock, is_shared: bool) -> Self {
        Limits { settings, clock, is_shared, kept: Mutex::default() }
    }

    /// The limits by which a call is counted.
    #[must_use]
    pub fn account(&self, by: &[Counted<'_>]) -> Account {
        Account(by.iter().filter_map(|counted| self.limit(*counted)).collect())
    }

    /// Judges a call for one number and, unless a limit refuses it, counts it by all of them.
    ///
    /// # Panics
    /// Where another holder of the lock did, which none does.
    pub fn judge(&self, by: &[Counted<'_>]) -> Judgement {
        let account = self.account(by);
        let judgement = self.charge(&account, Load::ONE);
        if judgement.exceeded.is_none() {
            self.settle(&account, Load::ONE, Load::ONE);
        }
        judgement
    }

    /// Judges a load and, unless a limit refuses it, counts it by all of them; once the outcome is
    /// known, it must be [settled](Limits::settle). A load of zero shows the state of the limits.
    ///
    /// # Panics
    /// When the lock is poisoned, which no holder causes.
    pub fn charge(&self, account: &Account, load: Load) -> Judgement {
        let mut judgement = Judgement::default();
        if account.is_unlimited() {
            return judgement;
        }
        let now_us = self.clock.now_us();
        let mut kept = self.kept();
        let mut scheduled = Vec::with_capacity(account.0.len());
        for limit in &account.0 {
            let Limit { name, key, rate, .. } = *limit;
            let at_us = kept.schedules.get(&key).copied().unwrap_or(0);
            let verdict = rate.judge(at_us, now_us, limit.of(load));
            let limit_state = LimitState {
                limit: name,
                quota: rate.quota().unsigned_abs(),
                remaining: verdict.remaining.unsigned_abs(),
                reset_s: seconds(verdict.reset_us),
            };
            judgement.limit_states.push(limit_state);
            match verdict.scheduled_us {
                Some(at_us) if limit.of(load) > 0 => scheduled.push((key, at_us)),
                Some(_) => {}
                None => {
                    let wait_ms = verdict.retry_after_us.unsigned_abs().div_ceil(1_000);
                    // Of two, the one that refuses for longer: an earlier retry would fail.
                    if judgement.exceeded.is_none_or(|(_, other)| other < wait_ms) {
                        judgement.exceeded = Some((limit_state, wait_ms));
                    }
                }
            }
        }
        if judgement.exceeded.is_none() {
            for (key, at_us) in scheduled {
                if kept.has_room_for(&key, now_us) {
                    kept.schedules.insert(key, at_us);
                }
            }
        }
        judgement
    }

    /// Keeps the part of a counted load that was taken, which the other nodes learn now, and gives
    /// the rest back.
    ///
    /// # Panics
    /// When the lock is poisoned, which no holder causes.
    pub fn settle(&self, account: &Account, counted: Load, taken: Load) {
        let mut kept = self.kept();
        for limit in &account.0 {
            let taken = limit.of(taken);
            // One that found no room is not counted.
            let Some(at_us) = kept.schedules.get_mut(&limit.key) else { continue };
            let back_us = limit.rate.cost_us(limit.of(counted).saturating_sub(taken));
            *at_us = at_us.saturating_sub(back_us);
            if self.is_shared && taken > 0 {
                let unshared = kept.unshared.entry(limit.key).or_default();
                *unshared = unshared.saturating_add(limit.rate.cost_us(taken));
            }
        }
    }

    /// The limit by which something is counted, if there is one.
    fn limit(&self, counted: Counted<'_>) -> Option<Limit> {
        let LimitSettings { user_per_minute, address_per_minute } = self.settings;
        let is_of_calls = matches!(counted, Counted::Service(..));
        let (name, text, quota) = match counted {
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
        let key = key_of(name, network.as_deref().unwrap_or(text));
        Some(Limit { name, key, rate: Rate::per_minute(quota), is_of_calls })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no holder of this lock panics")
    }
}

impl Kept {
    /// Whether there is room for one more, or it is kept already.
    fn has_room_for(&mut self, key: &LimitKey, now_us: i64) -> bool {
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

fn key_of(limit: &str, text: &str) -> LimitKey {
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
        let (limit_state, wait_ms) = ask("ann").exceeded.expect("refused");
        assert_eq!((limit_state.limit, limit_state.quota, limit_state.remaining), ("user", 2, 0));
        assert_eq!(wait_ms, 30_000);
        // The address has one left, which the refusal did not use up.
        assert!(ask("bob").exceeded.is_none());
        assert_eq!(ask("cid").exceeded.expect("refused").0.limit, "address");
        // Both refuse: the person for 30 s, the address for 20.
        let (limit_state, wait_ms) = ask("ann").exceeded.expect("refused");
        assert_eq!((limit_state.limit, wait_ms), ("user", 30_000));
        clock.set(clock.now_us() + WINDOW_US);
        assert_eq!(ask("cid").limit_states.iter().map(|it| it.remaining).sum::<u64>(), 3);
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
    fn people_are_limited_in_numbers_and_a_service_in_calls_and_what_is_given_back_is_there() {
        let (_, limits) = limits(10, 0);
        let account = limits.account(&[Counted::User("ann"), Counted::Service("erp", 5)]);
        let left = || {
            let shown = limits.charge(&account, Load::default()).limit_states;
            shown.iter().map(|limit_state| limit_state.remaining).collect::<Vec<_>>()
        };
        let seven = Load { numbers: 7, calls: 1 };
        assert!(limits.charge(&account, seven).exceeded.is_none());
        assert_eq!(left(), [3, 4]);
        let refused = limits.charge(&account, Load { numbers: 4, calls: 1 });
        assert_eq!(refused.exceeded.expect("refused").0.limit, "user");
        assert_eq!(left(), [3, 4], "what is refused is not counted");
        limits.settle(&account, seven, Load { numbers: 2, calls: 1 });
        assert_eq!(left(), [8, 4]);
        let never = limits.charge(&account, Load { numbers: 11, calls: 0 });
        assert!(never.exceeded.expect("refused").1 > u64::from(u32::MAX));
        limits.settle(&account, Load { numbers: 2, calls: 1 }, Load::default());
        assert_eq!(left(), [10, 5]);
    }

    #[test]
    fn other_nodes_hear_of_what_was_kept_and_of_nothing_else() {
        let clock = Arc::new(ManualClock::at(1_700_000_000_000_000));
        let settings = LimitSettings { user_per_minute: 10, address_per_minute: 0 };
        let limits = Limits::new(settings, clock, true);
        let account = limits.account(&[Counted::User("ann")]);
        let load = Load { numbers: 3, calls: 1 };
        assert!(limits.charge(&account, load).exceeded.is_none());
        assert!(limits.kept().unshared.is_empty(), "nobody knows yet what comes of it");
        limits.settle(&account, load, Load { numbers: 2, calls: 1 });
        let told: Vec<i64> = limits.kept().unshared.values().copied().collect();
        assert_eq!(told, [12_000_000]);
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

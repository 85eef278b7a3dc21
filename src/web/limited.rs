//! The state of a call's limits, as headers (draft-ietf-httpapi-ratelimit-headers-10), the refusal
//! of calls above them, and what of a call counts.
//!
//! A call counts by what it takes. Requested numbers are counted before they are taken; those of an
//! earlier call, and those that the service could not give, are given back. Every call counts as at
//! least one, unless it was refused here.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::watch;

use super::problem::{Problem, Slug};
use crate::auth::limits::{Account, Judgement, Limits, Load};
use crate::web::permits::Permit;

/// The quotas, each in a window of 60 seconds.
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of the limits.
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// A call that limits count.
pub(crate) struct Limited {
    limits: Arc<Limits>,
    account: Account,
    counted: Mutex<CallCount>,
    /// Charges whose outcome is not known yet.
    open: watch::Sender<usize>,
    /// The place for look-ups of numbers that the call already has, while they last.
    permit: tokio::sync::Mutex<LookPlace>,
}

#[derive(Debug, Default)]
struct LookPlace {
    held: Weak<Permit>,
    /// Whether none was free: it is not waited for again.
    is_refused: bool,
}

/// The counted parts of a call.
#[derive(Debug, Default)]
struct CallCount {
    /// Whether the state of the limits was read.
    is_judged: bool,
    /// Whether the call itself counts.
    is_counted: bool,
    /// Whether something came of it.
    is_kept: bool,
    is_closed: bool,
}

/// Numbers that a call requests, and that count; all of them are kept unless stated otherwise.
pub(crate) struct Charge {
    limited: Arc<Limited>,
    numbers: u64,
    kept: u64,
}

impl std::fmt::Debug for Limited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limited").field("counted", &self.counted).finish_non_exhaustive()
    }
}

impl Limited {
    /// A call of which nothing was counted yet; `None` if no limit counts it.
    pub(crate) fn of(limits: &Arc<Limits>, account: Account) -> Option<Arc<Self>> {
        let limits = Arc::clone(limits);
        let (counted, permit) = (Mutex::default(), tokio::sync::Mutex::default());
        let open = watch::Sender::new(0);
        let is_limited = !account.is_unlimited();
        is_limited.then(|| Arc::new(Limited { limits, account, counted, open, permit }))
    }

    /// Counts so many numbers.
    ///
    /// # Errors
    /// A refusal: too soon, or more than the limit ever allows. Nothing was counted.
    pub(crate) fn charge(self: &Arc<Self>, numbers: u64) -> Result<Charge, Problem> {
        let mut counted = self.counted();
        counted.is_judged = true;
        let calls = u64::from(!counted.is_counted);
        must_be_within(&self.limits.charge(&self.account, Load { numbers, calls }), numbers)?;
        counted.is_counted = true;
        self.open.send_modify(|open| *open += 1);
        Ok(Charge { limited: Arc::clone(self), numbers, kept: numbers })
    }

    /// The call turned out to show what its caller already has: it does not count.
    pub(crate) fn takes_nothing(&self) {
        self.counted().is_judged = true;
    }

    /// The place for look-ups of numbers that the call already has: its concurrent look-ups share
    /// one. It is given back before waiting for anything else.
    pub(crate) async fn permit(
        &self,
        taking: impl Future<Output = Option<Permit>>,
    ) -> Option<Arc<Permit>> {
        let mut permit = self.permit.lock().await;
        if let Some(held) = permit.held.upgrade() {
            return Some(held);
        }
        if permit.is_refused {
            return None;
        }
        let taken = taking.await.map(Arc::new);
        permit.is_refused = taken.is_none();
        permit.held = taken.as_ref().map(Arc::downgrade).unwrap_or_default();
        taken
    }

    /// Waits until the outcome of all charges of the call is known: what is given back is available
    /// for the rest of it.
    pub(crate) async fn settled(&self) {
        let mut open = self.open.subscribe();
        let _ = open.wait_for(|open| *open == 0).await;
    }

    /// Ends the counting: the present state of the limits, as headers.
    pub(crate) fn close(&self) -> HeaderMap {
        self.end();
        limited_headers(&self.limits.charge(&self.account, Load::default()))
    }

    fn end(&self) {
        let mut counted = self.counted();
        if std::mem::replace(&mut counted.is_closed, true) {
            return;
        }
        let (limits, account) = (&self.limits, &self.account);
        if counted.is_counted {
            let call = |calls| Load { numbers: 0, calls };
            // After an aborted handler the outcome of its requests is not known yet.
            let is_kept = counted.is_kept || *self.open.borrow() > 0;
            limits.settle(account, call(1), call(is_kept.into()));
        } else if !counted.is_judged && limits.charge(account, Load::ONE).exceeded.is_none() {
            limits.settle(account, Load::ONE, Load::ONE);
        }
    }

    fn counted(&self) -> MutexGuard<'_, CallCount> {
        self.counted.lock().expect("no holder of this lock panics")
    }
}

/// Also for a call whose client leaves.
impl Drop for Limited {
    fn drop(&mut self) {
        self.end();
    }
}

impl Charge {
    /// Whether the numbers themselves count, and not only the call.
    pub(crate) fn counts_numbers(&self) -> bool {
        self.limited.account.counts_numbers()
    }

    /// Keeps this many of them, and gives the rest back.
    pub(crate) fn settle(mut self, kept: u64) {
        self.kept = kept.min(self.numbers);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let Limited { limits, account, .. } = &*self.limited;
        let numbers = |numbers| Load { numbers, calls: 0 };
        limits.settle(account, numbers(self.numbers), numbers(self.kept));
        self.limited.counted().is_kept |= self.kept > 0;
        self.limited.open.send_modify(|open| *open -= 1);
    }
}

/// The headers of a counted call; none for another.
fn limited_headers(judged: &Judgement) -> HeaderMap {
    let (mut policy, mut limit) = (String::new(), String::new());
    for limit_state in &judged.limit_states {
        let name = limit_state.limit;
        let between = if policy.is_empty() { "" } else { ", " };
        let (quota, left, reset_s) =
            (limit_state.quota, limit_state.remaining, limit_state.reset_s);
        let _ = write!(policy, "{between}\"{name}\";q={quota};w=60");
        let _ = write!(limit, "{between}\"{name}\";r={left};t={reset_s}");
    }
    let mut headers = HeaderMap::new();
    for (name, text) in [(RATELIMIT_POLICY, policy), (RATELIMIT, limit)] {
        if let (false, Ok(value)) = (text.is_empty(), HeaderValue::from_str(&text)) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Refuses a call above a limit. Nothing was taken.
fn must_be_within(judged: &Judgement, numbers: u64) -> Result<(), Problem> {
    let Some((limit_state, wait_ms)) = judged.exceeded else { return Ok(()) };
    let (what, whose) = match limit_state.limit {
        "user" => ("numbers", "one person may take or preview"),
        "address" => ("numbers", "people at one address may take or preview"),
        _ => ("requests", "this token may send"),
    };
    let quota = limit_state.quota;
    if what == "numbers" && numbers > quota {
        let why = format!(
            "asks for {numbers} numbers, and {quota} a minute are what {whose}: ask for fewer at a \
             time, or have limits.{}_per_minute raised",
            limit_state.limit
        );
        return Err(Problem::field("count", why));
    }
    let detail = format!(
        "{quota} {what} a minute are what {whose}; ask again after {} s, or have the limit raised",
        wait_ms.div_ceil(1_000)
    );
    Err(Problem::new(Slug::TooManyRequests, detail).retry_in(wait_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::limits::{Counted, LimitSettings, LimitState};
    use crate::clock::ManualClock;

    /// A call of a person through a service; both are limited.
    fn call(limits: &Arc<Limits>) -> Arc<Limited> {
        let by = [Counted::User("ann"), Counted::Service("erp", 5)];
        Limited::of(limits, limits.account(&by)).expect("limited")
    }

    fn limits() -> Arc<Limits> {
        let settings = LimitSettings { user_per_minute: 10, address_per_minute: 0 };
        Arc::new(Limits::new(settings, Arc::new(ManualClock::at(1_700_000_000_000_000)), false))
    }

    /// The rest of both limits.
    fn left(limits: &Arc<Limits>) -> String {
        let headers = call_that_asks_nothing(limits);
        headers["ratelimit"].to_str().expect("text").replace(";t=", " ")
    }

    fn call_that_asks_nothing(limits: &Arc<Limits>) -> HeaderMap {
        let by = [Counted::User("ann"), Counted::Service("erp", 5)];
        limited_headers(&limits.charge(&limits.account(&by), Load::default()))
    }

    #[test]
    fn a_call_counts_by_what_came_of_it_and_one_of_which_nothing_is_read_as_one() {
        let limits = limits();
        let shows = |user: u64, service: u64| {
            let shown = left(&limits);
            let parts = [format!("\"user\";r={user} "), format!("\"service\";r={service} ")];
            assert!(parts.iter().all(|part| shown.contains(part)), "{user}, {service}: {shown}");
        };
        let list = call(&limits);
        for kept in [1, 0, 1] {
            list.charge(1).expect("within").settle(kept);
        }
        list.close();
        shows(8, 4);
        let replays = call(&limits);
        replays.charge(3).expect("within").settle(0);
        replays.close();
        shows(8, 4);
        // Its caller leaves: the outcome is not reported.
        drop(call(&limits).charge(2).expect("within"));
        shows(6, 3);
        drop(call(&limits));
        shows(5, 2);
        let refused = call(&limits).charge(6).err().expect("too soon");
        assert_eq!(refused.slug(), Slug::TooManyRequests);
        let never = call(&limits).charge(11).err().expect("more than ever comes");
        assert_eq!((never.slug(), never.wrong_field()), (Slug::InvalidField, Some("count")));
        shows(5, 2);
    }

    #[test]
    fn a_call_that_ends_before_it_is_known_what_came_of_it_counts() {
        let limits = limits();
        let broken_off = call(&limits);
        let open = broken_off.charge(2).expect("within");
        broken_off.close();
        open.settle(0);
        assert!(left(&limits).contains("\"service\";r=4 "), "{}", left(&limits));
        let shown = call(&limits);
        shown.takes_nothing();
        shown.close();
        assert!(left(&limits).contains("\"service\";r=4 "), "{}", left(&limits));
    }

    /// Goal: a call that waits for its other charges blocks no look-up. Method: one place, for
    /// which another call waits.
    #[tokio::test]
    async fn what_a_call_looks_for_at_once_shares_a_place_and_none_is_kept_behind_it() {
        use crate::web::permits::Permits;

        let (permits, own, other) = (Permits::new(1), "own".into(), "other".into());
        let call = call(&limits());
        let _pending = call.charge(1).expect("within");
        let first = call.permit(permits.take(&own)).await.expect("free");
        let second = call.permit(permits.take(&own)).await.expect("the same");
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        let others = permits.take(&other).await.expect("nobody keeps it");
        drop(others);
        assert!(call.permit(permits.take(&own)).await.is_some(), "and it is there again");
        assert!(call.permit(async { None }).await.is_none());
        assert!(call.permit(permits.take(&own)).await.is_none(), "it is not waited for twice");
    }

    #[test]
    fn each_limit_is_an_item_of_both_headers() {
        let limit_state =
            |limit, quota, remaining, reset_s| LimitState { limit, quota, remaining, reset_s };
        let limit_states = vec![limit_state("user", 10, 9, 6), limit_state("address", 50, 0, 60)];
        let headers = limited_headers(&Judgement { limit_states, exceeded: None });
        assert_eq!(headers["ratelimit-policy"], "\"user\";q=10;w=60, \"address\";q=50;w=60");
        assert_eq!(headers["ratelimit"], "\"user\";r=9;t=6, \"address\";r=0;t=60");
        assert!(limited_headers(&Judgement::default()).is_empty());
    }
}

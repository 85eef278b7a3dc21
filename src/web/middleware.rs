//! What every call passes: its request id, its caller, its log line, its metrics, its problem.
//!
//! Every call is logged, also if its client leaves early. Of refusals, which took nothing, only so
//! many per second have lines, and a further line counts the others.

mod bearer;
mod caller;

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::codings;
use super::holdings::{Holdings, counts_for};
use super::language::{Locale, spoken};
use super::limited::Limited;
use super::prefer::{PREFERENCE_APPLIED, Wait};
use super::problem::{Problem, Slug};
use super::request_id::{REQUEST_ID, request_id};
use super::rights;
use super::route::{Matched, Route, RouteTable};
use crate::auth::COUNT_MAX;
use crate::auth::{Act, Identity, LOCAL_USER};
use crate::clock::SharedClock;
use crate::metrics::{Counter, Family, Metrics};
use crate::refusals::Refusals;
use crate::telemetry::log_lines::working_for;
use crate::web::principal::Principal;
pub(crate) use bearer::Admission;
pub(crate) use caller::{Caller, ServedBy};

/// Status of a call whose client left before it was answered; only ever logged and counted.
const CLIENT_LEFT: u16 = 499;

/// Label of every path that has no route: labels must be few, and never a caller's text.
const OTHER: &str = "other";

/// How the type of a page begins.
const HTML: &[u8] = b"text/html";
/// Pages are self-contained: only their own styles apply.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";

/// The other end of the connection; an extension of each request that goes to the router.
#[derive(Clone, Debug)]
pub struct Peer(pub(crate) Arc<str>);

impl Peer {
    /// The peer at an address; IPv4 in the guise of IPv6 is shown as IPv4.
    pub(crate) fn at(address: IpAddr) -> Self {
        Peer(address.to_canonical().to_string().into())
    }
}

/// A request that takes longer gets a warning in the log.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(1);

/// What is logged about calls.
pub(crate) struct CallLog {
    /// Calls that take longer are warned of.
    pub(crate) slow_after: Duration,
    /// `http.time_limit`: no call waits longer.
    pub(crate) time_limit: Duration,
    /// Bounds the log lines of refused calls.
    pub(crate) refusals: Refusals,
}

/// Keeps the gate.
pub(crate) struct Middleware {
    routes: RouteTable,
    admission: Admission,
    /// [`LOCAL_USER`].
    local: Arc<Identity>,
    metrics: Metrics,
    problems: Family<Counter>,
    clock: SharedClock,
    call_log: CallLog,
}

impl Middleware {
    /// The gate of these routes.
    pub(crate) fn new(
        routes: RouteTable,
        admission: Admission,
        metrics: Metrics,
        clock: SharedClock,
        call_log: CallLog,
    ) -> Self {
        let problems = Metrics::problems(Slug::ALL.iter().map(|slug| slug.name()));
        let local = Arc::new(Identity::local(LOCAL_USER, COUNT_MAX));
        Middleware { routes, admission, local, metrics, problems, clock, call_log }
    }

    /// What a call may hold: for an identity, or for the address if there is none.
    fn holdings(&self, identity: &Arc<Identity>, ip: Option<&Arc<str>>) -> Holdings {
        let named = (!Arc::ptr_eq(identity, &self.local)).then_some(&identity.name);
        let caller = counts_for(named, ip, &self.local.name);
        Holdings::of(&self.admission.budgets, caller)
    }

    /// The route of a pattern that the router, or the fast path, found.
    pub(crate) fn matched(&self, pattern: &str) -> Matched {
        self.routes.matched(pattern)
    }

    /// The identity of the caller.
    async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Identity>, Problem> {
        let named = self.admission.named(headers).await?;
        Ok(named.unwrap_or_else(|| Arc::clone(&self.local)))
    }
}

/// The middleware around the router.
pub(crate) async fn watch(
    State(middleware): State<Arc<Middleware>>,
    request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().cloned();
    let path = request.extensions().get::<MatchedPath>();
    let route = path.map(|path| middleware.matched(path.as_str()));
    let answer = |mut request: Request, caller: Caller| {
        request.extensions_mut().insert(caller);
        next.run(request)
    };
    pass(middleware, request, peer, route, answer).await
}

/// A call, from its head to its answer: an admitted call is answered by `next`.
pub(crate) async fn pass<B, N, A>(
    middleware: Arc<Middleware>,
    request: Request<B>,
    peer: Option<Peer>,
    route: Option<Matched>,
    next: N,
) -> Response
where
    N: FnOnce(Request<B>, Caller) -> A,
    A: Future<Output = Response>,
{
    let request_id = request_id(request.headers(), &middleware.clock);
    #[cfg(feature = "otlp")]
    let span = crate::telemetry::spans::span(&request_id, request.headers());
    let named = Named { peer, route, request_id: Arc::clone(&request_id) };
    let passed = working_for(request_id, pass_named(middleware, request, named, next));
    #[cfg(feature = "otlp")]
    let passed = tracing::Instrument::instrument(passed, span);
    passed.await
}

/// The facts of a call before its head is read.
struct Named {
    peer: Option<Peer>,
    route: Option<Matched>,
    request_id: Arc<str>,
}

async fn pass_named<B, N, A>(
    middleware: Arc<Middleware>,
    request: Request<B>,
    Named { peer, route, request_id }: Named,
    next: N,
) -> Response
where
    N: FnOnce(Request<B>, Caller) -> A,
    A: Future<Output = Response>,
{
    let language = spoken(request.headers());
    let ip = peer.map(|peer| middleware.admission.proxies.client(peer.0, request.headers()));
    let mut call = Call {
        middleware: Arc::clone(&middleware),
        method: request.method().clone(),
        route,
        user_id: None,
        ip_address: ip.clone(),
        served_by: ServedBy::default(),
        outcome: None,
        began: Instant::now(),
    };
    let mut limited = None;
    let is_sound = codings::check(request.headers());
    let admitted = match is_sound.and_then(|()| middleware.admission.hosts.admit(&request)) {
        Ok(()) => admit(&middleware, request.headers(), &mut call, &mut limited).await,
        Err(problem) => Err(problem),
    };
    let began = tokio::time::Instant::from_std(call.began);
    let asked = (request.method(), call.route.as_ref().and_then(Matched::listed));
    let wait = Wait::of(request.headers(), asked, began, middleware.call_log.time_limit);
    let wait = wait.filter(|_| admitted.is_ok());
    let mut response = match admitted {
        Ok((identity, Principal { user_id, address })) => {
            let holdings = middleware.holdings(&identity, ip.as_ref());
            let caller = Caller {
                user_id,
                identity,
                ip_address: address,
                request_id: request_id.clone(),
                language,
                served_by: call.served_by.clone(),
                by: wait.as_ref().map(|wait| wait.by),
                limited: limited.clone(),
                holdings: holdings.clone(),
            };
            let answering = next(request, caller);
            let answer = match &wait {
                Some(wait) => wait.bound(answering).await,
                None => answering.await,
            };
            // A description of the service is in memory once, however many read it.
            if call.is_open() { answer } else { holdings.count(&call.method, answer).await }
        }
        Err(problem) => problem.into_response(),
    };
    let problem = response.extensions_mut().remove::<Problem>();
    if let Some(problem) = &problem {
        response = rendered(problem, &response, &request_id, language);
    }
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&request_id) {
        headers.insert(REQUEST_ID, id);
    }
    headers.extend(limited.map(|limited| limited.close()).unwrap_or_default());
    headers.extend(wait.map(|wait| (PREFERENCE_APPLIED, wait.applied)));
    guard(headers);
    call.outcome = Some((response.status().as_u16(), problem.map(|problem| problem.slug())));
    response
}

/// The whole response of one that only carries a problem.
fn rendered(problem: &Problem, carried: &Response, id: &str, language: Locale) -> Response {
    let mut rendered = problem.render(id, language);
    // A refused method comes with the header that lists the allowed ones.
    let kept = carried.headers().iter().filter(|(name, _)| *name == "allow");
    rendered.headers_mut().extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    rendered
}

/// The caller, if it may do what it requests.
async fn admit(
    middleware: &Middleware,
    headers: &HeaderMap,
    call: &mut Call,
    limited: &mut Option<Arc<Limited>>,
) -> Result<(Arc<Identity>, Principal), Problem> {
    let is_open = call.is_open();
    let identity = match is_open {
        true => Arc::clone(&middleware.local),
        false => middleware.authenticate(headers).await?,
    };
    // Known from here on, also to the log: its rights are checked later.
    call.user_id = Some(Arc::clone(&identity.name));
    let address = call.ip_address.clone();
    let mut principal = Principal { user_id: Arc::clone(&identity.name), address };
    let Some(route) = call.route.as_ref().filter(|_| !is_open) else {
        return Ok((identity, principal));
    };
    let act = match route {
        Matched::Listed(route) => rights::check(&identity, &call.method, route)?,
        Matched::Unlisted(pattern) => {
            let cause = format!("the table of routes lacks {pattern}");
            return Err(Problem::internal_taking_nothing(&cause));
        }
    };
    let person = principal.name_person(&identity, headers)?;
    call.user_id = Some(Arc::clone(&principal.user_id));
    call.ip_address.clone_from(&principal.address);
    if act.is_some_and(Act::is_limited) {
        let limits = &middleware.admission.limits;
        let account = limits.account(&principal.counted(&identity, person.as_deref()));
        *limited = Limited::of(limits, account);
        // Calls that take numbers or note something count when they do so: a number that the caller
        // already has is not taken.
        if act == Some(Act::Preview)
            && let Some(limited) = limited
        {
            limited.charge(1)?.settle(1);
        }
    }
    Ok((identity, principal))
}

/// Restricts browsers and caches: an answer has no type other than its own, is not stored for
/// others, and, as a page, loads nothing from others and is framed by none.
fn guard(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(HTML));
    if is_page {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

/// One call, logged and counted when it ends, however it ends.
struct Call {
    middleware: Arc<Middleware>,
    method: Method,
    /// The route, if there is one.
    route: Option<Matched>,
    /// The caller; `None` if it was not admitted.
    user_id: Option<Arc<str>>,
    ip_address: Option<Arc<str>>,
    served_by: ServedBy,
    /// Status and slug; `None` until it is answered.
    outcome: Option<(u16, Option<Slug>)>,
    began: Instant,
}

impl Call {
    /// Pattern of the route, as a label.
    fn route(&self) -> &str {
        self.route.as_ref().map_or(OTHER, Matched::pattern)
    }

    /// Whether its route needs no token.
    fn is_open(&self) -> bool {
        self.route.as_ref().and_then(Matched::listed).is_some_and(Route::is_open)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let (status, slug) = self.outcome.unwrap_or((CLIENT_LEFT, None));
        let route = self.route();
        self.middleware.metrics.count_request(route, status, took);
        if let Some(slug) = slug {
            self.middleware.problems.of(slug.name()).increment(1);
        }
        let (method, user) = (self.method.as_str(), self.user_id.as_deref().unwrap_or_default());
        let ip = self.ip_address.as_deref().unwrap_or_default();
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let is_open = self.is_open();
        let is_left_out = slug.is_some() && !self.middleware.call_log.refusals.admit();
        let slug = slug.map_or("", Slug::name);
        if is_left_out || is_open {
            tracing::debug!(user, ip, method, route, status, slug, took_us, "answered");
        } else {
            tracing::info!(user, ip, method, route, status, slug, took_us, "answered");
        }
        let served_by = self.served_by.name();
        // A caller that requests the metrics too often waits for them.
        if took >= self.middleware.call_log.slow_after && !is_open {
            let took_ms = took_us / 1_000;
            tracing::warn!(user, method, route, status, served_by, took_ms, "slow request");
        }
        #[cfg(feature = "otlp")]
        crate::telemetry::spans::describe(&crate::telemetry::spans::Answered {
            method,
            route,
            status,
            served_by,
        });
    }
}

/// The answer to a panic in a handler.
#[expect(clippy::needless_pass_by_value, reason = "the signature is the layer's")]
pub(crate) fn answer_panic(panic: Box<dyn Any + Send>) -> Response {
    let cause = panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".into());
    Problem::internal(&format_args!("panic: {cause}")).into_response()
}

#[cfg(test)]
mod tests;

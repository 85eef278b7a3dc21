//! The two ways into the service. Calls that take numbers, the most frequent ones, are recognised
//! by their path alone and answered directly; all others, and every unusual path, go to the router.
//! Both pass the same gate and end in the same handlers: only the way is decided here, and no
//! answer may show which one it took.

use std::borrow::Cow;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, Request};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Extension, Router};
use futures_util::FutureExt;
use futures_util::future::Either;
use percent_encoding::percent_decode_str;
use tower::ServiceExt;

use super::{FAST, WATCHED};
use crate::features::exchange;
use crate::features::numbers::{batches, generate};
use crate::web::App;
use crate::web::Lane;
use crate::web::body::{BodyBounds, Json};
use crate::web::middleware::{self, Caller, Middleware, Peer};
use crate::web::problem::Problem;
use crate::web::route::Way;

/// Longest body of a batch that is answered by the connection's own runtime, in bytes: some eighty
/// documents.
const SHORT_BYTES_MAX: u64 = 8_192;

/// The ways to an answer: the short one of calls that take numbers, and the router. Cheap to clone.
#[derive(Clone)]
pub struct Routes {
    router: Router,
    numbers: Option<Arc<FastPath>>,
}

/// By the router alone.
impl From<Router> for Routes {
    fn from(router: Router) -> Self {
        Routes { router, numbers: None }
    }
}

impl Routes {
    /// The router, and before it the calls that take numbers.
    pub(crate) fn new(router: Router, numbers: FastPath) -> Self {
        Routes { router, numbers: Some(Arc::new(numbers)) }
    }

    /// Answers a request from that end of a connection, and says where. A page of a thousand rows,
    /// or a batch of a thousand documents, takes a thread for milliseconds, which calls for one
    /// number would wait for on a thread that they share.
    pub fn answer<B>(
        &self,
        request: Request<B>,
        peer: Peer,
    ) -> (Lane, impl Future<Output = Response> + Send + use<B>)
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let known = self.numbers.as_ref().and_then(|fast_path| {
            Some((Arc::clone(fast_path), Taking::of(request.method(), request.uri().path())?))
        });
        if let Some((fast_path, taking)) = known {
            let is_long = taking == Taking::Batch && is_large(&request);
            // Boxed: an idle connection would keep room for it otherwise.
            let answered = Box::pin(fast_path.answer(request, peer, taking));
            return (if is_long { Lane::Slow } else { Lane::Fast }, Either::Left(answered));
        }
        let is_probe = is_probe(request.uri().path());
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        let answered = self.router.clone().oneshot(request);
        let answered = answered.map(|answer: Result<_, Infallible>| match answer {
            Ok(response) => response,
            Err(never) => match never {},
        });
        (if is_probe { Lane::Fast } else { Lane::Slow }, Either::Right(answered))
    }
}

/// Whether a body is, or may be, longer than one that is handled between two short calls: a body in
/// chunks does not announce its length.
fn is_large<B>(request: &Request<B>) -> bool {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|sent| sent.to_str().ok());
    length.and_then(|length| length.parse().ok()).is_none_or(|bytes: u64| bytes > SHORT_BYTES_MAX)
}

/// What a call takes, by its path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Taking {
    /// A number for the document that the path names.
    Number,
    /// Many.
    Batch,
    UnifiedSerial,
    SystemSerial,
    InterfaceSerial,
}

impl Taking {
    /// `None` if the router is to decide what the path means, or what is wrong with it.
    fn of(method: &Method, path: &str) -> Option<Self> {
        if method != Method::POST {
            return None;
        }
        let known = FAST.iter().find(|(_, pattern)| parameter(pattern, path).is_some());
        known.map(|(taking, _)| *taking)
    }

    /// The pattern of the route.
    fn pattern(self) -> &'static str {
        FAST.iter().find(|(taking, _)| *taking == self).map_or("", |(_, pattern)| *pattern)
    }
}

/// Whether machines watch a path.
fn is_probe(path: &str) -> bool {
    let watched = WATCHED.iter().filter(|route| route.path == path);
    watched.flat_map(|route| route.operations).any(|operation| operation.way == Way::Probe)
}

/// The parameter of a path, decoded; no text where the pattern has none, nothing where the path is
/// not of the pattern. A pattern has one parameter at most.
fn parameter<'p>(pattern: &str, path: &'p str) -> Option<Cow<'p, str>> {
    let Some((before, rest)) = pattern.split_once('{') else {
        return (pattern == path).then_some(Cow::Borrowed(""));
    };
    let (_, after) = rest.split_once('}')?;
    let segment = path.strip_prefix(before)?.strip_suffix(after)?;
    let is_segment = !segment.is_empty() && !segment.contains('/');
    percent_decode_str(segment).decode_utf8().ok().filter(|_| is_segment)
}

/// Answers calls that take numbers.
pub(crate) struct FastPath {
    pub(crate) middleware: Arc<Middleware>,
    pub(crate) app: App,
    /// Bounds of the body of a batch.
    pub(crate) batch: BodyBounds,
    /// Of all others.
    pub(crate) single: BodyBounds,
}

impl FastPath {
    async fn answer<B>(self: Arc<Self>, request: Request<B>, peer: Peer, taking: Taking) -> Response
    where
        B: HttpBody<Data = Bytes> + Send,
    {
        let middleware = Arc::clone(&self.middleware);
        let route = middleware.matched(taking.pattern());
        let take = |request, caller| {
            // Boxed, too: the gate would move it several times.
            let taken = Box::pin(self.take(request, caller, taking));
            let taken = AssertUnwindSafe(taken).catch_unwind();
            taken.map(|taken| match taken {
                Ok(answer) => answer.into_response(),
                Err(panic) => middleware::answer_panic(panic),
            })
        };
        middleware::pass(middleware, request, Some(peer), Some(route), take).await
    }

    async fn take<B>(
        &self,
        request: Request<B>,
        caller: Caller,
        taking: Taking,
    ) -> Result<Response, Problem>
    where
        B: HttpBody<Data = Bytes> + Send,
    {
        let holdings = caller.holdings.clone();
        let (app, caller) = (State(self.app.clone()), Extension(caller));
        let (parts, body) = request.into_parts();
        let headers = parts.headers;
        match taking {
            Taking::Number => {
                let document_id = parameter(taking.pattern(), parts.uri.path()).unwrap_or_default();
                let document_id = document_id.into_owned();
                let order = Json::read(&headers, body, self.single, &holdings).await?;
                generate::generate_number(app, caller, Ok(Path(document_id)), headers, order).await
            }
            // Boxed: the most frequent call would carry room for all of them.
            Taking::Batch => {
                let order = Json::read(&headers, body, self.batch, &holdings).await?;
                Box::pin(batches::create_batch(app, caller, headers, order)).await
            }
            Taking::UnifiedSerial => {
                let order = Json::read(&headers, body, self.single, &holdings).await?;
                Box::pin(exchange::generate_unified_serial(app, caller, headers, order)).await
            }
            Taking::SystemSerial => {
                let order = Json::read(&headers, body, self.single, &holdings).await?;
                Box::pin(exchange::generate_system_serial(app, caller, order)).await
            }
            Taking::InterfaceSerial => {
                let order = Json::read(&headers, body, self.single, &holdings).await?;
                Box::pin(exchange::generate_interface_serial(app, caller, headers, order)).await
            }
        }
    }
}

#[cfg(test)]
mod tests;

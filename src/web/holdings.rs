//! The bytes of the budgets that one call holds: its body until it is handled, its answer until it
//! is written or its connection has ended.
//!
//! An answer that only shows something is refused if it finds no room. One that reports a completed
//! action cannot be, so calls that a caller can make in any number reserve its room before the
//! action.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use super::budget::{Budgets, HeldBytes};
use super::paging::PAGE_BYTES_MAX;
use super::problem::{Problem, Slug};
use crate::auth::limits::network_of;

/// An answer up to this size is not counted: a connection itself keeps as much.
const ANSWER_FREE_BYTES_MAX: u64 = 16_384;

/// Memory of an answer that is made while it is sent, in bytes.
const STREAM_BYTES: usize = 262_144;

/// The bytes that a call holds. Cheap to clone; the body is held while any clone exists: that of
/// the call itself, and those of work that continues without its caller.
#[derive(Clone, Debug)]
pub(crate) struct Holdings(Arc<CallHoldings>);

#[derive(Debug)]
struct CallHoldings {
    budgets: Budgets,
    /// The caller for which it counts.
    caller: Arc<str>,
    body: Mutex<Option<HeldBytes>>,
    /// The room that is reserved for its answer.
    answer: Mutex<Option<HeldBytes>>,
}

impl Holdings {
    /// Nothing yet, of a caller.
    pub(crate) fn of(budgets: &Budgets, caller: Arc<str>) -> Self {
        let (budgets, body, answer) = (budgets.clone(), Mutex::default(), Mutex::default());
        Holdings(Arc::new(CallHoldings { budgets, caller, body, answer }))
    }

    /// The caller for which the call counts: callers take turns by it, too.
    pub(crate) fn caller(&self) -> &Arc<str> {
        &self.0.caller
    }

    /// Room for a body, none of it taken.
    pub(crate) fn of_body(&self) -> HeldBytes {
        self.0.budgets.bodies.none(&self.0.caller)
    }

    /// Keeps the room of a body that has arrived until the call is handled.
    pub(crate) fn keep(&self, body: HeldBytes) {
        *self.0.body.lock().expect("no holder of this lock panics") = Some(body);
    }

    /// Reserves room for an answer of about so many bytes, before anything is done for it.
    ///
    /// # Errors
    /// [`Slug::QueueFull`]: nothing was done.
    pub(crate) fn reserve_answer(&self, bytes: usize) -> Result<(), Problem> {
        let CallHoldings { budgets, caller, answer, .. } = &*self.0;
        if bytes as u64 > ANSWER_FREE_BYTES_MAX {
            let held = budgets.answers.hold(caller, bytes).ok_or_else(unread)?;
            *answer.lock().expect("no holder of this lock panics") = Some(held);
        }
        Ok(())
    }

    /// The same for an answer that is made while it is sent.
    ///
    /// # Errors
    /// [`Slug::QueueFull`]: nothing was done.
    pub(crate) fn reserve_stream(&self) -> Result<(), Problem> {
        self.reserve_answer(STREAM_BYTES)
    }

    /// Refuses a request for a page before anything is done for it, if the answers that the caller
    /// has not read leave no room for one.
    ///
    /// # Errors
    /// [`Slug::QueueFull`].
    pub(crate) fn must_have_room_for_an_answer(&self) -> Result<(), Problem> {
        let has_room = self.0.budgets.answers.has_room(&self.0.caller, PAGE_BYTES_MAX);
        if has_room { Ok(()) } else { Err(unread()) }
    }

    /// An answer that is counted until it is written, in the room that was reserved for it. One
    /// that only shows something is refused if it finds no more; a completed action is reported
    /// nevertheless.
    pub(crate) fn count(
        self,
        method: &Method,
        answer: Response,
    ) -> impl Future<Output = Response> + use<> {
        let is_shown = matches!(*method, Method::GET | Method::HEAD);
        let size = answer.body().size_hint().exact();
        let is_free = size.is_some_and(|bytes| bytes <= ANSWER_FREE_BYTES_MAX);
        // Room that a small answer does not need is released with it.
        let reserved = self.0.answer.lock().expect("no holder of this lock panics").take();
        async move {
            match size {
                _ if is_free => answer,
                // Boxed: few answers are large.
                Some(_) => Box::pin(self.count_whole(reserved, answer, is_shown)).await,
                None => self.count_stream(reserved, answer),
            }
        }
    }

    async fn count_whole(
        self,
        reserved: Option<HeldBytes>,
        answer: Response,
        is_shown: bool,
    ) -> Response {
        let mut held = self.held(reserved);
        let (parts, body) = answer.into_parts();
        let bytes = match to_bytes(body, usize::MAX).await {
            Ok(bytes) => bytes,
            Err(error) => return Problem::internal(&error).into_response(),
        };
        if is_shown && !held.resize(bytes.len()) {
            return unread().into_response();
        }
        held.resize_at_any_rate(bytes.len());
        // The room is given back with the memory, which the connection keeps until it is written.
        let body = Body::from(Bytes::from_owner(Unread { bytes, _held: held }));
        Response::from_parts(parts, body)
    }

    fn count_stream(self, reserved: Option<HeldBytes>, answer: Response) -> Response {
        let mut held = self.held(reserved);
        held.resize_at_any_rate(STREAM_BYTES);
        answer.map(|body| Body::new(UnreadStream { body, _held: held }))
    }

    fn held(&self, reserved: Option<HeldBytes>) -> HeldBytes {
        let CallHoldings { budgets, caller, .. } = &*self.0;
        reserved.unwrap_or_else(|| budgets.answers.none(caller))
    }
}

/// The caller for which a call counts: the identity, even for requests on behalf of a person;
/// without an identity, the address, of IPv6 its network.
pub(crate) fn counts_for(
    named: Option<&Arc<str>>,
    address: Option<&Arc<str>>,
    nobody: &Arc<str>,
) -> Arc<str> {
    match (named, address) {
        (Some(name), _) => Arc::clone(name),
        (None, Some(address)) => match address.parse::<IpAddr>() {
            Ok(address @ IpAddr::V6(_)) => network_of(address).to_string().into(),
            _ => Arc::clone(address),
        },
        (None, None) => Arc::clone(nobody),
    }
}

fn unread() -> Problem {
    let detail = "answers that are made, or are not read yet, hold as much memory as those of one \
                  caller, or of all, may; read them first, or ask for less at a time";
    Problem::new(Slug::QueueFull, detail).retry_soon()
}

/// A whole answer in memory.
struct Unread {
    bytes: Bytes,
    _held: HeldBytes,
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer that is made while it is sent.
struct UnreadStream {
    body: Body,
    _held: HeldBytes,
}

impl HttpBody for UnreadStream {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        std::pin::Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::web::budget::Budget;

    const LARGE: usize = 100_000;

    fn budgets() -> Budgets {
        // A caller has one large answer, and all of them two.
        Budgets { bodies: Budget::new(0, 0), answers: Budget::new(2 * LARGE, LARGE) }
    }

    fn holdings(budgets: &Budgets, caller: &str) -> Holdings {
        Holdings::of(budgets, caller.into())
    }

    fn answer(bytes: usize) -> Response {
        "x".repeat(bytes).into_response()
    }

    #[tokio::test]
    async fn an_answer_counts_until_its_bytes_are_gone_and_a_small_one_never() {
        let budgets = budgets();
        let get = async |bytes| holdings(&budgets, "a").count(&Method::GET, answer(bytes)).await;
        let body = get(LARGE).await.into_body();
        // Like a connection that has taken the body, and has not written it yet.
        let unwritten = to_bytes(body, usize::MAX).await.expect("the whole");
        assert_eq!(unwritten.len(), LARGE);
        assert!(holdings(&budgets, "a").must_have_room_for_an_answer().is_err());
        let refused = get(LARGE).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        let problem = refused.extensions().get::<Problem>().expect("a problem");
        assert_eq!(problem.slug(), Slug::QueueFull);
        assert_eq!(get(1_000).await.status(), StatusCode::OK);
        let done = holdings(&budgets, "a").count(&Method::POST, answer(LARGE)).await;
        assert_eq!(done.status(), StatusCode::OK, "what was done is told");
        drop((unwritten, done));
        assert!(holdings(&budgets, "a").must_have_room_for_an_answer().is_ok());
        assert_eq!(get(LARGE).await.status(), StatusCode::OK);
    }

    fn streamed() -> Response {
        let chunks = futures_util::stream::iter([Ok::<_, std::io::Error>("x".repeat(10))]);
        Body::from_stream(chunks).into_response()
    }

    /// Goal: no more calls begin before the first answer than have room.
    #[tokio::test]
    async fn room_that_was_reserved_is_the_answers_and_what_it_does_not_need_comes_back() {
        let budgets = Budgets {
            bodies: Budget::new(0, 0),
            answers: Budget::new(32 * STREAM_BYTES, 2 * STREAM_BYTES),
        };
        let [first, second] = ["a", "a"].map(|caller| holdings(&budgets, caller));
        first.reserve_stream().expect("its part");
        second.reserve_answer(STREAM_BYTES).expect("its part");
        let third = holdings(&budgets, "a");
        let refused = third.reserve_answer(LARGE).expect_err("all of it is reserved");
        assert_eq!(refused.slug(), Slug::QueueFull);
        third.reserve_answer(10_000).expect("what is small needs no room");
        holdings(&budgets, "b").reserve_stream().expect("another one has its own part");

        let whole = second.count(&Method::POST, answer(LARGE)).await;
        third.reserve_answer(STREAM_BYTES - LARGE).expect("the first did not need all");
        assert!(holdings(&budgets, "a").reserve_answer(LARGE).is_err());
        let small = third.count(&Method::POST, answer(10)).await;
        holdings(&budgets, "a").reserve_answer(STREAM_BYTES - LARGE).expect("nor did the third");
        let stream = first.count(&Method::POST, streamed()).await;
        assert!(holdings(&budgets, "a").reserve_stream().is_err());
        drop((whole, small, stream));
        holdings(&budgets, "a").reserve_answer(2 * STREAM_BYTES).expect("all of it");
    }

    #[tokio::test]
    async fn an_answer_that_is_made_while_it_is_sent_counts_until_it_ends() {
        let budgets = budgets();
        let streamed = streamed();
        let counted = holdings(&budgets, "a").count(&Method::POST, streamed).await;
        assert!(holdings(&budgets, "a").must_have_room_for_an_answer().is_err());
        assert_eq!(to_bytes(counted.into_body(), 20).await.expect("all").len(), 10);
        assert!(holdings(&budgets, "a").must_have_room_for_an_answer().is_ok());
    }

    #[test]
    fn who_has_no_name_counts_by_the_address_and_of_ipv6_by_the_network() {
        let [name, nobody]: [Arc<str>; 2] = ["erp".into(), "local".into()];
        let of = |address: &str| counts_for(None, Some(&address.into()), &nobody);
        assert_eq!(&*counts_for(Some(&name), Some(&"192.0.2.7".into()), &nobody), "erp");
        assert_eq!(&*of("192.0.2.7"), "192.0.2.7");
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(&*of("_hidden"), "_hidden");
        assert_eq!(&*counts_for(None, None, &nobody), "local");
    }
}

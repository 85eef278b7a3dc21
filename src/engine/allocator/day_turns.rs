//! Requests without a date, where series take turns by days (F40). A retry of such a request gets
//! the answer that the request got before, whichever of these series serves it now.
//!
//! Two rules achieve that. The series that served it at another time are asked for its number
//! before it is drafted, each by its own partition worker, as a retry would ask it. And near a
//! turn, where two clocks or a request that is still on its way may be on either side, the ledger
//! records when the request was first asked: it is dated by that moment, wherever and whenever it
//! comes again.
//!
//! A request with a date, or of a type that no such series serves, is not affected.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use numbering::{DocumentsOf, Inputs, PartialNumber, Series, Told, fits_some_day};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::catalog::{Catalog, ServedSeries};
use super::error::{unavailable, unread};
use super::pending_request::{CheckedRequest, PendingRequest, digest, issue_request};
use super::retry_policy::{Errand, attempt};
use super::{AllocError, Allocator, Issued, NumberTaken, Request, Unavailable, replay, reserving};
use crate::ledger::{Found, Record, undated_names};
use crate::metrics::Metrics;
use crate::redis::Take;

/// How far from a turn a request may be on either side of it: as much as the clocks of two
/// processes may differ (F29), and as a request may be under way.
const TURN_MARGIN: SignedDuration = SignedDuration::from_secs(60 * 60);

/// The counter of a request that only asks: no series has it.
const NO_COUNTER: &str = "0::asked";

/// A moment before another one.
const BEFORE: SignedDuration = SignedDuration::from_micros(1);

/// The series that take turns for a request.
#[derive(Debug)]
pub(super) struct DayTurns {
    /// Those that may have numbered it, the one that serves it now among them.
    asked: Vec<Arc<ServedSeries>>,
    /// Names the series together: the same for each process.
    family: i64,
    /// The scope of its document id, where all of them agree; else that of the series.
    documents: DocumentsOf,
    /// The turn that is near.
    near: Option<Timestamp>,
    /// The partition of one of them, in whose places a request waits for the moment.
    partition: u32,
}

/// A time in which one series serves a request, or none.
struct Stretch<'c> {
    from: Timestamp,
    until: Timestamp,
    served: Option<&'c Arc<ServedSeries>>,
}

impl DayTurns {
    /// The turns of a request; `None` where it has a date, can have no earlier number, or is of no
    /// series that takes turns. `window`: how long an earlier number answers.
    pub(super) fn of(
        catalog: &Catalog,
        request: &Request,
        now: Timestamp,
        window: Duration,
    ) -> Option<Self> {
        let Request { inputs, document_id, idempotency_key, .. } = request;
        if inputs.date.is_some() || (document_id.is_none() && idempotency_key.is_none()) {
            return None;
        }
        if catalog.in_turns().is_empty() {
            return None;
        }
        let offered: Vec<&Series> = catalog.active().iter().map(|one| &one.series).collect();
        let in_turns = catalog.in_turns().iter();
        let fitting: Vec<_> =
            in_turns.filter(|one| fits_some_day(&one.series, &offered, inputs)).collect();
        if fitting.is_empty() {
            return None;
        }
        let stretches = stretches(catalog, &fitting, inputs);
        let (oldest, newest) = (earlier(now, window), later(now, TURN_MARGIN));
        // A turn that was moved by a save is where it is for those alone that ask since.
        let is_new = |one: &Arc<ServedSeries>| one.version.saved_at_us > oldest.as_microsecond();
        let is_moved = fitting.iter().any(|one| is_new(one));
        let may_have = |one: &Arc<ServedSeries>| {
            document_id.is_some() && one.version.definition.is_once_per_document()
        };
        let is_asked = |stretch: &&Stretch<'_>| {
            let was_there = stretch.served.is_some_and(may_have) || oldest < stretch.until;
            is_moved || (stretch.from <= newest && was_there)
        };
        let served = stretches.iter().filter(is_asked).filter_map(|stretch| stretch.served);
        let ended = fitting.iter().copied().filter(|one| !one.version.active);
        let ended = ended.filter(|one| may_have(one) || is_new(one));
        let mut asked: Vec<Arc<ServedSeries>> = served.chain(ended).map(Arc::clone).collect();
        asked.sort_unstable_by_key(|one| one.version.series_id);
        asked.dedup_by_key(|one| one.version.series_id);
        let all = || stretches.iter().filter_map(|stretch| stretch.served);
        let family = all().map(|one| one.version.series_id).min()?;
        let mut owners = all().map(|one| one.series.documents_of(inputs));
        let documents = owners.next().filter(|first| owners.all(|owner| owner == *first));
        let documents = documents.unwrap_or_default();
        let partition = fitting[0].version.partition;
        Some(DayTurns { asked, family, documents, near: near(&stretches, now), partition })
    }
}

/// Which series serves a request when, the earliest first.
fn stretches<'c>(
    catalog: &'c Catalog,
    fitting: &[&Arc<ServedSeries>],
    inputs: &Inputs,
) -> Vec<Stretch<'c>> {
    let mut ends: Vec<Timestamp> = fitting.iter().flat_map(|one| one.series.turns()).collect();
    ends.extend([Timestamp::MIN, Timestamp::MAX]);
    ends.sort_unstable();
    ends.dedup();
    let stretch = |ends: &[Timestamp]| {
        let (from, until) = (ends[0], ends[1]);
        let last = until.checked_sub(BEFORE).unwrap_or(from);
        Stretch { from, until, served: catalog.choose_telling(inputs, last, Told::InBrief).ok() }
    };
    ends.windows(2).map(stretch).collect()
}

/// The turn that is near: two series on either side of it.
fn near(stretches: &[Stretch<'_>], now: Timestamp) -> Option<Timestamp> {
    let id = |stretch: &Stretch<'_>| stretch.served.map(|one| one.version.series_id);
    let is_turn = |pair: &&[Stretch<'_>]| {
        id(&pair[0]).is_some() && id(&pair[1]).is_some() && id(&pair[0]) != id(&pair[1])
    };
    let turns = stretches.windows(2).filter(is_turn).map(|pair| pair[1].from);
    let mut near = turns.filter(|turn| now.duration_since(*turn).abs() <= TURN_MARGIN);
    near.next()
}

fn earlier(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.checked_sub(by).unwrap_or(Timestamp::MIN)
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

impl Allocator {
    /// The earlier answer to a request, asked at a moment, of another series that takes turns for
    /// it; nothing where none of them has one.
    ///
    /// # Errors
    /// What cannot be known now: then nothing is taken.
    pub(super) async fn earlier_across(
        &self,
        catalog: &Catalog,
        turns: DayTurns,
        request: &Request,
        (asked_at, by): (Timestamp, Instant),
    ) -> Result<Option<Result<Issued, AllocError>>, AllocError> {
        // The serving series looks on its own.
        let serving = catalog.choose_telling(&request.inputs, asked_at, Told::InBrief).ok();
        let serving = serving.map(|served| served.version.series_id);
        for served in turns.asked {
            if Some(served.version.series_id) == serving {
                continue;
            }
            let question =
                CheckedRequest::asking_again(&served, request, self.shared.context.clock.now_us());
            match self.ask(question, by).await {
                Ok(None) => {}
                Ok(Some(issued)) => return Ok(Some(Ok(issued))),
                Err(error) => return Ok(Some(Err(error))),
            }
        }
        Ok(None)
    }

    /// Since when a request is asked: near a turn the ledger has it, else it is now.
    ///
    /// # Errors
    /// A ledger that does not answer, or not by then; too many that wait for it.
    pub(super) async fn asked_at(
        &self,
        turns: &DayTurns,
        request: &Request,
        (now, by): (Timestamp, Instant),
    ) -> Result<Timestamp, AllocError> {
        let Some(turn) = turns.near else { return Ok(now) };
        let worker = &self.shared.workers[turns.partition as usize];
        let Ok(waiting) = Arc::clone(&worker.places).try_acquire_owned() else {
            return Err(unavailable(Unavailable::QueueFull, NumberTaken::No));
        };
        let context = &self.shared.context;
        let names = undated_names(
            turns.family,
            &request.user_id,
            request.idempotency_key.as_deref(),
            request.document_id.as_ref().map(|id| turns.documents.name(id)).as_deref(),
            request.again.then(|| digest(request)).as_deref(),
        );
        let window = context.windows_asked(1).as_micros();
        let window_us = i64::try_from(window).unwrap_or(i64::MAX);
        let (now_us, turn_us) = (now.as_microsecond(), turn.as_microsecond());
        let ledger = Arc::clone(&context.ledger);
        let agreeing = async move {
            let agreed = ledger.asked_at(&names, now_us, turn_us, window_us).await;
            // The caller may be gone by now.
            drop(waiting);
            agreed
        };
        let agreed = timeout_at(by, attempt(context, Errand::Moment, agreeing)).await;
        let agreed = agreed.map_err(|_| self.timed_out(None, NumberTaken::No))?;
        Ok(Timestamp::from_microsecond(agreed.map_err(|e| unread(&e))?).unwrap_or(now))
    }
}

impl CheckedRequest {
    /// Asks another series whether it has a number of a request. Takes nothing: its only counter is
    /// none, and so never in Redis (F40).
    pub(super) fn asking_again(
        served: &Arc<ServedSeries>,
        request: &Request,
        issued_at_us: i64,
    ) -> Self {
        let record = Record {
            allocation_id: Uuid::now_v7(),
            series_id: served.version.series_id,
            version: served.version.version,
            type_code: request.inputs.type_code.clone(),
            project: request.inputs.project.clone(),
            document_id: request.document_id.clone(),
            context: request.inputs.context.clone(),
            user_id: request.user_id.clone(),
            ip_address: request.ip_address.clone(),
            idempotency_key: request.idempotency_key.clone(),
            payload_digest: digest(request),
            issued_at_us,
            ..Record::default()
        };
        let documents = served.series.documents_of(&request.inputs);
        let counter = NO_COUNTER.to_owned();
        let none = Take { counter, count: 1, step: 1, start: 1, max: 1, seen: None };
        CheckedRequest {
            served: Arc::clone(served),
            request: issue_request(served, (&record, &documents), vec![none], request.again),
            record: Arc::new(record),
            documents,
            partial: PartialNumber::default(),
            specs: Vec::new(),
            family: None,
            snowflake: None,
            asking: None,
            closed: None,
            reserve_us: reserving::micros(request),
            identity: Arc::clone(&request.identity),
        }
    }
}

impl PendingRequest {
    /// Answers a question by what the journal found; nothing is an answer, too.
    pub(super) fn answer_question(self, found: Found, metrics: &Metrics) {
        match replay::judge(&self.order, found) {
            Some(answer) => {
                if answer.is_ok() {
                    self.order.served.meter(metrics).replayed.increment(1);
                }
                self.answer(answer);
            }
            None => self.reply.send(Ok(None)),
        }
    }
}

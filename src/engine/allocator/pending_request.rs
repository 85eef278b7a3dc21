//! One pending request on its way through a worker.

use std::sync::Arc;

use jiff::Timestamp;
use numbering::{
    CounterKey, DocumentsOf, InputError, Inputs, PartialNumber, Policy, Serial, Snowflake,
    SnowflakePlace, TakenRange, Told, hexadecimal,
};
use serde::Serializer as _;
use serde::ser::SerializeSeq;
use sha2::{Digest, Sha256};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use uuid::Uuid;

use super::answers::Reply;
use super::cancellation::CancellationState;
use super::catalog::{Catalog, ServedSeries};
use super::drafted::Drafted;
use super::order::Asking;
use super::{AllocError, Issued, KEY_CHARS_MAX, Request, check_key, reserving, scope};
use crate::auth::{COUNT_MAX, Identity};
use crate::clock::Clock;
use crate::ledger::{CounterSpec, Entry, Question, Record, SeriesVersion};
use crate::metrics::Metrics;
use crate::redis::{IssueRequest, PayloadMark, Take};

/// A checked request: everything but its values.
pub(super) struct CheckedRequest {
    /// The series that serves it.
    pub served: Arc<ServedSeries>,
    /// What the journal will know of it.
    pub record: Arc<Record>,
    /// Whose document its id names.
    pub documents: DocumentsOf,
    /// What Redis is asked; what only its epoch knows of it is put in when it is sent.
    pub request: IssueRequest,
    /// The number but for its values.
    pub partial: PartialNumber,
    /// What each serial is taken from.
    pub specs: Vec<CounterSpec>,
    /// Where the series keeps chronology: the counters that share a last date.
    pub family: Option<String>,
    /// Where its number shows an id that is still to be drawn.
    pub snowflake: Option<SnowflakePlace>,
    /// What its source is still to be asked, where its series has one.
    pub asking: Option<Asking>,
    /// Why it gets no new number, where its date lies in a closed period.
    pub closed: Option<InputError>,
    /// For how long its number is reserved, in microseconds, where it is.
    pub reserve_us: Option<i64>,
    /// The caller.
    pub identity: Arc<Identity>,
}

impl CheckedRequest {
    /// Checks the fields of a request other than its inputs.
    ///
    /// # Errors
    /// The field that is wrong.
    pub(super) fn check_fields(request: &Request) -> Result<(), AllocError> {
        let keys =
            [("document_id", &request.document_id), ("idempotency_key", &request.idempotency_key)];
        for (field, text) in keys {
            let checked = text.as_ref().map(|text| check_key(text, KEY_CHARS_MAX)).transpose();
            checked.map_err(|reason| AllocError::Field { field, reason })?;
        }
        if !(1..=COUNT_MAX).contains(&request.count) {
            let reason = format!("must be 1 to {COUNT_MAX}");
            return Err(AllocError::Field { field: "count", reason });
        }
        Ok(())
    }

    /// Drafts a request by the series that serves it. A request without a date is dated `now`,
    /// which is read once: the series that serves one day must not get another one's document.
    /// `told` decides how much a refusal shows.
    ///
    /// # Errors
    /// Whatever is wrong with the request, naming the field.
    pub(super) fn draft(
        catalog: &Catalog,
        request: &Request,
        now: Timestamp,
        told: Told,
    ) -> Result<Drafted, AllocError> {
        Self::check_fields(request)?;
        let served = scope::choose(catalog, request, now, told)?;
        let draft = served.series.draft_telling(&request.inputs, now, told);
        let draft = draft.map_err(|error| scope::refused(request, error))?;
        let resolved = draft.resolved.as_ref().unwrap_or(&request.inputs);
        scope::must_have(request, resolved.project.as_deref())?;
        Ok(Drafted { served: Arc::clone(served), draft, now })
    }

    /// The order of a request that was drafted. Takes nothing.
    ///
    /// # Errors
    /// What the request asks of the series that it does not give.
    pub(super) fn of(
        request: Request,
        Drafted { served, draft, now }: Drafted,
        clock: &dyn Clock,
    ) -> Result<Self, AllocError> {
        if request.count > 1 && draft.snowflake.is_some() {
            let reason = "must be 1: the numbers of the series show an id each; ask for a list of \
                          documents";
            return Err(AllocError::Field { field: "count", reason: reason.into() });
        }
        let reserve_us = reserving::reserve_us(&request, &served, draft.snowflake.is_some())?;
        let asking = Asking::of(&request, served.series.sourced().map(|it| it.source), now)?;
        let series_id = served.version.series_id;
        let specs = counter_specs(&served, &draft.keys);
        let payload_digest = digest(&request);
        // The journal is read by people and programs that do not know ids.
        let inputs = draft.resolved.unwrap_or(request.inputs);
        let documents = served.series.documents_of(&inputs);
        let record = Record {
            allocation_id: Uuid::now_v7(),
            series_id,
            version: served.version.version,
            type_code: inputs.type_code,
            project: documents.journaled(inputs.project),
            scope: draft.scope,
            mask: draft.partial.to_text(),
            document_id: request.document_id,
            document_date: draft.document_date,
            context: inputs.context,
            serials: specs.iter().map(|spec| spec.serial.clone()).collect(),
            counter_keys: specs.iter().map(|spec| spec.key.clone()).collect(),
            user_id: request.user_id,
            ip_address: request.ip_address,
            idempotency_key: request.idempotency_key,
            payload_digest,
            issued_at_us: clock.now_us(),
        };
        let (count, seen) = (request.count, None);
        let takes = specs.iter().map(|spec| {
            let CounterSpec { start, step, max, .. } = *spec;
            Take { counter: spec.name(), count, step, start, max, seen }
        });
        let again = request.again;
        Ok(CheckedRequest {
            request: issue_request(&served, (&record, &documents), takes.collect(), again),
            served,
            record: Arc::new(record),
            documents,
            partial: draft.partial,
            specs,
            family: draft.family,
            snowflake: draft.snowflake,
            asking,
            closed: draft.closed,
            reserve_us,
            identity: request.identity,
        })
    }

    /// Puts the id that was drawn for it in its place.
    pub(super) fn put_snowflake(&mut self, id: Snowflake) {
        let Some(place) = self.snowflake.take() else { return };
        place.put(&mut self.partial, id);
        let record = Arc::make_mut(&mut self.record);
        record.mask = self.partial.to_text();
        self.request.record = record.to_flat_json().into();
    }

    /// Whether its answer waits for the journal.
    #[must_use]
    pub(super) fn is_durable(&self) -> bool {
        self.served.version.definition.policy == Policy::Durable
    }

    /// The keys under which an earlier number may be found, for the journal.
    #[must_use]
    pub(super) fn question(&self, since_us: i64) -> Question {
        Question {
            series_id: self.record.series_id,
            user_id: self.record.user_id.clone(),
            idempotency_key: self.record.idempotency_key.clone(),
            document_id: self.record.document_id.clone(),
            documents: self.documents.clone(),
            payload_digest: self.record.payload_digest.clone(),
            again: self.request.again,
            since_us,
            once_per_document: self.request.once_per_document,
        }
    }

    /// How many numbers: every serial gives as many values, and there is always one.
    #[must_use]
    pub(super) fn count(&self) -> u64 {
        self.request.takes[0].count
    }

    /// Names of the counters that its serials are taken from, within the partition.
    pub(super) fn counters(&self) -> impl Iterator<Item = &String> {
        self.request.takes.iter().map(|take| &take.counter)
    }

    /// Name and spec of the counter of one take.
    #[must_use]
    pub(super) fn spec(&self, take: usize) -> (&String, &CounterSpec) {
        (&self.request.takes[take].counter, &self.specs[take])
    }

    /// The answer for values of this order, or of an earlier allocation of its series.
    pub(super) fn issued(&self, entry: Entry, replayed: bool) -> Result<Issued, AllocError> {
        let single = entry.taken.iter().all(|taken| taken.range.first == taken.range.last);
        let last_number = if single {
            None
        } else {
            let partial = PartialNumber::parse(&entry.record.mask)
                .expect("what was journaled or sent is well-formed");
            let lasts: Vec<u64> = entry.taken.iter().map(|taken| taken.range.last).collect();
            Some(partial.fill(&lasts)?)
        };
        let series = self.served.version.definition.code.clone();
        let new_counters = self.new_counters(&entry);
        Ok(Issued { entry, series, last_number, replayed, new_counters, reserved_until_us: None })
    }

    /// The counters that begin with an entry, where another value of a dimension that is not shown
    /// repeats the texts of another counter.
    fn new_counters(&self, entry: &Entry) -> Vec<String> {
        let begins = |(spec, taken): &(&CounterSpec, &TakenRange)| spec.start == taken.range.first;
        let begun = self.specs.iter().zip(&entry.taken).filter(begins);
        // Most numbers are not the first ones of a counter: they ask no more.
        if begun.clone().next().is_none() || !self.served.series.hides_its_scope() {
            return Vec::new();
        }
        begun.map(|(spec, _)| spec.key.clone()).collect()
    }
}

/// The call of Redis, as far as a request determines it.
pub(super) fn issue_request(
    served: &ServedSeries,
    (record, documents): (&Record, &DocumentsOf),
    takes: Vec<Take>,
    again: bool,
) -> IssueRequest {
    let series_id = record.series_id;
    // The user's length comes first, so that no user and key together read like another pair.
    let user = &record.user_id;
    let caller_key = |key: &String| format!("k:{series_id}:{}:{user}:{key}", user.len());
    let document_key = |id: &String| format!("d:{series_id}:{}", documents.name(id));
    IssueRequest {
        takes,
        caller_key: record.idempotency_key.as_ref().map(caller_key),
        document_key: record.document_id.as_ref().map(document_key),
        payload: PayloadMark::of(&record.payload_digest),
        again,
        once_per_document: served.version.definition.is_once_per_document(),
        asked: false,
        record: record.to_flat_json().into(),
    }
}

/// Room for the JSON of an ordinary request.
const PAYLOAD_BYTES: usize = 256;

/// What each serial is taken from.
fn counter_specs(served: &ServedSeries, keys: &[CounterKey]) -> Vec<CounterSpec> {
    let SeriesVersion { series_id, version, .. } = served.version;
    let spec = |(serial, key): (&Serial, &CounterKey)| CounterSpec {
        series_id,
        version,
        serial: serial.name.clone(),
        key: key.to_string(),
        start: serial.start,
        step: serial.step,
        max: serial.max,
        headroom: 0,
    };
    served.series.serials().iter().zip(keys).map(spec).collect()
}

/// Hash of what a retry must repeat: everything that decides the number, and nothing else. Asking
/// for another number is part of it, so that such a request is safe to retry too. It is taken over
/// what was sent: a retry finds its number even if the reference data changes meanwhile, and a code
/// and its id are two payloads.
pub(super) fn digest(request: &Request) -> String {
    let Inputs {
        type_code, type_id, project, project_id, date, phase, context, recipients, ..
    } = &request.inputs;
    let Request { document_id, count, again, replaces, .. } = request;
    let mut payload = serde_json::Serializer::new(Vec::with_capacity(PAYLOAD_BYTES));
    let written = payload.serialize_seq(None).and_then(|mut list| {
        list.serialize_element(document_id)?;
        list.serialize_element(type_code)?;
        list.serialize_element(project)?;
        list.serialize_element(date)?;
        list.serialize_element(context)?;
        list.serialize_element(count)?;
        list.serialize_element(again)?;
        // At the end and only where there are any: requests without them keep the digest that they
        // had.
        if let Some(phase) = phase {
            list.serialize_element(phase)?;
        }
        if type_id.is_some() || project_id.is_some() || !recipients.is_empty() {
            list.serialize_element(&(type_id, project_id, recipients))?;
        }
        if let Some(replaces) = replaces {
            list.serialize_element(&("replaces", replaces))?;
        }
        SerializeSeq::end(list)
    });
    written.expect("a request is plain data");
    hexadecimal(&Sha256::digest(payload.into_inner())[..16])
}

/// An order and the caller who waits for it.
pub(super) struct PendingRequest {
    /// What is asked. Boxed: a request changes hands a dozen times.
    pub order: Box<CheckedRequest>,
    /// Where the answer goes.
    pub reply: Reply,
    /// Whether it can still be cancelled.
    pub cancellation: Arc<CancellationState>,
    /// Flights and transactions it was part of.
    pub attempts: u32,
    /// Whether a transaction that took a number for it may have committed. Then only another one,
    /// which looks for its allocation id, shows its outcome (F10).
    pub maybe_taken: bool,
    /// The epoch in which the journal was asked for its keys (F1).
    pub asked_in: Option<u64>,
    /// Whether Redis knows that the journal has its number.
    pub is_journaled: bool,
    /// Since when it waits for its first flight or transaction.
    pub queued_at: Instant,
    /// Its place among the requests that may wait; given back when the request is gone.
    pub _place: OwnedSemaphorePermit,
}

impl PendingRequest {
    /// An order that was not processed yet.
    pub(super) fn of(order: CheckedRequest, reply: Reply, place: OwnedSemaphorePermit) -> Self {
        PendingRequest {
            order: Box::new(order),
            reply,
            cancellation: Arc::default(),
            attempts: 0,
            maybe_taken: false,
            asked_in: None,
            is_journaled: false,
            queued_at: Instant::now(),
            _place: place,
        }
    }

    /// The caller: callers take turns. This is the identity, without the person for whom it asks: a
    /// caller may write any name of a person.
    pub(super) fn caller(&self) -> &str {
        &self.order.identity.name
    }

    /// Whether it asks for an earlier number alone (F40).
    pub(super) fn is_question(&self) -> bool {
        matches!(self.reply, Reply::Found(_))
    }

    /// Answers the caller. One that is gone meanwhile loses nothing: the record is journaled.
    pub(super) fn answer(self, answer: Result<Issued, AllocError>) {
        self.reply.send(answer.map(Some));
    }

    /// Admits the request to a flight or transaction; false when its caller is gone.
    pub(super) fn admit(&mut self, metrics: &Metrics) -> bool {
        let is_admitted = self.maybe_taken || !self.reply.is_closed() && self.cancellation.admit();
        if is_admitted && self.attempts == 0 {
            metrics.queue_wait_seconds.record(self.queued_at.elapsed());
        }
        self.attempts += u32::from(is_admitted);
        is_admitted
    }

    /// Puts the request back, unless it may have taken a number: then its caller is
    /// answered that whenever it gives up.
    pub(super) fn put_back(&self) {
        if !self.maybe_taken {
            self.cancellation.put_back();
        }
    }

    /// How often it was tried before the attempt that answered it.
    #[must_use]
    pub(super) fn retry_count(&self) -> u32 {
        self.attempts.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(edit: impl FnOnce(&mut Inputs)) -> Request {
        let mut inputs = Inputs {
            type_code: "T".into(),
            date: Some("2025-01-02".into()),
            context: [("A".to_owned(), "1".to_owned())].into(),
            ..Inputs::default()
        };
        edit(&mut inputs);
        Request {
            inputs,
            document_id: Some("d1".into()),
            count: 1,
            reserve_for: None,
            again: false,
            replaces: None,
            idempotency_key: None,
            identity: Arc::new(Identity::local("u", COUNT_MAX)),
            user_id: "u".into(),
            ip_address: None,
        }
    }

    /// Numbers of the journal carry these digests for as long as retries may come.
    #[test]
    fn a_request_keeps_its_digest_across_versions_and_a_phase_changes_it() {
        // What the first version wrote into journals.
        assert_eq!(digest(&request(|_| ())), "971ec6de3dc8b2fec57bac1ba299503c");
        let in_phase = request(|inputs| inputs.phase = Some("P2".into()));
        assert_eq!(digest(&in_phase), "5c9e74ff4ba11bb0ad6dcc2ea1fea8a6");
        let replacing =
            |number: &str| digest(&Request { replaces: Some(number.into()), ..request(|_| ()) });
        assert_ne!(replacing("A-1"), digest(&request(|_| ())), "another request");
        assert_ne!(replacing("A-1"), replacing("A-2"));
    }

    #[test]
    fn who_was_told_that_no_number_is_taken_is_admitted_no_more() {
        let state = CancellationState::default();
        assert!(state.admit() && !state.give_up(), "it is in a flight");
        state.put_back();
        assert!(!state.give_up_untried(), "it has been tried");
        assert!(state.give_up());
        state.put_back();
        assert!(!state.admit());
        let untried = CancellationState::default();
        assert!(untried.give_up_untried() && !untried.admit());
    }

    #[test]
    fn a_code_and_its_id_are_two_payloads() {
        let edits: [fn(&mut Inputs); 6] = [
            |_| (),
            |inputs| inputs.project = Some("2".into()),
            |inputs| inputs.project_id = Some("2".into()),
            |inputs| inputs.type_id = Some("2".into()),
            |inputs| inputs.recipients.push(numbering::Recipient::default()),
            |inputs| {
                inputs.phase = Some("P2".into());
                inputs.project_id = Some("2".into());
            },
        ];
        let digests: std::collections::BTreeSet<String> =
            edits.into_iter().map(|edit| digest(&request(edit))).collect();
        assert_eq!(digests.len(), edits.len());
    }
}

//! Every state of a reservation against every act, cell by cell.

use numerator::ledger::{ActOutcome, At, Reservation, ReservationAct, TakeOutcome, TakeRequest};
use uuid::Uuid;

use super::reserving;
use crate::ledger_contract::world::{World, order_of, question, record};

ledger_contract! {
    reservations {
        each_act_has_its_outcome_in_each_state
        a_repeated_reserve_finds_its_own_reservation
    }
}

/// Where a reservation stands before an act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    None,
    Reserved,
    Over,
    Confirmed,
    Cancelled,
    Returned,
    Expired,
    Issued,
}

use State::{Cancelled, Confirmed, Expired, Issued, None as Nothing, Over, Reserved, Returned};

const STATES: [State; 8] =
    [Nothing, Reserved, Over, Confirmed, Cancelled, Returned, Expired, Issued];

/// A case: a document with a counter of its own, and its key.
struct Case<'w> {
    world: &'w World,
    at: At,
    document: String,
}

impl Case<'_> {
    fn order(&self, payload: &str) -> TakeRequest {
        let mut record = record(&self.document);
        record.counter_keys = vec![self.document.clone()];
        record.payload_digest = payload.into();
        record.idempotency_key = Some(format!("key-{}", self.document));
        let specs = vec![super::super::world::spec(&self.document)];
        TakeRequest { specs, question: question(&record), ..order_of(record) }
    }

    /// The same without its key.
    fn unkeyed(&self, payload: &str) -> TakeRequest {
        let mut order = self.order(payload);
        order.question.idempotency_key = None;
        std::sync::Arc::make_mut(&mut order.record).idempotency_key = None;
        order
    }

    /// Brings the document there; its reservation.
    async fn enter(&self, state: State) -> Option<Reservation> {
        if state == Nothing {
            return None;
        }
        let reservation = self.world.reserve(self.at, self.order("aa")).await;
        match state {
            Nothing | Reserved => {}
            Over | Expired => self.world.let_expire(&self.document).await,
            Confirmed | Issued => {
                assert_eq!(self.world.confirm(&reservation).await, ActOutcome::Done);
            }
            Cancelled | Returned => {
                assert_eq!(self.world.cancel(&reservation).await, ActOutcome::Done);
            }
        }
        if matches!(state, Returned | Expired | Issued) {
            self.world.sweep().await;
        }
        Some(reservation)
    }
}

/// What a take answers, in a word.
fn word(outcome: &TakeOutcome) -> &'static str {
    match outcome {
        TakeOutcome::Reserved(_) => "reserved",
        TakeOutcome::Taken(_) => "issued",
        TakeOutcome::Found(found) if found.by_key.is_some() || found.by_document.is_some() => {
            "found issued"
        }
        TakeOutcome::Found(_) => "found reserved",
        _ => "other",
    }
}

pub(in crate::ledger_contract) async fn each_act_has_its_outcome_in_each_state(world: World) {
    let at = world.database_epoch().await;
    for (number, state) in STATES.into_iter().enumerate() {
        let case = |act: &str| Case { world: &world, at, document: format!("{act}{number}") };
        // A request for its document, by its key or without, with its payload or another.
        for (act, payload, keyed) in [
            ("same", "aa", true),
            ("other", "bb", true),
            ("doc", "aa", false),
            ("doc2", "bb", false),
        ] {
            reserve_again(&case(act), state, payload, keyed).await;
        }
        let case_of_number = case("number");
        case_of_number.enter(state).await;
        let outcome = world.outcome(at, case_of_number.order("aa")).await;
        assert_eq!(word(&outcome), expected_of_take(state, "issued"), "{state:?}: {outcome:?}");
        let expected = match state {
            Nothing => ActOutcome::Unknown,
            Reserved => ActOutcome::Done,
            Over | Expired => ActOutcome::Expired,
            Cancelled | Returned => ActOutcome::Cancelled,
            Confirmed | Issued => ActOutcome::Repeated,
        };
        act_on(&case("confirm"), state, ReservationAct::Confirm, expected).await;
        let expected = match state {
            Nothing => ActOutcome::Unknown,
            Reserved | Over => ActOutcome::Done,
            Cancelled | Returned | Expired => ActOutcome::Repeated,
            Confirmed | Issued => ActOutcome::Confirmed,
        };
        act_on(&case("cancel"), state, ReservationAct::Cancel { reason: None }, expected).await;
        Box::pin(nothing_changes_while_held(&case("held"), state)).await;
        world.is_whole().await;
    }
}

/// What a take for a document answers; `free` where no reservation and no number stands.
fn expected_of_take(state: State, free: &'static str) -> &'static str {
    match state {
        Reserved => "found reserved",
        Confirmed | Issued => "found issued",
        _ => free,
    }
}

async fn reserve_again(case: &Case<'_>, state: State, payload: &str, keyed: bool) {
    let had = case.enter(state).await;
    let order = if keyed { case.order(payload) } else { case.unkeyed(payload) };
    let outcome = case.world.outcome(case.at, reserving(order)).await;
    assert_eq!(word(&outcome), expected_of_take(state, "reserved"), "{state:?}: {outcome:?}");
    if let TakeOutcome::Reserved(new) = &outcome {
        assert_eq!(new.entry.taken[0].range.first, 1, "the value came back: {new:?}");
        assert!(had.is_none_or(|had| had.id() != new.id()));
    }
}

async fn act_on(case: &Case<'_>, state: State, act: ReservationAct, expected: ActOutcome) {
    let reservation = case.enter(state).await;
    let id = reservation.as_ref().map_or_else(Uuid::new_v4, Reservation::id);
    let acted = case.world.act(id, act).await;
    assert_eq!(acted.outcome, expected, "{state:?}: {acted:?}");
}

/// While the partition is held nobody knows what is so.
async fn nothing_changes_while_held(case: &Case<'_>, state: State) {
    let world = case.world;
    let reservation = case.enter(state).await;
    world.sql("update partition set state = 'held' where partition_id = 2").await;
    if let Some(reservation) = reservation.filter(|_| matches!(state, Reserved | Over)) {
        let confirmed = world.confirm(&reservation).await;
        let expected = if state == Over { ActOutcome::Expired } else { ActOutcome::Held };
        assert_eq!((confirmed, world.cancel(&reservation).await), (expected, ActOutcome::Held));
    }
    world.sweep().await;
    let left = world.ledger.reservations().page(None, 1_000).await.unwrap();
    let is_its =
        |live: &Reservation| live.entry.record.document_id.as_ref() == Some(&case.document);
    let is_left = matches!(state, Reserved | Over | Confirmed | Cancelled);
    assert_eq!(left.iter().any(is_its), is_left, "{state:?}");
    world.sql("update partition set state = 'open' where partition_id = 2").await;
    world.sweep().await;
}

pub(in crate::ledger_contract) async fn a_repeated_reserve_finds_its_own_reservation(world: World) {
    let at = world.database_epoch().await;
    let case = Case { world: &world, at, document: "a".into() };
    let order = reserving(case.order("aa"));
    // One of a batch that repeats it finds it, too.
    let both = [order.clone(), reserving(case.order("aa"))];
    let outcomes = super::take(&world, at, &both).await;
    let (TakeOutcome::Reserved(made), TakeOutcome::Found(found)) = (&outcomes[0], &outcomes[1])
    else {
        panic!("{outcomes:?}")
    };
    assert_eq!(found.reserved_by_key.as_ref(), Some(made));
    let retry = TakeRequest { retry_count: 1, ..order.clone() };
    let TakeOutcome::Reserved(again) = world.outcome(at, retry.clone()).await else {
        panic!("not found")
    };
    assert_eq!((again.id(), &again.entry), (made.id(), &made.entry));
    // It is confirmed meanwhile, and then journaled: its number is the answer.
    world.confirm(made).await;
    for _ in 0..2 {
        let outcome = world.outcome(at, retry.clone()).await;
        match &outcome {
            TakeOutcome::Reserved(live) => assert_eq!(live.id(), made.id()),
            TakeOutcome::Taken(entry) => assert_eq!(entry.number, made.entry.number),
            other => panic!("{other:?}"),
        }
        world.sweep().await;
    }
    world.is_whole().await;
}

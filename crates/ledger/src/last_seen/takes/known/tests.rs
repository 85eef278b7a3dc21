//! What is compared with what is known of reservations.

use std::sync::Arc;

use numbering::{Range, TakenRange};

use super::*;
use crate::{At, IssuePath, Record};

/// All notes there are.
const ALL: u64 = u64::MAX;

fn entry(id: u128, value: u64, document: &str) -> Entry {
    let record = Record {
        allocation_id: Uuid::from_u128(id),
        series_id: 7,
        document_id: Some(document.to_owned()),
        serials: vec!["SEQ".to_owned()],
        counter_keys: vec!["k".to_owned()],
        ..Record::default()
    };
    let range = Range { first: value, last: value, step: 1 };
    Entry {
        record: Arc::new(record),
        taken: vec![TakenRange { counter_id: 1, range }],
        number: format!("{document}-{value}"),
        at: At { partition: 0, epoch: 1 },
        retry_count: 0,
        path: IssuePath::Database,
    }
}

/// A reservation of a document of its own.
fn row(id: u128, value: u64, turn: i64, state: ReservationState) -> Sighting {
    row_of(&format!("d{id}"), id, value, (turn, state))
}

fn row_of(
    document: &str,
    id: u128,
    value: u64,
    (turn, state): (i64, ReservationState),
) -> Sighting {
    let reservation = Reservation {
        entry: entry(id, value, document),
        state,
        expires_at_us: 9,
        is_over: false,
        turn,
        reserved_at_us: 1,
        changed_at_us: None,
        changed_by: None,
        reason: None,
    };
    Sighting::of(&reservation).expect("it has a value")
}

fn reserved(id: u128, value: u64, turn: i64) -> Sighting {
    row(id, value, turn, ReservationState::Reserved)
}

fn confirmed(id: u128, value: u64, turn: i64) -> Sighting {
    row(id, value, turn, ReservationState::Confirmed)
}

fn cancelled(id: u128, value: u64, turn: i64) -> Sighting {
    row(id, value, turn, ReservationState::Cancelled)
}

/// A live block of these values.
fn block(id: u128, (first, last): (u64, u64), turn: i64) -> Sighting {
    let mut entry = entry(id, first, "d");
    Arc::make_mut(&mut entry.record).document_id = None;
    entry.taken[0].range.last = last;
    let reservation = Reservation {
        entry,
        state: ReservationState::Reserved,
        expires_at_us: crate::NO_END_US,
        is_over: false,
        turn,
        reserved_at_us: 1,
        changed_at_us: None,
        changed_by: None,
        reason: None,
    };
    Sighting::of(&reservation).expect("it has values")
}

/// An earlier and a later reservation of one value.
pub(in crate::last_seen::takes) fn two_of_a_value() -> (Sighting, Sighting) {
    (reserved(1, 1, 1), reserved(2, 1, 2))
}

/// What is known after these notes, the first of which is the first.
fn knowing(seen: &[Sighting]) -> KnownHolders {
    let mut known = KnownHolders::default();
    for (noted, seen) in (1..).zip(seen) {
        assert!(known.note(seen, noted), "{seen:?}");
    }
    known
}

#[test]
fn a_reservation_that_was_changed_does_not_wait_again() {
    for changed in [confirmed(1, 1, 1), cancelled(1, 1, 1)] {
        let known = knowing(&[reserved(1, 1, 1), changed.clone()]);
        assert!(known.is_missed_by(&reserved(1, 1, 1), ALL));
        assert!(known.is_missed_by(&changed.clone().unchanged(), ALL));
        assert!(!known.is_missed_by(&changed, ALL));
    }
}

#[test]
fn a_reservation_that_ended_is_not_live_again() {
    for ended in [cancelled(1, 1, 1), reserved(1, 1, 1), confirmed(1, 1, 1)] {
        let known = knowing(&[ended.clone().ended()]);
        assert!(known.is_missed_by(&ended, ALL), "{ended:?}");
        assert_eq!(known.ended(), [Uuid::from_u128(1)]);
    }
}

#[test]
fn an_earlier_reservation_of_a_value_is_not_live_again() {
    let known = knowing(&[reserved(2, 1, 5)]);
    for earlier in [reserved(1, 1, 4), cancelled(1, 1, 4), confirmed(1, 1, 4)] {
        assert!(known.is_missed_by(&earlier, ALL), "{earlier:?}");
    }
    assert!(known.is_missed_by(&reserved(3, 1, 5), ALL), "another one in its place");
    assert!(!known.is_missed_by(&reserved(2, 1, 5), ALL));
    assert!(!known.is_missed_by(&reserved(1, 2, 4), ALL), "another value");
}

#[test]
fn what_another_process_does_is_no_loss() {
    // It cancels and ends the one that is known, and reserves the value for another document.
    let known = knowing(&[reserved(1, 1, 1), cancelled(1, 1, 1)]);
    for later in [reserved(2, 1, 2), cancelled(2, 1, 2), confirmed(2, 1, 2)] {
        assert!(!known.is_missed_by(&later, ALL), "{later:?}");
    }
    // It changes one that was shown here.
    let known = knowing(&[reserved(1, 1, 1)]);
    assert!(!known.is_missed_by(&confirmed(1, 1, 1), ALL));
    assert!(!known.is_missed_by(&cancelled(1, 1, 1), ALL));
}

#[test]
fn a_value_that_is_confirmed_is_never_anothers() {
    let known = knowing(&[confirmed(2, 1, 5)]);
    assert!(known.is_missed_by(&reserved(3, 1, 6), ALL));
    // Nor one that was found issued, or taken out of the pool, whatever its turn.
    for issued in
        [Sighting::confirmed(&entry(2, 1, "d")), Sighting::taken(&entry(2, 1, "d"), 5, true)]
    {
        let known = knowing(&[issued.expect("it has a value")]);
        for other in [reserved(1, 1, 4), reserved(3, 1, 6)] {
            assert!(known.is_missed_by(&other, ALL), "{other:?}");
        }
    }
}

#[test]
fn two_confirmed_numbers_of_a_value_are_a_collision_and_no_loss() {
    let found = Sighting::confirmed(&entry(2, 1, "d")).expect("it has a value");
    let known = knowing(std::slice::from_ref(&found));
    assert!(!known.is_missed_by(&confirmed(1, 1, 4), ALL));
    assert!(knowing(&[confirmed(1, 1, 4), found]).note(&confirmed(1, 1, 4), 3));
}

#[test]
fn a_number_above_all_taken_says_nothing_of_a_value() {
    let taken = Sighting::taken(&entry(2, 7, "d"), 7, false).expect("it has a value");
    let known = knowing(&[taken]);
    assert!(!known.is_missed_by(&reserved(1, 7, 4), ALL));
    assert!(known.values.is_empty());
}

#[test]
fn an_earlier_reservation_of_a_document_is_not_live_again() {
    let earlier = row_of("d", 1, 1, (1, ReservationState::Reserved));
    let later = row_of("d", 2, 2, (3, ReservationState::Confirmed));
    let number = Sighting::taken(&entry(2, 2, "d"), 3, false).expect("it has a value");
    for sole in [later.clone().sole(true), number.sole(true)] {
        let known = knowing(&[sole]);
        assert!(known.is_missed_by(&earlier, ALL));
        assert!(!known.is_missed_by(&later, ALL));
        let other = row_of("other", 1, 1, (1, ReservationState::Reserved));
        assert!(!known.is_missed_by(&other, ALL), "another document");
        let beside = row_of("d", 3, 3, (4, ReservationState::Reserved));
        assert!(!known.is_missed_by(&beside, ALL), "a later one");
        let mut elsewhere = earlier.clone();
        elsewhere.document = Some(named(&elsewhere.counter, Some("P"), "d"));
        assert!(!known.is_missed_by(&elsewhere, ALL), "the document of another project");
    }
    let known = knowing(&[later.sole(false)]);
    assert!(!known.is_missed_by(&earlier, ALL), "a number beside another one");
}

#[test]
fn a_question_for_another_number_does_not_know_what_else_is_live() {
    let question = |document_id: Option<&str>, again| Question {
        series_id: 7,
        user_id: "u".to_owned(),
        idempotency_key: None,
        document_id: document_id.map(str::to_owned),
        documents: numbering::DocumentsOf::default(),
        payload_digest: String::new(),
        again,
        since_us: 0,
        once_per_document: true,
    };
    assert!(finds_sole(&question(Some("d"), false)));
    assert!(!finds_sole(&question(Some("d"), true)));
    assert!(!finds_sole(&question(None, false)));
}

#[test]
fn a_row_is_compared_with_what_was_noted_before_it_was_read_alone() {
    let document = |id, value, turn| row_of("d", id, value, (turn, ReservationState::Reserved));
    for (notes, row) in [
        // An act, an end, a later one of the value, a confirmed one, a later one of the document.
        ([reserved(1, 1, 1), confirmed(1, 1, 1)], reserved(1, 1, 1)),
        ([cancelled(1, 1, 1), cancelled(1, 1, 1).ended()], cancelled(1, 1, 1)),
        ([cancelled(1, 1, 1), reserved(2, 1, 2)], cancelled(1, 1, 1)),
        ([reserved(2, 1, 2), confirmed(2, 1, 2)], reserved(3, 1, 3)),
        ([document(1, 1, 1).sole(true), document(2, 2, 3).sole(true)], document(1, 1, 1)),
    ] {
        let known = knowing(&notes);
        assert!(!known.is_missed_by(&row, 1), "{row:?}");
        assert!(known.is_missed_by(&row, 2), "{row:?}");
    }
}

#[test]
fn what_is_seen_late_replaces_nothing_that_came_after_it() {
    let later = reserved(2, 1, 2).sole(true);
    let known = knowing(&[later, reserved(1, 1, 1)]);
    assert!(known.is_missed_by(&reserved(1, 1, 1), ALL));
    assert!(!known.is_missed_by(&reserved(2, 1, 2), ALL));
}

#[test]
fn an_answer_of_before_a_loss_contradicts_what_came_after_it() {
    let contradicts = |known: Sighting, seen: Sighting| !knowing(&[known]).note(&seen, 2);
    let number = |id| Sighting::taken(&entry(id, 1, "d"), 5, true).expect("it has a value");
    // The same turn, a confirmed value that is reserved later, two that are confirmed.
    assert!(contradicts(reserved(1, 1, 5), reserved(2, 1, 5)));
    assert!(contradicts(number(1), number(2)));
    assert!(contradicts(confirmed(1, 1, 5), reserved(2, 1, 6)));
    assert!(contradicts(reserved(2, 1, 6), confirmed(1, 1, 5)));
    assert!(contradicts(confirmed(1, 1, 5), confirmed(2, 1, 4)));
    // What is only late, or only follows.
    assert!(!contradicts(reserved(2, 1, 6), reserved(1, 1, 5)));
    assert!(!contradicts(cancelled(1, 1, 4), confirmed(2, 1, 5)));
    assert!(!contradicts(confirmed(2, 1, 5), reserved(1, 1, 4)));
}

#[test]
fn what_a_heartbeat_shows_is_let_go_and_nothing_of_which_more_was_noted_since() {
    let (first, second) = (reserved(1, 1, 1).sole(true), reserved(2, 2, 2).sole(true));
    let mut known = knowing(&[first.clone(), second, first.ended()]);
    assert!(known.has_any(1) && !known.has_any(0));
    known.let_go(2);
    assert!(known.is_missed_by(&reserved(1, 1, 1), ALL));
    assert_eq!((known.values.len(), known.documents.len()), (1, 0));
    known.let_go(3);
    assert!(!known.is_missed_by(&reserved(1, 1, 1), ALL));
    assert!(!known.has_any(ALL));
}

#[test]
fn what_must_be_found_changed_or_ended_is_known_by_its_id() {
    let known = knowing(&[reserved(1, 1, 1), cancelled(2, 2, 2), cancelled(3, 3, 3).ended()]);
    assert_eq!(known.changed(), [Uuid::from_u128(2)]);
    assert_eq!(known.ended(), [Uuid::from_u128(3)]);
}

#[test]
fn beyond_their_bounds_what_was_noted_last_is_kept() {
    let mut known = KnownHolders::default();
    for (noted, value) in (1..).zip(0..=KNOWN_MAX as u64) {
        let turn = i64::try_from(value).expect("few") + 2;
        assert!(known.note(&reserved(u128::from(value), value, turn).sole(true), noted));
    }
    for count in [known.values.len(), known.documents.len()] {
        assert!(count <= KNOWN_MAX / 2 + 1, "{count}");
    }
    let last = KNOWN_MAX as u64;
    assert!(known.is_missed_by(&reserved(1 << 70, last, 1), ALL));
    assert!(!known.is_missed_by(&reserved(1 << 70, 0, 1), ALL), "the oldest is forgotten");
}

#[test]
fn no_value_of_a_block_was_anothers_before_it() {
    let known = knowing(&[block(1, (4, 6), 6)]);
    for value in 4..=6 {
        for turn in [3, 6] {
            assert!(known.is_missed_by(&reserved(2, value, turn), ALL), "{value} at {turn}");
        }
        // It came back, and another process gave it to a document.
        assert!(!known.is_missed_by(&reserved(2, value, 7), ALL), "{value}");
    }
    assert!(
        !known.is_missed_by(&reserved(2, 3, 3), ALL)
            && !known.is_missed_by(&reserved(2, 7, 3), ALL)
    );
    assert!(!known.is_missed_by(&block(1, (4, 6), 6), ALL));
    assert!(known.is_missed_by(&block(3, (6, 8), 5), ALL), "an earlier block");
    assert!(!known.is_missed_by(&reserved(2, 5, 3), 0), "noted later");
}

#[test]
fn a_block_that_ended_or_whose_value_is_anothers_is_not_live_again() {
    let (held, back) = (block(1, (4, 6), 6), reserved(2, 5, 7));
    let known = knowing(&[held.clone().ended()]);
    assert!(known.is_missed_by(&held, ALL) && known.has_changed());
    assert_eq!(known.ended(), [Uuid::from_u128(1)]);
    let used = Sighting::handed_back(&entry(2, 5, "d"), 6).expect("it has a value");
    for later in [back, used] {
        let known = knowing(&[held.clone(), later]);
        assert!(known.is_missed_by(&held, ALL));
        assert!(!known.is_missed_by(&held, 1), "noted later");
    }
}

#[test]
fn a_block_contradicts_what_had_one_of_its_values_before() {
    let contradicts = |known: Sighting, seen: Sighting| !knowing(&[known]).note(&seen, 2);
    assert!(contradicts(block(1, (4, 6), 6), block(2, (6, 9), 9)), "another block");
    assert!(contradicts(block(1, (4, 6), 6), reserved(2, 5, 5)));
    assert!(contradicts(reserved(2, 5, 5), block(1, (4, 6), 6)));
    assert!(!contradicts(block(1, (4, 6), 6), reserved(2, 5, 7)), "it came back");
    assert!(!contradicts(reserved(2, 5, 7), block(1, (4, 6), 6)), "seen late");
    assert!(!contradicts(block(1, (4, 6), 6), block(2, (7, 9), 9)), "the next block");
    assert!(!contradicts(block(1, (4, 6), 6), block(1, (4, 6), 6)));
}

#[test]
fn a_document_of_a_hand_back_is_compared_with_what_it_had() {
    let used = || Sighting::handed_back(&entry(9, 2, "d"), 6).expect("it has a value");
    let known = knowing(&[used()]);
    let earlier = row_of("d", 1, 7, (5, ReservationState::Reserved));
    assert!(known.is_missed_by(&earlier, ALL), "its earlier reservation is live again");
    let later = row_of("d", 1, 8, (8, ReservationState::Reserved)).sole(true);
    assert!(!known.is_missed_by(&later, ALL));
    assert!(knowing(&[later]).is_missed_by(&used(), ALL), "the document had a later one");
}

#[test]
fn blocks_are_let_go_like_values() {
    let mut known = knowing(&[block(1, (1, 3), 3), block(2, (4, 6), 6)]);
    assert!(known.has_any(1) && !known.has_any(0));
    known.let_go(1);
    assert!(!known.is_missed_by(&reserved(9, 2, 1), ALL));
    assert!(known.is_missed_by(&reserved(9, 5, 1), ALL));
}

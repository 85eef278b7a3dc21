//! What a process remembers of its takes, and lets go.

use super::*;

fn name(key: usize) -> NamedCounter {
    (1, "SEQ".into(), key.to_string())
}

fn number(allocation: usize) -> ConfirmedNumber {
    let allocation = Uuid::from_u128(allocation as u128);
    ConfirmedNumber { allocation, archived_as: ArchivedName::of("n", (None, None), (1, 1)) }
}

#[test]
fn what_is_proven_lets_go_only_what_a_heartbeat_followed() {
    let mut takes = ConfirmedTakes::default();
    takes.note(0, [(name(1), 5), (name(2), 7)], Some(number(1)));
    assert!(!takes.is_proof_awaited(), "no heartbeat has followed");
    let noted = takes.noted();
    takes.note(0, [(name(1), 6)], Some(number(2)));
    takes.beat_after(noted);
    let unproven = takes.unproven();
    assert!(takes.is_proof_awaited());
    assert_eq!(unproven.numbers, [number(1), number(2)]);
    takes.let_go(&unproven);
    assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
    assert_eq!(takes.unproven().numbers, [number(2)]);
    assert!(!takes.is_proof_awaited(), "that is proven");
}

#[test]
fn what_the_next_incarnation_was_told_is_let_go_and_nothing_that_came_after() {
    let mut takes = ConfirmedTakes::default();
    takes.note(3, [(name(2), 7), (name(1), 5)], Some(number(1)));
    let unreported = takes.unreported();
    let told: Vec<_> = unreported
        .reached
        .iter()
        .map(|(name, to)| (name.clone(), to.value, to.partition))
        .collect();
    assert_eq!(told, [(name(1), 5, 3), (name(2), 7, 3)]);
    takes.note(3, [(name(1), 6)], Some(number(2)));
    takes.forget_reported(&unreported);
    assert_eq!((takes.value_of(&name(1)), takes.value_of(&name(2))), (Some(6), None));
}

#[test]
fn what_a_try_raised_whose_end_is_unknown_is_said_by_the_next() {
    let mut takes = ConfirmedTakes::default();
    takes.note(3, [(name(1), 5)], Some(number(1)));
    takes.note_raised([3].into());
    // The next one finds that counter raised, and raises another one.
    let unreported = takes.unreported();
    takes.note_raised([2].into());
    assert_eq!(takes.forget_reported(&unreported), [2, 3].into());
    assert!(takes.forget_reported(&unreported).is_empty(), "it is said once");
}

#[test]
fn a_batch_that_is_confirmed_late_lowers_nothing() {
    let mut takes = ConfirmedTakes::default();
    takes.note(0, [(name(1), 6)], Some(number(1)));
    takes.note(0, [(name(1), 5)], Some(number(2)));
    assert_eq!(takes.value_of(&name(1)), Some(6));
}

fn turn(key: usize, taken: i64, reissued: u64) -> CounterTurn {
    CounterTurn { name: name(key), taken, reissued }
}

#[test]
fn a_batch_that_only_reserved_is_looked_for_by_its_counters() {
    let mut takes = ConfirmedTakes::default();
    takes.note(0, [(name(1), 5)], None);
    takes.note_turn(turn(1, 5, 2));
    assert_eq!(takes.reissued_of(&name(1)), 2);
    takes.beat_after(takes.noted());
    let unproven = takes.unproven();
    assert!(takes.is_proof_awaited());
    assert_eq!(unproven.turns, [turn(1, 5, 2)]);
    takes.let_go(&unproven);
    assert!(takes.unproven().turns.is_empty());
    assert_eq!(takes.reissued_of(&name(1)), 0);
    for key in 0..=TURNS_KEPT {
        takes.note_turn(turn(key, 1, 0));
    }
    let turns = takes.unproven().turns;
    assert_eq!((turns.len(), turns.last()), (TURNS_KEPT, Some(&turn(TURNS_KEPT, 1, 0))));
}

#[tokio::test(start_paused = true)]
async fn what_was_shown_reserved_is_told_though_a_heartbeat_followed() {
    let mut takes = ConfirmedTakes::default();
    takes.note(3, [(name(1), 5)], None);
    takes.note_turn(turn(1, 5, 0));
    takes.hold(3, [(name(1), 7)]);
    takes.beat_after(takes.noted());
    takes.let_go(&takes.unproven());
    assert_eq!(takes.value_of(&name(1)), Some(7));
    let unreported = takes.unreported();
    let told: Vec<_> =
        unreported.reached.iter().map(|(name, to)| (name.clone(), to.value)).collect();
    assert_eq!(told, [(name(1), 7)]);
    assert_eq!(takes.forgot_held(), None);
}

#[test]
fn beyond_their_bounds_the_newest_are_kept() {
    let mut takes = ConfirmedTakes::default();
    for key in 0..=COUNTERS_KEPT {
        takes.note(0, [(name(key), 1)], Some(number(key)));
    }
    assert!(takes.values.len() <= COUNTERS_KEPT / 2 + 1, "{}", takes.values.len());
    assert_eq!(takes.value_of(&name(COUNTERS_KEPT)), Some(1));
    let numbers = takes.unproven().numbers;
    assert_eq!(numbers.len(), NUMBERS_KEPT);
    assert_eq!(numbers.last(), Some(&number(COUNTERS_KEPT)));
}

#[test]
fn what_is_known_of_reservations_holds_in_its_own_incarnation() {
    let mut takes = ConfirmedTakes::default();
    let (earlier, later) = known::tests::two_of_a_value();
    let unreported = takes.unreported();
    takes.note_seen(&[later]).unwrap();
    let upto = takes.noted();
    assert!(takes.is_missed_by(&earlier, upto));
    assert!(!takes.is_missed_by(&earlier, 0), "it was read before");
    takes.forget_reported(&unreported);
    assert!(!takes.is_missed_by(&earlier, upto), "also where it was noted late");
}

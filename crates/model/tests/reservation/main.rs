//! The life of a reservation: reserved, confirmed over HTTP or in a caller's own transaction,
//! cancelled, over, swept, returned and issued again, by processes that die and from a ledger that
//! goes back. Each rule is taken out once, and the search finds what it prevents; with all rules
//! every order of events within the bounds is visited and nothing breaks.
//!
//! `LONG_TESTS=1` visits larger spaces and takes more random steps.
#![allow(missing_docs, reason = "tests say what they do in their names")]
#![allow(clippy::missing_const_for_fn, reason = "tests")]

mod acts;
mod checked;
mod choices;
mod event;
mod going_back;
mod inquest;
mod rules;
mod search;
mod state;
mod sweeps;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::checked::{ACCOUNTED, ALWAYS, BY_HAND, BY_ITSELF, KEPT, ONE_NUMBER, REISSUED, UNIQUE};
use crate::rules::{Loss, Reserving, Rules};
use crate::search::{shortest, walk};

/// Two processes, two documents, a client of each, three reservations; nothing goes wrong.
const CALM: Reserving = Reserving {
    rules: Rules::ALL,
    nodes: 2,
    documents: 2,
    workers: 1,
    ids: 3,
    values: 2,
    http: true,
    sql: false,
    expires: true,
    cancels: false,
    numbers: false,
    splits: false,
    crashes: false,
    lost_answers: false,
    loss: Loss::None,
    release: false,
    blocks: false,
};

fn is_long() -> bool {
    std::env::var_os("LONG_TESTS").is_some_and(|set| !set.is_empty())
}

/// The first in the short form, the second in the long one.
fn room<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

fn holds(bounds: Reserving, states_min: usize, seen: &[&'static str]) {
    let begin = Instant::now();
    let finish = HasDiscoveries::AnyFailures;
    let checker = bounds.checker().finish_when(finish).threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{states} states, depth {}, {:.1?}", checker.max_depth(), begin.elapsed());
    for property in ALWAYS {
        if checker.discovery(property).is_some() {
            panic!("{property}: {:#?}", shortest(bounds, property).0);
        }
    }
    assert!(checker.is_done(), "the search ended early");
    assert!(states >= states_min, "the search shrank to {states} states");
    for property in seen {
        assert!(checker.discovery(property).is_some(), "never seen: {property}");
    }
}

/// Without a rule the shortest way to a breach has this many events.
fn without(rules: Rules, bounds: Reserving, property: &'static str, events: usize) {
    let begin = Instant::now();
    let (path, states) = shortest(Reserving { rules, ..bounds }, property);
    let length = path.as_ref().map_or(0, Vec::len);
    println!("{property}: broken by {length} events, {states} states, {:.1?}", begin.elapsed());
    println!("{path:?}");
    assert_eq!(length, events, "{property}: {path:#?}");
}

/// Confirmed over HTTP and in transactions of the caller, cancelled, over; processes die.
const LIFE: Reserving =
    Reserving { sql: true, cancels: true, crashes: true, lost_answers: true, ..CALM };

#[test]
fn reservations_that_are_confirmed_cancelled_or_over_break_nothing() {
    holds(Reserving { ids: room(3, 4), values: room(2, 3), ..LIFE }, 157_336, &[REISSUED]);
}

#[test]
fn without_the_time_in_a_confirm_nothing_breaks() {
    let rules = Rules { time: false, ..Rules::ALL };
    holds(Reserving { rules, ..LIFE }, 197_896, &[REISSUED]);
}

#[test]
fn without_l1_a_confirm_overtakes_the_end_of_its_reservation() {
    let rules = Rules { one_statement: false, ..Rules::ALL };
    without(rules, CALM, UNIQUE, 12);
}

#[test]
fn without_l1_a_cancel_is_written_over_a_confirm() {
    let rules = Rules { one_statement: false, ..Rules::ALL };
    without(rules, Reserving { cancels: true, expires: false, ..CALM }, KEPT, 7);
}

#[test]
fn without_l2_a_transaction_commits_late_and_its_number_is_another_documents() {
    let rules = Rules { locks: false, ..Rules::ALL };
    without(rules, LIFE, UNIQUE, 10);
}

#[test]
fn without_l3_a_confirmed_reservation_whose_time_is_over_ends() {
    let rules = Rules { confirmed_stays: false, ..Rules::ALL };
    without(rules, LIFE, UNIQUE, 10);
}

/// One client has two workers that confirm in SQL without naming a document.
const WORKERS: Reserving = Reserving { http: false, workers: 2, ..LIFE };

#[test]
fn two_workers_of_one_client_break_nothing() {
    holds(WORKERS, 283_744, &[REISSUED]);
}

#[test]
fn without_l4_two_workers_save_one_number() {
    let rules = Rules { second_fails: false, ..Rules::ALL };
    without(rules, WORKERS, UNIQUE, 5);
}

#[test]
fn without_l5_a_value_that_ended_is_nowhere_when_its_sweeper_dies() {
    let rules = Rules { end_whole: false, ..Rules::ALL };
    without(rules, LIFE, ACCOUNTED, 4);
}

#[test]
fn without_l5_a_confirmed_value_is_nowhere_when_its_sweeper_dies() {
    let rules = Rules { journal_whole: false, ..Rules::ALL };
    without(rules, LIFE, ACCOUNTED, 5);
}

/// A document asks for a reservation and for a number; between two questions others go on.
const ASKED: Reserving = Reserving { ids: 2, values: 3, numbers: true, splits: true, ..CALM };

#[test]
fn numbers_beside_reservations_break_nothing() {
    let bounds = Reserving { crashes: true, lost_answers: true, cancels: true, ..ASKED };
    holds(Reserving { ids: room(2, 3), ..bounds }, 31_916, &[REISSUED]);
}

#[test]
fn without_l6_a_reservation_is_journaled_between_two_questions() {
    let rules = Rules { order: false, ..Rules::ALL };
    without(rules, ASKED, ONE_NUMBER, 9);
}

#[test]
fn without_l6_two_processes_take_for_one_document() {
    let rules = Rules { name: false, ..Rules::ALL };
    without(rules, ASKED, ONE_NUMBER, 8);
}

#[test]
fn without_l6_a_document_that_has_a_reservation_gets_a_number() {
    let rules = Rules { asks_reservations: false, ..Rules::ALL };
    without(rules, ASKED, ONE_NUMBER, 8);
}

#[test]
fn without_l6_a_document_whose_number_is_journaled_gets_another() {
    let rules = Rules { asks_journal: false, ..Rules::ALL };
    without(rules, ASKED, ONE_NUMBER, 6);
}

#[test]
fn without_l7_an_answer_leaves_and_it_is_too_late_to_commit() {
    let rules = Rules { after_commit: false, ..Rules::ALL };
    without(rules, CALM, UNIQUE, 10);
}

/// An operator holds a ledger that lost nothing.
const HELD: Reserving = Reserving { loss: Loss::Held, release: true, ids: 2, ..LIFE };

#[test]
fn a_hold_of_a_ledger_that_lost_nothing_breaks_nothing() {
    holds(Reserving { ids: room(2, 3), ..HELD }, 123_841, &[BY_ITSELF, BY_HAND]);
}

#[test]
fn without_l11_a_hold_ends_under_an_open_transaction() {
    let rules = Rules { waits: false, ..Rules::ALL };
    without(rules, HELD, KEPT, 8);
}

/// A block of two values, of which a place without a connection uses what it likes.
const BLOCK: Reserving = Reserving { blocks: true, cancels: true, ids: 2, values: 3, ..CALM };

#[test]
fn a_block_that_is_handed_back_breaks_nothing() {
    let bounds = Reserving { sql: true, crashes: true, lost_answers: true, ..BLOCK };
    holds(Reserving { ids: room(3, 4), ..bounds }, 498_446, &[REISSUED]);
}

#[test]
fn a_block_and_a_standby_that_is_promoted_break_nothing() {
    let bounds = Reserving { loss: Loss::Standby, expires: room(false, true), ..BLOCK };
    holds(bounds, 476_028, &[BY_ITSELF]);
}

#[test]
fn without_l13_a_block_ends_by_time_and_a_used_value_is_issued() {
    let rules = Rules { block_stays: false, ..Rules::ALL };
    without(rules, BLOCK, UNIQUE, 9);
}

#[test]
fn without_l13_a_block_that_is_cancelled_returns_what_was_used() {
    let rules = Rules { block_spent: false, ..Rules::ALL };
    without(rules, BLOCK, UNIQUE, 9);
}

#[test]
fn without_l13_a_block_that_is_handed_back_twice_returns_its_values_twice() {
    let rules = Rules { block_once: false, ..Rules::ALL };
    without(rules, BLOCK, ACCOUNTED, 4);
}

/// All of it at once, but for a loss that nothing shows.
const EVERYTHING: Reserving = Reserving {
    workers: 2,
    ids: 4,
    values: 5,
    numbers: true,
    splits: true,
    blocks: true,
    expires: true,
    ..going_back::RELEASED
};

/// All that may meet earlier files under one process.
const ALL_FILES: Reserving = Reserving {
    nodes: 1,
    workers: 1,
    sql: false,
    values: 4,
    crashes: false,
    release: false,
    loss: Loss::Files,
    ..EVERYTHING
};

#[test]
fn random_paths_through_everything_at_once_break_nothing() {
    let steps = room(3_000_000, 150_000_000);
    for (seed, bounds) in [(1, EVERYTHING), (2, EVERYTHING), (3, ALL_FILES)] {
        let begin = Instant::now();
        let walked = walk(bounds, seed, steps);
        println!("seed {seed}: {walked:?} steps, {:.1?}", begin.elapsed());
        assert!(walked.is_ok_and(|taken| taken >= steps), "seed {seed}");
    }
}

#[test]
fn random_paths_find_a_confirmed_reservation_that_ends() {
    let rules = Rules { confirmed_stays: false, ..Rules::ALL };
    let walked = walk(Reserving { rules, ..EVERYTHING }, 1, 3_000_000);
    println!("{walked:?}");
    assert!(walked.is_err(), "nothing breaks");
}

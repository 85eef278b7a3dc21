//! A ledger that goes back: each rule is taken out once, and the search finds what it prevents;
//! with all of them every order of events within the bounds is visited and nothing breaks.
#![allow(missing_docs, reason = "tests say what they do in their names")]
#![allow(clippy::missing_const_for_fn, reason = "tests")]

mod acts;
mod checked;
mod state;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::state::{BY_HAND, BY_ITSELF, FOUND, KEPT, Lineage, Rules, UNIQUE};

/// One loss of up to two commits.
const LOST: Lineage = Lineage { losses: 1, ..Lineage::CALM };

fn holds(lineage: Lineage, states_min: usize, seen: &[&'static str]) {
    let begin = Instant::now();
    let finish = HasDiscoveries::AnyFailures;
    let checker = lineage.checker().finish_when(finish).threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{states} states, {:.1?}", begin.elapsed());
    for property in [UNIQUE, KEPT] {
        let path = checker.discovery(property).map(stateright::Path::into_actions);
        assert!(path.is_none(), "{property}: {path:#?}");
    }
    assert!(states >= states_min, "the search shrank to {states} states");
    for property in seen {
        assert!(checker.discovery(property).is_some(), "never seen: {property}");
    }
}

fn without(rules: Rules, lineage: Lineage, property: &'static str) {
    let broken = Lineage { rules, ..lineage };
    let finish = HasDiscoveries::AllOf([property].into());
    let checker = broken.checker().finish_when(finish).spawn_bfs().join();
    let path = checker.discovery(property).map(stateright::Path::into_actions);
    let events = path.as_ref().map_or(0, Vec::len);
    println!("{property}: broken by {events} events, {} states", checker.unique_state_count());
    println!("{path:?}");
    assert!(path.is_some(), "nothing breaks: {property}");
    holds(lineage, 1, &[]);
}

#[test]
fn a_ledger_that_lost_its_last_commits_goes_on_by_itself() {
    holds(Lineage { lost_answers: 1, ..LOST }, 1_000, &[BY_ITSELF, FOUND]);
}

#[test]
fn a_ledger_that_went_back_twice_and_a_retry_break_nothing() {
    holds(Lineage { losses: 2, retries: 1, dumps: true, ..LOST }, 1_000, &[BY_ITSELF]);
}

#[test]
fn a_ledger_and_a_process_lost_together_wait_for_the_operator() {
    let lineage = Lineage { crashes: 1, release: true, ..LOST };
    holds(lineage, 1_000, &[BY_ITSELF, BY_HAND]);
}

#[test]
fn a_late_node_whose_registration_is_lost_breaks_nothing() {
    let lineage = Lineage { late: true, crashes: 1, release: true, ..LOST };
    holds(lineage, 1_000, &[BY_ITSELF, BY_HAND]);
}

#[test]
fn without_its_life_in_each_transaction_a_lagging_standby_issues_a_number_again() {
    without(Rules { life: false, ..Rules::ALL }, LOST, UNIQUE);
}

#[test]
fn without_the_birth_of_its_row_a_dump_put_back_issues_a_number_again() {
    without(Rules { born: false, ..Rules::ALL }, Lineage { dumps: true, ..LOST }, UNIQUE);
}

#[test]
fn without_the_nonce_a_node_that_slept_through_a_release_never_tells() {
    let lineage = Lineage { release: true, ..LOST };
    without(Rules { nonce: false, ..Rules::ALL }, lineage, KEPT);
}

#[test]
fn without_dropping_its_connections_a_node_hands_out_after_it_reported() {
    without(Rules { drop: false, ..Rules::ALL }, LOST, UNIQUE);
}

#[test]
fn without_telling_again_a_record_is_lost() {
    without(Rules { tell: false, ..Rules::ALL }, LOST, KEPT);
}

#[test]
fn without_remembering_what_was_found_a_number_is_issued_again() {
    let lineage = Lineage { retries: 1, ..LOST };
    without(Rules { found: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_everybody_a_number_of_the_missing_node_is_issued_again() {
    without(Rules { everybody: false, ..Rules::ALL }, LOST, UNIQUE);
}

#[test]
fn without_those_whom_reporters_have_seen_a_lost_registration_is_not_waited_for() {
    let lineage = Lineage { late: true, depth: 2, ..LOST };
    without(Rules { roster: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_being_seen_first_nobody_knows_of_a_new_node_whose_registration_is_lost() {
    let lineage = Lineage { late: true, ..LOST };
    without(Rules { seen: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_the_margin_a_release_issues_what_a_dead_process_had_issued() {
    let lineage = Lineage { crashes: 1, release: true, ..LOST };
    without(Rules { margin: false, ..Rules::ALL }, lineage, UNIQUE);
}

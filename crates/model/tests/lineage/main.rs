//! A ledger that goes back: each rule is taken out once, and the search finds what it prevents;
//! with all rules every order of events within the bounds is visited and nothing breaks.
#![allow(missing_docs, reason = "tests say what they do in their names")]
#![allow(clippy::missing_const_for_fn, reason = "tests")]

mod acts;
mod begin;
mod checked;
mod state;

use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::state::{BY_HAND, BY_ITSELF, Event, FOUND, KEPT, Lineage, Rules, State, UNIQUE};

/// One loss of up to two commits.
const LOST: Lineage = Lineage { losses: 1, ..Lineage::CALM };

/// The same with one counter and two requests.
const ONE: Lineage = Lineage { counters: 1, requests: 2, ..LOST };

fn holds(lineage: Lineage, states_min: usize, seen: &[&'static str]) {
    let begin = Instant::now();
    let finish = HasDiscoveries::AnyFailures;
    let checker = lineage.checker().finish_when(finish).threads(2).spawn_dfs().join();
    let states = checker.unique_state_count();
    println!("{states} states, {:.1?}", begin.elapsed());
    for property in [UNIQUE, KEPT] {
        if checker.discovery(property).is_some() {
            panic!("{property}: {:?}", shortest(lineage, property));
        }
    }
    assert!(states >= states_min, "the search shrank to {states} states");
    for property in seen {
        assert!(checker.discovery(property).is_some(), "never seen: {property}");
    }
}

fn shortest(lineage: Lineage, property: &'static str) -> Option<Vec<Event>> {
    let finish = HasDiscoveries::AllOf([property].into());
    let checker = lineage.checker().finish_when(finish).spawn_bfs().join();
    let path = checker.discovery(property).map(stateright::Path::into_actions);
    let events = path.as_ref().map_or(0, Vec::len);
    println!("{property}: broken by {events} events, {} states", checker.unique_state_count());
    println!("{path:?}");
    path
}

fn without(rules: Rules, lineage: Lineage, property: &'static str) {
    let path = shortest(Lineage { rules, ..lineage }, property);
    assert!(path.is_some(), "nothing breaks: {property}");
    holds(lineage, 1, &[]);
}

/// Follows one path, from where each node has one request; or names the event that is not possible.
fn follow(lineage: Lineage, events: &[Event]) -> Result<State, Event> {
    let apart = |state: &State| state.nodes[0].waiting == [0] && state.nodes[1].waiting == [1];
    let mut state = lineage.init_states().into_iter().find(apart).expect("one such beginning");
    for event in events {
        let mut offered = Vec::new();
        lineage.actions(&state, &mut offered);
        if !offered.contains(event) {
            return Err(*event);
        }
        state = lineage.next_state(&state, *event).ok_or(*event)?;
    }
    Ok(state)
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
    let lineage = Lineage { late: true, crashes: 1, release: true, ..ONE };
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
    let lineage = Lineage { late: true, ..ONE };
    without(Rules { roster: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_being_seen_first_nobody_knows_of_a_new_node_whose_registration_is_lost() {
    let lineage = Lineage { late: true, ..ONE };
    without(Rules { seen: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_the_margin_a_release_issues_what_a_dead_process_had_issued() {
    let lineage = Lineage { crashes: 1, release: true, ..LOST };
    without(Rules { margin: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn an_adopted_outbox_and_a_loss_break_nothing() {
    let lineage = Lineage { redis: true, crashes: 1, ..LOST };
    holds(lineage, 1_000, &[BY_ITSELF]);
}

#[test]
fn what_nodes_forget_between_heartbeats_breaks_nothing() {
    let lineage = Lineage { beats: 2, forgets: true, ..ONE };
    holds(lineage, 1_000, &[BY_ITSELF]);
}

#[test]
fn without_remembering_what_was_adopted_a_number_is_issued_again() {
    let lineage = Lineage { redis: true, crashes: 1, ..LOST };
    without(Rules { adopted: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_remembering_what_was_told_a_second_loss_takes_it() {
    let lineage = Lineage { losses: 2, ..ONE };
    without(Rules { told: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_saying_what_it_forgot_a_node_is_taken_for_complete() {
    let lineage = Lineage { beats: 2, forgets: true, ..ONE };
    without(Rules { complete: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_one_heartbeat_more_what_was_taken_before_its_confirmation_is_forgotten() {
    let lineage = Lineage { beats: 2, forgets: true, ..ONE };
    without(Rules { before: false, ..Rules::ALL }, lineage, UNIQUE);
}

#[test]
fn without_what_its_process_ever_forgot_a_new_identity_is_taken_for_complete() {
    use Event::{Agree, Answer, Beat, Begin, Confirm, Forget, GoOn, Promote, Report, Stop, Take};
    // A number is forgotten long after it was committed. A loss of one heartbeat is settled, and
    // all take new identities; a second loss goes back to before the number.
    let settled = [Stop(0), Begin(0), Report(0), Stop(1), Report(1), Agree(0)];
    let forgotten = [Take(0), Answer(0), Beat(0), Confirm(0), Forget(0), Forget(0)];
    let lost = [Beat(0), Confirm(0), Beat(0), Promote(1)];
    let first = forgotten.into_iter().chain(lost).chain(settled);
    let second = [GoOn(0), GoOn(1), Promote(9)].into_iter().chain(settled);
    let again = [GoOn(1), Take(1), Answer(1)];
    let events: Vec<_> = first.chain(second).chain(again).collect();
    let lineage = Lineage { losses: 2, beats: 4, forgets: true, anew: true, depth: 9, ..ONE };
    assert_eq!(follow(lineage, &events), Err(Agree(0)), "nobody agrees on the second");
    let rules = Rules { ever: false, ..Rules::ALL };
    let last = follow(Lineage { rules, ..lineage }, &events).expect("each event is possible");
    assert_eq!(last.handed, [(0, 1, 0), (0, 1, 1)], "one value for two requests");
}

#[test]
fn without_what_trims_say_a_dead_nodes_commits_are_not_missed() {
    let lineage = Lineage { redis: true, crashes: 1, ..LOST };
    without(Rules { trimmed: false, ..Rules::ALL }, lineage, UNIQUE);
}

/// A process that sleeps takes no step for a while, which every search covers; here the operator
/// releases what the others held meanwhile.
const SLEEPER: Lineage = Lineage { release: true, ..LOST };

#[test]
fn a_sleeper_that_tells_before_it_goes_on_breaks_nothing() {
    holds(SLEEPER, 1_000, &[BY_ITSELF, BY_HAND]);
}

#[test]
fn without_f35_what_a_sleeper_had_handed_out_is_in_no_ledger() {
    without(Rules { late: false, ..Rules::ALL }, SLEEPER, KEPT);
}

/// A copy is released elsewhere, and takes the ledger's place while that goes on; nodes forget.
const BRANCH: Lineage =
    Lineage { copies: 1, losses: 0, release: true, beats: 2, forgets: true, ..ONE };

#[test]
fn a_copy_that_was_released_elsewhere_breaks_nothing() {
    holds(BRANCH, 1_000, &[BY_HAND]);
}

#[test]
fn without_f36_a_branch_issues_again_what_was_issued_beside_it() {
    without(Rules { descent: false, ..Rules::ALL }, BRANCH, UNIQUE);
}

/// Files are restored under the same server after a sweep by a clock that was ahead; a node that
/// joined late, whose row they lack, has dropped what a heartbeat followed.
const CLOCK: Lineage =
    Lineage { requests: 1, files: true, late: true, anew: true, beats: 3, depth: 4, ..ONE };

#[test]
fn files_put_back_after_a_clock_was_ahead_break_nothing() {
    holds(CLOCK, 1_000, &[BY_ITSELF]);
}

#[test]
fn without_f37_a_node_whose_row_is_lost_is_taken_for_swept() {
    without(Rules { absence: false, ..Rules::ALL }, CLOCK, KEPT);
}

/// Its old self continues next to the server that was promoted.
const BESIDE: Lineage = Lineage { beside: true, ..ONE };

#[test]
fn two_servers_side_by_side_break_nothing() {
    holds(Lineage { lost_answers: 1, ..BESIDE }, 1_000, &[BY_ITSELF]);
}

#[test]
fn without_the_nonce_who_is_led_back_takes_from_the_old_server_too() {
    without(Rules { nonce: false, ..Rules::ALL }, BESIDE, UNIQUE);
}

#[test]
fn without_refusing_an_old_server_a_quorum_check_there_ends_beside_that_of_the_new_one() {
    without(Rules { led: false, ..Rules::ALL }, BESIDE, UNIQUE);
}

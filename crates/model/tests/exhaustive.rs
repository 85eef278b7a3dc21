//! Every order of events within stated bounds, with all rules. Each test names what may go wrong,
//! the minimum number of states, and what must be seen: otherwise the search proves nothing.
//!
//! | test | nodes | servers | epochs | what may go wrong |
//! |---|---|---|---|---|
//! | a crash, a promotion… | 2 | 2 | 2 | a crash, a lagging replica promoted, a flight astray |
//! | from master to master… | 2 | 2 | 3 | two promotions, a new replica between them: A→B→A |
//! | a woken node… | 2 | 1 | 2 | a silent node that wakes, a flight astray |
//! | older data… | 2 | 1 | 2 | a restart with older or no data, a crash |
//! | a restart… | 2 | 2 | 3 | a restart with all data, the first replica attached |
//! | hands in redis… | 2 | 1 | 2 | flush, counter deleted, lowered, outbox deleted, a crash |
//! | the database… | 2 | 1 | 3 | fall-back and return, a crash |
//! | three requests… | 2 | 1 | 3 | fall-back and return, one request more |
//! | a retry to the database… | 2 | 1 | 3 | fall-back and return, a client that sends again |
//! | a retry on the way back… | 2 | 1 | 2 | return from the database, the same, a crash |
//! | a retry at another… | 2 | 1 | 2 | a client that sends again, a lost reply |
//! | a retry after… | 2 | 1 | 3 | the same, a crash, a restart without data |
//! | a retry of a trimmed… | 2 | 1 | 2 | a client that sends again, trims, a flush, a lost reply |
//! | a late node… | 2 + 1 | 1 | 2 | a node that starts late, a crash |
//! | two counters… | 2 | 1 | 3 | a silent node that wakes, a counter that is never touched |
//! | a lost record… | 2 | 1 | 2 | a record deleted, the client again, trims, a crash |
//! | a refusal… | 2 | 1 | 2 | a client that sends again and differs, a crash |
//! | an import… | 2 | 1 | 3 | a document imported, fall-back and return, a crash |
//! | a retry in another period… | 2 | 1 | 2 | the client again, from another counter; return |
//! | a cold counter… | 2 | 1 | 2 | first touches, raises, trims, coalesced flights, a lost reply |
//!
//! In the searches of imports and of another period a transaction looks for an earlier number in
//! one step and takes in another.
//!
//! A flight astray arrives at any time or never; sent again, it arrives twice. A promoted replica
//! lacks what was written since the last copy: a roll-back under a new incarnation, with the old
//! master still running.
//!
//! Recoveries need no cause: one may begin at any time, up to the number of epochs. A node's
//! flights are bounded for each epoch.
//!
//! `NUMERATOR_MODEL=long` gives each search more headroom: minutes to hours instead of seconds. Run
//! one search at a time, without the runner's time limit: `NUMERATOR_MODEL=long cargo test -p model
//! --test exhaustive -- --nocapture --test-threads=1`
#![allow(missing_docs, reason = "tests say what they do in their names")]

use model::properties::{
    A_DISCARDED_GAP, AFTER_ADOPTION, AFTER_CEILING, AFTER_EXACT, AFTER_RETURN, ALWAYS, BY_DATABASE,
};
use model::rules::Rules;
use model::scenario::{Faults, Scenario, Second};
use model::search;

const TWO: Scenario = Scenario { requests: 2, ..Scenario::CALM };

const NO_FAULTS: Faults = Scenario::CALM.faults;

fn is_long() -> bool {
    std::env::var_os("NUMERATOR_MODEL").is_some_and(|form| form == "long")
}

/// The first in the short form, the second in the long one.
fn room(short: u8, long: u8) -> u8 {
    if is_long() { long } else { short }
}

fn holds(scenario: Scenario, states_min: usize, seen: &[&str]) {
    let found = search::everything(scenario);
    println!("{} states, depth {}, {:.1?}", found.states, found.depth, found.took);
    for property in ALWAYS {
        if found.path(property).is_some() {
            let shortest = search::until(scenario, property);
            panic!("{property}: {:#?}", shortest.path(property));
        }
    }
    assert!(found.states >= states_min, "the search shrank to {} states", found.states);
    for property in seen {
        assert!(found.path(property).is_some(), "never seen: {property}");
    }
}

/// In the short form the flight goes astray with one request: with two, 3,410,607 states were
/// visited in 54 s on two busy cores.
#[test]
fn a_crash_a_promotion_and_a_flight_astray_break_nothing() {
    let seen = &[AFTER_EXACT, AFTER_CEILING, AFTER_ADOPTION, A_DISCARDED_GAP];
    let faults = Faults { crashes: 1, promotions: 1, repeats: room(0, 1), ..NO_FAULTS };
    let faults = Faults { copies: room(0, 1), ..faults };
    let scenario = Scenario { faults, flights: room(3, 4), second: Second::Replica, ..TWO };
    holds(scenario, 100_000, seen);
    let faults = Faults { crashes: 1, promotions: 1, repeats: 1, copies: 1, ..NO_FAULTS };
    holds(Scenario { faults, requests: 1, flights: 4, ..scenario }, 20_000, &[AFTER_EXACT]);
}

#[test]
fn from_master_to_master_and_back_breaks_nothing() {
    let faults = Faults { promotions: 2, attaches: 1, copies: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, epochs: 3, second: Second::Replica, ..TWO };
    holds(Scenario { flights: room(2, 3), ..scenario }, 500_000, &[AFTER_EXACT, A_DISCARDED_GAP]);
}

#[test]
fn a_woken_node_and_a_flight_astray_break_nothing() {
    let faults = Faults { silences: room(1, 2), repeats: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, flights: room(3, 4), ..TWO };
    holds(scenario, 500_000, &[AFTER_EXACT, AFTER_CEILING, AFTER_ADOPTION, A_DISCARDED_GAP]);
}

#[test]
fn older_data_and_a_crash_break_nothing() {
    let faults = Faults { saves: 1, restarts_older: 1, crashes: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, flights: room(3, 4), ..TWO };
    holds(scenario, 500_000, &[AFTER_EXACT, AFTER_CEILING, A_DISCARDED_GAP]);
}

#[test]
fn a_restart_and_a_first_replica_break_nothing() {
    let faults = Faults { restarts_kept: 1, attaches: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, flights: room(3, 4), epochs: 3, ..TWO };
    holds(scenario, 900_000, &[AFTER_EXACT, A_DISCARDED_GAP]);
}

#[test]
fn hands_in_redis_and_a_crash_break_nothing() {
    let faults = Faults { flushes: 1, deleted_counters: 1, lowered_counters: 1, ..NO_FAULTS };
    let faults = Faults { deleted_outboxes: 1, crashes: 1, ..faults };
    let scenario = Scenario { faults, flights: room(3, 4), ..TWO };
    holds(scenario, 500_000, &[AFTER_EXACT, AFTER_CEILING, A_DISCARDED_GAP]);
}

#[test]
fn the_database_and_back_breaks_nothing() {
    let faults = Faults { crashes: 1, silences: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, database: true, epochs: 3, flights: room(3, 4), ..TWO };
    holds(scenario, 400_000, &[BY_DATABASE, AFTER_RETURN, AFTER_CEILING, AFTER_ADOPTION]);
}

#[test]
fn a_retry_on_the_way_back_from_the_database_breaks_nothing() {
    let faults = Faults { crashes: 1, lost_replies: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, on_database: true, database: true, retries: 1, ..TWO };
    let scenario = Scenario { epochs: room(2, 3), flights: room(4, 5), ..scenario };
    holds(scenario, 30_000, &[BY_DATABASE, AFTER_RETURN]);
}

#[test]
fn a_retry_to_the_database_and_back_breaks_nothing() {
    let scenario = Scenario { requests: 1, retries: 1, database: true, epochs: 3, ..TWO };
    let scenario = Scenario { requests: room(1, 2), flights: room(4, 5), ..scenario };
    holds(scenario, 1_000_000, &[BY_DATABASE, AFTER_RETURN]);
}

#[test]
fn three_requests_on_the_way_to_the_database_and_back_break_nothing() {
    let scenario = Scenario { database: true, epochs: 3, flights: room(3, 4), ..TWO };
    holds(Scenario { requests: 3, ..scenario }, 700_000, &[BY_DATABASE, AFTER_RETURN]);
}

#[test]
fn a_retry_at_another_node_breaks_nothing() {
    let faults = Faults { lost_replies: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, retries: 1, flights: room(3, 4), ..TWO };
    holds(scenario, 200_000, &[AFTER_EXACT, A_DISCARDED_GAP]);
}

#[test]
fn a_retry_after_a_crash_and_a_loss_breaks_nothing() {
    let faults = Faults { crashes: 1, restarts_older: 1, repeats: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, retries: 1, requests: 1, epochs: 3, ..TWO };
    holds(Scenario { flights: room(3, 4), ..scenario }, 300_000, &[AFTER_EXACT, AFTER_CEILING]);
}

#[test]
fn a_late_node_and_a_crash_break_nothing() {
    let faults = Faults { crashes: 1, repeats: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, nodes: 3, ..TWO };
    holds(scenario, 400_000, &[AFTER_EXACT, AFTER_CEILING, AFTER_ADOPTION, A_DISCARDED_GAP]);
}

#[test]
fn a_cold_counter_and_a_lost_reply_break_nothing() {
    let faults = Faults { lost_replies: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, warm: false, joined: 0, trims: true, ..TWO };
    let scenario = Scenario { headroom: 1, coalesces: true, flights: room(5, 6), ..scenario };
    holds(scenario, 450_000, &[AFTER_EXACT, A_DISCARDED_GAP]);
}

#[test]
fn a_retry_of_a_trimmed_number_beside_a_loss_breaks_nothing() {
    let faults = Faults { flushes: 1, lost_replies: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, retries: 1, requests: 1, trims: true, ..TWO };
    holds(Scenario { flights: room(4, 5), ..scenario }, 55_000, &[AFTER_EXACT]);
}

#[test]
fn two_counters_and_a_silent_node_break_nothing() {
    let faults = Faults { silences: 1, crashes: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, counters: 2, epochs: 3, flights: 3, ..TWO };
    holds(scenario, 400_000, &[AFTER_EXACT, AFTER_CEILING, AFTER_ADOPTION]);
}

#[test]
fn a_lost_record_and_a_crash_break_nothing() {
    let faults = Faults { deleted_records: 1, crashes: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, retries: 1, trims: true, flights: room(3, 4), ..TWO };
    holds(Scenario { requests: room(1, 2), ..scenario }, 100_000, &[AFTER_EXACT]);
}

#[test]
fn a_refusal_that_shows_a_number_breaks_nothing() {
    let faults = Faults { crashes: 1, lost_replies: room(0, 1), ..NO_FAULTS };
    let scenario = Scenario { faults, retries: 1, differs: true, flights: room(3, 4), ..TWO };
    holds(scenario, 500_000, &[AFTER_EXACT]);
}

/// In the long form 6,963,978 states, 84 s on two busy cores.
#[test]
fn an_import_on_the_way_to_the_database_and_back_breaks_nothing() {
    let faults = Faults { crashes: 1, ..NO_FAULTS };
    let scenario = Scenario { faults, database: true, epochs: 3, imports: 1, splits: true, ..TWO };
    let scenario = Scenario { requests: 1, retries: room(0, 1), ..scenario };
    holds(scenario, 1_000, &[BY_DATABASE, AFTER_RETURN]);
}

#[test]
fn a_retry_in_another_period_on_the_way_back_from_the_database_breaks_nothing() {
    let rules = Rules { f27: false, names: true, names_epoch: true, ..Rules::ALL };
    let scenario = Scenario { rules, counters: 2, crosses: true, splits: true, ..TWO };
    let scenario = Scenario { on_database: true, database: true, retries: 1, ..scenario };
    holds(Scenario { epochs: room(2, 3), flights: 5, ..scenario }, 3_000, &[AFTER_RETURN]);
}

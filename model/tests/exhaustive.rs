//! Every order of events within stated bounds, with all rules.
#![allow(missing_docs, reason = "tests say what they do in their names")]

use model::properties::ALWAYS;
use model::scenario::{Faults, Scenario};
use model::search;

fn holds(scenario: Scenario, states_min: usize, seen: &[&str]) {
    let found = search::everything(scenario);
    println!("{} states, depth {}, {:.1?}", found.states, found.depth, found.took);
    for (name, path) in &found.paths {
        println!("  {name}: {} events", path.len());
    }
    for property in ALWAYS {
        assert!(found.path(property).is_none(), "{property}: {:#?}", found.path(property));
    }
    assert!(found.states >= states_min, "the search shrank to {} states", found.states);
    for property in seen {
        assert!(found.path(property).is_some(), "never seen: {property}");
    }
}

#[test]
fn calm() {
    holds(Scenario::CALM, 1, &[]);
}

#[test]
fn two_requests() {
    holds(Scenario { requests: 2, ..Scenario::CALM }, 1, &[]);
}

#[test]
fn one_crash() {
    let faults = Faults { crashes: 1, ..Faults::default() };
    holds(Scenario { faults, ..Scenario::CALM }, 1, &[]);
}

#[test]
fn one_crash_two_requests() {
    let faults = Faults { crashes: 1, ..Faults::default() };
    holds(Scenario { faults, requests: 2, ..Scenario::CALM }, 1, &[]);
}

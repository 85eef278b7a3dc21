//! Runs a search and says what it saw. Never decides whether that is good.

use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model};

use crate::protocol::{Event, Protocol};
use crate::scenario::Scenario;

/// Threads of one search.
const THREADS: usize = 2;

/// What a search saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Different states.
    pub states: usize,
    /// Events of the longest of the shortest ways to a state.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// By property: the events that lead to a violation, or to what was to be seen.
    pub paths: Vec<(&'static str, Vec<Event>)>,
}

impl Seen {
    /// The events that lead to what a property names.
    #[must_use]
    pub fn path(&self, property: &str) -> Option<&[Event]> {
        let found = self.paths.iter().find(|(name, _)| *name == property);
        found.map(|(_, path)| path.as_slice())
    }
}

/// Visits every state within the bounds.
#[must_use]
pub fn everything(scenario: Scenario) -> Seen {
    run(scenario, HasDiscoveries::AnyFailures, THREADS)
}

/// Looks for the shortest way to what a property names.
#[must_use]
pub fn until(scenario: Scenario, property: &'static str) -> Seen {
    run(scenario, HasDiscoveries::AllOf([property].into()), 1)
}

fn run(scenario: Scenario, finish: HasDiscoveries, threads: usize) -> Seen {
    let begin = Instant::now();
    let builder = Protocol { scenario }.checker().threads(threads).finish_when(finish);
    let checker = builder.spawn_bfs().join();
    let paths = checker.discoveries().into_iter();
    let mut paths: Vec<_> = paths.map(|(name, path)| (name, path.into_actions())).collect();
    paths.sort_unstable_by_key(|(name, _)| *name);
    Seen {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        took: begin.elapsed(),
        paths,
    }
}

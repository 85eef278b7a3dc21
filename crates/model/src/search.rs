//! Runs a search and reports what it saw. Never judges the result.

use std::time::{Duration, Instant};

use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model};

use crate::protocol::{Event, Protocol};
use crate::scenario::Scenario;

/// Threads of one search.
const THREADS: usize = 2;

/// What a search saw.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Different states.
    pub states: usize,
    /// Length of the longest path visited, in events.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// By property: the events that lead to a violation, or to what had to be seen.
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
    let (begin, builder) = begin(scenario, HasDiscoveries::AnyFailures);
    // Depth first: the number of states that wait to be visited stays small.
    seen(begin, &builder.threads(THREADS).spawn_dfs().join())
}

/// Looks for the shortest path to what a property names.
#[must_use]
pub fn until(scenario: Scenario, property: &'static str) -> Seen {
    let (begin, builder) = begin(scenario, HasDiscoveries::AllOf([property].into()));
    seen(begin, &builder.spawn_bfs().join())
}

fn begin(scenario: Scenario, finish: HasDiscoveries) -> (Instant, CheckerBuilder<Protocol>) {
    (Instant::now(), Protocol { scenario }.checker().finish_when(finish))
}

fn seen(begin: Instant, checker: &impl Checker<Protocol>) -> Seen {
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

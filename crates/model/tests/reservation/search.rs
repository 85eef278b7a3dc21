//! The shortest path to a breach, and long random paths through spaces that no search ends in,
//! whose every choice comes from a seed. The library that visits whole spaces finds a path to a
//! breach, though not always the shortest.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Expectation, Model};

use crate::event::Event;
use crate::rules::Reserving;
use crate::state::State;

/// Events of one path.
const PATH_EVENTS: usize = 80;

/// What went wrong, and the events that led to it.
type Breach = (&'static str, Vec<Event>);

/// A state on the way, and the step that led to it: the place of the one before, and the event.
struct Trail(Vec<(usize, Event)>);

impl Trail {
    fn back(&self, mut at: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while at > 0 {
            let (before, event) = self.0[at - 1];
            events.push(event);
            at = before;
        }
        events.reverse();
        events
    }
}

fn print_of(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}

/// Visits all that one event more leads to, again and again; the events of the first breach of a
/// property, none if there is none, and how many states were seen.
pub(crate) fn shortest(bounds: Reserving, name: &str) -> (Option<Vec<Event>>, usize) {
    let properties = bounds.properties();
    let property = properties.iter().find(|property| property.name == name).expect("one of ours");
    let first = State::first(&bounds);
    let mut seen = HashSet::from([print_of(&first)]);
    let (mut edge, mut trail, mut offered) = (vec![(0, first)], Trail(Vec::new()), Vec::new());
    while !edge.is_empty() {
        let mut next_edge = Vec::new();
        for (at, state) in edge {
            offered.clear();
            bounds.actions(&state, &mut offered);
            for event in &offered {
                let Some(next) = bounds.next_state(&state, *event) else { continue };
                if !seen.insert(print_of(&next)) {
                    continue;
                }
                trail.0.push((at, *event));
                let place = trail.0.len();
                if !(property.condition)(&bounds, &next) {
                    return (Some(trail.back(place)), seen.len());
                }
                next_edge.push((place, next));
            }
        }
        edge = next_edge;
    }
    (None, seen.len())
}

/// xorshift64*: the high half of each number.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        usize::try_from(high).expect("32 bits") % end
    }
}

/// Takes this many steps in all, from the beginning again after each path; the steps taken, or the
/// first breach.
pub(crate) fn walk(bounds: Reserving, seed: u64, steps: usize) -> Result<usize, Breach> {
    let properties = bounds.properties();
    let mut chance = Chance(seed);
    let (mut taken, mut events, mut offered) = (0, Vec::new(), Vec::new());
    while taken < steps {
        let mut state = State::first(&bounds);
        events.clear();
        offered.clear();
        bounds.actions(&state, &mut offered);
        while events.len() < PATH_EVENTS && !offered.is_empty() {
            let event = offered.swap_remove(chance.below(offered.len()));
            let Some(next) = bounds.next_state(&state, event) else { continue };
            (state, taken) = (next, taken + 1);
            events.push(event);
            offered.clear();
            bounds.actions(&state, &mut offered);
            let broken = properties.iter().find(|property| {
                property.expectation == Expectation::Always
                    && !(property.condition)(&bounds, &state)
            });
            if let Some(property) = broken {
                return Err((property.name, events));
            }
        }
    }
    Ok(taken)
}

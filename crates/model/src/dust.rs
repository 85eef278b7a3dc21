//! Forgets what can no longer make a difference, so that states that differ only in it become one.
//! Never forgets what a rule that is kept, or a property, still looks at.

use crate::data::{Data, OwnerRecord};
use crate::ledger::Part;
use crate::protocol::Protocol;
use crate::state::State;

impl Protocol {
    /// Forgets in a whole state.
    pub(crate) fn forget(&self, state: &mut State) {
        let rules = self.rules();
        for server in &mut state.servers {
            if rules.epoch && rules.counter_epoch {
                forget_counter(&mut server.data);
            }
        }
        if rules.epoch && rules.f5 && rules.f6 && rules.flight_guard {
            forget_flights(state);
        }
        // An adoption is looked up later only to see that there was one.
        let owned = state.ledger.owned;
        state.ledger.participants.retain(|part| part.0 >= owned || part.2 == Part::Adopted);
        for node in &mut state.nodes {
            if !self.scenario.trims {
                node.committed = 0;
            }
            if node.lease.is_none() && node.queue.is_empty() {
                node.flights_sent = 0;
                node.silent = false;
            }
        }
        state.history.failures = state.history.failures.min(2);
    }
}

fn epoch(owner: Option<&OwnerRecord>) -> u8 {
    owner.map_or(0, |owner| owner.epoch)
}

/// A counter of an older epoch is cold, whatever it holds.
fn forget_counter(data: &mut Data) {
    let now = epoch(data.owner.as_ref());
    for counter in &mut data.counters {
        *counter = counter.filter(|counter| counter.epoch >= now);
    }
}

/// A flight whose epoch no server can return to is fenced wherever it arrives.
fn forget_flights(state: &mut State) {
    let State { servers, openings, in_flight, .. } = state;
    in_flight.retain(|message| {
        let shows = |data: &Data| epoch(data.owner.as_ref()) == message.epoch;
        servers.iter().any(|at| shows(&at.data) || at.saved.as_deref().is_some_and(shows))
            || openings.iter().any(|opening| opening.epoch == message.epoch)
    });
}

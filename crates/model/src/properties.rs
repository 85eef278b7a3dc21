//! What must hold in every state, and what some state must show: else the search proves nothing.

use stateright::Property;

use crate::data::{Counter, OwnerRecord};
use crate::ledger::{Closing, CounterRow, Part};
use crate::protocol::Protocol;
use crate::state::{Epoch, Key, Owner, SPAN, State, Value, counter_of};

/// No value leaves a node for two requests.
pub const UNIQUE: &str = "no value is handed out twice";
/// With at most one failure, each number that left a node is in the journal, in the queue of a
/// living node or in an outbox.
pub const KEPT: &str = "one failure loses no record";
/// Each number lies above the start of its epoch and not above the start of the next.
pub const APART: &str = "epochs do not overlap";
/// One data set of one server takes the numbers of an epoch.
pub const ONE_TAKER: &str = "one data set takes the numbers of an epoch";
/// No two servers let flights of the same epoch through.
pub const ONE_OWNER: &str = "one server owns an epoch";
/// What the register calls discarded was never handed out.
pub const TRUE_GAPS: &str = "no gap denies a number that was handed out";
/// Each value below the counter's start is either in the journal or in the gap register.
pub const EXPLAINED: &str = "each value of a closed epoch is journaled or a gap";
/// A key's numbers differ only across an epoch closed at the ceiling.
pub const ONE_NUMBER: &str = "one key gets one number";
/// The journal never meets two allocations at one value.
pub const JOURNALED_ONCE: &str = "no value is journaled twice";
/// A counter that is being seeded is not taken for lost.
pub const NEEDED: &str = "no recovery without a loss";

/// Redis never has a higher ceiling than the ledger.
pub const BOUNDED: &str = "no ceiling in redis is above the ledger's";

/// A counter that was cold when an epoch closed at the ceiling has lost nothing in it.
pub const MEANT: &str = "no gap is declared where nobody could take";

/// What must hold everywhere.
pub const ALWAYS: [&str; 12] = [
    UNIQUE,
    KEPT,
    APART,
    ONE_TAKER,
    TRUE_GAPS,
    EXPLAINED,
    ONE_NUMBER,
    JOURNALED_ONCE,
    NEEDED,
    BOUNDED,
    ONE_OWNER,
    MEANT,
];

/// A number is issued by Redis after an exact closing.
pub const AFTER_EXACT: &str = "a number after an exact closing";
/// A number is issued after a closing at the ceiling.
pub const AFTER_CEILING: &str = "a number after a closing at the ceiling";
/// A number is issued on the database path.
pub const BY_DATABASE: &str = "a number on the database path";
/// A number is issued by Redis after the database owned an epoch.
pub const AFTER_RETURN: &str = "a number after the return to redis";
/// A number is issued after an epoch closed exact with an adopted participant.
pub const AFTER_ADOPTION: &str = "a number after an adoption";
/// A gap is registered as discarded.
pub const A_DISCARDED_GAP: &str = "a discarded gap";

fn handed(state: &State) -> impl Iterator<Item = (Value, Key, Epoch)> + '_ {
    state.history.handed.iter().copied()
}

fn is_unique(_: &Protocol, state: &State) -> bool {
    // In order of the value, so equal ones are neighbours.
    state.history.handed.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 == pair[1].1)
}

fn is_kept(_: &Protocol, state: &State) -> bool {
    if state.history.failures > 1 {
        return true;
    }
    handed(state).all(|(value, ..)| {
        state.ledger.has(value)
            || state.nodes.iter().any(|node| node.queue.iter().any(|(_, r)| r.value == value))
            || state.servers.iter().any(|server| {
                let mut lines = server.data.outboxes.iter().flatten().flat_map(|(_, lines)| lines);
                server.present && lines.any(|line| line.record.value == value)
            })
    })
}

fn is_apart(_: &Protocol, state: &State) -> bool {
    let starts = &state.history.starts;
    // In a ledger that has forgotten them, numbers have no place.
    state.ledger.went_back
        || handed(state).all(|(value, _, epoch)| {
            let counter = counter_of(value);
            // An imported number belongs to no counter.
            let Some(row) = state.ledger.counters.get(usize::from(counter)) else { return true };
            let mut starts = starts.iter().filter(|start| counter_of(start.1) == counter);
            let own = starts.clone().find(|start| start.0 == epoch);
            let next = starts.find(|start| start.0 > epoch);
            let end = next.map_or(row.ceiling, |start| start.1);
            own.is_some_and(|start| start.1 < value && value <= end)
        })
}

fn has_one_taker(_: &Protocol, state: &State) -> bool {
    state.history.takers.windows(2).all(|pair| pair[0].0 != pair[1].0)
}

fn has_one_owner(_: &Protocol, state: &State) -> bool {
    let owned = |place: usize| {
        let at = &state.servers[place];
        let is_own = |owner: &&OwnerRecord| at.master && owner.incarnation == at.incarnation;
        at.data.owner.as_ref().filter(is_own).map(|owner| owner.epoch)
    };
    owned(0).is_none() || owned(0) != owned(1)
}

fn has_true_gaps(_: &Protocol, state: &State) -> bool {
    handed(state).all(|(value, ..)| !state.ledger.denies(value))
}

fn is_explained(_: &Protocol, state: &State) -> bool {
    let ledger = &state.ledger;
    ledger.counters.iter().all(|row| {
        let mut values = counter_of(row.start) * SPAN + 1..=row.start;
        values.all(|value| ledger.has(value) != ledger.registers(value))
    })
}

fn has_one_number(_: &Protocol, state: &State) -> bool {
    let ledger = &state.ledger;
    let excused =
        |from: Epoch, to: Epoch| (from..to).any(|epoch| ledger.closing(epoch) == Closing::Ceiling);
    handed(state).all(|(value, key, epoch)| {
        let others = handed(state).filter(|other| other.1 == key && other.0 > value);
        others.into_iter().all(|other| excused(epoch.min(other.2), epoch.max(other.2)))
    })
}

fn is_journaled_once(_: &Protocol, state: &State) -> bool {
    !state.history.conflict
}

fn is_needed(_: &Protocol, state: &State) -> bool {
    !state.history.needless
}

fn is_bounded(_: &Protocol, state: &State) -> bool {
    let rows = &state.ledger.counters;
    let pairs = state.servers.iter().flat_map(|server| server.data.counters.iter().zip(rows));
    let bounded = |(copy, row): (&Option<Counter>, &CounterRow)| {
        copy.is_none_or(|copy| copy.epoch != row.epoch || copy.ceiling <= row.ceiling)
    };
    state.ledger.went_back || pairs.into_iter().all(bounded)
}

fn closed(state: &State, closing: Closing) -> impl Iterator<Item = Epoch> + '_ {
    (1..state.ledger.owned).filter(move |epoch| state.ledger.closing(*epoch) == closing)
}

fn issued(state: &State, after: Epoch, owner: impl Fn(Owner) -> bool) -> bool {
    handed(state).any(|(.., epoch)| {
        // A ledger that went back does not know its later epochs.
        let owned = state.ledger.owners.get(usize::from(epoch) - 1);
        epoch > after && owned.is_some_and(|of| owner(*of))
    })
}

fn by_redis(owner: Owner) -> bool {
    owner != Owner::Database
}

fn after_exact(_: &Protocol, state: &State) -> bool {
    closed(state, Closing::Exact).any(|epoch| issued(state, epoch, by_redis))
}

fn after_ceiling(_: &Protocol, state: &State) -> bool {
    closed(state, Closing::Ceiling).any(|epoch| issued(state, epoch, |_| true))
}

fn on_database(_: &Protocol, state: &State) -> bool {
    issued(state, 0, |owner| owner == Owner::Database)
}

fn after_return(_: &Protocol, state: &State) -> bool {
    let owned = (1..).zip(&state.ledger.owners).find(|(_, owner)| **owner == Owner::Database);
    owned.is_some_and(|(epoch, _)| issued(state, epoch, by_redis))
}

fn after_adoption(_: &Protocol, state: &State) -> bool {
    let adopted = state.ledger.participants.iter().filter(|part| part.2 == Part::Adopted);
    let mut exact = adopted.filter(|part| state.ledger.closing(part.0) == Closing::Exact);
    exact.any(|part| issued(state, part.0, |_| true))
}

fn has_discarded_gap(_: &Protocol, state: &State) -> bool {
    state.ledger.discarded != 0
}

/// Every property.
#[must_use]
pub fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(UNIQUE, is_unique),
        Property::always(KEPT, is_kept),
        Property::always(APART, is_apart),
        Property::always(ONE_TAKER, has_one_taker),
        Property::always(ONE_OWNER, has_one_owner),
        Property::always(TRUE_GAPS, has_true_gaps),
        Property::always(EXPLAINED, is_explained),
        Property::always(ONE_NUMBER, has_one_number),
        Property::always(JOURNALED_ONCE, is_journaled_once),
        Property::always(NEEDED, is_needed),
        Property::always(BOUNDED, is_bounded),
        Property::always(MEANT, |_, state: &State| !state.history.false_gap),
        Property::sometimes(AFTER_EXACT, after_exact),
        Property::sometimes(AFTER_CEILING, after_ceiling),
        Property::sometimes(BY_DATABASE, on_database),
        Property::sometimes(AFTER_RETURN, after_return),
        Property::sometimes(AFTER_ADOPTION, after_adoption),
        Property::sometimes(A_DISCARDED_GAP, has_discarded_gap),
    ]
}

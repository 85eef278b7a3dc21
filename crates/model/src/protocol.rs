//! The model as the checker sees it: the events, and what each does to a state.

use stateright::{Model, Property};

use crate::faults::Return;
use crate::message::Body;
use crate::properties;
use crate::rules::Rules;
use crate::scenario::Scenario;
use crate::state::{CounterId, EpochLease, Key, NodeId, ServerId, State};

/// The protocol within the bounds of a scenario.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// The bounds.
    pub scenario: Scenario,
}

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the function that `next_state` calls explains each")]
pub enum Event {
    Send { key: Key, node: NodeId },
    Look { node: NodeId },
    Join { node: NodeId },
    SendAstray { node: NodeId },
    SendFlight { node: NodeId, server: ServerId, broken: bool },
    Execute { node: NodeId, server: ServerId, broken: bool },
    ExecuteLate { place: usize, server: ServerId },
    LoseReply { node: NodeId },
    TimeOut { node: NodeId },
    Complete { node: NodeId },
    Answer { node: NodeId },
    Ask { node: NodeId },
    Seed { node: NodeId, counter: CounterId },
    Begin { node: NodeId },
    Raise { node: NodeId, counter: CounterId },
    Commit { node: NodeId, place: usize },
    Trim { node: NodeId, server: ServerId },
    Take { node: NodeId },
    Settle { node: NodeId, server: ServerId },
    Discard { node: NodeId },
    Leave { node: NodeId },
    Bump,
    Bar { dead: NodeId, server: ServerId },
    ReadOutbox { dead: NodeId, server: ServerId },
    Adopt,
    Claim { target: Option<ServerId> },
    Open { place: usize },
    Crash { node: NodeId },
    Attach { master: ServerId },
    Copy { replica: ServerId },
    Promote { replica: ServerId },
    Save { server: ServerId },
    Restart { server: ServerId, with: Return },
    Flush { server: ServerId },
    DeleteCounter { server: ServerId },
    LowerCounter { server: ServerId },
    DeleteRecord { server: ServerId, place: usize },
    Import { key: Key },
    DeleteOutbox { server: ServerId, of: NodeId },
    BackUp,
    PutBack,
}

impl Protocol {
    /// The rules that are kept.
    pub(crate) fn rules(&self) -> &Rules {
        &self.scenario.rules
    }

    /// What a worker's event does.
    fn worker_event(&self, state: &mut State, event: Event) {
        match event {
            Event::Send { key, node } => self.send(state, key, node),
            Event::Look { node } => {
                let lease = EpochLease { epoch: state.ledger.epoch, owner: state.ledger.owner };
                state.node(node).view = Some(lease);
            }
            Event::Join { node } => self.join(state, node),
            Event::SendAstray { node } => {
                self.send_flight(state, node);
                state.faults.repeats -= 1;
                let flight = state.node(node).flight.clone();
                state.in_flight.extend(flight.map(|flight| flight.message));
            }
            Event::SendFlight { node, server, broken } => {
                self.send_flight(state, node);
                self.deliver(state, node, server, broken);
            }
            Event::Execute { node, server, broken } => self.deliver(state, node, server, broken),
            Event::ExecuteLate { place, server } => {
                let message = state.in_flight.remove(place);
                self.execute(state, &message, server, false);
            }
            Event::LoseReply { node } => {
                state.faults.lost_replies -= 1;
                if let Some(flight) = &mut state.node(node).flight {
                    flight.reply = None;
                }
            }
            Event::TimeOut { node } => {
                state.faults.time_outs -= 1;
                if let Some(flight) = &mut state.node(node).flight
                    && let Body::Issue(requests) = &mut flight.message.body
                {
                    requests.remove(0);
                }
            }
            Event::Complete { node } => self.complete(state, node),
            Event::Answer { node } => Self::answer(state, node),
            Event::Ask { node } => Self::ask(state, node),
            Event::Seed { node, counter } => self.seed(state, node, counter),
            Event::Begin { node } => self.begin(state, node),
            Event::Raise { node, counter } => self.raise(state, node, counter),
            Event::Commit { node, place } => Self::commit(state, node, place),
            Event::Trim { node, server } => {
                let upto = state.node(node).trimmable(self.rules().f16);
                state.servers[usize::from(server)].trim(node, upto);
            }
            Event::Take { node } => self.take(state, node),
            Event::Settle { node, server } => self.settle(state, node, server),
            Event::Discard { node } => Self::discard(state, node),
            Event::Leave { node } => Self::leave(state, node),
            other => unreachable!("{other:?} is no event of a worker"),
        }
    }

    fn deliver(&self, state: &mut State, node: NodeId, server: ServerId, broken: bool) {
        let Some(flight) = state.node(node).flight.clone() else { return };
        state.faults.write_errors -= u8::from(broken);
        let reply = self.execute(state, &flight.message, server, broken);
        let carries = reply.carries_numbers();
        if let Some(flight) = &mut state.node(node).flight {
            flight.reply = Some(reply);
        }
        // The arrival of a reply without a number makes no difference, unless the reply is lost.
        if !carries && state.faults.lost_replies == 0 {
            self.complete(state, node);
        }
    }

    fn settle(&self, state: &mut State, node: NodeId, server: ServerId) {
        let rules = *self.rules();
        let Some(flight) = &mut state.nodes[usize::from(node)].flight else { return };
        let server = &mut state.servers[usize::from(server)];
        if let Some(reply) = server.settle(&rules, &flight.message) {
            flight.reply = Some(reply);
        }
    }

    /// What an event of a recovery, or a fault, does.
    fn other_event(&self, state: &mut State, event: Event) {
        match event {
            Event::Bump => state.ledger.bump(),
            Event::Bar { dead, server } => Self::bar(state, dead, server),
            Event::ReadOutbox { dead, server } => self.read_outbox(state, dead, server),
            Event::Adopt => Self::adopt(state),
            Event::Claim { target } => self.claim(state, target),
            Event::Open { place } => self.open(state, place),
            Event::Crash { node } => Self::crash(state, node),
            Event::Attach { master } => Self::attach(state, master),
            Event::Copy { replica } => Self::copy(state, replica),
            Event::Promote { replica } => Self::promote(state, replica),
            Event::Save { server } => Self::save(state, server),
            Event::Restart { server, with } => Self::restart(state, server, with),
            Event::Flush { server } => Self::flush(state, server),
            Event::DeleteCounter { server } => Self::delete_counter(state, server),
            Event::LowerCounter { server } => Self::lower_counter(state, server),
            Event::DeleteRecord { server, place } => Self::delete_record(state, server, place),
            Event::Import { key } => self.import(state, key),
            Event::DeleteOutbox { server, of } => Self::delete_outbox(state, server, of),
            Event::BackUp => Self::back_up(state),
            Event::PutBack => Self::put_back(state),
            worker => self.worker_event(state, worker),
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        State::first(&self.scenario)
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        for node in 0..self.scenario.nodes {
            self.worker_choices(state, node, events);
        }
        self.client_choices(state, events);
        self.late_choices(state, events);
        if self.reaches_ledger(state) {
            self.recovery_choices(state, events);
        }
        self.fault_choices(state, events);
    }

    fn next_state(&self, before: &State, event: Event) -> Option<State> {
        let mut state = before.clone();
        self.other_event(&mut state, event);
        self.forget(&mut state);
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl Protocol {
    /// Whether the ledger still answers: if it went back, that is noticed and nothing continues.
    pub(crate) fn reaches_ledger(&self, state: &State) -> bool {
        !(self.rules().f9 && state.ledger.went_back)
    }
}

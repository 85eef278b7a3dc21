//! Closing an epoch and opening the next: barrier, adoption, claim, `open`.

use crate::ledger::{Closing, Part, Stage};
use crate::message::Opening;
use crate::protocol::Protocol;
use crate::state::{
    Adoption, Epoch, Incarnation, Key, NodeId, Owner, Record, SPAN, ServerId, State, insert,
};

impl Protocol {
    /// How the epoch may be closed now; `None`: its participants are waited for.
    pub(crate) fn closing(&self, state: &State) -> Option<Closing> {
        if state.ledger.stage != Stage::Recovering {
            return None;
        }
        let exact = !self.rules().barrier
            || state.ledger.owner == Owner::Database
            || state.ledger.joined().next().is_none();
        if exact {
            return Some(Closing::Exact);
        }
        let awake = state.ledger.joined().filter(|node| !Self::is_silent(state, *node)).count();
        (awake <= state.faults.silences.into()).then_some(Closing::Ceiling)
    }

    /// Whether the others take a node for dead.
    fn is_silent(state: &State, node: NodeId) -> bool {
        let node = &state.nodes[usize::from(node)];
        !node.alive || node.silent
    }

    /// Whether the others may take a node for dead now.
    pub(crate) fn may_be_silent(state: &State, node: NodeId) -> bool {
        Self::is_silent(state, node) || state.faults.silences > 0
    }

    /// The others take a node for dead from now on; it may wake at any time.
    fn silence(state: &mut State, node: NodeId) {
        if !Self::is_silent(state, node) {
            state.faults.silences -= 1;
            state.node(node).silent = true;
        }
    }

    /// Closes the epoch and claims the opening of the next; Redis is sent its `open`.
    pub(crate) fn claim(&self, state: &mut State, target: Option<ServerId>) {
        let epoch = state.ledger.epoch;
        let owner = match target {
            Some(server) => Owner::Redis(state.servers[usize::from(server)].incarnation),
            None => Owner::Database,
        };
        if let Some(closing) = self.closing(state) {
            if closing == Closing::Ceiling {
                let waited_for: Vec<_> = state.ledger.joined().collect();
                waited_for.into_iter().for_each(|node| Self::silence(state, node));
            }
            state.ledger.claim(closing, owner);
        }
        if let (Some(server), Owner::Redis(incarnation)) = (target, owner) {
            state.openings.push(Opening { epoch, server, incarnation });
        }
    }

    /// Whether a document may be imported now.
    pub(crate) fn may_import(&self, state: &State, key: Key) -> bool {
        let owned = state.ledger.owner == Owner::Database && state.ledger.stage != Stage::Opening;
        (owned || !self.rules().f29)
            && !(self.rules().f29_names && Self::is_taking(state, key))
            && state.ledger.find(key).is_none()
    }

    /// A document comes with a number from elsewhere, which belongs to no counter.
    pub(crate) fn import(&self, state: &mut State, key: Key) {
        state.imports -= 1;
        let epoch = state.ledger.epoch;
        let value = SPAN * 2 + key;
        let record = Record { value, key, allocation: value * 4, epoch };
        insert(&mut state.ledger.journal, record);
        state.history.hand_out(record);
    }

    /// A server receives an `open`; its author reports success, unless the epoch was given up.
    pub(crate) fn open(&self, state: &mut State, place: usize) {
        let opening = state.openings.remove(place);
        let nodes = state.nodes.len();
        let opened = state.servers[usize::from(opening.server)].open(self.rules(), &opening, nodes);
        if opened && state.ledger.stage == Stage::Opening && opening.epoch == state.ledger.epoch {
            state.ledger.stage = Stage::Open;
        }
    }

    /// The epoch in which a silent node can be accounted for, and the incarnation that owns it.
    pub(crate) fn adoptable(state: &State) -> Option<(Epoch, Incarnation)> {
        let Owner::Redis(incarnation) = state.ledger.owner else { return None };
        match state.ledger.stage {
            Stage::Open | Stage::Recovering => Some((state.ledger.owned, incarnation)),
            Stage::Opening => None,
        }
    }

    /// Prevents a silent node from writing in this epoch.
    pub(crate) fn bar(state: &mut State, dead: NodeId, at: ServerId) {
        Self::silence(state, dead);
        if let Some(owner) = &mut state.servers[usize::from(at)].data.owner {
            owner.barred[usize::from(dead)] = true;
        }
    }

    /// Reads a barred node's outbox.
    pub(crate) fn read_outbox(&self, state: &mut State, dead: NodeId, at: ServerId) {
        let Some((epoch, _)) = Self::adoptable(state) else { return };
        Self::silence(state, dead);
        let (records, whole) = state.servers[usize::from(at)].outbox(self.rules(), dead);
        let exact = |epoch| state.ledger.closing(epoch) == Closing::Exact;
        let discarded = match self.rules().discard_check {
            true => Vec::new(),
            false => records.iter().map(|record| exact(record.epoch)).collect(),
        };
        state.adoption = Some(Adoption { dead, epoch, records, whole, discarded });
    }

    /// Journals an outbox and accounts for its node, in one transaction.
    pub(crate) fn adopt(state: &mut State) {
        let Some(adoption) = state.adoption.take() else { return };
        for (place, record) in adoption.records.iter().enumerate() {
            let exact = state.ledger.closing(record.epoch) == Closing::Exact;
            if !adoption.discarded.get(place).copied().unwrap_or(exact) {
                state.ledger.journal(*record, &mut state.history);
            }
        }
        let ledger = &mut state.ledger;
        let closing = ledger.stage == Stage::Recovering && ledger.epoch == adoption.epoch + 1;
        if adoption.whole && (closing || ledger.is_open(adoption.epoch)) {
            ledger.mark(adoption.epoch, adoption.dead, Part::Adopted);
        }
    }
}

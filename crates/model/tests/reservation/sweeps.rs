//! What sweepers, callers' transactions and holders of blocks do to a state. Offers no events.

use crate::event::Event;
use crate::rules::{Loss, Reserving};
use crate::state::{Act, Holder, Row, State, bit, code_of, holder, id_bit};

/// Who uses a value of a block.
fn member(id: usize, value: u8) -> Holder {
    0x40 | code_of(id) << 3 | value
}

impl Reserving {
    /// A process remembers what it did to a reservation.
    pub(crate) fn note(&self, state: &mut State, place: usize, id: usize, act: u8) {
        if self.loss != Loss::Files || !state.is_remembering() {
            return;
        }
        let node = &mut state.nodes[place];
        node.acts[id] = node.acts[id].max(act);
        for value in state.issues[id].values() {
            let latest = &mut node.latest[usize::from(value)];
            *latest = (*latest).max(code_of(id));
        }
        let issue = state.issues[id];
        if !issue.block {
            let latest = &mut node.latest_own[usize::from(issue.document)];
            *latest = (*latest).max(code_of(id));
        }
    }

    /// A process sweeps one reservation: journals or ends it.
    pub(crate) fn sweep(&self, state: &mut State, place: usize, event: Event) {
        let (id, heard, journals) = match event {
            Event::Journal(_, id, heard) => (id, heard, true),
            Event::End(_, id, heard) => (id, heard, false),
            _ => return,
        };
        if self.misses(state, place, id) {
            return Self::notice(state);
        }
        if heard {
            self.note(state, place, id, 3);
        }
        let rule = if journals { self.rules.journal_whole } else { self.rules.end_whole };
        if !rule {
            state.ledger.rows[id] = Row::None;
            state.nodes[place].hands = Some((code_of(id) - 1, journals));
        } else if journals {
            state.ledger.rows[id] = Row::None;
            state.journal(state.issues[id].first, code_of(id));
        } else {
            self.end(state, id);
        }
    }

    /// Only without L5: the second half.
    pub(crate) fn settle(&self, state: &mut State, place: usize) {
        let Some((id, journals)) = state.nodes[place].hands.take() else { return };
        let id = usize::from(id);
        if journals {
            state.journal(state.issues[id].first, code_of(id));
        } else {
            self.end(state, id);
        }
    }

    /// A reservation ends, and its values come back.
    pub(crate) fn end(&self, state: &mut State, id: usize) {
        let issue = state.issues[id];
        // Nobody knows what was used of a block that was cancelled.
        let is_cancelled = state.ledger.rows[id] == Row::Cancelled;
        let is_spent = issue.block && is_cancelled && self.rules.block_spent;
        state.drop_row(id);
        if is_spent {
            issue.values().for_each(|value| state.ledger.spent |= bit(value));
        } else {
            state.give_back(issue.values());
        }
    }

    /// Commits a caller's transaction.
    pub(crate) fn commit(state: &mut State, id: usize) {
        let Some((worker, act)) = state.open[id].take() else { return };
        let issue = state.issues[id];
        let is_confirm = act == Act::Confirm;
        if state.ledger.rows[id] != Row::None {
            state.ledger.rows[id] = if is_confirm { Row::Confirmed } else { Row::Cancelled };
        }
        if is_confirm {
            state.hold(issue.first, holder(issue.document, worker), true);
        }
    }

    /// Only without L4: the worker that comes second saves its invoice, too.
    pub(crate) fn second(state: &mut State, id: usize) {
        let issue = state.issues[id];
        let first = holder(issue.document, 0);
        let is_first = state.holds[usize::from(issue.first)] == first;
        state.hold(issue.first, first + u8::from(is_first), true);
    }

    /// The next value of a block that its holder has not used.
    pub(crate) fn unused(state: &State, id: usize) -> Option<u8> {
        state.issues[id].values().find(|value| state.used & bit(*value) == 0)
    }

    /// The holder of a block uses its next value; the ledger cannot know before it is handed back.
    pub(crate) fn use_next(state: &mut State, id: usize) {
        let Some(value) = Self::unused(state, id) else { return };
        state.used |= bit(value);
        state.hold(value, member(id, value), true);
        state.forgotten |= bit(value);
    }

    /// A block is handed back: what was used is journaled, the rest comes back.
    pub(crate) fn hand_back(&self, state: &mut State, place: usize, id: usize) {
        let issue = state.issues[id];
        let is_live = state.ledger.rows[id] != Row::None;
        state.closed |= id_bit(id);
        let used = state.used;
        let is_used = |value: &u8| used & bit(*value) != 0;
        if is_live || !self.rules.block_once {
            for value in issue.values().filter(is_used) {
                state.journal(value, code_of(id));
            }
            state.give_back(issue.values().filter(|value| !is_used(value)));
            state.drop_row(id);
        }
        self.answer_with(state, place, code_of(id), issue.first, (true, !is_live));
    }
}

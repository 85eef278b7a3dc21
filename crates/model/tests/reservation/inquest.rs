//! A ledger that goes back: what is lost, what processes report, how a hold ends. Offers no events.

use crate::rules::{Loss, Reserving};
use crate::state::{Bits, Code, IDS, Node, Row, State, Step, bit, id_bit, values};

impl State {
    /// Values that are held for ever and that the ledger does not have as confirmed.
    fn missing(&self) -> Bits {
        let is_held = |value: &u8| self.holds[usize::from(*value)] != 0;
        let missing = values().filter(is_held).filter(|value| !self.confirms(*value));
        missing.fold(0, |all, value| all | bit(value))
    }

    /// Nobody can report these any more.
    const fn excuse(&mut self, values: Bits) {
        self.forgotten |= values;
        self.stray |= values;
    }

    /// Values that some process would report.
    fn reportable(&self) -> Bits {
        let keeps = |value: &u8| self.nodes.iter().any(|node| node.kept[usize::from(*value)] != 0);
        values().filter(keeps).fold(0, |all, value| all | bit(value))
    }

    /// A reported record: it is journaled, and ends what else has its value.
    fn report_record(&mut self, value: u8, code: Code, ends: bool) {
        self.ledger.lift(value);
        self.ledger.spent &= !bit(value);
        self.journal(value, code);
        if !ends {
            return;
        }
        if self.ledger.pool & bit(value) != 0 {
            self.ledger.pool &= !bit(value);
            self.ledger.reissued += 1;
        }
        for id in 0..IDS {
            let issue = self.issues[id];
            if self.ledger.rows[id] == Row::None || !issue.has(value) {
                continue;
            }
            self.drop_row(id);
            let others = issue.values().filter(|other| *other != value);
            for other in others {
                if !self.ledger.has(other) {
                    self.ledger.spent |= bit(other);
                }
            }
        }
    }

    /// Whether a caller's transaction has the row of a reservation with one of these values.
    fn has_open(&self, values: impl Fn(u8) -> bool) -> bool {
        (0..IDS).any(|id| self.open[id].is_some() && self.issues[id].values().any(&values))
    }
}

impl Reserving {
    /// The copy takes the ledger's place: its last commits are gone, and so is every transaction.
    pub(crate) fn go_back(&self, state: &mut State) {
        let Some(copy) = state.copy.take() else { return };
        state.ledger = copy;
        state.losable = false;
        state.lost = true;
        state.open = [None; IDS];
        for node in &mut state.nodes {
            let cut = self.loss == Loss::Files && self.rules.not_after_restart;
            if matches!(node.step, Step::Asked(..)) || cut {
                node.step = Step::Idle;
            }
        }
        if self.loss == Loss::Standby {
            state.life += 1;
        } else {
            state.unnoticed = true;
        }
        let unreported = if state.crashed { !state.reportable() } else { 0 };
        state.excuse(state.missing() & (state.unseen | unreported));
    }

    /// A process has seen that the ledger went back, and begins an inquest.
    pub(crate) fn notice(state: &mut State) {
        state.ledger.agreed = false;
        state.ledger.released = false;
        state.ledger.nonce += 1;
        state.ledger.life = state.life;
        state.unnoticed = false;
    }

    /// Whether a process is to report.
    pub(crate) fn is_to_report(&self, state: &State, place: usize) -> bool {
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        let waits = self.rules.waits && state.has_open(|value| node.kept[usize::from(value)] != 0);
        node.here && ledger.nonce != node.nonce && ledger.life == state.life && !waits
    }

    /// A process reports what it remembers, in time or after a release.
    pub(crate) fn report(&self, state: &mut State, place: usize) {
        let node = state.nodes[place];
        for value in values() {
            let code = node.kept[usize::from(value)];
            if code != 0 {
                state.report_record(value, code, self.rules.report_ends);
            }
        }
        state.ledger.lift(node.high);
        let own = &mut state.nodes[place];
        own.nonce = state.ledger.nonce;
        if self.rules.not_after_report || !matches!(own.step, Step::Answer(_)) {
            own.step = Step::Idle;
        }
    }

    /// Whether a hold may end: a transaction that has a row is waited for.
    pub(crate) fn is_to_end(&self, state: &State) -> bool {
        let (ledger, rows) = (&state.ledger, &state.ledger.rows);
        let waits = self.rules.waits
            && (0..IDS).any(|id| state.open[id].is_some() && rows[id] != Row::None);
        !ledger.agreed && ledger.life == state.life && !waits
    }

    /// Whether every process has reported what it remembers.
    pub(crate) fn is_complete(state: &State) -> bool {
        let told = |node: &Node| !node.here || node.nonce == state.ledger.nonce;
        state.nodes.iter().all(told)
    }

    /// A hold ends: nobody knows what callers did with what is not confirmed.
    pub(crate) fn end_hold(&self, state: &mut State, released: bool) {
        if released {
            // Who has not reported does so later; until then its documents may get other numbers.
            state.stray |= state.missing();
            state.ledger.lift(state.peak);
        }
        for id in 0..usize::from(state.issued) {
            let is_ended = !matches!(state.ledger.rows[id], Row::None | Row::Confirmed);
            if is_ended && self.rules.spends_reserved {
                state.ledger.rows[id] = Row::None;
                state.issues[id].values().for_each(|value| state.ledger.spent |= bit(value));
            }
            let is_confirmed = state.issues[id].values().all(|value| state.confirms(value));
            if self.rules.spends_reserved && !is_confirmed {
                state.ended |= id_bit(id);
            }
        }
        if self.rules.spends_returned {
            state.ledger.spent |= state.ledger.pool;
            state.ledger.pool = 0;
            state.ledger.reissued = state.ledger.returned;
        }
        state.ledger.agreed = true;
        state.ledger.released = released;
    }

    /// A process dies, and starts again without what it remembered.
    pub(crate) fn crash(state: &mut State, place: usize) {
        let node = &mut state.nodes[place];
        node.step = Step::Idle;
        node.hands = None;
        node.forget();
        let ledger = &state.ledger;
        if ledger.agreed && ledger.life == state.life {
            node.nonce = ledger.nonce;
        }
        if state.is_remembering() {
            state.crashed = true;
        }
        if state.lost {
            state.excuse(state.missing() & !state.reportable());
        }
    }
}

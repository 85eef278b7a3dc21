//! What takes, clients and sweepers do to a state. Offers no events.

use crate::rules::{Loss, Reserving};
use crate::state::{
    Act, Answer, Code, Holder, IDS, Issue, Kind, Row, State, Step, bit, code_of, holder, id_bit,
    plain, values,
};

impl State {
    /// Someone holds a value for ever from now on; `unseen`: no process knows.
    pub(crate) fn hold(&mut self, value: u8, who: Holder, unseen: bool) {
        let at = usize::from(value);
        let first = self.holds[at] == 0;
        self.twice |= !first && self.holds[at] != who;
        if first {
            self.holds[at] = who;
        }
        if !unseen {
            self.unseen &= !bit(value);
        } else if first {
            self.unseen |= bit(value);
        }
    }

    /// A row of the journal.
    pub(crate) fn journal(&mut self, value: u8, code: Code) {
        let row = &mut self.ledger.journal[usize::from(value)];
        self.twice |= *row != 0 && *row != code;
        if *row == 0 {
            *row = code;
        }
    }

    /// The value of a reservation that ended comes back.
    pub(crate) fn give_back(&mut self, values: impl Iterator<Item = u8>) {
        for value in values {
            self.ledger.pool |= bit(value);
            self.ledger.returned += 1;
        }
    }

    /// Whether one of these values is shown to the client of another reservation, which has not
    /// ended.
    fn is_shown(&self, first: u8, last: u8, own: usize) -> bool {
        let shown = |id: &usize| *id != own && self.known & !self.ended & id_bit(*id) != 0;
        let has = |id: usize| (first..=last).any(|value| self.issues[id].has(value));
        (0..IDS).filter(shown).any(has)
    }

    /// A reservation has no row any more; it ended without a confirm.
    pub(crate) fn drop_row(&mut self, id: usize) {
        self.ledger.rows[id] = Row::None;
        self.ended |= id_bit(id);
    }
}

impl Reserving {
    /// Whether a transaction of a process is admitted.
    pub(crate) fn admits(state: &State, place: usize) -> bool {
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        node.here && ledger.agreed && ledger.life == state.life && ledger.nonce == node.nonce
    }

    /// Whether a reservation shows less than what a process knows of it.
    pub(crate) fn misses(&self, state: &State, place: usize, id: usize) -> bool {
        let (node, row) = (&state.nodes[place], state.ledger.rows[id]);
        let shown = match row {
            Row::None => return false,
            Row::Reserved => 1,
            Row::Cancelled | Row::Confirmed => 2,
        };
        let issue = state.issues[id];
        let code = code_of(id);
        let kept =
            |value: u8| Some(node.kept[usize::from(value)]).filter(|of| ![0, code].contains(of));
        let newer = |value: u8| node.latest[usize::from(value)] > code || kept(value).is_some();
        let own = |of: Code| state.document_of(of) == Some(issue.document);
        let has_other = || {
            let newest = node.latest_own[usize::from(issue.document)];
            newest > code || values().filter_map(kept).any(own)
        };
        (self.rules.compares_acts && node.acts[id] > shown)
            || (self.rules.compares_value && issue.values().any(newer))
            || (self.rules.compares_document && !issue.block && has_other())
    }

    /// An answer leaves the ledger: whether it is confirmed, and was found.
    pub(crate) fn answer_with(
        &self,
        state: &mut State,
        place: usize,
        code: Code,
        value: u8,
        is: (bool, bool),
    ) {
        let (confirmed, found) = is;
        let counts = self.loss == Loss::Files && state.is_remembering();
        let counter = if counts { (state.ledger.taken, state.ledger.reissued) } else { (0, 0) };
        let answer = Answer { code, value, confirmed, found, unwritten: false, counter };
        state.nodes[place].step = Step::Answer(answer);
    }

    /// A document asks for a reservation, a number or a block.
    pub(crate) fn ask(&self, state: &mut State, place: usize, document: u8, kind: Kind) {
        if kind == Kind::Block {
            self.take_value(state, place, document, kind);
        } else if !self.first_question(state, place, document, kind) {
            state.nodes[place].step = Step::Asked(document, kind);
            if !self.splits {
                self.take(state, place);
            }
        }
    }

    fn first_question(&self, state: &mut State, place: usize, document: u8, kind: Kind) -> bool {
        if self.rules.order {
            self.finds_reservation(state, place, document, kind)
        } else {
            self.finds_number(state, place, document)
        }
    }

    /// The second question, and the take.
    pub(crate) fn take(&self, state: &mut State, place: usize) {
        let Step::Asked(document, kind) = state.nodes[place].step else { return };
        state.nodes[place].step = Step::Idle;
        let found = if self.rules.order {
            self.finds_number(state, place, document)
        } else {
            self.finds_reservation(state, place, document, kind)
        };
        if !found {
            self.take_value(state, place, document, kind);
        }
    }

    /// Whether the reservations answer; what is over or cancelled ends.
    fn finds_reservation(&self, state: &mut State, place: usize, document: u8, kind: Kind) -> bool {
        let Some(id) = state.reservation_of(document).filter(|_| self.rules.asks_reservations)
        else {
            return false;
        };
        if self.misses(state, place, id) {
            Self::notice(state);
            return true;
        }
        let value = state.issues[id].first;
        let is_over = state.over & id_bit(id) != 0;
        match state.ledger.rows[id] {
            Row::Confirmed => self.answer_with(state, place, code_of(id), value, (true, true)),
            Row::Reserved if !is_over => {
                if kind == Kind::Reservation {
                    self.answer_with(state, place, code_of(id), value, (false, true));
                }
            }
            _ if self.rules.locks && state.open[id].is_some() => {}
            _ => {
                self.end(state, id);
                return false;
            }
        }
        true
    }

    fn finds_number(&self, state: &mut State, place: usize, document: u8) -> bool {
        if !self.rules.asks_journal {
            return false;
        }
        let own = |code: &Code| state.document_of(*code) == Some(document);
        let Some(at) = state.ledger.journal.iter().position(own) else { return false };
        let code = state.ledger.journal[at];
        self.answer_with(state, place, code, u8::try_from(at).expect("few"), (true, true));
        true
    }

    fn take_value(&self, state: &mut State, place: usize, document: u8, kind: Kind) {
        let node = &state.nodes[place];
        let is_older = state.ledger.taken < node.counter.0
            || self.rules.compares_reissued && state.ledger.reissued < node.counter.1;
        if is_older {
            Self::notice(state);
            return;
        }
        let is_full = usize::from(state.issued) >= self.ids && kind != Kind::Number;
        // One row for each document.
        let is_taken = kind == Kind::Reservation && state.reservation_of(document).is_some();
        if is_full || is_taken {
            return;
        }
        let Some((first, last)) = self.next_values(state, kind) else { return };
        state.peak = if self.release { state.peak.max(state.ledger.taken) } else { 0 };
        if kind == Kind::Number {
            state.journal(first, plain(document));
            self.answer_with(state, place, plain(document), first, (true, false));
            return;
        }
        let id = usize::from(state.issued);
        state.issued += 1;
        state.issues[id] = Issue { document, first, last, block: kind == Kind::Block };
        state.ledger.rows[id] = Row::Reserved;
        self.answer_with(state, place, code_of(id), first, (false, false));
    }

    /// The lowest value of the pool, or those above `taken`; none beyond the bounds.
    fn next_values(&self, state: &mut State, kind: Kind) -> Option<(u8, u8)> {
        let ledger = &mut state.ledger;
        if kind != Kind::Block && ledger.pool != 0 {
            let value = u8::try_from(ledger.pool.trailing_zeros()).expect("few");
            ledger.pool &= !bit(value);
            ledger.reissued += 1;
            return Some((value, value));
        }
        let first = ledger.taken + 1;
        let last = first + u8::from(kind == Kind::Block);
        if last > self.values {
            return None;
        }
        ledger.taken = last;
        Some((first, last))
    }

    /// An answer arrives at its process, which remembers it and hands it out.
    pub(crate) fn answer(&self, state: &mut State, place: usize) {
        let Step::Answer(answer) = state.nodes[place].step else { return };
        state.nodes[place].step = Step::Idle;
        let id = usize::from(answer.code.saturating_sub(1)).min(IDS);
        let is_number = id == IDS;
        if state.is_remembering() && self.loss == Loss::Files {
            let counter = &mut state.nodes[place].counter;
            *counter = (counter.0.max(answer.counter.0), counter.1.max(answer.counter.1));
        }
        if is_number {
            let (value, document) = (answer.value, answer.code - 8);
            let own = state.holds[usize::from(value)] == holder(document, 0);
            state.overlap |= !own && state.is_shown(value, value, IDS);
        } else {
            self.note(state, place, id, 1 + u8::from(answer.confirmed));
        }
        if !answer.confirmed {
            self.show(state, place, id, answer.found);
            return;
        }
        let rule = if answer.found { self.rules.keeps_found } else { self.rules.keeps_confirmed };
        let keeps = state.is_remembering() && (is_number || rule);
        let is_block = !is_number && state.issues[id].block;
        let values = if is_number || !is_block {
            answer.value..=answer.value
        } else {
            state.issues[id].first..=state.issues[id].last
        };
        let used = state.used;
        // The operator did not wait for this one, and its document may have asked elsewhere.
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        let late = ledger.released && ledger.nonce != node.nonce;
        for value in values.filter(|value| !is_block || used & bit(*value) != 0) {
            if keeps {
                state.nodes[place].kept[usize::from(value)] = answer.code;
            }
            let holds = state.holds[usize::from(value)];
            let document = if is_number { answer.code - 8 } else { state.issues[id].document };
            // Over HTTP a number is its document's, whichever worker saved it.
            let own = is_block || holds == holder(document, 1);
            state.hold(value, if own { holds } else { holder(document, 0) }, false);
            if is_block {
                state.forgotten &= !bit(value);
            }
            if late {
                state.stray |= bit(value);
            }
        }
        if answer.unwritten {
            state.nodes[place].step = Step::Read(answer.code - 1, Act::Confirm);
        }
    }

    /// A client learns of its reservation, which holds its values from now on.
    fn show(&self, state: &mut State, place: usize, id: usize, found: bool) {
        let issue = state.issues[id];
        let rule = if found { self.rules.high_found } else { self.rules.high_reserved };
        if state.is_remembering() && rule {
            let high = &mut state.nodes[place].high;
            *high = (*high).max(issue.last);
        }
        if state.ended & id_bit(id) == 0 {
            let own = [holder(issue.document, 0), holder(issue.document, 1)];
            let is_held = |value: u8| {
                let who = state.holds[usize::from(value)];
                who != 0 && !own.contains(&who)
            };
            let is_held = !issue.block && issue.values().any(is_held);
            state.overlap |= is_held || state.is_shown(issue.first, issue.last, id);
        }
        state.known |= id_bit(id);
    }

    /// A confirm over HTTP: one statement, or the answer of an earlier one.
    pub(crate) fn confirm(&self, state: &mut State, place: usize, id: usize) {
        if self.misses(state, place, id) {
            return Self::notice(state);
        }
        let value = state.issues[id].first;
        let in_time = !self.rules.time || state.over & id_bit(id) == 0;
        match state.ledger.rows[id] {
            Row::Reserved if in_time => {
                if !self.rules.one_statement {
                    let id = u8::try_from(id).expect("few");
                    state.nodes[place].step = Step::Read(id, Act::Confirm);
                    return;
                }
                self.answer_with(state, place, code_of(id), value, (true, false));
                if self.rules.after_commit {
                    state.ledger.rows[id] = Row::Confirmed;
                } else if let Step::Answer(answer) = &mut state.nodes[place].step {
                    answer.unwritten = true;
                }
            }
            Row::None if state.ledger.journal[usize::from(value)] != code_of(id) => {}
            Row::None | Row::Confirmed => {
                self.answer_with(state, place, code_of(id), value, (true, true));
            }
            Row::Reserved | Row::Cancelled => {}
        }
    }

    /// A cancel over HTTP; whether the answer reaches the process.
    pub(crate) fn cancel(&self, state: &mut State, place: usize, id: usize, heard: bool) {
        if self.misses(state, place, id) {
            return Self::notice(state);
        }
        if state.issues[id].block {
            state.closed |= id_bit(id);
        }
        if !self.rules.one_statement {
            state.nodes[place].step = Step::Read(u8::try_from(id).expect("few"), Act::Cancel);
            return;
        }
        state.ledger.rows[id] = Row::Cancelled;
        if heard {
            self.note(state, place, id, 2);
        }
    }

    /// Only without L1 or L7: what was decided before is written.
    pub(crate) fn write(&self, state: &mut State, place: usize) {
        let Step::Read(id, act) = state.nodes[place].step else { return };
        state.nodes[place].step = Step::Idle;
        let id = usize::from(id);
        let row = state.ledger.rows[id];
        let value = state.issues[id].first;
        let is_confirm = act == Act::Confirm;
        if !self.rules.after_commit {
            // One statement, whose answer has left.
            if row == Row::Reserved && state.over & id_bit(id) == 0 {
                state.ledger.rows[id] = Row::Confirmed;
            }
            return;
        }
        if row != Row::None {
            state.ledger.rows[id] = if is_confirm { Row::Confirmed } else { Row::Cancelled };
        }
        if is_confirm {
            self.answer_with(state, place, code_of(id), value, (true, false));
        }
    }
}

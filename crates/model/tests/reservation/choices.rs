//! Which events are possible. Changes nothing.

use crate::event::Event;
use crate::rules::{Loss, Reserving};
use crate::state::{Act, IDS, Kind, Node, Row, State, Step, code_of, id_bit};

impl Reserving {
    /// Every event that is possible.
    pub(crate) fn choices(&self, state: &State, events: &mut Vec<Event>) {
        for place in 0..self.nodes {
            self.node_choices(state, place, events);
        }
        for id in 0..usize::from(state.issued) {
            self.client_choices(state, id, events);
            self.time_choices(state, id, events);
        }
        self.ledger_choices(state, events);
    }

    fn node_choices(&self, state: &State, place: usize, events: &mut Vec<Event>) {
        let node = &state.nodes[place];
        let admitted = Self::admits(state, place);
        match node.step {
            Step::Idle if admitted => {
                for document in 0..self.documents {
                    self.ask_choices(state, place, document, events);
                }
                for id in 0..usize::from(state.issued) {
                    self.call_choices(state, place, id, events);
                }
            }
            Step::Asked(..) if admitted => events.push(Event::Take(place)),
            Step::Read(id, _) if admitted && state.open[usize::from(id)].is_none() => {
                events.push(Event::Write(place));
            }
            Step::Answer(_) => {
                events.push(Event::Answer(place));
                if self.lost_answers {
                    events.push(Event::Lose(place));
                }
            }
            _ => {}
        }
        if admitted && node.hands.is_some() {
            events.push(Event::Settle(place));
        } else if admitted {
            self.sweep_choices(state, place, events);
        }
        let is_fresh = Node { nonce: 1, ..*node } == Node::FIRST;
        if self.crashes && !is_fresh {
            events.push(Event::Crash(place));
        }
        if self.is_to_report(state, place) {
            events.push(Event::Report(place));
        }
    }

    fn ask_choices(&self, state: &State, place: usize, document: u8, events: &mut Vec<Event>) {
        let has_name = |node: &Node| matches!(node.step, Step::Asked(of, _) if of == document);
        if self.rules.name && state.nodes.iter().any(has_name) {
            return;
        }
        events.push(Event::Ask(place, document, Kind::Reservation));
        if self.numbers {
            events.push(Event::Ask(place, document, Kind::Number));
        }
        // A block is asked for under a key of its own: once.
        let has_block = state.issues.iter().any(|issue| issue.block);
        if self.blocks && document == 0 && !has_block {
            events.push(Event::Ask(place, document, Kind::Block));
        }
    }

    /// What clients ask a process to do to a reservation that they know.
    fn call_choices(&self, state: &State, place: usize, id: usize, events: &mut Vec<Event>) {
        if state.known & id_bit(id) == 0 || state.open[id].is_some() {
            return;
        }
        let block = state.issues[id].block;
        if self.http && !block {
            events.push(Event::Confirm(place, id));
        }
        let closed = state.closed & id_bit(id) != 0;
        let row = state.ledger.rows[id];
        if self.cancels && row == Row::Reserved && !closed {
            events.push(Event::Cancel(place, id, true));
            if self.loses_sweeps() {
                events.push(Event::Cancel(place, id, false));
            }
        }
        if block {
            let journaled = state.ledger.journal.contains(&code_of(id));
            let again = closed && (journaled || !self.rules.block_once);
            if row == Row::Reserved && !closed || row == Row::None && again {
                events.push(Event::HandBack(place, id));
            }
        }
    }

    /// Whether it makes a difference that the answer to a sweep, or a cancel, is lost.
    fn loses_sweeps(&self) -> bool {
        self.lost_answers && self.loss == Loss::Files
    }

    fn sweep_choices(&self, state: &State, place: usize, events: &mut Vec<Event>) {
        let mut admitted = (0..place).filter(|other| Self::admits(state, *other));
        let is_own = self.loss == Loss::Files || !self.rules.end_whole || !self.rules.journal_whole;
        if !is_own && admitted.next().is_some() {
            // It makes no difference who sweeps.
            return;
        }
        for id in 0..usize::from(state.issued) {
            let row = state.ledger.rows[id];
            let free = state.open[id].is_none() || !self.rules.locks;
            let is_over = state.over & id_bit(id) != 0;
            let ends = match row {
                Row::None => false,
                Row::Reserved => is_over,
                Row::Cancelled => true,
                Row::Confirmed => is_over && !self.rules.confirmed_stays,
            };
            let mut offer = |event: fn(usize, usize, bool) -> Event| {
                events.push(event(place, id, true));
                if self.loses_sweeps() {
                    events.push(event(place, id, false));
                }
            };
            if row == Row::Confirmed {
                offer(Event::Journal);
            }
            if ends && free {
                offer(Event::End);
            }
        }
    }

    /// What clients do in SQL, and holders of blocks by themselves.
    fn client_choices(&self, state: &State, id: usize, events: &mut Vec<Event>) {
        if state.open[id].is_some() {
            events.extend([Event::Commit(id), Event::RollBack(id)]);
            return;
        }
        if state.known & id_bit(id) == 0 {
            return;
        }
        let (issue, row) = (state.issues[id], state.ledger.rows[id]);
        if issue.block {
            if state.closed & id_bit(id) == 0 && Self::unused(state, id).is_some() {
                events.push(Event::Use(id));
            }
            return;
        }
        if !self.sql {
            return;
        }
        let in_time = !self.rules.time || state.over & id_bit(id) == 0;
        let ledger = &state.ledger;
        let lives = !self.rules.life || ledger.life == state.life;
        let agreed = !self.rules.held || ledger.agreed;
        if row == Row::Reserved && in_time && lives && agreed {
            let workers = 0..self.workers;
            events.extend(workers.map(|worker| Event::Open(id, worker, Act::Confirm)));
        }
        let compared = ledger.life == state.life && ledger.agreed || !self.rules.cancel_compares;
        if self.cancels && row == Row::Reserved && compared {
            events.push(Event::Open(id, 0, Act::Cancel));
        }
        let journaled = ledger.journal[usize::from(issue.first)] == code_of(id);
        if !self.rules.second_fails && (row == Row::Confirmed || journaled) && lives && agreed {
            events.push(Event::Second(id));
        }
    }

    fn time_choices(&self, state: &State, id: usize, events: &mut Vec<Event>) {
        let lives = |rows: &[Row; IDS]| match rows[id] {
            Row::Reserved => true,
            Row::Confirmed => !self.rules.confirmed_stays,
            Row::None | Row::Cancelled => false,
        };
        let lives = lives(&state.ledger.rows) || state.copy.is_some_and(|copy| lives(&copy.rows));
        let ends = !state.issues[id].block || !self.rules.block_stays;
        if self.expires && ends && lives && state.over & id_bit(id) == 0 {
            events.push(Event::Expire(id));
        }
    }

    fn ledger_choices(&self, state: &State, events: &mut Vec<Event>) {
        if state.holdable {
            events.push(Event::Hold);
        }
        if state.losable && state.copy.is_none() {
            events.push(Event::Copy);
        }
        if state.copy.is_some_and(|copy| copy != state.ledger) {
            events.push(Event::GoBack);
        }
        if state.ledger.agreed && state.ledger.life != state.life {
            events.push(Event::Begin);
        }
        if self.is_to_end(state) {
            if Self::is_complete(state) && !state.crashed {
                events.push(Event::Agree);
            }
            if self.release {
                events.push(Event::Release);
            }
        }
    }
}

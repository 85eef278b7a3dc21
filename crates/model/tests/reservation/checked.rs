//! The model as the checker sees it: what each event does, what is forgotten, and what must hold.

use stateright::{Model, Property};

use crate::event::Event;
use crate::rules::Reserving;
use crate::state::{
    Holder, IDS, Issue, Ledger, Node, Row, State, Step, VALUES, bit, code_of, id_bit, values,
};

/// No value is confirmed for two.
pub(crate) const UNIQUE: &str = "no value is held by two for ever";
/// A value is another's only once its reservation has ended.
pub(crate) const APART: &str = "two holdings of one value do not overlap";
/// No document has two confirmed numbers.
pub(crate) const ONE_NUMBER: &str = "a document has one confirmed number";
/// What was confirmed is journaled, or will be.
pub(crate) const KEPT: &str = "what was confirmed is in the ledger";
/// Every value is in one place.
pub(crate) const ACCOUNTED: &str = "every value is in exactly one place";
/// All that must hold always.
pub(crate) const ALWAYS: [&str; 5] = [UNIQUE, APART, ONE_NUMBER, KEPT, ACCOUNTED];

/// A returned value is held by another document.
pub(crate) const REISSUED: &str = "a returned value is confirmed for another document";
/// A number is confirmed after processes agreed on a ledger that went back.
pub(crate) const BY_ITSELF: &str = "a reservation after an inquest that ended automatically";
/// The same, after the operator released it.
pub(crate) const BY_HAND: &str = "a reservation after a release";

impl Model for Reserving {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        self.choices(state, events);
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        let mut state = *last;
        self.act(&mut state, event);
        state.tidy();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(UNIQUE, |_, state: &State| !state.twice),
            Property::always(APART, |_, state: &State| !state.overlap),
            Property::always(ONE_NUMBER, |_, state: &State| state.has_one_number_each()),
            Property::always(KEPT, |_, state: &State| state.keeps()),
            Property::always(ACCOUNTED, |_, state: &State| state.accounts()),
            Property::sometimes(REISSUED, |_, state: &State| {
                state.ledger.reissued > 0 && state.holds.iter().any(|who| *who != 0)
            }),
            Property::sometimes(BY_ITSELF, |_, state: &State| state.went_on(false)),
            Property::sometimes(BY_HAND, |_, state: &State| state.went_on(true)),
        ]
    }
}

impl Reserving {
    fn act(&self, state: &mut State, event: Event) {
        match event {
            Event::Ask(node, document, kind) => self.ask(state, node, document, kind),
            Event::Take(node) => self.take(state, node),
            Event::Answer(node) => self.answer(state, node),
            Event::Lose(node) => state.nodes[node].step = Step::Idle,
            Event::Confirm(node, id) => self.confirm(state, node, id),
            Event::Cancel(node, id, heard) => self.cancel(state, node, id, heard),
            Event::Write(node) => self.write(state, node),
            Event::Open(id, worker, act) => state.open[id] = Some((worker, act)),
            Event::Commit(id) => Self::commit(state, id),
            Event::RollBack(id) => state.open[id] = None,
            Event::Second(id) => Self::second(state, id),
            Event::Expire(id) => state.over |= id_bit(id),
            Event::End(node, ..) | Event::Journal(node, ..) => self.sweep(state, node, event),
            Event::Settle(node) => self.settle(state, node),
            Event::Use(id) => Self::use_next(state, id),
            Event::HandBack(node, id) => self.hand_back(state, node, id),
            Event::Crash(node) => Self::crash(state, node),
            Event::Copy => state.copy = Some(state.ledger),
            Event::GoBack => self.go_back(state),
            Event::Hold => {
                state.holdable = false;
                Self::notice(state);
            }
            Event::Begin => Self::notice(state),
            Event::Report(node) => self.report(state, node),
            Event::Agree => self.end_hold(state, false),
            Event::Release => self.end_hold(state, true),
        }
        let settled = state.lost && state.is_judged();
        if settled {
            state.lost = false;
            state.crashed = false;
            state.peak = 0;
            state.nodes.iter_mut().for_each(Node::forget);
        }
    }
}

impl State {
    /// Whether there is a reservation that was made after a hold ended, and how that did.
    fn went_on(&self, released: bool) -> bool {
        let ledger = &self.ledger;
        let is_later = ledger.agreed && ledger.nonce > 1 && ledger.released == released;
        is_later && ledger.rows.contains(&Row::Reserved)
    }

    /// A ledger that every process knows to be the one that goes on.
    fn is_judged(&self) -> bool {
        let (ledger, nodes) = (&self.ledger, &self.nodes);
        let known = nodes.iter().all(|node| !node.here || node.nonce == ledger.nonce);
        ledger.agreed && ledger.life == self.life && known && !self.unnoticed
    }

    fn keeps(&self) -> bool {
        let is_kept = |value: u8| {
            self.holds[usize::from(value)] == 0
                || self.forgotten & bit(value) != 0
                || self.confirms(value)
        };
        !self.is_judged() || values().all(is_kept)
    }

    fn has_one_number_each(&self) -> bool {
        let count = |who: Holder| {
            let values = (1..VALUES).filter(|value| self.holds[*value] == who);
            values.filter(|value| self.stray & (1 << value) == 0).count()
        };
        (1..=4).all(|who| count(who) <= 1)
    }

    fn accounts(&self) -> bool {
        let ledger = &self.ledger;
        let places = |value: u8| {
            let rows = (0..IDS).filter(|id| ledger.rows[*id] != Row::None);
            let hands = self.nodes.iter().filter_map(|node| node.hands);
            let has = |id: usize| usize::from(self.issues[id].has(value));
            let one = |bits: u8| usize::from(bits & bit(value) != 0);
            rows.map(has).sum::<usize>()
                + hands.map(|(id, _)| has(usize::from(id))).sum::<usize>()
                + one(ledger.pool)
                + one(ledger.spent)
                + usize::from(ledger.has(value))
        };
        let counted = ledger.pool.count_ones();
        let came_back = i32::from(ledger.returned) - i32::from(ledger.reissued);
        let is_counted = i32::try_from(counted) == Ok(came_back);
        let is_in_place = |value: u8| places(value) == usize::from(value <= ledger.taken);
        !ledger.agreed || is_counted && values().all(is_in_place)
    }

    /// Forgets what can make no difference any more, and puts equal moments into one form.
    fn tidy(&mut self) {
        for id in 0..usize::from(self.issued) {
            if !self.refers_to(id) {
                self.issues[id] = Issue::default();
                let others = !id_bit(id);
                self.known &= others;
                self.ended |= !others;
                self.over &= others;
                self.closed &= others;
            }
        }
        // Processes are interchangeable.
        self.nodes.sort_unstable_by(|one, other| other.cmp(one));
    }

    fn refers_to(&self, id: usize) -> bool {
        let code = code_of(id);
        let in_ledger =
            |ledger: &Ledger| ledger.rows[id] != Row::None || ledger.journal.contains(&code);
        let in_node = |node: &Node| {
            let in_step = match node.step {
                Step::Answer(answer) => answer.code == code,
                Step::Read(of, _) => usize::from(of) == id,
                Step::Idle | Step::Asked(..) => false,
            };
            let in_hands = node.hands.is_some_and(|(of, _)| usize::from(of) == id);
            let in_memory = node.kept.contains(&code) || node.acts[id] > 0;
            let in_latest = node.latest.contains(&code) || node.latest_own.contains(&code);
            in_step || in_hands || in_memory || in_latest
        };
        in_ledger(&self.ledger)
            || self.copy.as_ref().is_some_and(in_ledger)
            || self.nodes.iter().any(in_node)
            || self.open[id].is_some()
            || self.known & !self.ended & id_bit(id) != 0
            || self.issues[id].block
    }
}

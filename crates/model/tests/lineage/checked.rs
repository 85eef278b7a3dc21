//! The model as the checker sees it: which events are possible, and what must hold.

use stateright::{Model, Property};

use crate::state::{BY_HAND, BY_ITSELF, Event, FOUND, KEPT, Lineage, NODES, Node, State, UNIQUE};

impl Lineage {
    pub(crate) fn is_complete(&self, state: &State) -> bool {
        let ledger = &state.ledger;
        let heard = |node: usize| ledger.reported[node] || ledger.accounted[node];
        let waited = |node: usize| ledger.roster[node] && !heard(node);
        let somebody = self.rules.everybody && (0..NODES).any(waited);
        !(ledger.incomplete || somebody)
    }

    pub(crate) fn node_choices(&self, state: &State, place: usize, events: &mut Vec<Event>) {
        let node = &state.nodes[place];
        if !node.alive {
            return;
        }
        if state.crashes > 0 && node.joined {
            events.push(Event::Crash(place));
        }
        if !node.joined {
            if state.ledger.agreed && (!self.rules.life || state.ledger.life == state.life) {
                events.push(Event::Join(place));
            }
            return;
        }
        let here = |other: &usize| *other != place && state.nodes[*other].led == node.led;
        let others = (0..NODES).filter(here).filter(|other| !state.nodes[*other].seen[place]);
        // A heartbeat reads what is registered.
        let reads =
            others.filter(|other| state.nodes[*other].alive && state.ledger.beats[place].is_some());
        events.extend(reads.filter(|other| *other < 2).map(|other| Event::Sight(place, other)));
        // A node that stopped takes nothing from the wire; without the rule it still does.
        if node.answer.is_some() && (!node.stopped || !self.rules.drop) {
            events.push(Event::Answer(place));
            if state.lost_answers > 0 {
                events.push(Event::LoseAnswer(place));
            }
        }
        if !node.stopped && node.answer.is_none() && !node.waiting.is_empty() && node.sighted {
            if !self.redis {
                events.push(Event::Take(place));
            } else if node.nonce == state.redis.0 {
                events.push(Event::SendFlight(place));
            }
        }
        if !node.stopped && !node.queue.is_empty() {
            events.push(Event::Journal(place));
        }
        let inquires = node.stopped && state.ledger.reported[place] && !state.ledger.agreed;
        let heard = inquires && state.ledger.life == state.life;
        if (!node.stopped && self.admits(state, place)) || heard {
            self.ledger_choices(state, place, events);
        }
        if node.beating && (!node.stopped || !self.rules.drop) {
            events.push(Event::Confirm(place));
        }
        if self.forgets && node.since < node.beats {
            events.push(Event::Forget(place));
        }
        if !node.stopped && !self.admits(state, place) {
            events.push(Event::Stop(place));
        }
        if node.stopped {
            self.quorum_check_choices(state, place, events);
        }
    }

    fn ledger_choices(&self, state: &State, place: usize, events: &mut Vec<Event>) {
        let node = &state.nodes[place];
        // If files are restored, only the late node beats; otherwise no search would end.
        let is_watched = !self.files || place == NODES - 1;
        if is_watched && !node.stopped && !node.beating && node.beats < self.beats {
            events.push(Event::Beat(place));
        }
        let dead =
            |other: &usize| !state.nodes[*other].alive && state.ledger.beats[*other].is_some();
        let adopted = (0..NODES).filter(|other| self.redis && dead(other));
        events.extend(adopted.map(|other| Event::Adopt(place, other)));
    }

    pub(crate) fn quorum_check_choices(
        &self,
        state: &State,
        place: usize,
        events: &mut Vec<Event>,
    ) {
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        let is_missed = self.misses(state, place);
        let older = is_missed || ledger.life != state.life || node.nonce > ledger.nonce;
        let is_an_old_one =
            self.rules.led && ledger.agreed && ledger.life == state.life && !is_missed;
        if older && !is_an_old_one && state.nonces < 5 {
            events.push(Event::Begin(place));
        }
        if !older && !ledger.reported[place] && !ledger.agreed {
            events.push(Event::Report(place));
        }
        // A node that agrees has stopped under this very inquest.
        let under = !older && ledger.nonce == node.nonce;
        let waits = !ledger.agreed && ledger.life == state.life && ledger.reported.contains(&true);
        if under && waits && self.is_complete(state) {
            events.push(Event::Agree(place));
        }
        if !older && ledger.agreed && (ledger.nonce == node.nonce || !ledger.reported[place]) {
            let own = self.descends(state, place);
            events.push(if own { Event::GoOn(place) } else { Event::Hold(place) });
        }
    }
}

impl Model for Lineage {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        self.begin()
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        for place in 0..NODES {
            if state.other.is_some() && state.nodes[place].alive {
                events.push(Event::Lead(place));
            }
            if state.other.is_some() && state.nodes[place].led {
                let mut turned = state.clone();
                turned.turn(place);
                self.node_choices(&turned, place, events);
            } else {
                self.node_choices(state, place, events);
            }
        }
        if state.retries > 0 {
            for request in 0..self.requests {
                let free = |node: &Node| node.alive && !node.waiting.contains(&request);
                let nodes = (0..NODES).filter(|place| free(&state.nodes[*place]));
                events.extend(nodes.map(|place| Event::Send(place, request)));
            }
        }
        if state.losses > 0 {
            for back in (1..).take(state.past.len()) {
                events.push(if self.files { Event::PutFiles(back) } else { Event::Promote(back) });
                if self.dumps {
                    events.push(Event::PutBack(back));
                }
            }
        }
        if self.files && !state.ledger.ahead && state.past.is_empty() && state.losses > 0 {
            events.push(Event::Sweep);
        }
        if state.copies > 0 {
            events.push(Event::Copy);
        }
        if state.copy.is_some() {
            events.push(Event::PutCopy);
        }
        let ledger = &state.ledger;
        if !ledger.agreed && ledger.life == state.life {
            let told = ledger.reported.contains(&true);
            if self.release && told && !self.is_complete(state) {
                events.push(Event::Release);
            }
        }
    }

    fn next_state(&self, last: &State, event: Event) -> Option<State> {
        let mut next = last.clone();
        let state = &mut next;
        let of = event.node();
        of.into_iter().for_each(|place| state.turn(place));
        self.act(state, event);
        of.into_iter().for_each(|place| state.turn(place));
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(UNIQUE, |_, state: &State| {
                state.handed.windows(2).all(|pair| (pair[0].0, pair[0].1) != (pair[1].0, pair[1].1))
            }),
            Property::always(KEPT, |model: &Self, state: &State| {
                let admitted = |place: &usize| {
                    let node = &state.nodes[*place];
                    node.alive && !node.stopped && model.admits(state, *place)
                };
                // Each of two servers has its own nodes.
                let one = state.other.is_none();
                let mut rows = (0..NODES)
                    .filter(|_| one)
                    .filter(admitted)
                    .flat_map(|at| &state.nodes[at].memory);
                rows.all(|(row, _)| {
                    let queued = |node: &Node| node.queue.contains(row);
                    state.nodes.iter().any(queued) || state.ledger.journal.contains(row)
                })
            }),
            Property::sometimes(BY_ITSELF, |_, state: &State| state.went_on[0]),
            Property::sometimes(BY_HAND, |_, state: &State| state.went_on[1]),
            Property::sometimes(FOUND, |_, state: &State| state.went_on[2]),
        ]
    }
}

impl Lineage {
    fn act(&self, state: &mut State, event: Event) {
        match event {
            Event::Send(node, request) => {
                state.retries -= 1;
                state.nodes[node].waiting.push(request);
            }
            Event::Take(node) => self.take(state, node),
            Event::Stop(node) => state.nodes[node].stopped = true,
            Event::Answer(node) => self.answer(state, node),
            Event::Beat(node) => self.beat(state, node),
            Event::Confirm(node) => {
                state.nodes[node].beating = false;
                state.nodes[node].beats += 1;
            }
            Event::Forget(node) => Self::forget(state, node),
            Event::SendFlight(node) => self.send_flight(state, node),
            Event::Journal(node) => self.write(state, node),
            Event::Adopt(by, dead) => self.adopt(state, by, dead),
            Event::LoseAnswer(node) => {
                state.lost_answers -= 1;
                if let Some((row, _)) = state.nodes[node].answer.take() {
                    state.nodes[node].waiting.insert(0, row.2);
                }
            }
            Event::Join(node) => self.join(state, node),
            Event::Sight(node, by) => {
                state.nodes[by].seen[node] = true;
                state.nodes[node].sighted = true;
            }
            Event::Promote(back) => self.lose(state, back, true),
            Event::PutBack(back) => self.lose(state, back, self.rules.born),
            Event::PutFiles(back) => self.lose(state, back, false),
            Event::Sweep => {
                self.commit(state);
                state.ledger.ahead = true;
            }
            Event::Crash(node) => {
                state.crashes -= 1;
                let member = &mut state.nodes[node];
                member.alive = false;
                member.memory.clear();
                member.waiting.clear();
                member.queue.clear();
                member.answer = None;
            }
            Event::Begin(node) => self.inquire(state, node),
            Event::Report(node) => self.report(state, node),
            Event::Lead(node) => state.lead(node),
            Event::Agree(_) => {
                self.commit(state);
                state.ledger.agreed = true;
                state.ledger.released = false;
                state.redis = (state.ledger.nonce, state.ledger.taken);
            }
            Event::Release => self.release(state),
            Event::GoOn(node) => self.go_on(state, node),
            Event::Copy => Self::copy(state),
            Event::PutCopy => {
                let copy = state.copy.take();
                state.ledger = copy.expect("offered only then");
            }
            Event::Hold(node) => self.hold(state, node),
        }
    }
}

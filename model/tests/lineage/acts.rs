//! What each event does to a state. Offers none.

use crate::state::{COUNTERS, Ledger, Lineage, NODES, Node, Rules, State};

impl Lineage {
    /// Two nodes, two requests of one counter and one of the other, nothing goes wrong.
    pub(crate) const CALM: Self = Self {
        rules: Rules::ALL,
        requests: 3,
        retries: 0,
        losses: 0,
        depth: 2,
        dumps: false,
        crashes: 0,
        lost_answers: 0,
        late: false,
        release: false,
    };

    pub(crate) fn begin(&self) -> Vec<State> {
        let both = [true, true, false];
        let ledger = Ledger {
            life: 1,
            nonce: 1,
            agreed: true,
            released: false,
            taken: [0; COUNTERS],
            journal: Vec::new(),
            nodes: both,
            roster: [false; NODES],
            reported: [false; NODES],
        };
        let node = |place: usize| Node {
            alive: place < 2 || self.late,
            joined: place < 2,
            sighted: place < 2 || !self.rules.seen,
            stopped: false,
            nonce: 1,
            seen: both,
            memory: Vec::new(),
            waiting: Vec::new(),
            answer: None,
        };
        let first = State {
            ledger,
            life: 1,
            past: Vec::new(),
            nodes: (0..NODES).map(node).collect(),
            nonces: 1,
            handed: Vec::new(),
            went_on: [false; 3],
            retries: self.retries,
            losses: self.losses,
            crashes: self.crashes,
            lost_answers: self.lost_answers,
        };
        let mut states = vec![first];
        for request in 0..self.requests {
            let places = if self.late { NODES } else { 2 };
            let sent = |state: State| {
                (0..places).map(move |node| {
                    let mut state = state.clone();
                    state.nodes[node].waiting.push(request);
                    state
                })
            };
            states = states.into_iter().flat_map(sent).collect();
        }
        states
    }

    /// Whether a transaction of a node is let through.
    pub(crate) fn admits(&self, state: &State, node: usize) -> bool {
        let (ledger, node) = (&state.ledger, &state.nodes[node]);
        ledger.agreed
            && (!self.rules.life || ledger.life == state.life)
            && (!self.rules.nonce || ledger.nonce == node.nonce)
    }

    /// Remembers what the server holds before it commits something.
    pub(crate) fn commit(&self, state: &mut State) {
        if state.losses == 0 {
            return;
        }
        state.past.push(state.ledger.clone());
        if state.past.len() > usize::from(self.depth) {
            state.past.remove(0);
        }
    }

    pub(crate) fn take(&self, state: &mut State, place: usize) {
        if !self.admits(state, place) {
            state.nodes[place].stopped = true;
            return;
        }
        let request = state.nodes[place].waiting.remove(0);
        let earlier = state.ledger.journal.iter().find(|row| row.2 == request).copied();
        let row = earlier.unwrap_or_else(|| {
            let counter = usize::from(request) % COUNTERS;
            (state.ledger.taken[counter] + 1, u8::try_from(counter).expect("few"), request)
        });
        state.went_on[2] |= earlier.is_some();
        if earlier.is_none() {
            self.commit(state);
            state.ledger.journal(row);
            let how = usize::from(state.ledger.released);
            state.went_on[how] |= state.ledger.nonce > 1;
        }
        state.nodes[place].answer = Some((row, earlier.is_some()));
    }

    pub(crate) fn answer(&self, state: &mut State, place: usize) {
        let node = &mut state.nodes[place];
        let Some((row, found)) = node.answer.take() else { return };
        if !found || self.rules.found {
            node.remember(row);
        }
        let handed = (row.1, row.0, row.2);
        if let Err(at) = state.handed.binary_search(&handed) {
            state.handed.insert(at, handed);
        }
    }

    pub(crate) fn lose(&self, state: &mut State, back: u8, dump: bool) {
        state.losses -= 1;
        let kept = state.past.len() - usize::from(back);
        state.ledger = state.past.swap_remove(kept);
        state.past.clear();
        if !dump || self.rules.born {
            state.life += 1;
        }
    }

    pub(crate) fn inquire(&self, state: &mut State, place: usize) {
        self.commit(state);
        state.nonces += 1;
        let ledger = &mut state.ledger;
        ledger.nonce = state.nonces;
        ledger.life = state.life;
        // Whom an unfinished inquest waits for, this one does.
        let before = if ledger.agreed { [false; NODES] } else { ledger.roster };
        ledger.agreed = false;
        ledger.roster = std::array::from_fn(|node| ledger.nodes[node] || before[node]);
        ledger.reported = [false; NODES];
        state.nodes[place].stopped = true;
    }

    pub(crate) fn report(&self, state: &mut State, place: usize) {
        self.commit(state);
        let node = &mut state.nodes[place];
        let ledger = &mut state.ledger;
        node.nonce = ledger.nonce;
        if self.rules.drop
            && let Some((row, _)) = node.answer.take()
        {
            node.waiting.insert(0, row.2);
        }
        if self.rules.tell {
            node.memory.iter().for_each(|row| ledger.journal(*row));
        }
        for other in (0..NODES).filter(|_| self.rules.roster) {
            ledger.roster[other] |= node.seen[other];
        }
        ledger.roster[place] = true;
        ledger.reported[place] = true;
    }

    pub(crate) fn release(&self, state: &mut State) {
        self.commit(state);
        state.nonces += 1;
        let told = state.ledger.reported;
        for (node, _) in state.nodes.iter_mut().zip(told).filter(|(node, told)| node.alive && *told)
        {
            node.nonce = state.nonces;
        }
        let ledger = &mut state.ledger;
        ledger.nonce = state.nonces;
        ledger.agreed = true;
        ledger.released = true;
        if self.rules.margin {
            ledger.taken.iter_mut().for_each(|taken| *taken += self.depth);
        }
    }

    /// A node goes on; whom the inquest did not hear tells again first.
    pub(crate) fn go_on(&self, state: &mut State, place: usize) {
        let heard = state.ledger.reported[place] && state.nodes[place].nonce == state.ledger.nonce;
        if !heard {
            self.report(state, place);
        }
        state.nodes[place].stopped = false;
        state.ledger.nodes[place] = true;
    }
}

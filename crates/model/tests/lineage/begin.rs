//! Where a search begins.

use crate::state::{COUNTERS, Ledger, Lineage, NODES, NONCES, Node, Rules, State};

impl Lineage {
    /// Two nodes, two requests of one counter and one of the other, nothing goes wrong.
    pub(crate) const CALM: Self = Self {
        rules: Rules::ALL,
        counters: 2,
        requests: 3,
        retries: 0,
        losses: 0,
        depth: 2,
        dumps: false,
        crashes: 0,
        lost_answers: 0,
        late: false,
        release: false,
        beats: 1,
        forgets: false,
        anew: false,
        beside: false,
        redis: false,
        copies: 0,
        files: false,
    };

    pub(crate) fn begin(&self) -> Vec<State> {
        let mut states = vec![self.first()];
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

    /// Before any request is sent.
    fn first(&self) -> State {
        let both = [true, true, false];
        let ledger = Ledger {
            life: 1,
            nonce: 1,
            agreed: true,
            released: false,
            taken: [0; COUNTERS],
            journal: Vec::new(),
            beats: both.map(|here| here.then_some((1, 1))),
            batches: [0; NODES],
            roster: [false; NODES],
            reported: [false; NODES],
            accounted: [false; NODES],
            incomplete: false,
            replaced: [0; NONCES],
            ahead: false,
        };
        let node = |place: usize| Node {
            alive: place < 2 || self.late,
            led: false,
            joined: place < 2,
            sighted: place < 2 || !self.rules.seen,
            stopped: false,
            nonce: 1,
            seen: both,
            memory: Vec::new(),
            identity: 1,
            beats: 1,
            beating: false,
            since: 0,
            forgot: false,
            adopted: [false; NODES],
            queue: Vec::new(),
            waiting: Vec::new(),
            answer: None,
            confirmed: 0,
            since_nonce: 1,
        };
        State {
            ledger,
            life: 1,
            other: None,
            lives: 1,
            past: Vec::new(),
            nodes: (0..NODES).map(node).collect(),
            redis: (1, [0; COUNTERS]),
            outboxes: [const { Vec::new() }; NODES],
            trims: [0; NODES],
            nonces: 1,
            handed: Vec::new(),
            went_on: [false; 3],
            retries: self.retries,
            losses: self.losses,
            crashes: self.crashes,
            lost_answers: self.lost_answers,
            copies: self.copies,
            copy: None,
            time: 0,
        }
    }
}

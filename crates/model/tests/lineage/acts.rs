//! What each event does to a state. Offers no events.

use crate::state::{Ledger, Lineage, NODES, Node, Row, State};

impl State {
    /// Views the state from the other server if a node is led to it; and back.
    pub(crate) fn turn(&mut self, place: usize) {
        if let Some((ledger, life)) = &mut self.other
            && self.nodes[place].led
        {
            std::mem::swap(ledger, &mut self.ledger);
            std::mem::swap(life, &mut self.life);
        }
    }

    /// Answers on their way from the server that a node leaves do not arrive.
    pub(crate) fn lead(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.led = !node.led;
        node.beating = false;
        node.waiting.splice(0..0, node.answer.take().map(|(row, _)| row.2));
    }

    fn hand_out(&mut self, row: Row) {
        let handed = (row.1, row.0, row.2);
        if let Err(at) = self.handed.binary_search(&handed) {
            self.handed.insert(at, handed);
        }
    }
}

impl Lineage {
    /// Whether a transaction of a node is admitted.
    pub(crate) fn admits(&self, state: &State, place: usize) -> bool {
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        ledger.agreed
            && (!self.rules.life || ledger.life == state.life)
            && (!self.rules.nonce || ledger.nonce == node.nonce)
            && !self.misses(state, place)
    }

    /// Whether a node misses what was confirmed to it: its own row, its heartbeat, or what it took
    /// since (F9, F34).
    pub(crate) fn misses(&self, state: &State, place: usize) -> bool {
        let (ledger, node) = (&state.ledger, &state.nodes[place]);
        if !self.files || !ledger.agreed || ledger.nonce != node.since_nonce {
            return false;
        }
        let shown = ledger.beats[place];
        let is_excused = !self.rules.absence && ledger.ahead && shown.is_none();
        let is_shown = shown.is_some_and(|(of, beat)| of == node.identity && beat >= node.beats);
        // The beat that is confirmed next may have been sent before the number was taken.
        let mut newest = node.memory.iter().filter(|(_, beats)| beats + 1 >= node.beats);
        let has_newest = newest.all(|(row, _)| ledger.journal.contains(row));
        !(is_shown || is_excused) || !has_newest
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
            let counter = usize::from(request % self.counters);
            (state.ledger.taken[counter] + 1, u8::try_from(counter).expect("few"), request)
        });
        state.went_on[2] |= earlier.is_some();
        if earlier.is_none() {
            self.commit(state);
            state.ledger.journal(row);
            if self.copies > 0 {
                self.confirm_all(state);
            }
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
        state.hand_out(row);
    }

    pub(crate) fn send_flight(&self, state: &mut State, place: usize) {
        let node = &mut state.nodes[place];
        let request = node.waiting.remove(0);
        let counter = usize::from(request % self.counters);
        let value = &mut state.redis.1[counter];
        *value += 1;
        let row = (*value, u8::try_from(counter).expect("few"), request);
        node.remember(row);
        node.queue.push(row);
        state.outboxes[place].push(row);
        state.went_on[0] |= state.redis.0 > 1;
        state.hand_out(row);
    }

    pub(crate) fn write(&self, state: &mut State, place: usize) {
        if !self.admits(state, place) {
            state.nodes[place].stopped = true;
            return;
        }
        self.commit(state);
        let row = state.nodes[place].queue.remove(0);
        state.ledger.journal(row);
        state.ledger.batches[place] += 1;
        state.outboxes[place].retain(|other| *other != row);
        state.trims[place] = state.ledger.batches[place];
    }

    pub(crate) fn adopt(&self, state: &mut State, by: usize, dead: usize) {
        self.commit(state);
        for row in std::mem::take(&mut state.outboxes[dead]) {
            state.ledger.journal(row);
            if self.rules.adopted {
                state.nodes[by].remember(row);
            }
        }
        let ledger = &mut state.ledger;
        if ledger.agreed {
            ledger.beats[dead] = None;
        } else {
            ledger.accounted[dead] = self.shows(ledger, &state.trims, dead);
        }
        state.nodes[by].adopted[dead] = true;
    }

    /// Whether a ledger shows all that left a node's outbox.
    fn shows(&self, ledger: &Ledger, trims: &[u8; NODES], of: usize) -> bool {
        !self.rules.trimmed || ledger.batches[of] >= trims[of]
    }

    pub(crate) fn beat(&self, state: &mut State, place: usize) {
        self.commit(state);
        let node = &mut state.nodes[place];
        node.beating = true;
        state.ledger.beats[place] = Some((node.identity, node.beats + 1));
    }

    /// Forgets what is committed and was there before the oldest remembered heartbeat.
    pub(crate) fn forget(state: &mut State, place: usize) {
        let node = &mut state.nodes[place];
        node.since += 1;
        let (since, queue) = (node.since, &node.queue);
        node.memory.retain(|(row, beats)| *beats >= since || queue.contains(row));
        node.forgot = true;
    }

    pub(crate) fn lose(&self, state: &mut State, back: u8, is_other_life: bool) {
        state.losses -= 1;
        let kept = state.past.len() - usize::from(back);
        let lost = std::mem::replace(&mut state.ledger, state.past.swap_remove(kept));
        state.past.truncate(kept);
        if self.beside {
            state.other = Some((lost, state.life));
            // No node has been led to the new one yet.
            state.nodes.iter_mut().for_each(|node| node.led = true);
        }
        if is_other_life {
            state.lives += 1;
            state.life = state.lives;
        }
    }

    pub(crate) fn inquire(&self, state: &mut State, place: usize) {
        self.commit(state);
        state.nonces += 1;
        let ledger = &mut state.ledger;
        ledger.replace([ledger.nonce, state.nodes[place].nonce], state.time);
        ledger.nonce = state.nonces;
        ledger.life = state.life;
        // This inquest waits for the nodes that an unfinished one waits for.
        let unfinished = !ledger.agreed;
        let before = ledger.roster.map(|waited_for| waited_for && unfinished);
        ledger.agreed = false;
        ledger.roster = std::array::from_fn(|node| ledger.beats[node].is_some() || before[node]);
        ledger.incomplete &= unfinished;
        ledger.reported = [false; NODES];
        ledger.accounted = [false; NODES];
        let node = &mut state.nodes[place];
        node.stopped = true;
        node.nonce = node.nonce.max(ledger.nonce);
    }

    pub(crate) fn report(&self, state: &mut State, place: usize) {
        self.commit(state);
        let node = &mut state.nodes[place];
        let ledger = &mut state.ledger;
        node.nonce = ledger.nonce;
        if self.rules.drop {
            node.beating = false;
            node.waiting.splice(0..0, node.answer.take().map(|(row, _)| row.2));
        }
        let complete = !self.rules.complete || self.remembers(node, ledger.beats[place]);
        ledger.incomplete |= !complete;
        if self.rules.tell {
            node.memory.iter().for_each(|(row, _)| ledger.journal(*row));
            ledger.batches[place] = ledger.batches[place].max(state.trims[place]);
        }
        if !self.rules.told {
            node.memory.clear();
        }
        for row in node.queue.drain(..) {
            state.outboxes[place].retain(|other| *other != row);
        }
        for other in 0..NODES {
            ledger.roster[other] |= self.rules.roster && node.seen[other];
            ledger.accounted[other] |=
                node.adopted[other] && self.shows(ledger, &state.trims, other);
        }
        ledger.roster[place] = true;
        ledger.reported[place] = true;
    }

    /// Whether a node remembers all that may be lost from a ledger that shows `shown` of it.
    fn remembers(&self, node: &Node, shown: Option<(u8, u8)>) -> bool {
        match shown {
            Some((identity, beat)) if identity == node.identity => {
                node.since + u8::from(self.rules.before) <= beat
            }
            _ if self.rules.ever => !node.forgot,
            _ => node.since == 0,
        }
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
        ledger.replace([ledger.nonce], state.time);
        ledger.nonce = state.nonces;
        ledger.agreed = true;
        ledger.released = true;
        if self.rules.margin {
            ledger.taken.iter_mut().for_each(|taken| *taken += self.depth);
        }
    }

    /// A node registers.
    pub(crate) fn join(&self, state: &mut State, place: usize) {
        self.commit(state);
        state.ledger.beats[place] = Some((1, 1));
        let nonce = state.ledger.nonce;
        let node = &mut state.nodes[place];
        (node.joined, node.nonce, node.since_nonce) = (true, nonce, nonce);
        node.seen[place] = true;
    }

    /// A number is committed, and every process that is awake has a heartbeat confirmed after it.
    fn confirm_all(&self, state: &mut State) {
        state.time += 1;
        for place in 0..NODES {
            if state.nodes[place].alive && self.admits(state, place) {
                state.nodes[place].confirmed = state.time;
            }
        }
    }

    /// A trial on a copy shows whether it can be released.
    pub(crate) fn copy(state: &mut State) {
        state.copies -= 1;
        state.nonces += 1;
        let mut copy = state.ledger.clone();
        copy.replace([copy.nonce], state.time);
        (copy.nonce, copy.agreed, copy.released) = (state.nonces, true, true);
        copy.reported = [false; NODES];
        state.copy = Some(copy);
    }

    /// Whether a ledger is a later state of what a node knows: everything that was confirmed to the
    /// node came before the next inquest.
    pub(crate) fn descends(&self, state: &State, place: usize) -> bool {
        let node = &state.nodes[place];
        let same = state.ledger.nonce == node.nonce;
        same || !self.rules.descent
            || node.confirmed < state.ledger.replaced[usize::from(node.nonce)]
    }

    /// A node holds a branch: only the operator ends that.
    pub(crate) fn hold(&self, state: &mut State, place: usize) {
        self.inquire(state, place);
        state.ledger.incomplete = true;
    }

    /// A node continues; a node that the inquest did not hear reports again first.
    pub(crate) fn go_on(&self, state: &mut State, place: usize) {
        let heard = state.ledger.reported[place] && state.nodes[place].nonce == state.ledger.nonce;
        if !heard && self.rules.late {
            self.report(state, place);
        }
        let node = &mut state.nodes[place];
        (node.nonce, node.since_nonce) = (state.ledger.nonce, state.ledger.nonce);
        node.stopped = false;
        if self.anew {
            (node.identity, node.beats, node.since) = (node.identity + 1, 1, 0);
            node.memory.iter_mut().for_each(|(_, beats)| *beats = 1);
        }
        let registered = state.ledger.beats[place];
        let (identity, beats) = (node.identity, node.beats);
        if registered.is_none_or(|(of, _)| of != identity) {
            self.commit(state);
            state.ledger.beats[place] = Some((identity, beats));
        }
    }
}

//! A node's ordinary work: requests, flights, handing out, the journal, the database path. Never
//! looks at what a process could not see.

use crate::data::Data;
use crate::ledger::{Part, Seeding, Stage};
use crate::message::{Body, Message, Outcome, Reply};
use crate::protocol::Protocol;
use crate::server::Server;
use crate::state::{
    Asked, COUNTERS, CounterId, Epoch, EpochLease, Flight, Incarnation, Job, Key, Node, NodeId,
    Owner, Parked, PendingRequest, Record, ServerId, State, counter_of, insert,
};

impl Protocol {
    /// A client sends a request again.
    pub(crate) fn send(&self, state: &mut State, key: Key, node: NodeId) {
        let nth = &mut state.sent[usize::from(key)];
        let counter = (key + u8::from(self.scenario.crosses)) % self.scenario.counters;
        let request = PendingRequest {
            differs: self.scenario.differs,
            ..PendingRequest::new(key, *nth, counter)
        };
        *nth += 1;
        state.retries -= 1;
        state.node(node).requests.push(request);
    }

    /// Becomes a participant of the open epoch.
    pub(crate) fn join(&self, state: &mut State, node: NodeId) {
        let lease = EpochLease { epoch: state.ledger.epoch, owner: state.ledger.owner };
        let flights = self.scenario.flights;
        let member = state.node(node);
        // Without F5 the epoch is one that was read earlier.
        let lease = if self.rules().f5 { lease } else { member.view.take().unwrap_or(lease) };
        member.lease = Some(lease);
        member.silent = false;
        member.flights_sent = (lease.epoch - 1) * flights;
        if lease.owner != Owner::Database {
            state.ledger.join(lease.epoch, node);
        }
    }

    /// Whether a node has something to send.
    pub(crate) fn may_send(&self, state: &State, node: NodeId) -> Option<(u8, Incarnation)> {
        let node = &state.nodes[usize::from(node)];
        let lease = node.lease?;
        let Owner::Redis(incarnation) = lease.owner else { return None };
        let asking = node.requests.iter().any(|request| request.asked == Asked::Due);
        let goes = |request: &PendingRequest| Self::is_admitted(state, node, lease.epoch, request);
        let waits = || !asking && !node.is_lost() && node.requests.iter().any(goes);
        let ready = node.job.is_some() || waits();
        let free = node.flight.is_none() && node.flights_sent < lease.epoch * self.scenario.flights;
        (node.alive && !node.barred && free && ready).then_some((lease.epoch, incarnation))
    }

    /// Whether a request may go with the next flight.
    fn is_admitted(state: &State, node: &Node, epoch: Epoch, request: &PendingRequest) -> bool {
        let counter = usize::from(request.counter);
        let seeded =
            |server: &Server| server.data.counters[counter].is_some_and(|c| c.epoch == epoch);
        // Until the seed is there, every flight would only repeat that it is not.
        match node.parked[counter] {
            Parked::No => true,
            Parked::Grace => state.servers.iter().any(seeded),
            Parked::Cold | Parked::Ceiling(_) | Parked::Lost => false,
        }
    }

    /// Sends the next flight: a job, or what waits.
    pub(crate) fn send_flight(&self, state: &mut State, node: NodeId) {
        let Some((epoch, incarnation)) = self.may_send(state, node) else { return };
        let of = &state.nodes[usize::from(node)];
        let mut admitted = of.requests.clone();
        admitted.retain(|request| Self::is_admitted(state, of, epoch, request));
        if !self.scenario.coalesces {
            admitted.truncate(1);
        }
        let sender = state.node(node);
        sender.flights_sent += 1;
        let body = if let Some(job) = sender.job.take() {
            Body::Job(job)
        } else {
            sender.requests.retain(|request| !admitted.contains(request));
            for request in &admitted {
                sender.parked[usize::from(request.counter)] = Parked::No;
            }
            Body::Issue(admitted)
        };
        let (flight, confirmed, seen) = (sender.flights_sent, sender.confirmed, sender.seen);
        let message = Message { node, flight, confirmed, seen, epoch, incarnation, body };
        sender.flight = Some(Flight { message, reply: None });
    }

    /// A server executes a flight; the taker of numbers is remembered.
    pub(crate) fn execute(
        &self,
        state: &mut State,
        message: &Message,
        at: ServerId,
        broken: bool,
    ) -> Reply {
        let server = &mut state.servers[usize::from(at)];
        let values = |data: &Data| data.counters.map(|counter| counter.map(|c| c.value));
        let before = values(&server.data);
        let reply = server.execute(self.rules(), message, broken);
        let after = values(&server.data);
        if matches!(message.body, Body::Issue(_)) && before != after {
            let taker = (message.epoch, at, server.incarnation);
            insert(&mut state.history.takers, taker);
        }
        reply
    }

    /// The reply arrives: this is the moment of handing out.
    pub(crate) fn complete(&self, state: &mut State, node: NodeId) {
        let Some(Flight { message, reply: Some(reply) }) = state.node(node).flight.take() else {
            return;
        };
        let requests = match &message.body {
            Body::Issue(requests) => requests.clone(),
            Body::Job(_) => Vec::new(),
        };
        let member = state.node(node);
        match reply {
            Reply::Issued(outcomes) => {
                member.confirmed = message.flight;
                self.complete_outcomes(state, node, message.flight, &requests, &outcomes);
            }
            Reply::Done => {
                member.confirmed = message.flight;
                if let Body::Job(job) = message.body {
                    let counter = usize::from(counter_of(job.value()));
                    member.parked[counter] = Parked::No;
                    let row = &mut state.ledger.counters[counter];
                    let own = row.epoch == message.epoch && row.seeder == node;
                    row.reported |= own && matches!(job, Job::Seed { .. });
                }
            }
            Reply::Barred => {
                member.leave();
                member.barred = true;
                member.requests.clear();
            }
            Reply::Error if !self.rules().f15 => {
                member.flight = Some(Flight { message, reply: None });
            }
            // The number of a fenced flight is not spent; nothing more is sent in this epoch.
            Reply::Fenced
            | Reply::Late
            | Reply::Mismatch
            | Reply::Miscounted
            | Reply::Error
            | Reply::NotExecuted => {
                member.requests.extend(requests);
                member.parked = [Parked::Lost; COUNTERS];
            }
        }
    }

    fn complete_outcomes(
        &self,
        state: &mut State,
        node: NodeId,
        flight: u8,
        requests: &[PendingRequest],
        outcomes: &[Outcome],
    ) {
        for (request, outcome) in requests.iter().zip(outcomes) {
            let member = state.node(node);
            let wait = |parked| (Some(*request), parked);
            let (back, parked) = match *outcome {
                Outcome::Taken(record) | Outcome::Replayed(record) => {
                    let seen = &mut member.seen[usize::from(counter_of(record.value))];
                    *seen = (*seen).max(record.value);
                    let replayed = matches!(outcome, Outcome::Replayed(_));
                    self.hand_out(
                        state,
                        node,
                        flight,
                        Record { key: request.key, ..record },
                        replayed,
                    );
                    (None, None)
                }
                // Without F30 a number that is only shown is recorded nowhere.
                Outcome::Numbered(record) if !self.rules().f30 => {
                    state.history.hand_out(record);
                    (None, None)
                }
                Outcome::Numbered(record) => {
                    self.hand_out(state, node, flight, record, true);
                    (None, None)
                }
                Outcome::Ask => (Some(PendingRequest { asked: Asked::Due, ..*request }), None),
                Outcome::Nothing => wait(None),
                Outcome::Cold => wait(Some(Parked::Cold)),
                Outcome::Ceiling(ceiling) => wait(Some(Parked::Ceiling(ceiling))),
                Outcome::Regressed => wait(Some(Parked::Lost)),
            };
            let member = state.node(node);
            member.requests.extend(back);
            let at = &mut member.parked[usize::from(request.counter)];
            *at = parked.unwrap_or(*at);
        }
        state.node(node).requests.sort_unstable();
    }

    /// A record is handed out as soon as it is queued. The sending of its answer, after the next
    /// flight or never, is not an event of its own: it could only weaken what is required of the
    /// number.
    fn hand_out(
        &self,
        state: &mut State,
        node: NodeId,
        flight: u8,
        record: Record,
        replayed: bool,
    ) {
        let member = state.node(node);
        if !self.rules().f11 {
            member.unanswered.push((flight, record));
            return;
        }
        if !replayed || self.rules().f2 {
            member.queue.push((flight, record));
        }
        state.history.hand_out(record);
    }

    /// Only without F11: the answer leaves, and only then the record is queued.
    pub(crate) fn answer(state: &mut State, node: NodeId) {
        let member = state.node(node);
        let (flight, record) = member.unanswered.remove(0);
        member.queue.push((flight, record));
        state.history.hand_out(record);
    }

    /// Asks the journal for the first request that Redis could not judge.
    pub(crate) fn ask(state: &mut State, node: NodeId) {
        let member = &mut state.nodes[usize::from(node)];
        let due = member.requests.iter().position(|request| request.asked == Asked::Due);
        let (Some(place), Some(lease)) = (due, member.lease) else { return };
        if let Some(record) = state.ledger.find(member.requests[place].key) {
            member.requests.remove(place);
            state.history.hand_out(record);
        } else {
            member.requests[place].asked = Asked::In(lease.epoch);
        }
    }

    /// Seeds the counter in the ledger, or learns which node did.
    pub(crate) fn seed(&self, state: &mut State, node: NodeId, counter: CounterId) {
        let Some(lease) = state.nodes[usize::from(node)].lease else { return };
        let (rules, headroom) = (self.rules(), self.scenario.headroom);
        let seeding =
            state.ledger.seed(rules, &mut state.history, node, lease.epoch, counter, headroom);
        let lost = Parked::Lost;
        let parked = match seeding {
            Seeding::Seeded(value, ceiling) => {
                state.node(node).job = Some(Job::Seed { value, ceiling });
                Parked::No
            }
            Seeding::Fenced => lost,
            Seeding::Already(row) if row.seeder == node || row.reported => lost,
            // The seeder has a grace period; only time shows whether it died meanwhile.
            Seeding::Already(_) if rules.f12 => Parked::Grace,
            Seeding::Already(_) => {
                state.history.needless |= state.history.failures == 0;
                lost
            }
        };
        state.node(node).parked[usize::from(counter)] = parked;
    }

    /// Begins a transaction that takes under the name of a key: looks for its earlier number.
    fn look(&self, state: &mut State, node: NodeId) {
        let member = &mut state.nodes[usize::from(node)];
        let epoch = member.lease.map_or(0, |lease| lease.epoch);
        if let Some(record) = state.ledger.find(member.requests[0].key) {
            member.requests.remove(0);
            state.history.hand_out(record);
        } else if self.rules().names_epoch && state.ledger.epoch != epoch {
            member.parked = [Parked::Lost; COUNTERS];
        } else {
            member.taking = true;
        }
    }

    /// Begins a transaction; without F4 by reading the fence.
    pub(crate) fn begin(&self, state: &mut State, node: NodeId) {
        if self.scenario.splits {
            self.look(state, node);
            return;
        }
        let member = state.node(node);
        let ceiling = |parked: &Parked| match parked {
            Parked::Ceiling(seen) => Some(*seen),
            _ => None,
        };
        match (member.lease, member.parked.iter().find_map(ceiling)) {
            (Some(lease), Some(seen)) => member.raising = Some((lease.epoch, seen)),
            _ => member.taking = true,
        }
    }

    /// Raises the ceiling in the ledger.
    pub(crate) fn raise(&self, state: &mut State, node: NodeId, counter: CounterId) {
        let counter = usize::from(counter);
        let fenced = self.rules().f4;
        let member = &mut state.nodes[usize::from(node)];
        let here = match (member.lease, member.parked[counter]) {
            (Some(lease), Parked::Ceiling(seen)) => Some((lease.epoch, seen)),
            _ => None,
        };
        // Without the fence the epoch was read earlier: the node may have left it since.
        let wish = if fenced { here } else { member.raising.take() };
        let Some((epoch, seen)) = wish else { return };
        let raised = state.ledger.raise(fenced, epoch, seen, self.scenario.headroom);
        if wish == here {
            member.job = raised.map(|ceiling| Job::Raise { ceiling });
            member.parked[counter] = if raised.is_some() { Parked::No } else { Parked::Lost };
        }
    }

    /// Commits one record of the journal queue.
    pub(crate) fn commit(state: &mut State, node: NodeId, place: usize) {
        let member = &mut state.nodes[usize::from(node)];
        let (flight, record) = member.queue.remove(place);
        member.committed = member.committed.max(flight);
        state.ledger.journal(record, &mut state.history);
    }

    /// Takes a number on the database path: one transaction, the journal's row included.
    pub(crate) fn take(&self, state: &mut State, node: NodeId) {
        let member = &mut state.nodes[usize::from(node)];
        let (Some(lease), Some(request)) = (member.lease, member.requests.first().copied()) else {
            return;
        };
        member.taking = false;
        let earlier = state.ledger.find(request.key).filter(|_| !self.scenario.splits);
        if let Some(record) = earlier {
            member.requests.remove(0);
            state.history.hand_out(record);
            return;
        }
        let (rules, epoch) = (self.rules(), lease.epoch);
        match state.ledger.take(rules, &mut state.history, node, epoch, request.counter) {
            Some(value) => {
                member.requests.remove(0);
                let (key, allocation) = (request.key, request.allocation);
                let record = Record { value, key, allocation, epoch };
                state.ledger.journal(record, &mut state.history);
                state.history.hand_out(record);
            }
            None => member.parked = [Parked::Lost; COUNTERS],
        }
    }

    /// Leaves an epoch that is over. While the next is being prepared, that is its acknowledgement.
    pub(crate) fn leave(state: &mut State, node: NodeId) {
        let member = &mut state.nodes[usize::from(node)];
        let Some(lease) = member.lease else { return };
        let ledger = &mut state.ledger;
        if ledger.stage == Stage::Recovering && ledger.epoch == lease.epoch + 1 {
            ledger.mark(lease.epoch, node, Part::Acknowledged);
        }
        member.leave();
    }

    /// Gives a flight up whose outcome cannot be learned; its requests wait for the next epoch.
    pub(crate) fn discard(state: &mut State, node: NodeId) {
        let member = state.node(node);
        let Some(flight) = member.flight.take() else { return };
        if let Body::Issue(requests) = &flight.message.body {
            member.requests.extend(requests.iter().copied());
            member.requests.sort_unstable();
        }
    }
}

//! Which events are possible in a state. Each offered event is one that a real process, server or
//! network could cause there.

use crate::faults::Return;
use crate::ledger::Stage;
use crate::message::Body;
use crate::protocol::{Event, Protocol};
use crate::state::{Asked, Key, Node, NodeId, Owner, Parked, ServerId, State, counter_of};

const SERVERS: [ServerId; 2] = [0, 1];

impl Protocol {
    /// Servers that a script may reach. A replica refuses to write unless configured otherwise.
    fn reachable(&self, state: &State) -> impl Iterator<Item = ServerId> {
        let writable = !self.rules().f19;
        let [first, second] = &state.servers;
        let reached = [first, second].map(|server| server.present && (server.master || writable));
        SERVERS.into_iter().filter(move |server| reached[usize::from(*server)])
    }

    /// What clients may do.
    pub(crate) fn client_choices(&self, state: &State, events: &mut Vec<Event>) {
        if state.retries == 0 {
            return;
        }
        for key in 0..self.scenario.requests {
            for (node, member) in (0..).zip(&state.nodes) {
                let waits = member.requests.iter().any(|request| request.key == key);
                if member.alive && !member.barred && !waits {
                    events.push(Event::Send { key, node });
                }
            }
        }
    }

    /// Whether a transaction that takes under the name of a key is under way.
    pub(crate) fn is_taking(state: &State, key: Key) -> bool {
        let takes = |node: &Node| node.alive && node.taking && node.requests[0].key == key;
        state.nodes.iter().any(takes)
    }

    /// What one node may do.
    pub(crate) fn worker_choices(&self, state: &State, node: NodeId, events: &mut Vec<Event>) {
        let member = &state.nodes[usize::from(node)];
        if !member.alive {
            return;
        }
        if self.may_send(state, node).is_some() {
            self.send_choices(state, node, events);
        }
        if member.flight.is_some() {
            self.flight_choices(state, node, member, events);
        }
        if !member.unanswered.is_empty() {
            events.push(Event::Answer { node });
        }
        if self.reaches_ledger(state) {
            self.ledger_choices(state, node, member, events);
        }
        if let Some(server) = self.trimming(state, node, member) {
            events.push(Event::Trim { node, server });
        }
    }

    /// A flight is sent and arrives in one step, or it goes astray: it may arrive at any time, and
    /// its sender can only send it again, settle it or give it up.
    fn send_choices(&self, state: &State, node: NodeId, events: &mut Vec<Event>) {
        if state.faults.repeats > 0 {
            events.push(Event::SendAstray { node });
        }
        for server in self.reachable(state) {
            events.push(Event::SendFlight { node, server, broken: false });
            if state.faults.write_errors > 0 {
                events.push(Event::SendFlight { node, server, broken: true });
            }
        }
    }

    fn flight_choices(&self, state: &State, node: NodeId, member: &Node, events: &mut Vec<Event>) {
        let Some(flight) = &member.flight else { return };
        let faults = &state.faults;
        let is_over = member.lease.is_some_and(|lease| lease.epoch < state.ledger.epoch)
            && self.reaches_ledger(state);
        let requests = match &flight.message.body {
            Body::Issue(requests) => requests.len(),
            Body::Job(_) => 0,
        };
        if flight.reply.is_some() {
            events.push(Event::Complete { node });
            if faults.lost_replies > 0 {
                events.push(Event::LoseReply { node });
            }
        } else {
            for server in self.reachable(state) {
                events.push(Event::Execute { node, server, broken: false });
                if faults.write_errors > 0 && requests > 0 {
                    events.push(Event::Execute { node, server, broken: true });
                }
                if is_over {
                    events.push(Event::Settle { node, server });
                }
            }
            if !self.rules().f10 && faults.time_outs > 0 && requests > 1 {
                events.push(Event::TimeOut { node });
            }
        }
        if is_over {
            events.push(Event::Discard { node });
        }
    }

    fn ledger_choices(&self, state: &State, node: NodeId, member: &Node, events: &mut Vec<Event>) {
        let ledger = &state.ledger;
        let places = if self.rules().f16 { 1 } else { member.queue.len() };
        for place in 0..places.min(member.queue.len()) {
            events.push(Event::Commit { node, place });
        }
        if let Some((_, ceiling)) = member.raising {
            events.push(Event::Raise { node, counter: counter_of(ceiling) });
        }
        let open = ledger.stage == Stage::Open;
        let Some(lease) = member.lease else {
            let wanted = !member.requests.is_empty() && !member.barred;
            if !self.rules().f5 && open && member.view.is_none() && !member.barred {
                events.push(Event::Look { node });
            }
            if wanted && (open || member.view.is_some()) {
                events.push(Event::Join { node });
            }
            return;
        };
        let fenced = self.rules().f4;
        let takes = lease.owner == Owner::Database && !member.requests.is_empty();
        let begins = self.scenario.splits && !member.taking;
        if takes && !member.is_lost() && (fenced || member.taking) && !begins {
            events.push(Event::Take { node });
        }
        // Two transactions under one name wait for each other.
        let may_begin = begins && takes && !member.is_lost();
        if may_begin && !Self::is_taking(state, member.requests[0].key) {
            events.push(Event::Begin { node });
        }
        for (counter, parked) in (0..).zip(member.parked) {
            let waits = member.job.is_none() && lease.owner != Owner::Database;
            match parked {
                Parked::Cold if waits => events.push(Event::Seed { node, counter }),
                Parked::Ceiling(_) if waits && fenced => {
                    events.push(Event::Raise { node, counter });
                }
                _ => {}
            }
        }
        if !fenced && ledger.is_open(lease.epoch) {
            let at_ceiling = |parked: &Parked| matches!(parked, Parked::Ceiling(_));
            let raises = member.parked.iter().any(at_ceiling) && member.raising.is_none();
            if raises || (takes && !member.taking) {
                events.push(Event::Begin { node });
            }
        }
        let due = member.requests.iter().find(|request| request.asked == Asked::Due);
        if due.is_some_and(|due| !(self.rules().names && Self::is_taking(state, due.key))) {
            events.push(Event::Ask { node });
        }
        let is_over = lease.epoch < ledger.epoch;
        let must_commit = ledger.stage == Stage::Recovering && ledger.epoch == lease.epoch + 1;
        let committed = !must_commit || member.queue.is_empty();
        let taking = self.scenario.splits && member.taking;
        if is_over && committed && member.flight.is_none() && !taking {
            events.push(Event::Leave { node });
        }
    }

    fn trimming(&self, state: &State, node: NodeId, member: &Node) -> Option<ServerId> {
        let lease = member.lease?;
        let Owner::Redis(incarnation) = lease.owner else { return None };
        let upto = member.trimmable(self.rules().f16);
        let place = usize::from(node);
        let trims = |server: &ServerId| {
            let server = &state.servers[usize::from(*server)];
            let barred = server.data.owner.as_ref().is_some_and(|owner| owner.barred[place]);
            let oldest = server.data.outboxes[place].first();
            server.admits(self.rules(), lease.epoch, incarnation)
                && !barred
                && oldest.is_some_and(|(flight, _)| *flight <= upto)
        };
        SERVERS.into_iter().find(trims).filter(|_| self.scenario.trims)
    }

    /// Flights that no node waits for any more.
    pub(crate) fn late_choices(&self, state: &State, events: &mut Vec<Event>) {
        for place in 0..state.in_flight.len() {
            for server in self.reachable(state) {
                events.push(Event::ExecuteLate { place, server });
            }
        }
    }

    /// What a recovery may do.
    pub(crate) fn recovery_choices(&self, state: &State, events: &mut Vec<Event>) {
        let ledger = &state.ledger;
        let somebody = state.nodes.iter().any(|node| node.alive);
        if !somebody {
            return;
        }
        if ledger.stage != Stage::Recovering && ledger.epoch < self.scenario.epochs {
            events.push(Event::Bump);
        }
        // Without F6 the node that carries on a recovery opens any epoch it likes.
        let twice = !self.rules().f6 && ledger.stage == Stage::Opening;
        if self.closing(state).is_some() || twice {
            let sent = |at: &ServerId| state.openings.iter().any(|opening| opening.server == *at);
            for server in self.reachable(state).filter(|server| !twice || !sent(server)) {
                events.push(Event::Claim { target: Some(server) });
            }
            if self.scenario.database {
                events.push(Event::Claim { target: None });
            }
        }
        events.extend((0..state.openings.len()).map(|place| Event::Open { place }));
        self.adoption_choices(state, events);
        let imports = |key: &Key| state.imports > 0 && self.may_import(state, *key);
        events.extend((0..self.scenario.requests).filter(imports).map(|key| Event::Import { key }));
    }

    fn adoption_choices(&self, state: &State, events: &mut Vec<Event>) {
        if state.adoption.is_some() {
            events.push(Event::Adopt);
        }
        let Some((epoch, incarnation)) = Self::adoptable(state) else { return };
        for dead in state.ledger.joined().filter(|node| Self::may_be_silent(state, *node)) {
            for (server, at) in SERVERS.into_iter().zip(&state.servers) {
                let owner = at.data.owner.as_ref();
                let barred = owner.is_some_and(|owner| owner.barred[usize::from(dead)]);
                let admitted = at.admits(self.rules(), epoch, incarnation);
                if admitted && !barred && self.rules().bar {
                    events.push(Event::Bar { dead, server });
                }
                let may_read = barred || !self.rules().bar;
                if (admitted && may_read) || (!self.rules().f7 && at.present) {
                    events.push(Event::ReadOutbox { dead, server });
                }
            }
        }
    }

    /// What may go wrong.
    pub(crate) fn fault_choices(&self, state: &State, events: &mut Vec<Event>) {
        let faults = &state.faults;
        for (node, member) in (0..).zip(&state.nodes) {
            if member.alive && faults.crashes > 0 {
                events.push(Event::Crash { node });
            }
        }
        for server in SERVERS {
            self.server_faults(state, server, events);
        }
        if faults.ledger_returns > 0 {
            if state.backup.is_none() {
                events.push(Event::BackUp);
            } else {
                events.push(Event::PutBack);
            }
        }
    }

    fn server_faults(&self, state: &State, server: ServerId, events: &mut Vec<Event>) {
        let faults = &state.faults;
        let at = &state.servers[usize::from(server)];
        let other = &state.servers[1 - usize::from(server)];
        if !at.present {
            return;
        }
        if !at.master {
            if faults.copies > 0 && at.data != other.data {
                events.push(Event::Copy { replica: server });
            }
            if faults.promotions > 0 {
                events.push(Event::Promote { replica: server });
            }
            return;
        }
        if faults.attaches > 0 && (!other.present || other.master) {
            events.push(Event::Attach { master: server });
        }
        if faults.saves > 0 {
            events.push(Event::Save { server });
        }
        if faults.restarts_kept > 0 {
            events.push(Event::Restart { server, with: Return::Kept });
        }
        if faults.restarts_older > 0 {
            events.push(Event::Restart { server, with: Return::Older });
        }
        if faults.flushes > 0 {
            events.push(Event::Flush { server });
        }
        let value = at.data.counters[0].map_or(0, |counter| counter.value);
        if faults.deleted_counters > 0 && at.data.counters[0].is_some() {
            events.push(Event::DeleteCounter { server });
        }
        if faults.lowered_counters > 0 && value > 0 {
            events.push(Event::LowerCounter { server });
        }
        if faults.deleted_records > 0 {
            let places = 0..at.data.records.len();
            events.extend(places.map(|place| Event::DeleteRecord { server, place }));
        }
        if faults.deleted_outboxes > 0 {
            for of in 0..self.scenario.nodes {
                if !at.data.outboxes[usize::from(of)].is_empty() {
                    events.push(Event::DeleteOutbox { server, of });
                }
            }
        }
    }
}

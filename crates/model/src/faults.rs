//! What goes wrong: crashes, servers that lose or change their data, writes to Redis from outside,
//! a ledger that goes back.

use crate::data::Data;
use crate::protocol::Protocol;
use crate::state::{NodeId, ServerId, State};

/// How a server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// With its data.
    Kept,
    /// With the data set of its disk: empty if it was never written.
    Older,
}

impl Protocol {
    /// A node dies.
    pub(crate) fn crash(state: &mut State, node: NodeId) {
        state.faults.crashes -= 1;
        state.history.failures += 1;
        let member = state.node(node);
        member.leave();
        member.alive = false;
        member.silent = false;
        member.requests.clear();
        member.queue.clear();
        member.unanswered.clear();
        member.view = None;
        member.flights_sent = 0;
        member.committed = 0;
    }

    fn next_incarnation(state: &mut State) -> u8 {
        state.incarnations += 1;
        state.incarnations
    }

    /// The other server becomes the replica of `master`.
    pub(crate) fn attach(state: &mut State, master: ServerId) {
        let incarnation = Self::next_incarnation(state);
        let master = usize::from(master);
        state.servers[master].incarnation = incarnation;
        let copy = state.servers[master].data.clone();
        let replica = &mut state.servers[1 - master];
        replica.present = true;
        replica.master = false;
        replica.incarnation = incarnation;
        replica.data = copy;
        state.faults.attaches -= 1;
    }

    /// The replica catches up.
    pub(crate) fn copy(state: &mut State, replica: ServerId) {
        let replica = usize::from(replica);
        state.servers[replica].data = state.servers[1 - replica].data.clone();
        state.faults.copies -= 1;
    }

    /// The replica becomes a master, with what it has.
    pub(crate) fn promote(state: &mut State, replica: ServerId) {
        let incarnation = Self::next_incarnation(state);
        let replica = usize::from(replica);
        let lost = state.servers[replica].data != state.servers[1 - replica].data;
        state.history.failures += u8::from(lost);
        state.servers[replica].master = true;
        state.servers[replica].incarnation = incarnation;
        state.faults.promotions -= 1;
    }

    /// A server writes its data set to its disk.
    pub(crate) fn save(state: &mut State, server: ServerId) {
        let server = &mut state.servers[usize::from(server)];
        server.saved = Some(Box::new(server.data.clone()));
        state.faults.saves -= 1;
    }

    /// A server restarts.
    pub(crate) fn restart(state: &mut State, server: ServerId, with: Return) {
        let nodes = state.nodes.len();
        let incarnation = Self::next_incarnation(state);
        let server = &mut state.servers[usize::from(server)];
        server.incarnation = incarnation;
        match with {
            Return::Kept => state.faults.restarts_kept -= 1,
            Return::Older => {
                let saved = server.saved.take();
                let lost = saved.as_deref() != Some(&server.data);
                server.data = saved.map_or_else(|| Data::empty(nodes), |data| *data);
                state.faults.restarts_older -= 1;
                state.history.failures += u8::from(lost);
            }
        }
    }

    /// A server loses all keys; its incarnation stays.
    pub(crate) fn flush(state: &mut State, server: ServerId) {
        let nodes = state.nodes.len();
        state.servers[usize::from(server)].data = Data::empty(nodes);
        state.faults.flushes -= 1;
        state.history.failures += 1;
    }

    /// The first counter's key is deleted.
    pub(crate) fn delete_counter(state: &mut State, server: ServerId) {
        state.servers[usize::from(server)].data.counters[0] = None;
        state.faults.deleted_counters -= 1;
        state.history.failures += 1;
    }

    /// The first counter is set one lower from outside.
    pub(crate) fn lower_counter(state: &mut State, server: ServerId) {
        if let Some(counter) = &mut state.servers[usize::from(server)].data.counters[0] {
            counter.value -= 1;
        }
        state.faults.lowered_counters -= 1;
        state.history.failures += 1;
    }

    /// An idempotency record is deleted.
    pub(crate) fn delete_record(state: &mut State, server: ServerId, place: usize) {
        state.servers[usize::from(server)].data.records.remove(place);
        state.faults.deleted_records -= 1;
        state.history.failures += 1;
    }

    /// An outbox is deleted.
    pub(crate) fn delete_outbox(state: &mut State, server: ServerId, of: NodeId) {
        state.servers[usize::from(server)].data.outboxes[usize::from(of)].clear();
        state.faults.deleted_outboxes -= 1;
        state.history.failures += 1;
    }

    /// The ledger is copied.
    pub(crate) fn back_up(state: &mut State) {
        state.backup = Some(Box::new(state.ledger.clone()));
    }

    /// The copy is put back.
    pub(crate) fn put_back(state: &mut State) {
        if let Some(backup) = state.backup.take() {
            state.ledger = *backup;
            state.ledger.went_back = true;
            state.faults.ledger_returns -= 1;
            state.history.failures += 1;
        }
    }
}

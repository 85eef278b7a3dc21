//! The protective rules of the protocol, each one a switch. Never decides what a rule means: that
//! is where the rule is kept.

/// Which rules are kept. `F1` to `F32` are the ids that the code and the documents use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct Rules {
    /// The scripts compare the owner record's epoch with the flight's.
    pub epoch: bool,
    /// The scripts compare the server's incarnation with the flight's and the owner record's.
    pub incarnation: bool,
    /// Redis takes nothing above the ceiling.
    pub ceiling: bool,
    /// The owner record keeps each node's last flight: none is executed twice or late.
    pub flight_guard: bool,
    /// An epoch closes exact only when each of its participants is accounted for.
    pub barrier: bool,
    /// A counter's copy in Redis carries its epoch; one of another epoch is cold.
    pub counter_epoch: bool,
    /// A counter that is not newer than the last closing at the ceiling starts above its ceiling;
    /// with `f32`, one whose own epoch was closed there.
    pub last_ceiling: bool,
    /// A node is barred before its outbox is read.
    pub bar: bool,
    /// Whether an adopted entry is discarded is decided where it is written.
    pub discard_check: bool,
    /// Idempotency records carry their epoch; what Redis does not know is asked of the journal.
    pub f1: bool,
    /// A record whose allocation was trimmed is a question, also after the journal was asked.
    pub trimmed: bool,
    /// A replay is a hand-out: it goes into the replaying node's outbox and journal queue.
    pub f2: bool,
    /// A counter's copies of its value are compared.
    pub f3: bool,
    /// The ledger's fence is the counter's own row.
    pub f4: bool,
    /// Joining an epoch is a compare-and-set while the ledger shows it open.
    pub f5: bool,
    /// The opening is claimed in the ledger, and flights carry the incarnation recorded there.
    pub f6: bool,
    /// An outbox that is shorter than its count, or read without a guard, accounts for no node.
    pub f7: bool,
    /// A ledger that went back is noticed, and nothing continues.
    pub f9: bool,
    /// A flight is sent again byte for byte.
    pub f10: bool,
    /// Handing out is one step: the record is queued before the answer is sent.
    pub f11: bool,
    /// A counter that another node is seeding is not lost.
    pub f12: bool,
    /// A script refuses before its first write; an error ends the epoch and hands nothing out.
    pub f15: bool,
    /// An outbox is trimmed only up to the first record that is not committed.
    pub f16: bool,
    /// The first touch registers everything that the journal does not have.
    pub f17: bool,
    /// The scripts check that the server is a master.
    pub f19: bool,
    /// Cold is answered before ask: a question counts once the counter has left the older epoch.
    pub f27: bool,
    /// A question waits for transactions that take under the name of its key. The code keeps this
    /// rule and the next one in addition to F27, and [`Rules::ALL`] does without them, so that F27
    /// is judged alone: they also hold if a repeated request takes from another counter.
    pub names: bool,
    /// A transaction that takes reads the partition's epoch once it has the name of its key.
    pub names_epoch: bool,
    /// The owner record says how many idempotency records there must be.
    pub f28: bool,
    /// Fewer of them end the epoch: the journal may not have the lost one's number yet.
    pub f28_ends: bool,
    /// Documents are imported only while the database owns the partition.
    pub f29: bool,
    /// An import waits for transactions that take under the names of its documents.
    pub f29_names: bool,
    /// A number that a refusal shows is handed out.
    pub f30: bool,
    /// Where a counter continues follows from how the epoch that touched it last was closed.
    pub f32: bool,
}

impl Rules {
    /// The protocol as it is.
    pub const ALL: Self = Self {
        epoch: true,
        incarnation: true,
        ceiling: true,
        flight_guard: true,
        barrier: true,
        counter_epoch: true,
        last_ceiling: true,
        bar: true,
        discard_check: true,
        f1: true,
        trimmed: true,
        f2: true,
        f3: true,
        f4: true,
        f5: true,
        f6: true,
        f7: true,
        f9: true,
        f10: true,
        f11: true,
        f12: true,
        f15: true,
        f16: true,
        f17: true,
        f19: true,
        f27: true,
        names: false,
        names_epoch: false,
        f28: true,
        f28_ends: true,
        f29: true,
        f29_names: true,
        f30: true,
        f32: true,
    };
}

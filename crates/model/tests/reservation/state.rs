//! Everything that can differ between two moments, and what is remembered only for judging it.
//! Decides nothing.

use crate::rules::{Loss, Reserving};

/// Processes.
pub(crate) const NODES: usize = 2;
/// Reservations.
pub(crate) const IDS: usize = 4;
/// Documents.
pub(crate) const DOCUMENTS: usize = 2;
/// Values, with none of them 0.
pub(crate) const VALUES: usize = 7;

/// Bit `n` is for the value or the reservation `n`.
pub(crate) type Bits = u8;
/// What took a value: a reservation's place and 1, or 8 and a document; 0: nothing.
pub(crate) type Code = u8;
/// Who holds a value for ever: 0 is nobody, a document has one for each of its two workers, each
/// value of a block one of its own.
pub(crate) type Holder = u8;

/// A reservation's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Row {
    /// There is none, yet or any more.
    None,
    /// Reserved.
    Reserved,
    /// Cancelled, not ended.
    Cancelled,
    /// Confirmed, not journaled.
    Confirmed,
}

/// What is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// The life that it was agreed on.
    pub life: u8,
    /// The last inquest.
    pub nonce: u8,
    /// Whether numbers are taken.
    pub agreed: bool,
    /// Whether the last inquest was ended by the operator.
    pub released: bool,
    /// The highest value taken.
    pub taken: u8,
    /// Values that ever came back.
    pub returned: u8,
    /// How many of them left the pool again.
    pub reissued: u8,
    /// The reservations.
    pub rows: [Row; IDS],
    /// What took each journaled value.
    pub journal: [Code; VALUES],
    /// Values that came back.
    pub pool: Bits,
    /// Gaps for good.
    pub spent: Bits,
}

/// What never changes of a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Issue {
    /// Its document, which is its client, too.
    pub document: u8,
    /// Its first value.
    pub first: u8,
    /// Its last value.
    pub last: u8,
    /// Whether it is a block.
    pub block: bool,
}

/// What a document is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A reservation.
    Reservation,
    /// A number that it has at once.
    Number,
    /// A reservation of two values without an end by time.
    Block,
}

/// What a client does to a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Act {
    /// It confirms it.
    Confirm,
    /// It cancels it.
    Cancel,
}

/// An answer of the ledger on its way to a process, and through it to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    /// What took the value.
    pub code: Code,
    /// The value; of a block the first.
    pub value: u8,
    /// Whether the number is confirmed.
    pub confirmed: bool,
    /// Whether an earlier call had done it.
    pub found: bool,
    /// Only without L7: nothing is committed yet.
    pub unwritten: bool,
    /// The counter as the transaction left it: `taken` and `reissued`.
    pub counter: (u8, u8),
}

/// What a process is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    /// Nothing.
    Idle,
    /// A transaction has asked the first of two questions about a document.
    Asked(u8, Kind),
    /// Only without L1 or L7: it is to write what it decided before.
    Read(u8, Act),
    /// An answer is on its way.
    Answer(Answer),
}

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    /// Whether there is one.
    pub here: bool,
    /// The inquest that it knows.
    pub nonce: u8,
    /// What it is doing.
    pub step: Step,
    /// Only without L5: a value that it removed from the reservations; whether it is to be
    /// journaled.
    pub hands: Option<(u8, bool)>,
    /// What took the values that it handed out as confirmed.
    pub kept: [Code; VALUES],
    /// The highest value that it handed out as reserved.
    pub high: u8,
    /// The counter as it was confirmed to it: `taken` and `reissued`.
    pub counter: (u8, u8),
    /// What it did to each reservation: 0 nothing, 1 reserved, 2 changed, 3 ended or journaled.
    pub acts: [u8; IDS],
    /// What took each value last, as far as it knows of reservations.
    pub latest: [Code; VALUES],
    /// The last reservation of each document that it knows of.
    pub latest_own: [Code; DOCUMENTS],
}

/// A transaction of a caller that is not committed: worker and act.
pub(crate) type Open = Option<(u8, Act)>;

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// What the server holds.
    pub ledger: Ledger,
    /// The life of the server that runs.
    pub life: u8,
    /// What a standby, or a copy of the files, holds.
    pub copy: Option<Ledger>,
    /// Whether a loss may come.
    pub losable: bool,
    /// Whether a hold without a loss may come.
    pub holdable: bool,
    /// A loss came, and not every process has reported what it remembers.
    pub lost: bool,
    /// A loss came, and nobody has noticed it.
    pub unnoticed: bool,
    /// A process died while its memory counted.
    pub crashed: bool,
    /// The processes.
    pub nodes: [Node; NODES],
    /// The reservations that were ever made.
    pub issues: [Issue; IDS],
    /// How many.
    pub issued: u8,
    /// Their time is over.
    pub over: Bits,
    /// The transaction that has the row of each.
    pub open: [Open; IDS],
    /// Their clients know of them.
    pub known: Bits,
    /// They ended without a confirm.
    pub ended: Bits,
    /// Their blocks were handed back, or cancelled: their holder uses them no more.
    pub closed: Bits,
    /// Values of blocks that were used.
    pub used: Bits,
    /// The highest value ever taken: the margin of a release covers it.
    pub peak: u8,
    /// Who holds each value for ever.
    pub holds: [Holder; VALUES],
    /// Of these, no process has answered for it.
    pub unseen: Bits,
    /// The ledger cannot know of these any more.
    pub forgotten: Bits,
    /// The document may have another number than these.
    pub stray: Bits,
    /// A value is held by two.
    pub twice: bool,
    /// A value was handed out while another reservation held it.
    pub overlap: bool,
}

/// All values.
pub(crate) fn values() -> impl Iterator<Item = u8> + Clone {
    1..u8::try_from(VALUES).expect("few")
}

/// One value, as a bit.
pub(crate) const fn bit(value: u8) -> Bits {
    1 << value
}

/// A reservation, as a bit.
pub(crate) const fn id_bit(id: usize) -> Bits {
    1 << id
}

/// What takes the values of a reservation.
pub(crate) fn code_of(id: usize) -> Code {
    u8::try_from(id).expect("few") + 1
}

/// What takes the value of a number without a reservation.
pub(crate) const fn plain(document: u8) -> Code {
    8 + document
}

/// The first or the second worker of a document.
pub(crate) const fn holder(document: u8, worker: u8) -> Holder {
    1 + document * 2 + worker
}

impl Issue {
    /// Its values.
    pub(crate) fn values(&self) -> impl Iterator<Item = u8> + use<> {
        self.first..=self.last
    }

    /// Whether a value is one of them.
    pub(crate) const fn has(&self, value: u8) -> bool {
        self.first <= value && value <= self.last
    }
}

impl Ledger {
    /// Whether a value is journaled.
    pub(crate) fn has(&self, value: u8) -> bool {
        self.journal[usize::from(value)] != 0
    }

    /// Gives up the values up to this one that nothing is known of, and goes on above it.
    pub(crate) fn lift(&mut self, to: u8) {
        for value in self.taken + 1..=to {
            if !self.has(value) {
                self.spent |= bit(value);
            }
        }
        self.taken = self.taken.max(to);
    }
}

impl Node {
    /// One that has done nothing.
    pub(crate) const FIRST: Self = Self {
        here: true,
        nonce: 1,
        step: Step::Idle,
        hands: None,
        kept: [0; VALUES],
        high: 0,
        counter: (0, 0),
        acts: [0; IDS],
        latest: [0; VALUES],
        latest_own: [0; DOCUMENTS],
    };

    /// Forgets all that it remembers.
    pub(crate) const fn forget(&mut self) {
        let Self { here, nonce, step, hands, .. } = *self;
        *self = Self { here, nonce, step, hands, ..Self::FIRST };
    }
}

impl State {
    /// An empty ledger that is agreed on.
    pub(crate) fn first(bounds: &Reserving) -> Self {
        let ledger = Ledger {
            life: 1,
            nonce: 1,
            agreed: true,
            released: false,
            taken: 0,
            returned: 0,
            reissued: 0,
            rows: [Row::None; IDS],
            journal: [0; VALUES],
            pool: 0,
            spent: 0,
        };
        let node = |place| Node { here: place < bounds.nodes, ..Node::FIRST };
        Self {
            ledger,
            life: 1,
            copy: None,
            losable: matches!(bounds.loss, Loss::Standby | Loss::Files),
            holdable: bounds.loss == Loss::Held,
            lost: false,
            unnoticed: false,
            crashed: false,
            nodes: std::array::from_fn(node),
            issues: [Issue::default(); IDS],
            issued: 0,
            over: 0,
            open: [None; IDS],
            known: 0,
            ended: 0,
            closed: 0,
            used: 0,
            peak: 0,
            holds: [0; VALUES],
            unseen: 0,
            forgotten: 0,
            stray: 0,
            twice: false,
            overlap: false,
        }
    }

    /// The document of what took a value; none of a block.
    pub(crate) fn document_of(&self, code: Code) -> Option<u8> {
        match code {
            0 => None,
            8.. => Some(code - 8),
            id => {
                let issue = self.issues[usize::from(id - 1)];
                (!issue.block).then_some(issue.document)
            }
        }
    }

    /// The live reservation of a document.
    pub(crate) fn reservation_of(&self, document: u8) -> Option<usize> {
        (0..IDS).find(|id| {
            let issue = self.issues[*id];
            self.ledger.rows[*id] != Row::None && !issue.block && issue.document == document
        })
    }

    /// Whether the ledger has a value as confirmed, or it is about to be journaled.
    pub(crate) fn confirms(&self, value: u8) -> bool {
        let is_row =
            |id: usize| self.ledger.rows[id] == Row::Confirmed && self.issues[id].has(value);
        let is_in_hands = |node: &Node| {
            node.hands
                .is_some_and(|(id, journal)| journal && self.issues[usize::from(id)].has(value))
        };
        self.ledger.has(value) || (0..IDS).any(is_row) || self.nodes.iter().any(is_in_hands)
    }

    /// Whether what processes remember may still count.
    pub(crate) const fn is_remembering(&self) -> bool {
        self.losable || self.lost
    }
}

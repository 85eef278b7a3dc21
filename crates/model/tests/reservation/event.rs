//! What can happen. Decides nothing.

use crate::state::{Act, Kind};

/// One event. The first place is a process, or a reservation where no process takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A document asks; without `splits` the take follows at once.
    Ask(usize, u8, Kind),
    /// The second question, and the take.
    Take(usize),
    /// An answer arrives, and is handed out.
    Answer(usize),
    /// An answer of the ledger is lost.
    Lose(usize),
    /// A confirm over HTTP.
    Confirm(usize, usize),
    /// A cancel over HTTP; whether the answer reaches the process.
    Cancel(usize, usize, bool),
    /// Only without L1 or L7: what was decided before is written.
    Write(usize),
    /// A worker confirms or cancels in a transaction of its own.
    Open(usize, u8, Act),
    /// It commits.
    Commit(usize),
    /// It rolls back.
    RollBack(usize),
    /// Only without L4: a second worker confirms in SQL, and commits.
    Second(usize),
    /// The time of a reservation is over.
    Expire(usize),
    /// A sweeper ends a reservation; whether the answer reaches it.
    End(usize, usize, bool),
    /// A sweeper journals a reservation; whether the answer reaches it.
    Journal(usize, usize, bool),
    /// Only without L5: the second half of either.
    Settle(usize),
    /// The holder of a block uses its next value where no process sees it.
    Use(usize),
    /// It hands it back.
    HandBack(usize, usize),
    /// A process dies, and starts again.
    Crash(usize),
    /// A standby stops following, or the files are copied.
    Copy,
    /// The copy takes the ledger's place.
    GoBack,
    /// An operator holds a ledger that lost nothing.
    Hold,
    /// A process begins an inquest.
    Begin,
    /// A process reports to it, in time or late.
    Report(usize),
    /// Every process has reported: they agree.
    Agree,
    /// The operator releases the ledger.
    Release,
}

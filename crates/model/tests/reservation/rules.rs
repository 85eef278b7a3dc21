//! The rules of reservations, each one a switch, and the bounds of one search. Never decides what a
//! rule means: that is where the rule is kept.

/// Which rules are kept; the ids are those of the protocol's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct Rules {
    /// L1: one statement changes a reservation, from `reserved` only.
    pub one_statement: bool,
    /// L2: who ends a reservation locks its row, and skips one that is locked.
    pub locks: bool,
    /// L3: what is confirmed does not end.
    pub confirmed_stays: bool,
    /// L4: a second confirm in SQL that names no document fails.
    pub second_fails: bool,
    /// L5: the end of a reservation and the return of its value are one transaction.
    pub end_whole: bool,
    /// L5: the journal's row and the end of the reservation are one transaction.
    pub journal_whole: bool,
    /// L6: reservations are asked first, the journal then; otherwise the other way round.
    pub order: bool,
    /// L6: both questions and the take are under the document's name.
    pub name: bool,
    /// L6: reservations are asked.
    pub asks_reservations: bool,
    /// L6: the journal is asked.
    pub asks_journal: bool,
    /// L7: an answer leaves after the commit.
    pub after_commit: bool,
    /// L7: no answer leaves after its process has reported.
    pub not_after_report: bool,
    /// L8: a confirm in SQL compares the life that the ledger was agreed on with the server's.
    pub life: bool,
    /// L8: a confirm in SQL is refused while the ledger is held.
    pub held: bool,
    /// L8: a cancel in SQL does both, too.
    pub cancel_compares: bool,
    /// L9: what a process confirmed it keeps and reports.
    pub keeps_confirmed: bool,
    /// L9: what it found confirmed and handed out it keeps and reports.
    pub keeps_found: bool,
    /// L9: a reported record ends what reservation or return has its value.
    pub report_ends: bool,
    /// L10: a process reports the highest value that it reserved.
    pub high_reserved: bool,
    /// L10: and that it found reserved and handed out.
    pub high_found: bool,
    /// L11: the end of a hold spends every reservation that is not confirmed.
    pub spends_reserved: bool,
    /// L11: and every returned value.
    pub spends_returned: bool,
    /// L11: it waits for a transaction that has one of these rows.
    pub waits: bool,
    /// L12: a take compares how many returned values were issued again.
    pub compares_reissued: bool,
    /// L12: a process compares a reservation with what it did to it.
    pub compares_acts: bool,
    /// L12: it compares a reservation with the last one of the value that it knows of.
    pub compares_value: bool,
    /// L12: and with the last one of the document.
    pub compares_document: bool,
    /// L12: an answer that the server gave before it started again is not handed out.
    pub not_after_restart: bool,
    /// L13: a block does not end by time.
    pub block_stays: bool,
    /// L13: a block that is cancelled is spent.
    pub block_spent: bool,
    /// L13: a block is handed back once.
    pub block_once: bool,
    /// A confirm compares the time.
    pub time: bool,
}

impl Rules {
    /// The protocol as it is.
    pub(crate) const ALL: Self = Self {
        one_statement: true,
        locks: true,
        confirmed_stays: true,
        second_fails: true,
        end_whole: true,
        journal_whole: true,
        order: true,
        name: true,
        asks_reservations: true,
        asks_journal: true,
        after_commit: true,
        not_after_report: true,
        life: true,
        held: true,
        cancel_compares: true,
        keeps_confirmed: true,
        keeps_found: true,
        report_ends: true,
        high_reserved: true,
        high_found: true,
        spends_reserved: true,
        spends_returned: true,
        waits: true,
        compares_reissued: true,
        compares_acts: true,
        compares_value: true,
        compares_document: true,
        not_after_restart: true,
        block_stays: true,
        block_spent: true,
        block_once: true,
        time: true,
    };
}

/// How the ledger loses commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// It does not.
    None,
    /// A standby that lagged is promoted: another life.
    Standby,
    /// An earlier copy of the files, younger than every heartbeat, under the same server.
    Files,
    /// It does not, and an operator holds it nevertheless.
    Held,
}

/// The bounds of one search.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent bound")]
pub(crate) struct Reserving {
    /// The rules that are kept.
    pub rules: Rules,
    /// Processes of the service: one or two.
    pub nodes: usize,
    /// Documents, each with a client of its own: one or two.
    pub documents: u8,
    /// Workers of each client that confirm in SQL: one or two.
    pub workers: u8,
    /// Reservations in all: four at most.
    pub ids: usize,
    /// The highest value: six at most.
    pub values: u8,
    /// Whether clients confirm over HTTP.
    pub http: bool,
    /// Whether they confirm in a transaction of their own.
    pub sql: bool,
    /// Whether reservations have a time at all.
    pub expires: bool,
    /// Whether they cancel, over HTTP and in SQL if they confirm there.
    pub cancels: bool,
    /// Whether they also ask for a number without a reservation.
    pub numbers: bool,
    /// Whether a take looks for an earlier number in two steps.
    pub splits: bool,
    /// Whether processes die, as often as they like, and start again.
    pub crashes: bool,
    /// Whether answers of the ledger are lost.
    pub lost_answers: bool,
    /// How the ledger goes back, once.
    pub loss: Loss,
    /// Whether an operator may release a ledger that is held.
    pub release: bool,
    /// Whether the first client may ask for a block of two values.
    pub blocks: bool,
}

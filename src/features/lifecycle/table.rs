//! The table of a number's life: what each call answers in each state, and what the number is then.
//! `docs/lifecycle.md` shows it, and a test drives each cell over HTTP.
//! `REGENERATE=1 cargo test --lib lifecycle::table` writes the page's table anew.

use crate::web::problem::Slug;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No number has the text.
    None,
    /// A document holds it, and may confirm it.
    Reserved,
    /// The time of its reservation is over, which has not ended yet.
    Over,
    /// Its reservation is confirmed or cancelled in a transaction of a caller that is open.
    Open,
    /// Its reservation is confirmed, and the journal does not have it yet.
    Confirmed,
    /// Its reservation is cancelled, and has not ended yet.
    Cancelled,
    /// Its reservation has ended: its value is the next to be issued.
    Returned,
    /// Its value is a gap for good.
    Spent,
    /// Issued, or imported.
    Issued,
    /// Void.
    Voided,
    /// Void, and another number stands in its place.
    Replaced,
    /// Its record moved to the archive.
    Archived,
}

/// What is done with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// `reservations`, for the document and with the payload of its reservation.
    Reserve,
    /// `reservations/{reservationId}/confirm`.
    Confirm,
    /// `reservations/{reservationId}/cancel`.
    Cancel,
    /// `reservations/{reservationId}/hand-back`, of a single number.
    HandBack,
    /// `GET reservations/{reservationId}`.
    Look,
    /// `numbers/void`.
    Void,
    /// The same again, by the same principal for the same reason.
    VoidAgain,
    /// `generate-number` with `replaces`.
    Replace,
    /// The same again.
    ReplaceAgain,
    /// `numbers/correct`.
    Correct,
    /// `numbers/assign`, to another document: the number is of no range.
    Assign,
    /// `documents/{documentId}/revisions`.
    Revise,
    /// The call that took it, again.
    GenerateAgain,
    /// `numbers/register`, for another document and in a series that takes numbers by hand.
    Register,
    /// `numerator archive`.
    Archive,
}

/// The answer, and what the number is then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status; 0 for a command.
    pub status: u16,
    /// The code of a problem.
    pub code: Option<&'static str>,
    /// What the number is then.
    pub then: State,
}

impl State {
    /// Every state.
    pub const ALL: [State; 12] = [
        State::None,
        State::Reserved,
        State::Over,
        State::Open,
        State::Confirmed,
        State::Cancelled,
        State::Returned,
        State::Spent,
        State::Issued,
        State::Voided,
        State::Replaced,
        State::Archived,
    ];

    /// Its word on the page.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            State::None => "none",
            State::Reserved => "reserved",
            State::Over => "over",
            State::Open => "open",
            State::Confirmed => "confirmed",
            State::Cancelled => "cancelled",
            State::Returned => "returned",
            State::Spent => "spent",
            State::Issued => "issued",
            State::Voided => "voided",
            State::Replaced => "replaced",
            State::Archived => "archived",
        }
    }
}

impl Deed {
    /// Every deed.
    pub const ALL: [Deed; 15] = [
        Deed::Reserve,
        Deed::Confirm,
        Deed::Cancel,
        Deed::HandBack,
        Deed::Look,
        Deed::Void,
        Deed::VoidAgain,
        Deed::Replace,
        Deed::ReplaceAgain,
        Deed::Correct,
        Deed::Assign,
        Deed::Revise,
        Deed::GenerateAgain,
        Deed::Register,
        Deed::Archive,
    ];

    /// Its words on the page.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Deed::Reserve => "reserve, for its document",
            Deed::Confirm => "confirm",
            Deed::Cancel => "cancel",
            Deed::HandBack => "hand back",
            Deed::Look => "look at the reservation",
            Deed::Void => "void",
            Deed::VoidAgain => "the same void again",
            Deed::Replace => "`generate-number` with `replaces`",
            Deed::ReplaceAgain => "the same replacement again",
            Deed::Correct => "correct",
            Deed::Assign => "assign, to another document",
            Deed::Revise => "revise",
            Deed::GenerateAgain => "the `generate-number` that took it, again",
            Deed::Register => "register by hand, for another document",
            Deed::Archive => "`numerator archive`",
        }
    }

    /// Whether it is done with a reservation.
    #[must_use]
    pub const fn is_of_reservations(self) -> bool {
        use Deed::{Cancel, Confirm, HandBack, Look, Reserve};
        matches!(self, Reserve | Confirm | Cancel | HandBack | Look)
    }
}

impl State {
    /// Whether the number is held by a reservation, or was, and is nobody's.
    const fn is_of_reservations(self) -> bool {
        use State::{Cancelled, Confirmed, Open, Over, Reserved, Returned};
        matches!(self, Reserved | Over | Open | Confirmed | Cancelled | Returned)
    }
}

/// An answer: its status, its problem, and what the number is then.
type Answer = (u16, Option<Slug>, State);

/// What becomes of a number in a state by a deed; nothing where there is no such deed: a text that
/// no number has is reserved and taken by no call, and moves nowhere.
#[must_use]
pub const fn outcome(state: State, deed: Deed) -> Option<Outcome> {
    let answer = if matches!(deed, Deed::Register) {
        Some(of_registration(state))
    } else if deed.is_of_reservations() {
        of_reservation(state, deed)
    } else if state.is_of_reservations() {
        of_held_number(state, deed)
    } else {
        of_number(state, deed)
    };
    let Some((status, slug, then)) = answer else { return None };
    let code = match slug {
        Some(slug) => Some(slug.name()),
        None => None,
    };
    Some(Outcome { status, code, then })
}

/// What a registration by hand does: what is nobody's is given, and nothing else.
const fn of_registration(state: State) -> Answer {
    use State::{
        Archived, Cancelled, Confirmed, Issued, Open, Over, Replaced, Reserved, Returned, Spent,
        Voided,
    };
    match state {
        // A reservation that is over or cancelled ends first.
        State::None | Over | Cancelled | Returned | Spent => (201, None, Issued),
        Reserved | Open => (409, Some(Slug::NumberReserved), state),
        Confirmed | Issued | Voided | Replaced | Archived => (409, Some(Slug::NumberTaken), state),
    }
}

/// What is done with the reservation that a number has or had; an issued number has the id of its
/// allocation instead.
const fn of_reservation(state: State, deed: Deed) -> Option<Answer> {
    use Deed::{Cancel, Confirm, HandBack, Look, Reserve};
    use State::{
        Archived, Cancelled, Confirmed, Issued, Open, Over, Replaced, Reserved, Returned, Spent,
        Voided,
    };
    let answer = match (state, deed) {
        (State::None, Reserve) => return None,
        (Reserved | Open | Confirmed | Issued | Voided, Reserve) => (200, None, state),
        (Over | Cancelled | Returned, Reserve) => (201, None, Reserved),
        // Another number.
        (Spent, Reserve) => (201, None, state),
        // The document has the replacement now.
        (Replaced, Reserve) => (409, Some(Slug::DocumentAlreadyNumbered), state),
        (Archived, Reserve) => (409, Some(Slug::DocumentArchived), state),
        (State::None | Archived, _) => (404, Some(Slug::ReservationNotFound), state),
        (_, Look) => (200, None, state),
        (Returned | Spent, HandBack) => (410, Some(Slug::ReservationCancelled), state),
        // A block alone is handed back.
        (_, HandBack) => (422, Some(Slug::InvalidField), state),
        // It waits for the transaction.
        (Open, _) => (503, Some(Slug::LockTimeout), state),
        (Reserved, Confirm) => (200, None, Confirmed),
        (Over, Confirm) => (410, Some(Slug::ReservationExpired), state),
        (Cancelled | Returned | Spent, Confirm) => (410, Some(Slug::ReservationCancelled), state),
        (_, Confirm) => (200, None, state),
        (Reserved | Over, Cancel) => (200, None, Cancelled),
        (Cancelled | Returned | Spent, Cancel) => (200, None, state),
        (_, Cancel) => (409, Some(Slug::ReservationConfirmed), state),
        (_, _) => return None,
    };
    Some(answer)
}

/// What is done with a number that is reserved or was, as if it were issued.
const fn of_held_number(state: State, deed: Deed) -> Option<Answer> {
    use Deed::{
        Archive, Assign, Correct, GenerateAgain, Replace, ReplaceAgain, Revise, Void, VoidAgain,
    };
    use State::{Cancelled, Confirmed, Issued, Open, Over, Reserved, Returned, Voided};
    let answer = match (state, deed) {
        (_, Archive) => return None,
        (Reserved | Open, GenerateAgain) => (409, Some(Slug::DocumentReserved), state),
        (Over | Cancelled | Returned, GenerateAgain) => (201, None, Issued),
        (Confirmed, GenerateAgain) => (200, None, state),
        // It is journaled first.
        (Confirmed, Void | VoidAgain) => (200, None, Voided),
        (Confirmed, Correct) => (200, None, Issued),
        (Confirmed, Assign) => (422, Some(Slug::InvalidField), Issued),
        (Confirmed, Revise) => (201, None, Issued),
        (Confirmed, Replace | ReplaceAgain) => (409, Some(Slug::NotVoided), Issued),
        (_, Revise) => (404, Some(Slug::DocumentNotNumbered), state),
        (Returned, _) => (404, Some(Slug::NumberNotFound), state),
        (_, Replace | ReplaceAgain) => (409, Some(Slug::NotVoided), state),
        (_, _) => (409, Some(Slug::NumberReserved), state),
    };
    Some(answer)
}

/// What is done with a number that is issued, or never was nor will be.
const fn of_number(state: State, deed: Deed) -> Option<Answer> {
    use Deed::{
        Archive, Assign, Correct, GenerateAgain, Replace, ReplaceAgain, Revise, Void, VoidAgain,
    };
    use State::{Archived, Issued, Replaced, Spent, Voided};
    let answer = match (state, deed) {
        (State::None, GenerateAgain | Archive) | (Spent, Archive) => return None,
        // Another number.
        (Spent, GenerateAgain) => (201, None, state),
        (Issued, Archive) => (0, None, Archived),
        (_, Archive) => (0, None, state),
        (State::None | Spent, Revise) => (404, Some(Slug::DocumentNotNumbered), state),
        (State::None | Spent, _) => (404, Some(Slug::NumberNotFound), state),
        (Archived, Revise) => (404, Some(Slug::DocumentNotNumbered), state),
        (Archived, GenerateAgain) => (409, Some(Slug::DocumentArchived), state),
        (Archived, _) => (409, Some(Slug::NumberArchived), state),
        (Issued, Void | VoidAgain) => (200, None, Voided),
        (Voided | Replaced, Void) => (409, Some(Slug::NumberVoided), state),
        (Voided | Replaced, VoidAgain) => (200, None, state),
        (Issued, Replace | ReplaceAgain) => (409, Some(Slug::NotVoided), state),
        (Voided, Replace | ReplaceAgain) => (201, None, Replaced),
        (Replaced, Replace) => (409, Some(Slug::AlreadyReplaced), state),
        (Replaced, ReplaceAgain) => (200, None, state),
        (Issued, Correct) => (200, None, state),
        // Only a number of a range gets a document later.
        (Issued | Voided | Replaced, Assign) => (422, Some(Slug::InvalidField), state),
        (Voided | Replaced, Correct | Revise) => (409, Some(Slug::NumberVoided), state),
        (Issued, Revise) => (201, None, state),
        (Issued | Voided, GenerateAgain) => (200, None, state),
        // The document has the replacement now.
        (Replaced, GenerateAgain) => (409, Some(Slug::DocumentAlreadyNumbered), state),
        (_, _) => return None,
    };
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../docs/lifecycle.md");

    /// The line above the table.
    const HEADING: &str = "## What each call answers\n\n";

    fn cell(state: State, deed: Deed) -> String {
        let Some(Outcome { status, code, then }) = outcome(state, deed) else {
            return "–".into();
        };
        let answer = match (status, code) {
            (0, _) if then == state => return "stays".into(),
            (0, _) => String::new(),
            (status, None) => status.to_string(),
            (status, Some(code)) => format!("{status} `{code}`"),
        };
        match then == state {
            true => answer,
            false => format!("{answer} → **{}**", then.word()).trim_start().to_owned(),
        }
    }

    fn table() -> String {
        let row =
            |first: &str, cells: Vec<String>| format!("| {first} | {} |\n", cells.join(" | "));
        let heads = State::ALL.map(|state| state.word().to_owned()).to_vec();
        let mut table = row("", heads) + &"|---".repeat(State::ALL.len() + 1) + "|\n";
        for deed in Deed::ALL {
            table += &row(deed.words(), State::ALL.map(|state| cell(state, deed)).to_vec());
        }
        table
    }

    #[test]
    fn the_page_on_the_life_of_numbers_has_this_table() {
        let (before, rest) = PAGE.split_once(HEADING).expect("the heading");
        let (found, after) = rest.split_once("\n\n").expect("the end of the table");
        let found = format!("{found}\n");
        if std::env::var_os("REGENERATE").is_some() {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/lifecycle.md");
            let page = format!("{before}{HEADING}{}\n{after}", table());
            std::fs::write(path, page).expect("written");
        }
        assert_eq!(found, table(), "REGENERATE=1 cargo test --lib lifecycle::table");
    }
}

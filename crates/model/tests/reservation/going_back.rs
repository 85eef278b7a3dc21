//! A ledger that goes back under reservations: a standby that lagged is promoted, or earlier files
//! are put back under one process.

use crate::checked::{ACCOUNTED, BY_HAND, BY_ITSELF, KEPT, ONE_NUMBER, REISSUED, UNIQUE};
use crate::rules::{Loss, Reserving, Rules};
use crate::{CALM, holds, room, without};

/// A standby that lagged is promoted; reservations have no time.
const BACK: Reserving = Reserving {
    sql: true,
    cancels: true,
    lost_answers: true,
    expires: false,
    ids: 2,
    loss: Loss::Standby,
    ..CALM
};

/// The same with confirms in SQL alone.
const BACK_SQL: Reserving = Reserving { http: false, cancels: false, ..BACK };

/// The same with one process, all ways to confirm, and three reservations that have a time.
const BACK_ALONE: Reserving = Reserving { nodes: 1, expires: true, ids: 3, ..BACK };

#[test]
fn a_standby_that_is_promoted_breaks_nothing() {
    holds(Reserving { expires: room(false, true), ..BACK }, 386_669, &[BY_ITSELF]);
}

#[test]
fn reservations_whose_time_is_over_and_a_standby_break_nothing() {
    let bounds = Reserving { expires: true, cancels: false, lost_answers: false, ..BACK };
    holds(Reserving { ids: room(2, 3), ..bounds }, 756_511, &[BY_ITSELF, REISSUED]);
}

#[test]
fn three_reservations_and_a_standby_break_nothing() {
    holds(Reserving { values: room(2, 3), ..BACK_ALONE }, 428_595, &[BY_ITSELF, REISSUED]);
}

#[test]
fn numbers_beside_reservations_and_a_standby_break_nothing() {
    let bounds = Reserving { numbers: true, lost_answers: false, ..BACK };
    holds(Reserving { values: room(2, 3), ..bounds }, 886_827, &[BY_ITSELF]);
}

/// Processes die as well, and an operator releases the ledger.
pub(crate) const RELEASED: Reserving = Reserving { crashes: true, release: true, ..BACK };

#[test]
fn a_standby_that_an_operator_releases_breaks_nothing() {
    let bounds = Reserving { cancels: false, lost_answers: false, ..RELEASED };
    holds(Reserving { expires: room(false, true), ..bounds }, 1_208_617, &[BY_ITSELF, BY_HAND]);
}

#[test]
fn three_reservations_and_a_release_break_nothing() {
    let lost_answers = room(false, true);
    let bounds = Reserving { crashes: true, release: true, lost_answers, ..BACK_ALONE };
    holds(Reserving { values: room(2, 3), ..bounds }, 1_580_788, &[BY_ITSELF, BY_HAND, REISSUED]);
}

#[test]
fn without_l7_an_answer_leaves_after_its_process_has_reported() {
    let rules = Rules { not_after_report: false, ..Rules::ALL };
    without(rules, BACK, KEPT, 10);
}

#[test]
fn without_the_life_of_l8_a_caller_confirms_at_a_standby_what_was_anothers_since() {
    let rules = Rules { life: false, ..Rules::ALL };
    without(rules, BACK, UNIQUE, 12);
}

#[test]
fn without_the_hold_of_l8_a_caller_confirms_before_all_have_reported() {
    let rules = Rules { held: false, ..Rules::ALL };
    without(rules, BACK, UNIQUE, 13);
}

#[test]
fn without_l8_a_cancel_in_sql_breaks_nothing() {
    let rules = Rules { cancel_compares: false, ..Rules::ALL };
    holds(Reserving { rules, ..BACK }, 566_743, &[BY_ITSELF]);
}

#[test]
fn without_l9_a_confirmed_record_is_lost() {
    let rules = Rules { keeps_confirmed: false, ..Rules::ALL };
    without(rules, BACK, KEPT, 10);
}

#[test]
fn without_l9_a_record_that_was_found_is_lost() {
    let rules = Rules { keeps_found: false, ..Rules::ALL };
    without(rules, BACK, KEPT, 11);
}

#[test]
fn without_l9_a_reported_record_leaves_its_reservation_behind() {
    let rules = Rules { report_ends: false, ..Rules::ALL };
    without(rules, BACK, ACCOUNTED, 10);
}

#[test]
fn without_l10_a_value_whose_reservation_is_forgotten_is_issued_again() {
    let rules = Rules { high_reserved: false, ..Rules::ALL };
    without(rules, BACK_SQL, UNIQUE, 14);
}

#[test]
fn without_l10_a_value_that_was_found_reserved_is_issued_again() {
    let rules = Rules { high_found: false, ..Rules::ALL };
    without(rules, BACK_SQL, UNIQUE, 15);
}

#[test]
fn without_l11_a_forgotten_confirm_is_another_documents_number() {
    let rules = Rules { spends_reserved: false, ..Rules::ALL };
    without(rules, BACK_ALONE, UNIQUE, 15);
}

#[test]
fn without_l11_a_returned_value_is_issued_beside_a_forgotten_confirm() {
    let rules = Rules { spends_returned: false, ..Rules::ALL };
    without(rules, Reserving { http: false, expires: false, ..BACK_ALONE }, UNIQUE, 17);
}

/// Earlier files are put back under one process, which alone remembers more.
const FILES: Reserving =
    Reserving { nodes: 1, cancels: true, lost_answers: true, loss: Loss::Files, ids: 2, ..CALM };

/// The same with numbers beside reservations.
const FILES_NUMBERS: Reserving = Reserving { numbers: true, ..FILES };

/// The same with three reservations that have no time.
const FILES_LONG: Reserving = Reserving { ids: 3, expires: false, ..FILES };

#[test]
fn earlier_files_under_a_process_that_remembers_more_break_nothing() {
    holds(Reserving { ids: room(2, 3), ..FILES }, 76_570, &[BY_ITSELF]);
}

#[test]
fn three_reservations_and_earlier_files_break_nothing() {
    holds(FILES_LONG, 404_786, &[BY_ITSELF]);
}

#[test]
fn numbers_beside_reservations_and_earlier_files_break_nothing() {
    holds(Reserving { expires: room(false, true), ..FILES_NUMBERS }, 173_112, &[BY_ITSELF]);
}

#[test]
fn without_the_time_in_a_confirm_a_ledger_that_goes_back_breaks_nothing() {
    let rules = Rules { time: false, ..Rules::ALL };
    holds(Reserving { rules, ..FILES }, 85_000, &[BY_ITSELF]);
    holds(Reserving { rules, ..BACK_ALONE }, 499_653, &[BY_ITSELF, REISSUED]);
}

#[test]
fn without_l12_a_value_out_of_the_pool_leaves_no_trace() {
    let rules = Rules { compares_reissued: false, ..Rules::ALL };
    without(rules, FILES_NUMBERS, UNIQUE, 10);
}

#[test]
fn without_l12_a_confirmed_reservation_is_live_again_and_ends() {
    let rules = Rules { compares_acts: false, ..Rules::ALL };
    without(rules, FILES_NUMBERS, UNIQUE, 10);
}

#[test]
fn without_l12_an_earlier_reservation_of_a_value_is_confirmed_again() {
    let rules = Rules { compares_value: false, ..Rules::ALL };
    without(rules, FILES, UNIQUE, 12);
}

#[test]
fn without_l12_an_earlier_reservation_of_a_document_is_confirmed_again() {
    let rules = Rules { compares_document: false, ..Rules::ALL };
    without(rules, FILES_LONG, ONE_NUMBER, 14);
}

#[test]
fn without_l12_an_answer_from_before_a_restart_is_handed_out() {
    let rules = Rules { not_after_restart: false, ..Rules::ALL };
    without(rules, FILES_NUMBERS, UNIQUE, 10);
}

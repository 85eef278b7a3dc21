//! Each protective rule is taken out once: the search must find what the rule prevents, and within
//! the same bounds must find nothing with the rule. `NUMERATOR_MODEL=trace` prints the events.
#![allow(missing_docs, reason = "tests say what they do in their names")]

use model::properties::{
    ALWAYS, BOUNDED, EXPLAINED, JOURNALED_ONCE, KEPT, MEANT, NEEDED, ONE_NUMBER, ONE_OWNER, UNIQUE,
};
use model::rules::Rules;
use model::scenario::{Faults, Scenario, Second};
use model::search;

/// Two nodes in an epoch that Redis owns, two requests, one recovery.
const BUSY: Scenario = Scenario { requests: 2, ..Scenario::CALM };

const NO_FAULTS: Faults = Scenario::CALM.faults;

fn without(rules: Rules, scenario: Scenario, property: &'static str) {
    let broken = search::until(Scenario { rules, ..scenario }, property);
    let path = broken.path(property);
    let kept = search::everything(scenario);
    println!(
        "{property}: broken by {} events, {} states, {:.1?}; kept: {} states, {:.1?}",
        path.map_or(0, <[_]>::len),
        broken.states,
        broken.took,
        kept.states,
        kept.took
    );
    if std::env::var_os("NUMERATOR_MODEL").is_some_and(|form| form == "trace") {
        println!("{path:#?}");
    }
    assert!(path.is_some(), "nothing breaks: {property}, {} states", broken.states);
    for property in ALWAYS {
        assert!(kept.path(property).is_none(), "{property}: {:#?}", kept.path(property));
    }
}

#[test]
fn without_the_epoch_check_an_adopted_node_that_wakes_issues_a_number_again() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { epoch: false, ..Rules::ALL };
    without(rules, Scenario { faults, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_incarnation_check_a_server_with_older_data_issues_a_number_again() {
    let faults = Faults { promotions: 1, ..NO_FAULTS };
    let rules = Rules { incarnation: false, ..Rules::ALL };
    without(rules, Scenario { faults, second: Second::Replica, epochs: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_ceiling_a_silent_node_issues_what_the_next_epoch_issues() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { ceiling: false, ..Rules::ALL };
    without(rules, Scenario { faults, headroom: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_flight_guard_a_repeated_seed_starts_a_deleted_counter_again() {
    let faults = Faults { repeats: 1, deleted_counters: 1, ..NO_FAULTS };
    let rules = Rules { flight_guard: false, ..Rules::ALL };
    let scenario = Scenario { faults, warm: false, epochs: 1, ..BUSY };
    without(rules, scenario, UNIQUE);
}

#[test]
fn without_the_barrier_the_next_epoch_starts_below_a_number_that_was_handed_out() {
    let rules = Rules { barrier: false, ..Rules::ALL };
    without(rules, BUSY, UNIQUE);
}

#[test]
fn without_the_counters_epoch_older_data_is_gone_on_from() {
    let faults = Faults { promotions: 1, ..NO_FAULTS };
    let rules = Rules { counter_epoch: false, ..Rules::ALL };
    without(rules, Scenario { faults, second: Second::Replica, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_last_closing_at_the_ceiling_an_untouched_counter_starts_too_low() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { last_ceiling: false, ..Rules::ALL };
    without(rules, Scenario { faults, epochs: 3, flights: 3, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_bar_a_node_goes_on_after_its_outbox_was_read() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { bar: false, ..Rules::ALL };
    without(rules, Scenario { faults, ..BUSY }, UNIQUE);
}

#[test]
fn without_the_check_in_the_writing_transaction_a_discarded_number_is_journaled() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { discard_check: false, ..Rules::ALL };
    without(rules, Scenario { faults, ..BUSY }, JOURNALED_ONCE);
}

#[test]
fn without_f1_a_replay_hands_out_a_number_that_was_discarded() {
    let rules = Rules { f1: false, ..Rules::ALL };
    without(rules, BUSY, UNIQUE);
}

#[test]
fn without_f1_a_retry_gets_a_second_number_when_its_record_is_lost() {
    let faults = Faults { flushes: 1, ..NO_FAULTS };
    let rules = Rules { f1: false, ..Rules::ALL };
    without(rules, Scenario { faults, requests: 1, retries: 1, ..BUSY }, ONE_NUMBER);
}

#[test]
fn without_the_question_for_what_was_trimmed_a_retry_gets_a_second_number() {
    let rules = Rules { trimmed: false, ..Rules::ALL };
    without(rules, Scenario { trims: true, requests: 1, retries: 1, ..BUSY }, ONE_NUMBER);
}

#[test]
fn without_f2_a_replayed_number_is_issued_again() {
    let rules = Rules { f2: false, ..Rules::ALL };
    without(rules, Scenario { retries: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_f2_one_crash_loses_a_replayed_record() {
    let faults = Faults { flushes: 1, ..NO_FAULTS };
    let rules = Rules { f2: false, ..Rules::ALL };
    without(rules, Scenario { faults, requests: 1, retries: 1, ..BUSY }, KEPT);
}

#[test]
fn without_f3_a_lowered_counter_fools_the_node_that_has_seen_nothing() {
    let faults = Faults { lowered_counters: 1, ..NO_FAULTS };
    let rules = Rules { f3: false, ..Rules::ALL };
    without(rules, Scenario { faults, epochs: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_f4_a_node_takes_from_the_database_after_the_return_to_redis() {
    let rules = Rules { f4: false, ..Rules::ALL };
    without(rules, Scenario { database: true, epochs: 3, joined: 0, ..BUSY }, UNIQUE);
}

#[test]
fn without_f4_a_late_raise_sets_a_newer_ceiling() {
    let rules = Rules { f4: false, ..Rules::ALL };
    without(rules, Scenario { requests: 3, headroom: 1, ..BUSY }, BOUNDED);
}

#[test]
fn without_f5_a_late_participant_takes_part_in_an_epoch_that_is_closed() {
    let rules = Rules { f5: false, ..Rules::ALL };
    without(rules, Scenario { joined: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_f6_an_epoch_is_opened_on_two_servers() {
    let rules = Rules { f6: false, ..Rules::ALL };
    without(rules, Scenario { second: Second::Master, ..BUSY }, ONE_OWNER);
}

#[test]
fn without_f7_a_deleted_outbox_accounts_for_a_dead_node() {
    let faults = Faults { crashes: 1, deleted_outboxes: 1, ..NO_FAULTS };
    let rules = Rules { f7: false, ..Rules::ALL };
    without(rules, Scenario { faults, ..BUSY }, UNIQUE);
}

#[test]
fn without_f9_a_ledger_that_went_back_issues_its_numbers_again() {
    let faults = Faults { ledger_returns: 1, ..NO_FAULTS };
    let rules = Rules { f9: false, ..Rules::ALL };
    without(rules, Scenario { faults, ..BUSY }, UNIQUE);
}

#[test]
fn without_f10_a_flight_that_was_rebuilt_gives_one_request_the_number_of_another() {
    let faults = Faults { lost_replies: 1, time_outs: 1, ..NO_FAULTS };
    let rules = Rules { f10: false, ..Rules::ALL };
    let scenario = Scenario { faults, retries: 1, epochs: 1, coalesces: true, ..BUSY };
    without(rules, scenario, UNIQUE);
}

#[test]
fn without_f11_a_number_leaves_after_its_epoch_was_acknowledged() {
    let rules = Rules { f11: false, ..Rules::ALL };
    without(rules, BUSY, UNIQUE);
}

#[test]
fn without_f12_a_counter_is_taken_for_lost_while_another_node_seeds_it() {
    let rules = Rules { f12: false, ..Rules::ALL };
    without(rules, Scenario { warm: false, epochs: 1, ..BUSY }, NEEDED);
}

#[test]
fn without_f15_a_script_that_fails_half_way_issues_a_number_again() {
    let faults = Faults { write_errors: 1, ..NO_FAULTS };
    let rules = Rules { f15: false, ..Rules::ALL };
    without(rules, Scenario { faults, epochs: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_f16_one_crash_loses_a_record_that_was_trimmed() {
    let faults = Faults { crashes: 1, ..NO_FAULTS };
    let rules = Rules { f16: false, ..Rules::ALL };
    without(rules, Scenario { faults, trims: true, epochs: 1, ..BUSY }, KEPT);
}

#[test]
fn without_f17_a_discarded_value_is_in_no_register() {
    let rules = Rules { f17: false, ..Rules::ALL };
    without(rules, BUSY, EXPLAINED);
}

#[test]
fn without_f19_a_writable_replica_issues_what_its_master_issues() {
    let rules = Rules { f19: false, ..Rules::ALL };
    without(rules, Scenario { second: Second::Replica, epochs: 1, ..BUSY }, UNIQUE);
}

#[test]
fn without_f27_the_return_to_redis_overtakes_a_late_take() {
    let rules = Rules { f27: false, ..Rules::ALL };
    let scenario = Scenario { on_database: true, requests: 1, retries: 1, ..BUSY };
    without(rules, scenario, ONE_NUMBER);
}

/// A document that is sent again counts by another counter, and a late take of the database's epoch
/// is under way.
const CROSSED: Scenario = Scenario {
    rules: NAMED,
    on_database: true,
    requests: 1,
    retries: 1,
    counters: 2,
    crosses: true,
    splits: true,
    ..BUSY
};

/// Questions and takes of one key exclude each other. F27 is not needed then.
const NAMED: Rules = Rules { f27: false, names: true, names_epoch: true, ..Rules::ALL };

#[test]
fn f27_alone_is_overtaken_by_a_late_take_from_another_counter() {
    without(Rules::ALL, CROSSED, ONE_NUMBER);
}

#[test]
fn without_the_name_of_its_key_a_question_is_overtaken_by_a_late_take_from_another_counter() {
    without(Rules { names: false, ..NAMED }, CROSSED, ONE_NUMBER);
}

#[test]
fn without_the_epoch_under_the_name_a_late_take_from_another_counter_follows_a_question() {
    without(Rules { names_epoch: false, ..NAMED }, CROSSED, ONE_NUMBER);
}

#[test]
fn without_f27_and_the_names_a_late_take_from_the_same_counter_is_overtaken() {
    let rules = Rules { f27: false, ..Rules::ALL };
    without(rules, Scenario { counters: 1, crosses: false, ..CROSSED }, ONE_NUMBER);
}

#[test]
fn without_f28_a_record_that_vanished_alone_is_a_new_key() {
    let faults = Faults { deleted_records: 1, ..NO_FAULTS };
    let rules = Rules { f28: false, ..Rules::ALL };
    without(rules, Scenario { faults, requests: 1, retries: 1, ..BUSY }, ONE_NUMBER);
}

#[test]
fn without_the_end_of_the_epoch_the_journal_is_asked_for_a_lost_record_too_early() {
    let faults = Faults { deleted_records: 1, ..NO_FAULTS };
    let rules = Rules { f28_ends: false, ..Rules::ALL };
    without(rules, Scenario { faults, requests: 1, retries: 1, ..BUSY }, ONE_NUMBER);
}

#[test]
fn without_f29_an_imported_document_gets_a_second_number() {
    let rules = Rules { f29: false, ..Rules::ALL };
    let scenario = Scenario { imports: 1, requests: 1, database: true, ..BUSY };
    without(rules, Scenario { epochs: 3, ..scenario }, ONE_NUMBER);
}

#[test]
fn without_the_names_of_its_documents_an_import_overtakes_a_transaction() {
    let rules = Rules { f29_names: false, ..Rules::ALL };
    let scenario = Scenario { imports: 1, requests: 1, on_database: true, splits: true, ..BUSY };
    without(rules, scenario, ONE_NUMBER);
}

#[test]
fn without_f30_a_number_that_was_only_shown_is_issued_again() {
    let rules = Rules { f30: false, ..Rules::ALL };
    without(rules, Scenario { retries: 1, differs: true, ..BUSY }, UNIQUE);
}

#[test]
fn without_f32_a_counter_that_was_cold_declares_a_gap_that_nobody_made() {
    let faults = Faults { silences: 1, ..NO_FAULTS };
    let rules = Rules { f32: false, ..Rules::ALL };
    without(rules, Scenario { faults, counters: 2, epochs: 3, flights: 3, ..BUSY }, MEANT);
}

//! What every ledger must keep, on each engine: each case is a test on a database of its own.

#[macro_use]
mod engines;

mod accounts;
mod adoption;
mod agreeing;
mod archives;
mod aside;
mod assignments;
mod audited;
mod audits;
mod beside;
mod blinded;
mod by_hand;
mod ceilings;
mod changes;
mod counter_lists;
mod documents;
mod forged;
mod generated;
mod import_meetings;
mod imports;
mod incarnations;
mod journal;
mod lives;
mod lookups;
mod moves;
mod names;
mod narrow;
mod opening;
mod partitions;
mod proofs;
mod quorum_checks;
mod races;
mod references;
mod reservations;
mod restored;
mod sealed;
mod seals;
mod seeds;
mod serials;
mod series;
mod setup;
mod shelf;
mod sights;
mod snowflakes;
mod starts;
mod succession;
mod sweeping;
mod takes;
mod tokens;
mod two_people;
mod verified;
mod windows;
mod world;

ledger_contract! {
    accounts {
        an_account_has_each_value_once_whatever_stands_for_it
        a_hole_and_an_overlap_that_cancel_out_are_both_named
        rows_in_the_archive_stand_for_their_values
        an_account_is_of_one_moment
    }
    aside {
        a_record_is_to_blame_only_where_a_plain_one_is_taken
        a_table_that_is_missing_is_nobodys_fault
        what_is_put_aside_was_issued
        what_is_put_aside_is_journaled_again_once
    }
    setup {
        a_deployment_is_written_once_and_other_settings_are_refused
        series_need_a_deployment
        a_changed_series_gets_a_new_version_and_an_equal_one_does_not
        series_are_applied_all_or_none
        gapless_series_share_the_last_partition
        a_series_with_counters_stays_in_its_partition
        a_first_counter_is_refused_where_its_series_no_longer_lives
        series_between_which_no_rule_could_choose_are_refused
        a_heartbeat_counts_and_a_node_that_left_is_gone
        a_retired_node_is_gone
        events_come_back_newest_first
    }
    proofs {
        series_that_could_give_two_numbers_one_text_are_refused
        a_series_is_proved_again_when_it_is_activated
        others_are_proved_again_when_a_rule_goes
        what_gives_the_same_numbers_is_not_proved_again
        a_rule_that_goes_concerns_only_its_own_numbers
        what_rests_or_serves_less_is_not_proved_again
        a_ledger_has_so_many_series_and_no_more
        an_accepted_ambiguity_is_saved_and_remembered
        a_start_that_was_another_one_is_not_built_on
        a_version_is_proved_against_the_earlier_ones_that_were_used
        series_on_tables_are_proved_with_what_the_tables_have
    }
    references {
        rows_are_added_renamed_and_deactivated_and_the_stamp_tells
        what_a_change_says_nothing_of_stays_as_it_is
        a_code_belongs_to_its_id_for_ever
        codes_are_compared_byte_for_byte
        memberships_begin_and_end_between_rows_that_exist
        of_many_importers_of_one_code_one_gets_it
        a_series_with_counters_keeps_the_tables_that_name_them
    }
    series {
        activity_changes_by_versions_of_their_own
        each_change_of_a_series_is_an_event
        a_deactivated_series_gives_up_its_types_and_keeps_its_code
        a_change_builds_on_the_version_that_it_names
        a_dry_run_refuses_the_same_and_saves_nothing
        a_used_series_is_not_counted_anew_behind_the_same_text
        an_heir_does_not_begin_with_numbers_that_are_out
        a_start_is_compared_with_where_counters_go_on_after_an_interruption
        a_series_without_counters_is_removed_for_good_and_leaves_its_code
        a_series_is_not_removed_that_has_a_counter_or_may_have_forgotten_one
        a_ledger_that_forgot_a_batch_lets_go_of_no_series
        of_a_removal_and_a_first_counter_at_once_one_succeeds
        no_counter_begins_below_the_start_in_force_whatever_its_process_knows
        a_first_counter_is_refused_for_a_version_of_before_the_series_was_used
    }
    succession {
        a_successor_serves_from_a_day_on_beside_the_series_before_it
        versions_that_were_used_elsewhere_come_before_the_one_in_force
        what_was_used_elsewhere_is_no_beginning_of_another_series
        an_heir_of_another_spelling_is_refused
        the_text_of_a_former_prefix_is_refused
        the_text_of_an_earlier_version_of_another_series_is_refused
        an_heir_of_a_shipped_series_is_refused
        a_series_that_was_never_used_begins_nothing_once_it_is_deactivated
        a_rule_does_not_begin_with_what_the_default_gave_before_it
        what_a_deactivated_series_took_waits_for_a_proof
        a_series_that_waits_for_a_proof_gets_no_version_by_an_import
        a_series_that_wakes_narrower_leaves_what_is_proved
    }
    snowflakes {
        a_node_number_has_one_holder_until_it_has_left_or_was_adopted
        nodes_that_lease_at_once_get_numbers_of_their_own
        whoever_takes_a_number_over_starts_where_its_last_holder_ends
        a_lease_that_is_returned_ends_where_it_was_used
        a_lease_that_the_ledger_has_forgotten_is_not_extended
        a_ledger_that_went_back_leases_nothing_that_it_may_have_leased
    }
    incarnations {
        a_take_that_the_ledger_forgot_is_noticed_by_the_next
        a_take_is_let_go_once_it_is_seen_behind_a_heartbeat
        a_later_incarnation_is_told_how_far_each_counter_was_taken
        a_later_incarnation_is_ones_own_only_by_descent
        a_branch_excuses_nothing_by_its_own_sweep
        a_counter_that_the_ledger_forgot_is_not_begun_anew
        a_take_that_the_ledger_forgot_is_noticed_though_another_took_its_value
        nobody_takes_from_a_ledger_that_another_process_holds
        a_copy_put_in_place_stops_a_node_that_lost_nothing
        a_copy_put_in_place_while_nobody_looked_is_held_when_it_is_opened
        whoever_comes_late_holds_nothing_again
        of_two_branches_of_a_ledger_neither_is_taken_for_the_other
        an_entry_above_the_ceiling_of_its_epoch_shows_that_the_ledger_went_back
        an_entry_of_an_unknown_counter_shows_that_the_ledger_went_back
        a_checkpoint_goes_into_the_ledger_that_it_was_read_from
        a_catalog_of_before_the_ledger_went_back_is_not_taken_for_the_one_of_now
    }
    quorum_checks {
        once_all_have_told_the_partitions_are_open_and_closed_exact
        one_that_does_not_remember_enough_leaves_it_to_an_operator
        who_was_adopted_by_halves_is_waited_for
        whom_a_reporter_or_redis_has_met_is_waited_for
        who_is_taken_for_dead_meanwhile_is_waited_for_all_the_same
        what_an_operator_holds_nobody_else_releases
        an_operators_hold_ends_a_quorum_check
        who_is_led_back_to_a_server_that_lives_on_asks_nobody_there
        where_nobody_is_left_who_was_there_an_operator_decides
    }
    sweeping {
        participations_in_epochs_closed_long_ago_go
        nodes_that_ended_long_ago_go_unless_something_names_them
        who_slept_until_its_row_was_swept_is_gone_and_nothing_went_back
        no_sweep_excuses_a_ledger_that_forgot_a_node
        nothing_is_swept_while_the_ledger_is_held
        an_epoch_that_was_closed_before_a_moment_is_found
    }
    partitions {
        a_node_participates_only_while_the_epoch_is_open
        a_node_that_left_or_was_adopted_does_not_come_back
        a_bump_compares_epoch_and_state
        an_epoch_is_not_bumped_before_the_one_before_it_is_closed
        of_many_openers_one_claims_the_epoch
        only_who_claimed_the_opening_reports_it_done
        an_opening_given_up_is_bumped
        an_epoch_of_the_database_is_open_at_once
        the_last_epoch_closed_at_the_ceiling_is_remembered
        a_held_partition_is_not_bumped
        an_epoch_closes_exact_once_every_participant_is_accounted_for
        an_epoch_closes_at_the_ceiling_only_if_somebody_is_missing
        an_acknowledgement_counts_for_its_own_epoch_only
        an_epoch_of_the_database_closes_exact_without_a_barrier
        an_operators_wish_stands_until_it_is_taken_back
        who_lent_a_partition_takes_it_back_and_no_operators_wish
        recent_closings_are_counted
        a_heartbeat_says_what_the_node_sees_of_redis
    }
    ceilings {
        a_counter_goes_on_above_its_ceiling_after_a_close_at_the_ceiling
        an_untouched_counter_remembers_the_ceiling_over_later_exact_closes
        an_untouched_counter_loses_nothing_by_a_later_close_at_the_ceiling
        what_was_lifted_goes_on_above_its_ceiling_whatever_is_closed_later
    }
    seeds {
        a_new_counter_starts_below_its_first_value
        a_first_ceiling_stays_on_the_step_below_the_maximum
        a_second_seed_in_one_epoch_names_the_first_seeder
        counters_are_read_by_their_ids_in_the_order_asked_for
        of_many_seeders_of_a_new_counter_one_seeds_it
        a_seed_is_fenced_once_the_epoch_is_over
        a_counter_of_another_partition_is_refused_and_fences_nobody
        a_raise_lifts_and_never_lowers
        a_raise_is_fenced_once_the_counter_went_on
        a_counter_goes_on_from_taken_after_an_exact_close
        a_step_leaves_no_false_holes
        an_untouched_counter_is_settled_on_request
        more_holes_than_one_search_finds_are_all_registered
        a_start_reads_no_more_than_a_slice_of_a_long_epoch
        a_long_epoch_is_settled_in_slices_whoever_dies
        a_late_row_that_a_slice_did_not_see_leaves_no_gap
        writers_of_many_counters_lock_them_in_one_order
    }
    journal {
        entries_come_back_as_they_were_written
        a_repeated_batch_is_known_and_counts_nothing_twice
        an_entry_twice_in_one_batch_is_known
        a_second_equal_value_is_a_collision
        a_second_equal_number_in_its_scope_is_a_collision
        one_collision_in_a_large_batch_keeps_nobody_out
        a_row_above_what_its_counter_has_taken_stops_no_batch
        a_range_that_overlaps_its_neighbour_is_a_collision
        overlaps_within_one_batch_are_collisions
        random_ranges_collide_exactly_where_they_overlap
        an_entry_above_the_ceiling_of_a_closed_epoch_lifts_it
        an_entry_of_an_older_epoch_counts_nothing
        two_nodes_that_append_to_the_same_counters_count_all_and_share_none
        a_late_entry_shrinks_the_gap
        text_that_no_column_takes_is_refused_whole
        a_rejected_entry_is_accounted_for_once
        several_serials_are_written_together
    }
    lookups {
        people_and_services_are_found_apart
        the_newest_number_under_a_key_or_document_is_found
        a_question_looks_no_further_back_than_it_says
        keys_are_compared_byte_for_byte
        rows_are_found_by_number_document_user_and_time
        the_text_of_a_revision_takes_no_place_in_a_page
        rows_are_found_by_each_filter_and_paged_in_either_order
        a_value_is_found_in_the_range_that_holds_it
        counters_and_totals_are_listed
        a_value_both_issued_and_lost_is_an_overlap
    }
    counter_lists {
        a_list_of_counters_goes_on_where_it_was_whatever_begins_meanwhile
        counters_are_found_by_parts_of_their_keys_and_by_no_text_that_looks_like_one
        a_counter_was_used_last_when_its_highest_number_was_issued
        of_a_value_that_many_counters_have_the_ranges_are_told_and_that_there_are_more
    }
    narrow {
        what_can_be_derived_is_not_stored
        who_writes_a_name_for_the_first_time_keeps_nobody_waiting
    }
    adoption {
        entries_of_an_epoch_closed_exact_are_discarded
        entries_of_an_open_epoch_or_one_closed_at_the_ceiling_are_journaled
        only_a_complete_outbox_accounts_for_its_node
        an_adopted_entry_that_its_node_journaled_too_is_known
        an_outbox_older_than_the_ledgers_ids_is_adopted_by_the_names_of_its_counters
        an_adoption_may_take_longer_than_an_ordinary_call
    }
    restored {
        a_ledger_that_forgot_a_beat_says_so
        a_ledger_that_forgot_a_batch_says_so
        a_ledger_that_forgot_a_node_says_so
        a_ledger_that_went_back_is_held_as_a_whole
        a_release_goes_on_above_all_that_was_seen
        what_is_journaled_again_finds_its_counter_by_name
        what_was_taken_where_a_series_lived_then_is_journaled_where_it_lives_now
        a_counter_is_lifted_where_its_series_lives_now
        a_refused_record_spends_no_value_of_the_counter_that_has_its_id_by_now
        numbers_at_most_lost_are_summed_over_touched_and_untouched_counters
        a_word_for_an_epoch_counts_from_a_hold_to_its_end
        the_newest_number_is_of_before_the_hold
        a_counter_of_a_held_partition_is_not_settled
        a_counter_is_not_settled_while_its_partition_is_being_held
    }
    takes {
        numbers_follow_each_other_across_calls
        a_range_is_taken_whole
        several_serials_are_taken_together_or_not_at_all
        serials_in_another_order_keep_their_counters
        a_document_is_numbered_once
        orders_of_one_batch_under_one_key_get_one_number
        again_gives_a_document_another_number
        two_takers_of_one_document_get_one_number
        many_takers_of_one_counter_get_a_run_without_holes
        an_exhausted_serial_takes_nothing
        a_number_that_another_has_is_spent_and_the_batch_goes_on
        a_number_of_two_serials_that_another_has_spends_both_values
        a_batch_longer_than_a_statement_answers_each_order_with_its_own
        a_repeated_take_finds_its_own_numbers
        a_take_is_fenced_once_the_counter_went_on
        a_take_is_fenced_once_its_epoch_is_over_whoever_touched_its_counter
        a_first_touch_needs_an_open_epoch_of_the_database
        a_database_epoch_closes_without_a_gap
    }
    tokens {
        a_name_has_one_token_for_ever_and_a_revoked_one_stays_listed
        the_secret_of_before_a_rotation_is_kept_for_its_grace
        each_change_of_tokens_raises_the_stamp_and_is_an_event
        of_many_creators_of_one_name_one_gets_it
        the_last_use_of_a_token_only_rises
    }
    audits {
        the_tightest_counters_of_redis_come_first
        an_allocation_is_recorded_wherever_it_stands
        a_closed_epoch_names_who_was_missing
        gaps_are_listed_by_counter_series_and_reason
        the_masks_beside_a_value_are_those_of_its_neighbours
        events_of_an_epoch_are_its_own
    }
    verified {
        a_number_that_its_mask_does_not_render_is_found
        a_row_without_a_counter_is_found
        a_rejected_record_of_no_counter_is_found
        rows_deleted_before_their_epoch_was_settled_are_found
        equal_numbers_inside_ranges_are_found
        an_explained_collision_is_told_apart_from_the_next_one
        verify_writes_nothing_where_nothing_changed
        sizes_of_long_tables_are_estimated
    }
    documents {
        what_is_not_shown_takes_no_place
        the_numbers_of_a_document_are_paged_oldest_first
        a_revision_is_written_once
        a_revision_is_no_value_of_a_counter
        a_text_is_a_number_or_a_revision_and_never_both
        a_number_and_a_revision_that_want_one_text_at_once_do_not_both_get_it
        revisions_of_one_text_at_once_are_one
        a_number_has_no_more_revisions_than_it_may_have
        a_revision_without_its_number_is_found
        no_number_is_dated_before_the_last_of_its_family
        dates_follow_each_other_however_many_take_at_once
        a_family_without_a_row_finds_its_last_date_in_the_journal
        a_chronology_that_is_switched_forgets_its_dates
        the_last_date_of_a_long_family_is_looked_for_in_slices
        imported_dates_count_for_their_family
    }
    serials {
        an_interface_serial_is_accepted_once_within_its_window
        a_check_repeated_under_its_key_is_accepted_again
        of_many_checks_of_one_serial_one_is_accepted
        a_step_runs_while_unknown_or_failed_and_never_after_success
        of_many_beginners_of_one_step_one_runs
        a_begin_repeated_under_its_key_runs_only_while_in_progress
        only_the_current_attempt_ends_and_only_its_runner_succeeds
        an_ending_repeated_with_the_same_content_is_harmless
        a_step_belongs_to_one_unified_serial
        a_chain_lists_its_serials_and_events_in_pages
        random_calls_about_a_step_follow_its_rules
    }
    imports {
        a_first_touch_waits_for_the_import_that_makes_its_counter
        whoever_needs_a_counter_that_an_import_makes_waits_for_that_counter
        an_import_that_waits_while_its_counter_is_lifted_is_undone
        an_imported_counter_goes_on_above_what_was_imported
        what_did_not_come_along_is_a_gap
        numbers_come_after_their_counter
        a_document_comes_to_no_partition_of_redis
        an_import_above_a_counter_of_redis_is_undone
        a_counter_of_a_closed_epoch_is_lifted
        an_import_that_stays_below_what_an_epoch_lost_lets_late_rows_explain_it
        a_counter_of_the_database_is_lifted_in_its_epoch
        takes_and_a_lift_of_one_counter_never_meet
        an_import_that_meets_a_number_is_undone
        an_import_that_ends_with_an_error_is_undone
        an_import_into_a_series_that_has_changed_is_undone
        an_import_into_a_ledger_that_went_back_is_refused
    }
    opening {
        ten_openers_of_a_fresh_ledger_all_succeed
        a_schema_newer_than_the_binary_is_refused
        a_ledger_of_before_the_baseline_is_refused
        an_older_schema_is_refused_and_the_command_is_named
        of_many_migrators_one_migrates_and_all_succeed
        a_column_of_another_type_is_worth_a_retry_and_the_next_call_works
        whoever_looks_at_a_copy_reads_its_log_too
    }
}

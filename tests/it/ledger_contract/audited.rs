//! What the comparison of the record with its checkpoints, and with the files of its archive, must
//! guarantee, on each engine.

ledger_contract! {
    seals {
        what_was_written_is_as_it_was_bound
        whatever_a_person_with_write_access_changes_is_named
        a_chain_made_anew_is_found_by_its_key_and_by_what_was_kept
        rows_are_kept_from_whoever_is_not_their_owner
        a_batch_of_a_process_without_the_key_is_named
        a_batch_that_comes_late_is_bound_late
        a_part_that_was_kept_out_is_no_part_of_the_seal
        what_was_there_before_the_key_is_taken_as_it_is_however_much_it_is
    }
    beside {
        rows_beside_the_archive_are_not_called_compared
        a_segment_pays_only_in_a_batch_that_is_whole
        who_begins_later_misses_no_row_beside_an_archive
        a_segment_on_both_sides_of_a_checkpoint_is_no_finding
    }
    blinded {
        whatever_would_blind_the_comparison_is_named
        what_the_migrations_make_is_what_is_compared
    }
    generated {
        each_change_of_each_column_is_named_or_listed_by_the_page
    }
    agreeing {
        what_the_record_says_of_itself_must_agree
        verify_says_how_many_texts_it_did_not_compare
        who_has_no_key_is_told_what_is_not_known_yet
        a_file_that_the_ledger_does_not_name_is_a_finding
        beside_writers_and_archivers_nothing_false_is_found
    }
    archives {
        archived_values_stay_accounted_for_and_never_come_again
        seals_of_archived_rows_are_compared_with_the_files
        a_document_whose_number_is_archived_is_numbered_once
        what_was_confirmed_may_be_archived_and_must_not_be_forgotten
        what_is_young_revised_or_unsettled_stays_in_the_journal
        whatever_ends_an_archiver_loses_nothing
        a_file_that_is_not_as_it_was_makes_no_room
        a_file_that_was_lost_is_given_up_while_the_journal_has_its_rows
        no_row_makes_room_that_the_file_does_not_have
    }
}

//! What the comparison of the record with its checkpoints must keep, on each engine.

ledger_contract! {
    seals {
        what_was_written_is_as_it_was_bound
        whatever_a_person_with_write_access_changes_is_named
        a_chain_made_anew_is_found_by_its_key_and_by_what_was_kept
        rows_are_kept_from_whoever_is_not_their_owner
        a_batch_of_a_process_without_the_key_is_named
        rows_of_before_seals_are_bound_as_a_whole
        a_batch_that_comes_late_is_bound_late
        a_part_that_was_kept_out_is_no_part_of_the_seal
    }
    blinded {
        whatever_would_blind_the_comparison_is_named
        what_the_migrations_make_is_what_is_compared
        checkpoints_of_the_first_form_bind_what_they_bound
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
}

-- A change that was answered stays as it is: who asked, who answered and what was done are never
-- written anew, whoever writes to the ledger. None is removed. No row is read.
-- old binary: ok. It answers what is pending, and changes nothing else

create trigger change_request_stays before update on change_request
    for each row when (old.state <> 'pending') execute function must_stay_as_it_is();
create trigger change_request_is_not_removed before delete on change_request
    for each row execute function must_stay_as_it_is();
create trigger change_request_is_not_emptied before truncate on change_request
    for each statement execute function must_stay_as_it_is();

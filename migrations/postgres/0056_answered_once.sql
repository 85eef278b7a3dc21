-- A change request begins unanswered, and is answered once: who may write the table without owning
-- it changes none that was answered. What it answers with is not compared with anything here: who
-- may write the table may add a request, and answer it, under names of its own.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on.

create trigger change_request_begins before insert on change_request
    for each row when (new.state <> 'pending') execute function must_stay_as_it_is();
create trigger change_request_stays before update on change_request
    for each row when (old.state <> 'pending') execute function must_stay_as_it_is();
create trigger change_request_is_not_removed before delete on change_request
    for each row execute function must_stay_as_it_is();
create trigger change_request_is_not_emptied before truncate on change_request
    for each statement execute function must_stay_as_it_is();

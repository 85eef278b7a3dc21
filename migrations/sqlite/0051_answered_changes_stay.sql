-- A change that was answered stays as it is: who asked, who answered and what was done are never
-- written anew, whoever writes to the ledger. None is removed. No row is read.
-- old binary: ok. It answers what is pending, and changes nothing else

create trigger change_request_stays before update on change_request
    when old.state <> 'pending'
begin
    select raise(abort, 'a change_request that was answered stays as it is');
end;
create trigger change_request_is_not_removed before delete on change_request
begin
    select raise(abort, 'a change_request stays');
end;

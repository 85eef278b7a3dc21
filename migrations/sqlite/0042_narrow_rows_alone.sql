-- A row of the journal says in no column of an earlier version what its batch says: here it has
-- none (0025), so that there is nothing to keep out.
-- old binary: ok

select 1;

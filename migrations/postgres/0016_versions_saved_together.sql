-- Series that are saved in one call come together: the more specific of two has its requests from
-- the beginning, and the other has given no number to any of them. `saved_with` is the id of the
-- first version of the call; null in what was saved before this column was there, each by itself.
-- An import that brings versions of another ledger along writes them in one call, too: one that the
-- next of its series was saved with has given numbers there and none here.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- without what a deactivated series keeps from others, and saves without the comparison with what is
-- out: have no series saved or deactivated before all processes are of this version.

alter table series_version add column saved_with bigint;

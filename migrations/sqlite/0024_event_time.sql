-- Events are looked up by time, page by page: those of one time in the order of their rows.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already lists
-- events by their rows, and does not need the index.

create index event_time on event (at_us, event_id);

-- Events of tokens, from the newest back: a token in force is compared with its last one.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already compares
-- nothing, and does not need the index.

create index event_of_tokens on event (event_id)
    where kind in ('token-created', 'token-revoked', 'token-rotated');

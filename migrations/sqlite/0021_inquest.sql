-- A ledger that went back under its users may be agreed on again by all of them: what each of them says,
-- and whom it takes (F25). Only where a ledger fails over by itself: a file is put back by hand.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already says nothing: it is waited for.

create table inquest (
    -- Of the incarnation that was drawn with the hold.
    nonce blob not null primary key constraint inquest_nonce_is_an_id check (length(nonce) = 16),
    -- Nodes that neither had left nor were adopted when it began, and those of one that did not end: JSON.
    roster text not null,
    begun_at_us integer not null
);

create table inquest_report (
    nonce blob not null references inquest on delete cascade,
    -- Under which the process says it.
    node_id blob not null,
    -- Whether it remembers all that was confirmed to it and may be forgotten here.
    is_complete integer not null,
    -- Every identity that it took, the epochs and the other nodes that it has seen: JSON.
    identities text not null,
    epochs text not null,
    seen text not null,
    primary key (nonce, node_id)
);

-- Told to a ledger that went back: the epoch of Redis after which, by the word of a process that
-- took part in it, none followed. Without that word Redis alone cannot say how far counters came: the
-- database may have served since (F9).
-- old binary: refuses to start (the schema is newer than it knows). One that runs already gives no
-- word, and a release asks for its margin.

alter table partition add column vouched_epoch integer not null default 0
    constraint partition_vouched_epoch_not_negative check (vouched_epoch >= 0);

-- The batches of before seals: whether there are any, and which.
-- old binary: see 0032

create index journal_batch_unsealed on journal_batch (batch_id) where seal is null;

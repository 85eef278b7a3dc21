-- no-transaction
-- `documents/{id}/numbers`, the replay of a document's number (R1.8), the links of a transaction
-- serial, which begin alike.
-- old binary: see 0025

create index concurrently if not exists journal_document_id on journal (document_id)
    where document_id is not null;

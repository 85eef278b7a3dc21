-- A later incarnation is one's own only by descent: a copy that was held and released elsewhere counts
-- further than the ledger that it was made of, and is another branch all the same (F36). The ledger
-- keeps the line of its incarnations.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already draws without
-- a row here: what it agreed on is held again by the next process of this version that knows it.

create table incarnation_line (
    -- Drawn at random: of two branches with one number each has its own.
    nonce blob not null primary key constraint incarnation_line_nonce_is_an_id check (length(nonce) = 16),
    number integer not null constraint incarnation_line_number_is_positive check (number > 0),
    -- When it was drawn; null where the process that drew the next one knew it from another copy.
    drawn_at_us integer,
    -- When the next one was drawn by a process that knew this one; null while it is in force. What was
    -- confirmed in it later, and is not here, was confirmed by another branch.
    replaced_at_us integer,
    -- How far the file had come by then: a mark of this incarnation that says more is of another branch.
    replaced_generation integer
);

insert into incarnation_line (nonce, number, drawn_at_us) select nonce, number, 0 from incarnation;

-- Nothing that is evidence goes by one machine's clock (F37). That a node's row is missing is
-- excused by its identity, which stays when the row is swept, and no more by the time up to which
-- somebody swept: nodes_swept_us of before is not looked at any more. Nodes tell what their clocks
-- say: here no server has one of its own, and what it said then is always null.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already keeps no
-- identity of what it sweeps, and tells no time.

-- Nodes whose rows were swept: 16 bytes each, for ever.
create table swept_node (
    node_id blob not null constraint swept_node_pk primary key
        constraint swept_node_id_whole check (length(node_id) = 16)
) strict;

-- What its own clock said when it told the time last; null: it told none yet.
alter table node add column told_at_us integer;
-- What the server's clock said then.
alter table node add column heard_at_us integer;

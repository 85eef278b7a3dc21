-- Revisions: an issued number again with another label (R2.10). They take no value, so they are no
-- rows of the journal's counters. Their texts must be unlike every number's, now and later: each
-- revision therefore has one more row in the journal, of the counter 0, which does not exist, with
-- the revision's id for a value. The journal's unique key of number and scope holds over both, and
-- nobody has to lock anything. Whoever reads the journal by its counters does not see these rows.
-- old binary: refuses to start (the schema is newer than it knows)

create table revision (
    revision_id integer constraint revision_pk primary key,
    counter_id integer not null,
    value integer not null,
    rev text not null,
    allocation_id blob not null,
    number text not null,
    scope text not null,
    document_id text not null,
    user_id text not null,
    ip_address text,
    reason text,
    revised_at_us integer not null,
    -- A second equal label of a number (R2.10); also the way from a number to its revisions.
    constraint revision_label_once unique (counter_id, value, rev),
    -- Serves look-ups by text; the journal's own key keeps it apart from numbers.
    constraint revision_number_once unique (number, scope)
) strict;

-- The date of the last number of each family of counters whose series asks for chronology: the
-- counters that differ in their period alone. Its row is the lock under which dates are compared,
-- because two counters of a family may be taken from at once. Where there is no row, the journal
-- tells the date.
create table chronology (
    series_id integer not null,
    serial text not null,
    family text not null,
    last_date text not null,
    constraint chronology_pk primary key (series_id, serial, family)
) strict;

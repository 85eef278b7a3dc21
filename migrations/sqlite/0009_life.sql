-- What became of a value beside its row of the journal: how a reservation ended, that a number was
-- voided, replaced, corrected, given by hand. One row for each act; the journal's row stays as it
-- is. The view `numbers` shows the state of each number.
-- old binary: refuses to start (the schema is newer than it knows). One that runs already goes on,
-- shows voided numbers as issued, and may revise or archive one.

create table life (
    life_id integer constraint life_pk primary key,
    act text not null constraint life_act_known check (act in ('cancelled', 'expired', 'lost',
        'handed-back', 'voided', 'replaced', 'corrected', 'registered')),
    at_us integer not null,
    -- The values, of the first serial. A number within a range is one value.
    counter_id integer not null,
    first_value integer not null,
    last_value integer not null,
    -- The reservation, or the allocation that took the value.
    subject blob not null,
    -- The allocation that took the replacement.
    other blob,
    number text,
    document_id text,
    user_id text not null,
    ip_address text,
    reason text,
    -- In JSON: what was corrected; the replacement's number; of a reservation, when and by whom it
    -- was made.
    detail text,
    -- The act, where a value has each once: voided, replaced.
    once text,
    -- Whether a number is voided, or replaced, is decided here. Also the way from a value to both.
    constraint life_once unique (counter_id, first_value, once),
    constraint life_once_is_the_act check (case when act in ('voided', 'replaced')
        then once is not null and once = act else once is null end),
    constraint life_range_in_order check (first_value <= last_value),
    constraint life_says_why check (act not in ('voided', 'corrected') or reason is not null),
    constraint life_names_the_other check (act <> 'replaced' or other is not null)
) strict;
-- The acts of an allocation, and the numbers that it replaces.
create index life_subject on life (subject);
create index life_other on life (other) where other is not null;
-- The acts of a number's text.
create index life_number on life (number);

create trigger life_stays before update on life
begin
    select raise(abort, 'life keeps its rows as they are');
end;
create trigger life_is_not_removed before delete on life
begin
    select raise(abort, 'life keeps its rows as they are');
end;

-- Only the view that 0008 made: a table or view of another system keeps its name, and a view that
-- was dropped stays away. No statement drops a view on a condition, so its text is replaced.
pragma writable_schema = on;
update sqlite_schema set sql = 'CREATE VIEW numbers as
select j.number,
    s.code as series,
    j.type_code as type,
    j.project,
    j.document_id,
    j.document_date,
    j.first_value as value,
    j.last_value,
    j.step,
    c.serial,
    c.key as counter_key,
    j.user_id,
    j.ip_address,
    strftime(''%Y-%m-%dT%H:%M:%fZ'', j.issued_at_us / 1000000.0, ''unixepoch'') as issued_at,
    strftime(''%Y-%m-%dT%H:%M:%fZ'', j.journaled_at_us / 1000000.0, ''unixepoch'') as journaled_at,
    j.path,
    case when r.once is not null then ''replaced''
        when d.once is not null then ''voided''
        else ''issued'' end as status,
    j.series_id as config_id,
    j.version as config_version,
    v.definition ->> ''template'' as template,
    j.context,
    j.idempotency_key,
    j.retry_count,
    lower(substr(hex(j.allocation_id), 1, 8) || ''-'' || substr(hex(j.allocation_id), 9, 4)
        || ''-'' || substr(hex(j.allocation_id), 13, 4)
        || ''-'' || substr(hex(j.allocation_id), 17, 4)
        || ''-'' || substr(hex(j.allocation_id), 21)) as allocation_id,
    j.counter_id,
    j.issued_at_us,
    strftime(''%Y-%m-%dT%H:%M:%fZ'', d.at_us / 1000000.0, ''unixepoch'') as voided_at,
    d.user_id as voided_by,
    d.reason as void_reason,
    r.detail ->> ''number'' as replaced_by
from journal_row j
left join counter c on c.counter_id = j.counter_id
left join series s on s.series_id = j.series_id
left join series_version v on v.series_id = j.series_id and v.version = j.version
left join life d on d.counter_id = j.counter_id and d.first_value = j.first_value
    and d.once = ''voided''
left join life r on r.counter_id = j.counter_id and r.first_value = j.first_value
    and r.once = ''replaced''
where j.counter_id <> 0 and j.number is not null'
where type = 'view' and name = 'numbers' and sql like '%''issued'' as status%journal_row%';
pragma writable_schema = reset;

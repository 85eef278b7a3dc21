-- Views for people with SQL: `counter_row`, `numbers`, and under the names of the systems that
-- numbers come from what the ledger has of their columns. docs/record.md says what each shows. No
-- statement of the program reads them.
-- Where the schema already has something of a view's name, such as a table of such a system, that
-- stays, and the view is left out.
-- old binary: ok (there is none)

-- Each counter with the parts of its key as JSON; null where the text is no key. What a key
-- escapes stands as a control character meanwhile: no stored text has one.
create view counter_row as
select c.counter_id,
    c.series_id as config_id,
    s.code as series,
    v.active = 1 as active,
    c.serial,
    c.key as counter_key,
    p.parts,
    coalesce(p.parts ->> 'type', p.parts ->> 'type_id') as type,
    coalesce(p.parts ->> 'project', p.parts ->> 'project_id') as project,
    coalesce(p.parts ->> 'ORIGINATOR', p.parts ->> 'ORIGINATOR_id',
        p.parts ->> 'ORG_CODE', p.parts ->> 'ORG_CODE_id') as originator,
    coalesce(p.parts ->> 'year', p.parts ->> 'fiscal-year',
        left(coalesce(p.parts ->> 'day', p.parts ->> 'month', p.parts ->> 'quarter',
            p.parts ->> 'week', p.parts ->> 'hour', p.parts ->> 'minute',
            p.parts ->> 'second'), 4)) as year,
    c.origin + c.step as first_value,
    case when c.taken > c.origin then c.taken end as value,
    c.step,
    c.ceiling
from counter c
left join series s on s.series_id = c.series_id
left join series_version v on v.series_id = s.series_id and v.version = s.active_version
cross join lateral (select replace(replace(replace(c.key,
    '\\', chr(1)), '\;', chr(2)), '\=', chr(3)) as escaped) e
cross join lateral (select case
    when e.escaped = '' then json '{}'
    when e.escaped ~ '^[^;=]+=[^;=]*(;[^;=]+=[^;=]*)*$' then
        cast('{"' || replace(replace(replace(replace(replace(replace(e.escaped,
            '"', '\"'), '=', '":"'), ';', '","'),
            chr(1), '\\'), chr(2), ';'), chr(3), '=') || '"}' as json)
    end as parts) p;

do $$ begin
if to_regclass('numbers') is null then
    create view numbers as
    select j.number,
        s.code as series,
        j.type_code as type,
        j.project,
        j.document_id,
        cast(j.document_date as date) as document_date,
        j.first_value as value,
        j.last_value,
        j.step,
        c.serial,
        c.key as counter_key,
        j.user_id,
        j.ip_address,
        timestamptz 'epoch' + j.issued_at_us * interval '1 microsecond' as issued_at,
        timestamptz 'epoch' + j.journaled_at_us * interval '1 microsecond' as journaled_at,
        j.path,
        'issued' as status,
        j.series_id as config_id,
        j.version as config_version,
        cast(v.definition as json) ->> 'template' as template,
        j.context,
        j.idempotency_key,
        j.retry_count,
        cast(encode(j.allocation_id, 'hex') as uuid) as allocation_id,
        j.counter_id,
        j.issued_at_us
    from journal_row j
    left join counter c on c.counter_id = j.counter_id
    left join series s on s.series_id = j.series_id
    left join series_version v on v.series_id = j.series_id and v.version = j.version
    where j.counter_id <> 0 and j.number is not null;
end if;

if to_regclass('document_sequence') is null then
    create view document_sequence as
    select c.parts ->> 'type' as sequence_type,
        cast(c.parts ->> 'day' as date) as sequence_date,
        c.value as current_no
    from counter_row c
    where c.value is not null and (c.parts ->> 'type') is not null
        and (c.parts ->> 'day') is not null
        and (select count(*) from json_object_keys(c.parts)) = 2;
end if;

if to_regclass('com_no_serial') is null then
    -- The outline of a number with one serial and nothing else that follows from it: how many bytes
    -- of literal text stand before and after the value.
    create view com_no_serial as
    select cast(c.counter_id as text) as id,
        cast(c.config_id as text) as rule_id,
        case when newest.outline ~ '^[0-9]*\{0[^{}]*\}[0-9]*$' then
            replace(convert_from(substring(convert_to(newest.number, 'UTF8') for
                cast('0' || split_part(newest.outline, '{', 1) as integer)), 'UTF8'), '%', '%%')
            || '%s' ||
            replace(convert_from(substring(convert_to(newest.number, 'UTF8') from
                octet_length(newest.number) + 1 -
                cast('0' || split_part(newest.outline, '}', 2) as integer)), 'UTF8'), '%', '%%')
        end as rule_format,
        c.value as serial_no,
        timestamptz 'epoch' + oldest.issued_at_us * interval '1 microsecond' as create_time,
        timestamptz 'epoch' + newest.issued_at_us * interval '1 microsecond' as update_time,
        case when c.active then 2 else 1 end as is_deleted
    from counter_row c
    left join lateral (select j.number, j.outline, j.issued_at_us from journal j
        where j.counter_id = c.counter_id order by j.first_value desc limit 1) newest on true
    left join lateral (select j.issued_at_us from journal j
        where j.counter_id = c.counter_id order by j.first_value limit 1) oldest on true
    where c.value is not null;
end if;

if to_regclass('document_number_counters') is null then
    create view document_number_counters as
    select c.project as project_id,
        c.originator as originator_organization_id,
        coalesce(c.parts ->> 'RECIPIENT', c.parts ->> 'RECIPIENT_id')
            as recipient_organization_id,
        c.type as correspondence_type_id,
        coalesce(c.parts ->> 'SUB_TYPE', c.parts ->> 'SUB_TYPE_id', '0') as sub_type_id,
        coalesce(c.parts ->> 'RFA_TYPE', c.parts ->> 'RFA_TYPE_id', '0') as rfa_type_id,
        coalesce(c.parts ->> 'DISCIPLINE', c.parts ->> 'DISCIPLINE_id',
            c.parts ->> 'DISCIPLINE_CODE', c.parts ->> 'DISCIPLINE_CODE_id', '0')
            as discipline_id,
        cast(c.parts ->> 'year' as integer) as current_year,
        c.value as last_number
    from counter_row c
    where c.value is not null and c.project is not null and c.type is not null
        and (c.year is null or (c.parts ->> 'year') is not null);
end if;

if to_regclass('document_number_audit') is null then
    create view document_number_audit as
    select j.document_id,
        j.number as generated_number,
        c.key as counter_key,
        cast(v.definition as json) ->> 'template' as template_used,
        j.user_id,
        j.ip_address,
        timestamptz 'epoch' + j.issued_at_us * interval '1 microsecond' as "timestamp",
        j.retry_count
    from journal_row j
    left join counter c on c.counter_id = j.counter_id
    left join series_version v on v.series_id = j.series_id and v.version = j.version
    where j.counter_id <> 0 and j.number is not null;
end if;
end $$;

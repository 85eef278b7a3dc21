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
    c.config_id,
    c.series,
    c.active,
    c.serial,
    c.counter_key,
    c.parts,
    coalesce(c.parts ->> 'type', c.parts ->> 'type_id') as type,
    coalesce(c.parts ->> 'project', c.parts ->> 'project_id') as project,
    coalesce(c.parts ->> 'ORIGINATOR', c.parts ->> 'ORIGINATOR_id',
        c.parts ->> 'ORG_CODE', c.parts ->> 'ORG_CODE_id') as originator,
    coalesce(c.parts ->> 'year', c.parts ->> 'fiscal-year',
        substr(coalesce(c.parts ->> 'day', c.parts ->> 'month', c.parts ->> 'quarter',
            c.parts ->> 'week', c.parts ->> 'hour', c.parts ->> 'minute',
            c.parts ->> 'second'), 1, 4)) as year,
    c.first_value,
    c.value,
    c.step,
    c.ceiling
from (select o.counter_id, o.config_id, o.series, o.active, o.serial, o.counter_key,
        case when json_valid(o.parts) then o.parts end as parts,
        o.first_value, o.value, o.step, o.ceiling
    from (select r.counter_id,
            r.series_id as config_id,
            s.code as series,
            v.active = 1 as active,
            r.serial,
            r.key as counter_key,
            case when r.key = '' then '{}' else '{"' ||
                replace(replace(replace(replace(replace(replace(
                replace(replace(replace(r.key,
                    '\\', char(1)), '\;', char(2)), '\=', char(3)),
                    '"', '\"'), '=', '":"'), ';', '","'),
                    char(1), '\\'), char(2), ';'), char(3), '=') || '"}' end as parts,
            r.origin + r.step as first_value,
            case when r.taken > r.origin then r.taken end as value,
            r.step,
            r.ceiling
        from counter r
        left join series s on s.series_id = r.series_id
        left join series_version v on v.series_id = s.series_id and v.version = s.active_version
    ) as o
) as c;

create view if not exists numbers as
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
    strftime('%Y-%m-%dT%H:%M:%fZ', j.issued_at_us / 1000000.0, 'unixepoch') as issued_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.journaled_at_us / 1000000.0, 'unixepoch') as journaled_at,
    j.path,
    'issued' as status,
    j.series_id as config_id,
    j.version as config_version,
    v.definition ->> 'template' as template,
    j.context,
    j.idempotency_key,
    j.retry_count,
    lower(substr(hex(j.allocation_id), 1, 8) || '-' || substr(hex(j.allocation_id), 9, 4)
        || '-' || substr(hex(j.allocation_id), 13, 4) || '-' || substr(hex(j.allocation_id), 17, 4)
        || '-' || substr(hex(j.allocation_id), 21)) as allocation_id,
    j.counter_id,
    j.issued_at_us
from journal_row j
left join counter c on c.counter_id = j.counter_id
left join series s on s.series_id = j.series_id
left join series_version v on v.series_id = j.series_id and v.version = j.version
where j.counter_id <> 0 and j.number is not null;

create view if not exists document_sequence as
select c.parts ->> 'type' as sequence_type,
    c.parts ->> 'day' as sequence_date,
    c.value as current_no
from counter_row c
where c.value is not null and (c.parts ->> 'type') is not null
    and (c.parts ->> 'day') is not null
    and (select count(*) from json_each(c.parts)) = 2;

-- The outline of a number with one serial and nothing else that follows from it: how many bytes of
-- literal text stand before and after the value.
create view if not exists com_no_serial as
select cast(c.counter_id as text) as id,
    cast(c.config_id as text) as rule_id,
    case when newest.outline like '%{0%}%'
        and length(replace(newest.outline, '{', '')) = length(newest.outline) - 1 then
        replace(cast(substr(cast(newest.number as blob), 1,
            cast(substr(newest.outline, 1, instr(newest.outline, '{') - 1) as integer))
            as text), '%', '%%')
        || '%s' ||
        replace(cast(substr(cast(newest.number as blob), length(cast(newest.number as blob)) + 1
            - cast(substr(newest.outline, instr(newest.outline, '}') + 1) as integer))
            as text), '%', '%%')
    end as rule_format,
    c.value as serial_no,
    (select strftime('%Y-%m-%dT%H:%M:%fZ', j.issued_at_us / 1000000.0, 'unixepoch')
        from journal j where j.counter_id = c.counter_id order by j.first_value limit 1)
        as create_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', newest.issued_at_us / 1000000.0, 'unixepoch') as update_time,
    case when c.active then 2 else 1 end as is_deleted
from counter_row c
left join journal newest on newest.counter_id = c.counter_id and newest.first_value =
    (select max(j.first_value) from journal j where j.counter_id = c.counter_id)
where c.value is not null;

create view if not exists document_number_counters as
select c.project as project_id,
    c.originator as originator_organization_id,
    coalesce(c.parts ->> 'RECIPIENT', c.parts ->> 'RECIPIENT_id') as recipient_organization_id,
    c.type as correspondence_type_id,
    coalesce(c.parts ->> 'SUB_TYPE', c.parts ->> 'SUB_TYPE_id', '0') as sub_type_id,
    coalesce(c.parts ->> 'RFA_TYPE', c.parts ->> 'RFA_TYPE_id', '0') as rfa_type_id,
    coalesce(c.parts ->> 'DISCIPLINE', c.parts ->> 'DISCIPLINE_id',
        c.parts ->> 'DISCIPLINE_CODE', c.parts ->> 'DISCIPLINE_CODE_id', '0') as discipline_id,
    cast(c.parts ->> 'year' as integer) as current_year,
    c.value as last_number
from counter_row c
where c.value is not null and c.project is not null and c.type is not null
    and (c.year is null or (c.parts ->> 'year') is not null);

create view if not exists document_number_audit as
select j.document_id,
    j.number as generated_number,
    c.key as counter_key,
    v.definition ->> 'template' as template_used,
    j.user_id,
    j.ip_address,
    strftime('%Y-%m-%dT%H:%M:%fZ', j.issued_at_us / 1000000.0, 'unixepoch') as timestamp,
    j.retry_count
from journal_row j
left join counter c on c.counter_id = j.counter_id
left join series_version v on v.series_id = j.series_id and v.version = j.version
where j.counter_id <> 0 and j.number is not null;

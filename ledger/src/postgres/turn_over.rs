//! Turns rows of the journal over that an earlier version wrote: from columns of their own to what
//! they have in common with others. Changes how a row is written, never what it says.

use sqlx::postgres::PgConnection;

use crate::LedgerError;

/// The rows of this slice: the next ones. Nobody else turns rows over, and nobody writes such rows
/// any more, so each statement of a transaction means the same ones.
macro_rules! slice {
    () => {
        "with slice as materialized (select counter_id, first_value, series_id, version, \
         type_code, project, user_id, ip_address, partition_id, epoch, node_id, journaled_at_us \
         from journal where batch_id is null order by counter_id, first_value limit $1) "
    };
}

/// Turns at most so many rows over; how many it did. None where another process is at it.
pub(super) async fn turn_over(conn: &mut PgConnection, rows_max: u32) -> Result<u64, LedgerError> {
    let is_alone: bool = sqlx::query_scalar(
        "select pg_try_advisory_xact_lock(hashtextextended(\
         'numerator turn over ' || coalesce(current_schema(), ''), 0))",
    )
    .fetch_one(&mut *conn)
    .await?;
    if !is_alone {
        return Ok(0);
    }
    for statement in [
        concat!(
            slice!(),
            "insert into journal_name (name) select name from (\
             select user_id as name from slice union select ip_address from slice) as w \
             where name is not null and not exists \
             (select 1 from journal_name n where n.name = w.name) \
             order by name collate \"C\""
        ),
        concat!(
            slice!(),
            "insert into journal_kind (series_id, version, type_code, project) \
             select distinct series_id, version, type_code, project from slice w \
             where not exists (select 1 from journal_kind k where k.series_id = w.series_id \
             and k.version = w.version and k.type_code = w.type_code \
             and k.project is not distinct from w.project) \
             order by series_id, version, type_code, project"
        ),
    ] {
        sqlx::query(statement).bind(i64::from(rows_max)).execute(&mut *conn).await?;
    }
    let turned = sqlx::query(concat!(
        slice!(),
        // Least ids are sought as in `lines`.
        ", batch as (insert into journal_batch (partition_id, epoch, node_id, journaled_at_us) \
         select distinct partition_id, epoch, node_id, journaled_at_us from slice \
         order by journaled_at_us \
         returning batch_id, partition_id, epoch, node_id, journaled_at_us) \
         update journal j set batch_id = b.batch_id, \
           kind_id = (select min(k.kind_id + 0) from journal_kind k \
             where k.series_id = j.series_id and k.version = j.version \
             and k.type_code = j.type_code and k.project is not distinct from j.project), \
           user_name_id = (select min(name_id + 0) from journal_name where name = j.user_id), \
           address_name_id = (select min(name_id + 0) from journal_name \
             where name = j.ip_address), \
           document_day = j.document_date::date, \
           digest = case when j.payload_digest ~ '^([0-9a-f]{2})+$' \
             then decode(j.payload_digest, 'hex') end, \
           last_value = nullif(j.last_value, j.first_value), step = nullif(j.step, 1), \
           retry_count = nullif(j.retry_count, 0), path = nullif(j.path, 'redis'), \
           series_id = null, version = null, type_code = null, project = null, \
           document_date = null, user_id = null, ip_address = null, payload_digest = null, \
           partition_id = null, epoch = null, node_id = null, journaled_at_us = null \
         from slice s \
         join batch b on b.partition_id = s.partition_id and b.epoch = s.epoch \
           and b.node_id = s.node_id and b.journaled_at_us = s.journaled_at_us \
         where j.counter_id = s.counter_id and j.first_value = s.first_value"
    ))
    .bind(i64::from(rows_max))
    .execute(conn)
    .await?;
    Ok(turned.rows_affected())
}

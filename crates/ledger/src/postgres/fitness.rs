//! The tables, keys and rights that records need, as a session of PostgreSQL has them.

use sqlx::PgExecutor;
use sqlx_macros::FromRow;

use crate::fitness::{NEEDED, Present, lacks};
use crate::{Lack, LedgerError};

/// The sequence from which ids of batches are drawn by name.
const SEQUENCE: &str = "journal_batch_batch_id_seq";

/// A right to columns of a table is one to it: no statement names others.
const PRESENT: &str = "
    select w.name,
      concat_ws(' ',
        case when has_any_column_privilege(w.oid, 'select') then 'select' end,
        case when has_any_column_privilege(w.oid, 'insert') then 'insert' end,
        case when has_any_column_privilege(w.oid, 'update') then 'update' end,
        case when has_table_privilege(w.oid, 'delete') then 'delete' end) as rights,
      coalesce((select string_agg(a.attname, ' ') from pg_attribute a
        where a.attrelid = w.oid and a.attnum > 0 and not a.attisdropped), '') as columns,
      coalesce((select string_agg((select string_agg(a.attname, ',' order by k.place)
          from unnest(i.indkey::smallint[]) with ordinality as k (attnum, place)
          join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum), ' ')
        from pg_index i where i.indrelid = w.oid and i.indisunique and i.indisvalid
        and i.indpred is null), '') as keys,
      case when s.oid is null then false else has_sequence_privilege(s.oid, 'usage') end as draws
    from (select n.name, c.oid from unnest($1::text[]) as n (name)
      join pg_class c on c.relname = n.name and c.relkind in ('r', 'p')
      join pg_namespace p on p.oid = c.relnamespace and p.nspname = current_schema()) as w
    left join (select c.oid from pg_class c join pg_namespace p on p.oid = c.relnamespace
      and p.nspname = current_schema() where c.relname = $2) as s on true";

/// A table, and whether the sequence may be drawn from.
#[derive(FromRow)]
struct PresentRow {
    #[sqlx(flatten)]
    table: Present,
    draws: bool,
}

/// The missing requirements.
pub(super) async fn missing(connection: impl PgExecutor<'_>) -> Result<Vec<Lack>, LedgerError> {
    let names: Vec<&str> = NEEDED.iter().map(|needed| needed.table).collect();
    let rows = sqlx::query_as(PRESENT).bind(names).bind(SEQUENCE).fetch_all(connection).await?;
    let (mut present, mut draws) = (Vec::with_capacity(rows.len()), false);
    for PresentRow { table, draws: may_draw } in rows {
        draws = may_draw;
        present.push(table);
    }
    let mut lacks = lacks(&present, true);
    if !draws && !present.is_empty() {
        lacks.push(Lack::Right { table: SEQUENCE.into(), right: "usage".into() });
    }
    Ok(lacks)
}

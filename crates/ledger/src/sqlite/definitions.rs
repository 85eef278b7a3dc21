//! The definitions of a SQLite schema that the record depends on.

use sqlx::sqlite::SqliteConnection;

use crate::LedgerError;
use crate::definitions::TABLES;

/// Names and texts: the schema's own, and the columns of each unique key. The key of numbers has no
/// own name here.
const DEFINITIONS: &str = r#"
    select type || ' ' || name || case type when 'trigger' then ' of ' || tbl_name else '' end,
        sql, type, tbl_name
      from sqlite_schema where type in ('table', 'trigger', 'view')
    union all select 'key ' || case when l.origin = 'c' then l.name
          when k.columns = 'number,scope' then 'journal_number_once' else k.columns end
          || ' of ' || t.name,
        k.columns || ' ' || l.partial, 'key', t.name
      from sqlite_schema t join pragma_index_list(t.name) l on l."unique" = 1
      join (select o.name as own, (select group_concat(coalesce(i.name, '?'), ',')
          from pragma_index_info(o.name) i) as columns
        from (select l2.name from sqlite_schema t2 join pragma_index_list(t2.name) l2
          where t2.type = 'table') o) k on k.own = l.name
      where t.type = 'table'"#;

/// See [`crate::dialect::Bulk::definitions`].
pub(super) async fn read(
    conn: &mut SqliteConnection,
) -> Result<Vec<(String, String)>, LedgerError> {
    let found: Vec<(String, String, String, String)> =
        sqlx::query_as(DEFINITIONS).fetch_all(conn).await?;
    let is_own = |kind: &str, of: &str| match kind {
        "view" => of == "journal_row",
        _ => TABLES.contains(&of),
    };
    let own = found.into_iter().filter(|(_, _, kind, of)| is_own(kind, of));
    Ok(own.map(|(name, text, ..)| (name, text.replace('"', ""))).collect())
}

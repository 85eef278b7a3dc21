//! The tables and keys that records need, as a file of SQLite has them. SQLite has no rights.

use sqlx::SqlitePool;

use crate::fitness::{Present, lacks};
use crate::{Lack, LedgerError};

/// The columns of a table, and of its unique keys those that are whole; the key that is the row's
/// own id has no index.
const PRESENT: &str = r#"
    select m.name, '' as rights,
      (select group_concat(x.name, ' ') from pragma_table_info(m.name) x) as columns,
      coalesce((select group_concat((select group_concat(k.name, ',')
        from pragma_index_info(i.name) k), ' ') from pragma_index_list(m.name) i
        where i."unique" = 1 and i.partial = 0), '') || ' ' ||
      coalesce((select x.name from pragma_table_info(m.name) x where x.pk = 1
        and not exists (select 1 from pragma_table_info(m.name) y where y.pk = 2)), '') as keys
    from sqlite_master m where m.type = 'table'"#;

/// The missing requirements.
pub(super) async fn missing(writer: &SqlitePool) -> Result<Vec<Lack>, LedgerError> {
    let present: Vec<Present> = sqlx::query_as(PRESENT).fetch_all(writer).await?;
    Ok(lacks(&present, false))
}

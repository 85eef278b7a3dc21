//! The definitions of a PostgreSQL schema that the record depends on, in a form that depends
//! neither on the name of the schema nor on the server's way of writing it.

use sqlx::postgres::PgConnection;

use crate::LedgerError;
use crate::definitions::TABLES;

/// The functions that keep rows as they are, and remove archived ones.
const FUNCTIONS: [&str; 3] = ["must_stay_as_it_is", "must_be_archived", "make_room"];

/// A constraint that a function names.
const DEFERRED: &str = "journal_is_not_removed";

/// Names and texts. Triggers show whether they are on, keys whether their index is valid, tables
/// what else shows rows of theirs or hides them, or loses them in a crash.
const DEFINITIONS: &str = "
    with own as (select oid, relname::text as name, relkind::text,
        relpersistence::text, relrowsecurity,
        (select count(*) from pg_rewrite r where r.ev_class = c.oid) as rules,
        exists (select from pg_inherits i where i.inhrelid = c.oid) as is_child,
        exists (select from pg_inherits i where i.inhparent = c.oid) as is_parent
      from pg_class c where c.relnamespace = current_schema()::regnamespace
        and c.relname::text = any ($1))
    select 'table ' || name, relkind || ' ' || relpersistence || ' ' || relrowsecurity || ' '
        || rules || ' ' || is_child || ' ' || is_parent from own
    union all select 'key ' || k.conname::text || ' of ' || o.name,
        pg_get_constraintdef(k.oid) || ' ' || i.indisunique || ' ' || i.indisvalid || ' '
        || i.indisready || ' ' || i.indimmediate
      from own o join pg_constraint k on k.conrelid = o.oid and k.contype in ('p', 'u')
      join pg_index i on i.indexrelid = k.conindid
    union all select 'trigger ' || t.tgname::text || ' of ' || o.name,
        pg_get_triggerdef(t.oid) || ' ' || (t.tgenabled in ('O', 'A'))
      from own o join pg_trigger t on t.tgrelid = o.oid and not t.tgisinternal
    union all select 'function ' || p.proname::text,
        p.prosrc || ' ' || p.prosecdef || ' ' || l.lanname::text
        || ' ' || coalesce(array_to_string(p.proconfig, ' '), '') || ' '
        || pg_get_function_arguments(p.oid) || ' ' || pg_get_function_result(p.oid)
      from pg_proc p join pg_language l on l.oid = p.prolang
      where p.pronamespace = current_schema()::regnamespace
        and p.proname::text = any ($2)
    union all select 'view journal_row', pg_get_viewdef(c.oid) from pg_class c
      where c.relnamespace = current_schema()::regnamespace and c.relname = 'journal_row'
        and c.relkind = 'v'";

/// See [`crate::dialect::Bulk::definitions`].
pub(super) async fn read(conn: &mut PgConnection) -> Result<Vec<(String, String)>, LedgerError> {
    let schema: Option<String> =
        sqlx::query_scalar("select current_schema()::text").fetch_one(&mut *conn).await?;
    let schema = schema.unwrap_or_default();
    let found: Vec<(String, String)> = sqlx::query_as(DEFINITIONS)
        .bind(TABLES.map(str::to_owned).to_vec())
        .bind(FUNCTIONS.map(str::to_owned).to_vec())
        .fetch_all(conn)
        .await?;
    let without = |text: &str| without_schema(&text.replace('"', ""), &schema);
    Ok(found.into_iter().map(|(name, text)| (name, without(&text))).collect())
}

/// A text without the name of the schema, where it qualifies an object of the ledger or is the
/// `search_path` of a function. Elsewhere the same name is something else.
fn without_schema(text: &str, schema: &str) -> String {
    let is_part = |one: char| one.is_alphanumeric() || one == '_' || one == '$';
    let is_own = |named: &str| {
        let end = named.find(|one| !is_part(one)).unwrap_or(named.len());
        let name = &named[..end];
        TABLES.contains(&name) || FUNCTIONS.contains(&name) || name == DEFERRED
    };
    let mut rest = text;
    let mut without = String::with_capacity(text.len());
    while let Some(at) = rest.find(schema).filter(|_| !schema.is_empty()) {
        let (before, behind) = rest.split_at(at);
        without.push_str(before);
        let behind = &behind[schema.len()..];
        let begins = !without.chars().next_back().is_some_and(is_part);
        let of = behind.strip_prefix('.').filter(|of| begins && is_own(of));
        let is_path = without.ends_with("search_path=") && behind.starts_with(',');
        rest = of.unwrap_or_else(|| {
            if !is_path {
                without.push_str(schema);
            }
            behind
        });
    }
    without + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_name_of_the_schema_is_left_out() {
        let without = |text| without_schema(text, "a");
        let text = "a.b, journals a.journal aa.journal a.make_room(a) a.journal_is_not_removed";
        let said = "a.b, journals journal aa.journal make_room(a) journal_is_not_removed";
        assert_eq!(without(text), said);
        assert_eq!(without_schema("journal.journal j", "journal"), "journal j");
        assert_eq!(without("search_path=a, pg_temp"), "search_path=, pg_temp");
        assert_eq!(without_schema("a.b", ""), "a.b");
    }
}

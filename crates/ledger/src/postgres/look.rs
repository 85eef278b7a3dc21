//! Looks at a PostgreSQL ledger: its server, its schema, and a pool whose sessions the server
//! itself keeps from writing.

use numerator_runtime::clock::SharedClock;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use sqlx_macros::FromRow;

use super::PgEngine;
use super::migrate::standing;
use super::open::{connect, require_durable_commits, session};
use crate::look::{EngineInspection, ServerFacts};
use crate::{LedgerError, LedgerSettings};

/// Keeps sessions from writing.
const READ_ONLY: (&str, &str) = ("default_transaction_read_only", "on");

/// The server's facts about itself. Every user sees the owners of others' sessions.
const FACTS: &str = "
    select current_setting('max_connections')::bigint as connections_max,
      current_setting('superuser_reserved_connections')::bigint
        + coalesce(nullif(current_setting('reserved_connections', true), ''), '0')::bigint
        as reserved,
      (select nullif(rolconnlimit, -1)::bigint from pg_roles where rolname = current_user)
        as of_user,
      (select nullif(datconnlimit, -1)::bigint from pg_database
        where datname = current_database()) as of_database,
      (select count(*) from pg_stat_activity where datid is not null and usename is not null
        and usename <> current_user) as others,
      pg_is_in_recovery() as is_standby,
      current_setting('default_transaction_read_only') = 'on' as is_read_only,
      current_schema() is not null as has_schema,
      coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create,
      exists (select 1 from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relname = 'journal' and n.nspname = current_schema()
        and pg_has_role(current_user, c.relowner, 'member')) as owns_record";

/// The columns of [`FACTS`].
#[derive(FromRow)]
struct FactsRow {
    connections_max: i64,
    reserved: i64,
    of_user: Option<i64>,
    of_database: Option<i64>,
    others: i64,
    is_standby: bool,
    is_read_only: bool,
    has_schema: bool,
    may_create: bool,
    owns_record: bool,
}

/// Looks at the database that `url` names.
///
/// # Errors
/// A server that cannot be reached or does not accept the connection, by its address.
pub(crate) async fn look(
    url: &str,
    settings: LedgerSettings,
    clock: SharedClock,
) -> Result<EngineInspection, LedgerError> {
    let options = session(url, settings)?;
    let mut first = connect(&options).await?;
    let server = facts(&mut first).await;
    let refusal = require_durable_commits(&mut first).await.err();
    let schema = standing(&mut first).await;
    first.close().await?;
    let engine = PgEngine::new(options.options([READ_ONLY]), settings, clock);
    Ok(EngineInspection { engine: Box::new(engine), schema, refusal, server: Some(server) })
}

async fn facts(connection: &mut PgConnection) -> Result<ServerFacts, LedgerError> {
    let row: FactsRow = sqlx::query_as(FACTS).fetch_one(connection).await?;
    let count = |count: i64| u64::try_from(count).unwrap_or_default();
    Ok(ServerFacts {
        connections_max: count(row.connections_max),
        connections_reserved: count(row.reserved),
        connections_allowed: [row.of_user.map(count), row.of_database.map(count)],
        connections_of_others: count(row.others),
        is_standby: row.is_standby,
        is_read_only: row.is_read_only,
        has_schema: row.has_schema,
        may_create: row.may_create,
        owns_record: row.owns_record,
    })
}

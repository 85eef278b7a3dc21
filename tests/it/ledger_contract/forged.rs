//! A database that is changed past the ledger, and then restored: rows from copies, and what the
//! schema has from its definition.

use std::str::FromStr as _;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, PgPool};
use tokio::sync::Mutex;

use super::world::World;

/// The names of copies of tables.
pub(super) const KEPT: &str = "kept_";

/// PostgreSQL's definitions of the schema's objects: statements that recreate them, whether they
/// exist or not.
const OBJECTS: &str = "\
    select 'alter table ' || conrelid::regclass || ' drop constraint if exists ' || conname \
      || ' cascade; alter table ' || conrelid::regclass || ' add constraint ' || conname || ' ' \
      || pg_get_constraintdef(oid) \
    from pg_constraint where conrelid = 'journal'::regclass and contype in ('u', 'p', 'c') \
    union all \
    select 'create or replace view journal_row as ' || pg_get_viewdef('journal_row'::regclass) \
    union all \
    select pg_get_functiondef(oid) || '; alter function ' || oid::regprocedure || \
      case when prosecdef then ' security definer' else ' security invoker' end \
    from pg_proc where pronamespace = current_schema()::regnamespace \
    union all \
    select 'drop trigger if exists ' || tgname || ' on ' || tgrelid::regclass || '; ' \
      || pg_get_triggerdef(oid) from pg_trigger t where not tgisinternal";

/// Removes PostgreSQL's own additions.
const AWAY: &str = "drop table if exists more_rows; drop rule if exists hides on journal; \
                    alter table journal disable row level security";

/// The pristine database.
pub(super) struct Forge {
    by: By,
    objects: Vec<String>,
}

enum By {
    Postgres(PgPool),
    Sqlite(Mutex<SqliteConnection>),
}

/// Runs statements on a SQLite file as a user who has removed the triggers of their tables, and has
/// restored them since.
pub(super) async fn on_sqlite(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut conn = connect(url).await?;
    forge(&mut conn, sql).await?;
    conn.close().await
}

async fn connect(url: &str) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::from_str(url)?.foreign_keys(false);
    SqliteConnection::connect_with(&options).await
}

async fn forge(conn: &mut SqliteConnection, sql: &str) -> Result<(), sqlx::Error> {
    let all = "select name, sql from sqlite_schema where type = 'trigger' \
               and not instr($1, 'trigger') and instr($1, tbl_name)";
    let triggers: Vec<(String, String)> =
        sqlx::query_as(all).bind(sql).fetch_all(&mut *conn).await?;
    let mut whole = String::from("begin immediate; ");
    for (name, _) in &triggers {
        whole += &format!("drop trigger {name}; ");
    }
    whole += &format!("{sql}; ");
    for (_, text) in &triggers {
        whole += &format!("{text}; ");
    }
    whole += "commit";
    let done = sqlx::raw_sql(AssertSqlSafe(whole)).execute(&mut *conn).await;
    if done.is_err() {
        sqlx::raw_sql("rollback").execute(conn).await.ok();
    }
    done.map(drop)
}

impl Forge {
    /// Keeps copies of these tables.
    pub(super) async fn keep(world: &World, tables: &[String]) -> Self {
        let by = match world.ledger.engine() {
            "sqlite" => By::Sqlite(Mutex::new(connect(&world.url).await.unwrap())),
            _ => By::Postgres(PgPool::connect(&world.url).await.unwrap()),
        };
        let mut forge = Forge { by, objects: Vec::new() };
        let copy = |table: &String| format!("create table {KEPT}{table} as select * from {table}");
        let copies: Vec<String> = tables.iter().map(copy).collect();
        forge.run(&copies.join("; ")).await.unwrap();
        forge.objects = match &forge.by {
            By::Sqlite(conn) => {
                let all = "select case type when 'view' then 'drop view if exists ' || name \
                           || '; ' || sql when 'index' then 'drop index if exists ' || name \
                           || '; ' || sql else 'drop trigger if exists ' || name || '; ' || sql \
                           end from sqlite_schema where sql is not null and (type = 'trigger' \
                           or name in ('journal_row', 'journal_value_once'))";
                sqlx::query_scalar(all).fetch_all(&mut *conn.lock().await).await.unwrap()
            }
            By::Postgres(pool) => sqlx::query_scalar(OBJECTS).fetch_all(pool).await.unwrap(),
        };
        forge
    }

    /// Does something that the ledger refuses.
    pub(super) async fn run(&self, sql: &str) -> Result<(), sqlx::Error> {
        match &self.by {
            By::Sqlite(conn) => forge(&mut *conn.lock().await, sql).await,
            By::Postgres(pool) => {
                let sql = AssertSqlSafe(testkit::forge::postgres(sql));
                sqlx::raw_sql(sql).execute(pool).await.map(drop)
            }
        }
    }

    /// Whether a table has the rows of its copy.
    pub(super) async fn is_unchanged(&self, table: &str) -> bool {
        let other =
            format!("select 1 from (select * from {table} except select * from {KEPT}{table}) d");
        let other = AssertSqlSafe(other);
        match &self.by {
            By::Sqlite(conn) => {
                let other = sqlx::query(other).fetch_optional(&mut *conn.lock().await).await;
                other.unwrap().is_none()
            }
            By::Postgres(pool) => sqlx::query(other).fetch_optional(pool).await.unwrap().is_none(),
        }
    }

    /// Restores the rows of a table.
    pub(super) async fn put_rows_back(&self, tables: &[String]) {
        let own = match self.by {
            By::Sqlite(_) => "",
            By::Postgres(_) => "overriding system value",
        };
        let one = |table: &String| {
            format!("delete from {table}; insert into {table} {own} select * from {KEPT}{table}")
        };
        let all: Vec<String> = tables.iter().map(one).collect();
        self.run(&all.join("; ")).await.unwrap();
    }

    /// Restores what the schema has.
    pub(super) async fn put_objects_back(&self) {
        let mut all = self.objects.join("; ");
        if matches!(self.by, By::Postgres(_)) {
            all = format!("{AWAY}; {all}");
        }
        self.run(&all).await.unwrap();
    }
}

//! Shared queries as PostgreSQL takes them.

use async_trait::async_trait;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::query::Query;
use sqlx::{Arguments as _, AssertSqlSafe, Error, Postgres};

use crate::bound::Value;
use crate::dialect::Runs;
use crate::query::{Done, Row, RowLock, SqlQuery};

#[async_trait]
impl Runs for PgConnection {
    async fn run(&mut self, query: SqlQuery<'_>) -> Result<Done, Error> {
        Ok(Done(written(&query)?.execute(self).await?.rows_affected()))
    }

    async fn all(&mut self, query: SqlQuery<'_>) -> Result<Vec<Row>, Error> {
        let rows = written(&query)?.fetch_all(self).await?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    async fn first(&mut self, query: SqlQuery<'_>) -> Result<Option<Row>, Error> {
        Ok(written(&query)?.fetch_optional(self).await?.map(Row::Postgres))
    }
}

fn written(query: &SqlQuery<'_>) -> Result<Query<'static, Postgres, PgArguments>, Error> {
    let mut bound = PgArguments::default();
    query.values().iter().try_for_each(|value| bind(&mut bound, value)).map_err(Error::Encode)?;
    let text = query.written(place, lock);
    Ok(sqlx::query_with(AssertSqlSafe(text), bound).persistent(query.is_kept()))
}

/// One text however many values a condition names, so that the query is planned once.
fn place(number: usize, value: &Value<'_>) -> String {
    match value {
        Value::AmongLongs(_) | Value::AmongBytes(_) => format!(" = any (${number})"),
        _ => format!("${number}"),
    }
}

fn lock(lock: RowLock) -> &'static str {
    match lock {
        RowLock::Update => " for update",
        RowLock::Free => " for update skip locked",
        RowLock::Share => " for share",
    }
}

fn bind(bound: &mut PgArguments, value: &Value<'_>) -> Result<(), BoxDynError> {
    match value {
        Value::Bool(value) => bound.add(value),
        Value::Int(value) => bound.add(value),
        Value::Long(value) => bound.add(value),
        Value::Text(value) => bound.add(value.as_deref()),
        Value::Bytes(value) => bound.add(value.as_deref()),
        Value::AmongLongs(values) => bound.add(values),
        Value::AmongBytes(values) => bound.add(values),
    }
}

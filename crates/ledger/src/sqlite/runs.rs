//! Shared queries as SQLite takes them.

use async_trait::async_trait;
use sqlx::error::BoxDynError;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Error, Sqlite};

use crate::bound::Value;
use crate::dialect::Runs;
use crate::query::{Done, Row, SqlQuery};

#[async_trait]
impl Runs for SqliteConnection {
    async fn run(&mut self, query: SqlQuery<'_>) -> Result<Done, Error> {
        Ok(Done(written(&query)?.execute(self).await?.rows_affected()))
    }

    async fn all(&mut self, query: SqlQuery<'_>) -> Result<Vec<Row>, Error> {
        let rows = written(&query)?.fetch_all(self).await?;
        Ok(rows.into_iter().map(Row::Sqlite).collect())
    }

    async fn first(&mut self, query: SqlQuery<'_>) -> Result<Option<Row>, Error> {
        Ok(written(&query)?.fetch_optional(self).await?.map(Row::Sqlite))
    }
}

fn written(query: &SqlQuery<'_>) -> Result<Query<'static, Sqlite, SqliteArguments>, Error> {
    let values = query.values();
    let mut bound = SqliteArguments::default();
    values.iter().try_for_each(|value| bind(&mut bound, value)).map_err(Error::Encode)?;
    // Each number of values in a condition makes another text.
    let is_among = |value| matches!(value, &Value::AmongLongs(_) | &Value::AmongBytes(_));
    let is_kept = query.is_kept() && !values.iter().any(is_among);
    // Nothing locks rows: the transaction is the only writer.
    let text = query.written(place, |_| "");
    Ok(sqlx::query_with(AssertSqlSafe(text), bound).persistent(is_kept))
}

fn place(_number: usize, value: &Value<'_>) -> String {
    let count = match value {
        Value::AmongLongs(values) => values.len(),
        Value::AmongBytes(values) => values.len(),
        _ => return "?".to_owned(),
    };
    format!(" in ({})", vec!["?"; count].join(", "))
}

fn bind(bound: &mut SqliteArguments, value: &Value<'_>) -> Result<(), BoxDynError> {
    match value {
        Value::Bool(value) => bound.add(value),
        Value::Int(value) => bound.add(value),
        Value::Long(value) => bound.add(value),
        Value::Text(value) => bound.add(value.as_deref()),
        Value::Bytes(value) => bound.add(value.as_deref()),
        Value::AmongLongs(values) => values.iter().try_for_each(|value| bound.add(value)),
        Value::AmongBytes(values) => values.iter().try_for_each(|value| bound.add(&value[..])),
    }
}

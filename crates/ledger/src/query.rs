//! Queries as values: a text with its bound values, written once and run by any engine.
//!
//! Owns no connection. The differences between engines are written as a query runs: the place
//! of a bound value, the test for one of many, the lock of rows.

use std::borrow::Cow;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, Error, FromRow, Postgres, Row as _, Sqlite, Type};

use crate::bound::{Among, Bind, Value};

/// The place of the next bound value in a text that was built: no text of ours has it otherwise.
const NEXT: char = '\u{1}';

/// The lock of a select on the rows that it returns, until the transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowLock {
    /// No other transaction changes or locks them.
    Update,
    /// The same; rows that another transaction has locked are left out.
    Free,
    /// No other transaction changes them.
    Share,
}

/// A text with its bound values.
#[derive(Clone, Debug)]
pub(crate) struct SqlQuery<'q> {
    text: Cow<'static, str>,
    values: Vec<Value<'q>>,
    lock: Option<RowLock>,
    is_kept: bool,
}

/// A query whose text is known: `$1` is the first bound value.
pub(crate) fn query<'q>(text: &'static str) -> SqlQuery<'q> {
    SqlQuery { text: Cow::Borrowed(text), values: Vec::new(), lock: None, is_kept: true }
}

/// The same for one whose rows are read as a type.
pub(crate) fn query_as<'q, T: for<'r> Columns<'r>>(text: &'static str) -> QueryAs<'q, T> {
    query(text).typed()
}

/// The same for one of which only the first column is read.
pub(crate) fn query_scalar<'q, T: for<'r> Column<'r>>(text: &'static str) -> QueryAs<'q, T> {
    query(text).scalar()
}

impl<'q> SqlQuery<'q> {
    /// Binds the next value.
    pub(crate) fn bind(mut self, value: impl Bind<'q>) -> Self {
        self.values.push(value.value());
        self
    }

    /// Locks the rows that the select returns until the transaction ends.
    pub(crate) fn for_update(self) -> Self {
        SqlQuery { lock: Some(RowLock::Update), ..self }
    }

    /// Locks the rows that the select returns, and leaves out those that others have locked.
    pub(crate) fn for_update_of_free(self) -> Self {
        SqlQuery { lock: Some(RowLock::Free), ..self }
    }

    /// Keeps others from changing the rows that the select returns.
    pub(crate) fn for_share(self) -> Self {
        SqlQuery { lock: Some(RowLock::Share), ..self }
    }

    /// Its text is seldom the same again: it is not kept prepared.
    pub(crate) fn once(self) -> Self {
        SqlQuery { is_kept: false, ..self }
    }

    /// The same for rows that are read as a type.
    pub(crate) fn typed<T: for<'r> Columns<'r>>(self) -> QueryAs<'q, T> {
        QueryAs { query: self, read: |row| row.decode() }
    }

    /// The same for its first column only.
    pub(crate) fn scalar<T: for<'r> Column<'r>>(self) -> QueryAs<'q, T> {
        QueryAs { query: self, read: |row| row.first() }
    }

    /// The same query behind a text of ours, not kept prepared.
    #[cfg(test)]
    pub(crate) fn behind(&self, text: &str) -> Self {
        let text = Cow::Owned(text.to_owned() + &self.text);
        SqlQuery { text, is_kept: false, ..self.clone() }
    }

    /// Its text as it was built.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The bound values, in order.
    pub(crate) fn values(&self) -> &[Value<'q>] {
        &self.values
    }

    /// Whether its text is the same the next time, except for the number of values in conditions.
    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Its text with all that an engine writes: `place` a bound value by its number from 1 on,
    /// `lock` the end of a select that locks.
    pub(crate) fn written(
        &self,
        place: impl Fn(usize, &Value<'_>) -> String,
        lock: impl Fn(RowLock) -> &'static str,
    ) -> Cow<'static, str> {
        let mut parts = self.text.split(NEXT);
        let first = parts.next().unwrap_or_default();
        let text = if first.len() == self.text.len() {
            self.text.clone()
        } else {
            let mut built = first.to_owned();
            for (number, (value, part)) in (1..).zip(self.values.iter().zip(parts)) {
                built.push_str(&place(number, value));
                built.push_str(part);
            }
            Cow::Owned(built)
        };
        match self.lock.map(lock) {
            None | Some("") => text,
            Some(lock) => Cow::Owned(text.into_owned() + lock),
        }
    }
}

/// A query whose rows, or their first columns alone, are read as a type.
#[derive(Clone, Debug)]
pub(crate) struct QueryAs<'q, T> {
    pub(crate) query: SqlQuery<'q>,
    pub(crate) read: fn(&Row) -> Result<T, Error>,
}

impl<'q, T> QueryAs<'q, T> {
    /// Binds the next value.
    pub(crate) fn bind(self, value: impl Bind<'q>) -> Self {
        QueryAs { query: self.query.bind(value), ..self }
    }

    /// Locks the rows that the select returns until the transaction ends.
    pub(crate) fn for_update(self) -> Self {
        QueryAs { query: self.query.for_update(), ..self }
    }

    /// Keeps others from changing the rows that the select returns.
    pub(crate) fn for_share(self) -> Self {
        QueryAs { query: self.query.for_share(), ..self }
    }
}

/// The number of rows that a query changed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done(pub(crate) u64);

impl Done {
    /// Rows written.
    pub(crate) fn rows_affected(self) -> u64 {
        self.0
    }
}

/// A row as an engine's driver has it.
#[derive(Debug)]
pub(crate) enum Row {
    /// Of PostgreSQL.
    Postgres(PgRow),
    /// Of SQLite.
    Sqlite(SqliteRow),
}

/// Types that can be read from a column, on any engine.
pub(crate) trait Column<'r>:
    Decode<'r, Postgres> + Type<Postgres> + Decode<'r, Sqlite> + Type<Sqlite>
{
}

impl<'r, T> Column<'r> for T where
    T: Decode<'r, Postgres> + Type<Postgres> + Decode<'r, Sqlite> + Type<Sqlite>
{
}

/// Types that can be read from a row, on any engine: those with a derived `FromRow` by the names of
/// the columns, tuples by their order.
pub(crate) trait Columns<'r>: FromRow<'r, PgRow> + FromRow<'r, SqliteRow> {}

impl<'r, T> Columns<'r> for T where T: FromRow<'r, PgRow> + FromRow<'r, SqliteRow> {}

impl Row {
    /// A column by its name.
    pub(crate) fn try_get<'r, T: Column<'r>>(&'r self, column: &str) -> Result<T, Error> {
        match self {
            Row::Postgres(row) => row.try_get(column),
            Row::Sqlite(row) => row.try_get(column),
        }
    }

    /// The first column.
    pub(crate) fn first<'r, T: Column<'r>>(&'r self) -> Result<T, Error> {
        match self {
            Row::Postgres(row) => row.try_get(0),
            Row::Sqlite(row) => row.try_get(0),
        }
    }

    /// The columns of a type.
    pub(crate) fn decode<'r, T: Columns<'r>>(&'r self) -> Result<T, Error> {
        match self {
            Row::Postgres(row) => T::from_row(row),
            Row::Sqlite(row) => T::from_row(row),
        }
    }
}

/// Builds a query whose text depends on the request.
#[derive(Clone, Debug)]
pub(crate) struct QueryBuilder<'q> {
    text: String,
    values: Vec<Value<'q>>,
}

impl<'q> QueryBuilder<'q> {
    /// One that begins so.
    pub(crate) fn new(text: &str) -> Self {
        QueryBuilder { text: text.to_owned(), values: Vec::new() }
    }

    /// Adds text of ours: never a caller's.
    pub(crate) fn push(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Adds a value.
    pub(crate) fn push_bind(&mut self, value: impl Bind<'q>) -> &mut Self {
        self.text.push(NEXT);
        self.values.push(value.value());
        self
    }

    /// Ends a condition on a column: its value is among these.
    pub(crate) fn push_among<T: Among>(&mut self, values: Vec<T>) -> &mut Self {
        self.text.push(NEXT);
        self.values.push(T::among(values));
        self
    }

    /// Adds `values` with a row for each of the items, as `write` binds it.
    pub(crate) fn push_values<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(BoundRow<'_, 'q>, T),
    ) -> &mut Self {
        self.push("values ");
        for (index, item) in items.into_iter().enumerate() {
            self.push(if index == 0 { "(" } else { ", (" });
            write(BoundRow { query: self, is_first: true }, item);
            self.push(")");
        }
        self
    }

    /// The query.
    pub(crate) fn build(self) -> SqlQuery<'q> {
        let QueryBuilder { text, values } = self;
        SqlQuery { text: Cow::Owned(text), values, lock: None, is_kept: true }
    }
}

/// A row of `values` that is being written.
pub(crate) struct BoundRow<'b, 'q> {
    query: &'b mut QueryBuilder<'q>,
    is_first: bool,
}

impl<'q> BoundRow<'_, 'q> {
    /// Adds a column.
    pub(crate) fn push_bind(&mut self, value: impl Bind<'q>) -> &mut Self {
        if !std::mem::take(&mut self.is_first) {
            self.query.push(", ");
        }
        self.query.push_bind(value);
        self
    }
}

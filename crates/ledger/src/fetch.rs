//! Running queries: on a connection, mostly in a transaction, or on any free one that reads.

use sqlx::Error;

use crate::LedgerError;
use crate::dialect::{Conn, Reader};
use crate::query::{Done, QueryAs, Row, SqlQuery};

/// What a query runs on.
pub(crate) enum On<'c> {
    /// A connection, mostly in a transaction.
    Conn(&'c mut Conn),
    /// A connection that reads, any free one.
    Reader(&'c Reader),
}

impl<'c> From<&'c mut Conn> for On<'c> {
    fn from(conn: &'c mut Conn) -> Self {
        On::Conn(conn)
    }
}

impl<'c> From<&'c Reader> for On<'c> {
    fn from(reader: &'c Reader) -> Self {
        On::Reader(reader)
    }
}

impl SqlQuery<'_> {
    /// Runs it.
    ///
    /// # Errors
    /// The driver's error, here and in all that follow.
    pub(crate) async fn execute<'c>(self, on: impl Into<On<'c>>) -> Result<Done, Error> {
        match on.into() {
            On::Conn(conn) => conn.run(self).await,
            On::Reader(reader) => reader.acquire().await?.run(self).await,
        }
    }

    /// All rows.
    pub(crate) async fn fetch_all<'c>(self, on: impl Into<On<'c>>) -> Result<Vec<Row>, Error> {
        match on.into() {
            On::Conn(conn) => self.fetch_all_by(conn).await,
            On::Reader(reader) => self.fetch_all_by(&mut *reader.acquire().await?).await,
        }
    }

    async fn fetch_all_by(self, conn: &mut Conn) -> Result<Vec<Row>, Error> {
        #[cfg(test)]
        crate::plans::note(conn, &self).await;
        conn.all(self).await
    }

    /// The first row, if any.
    pub(crate) async fn fetch_optional<'c>(
        self,
        on: impl Into<On<'c>>,
    ) -> Result<Option<Row>, Error> {
        match on.into() {
            On::Conn(conn) => self.fetch_first_by(conn).await,
            On::Reader(reader) => self.fetch_first_by(&mut *reader.acquire().await?).await,
        }
    }

    async fn fetch_first_by(self, conn: &mut Conn) -> Result<Option<Row>, Error> {
        #[cfg(test)]
        crate::plans::note(conn, &self).await;
        conn.first(self).await
    }

    /// The first row.
    pub(crate) async fn fetch_one<'c>(self, on: impl Into<On<'c>>) -> Result<Row, Error> {
        self.fetch_optional(on).await?.ok_or(Error::RowNotFound)
    }
}

impl<T> QueryAs<'_, T> {
    /// All rows.
    pub(crate) async fn fetch_all<'c>(self, on: impl Into<On<'c>>) -> Result<Vec<T>, Error> {
        self.query.fetch_all(on).await?.iter().map(self.read).collect()
    }

    /// The first row, if any.
    pub(crate) async fn fetch_optional<'c>(
        self,
        on: impl Into<On<'c>>,
    ) -> Result<Option<T>, Error> {
        self.query.fetch_optional(on).await?.as_ref().map(self.read).transpose()
    }

    /// The first row.
    pub(crate) async fn fetch_one<'c>(self, on: impl Into<On<'c>>) -> Result<T, Error> {
        (self.read)(&self.query.fetch_one(on).await?)
    }

    /// All rows, each converted.
    ///
    /// # Errors
    /// Those of the conversion as well, here and below.
    pub(crate) async fn fetch_all_into<'c, U: TryFrom<T, Error = LedgerError>>(
        self,
        on: impl Into<On<'c>>,
    ) -> Result<Vec<U>, LedgerError> {
        self.fetch_all(on).await?.into_iter().map(U::try_from).collect()
    }

    /// The first row, converted, if any.
    pub(crate) async fn fetch_optional_into<'c, U: TryFrom<T, Error = LedgerError>>(
        self,
        on: impl Into<On<'c>>,
    ) -> Result<Option<U>, LedgerError> {
        self.fetch_optional(on).await?.map(U::try_from).transpose()
    }
}

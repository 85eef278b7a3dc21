//! Where a look at counters begins that skips what was issued before a time. Looks only.

use std::collections::HashMap;

use crate::query::{QueryBuilder, query_as};
use crate::{LedgerError, Register};

impl Register<'_> {
    /// The first value of each counter that was issued at or after a time; of those alone that
    /// issued any.
    pub async fn first_values_since(self, from_us: i64) -> Result<HashMap<i64, i64>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let firsts: Vec<(i64, i64)> = query_as(
                "select counter_id, min(first_value) as first_value from journal
                 where issued_at_us >= $1 group by counter_id",
            )
            .bind(from_us)
            .fetch_all(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(firsts.into_iter().collect())
        })
        .await
    }

    /// The last value of a counter's row before a value; of its last row where none is named; none
    /// where it has no such row.
    pub async fn value_before(
        self,
        counter_id: i64,
        first: Option<i64>,
    ) -> Result<Option<i64>, LedgerError> {
        self.search(async |store| {
            let mut query =
                QueryBuilder::new("select last_value from journal_row where counter_id = ");
            query.push_bind(counter_id);
            if let Some(first) = first {
                query.push(" and first_value < ").push_bind(first);
            }
            query.push(" order by first_value desc limit 1");
            Ok(query.build().scalar().fetch_optional(&store.reader).await?)
        })
        .await
    }
}

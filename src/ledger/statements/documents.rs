//! What the ledger knows of documents. Reads and writes no epoch: a document's numbers are facts.

use async_trait::async_trait;

use super::lookup::{journal_row_of, select_rows};
use super::{Engine, Store};
use crate::ledger::patience::Patience;
use crate::ledger::{Documents, JournalRow, LedgerError, Position};

/// Most rows of a page.
const PAGE_MAX: u32 = 1_000;

#[async_trait]
impl Documents for Engine {
    async fn numbers_of(
        &self,
        document_id: &str,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        call!(self, store => numbers_of(&store, document_id, after, limit))
    }
}

async fn numbers_of(
    store: &Store,
    document_id: &str,
    after: Option<Position>,
    limit: u32,
) -> Result<Vec<JournalRow>, LedgerError> {
    let mut query = select_rows("journal");
    query.push(" where j.number is not null and j.document_id = ");
    query.push_bind(document_id.to_owned());
    if let Some(Position { issued_at_us, counter_id, value }) = after {
        query.push(" and (j.issued_at_us, j.counter_id, j.first_value) > (");
        query.push_bind(issued_at_us).push(", ").push_bind(counter_id).push(", ");
        query.push_bind(value).push(")");
    }
    query.push(" order by j.issued_at_us, j.counter_id, j.first_value limit ");
    query.push_bind(i64::from(limit.min(PAGE_MAX)));
    let rows = query.build().fetch_all(&store.reader).await?;
    rows.iter().map(journal_row_of).collect()
}

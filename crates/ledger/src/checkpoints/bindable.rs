//! The rows that checkpoints bind: batches, events, versions and series, the purpose of counters,
//! and what became of numbers. Judges only whether a proof is right. Each digest covers the whole
//! row, as far as it never changes.

use crate::calls::CALL;
use crate::query::{QueryBuilder, Row, query_scalar};
use crate::seal::RowDigest;
use crate::store::Store;
use crate::{Bindable, Bound, Checkpoints, LedgerError, MacCheck, OneIncarnation};

impl Checkpoints<'_> {
    /// Rows of a table with ids above one and up to another, in their order, at most `limit`: of
    /// one incarnation, or of the ledger's present one, whichever it is.
    pub async fn bindable(
        self,
        within: Option<OneIncarnation>,
        table: Bindable,
        (after, upto): (i64, i64),
        limit: u32,
    ) -> Result<Vec<Bound>, LedgerError> {
        self.call(CALL, async |store| {
            let id = id_of(table);
            let mut query = select(table);
            query.push(" where ").push(id).push(" > ").push_bind(after);
            query.push(" and ").push(id).push(" <= ").push_bind(upto);
            query.push(" order by ").push(id).push(" limit ").push_bind(i64::from(limit));
            bound_rows(store, within, table, query).await
        })
        .await
    }

    /// The highest id of a batch, 0 where there is none: of one incarnation, or of the ledger's
    /// present one, whichever it is.
    pub async fn last_batch(self, within: Option<OneIncarnation>) -> Result<i64, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_reading_in(within).await?;
            let highest = query_scalar("select coalesce(max(batch_id), 0) from journal_batch");
            let highest = highest.fetch_one(&mut *tx).await?;
            tx.commit().await?;
            Ok(highest)
        })
        .await
    }

    /// Rows of a table with one of these ids, in their order.
    pub async fn bindable_among(
        self,
        table: Bindable,
        ids: &[i64],
    ) -> Result<Vec<Bound>, LedgerError> {
        self.call(CALL, async |store| {
            let mut query = select(table);
            query.push(" where ").push(id_of(table)).push_among(ids.to_vec());
            query.push(" order by ").push(id_of(table));
            bound_rows(store, None, table, query).await
        })
        .await
    }
}

/// The id of a table's rows.
fn id_of(table: Bindable) -> &'static str {
    match table {
        Bindable::Batches => "batch_id",
        Bindable::Events => "event_id",
        Bindable::Versions => "series_version_id",
        Bindable::Counters => "counter_id",
        Bindable::Series => "series_id",
        Bindable::Life => "life_id",
    }
}

/// The beginning of a query for the rows of a table that are bound.
fn select<'q>(table: Bindable) -> QueryBuilder<'q> {
    QueryBuilder::new(match table {
        Bindable::Batches => {
            "select batch_id, partition_id, epoch, node_id, journaled_at_us, line_count, seal,
             proof from journal_batch"
        }
        Bindable::Events => {
            "select event_id, at_us, kind, partition_id, epoch, node_id, detail from event"
        }
        Bindable::Versions => {
            "select series_version_id, series_id, version, definition, saved_by, reason,
             saved_at_us, active, saved_with from series_version"
        }
        Bindable::Counters => "select counter_id, series_id, serial, key from counter",
        // A series that was removed has given up its code, and never had a counter.
        Bindable::Series => {
            "select series_id, code, case when removed_at_us is not null and not exists
             (select 1 from counter c where c.series_id = series.series_id)
             then 1 else 0 end as is_removed from series"
        }
        Bindable::Life => {
            "select life_id, act, at_us, counter_id, first_value, last_value, subject, other,
             number, document_id, user_id, ip_address, reason, detail, once from life"
        }
    })
}

async fn bound_rows(
    store: &Store,
    within: Option<OneIncarnation>,
    table: Bindable,
    query: QueryBuilder<'_>,
) -> Result<Vec<Bound>, LedgerError> {
    let mut tx = store.begin_reading_in(within).await?;
    let rows = query.build().fetch_all(&mut *tx).await?;
    tx.commit().await?;
    let bound = |row: &Row| match table {
        Bindable::Batches => bound_batch(store, row),
        Bindable::Events => bound_event(row),
        Bindable::Versions => bound_version(row),
        Bindable::Counters => bound_counter(row),
        Bindable::Series => bound_series(row),
        Bindable::Life => bound_act(row),
    };
    rows.iter().map(bound).collect()
}

/// A row without a proof.
fn plain(id: i64, digest: [u8; 32]) -> Bound {
    Bound { id, standing: MacCheck::Plain, digest }
}

fn bound_batch(store: &Store, row: &Row) -> Result<Bound, LedgerError> {
    let seal: Option<&[u8]> = row.try_get("seal")?;
    let proof: Option<&[u8]> = row.try_get("proof")?;
    let [partition, rows]: [Option<i32>; 2] =
        [row.try_get("partition_id")?, row.try_get("line_count")?];
    // A row's own count of its batch's rows is no witness: it is bound with the seal.
    let digest = RowDigest::of("journal batch row")
        .integer(partition.map(i64::from))
        .integer(row.try_get("epoch")?)
        .bytes(row.try_get("node_id")?)
        .integer(row.try_get("journaled_at_us")?)
        .integer(rows.map(i64::from))
        .bytes(seal)
        .bytes(proof)
        .end();
    // A proof of another length, or none, is not valid.
    let seal = seal.and_then(|seal| <[u8; 32]>::try_from(seal).ok()).unwrap_or([0; 32]);
    let standing = match (proof, store.mac_key()) {
        (Some(proof), Some(key)) if proof == key.prove(&seal) => MacCheck::Proven,
        (Some(_), Some(_)) => MacCheck::Forged,
        (Some(_), None) => MacCheck::Unknown,
        (None, _) => MacCheck::Unproven,
    };
    Ok(Bound { id: row.try_get("batch_id")?, standing, digest })
}

fn bound_event(row: &Row) -> Result<Bound, LedgerError> {
    let partition: Option<i32> = row.try_get("partition_id")?;
    let kind: &str = row.try_get("kind")?;
    let detail: &str = row.try_get("detail")?;
    let digest = RowDigest::of("event")
        .integer(row.try_get("at_us")?)
        .bytes(Some(kind.as_bytes()))
        .integer(partition.map(i64::from))
        .integer(row.try_get("epoch")?)
        .bytes(row.try_get("node_id")?)
        .bytes(Some(detail.as_bytes()))
        .end();
    Ok(plain(row.try_get("event_id")?, digest))
}

fn bound_version(row: &Row) -> Result<Bound, LedgerError> {
    let [version, active]: [i32; 2] = [row.try_get("version")?, row.try_get("active")?];
    let text = |column| row.try_get::<&str>(column).map(str::as_bytes);
    let digest = RowDigest::of("series_version row")
        .integer(row.try_get("series_id")?)
        .integer(Some(i64::from(version)))
        .bytes(Some(text("definition")?))
        .bytes(Some(text("saved_by")?))
        .bytes(Some(text("reason")?))
        .integer(row.try_get("saved_at_us")?)
        .integer(Some(i64::from(active)))
        .integer(row.try_get("saved_with")?)
        .end();
    Ok(plain(row.try_get("series_version_id")?, digest))
}

fn bound_counter(row: &Row) -> Result<Bound, LedgerError> {
    let text = |column| row.try_get::<&str>(column).map(str::as_bytes);
    let digest = RowDigest::of("counter")
        .integer(row.try_get("series_id")?)
        .bytes(Some(text("serial")?))
        .bytes(Some(text("key")?))
        .end();
    Ok(plain(row.try_get("counter_id")?, digest))
}

fn bound_series(row: &Row) -> Result<Bound, LedgerError> {
    let id: i64 = row.try_get("series_id")?;
    let code: &str = row.try_get("code")?;
    let is_removed = row.try_get::<i32>("is_removed")? == 1;
    let code = match code.strip_suffix(&format!("#{id}")) {
        Some(before) if is_removed => before,
        _ => code,
    };
    Ok(plain(id, RowDigest::of("series").bytes(Some(code.as_bytes())).end()))
}

fn bound_act(row: &Row) -> Result<Bound, LedgerError> {
    let text = |column| row.try_get::<Option<&str>>(column).map(|text| text.map(str::as_bytes));
    let digest = RowDigest::of("life")
        .bytes(text("act")?)
        .integer(row.try_get("at_us")?)
        .integer(row.try_get("counter_id")?)
        .integer(row.try_get("first_value")?)
        .integer(row.try_get("last_value")?)
        .bytes(row.try_get("subject")?)
        .bytes(row.try_get("other")?)
        .bytes(text("number")?)
        .bytes(text("document_id")?)
        .bytes(text("user_id")?)
        .bytes(text("ip_address")?)
        .bytes(text("reason")?)
        .bytes(text("detail")?)
        .bytes(text("once")?)
        .end();
    Ok(plain(row.try_get("life_id")?, digest))
}

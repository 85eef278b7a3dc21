//! Collisions, totals, events.

pub(crate) mod rows;

use std::collections::HashSet;

use numbering::TakenRange;
use sqlx_macros::FromRow;
use uuid::Uuid;

use crate::calls::noun;
use crate::columns::{
    bytes, from_json, ownership, read_node, read_uuid, signed, small, unsigned, unsigned_small,
};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::register::gaps::{RunRow, bounded};
use crate::store::commit;
use crate::{
    At, Collision, EVENT_KINDS, Event, EventFilter, EventPlace, Ledger, LedgerError, Register,
    Totals,
};

/// Allocations looked for in one statement.
const ALLOCATIONS_PER_SEARCH: usize = 500;

noun!(
    /// The events.
    Events,
    events
);

impl Register<'_> {
    /// Recorded collisions that are not acknowledged, newest first.
    pub async fn collisions(self, limit: u32) -> Result<Vec<Collision>, LedgerError> {
        self.read(async |reader| {
            query_as::<CollisionRow>(
                "select counter_id, first_value, last_value, allocation_id, other_allocation_id,
                 number,
                 noted_at_us from collision where acknowledged_at_us is null
                 order by collision_id desc limit $1",
            )
            .bind(bounded(limit))
            .fetch_all_into(reader)
            .await
        })
        .await
    }

    /// How many collisions are not acknowledged: cheap, for repeated calls.
    pub async fn collisions_count(self) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let count: i64 =
                query_scalar("select count(*) from collision where acknowledged_at_us is null")
                    .fetch_one(reader)
                    .await?;
            unsigned(count, "collisions")
        })
        .await
    }

    /// How many rows the journal, the gap register, the collisions and the rejected table hold.
    pub async fn totals(self) -> Result<Totals, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let counts: Counts = query_as(
                "select (select count(*) from journal) as journal, (select count(*) from gap) as
                 gaps,
                 (select count(*) from revision) as revisions",
            )
            .fetch_one(&mut *tx)
            .await?;
            let (collisions, acknowledged, rejected) = explained(&mut *tx).await?;
            tx.commit().await?;
            let Counts { journal, gaps, revisions } = counts;
            Ok(Totals {
                // Each revision has a row of the journal too, which is not a number.
                journal: unsigned(journal - revisions, "journal")?,
                revisions: unsigned(revisions, "revision")?,
                gaps: unsigned(gaps, "gaps")?,
                collisions,
                acknowledged,
                rejected,
                estimated: false,
            })
        })
        .await
    }
}

impl Events<'_> {
    /// Writes an event.
    pub async fn record(self, event: &Event) -> Result<(), LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin_unfenced().await?;
            insert_event(&mut *tx, event).await?;
            commit(tx).await
        })
        .await
    }

    /// Events, newest first.
    pub async fn list(self, limit: u32) -> Result<Vec<Event>, LedgerError> {
        let filter = EventFilter { limit, ..EventFilter::default() };
        let found = self.find(&filter).await?;
        Ok(found.into_iter().map(|(_, event)| event).collect())
    }

    /// Events that match, each with its place, newest first: those of one time by their rows.
    pub async fn find(self, filter: &EventFilter) -> Result<Vec<(EventPlace, Event)>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(
                "select event_id, at_us, kind, partition_id, epoch, node_id, detail from event
                 where at_us >= ",
            );
            query.push_bind(filter.from_us.unwrap_or(i64::MIN));
            // A place limits the index scan, like a time.
            let after_us = filter.after.map(|place| place.at_us.saturating_add(1));
            let until_us = filter.until_us.into_iter().chain(after_us).min();
            query.push(" and at_us < ").push_bind(until_us.unwrap_or(i64::MAX));
            if let Some(EventPlace { at_us, event_id }) = filter.after {
                query.push(" and (at_us, event_id) < (").push_bind(at_us).push(", ");
                query.push_bind(event_id).push(")");
            }
            if let Some(kind) = &filter.kind {
                query.push(" and kind = ").push_bind(kind.clone());
            }
            if let Some(series) = &filter.series {
                // In a text of JSON a quotation mark has a backslash: no other text is like this.
                let code = serde_json::Value::from(series.as_str());
                for (word, field) in [(" and (", "code"), (" or ", "series")] {
                    query.push(word).push("replace(detail, ");
                    query.push_bind(format!("\"{field}\":{code}")).push(", '') <> detail");
                }
                query.push(")");
            }
            query.push(" order by at_us desc, event_id desc limit ");
            query.push_bind(bounded(filter.limit));
            let rows: Vec<EventRow> = query.build().typed().fetch_all(reader).await?;
            let placed = |row: EventRow| {
                let place = EventPlace { at_us: row.at_us, event_id: row.event_id };
                Ok((place, row.try_into()?))
            };
            rows.into_iter().map(placed).collect()
        })
        .await
    }

    /// Events of one epoch of a partition, newest first, at most 100.
    pub async fn of(self, at: At) -> Result<Vec<Event>, LedgerError> {
        self.read(async |reader| {
            let (partition, epoch) = ownership(at)?;
            query_as::<EventRow>(
                "select event_id, at_us, kind, partition_id, epoch, node_id, detail from event
                 where partition_id = $1 and epoch = $2 order by event_id desc limit $3",
            )
            .bind(partition)
            .bind(epoch)
            .bind(bounded(0))
            .fetch_all_into(reader)
            .await
        })
        .await
    }
}

impl Ledger {
    /// Whether each allocation, named by its id and its first serial's range, is in the journal, in
    /// the rejected rows or in the collisions.
    pub async fn recorded(
        &self,
        allocations: &[(Uuid, TakenRange)],
    ) -> Result<Vec<bool>, LedgerError> {
        self.read(async |reader| {
            let mut found = HashSet::new();
            for part in allocations.chunks(ALLOCATIONS_PER_SEARCH) {
                let mut query = QueryBuilder::new("with asked (counter_id, first_value) as (");
                query.push_values(part, |mut row, (_, taken)| {
                    let first = i64::try_from(taken.range.first).unwrap_or(i64::MAX);
                    row.push_bind(taken.counter_id).push_bind(first);
                });
                query.push(")");
                for (index, table) in
                    ["journal", "journal_rejected", "collision"].into_iter().enumerate()
                {
                    query.push(if index == 0 { " " } else { " union all " });
                    query.push("select t.allocation_id from asked a join ").push(table);
                    query.push(
                        " t on t.counter_id = a.counter_id and t.first_value = a.first_value",
                    );
                }
                let ids: Vec<Vec<u8>> = query.build().once().scalar().fetch_all(reader).await?;
                found.extend(ids);
            }
            Ok(allocations.iter().map(|(id, _)| found.contains(id.as_bytes().as_slice())).collect())
        })
        .await
    }
}

/// Rows of tables.
#[derive(FromRow)]
struct Counts {
    journal: i64,
    gaps: i64,
    revisions: i64,
}

/// Collisions without an explanation and with one, and rejected rows without.
#[derive(FromRow)]
struct ExplainedCounts {
    collisions: i64,
    acknowledged: i64,
    rejected: i64,
}

/// How many collisions are not acknowledged, how many are, and how many rejected rows are not.
pub(crate) async fn explained(conn: &mut Conn) -> Result<(u64, u64, u64), LedgerError> {
    let counts: ExplainedCounts = query_as(
        "select (select count(*) from collision where acknowledged_at_us is null) as collisions,
         (select count(*) from collision where acknowledged_at_us is not null) as acknowledged,
         (select count(*) from journal_rejected where acknowledged_at_us is null) as rejected",
    )
    .fetch_one(conn)
    .await?;
    Ok((
        unsigned(counts.collisions, "collisions")?,
        unsigned(counts.acknowledged, "acknowledged")?,
        unsigned(counts.rejected, "rejected")?,
    ))
}

/// Writes an event in a transaction.
pub(crate) async fn insert_event(conn: &mut Conn, event: &Event) -> Result<(), LedgerError> {
    debug_assert!(EVENT_KINDS.contains(&&*event.kind), "EVENT_KINDS lacks {}", event.kind);
    query(
        "insert into event (at_us, kind, partition_id, epoch, node_id, detail)
         values ($1, $2, $3, $4, $5, $6)",
    )
    .bind(event.at_us)
    .bind(&event.kind)
    .bind(event.partition.map(|partition| small(partition, "partition")).transpose()?)
    .bind(event.epoch.map(|epoch| signed(epoch, "epoch")).transpose()?)
    .bind(event.node_id.as_ref().map(bytes))
    .bind(event.detail.to_string())
    .execute(conn)
    .await?;
    Ok(())
}

/// The columns of an event.
#[derive(FromRow)]
struct EventRow {
    event_id: i64,
    at_us: i64,
    kind: String,
    partition_id: Option<i32>,
    epoch: Option<i64>,
    node_id: Option<Vec<u8>>,
    detail: String,
}

impl TryFrom<EventRow> for Event {
    type Error = LedgerError;

    fn try_from(row: EventRow) -> Result<Self, LedgerError> {
        let partition = row.partition_id.map(|value| unsigned_small(value, "partition_id"));
        let node = row.node_id.map(|node| read_node(&node, "event.node_id"));
        Ok(Event {
            at_us: row.at_us,
            kind: row.kind,
            partition: partition.transpose()?,
            epoch: row.epoch.map(|value| unsigned(value, "event.epoch")).transpose()?,
            node_id: node.transpose()?,
            detail: from_json(&row.detail, "event.detail")?,
        })
    }
}

/// The columns of a collision.
#[derive(FromRow)]
struct CollisionRow {
    counter_id: i64,
    #[sqlx(flatten)]
    run: RunRow,
    allocation_id: Vec<u8>,
    other_allocation_id: Option<Vec<u8>>,
    number: String,
    noted_at_us: i64,
}

impl TryFrom<CollisionRow> for Collision {
    type Error = LedgerError;

    fn try_from(row: CollisionRow) -> Result<Self, LedgerError> {
        let other = row.other_allocation_id;
        let other = other.map(|other| read_uuid(&other, "collision.other_allocation_id"));
        Ok(Collision {
            allocation_id: read_uuid(&row.allocation_id, "allocation_id")?,
            other_allocation_id: other.transpose()?,
            number: row.number,
            counter_id: row.counter_id,
            span: row.run.span()?,
            noted_at_us: row.noted_at_us,
        })
    }
}

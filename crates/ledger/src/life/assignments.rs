//! A document on one number of a range: noted once, and never later taken back. The journal's row
//! of the range stays as it is.
//!
//! An assignment holds the counter's row and the journal's row of the range as a void does, and the
//! name of its document as a take does: of a take and an assignment for one document, the later one
//! finds the earlier one. Numbers that Redis has taken are not in the journal yet, and Redis knows
//! no assignment: where a series numbers a document once, nothing is assigned while Redis owns its
//! partition. The journal appends what Redis took under no name of a document: such a document is
//! looked for once more behind the lock of the partition.

use std::iter;

use numbering::SeriesDefinition;
use numerator_runtime::node::NodeId;

use super::{Act, Life, insert, lock, once, vanished};
use crate::calls::CALL;
use crate::columns::{from_json, unsigned_small};
use crate::dialect::Conn;
use crate::nodes::{self, marks};
use crate::protocol::keys::{self, Key};
use crate::protocol::partitions;
use crate::query::{query, query_as, query_scalar};
use crate::register::{assigned, lookup};
use crate::reservations::sweep::{past_due, unless_due};
use crate::store::{Store, commit_alone};
use crate::{
    Assigned, AssignedNumber, Assigning, DocumentHas, Found, LedgerError, LifeAct, NewAssignment,
    Owner, PartitionState, Question, Reservation, ValueOf, document_hash, schema,
};

/// Reservations that are over which one assignment ends: the one of its document.
const ENDED_MAX: usize = 1;

impl Life<'_> {
    /// Assigns a number of a range to a document, or says why not. Safe to repeat: the same
    /// assignment is found. A reservation of the document that is over or cancelled ends first.
    ///
    /// # Errors
    /// `LockTimeout` where a counter, a name or such a reservation is held: worth a retry.
    pub async fn assign(self, node: NodeId, new: &NewAssignment) -> Result<Assigning, LedgerError> {
        self.write(async |store| {
            past_due(store, node, ENDED_MAX, move || {
                unless_due(store, node, attempt(store, node, new), held)
            })
            .await
        })
        .await
    }

    /// The assignment of a number of a series that is not void, if it has one, as the ledger shows
    /// it in the incarnation that was last agreed on. Nothing is locked: it may come.
    ///
    /// # Errors
    /// `WentBack` where the ledger is another incarnation.
    pub async fn assigned(
        self,
        of: ValueOf,
        series_id: i64,
    ) -> Result<Option<Assigned>, LedgerError> {
        self.call(CALL, async |store| {
            // What a ledger that went back does not know may have been assigned.
            let mut tx = store.begin_reading().await?;
            let voided = once(&mut *tx, of, LifeAct::Voided).await?;
            let assigned = once(&mut *tx, of, LifeAct::Assigned).await?;
            let found = match assigned.filter(|_| voided.is_none()) {
                None => None,
                Some(row) => {
                    let is_once = home_of(&mut *tx, series_id, Keeping::Read).await?.is_once;
                    Some(Assigned { row, is_once })
                }
            };
            tx.commit().await?;
            Ok(found)
        })
        .await
    }

    /// The numbers of ranges that are assigned to a document, the oldest first, at most 1,000.
    pub async fn assigned_to(self, document_id: &str) -> Result<Vec<AssignedNumber>, LedgerError> {
        self.read(async |reader| {
            let mut conn = reader.acquire().await?;
            assigned::of_documents(&mut *conn, &[document_id]).await
        })
        .await
    }
}

/// One transaction; what it does not commit is rolled back.
async fn attempt(
    store: &Store,
    node: NodeId,
    new: &NewAssignment,
) -> Result<Assigning, LedgerError> {
    let mut tx = store.begin_brief(Some(node)).await?;
    // What a ledger that went back has forgotten may be this document's number.
    marks::must_be_remembered(store, &mut *tx, node).await?;
    // It would give the document a second number.
    if nodes::is_any_older(&mut *tx, schema::ASSIGNMENTS).await? {
        return Ok(Assigning::BesideOlder);
    }
    let home = home_of(&mut *tx, new.series_id, Keeping::Share).await?;
    if let Some(answered) = of_number(&mut *tx, new, home.is_once).await? {
        return Ok(answered);
    }
    let (series_id, document_id) = (new.series_id, new.document_id.clone());
    let document = iter::once(Key::Document { series_id, document_id });
    tx.lock_names(&keys::lock_names(home.partition, document)).await?;
    if let Some(refused) = numbered(&mut *tx, new, store.clock.now_us()).await? {
        return Ok(refused);
    }
    if home.is_once
        && let Some(refused) = once_at_rest(store, &mut *tx, new, home.partition).await?
    {
        return Ok(refused);
    }
    let document_id = Some(new.document_id.clone());
    let act = Act { document_id, ..Act::of(LifeAct::Assigned, &new.act) };
    let row = insert(store, &mut *tx, act).await?.ok_or_else(vanished)?;
    note(&mut *tx, new, row.at_us).await?;
    commit_alone(store, tx).await?;
    Ok(Assigning::Written(Assigned { row, is_once: home.is_once }))
}

/// The partition of a series, and whether the series numbers a document once.
struct AssigningHome {
    partition: u32,
    is_once: bool,
}

/// Whether a series is only read, or stays as it is until the transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeping {
    Read,
    Share,
}

/// What the version of the series that is in force says.
async fn home_of(
    conn: &mut Conn,
    series_id: i64,
    keeping: Keeping,
) -> Result<AssigningHome, LedgerError> {
    let query = query_as("select partition, active_version from series where series_id = $1");
    let query = if keeping == Keeping::Share { query.for_share() } else { query };
    let row: Option<(i32, i32)> = query.bind(series_id).fetch_optional(&mut *conn).await?;
    let (partition, active) = row.ok_or(LedgerError::SeriesChanged)?;
    let text: Option<String> =
        query_scalar("select definition from series_version where series_id = $1 and version = $2")
            .bind(series_id)
            .bind(active)
            .fetch_optional(conn)
            .await?;
    let text = text.ok_or(LedgerError::SeriesChanged)?;
    let definition: SeriesDefinition = from_json(&text, "series_version.definition")?;
    Ok(AssigningHome {
        partition: unsigned_small(partition, "series.partition")?,
        is_once: definition.is_once_per_document(),
    })
}

/// What the number itself answers, whose counter and journal row are locked from here on: that it
/// is assigned already, or why it cannot be.
async fn of_number(
    conn: &mut Conn,
    new: &NewAssignment,
    is_once: bool,
) -> Result<Option<Assigning>, LedgerError> {
    let Some(journaled) = lock(conn, &new.act).await? else { return Ok(Some(Assigning::Gone)) };
    if journaled.document_id.is_some() || journaled.last_value == new.act.row_first {
        return Ok(Some(Assigning::NotOfARange));
    }
    if let Some(voided) = once(conn, new.act.of, LifeAct::Voided).await? {
        return Ok(Some(Assigning::Voided(voided)));
    }
    let known = once(conn, new.act.of, LifeAct::Assigned).await?;
    Ok(known.map(|row| match row.document_id.as_deref() == Some(&*new.document_id) {
        true => Assigning::Known(Assigned { row, is_once }),
        false => Assigning::Other(row),
    }))
}

/// The number that the document has, or holds. Its name is locked.
async fn numbered(
    conn: &mut Conn,
    new: &NewAssignment,
    now_us: i64,
) -> Result<Option<Assigning>, LedgerError> {
    let NewAssignment { series_id, document_id, documents, act, .. } = new;
    let question = Question::of_document(*series_id, &act.user_id, document_id, documents);
    let (found, _) = lookup::answers(conn, &[question], now_us).await?;
    let has = found.into_iter().find_map(Found::of_document);
    Ok(has.map(Assigning::DocumentHas))
}

/// What keeps a document of a series that numbers documents once from its number although it was
/// not found: the partition is not at rest, or came to the database after the document was looked
/// for. Then the journal has what Redis took, which it appends without the names of documents.
async fn once_at_rest(
    store: &Store,
    conn: &mut Conn,
    new: &NewAssignment,
    partition: u32,
) -> Result<Option<Assigning>, LedgerError> {
    match of_partition(conn, partition).await? {
        Some(refused) => Ok(Some(refused)),
        None => numbered(conn, new, store.clock.now_us()).await,
    }
}

/// Keeps the partition with its owner until the commit. While Redis owns it, a document that Redis
/// does not know counts as new (F29).
async fn of_partition(conn: &mut Conn, partition: u32) -> Result<Option<Assigning>, LedgerError> {
    let row = partitions::share(conn, partition).await?;
    Ok(match row.state {
        PartitionState::Held => Some(Assigning::Held(partition)),
        _ if matches!(row.owner, Owner::Redis { .. }) => Some(Assigning::InRedis(partition)),
        _ => None,
    })
}

/// Notes the way from the document to its number.
async fn note(conn: &mut Conn, new: &NewAssignment, at_us: i64) -> Result<(), LedgerError> {
    query(
        "insert into assignment (counter_id, value, row_first, series_id, project, user_id, number,
         document_id, document_hash, assigned_at_us)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(new.act.of.counter_id)
    .bind(new.act.of.value)
    .bind(new.act.row_first)
    .bind(new.series_id)
    .bind(&new.project)
    .bind(&new.taken_by)
    .bind(&new.act.number)
    .bind(&new.document_id)
    .bind(document_hash(&new.document_id))
    .bind(at_us)
    .execute(conn)
    .await?;
    Ok(())
}

/// The reservation that an outcome names.
fn held(outcome: &Assigning) -> Option<&Reservation> {
    match outcome {
        Assigning::DocumentHas(DocumentHas::Reserved(held)) => Some(held),
        _ => None,
    }
}

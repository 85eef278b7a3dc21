//! What the ledger knows of documents. Reads and writes no epoch: a document's numbers are facts.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use numbering::{Range, TakenRange};
use sqlx_macros::FromRow;

use crate::calls::CALL;
use crate::columns::{read_uuid, unsigned};
use crate::dialect::Conn;
use crate::new_row::NewRow;
use crate::protocol::chronology::{self, Family};
use crate::protocol::keys;
use crate::query::{QueryBuilder, query_as, query_scalar};
use crate::register::lookup::{journal_row_of, select_rows};
use crate::register::{assigned_rows, found_aside, shown};
use crate::reservations::table;
use crate::store::{Store, commit_alone};
use crate::{
    Audits, Counters, Entry, IssuePath, JournalRow, LedgerError, LifeAct, NewRevision, Position,
    REVISION_TEXTS, REVISIONS_MAX, Record, Register, Revised, Revision, RowVisibility, ValueOf,
};
use crate::{life, number_hash};

/// Most rows of a page.
const PAGE_MAX: u32 = 1_000;

/// Numbers whose revisions are looked for in one statement.
const NUMBERS_PER_SEARCH: usize = 200;

const COLUMNS: &str = "select r.counter_id, r.value, r.rev, r.allocation_id, r.number,
     r.document_id, r.user_id, r.ip_address, r.reason, r.revised_at_us from revision r ";

impl Register<'_> {
    /// The numbers of a document after a position, oldest first, at most `limit` of them (1,000);
    /// among them the ranges of which a number is assigned to it. A number just issued by the Redis
    /// path appears once it is journaled.
    pub async fn numbers_of(
        self,
        document_id: &str,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        self.numbers_shown_of(document_id, after, limit, &RowVisibility::Everything).await
    }

    /// The same, of the numbers visible to the caller alone.
    pub async fn numbers_shown_of(
        self,
        document_id: &str,
        after: Option<Position>,
        limit: u32,
        shown: &RowVisibility,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        self.read(async |reader| {
            let mut query = select_rows("journal_row");
            query.push(" where j.number is not null and j.document_id = ");
            query.push_bind(document_id.to_owned());
            shown::push_rows(&mut query, "j", shown);
            if let Some(Position { issued_at_us, of }) = after {
                query.push(" and (j.issued_at_us, j.counter_id, j.first_value) > (");
                query.push_bind(issued_at_us).push(", ").push_bind(of.counter_id).push(", ");
                query.push_bind(of.value).push(")");
            }
            query.push(" order by j.issued_at_us, j.counter_id, j.first_value limit ");
            query.push_bind(i64::from(limit.min(PAGE_MAX)));
            let mut conn = reader.acquire().await?;
            let rows = query.build().fetch_all(&mut *conn).await?;
            let mut rows: Vec<_> =
                rows.iter().map(journal_row_of).collect::<Result<_, LedgerError>>()?;
            found_aside::add_of(&mut *conn, document_id, after, shown, &mut rows).await?;
            assigned_rows::add_of(&mut *conn, document_id, after, shown, &mut rows).await?;
            rows.truncate(limit.min(PAGE_MAX) as usize);
            Ok(rows)
        })
        .await
    }

    /// Writes a revision of a journaled number. Safe to repeat. Its text is unique in its scope
    /// among all numbers and revisions, also under concurrent writes.
    ///
    /// # Errors
    /// `Refused` where the journal does not have the number.
    pub async fn revise(self, new: &NewRevision) -> Result<Revised, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            // One revision of a number at a time: the bound holds, and an equal label is seen.
            let scope: Option<String> = query_scalar(
                "select scope from journal where counter_id = $1 and first_value = $2
                 and allocation_id = $3 and document_id is not null",
            )
            .for_update()
            .bind(new.of.counter_id)
            .bind(new.of.value)
            .bind(new.allocation_id.as_bytes().as_slice())
            .fetch_optional(&mut *tx)
            .await?;
            let Some(scope) = scope else {
                let why = "the journal has no such number of a document";
                return Err(LedgerError::Refused(format!("revision: {why}")));
            };
            // A void locks this row as well: it waits for this revision, or was waited for.
            if let Some(voided) = life::once(&mut *tx, new.of, LifeAct::Voided).await? {
                return Ok(Revised::Voided(voided));
            }
            let mut known = QueryBuilder::new(COLUMNS);
            known.push("where r.counter_id = ").push_bind(new.of.counter_id);
            known.push(" and r.value = ").push_bind(new.of.value);
            let known: Vec<RevisionRow> = known.build().typed().fetch_all(&mut *tx).await?;
            let count = known.len();
            if let Some(same) = known.into_iter().find(|revision| revision.rev == new.rev) {
                return Ok(Revised::Known(same.try_into()?));
            }
            if count >= REVISIONS_MAX as usize {
                return Ok(Revised::TooMany);
            }
            // A reserved text is in no row of the journal; its reservation is made under this lock.
            tx.lock_names(&keys::text_locks(iter::once((&*scope, &*new.number)))).await?;
            let reserved = table::named(&mut *tx, vec![number_hash(&new.number)]).await?;
            let is_same =
                |(number, of, _): &(String, String, Vec<u8>)| (number, of) == (&new.number, &scope);
            if reserved.iter().any(is_same) {
                return Ok(Revised::Collided);
            }
            let Some((revision_id, revision)) = insert(&mut *tx, new, &scope).await? else {
                return Ok(Revised::Collided);
            };
            if !keep_text(store, &mut *tx, revision_id, new).await? {
                return Ok(Revised::Collided);
            }
            // Only now: the unique key has waited for a transaction that was just moving it.
            let archived: Option<i64> = query_scalar(
                "select counter_id from archived_number where number_hash = $1 limit 1",
            )
            .bind(number_hash(&new.number))
            .fetch_optional(&mut *tx)
            .await?;
            if archived.is_some() {
                return Ok(Revised::Collided);
            }
            commit_alone(store, tx).await?;
            Ok(Revised::Written(revision))
        })
        .await
    }

    /// The revisions of numbers, each number's oldest first.
    pub async fn revisions_of(self, numbers: &[ValueOf]) -> Result<Vec<Revision>, LedgerError> {
        self.read(async |reader| {
            let mut revisions = Vec::new();
            for part in numbers.chunks(NUMBERS_PER_SEARCH) {
                let mut query = QueryBuilder::new("with asked (counter_id, value) as (");
                query.push_values(part, |mut row, of| {
                    row.push_bind(of.counter_id).push_bind(of.value);
                });
                query.push(") ").push(COLUMNS);
                query.push(
                    "join asked a on a.counter_id = r.counter_id and a.value = r.value
                     order by r.revision_id",
                );
                let rows: Vec<RevisionRow> = query.build().once().typed().fetch_all(reader).await?;
                for row in rows {
                    revisions.push(row.try_into()?);
                }
            }
            Ok(revisions)
        })
        .await
    }

    /// Revisions with this text, of any scope, oldest first, at most `limit`.
    pub async fn revisions_named(
        self,
        number: &str,
        limit: u32,
    ) -> Result<Vec<Revision>, LedgerError> {
        self.revisions_shown_named(number, limit, &RowVisibility::Everything).await
    }

    /// The same, of the numbers visible to the caller alone.
    pub async fn revisions_shown_named(
        self,
        number: &str,
        limit: u32,
        shown: &RowVisibility,
    ) -> Result<Vec<Revision>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where r.number = ").push_bind(number.to_owned());
            if *shown != RowVisibility::Everything {
                query.push(
                    " and exists (select 1 from journal_row j where j.counter_id = r.counter_id
                     and j.first_value = r.value",
                );
                shown::push_rows(&mut query, "j", shown);
                query.push(")");
            }
            query.push(" order by r.revision_id limit ").push_bind(i64::from(limit.min(PAGE_MAX)));
            query.build().typed::<RevisionRow>().fetch_all_into(reader).await
        })
        .await
    }
}

impl Audits<'_> {
    /// Revisions whose number the journal does not have, or whose own text it does not hold, at
    /// most `limit`: there are none unless another program wrote into the ledger.
    pub async fn stray_revisions(self, limit: u32) -> Result<Vec<Revision>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let mut query = QueryBuilder::new(COLUMNS);
            query.push(
                "where not exists (select 1 from journal j where j.counter_id = r.counter_id
                 and j.first_value = r.value and j.allocation_id = r.allocation_id
                 and j.scope = r.scope) and not coalesce((select path = 'archived'
                 and last_value >= r.value from journal_row s where s.counter_id = r.counter_id
                 and s.first_value <= r.value order by s.first_value desc limit 1), false)
                 or not exists (select 1 from journal t where t.counter_id = ",
            );
            query.push_bind(REVISION_TEXTS).push(
                " and t.first_value = r.revision_id and t.number = r.number and t.scope = r.scope)
                 order by r.revision_id limit ",
            );
            query.push_bind(i64::from(limit.min(PAGE_MAX)));
            let rows: Vec<RevisionRow> = query.build().typed().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            rows.into_iter().map(Revision::try_from).collect()
        })
        .await
    }
}

impl Counters<'_> {
    /// The latest document date that a family of counters has given numbers to: the counters of a
    /// series' first serial that differ in their period alone; their key is the family's but for
    /// that.
    pub async fn last_date(
        self,
        series_id: i64,
        serial: &str,
        family: &str,
    ) -> Result<Option<String>, LedgerError> {
        let family = Family { series_id, serial, key: family };
        self.call(CALL, async |store| chronology::last_date(store, family).await).await
    }
}

/// Writes the revision itself; `None` where another one has its text.
async fn insert(
    conn: &mut Conn,
    new: &NewRevision,
    scope: &str,
) -> Result<Option<(i64, Revision)>, LedgerError> {
    let row: Option<NewRevisionRow> = query_as(
        "insert into revision (counter_id, value, rev, allocation_id, number, scope, document_id,
         user_id, ip_address, reason, revised_at_us)
         select $1, $2, $3, $4, $5, $6, document_id, $7, $8, $9, $10 from journal
         where counter_id = $1 and first_value = $2 and allocation_id = $4
         on conflict do nothing returning revision_id, counter_id, value, rev, allocation_id,
         number, document_id, user_id, ip_address, reason, revised_at_us",
    )
    .bind(new.of.counter_id)
    .bind(new.of.value)
    .bind(&new.rev)
    .bind(new.allocation_id.as_bytes().as_slice())
    .bind(&new.number)
    .bind(scope)
    .bind(&new.user_id)
    .bind(&new.ip_address)
    .bind(&new.reason)
    .bind(new.revised_at_us)
    .fetch_optional(conn)
    .await?;
    row.map(|row| Ok((row.revision_id, row.revision.try_into()?))).transpose()
}

/// Writes the journal row that keeps the text from every number; false where one has it. Waits for
/// a transaction that is writing such a number right now.
async fn keep_text(
    store: &Store,
    conn: &mut Conn,
    revision_id: i64,
    new: &NewRevision,
) -> Result<bool, LedgerError> {
    let mut revised = select_rows("journal_row");
    revised.push(" where j.counter_id = ").push_bind(new.of.counter_id);
    revised.push(" and j.first_value = ").push_bind(new.of.value);
    let row = revised.build().fetch_one(&mut *conn).await?;
    let JournalRow { entry, node_id, .. } = journal_row_of(&row)?;
    let value = unsigned(revision_id, "revision.revision_id")?;
    let record = Record {
        mask: new.number.replace('{', "{{").replace('}', "}}"),
        document_id: None,
        context: BTreeMap::new(),
        serials: Vec::new(),
        counter_keys: vec![String::new()],
        user_id: new.user_id.clone(),
        ip_address: new.ip_address.clone(),
        idempotency_key: None,
        payload_digest: String::new(),
        issued_at_us: new.revised_at_us,
        ..Record::clone(&entry.record)
    };
    let text = Entry {
        record: Arc::new(record),
        taken: vec![TakenRange {
            counter_id: REVISION_TEXTS,
            range: Range { first: value, last: value, step: 1 },
        }],
        number: new.number.clone(),
        retry_count: 0,
        path: IssuePath::Database,
        at: entry.at,
    };
    let writing = store.writing(node_id, store.clock.now_us());
    let new_rows = NewRow::of(0, &text)?;
    let new_rows: Vec<&NewRow<'_>> = new_rows.iter().collect();
    Ok(!conn.insert_new_rows(&new_rows, &writing).await?.is_empty())
}

/// The columns of a revision, as [`COLUMNS`] names them.
#[derive(FromRow)]
pub(crate) struct RevisionRow {
    #[sqlx(flatten)]
    pub(crate) of: ValueOf,
    allocation_id: Vec<u8>,
    rev: String,
    pub(crate) number: String,
    document_id: String,
    user_id: String,
    ip_address: Option<String>,
    reason: Option<String>,
    revised_at_us: i64,
}

/// A revision that was just written, and its id.
#[derive(FromRow)]
struct NewRevisionRow {
    revision_id: i64,
    #[sqlx(flatten)]
    revision: RevisionRow,
}

impl TryFrom<RevisionRow> for Revision {
    type Error = LedgerError;

    fn try_from(row: RevisionRow) -> Result<Self, LedgerError> {
        Ok(Revision {
            of: row.of,
            allocation_id: read_uuid(&row.allocation_id, "revision.allocation_id")?,
            rev: row.rev,
            number: row.number,
            document_id: row.document_id,
            user_id: row.user_id,
            ip_address: row.ip_address,
            reason: row.reason,
            revised_at_us: row.revised_at_us,
        })
    }
}

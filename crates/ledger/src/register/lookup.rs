//! Journal rows back as entries: by the keys of a retry, by an earlier attempt, for auditors.

use std::collections::HashMap;

use serde::Deserialize;
use uuid::Uuid;

use crate::batch::{Earlier, WantedKey};
use crate::calls::CALL;
use crate::columns::{from_json, unreadable};
use crate::compressed_mask::read_mask;
use crate::dialect::Conn;
use crate::journal_columns::{bare_entry_columns, entry_columns};
use crate::protocol::keys::{self, Key};
use crate::protocol::put_aside;
use crate::query::{QueryBuilder, Row, query};
use crate::register::{assigned, found_aside};
use crate::reservations::{memory, table};
use crate::series::projects;
use crate::{ArchivedRow, Entry, Found, JournalRow, Ledger, LedgerError, Question, Register};
use crate::{Projects, document_hash, project_hash};

impl Ledger {
    /// What the journal knows under these keys since `since_us`; per question what was found (F1).
    /// A transaction that is about to take under them may commit the moment after.
    pub async fn replays(&self, questions: &[Question]) -> Result<Vec<Found>, LedgerError> {
        self.call(CALL.named("replays"), async |store| {
            let upto = store.last_seen.takes().noted();
            // What a ledger that went back does not know may have been issued all the same.
            let mut tx = store.begin_reading().await?;
            let (found, _) = answers(&mut *tx, questions, store.clock.now_us()).await?;
            tx.commit().await?;
            memory::note_found(store, (None, upto), questions, &found)?;
            Ok(found)
        })
        .await
    }

    /// The same for requests of a partition that get a number where nothing is found: waits for
    /// every transaction that takes under their keys, and a later transaction finds its epoch over
    /// where this question is asked in a later epoch (F27). Waits briefly.
    ///
    /// # Errors
    /// `LockTimeout` where a transaction takes under one of the keys for longer: worth a retry.
    pub async fn ask(
        &self,
        partition: u32,
        questions: &[Question],
    ) -> Result<Vec<Found>, LedgerError> {
        self.call(CALL.named("replays"), async |store| {
            let upto = store.last_seen.takes().noted();
            let mut tx = store.begin_asking().await?;
            let asked = keys::lock_names(partition, questions.iter().flat_map(Key::all_asked));
            // What another transaction wrote under the names is visible to the statements that
            // follow.
            tx.share_names(&asked).await?;
            let (found, _) = answers(&mut *tx, questions, store.clock.now_us()).await?;
            tx.commit().await?;
            memory::note_found(store, (None, upto), questions, &found)?;
            Ok(found)
        })
        .await
    }
}

impl Register<'_> {
    /// The journal row whose range holds a value of a first serial's counter, if any does.
    pub async fn row_of(
        self,
        counter_id: i64,
        value: u64,
    ) -> Result<Option<JournalRow>, LedgerError> {
        self.read(async |reader| {
            let Ok(value) = i64::try_from(value) else { return Ok(None) };
            // Ranges of a counter do not overlap: only the last one that begins at or below can
            // hold it.
            let mut query = select_rows(concat!(
                "(select ",
                bare_entry_columns!(),
                " from journal_row where counter_id = $1
                 and first_value <= $2 order by first_value desc limit 1)"
            ));
            query.push(
                " where j.number is not null and j.last_value >= $2
                 and ($2 - j.first_value) % j.step = 0",
            );
            let row = query.build().bind(counter_id).bind(value);
            if let Some(row) = row.fetch_optional(reader).await? {
                return journal_row_of(&row).map(Some);
            }
            let mut conn = reader.acquire().await?;
            let aside = put_aside::of_value(&mut *conn, counter_id, value).await?;
            match aside {
                Some(aside) => found_aside::row_of(&mut *conn, aside).await.map(Some),
                None => Ok(None),
            }
        })
        .await
    }

    /// Masks of the journal rows next to a value of a first serial's counter: the one at or below,
    /// the one above.
    pub async fn masks_beside(
        self,
        counter_id: i64,
        value: u64,
    ) -> Result<Vec<String>, LedgerError> {
        self.read(async |reader| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let mut masks = Vec::with_capacity(2);
            for statement in [
                // A number as written shows no value: it says nothing of those beside it.
                "select number, mask, outline from journal where counter_id = $1
                 and first_value <= $2 and number is not null
                 and coalesce(path, '') <> 'as-written' order by first_value desc limit 1",
                "select number, mask, outline from journal where counter_id = $1
                 and first_value > $2 and number is not null
                 and coalesce(path, '') <> 'as-written' order by first_value limit 1",
            ] {
                let row = query(statement).bind(counter_id).bind(value);
                if let Some(row) = row.fetch_optional(reader).await? {
                    masks.push(mask_of(&row, row.try_get("number")?)?);
                }
            }
            Ok(masks)
        })
        .await
    }
}

/// Answers questions, three statements however many there are (F1), one more where a number of a
/// range may be assigned to one of their documents, and one more for each table whose rows have
/// documents of their own; and whether any number at all is reserved. Reservations are asked first:
/// what is journaled meanwhile is found in the journal (L6).
pub(crate) async fn answers(
    conn: &mut Conn,
    questions: &[Question],
    now_us: i64,
) -> Result<(Vec<Found>, bool), LedgerError> {
    let (any, apart) = (vec![Projects::Any; questions.len()], projects::of(conn, questions).await?);
    let mut all = vec![Found::default(); questions.len()];
    let any_beside = table::answer(conn, questions, &apart, now_us, &mut all).await?;
    let (by_key, of_keys) = newest(conn, WantedKey::CallerKey, questions, &any).await?;
    let (by_document, of_documents) = newest(conn, WantedKey::Document, questions, &apart).await?;
    for (found, ((by_key, _), (by_document, archived))) in
        all.iter_mut().zip(by_key.into_iter().zip(by_document))
    {
        // A confirmed reservation is newer than any row.
        found.by_key = found.by_key.take().or(by_key);
        found.by_document = found.by_document.take().or(by_document);
        found.archived = archived;
    }
    if of_keys || of_documents {
        put_aside::answer(conn, questions, &apart, &mut all).await?;
    }
    if any_beside.is_any_assigned {
        assigned::answer(conn, questions, &apart, &mut all).await?;
    }
    for (found, question) in all.iter_mut().zip(questions) {
        let is_unknown = found.by_document.is_none() && !question.again;
        found.archived = found.archived.take().filter(|_| is_unknown);
        found.by_document = found.by_document.take().filter(|entry| question.is_answered_by(entry));
    }
    Ok((all, any_beside.is_any_reserved))
}

/// What is recorded under a key: the newest entry, and the file that may have one.
type UnderKey = (Option<Entry>, Option<String>);

/// The newest entry under one kind of key of each question, in rows of its projects, and whether
/// any record is put aside.
async fn newest(
    conn: &mut Conn,
    wanted: WantedKey,
    questions: &[Question],
    projects: &[Projects],
) -> Result<(Vec<UnderKey>, bool), LedgerError> {
    let mut entries: Vec<UnderKey> = vec![(None, None); questions.len()];
    let (mut places, mut keys) = (Vec::new(), Vec::new());
    for (place, question) in questions.iter().enumerate() {
        let Question { series_id, user_id, since_us, .. } = question;
        let (value, since_us) = match wanted {
            WantedKey::CallerKey => (&question.idempotency_key, *since_us),
            WantedKey::Document if question.once_per_document => (&question.document_id, i64::MIN),
            WantedKey::Document => (&question.document_id, *since_us),
        };
        let Some(value) = value else { continue };
        // A number that moved to a file is older than any window.
        let document_hash = (since_us == i64::MIN).then(|| document_hash(value));
        for project in projects[place].sought() {
            places.push(place);
            keys.push(Earlier {
                series_id: *series_id,
                user_id,
                value,
                since_us,
                document_hash,
                project,
                project_hash: document_hash.and(project).map(project_hash),
            });
        }
    }
    if keys.is_empty() {
        return Ok((entries, false));
    }
    let newest = conn.newest(wanted, &keys).await?;
    for (place, row) in places.into_iter().zip(newest.rows) {
        let Some(row) = row else { continue };
        let is_row = row.try_get::<Option<i64>>("counter_id")?.is_some();
        let (known, file) = &mut entries[place];
        if is_row {
            let entry = entry_of(&row)?;
            let is_older = |other: &Entry| age(other) < age(&entry);
            if known.as_ref().is_none_or(is_older) {
                *known = Some(entry);
            }
        }
        *file = file.take().or(row.try_get("archived")?);
    }
    Ok((entries, newest.is_any_aside))
}

/// By which of two rows under a key one is newer.
fn age(entry: &Entry) -> (i64, Option<u64>) {
    (entry.record.issued_at_us, entry.taken.first().map(|taken| taken.range.first))
}

/// What earlier attempts of these allocations wrote on the database path (F10).
pub(crate) async fn earlier(
    conn: &mut Conn,
    allocations: &[Uuid],
) -> Result<HashMap<Uuid, Entry>, LedgerError> {
    if allocations.is_empty() {
        return Ok(HashMap::new());
    }
    let mut query = QueryBuilder::new("select ");
    query.push(entry_columns!()).push(
        " from journal_row j join counter c on c.counter_id = j.counter_id
         where j.number is not null and (j.counter_id, j.first_value) in
         (select counter_id, first_value from journal where path = 'database' and allocation_id",
    );
    let ids: Vec<Vec<u8>> = allocations.iter().map(|id| id.as_bytes().to_vec()).collect();
    query.push_among(ids.clone()).push(")");
    let rows = query.build().fetch_all(&mut *conn).await?;
    let mut entries = rows.iter().map(entry_of).collect::<Result<Vec<_>, _>>()?;
    entries.extend(put_aside::of_allocations(conn, ids).await?);
    Ok(entries.into_iter().map(|entry| (entry.record.allocation_id, entry)).collect())
}

/// The entry with this number in its scope, where the journal has one.
pub(crate) async fn of_number(
    conn: &mut Conn,
    number: &str,
    scope: &str,
) -> Result<Option<Entry>, LedgerError> {
    let mut query = QueryBuilder::new("select ");
    query.push(entry_columns!()).push(
        " from journal_row j left join counter c on c.counter_id = j.counter_id
         where j.number = ",
    );
    query.push_bind(number.to_owned()).push(" and j.scope = ").push_bind(scope.to_owned());
    let row = query.build().fetch_optional(conn).await?;
    row.as_ref().map(entry_of).transpose()
}

/// The beginning of a query for whole rows of the journal, or of a part of it.
pub(crate) fn select_rows(journal: &str) -> QueryBuilder<'_> {
    let mut query = select_of_versions(", v.definition", journal);
    query
        .push(" left join series_version v on v.series_id = j.series_id and v.version = j.version");
    query
}

/// The same without what their versions say of them: definitions are long, and shared by many rows.
pub(crate) fn select_bare_rows(journal: &str) -> QueryBuilder<'_> {
    select_of_versions("", journal)
}

fn select_of_versions<'q>(further: &str, journal: &str) -> QueryBuilder<'q> {
    let mut query = QueryBuilder::new("select ");
    query.push(entry_columns!()).push(further);
    // Every row has its counter. An inner join would let a planner without statistics begin with
    // the counter, and read all of its rows for each row that is wanted.
    query.push(" from ").push(journal);
    query.push(" j left join counter c on c.counter_id = j.counter_id");
    query
}

/// The part of a definition that auditors ask for.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Origin {
    pub(crate) code: String,
    pub(crate) template: String,
    pub(crate) timezone: Option<String>,
}

impl Origin {
    /// What a definition says.
    pub(crate) fn read(definition: &str) -> Result<Self, LedgerError> {
        from_json(definition, "series_version.definition")
    }
}

/// A row of [`select_rows`].
pub(crate) fn journal_row_of(row: &Row) -> Result<JournalRow, LedgerError> {
    let definition: Option<String> = row.try_get("definition")?;
    let origin = definition.as_deref().map(Origin::read).transpose()?;
    bare_row_of(row, origin.unwrap_or_default())
}

/// A row of [`select_bare_rows`].
pub(crate) fn bare_row_of(row: &Row, origin: Origin) -> Result<JournalRow, LedgerError> {
    let Origin { code, template, timezone } = origin;
    let row = ArchivedRow::read(row, code)?.into_journal_row("journal", template)?;
    let row = row.ok_or_else(|| unreadable("journal.number", "null"))?;
    Ok(JournalRow { timezone, ..row })
}

/// The partially rendered text of a row's number.
pub(crate) fn mask_of(row: &Row, number: &str) -> Result<String, LedgerError> {
    let compressed_mask: Option<String> = row.try_get("outline")?;
    read_mask(row.try_get("mask")?, compressed_mask.as_deref(), number)
}

/// The entry of a first serial's row.
fn entry_of(row: &Row) -> Result<Entry, LedgerError> {
    bare_row_of(row, Origin::default()).map(|row| row.entry)
}

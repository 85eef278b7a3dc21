//! Journal rows back as entries: by the keys of a retry, by an earlier attempt, for auditors.

use std::collections::HashMap;
use std::sync::Arc;

use numbering::{Range, TakenRange};
use serde::Deserialize;
use uuid::Uuid;

use super::keys::{self, Key};
use super::{CALL, Conn, QueryBuilder, Row, Store, query_scalar};
use crate::Ledger;
use crate::batch::{Earlier, WantedKey, entry_columns, line_columns};
use crate::columns::{
    FurtherSerial, Word, from_json, read_node, read_uuid, unsigned, unsigned_small,
};
use crate::{
    At, Entry, Found, IssuePath, JournalFilter, JournalRow, LedgerError, Position, Question, Record,
};

/// Most rows of a look-up, and rows where the caller names no limit.
const FIND_MAX: u32 = 1_000;
const FIND_DEFAULT: u32 = 100;
/// How far back a look-up by time alone reaches step by step, in microseconds: the newest rows are
/// found without sorting the whole journal.
const LOOK_BACK_US: [i64; 3] = [3_600_000_000, 86_400_000_000, 31 * 86_400_000_000];

impl Ledger {
    /// What the journal knows under these keys since `since_us`; per question what was found (F1).
    /// A transaction that is about to take under them may commit the moment after.
    pub async fn replays(&self, questions: &[Question]) -> Result<Vec<Found>, LedgerError> {
        self.call(CALL.named("replays"), async |store| {
            // What a ledger that went back does not know may have been issued all the same.
            let mut tx = store.begin_reading().await?;
            let found = answers(&mut *tx, questions).await?;
            tx.commit().await?;
            Ok(found)
        })
        .await
    }

    /// The same for requests of a partition that get a number where nothing is found: waits for
    /// every transaction that takes under their keys, and one that comes later finds its epoch over
    /// where this one is asked in a later one (F27). Waits briefly.
    ///
    /// # Errors
    /// `LockTimeout` where somebody takes under one of the keys for longer: worth a retry.
    pub async fn ask(
        &self,
        partition: u32,
        questions: &[Question],
    ) -> Result<Vec<Found>, LedgerError> {
        self.call(CALL.named("replays"), async |store| {
            let mut tx = store.begin_asking().await?;
            let asked = keys::lock_names(partition, questions.iter().flat_map(Key::all_asked));
            // What another transaction wrote under the names is visible to the statements that
            // follow.
            tx.share_names(&asked).await?;
            let found = answers(&mut *tx, questions).await?;
            tx.commit().await?;
            Ok(found)
        })
        .await
    }

    /// Journal rows by number, document, user or time, newest first.
    pub async fn find(&self, filter: &JournalFilter) -> Result<Vec<JournalRow>, LedgerError> {
        self.call(CALL, async |store| {
            let limit =
                if filter.limit == 0 { FIND_DEFAULT } else { filter.limit.min(FIND_MAX) } as usize;
            let by_time_alone =
                filter.number.is_none() && filter.document_id.is_none() && filter.user_id.is_none();
            let mut rows = Vec::new();
            let mut window = filter.clone();
            // A place ends what is looked through, like a time.
            let after_us = filter.after.map(|after| after.issued_at_us.saturating_add(1));
            window.until_us = filter.until_us.into_iter().chain(after_us).min();
            if by_time_alone {
                let newest_us = window.until_us.unwrap_or_else(|| store.clock.now_us());
                for reach_us in LOOK_BACK_US {
                    let from_us = newest_us.saturating_sub(reach_us);
                    if rows.len() >= limit || filter.from_us.is_some_and(|from| from >= from_us) {
                        break;
                    }
                    window.from_us = Some(from_us);
                    rows.extend(select(store, &window, limit - rows.len()).await?);
                    window.until_us = Some(from_us);
                }
                window.from_us = filter.from_us;
            }
            if rows.len() < limit {
                rows.extend(select(store, &window, limit - rows.len()).await?);
            }
            Ok(rows)
        })
        .await
    }

    /// The journal row whose range holds a value of a first serial's counter, if any does.
    pub async fn row_of(
        &self,
        counter_id: i64,
        value: u64,
    ) -> Result<Option<JournalRow>, LedgerError> {
        self.call(CALL, async |store| {
            let Ok(value) = i64::try_from(value) else { return Ok(None) };
            // Ranges of a counter do not overlap: only the last one that begins at or below can
            // hold it.
            let mut query = select_rows(concat!(
                "(select ",
                line_columns!(),
                ", node_id, journaled_at_us from journal where counter_id = $1 and first_value <= \
                 $2 \
                     order by first_value desc, turn desc limit 1)"
            ));
            query.push(
                " where j.number is not null and j.last_value >= $2 \
                 and ($2 - j.first_value) % j.step = 0",
            );
            let row = query.build().bind(counter_id).bind(value);
            let row = row.fetch_optional(&store.reader).await?;
            row.as_ref().map(journal_row_of).transpose()
        })
        .await
    }

    /// Masks of the journal rows next to a value of a first serial's counter: the one at or below,
    /// the one above.
    pub async fn masks_beside(
        &self,
        counter_id: i64,
        value: u64,
    ) -> Result<Vec<String>, LedgerError> {
        self.call(CALL, async |store| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let mut masks = Vec::with_capacity(2);
            for statement in [
                "select mask from journal where counter_id = $1 and first_value <= $2 \
                 and mask is not null order by first_value desc limit 1",
                "select mask from journal where counter_id = $1 and first_value > $2 \
                 and mask is not null order by first_value limit 1",
            ] {
                let mask = query_scalar(statement).bind(counter_id).bind(value);
                masks.extend(mask.fetch_optional(&store.reader).await?);
            }
            Ok(masks)
        })
        .await
    }
}

/// Answers questions, two statements however many there are (F1).
pub(super) async fn answers(
    conn: &mut Conn,
    questions: &[Question],
) -> Result<Vec<Found>, LedgerError> {
    let by_key = newest(conn, WantedKey::CallerKey, questions).await?;
    let by_document = newest(conn, WantedKey::Document, questions).await?;
    let answer = |((by_key, by_document), question): ((_, Option<Entry>), &Question)| Found {
        by_key,
        by_document: by_document.filter(|entry| question.is_answered_by(entry)),
    };
    Ok(by_key.into_iter().zip(by_document).zip(questions).map(answer).collect())
}

/// The newest entry under one kind of key of each question.
async fn newest(
    conn: &mut Conn,
    wanted: WantedKey,
    questions: &[Question],
) -> Result<Vec<Option<Entry>>, LedgerError> {
    let mut entries: Vec<Option<Entry>> = vec![None; questions.len()];
    let (mut places, mut keys) = (Vec::new(), Vec::new());
    for (place, question) in questions.iter().enumerate() {
        let Question { series_id, user_id, since_us, .. } = question;
        let (value, since_us) = match wanted {
            WantedKey::CallerKey => (&question.idempotency_key, *since_us),
            WantedKey::Document if question.once_per_document => (&question.document_id, i64::MIN),
            WantedKey::Document => (&question.document_id, *since_us),
        };
        if let Some(value) = value {
            places.push(place);
            keys.push(Earlier { series_id: *series_id, user_id, value, since_us });
        }
    }
    if keys.is_empty() {
        return Ok(entries);
    }
    let rows = conn.newest(wanted, &keys).await?;
    for (place, row) in places.into_iter().zip(rows) {
        entries[place] = row.as_ref().map(entry_of).transpose()?;
    }
    Ok(entries)
}

/// What earlier attempts of these allocations wrote on the database path (F10).
pub(super) async fn earlier(
    conn: &mut Conn,
    allocations: &[Uuid],
) -> Result<HashMap<Uuid, Entry>, LedgerError> {
    if allocations.is_empty() {
        return Ok(HashMap::new());
    }
    let mut query = QueryBuilder::new("select ");
    query.push(entry_columns!()).push(
        " from journal j join counter c on c.counter_id = j.counter_id \
         where j.path = 'database' and j.number is not null and j.allocation_id",
    );
    let ids: Vec<Vec<u8>> = allocations.iter().map(|id| id.as_bytes().to_vec()).collect();
    query.push_among(ids);
    let rows = query.build().fetch_all(conn).await?;
    let entries = rows.iter().map(entry_of).collect::<Result<Vec<_>, _>>()?;
    Ok(entries.into_iter().map(|entry| (entry.record.allocation_id, entry)).collect())
}

async fn select(
    store: &Store,
    filter: &JournalFilter,
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    let mut query = select_rows("journal");
    query.push(" where j.number is not null");
    let texts = [
        (" and j.number = ", &filter.number),
        (" and j.document_id = ", &filter.document_id),
        (" and j.user_id = ", &filter.user_id),
    ];
    for (condition, value) in texts {
        if let Some(value) = value {
            query.push(condition).push_bind(value.clone());
        }
    }
    if let Some(from_us) = filter.from_us {
        query.push(" and j.issued_at_us >= ").push_bind(from_us);
    }
    if let Some(until_us) = filter.until_us {
        query.push(" and j.issued_at_us < ").push_bind(until_us);
    }
    if let Some(Position { issued_at_us, of }) = filter.after {
        query.push(" and (j.issued_at_us, j.counter_id, j.first_value) < (");
        query.push_bind(issued_at_us).push(", ").push_bind(of.counter_id).push(", ");
        query.push_bind(of.value).push(")");
    }
    query.push(" order by j.issued_at_us desc, j.counter_id desc, j.first_value desc limit ");
    query.push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = query.build().fetch_all(&store.reader).await?;
    rows.iter().map(journal_row_of).collect()
}

/// The beginning of a query for whole rows of the journal, or of a part of it.
pub(super) fn select_rows(journal: &str) -> QueryBuilder<'_> {
    let mut query = QueryBuilder::new("select ");
    query
        .push(entry_columns!())
        .push(", j.node_id, j.journaled_at_us, v.definition from ")
        .push(journal);
    query.push(
        " j join counter c on c.counter_id = j.counter_id \
         left join series_version v on v.series_id = j.series_id and v.version = j.version",
    );
    query
}

/// The part of a definition that auditors ask for.
#[derive(Deserialize)]
struct Template {
    template: String,
}

pub(super) fn journal_row_of(row: &Row) -> Result<JournalRow, LedgerError> {
    let definition: Option<String> = row.try_get("definition")?;
    let template = match definition {
        Some(text) => from_json::<Template>(&text, "series_version.definition")?.template,
        None => String::new(),
    };
    Ok(JournalRow {
        entry: entry_of(row)?,
        template,
        node_id: read_node(row.try_get("node_id")?, "journal.node_id")?,
        journaled_at_us: row.try_get("journaled_at_us")?,
    })
}

/// The entry of a first serial's row.
fn entry_of(row: &Row) -> Result<Entry, LedgerError> {
    let rest: Option<String> = row.try_get("rest")?;
    let rest: Vec<FurtherSerial> = match rest {
        Some(text) => from_json(&text, "journal.rest")?,
        None => Vec::new(),
    };
    let context: Option<String> = row.try_get("context")?;
    let first = TakenRange {
        counter_id: row.try_get("counter_id")?,
        range: Range {
            first: unsigned(row.try_get("first_value")?, "journal.first_value")?,
            last: unsigned(row.try_get("last_value")?, "journal.last_value")?,
            step: unsigned(row.try_get("step")?, "journal.step")?,
        },
    };
    let (mut taken, mut counter_keys) = (vec![first], vec![row.try_get("key")?]);
    let mut serials = vec![row.try_get("serial")?];
    for further in rest {
        serials.push(further.serial);
        taken.push(further.taken);
        counter_keys.push(further.key);
    }
    let record = Record {
        allocation_id: read_uuid(row.try_get("allocation_id")?, "journal.allocation_id")?,
        series_id: row.try_get("series_id")?,
        version: unsigned_small(row.try_get("version")?, "journal.version")?,
        type_code: row.try_get("type_code")?,
        project: row.try_get("project")?,
        scope: row.try_get("scope")?,
        mask: row.try_get("mask")?,
        document_id: row.try_get("document_id")?,
        document_date: row.try_get("document_date")?,
        context: match context {
            Some(text) => from_json(&text, "journal.context")?,
            None => std::collections::BTreeMap::new(),
        },
        serials,
        counter_keys,
        user_id: row.try_get("user_id")?,
        ip_address: row.try_get("ip_address")?,
        idempotency_key: row.try_get("idempotency_key")?,
        payload_digest: row.try_get("payload_digest")?,
        issued_at_us: row.try_get("issued_at_us")?,
    };
    Ok(Entry {
        record: Arc::new(record),
        taken,
        number: row.try_get("number")?,
        at: At {
            partition: unsigned_small(row.try_get("partition_id")?, "journal.partition_id")?,
            epoch: unsigned(row.try_get("epoch")?, "journal.epoch")?,
        },
        retry_count: unsigned_small(row.try_get("retry_count")?, "journal.retry_count")?,
        path: IssuePath::read(row.try_get("path")?)?,
    })
}

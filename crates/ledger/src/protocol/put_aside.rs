//! Records that the ledger refused: kept raw, counted like rows of the journal, found like them.
//!
//! They were issued. So a retry under their document or key gets their number, a look-up shows
//! them, and a record with their text or their values collides with them (F45). They are looked up
//! by hashes: their texts may be what no column takes. A row of an earlier version has none until
//! it is named, and is looked at each time until then.

use std::collections::BTreeSet;

use sqlx_macros::FromRow;

use crate::batch::Mark;
use crate::calls::CALL;
use crate::columns::{raw, read_raw, signed, unsigned};
use crate::connections::Share;
use crate::counters::table::lock_all;
use crate::dialect::Conn;
use crate::new_row::{NewRow, ValueRange};
use crate::protocol::entries::{Verdict, verdict_against};
use crate::protocol::fitness::must_be_whole;
use crate::protocol::named_counters;
use crate::query::{QueryBuilder, query, query_as, query_scalar};
use crate::register::gaps;
use crate::store::commit;
use crate::{AsideNames, Projects, document_hash, key_hash, number_hash};
use crate::{Entry, Found, Ledger, LedgerError, Position, Question};

/// The id of refused records whose counter the ledger does not have: their own id may be another
/// counter's by now, or later. The raw text keeps the original id.
const NO_COUNTER: i64 = 0;

/// Most rows that one question reads.
const ROWS_MAX: i64 = 10_000;

impl Ledger {
    /// Writes one entry that the ledger refused to the raw table, counts it for `taken` like a
    /// journal row (F13): of the counter that has its name, whichever counter has its id by now.
    /// Only what `append`, `adopt` or `journal_again` refused alone comes here (F45).
    pub async fn reject(&self, entry: &Entry, reason: &str) -> Result<(), LedgerError> {
        self.call(CALL.of(Share::Journal), async |store| {
            let epoch = signed(entry.at.epoch, "epoch").unwrap_or(i64::MAX);
            let now_us = store.clock.now_us();
            must_be_whole(store).await?;
            let mut tx = store.begin_unfenced().await?;
            // Its ids may predate the ledger's going back: they are other counters' by now (F9).
            let present = named_counters::present_counters(&mut *tx, entry).await?;
            let mut ids: Vec<i64> = present.iter().copied().flatten().collect();
            ids.sort_unstable();
            ids.dedup();
            lock_all(&mut *tx, &ids).await?;
            for (taken, counter_id) in entry.taken.iter().zip(present) {
                let (value_range, step) = plausible(taken, counter_id.unwrap_or(NO_COUNTER));
                if !insert(&mut *tx, entry, (value_range, step), reason, now_us).await? {
                    continue;
                }
                let ValueRange { counter_id, first, last } = value_range;
                if counter_id == NO_COUNTER {
                    continue;
                }
                gaps::shrink(&mut *tx, value_range).await?;
                let count = (last - first) / step + 1;
                tx.advance(&[Mark { counter_id, last, first, epoch, step, count }]).await?;
            }
            commit(tx).await
        })
        .await
    }

    /// How many rows are put aside without an acknowledgement: cheap, for frequent calls.
    pub async fn rejected_count(&self) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let count: i64 = query_scalar(
                "select count(*) from journal_rejected where acknowledged_at_us is null",
            )
            .fetch_one(reader)
            .await?;
            unsigned(count, "rejected")
        })
        .await
    }
}

/// The values of a record that is put aside.
#[derive(FromRow)]
struct RangeAside {
    counter_id: i64,
    first_value: i64,
    last_value: i64,
    allocation_id: Vec<u8>,
}

/// Finds entries that are put aside, or meet the number or the values of one that is.
pub(crate) async fn judge(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    let counters: BTreeSet<i64> =
        new_rows.iter().map(|new_row| new_row.value_range.counter_id).collect();
    let mut query = QueryBuilder::new(
        "select counter_id, first_value, last_value, allocation_id from journal_rejected
         where counter_id",
    );
    query.push_among(counters.into_iter().collect());
    let rows: Vec<RangeAside> = query.build().typed().fetch_all(&mut *conn).await?;
    for row in rows {
        let meets = |new_row: &&NewRow<'_>| {
            let value_range = new_row.value_range;
            value_range.counter_id == row.counter_id
                && value_range.first <= row.last_value
                && value_range.last >= row.first_value
        };
        for new_row in new_rows.iter().filter(meets) {
            let verdict =
                verdict_against(new_row, row.first_value, Some(row.allocation_id.clone()));
            // An entry that is put aside is accounted for, and would be counted twice.
            if verdict == Verdict::Known || verdicts[new_row.entry] == Verdict::Written {
                verdicts[new_row.entry] = verdict;
            }
        }
    }
    judge_numbers(conn, new_rows, verdicts).await
}

/// Finds entries whose number is that of one that is put aside.
async fn judge_numbers(
    conn: &mut Conn,
    new_rows: &[NewRow<'_>],
    verdicts: &mut [Verdict],
) -> Result<(), LedgerError> {
    let hashes = new_rows.iter().filter_map(|new_row| new_row.head.as_ref());
    let hashes: Vec<i64> = hashes.map(|head| number_hash(head.number)).collect();
    if hashes.is_empty() {
        return Ok(());
    }
    let aside = named(conn, &[("number_hash", hashes)]).await?;
    for new_row in new_rows {
        let Some(head) =
            new_row.head.as_ref().filter(|_| verdicts[new_row.entry] == Verdict::Written)
        else {
            continue;
        };
        let has_its_number = |aside: &&Aside| {
            aside.entry.number == head.number && aside.entry.record.scope == head.scope
        };
        if let Some(other) = aside.iter().find(has_its_number) {
            let other = other.entry.record.allocation_id.as_bytes().to_vec();
            verdicts[new_row.entry] = match other == new_row.allocation_id {
                true => Verdict::Known,
                false => Verdict::Collided { other: Some(other) },
            };
        }
    }
    Ok(())
}

/// A record that is put aside, as it was issued.
pub(crate) struct Aside {
    pub(crate) entry: Entry,
    pub(crate) rejected_at_us: i64,
}

/// A record that is put aside, as it is kept.
#[derive(FromRow)]
struct RawAside {
    counter_id: i64,
    first_value: i64,
    raw: String,
    rejected_at_us: i64,
}

/// Records that may have one of the names, by the columns of their hashes, and those without any
/// name; without columns all of them. Newest first.
pub(crate) async fn named(
    conn: &mut Conn,
    columns: &[(&'static str, Vec<i64>)],
) -> Result<Vec<Aside>, LedgerError> {
    let mut query = QueryBuilder::new(
        "select counter_id, first_value, raw, rejected_at_us from journal_rejected",
    );
    let mut before = " where ";
    for (column, hashes) in columns.iter().filter(|(_, hashes)| !hashes.is_empty()) {
        query.push(before).push(column).push_among(hashes.clone());
        before = " or ";
    }
    query.push(" order by journal_rejected_id desc limit ").push_bind(ROWS_MAX);
    Ok(asides(query.build().typed().fetch_all(conn).await?))
}

/// Each allocation of rows once; what this version cannot read is left out.
fn asides(rows: Vec<RawAside>) -> Vec<Aside> {
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for RawAside { counter_id, first_value: first, raw, rejected_at_us } in rows {
        let Ok(mut entry) = read_raw(&raw) else { continue };
        let Some(head) = entry.taken.first_mut() else { continue };
        // A further serial's row says nothing of the number.
        if plausible(head, counter_id).0.first != first || !seen.insert(entry.record.allocation_id)
        {
            continue;
        }
        if counter_id != NO_COUNTER {
            head.counter_id = counter_id;
        }
        found.push(Aside { entry, rejected_at_us });
    }
    found
}

/// Adds records that are put aside to the journal's answers to questions, each for a document of
/// these projects: the newest of both counts.
pub(crate) async fn answer(
    conn: &mut Conn,
    questions: &[Question],
    projects: &[Projects],
    found: &mut [Found],
) -> Result<(), LedgerError> {
    let keys = |question: &Question| {
        let key = question.idempotency_key.as_deref()?;
        Some(key_hash(&question.user_id, key))
    };
    let documents = |question: &Question| question.document_id.as_deref().map(document_hash);
    let columns = [
        ("key_hash", questions.iter().filter_map(keys).collect::<Vec<_>>()),
        ("document_hash", questions.iter().filter_map(documents).collect()),
    ];
    let newer = |one: &Entry, than: &Option<Entry>| {
        than.as_ref().is_none_or(|than| than.record.issued_at_us <= one.record.issued_at_us)
    };
    for Aside { entry, .. } in named(conn, &columns).await? {
        for ((question, of), found) in questions.iter().zip(projects).zip(found.iter_mut()) {
            if question.is_keyed_like(&entry) && newer(&entry, &found.by_key) {
                found.by_key = Some(entry.clone());
            }
            if question.is_of_document(&entry, of) && newer(&entry, &found.by_document) {
                found.by_document = Some(entry.clone());
            }
        }
    }
    Ok(())
}

/// Allocations among these that are put aside.
pub(crate) async fn of_allocations(
    conn: &mut Conn,
    ids: Vec<Vec<u8>>,
) -> Result<Vec<Entry>, LedgerError> {
    let mut query = QueryBuilder::new(
        "select counter_id, first_value, raw, rejected_at_us from journal_rejected
         where allocation_id",
    );
    query.push_among(ids);
    let found = asides(query.build().typed().fetch_all(conn).await?);
    Ok(found.into_iter().map(|aside| aside.entry).collect())
}

/// The record whose range holds a value of a first serial's counter, if any does.
pub(crate) async fn of_value(
    conn: &mut Conn,
    counter_id: i64,
    value: i64,
) -> Result<Option<Aside>, LedgerError> {
    let rows = query_as(
        "select counter_id, first_value, raw, rejected_at_us from journal_rejected
         where counter_id = $1 and first_value <= $2 and last_value >= $2
         and ($2 - first_value) % step = 0",
    )
    .bind(counter_id)
    .bind(value)
    .fetch_all(conn)
    .await?;
    let is_first = |aside: &Aside| aside.entry.taken[0].counter_id == counter_id;
    Ok(asides(rows).into_iter().find(is_first))
}

/// The record at a place of a list: also of a counter that the ledger does not have.
pub(crate) async fn of_place(
    conn: &mut Conn,
    place: Position,
) -> Result<Option<Aside>, LedgerError> {
    let rows = query_as(
        "select counter_id, first_value, raw, rejected_at_us from journal_rejected
         where counter_id in ($1, $2) and first_value = $3",
    )
    .bind(place.of.counter_id)
    .bind(NO_COUNTER)
    .bind(place.of.value)
    .fetch_all(conn)
    .await?;
    let is_there = |aside: &Aside| {
        aside.entry.record.issued_at_us == place.issued_at_us
            && aside.entry.taken[0].counter_id == place.of.counter_id
    };
    Ok(asides(rows).into_iter().find(is_there))
}

/// A range as columns take it, whatever is wrong with it: the raw text keeps the truth.
fn plausible(taken: &numbering::TakenRange, counter_id: i64) -> (ValueRange, i64) {
    let clamp = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let (one, other) = (clamp(taken.range.first), clamp(taken.range.last));
    let (first, last) = (one.min(other), one.max(other));
    (ValueRange { counter_id, first, last }, clamp(taken.range.step).max(1))
}

/// Writes one raw row; false when it was there already.
async fn insert(
    conn: &mut Conn,
    entry: &Entry,
    (value_range, step): (ValueRange, i64),
    reason: &str,
    now_us: i64,
) -> Result<bool, LedgerError> {
    let names = AsideNames::of(entry);
    let done = query(
        "insert into journal_rejected (counter_id, first_value, last_value, step, allocation_id,
         raw, reason, rejected_at_us, number_hash, document_hash, key_hash)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing",
    )
    .bind(value_range.counter_id)
    .bind(value_range.first)
    .bind(value_range.last)
    .bind(step)
    .bind(entry.record.allocation_id.as_bytes().as_slice())
    .bind(raw(entry))
    .bind(reason.replace('\0', "\\0"))
    .bind(now_us)
    .bind(names.number)
    .bind(names.document)
    .bind(names.key)
    .execute(conn)
    .await?;
    Ok(done.rows_affected() == 1)
}

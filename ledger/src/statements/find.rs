//! Look-ups of people: journal rows by number, document, user or time. Reads only, and never the
//! whole journal where an index has less of it.

use std::cmp::Reverse;

use super::lookup::{journal_row_of, select_rows};
use super::{CALL, Store, query_scalar};
use crate::Ledger;
use crate::{JournalFilter, JournalRow, LedgerError, Position};

/// Most rows of a look-up, and rows where the caller names no limit.
const FIND_MAX: u32 = 1_000;
const FIND_DEFAULT: u32 = 100;
/// How far back a look-up by time alone reaches step by step, in microseconds: the newest rows are
/// found without sorting the whole journal.
const MINUTE_US: i64 = 60_000_000;
const LOOK_BACK_US: [i64; 3] = [3_600_000_000, 86_400_000_000, 31 * 86_400_000_000];

impl Ledger {
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
}

/// Whether rows are left that name their user themselves.
async fn has_wide_rows(store: &Store) -> Result<bool, LedgerError> {
    let wide: Option<i64> =
        query_scalar("select counter_id from journal where batch_id is null limit 1")
            .fetch_optional(&store.reader)
            .await?;
    Ok(wide.is_some())
}

/// Whose rows are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User<'f> {
    /// Everybody's.
    Any,
    /// By the id of a name.
    Id(i32),
    /// By the name: rows that are not turned over yet have no id of it.
    Name(&'f str),
}

async fn select(
    store: &Store,
    filter: &JournalFilter,
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    let Some(name) = &filter.user_id else {
        return select_of(store, filter, User::Any, limit).await;
    };
    if has_wide_rows(store).await? {
        return select_of(store, filter, User::Name(name), limit).await;
    }
    let ids: Vec<i32> = query_scalar("select name_id from journal_name where name = $1")
        .bind(name)
        .fetch_all(&store.reader)
        .await?;
    let mut rows = Vec::new();
    // Mostly one. Each has an order of its own.
    for id in &ids {
        rows.extend(select_of(store, filter, User::Id(*id), limit).await?);
    }
    let place = |row: &JournalRow| {
        let first = row.entry.taken.first().map(|taken| (taken.counter_id, taken.range.first));
        Reverse((row.entry.record.issued_at_us, first))
    };
    rows.sort_by_key(place);
    rows.truncate(limit);
    Ok(rows)
}

async fn select_of(
    store: &Store,
    filter: &JournalFilter,
    user: User<'_>,
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    // Which rows, and only of those what they share.
    let mut query = select_rows("journal_row");
    query.push(" where (j.counter_id, j.first_value) in (select i.counter_id, i.first_value from ");
    query.push(if let User::Name(_) = user { "journal_row" } else { "journal" });
    query.push(" i where i.number is not null");
    let texts =
        [(" and i.number = ", &filter.number), (" and i.document_id = ", &filter.document_id)];
    for (condition, value) in texts {
        if let Some(value) = value {
            query.push(condition).push_bind(value.clone());
        }
    }
    if let Some(from_us) = filter.from_us {
        query.push(" and i.issued_at_us >= ").push_bind(from_us);
    }
    if let Some(until_us) = filter.until_us {
        query.push(" and i.issued_at_us < ").push_bind(until_us);
    }
    if let Some(Position { issued_at_us, of }) = filter.after {
        query.push(" and (i.issued_at_us, i.counter_id, i.first_value) < (");
        query.push_bind(issued_at_us).push(", ").push_bind(of.counter_id).push(", ");
        query.push_bind(of.value).push(")");
    }
    let mut order = " order by ";
    match user {
        User::Any => {}
        User::Name(name) => {
            query.push(" and i.user_id = ").push_bind(name.to_owned());
        }
        User::Id(name_id) => {
            query.push(" and i.user_name_id = ").push_bind(name_id);
            // A user's rows are indexed by the minute.
            if let Some(from_us) = filter.from_us {
                query.push(" and i.issued_at_us / 60000000 >= ").push_bind(from_us / MINUTE_US);
            }
            if let Some(until_us) = filter.until_us {
                query.push(" and i.issued_at_us / 60000000 <= ").push_bind(until_us / MINUTE_US);
            }
            order = " order by i.issued_at_us / 60000000 desc, ";
        }
    }
    query.push(order).push("i.issued_at_us desc, i.counter_id desc, i.first_value desc limit ");
    query.push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    query.push(") order by j.issued_at_us desc, j.counter_id desc, j.first_value desc");
    let rows = query.build().fetch_all(&store.reader).await?;
    rows.iter().map(journal_row_of).collect()
}

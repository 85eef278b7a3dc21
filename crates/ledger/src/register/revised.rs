//! Revisions as rows of lists, each with the number that it is one of. They are in the order of
//! numbers, with the text and the time of the label. Reads only.

use std::collections::HashMap;

use sqlx_macros::FromRow;

use crate::calls::SEARCH;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::conditions::{push_periods, push_text_and_time};
use crate::register::documents::RevisionRow;
use crate::register::find::{
    FIND_DEFAULT, limit_max, push_own, push_shared, text_of as text_of_place, with_origins,
};
use crate::register::lookup::select_bare_rows;
use crate::register::paced::Paced;
use crate::register::shown;
use crate::{
    JournalFilter, JournalRow, LedgerError, NumberStatus, Position, REVISION_TEXTS, Register,
    RevisedRow, SearchPace, Sort, ValueOf,
};

/// Numbers that are read in one statement.
const NUMBERS_PER_SEARCH: usize = 200;

impl Register<'_> {
    /// A page of the revisions that match, in the order of the filter, at most 1,000 for a request
    /// and [`crate::SEARCH_ROWS_MAX`] for an export. A filter by number, time and user means the
    /// label's; all else is of the number that was revised.
    ///
    /// # Errors
    /// As [`crate::Register::find`].
    pub async fn find_revised(
        self,
        filter: &JournalFilter,
        pace: SearchPace,
    ) -> Result<Vec<RevisedRow>, LedgerError> {
        let limit_max = limit_max(pace);
        self.call(pace.call(SEARCH), async |store| {
            let mut paced = Paced::begin(store, pace).await?;
            let found = find(paced.conn(), filter, limit_max).await;
            paced.end(found).await
        })
        .await
    }
}

/// A revision, its id and its scope.
#[derive(FromRow)]
struct ListedRevision {
    revision_id: i64,
    scope: String,
    #[sqlx(flatten)]
    revision: RevisionRow,
}

async fn find(
    conn: &mut Conn,
    filter: &JournalFilter,
    limit_max: u32,
) -> Result<Vec<RevisedRow>, LedgerError> {
    // An issued number without a label has no revision.
    if filter.status == Some(NumberStatus::Issued) {
        return Ok(Vec::new());
    }
    let limit = if filter.limit == 0 { FIND_DEFAULT } else { filter.limit.min(limit_max) };
    let mut query = select(filter);
    push_place(conn, &mut query, filter).await?;
    query.push(match filter.sort {
        Sort::Time => " order by r.revised_at_us desc, r.revision_id desc limit ",
        Sort::Number => " order by r.number, r.scope limit ",
    });
    query.push_bind(i64::from(limit));
    let found: Vec<ListedRevision> = query.build().typed().fetch_all(&mut *conn).await?;
    let numbers = numbers_of(conn, &found).await?;
    let mut rows = Vec::with_capacity(found.len());
    for ListedRevision { revision_id, scope, revision } in found {
        let Some(row) = numbers.get(&revision.of) else { continue };
        let (row, revision) = (row.clone(), revision.try_into()?);
        rows.push(RevisedRow { revision_id, revision, scope, row });
    }
    Ok(rows)
}

/// The revisions that match, without a place and an order.
fn select(filter: &JournalFilter) -> QueryBuilder<'_> {
    let mut query = QueryBuilder::new(
        "select r.revision_id, r.scope, r.counter_id, r.value, r.rev, r.allocation_id, r.number,
         r.document_id, r.user_id, r.ip_address, r.reason, r.revised_at_us from revision r
         join journal_row i on i.counter_id = r.counter_id and i.first_value = r.value
         where i.number is not null",
    );
    let of_number = JournalFilter {
        number: None,
        number_prefix: None,
        number_part: None,
        from_us: None,
        until_us: None,
        ..filter.clone()
    };
    push_own(&mut query, &of_number);
    push_shared(&mut query, &of_number);
    push_periods(&mut query, "r.revised_at_us", &filter.periods);
    shown::push_rows(&mut query, "i", &filter.shown);
    push_text_and_time(&mut query, ("r.number", "r.revised_at_us"), filter);
    push_user(&mut query, filter);
    query
}

/// Adds whom the label was asked for by: a name is what follows the first `/` of an actor, or the
/// whole where there is none.
fn push_user(query: &mut QueryBuilder<'_>, filter: &JournalFilter) {
    let chars = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(service) = &filter.service {
        let begin = format!("{service}/");
        query.push(" and (r.user_id = ").push_bind(service.clone());
        query.push(" or substr(r.user_id, 1, cast(").push_bind(chars(&begin));
        query.push(" as integer)) = ").push_bind(begin).push(")");
    }
    if let Some(person) = &filter.user_id {
        let end = format!("/{person}");
        let before = "substr(r.user_id, 1, length(r.user_id) - cast(";
        query.push(" and (r.user_id = ").push_bind(person.clone());
        query.push(" or case when length(r.user_id) > ").push_bind(chars(&end));
        query.push(" then substr(r.user_id, length(r.user_id) - cast(").push_bind(chars(person));
        query.push(" as integer)) = ").push_bind(end.clone());
        // What is before that `/` has none.
        query.push(" and replace(").push(before).push_bind(chars(&end));
        query.push(" as integer)), '/', '') = ").push(before).push_bind(chars(&end));
        query.push(" as integer)) else 1 = 0 end)");
    }
}

/// Adds where the list goes on: behind a number, or behind a revision.
async fn push_place(
    conn: &mut Conn,
    query: &mut QueryBuilder<'_>,
    filter: &JournalFilter,
) -> Result<(), LedgerError> {
    let Some(after) = filter.after else { return Ok(()) };
    let Position { issued_at_us, of } = after;
    match filter.sort {
        // Of one time, revisions are behind all numbers.
        Sort::Time if of.counter_id == REVISION_TEXTS => {
            query.push(" and (r.revised_at_us, r.revision_id) < (").push_bind(issued_at_us);
            query.push(", ").push_bind(of.value).push(")");
        }
        Sort::Time => {
            query.push(" and r.revised_at_us <= ").push_bind(issued_at_us);
        }
        Sort::Number => {
            let (number, scope) = text_of_place(conn, filter, after).await?;
            query.push(" and (r.number, r.scope) > (").push_bind(number).push(", ");
            query.push_bind(scope).push(")");
        }
    }
    Ok(())
}

/// Text and scope of the revision at a place, if the place is one of a revision of this list.
pub(crate) async fn text_of(
    conn: &mut Conn,
    filter: &JournalFilter,
    after: Position,
) -> Result<Option<(String, String)>, LedgerError> {
    if after.of.counter_id != REVISION_TEXTS {
        return Ok(None);
    }
    let mut query = select(filter);
    query.push(" and r.revision_id = ").push_bind(after.of.value);
    query.push(" and r.revised_at_us = ").push_bind(after.issued_at_us);
    let found: Option<ListedRevision> = query.build().typed().fetch_optional(conn).await?;
    Ok(found.map(|found| (found.revision.number, found.scope)))
}

/// The numbers that revisions are of.
async fn numbers_of(
    conn: &mut Conn,
    revisions: &[ListedRevision],
) -> Result<HashMap<ValueOf, JournalRow>, LedgerError> {
    let mut numbers = HashMap::new();
    for part in revisions.chunks(NUMBERS_PER_SEARCH) {
        let mut query = select_bare_rows("journal_row");
        query.push(" where j.number is not null and (j.counter_id, j.first_value) in (");
        query.push_values(part, |mut row, ListedRevision { revision, .. }| {
            row.push_bind(revision.of.counter_id).push_bind(revision.of.value);
        });
        query.push(")");
        let rows = query.build().once().fetch_all(&mut *conn).await?;
        for row in with_origins(conn, &rows).await? {
            numbers.extend(ValueOf::number(&row).map(|of| (of, row)));
        }
    }
    Ok(numbers)
}

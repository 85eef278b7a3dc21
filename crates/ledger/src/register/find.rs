//! Look-ups of people: journal rows by what they know of a number. Reads only, never the whole
//! journal where an index has less of it, and never more than a page at once.

use std::collections::{BTreeSet, HashMap};

use numbering::ORIGINATORS;
use numerator_runtime::actor::through;

use crate::calls::{CALL, SEARCH};
use crate::dialect::Conn;
use crate::protocol::put_aside;
use crate::query::{QueryBuilder, Row, query_scalar};
use crate::register::actors::{self, User};
use crate::register::conditions::{push_periods, push_text_and_time, push_variable, spellings};
use crate::register::lookup::{Origin, bare_row_of, journal_row_of, select_bare_rows, select_rows};
use crate::register::paced::Paced;
use crate::register::{found_aside, revised, shown, statuses};
use crate::{
    JournalFilter, JournalRow, LedgerError, Position, Register, RowVisibility, SEARCH_ROWS_MAX,
    SearchPace, Series, Sort,
};

/// Most rows of a look-up, and rows where the caller names no limit.
const FIND_MAX: u32 = 1_000;
pub(crate) const FIND_DEFAULT: u32 = 100;
/// How far back a look-up by time alone reaches step by step, in microseconds: the newest rows are
/// found without sorting the whole journal.
const MINUTE_US: i64 = 60_000_000;
const LOOKBACK_US: [i64; 5] =
    [1_000_000, MINUTE_US, 3_600_000_000, 86_400_000_000, 31 * 86_400_000_000];

impl Register<'_> {
    /// A page of the journal rows that match, in the order of the filter's `sort`, at most 1,000.
    ///
    /// # Errors
    /// `LockTimeout` where one of its statements takes longer than those of a request may, which
    /// only one that no index serves does; `Refused` where the place to go on from is gone.
    pub async fn find(self, filter: &JournalFilter) -> Result<Vec<JournalRow>, LedgerError> {
        self.list(filter, SearchPace::Request).await
    }

    /// The same for a request, or for a caller that has time, such as an export: at most
    /// [`SEARCH_ROWS_MAX`] rows, and each statement may take as long as a search through the
    /// journal does.
    ///
    /// # Errors
    /// As above; of an export after ten minutes.
    pub async fn list(
        self,
        filter: &JournalFilter,
        pace: SearchPace,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        // Several of its statements may take their time, one after the other.
        let call = if filter.looks_at_rows() { SEARCH } else { CALL };
        let limit_max = limit_max(pace);
        self.call(pace.call(call), async |store| {
            let mut paced = Paced::begin(store, pace).await?;
            let found = find(paced.conn(), store.clock.now_us(), filter, limit_max).await;
            paced.end(found).await
        })
        .await
    }
}

/// Most rows of a list.
pub(crate) fn limit_max(pace: SearchPace) -> u32 {
    match pace {
        SearchPace::Request => FIND_MAX,
        SearchPace::Export => SEARCH_ROWS_MAX,
    }
}

impl Series<'_> {
    /// The id of the series that has a code, active or not.
    pub async fn id_of(self, code: &str) -> Result<Option<i64>, LedgerError> {
        self.read(async |reader| {
            let id = query_scalar("select series_id from series where code = $1").bind(code);
            Ok(id.fetch_optional(reader).await?)
        })
        .await
    }
}

async fn find(
    conn: &mut Conn,
    now_us: i64,
    filter: &JournalFilter,
    limit_max: u32,
) -> Result<Vec<JournalRow>, LedgerError> {
    let limit = if filter.limit == 0 { FIND_DEFAULT } else { filter.limit.min(limit_max) } as usize;
    let mut rows = journaled(conn, now_us, filter, limit).await?;
    let aside = found_aside::of(&mut *conn, filter).await?;
    if !aside.is_empty() {
        let behind = match (filter.after, filter.sort) {
            (Some(after), Sort::Number) => Some(text_of(&mut *conn, filter, after).await?),
            _ => None,
        };
        found_aside::add(conn, filter, (aside, behind), limit, &mut rows).await?;
    }
    Ok(rows)
}

async fn journaled(
    conn: &mut Conn,
    now_us: i64,
    filter: &JournalFilter,
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    let users = actors::of(&mut *conn, filter).await?;
    let mut rows = Vec::new();
    let mut window = filter.clone();
    if filter.sort == Sort::Number {
        return select(conn, &window, &users, limit).await;
    }
    // A place ends what is looked through, like a time.
    let after_us = filter.after.map(|after| after.issued_at_us.saturating_add(1));
    window.until_us = filter.until_us.into_iter().chain(after_us).min();
    if !is_led(filter, &users) {
        let newest_us = window.until_us.unwrap_or(now_us);
        for reach_us in LOOKBACK_US {
            let from_us = newest_us.saturating_sub(reach_us);
            if rows.len() >= limit || filter.from_us.is_some_and(|from| from >= from_us) {
                break;
            }
            window.from_us = Some(from_us);
            rows.extend(select(conn, &window, &users, limit - rows.len()).await?);
            window.until_us = Some(from_us);
        }
        window.from_us = filter.from_us;
    }
    if rows.len() < limit {
        rows.extend(select(conn, &window, &users, limit - rows.len()).await?);
    }
    Ok(rows)
}

/// Whether an index leads to the rows: none does to those of a service that asked for many people.
fn is_led(filter: &JournalFilter, users: &[User]) -> bool {
    match users {
        [User::Service(_)] => JournalFilter { service: None, ..filter.clone() }.has_index(),
        _ => filter.has_index(),
    }
}

async fn select(
    conn: &mut Conn,
    filter: &JournalFilter,
    users: &[User],
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    let mut rows = Vec::new();
    // Mostly one. Each has an order of its own.
    for user in users {
        rows.extend(select_of(&mut *conn, filter, user, limit).await?);
    }
    rows.sort_by(|one, other| filter.sort.order(one, other));
    rows.truncate(limit);
    Ok(rows)
}

async fn select_of(
    conn: &mut Conn,
    filter: &JournalFilter,
    user: &User,
    limit: usize,
) -> Result<Vec<JournalRow>, LedgerError> {
    // First the rows, and then for those alone what they share.
    let mut query = select_bare_rows("journal_row");
    query.push(" where (j.counter_id, j.first_value) in (select i.counter_id, i.first_value from ");
    query.push(if needs_shared(filter, user) { "journal_row" } else { "journal" });
    // A row that keeps the text of a revision is no number.
    query.push(" i where i.number is not null and i.counter_id <> 0");
    push_own(&mut query, filter);
    push_shared(&mut query, filter);
    push_periods(&mut query, "i.issued_at_us", &filter.periods);
    shown::push_rows(&mut query, "i", &filter.shown);
    push_place(conn, &mut query, filter).await?;
    let mut minutes = "";
    match user {
        User::Any => {}
        User::Named(names) => {
            let mut before = " and i.user_id in (";
            for name in names {
                query.push(before).push_bind(name.clone());
                before = ", ";
            }
            query.push(")");
        }
        User::Service(service) => {
            let begin = through(service, "");
            let chars = i64::try_from(begin.chars().count()).unwrap_or(i64::MAX);
            query.push(" and (i.user_id = ").push_bind(service.clone());
            query.push(" or substr(i.user_id, 1, cast(").push_bind(chars).push(" as integer)) = ");
            query.push_bind(begin).push(")");
        }
        User::Id(name_id) => {
            query.push(" and i.user_name_id = ").push_bind(*name_id);
            // A user's rows are indexed by the minute.
            if let Some(from_us) = filter.from_us {
                query.push(" and i.issued_at_us / 60000000 >= ").push_bind(from_us / MINUTE_US);
            }
            if let Some(until_us) = filter.until_us {
                query.push(" and i.issued_at_us / 60000000 <= ").push_bind(until_us / MINUTE_US);
            }
            minutes = "i.issued_at_us / 60000000 desc, ";
        }
    }
    query.push(" order by ");
    match filter.sort {
        Sort::Time => {
            query.push(minutes).push("i.issued_at_us desc, i.counter_id desc, i.first_value desc")
        }
        Sort::Number => query.push("i.number, i.scope"),
    };
    query.push(" limit ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    query.push(match filter.sort {
        Sort::Time => ") order by j.issued_at_us desc, j.counter_id desc, j.first_value desc",
        Sort::Number => ") order by j.number, j.scope",
    });
    let rows = query.build().fetch_all(&mut *conn).await?;
    with_origins(conn, &rows).await
}

/// Rows with what their versions say of them, read once for each version.
pub(crate) async fn with_origins(
    conn: &mut Conn,
    rows: &[Row],
) -> Result<Vec<JournalRow>, LedgerError> {
    let version = |row: &Row| -> Result<(i64, i32), sqlx::Error> {
        Ok((row.try_get("series_id")?, row.try_get("version")?))
    };
    let asked = rows.iter().map(version).collect::<Result<BTreeSet<_>, _>>()?;
    let mut origins = HashMap::new();
    if !asked.is_empty() {
        let mut query = QueryBuilder::new("with asked (series_id, version) as (");
        query.push_values(asked, |mut row, (series_id, version)| {
            row.push_bind(series_id).push_bind(version);
        });
        query.push(
            ") select v.series_id, v.version, v.definition from asked a
             join series_version v on v.series_id = a.series_id and v.version = a.version",
        );
        let rows: Vec<(i64, i32, String)> = query.build().once().typed().fetch_all(conn).await?;
        for (series_id, version, definition) in rows {
            origins.insert((series_id, version), Origin::read(&definition)?);
        }
    }
    // A version that is not in the ledger says nothing.
    let origin = |row: &Row| -> Result<Origin, LedgerError> {
        Ok(origins.get(&version(row)?).cloned().unwrap_or_default())
    };
    rows.iter().map(|row| bare_row_of(row, origin(row)?)).collect()
}

/// Whether rows are chosen by what they share with others.
fn needs_shared(filter: &JournalFilter, user: &User) -> bool {
    let texts = [&filter.type_code, &filter.project, &filter.dated_from, &filter.dated_until];
    matches!(user, User::Named(_) | User::Service(_))
        || filter.series_id.is_some()
        || !filter.periods.is_empty()
        || filter.shown != RowVisibility::Everything
        || texts.into_iter().any(Option::is_some)
}

/// Adds what a row must say itself.
pub(crate) fn push_own(query: &mut QueryBuilder<'_>, filter: &JournalFilter) {
    if let Some(document_id) = &filter.document_id {
        query.push(" and i.document_id = ").push_bind(document_id.clone());
    }
    push_text_and_time(query, ("i.number", "i.issued_at_us"), filter);
    if let Some(originator) = &filter.originator {
        push_variable(query, &ORIGINATORS, originator);
    }
    for (name, value) in &filter.variables {
        push_variable(query, &[name], value);
    }
    if let Some(path) = filter.path {
        query.push(" and coalesce(i.path, 'redis') = ").push_bind(path.name());
    }
    if let Some(status) = filter.status {
        query.push(statuses::condition_of(status));
    }
}

/// Adds what it shares with others.
pub(crate) fn push_shared(query: &mut QueryBuilder<'_>, filter: &JournalFilter) {
    if let Some(series_id) = filter.series_id {
        query.push(" and i.series_id = ").push_bind(series_id);
    }
    let texts =
        [(" and (i.type_code = ", &filter.type_code), (" and (i.project = ", &filter.project)];
    for (condition, value) in texts {
        let Some(value) = value else { continue };
        let [composed, decomposed] = spellings(value);
        query.push(condition).push_bind(composed);
        query.push(condition.replacen("and (", "or ", 1).as_str()).push_bind(decomposed).push(")");
    }
    for (condition, value) in [
        (" and i.document_date >= ", &filter.dated_from),
        (" and i.document_date < ", &filter.dated_until),
    ] {
        if let Some(value) = value {
            query.push(condition).push_bind(value.clone());
        }
    }
}

/// Adds where the list goes on.
async fn push_place(
    conn: &mut Conn,
    query: &mut QueryBuilder<'_>,
    filter: &JournalFilter,
) -> Result<(), LedgerError> {
    let Some(after) = filter.after else { return Ok(()) };
    match filter.sort {
        Sort::Time => {
            let Position { issued_at_us, of } = after;
            query.push(" and (i.issued_at_us, i.counter_id, i.first_value) < (");
            query.push_bind(issued_at_us).push(", ").push_bind(of.counter_id).push(", ");
            query.push_bind(of.value).push(")");
        }
        Sort::Number => {
            let (number, scope) = text_of(conn, filter, after).await?;
            query.push(" and (i.number, i.scope) > (").push_bind(number).push(", ");
            query.push_bind(scope).push(")");
        }
    }
    Ok(())
}

/// Number and scope of the row after which a list goes on. A row outside the list counts as
/// missing: an invented place reveals nothing of other rows.
pub(crate) async fn text_of(
    conn: &mut Conn,
    filter: &JournalFilter,
    after: Position,
) -> Result<(String, String), LedgerError> {
    let of = after.of;
    if let Some(text) = revised::text_of(&mut *conn, filter, after).await? {
        return Ok(text);
    }
    let mut found = select_rows("journal_row");
    found.push(" where j.number is not null and j.counter_id = ").push_bind(of.counter_id);
    found.push(" and j.first_value = ").push_bind(of.value);
    let journaled = found.build().fetch_optional(&mut *conn).await?;
    let mut row = journaled.as_ref().map(journal_row_of).transpose()?;
    // The name of what is put aside may be another number's by now.
    row = row.filter(|row| Position::of(row) == Some(after));
    if row.is_none()
        && let Some(aside) = put_aside::of_place(&mut *conn, after).await?
    {
        row = Some(found_aside::row_of(conn, aside).await?);
    }
    let is_listed = |row: &JournalRow| filter.has_text(&row.entry.number) && filter.matches(row);
    let Some(JournalRow { entry, .. }) = row.filter(is_listed) else {
        let why = "the journal does not have the number that the list goes on behind";
        return Err(LedgerError::Refused(format!("after: {why}; begin with the first page")));
    };
    Ok((entry.number, entry.record.scope.clone()))
}

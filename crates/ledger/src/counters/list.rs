//! Counters as people look them up, page by page. Reads only, and of the journal one row for each
//! counter of the page.

use numbering::CounterKey;
use sqlx_macros::FromRow;

use crate::columns::signed;
use crate::counters::table;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::gaps::bounded;
use crate::{
    COUNTERS_LOOKED_MAX, CounterFilter, CounterRow, Counters, Holding, KeyCondition, KeyPart,
    LedgerError, ListedCounter, ValueRuns,
};

/// A key with each part between two separators.
const KEY: &str = "(';' || key || ';')";

impl Counters<'_> {
    /// Counters that match, by series in the order of their ids, then by serial and key: a place
    /// that no write changes. `None` where `after` is no counter of the list.
    ///
    /// A person waits for it: as far as no series is named, counters are looked at until the page
    /// is full.
    pub async fn list(
        self,
        filter: &CounterFilter,
    ) -> Result<Option<Vec<ListedCounter>>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let page = page(&mut *tx, filter).await?;
            tx.commit().await?;
            Ok(page)
        })
        .await
    }
}

/// Most counters that are listed for one value.
const HOLDING_MAX: usize = 64;

impl Counters<'_> {
    /// The counters of a serial, with such parts in their keys, of which a run holds a value. For a
    /// person who has a text that does not show its counter. A number of its own is found by its
    /// text.
    pub async fn holding(
        self,
        runs: ValueRuns,
        (series_id, serial): (i64, &str),
        parts: &[(String, String)],
        value: u64,
    ) -> Result<Holding, LedgerError> {
        let of_serial = |query: &mut QueryBuilder<'_>| {
            query.push("series_id = ").push_bind(series_id);
            query.push(" and serial = ").push_bind(serial.to_owned());
            for (name, value) in parts {
                let (name, value) = (name.clone(), value.clone());
                let part = KeyPart { name, value, is_beginning: false, series: None };
                query.push(" and ");
                push_holds(query, text(&part), " <> ");
            }
        };
        self.holding_where(runs, of_serial, value).await
    }

    /// The same of counters by their names: series, serial, key.
    pub async fn named_holding(
        self,
        runs: ValueRuns,
        names: &[(i64, &str, &str)],
        value: u64,
    ) -> Result<Holding, LedgerError> {
        let named = |query: &mut QueryBuilder<'_>| {
            query.push("(series_id, serial, key) in (");
            query.push_values(names, |mut row, (series_id, serial, key)| {
                row.push_bind(*series_id);
                row.push_bind((*serial).to_owned()).push_bind((*key).to_owned());
            });
            query.push(")");
        };
        match names {
            [] => Ok(Holding { counters: Vec::new(), is_whole: true }),
            _ => self.holding_where(runs, named, value).await,
        }
    }

    /// Counters that a condition picks out, and of which a run holds a value.
    async fn holding_where(
        self,
        runs: ValueRuns,
        picked: impl Fn(&mut QueryBuilder<'_>),
        value: u64,
    ) -> Result<Holding, LedgerError> {
        let Ok(value) = i64::try_from(value) else {
            return Ok(Holding { counters: Vec::new(), is_whole: true });
        };
        let looked_at = |query: &mut QueryBuilder<'_>| {
            query.push("(select counter_id from counter where ");
            picked(query);
            // No value of a counter lies outside these.
            query.push(" and origin < ").push_bind(value).push(" and ceiling >= ").push_bind(value);
            query.push(" order by counter_id desc limit ");
            query.push_bind(i64::from(COUNTERS_LOOKED_MAX) + 1).push(") k");
        };
        let mut count = QueryBuilder::new("select count(*) from ");
        looked_at(&mut count);
        let mut query = QueryBuilder::new("select h.counter_id from (");
        match runs {
            ValueRuns::Issued => push_issued(&mut query, &looked_at, value),
            ValueRuns::Gaps => {
                query.push("select distinct g.counter_id from gap g join ");
                looked_at(&mut query);
                query.push(" on k.counter_id = g.counter_id where g.first_value <= ");
                query.push_bind(value).push(" and g.last_value >= ").push_bind(value);
            }
        }
        query.push(") h order by h.counter_id limit ");
        query.push_bind(signed(HOLDING_MAX as u64 + 1, "counters")?);
        self.search(async move |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let count = count.build().once().scalar::<i64>().fetch_all(&mut *tx).await?;
            let mut counters = query.build().once().scalar().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            let is_whole = counters.len() <= HOLDING_MAX
                && count.iter().all(|count| *count <= i64::from(COUNTERS_LOOKED_MAX));
            counters.truncate(HOLDING_MAX);
            Ok(Holding { counters, is_whole })
        })
        .await
    }
}

/// Adds counters among these of which a range has a value.
fn push_issued(
    query: &mut QueryBuilder<'_>,
    looked_at: &impl Fn(&mut QueryBuilder<'_>),
    value: i64,
) {
    query.push(
        "select c.counter_id from (select k.counter_id,
         (select max(i.first_value) from journal i where i.counter_id = k.counter_id
         and i.first_value <= ",
    );
    query.push_bind(value).push(") as first_value from ");
    looked_at(query);
    // A row without a number represents rows that are in the archive.
    query.push(
        ") c join journal_row j on j.counter_id = c.counter_id and j.first_value = c.first_value
         where (j.last_value > j.first_value or j.number is null) and j.last_value >= ",
    );
    query.push_bind(value);
    query.push(" union select r.counter_id from journal_rejected r join ");
    looked_at(query);
    query.push(" on k.counter_id = r.counter_id where r.last_value > r.first_value");
    query.push(" and r.first_value <= ").push_bind(value);
    query.push(" and r.last_value >= ").push_bind(value);
}

/// A page of counters; see [`crate::Counters::list`].
pub(crate) async fn page(
    conn: &mut Conn,
    filter: &CounterFilter,
) -> Result<Option<Vec<ListedCounter>>, LedgerError> {
    let mut statement = select();
    if let Some(after) = filter.after {
        // It must be of the list: an invented place reveals nothing of other counters.
        let mut place = QueryBuilder::new(
            "select series_id, serial, key from counter where counter_id <> 0 and counter_id = ",
        );
        push_filter(place.push_bind(after), filter);
        let place: Option<(i64, String, String)> =
            place.build().once().typed().fetch_optional(&mut *conn).await?;
        let Some((series_id, serial, key)) = place else { return Ok(None) };
        statement.push(" and (series_id, serial, key) > (");
        statement.push_bind(series_id).push(", ");
        statement.push_bind(serial).push(", ").push_bind(key).push(")");
    }
    push_filter(&mut statement, filter);
    statement.push(" order by series_id, serial, key limit ");
    statement.push_bind(bounded(filter.limit));
    statement.push(") c order by c.series_id, c.serial, c.key");
    let rows: Vec<ListedRow> = statement.build().once().typed().fetch_all(conn).await?;
    let listed = |ListedRow { counter, last_used_at_us }| {
        Ok(ListedCounter { counter: counter.try_into()?, last_used_at_us })
    };
    rows.into_iter().map(listed).collect::<Result<_, _>>().map(Some)
}

/// A counter, and when it was used last.
#[derive(FromRow)]
struct ListedRow {
    #[sqlx(flatten)]
    counter: CounterRow,
    last_used_at_us: Option<i64>,
}

/// The beginning of the query: which counters, and of those alone when they were used.
fn select<'q>() -> QueryBuilder<'q> {
    let mut query = QueryBuilder::new(
        "select c.counter_id, c.series_id, c.serial, c.key, c.partition_id, c.epoch, c.origin,
         c.start_value, c.taken, c.ceiling, c.step, c.journaled, c.returned, c.reissued,
         c.seeded_by, (select j.issued_at_us from journal j where j.counter_id = c.counter_id
         order by j.first_value desc limit 1) as last_used_at_us from (",
    );
    query.push(table::COLUMNS).push("where counter_id <> 0");
    query
}

/// Adds which counters are asked for.
fn push_filter(query: &mut QueryBuilder<'_>, filter: &CounterFilter) {
    if let Some(series_id) = filter.series_id {
        query.push(" and series_id = ").push_bind(series_id);
    }
    for condition in &filter.keys {
        push_condition(query, condition);
    }
}

fn push_condition(query: &mut QueryBuilder<'_>, condition: &KeyCondition) {
    query.push(" and (1 = 0");
    for part in &condition.parts {
        query.push(" or (");
        push_holds(query, text(part), " <> ");
        push_series(query, part.series.as_deref());
        query.push(")");
    }
    if !condition.series_without.is_empty() {
        query.push(" or (1 = 1");
        for name in &condition.absent {
            query.push(" and ");
            push_holds(query, format!(";{name}="), " = ");
        }
        push_series(query, Some(&condition.series_without));
        query.push(")");
    }
    query.push(")");
}

/// Whether a counter's key holds what is asked for, as [`push_condition`] asks the ledger.
pub(crate) fn holds(condition: &KeyCondition, series_id: i64, key: &str) -> bool {
    let key = format!(";{key};");
    let is_of = |series: &[i64]| series.contains(&series_id);
    let has =
        |part: &KeyPart| key.contains(&text(part)) && part.series.as_deref().is_none_or(is_of);
    let is_without = || condition.absent.iter().all(|name| !key.contains(&format!(";{name}=")));
    condition.parts.iter().any(has) || is_of(&condition.series_without) && is_without()
}

/// Whether a key is another one without a text, or the same.
fn push_holds(query: &mut QueryBuilder<'_>, text: String, sign: &str) {
    query.push("replace(").push(KEY).push(", ").push_bind(text).push(", '')").push(sign).push(KEY);
}

fn push_series(query: &mut QueryBuilder<'_>, series: Option<&[i64]>) {
    match series {
        None => {}
        Some([]) => {
            query.push(" and 1 = 0");
        }
        Some(ids) => {
            query.push(" and series_id").push_among(ids.to_vec());
        }
    }
}

/// A part as it is written in a key. What a key escapes contains no plain separator, so that
/// nothing else reads like this.
fn text(part: &KeyPart) -> String {
    let KeyPart { name, value, is_beginning, .. } = part;
    let key = CounterKey { parts: vec![(name.clone(), value.clone())] };
    format!(";{key}{}", if *is_beginning { "" } else { ";" })
}

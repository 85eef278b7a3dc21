//! Gaps where lists show them: next to numbers of their counters, of counters without a number, and
//! by one of their values. Reads only.

use sqlx_macros::FromRow;

use crate::calls::SEARCH;
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::register::gaps::{COLUMNS, GapRow, SELECT};
use crate::register::paced::Paced;
use crate::{Gap, GapsBeside, JournalFilter, LedgerError, Register, SearchPace, ValueOf};

/// Numbers whose gaps are looked for in one statement.
const NUMBERS_PER_SEARCH: usize = 200;

/// A gap, and the number that it is shown with.
#[derive(FromRow)]
struct GapBesideRow {
    beside: i64,
    #[sqlx(flatten)]
    gap: GapRow,
}

impl Register<'_> {
    /// The gaps next to the first of these numbers, by counter and value, until there are
    /// `gaps_max`, which may be exceeded by as many: those between a number and the row before it
    /// in its counter, and those above one that is its counter's last. A gap is next to one number
    /// at most, and to none where a row that represents archived ones is above it.
    ///
    /// # Errors
    /// `Refused` where more than `gaps_max` are next to one number; `LockTimeout` where a statement
    /// takes longer than the pace allows.
    pub async fn gaps_beside(
        self,
        numbers: &[ValueOf],
        gaps_max: usize,
        pace: SearchPace,
    ) -> Result<GapsBeside, LedgerError> {
        self.call(pace.call(SEARCH), async |store| {
            let mut paced = Paced::begin(store, pace).await?;
            let found = beside(paced.conn(), numbers, gaps_max).await;
            paced.end(found).await
        })
        .await
    }

    /// Gaps of counters of which the journal never had a number, that were noted in the filter's
    /// time, of its series, after a counter and value, by counter and value, at most the filter's
    /// `limit`.
    ///
    /// # Errors
    /// `LockTimeout` where a statement takes longer than the pace allows.
    pub async fn gaps_without_numbers(
        self,
        filter: &JournalFilter,
        after: Option<ValueOf>,
        pace: SearchPace,
    ) -> Result<Vec<Gap>, LedgerError> {
        self.call(pace.call(SEARCH), async |store| {
            let mut paced = Paced::begin(store, pace).await?;
            let found = without_numbers(paced.conn(), filter, after).await;
            paced.end(found).await
        })
        .await
    }

    /// The gap that has a value of a counter, if one does.
    pub async fn gap_of(self, counter_id: i64, value: u64) -> Result<Option<Gap>, LedgerError> {
        self.read(async |reader| {
            let Ok(value) = i64::try_from(value) else { return Ok(None) };
            let mut query = QueryBuilder::new(SELECT);
            // Gaps of a counter do not overlap, but one on another step may reach over a value.
            query.push(" where g.counter_id = ").push_bind(counter_id);
            query.push(" and g.first_value <= ").push_bind(value);
            query.push(" and g.last_value >= ").push_bind(value);
            query.push(" and (").push_bind(value).push(" - g.first_value) % g.step = 0 limit 1");
            query.build().typed::<GapRow>().fetch_optional_into(reader).await
        })
        .await
    }
}

async fn beside(
    conn: &mut Conn,
    numbers: &[ValueOf],
    gaps_max: usize,
) -> Result<GapsBeside, LedgerError> {
    let mut found = GapsBeside::default();
    let mut size = NUMBERS_PER_SEARCH;
    while found.numbers < numbers.len() && found.gaps.len() < gaps_max {
        let rest = &numbers[found.numbers..];
        let part = &rest[..size.min(rest.len())];
        let query = select_beside(part, gaps_max);
        let rows: Vec<GapBesideRow> = query.build().once().typed().fetch_all(&mut *conn).await?;
        if rows.len() > gaps_max {
            if part.len() == 1 {
                return Err(LedgerError::Refused(format!(
                    "kinds: more than {gaps_max} gaps are next to one number; leave gaps out of \
                     the list, and read them with `numerator gaps`"
                )));
            }
            size = part.len() / 2;
            continue;
        }
        for GapBesideRow { beside, gap } in rows {
            let gap = Gap::try_from(gap)?;
            found.gaps.push((ValueOf { counter_id: gap.counter_id, value: beside }, gap));
        }
        found.numbers += part.len();
    }
    Ok(found)
}

/// The query for the gaps next to numbers. Only counters with a gap are looked at in the journal,
/// each by two looks into an index.
fn select_beside(numbers: &[ValueOf], gaps_max: usize) -> QueryBuilder<'static> {
    let mut query = QueryBuilder::new("with asked (counter_id, value) as (");
    query.push_values(numbers, |mut row, of| {
        row.push_bind(of.counter_id).push_bind(of.value);
    });
    query.push(
        "), beside as (select a.counter_id, a.value,
           coalesce((select max(j.first_value) from journal j where j.counter_id = a.counter_id
             and j.first_value < a.value), -1) as below,
           case when a.value < (select max(j.first_value) from journal j
             where j.counter_id = a.counter_id) then 0 else 1 end as is_last
         from asked a where exists (select 1 from gap e where e.counter_id = a.counter_id))
         select b.value as beside, ",
    );
    query.push(COLUMNS);
    query.push(
        " from beside b join gap g on g.counter_id = b.counter_id and g.first_value > b.below
           and (g.first_value < b.value or b.is_last = 1)
         join counter c on c.counter_id = g.counter_id
         order by g.counter_id, g.first_value limit ",
    );
    query.push_bind(i64::try_from(gaps_max).unwrap_or(i64::MAX).saturating_add(1));
    query
}

async fn without_numbers(
    conn: &mut Conn,
    filter: &JournalFilter,
    after: Option<ValueOf>,
) -> Result<Vec<Gap>, LedgerError> {
    let mut query = QueryBuilder::new(SELECT);
    // The first row of a counter says what all of them are: numbers, or what represents archived
    // ones; or values of further serials.
    query.push(
        " where g.counter_id in (select d.counter_id from
         (select distinct counter_id from gap) d where coalesce((select case
         when j.number is not null or j.path = 'archived' then 1 else 0 end from journal j
         where j.counter_id = d.counter_id order by j.first_value limit 1), 0) = 0)",
    );
    if let Some(series_id) = filter.series_id {
        query.push(" and c.series_id = ").push_bind(series_id);
    }
    if let Some(from_us) = filter.from_us {
        query.push(" and g.noted_at_us >= ").push_bind(from_us);
    }
    if let Some(until_us) = filter.until_us {
        query.push(" and g.noted_at_us < ").push_bind(until_us);
    }
    if let Some(after) = after {
        query.push(" and (g.counter_id, g.first_value) > (").push_bind(after.counter_id);
        query.push(", ").push_bind(after.value).push(")");
    }
    query.push(" order by g.counter_id, g.first_value limit ");
    query.push_bind(i64::from(filter.limit));
    query.build().typed::<GapRow>().fetch_all_into(conn).await
}

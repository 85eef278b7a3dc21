//! Reads of what became of numbers: of pages of the journal, along replacements, for checks.

use uuid::Uuid;

use super::{ActRow, COLUMNS, Life, acts_upon_numbers};
use crate::columns::Word;
use crate::query::{QueryBuilder, query_scalar};
use crate::{
    ACTS_PER_ROW_MAX, Audits, CHAIN_MAX, LedgerError, LifeAct, LifeRow, Run, StrayAct, ValueOf,
};

/// Most rows of a page.
const PAGE_MAX: u32 = 1_000;

/// The id, the act, counter and value, and the number.
type StrayRow = (i64, String, i64, i64, Option<String>);

/// Journal rows whose acts are looked for in one statement.
const ROWS_PER_SEARCH: usize = 200;

impl Life<'_> {
    /// The acts upon the numbers of journal rows, oldest first. Each row is given once, by its
    /// counter and its values. Of each act at most [`ACTS_PER_ROW_MAX`] of one row, those of its
    /// first values.
    pub async fn of_rows(self, rows: &[(i64, Run)]) -> Result<Vec<LifeRow>, LedgerError> {
        self.read(async |reader| {
            let mut found = Vec::new();
            for part in rows.chunks(ROWS_PER_SEARCH) {
                let mut query =
                    QueryBuilder::new("with asked (counter_id, from_value, upto_value) as (");
                query.push_values(part, |mut row, (counter_id, run)| {
                    row.push_bind(*counter_id).push_bind(run.first).push_bind(run.last);
                });
                query.push(concat!(
                    "), placed as (select l.life_id as placed_id, row_number() over (
                     partition by a.counter_id, a.from_value, l.act
                     order by l.first_value, l.life_id) as place
                     from asked a join life l on l.counter_id = a.counter_id
                     and l.first_value >= a.from_value and l.first_value <= a.upto_value
                     where l.act in ",
                    acts_upon_numbers!(),
                    ") "
                ));
                query
                    .push(COLUMNS)
                    .push("join placed p on p.placed_id = l.life_id where p.place <= ");
                query.push_bind(i64::from(ACTS_PER_ROW_MAX)).push(" order by l.life_id");
                let rows = query.build().once().typed::<ActRow>();
                found.append(&mut rows.fetch_all_into(reader).await?);
            }
            Ok(found)
        })
        .await
    }

    /// How many numbers of a range have an act that a number has once: are void, or assigned.
    pub async fn count_once(
        self,
        counter_id: i64,
        run: Run,
        act: LifeAct,
    ) -> Result<u64, LedgerError> {
        self.read(async |reader| {
            let count: i64 = query_scalar(
                "select count(*) from life where counter_id = $1 and first_value >= $2
                 and first_value <= $3 and once = $4",
            )
            .bind(counter_id)
            .bind(run.first)
            .bind(run.last)
            .bind(act.word())
            .fetch_one(reader)
            .await?;
            Ok(u64::try_from(count).unwrap_or(0))
        })
        .await
    }

    /// All acts of a range that a number has once, by their values, however many they are.
    pub async fn all_once(
        self,
        counter_id: i64,
        run: Run,
        act: LifeAct,
    ) -> Result<Vec<LifeRow>, LedgerError> {
        let (mut all, mut from) = (Vec::new(), run.first);
        loop {
            let page = self.read(async |reader| {
                let mut query = QueryBuilder::new(COLUMNS);
                query.push("where l.counter_id = ").push_bind(counter_id);
                query.push(" and l.first_value >= ").push_bind(from);
                query.push(" and l.first_value <= ").push_bind(run.last);
                query.push(" and l.once = ").push_bind(act.word());
                query.push(" order by l.first_value limit ").push_bind(i64::from(PAGE_MAX));
                query.build().typed::<ActRow>().fetch_all_into(reader).await
            });
            let mut page: Vec<LifeRow> = page.await?;
            let Some(last) = page.last() else { return Ok(all) };
            from = last.of.value.saturating_add(1);
            all.append(&mut page);
        }
    }

    /// Whether a number is void, or was corrected, in a counter some of whose rows are in the
    /// archive: its row may be in a file as well.
    pub async fn is_any_beside_segments(self) -> Result<bool, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let any: Option<i64> = query_scalar(concat!(
                "select l.counter_id from (select distinct counter_id from life
                 where act in ",
                acts_upon_numbers!(),
                ") l where exists (select 1 from journal s where s.counter_id = l.counter_id
                 and s.number is null and s.context is not null) limit 1"
            ))
            .fetch_optional(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(any.is_some())
        })
        .await
    }

    /// The links to numbers that these allocations replace.
    pub async fn replaced_by(self, allocations: &[Uuid]) -> Result<Vec<LifeRow>, LedgerError> {
        self.read(async |reader| {
            let mut found = Vec::new();
            for part in allocations.chunks(ROWS_PER_SEARCH) {
                let mut query = QueryBuilder::new(COLUMNS);
                let ids: Vec<Vec<u8>> = part.iter().map(|id| id.as_bytes().to_vec()).collect();
                query.push("where l.other").push_among(ids).push(" and l.other is not null");
                query.push(" order by l.life_id");
                let rows = query.build().typed::<ActRow>();
                found.append(&mut rows.fetch_all_into(reader).await?);
            }
            Ok(found)
        })
        .await
    }

    /// The links of the chain of replacements that a number is part of, the oldest first, at most
    /// [`CHAIN_MAX`] in each direction.
    pub async fn chain_of(
        self,
        of: ValueOf,
        allocation_id: Uuid,
    ) -> Result<Vec<LifeRow>, LedgerError> {
        let mut chain = Vec::new();
        let mut replacing = allocation_id;
        while chain.len() < CHAIN_MAX {
            let Some(link) = self.replaced_by(&[replacing]).await?.into_iter().next() else {
                break;
            };
            replacing = link.subject;
            chain.push(link);
        }
        chain.reverse();
        let mut next = self.standing_of(of).await?.replaced;
        for _ in 0..CHAIN_MAX {
            let Some(link) = next else { break };
            // A replacement is one number.
            next = match link.other {
                Some(other) => self.link_of(other).await?,
                None => None,
            };
            chain.push(link);
        }
        Ok(chain)
    }

    /// The registration that passed over a value for good, if one did: of those above it that
    /// passed over values, the first [`ACTS_PER_ROW_MAX`] are looked at.
    pub async fn passed_over_by(self, of: ValueOf) -> Result<Option<LifeRow>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where l.counter_id = ").push_bind(of.counter_id);
            query.push(" and l.first_value > ").push_bind(of.value);
            query.push(" and l.act = 'registered' and l.detail is not null");
            query.push(" order by l.first_value limit ");
            query.push_bind(i64::from(ACTS_PER_ROW_MAX));
            let rows: Vec<LifeRow> = query.build().typed::<ActRow>().fetch_all_into(reader).await?;
            let has_it = |row: &LifeRow| {
                let passed = row.passed_over.filter(|passed| !passed.is_returned);
                passed.is_some_and(|passed| (passed.first..=passed.last).contains(&of.value))
            };
            Ok(rows.into_iter().find(has_it))
        })
        .await
    }

    /// The link from the number of an allocation to its replacement.
    async fn link_of(self, allocation_id: Uuid) -> Result<Option<LifeRow>, LedgerError> {
        self.read(async |reader| {
            let mut query = QueryBuilder::new(COLUMNS);
            query.push("where l.subject = ").push_bind(allocation_id.as_bytes().to_vec());
            query.push(" and l.act = 'replaced' order by l.life_id limit 1");
            query.build().typed::<ActRow>().fetch_optional_into(reader).await
        })
        .await
    }
}

impl Audits<'_> {
    /// Acts upon numbers that have neither a row of the journal, nor a segment, nor a record that
    /// was put aside; assignments whose act, or whose way from the document, is missing; at most
    /// `limit`: there are none unless another program wrote into the ledger.
    pub async fn stray_acts(self, limit: u32) -> Result<Vec<StrayAct>, LedgerError> {
        self.search(async |store| {
            let mut tx = store.reader.begin().await?;
            tx.allow_long_search().await?;
            let mut query = QueryBuilder::new(concat!(
                "select l.life_id, l.act, l.counter_id, l.first_value, l.number from life l
                 where l.act in ",
                acts_upon_numbers!(),
                " and (not coalesce((select s.last_value >= l.first_value
                   and (s.path = 'archived' or s.allocation_id = l.subject) from journal_row s
                   where s.counter_id = l.counter_id and s.first_value <= l.first_value
                   order by s.first_value desc limit 1), false)
                 or l.act = 'assigned' and not exists (select 1 from assignment a
                   where a.counter_id = l.counter_id and a.value = l.first_value
                   and a.document_id = l.document_id))
                 union all
                 select 0, 'assigned', a.counter_id, a.value, a.number from assignment a
                 where not exists (select 1 from life l where l.counter_id = a.counter_id
                   and l.first_value = a.value and l.once = 'assigned'
                   and l.document_id = a.document_id)
                 order by 1, 3, 4 limit "
            ));
            query.push_bind(i64::from(limit.min(PAGE_MAX)));
            let rows: Vec<StrayRow> = query.build().typed().fetch_all(&mut *tx).await?;
            tx.commit().await?;
            let stray = |(life_id, act, counter_id, value, number): StrayRow| {
                let of = ValueOf { counter_id, value };
                LifeAct::read(&act).map(|act| StrayAct { life_id, act, of, number })
            };
            rows.into_iter().map(stray).collect()
        })
        .await
    }
}

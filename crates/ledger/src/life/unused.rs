//! Voids what a range did not use: every number of it that has neither a document nor a void, in
//! one transaction. Each is an act of its own, as if it were voided alone.

use std::collections::HashSet;

use super::{ActRow, COLUMNS, Life, lock};
use crate::columns::{signed, unsigned};
use crate::dialect::Conn;
use crate::query::{QueryBuilder, query_scalar};
use crate::store::{Store, commit_alone};
use crate::{
    ACTS_PER_ROW_MAX, Entry, LedgerError, LifeRow, NewAct, Run, UNUSED_VOIDED_MAX, UnusedVoided,
    VoidingUnused,
};

/// Values whose acts are looked for in one statement.
const VALUES_PER_SEARCH: i64 = 10_000;

/// Acts that are written in one statement.
const ACTS_PER_WRITE: usize = 500;

/// The values of a range.
struct Values {
    counter_id: i64,
    run: Run,
}

impl Life<'_> {
    /// Voids the numbers of a range that have neither a document nor a void, at most
    /// [`UNUSED_VOIDED_MAX`] of them. `new` names any number of the range. Safe to repeat: the same
    /// call goes on with what is left, and else finds what it voided. What is counted is counted
    /// once the counter is free again.
    ///
    /// # Errors
    /// `LockTimeout` where a counter is held: worth a retry. `Unreachable` also where the numbers
    /// are void and could not be counted: it says that it may have written.
    pub async fn void_unused(
        self,
        new: &NewAct,
        range: &Entry,
    ) -> Result<VoidingUnused, LedgerError> {
        self.search(async |store| {
            let mut tx = store.begin().await?;
            let Some(journaled) = lock(&mut *tx, new).await? else {
                return Ok(VoidingUnused::Gone);
            };
            if let Some(document_id) = journaled.document_id {
                return Ok(VoidingUnused::OfDocument(document_id));
            }
            let step = range.taken.first().map_or(1, |taken| taken.range.step);
            let run = Run {
                first: new.row_first,
                last: journaled.last_value,
                step: signed(step, "step")?.max(1),
            };
            if run.first == run.last {
                return Ok(VoidingUnused::NotOfARange);
            }
            let values = Values { counter_id: new.of.counter_id, run };
            let unused = values.unused(&mut *tx, new).await?;
            let at_us = store.clock.now_us();
            for part in unused.chunks(ACTS_PER_WRITE) {
                void_all(&mut *tx, new, range, (part, at_us)).await?;
            }
            if unused.is_empty() {
                tx.rollback().await?;
            } else {
                commit_alone(store, tx).await?;
            }
            let counted = values.counted(store, new, unused.len()).await;
            let done = counted.map_err(|error| match unused.is_empty() {
                true => error,
                false => error.behind_commit(),
            });
            Ok(VoidingUnused::Done(done?))
        })
        .await
    }

    /// The numbers of a range that a principal voided for a reason, and how many are left.
    pub async fn unused_voided(self, new: &NewAct, run: Run) -> Result<UnusedVoided, LedgerError> {
        self.search(async |store| {
            Values { counter_id: new.of.counter_id, run }.counted(store, new, 0).await
        })
        .await
    }
}

impl Values {
    /// Those that have neither a document nor a void: first those behind the last one that the
    /// principal voided for this reason, where an earlier call has stopped.
    async fn unused(&self, conn: &mut Conn, new: &NewAct) -> Result<Vec<i64>, LedgerError> {
        let Run { first, last, step } = self.run;
        let voided = self.last_voided(&mut *conn, new).await?;
        let from = voided.map_or(first, |voided| voided.saturating_add(step));
        let mut unused = Vec::new();
        self.add_unused(&mut *conn, (from, last), &mut unused).await?;
        self.add_unused(&mut *conn, (first, from.saturating_sub(step)), &mut unused).await?;
        Ok(unused)
    }

    /// Adds the condition of the acts upon the range.
    fn push_within(&self, query: &mut QueryBuilder<'_>) {
        query.push("where l.counter_id = ").push_bind(self.counter_id);
        query.push(" and l.first_value >= ").push_bind(self.run.first);
        query.push(" and l.first_value <= ").push_bind(self.run.last);
    }

    /// Adds the condition of those that a principal voided for a reason.
    fn push_voided(&self, query: &mut QueryBuilder<'_>, new: &NewAct) {
        self.push_within(query);
        query.push(" and l.once = 'voided' and l.user_id = ").push_bind(new.user_id.clone());
        query.push(" and l.reason = ").push_bind(new.reason.clone());
    }

    /// The highest value that a principal voided for a reason.
    async fn last_voided(&self, conn: &mut Conn, new: &NewAct) -> Result<Option<i64>, LedgerError> {
        let mut query = QueryBuilder::new("select l.first_value from life l ");
        self.push_voided(&mut query, new);
        query.push(" order by l.first_value desc limit 1");
        Ok(query.build().scalar().fetch_optional(conn).await?)
    }

    /// Adds those from one value to another, the lowest first, until they are as many as one call
    /// voids.
    async fn add_unused(
        &self,
        conn: &mut Conn,
        (mut from, last): (i64, i64),
        unused: &mut Vec<i64>,
    ) -> Result<(), LedgerError> {
        let step = self.run.step;
        while from <= last && unused.len() < UNUSED_VOIDED_MAX as usize {
            let upto = last.min(from.saturating_add((VALUES_PER_SEARCH - 1).saturating_mul(step)));
            let used = self.used_within(&mut *conn, from, upto).await?;
            while from <= upto && unused.len() < UNUSED_VOIDED_MAX as usize {
                if !used.contains(&from) {
                    unused.push(from);
                }
                from = from.saturating_add(step);
            }
        }
        Ok(())
    }

    async fn used_within(
        &self,
        conn: &mut Conn,
        from: i64,
        upto: i64,
    ) -> Result<HashSet<i64>, LedgerError> {
        let used: Vec<i64> = query_scalar(
            "select first_value from life where counter_id = $1 and first_value >= $2
             and first_value <= $3 and once in ('voided', 'assigned')",
        )
        .bind(self.counter_id)
        .bind(from)
        .bind(upto)
        .fetch_all(conn)
        .await?;
        Ok(used.into_iter().collect())
    }

    /// What a principal voided for a reason, outside the transaction that voids.
    async fn counted(
        &self,
        store: &Store,
        new: &NewAct,
        written: usize,
    ) -> Result<UnusedVoided, LedgerError> {
        let mut conn = store.reader.acquire().await?;
        let mut query = QueryBuilder::new("select count(distinct l.first_value) from life l ");
        self.push_within(&mut query);
        query.push(" and l.once in ('voided', 'assigned')");
        let used: i64 = query.build().scalar().fetch_one(&mut *conn).await?;
        let mut query = QueryBuilder::new("select count(*) from life l ");
        self.push_voided(&mut query, new);
        let count: i64 = query.build().scalar().fetch_one(&mut *conn).await?;
        let mut query = QueryBuilder::new(COLUMNS);
        self.push_voided(&mut query, new);
        query.push(" order by l.first_value limit ").push_bind(i64::from(ACTS_PER_ROW_MAX));
        let rows: Vec<LifeRow> = query.build().typed::<ActRow>().fetch_all_into(&mut *conn).await?;
        let Run { first, last, step } = self.run;
        let all = (last - first) / step + 1;
        Ok(UnusedVoided {
            written: u64::try_from(written).unwrap_or(u64::MAX),
            count: unsigned(count, "life")?,
            rows,
            left: unsigned((all - used).max(0), "life")?,
        })
    }
}

/// Voids numbers of a range, whose counter is locked and which are not void.
async fn void_all(
    conn: &mut Conn,
    new: &NewAct,
    range: &Entry,
    (values, at_us): (&[i64], i64),
) -> Result<(), LedgerError> {
    let text = |value: i64| u64::try_from(value).ok().and_then(|value| range.text_of(value));
    let mut query = QueryBuilder::new(
        "insert into life (act, once, at_us, counter_id, first_value, last_value, subject, number,
         user_id, ip_address, reason) ",
    );
    query.push_values(values, |mut row, value| {
        row.push_bind("voided").push_bind("voided").push_bind(at_us);
        row.push_bind(new.of.counter_id).push_bind(*value).push_bind(*value);
        row.push_bind(new.allocation_id.as_bytes().to_vec()).push_bind(text(*value));
        row.push_bind(&new.user_id).push_bind(&new.ip_address).push_bind(&new.reason);
    });
    query.build().once().execute(conn).await?;
    Ok(())
}

//! The import of what another system has issued: its counters and their numbers, all or nothing.
//!
//! A counter that is new is in epoch 0, older than any: its first touch continues above what was
//! imported, so no caller has to stop for it. An existing counter is raised where the import goes
//! above it, while no other transaction can count it (`lift`). Up to the present value of a
//! counter, only numbers can come that an earlier import has left out: they are below all that is
//! issued here, and their rows shrink its gap like any late row.

mod chunks;
mod documents;
mod homes;

use std::collections::{BTreeSet, HashMap};

use crate::calls::CALL;
use crate::columns::{self, bytes, signed, small};
use crate::counters::table::by_name;
use crate::dialect::Conn;
use crate::number_hash;
use crate::protocol::named_counters::name;
use crate::protocol::{chronology, lift};
use crate::query::{QueryBuilder, query_as};
use crate::register::gaps::{self, Loss};
use crate::series::{saving, texts};
use crate::store::{Store, commit_alone};
use crate::{
    At, Entry, GapReason, Imported, ImportedCounter, ImportedEntries, ImportedVersion, Imports,
    IssuePath, LedgerError, archive,
};
use documents::BroughtDocuments;
use numbering::Range;
use numerator_runtime::node::NodeId;
use sqlx_macros::FromRow;

/// Rows per statement: far below an engine's limit of parameters.
const ROWS_PER_STATEMENT: usize = 500;

impl Imports<'_> {
    /// Raises counters to what another system has issued of them and journals its numbers, in one
    /// transaction: all or nothing. Values up to a counter's highest that are not part of the
    /// import become gaps. Safe while services run: the first touch of a new counter continues
    /// above its highest. An existing one is raised to its highest while its row is locked; of the
    /// values up to its present one, only those can come that an earlier import left open. Blocks
    /// callers that need one of the counters that are new or raised, and on SQLite all writers.
    /// Earlier versions that a series does not know come before the one in force, which stays so:
    /// later saves are proved against them. One import at a time, at most eleven minutes on
    /// PostgreSQL. Not safe to repeat: once done, everything is there.
    ///
    /// # Errors
    /// `Refused` where Redis counts a counter that is to be raised, or owns a partition that gets
    /// documents, one of these got a number meanwhile, a number or a value is journaled or was
    /// given up, a series has just been changed, its partition is held, another series shows what
    /// an earlier version has issued, or the entries end with an error.
    pub async fn add(
        self,
        node: NodeId,
        counters: &[ImportedCounter],
        earlier: &[ImportedVersion],
        chunks: &mut ImportedEntries<'_>,
    ) -> Result<Imported, LedgerError> {
        self.search(async |store| import(store, node, counters, earlier, chunks).await).await
    }

    /// Whether each number is in the journal within its scope, or moved to an archive from any
    /// scope. May be called before the transaction of an import: a number that is issued in between
    /// meets its values there, as rows or as the segment that represents them; and it is too young
    /// to move, so that its text meets the unique key too.
    pub async fn issued(self, numbers: &[(String, String)]) -> Result<Vec<bool>, LedgerError> {
        self.call(CALL, async |store| {
            let mut there = BTreeSet::new();
            for numbers in numbers.chunks(ROWS_PER_STATEMENT) {
                let mut query = QueryBuilder::new("with asked (number, scope) as (");
                query.push_values(numbers, |mut row, (number, scope)| {
                    row.push_bind(number).push_bind(scope);
                });
                query.push(
                    ") select j.number, j.scope from asked a
                     join journal j on j.number = a.number and j.scope = a.scope",
                );
                let rows = query.build().once().typed::<(String, String)>();
                there.extend(rows.fetch_all(&store.reader).await?);
            }
            // Last: a row that moves meanwhile is found in one of the two.
            let archived = archive::archived(store, numbers).await?;
            let is_there = |number: &(String, String)| {
                there.contains(number) || archived.contains(&number_hash(&number.0))
            };
            Ok(numbers.iter().map(is_there).collect())
        })
        .await
    }
}

/// See [`crate::Imports::add`].
async fn import(
    store: &Store,
    node: NodeId,
    counters: &[ImportedCounter],
    earlier: &[ImportedVersion],
    chunks: &mut ImportedEntries<'_>,
) -> Result<Imported, LedgerError> {
    let now_us = store.clock.now_us();
    let mut tx = store.begin().await?;
    tx.allow_import().await?;
    if !earlier.is_empty() {
        // As in saving series: this lock before those of their rows.
        saving::lock_all(&mut *tx).await?;
    }
    tx.lock_names(&[super::one_at_a_time()]).await?;
    // Before any of their rows, and by name, in the common order of counter locks. Those that are
    // raised have their rows where others take. Those that are made could come last, but then a
    // caller that needs one would make it and take from it: the import would be for nothing, and
    // the journal would wait for it with all numbers of a process, at the first common one. So a
    // caller that needs one waits for it, as for one that is raised, and no journal does.
    let mut order: Vec<&ImportedCounter> = counters.iter().collect();
    order.sort_unstable();
    let mut plan = ImportPlan::of(&mut *tx, &order, now_us).await?;
    homes::bring_versions(store, &mut *tx, earlier, now_us).await?;
    // None is added before the commit: none is registered beside an import.
    let kept = texts::all(&mut *tx).await?;
    let (made, there): (Vec<_>, Vec<_>) =
        order.into_iter().partition(|counter| plan.target(counter).open.is_none());
    for rows in made.chunks(ROWS_PER_STATEMENT) {
        create(store, &mut *tx, node, &plan, rows, now_us).await?;
    }
    let mut numbers = 0;
    for chunk in chunks {
        let mut chunk = chunk.map_err(LedgerError::Refused)?;
        plan.place(&mut chunk)?;
        chunks::must_not_be_kept(&chunk, &kept)?;
        chunks::write(&mut *tx, &store.writing(node, now_us), &chunk).await?;
        let values = chunk.iter().filter_map(|entry| entry.taken.first());
        numbers += values.map(|taken| taken.range.count()).sum::<u64>();
    }
    for counter in &there {
        must_be_filled(&mut *tx, counter, plan.target(counter)).await?;
    }
    let mut lifted = 0;
    for counter in made.iter().chain(&there) {
        let target = plan.target(counter);
        if target.open.is_some() {
            if signed(counter.highest, "highest")? <= target.base {
                continue;
            }
            let to = (signed(counter.highest, "highest")?, columns::step(counter.step)?);
            lift::lift(&mut *tx, target.counter_id, to, now_us).await?;
            lifted += 1;
        }
        note_gaps(&mut *tx, counter, target, now_us).await?;
    }
    let counter_ids = plan.targets.values().map(|target| target.counter_id).collect();
    plan.documents.must_be_new(&mut *tx, node, counter_ids).await?;
    chronology::catch_up(&mut *tx, counters).await?;
    commit_alone(store, tx).await?;
    store.pool().tidy().await;
    Ok(Imported { counters: made.len() as u64, lifted, numbers })
}

/// The places of the parts of an import.
struct ImportPlan {
    /// Partition of each series.
    homes: HashMap<i64, u32>,
    /// Counters by name.
    targets: HashMap<(i64, String, String), Target>,
    documents: BroughtDocuments,
}

/// A counter of an import.
#[derive(Clone, Copy)]
struct Target {
    counter_id: i64,
    /// Its present value: no value above was ever taken here.
    base: i64,
    /// How many values up to there an earlier import left open; `None` for a counter that is to be
    /// made.
    open: Option<i64>,
    /// How many values came along up to there,
    below: u64,
    /// and how many above.
    above: u64,
}

impl Target {
    fn new(counter_id: i64, base: i64, open: Option<i64>) -> Self {
        Target { counter_id, base, open, below: 0, above: 0 }
    }
}

impl ImportPlan {
    /// The partitions, the existing counters, and ids for the others. Those that the import goes
    /// above are locked, and stay so.
    async fn of(
        conn: &mut Conn,
        counters: &[&ImportedCounter],
        now_us: i64,
    ) -> Result<Self, LedgerError> {
        let documents = BroughtDocuments::begin(conn).await?;
        let homes = homes::homes(conn, counters).await?;
        let mut targets = HashMap::with_capacity(counters.len());
        let mut missing = Vec::new();
        for counter in counters {
            match standing(conn, counter).await? {
                Some(Existing { counter_id, taken, open }) => {
                    // The taken value only rises: a counter that has it already needs no lock.
                    let base = if taken < signed(counter.highest, "highest")? {
                        homes::lock(conn, counter_id, now_us).await?
                    } else {
                        taken
                    };
                    let target = Target::new(counter_id, base, Some(open));
                    targets.insert(name_of(counter), target);
                }
                None => missing.push(*counter),
            }
        }
        let ids = conn.reserve_counters(missing.len()).await?;
        for (counter, counter_id) in missing.into_iter().zip(ids) {
            let base = signed(counter.start, "start")? - columns::step(counter.step)?;
            targets.insert(name_of(counter), Target::new(counter_id, base, None));
        }
        Ok(ImportPlan { homes, targets, documents })
    }

    fn target(&self, counter: &ImportedCounter) -> Target {
        self.targets[&name_of(counter)]
    }

    /// Gives entries their counters and their place in the ledger.
    fn place(&mut self, entries: &mut [Entry]) -> Result<(), LedgerError> {
        for entry in entries {
            for place in 0..entry.taken.len() {
                let Some(target) = self.targets.get_mut(&name(entry, place)?) else {
                    let why = "belongs to a counter that the import does not name";
                    return Err(LedgerError::Refused(format!("{} {why}", entry.number)));
                };
                let taken = &mut entry.taken[place];
                let Range { first, last, step } = taken.range;
                let base = columns::unsigned(target.base.max(0), "base")?;
                // A range may begin at or below that value and end above it.
                let below = match base.checked_sub(first) {
                    Some(distance) => (distance.min(last - first)) / step + 1,
                    None => 0,
                };
                target.below += below;
                target.above += taken.range.count() - below;
                taken.counter_id = target.counter_id;
            }
            entry.at = At { partition: self.homes[&entry.record.series_id], epoch: 0 };
            entry.path = IssuePath::Imported;
            self.documents.note(entry);
        }
        Ok(())
    }
}

fn name_of(counter: &ImportedCounter) -> (i64, String, String) {
    (counter.series_id, counter.serial.clone(), counter.key.clone())
}

/// An existing counter.
#[derive(FromRow)]
struct Existing {
    counter_id: i64,
    /// Its highest value in the ledger: it may be higher, and never falls.
    taken: i64,
    /// How many of its values an earlier import left open.
    open: i64,
}

async fn standing(
    conn: &mut Conn,
    counter: &ImportedCounter,
) -> Result<Option<Existing>, LedgerError> {
    Ok(query_as(
        "select c.counter_id, c.taken, (select cast(coalesce(sum((g.last_value - g.first_value)
         / g.step + 1), 0) as bigint) from gap g where g.counter_id = c.counter_id
         and g.reason = 'before-import') as open
         from counter c where c.series_id = $1 and c.serial = $2 and c.key = $3",
    )
    .bind(counter.series_id)
    .bind(&counter.serial)
    .bind(&counter.key)
    .fetch_optional(conn)
    .await?)
}

/// All imported values up to the present one of a counter must have been open.
async fn must_be_filled(
    conn: &mut Conn,
    counter: &ImportedCounter,
    target: Target,
) -> Result<(), LedgerError> {
    if target.below == 0 {
        return Ok(());
    }
    let left = standing(conn, counter).await?.map_or(0, |there| there.open);
    if target.open.unwrap_or(0) - left == signed(target.below, "values")? {
        return Ok(());
    }
    let ImportedCounter { key, .. } = counter;
    let why = "up to there an import adds nothing but what an earlier one left out";
    Err(LedgerError::Refused(format!("counter {key} stands at {}: {why}", target.base)))
}

/// Makes counters that were never touched.
///
/// # Errors
/// `Refused` where one exists.
async fn create(
    store: &Store,
    conn: &mut Conn,
    node: NodeId,
    plan: &ImportPlan,
    rows: &[&ImportedCounter],
    now_us: i64,
) -> Result<(), LedgerError> {
    let mut values = Vec::with_capacity(rows.len());
    for counter in rows {
        let step = columns::step(counter.step)?;
        values.push((
            counter,
            plan.target(counter).counter_id,
            small(plan.homes[&counter.series_id], "partition")?,
            signed(counter.start, "start")? - step,
            signed(counter.highest, "highest")?,
            step,
        ));
    }
    let mut query = QueryBuilder::new(
        "insert into counter (counter_id, series_id, serial, key, partition_id, epoch, origin,
         start_value, taken, ceiling, step, seeded_by, seeded_at_us) ",
    );
    query.push(conn.own_ids());
    query.push_values(
        values,
        |mut row, (counter, counter_id, partition, origin, highest, step)| {
            row.push_bind(counter_id).push_bind(counter.series_id).push_bind(&counter.serial);
            row.push_bind(&counter.key).push_bind(partition).push_bind(0_i64).push_bind(origin);
            row.push_bind(highest).push_bind(highest).push_bind(highest).push_bind(step);
            row.push_bind(bytes(&node)).push_bind(now_us);
        },
    );
    // Another transaction may be creating one: the insert waits for it, then leaves it out.
    query.push(" on conflict do nothing");
    let done = query.build().once().execute(conn).await?;
    if done.rows_affected() == rows.len() as u64 {
        return Ok(());
    }
    for counter in rows {
        let ImportedCounter { series_id, serial, key, .. } = counter;
        if let Some(there) = by_name(store, *series_id, serial, key).await? {
            let why = "it was made meanwhile; import again";
            let taken = there.taken;
            return Err(LedgerError::Refused(format!("counter {key} is there, at {taken}: {why}")));
        }
    }
    Err(LedgerError::Conflict("a counter appeared and went; import again".into()))
}

/// Registers every value above the counter's former one, up to the highest, that is missing.
async fn note_gaps(
    conn: &mut Conn,
    counter: &ImportedCounter,
    target: Target,
    now_us: i64,
) -> Result<(), LedgerError> {
    let Target { counter_id, base: after, above, .. } = target;
    let (step, upto) = (signed(counter.step, "step")?, signed(counter.highest, "highest")?);
    if step.checked_mul(signed(above, "values")?) == Some(upto - after) {
        return Ok(());
    }
    let reason = GapReason::BeforeImport;
    let loss = Loss { counter_id, after, upto, step, reason, epoch: 0 };
    gaps::register_holes(conn, loss, now_us).await
}

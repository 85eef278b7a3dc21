//! Rows into the journal: one statement for a batch of them and for what they have in common,
//! whose ids it looks up itself. An id from memory could be another's in a ledger that went back.

use std::collections::HashSet;
use std::sync::LazyLock;

use sqlx::error::{BoxDynError, DatabaseError};
use sqlx::postgres::{PgArguments, PgConnection};
use sqlx::{Arguments as _, Row as _};

use crate::LedgerError;
use crate::batch::{Move, Moves, nothing_above, open_in_its_epoch};
use crate::journal_columns::{OWN, OWN_NAMES, OwnColumn, own_columns};
use crate::new_row::NewRow;
use crate::number_hash;
use crate::seal::{Sealed, Writing};
use crate::sharing::Shared;

/// How often rows are looked through for those that no unique key keeps out: others may write one
/// in between.
const ATTEMPTS: usize = 3;

/// The first parameters, which no column of the journal moves: what rows share, and where each
/// row's part of it stands. The rows' own columns follow, and then what a statement has further.
const SHARED_PARAMETERS: usize = 16;

/// The beginning of a statement that inserts rows: the ids of what they share, and new batches.
/// Where an id is missing there is no batch, and nothing is inserted.
/// What one look-up for all finds is no join: a statement is mostly for a few rows. The least id
/// is that of `id + 0`: the least of a bare id PostgreSQL may seek by walking through all ids from
/// the first, and does so in a ledger that was never analyzed (65 µs a name of 2,000, not 4).
const WITH_SHARED: &str = "with name as materialized (select array(
       select (select min(n.name_id + 0) from journal_name n where n.name = w.name)
       from unnest($1::text[]) with ordinality as w (name, place) order by place) as ids),
     kind as materialized (select array(
       select (select min(k.kind_id + 0) from journal_kind k where k.series_id = w.series_id
         and k.version = w.version and k.type_code = w.type_code
         and k.project is not distinct from w.project)
       from unnest($2::bigint[], $3::integer[], $4::text[], $5::text[])
         with ordinality as w (series_id, version, type_code, project, place)
       order by place) as ids),
     fresh as materialized (
       select nextval('journal_batch_batch_id_seq') as batch_id, b.partition_id, b.epoch,
         b.line_count, b.seal, b.proof, b.place
       from unnest($6::integer[], $7::bigint[], $10::integer[], $11::bytea[], $12::bytea[])
         with ordinality as b (partition_id, epoch, line_count, seal, proof, place)
       where array_position((select ids from name), null) is null
         and array_position((select ids from kind), null) is null),
     batch as (
       insert into journal_batch (batch_id, partition_id, epoch, node_id, journaled_at_us,
         line_count, seal, proof)
       overriding system value
       select batch_id, partition_id, epoch, $8::bytea, $9::bigint, line_count, seal, proof
       from fresh)";

/// The rows themselves. In the list of a select the arrays advance in step, and no row waits in a
/// separate store, as each column's would if they were behind `from`: a fifth of the whole work.
fn insert() -> String {
    let list = |write: &dyn Fn((usize, &OwnColumn)) -> String| {
        (SHARED_PARAMETERS + 1..).zip(OWN).map(write).collect::<Vec<_>>().join(", ")
    };
    format!(
        "insert into journal ({OWN_NAMES}batch_id, kind_id, user_name_id, address_name_id)
         select {values},
           ((select array_agg(batch_id order by place) from fresh))[line.batch],
           ((select ids from kind))[line.kind], ((select ids from name))[line.user_name],
           ((select ids from name))[line.address_name]
         from (select {arrays}, unnest($13::integer[]) as user_name,
           unnest($14::integer[]) as address_name, unnest($15::integer[]) as kind,
           unnest($16::integer[]) as batch) as line
         where exists (select 1 from fresh)",
        values = list(&|(_, OwnColumn { name, cast, .. })| format!("line.{name}{cast}")),
        arrays = list(&|(number, OwnColumn { name, bound_as, .. })| {
            format!("unnest(${number}::{bound_as}[]) as {name}")
        }),
    )
}

/// Inserts rows.
static INSERT_ALL: LazyLock<String> = LazyLock::new(|| format!("{WITH_SHARED}{}", insert()));

/// Inserts those that no unique key keeps out.
static INSERT_FREE: LazyLock<String> = LazyLock::new(|| {
    format!("{WITH_SHARED}{} on conflict do nothing returning counter_id, first_value", insert())
});

/// Moves counters and inserts rows. All parts of a statement see what was there before it.
static MOVE_AND_INSERT: LazyLock<String> = LazyLock::new(|| {
    let further = |place: usize| format!("${}", SHARED_PARAMETERS + OWN.len() + place);
    format!(
        "{WITH_SHARED}, inserted as ({insert} returning 1), moved as (\
         update counter c set taken = m.value, ceiling = m.value, \
         journaled = c.journaled + m.journaled \
         from unnest({ids}::bigint[], {taken}::bigint[], {journaled}::bigint[]) \
         as m (counter_id, value, journaled) \
         where exists (select 1 from fresh) \
         and c.counter_id = m.counter_id and c.partition_id = {partition} and c.epoch = {epoch} \
         and ({beat}::bigint is null or exists (select from node \
         where node_id = $8 and beat >= {beat} and batches >= {batches})) and {is_open} \
         and {is_nothing_above} \
         and not exists (select 1 from journal_rejected \
         where number_hash = any({hashes}::bigint[])) \
         returning 1) select (select count(*) from moved) as moved, \
         (select count(*) from inserted) as inserted",
        insert = insert(),
        ids = further(1),
        taken = further(2),
        journaled = further(3),
        partition = further(4),
        epoch = further(5),
        beat = further(6),
        batches = further(7),
        // A number that is put aside is issued, too.
        hashes = further(8),
        is_open = open_in_its_epoch!(),
        is_nothing_above = nothing_above!(),
    )
});

/// Whether a statement failed because a unique key has such a row.
fn is_kept_out(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(DatabaseError::is_unique_violation)
}

macro_rules! bound_columns {
    ($($name:ident $bound_as:literal $cast:literal ($read_as:ty) $said:expr;)*) => {
        /// Binds the own columns of rows, each as an array.
        fn bind_own<'l>(
            bound: &mut PgArguments,
            new_rows: &[&'l NewRow<'l>],
        ) -> Result<(), BoxDynError> {
            fn column<'l, T>(
                new_rows: &[&'l NewRow<'l>],
                said: impl Fn(&'l NewRow<'l>) -> T,
            ) -> Vec<T> {
                new_rows.iter().map(|new_row| said(new_row)).collect()
            }
            $(bound.add(column(new_rows, $said))?;)*
            Ok(())
        }
    };
}
own_columns!(bound_columns);

/// The parameters of the statements above.
fn bind<'l>(
    new_rows: &[&'l NewRow<'l>],
    shared: &Shared<'_>,
    sealed: &[Sealed],
    writing: &Writing,
) -> Result<PgArguments, BoxDynError> {
    // Arrays begin at 1.
    let place = |index: usize| i32::try_from(index + 1).unwrap_or(i32::MAX);
    let places = &shared.places;
    let mut bound = PgArguments::default();
    bound.add(shared.names.column(|name| name))?;
    bound.add(shared.kinds.column(|kind| kind.series_id))?;
    bound.add(shared.kinds.column(|kind| kind.version))?;
    bound.add(shared.kinds.column(|kind| kind.type_code))?;
    bound.add(shared.kinds.column(|kind| kind.project))?;
    bound.add(shared.batches.column(|batch| batch.partition_id))?;
    bound.add(shared.batches.column(|batch| batch.epoch))?;
    bound.add(writing.node.0.as_bytes().as_slice())?;
    bound.add(writing.now_us)?;
    bound.add(sealed.iter().map(|batch| batch.rows).collect::<Vec<_>>())?;
    bound.add(sealed.iter().map(|batch| batch.seal.as_slice()).collect::<Vec<_>>())?;
    let proof = |batch: &Sealed| batch.proof.map(|proof| proof.to_vec());
    bound.add(sealed.iter().map(proof).collect::<Vec<_>>())?;
    bound.add(places.iter().map(|at| place(at.user)).collect::<Vec<_>>())?;
    bound.add(places.iter().map(|at| at.address.map(place)).collect::<Vec<_>>())?;
    bound.add(places.iter().map(|at| place(at.kind)).collect::<Vec<_>>())?;
    bound.add(places.iter().map(|at| place(at.batch)).collect::<Vec<_>>())?;
    bind_own(&mut bound, new_rows)?;
    Ok(bound)
}

/// Rows with what they have in common, on their way into the journal.
pub(super) struct Lines<'l> {
    new_rows: &'l [&'l NewRow<'l>],
    shared: Shared<'l>,
    /// Of each batch: all of the rows, or none, may be written.
    sealed: Vec<Sealed>,
    writing: &'l Writing,
}

impl<'l> Lines<'l> {
    pub(super) fn new(new_rows: &'l [&'l NewRow<'l>], writing: &'l Writing) -> Self {
        let shared = Shared::of(new_rows);
        let sealed = shared.seal(new_rows, writing);
        Lines { new_rows, shared, sealed, writing }
    }

    fn bind(&self) -> Result<PgArguments, LedgerError> {
        let bound = bind(self.new_rows, &self.shared, &self.sealed, self.writing);
        Ok(bound.map_err(sqlx::Error::Encode)?)
    }

    /// Gives ids to new values; they are the transaction's until it commits. Waits for no other
    /// transaction that does the same.
    async fn intern(&self, conn: &mut PgConnection) -> Result<(), LedgerError> {
        sqlx::query(
            "insert into journal_name (name) select w.name from unnest($1::text[]) as w (name)
             where not exists (select 1 from journal_name n where n.name = w.name)",
        )
        .bind(self.shared.names.column(|name| name))
        .execute(&mut *conn)
        .await?;
        sqlx::query(
            "insert into journal_kind (series_id, version, type_code, project)
             select w.series_id, w.version, w.type_code, w.project
             from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[])
             as w (series_id, version, type_code, project)
             where not exists (select 1 from journal_kind k where k.series_id = w.series_id
             and k.version = w.version and k.type_code = w.type_code
             and k.project is not distinct from w.project)",
        )
        .bind(self.shared.kinds.column(|kind| kind.series_id))
        .bind(self.shared.kinds.column(|kind| kind.version))
        .bind(self.shared.kinds.column(|kind| kind.type_code))
        .bind(self.shared.kinds.column(|kind| kind.project))
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Inserts those that no unique key keeps out; their counters and first values. A batch is
    /// sealed with what is written: the free ones are found first, and then written as all.
    ///
    /// # Errors
    /// `Conflict` where all are above what their counters had taken and one is kept out all the
    /// same: the transaction is then unusable, and the next one has each of them judged.
    pub(super) async fn insert_free(
        conn: &mut PgConnection,
        new_rows: &[&NewRow<'_>],
        writing: &Writing,
    ) -> Result<HashSet<(i64, i64)>, LedgerError> {
        let keys = |free: &[&NewRow<'_>]| free.iter().map(|new_row| key(new_row)).collect();
        if !new_rows.is_empty() && new_rows.iter().all(|new_row| new_row.is_above) {
            // Next to nothing keeps one out, and a savepoint is two round trips for nothing.
            let is_whole = Lines::new(new_rows, writing).insert_all(conn).await?;
            let met = || LedgerError::Conflict("a line above all of its counter was met".into());
            return if is_whole { Ok(keys(new_rows)) } else { Err(met()) };
        }
        let mut free = new_rows.to_vec();
        for _ in 0..ATTEMPTS {
            if free.is_empty() {
                return Ok(HashSet::new());
            }
            // To ask each unique key first costs a sixth of the work, and next to never keeps a
            // row out: that is done only once a row was.
            let new_rows = Lines::new(&free, writing);
            sqlx::raw_sql("savepoint lines").execute(&mut *conn).await?;
            if new_rows.insert_all(&mut *conn).await? {
                sqlx::raw_sql("release savepoint lines").execute(&mut *conn).await?;
                return Ok(keys(&free));
            }
            sqlx::raw_sql("rollback to savepoint lines").execute(&mut *conn).await?;
            // The names may be new: the trial finds none of its rows' ids otherwise.
            new_rows.intern(&mut *conn).await?;
            sqlx::raw_sql("savepoint trial").execute(&mut *conn).await?;
            let kept = new_rows.try_insert_free(&mut *conn).await?;
            sqlx::raw_sql("rollback to savepoint trial").execute(&mut *conn).await?;
            free.retain(|new_row| kept.contains(&key(new_row)));
        }
        let why = "others write the same numbers again and again";
        Err(LedgerError::Conflict(why.into()))
    }

    async fn try_insert_free(
        &self,
        conn: &mut PgConnection,
    ) -> Result<HashSet<(i64, i64)>, LedgerError> {
        let rows = sqlx::query_with(INSERT_FREE.as_str(), self.bind()?).fetch_all(conn).await?;
        rows.iter()
            .map(|row| Ok((row.try_get("counter_id")?, row.try_get("first_value")?)))
            .collect()
    }

    /// Inserts them. False where a unique key kept one out: the transaction is then unusable.
    pub(super) async fn insert_all(&self, conn: &mut PgConnection) -> Result<bool, LedgerError> {
        for _ in 0..2 {
            match sqlx::query_with(INSERT_ALL.as_str(), self.bind()?).execute(&mut *conn).await {
                Ok(done) if done.rows_affected() == self.new_rows.len() as u64 => return Ok(true),
                Ok(_) => self.intern(&mut *conn).await?,
                Err(error) if is_kept_out(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Err(still_missing())
    }

    /// Moves counters and inserts the rows. False where a counter must not move, the ledger forgot
    /// the node, or a unique key kept a row out.
    pub(super) async fn move_and_insert(
        &self,
        conn: &mut PgConnection,
        moves: &Moves,
    ) -> Result<bool, LedgerError> {
        let column = |of: fn(&Move) -> i64| -> Vec<i64> { moves.counters.iter().map(of).collect() };
        let heads = self.new_rows.iter().filter_map(|new_row| new_row.head.as_ref());
        let numbers: Vec<i64> = heads.map(|head| number_hash(head.number)).collect();
        for _ in 0..2 {
            let bound = self.bind()?;
            let done = sqlx::query_with(MOVE_AND_INSERT.as_str(), bound)
                .bind(column(|counter| counter.counter_id))
                .bind(column(|counter| counter.value))
                .bind(column(|counter| counter.journaled))
                .bind(moves.partition_id)
                .bind(moves.epoch)
                .bind(moves.confirmed.map(|marks| marks.beat))
                .bind(moves.confirmed.map(|marks| marks.batches))
                .bind(&numbers)
                .fetch_one(&mut *conn)
                .await;
            let row = match done {
                Ok(row) => row,
                Err(error) if is_kept_out(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            let (moved, inserted): (i64, i64) = (row.try_get("moved")?, row.try_get("inserted")?);
            if usize::try_from(inserted) == Ok(self.new_rows.len()) {
                return Ok(usize::try_from(moved) == Ok(moves.counters.len()));
            }
            self.intern(&mut *conn).await?;
        }
        Err(still_missing())
    }
}

/// The key of a row, which is unique.
fn key(new_row: &NewRow<'_>) -> (i64, i64) {
    (new_row.value_range.counter_id, new_row.value_range.first)
}

/// A value that has an id now had none a moment ago, or fewer rows came back than were sent.
fn still_missing() -> LedgerError {
    LedgerError::Conflict("lines were left out though no unique key kept them out".into())
}

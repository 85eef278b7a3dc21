//! Reference data: tables, every code that was ever used, memberships.

pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod tables;

use numbering::{Membership, ReferenceData, ReferenceRow};
use serde_json::{Value, json};

use crate::calls::{CALL, SEARCH, noun};
use crate::dialect::Conn;
use crate::protocol::keys;
use crate::query::{query, query_scalar};
use crate::series::saving::{PROOFS_MAX, overtaken};
use crate::series::texts::{TextQuestion, Unread};
use crate::series::{as_written, texts};
use crate::store::{self, Saving, Store};
use crate::{Effect, LedgerError, ReferenceChange, ReferencePlan, plan_reference};

noun!(
    /// The reference data.
    Reference,
    reference
);

impl Reference<'_> {
    /// Saves rows and memberships of reference data, all or none; what each of them changed. A row
    /// without a change is not an error.
    ///
    /// # Errors
    /// `Refused` with the mistakes that [`plan_reference`] finds.
    pub async fn apply(self, change: &ReferenceChange) -> Result<ReferencePlan, LedgerError> {
        let plan = self.apply_upon(change, None).await?;
        Ok(plan.expect("nothing is expected, so nothing else is found"))
    }

    /// The same if the stamp of reference data is still `expected`; `None`: it was changed, and
    /// nothing is saved.
    ///
    /// # Errors
    /// As those of [`crate::Reference::apply`].
    pub async fn apply_upon(
        self,
        change: &ReferenceChange,
        expected: Option<i64>,
    ) -> Result<Option<ReferencePlan>, LedgerError> {
        let saving = Saving::Save;
        let search = SEARCH.uncounted();
        self.call(search, async |store| save(store, change, expected, saving).await).await
    }

    /// The same as a dry run: answers, and refuses, as
    /// [`crate::Reference::apply_upon`] would, and writes nothing.
    ///
    /// # Errors
    /// The same.
    pub async fn try_apply(
        self,
        change: &ReferenceChange,
        expected: Option<i64>,
    ) -> Result<Option<ReferencePlan>, LedgerError> {
        let saving = Saving::DryRun;
        let search = SEARCH.uncounted();
        self.call(search, async |store| save(store, change, expected, saving).await).await
    }

    /// All reference data.
    pub async fn data(self) -> Result<ReferenceData, LedgerError> {
        self.call(CALL.uncounted(), async |store| {
            let mut conn = store.reader.acquire().await?;
            tables::read(&mut *conn).await
        })
        .await
    }
}

/// How an attempt to save ended.
enum ChangeAttempt {
    /// It is saved unless it is a dry run; `None`: the table is not the expected one.
    Done(Option<ReferencePlan>),
    /// Nothing is saved: numbers that are kept as written have to be compared first.
    Uncompared(TextQuestion),
}

/// See [`crate::Reference::apply_upon`] and [`crate::Reference::try_apply`].
async fn save(
    store: &Store,
    change: &ReferenceChange,
    expected: Option<i64>,
    saving: Saving,
) -> Result<Option<ReferencePlan>, LedgerError> {
    let mut unread = None;
    for _ in 0..=PROOFS_MAX {
        match try_save(store, change, (expected, saving), unread.as_ref()).await? {
            ChangeAttempt::Done(plan) => return Ok(plan),
            ChangeAttempt::Uncompared(question) => unread = Some(question.compare().await?),
        }
    }
    Err(overtaken())
}

async fn try_save(
    store: &Store,
    change: &ReferenceChange,
    (expected, saving): (Option<i64>, Saving),
    unread: Option<&Unread>,
) -> Result<ChangeAttempt, LedgerError> {
    let mut tx = store.begin().await?;
    // One change at a time, of reference data and of series: a code gets one owner. What is
    // reserved depends on both (L14).
    tx.lock_own_name(keys::series_lock()).await?;
    let partitions: Option<i32> = query_scalar("select partitions from deployment")
        .for_update()
        .fetch_optional(&mut *tx)
        .await?;
    if partitions.is_none() {
        let why = "deployment: the ledger has none yet; start a service on it first";
        return Err(LedgerError::Refused(why.into()));
    }
    if let Some(expected) = expected
        && changed_since(&mut *tx, &change.table, expected).await?
    {
        return Ok(ChangeAttempt::Done(None));
    }
    let stamp = texts::stamp(&mut *tx).await?;
    let now = tables::read(&mut *tx).await?;
    let plan = plan_reference(&now, change)
        .map_err(|mistakes| LedgerError::Refused(mistakes.join("; ")))?;
    let changes = write_plan(&mut *tx, &plan).await?;
    if changes.is_empty() {
        return Ok(ChangeAttempt::Done(Some(plan)));
    }
    query(
        "insert into reference_change (table_name, change, changed_by, reason,
         changed_at_us)
         values ($1, $2, $3, $4, $5)",
    )
    .bind(&change.table)
    .bind(json!(changes).to_string())
    .bind(&change.changed_by)
    .bind(&change.reason)
    .bind(change.changed_at_us)
    .execute(&mut *tx)
    .await?;
    let before = (stamp, now);
    let asked = as_written::asked_by_change(store, &mut *tx, &change.table, before).await?;
    if let Some(question) = asked
        && let Some(question) = question.answer(unread).await?
    {
        tx.rollback().await?;
        return Ok(ChangeAttempt::Uncompared(question));
    }
    store::end(store, tx, saving).await?;
    Ok(ChangeAttempt::Done(Some(plan)))
}

/// Writes what a plan changes; the changes as they are recorded.
async fn write_plan(conn: &mut Conn, plan: &ReferencePlan) -> Result<Vec<Value>, LedgerError> {
    let mut changes = Vec::new();
    for (row, effect) in &plan.rows {
        if *effect == Effect::Unchanged {
            continue;
        }
        write_row(&mut *conn, row).await?;
        let ReferenceRow { id, code, name, active, .. } = row;
        changes.push(json!({
            "id": id, "code": code, "name": name, "active": active, "effect": effect,
        }));
    }
    for (membership, effect) in &plan.memberships {
        if *effect == Effect::Unchanged {
            continue;
        }
        write_membership(&mut *conn, membership).await?;
        let Membership { id, of_table, of_id, active, .. } = membership;
        changes.push(json!({
            "id": id, "of_table": of_table, "of_id": of_id, "active": active,
            "effect": effect,
        }));
    }
    Ok(changes)
}

/// Whether a table was changed after the stamp of reference data.
async fn changed_since(conn: &mut Conn, table: &str, stamp: i64) -> Result<bool, LedgerError> {
    let later: Option<i64> = query_scalar(
        "select reference_change_id from reference_change
         where reference_change_id > $1 and table_name = $2 limit 1",
    )
    .bind(stamp)
    .bind(table.to_owned())
    .fetch_optional(conn)
    .await?;
    Ok(later.is_some())
}

/// Writes a row, and its code into the list of those that were ever used.
async fn write_row(conn: &mut Conn, row: &ReferenceRow) -> Result<(), LedgerError> {
    query(
        "insert into reference_row (table_name, reference_id, code, name, active)
         values ($1, $2, $3, $4, $5) on conflict (table_name, reference_id)
         do update set code = excluded.code, name = excluded.name, active = excluded.active",
    )
    .bind(&row.table)
    .bind(&row.id)
    .bind(&row.code)
    .bind(&row.name)
    .bind(i32::from(row.active))
    .execute(&mut *conn)
    .await?;
    // A row that takes a former code back has it already. The plan ensured that no other row has:
    // numbers are proved to differ because a code keeps its row, so the table is queried again.
    let written = query(
        "insert into reference_code (table_name, code, reference_id) values ($1, $2, $3)
         on conflict (table_name, code) do update set reference_id = excluded.reference_id
         where reference_code.reference_id = excluded.reference_id",
    )
    .bind(&row.table)
    .bind(&row.code)
    .bind(&row.id)
    .execute(conn)
    .await?;
    if written.rows_affected() == 0 {
        let ReferenceRow { table, id, code, .. } = row;
        let why = format!("code {code:?} of {table} belongs to another id than {id} for ever");
        return Err(LedgerError::Refused(why));
    }
    Ok(())
}

async fn write_membership(conn: &mut Conn, membership: &Membership) -> Result<(), LedgerError> {
    query(
        "insert into membership (table_name, reference_id, of_table_name, of_reference_id,
         active) values ($1, $2, $3, $4, $5)
         on conflict (table_name, reference_id, of_table_name, of_reference_id)
         do update set active = excluded.active",
    )
    .bind(&membership.table)
    .bind(&membership.id)
    .bind(&membership.of_table)
    .bind(&membership.of_id)
    .bind(i32::from(membership.active))
    .execute(conn)
    .await?;
    Ok(())
}

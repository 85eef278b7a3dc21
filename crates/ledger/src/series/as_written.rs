//! Numbers that are kept as written, beside the series (F48): no series may render their texts,
//! whichever comes first. A number is kept only where no version that is in force or may have
//! issued numbers could render it. A series is saved, active or not, only where it could render
//! none of these texts, and reference data only where no further one could be rendered. Texts are
//! compared in whatever scope they are.
//!
//! A save holds the lock of series alone from its begin to its end, and the transaction that keeps
//! a number shares it until its commit: of the two at once, one sees the other. Never waits for a
//! save.

use std::sync::Arc;

use numbering::{ReferenceData, SeriesDefinition};

use crate::columns::unsigned_small;
use crate::dialect::Conn;
use crate::nodes::marks;
use crate::protocol::keys;
use crate::query::{QueryBuilder, query, query_scalar};
use crate::reference::tables;
use crate::series::acceptance::newest;
use crate::series::kept::KeptStamp;
use crate::series::texts::{TablesStamp, TextQuestion, reader};
use crate::series::versions;
use crate::store::Store;
use crate::{LedgerError, SeriesRefusal, giving_up};

/// The result of a look for a version that could render a text.
pub(crate) enum TextLook {
    /// There was none. It holds while nothing newer than this is saved.
    Unread(KeptStamp),
    /// A series could.
    ReadBy {
        /// Its code.
        code: String,
        /// The version.
        version: u32,
    },
}

/// Looks for a version that could render a text: of those in force, active or not, and of those
/// that may have issued numbers. Compares texts: in no transaction.
///
/// # Errors
/// A ledger that does not answer; `GivenUp` where no caller waits any more.
pub(crate) async fn look(store: &Store, number: &str) -> Result<TextLook, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    // First: what is saved behind it has another stamp.
    let stamp = newest(&mut *conn).await?;
    let stretches = versions::that_may_render(&mut *conn).await?;
    let tables = Arc::new(tables::read(&mut *conn).await?);
    drop(conn);
    let text = number.to_owned();
    let found = giving_up::search(move |give_up| {
        for one in &stretches {
            if give_up.is_given_up() {
                return Err(LedgerError::GivenUp);
            }
            if reader(&one.definition, &tables).is_some_and(|reads| reads.could_render(&text)) {
                let code = one.definition.code.clone();
                return Ok(TextLook::ReadBy { code, version: one.version });
            }
        }
        Ok(TextLook::Unread(stamp))
    });
    found.await
}

/// Keeps series and reference data as a look has seen them until the transaction ends.
///
/// # Errors
/// `LockTimeout` where they are being saved at this moment, or were since the look: worth a retry.
pub(crate) async fn must_stand(conn: &mut Conn, looked: KeptStamp) -> Result<(), LedgerError> {
    // A statement of its own behind the lock: it sees what was committed before that was free.
    let is_shared = conn.try_share_own_name(keys::series_lock()).await?;
    if is_shared && newest(conn).await? == looked {
        return Ok(());
    }
    let cause = "series or reference data are saved at this moment".to_owned();
    Err(LedgerError::LockTimeout { cause, counter: None })
}

/// What a save asks of the numbers that are kept as written; under the lock of series. None where
/// nothing is saved, or nothing is kept.
///
/// # Errors
/// `Series` with `MayReadForgotten` while a partition is held; `WentBack` where the ledger has
/// forgotten a number that it confirmed to this process.
pub(crate) async fn asked_by_save(
    store: &Store,
    conn: &mut Conn,
    saved: Vec<SeriesDefinition>,
) -> Result<Option<TextQuestion>, LedgerError> {
    let Some(first) = saved.first() else { return Ok(None) };
    if may_have_forgotten(store, conn).await? {
        let code = first.code.clone();
        return Err(SeriesRefusal::MayReadForgotten { code }.into());
    }
    TextQuestion::of_save(conn, saved).await
}

/// What a change of a table asks of them; under the lock of series, behind the change. `before`:
/// the tables without it.
///
/// # Errors
/// `Refused` names the release of a partition that is held; `WentBack` as for a save.
pub(crate) async fn asked_by_change(
    store: &Store,
    conn: &mut Conn,
    table: &str,
    before: (TablesStamp, ReferenceData),
) -> Result<Option<TextQuestion>, LedgerError> {
    if may_have_forgotten(store, conn).await? {
        let why = "reference data are not saved while a partition is held: the ledger went back, \
                   and may have forgotten a number that is kept as written; release it first \
                   (`reconcile --ledger-restored`)";
        return Err(LedgerError::Refused(why.into()));
    }
    TextQuestion::of_change(conn, table, before).await
}

/// How many numbers are kept as written, all of them or those of one registrar, at most as many as
/// `limit`.
pub(crate) async fn count(
    conn: &mut Conn,
    registrar: Option<&str>,
    limit: i64,
) -> Result<i64, LedgerError> {
    let mut query = QueryBuilder::new(
        "select count(*) from (select 1 from series s
         join counter c on c.series_id = s.series_id and c.serial = 'as-written'
         join journal j on j.counter_id = c.counter_id ",
    );
    if let Some(registrar) = registrar {
        query.push("join journal_name n on n.name_id = j.user_name_id and n.name = ");
        query.push_bind(registrar.to_owned());
    }
    query.push(" limit ").push_bind(limit).push(") as counted");
    Ok(query.build().scalar().fetch_one(conn).await?)
}

/// A partition that is held, where there is one: the ledger went back, and does not show yet what
/// processes remember of it.
pub(crate) async fn held_partition(conn: &mut Conn) -> Result<Option<u32>, LedgerError> {
    let held: Option<i32> =
        query_scalar("select partition_id from partition where state = 'held' limit 1")
            .fetch_optional(conn)
            .await?;
    held.map(|id| unsigned_small(id, "partition.partition_id")).transpose()
}

/// Whether the ledger may have forgotten a number that is kept as written, and other processes are
/// to report what they remember: while a partition is held. Asks nothing where no series ever took
/// numbers by hand.
///
/// # Errors
/// `WentBack` where it has forgotten a number that it confirmed to this process.
async fn may_have_forgotten(store: &Store, conn: &mut Conn) -> Result<bool, LedgerError> {
    let by_hand =
        query("select 1 from series_version where definition like '%\"by_hand\":true%' limit 1");
    if by_hand.fetch_optional(&mut *conn).await?.is_none() {
        return Ok(false);
    }
    // Until the transaction ends nothing is held: a hold of one is a hold of all.
    let states: Vec<String> =
        query_scalar("select state from partition").for_share().fetch_all(&mut *conn).await?;
    if states.iter().any(|state| state == "held") {
        return Ok(true);
    }
    let numbers = store.last_seen.takes().numbers();
    marks::must_be_journaled(conn, &numbers).await?;
    Ok(false)
}

//! The line of a ledger's incarnations, and their descent (F36).
//!
//! A number alone shows nothing: any hold of any copy makes a later one. What a process knows is of
//! this ledger only where its incarnation is in the line, and nothing that was confirmed there
//! after the next one was drawn is missing here.

use crate::LedgerError;
use crate::dialect::Conn;
use crate::incarnation::Incarnation;
use crate::last_seen::Marks;
use crate::nodes::marks;
use crate::query::{query, query_scalar};
use crate::store::Store;

/// When an incarnation of this ledger's line was replaced by the next one; `None` where it is not
/// in the line, or in force.
pub(crate) async fn replaced_at_us(
    conn: &mut Conn,
    known: Incarnation,
) -> Result<Option<i64>, LedgerError> {
    let replaced: Option<Option<i64>> = query_scalar(
        "select replaced_at_us from incarnation_line where nonce = $1 and number = $2",
    )
    .bind(known.nonce.as_bytes().as_slice())
    .bind(known.number)
    .fetch_optional(conn)
    .await?;
    Ok(replaced.flatten())
}

/// Notes that the next incarnation is drawn: it replaces the one that the ledger shows, and the one
/// that its drawer knows. The ledger's incarnations are locked.
pub(crate) async fn replace(
    conn: &mut Conn,
    replaced: impl IntoIterator<Item = Incarnation>,
    now_us: i64,
) -> Result<(), LedgerError> {
    for Incarnation { number, nonce } in replaced {
        query(
            "insert into incarnation_line (nonce, number, replaced_at_us) values ($1, $2, $3)
             on conflict (nonce) do update set replaced_at_us = case
             when incarnation_line.replaced_at_us > excluded.replaced_at_us
             then incarnation_line.replaced_at_us else excluded.replaced_at_us end",
        )
        .bind(nonce.as_bytes().as_slice())
        .bind(number)
        .bind(now_us)
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// Notes the one that was drawn.
pub(crate) async fn begin(
    conn: &mut Conn,
    Incarnation { number, nonce }: Incarnation,
    now_us: i64,
) -> Result<(), LedgerError> {
    query("insert into incarnation_line (nonce, number, drawn_at_us) values ($1, $2, $3)")
        .bind(nonce.as_bytes().as_slice())
        .bind(number)
        .bind(now_us)
        .execute(conn)
        .await?;
    Ok(())
}

/// The relation of a ledger to what a process knows of another incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Descent {
    /// The ledger does not know that incarnation.
    Strange,
    /// It knows it, and lacks what was confirmed in it after the next one was drawn: a copy was
    /// released elsewhere while this process went on.
    Branch,
    /// It descends from it.
    Own,
}

/// The relation of the ledger to what was agreed on, and confirmed since, by this handle.
pub(crate) async fn descent(
    store: &Store,
    conn: &mut Conn,
    known: Incarnation,
) -> Result<Descent, LedgerError> {
    let Some(replaced_at_us) = replaced_at_us(conn, known).await? else {
        return Ok(Descent::Strange);
    };
    for (node, marks, at_us) in store.last_seen.confirmed_in(known) {
        if at_us > replaced_at_us && !shows(conn, node, marks).await? {
            return Ok(Descent::Branch);
        }
    }
    Ok(Descent::Own)
}

async fn shows(
    conn: &mut Conn,
    node: numerator_runtime::node::NodeId,
    confirmed: Marks,
) -> Result<bool, LedgerError> {
    Ok(marks::marks(conn, node).await?.is_some_and(|marks| marks.reach(confirmed)))
}

//! Locks on names, which nobody needs here: there is one writer, and no moment between its look and
//! its commit.

use numerator_base::node::NodeId;

use super::Conn;
use crate::LedgerError;

/// Nothing to lock: the transaction is the only writer.
pub(super) async fn lock_names(_conn: &mut Conn, _sorted: &[i64]) -> Result<(), LedgerError> {
    Ok(())
}

/// Nobody to wait for: who begins to take while another epoch opens sees that it did.
pub(super) async fn share_names(_conn: &mut Conn, _sorted: &[i64]) -> Result<(), LedgerError> {
    Ok(())
}

/// A moment in the order of transactions.
pub(super) struct Moment;

/// Nothing comes while a transaction writes: it is the only writer.
pub(super) async fn moment(_conn: &mut Conn) -> Result<Moment, LedgerError> {
    Ok(Moment)
}

/// No question follows that statistics are needed for.
pub(super) async fn know_rows(_conn: &mut Conn) -> Result<(), LedgerError> {
    Ok(())
}

/// Nothing was numbered meanwhile.
pub(super) async fn numbered_since(
    _conn: &mut Conn,
    _since: &Moment,
    _node: NodeId,
    _counters: Vec<i64>,
) -> Result<Option<(String, String)>, LedgerError> {
    Ok(None)
}

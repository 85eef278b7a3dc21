//! What keeps a number by hand from being registered beside its counter: the processes of the
//! ledger, the series, and who owns its partition. Changes nothing.

use numerator_runtime::node::NodeId;

use super::as_written;
use crate::dialect::Conn;
use crate::nodes::{self, marks};
use crate::protocol::partitions;
use crate::series::kept::KeptStamp;
use crate::store::Store;
use crate::{LedgerError, NumberByHand, Owner, PartitionState, Registering, imports, schema};

/// What of the whole ledger keeps a number from being registered. One is registered at a time.
pub(super) async fn refusal_of_ledger(
    store: &Store,
    conn: &mut Conn,
    (node, new): (NodeId, &NumberByHand),
    looked: Option<KeptStamp>,
) -> Result<Option<Registering>, LedgerError> {
    marks::must_be_remembered(store, conn, node).await?;
    // It could not read the record.
    let since = if new.is_as_written { schema::AS_WRITTEN } else { schema::REGISTRATIONS };
    if nodes::is_any_older(conn, since).await? {
        return Ok(Some(Registering::BesideOlder));
    }
    conn.lock_names(&[imports::one_at_a_time()]).await?;
    as_written::must_stand(conn, new, looked).await
}

/// Keeps the partition with its owner until the commit. While Redis owns it, a document that Redis
/// does not know counts as new (F29).
pub(super) async fn refusal_of_partition(
    conn: &mut Conn,
    new: &NumberByHand,
    partition: u32,
) -> Result<Option<Registering>, LedgerError> {
    let row = partitions::share(conn, partition).await?;
    let is_of_redis = matches!(row.owner, Owner::Redis { .. });
    Ok(match row.state {
        PartitionState::Held => Some(Registering::Held(partition)),
        _ if is_of_redis && new.order.record.document_id.is_some() => {
            Some(Registering::InRedis(partition))
        }
        _ => None,
    })
}

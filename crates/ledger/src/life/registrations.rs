//! That a number was given by hand: noted in the transaction that journals it, and never later.

use uuid::Uuid;

use super::{Act, ActRow, COLUMNS, Detail, insert, vanished};
use crate::dialect::Conn;
use crate::query::QueryBuilder;
use crate::store::Store;
use crate::{LedgerError, LifeAct, LifeRow, NewAct, PassedOver};

/// Notes that a number was given by hand, for which document, and what it passed over.
pub(crate) async fn note(
    store: &Store,
    conn: &mut Conn,
    new: &NewAct,
    document_id: Option<String>,
    passed_over: Option<PassedOver>,
) -> Result<LifeRow, LedgerError> {
    let detail = passed_over.map(|_| Detail { passed_over, ..Detail::default() });
    let act = Act { document_id, detail, ..Act::of(LifeAct::Registered, new) };
    insert(store, conn, act).await?.ok_or_else(vanished)
}

/// The registration of an allocation, if it was given by hand.
pub(crate) async fn of_allocation(
    conn: &mut Conn,
    allocation_id: Uuid,
) -> Result<Option<LifeRow>, LedgerError> {
    let mut query = QueryBuilder::new(COLUMNS);
    query.push("where l.subject = ").push_bind(allocation_id.as_bytes().to_vec());
    query.push(" and l.act = 'registered' order by l.life_id limit 1");
    query.build().typed::<ActRow>().fetch_optional_into(conn).await
}

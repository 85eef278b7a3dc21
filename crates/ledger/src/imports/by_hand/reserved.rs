//! The reservation that keeps a number by hand from being registered. Ends none itself.

use crate::columns::{read_uuid, signed};
use crate::dialect::Conn;
use crate::reservations::table;
use crate::{DocumentHas, LedgerError, NumberByHand, Registering, Reservation, number_hash};

/// The reservation that has the number's text or its value, if there is one.
pub(super) async fn find(
    conn: &mut Conn,
    new: &NumberByHand,
    counter_id: i64,
    now_us: i64,
) -> Result<Option<Registering>, LedgerError> {
    let value = signed(new.value, "value")?;
    let texts = table::named(conn, vec![number_hash(&new.number)]).await?;
    let scope = &new.order.record.scope;
    let is_text =
        |(number, of, _): &(String, String, Vec<u8>)| *number == new.number && of == scope;
    let by_text = texts.into_iter().find(is_text).map(|(.., id)| id);
    let id = match by_text {
        Some(id) => Some(id),
        None => {
            let held = table::of_counters(conn, vec![counter_id], (value, value)).await?;
            held.into_iter().next().map(|(.., id)| id)
        }
    };
    let Some(id) = id else { return Ok(None) };
    let live = table::by_id(conn, read_uuid(&id, "reservation_id")?, now_us).await?;
    Ok(Some(match live {
        Some(live) if !live.is_confirmed() => Registering::Reserved(Box::new(live)),
        _ => Registering::Taken,
    }))
}

/// The reservation that an outcome names.
pub(super) fn held(outcome: &Registering) -> Option<&Reservation> {
    match outcome {
        Registering::Reserved(held) | Registering::DocumentHas(DocumentHas::Reserved(held)) => {
            Some(held)
        }
        _ => None,
    }
}

//! The numbers of a counter that were given by hand, for auditors: each with its reason.

use sqlx_macros::FromRow;

use crate::dialect::Conn;
use crate::query::query_as;
use crate::{AccountByHand, LedgerError};

/// A number that was given by hand.
#[derive(FromRow)]
struct ByHandRow {
    life_id: i64,
    first_value: i64,
    number: Option<String>,
    at_us: i64,
    user_id: String,
    reason: Option<String>,
}

/// The first numbers of a counter that were given by hand, at most so many. They stay in the
/// journal, so that its account counts all of them.
pub(super) async fn listed(
    conn: &mut Conn,
    counter_id: i64,
    listed_max: usize,
) -> Result<Vec<AccountByHand>, LedgerError> {
    let limit = i64::try_from(listed_max).unwrap_or(i64::MAX);
    if limit == 0 {
        return Ok(Vec::new());
    }
    let rows: Vec<ByHandRow> = query_as(
        "select life_id, first_value, number, at_us, user_id, reason from life
         where counter_id = $1 and act = 'registered' order by first_value limit $2",
    )
    .bind(counter_id)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    let listed = rows.into_iter().map(|row| AccountByHand {
        life_id: row.life_id,
        value: row.first_value,
        number: row.number.unwrap_or_default(),
        registered_at_us: row.at_us,
        registered_by: row.user_id,
        reason: row.reason.unwrap_or_default(),
    });
    Ok(listed.collect())
}

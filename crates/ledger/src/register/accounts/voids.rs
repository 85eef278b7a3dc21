//! The void numbers of a counter, for auditors: each with its reason and what stands in its place.

use sqlx_macros::FromRow;

use crate::columns::unsigned;
use crate::dialect::Conn;
use crate::query::query_as;
use crate::{AccountVoid, AccountVoids, LedgerError};

/// Void numbers and their replacements.
#[derive(FromRow)]
struct VoidCounts {
    voided: i64,
    replaced: i64,
}

/// A void number.
#[derive(FromRow)]
struct VoidRow {
    life_id: i64,
    first_value: i64,
    number: Option<String>,
    at_us: i64,
    user_id: String,
    reason: Option<String>,
    replaced_by: Option<String>,
}

/// The void numbers of a counter; so many of them are listed.
pub(super) async fn voids(
    conn: &mut Conn,
    counter_id: i64,
    listed_max: usize,
) -> Result<AccountVoids, LedgerError> {
    let VoidCounts { voided, replaced } = query_as(
        "select cast(count(case when once = 'voided' then 1 end) as bigint) as voided,
         cast(count(case when once = 'replaced' then 1 end) as bigint) as replaced
         from life where counter_id = $1 and once is not null",
    )
    .bind(counter_id)
    .fetch_one(&mut *conn)
    .await?;
    let (voided, replaced) = (unsigned(voided, "life")?, unsigned(replaced, "life")?);
    let limit = i64::try_from(listed_max).unwrap_or(i64::MAX);
    if voided == 0 || limit == 0 {
        return Ok(AccountVoids { voided, replaced, listed: Vec::new() });
    }
    let rows: Vec<VoidRow> = query_as(
        "select d.life_id, d.first_value, d.number, d.at_us, d.user_id, d.reason,
         r.detail as replaced_by
         from life d left join life r on r.counter_id = d.counter_id
         and r.first_value = d.first_value and r.once = 'replaced'
         where d.counter_id = $1 and d.once = 'voided' order by d.first_value limit $2",
    )
    .bind(counter_id)
    .bind(limit)
    .fetch_all(conn)
    .await?;
    let listed = rows.into_iter().map(|row| {
        Ok(AccountVoid {
            life_id: row.life_id,
            value: row.first_value,
            number: row.number.unwrap_or_default(),
            voided_at_us: row.at_us,
            voided_by: row.user_id,
            reason: row.reason.unwrap_or_default(),
            replaced_by: row.replaced_by.as_deref().map(crate::life::replacement).transpose()?,
        })
    });
    let listed = listed.collect::<Result<_, LedgerError>>()?;
    Ok(AccountVoids { voided, replaced, listed })
}

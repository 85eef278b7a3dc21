//! The counter's row is the lock: value and journal row in one transaction, which is one statement,
//! so that the row is held for a single round trip and its commit.

use super::Wanted;
use super::stores::{Stores, TakeError};

pub(super) async fn take(stores: &Stores, wanted: &Wanted<'_>) -> Result<u64, TakeError> {
    let value: i64 = sqlx::query_scalar(
        "with taken as (insert into counter (name, value) values ($1, 1) \
         on conflict (name) do update set value = counter.value + 1 returning value) \
         insert into journal (counter, value, number, document_id, type_code, user_id, ip_address) \
         select $1, value, $2 || lpad(value::text, 12, '0'), $3, $4, 'local', '127.0.0.1' \
         from taken returning value",
    )
    .bind(wanted.counter)
    .bind(wanted.prefix)
    .bind(wanted.document_id)
    .bind(wanted.type_code)
    .fetch_one(&stores.pool)
    .await?;
    Ok(value.cast_unsigned())
}

//! Counters that are rows of PostgreSQL: changed under a lock in Redis, or under the row's lock.
//!
//! The lock in Redis is the one that its authors recommend: `SET NX PX` with a random token, and a
//! script that deletes it only while it holds that token. Either way value and journal row are one
//! statement, so that the lock is held for as few round trips as possible, and one commit.

use std::time::{Duration, Instant};

use super::Wanted;
use super::stores::{Stores, TakeError};

/// A statement that changes a counter, and writes the row of what it took.
macro_rules! and_its_row {
    ($taking:literal) => {
        concat!(
            "with taken as (",
            $taking,
            " returning value) insert into journal (counter, value, number, document_id, \
             type_code, user_id, ip_address) \
             select $1, value, $2 || lpad(value::text, 12, '0'), $3, $4, 'local', '127.0.0.1' \
             from taken returning value"
        )
    };
}

/// Under the row's lock.
const BY_ROW: &str = and_its_row!(
    "insert into counter (name, value) values ($1, 1) \
     on conflict (name) do update set value = counter.value + 1"
);

/// If it has not changed since it was read.
const BY_VERSION: &str = and_its_row!(
    "update counter set value = value + 1, version = version + 1 \
     where name = $1 and version = $5"
);

/// How long the lock lives if its holder dies, in milliseconds.
const TTL_MS: u32 = 3_000;

/// Longest total wait for the lock and for a successful update.
const LIMIT: Duration = Duration::from_secs(10);

/// First and longest wait for the lock, in microseconds: a random half to all of it. On a lock that
/// is held for some milliseconds, shorter waits cost more than they gain.
const WAIT_MIN_US: u64 = 1_000;
const WAIT_MAX_US: u64 = 16_000;

/// Deletes the lock if this process still holds it.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// Takes a value under the row's lock, in one round trip.
pub(super) async fn take_by_row(stores: &Stores, wanted: &Wanted) -> Result<u64, TakeError> {
    let query = wanted.bind(sqlx::query_scalar(BY_ROW));
    Ok(query.fetch_one(&stores.pool).await?.cast_unsigned())
}

/// Takes a value under the lock in Redis. If the lock is held, it waits a random time that grows.
pub(super) async fn take(stores: &Stores, wanted: &Wanted) -> Result<u64, TakeError> {
    let deadline = Instant::now() + LIMIT;
    let key = format!("{}:lock", wanted.counter);
    let token = format!("{:032x}", fastrand::u128(..));
    loop {
        acquire(stores, &key, &token, deadline).await?;
        let value = update(stores, wanted).await;
        let release = vec![RELEASE.to_owned(), "1".to_owned(), key.clone(), token.clone()];
        let _: u64 = stores.command("EVAL", release).await?;
        if let Some(value) = value? {
            return Ok(value);
        }
        if Instant::now() > deadline {
            return Err("no number in time".into());
        }
    }
}

async fn acquire(
    stores: &Stores,
    key: &str,
    token: &str,
    deadline: Instant,
) -> Result<(), TakeError> {
    let ttl_ms = TTL_MS.to_string();
    let mut wait_us = WAIT_MIN_US;
    loop {
        let set = [key, token, "NX", "PX", &ttl_ms].map(str::to_owned);
        let answer: Option<String> = stores.command("SET", set.into()).await?;
        if answer.is_some() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err("no number in time".into());
        }
        let wait = Duration::from_micros(fastrand::u64(wait_us / 2..=wait_us));
        tokio::time::sleep(wait).await;
        wait_us = (wait_us * 2).min(WAIT_MAX_US);
    }
}

/// Reads value and version, and updates them if they are unchanged; `None` if they are not.
async fn update(stores: &Stores, wanted: &Wanted) -> Result<Option<u64>, TakeError> {
    let read = "select version from counter where name = $1";
    let version: Option<i64> =
        sqlx::query_scalar(read).bind(&wanted.counter).fetch_optional(&stores.pool).await?;
    let Some(version) = version else {
        let first = "insert into counter (name, value) values ($1, 0) on conflict do nothing";
        sqlx::query(first).bind(&wanted.counter).execute(&stores.pool).await?;
        return Ok(None);
    };
    let query = wanted.bind(sqlx::query_scalar(BY_VERSION)).bind(version);
    let value = query.fetch_optional(&stores.pool).await?;
    Ok(value.map(i64::cast_unsigned))
}

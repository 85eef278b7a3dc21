//! Requests without a date, near a day on which another series takes over (F40): since when each is
//! asked. The first attempt sets the time, and each later one, on any node, gets the same.

use crate::columns::hash64;
use crate::dialect::Conn;
use crate::query::{query, query_scalar};
use crate::store::commit;
use crate::{Ledger, LedgerError};

/// How long before a turn lies what is of no use at it, in microseconds: 40 days.
const OBSOLETE_US: i64 = 40 * 86_400_000_000;

/// Rows of earlier turns that go with each request.
const GOING_MAX: i64 = 20;

/// The names of a request, the one by which it is known first: the caller's key, then the document,
/// by its name among those of the family. `family`: the series that take turns for it. `again`:
/// its payload, where another number is asked for a document that has one. Names are hashes; a name
/// that two requests share dates one of them as the other. The texts never change: rows keep their
/// names.
#[must_use]
pub fn undated_names(
    family: i64,
    user_id: &str,
    key: Option<&str>,
    document: Option<&str>,
    again: Option<&str>,
) -> Vec<i64> {
    let by_key = key.map(|key| format!("key {family} {}:{user_id} {key}", user_id.len()));
    let by_document = document.map(|name| match again {
        None => format!("document {family} {name}"),
        Some(again) => format!("again {family} {}:{name} {again}", name.len()),
    });
    let names = by_key.into_iter().chain(by_document);
    names.map(|name| i64::from_be_bytes(hash64(&name).to_be_bytes())).collect()
}

impl Ledger {
    /// Since when a request is asked that has these names: `now_us` where it was not asked yet.
    /// `turn_us`: the turn that is near. `window_us`: how much earlier one may be that it was asked
    /// at; what is older was another request.
    ///
    /// # Errors
    /// A ledger that does not answer: nothing is agreed on.
    pub async fn asked_at(
        &self,
        names: &[i64],
        now_us: i64,
        turn_us: i64,
        window_us: i64,
    ) -> Result<i64, LedgerError> {
        self.write(async |store| {
            let mut tx = store.begin().await?;
            let since_us = turn_us.saturating_sub(window_us);
            let mut known = first_of(&mut *tx, names, since_us).await?.unwrap_or(now_us);
            // The key last, with the time that the document gave: two requests for one document
            // under different keys are dated alike. A request that waits for a key holds no
            // document that the key's holder waits for.
            for name in names.iter().rev() {
                query(
                    "insert into undated_request (name, asked_at_us, turn_us)
                     values ($1, $2, $3) on conflict (name) do update
                     set asked_at_us = excluded.asked_at_us, turn_us = excluded.turn_us
                     where undated_request.turn_us < $4",
                )
                .bind(*name)
                .bind(known)
                .bind(turn_us)
                .bind(since_us)
                .execute(&mut *tx)
                .await?;
                known = first_of(&mut *tx, names, since_us).await?.unwrap_or(known);
            }
            query(
                "delete from undated_request where name in (select name from undated_request
                 where turn_us < $1 order by turn_us limit $2)",
            )
            .bind(turn_us.saturating_sub(OBSOLETE_US))
            .bind(GOING_MAX)
            .execute(&mut *tx)
            .await?;
            commit(tx).await?;
            Ok(known)
        })
        .await
    }
}

/// What is known by the first of the names that is known of a turn since then.
async fn first_of(
    conn: &mut Conn,
    names: &[i64],
    since_us: i64,
) -> Result<Option<i64>, LedgerError> {
    for name in names {
        let known = "select asked_at_us from undated_request where name = $1 and turn_us >= $2";
        let known = query_scalar(known).bind(*name).bind(since_us);
        let asked_at: Option<i64> = known.fetch_optional(&mut *conn).await?;
        if asked_at.is_some() {
            return Ok(asked_at);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_requests_are_the_same_in_every_version() {
        let document = Some("คำสั่ง/1");
        let names = undated_names(7, "ann", Some(r#"a "b""#), document, None);
        assert_eq!(names, [-4_164_388_197_123_369_911, 283_249_899_996_000_924]);
        assert_eq!(
            undated_names(7, "ann", None, document, Some("ff")),
            [4_336_273_113_029_545_277]
        );
    }
}

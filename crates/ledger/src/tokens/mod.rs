//! Tokens: created, rotated, revoked, listed, and read by every node into its memory. Each change
//! holds the one row of `token_stamp` until it is committed, raises the stamp, and is an event that
//! shows nothing of the secret.

pub(crate) mod in_force;
pub(crate) mod rows;
pub(crate) mod told;

use serde_json::{Value, json};
use sqlx_macros::FromRow;

use crate::calls::{CALL, noun};
use crate::columns::{from_json, signed, to_json, unreadable, unsigned};
use crate::dialect::Conn;
use crate::events::insert_event;
use crate::query::{QueryBuilder, Row, query, query_scalar};
use crate::store::{commit, commit_alone};
use crate::tokens::in_force::must_be_in_force;
use crate::tokens::told::{fingerprint, is_recorded};
use crate::{
    Event, LedgerError, NewToken, StoredToken, TOKEN_GRACE_MAX, TOKEN_USES_MAX, TOKENS_MAX,
    TokenInForce, TokenRefusal, TokenRevocation, TokenRights, TokenRotation, TokenUse,
    TokensInForce,
};

noun!(
    /// The tokens: created, rotated, revoked, listed, and read into memory.
    Tokens,
    tokens
);

impl Tokens<'_> {
    /// Creates a token.
    ///
    /// # Errors
    /// `Token` where the name is, or was, another's, where there is no room, and where the caller's
    /// token is no longer in force.
    pub async fn create(self, new: &NewToken) -> Result<StoredToken, LedgerError> {
        self.write(async |store| {
            let (mut tx, at_us) = (store.begin().await?, store.clock.now_us());
            raise(&mut *tx, at_us).await?;
            must_be_in_force(&mut *tx, new.shown, at_us).await?;
            let in_force: i64 =
                query_scalar("select count(*) from token where revoked_at_us is null")
                    .fetch_one(&mut *tx)
                    .await?;
            if unsigned(in_force, "token")? >= TOKENS_MAX as u64 {
                return Err(TokenRefusal::TooMany.into());
            }
            if find(&mut *tx, &new.name).await?.is_some() {
                return Err(TokenRefusal::NameTaken { name: new.name.clone() }.into());
            }
            let TokenRights { roles, series, projects, count_max, expires_at_us, .. } = &new.rights;
            let TokenRights { requests_per_minute, speaks_for_people, .. } = new.rights;
            query(
                "insert into token (name, sha256, roles, series, projects, count_max,
                 expires_at_us, created_by, created_at_us, requests_per_minute,
                 speaks_for_people) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            )
            .bind(&new.name)
            .bind(new.sha256.as_slice())
            .bind(to_json(roles, "roles")?)
            .bind(to_json(series, "series")?)
            .bind(to_json(projects, "projects")?)
            .bind(count_max.map(|most| signed(most, "count_max")).transpose()?)
            .bind(*expires_at_us)
            .bind(&new.created_by)
            .bind(at_us)
            .bind(requests_per_minute.map(|most| signed(most, "requests_per_minute")).transpose()?)
            .bind(speaks_for_people)
            .execute(&mut *tx)
            .await?;
            let (created, fingerprint) = written(&mut *tx, &new.name).await?;
            let detail = json!({
                "name": new.name, "roles": roles, "series": series, "projects": projects,
                "count_max": count_max, "requests_per_minute": requests_per_minute,
                "speaks_for_people": speaks_for_people, "expires_at_us": expires_at_us,
                "user": new.created_by, "fingerprint": fingerprint,
            });
            note(&mut *tx, at_us, "token-created", detail).await?;
            commit_alone(store, tx).await?;
            Ok(created)
        })
        .await
    }

    /// Revokes a token, which is no longer accepted. One that is revoked already stays as it is; if
    /// it has no event of that, one is written.
    ///
    /// # Errors
    /// `Token` where there is none of the name, and where the caller's is no longer in force.
    pub async fn revoke(self, asked: &TokenRevocation) -> Result<StoredToken, LedgerError> {
        self.write(async |store| {
            let (mut tx, at_us) = (store.begin().await?, store.clock.now_us());
            raise(&mut *tx, at_us).await?;
            must_be_in_force(&mut *tx, asked.shown, at_us).await?;
            let token = existing(&mut *tx, &asked.name).await?;
            if token.revoked_at_us.is_some() {
                let row = row_of(&mut *tx, &asked.name).await?;
                if is_recorded(&mut *tx, &row).await? {
                    return Ok(token);
                }
            }
            query(
                "update token set revoked_by = coalesce(revoked_by, $2), revoked_at_us =
                 coalesce(revoked_at_us, $3), former_sha256 = null, former_until_us = null
                 where token_id = $1",
            )
            .bind(token.token_id)
            .bind(&asked.revoked_by)
            .bind(at_us)
            .execute(&mut *tx)
            .await?;
            let (revoked, fingerprint) = written(&mut *tx, &asked.name).await?;
            let detail = json!({
                "name": asked.name, "user": asked.revoked_by, "reason": asked.reason,
                "fingerprint": fingerprint,
            });
            note(&mut *tx, at_us, "token-revoked", detail).await?;
            commit_alone(store, tx).await?;
            Ok(revoked)
        })
        .await
    }

    /// Gives a token another secret.
    ///
    /// # Errors
    /// `Token` where there is none of the name, where it is revoked, and where the caller's is no
    /// longer in force.
    pub async fn rotate(self, asked: &TokenRotation) -> Result<StoredToken, LedgerError> {
        self.write(async |store| {
            let (mut tx, at_us) = (store.begin().await?, store.clock.now_us());
            raise(&mut *tx, at_us).await?;
            must_be_in_force(&mut *tx, asked.shown, at_us).await?;
            let token = existing(&mut *tx, &asked.name).await?;
            if token.revoked_at_us.is_some() {
                return Err(TokenRefusal::Revoked { name: asked.name.clone() }.into());
            }
            let grace = asked.grace.min(TOKEN_GRACE_MAX).as_micros();
            let grace_us = i64::try_from(grace).expect("a day of microseconds is an i64");
            let former_until_us = (grace_us > 0).then(|| at_us.saturating_add(grace_us));
            query(
                "update token set former_sha256 = case when $3 then sha256 end,
                 former_until_us = $4, sha256 = $2,
                 expires_at_us = coalesce($5, expires_at_us) where token_id = $1",
            )
            .bind(token.token_id)
            .bind(asked.sha256.as_slice())
            .bind(former_until_us.is_some())
            .bind(former_until_us)
            .bind(asked.expires_at_us)
            .execute(&mut *tx)
            .await?;
            let (rotated, fingerprint) = written(&mut *tx, &asked.name).await?;
            let detail = json!({
                "name": asked.name, "former_until_us": former_until_us,
                "expires_at_us": rotated.rights.expires_at_us,
                "user": asked.rotated_by, "fingerprint": fingerprint,
            });
            note(&mut *tx, at_us, "token-rotated", detail).await?;
            commit_alone(store, tx).await?;
            Ok(rotated)
        })
        .await
    }

    /// Tokens behind a name, in the order of their names, at most `limit`; those that are revoked
    /// among them.
    pub async fn list(self, after: &str, limit: u32) -> Result<Vec<StoredToken>, LedgerError> {
        self.read(async |reader| {
            let mut query = select();
            query.push("where name > ").push_bind(after);
            query.push(" order by name limit ").push_bind(i64::from(limit));
            let rows = query.build().fetch_all(reader).await?;
            rows.iter().map(token_of).collect()
        })
        .await
    }

    /// Every token that is not revoked.
    pub async fn in_force(self) -> Result<TokensInForce, LedgerError> {
        self.call(CALL.uncounted(), async |store| {
            // Before the tokens: changes in between are read again.
            let stamp = query_scalar("select stamp from token_stamp").fetch_one(&store.reader);
            let stamp = stamp.await?;
            let mut query = select_with_secrets();
            query.push("where revoked_at_us is null");
            let rows = query.build().fetch_all(&store.reader).await?;
            // A token with an unreadable row is not accepted, and no other waits for it.
            let readable = |row| in_force(row).map_err(|error| tell_unreadable(&error)).ok();
            let tokens = rows.iter().filter_map(readable).collect();
            Ok(TokensInForce { stamp, tokens })
        })
        .await
    }

    /// Notes when tokens were used last, at most [`TOKEN_USES_MAX`] of them: the rest is left out.
    pub async fn note_uses(self, uses: &[TokenUse]) -> Result<(), LedgerError> {
        let uses = &uses[..uses.len().min(TOKEN_USES_MAX)];
        if uses.is_empty() {
            return Ok(());
        }
        self.call(CALL.uncounted(), async |store| {
            let mut query = QueryBuilder::new("with used (token_id, at_us) as (");
            query.push_values(uses, |mut row, TokenUse { token_id, at_us }| {
                row.push_bind(token_id).push_bind(at_us);
            });
            query.push(
                ") update token set last_used_at_us = used.at_us from used
                 where used.token_id = token.token_id
                 and coalesce(token.last_used_at_us, 0) < used.at_us",
            );
            let mut tx = store.begin().await?;
            query.build().once().execute(&mut *tx).await?;
            commit(tx).await
        })
        .await
    }
}

/// Raises the stamp, and keeps others from changing tokens until the transaction ends. By the time:
/// a ledger that went back gets a stamp that was never seen.
async fn raise(conn: &mut Conn, now_us: i64) -> Result<(), LedgerError> {
    query("update token_stamp set stamp = case when stamp < $1 then $1 else stamp + 1 end")
        .bind(now_us)
        .execute(conn)
        .await?;
    Ok(())
}

async fn note(conn: &mut Conn, at_us: i64, kind: &str, detail: Value) -> Result<(), LedgerError> {
    let (kind, partition, epoch, node_id) = (kind.to_owned(), None, None, None);
    insert_event(conn, &Event { at_us, kind, partition, epoch, node_id, detail }).await
}

/// The listed columns of a token: nothing of its secret, which not every reader may see.
pub(crate) fn select<'q>() -> QueryBuilder<'q> {
    QueryBuilder::new(
        "select token_id, name, former_until_us, roles, series, projects, count_max,
         expires_at_us, created_by, created_at_us, revoked_by, revoked_at_us, last_used_at_us,
         requests_per_minute, speaks_for_people from token ",
    )
}

/// The same with the hashes by which it is recognized.
pub(crate) fn select_with_secrets<'q>() -> QueryBuilder<'q> {
    QueryBuilder::new(
        "select token_id, name, sha256, former_sha256, former_until_us, roles, series, projects,
         count_max, expires_at_us, created_by, created_at_us, revoked_by, revoked_at_us,
         last_used_at_us, requests_per_minute, speaks_for_people from token ",
    )
}

fn tell_unreadable(error: &LedgerError) {
    tracing::warn!(%error, "a token of the ledger cannot be read: it lets nobody in");
}

/// A token as it was just written, and the fingerprint of its row.
async fn written(conn: &mut Conn, name: &str) -> Result<(StoredToken, String), LedgerError> {
    let token = in_force(&row_of(conn, name).await?)?;
    let fingerprint = fingerprint(&token);
    Ok((token.token, fingerprint))
}

/// The row of a token, with its hashes.
async fn row_of(conn: &mut Conn, name: &str) -> Result<Row, LedgerError> {
    let mut query = select_with_secrets();
    query.push("where name = ").push_bind(name);
    let unknown = || TokenRefusal::Unknown { name: name.to_owned() };
    Ok(query.build().fetch_optional(conn).await?.ok_or_else(unknown)?)
}

async fn find(conn: &mut Conn, name: &str) -> Result<Option<StoredToken>, LedgerError> {
    let mut query = select();
    query.push("where name = ").push_bind(name);
    query.build().fetch_optional(conn).await?.as_ref().map(token_of).transpose()
}

async fn existing(conn: &mut Conn, name: &str) -> Result<StoredToken, LedgerError> {
    let unknown = || TokenRefusal::Unknown { name: name.to_owned() };
    Ok(find(conn, name).await?.ok_or_else(unknown)?)
}

/// The listed columns of a token.
#[derive(FromRow)]
struct TokenRow {
    token_id: i64,
    name: String,
    former_until_us: Option<i64>,
    roles: String,
    series: String,
    projects: String,
    count_max: Option<i64>,
    expires_at_us: Option<i64>,
    created_by: String,
    created_at_us: i64,
    revoked_by: Option<String>,
    revoked_at_us: Option<i64>,
    last_used_at_us: Option<i64>,
    requests_per_minute: Option<i64>,
    speaks_for_people: bool,
}

/// The same with the hashes.
#[derive(FromRow)]
struct TokenRowWithSecrets {
    #[sqlx(flatten)]
    token: TokenRow,
    sha256: Vec<u8>,
    former_sha256: Option<Vec<u8>>,
}

impl TryFrom<TokenRow> for StoredToken {
    type Error = LedgerError;

    fn try_from(row: TokenRow) -> Result<Self, LedgerError> {
        let most = |most: Option<i64>, column| most.map(|most| unsigned(most, column)).transpose();
        Ok(StoredToken {
            token_id: row.token_id,
            name: row.name,
            rights: TokenRights {
                roles: from_json(&row.roles, "token.roles")?,
                series: from_json(&row.series, "token.series")?,
                projects: from_json(&row.projects, "token.projects")?,
                count_max: most(row.count_max, "count_max")?,
                requests_per_minute: most(row.requests_per_minute, "requests_per_minute")?,
                speaks_for_people: row.speaks_for_people,
                expires_at_us: row.expires_at_us,
            },
            former_until_us: row.former_until_us,
            created_by: row.created_by,
            created_at_us: row.created_at_us,
            revoked_by: row.revoked_by,
            revoked_at_us: row.revoked_at_us,
            last_used_at_us: row.last_used_at_us,
        })
    }
}

pub(crate) fn token_of(row: &Row) -> Result<StoredToken, LedgerError> {
    row.decode::<TokenRow>()?.try_into()
}

pub(crate) fn in_force(row: &Row) -> Result<TokenInForce, LedgerError> {
    let hash = |bytes: Vec<u8>| {
        <[u8; 32]>::try_from(bytes).map_err(|_| unreadable("token.sha256", "no SHA-256"))
    };
    let TokenRowWithSecrets { token, sha256, former_sha256 } = row.decode()?;
    Ok(TokenInForce {
        token: token.try_into()?,
        sha256: hash(sha256)?,
        former_sha256: former_sha256.map(hash).transpose()?,
    })
}

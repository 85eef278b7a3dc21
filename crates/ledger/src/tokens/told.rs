//! Tokens compared with their events. Each change of a token by this program is an event, which
//! names the resulting row by a fingerprint; a differing row was written by other means. Reads
//! only.

use std::collections::{HashMap, HashSet};

use numbering::hexadecimal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx_macros::FromRow;

use crate::calls::SEARCH;
use crate::columns::from_json;
use crate::dialect::Conn;
use crate::query::{QueryBuilder, Row};
use crate::store::Store;
use crate::tokens::{in_force, select, select_with_secrets, token_of};
use crate::{
    LedgerError, StoredToken, TokenComparison, TokenFlaw, TokenInForce, TokenPrint, Tokens,
    UnrecordedToken,
};

/// Events of one read.
const PAGE_EVENTS: i64 = 1_000;

/// PostgreSQL's code of a right that is missing.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// The first event of a token, and its last.
const CREATED: &str = "token-created";
const REVOKED: &str = "token-revoked";

/// Bytes of a digest that are a fingerprint.
const FINGERPRINT_BYTES: usize = 16;

impl Tokens<'_> {
    /// Tokens, in force or revoked, that are not as their last event says, and those without an
    /// event.
    pub async fn untold(self) -> Result<TokenComparison, LedgerError> {
        self.untold_but(&HashSet::new()).await
    }

    /// The same without the rows that an earlier look found to agree: their events are not read
    /// again.
    pub async fn untold_but(
        self,
        as_recorded: &HashSet<TokenPrint>,
    ) -> Result<TokenComparison, LedgerError> {
        self.call(SEARCH.uncounted(), async |store| match compare(store, true, as_recorded).await {
            // An auditor may not read hashes.
            Err(LedgerError::Fault(why)) if why.starts_with(INSUFFICIENT_PRIVILEGE) => {
                compare(store, false, as_recorded).await
            }
            compared => compared,
        })
        .await
    }
}

/// One row and its events.
struct Compared {
    token: StoredToken,
    /// The fingerprint, where secrets are compared.
    fingerprint: Option<String>,
    print: TokenPrint,
}

/// The content of a token's events.
#[derive(Default)]
struct Said {
    /// Kind and detail of its last event.
    last: Option<(String, Value)>,
    /// The detail of its first one, where that had to be searched for.
    created: Option<Value>,
}

async fn compare(
    store: &Store,
    with_secrets: bool,
    known: &HashSet<TokenPrint>,
) -> Result<TokenComparison, LedgerError> {
    let mut tx = store.reader.begin_snapshot().await?;
    let mut query = if with_secrets { select_with_secrets() } else { select() };
    query.push("order by name");
    let rows = query.build().fetch_all(&mut *tx).await?;
    let mut told = TokenComparison { with_secrets, ..TokenComparison::default() };
    let mut fresh = Vec::new();
    for row in &rows {
        match compared(row, with_secrets) {
            Ok(it) if known.contains(&it.print) => _ = told.as_recorded.insert(it.print),
            Ok(it) => fresh.push(it),
            // This program wrote no such row.
            Err(_) => {
                let name = row.try_get("name")?;
                told.untold.push(UnrecordedToken { name, why: TokenFlaw::Changed });
            }
        }
    }
    let names = fresh.iter().map(|it| (it.token.name.clone(), Said::default()));
    let said = read_events(&mut *tx, names.collect(), with_secrets).await?;
    tx.rollback().await?;
    for Compared { token, fingerprint, print } in fresh {
        match judge(&token, fingerprint.as_deref(), &said[&token.name]) {
            Some(why) => told.untold.push(UnrecordedToken { name: token.name, why }),
            None => _ = told.as_recorded.insert(print),
        }
    }
    Ok(told)
}

fn compared(row: &Row, with_secrets: bool) -> Result<Compared, LedgerError> {
    let (token, fingerprint) = if with_secrets {
        let token = in_force(row)?;
        let fingerprint = fingerprint(&token);
        (token.token, Some(fingerprint))
    } else {
        (token_of(row)?, None)
    };
    let all = json!([
        token.name,
        rights_of(&token),
        token.rights.expires_at_us,
        fingerprint,
        token.revoked_by,
        token.revoked_at_us
    ]);
    let print = Sha256::digest(all.to_string()).into();
    Ok(Compared { token, fingerprint, print })
}

/// Whether a token is as its events say.
pub(crate) async fn is_recorded(conn: &mut Conn, row: &Row) -> Result<bool, LedgerError> {
    let Compared { token, fingerprint, .. } = compared(row, true)?;
    let names = [(token.name.clone(), Said::default())].into();
    let said = read_events(conn, names, true).await?;
    Ok(judge(&token, fingerprint.as_deref(), &said[&token.name]).is_none())
}

/// An event of a token.
#[derive(FromRow)]
struct TokenEvent {
    event_id: i64,
    kind: String,
    detail: String,
}

/// Reads events back from the newest, as far as is needed: a fingerprint covers all, and where none
/// is compared the first event of a token has what it was given.
async fn read_events(
    conn: &mut Conn,
    mut said: HashMap<String, Said>,
    with_secrets: bool,
) -> Result<HashMap<String, Said>, LedgerError> {
    let (mut before, mut open) = (i64::MAX, said.len());
    while open > 0 {
        let mut query = QueryBuilder::new(
            "select event_id, kind, detail from event
             where kind in ('token-created', 'token-revoked', 'token-rotated') and event_id < ",
        );
        query.push_bind(before).push(" order by event_id desc limit ").push_bind(PAGE_EVENTS);
        let events: Vec<TokenEvent> = query.build().typed().fetch_all(&mut *conn).await?;
        let Some(last) = events.last() else { break };
        before = last.event_id;
        for TokenEvent { kind, detail, .. } in events {
            // An unreadable event has no content.
            let Ok(detail) = from_json::<Value>(&detail, "event.detail") else { continue };
            let name = detail["name"].as_str().unwrap_or_default();
            let Some(of_token) = said.get_mut(name).filter(|it| it.goes_on(with_secrets)) else {
                continue;
            };
            if kind == CREATED {
                of_token.created = Some(detail.clone());
            }
            if of_token.last.is_none() {
                of_token.last = Some((kind, detail));
            }
            open -= usize::from(!of_token.goes_on(with_secrets));
        }
    }
    Ok(said)
}

impl Said {
    /// Whether earlier events have relevant content.
    fn goes_on(&self, with_secrets: bool) -> bool {
        match &self.last {
            None => true,
            Some((kind, _)) if kind == REVOKED => false,
            Some(_) if with_secrets => false,
            Some(_) => self.created.is_none(),
        }
    }
}

/// The disagreement of a token with its events.
fn judge(token: &StoredToken, fingerprint: Option<&str>, said: &Said) -> Option<TokenFlaw> {
    let Some((kind, last)) = &said.last else { return Some(TokenFlaw::NoEvent) };
    match (kind == REVOKED, token.revoked_at_us) {
        (true, None) => return Some(TokenFlaw::Revoked),
        (false, Some(_)) => return Some(TokenFlaw::Changed),
        // A revoked token gives nothing: its rights are not compared without its secret.
        (true, Some(_)) if fingerprint.is_none() => return None,
        (true, Some(_)) | (false, None) => {}
    }
    let is_as_told = match (fingerprint, &said.created) {
        (Some(found), _) => last["fingerprint"].as_str() == Some(found),
        (None, Some(created)) => {
            rights_of(token) == rights_told(created)
                && last["expires_at_us"].as_i64() == token.rights.expires_at_us
        }
        (None, None) => return Some(TokenFlaw::NoEvent),
    };
    (!is_as_told).then_some(TokenFlaw::Changed)
}

/// Rights that no event after the first changes.
fn rights_of(token: &StoredToken) -> Value {
    let rights = &token.rights;
    json!([
        rights.roles,
        rights.series,
        rights.projects,
        rights.count_max,
        rights.requests_per_minute,
        rights.speaks_for_people
    ])
}

/// The same by the event.
fn rights_told(created: &Value) -> Value {
    let fields =
        ["roles", "series", "projects", "count_max", "requests_per_minute", "speaks_for_people"];
    fields.map(|field| created[field].clone()).into()
}

/// Distinguishes rows of a token, except by the last use; shows nothing of its secret.
pub(crate) fn fingerprint(row: &TokenInForce) -> String {
    let TokenInForce { token, sha256, former_sha256 } = row;
    let former = former_sha256.map(|former| hexadecimal(&former));
    let said = json!([
        token.name,
        hexadecimal(sha256),
        former,
        token.former_until_us,
        token.rights.expires_at_us,
        rights_of(token)
    ]);
    let digest = Sha256::digest(format!("numerator token\n{said}"));
    hexadecimal(&digest[..FINGERPRINT_BYTES])
}

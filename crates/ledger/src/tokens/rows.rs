//! Tokens as the ledger keeps them: the callers. They contain no secret, only its hash.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;
use uuid::Uuid;

/// Tokens in force at the same time: each process keeps them in its memory.
pub const TOKENS_MAX: usize = 10_000;

/// Longest time for which the former secret is accepted after a rotation.
pub const TOKEN_GRACE_MAX: Duration = Duration::from_secs(86_400);

/// Most uses of tokens that are noted in one call.
pub const TOKEN_USES_MAX: usize = 500;

/// The rights of a token. Words and codes as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRights {
    /// Its roles.
    pub roles: Vec<String>,
    /// Codes of the series to which it is restricted; none: to none.
    pub series: Vec<String>,
    /// Codes of the projects to which it is restricted; none: to none.
    pub projects: Vec<String>,
    /// Most numbers of one call, where it is bounded.
    pub count_max: Option<u64>,
    /// Most requests of a minute, where they are bounded.
    pub requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    pub speaks_for_people: bool,
    /// It is no longer accepted from then on.
    pub expires_at_us: Option<i64>,
}

/// A token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Its name, which no token has or had.
    pub name: String,
    /// SHA-256 of its secret.
    pub sha256: [u8; 32],
    /// Its rights.
    pub rights: TokenRights,
    /// The user who creates it.
    pub created_by: String,
    /// The token of the ledger that was used, if any.
    pub shown: Option<ShownToken>,
}

/// The secret of the ledger with which a caller authenticated a management request. The transaction
/// that carries the request out checks whether the secret is still in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownToken {
    /// The row of the token.
    pub token_id: i64,
    /// SHA-256 of the secret.
    pub sha256: [u8; 32],
}

/// The revocation of a token.
#[derive(Clone, Debug)]
pub struct TokenRevocation {
    /// Its name.
    pub name: String,
    /// The user who revokes it.
    pub revoked_by: String,
    /// Why.
    pub reason: String,
    /// The token of the ledger that was used, if any.
    pub shown: Option<ShownToken>,
}

/// A new secret for a token.
#[derive(Clone, Debug)]
pub struct TokenRotation {
    /// Its name.
    pub name: String,
    /// SHA-256 of the new secret.
    pub sha256: [u8; 32],
    /// How long the present secret is still accepted, at most [`TOKEN_GRACE_MAX`]. An earlier one
    /// is refused immediately.
    pub grace: Duration,
    /// When the token expires from now on; unchanged where it is absent.
    pub expires_at_us: Option<i64>,
    /// The user who rotates it.
    pub rotated_by: String,
    /// The token of the ledger that was used, if any.
    pub shown: Option<ShownToken>,
}

/// A token as it is listed: nothing of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredToken {
    /// Its row.
    pub token_id: i64,
    /// Its name.
    pub name: String,
    /// Its rights.
    pub rights: TokenRights,
    /// Until when the secret from before the last rotation is accepted, if there is one.
    pub former_until_us: Option<i64>,
    /// The user who created it.
    pub created_by: String,
    /// When.
    pub created_at_us: i64,
    /// The user who revoked it, if it is revoked.
    pub revoked_by: Option<String>,
    /// When.
    pub revoked_at_us: Option<i64>,
    /// When it was used last, about.
    pub last_used_at_us: Option<i64>,
}

/// A token that is not revoked, with the hashes by which it is recognized.
#[derive(Clone, Debug)]
pub struct TokenInForce {
    /// The token.
    pub token: StoredToken,
    /// SHA-256 of its secret.
    pub sha256: [u8; 32],
    /// That of its former secret, which is accepted until `former_until_us`.
    pub former_sha256: Option<[u8; 32]>,
}

/// Every token that is not revoked, and the ledger's stamp.
#[derive(Clone, Debug)]
pub struct TokensInForce {
    /// Differs once any token has changed since.
    pub stamp: i64,
    /// The tokens.
    pub tokens: Vec<TokenInForce>,
}

/// The disagreement of a token with its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenFlaw {
    /// It has no event of its creation.
    NoEvent,
    /// Its last event revoked it.
    Revoked,
    /// Its secret, its rights or its end are not as its last event left them, or it is revoked
    /// without an event.
    Changed,
}

impl fmt::Display for TokenFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TokenFlaw::NoEvent => "no event says that it was created",
            TokenFlaw::Revoked => "its last event revoked it",
            TokenFlaw::Changed => {
                "its secret, its rights or its end are not as its last event left them"
            }
        })
    }
}

/// A token whose row was written in the database by something other than this program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnrecordedToken {
    /// Its name.
    pub name: String,
    /// The disagreement.
    pub why: TokenFlaw,
}

/// The fingerprint of a token's row, without its last use.
pub type TokenPrint = [u8; 32];

/// Tokens, compared with their events.
#[derive(Clone, Debug, Default)]
pub struct TokenComparison {
    /// Tokens whose rows differ from their events.
    pub untold: Vec<UnrecordedToken>,
    /// Tokens whose rows agree with their events.
    pub as_recorded: HashSet<TokenPrint>,
    /// Whether secrets were compared; the rights of the ledger's user may not allow that.
    pub with_secrets: bool,
}

/// The ledger's stamps of what running nodes keep in memory. Each is higher once anything of its
/// kind has changed, and lower where the ledger went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Series.
    pub series: i64,
    /// Reference data.
    pub reference: i64,
    /// Tokens.
    pub tokens: i64,
    /// The nonce of the ledger's incarnation: in another one the same series' or reference data's
    /// stamp may have another meaning (F25).
    pub incarnation: Option<Uuid>,
}

/// When a token was used.
#[derive(Clone, Copy, Debug)]
pub struct TokenUse {
    /// Its row.
    pub token_id: i64,
    /// When.
    pub at_us: i64,
}

/// Why a change of tokens is refused for good. Nothing written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TokenRefusal {
    /// No token has the name.
    #[error("no token of the ledger has the name {name}; `numerator token list` lists them")]
    Unknown {
        /// The name.
        name: String,
    },
    /// Another token has the name, or had it.
    #[error(
        "a token has the name {name}, or had it and is revoked; use another name, or give that \
         one a new secret (`token rotate {name}`)"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// It is revoked, and stays so.
    #[error("the token {name} is revoked and stays so; create one of another name")]
    Revoked {
        /// The name.
        name: String,
    },
    /// The token that it is asked with is revoked, has expired, or has another secret.
    #[error("the token is not in force any more: it is revoked, has expired, or another secret")]
    NotInForce,
    /// There are as many as processes keep in memory.
    #[error("{TOKENS_MAX} tokens are in force; revoke some that nobody uses")]
    TooMany,
}

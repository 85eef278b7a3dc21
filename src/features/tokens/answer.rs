//! A token as answers and listings show it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::{StoredToken, TokenRights};
use crate::web::instant::instant;

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TokenAnswer {
    /// Its name.
    pub name: String,
    /// `in-force`, `expired` or `revoked`.
    pub state: &'static str,
    /// What it may do.
    pub roles: Vec<String>,
    /// Codes of the series to which it is narrowed; empty: to none.
    pub series: Vec<String>,
    /// Codes of the projects to which it is narrowed; empty: to none.
    pub projects: Vec<String>,
    /// Most numbers of one call, where it is bounded.
    pub count_max: Option<u64>,
    /// Most requests of a minute, where they are bounded.
    pub requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    pub speaks_for_people: bool,
    /// From then on it is not accepted.
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    /// Until then the former secret, from before its last rotation, is accepted.
    #[schema(format = DateTime)]
    pub former_until: Option<String>,
    /// Who created it.
    pub created_by: String,
    /// When.
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Who revoked it.
    pub revoked_by: Option<String>,
    /// When.
    #[schema(format = DateTime)]
    pub revoked_at: Option<String>,
    /// When it was used last, to a minute or so.
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
}

/// A token with its secret, which is shown here and never again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NewTokenAnswer {
    /// What to send as `Authorization: Bearer …`.
    pub token: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub about: TokenAnswer,
}

impl TokenAnswer {
    /// The answer for a token in its state at a given time.
    #[must_use]
    pub fn of(token: StoredToken, now_us: i64) -> Self {
        let TokenRights { roles, series, projects, count_max, expires_at_us, .. } = token.rights;
        let TokenRights { requests_per_minute, speaks_for_people, .. } = token.rights;
        let is_over = |at: Option<i64>| at.is_some_and(|at| at <= now_us);
        TokenAnswer {
            name: token.name,
            state: match token.revoked_at_us {
                Some(_) => "revoked",
                None if is_over(expires_at_us) => "expired",
                None => "in-force",
            },
            roles,
            series,
            projects,
            count_max,
            requests_per_minute,
            speaks_for_people,
            expires_at: expires_at_us.map(instant),
            former_until: token.former_until_us.filter(|at| *at > now_us).map(instant),
            created_by: token.created_by,
            created_at: instant(token.created_at_us),
            revoked_by: token.revoked_by,
            revoked_at: token.revoked_at_us.map(instant),
            last_used_at: token.last_used_at_us.map(instant),
        }
    }
}

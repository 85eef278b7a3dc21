//! Who calls, by the header `Authorization`: a token, or a JWT where an issuer is set.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::super::budget::Budgets;
use super::super::forwarded::Proxies;
use super::super::hosts::Hosts;
use super::super::problem::{Problem, Slug};
use crate::auth::Identity;
use crate::auth::jwt::{JwtRefusal, Jwts};
use crate::auth::limits::Limits;
use crate::auth::tokens::{NotAdmitted, Tokens};

/// Who is let in.
pub(crate) struct Admission {
    /// By which tokens; nothing means that everybody is [`LOCAL_USER`](crate::auth::LOCAL_USER).
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// By which JWTs, too; asked only where tokens are.
    pub(crate) jwts: Option<Arc<Jwts>>,
    /// Under which names.
    pub(crate) hosts: Hosts,
    /// For whom proxies may ask.
    pub(crate) proxies: Proxies,
    /// How often.
    pub(crate) limits: Arc<Limits>,
    /// With how much at once.
    pub(crate) budgets: Budgets,
}

impl Admission {
    /// Whoever calls; nothing where nobody has to say. A token is looked for by its hash, so that
    /// the time of a refusal tells nothing about any.
    pub(super) async fn named(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Identity>>, Problem> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let refused = |detail| Problem::new(Slug::Unauthenticated, detail);
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let header = sent.next().and_then(|value| value.to_str().ok());
        if sent.next().is_some() {
            // Who stands between may have looked at another one of them.
            return Err(refused("send the header Authorization once"));
        }
        let (scheme, token) = header
            .and_then(|header| header.split_once(' '))
            .ok_or_else(|| refused("send the header Authorization: Bearer <token>"))?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(refused("the scheme of the header Authorization must be Bearer"));
        }
        let token = token.trim();
        let admitted = match &self.jwts {
            Some(jwts) if Jwts::is_jwt(token) => {
                jwts.admit(token).await.map_err(|why| of_jwt(&why))
            }
            _ => tokens.admit(token).map_err(of_token),
        };
        admitted.map(Some)
    }
}

fn of_token(why: NotAdmitted) -> Problem {
    Problem::refused_token(match why {
        NotAdmitted::Unknown => "the token is not known",
        NotAdmitted::Expired => "the token has expired; ask an administrator for a new one",
        NotAdmitted::Replaced => "another token has replaced this one; send that one",
    })
}

fn of_jwt(why: &JwtRefusal) -> Problem {
    let problem = Problem::refused_token(why.to_string());
    if why.retry_useful() { problem.retry_soon() } else { problem }
}

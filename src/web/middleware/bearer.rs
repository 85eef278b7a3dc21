//! Identifies the caller by the header `Authorization`: a token, or a JWT if an issuer is set.

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

/// The rules of admission.
pub(crate) struct Admission {
    /// The tokens; without any, every caller is [`LOCAL_USER`](crate::auth::LOCAL_USER).
    pub(crate) tokens: Option<Arc<Tokens>>,
    /// The accepted JWTs; checked only if there are tokens.
    pub(crate) jwts: Option<Arc<Jwts>>,
    /// Under which names.
    pub(crate) hosts: Hosts,
    /// The proxies that may name a client's address.
    pub(crate) proxies: Proxies,
    /// How often.
    pub(crate) limits: Arc<Limits>,
    /// The bytes that calls may hold.
    pub(crate) budgets: Budgets,
}

impl Admission {
    /// The caller; `None` if callers need no token. A token is searched for by its hash, so that
    /// the time of a refusal reveals nothing about any token.
    pub(super) async fn named(
        &self,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<Identity>>, Problem> {
        let Some(tokens) = &self.tokens else { return Ok(None) };
        let refused = |detail| Problem::new(Slug::Unauthenticated, detail);
        let mut sent = headers.get_all(AUTHORIZATION).iter();
        let header = sent.next().and_then(|value| value.to_str().ok());
        if sent.next().is_some() {
            // A proxy may have checked another one of them.
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

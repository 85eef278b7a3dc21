//! The meaning of the claims of a JWT, once its signature is verified: the caller, its rights, its
//! restrictions, and the time of its validity. A missing claim gives nothing.

use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Map, Value};

use super::JwtRefusal;
use crate::auth::COUNT_MAX;
use crate::auth::jwt::JwtSettings;
use crate::auth::rate::RequestRate;
use crate::auth::{Identity, Role, WrittenGrant, jwt_identity_name};
use crate::ledger::TokenRights;

/// The value of a claim that means everything: no claim, or an empty one, gives nothing.
const EVERYTHING: &str = "*";

/// The claims of a JWT.
pub(super) type Claims = Map<String, Value>;

/// By how much the issuer's clock may differ.
const CLOCK_SKEW: Duration = Duration::from_secs(30);

/// A JWT whose signature was verified.
#[derive(Clone, Debug)]
pub(super) struct Verified {
    identity: Arc<Identity>,
    /// The JWT is valid from this time, in microseconds since 1970.
    from_us: i64,
    until_us: i64,
}

impl Verified {
    /// The meaning of the claims.
    pub(super) fn read(claims: &Claims, settings: &JwtSettings) -> Result<Self, JwtRefusal> {
        let skew_us = i64::try_from(CLOCK_SKEW.as_micros()).unwrap_or(i64::MAX);
        let until_us = claims.get("exp").map(time_us).ok_or(JwtRefusal::NoExpiry)?;
        let from_us = claims.get("nbf").map_or(Some(i64::MIN), time_us);
        let (Some(until_us), Some(from_us)) = (until_us, from_us) else {
            return Err(JwtRefusal::Times);
        };
        let name = found(claims, &settings.name_claim).and_then(Value::as_str);
        let name = name.and_then(jwt_identity_name).ok_or(JwtRefusal::Name)?;
        let roles = roles(claims, settings);
        if roles.is_empty() {
            return Err(JwtRefusal::NoRole);
        }
        let scope = |claim: &Option<String>, refusal| match claim {
            None => Ok(Vec::new()),
            Some(claim) => found(claims, claim).and_then(codes).ok_or(refusal),
        };
        let series = scope(&settings.series_claim, JwtRefusal::NoSeries)?;
        let projects = scope(&settings.projects_claim, JwtRefusal::NoProjects)?;
        let count_max = Some(settings.count_max);
        let rights = TokenRights { roles, series, projects, count_max, ..TokenRights::default() };
        let written = WrittenGrant { name: &name, rights: &rights, expires: None };
        let granted = written.read_of_named(COUNT_MAX).map_err(JwtRefusal::Grant)?;
        let mut identity = Arc::unwrap_or_clone(granted.identity);
        identity.request_rate =
            if settings.people { RequestRate::Person } else { RequestRate::Free };
        Ok(Verified {
            identity: Arc::new(identity),
            from_us: from_us.saturating_sub(skew_us),
            until_us: until_us.saturating_add(skew_us),
        })
    }

    /// The identity of the caller at that time.
    pub(super) fn at(&self, now_us: i64) -> Result<Arc<Identity>, JwtRefusal> {
        if now_us < self.from_us {
            return Err(JwtRefusal::NotYet);
        }
        if self.is_over(now_us) {
            return Err(JwtRefusal::Expired);
        }
        Ok(Arc::clone(&self.identity))
    }

    /// Whether it has expired for good.
    pub(super) fn is_over(&self, now_us: i64) -> bool {
        now_us >= self.until_us
    }
}

/// A time of a claim: seconds since 1970, which may have fractions.
fn time_us(claim: &Value) -> Option<i64> {
    let seconds = SignedDuration::try_from_secs_f64(claim.as_f64()?).ok()?;
    i64::try_from(seconds.as_micros()).ok()
}

/// A claim by its name, or by its path: `realm_access.roles`.
fn found<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    let by_path = || {
        let mut path = name.split('.');
        let first = claims.get(path.next()?)?;
        path.try_fold(first, |value, part| value.get(part))
    };
    claims.get(name).or_else(by_path)
}

/// Our words for the roles that the issuer gives; those that mean nothing here are left out.
fn roles(claims: &Claims, settings: &JwtSettings) -> Vec<String> {
    let given: Vec<&str> = match found(claims, &settings.roles_claim) {
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let ours = |word: &str| match &settings.roles {
        Some(roles) => roles.get(word).cloned().unwrap_or_default(),
        None => Role::named(word).into_iter().collect(),
    };
    given.into_iter().flat_map(ours).map(|role| role.name().to_owned()).collect()
}

/// The codes to which an identity is restricted: an empty list for everything, which must be
/// explicit.
fn codes(claim: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let codes: Vec<String> = match claim {
        Value::Array(list) => list.iter().map(text).collect::<Option<_>>()?,
        one => vec![text(one)?],
    };
    match codes.iter().any(|code| code == EVERYTHING) {
        true => Some(Vec::new()),
        false => Some(codes).filter(|codes| !codes.is_empty()),
    }
}

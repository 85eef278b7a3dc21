//! JWTs as a second way to authenticate: of one issuer, for this audience, signed by one of its
//! keys.
//!
//! Nothing in a JWT is believed before its signature is verified. Two fields of its header are
//! read: the algorithm, which must be that of the key, and the name of the key, which is compared
//! with the known ones. Addresses and keys in a header are never used.

mod claims;
mod keyring;
mod keys;
mod public_key;
mod settings;
mod signatures;
mod written;

pub use settings::{JwtAlgorithm, JwtKeys, JwtSettings};

use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde_json::Value;
use thiserror::Error;

use crate::auth::{GrantMistake, Identity, hash_of};
use crate::clock::SharedClock;
use crate::task::Task;
use claims::Verified;
use keyring::{InForce, KeyRefresh, Keyring};
use keys::{Key, NoKey};
use written::Written;

/// Longest JWT that is read.
const JWT_CHARS_MAX: usize = 8 * 1_024;

/// Why a JWT is not accepted: the message for its sender. Shows nothing of its claims.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JwtRefusal {
    /// Too long.
    #[error("the JWT has more than {JWT_CHARS_MAX} characters; ask its issuer for fewer claims")]
    TooLong,
    /// Not to be read.
    #[error("the token is no JWT that can be read, or is signed by no algorithm in use here")]
    Unreadable,
    /// Needs what is not supported.
    #[error("the JWT says that more of its header must be understood (crit) than is here")]
    Critical,
    /// No key of that name.
    #[error(
        "the JWT is signed with a key that is not known; get a new one from the issuer in \
         auth.jwt.issuer, or wait ten seconds if the issuer has just changed its keys"
    )]
    UnknownKey,
    /// There are no keys.
    #[error("the keys of the issuer cannot be read at the moment; send the same again")]
    NoKeys,
    /// A key of another algorithm.
    #[error("the JWT names another algorithm than that of its key")]
    Algorithm,
    /// A wrong signature.
    #[error("the signature of the JWT is not that of its key")]
    Signature,
    /// Another issuer.
    #[error("the JWT is of another issuer than that in auth.jwt.issuer")]
    Issuer,
    /// A claim that each reader would read otherwise.
    #[error("the JWT has two claims of one name; have its issuer write each once")]
    Repeated,
    /// Another audience.
    #[error(
        "the JWT is for another audience than that in auth.jwt.audience; ask for one for this \
         service"
    )]
    Audience,
    /// It would never expire.
    #[error("the JWT does not say when it expires (exp)")]
    NoExpiry,
    /// Times that are none.
    #[error("the JWT says exp or nbf in another way than as seconds since 1970")]
    Times,
    /// Too early.
    #[error("the JWT is not valid yet (nbf); is the clock of its issuer right?")]
    NotYet,
    /// Too late.
    #[error("the JWT has expired; get a new one from its issuer")]
    Expired,
    /// No name.
    #[error(
        "the JWT names nobody that the journal could name: the claim of auth.jwt.name_claim must \
         be a text of 1 to 60 of A-Z a-z 0-9 . _ - @ | + :; name another claim there"
    )]
    Name,
    /// No role.
    #[error(
        "the JWT gives no role here: the claim of auth.jwt.roles_claim must have a role, or a word \
         that auth.jwt.roles lists"
    )]
    NoRole,
    /// No projects.
    #[error(
        "the JWT does not say to which projects it is narrowed: the claim of \
         auth.jwt.projects_claim must list codes, or be \"*\" for all"
    )]
    NoProjects,
    /// No series.
    #[error(
        "the JWT does not say to which series it is narrowed: the claim of auth.jwt.series_claim \
         must list codes, or be \"*\" for all"
    )]
    NoSeries,
    /// Roles and reach that do not fit.
    #[error("of what the JWT gives: {0}")]
    Grant(GrantMistake),
}

impl JwtRefusal {
    /// Whether the same JWT may be accepted a moment later.
    #[must_use]
    pub const fn retry_useful(&self) -> bool {
        matches!(self, JwtRefusal::NoKeys)
    }
}

/// The issuer whose JWTs are accepted.
pub struct Jwts {
    settings: JwtSettings,
    keyring: Arc<Keyring>,
    clock: SharedClock,
}

impl Jwts {
    /// Reads the keys of an issuer's settings.
    ///
    /// # Errors
    /// Keys in a file that cannot be used.
    pub(crate) fn of(settings: JwtSettings, clock: &SharedClock) -> anyhow::Result<Arc<Self>> {
        Ok(Arc::new(Jwts::open(settings, Arc::clone(clock), KeyRefresh::USUAL)?))
    }

    fn open(
        settings: JwtSettings,
        clock: SharedClock,
        request_rate: KeyRefresh,
    ) -> anyhow::Result<Self> {
        signatures::install();
        let pinned = settings.algorithms.clone();
        let keyring = Arc::new(Keyring::open(settings.keys.clone(), pinned, request_rate)?);
        Ok(Jwts { settings, keyring, clock })
    }

    /// Whether a bearer token is to be read as a JWT: three parts, and not one of ours.
    #[must_use]
    pub fn is_jwt(token: &str) -> bool {
        !token.starts_with(crate::auth::SECRET_PREFIX) && token.matches('.').count() == 2
    }

    /// The identity of the sender of a JWT. Waits only where its key is not known; safe to drop.
    ///
    /// # Errors
    /// Why the JWT is not accepted.
    pub async fn admit(&self, jwt: &str) -> Result<Arc<Identity>, JwtRefusal> {
        if jwt.len() > JWT_CHARS_MAX {
            return Err(JwtRefusal::TooLong);
        }
        let hash = hash_of(jwt);
        let known = self.keyring.in_force();
        if let Some(verified) = known.as_ref().and_then(|known| known.verified(&hash)) {
            return verified.at(self.clock.now_us());
        }
        let header = decode_header(jwt).map_err(|_| JwtRefusal::Unreadable)?;
        if header.crit.is_some() {
            return Err(JwtRefusal::Critical);
        }
        let is_known = known.as_ref().is_some_and(|known| find(known, &header).is_ok());
        let known = if is_known { known } else { self.newer(&header, known).await };
        let known = known.ok_or(JwtRefusal::NoKeys)?;
        let verified = self.verify(jwt, find(&known, &header)?)?;
        let now_us = self.clock.now_us();
        let identity = verified.at(now_us)?;
        known.remember(hash, verified, now_us);
        Ok(identity)
    }

    /// The keys, read again where a newer set may have the one that is named.
    async fn newer(&self, header: &Header, known: Option<Arc<InForce>>) -> Option<Arc<InForce>> {
        let found = known.as_ref().map(|known| find(known, header).err());
        if found == Some(Some(JwtRefusal::Algorithm)) {
            return known;
        }
        self.keyring.poll_again().await;
        self.keyring.in_force()
    }

    /// Compares signature, issuer and audience; then reads the claims.
    fn verify(&self, jwt: &str, key: &Key) -> Result<Verified, JwtRefusal> {
        let mut wanted = Validation::new(key.algorithm);
        wanted.set_issuer(&[&self.settings.issuer]);
        wanted.set_audience(&[&self.settings.audience]);
        wanted.set_required_spec_claims(&["iss", "aud"]);
        // By our clock, below: the library reads another one.
        (wanted.validate_exp, wanted.validate_nbf) = (false, false);
        let decoded = decode::<Written>(jwt, &key.key, &wanted);
        let decoded = decoded.map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => JwtRefusal::Signature,
            ErrorKind::InvalidAlgorithm => JwtRefusal::Algorithm,
            ErrorKind::InvalidIssuer => JwtRefusal::Issuer,
            ErrorKind::InvalidAudience => JwtRefusal::Audience,
            ErrorKind::MissingRequiredClaim(claim) if claim == "iss" => JwtRefusal::Issuer,
            ErrorKind::MissingRequiredClaim(_) => JwtRefusal::Audience,
            _ => JwtRefusal::Unreadable,
        })?;
        let Written { claims, is_repeated } = decoded.claims;
        if is_repeated {
            return Err(JwtRefusal::Repeated);
        }
        // The library takes a list that has ours among others.
        if claims.get("iss").and_then(Value::as_str) != Some(&*self.settings.issuer) {
            return Err(JwtRefusal::Issuer);
        }
        Verified::read(&claims, &self.settings)
    }

    /// Keeps the keys as the issuer has them.
    pub(crate) fn follow_keys(self: Arc<Self>) -> Task {
        Arc::clone(&self.keyring).follow()
    }
}

/// The key of a JWT.
fn find<'a>(known: &'a InForce, header: &Header) -> Result<&'a Key, JwtRefusal> {
    known.keys.find(header.kid.as_deref(), header.alg).map_err(|why| match why {
        NoKey::Unknown => JwtRefusal::UnknownKey,
        NoKey::OtherAlgorithm => JwtRefusal::Algorithm,
    })
}

#[cfg(test)]
mod tests;

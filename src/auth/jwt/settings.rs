//! Of which issuer JWTs are accepted, how they are signed, and what their claims mean.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use hyper::Uri;
use serde::{Deserialize, Serialize};

use crate::auth::Role;

/// How a JWT may be signed (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum JwtAlgorithm {
    /// HMAC with SHA-256, by a secret that the issuer shares.
    HS256,
    /// RSA (PKCS #1 v1.5) with SHA-256.
    RS256,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa,
}

/// Where the keys are that JWTs are verified with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwtKeys {
    /// `auth.jwt.key_file`: one secret, or one public key in PEM form.
    File(PathBuf),
    /// `auth.jwt.jwks_file`: a set of keys (RFC 7517).
    SetFile(PathBuf),
    /// `auth.jwt.jwks_url`: the same, asked for over HTTP.
    SetAddress(Uri),
}

impl JwtKeys {
    /// The setting of the issuer's keys.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        match self {
            JwtKeys::File(_) => "auth.jwt.key_file",
            JwtKeys::SetFile(_) => "auth.jwt.jwks_file",
            JwtKeys::SetAddress(_) => "auth.jwt.jwks_url",
        }
    }
}

/// Setting and value, as an error shows them.
impl fmt::Display for JwtKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JwtKeys::File(path) | JwtKeys::SetFile(path) => {
                write!(f, "{}: {}", self.setting(), path.display())
            }
            JwtKeys::SetAddress(address) => write!(f, "{}: {address}", self.setting()),
        }
    }
}

/// The issuer whose JWTs are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtSettings {
    /// `auth.jwt.issuer`: the claim `iss` of each.
    pub issuer: String,
    /// `auth.jwt.audience`: the claim `aud` of each is it, or has it.
    pub audience: String,
    /// `auth.jwt.algorithms`: no other is accepted. Shared secrets and public keys never together.
    pub algorithms: Vec<JwtAlgorithm>,
    /// Where the keys are.
    pub keys: JwtKeys,
    /// `auth.jwt.name_claim`: the claim that names the caller.
    pub name_claim: String,
    /// `auth.jwt.people`: whether the callers are people, who are limited as such.
    pub people: bool,
    /// `auth.jwt.roles_claim`: the claim that lists roles.
    pub roles_claim: String,
    /// `auth.jwt.roles`: the roles by the words of that claim; absent: the words are our own.
    pub roles: Option<BTreeMap<String, Vec<Role>>>,
    /// `auth.jwt.projects_claim`: the claim that lists the projects of the caller's restriction.
    pub projects_claim: Option<String>,
    /// `auth.jwt.series_claim`: the same of series.
    pub series_claim: Option<String>,
    /// `auth.jwt.count_max`: most numbers of one call.
    pub count_max: u64,
}

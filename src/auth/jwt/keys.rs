//! The keys that JWTs are verified with, each for exactly one algorithm: read from a file or an
//! answer, and found by the key name in the JWT. That name is compared as a text, and used for
//! nothing else.

use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use pem::Pem;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::public_key;
use crate::auth::jwt::JwtAlgorithm;

/// Keys of one set; an issuer has a few.
const KEYS_MAX: usize = 100;
/// HMAC with SHA-256 needs a secret as long as its hash (RFC 7518, 3.2).
const SECRET_BYTES_MIN: usize = 32;
/// Fewer bits can be factored; `ring` refuses them, too.
const RSA_BYTES_MIN: usize = 2_048 / 8;

/// Keys that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum KeysError {
    /// A short secret.
    #[error(
        "is shorter than {SECRET_BYTES_MIN} bytes; make a secret with `openssl rand -hex 32`, and \
         give it to the issuer, too"
    )]
    ShortSecret,
    /// A public key where `auth.jwt.algorithms` lists HS256.
    #[error(
        "is a key in PEM form, and auth.jwt.algorithms lists HS256, which takes a secret; list the \
         key's own algorithm"
    )]
    PublicForSecret,
    /// A file that is to be a public key.
    #[error(
        "is no public key in PEM form (BEGIN PUBLIC KEY) of RSA, P-256 or Ed25519; a certificate's \
         key is shown by `openssl x509 -pubkey -noout`"
    )]
    NoPublicKey,
    /// A short RSA key.
    #[error("is an RSA key of fewer than 2048 bits; the issuer must make a longer one")]
    ShortRsa,
    /// A key of another algorithm.
    #[error("is a key for {0:?}, which auth.jwt.algorithms does not list; add it there")]
    NotListed(Algorithm),
    /// No set of keys.
    #[error("is no set of keys (RFC 7517): a JSON object with a list `keys`")]
    NoSet,
    /// Too many.
    #[error("has more than {KEYS_MAX} keys")]
    TooMany,
}

/// One key.
#[derive(Debug)]
pub(super) struct Key {
    /// The name of the key in JWTs.
    kid: Option<String>,
    /// The only algorithm that it is for.
    pub(super) algorithm: Algorithm,
    pub(super) key: DecodingKey,
}

/// The keys of an issuer.
#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: Vec<Key>,
    /// The one key is for every JWT, whatever that calls it.
    is_single: bool,
}

/// Why no key fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKey {
    /// None has that name; a newer set may have it.
    Unknown,
    /// The key of that name is for another algorithm.
    OtherAlgorithm,
}

#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<Value>,
}

impl Keys {
    /// Of a file with one secret, or one public key.
    pub(super) fn of_file(bytes: &[u8], pinned: &[JwtAlgorithm]) -> Result<Self, KeysError> {
        let is_pem = bytes.trim_ascii_start().starts_with(b"-----BEGIN");
        let (algorithm, key) = if pinned.contains(&JwtAlgorithm::HS256) {
            let secret = bytes.trim_ascii_end();
            match () {
                () if is_pem => return Err(KeysError::PublicForSecret),
                () if secret.len() < SECRET_BYTES_MIN => return Err(KeysError::ShortSecret),
                () => (Algorithm::HS256, DecodingKey::from_secret(secret)),
            }
        } else {
            let pem = pem::parse(bytes).ok().filter(|pem: &Pem| pem.tag() == "PUBLIC KEY");
            let pem = pem.ok_or(KeysError::NoPublicKey)?;
            public_key::read(pem.contents()).ok_or(KeysError::NoPublicKey)?
        };
        if is_short(&key) {
            return Err(KeysError::ShortRsa);
        }
        if !is_pinned(algorithm, pinned) {
            return Err(KeysError::NotListed(algorithm));
        }
        Ok(Keys { keys: vec![Key { kid: None, algorithm, key }], is_single: true })
    }

    /// Of a set. Keys that no pinned algorithm can use are none: sets have others, too.
    pub(super) fn of_set(bytes: &[u8], pinned: &[JwtAlgorithm]) -> Result<Self, KeysError> {
        let set: WrittenSet = serde_json::from_slice(bytes).map_err(|_| KeysError::NoSet)?;
        if set.keys.len() > KEYS_MAX {
            return Err(KeysError::TooMany);
        }
        let keys = set.keys.into_iter().filter_map(|written| usable(written, pinned));
        Ok(Keys { keys: keys.collect(), is_single: false })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.keys.len()
    }

    /// The key that a JWT names. One that names none means the only key that there is.
    pub(super) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&Key, NoKey> {
        let mut named: Vec<&Key> = match kid {
            _ if self.is_single => self.keys.iter().collect(),
            Some(kid) => self.keys.iter().filter(|key| key.kid.as_deref() == Some(kid)).collect(),
            None if self.keys.len() == 1 => self.keys.iter().collect(),
            None => Vec::new(),
        };
        if named.is_empty() {
            return Err(NoKey::Unknown);
        }
        named.retain(|key| key.algorithm == algorithm);
        named.first().copied().ok_or(NoKey::OtherAlgorithm)
    }
}

fn is_pinned(algorithm: Algorithm, pinned: &[JwtAlgorithm]) -> bool {
    pinned.iter().any(|one| library_name(*one) == algorithm)
}

/// The library's word for it.
const fn library_name(algorithm: JwtAlgorithm) -> Algorithm {
    match algorithm {
        JwtAlgorithm::HS256 => Algorithm::HS256,
        JwtAlgorithm::RS256 => Algorithm::RS256,
        JwtAlgorithm::ES256 => Algorithm::ES256,
        JwtAlgorithm::EdDsa => Algorithm::EdDSA,
    }
}

fn is_short(key: &DecodingKey) -> bool {
    matches!(key.kind(), DecodingKeyKind::RsaModulusExponent { n, .. } if n.len() < RSA_BYTES_MIN)
}

/// A key of a set, where a pinned algorithm can use it.
fn usable(written: Value, pinned: &[JwtAlgorithm]) -> Option<Key> {
    // A key that the library does not know is for others.
    let jwk: Jwk = serde_json::from_value(written).ok()?;
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(it) if it.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(it) if it.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
        _ => return None,
    };
    let common = &jwk.common;
    let is_its_own =
        common.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let is_to_verify =
        common.public_key_use.as_ref().is_none_or(|it| *it == PublicKeyUse::Signature)
            && common.key_operations.as_ref().is_none_or(|it| it.contains(&KeyOperations::Verify));
    if !is_its_own || !is_to_verify || !is_pinned(algorithm, pinned) {
        return None;
    }
    let key = DecodingKey::from_jwk(&jwk).ok()?;
    let key = match key.kind() {
        // Some issuers write the modulus with a zero before it, which `ring` refuses.
        DecodingKeyKind::RsaModulusExponent { n, e } => public_key::rsa(n, e),
        DecodingKeyKind::SecretOrDer(secret)
            if algorithm == Algorithm::HS256 && secret.len() < SECRET_BYTES_MIN =>
        {
            return None;
        }
        DecodingKeyKind::SecretOrDer(_) => key,
    };
    (!is_short(&key)).then_some(Key { kid: jwk.common.key_id, algorithm, key })
}

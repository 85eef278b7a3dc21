//! Issuers for tests: what signs JWTs, and the keys that verify them. Their keys were made by
//! `openssl genpkey`, for these tests alone.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use crate::auth::jwt::JwtAlgorithm;

/// One that signs.
#[derive(Clone, Copy)]
pub(super) struct Issuer {
    pub(super) algorithm: JwtAlgorithm,
    /// The key of HS256, else a private key in PEM form.
    pub(super) private: &'static str,
    /// What the settings have of it.
    pub(super) public: &'static str,
}

const SECRET: &str = "a secret of more than thirty-two bytes";

/// One of each algorithm.
pub(super) const ISSUERS: [Issuer; 4] = [
    Issuer { algorithm: JwtAlgorithm::HS256, private: SECRET, public: SECRET },
    Issuer {
        algorithm: JwtAlgorithm::RS256,
        private: include_str!("keys/rsa.pem"),
        public: include_str!("keys/rsa.pub.pem"),
    },
    Issuer {
        algorithm: JwtAlgorithm::ES256,
        private: include_str!("keys/p256.pem"),
        public: include_str!("keys/p256.pub.pem"),
    },
    Issuer {
        algorithm: JwtAlgorithm::EdDsa,
        private: include_str!("keys/ed25519.pem"),
        public: include_str!("keys/ed25519.pub.pem"),
    },
];

/// The one of Ed25519.
pub(super) const fn ed25519() -> Issuer {
    ISSUERS[3]
}

pub(super) fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A JWT with exactly this header.
pub(super) fn jwt(header: &Value, claims: &Value, issuer: &Issuer) -> String {
    let message = message(header, claims);
    let signature = issuer.sign(message.as_bytes());
    format!("{message}.{}", encoded(&signature))
}

/// A message with the signature of Ed25519 behind it.
pub(super) fn signed(message: &str) -> String {
    format!("{message}.{}", encoded(&ed25519().sign(message.as_bytes())))
}

/// The part that is signed.
pub(super) fn message(header: &Value, claims: &Value) -> String {
    let [header, claims] = [header, claims].map(|part| encoded(part.to_string().as_bytes()));
    format!("{header}.{claims}")
}

/// An HMAC with any bytes for a secret.
pub(super) fn hmac_of(secret: &[u8], message: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::sign(&key, message).as_ref().to_vec()
}

impl Issuer {
    pub(super) fn header(&self) -> Value {
        let algorithm = serde_json::to_value(self.algorithm).expect("JSON");
        json!({ "typ": "JWT", "alg": algorithm })
    }

    /// Its private key, out of its PEM form.
    fn der(&self) -> Vec<u8> {
        pem::parse(self.private).expect("PEM").into_contents()
    }

    fn rsa(&self) -> RsaKeyPair {
        RsaKeyPair::from_pkcs8(&self.der()).expect("an RSA key")
    }

    fn p256(&self) -> EcdsaKeyPair {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        EcdsaKeyPair::from_pkcs8(kind, &self.der(), &random).expect("a key on P-256")
    }

    fn ed25519(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_pkcs8_maybe_unchecked(&self.der()).expect("an Ed25519 key")
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self.algorithm {
            JwtAlgorithm::HS256 => hmac_of(self.private.as_bytes(), message),
            JwtAlgorithm::RS256 => {
                let key = self.rsa();
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).expect("signed");
                signature
            }
            JwtAlgorithm::ES256 => {
                self.p256().sign(&random, message).expect("signed").as_ref().to_vec()
            }
            JwtAlgorithm::EdDsa => self.ed25519().sign(message).as_ref().to_vec(),
        }
    }

    /// The entry of its key in a set, without a name.
    pub(super) fn jwk(&self) -> Value {
        match self.algorithm {
            JwtAlgorithm::HS256 => json!({ "kty": "oct", "k": encoded(self.private.as_bytes()) }),
            JwtAlgorithm::RS256 => {
                let parts: RsaPublicKeyComponents<Vec<u8>> = self.rsa().public().into();
                // As some issuers write it.
                let n = [&[0][..], &parts.n].concat();
                json!({ "kty": "RSA", "n": encoded(&n), "e": encoded(&parts.e) })
            }
            JwtAlgorithm::ES256 => {
                let key = self.p256();
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y) })
            }
            JwtAlgorithm::EdDsa => {
                let x = encoded(self.ed25519().public_key().as_ref());
                json!({ "kty": "OKP", "crv": "Ed25519", "x": x })
            }
        }
    }
}

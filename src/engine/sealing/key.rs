//! The key that checkpoints are signed with: Ed25519 (RFC 8032), in PEM form (PKCS#8, RFC 8410).
//! Never shows the private half.

use std::fmt;

use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use thiserror::Error;

use crate::ledger::MacKey;
use numbering::hexadecimal;

/// What is signed to make the secret of proofs: no checkpoint begins so, and the signature is kept
/// nowhere.
const MAC_SECRET: &[u8] = b"numerator proof secret 1";

/// A text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// No private key.
    #[error(
        "is no Ed25519 private key in PEM form (PKCS#8); make one with `numerator audit keygen`"
    )]
    Private,
    /// No public key.
    #[error("is no public key: 64 hexadecimal digits, as `audit keygen` shows them")]
    Public,
}

/// A key to sign with.
pub struct AuditKey {
    pair: Ed25519KeyPair,
    proof: MacKey,
}

impl AuditKey {
    /// Reads one.
    ///
    /// # Errors
    /// A text that is none.
    pub fn read(pem: &str) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| KeyError::Private)?;
        // Other programs write the private half alone.
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
        let pair = pair.map_err(|_| KeyError::Private)?;
        let proof = MacKey::of(pair.sign(MAC_SECRET).as_ref());
        Ok(AuditKey { pair, proof })
    }

    /// Makes one, in PEM form.
    ///
    /// # Errors
    /// Where the system gives no random bytes.
    pub fn make() -> anyhow::Result<String> {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let made = made.map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
        Ok(pem::encode(&pem::Pem::new("PRIVATE KEY", made.as_ref())).replace("\r\n", "\n"))
    }

    /// Its public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let bytes = self.pair.public_key().as_ref();
        PublicKey(bytes.try_into().expect("an Ed25519 public key has 32 bytes"))
    }

    /// The key of the batches' signatures.
    #[must_use]
    pub fn proof(&self) -> MacKey {
        self.proof
    }

    /// Signs.
    #[must_use]
    pub fn sign(&self, text: &str) -> Vec<u8> {
        self.pair.sign(text.as_bytes()).as_ref().to_vec()
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditKey({})", self.public())
    }
}

impl PartialEq for AuditKey {
    fn eq(&self, other: &Self) -> bool {
        self.public() == other.public()
    }
}

impl Eq for AuditKey {}

/// The public half of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// From 64 hexadecimal digits.
    ///
    /// # Errors
    /// A text that is none.
    pub fn read(text: &str) -> Result<Self, KeyError> {
        let bytes = read_hexadecimal(text).ok_or(KeyError::Public)?;
        Self::of(&bytes).ok_or(KeyError::Public)
    }

    /// From its bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(PublicKey)
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether a text was signed with its other half.
    pub(crate) fn has_signed(&self, text: &str, signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(text.as_bytes(), signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

/// Bytes from hexadecimal digits.
pub(crate) fn read_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}

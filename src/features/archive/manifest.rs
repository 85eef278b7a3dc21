//! The description of an archive file, next to it and in the ledger: signed if there is a key.

use numbering::hexadecimal;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engine::sealing::{AuditKey, PublicKey, read_hexadecimal};

/// The form of this version.
const FORM: &str = "numerator archive 1";

/// Why a manifest says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// Its text is not of this version.
    #[error("its text cannot be read: {0}")]
    Unreadable(String),
    /// It is of another file.
    #[error("it is the manifest of {0}")]
    OfAnother(String),
    /// It has no signature, although there are trusted keys.
    #[error("it is not signed")]
    Unsigned,
    /// Its signature is not of its text and key.
    #[error("its signature is not of its text and key")]
    BadSignature,
    /// Its key is not trusted.
    #[error("it is signed by a key that is not trusted: {0}")]
    ForeignKey(PublicKey),
}

/// The description of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    form: String,
    /// Its name.
    pub file: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
    /// How many rows it holds.
    pub rows: u64,
    /// They were issued before this time.
    pub before: String,
    /// When the last of them was issued.
    pub last_issued: String,
    /// The user who wrote it.
    pub written_by: String,
    /// When.
    pub written_at: String,
}

/// The form in which it is stored next to the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    /// The signed text, byte for byte.
    manifest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

impl Manifest {
    /// Of a new file; the digest and the times as texts.
    pub(super) fn new(
        (file, sha256, rows): (&str, &[u8], u64),
        (before, last_issued): (String, String),
        (written_by, written_at): (&str, String),
    ) -> Self {
        Manifest {
            form: FORM.into(),
            file: file.into(),
            sha256: hexadecimal(sha256),
            rows,
            before,
            last_issued,
            written_by: written_by.into(),
            written_at,
        }
    }

    /// Its text, signed if there is a key.
    pub(super) fn signed(&self, key: Option<&AuditKey>) -> anyhow::Result<String> {
        let manifest = serde_json::to_string(self)?;
        let signed = Signed {
            public_key: key.map(|key| key.public().to_string()),
            signature: key.map(|key| hexadecimal(&key.sign(&manifest))),
            manifest,
        };
        Ok(serde_json::to_string_pretty(&signed)? + "\n")
    }

    /// Reads one of a file. Without trusted keys, no signature is required.
    ///
    /// # Errors
    /// Its flaw.
    pub fn read(text: &str, file: &str, trusted: &[PublicKey]) -> Result<Self, ManifestError> {
        let unreadable = |error: serde_json::Error| ManifestError::Unreadable(error.to_string());
        let signed: Signed = serde_json::from_str(text).map_err(unreadable)?;
        let manifest: Manifest = serde_json::from_str(&signed.manifest).map_err(unreadable)?;
        if manifest.form != FORM {
            return Err(ManifestError::Unreadable(format!("its form is `{}`", manifest.form)));
        }
        if manifest.file != file {
            return Err(ManifestError::OfAnother(manifest.file));
        }
        if trusted.is_empty() {
            return Ok(manifest);
        }
        let (Some(key), Some(signature)) = (signed.public_key, signed.signature) else {
            return Err(ManifestError::Unsigned);
        };
        let key = PublicKey::read(&key).map_err(|_| ManifestError::BadSignature)?;
        let signature = read_hexadecimal(&signature).ok_or(ManifestError::BadSignature)?;
        if !key.has_signed(&signed.manifest, &signature) {
            return Err(ManifestError::BadSignature);
        }
        if !trusted.contains(&key) {
            return Err(ManifestError::ForeignKey(key));
        }
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_key() -> AuditKey {
        AuditKey::read(&AuditKey::make().unwrap()).unwrap()
    }

    #[test]
    fn a_manifest_is_of_its_file_and_of_a_trusted_key() {
        let key = new_key();
        let times = ("2026-01-01T00:00:00Z".to_owned(), "2025-12-31T00:00:00Z".to_owned());
        let manifest =
            Manifest::new(("a", &[1; 32], 3), times, ("u", "2026-02-01T00:00:00Z".into()));
        let text = manifest.signed(Some(&key)).unwrap();
        let trusted = [key.public()];
        assert_eq!(Manifest::read(&text, "a", &trusted), Ok(manifest.clone()));
        let wrong = |text: &str, file: &str, keys: &[PublicKey]| {
            Manifest::read(text, file, keys).unwrap_err().to_string()
        };
        assert!(wrong(&text, "b", &trusted).contains("manifest of a"));
        assert!(wrong(&text, "a", &[new_key().public()]).contains("not trusted"));
        let changed = text.replace("\\\"rows\\\":3", "\\\"rows\\\":4");
        assert!(wrong(&changed, "a", &trusted).contains("not of its text"));
        let unsigned = manifest.signed(None).unwrap();
        assert!(wrong(&unsigned, "a", &trusted).contains("not signed"));
        assert_eq!(Manifest::read(&unsigned, "a", &[]), Ok(manifest));
        assert!(wrong("{}", "a", &[]).contains("cannot be read"));
    }
}

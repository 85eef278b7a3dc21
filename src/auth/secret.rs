//! Secrets of tokens: made here, shown once, and known by their hash ever after.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::node::random_bytes;

/// The prefix of every token: programs that look for secrets in texts find it by that.
pub const SECRET_PREFIX: &str = "nbr_";

/// A new token's secret: 256 random bits. Beyond guessing, so a plain hash is as good as a slow
/// one.
pub struct Secret(String);

impl Secret {
    /// Draws one.
    #[must_use]
    pub fn draw() -> Self {
        Secret(format!("{SECRET_PREFIX}{}", numbering::hexadecimal(&random_bytes::<32>())))
    }

    /// The text that its owner sends: to be shown once.
    #[must_use]
    pub fn show(&self) -> &str {
        &self.0
    }

    /// Its hash.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        hash_of(&self.0)
    }
}

/// Not what it is: no log shows it.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The hash of a token that a caller sent; tokens are found by it.
#[must_use]
pub fn hash_of(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_long_and_new_each_time_and_shown_by_no_log() {
        let (one, other) = (Secret::draw(), Secret::draw());
        assert_ne!(one.show(), other.show());
        assert_eq!(one.show().len(), SECRET_PREFIX.len() + 64);
        assert_eq!(one.sha256(), hash_of(one.show()));
        assert!(!format!("{one:?}").contains(&one.show()[SECRET_PREFIX.len()..]));
    }
}

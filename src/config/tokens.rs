//! Who may call: the list of tokens, and what each may ask for.

use super::bounds::{Checked, within, wrong};
use super::{Token, layer};
use crate::allocator::COUNT_MAX;

/// Each call is compared with every token.
const TOKENS_MAX: usize = 1_000;
/// The journal keeps the name with every number.
const TOKEN_NAME_CHARS_MAX: usize = 64;

/// The tokens, each name once. Names what is wrong by the token's name, never by its hash.
pub(super) fn tokens(written: &[layer::WrittenToken]) -> Checked<Vec<Token>> {
    if written.len() > TOKENS_MAX {
        return wrong("auth.tokens", format!("lists more than {TOKENS_MAX} tokens"));
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(written.len());
    for layer::WrittenToken { name, sha256, count_max } in written {
        if !is_token_name(name) {
            return wrong(
                "auth.tokens",
                format!(
                    "{name:?} is not a name; write 1 to {TOKEN_NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -"
                ),
            );
        }
        if tokens.iter().any(|token| token.name == *name) {
            return wrong("auth.tokens", format!("{name:?} appears twice; rename one"));
        }
        let Some(sha256) = read_sha256(sha256) else {
            return wrong(
                "auth.tokens",
                format!(
                    "sha256 of {name:?} is not 64 hexadecimal digits; copy what \
                     `numerator token create` printed"
                ),
            );
        };
        let count_max = within("auth.tokens", count_max.unwrap_or(COUNT_MAX), 1..=COUNT_MAX)
            .map_err(|refused| refused.of(&format!("count_max of {name:?}")))?;
        tokens.push(Token { name: name.clone(), sha256, count_max });
    }
    Ok(tokens)
}

/// Whether a text can name a token: it becomes the `user_id` of the journal.
pub(crate) fn is_token_name(name: &str) -> bool {
    (1..=TOKEN_NAME_CHARS_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// 64 hexadecimal digits as bytes.
fn read_sha256(hex: &str) -> Option<[u8; 32]> {
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        let digit = |index: usize| char::from(digits[index]).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(bytes)
}

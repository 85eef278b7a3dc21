//! Callers: the list of tokens, and the rights and limits of each.

use serde::{Deserialize, Serialize};

use super::bounds::{Checked, wrong};
use super::{Token, layer};
use crate::auth::COUNT_MAX;
use crate::auth::{WrittenGrant, written_roles};
use crate::ledger::TokenRights;

/// A settings file is read by people: tokens by the thousand belong into the ledger.
const TOKENS_MAX: usize = 1_000;

/// `auth.mode`: whether callers have to name themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AuthMode {
    /// As `off` on loopback without `auth.tokens` and `auth.jwt`, else as `on`.
    Auto,
    /// By a token of the settings or of the ledger, or a JWT.
    On,
    /// Not at all.
    Off,
}

/// One of `auth.tokens`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenToken {
    pub(super) name: String,
    pub(super) sha256: String,
    /// Its roles.
    #[serde(default)]
    pub(super) roles: Option<Vec<String>>,
    /// Codes of the series to which it is restricted.
    #[serde(default)]
    pub(super) series: Vec<String>,
    /// Codes of the projects to which it is restricted.
    #[serde(default)]
    pub(super) projects: Vec<String>,
    /// The last day on which it is accepted, in UTC.
    #[serde(default)]
    pub(super) expires: Option<String>,
    /// Most numbers that one call may ask for.
    #[serde(default)]
    pub(super) count_max: Option<u64>,
    /// Most requests of a minute.
    #[serde(default)]
    pub(super) requests_per_minute: Option<u64>,
    /// Whether it may ask on behalf of people.
    #[serde(default)]
    pub(super) speaks_for_people: bool,
}

/// The tokens, each name once. An error names the token by its name, never by its hash.
pub(super) fn tokens(written: &[WrittenToken]) -> Checked<Vec<Token>> {
    if written.len() > TOKENS_MAX {
        return wrong("auth.tokens", format!("lists more than {TOKENS_MAX} tokens"));
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(written.len());
    for one in written {
        let token = token(one)?;
        if tokens.iter().any(|other| other.granted.identity.name == token.granted.identity.name) {
            return wrong("auth.tokens", format!("{:?} appears twice; rename one", one.name));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

/// Whether callers must authenticate; `has_some`: whether the settings name any caller.
pub(super) fn asks_for_tokens(layer: &layer::Layer, has_some: bool) -> Checked<bool> {
    let (listen, mode) = (layer.http.listen, layer.auth.mode);
    let is_local = listen.ip().is_loopback();
    match mode {
        AuthMode::On => Ok(true),
        AuthMode::Off if is_local => Ok(false),
        AuthMode::Off => wrong(
            "auth.mode",
            format!(
                "is off, and http.listen, {listen}, is reachable from other machines: no one would \
                 have to authenticate; listen on 127.0.0.1, or write auth.mode = \"on\""
            ),
        ),
        AuthMode::Auto if is_local || has_some => Ok(has_some),
        AuthMode::Auto => wrong(
            "http.listen",
            format!(
                "{listen} is reachable from other machines, and no one would have to \
                 authenticate; write auth.mode = \"on\" and make tokens with `numerator token \
                 create`, or listen on 127.0.0.1"
            ),
        ),
    }
}

fn token(written: &WrittenToken) -> Checked<Token> {
    let WrittenToken { name, sha256, .. } = written;
    let rights = TokenRights {
        roles: written_roles(written.roles.as_deref()),
        series: written.series.clone(),
        projects: written.projects.clone(),
        count_max: written.count_max,
        requests_per_minute: written.requests_per_minute,
        speaks_for_people: written.speaks_for_people,
        expires_at_us: None,
    };
    let granted = WrittenGrant { name, rights: &rights, expires: written.expires.as_deref() };
    let granted = match granted.read(COUNT_MAX) {
        Ok(granted) => granted,
        Err(mistake) if mistake.field == "name" => return wrong("auth.tokens", mistake.reason),
        Err(mistake) => return wrong("auth.tokens", format!("of {name:?}: {mistake}")),
    };
    let Some(sha256) = read_sha256(sha256) else {
        return wrong(
            "auth.tokens",
            format!(
                "sha256 of {name:?} is not 64 hexadecimal digits; copy what \
                 `numerator token create --for-settings` printed"
            ),
        );
    };
    Ok(Token { sha256, granted })
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

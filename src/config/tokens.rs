//! Who may call: the list of tokens, and what each may do and ask for.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::bounds::{Checked, within, wrong};
use super::{Token, layer};
use crate::access::{IDENTITY_NAME_CHARS_MAX, Identity, Reach, Role, Roles, is_identity_name};
use crate::allocator::COUNT_MAX;

/// A settings file is read by people: tokens by the thousand belong into the ledger.
const TOKENS_MAX: usize = 1_000;
/// Series, and projects, to which one token is narrowed.
const REACH_MAX: usize = 1_000;
/// Longest code of a series or project.
const CODE_CHARS_MAX: usize = 255;

/// The tokens, each name once. Names what is wrong by the token's name, never by its hash.
pub(super) fn tokens(written: &[layer::WrittenToken]) -> Checked<Vec<Token>> {
    if written.len() > TOKENS_MAX {
        return wrong("auth.tokens", format!("lists more than {TOKENS_MAX} tokens"));
    }
    let mut tokens: Vec<Token> = Vec::with_capacity(written.len());
    for one in written {
        let token = token(one)?;
        if tokens.iter().any(|other| other.identity.name == token.identity.name) {
            return wrong("auth.tokens", format!("{:?} appears twice; rename one", one.name));
        }
        tokens.push(token);
    }
    Ok(tokens)
}

fn token(written: &layer::WrittenToken) -> Checked<Token> {
    let layer::WrittenToken { name, sha256, roles, series, projects, expires, count_max } = written;
    if !is_identity_name(name) {
        return wrong(
            "auth.tokens",
            format!(
                "{name:?} is not a name; write 1 to {IDENTITY_NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -"
            ),
        );
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
    let roles = match roles {
        None => [Role::Caller].into_iter().collect(),
        Some(roles) => read_roles(name, roles)?,
    };
    for (what, list) in [("series", series), ("projects", projects)] {
        let is_code = |code: &String| (1..=CODE_CHARS_MAX).contains(&code.chars().count());
        if list.len() > REACH_MAX || !list.iter().all(is_code) {
            return wrong(
                "auth.tokens",
                format!(
                    "{what} of {name:?} must be at most {REACH_MAX} codes of 1 to \
                     {CODE_CHARS_MAX} characters"
                ),
            );
        }
    }
    if roles.has(Role::ProjectAdmin) && projects.is_empty() {
        return wrong(
            "auth.tokens",
            format!(
                "{name:?} is a project-admin of no project; list its projects = [\"…\"], or make \
                 it a super-admin"
            ),
        );
    }
    let reach = Reach::of(series.clone(), projects.clone());
    let identity = Arc::new(Identity { name: name.as_str().into(), roles, reach, count_max });
    let expires_at_us = expires.as_deref().map(|day| end_of(name, day)).transpose()?;
    Ok(Token { sha256, identity, expires_at_us })
}

fn read_roles(name: &str, words: &[String]) -> Checked<Roles> {
    let known = || Role::ALL.map(Role::name).join(", ");
    if words.is_empty() {
        return wrong(
            "auth.tokens",
            format!("{name:?} has no role and may do nothing; list some of {}", known()),
        );
    }
    let read = |word: &String| match Role::named(word) {
        Some(role) => Ok(role),
        None => wrong(
            "auth.tokens",
            format!("{word:?} of {name:?} is no role; write some of {}", known()),
        ),
    };
    words.iter().map(read).collect()
}

/// The end of a day in UTC.
fn end_of(name: &str, day: &str) -> Checked<i64> {
    let next = day.parse::<Date>().ok().filter(|date| date.to_string() == day);
    let next = next.and_then(|date| date.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok());
    match next {
        Some(end) => Ok(end.timestamp().as_microsecond()),
        None => wrong(
            "auth.tokens",
            format!("expires of {name:?} is {day:?}; write the last day, such as 2027-12-31"),
        ),
    }
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

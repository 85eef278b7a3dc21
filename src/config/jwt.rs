//! `auth.jwt.*`: the one issuer whose JWTs are accepted, how they are signed, and what its claims
//! mean here. The keys are read where they are needed.

use std::collections::BTreeMap;

use hyper::Uri;

use super::bounds::{Checked, wrong};
use super::layer;
use crate::auth::COUNT_MAX;
use crate::auth::Role;
use crate::auth::jwt::{JwtAlgorithm, JwtKeys, JwtSettings};
use crate::engine::sources::is_trustworthy;

/// Issuers, audiences and names of claims are short.
const TEXT_CHARS_MAX: usize = 255;
/// Each role of each JWT is looked for among these.
const ROLES_MAX: usize = 1_000;

/// The issuer, where one is named.
pub(super) fn jwt(written: &layer::Jwt) -> Checked<Option<JwtSettings>> {
    let missing = |setting, what: &str| wrong(setting, format!("is missing; write {what}"));
    let Some(issuer) = &written.issuer else {
        let is_begun = written.audience.is_some()
            || !written.algorithms.is_empty()
            || written.key_file.is_some()
            || written.jwks_file.is_some()
            || written.jwks_url.is_some();
        return match is_begun {
            true => missing("auth.jwt.issuer", "the claim iss of the JWTs that are to be let in"),
            false => Ok(None),
        };
    };
    let Some(audience) = &written.audience else {
        return missing(
            "auth.jwt.audience",
            "what the claim aud of JWTs for this service says: one made for another service, or \
             another deployment, must not be let in",
        );
    };
    let claims = [("auth.jwt.name_claim", &written.name_claim)];
    let claims = claims.into_iter().chain([("auth.jwt.roles_claim", &written.roles_claim)]);
    let narrowing = [
        ("auth.jwt.projects_claim", &written.projects_claim),
        ("auth.jwt.series_claim", &written.series_claim),
    ];
    let narrowing = narrowing.iter().filter_map(|(name, text)| Some((*name, text.as_ref()?)));
    let named = [("auth.jwt.issuer", issuer), ("auth.jwt.audience", audience)];
    for (setting, text) in named.into_iter().chain(claims).chain(narrowing) {
        if !(1..=TEXT_CHARS_MAX).contains(&text.chars().count()) {
            return wrong(setting, format!("must have 1 to {TEXT_CHARS_MAX} characters"));
        }
    }
    let keys = keys(written)?;
    Ok(Some(JwtSettings {
        issuer: issuer.clone(),
        audience: audience.clone(),
        algorithms: algorithms(&written.algorithms, &keys)?,
        keys,
        name_claim: written.name_claim.clone(),
        people: written.people,
        roles_claim: written.roles_claim.clone(),
        roles: roles(written.roles.as_ref())?,
        projects_claim: written.projects_claim.clone(),
        series_claim: written.series_claim.clone(),
        // A person asks for one document; a service has its own account.
        count_max: written.count_max.unwrap_or(if written.people { 1 } else { COUNT_MAX }),
    }))
}

/// The location of the keys: exactly one.
fn keys(written: &layer::Jwt) -> Checked<JwtKeys> {
    match (&written.key_file, &written.jwks_file, &written.jwks_url) {
        (Some(path), None, None) => Ok(JwtKeys::File(path.clone())),
        (None, Some(path), None) => Ok(JwtKeys::SetFile(path.clone())),
        (None, None, Some(url)) => Ok(JwtKeys::SetAddress(address(url)?)),
        _ => wrong(
            "auth.jwt.issuer",
            "needs the keys that its JWTs are signed with, at exactly one place; set one of \
             auth.jwt.key_file, auth.jwt.jwks_file and auth.jwt.jwks_url"
                .into(),
        ),
    }
}

/// An address whose answer cannot be forged on the way.
fn address(url: &str) -> Checked<Uri> {
    match url.parse().ok().filter(is_trustworthy) {
        Some(uri) => Ok(uri),
        None => wrong(
            "auth.jwt.jwks_url",
            "is no address that keys can be trusted from; write https://HOST/PATH without user \
             and password, or http:// of a loopback address"
                .into(),
        ),
    }
}

/// The algorithms. A public key must never be taken for a secret, so both are never pinned at once.
fn algorithms(written: &[JwtAlgorithm], keys: &JwtKeys) -> Checked<Vec<JwtAlgorithm>> {
    const NAME: &str = "auth.jwt.algorithms";
    let is_shared = written.contains(&JwtAlgorithm::HS256);
    if written.is_empty() {
        return wrong(NAME, "is missing; list some of HS256, RS256, ES256, EdDSA".into());
    }
    if is_shared && written.iter().any(|one| *one != JwtAlgorithm::HS256) {
        return wrong(
            NAME,
            "lists HS256 beside others: a public key could be taken for a secret; list HS256 \
             alone, or RS256, ES256 and EdDSA"
                .into(),
        );
    }
    if is_shared && matches!(keys, JwtKeys::SetAddress(_)) {
        return wrong(
            NAME,
            "lists HS256, whose secret belongs to no address; set auth.jwt.key_file instead of \
             auth.jwt.jwks_url"
                .into(),
        );
    }
    Ok(written.to_vec())
}

/// Our roles, by the words of the issuer.
fn roles(
    written: Option<&BTreeMap<String, Vec<String>>>,
) -> Checked<Option<BTreeMap<String, Vec<Role>>>> {
    const NAME: &str = "auth.jwt.roles";
    let Some(written) = written else { return Ok(None) };
    if !(1..=ROLES_MAX).contains(&written.len()) {
        return wrong(NAME, format!("must have 1 to {ROLES_MAX} entries"));
    }
    let mut roles = BTreeMap::new();
    for (word, ours) in written {
        let named: Option<Vec<Role>> = ours.iter().map(|name| Role::named(name)).collect();
        let Some(named) = named.filter(|named| !named.is_empty()) else {
            let known = Role::ALL.map(Role::name).join(", ");
            return wrong(NAME, format!("of {word:?}: {ours:?}; write a list of {known}"));
        };
        roles.insert(word.clone(), named);
    }
    Ok(Some(roles))
}

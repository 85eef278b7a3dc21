//! JWTs that are accepted, and each attack that is not.

mod attacks;
mod meanings;
mod rotation;
mod signing;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::keyring::KeyRefresh;
use super::*;
use crate::auth::jwt::{JwtAlgorithm, JwtKeys};
use crate::clock::ManualClock;
use signing::{ISSUERS, ed25519, jwt};

/// The clock of all.
const NOW_S: i64 = 1_800_000_000;

/// Does not wait for keys that never come.
const QUICK: KeyRefresh =
    KeyRefresh { gap: Duration::ZERO, wait: Duration::from_millis(5), ..KeyRefresh::USUAL };

fn settings(algorithms: &[JwtAlgorithm], keys: JwtKeys) -> JwtSettings {
    JwtSettings {
        issuer: "https://login.example".into(),
        audience: "numerator-test".into(),
        algorithms: algorithms.to_vec(),
        keys,
        name_claim: "sub".into(),
        people: true,
        roles_claim: "roles".into(),
        roles: None,
        projects_claim: None,
        series_claim: None,
        count_max: 1,
    }
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(NOW_S * 1_000_000))
}

/// The claims that admit `ann`.
fn claims() -> Value {
    json!({
        "iss": "https://login.example", "aud": "numerator-test", "sub": "ann", "roles": ["caller"],
        "exp": NOW_S + 60,
    })
}

/// The same with another value of one claim; `null` takes it away.
fn claims_with(claim: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[claim] = value;
    if claims[claim].is_null() {
        claims.as_object_mut().expect("an object").remove(claim);
    }
    claims
}

/// Keys in a file, and the callers that they admit.
struct Scene {
    jwts: Jwts,
    _folder: TempDir,
}

impl Scene {
    /// One key, in its own file.
    fn of_key(algorithm: JwtAlgorithm, key: &[u8]) -> anyhow::Result<Self> {
        Self::of(&[algorithm], key, JwtKeys::File, |_| {})
    }

    /// A set of keys.
    fn of_set(algorithms: &[JwtAlgorithm], keys: &[Value]) -> anyhow::Result<Self> {
        let set = json!({ "keys": keys }).to_string();
        Self::of(algorithms, set.as_bytes(), JwtKeys::SetFile, |_| {})
    }

    fn of(
        algorithms: &[JwtAlgorithm],
        bytes: &[u8],
        place: impl FnOnce(std::path::PathBuf) -> JwtKeys,
        change: impl FnOnce(&mut JwtSettings),
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("keys");
        std::fs::write(&path, bytes)?;
        let mut settings = settings(algorithms, place(path));
        change(&mut settings);
        Ok(Scene { jwts: Jwts::open(settings, clock(), QUICK)?, _folder: folder })
    }

    async fn who(&self, jwt: &str) -> Result<String, JwtRefusal> {
        self.jwts.admit(jwt).await.map(|identity| identity.name.to_string())
    }
}

/// Why keys cannot be used.
fn refusal(scene: anyhow::Result<Scene>) -> String {
    format!("{:#}", scene.err().expect("refused"))
}

#[tokio::test]
async fn each_algorithm_lets_in_by_its_key_alone_and_by_its_set() {
    for issuer in ISSUERS {
        let algorithm = issuer.algorithm;
        let token = jwt(&issuer.header(), &claims(), &issuer);
        let by_key = Scene::of_key(algorithm, issuer.public.as_bytes()).expect("a key");
        assert_eq!(by_key.who(&token).await.as_deref(), Ok("jwt:ann"), "{algorithm:?}");
        // Of two keys, the one that is named.
        let [mut own, mut other] = [issuer.jwk(), issuer.jwk()];
        (own["kid"], other["kid"]) = (json!("one"), json!("two"));
        let by_set = Scene::of_set(&[algorithm], &[other, own]).expect("a set");
        let mut header = issuer.header();
        header["kid"] = json!("one");
        let token = jwt(&header, &claims(), &issuer);
        assert_eq!(by_set.who(&token).await.as_deref(), Ok("jwt:ann"), "{algorithm:?}");
        let unnamed = jwt(&issuer.header(), &claims(), &issuer);
        assert_eq!(by_set.who(&unnamed).await, Err(JwtRefusal::UnknownKey), "{algorithm:?}");
    }
}

#[test]
fn keys_that_could_not_be_trusted_are_refused_with_the_remedy() {
    use JwtAlgorithm::{ES256, HS256, RS256};
    let short = include_bytes!("keys/short.pub.pem");
    let [_, rsa, p256, _] = ISSUERS;
    for (algorithm, file, says) in [
        (HS256, &b"31 bytes are no secret of HS256"[..], "openssl rand"),
        (HS256, rsa.public.as_bytes(), "takes a secret"),
        (RS256, short, "2048"),
        (RS256, b"no PEM", "BEGIN PUBLIC KEY"),
        (RS256, rsa.private.as_bytes(), "BEGIN PUBLIC KEY"),
        (RS256, p256.public.as_bytes(), "ES256"),
        (ES256, rsa.public.as_bytes(), "RS256"),
    ] {
        let refused = refusal(Scene::of_key(algorithm, file));
        assert!(refused.contains("auth.jwt.key_file: ") && refused.contains(says), "{refused}");
    }
    let refused = refusal(Scene::of(&[RS256], b"{}", JwtKeys::SetFile, |_| {}));
    assert!(refused.contains("auth.jwt.jwks_file: ") && refused.contains("RFC 7517"), "{refused}");
    let refused = refusal(Scene::of_set(&[RS256], &[p256.jwk()]));
    assert!(refused.contains("auth.jwt.algorithms"), "{refused}");
    assert!(refusal(Scene::of_set(&[RS256], &vec![json!({}); 101])).contains("100"));
    let nowhere = JwtKeys::File("/nowhere/key".into());
    let refused = Jwts::open(settings(&[RS256], nowhere), clock(), QUICK).err().expect("refused");
    assert!(format!("{refused:#}").contains("/nowhere/key"), "{refused:#}");
}

#[test]
fn a_set_gives_the_keys_that_are_there_to_verify_with_a_pinned_algorithm() {
    use JwtAlgorithm::{EdDsa, HS256, RS256};
    let [secret, rsa, p256, ed25519] = ISSUERS;
    let with = |mut jwk: Value, field: &str, value: Value| {
        jwk[field] = value;
        jwk
    };
    let count = |pinned: &[JwtAlgorithm], keys: &[Value]| {
        let set = json!({ "keys": keys }).to_string();
        keys::Keys::of_set(set.as_bytes(), pinned).expect("a set").count()
    };
    assert_eq!(count(&[RS256, EdDsa], &[rsa.jwk(), p256.jwk(), ed25519.jwk(), secret.jwk()]), 2);
    // A secret, where a public key is expected.
    assert_eq!(count(&[RS256], &[secret.jwk()]), 0);
    assert_eq!(count(&[HS256], &[rsa.jwk(), with(secret.jwk(), "k", json!("c2hvcnQ"))]), 0);
    for (field, value, wanted) in [
        ("use", json!("sig"), 1),
        ("use", json!("enc"), 0),
        ("key_ops", json!(["verify"]), 1),
        ("key_ops", json!(["encrypt"]), 0),
        ("alg", json!("RS256"), 1),
        ("alg", json!("RS512"), 0),
        ("alg", json!("HS256"), 0),
        ("n", json!("AQAB"), 0),
        ("kty", json!("EC"), 0),
        ("kid", json!(7), 0),
    ] {
        assert_eq!(count(&[RS256], &[with(rsa.jwk(), field, value.clone())]), wanted, "{value}");
    }
}

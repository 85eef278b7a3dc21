//! Each attack on a JWT, and the refusal that its sender gets.

use super::signing::{encoded, hmac_of, message, signed};
use super::*;

fn ed25519_scene() -> Scene {
    let mut jwk = ed25519().jwk();
    jwk["kid"] = json!("one");
    Scene::of_set(&[JwtAlgorithm::EdDsa], &[jwk]).expect("a set")
}

fn header_with(field: &str, value: Value) -> Value {
    let mut header = ed25519().header();
    header["kid"] = json!("one");
    header[field] = value;
    header
}

#[tokio::test]
async fn what_is_not_of_this_issuer_for_this_audience_at_this_time_is_refused() {
    let scene = ed25519_scene();
    for (claim, value, why) in [
        ("exp", json!(NOW_S - 30), JwtRefusal::Expired),
        ("exp", json!(0), JwtRefusal::Expired),
        ("exp", Value::Null, JwtRefusal::NoExpiry),
        ("exp", json!("2100-01-01"), JwtRefusal::Times),
        ("exp", json!(1e300), JwtRefusal::Times),
        ("nbf", json!(NOW_S + 31), JwtRefusal::NotYet),
        ("nbf", json!("soon"), JwtRefusal::Times),
        ("iss", json!("https://login.example/"), JwtRefusal::Issuer),
        ("iss", json!(7), JwtRefusal::Issuer),
        ("iss", json!(["https://login.example"]), JwtRefusal::Issuer),
        ("iss", json!(["https://login.example", "https://evil.example"]), JwtRefusal::Issuer),
        ("iss", json!([]), JwtRefusal::Issuer),
        ("iss", Value::Null, JwtRefusal::Issuer),
        // One for another deployment of ours, by the same issuer.
        ("aud", json!("numerator-live"), JwtRefusal::Audience),
        ("aud", json!(["a", "b"]), JwtRefusal::Audience),
        ("aud", json!([]), JwtRefusal::Audience),
        ("aud", Value::Null, JwtRefusal::Audience),
    ] {
        let token = jwt(&ed25519().header(), &claims_with(claim, value.clone()), &ed25519());
        let refused = scene.who(&token).await;
        assert_eq!(refused, Err(why), "{claim}: {value}");
    }
    // By as much as the clocks may differ.
    for (claim, value) in [
        ("exp", json!(NOW_S - 29)),
        ("exp", json!(f64::from(2_000_000_000) + 0.5)),
        ("nbf", json!(NOW_S + 30)),
        ("aud", json!(["other", "numerator-test"])),
    ] {
        let token = jwt(&ed25519().header(), &claims_with(claim, value.clone()), &ed25519());
        assert!(scene.who(&token).await.is_ok(), "{claim}: {value}");
    }
}

/// Which of two claims of one name counts differs between programs: an issuer whose users write one
/// of them must not be read in two ways.
#[tokio::test]
async fn a_claim_that_stands_there_twice_lets_nobody_in() {
    let scene = ed25519_scene();
    let whole = claims().to_string();
    let with = |more: &str| format!("{{{more},{}", &whole[1..]);
    for twice in [
        with("\"sub\":\"bob\""),
        with("\"sub\":\"ann\""),
        with("\"s\\u0075b\":\"bob\""),
        with("\"roles\":[\"super-admin\"]"),
        with("\"iss\":\"https://evil.example\""),
        with("\"exp\":9999999999"),
        with("\"aud\":\"other\""),
        with("\"other\":1,\"other\":1"),
        with("\"realm_access\":{\"roles\":[],\"roles\":[\"super-admin\"]}"),
        with("\"list\":[{\"a\":1,\"a\":2}]"),
    ] {
        let message = format!(
            "{}.{}",
            encoded(header_with("typ", json!("JWT")).to_string().as_bytes()),
            encoded(twice.as_bytes())
        );
        let refused = scene.who(&signed(&message)).await;
        assert!(refused.is_err(), "{twice}: {refused:?}");
    }
    let once = with("\"realm_access\":{\"roles\":[]},\"other\":{\"roles\":[]}");
    let header = header_with("typ", json!("JWT")).to_string();
    let message = format!("{}.{}", encoded(header.as_bytes()), encoded(once.as_bytes()));
    assert_eq!(scene.who(&signed(&message)).await.as_deref(), Ok("jwt:ann"));
}

#[tokio::test]
async fn a_public_key_is_never_taken_for_a_secret() {
    for issuer in &ISSUERS[1..] {
        let mut jwk = issuer.jwk();
        jwk["kid"] = json!("one");
        let by_key = Scene::of_key(issuer.algorithm, issuer.public.as_bytes()).expect("a key");
        let by_set = Scene::of_set(&[issuer.algorithm], &[jwk]).expect("a set");
        let header = json!({ "alg": "HS256", "kid": "one" });
        let message = message(&header, &claims());
        let der = pem::parse(issuer.public).expect("PEM").into_contents();
        let text = issuer.public.as_bytes();
        for secret in [text, text.trim_ascii_end(), &der, b""] {
            let signature = encoded(&hmac_of(secret, message.as_bytes()));
            let forged = format!("{message}.{signature}");
            for scene in [&by_key, &by_set] {
                assert_eq!(scene.who(&forged).await, Err(JwtRefusal::Algorithm));
            }
        }
    }
}

#[tokio::test]
async fn who_signs_nothing_or_something_else_is_refused() {
    let scene = ed25519_scene();
    for algorithm in ["none", "None", "NONE", "", "HS1"] {
        let header = header_with("alg", json!(algorithm));
        let unsigned = format!("{}.", message(&header, &claims()));
        assert_eq!(scene.who(&unsigned).await, Err(JwtRefusal::Unreadable), "{algorithm}");
    }
    // An algorithm of the same family, and one of another.
    for algorithm in ["RS256", "ES256", "HS512", "ES384", "PS256"] {
        let token = jwt(&header_with("alg", json!(algorithm)), &claims(), &ed25519());
        assert_eq!(scene.who(&token).await, Err(JwtRefusal::Algorithm), "{algorithm}");
    }
    let token = jwt(&header_with("typ", json!("JWT")), &claims(), &ed25519());
    assert_eq!(scene.who(&token).await.as_deref(), Ok("jwt:ann"));
    let parts: Vec<&str> = token.split('.').collect();
    let admin = encoded(claims_with("roles", json!(["super-admin"])).to_string().as_bytes());
    let header = encoded(header_with("typ", json!("jwt")).to_string().as_bytes());
    for (changed, why) in [
        (format!("{}.{admin}.{}", parts[0], parts[2]), JwtRefusal::Signature),
        (format!("{header}.{}.{}", parts[1], parts[2]), JwtRefusal::Signature),
        (format!("{}.{}.", parts[0], parts[1]), JwtRefusal::Signature),
        (format!("{}.{}.{}", parts[0], parts[1], encoded(&[0; 64])), JwtRefusal::Signature),
        (format!("{token}="), JwtRefusal::Unreadable),
        ("..".into(), JwtRefusal::Unreadable),
        (format!("{token}.{}", parts[2]), JwtRefusal::Unreadable),
        (format!("{}.{}", "x".repeat(8_192), parts[1]), JwtRefusal::TooLong),
    ] {
        assert_eq!(scene.who(&changed).await, Err(why), "{changed}");
    }
}

#[tokio::test]
async fn the_name_of_a_key_is_only_compared_and_keys_of_a_header_are_never_used() {
    let scene = ed25519_scene();
    for kid in ["../../etc/passwd", "' OR 1=1 --", "https://evil.example/jwks", "", "One", "one\0"]
    {
        let token = jwt(&header_with("kid", json!(kid)), &claims(), &ed25519());
        assert_eq!(scene.who(&token).await, Err(JwtRefusal::UnknownKey), "{kid:?}");
    }
    // The attacker's own key, and where it could be found.
    let pkcs8 = ring::signature::Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new());
    let own = ring::signature::Ed25519KeyPair::from_pkcs8(pkcs8.expect("a key").as_ref());
    let own = own.expect("a key");
    let x = encoded(ring::signature::KeyPair::public_key(&own).as_ref());
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one" });
    for (field, value) in [
        ("jwk", jwk),
        ("jku", json!("https://evil.example/jwks")),
        ("x5u", json!("https://evil.example/certificate")),
        ("x5c", json!(["MAA="])),
    ] {
        let message = message(&header_with(field, value), &claims());
        let forged = format!("{message}.{}", encoded(own.sign(message.as_bytes()).as_ref()));
        assert_eq!(scene.who(&forged).await, Err(JwtRefusal::Signature), "{field}");
    }
    let critical = jwt(&header_with("crit", json!(["b64"])), &claims(), &ed25519());
    assert_eq!(scene.who(&critical).await, Err(JwtRefusal::Critical));
}

#[test]
fn a_token_of_ours_is_never_read_as_a_jwt() {
    for token in ["nbr_a.b.c", "nbr_0123", "a.b", "a", "", "a.b.c.d"] {
        assert!(!Jwts::is_jwt(token), "{token}");
    }
    assert!(Jwts::is_jwt("a.b.c"));
}

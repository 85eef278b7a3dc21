//! What claims give: names, roles, projects, series, and for how long.

use super::*;
use crate::auth::Role;

/// The identity of a JWT with one claim changed, under changed settings.
async fn admitted(
    change: impl FnOnce(&mut JwtSettings),
    claim: &str,
    value: Value,
) -> Result<Arc<Identity>, JwtRefusal> {
    let file = ed25519().public.as_bytes();
    let scene = Scene::of(&[JwtAlgorithm::EdDsa], file, JwtKeys::File, change).expect("a key");
    let token = jwt(&ed25519().header(), &claims_with(claim, value), &ed25519());
    scene.jwts.admit(&token).await
}

#[tokio::test]
async fn roles_are_our_words_or_what_the_settings_make_of_others_and_no_role_lets_nobody_in() {
    let roles = async |change: fn(&mut JwtSettings), claim: &str, value: Value| {
        let identity = admitted(change, claim, value).await;
        identity.map(|identity| identity.roles.iter().collect::<Vec<_>>())
    };
    let plain = |_: &mut JwtSettings| {};
    let mapped = |settings: &mut JwtSettings| {
        let roles =
            [("Buchhaltung", vec![Role::Caller, Role::Auditor]), ("it", vec![Role::Operator])];
        let roles = roles.into_iter().map(|(word, roles)| (word.to_owned(), roles));
        settings.roles = Some(roles.collect());
    };
    let pathed = |settings: &mut JwtSettings| settings.roles_claim = "realm_access.roles".into();
    let dotted = |settings: &mut JwtSettings| settings.roles_claim = "https://a.example/r".into();
    let caller = Ok(vec![Role::Caller]);
    assert_eq!(roles(plain, "roles", json!(["caller", "wizard", 7])).await, caller);
    assert_eq!(roles(plain, "roles", json!("openid caller")).await, caller);
    for none in [json!(["wizard"]), json!([]), json!(7), json!("Caller"), Value::Null] {
        let refused = roles(plain, "roles", none.clone()).await;
        assert_eq!(refused, Err(JwtRefusal::NoRole), "{none}");
    }
    let both = Ok(vec![Role::Caller, Role::Auditor]);
    assert_eq!(roles(mapped, "roles", json!(["Buchhaltung", "caller"])).await, both);
    // Our own words mean nothing to an issuer that has others.
    let refused = roles(mapped, "roles", json!(["super-admin"])).await;
    assert_eq!(refused, Err(JwtRefusal::NoRole));
    assert_eq!(roles(pathed, "realm_access", json!({ "roles": ["caller"] })).await, caller);
    assert_eq!(roles(pathed, "realm_access", json!("caller")).await, Err(JwtRefusal::NoRole));
    assert_eq!(roles(dotted, "https://a.example/r", json!(["caller"])).await, caller);
}

#[tokio::test]
async fn who_is_to_be_narrowed_reaches_what_is_listed_and_nothing_where_nothing_is() {
    let restricted = |settings: &mut JwtSettings| {
        settings.projects_claim = Some("projects".into());
        settings.series_claim = Some("projects".into());
    };
    let identity = admitted(restricted, "projects", json!(["P1", "P2"])).await.expect("let in");
    assert_eq!(
        (identity.scope.projects(), identity.scope.series().len()),
        (&["P1".to_owned(), "P2".to_owned()][..], 2)
    );
    let one = admitted(restricted, "projects", json!("P 1")).await.expect("let in");
    assert_eq!(one.scope.projects(), ["P 1"]);
    for all in [json!("*"), json!(["P1", "*"])] {
        let identity = admitted(restricted, "projects", all).await.expect("let in");
        assert!(identity.scope.is_everything());
    }
    for nothing in [Value::Null, json!([]), json!([7]), json!(7)] {
        let refused = admitted(restricted, "projects", nothing.clone()).await.err();
        assert_eq!(refused, Some(JwtRefusal::NoSeries), "{nothing}");
    }
    let of_projects = |settings: &mut JwtSettings| settings.projects_claim = Some("p".into());
    let refused = admitted(of_projects, "x", json!(1)).await.err();
    assert_eq!(refused, Some(JwtRefusal::NoProjects));
    let admin = admitted(|_| {}, "roles", json!(["project-admin"])).await.expect_err("refused");
    assert!(admin.to_string().contains("project-admin is one of its projects"), "{admin}");
}

#[tokio::test]
async fn a_name_is_a_text_that_the_journal_can_keep_or_another_claim_must_name_it() {
    let by_mail = |settings: &mut JwtSettings| settings.name_claim = "email".into();
    for (value, wanted) in [
        (json!("auth0|5f7c"), Some("jwt:auth0|5f7c")),
        (json!("ann@example.com"), Some("jwt:ann@example.com")),
        (json!("nbr_1"), Some("jwt:nbr_1")),
        (json!("x".repeat(61)), None),
        (json!("Ann Smith"), None),
        (json!("a\r\nb"), None),
        (json!(7), None),
        (Value::Null, None),
    ] {
        let admitted = admitted(|_| {}, "sub", value.clone()).await;
        match wanted {
            Some(name) => assert_eq!(&*admitted.expect("let in").name, name),
            None => {
                let refused = admitted.expect_err("no name").to_string();
                assert!(refused.contains("auth.jwt.name_claim"), "{value}: {refused}");
                assert!(!refused.contains("Ann"), "{refused}");
            }
        }
    }
    let identity = admitted(by_mail, "email", json!("a@b.c")).await.expect("let in");
    assert_eq!(&*identity.name, "jwt:a@b.c");
}

#[tokio::test]
async fn what_was_verified_once_ends_by_the_clock_all_the_same() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("key");
    std::fs::write(&path, ed25519().public).expect("written");
    let clock = clock();
    let settings = settings(&[JwtAlgorithm::EdDsa], JwtKeys::File(path));
    let jwts = Jwts::open(settings, clock.clone(), QUICK).expect("a key");
    let token = jwt(&ed25519().header(), &claims(), &ed25519());
    assert!(jwts.admit(&token).await.is_ok() && jwts.admit(&token).await.is_ok());
    let known = jwts.keyring.in_force().expect("keys");
    assert!(known.verified(&hash_of(&token)).is_some(), "it is verified for each request");
    clock.set((NOW_S + 60 + 30) * 1_000_000 - 1);
    assert!(jwts.admit(&token).await.is_ok());
    clock.set((NOW_S + 60 + 30) * 1_000_000);
    assert_eq!(jwts.admit(&token).await, Err(JwtRefusal::Expired));
}

//! Tokens: one name forever, secrets that replace each other, and changes that all nodes and every
//! auditor see.

use std::time::Duration;

use numbering::hexadecimal;
use numerator::ledger::{
    Ledger, LedgerError, NewToken, StoredToken, TOKEN_GRACE_MAX, TokenInForce, TokenRefusal,
    TokenRevocation, TokenRights, TokenRotation, TokenUse,
};

use super::world::{NOW_US, World};

fn rights() -> TokenRights {
    let list = |text: &str| vec![text.to_owned()];
    let (roles, series, projects) = (list("caller"), list("S"), list("โครงการ"));
    TokenRights {
        roles,
        series,
        projects,
        count_max: Some(9),
        requests_per_minute: Some(60),
        speaks_for_people: true,
        expires_at_us: Some(NOW_US + 5),
    }
}

pub(super) fn new(name: &str, secret: u8) -> NewToken {
    let (name, sha256, created_by) = (name.to_owned(), [secret; 32], "boss".to_owned());
    NewToken { name, sha256, rights: rights(), created_by, shown: None }
}

pub(super) fn rotation(name: &str, secret: u8, grace: Duration) -> TokenRotation {
    let (name, sha256, rotated_by) = (name.to_owned(), [secret; 32], "boss".to_owned());
    TokenRotation { name, sha256, grace, expires_at_us: None, rotated_by, shown: None }
}

pub(super) fn revocation(name: &str) -> TokenRevocation {
    let (revoked_by, reason) = ("guard".into(), "leaked".into());
    TokenRevocation { name: name.into(), revoked_by, reason, shown: None }
}

pub(super) fn refusal<T: std::fmt::Debug>(outcome: Result<T, LedgerError>) -> TokenRefusal {
    match outcome.expect_err("refused") {
        LedgerError::Token(refusal) => refusal,
        other => panic!("{other}"),
    }
}

async fn only(ledger: &Ledger) -> TokenInForce {
    let mut found = ledger.tokens().in_force().await.unwrap().tokens;
    assert_eq!(found.len(), 1);
    found.remove(0)
}

pub(super) async fn a_name_has_one_token_for_ever_and_a_revoked_one_stays_listed(world: World) {
    let ledger = &world.ledger;
    let created = ledger.tokens().create(&new("orders", 1)).await.unwrap();
    let told = (&*created.name, &created.rights, &*created.created_by, created.created_at_us);
    assert_eq!(told, ("orders", &rights(), "boss", NOW_US));
    let taken = || TokenRefusal::NameTaken { name: "orders".into() };
    assert_eq!(refusal(ledger.tokens().create(&new("orders", 2)).await), taken());
    // Names are compared byte for byte.
    ledger.tokens().create(&new("Orders", 3)).await.unwrap();
    world.clock.set(NOW_US + 7);
    let revoked = ledger.tokens().revoke(&revocation("orders")).await.unwrap();
    assert_eq!(
        (revoked.revoked_by.as_deref(), revoked.revoked_at_us),
        (Some("guard"), Some(NOW_US + 7))
    );
    world.clock.set(NOW_US + 8);
    let again = ledger.tokens().revoke(&revocation("orders")).await.unwrap();
    assert_eq!(again, revoked, "nothing more happens");
    assert_eq!(refusal(ledger.tokens().create(&new("orders", 4)).await), taken());
    let late = ledger.tokens().rotate(&rotation("orders", 5, Duration::ZERO)).await;
    assert_eq!(refusal(late), TokenRefusal::Revoked { name: "orders".into() });
    let unknown = refusal(ledger.tokens().revoke(&revocation("nobody")).await);
    assert_eq!(unknown, TokenRefusal::Unknown { name: "nobody".into() });
    let names = |list: Vec<StoredToken>| list.into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!(names(ledger.tokens().list("", 10).await.unwrap()), ["Orders", "orders"]);
    assert_eq!(names(ledger.tokens().list("Orders", 1).await.unwrap()), ["orders"]);
    let known = only(ledger).await;
    assert_eq!((&*known.token.name, known.sha256), ("Orders", [3; 32]));
}

pub(super) async fn the_secret_of_before_a_rotation_is_kept_for_its_grace(world: World) {
    let ledger = &world.ledger;
    ledger.tokens().create(&new("orders", 1)).await.unwrap();
    let second = Duration::from_secs(1);
    let rotated = ledger.tokens().rotate(&rotation("orders", 2, second)).await.unwrap();
    assert_eq!(rotated.former_until_us, Some(NOW_US + 1_000_000));
    let known = only(ledger).await;
    assert_eq!((known.sha256, known.former_sha256), ([2; 32], Some([1; 32])));
    assert_eq!(known.token.rights, rights(), "the rights are the same");
    // An earlier one is no longer accepted.
    let rotated =
        ledger.tokens().rotate(&rotation("orders", 3, TOKEN_GRACE_MAX * 2)).await.unwrap();
    let longest = i64::try_from(TOKEN_GRACE_MAX.as_micros()).unwrap();
    assert_eq!(rotated.former_until_us, Some(NOW_US + longest), "a day at most");
    assert_eq!(only(ledger).await.former_sha256, Some([2; 32]));
    let last =
        TokenRotation { expires_at_us: Some(NOW_US + 50), ..rotation("orders", 4, Duration::ZERO) };
    let rotated = ledger.tokens().rotate(&last).await.unwrap();
    assert_eq!((rotated.former_until_us, rotated.rights.expires_at_us), (None, Some(NOW_US + 50)));
    let known = only(ledger).await;
    assert_eq!((known.sha256, known.former_sha256), ([4; 32], None));
}

pub(super) async fn each_change_of_tokens_raises_the_stamp_and_is_an_event(world: World) {
    let ledger = &world.ledger;
    let another = world.another().await;
    let mut stamps = vec![another.stamps().await.unwrap().tokens];
    ledger.tokens().create(&new("orders", 0xab)).await.unwrap();
    stamps.push(another.stamps().await.unwrap().tokens);
    ledger.tokens().rotate(&rotation("orders", 0xcd, Duration::from_secs(1))).await.unwrap();
    stamps.push(another.stamps().await.unwrap().tokens);
    refusal(ledger.tokens().create(&new("orders", 2)).await);
    assert_eq!(another.stamps().await.unwrap().tokens, stamps[2], "nothing is changed");
    ledger.tokens().revoke(&revocation("orders")).await.unwrap();
    stamps.push(another.stamps().await.unwrap().tokens);
    assert!(stamps.is_sorted_by(|one, next| one < next), "{stamps:?}");
    let known = another.tokens().in_force().await.unwrap();
    assert_eq!((known.stamp, known.tokens.len()), (stamps[3], 0));
    let events = ledger.events().list(10).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|event| &*event.kind).collect();
    assert_eq!(kinds, ["token-revoked", "token-rotated", "token-created"]);
    let [revoked, _, created] = &events[..] else { panic!("{events:?}") };
    assert_eq!(
        (&revoked.detail["name"], &revoked.detail["user"]),
        (&"orders".into(), &"guard".into())
    );
    assert_eq!(revoked.detail["reason"], "leaked");
    assert_eq!(
        (&created.detail["user"], &created.detail["roles"][0]),
        (&"boss".into(), &"caller".into())
    );
    for event in &events {
        let told = event.detail.to_string();
        let hashes = [0xab, 0xcd].map(|secret| hexadecimal(&[secret; 32]));
        assert!(
            !hashes.iter().any(|hash| told.contains(hash)) && !told.contains("sha256"),
            "{told}"
        );
    }
    // An auditor is bound to what he saw: the events are among what checkpoints bind.
    assert!(another.has_catalog().await.unwrap());
    world.sql("update token_stamp set stamp = stamp - 1").await;
    assert!(!another.has_catalog().await.unwrap(), "a ledger that forgot a revocation is noticed");
}

pub(super) async fn of_many_creators_of_one_name_one_gets_it(world: World) {
    let (one, other) = (new("orders", 1), new("orders", 2));
    let another = world.another().await;
    let (one, other) =
        tokio::join!(world.ledger.tokens().create(&one), another.tokens().create(&other));
    assert_eq!(one.is_ok(), other.is_err());
    let refused = one.and(other);
    assert_eq!(refusal(refused), TokenRefusal::NameTaken { name: "orders".into() });
}

pub(super) async fn the_last_use_of_a_token_only_rises(world: World) {
    let ledger = &world.ledger;
    let mut ids = Vec::new();
    for (name, secret) in [("a", 1), ("b", 2)] {
        ids.push(ledger.tokens().create(&new(name, secret)).await.unwrap().token_id);
    }
    let stamp = ledger.stamps().await.unwrap().tokens;
    let at = |token_id: i64, at_us: i64| TokenUse { token_id, at_us };
    ledger.tokens().note_uses(&[]).await.unwrap();
    ledger.tokens().note_uses(&[at(ids[0], 5), at(ids[1], 6)]).await.unwrap();
    ledger.tokens().note_uses(&[at(ids[0], 4), at(ids[1], 8), at(99, 9)]).await.unwrap();
    let tokens = ledger.tokens().list("", 10).await.unwrap();
    let used: Vec<_> = tokens.iter().map(|token| token.last_used_at_us).collect();
    assert_eq!(used, [Some(5), Some(8)]);
    assert_eq!(ledger.stamps().await.unwrap().tokens, stamp, "no node reads anything anew");
}

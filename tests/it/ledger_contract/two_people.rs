//! The person who answers for a change is not the one who asked, however both names are written,
//! and has a token that is in force when the change is made.

use std::time::Duration;

use numerator::ledger::{
    ChangeDecision, ChangeRefusal, ChangeState, LedgerError, NewChange, NewToken, ShownToken,
    TokenRefusal, TokenRevocation, TokenRotation, WantedChange,
};

use super::changes::{self, approve, ask, decision, next, refusal, taken};
use super::documents::{dated, is_taken, take};
use super::tokens::{self, new, revocation, rotation};
use super::world::{NOW_US, World};

ledger_contract! {
    two_people {
        one_person_under_two_writings_of_a_name_is_refused
        the_ledger_itself_refuses_one_person_under_two_writings
        a_pending_request_is_compared_by_folded_names
        a_token_that_is_not_in_force_manages_nothing
        an_approval_and_a_revocation_come_one_after_the_other
        a_request_that_takes_long_keeps_nobody_from_revoking_its_token
    }
}

/// The requester, and the would-be approver: one person or one identity each time.
const ONE: [(&str, &str); 12] = [
    ("jwt:ann@example.com", "crm/ann@example.com"),
    ("crm/ann@example.com", "jwt:ann@example.com"),
    ("erp/ann@example.com", "crm/Ann@Example.COM"),
    ("erp/ann@example.com", "crm/ann@example.com\u{200b}"),
    ("erp/a\u{ad}nn@example.com", "crm/ann@example.com"),
    ("erp/ann@example.com", "crm/ａｎｎ@example.com"),
    ("erp/ann@example.com", "crm/jwt:ann@example.com"),
    ("erp/ann@example.com", "crm/hr/ann@example.com"),
    ("erp/Jose\u{301}", "crm/JOS\u{c9}"),
    ("erp/Ann  Lee", "crm/ann\u{a0}lee\u{2028}"),
    ("anna", "Anna"),
    ("erp/anna", "anna/bert"),
];

pub(super) async fn one_person_under_two_writings_of_a_name_is_refused(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    for (asks, answers) in ONE {
        let new = NewChange { requested_by: asks.into(), ..next(counter_id, 5) };
        let asked = ask(&world, &new).await;
        let told = refusal(approve(&world.ledger, &asked, answers).await);
        assert_eq!(told, ChangeRefusal::Own(asks.into()), "{answers}");
        // The requester may withdraw it.
        let withdrawn = world.ledger.approvals().reject(&decision(&asked, answers)).await.unwrap();
        assert_eq!(withdrawn.state, ChangeState::Rejected);
    }
    // Two who share nothing, however near their names are.
    for (value, answers) in [(5, "crm/anne@example.com"), (6, "jwt:bert@example.com"), (7, "bert")]
    {
        let new =
            NewChange { requested_by: "erp/ann@example.com".into(), ..next(counter_id, value) };
        let asked = ask(&world, &new).await;
        let made = approve(&world.ledger, &asked, answers).await.unwrap();
        assert_eq!(made.decided_by.as_deref(), Some(answers));
    }
    world.verify().await;
}

/// Whether the ledger accepts a statement of a user who writes to it directly.
async fn takes(world: &World, sql: &str) -> bool {
    let sql = sqlx::AssertSqlSafe(sql.to_owned());
    if world.ledger.engine() == "sqlite" {
        let pool = sqlx::SqlitePool::connect(&world.url).await.unwrap();
        return sqlx::raw_sql(sql).execute(&pool).await.is_ok();
    }
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    sqlx::raw_sql(sql).execute(&pool).await.is_ok()
}

pub(super) async fn the_ledger_itself_refuses_one_person_under_two_writings(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let asked = ask(&world, &next(counter_id, 5)).await;
    let approved = |names: &str| {
        format!(
            "update change_request set state = 'approved', decided_by = 'x/Anna', \
             decided_at_us = 1{names} where change_request_id = {}",
            asked.change_id
        )
    };
    let names = |[asks_identity, asks, identity, person]: [&str; 4]| {
        approved(&format!(
            ", requested_identity = '{asks_identity}', requested_person = '{asks}', \
             decided_identity = '{identity}', decided_person = '{person}'"
        ))
    };
    assert!(!takes(&world, &approved("")).await, "names that nobody has compared");
    for same in [
        ["erp", "anna", "crm", "anna"],
        ["anna", "anna", "x", "anna"],
        ["erp", "anna", "erp", "bert"],
        ["erp", "anna", "anna", "bert"],
    ] {
        assert!(!takes(&world, &names(same)).await, "{same:?}");
    }
    assert!(takes(&world, &names(["erp", "anna", "crm", "bert"])).await);
}

/// A pending row has no folded names: they are written with the answer.
pub(super) async fn a_pending_request_is_compared_by_folded_names(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let new = NewChange { requested_by: "jwt:anna".into(), ..next(counter_id, 5) };
    let asked = ask(&world, &new).await;
    let told = refusal(approve(&world.ledger, &asked, "erp/ANNA").await);
    assert_eq!(told, ChangeRefusal::Own("jwt:anna".into()));
    approve(&world.ledger, &asked, "erp/bert").await.unwrap();
}

fn not_in_force<T: std::fmt::Debug>(outcome: Result<T, LedgerError>) {
    assert_eq!(tokens::refusal(outcome), TokenRefusal::NotInForce);
}

/// Everything that is managed by a token, by one that is not in force.
async fn manages_nothing(world: &World, counter_id: i64, shown: ShownToken) {
    let ledger = &world.ledger;
    let asked = ask(world, &next(counter_id, 5)).await;
    let shown = Some(shown);
    let answer = ChangeDecision { shown, ..decision(&asked, "bert") };
    not_in_force(ledger.approvals().approve(&answer).await);
    not_in_force(ledger.approvals().reject(&answer).await);
    not_in_force(ledger.approvals().request(&NewChange { shown, ..next(counter_id, 6) }).await);
    not_in_force(ledger.tokens().create(&NewToken { shown, ..new("mine", 99) }).await);
    not_in_force(ledger.tokens().revoke(&TokenRevocation { shown, ..revocation("boss") }).await);
    let rotated = TokenRotation { shown, ..rotation("boss", 98, Duration::ZERO) };
    not_in_force(ledger.tokens().rotate(&rotated).await);
    assert_eq!(ledger.approvals().get(asked.change_id).await.unwrap().state, ChangeState::Pending);
}

pub(super) async fn a_token_that_is_not_in_force_manages_nothing(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let ledger = &world.ledger;
    let shown = async |name: &str, secret: u8| {
        let mut new = new(name, secret);
        new.rights.expires_at_us = None;
        let token_id = ledger.tokens().create(&new).await.unwrap().token_id;
        ShownToken { token_id, sha256: [secret; 32] }
    };
    let boss = shown("boss", 1).await;
    let mut revoked = shown("revoked", 2).await;
    ledger
        .tokens()
        .revoke(&TokenRevocation { shown: Some(boss), ..revocation("revoked") })
        .await
        .unwrap();
    manages_nothing(&world, counter_id, revoked).await;
    revoked.token_id = 99;
    manages_nothing(&world, counter_id, revoked).await;
    // The earlier secret, although it is accepted.
    let former = shown("rotated", 3).await;
    let rotated =
        TokenRotation { shown: Some(former), ..rotation("rotated", 4, Duration::from_secs(9)) };
    ledger.tokens().rotate(&rotated).await.unwrap();
    manages_nothing(&world, counter_id, former).await;
    let last = TokenRotation {
        expires_at_us: Some(NOW_US + 500),
        ..rotation("rotated", 5, Duration::ZERO)
    };
    ledger.tokens().rotate(&last).await.unwrap();
    world.clock.set(NOW_US + 500);
    manages_nothing(&world, counter_id, ShownToken { sha256: [5; 32], ..former }).await;
    // And one that is: the change is made.
    let asked = ask(&world, &next(counter_id, 5)).await;
    let answer = ChangeDecision { shown: Some(boss), ..decision(&asked, "bert") };
    let made = ledger.approvals().approve(&answer).await.unwrap();
    assert_eq!(made.state, ChangeState::Approved);
}

/// Goal: nothing is approved by a token whose revocation was confirmed, and the revocation waits
/// for nothing that an approval waits for. Method: on PostgreSQL one of both waits for the other; a
/// file has one writer.
pub(super) async fn an_approval_and_a_revocation_come_one_after_the_other(world: World) {
    if world.ledger.engine() == "sqlite" {
        return;
    }
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    // The approval waits for its counter; meanwhile its token is revoked.
    let shown = token(&world, "bert", 1).await;
    let mut counter = pool.begin().await.unwrap();
    let lock = "select counter_id from counter where counter_id = $1 for update";
    sqlx::query(lock).bind(counter_id).execute(&mut *counter).await.unwrap();
    let asked = ask(&world, &next(counter_id, 5)).await;
    let answer = ChangeDecision { shown, ..decision(&asked, "bert") };
    let ledger = world.another().await;
    let approval = tokio::spawn(async move { ledger.approvals().approve(&answer).await });
    assert!(world.meets_lock(&pool, &approval).await, "it does not wait for its counter");
    world.ledger.tokens().revoke(&revocation("bert")).await.unwrap();
    assert!(!approval.is_finished());
    counter.commit().await.unwrap();
    not_in_force(approval.await.unwrap());
    let pending = world.ledger.approvals().get(asked.change_id).await.unwrap().state;
    assert_eq!(pending, ChangeState::Pending);
    // The revocation holds the token: the approval waits at its end, and finds it revoked.
    let shown = token(&world, "cora", 2).await;
    let mut revoking = pool.begin().await.unwrap();
    let revoke = "update token set revoked_at_us = 1, revoked_by = 'x' where name = 'cora'";
    sqlx::query(revoke).execute(&mut *revoking).await.unwrap();
    let (ledger, answer) =
        (world.another().await, ChangeDecision { shown, ..decision(&asked, "cora") });
    let approval = tokio::spawn(async move { ledger.approvals().approve(&answer).await });
    assert!(world.meets_lock(&pool, &approval).await, "it does not look at its token");
    revoking.commit().await.unwrap();
    not_in_force(approval.await.unwrap());
}

/// A token, as a request shows it.
async fn token(world: &World, name: &str, secret: u8) -> Option<ShownToken> {
    let token_id = world.ledger.tokens().create(&new(name, secret)).await.unwrap().token_id;
    Some(ShownToken { token_id, sha256: [secret; 32] })
}

/// Goal: the holder of a stolen token cannot prevent its revocation. Method: on PostgreSQL a
/// request by it waits for a family that others lock, as it would search through its numbers.
pub(super) async fn a_request_that_takes_long_keeps_nobody_from_revoking_its_token(world: World) {
    if world.ledger.engine() == "sqlite" {
        return;
    }
    let at = world.database_epoch().await;
    let outcomes = take(&world, at, &[dated("a", "2023-11-10"), dated("b", "2032-11-10")]).await;
    assert!(outcomes.iter().all(is_taken), "{outcomes:?}");
    let counter_id = world.ledger.counters().page(0, 1).await.unwrap()[0].counter_id;
    let pool = sqlx::PgPool::connect(&world.url).await.unwrap();
    let mut family = pool.begin().await.unwrap();
    sqlx::query("select * from chronology for update").execute(&mut *family).await.unwrap();
    let shown = token(&world, "bert", 1).await;
    let wanted =
        WantedChange::LastDate { family: "type=T".to_owned(), date: "2023-11-12".to_owned() };
    let wanted = NewChange { shown, ..changes::new(counter_id, wanted) };
    let ledger = world.another().await;
    let request = tokio::spawn(async move { ledger.approvals().request(&wanted).await });
    assert!(world.meets_lock(&pool, &request).await, "it does not wait for its family");
    world.ledger.tokens().revoke(&revocation("bert")).await.unwrap();
    assert!(!request.is_finished());
    family.commit().await.unwrap();
    not_in_force(request.await.unwrap());
    assert_eq!(world.ledger.approvals().list(None, false, 10).await.unwrap(), []);
}

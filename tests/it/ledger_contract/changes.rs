//! Changes that two people answer for: nothing that was issued comes again, what is skipped is
//! accounted for, and each request is answered once.

use numerator::ledger::{
    At, CHANGES_PENDING_MAX, ChangeDecision, ChangeRefusal, ChangeRequest, ChangeState, Closing,
    Ledger, LedgerError, NewChange, TakeOutcome, WantedChange,
};

use super::documents::{before, dated, is_taken, take};
use super::world::{NOW_US, PARTITION, World, entry, order, spec};

ledger_contract! {
    changes {
        a_counter_goes_on_where_two_people_say_and_what_is_passed_over_is_a_gap
        a_change_never_leads_to_what_may_be_issued
        a_counter_that_redis_counts_waits_until_the_database_has_it
        of_two_approvals_at_once_one_makes_the_change
        a_request_ends_with_its_time_or_its_first_answer
        nothing_is_changed_while_its_partition_is_held
        a_wrong_date_that_is_still_to_come_is_set_back
    }
}

pub(super) fn new(counter_id: i64, wanted: WantedChange) -> NewChange {
    NewChange {
        series_id: 7,
        counter_id,
        wanted,
        step: 1,
        reason: "the old book has the numbers up to there".into(),
        requested_by: "anna".into(),
        expires_at_us: NOW_US + 1_000,
        shown: None,
    }
}

pub(super) fn next(counter_id: i64, value: u64) -> NewChange {
    new(counter_id, WantedChange::NextValue(value))
}

pub(super) async fn ask(world: &World, new: &NewChange) -> ChangeRequest {
    world.ledger.approvals().request(new).await.unwrap()
}

pub(super) fn decision(request: &ChangeRequest, by: &str) -> ChangeDecision {
    let (change_id, decided_by) = (request.change_id, by.to_owned());
    ChangeDecision { change_id, decided_by, reason: None, step: 1, shown: None }
}

pub(super) async fn approve(
    ledger: &Ledger,
    request: &ChangeRequest,
    by: &str,
) -> Result<ChangeRequest, LedgerError> {
    ledger.approvals().approve(&decision(request, by)).await
}

pub(super) fn refusal<T: std::fmt::Debug>(outcome: Result<T, LedgerError>) -> ChangeRefusal {
    match outcome.expect_err("refused") {
        LedgerError::Change(refusal) => refusal,
        other => panic!("{other}"),
    }
}

/// Takes several numbers from the counter `k`; its id.
pub(super) async fn taken(world: &World, at: At, count: u64) -> i64 {
    let mut counter_id = 0;
    for _ in 0..count {
        let document = format!("d{}", uuid::Uuid::new_v4().simple());
        counter_id = world.take(at, order(&document)).await.taken[0].counter_id;
    }
    counter_id
}

async fn next_value(world: &World, at: At) -> u64 {
    let document = format!("n{}", uuid::Uuid::new_v4().simple());
    world.take(at, order(&document)).await.taken[0].range.first
}

fn skipped(first: u64, last: u64) -> (u64, u64, String) {
    (first, last, "Skipped".into())
}

pub(super) async fn a_counter_goes_on_where_two_people_say_and_what_is_passed_over_is_a_gap(
    world: World,
) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 2).await;
    let unknown = NewChange { series_id: 8, ..next(counter_id, 10) };
    let told = refusal(world.ledger.approvals().request(&unknown).await);
    assert_eq!(told, ChangeRefusal::UnknownCounter(counter_id));
    let asked = ask(&world, &next(counter_id, 10)).await;
    assert_eq!((asked.stands_at, asked.skipped()), (2, Some((3, 9))));
    assert_eq!(world.gaps(counter_id).await, [], "nothing is done yet");
    // The same person, another person through her token, and she through another's.
    for own in ["anna", "anna/bert", "portal/anna"] {
        let own = refusal(approve(&world.ledger, &asked, own).await);
        assert_eq!(own, ChangeRefusal::Own("anna".into()));
    }
    let made = approve(&world.ledger, &asked, "bert").await.unwrap();
    assert_eq!((made.state, made.decided_by.as_deref()), (ChangeState::Approved, Some("bert")));
    assert_eq!(next_value(&world, at).await, 10);
    assert_eq!(world.gaps(counter_id).await, [skipped(3, 9)]);
    world.verify().await;
    let answered = ChangeRefusal::Decided { change_id: 1, state: ChangeState::Approved };
    assert_eq!(refusal(approve(&world.ledger, &asked, "cora").await), answered);
    // What it did remains on record, whatever is taken since.
    for (value, change) in [(2, None), (3, Some(&made)), (9, Some(&made)), (10, None)] {
        let behind = world.ledger.approvals().behind(counter_id, value).await.unwrap();
        assert_eq!(behind.as_ref(), change, "{value}");
    }
    assert_eq!(made.skipped(), Some((3, 9)));
    let kinds: Vec<_> =
        world.ledger.events().list(2).await.unwrap().into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds, ["change-approved", "change-requested"]);
}

pub(super) async fn a_change_never_leads_to_what_may_be_issued(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 3).await;
    for below in [0, 1, 3] {
        let told = refusal(world.ledger.approvals().request(&next(counter_id, below)).await);
        assert_eq!(told, ChangeRefusal::Below { least: 4 }, "{below}");
    }
    let asked = ask(&world, &next(counter_id, 5)).await;
    taken(&world, at, 2).await;
    // What was shown when it was asked for is not relied on.
    let told = refusal(approve(&world.ledger, &asked, "bert").await);
    assert_eq!(told, ChangeRefusal::Below { least: 6 });
    let listed = world.ledger.approvals().list(None, true, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].stands_at, listed[0].skipped()), (1, 5, None));
    assert_eq!(world.gaps(counter_id).await, []);
    assert_eq!(next_value(&world, at).await, 6);
    let stepped = NewChange { step: 5, ..next(counter_id, 20) };
    let told = refusal(world.ledger.approvals().request(&stepped).await);
    assert_eq!(told, ChangeRefusal::BesideStep { least: 11, step: 5 });
    world.verify().await;
}

/// Goal: what Redis has handed out is known before its counter moves (F20).
pub(super) async fn a_counter_that_redis_counts_waits_until_the_database_has_it(world: World) {
    let at = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(at, &spec("k")).await;
    // The ledger has seen 1 only; Redis counts on.
    world.append(&[entry(at, counter_id, 1)]).await;
    let [low, high] =
        [ask(&world, &next(counter_id, 4)).await, ask(&world, &next(counter_id, 20)).await];
    let told = refusal(approve(&world.ledger, &high, "bert").await);
    assert_eq!(told, ChangeRefusal::InRedis(PARTITION));
    let rest: Vec<_> = (2..=5).map(|value| entry(at, counter_id, value)).collect();
    world.append(&rest).await;
    world.database_epoch().await;
    let told = refusal(approve(&world.ledger, &low, "bert").await);
    assert_eq!(told, ChangeRefusal::Below { least: 6 }, "what came meanwhile counts");
    let made = approve(&world.ledger, &high, "bert").await.unwrap();
    assert_eq!(made.skipped(), Some((6, 19)));
    // A new seed in Redis continues from there.
    let back = world.redis_epoch(Closing::Exact).await;
    assert_eq!(world.seed(back, &spec("k")).await.1, 19);
    assert_eq!(world.gaps(counter_id).await, [skipped(6, 19)]);
    // For an epoch that closed at the ceiling it is unknown what was handed out.
    let lost = world.redis_epoch(Closing::Ceiling).await;
    let ceiling = ask(&world, &next(counter_id, 25)).await;
    let told = refusal(approve(&world.ledger, &ceiling, "bert").await);
    assert_eq!(told, ChangeRefusal::Below { least: 30 });
    let above = ask(&world, &next(counter_id, 40)).await;
    approve(&world.ledger, &above, "bert").await.unwrap();
    assert_eq!(world.seed(lost, &spec("k")).await.1, 39);
    world.verify().await;
}

pub(super) async fn of_two_approvals_at_once_one_makes_the_change(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let asked = ask(&world, &next(counter_id, 5)).await;
    let other = world.another().await;
    let (one, two) =
        tokio::join!(approve(&world.ledger, &asked, "bert"), approve(&other, &asked, "cora"));
    let (made, refused) = if one.is_ok() { (one, two) } else { (two, one) };
    assert_eq!(made.unwrap().state, ChangeState::Approved);
    let told = refusal(refused);
    assert!(matches!(told, ChangeRefusal::Decided { .. }), "{told}");
    assert_eq!(world.gaps(counter_id).await, [skipped(2, 4)]);
    let events = world.ledger.events().list(100).await.unwrap();
    assert_eq!(events.iter().filter(|event| event.kind == "change-approved").count(), 1);
    assert_eq!(next_value(&world, at).await, 5);
    world.verify().await;
}

pub(super) async fn a_request_ends_with_its_time_or_its_first_answer(world: World) {
    let at = world.database_epoch().await;
    let counter_id = taken(&world, at, 1).await;
    let [withdrawn, late] =
        [ask(&world, &next(counter_id, 5)).await, ask(&world, &next(counter_id, 6)).await];
    let reject = |request: &ChangeRequest, by: &str| {
        let reason = Some("a slip".into());
        ChangeDecision { reason, ..decision(request, by) }
    };
    let own = world.ledger.approvals().reject(&reject(&withdrawn, "anna")).await.unwrap();
    assert_eq!(
        (own.state, own.decision_reason.as_deref()),
        (ChangeState::Rejected, Some("a slip"))
    );
    let change_id = withdrawn.change_id;
    let answered = ChangeRefusal::Decided { change_id, state: ChangeState::Rejected };
    assert_eq!(refusal(approve(&world.ledger, &withdrawn, "bert").await), answered);
    let again = world.ledger.approvals().reject(&reject(&withdrawn, "bert")).await;
    assert_eq!(refusal(again), answered);
    world.clock.set(NOW_US + 1_000);
    let told = refusal(approve(&world.ledger, &late, "bert").await);
    assert_eq!(told, ChangeRefusal::Expired(late.change_id));
    assert_eq!(world.ledger.approvals().list(None, true, 10).await.unwrap(), []);
    let page = world.ledger.approvals().list(Some(late.change_id), false, 10).await.unwrap();
    assert_eq!(page, [own]);
    let told = refusal(approve(&world.ledger, &ChangeRequest { change_id: 99, ..late }, "b").await);
    assert_eq!(told, ChangeRefusal::Unknown(99));
    // Expired requests take no room.
    let fresh = NewChange { expires_at_us: NOW_US + 5_000, ..next(counter_id, 7) };
    for _ in 0..CHANGES_PENDING_MAX {
        ask(&world, &fresh).await;
    }
    let told = refusal(world.ledger.approvals().request(&fresh).await);
    assert_eq!(told, ChangeRefusal::TooMany);
    assert_eq!(next_value(&world, at).await, 2, "nothing was done");
}

pub(super) async fn nothing_is_changed_while_its_partition_is_held(world: World) {
    let at = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(at, &spec("k")).await;
    let asked = ask(&world, &next(counter_id, 5)).await;
    let seen = At { epoch: at.epoch + 1, ..at };
    assert!(world.ledger.hold(seen, "the ledger went back").await.unwrap());
    let world = world.anew().await;
    let told = refusal(approve(&world.ledger, &asked, "bert").await);
    assert_eq!(told, ChangeRefusal::Held(PARTITION));
    assert_eq!(world.gaps(counter_id).await, []);
}

/// Goal: one mistyped date no longer blocks a branch, and no past date is skipped.
pub(super) async fn a_wrong_date_that_is_still_to_come_is_set_back(world: World) {
    // It is 2023-11-14.
    let at = world.database_epoch().await;
    let outcomes = take(&world, at, &[dated("a", "2023-11-10"), dated("b", "2032-11-10")]).await;
    assert!(outcomes.iter().all(is_taken), "{outcomes:?}");
    let blocked = take(&world, at, &[dated("c", "2023-11-14")]).await;
    assert_eq!(blocked, [before("2032-11-10")]);
    let counter_id = world.ledger.counters().page(0, 1).await.unwrap()[0].counter_id;
    let to = |date: &str| {
        let (family, date) = ("type=T".to_owned(), date.to_owned());
        new(counter_id, WantedChange::LastDate { family, date })
    };
    let told = refusal(world.ledger.approvals().request(&to("2023-11-09")).await);
    assert_eq!(told, ChangeRefusal::TooEarly("2023-11-10".into()));
    let told = refusal(world.ledger.approvals().request(&to("2032-11-10")).await);
    assert_eq!(told, ChangeRefusal::NotEarlier("2032-11-10".into()));
    let [asked, late] =
        [ask(&world, &to("2023-11-12")).await, ask(&world, &to("2023-11-13")).await];
    assert_eq!((asked.stands_on.as_deref(), asked.dated_later), (Some("2032-11-10"), Some(1)));
    let own = refusal(approve(&world.ledger, &asked, "anna").await);
    assert_eq!(own, ChangeRefusal::Own("anna".into()));
    let made = approve(&world.ledger, &asked, "bert").await.unwrap();
    assert_eq!((made.stands_on.as_deref(), made.dated_later), (Some("2032-11-10"), Some(1)));
    let outcomes = take(&world, at, &[dated("d", "2023-11-11"), dated("e", "2023-11-14")]).await;
    assert_eq!(outcomes[0], before("2023-11-12"));
    assert!(is_taken(&outcomes[1]), "{outcomes:?}");
    let told = refusal(approve(&world.ledger, &late, "bert").await);
    assert_eq!(told, ChangeRefusal::TooEarly("2023-11-14".into()), "a number came meanwhile");
    let none = TakeOutcome::BeforeLast { last_date: "2023-11-14".into() };
    assert_eq!(take(&world, at, &[dated("f", "2023-11-13")]).await, [none]);
    world.verify().await;
}

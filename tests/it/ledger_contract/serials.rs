//! Exchange serials: what is accepted, what may run, and the chain of it all.

use std::collections::BTreeMap;
use std::sync::Arc;

use numerator::ledger::{
    BeginStep, Begun, ChainQuery, Checked, Closing, EndStep, Ended, Ending, InterfaceCheck, Link,
    Principal, SharedLedger, StepState,
};

use super::world::{NOW_US, World, entry, spec, with};

const HOUR_US: i64 = 3_600_000_000;
const UNIFIED: &str = "C0001A0101201507100000000001";
const INTERFACE: &str = "C0001A0101D0002201507102301100000000001";
const STEP: &str = "C0001A010120150710000000000001";

fn principal(user_id: &str, key: Option<&str>) -> Principal {
    Principal { user_id: user_id.into(), ip_address: None, key: key.map(Into::into) }
}

fn check(serial: &str, principal: Principal) -> InterfaceCheck {
    let unified_serial = Some(UNIFIED.into());
    InterfaceCheck { serial: serial.into(), unified_serial, window_us: HOUR_US, principal }
}

fn begin(serial: &str, principal: Principal) -> BeginStep {
    BeginStep { serial: serial.into(), unified_serial: Some(UNIFIED.into()), principal }
}

fn succeed(attempt: u32, result: &str) -> EndStep {
    let ending = Ending::Succeeded { result: Some(result.into()) };
    EndStep { serial: STEP.into(), attempt, ending, principal: principal("u", None) }
}

fn fail(attempt: u32, reason: &str) -> EndStep {
    let ending = Ending::Failed { reason: reason.into() };
    EndStep { serial: STEP.into(), attempt, ending, principal: principal("u", None) }
}

async fn begun(world: &World, principal: Principal) -> Begun {
    world.ledger.exchange().begin_step(&begin(STEP, principal)).await.unwrap()
}

async fn chain(world: &World) -> Vec<Link> {
    let query = ChainQuery { unified_serial: UNIFIED.into(), after: None, limit: 1_000 };
    world.ledger.exchange().chain(&query).await.unwrap()
}

pub(super) async fn an_interface_serial_is_accepted_once_within_its_window(world: World) {
    let seen = async |user: &str| {
        world.ledger.exchange().check(&check(INTERFACE, principal(user, None))).await.unwrap()
    };
    assert_eq!(seen("a").await, Checked::Accepted { at_us: NOW_US, replayed: false });
    for repeats in 1..=2 {
        world.clock.set(NOW_US + HOUR_US - 1);
        let Checked::Repeated(sight) = seen("b").await else { panic!("accepted twice") };
        assert_eq!((sight.at_us, &*sight.user_id, sight.repeats), (NOW_US, "a", repeats));
    }
    // A clock that was set back finds the sight in its future: it stays seen.
    world.clock.set(NOW_US - HOUR_US);
    assert!(matches!(seen("b").await, Checked::Repeated(_)));
    // The window is that of the check, counted from the sight, which no repetition prolongs.
    let later_us = NOW_US + HOUR_US;
    world.clock.set(later_us);
    assert_eq!(seen("b").await, Checked::Accepted { at_us: later_us, replayed: false });
    let Checked::Repeated(sight) = seen("a").await else { panic!("accepted twice") };
    assert_eq!((sight.at_us, &*sight.user_id, sight.repeats), (later_us, "b", 1));
    let events: Vec<_> = chain(&world).await.into_iter().map(|link| link.user_id).collect();
    assert_eq!(events, ["a", "b"], "each acceptance stays on record");
}

pub(super) async fn a_check_repeated_under_its_key_is_accepted_again(world: World) {
    let seen = async |user: &str, key: Option<&str>| {
        world.ledger.exchange().check(&check(INTERFACE, principal(user, key))).await.unwrap()
    };
    let first = seen("a", Some("k")).await;
    assert_eq!(first, Checked::Accepted { at_us: NOW_US, replayed: false });
    let again = seen("a", Some("k")).await;
    assert_eq!(again, Checked::Accepted { at_us: NOW_US, replayed: true });
    for (user, key) in [("a", Some("other")), ("a", None), ("b", Some("k"))] {
        assert!(matches!(seen(user, key).await, Checked::Repeated(_)), "{user} {key:?}");
    }
    assert_eq!(chain(&world).await.len(), 1, "a replay is not another acceptance");
}

/// Runs one call 32 times at once, over two processes.
async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    world: &World,
    call: impl Fn(SharedLedger, usize) -> F,
) -> Vec<T> {
    let ledgers = [Arc::clone(&world.ledger), world.another().await];
    let calls: Vec<_> =
        (0..32).map(|n| tokio::spawn(call(Arc::clone(&ledgers[n % 2]), n))).collect();
    let mut outcomes = Vec::new();
    for call in calls {
        outcomes.push(call.await.unwrap());
    }
    outcomes
}

pub(super) async fn of_many_checks_of_one_serial_one_is_accepted(world: World) {
    let outcomes = at_once(&world, |ledger, n| async move {
        let principal = principal(&format!("u{n}"), None);
        ledger.exchange().check(&check(INTERFACE, principal)).await.unwrap()
    })
    .await;
    let accepted = outcomes.iter().filter(|seen| matches!(seen, Checked::Accepted { .. }));
    assert_eq!(accepted.count(), 1);
    let mut repeats: Vec<u64> = outcomes
        .iter()
        .filter_map(|seen| match seen {
            Checked::Repeated(sight) => Some(sight.repeats),
            Checked::Accepted { .. } => None,
        })
        .collect();
    repeats.sort_unstable();
    assert_eq!(repeats, (1..32).collect::<Vec<_>>(), "each repetition is counted once");
}

pub(super) async fn a_step_runs_while_unknown_or_failed_and_never_after_success(world: World) {
    let Begun::Run(step) = begun(&world, principal("u", None)).await else { panic!("must run") };
    assert_eq!((step.attempt, step.state), (1, StepState::InProgress));
    let Begun::InProgress(step) = begun(&world, principal("u", None)).await else { panic!() };
    assert_eq!(step.attempt, 1);
    // Not even a year ends an attempt.
    world.clock.set(NOW_US + 366 * 24 * HOUR_US);
    assert!(matches!(begun(&world, principal("v", None)).await, Begun::InProgress(_)));
    let Ended::Noted(step) = world.ledger.exchange().end_step(&fail(1, "no money")).await.unwrap()
    else {
        panic!("must end")
    };
    assert_eq!((step.state, step.reason.as_deref()), (StepState::Failed, Some("no money")));
    let Begun::Run(step) = begun(&world, principal("v", None)).await else { panic!("must run") };
    assert_eq!((step.attempt, step.reason, &*step.begun_by), (2, None, "v"));
    let by_v = EndStep { principal: principal("v", None), ..succeed(2, "{\"paid\": 0.10}") };
    assert!(matches!(world.ledger.exchange().end_step(&by_v).await.unwrap(), Ended::Noted(_)));
    for _ in 0..2 {
        let Begun::Succeeded(step) = begun(&world, principal("u", None)).await else { panic!() };
        assert_eq!(step.result.as_deref(), Some("{\"paid\": 0.10}"), "byte for byte");
        assert_eq!(step.attempt, 2);
    }
    assert!(matches!(
        world.ledger.exchange().end_step(&fail(2, "x")).await.unwrap(),
        Ended::NotCurrent(_)
    ));
    let told: Vec<_> = chain(&world)
        .await
        .into_iter()
        .map(|link| (link.event, link.attempt, link.reason))
        .collect();
    let event = |kind: &str, attempt, reason: Option<&str>| {
        (kind.to_owned(), Some(attempt), reason.map(str::to_owned))
    };
    let expected = [
        event("begun", 1, None),
        event("failed", 1, Some("no money")),
        event("begun", 2, None),
        event("succeeded", 2, None),
    ];
    assert_eq!(told, expected);
}

pub(super) async fn of_many_beginners_of_one_step_one_runs(world: World) {
    for attempt in 1..=3 {
        let outcomes = at_once(&world, |ledger, n| async move {
            let principal = principal(&format!("u{n}"), Some(&format!("k{n}")));
            ledger.exchange().begin_step(&begin(STEP, principal)).await.unwrap()
        })
        .await;
        let run: Vec<_> = outcomes
            .iter()
            .filter_map(|begun| match begun {
                Begun::Run(step) => Some(step.attempt),
                Begun::InProgress(step) => {
                    assert_eq!(step.attempt, attempt);
                    None
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(run, [attempt]);
        let failed = world.ledger.exchange().end_step(&fail(attempt, "again")).await.unwrap();
        assert!(matches!(failed, Ended::Noted(_)));
    }
}

pub(super) async fn a_begin_repeated_under_its_key_runs_only_while_in_progress(world: World) {
    let mine = || principal("u", Some("k"));
    assert!(matches!(begun(&world, mine()).await, Begun::Run(_)));
    let Begun::RunAgain(step) = begun(&world, mine()).await else { panic!("told before") };
    assert_eq!(step.attempt, 1);
    for other in [principal("u", Some("l")), principal("u", None), principal("v", Some("k"))] {
        assert!(matches!(begun(&world, other).await, Begun::InProgress(_)));
    }
    world.ledger.exchange().end_step(&succeed(1, "1")).await.unwrap();
    assert!(matches!(begun(&world, mine()).await, Begun::Succeeded(_)), "done is done");
}

pub(super) async fn only_the_current_attempt_ends_and_only_its_runner_succeeds(world: World) {
    let end = async |end: EndStep| world.ledger.exchange().end_step(&end).await.unwrap();
    assert_eq!(end(succeed(1, "1")).await, Ended::Unknown);
    begun(&world, principal("u", None)).await;
    let by_other = EndStep { principal: principal("v", None), ..succeed(1, "1") };
    for wrong in [succeed(0, "1"), succeed(2, "1"), fail(2, "x"), by_other] {
        let Ended::NotCurrent(step) = end(wrong).await else { panic!("must be refused") };
        assert_eq!((step.state, step.attempt), (StepState::InProgress, 1));
    }
    // The way out for a runner that died: another caller reports its failure, and the reason.
    let given_up =
        EndStep { principal: principal("operator", None), ..fail(1, "its host burned down") };
    let Ended::Noted(step) = end(given_up.clone()).await else { panic!("must be noted") };
    assert_eq!(step.ended_by.as_deref(), Some("operator"));
    // The runner was only slow: it is informed, instead of being believed.
    assert!(matches!(end(succeed(1, "1")).await, Ended::NotCurrent(_)));
    assert!(matches!(begun(&world, principal("v", None)).await, Begun::Run(_)));
    for late in [succeed(1, "1"), given_up] {
        let Ended::NotCurrent(step) = end(late).await else { panic!("must be refused") };
        assert_eq!((step.state, step.attempt), (StepState::InProgress, 2));
    }
}

pub(super) async fn an_ending_repeated_with_the_same_content_is_harmless(world: World) {
    let end = async |end: EndStep| world.ledger.exchange().end_step(&end).await.unwrap();
    begun(&world, principal("u", None)).await;
    assert!(matches!(end(fail(1, "x")).await, Ended::Noted(_)));
    world.clock.set(NOW_US + 5);
    let Ended::NotedBefore(step) = end(fail(1, "x")).await else { panic!("noted before") };
    assert_eq!(step.ended_at_us, Some(NOW_US));
    let by_other = EndStep { principal: principal("v", None), ..fail(1, "x") };
    for other in [fail(1, "y"), by_other, succeed(1, "1")] {
        assert!(matches!(end(other).await, Ended::NotCurrent(_)));
    }
    begun(&world, principal("u", None)).await;
    assert!(matches!(end(succeed(2, "1")).await, Ended::Noted(_)));
    assert!(matches!(end(succeed(2, "1")).await, Ended::NotedBefore(_)));
    let none = EndStep { ending: Ending::Succeeded { result: None }, ..succeed(2, "1") };
    for other in [succeed(2, "2"), none, fail(2, "x"), succeed(1, "1")] {
        assert!(matches!(end(other).await, Ended::NotCurrent(_)));
    }
    assert_eq!(chain(&world).await.len(), 4, "a replay leaves no event");
}

pub(super) async fn a_step_belongs_to_one_unified_serial(world: World) {
    let of = |unified: Option<&str>| BeginStep {
        unified_serial: unified.map(Into::into),
        ..begin(STEP, principal("u", None))
    };
    let begin = async |begin: BeginStep| world.ledger.exchange().begin_step(&begin).await.unwrap();
    assert!(matches!(begin(of(None)).await, Begun::Run(_)));
    assert!(matches!(begin(of(Some(UNIFIED))).await, Begun::InProgress(_)));
    world.ledger.exchange().end_step(&fail(1, "x")).await.unwrap();
    let Begun::Run(step) = begin(of(Some(UNIFIED))).await else { panic!("must run") };
    assert_eq!(step.unified_serial.as_deref(), Some(UNIFIED), "learned late");
    world.ledger.exchange().end_step(&fail(2, "x")).await.unwrap();
    let Begun::OtherChain(step) = begin(of(Some("other"))).await else { panic!("refused") };
    assert_eq!((step.attempt, step.state), (2, StepState::Failed), "nothing has changed");
    let Begun::Run(step) = begin(of(None)).await else { panic!("must run") };
    assert_eq!(step.unified_serial.as_deref(), Some(UNIFIED));
}

pub(super) async fn a_chain_lists_its_serials_and_events_in_pages(world: World) {
    let open = world.redis_epoch(Closing::Exact).await;
    let (counter_id, ..) = world.seed(open, &spec("k")).await;
    let issued = |value, number: &str, kind: &str, document: Option<String>, age_us: i64| {
        let mut entry = with(entry(open, counter_id, value), |r| {
            r.type_code = kind.into();
            r.document_id = document;
            r.issued_at_us = NOW_US - age_us;
        });
        entry.number = number.into();
        entry
    };
    let under = |rest: &str| Some(format!("{UNIFIED}/{rest}"));
    world
        .append(&[
            issued(1, UNIFIED, "UNIFIED-SERIAL", None, 9),
            issued(2, STEP, "SYSTEM-SERIAL", under("step/C0001A01/pay"), 0),
            issued(3, INTERFACE, "INTERFACE-SERIAL", under("call/1"), 0),
            // Not of this chain, however much they look like it.
            issued(4, "x1", "LETTER", under("step/C0001A01/pay"), 0),
            issued(5, "x2", "SYSTEM-SERIAL", Some(UNIFIED.into()), 0),
            issued(6, "x3", "SYSTEM-SERIAL", Some(format!("{UNIFIED}0/step")), 0),
        ])
        .await;
    begun(&world, principal("u", None)).await;
    world.ledger.exchange().check(&check(INTERFACE, principal("u", None))).await.unwrap();
    world.clock.set(NOW_US + 1);
    world.ledger.exchange().end_step(&succeed(1, "1")).await.unwrap();
    let other = BeginStep { unified_serial: None, ..begin("other", principal("u", None)) };
    world.ledger.exchange().begin_step(&other).await.unwrap();

    let told = |links: &[Link]| -> Vec<(String, String)> {
        links.iter().map(|link| (link.event.clone(), link.serial.clone())).collect()
    };
    let all = chain(&world).await;
    let of = |event: &str, serial: &str| (event.to_owned(), serial.to_owned());
    let expected = [
        of("issued", UNIFIED),
        of("issued", STEP),
        of("issued", INTERFACE),
        of("begun", STEP),
        of("accepted", INTERFACE),
        of("succeeded", STEP),
    ];
    assert_eq!(told(&all), expected);
    assert_eq!(all[1].document_id, under("step/C0001A01/pay"));
    for limit in 1..=7 {
        let mut pages = Vec::new();
        let mut after = None;
        loop {
            let query = ChainQuery { unified_serial: UNIFIED.into(), after, limit };
            let page = world.ledger.exchange().chain(&query).await.unwrap();
            assert!(page.len() <= limit as usize);
            let Some(last) = page.last() else { break };
            after = Some(last.place.clone());
            pages.extend(page);
        }
        assert_eq!(pages, all, "in pages of {limit}");
    }
    let unknown = ChainQuery { unified_serial: "unknown".into(), after: None, limit: 10 };
    assert_eq!(world.ledger.exchange().chain(&unknown).await.unwrap(), []);
}

/// Goal: the step does what its rules say, whatever the order of calls. Method: random calls, each
/// compared with a model of a few lines; the seed is printed.
pub(super) async fn random_calls_about_a_step_follow_its_rules(world: World) {
    let seed: u64 = std::env::var("NUMERATOR_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
    println!("NUMERATOR_SEED={seed}");
    let mut state = seed | 1;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Of each serial: the attempt, its runner while it runs, and whether it is done.
    let mut model: BTreeMap<u64, (u32, Option<String>, bool)> = BTreeMap::new();
    for _ in 0..300 {
        let (which, user) = (draw(3), format!("u{}", draw(2)));
        let serial = format!("S{which}");
        let principal = principal(&user, None);
        let known = model.get(&which).cloned();
        if draw(2) == 0 {
            let begun =
                world.ledger.exchange().begin_step(&begin(&serial, principal)).await.unwrap();
            match known {
                Some((attempt, _, true)) => {
                    assert!(matches!(begun, Begun::Succeeded(step) if step.attempt == attempt));
                }
                Some((attempt, Some(_), false)) => {
                    assert!(matches!(begun, Begun::InProgress(step) if step.attempt == attempt));
                }
                idle => {
                    let attempt = idle.map_or(0, |(attempt, ..)| attempt) + 1;
                    assert!(matches!(begun, Begun::Run(step) if step.attempt == attempt));
                    model.insert(which, (attempt, Some(user), false));
                }
            }
            continue;
        }
        let succeeds = draw(8) == 0;
        let attempt = known.as_ref().map_or(1, |(attempt, ..)| *attempt);
        let attempt = attempt.saturating_sub(u32::from(draw(4) == 0));
        let ending = if succeeds {
            Ending::Succeeded { result: None }
        } else {
            // Never the same twice: a repetition has a case of its own.
            Ending::Failed { reason: format!("{:x}", draw(1 << 30)) }
        };
        let end = EndStep { serial, attempt, ending, principal };
        let ended = world.ledger.exchange().end_step(&end).await.unwrap();
        match known {
            None => assert_eq!(ended, Ended::Unknown),
            Some((current, Some(runner), false))
                if current == attempt && (!succeeds || runner == user) =>
            {
                assert!(matches!(ended, Ended::Noted(_)), "{ended:?}");
                model.insert(which, (current, None, succeeds));
            }
            Some((current, _, true)) if succeeds && current == attempt => {
                let before = matches!(&ended, Ended::NotedBefore(step)
                    if step.ended_by.as_deref() == Some(&*user));
                assert!(before || matches!(ended, Ended::NotCurrent(_)), "{ended:?}");
            }
            Some(_) => assert!(matches!(ended, Ended::NotCurrent(_)), "{ended:?}"),
        }
    }
}

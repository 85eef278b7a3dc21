//! A ledger that fails over to a standby that lags, with all processes alive and with none (F25):
//! the last commits are gone, less than a heartbeat of them, and possibly no process's own marks.

use std::time::Duration;

use testkit::eventually::eventually;
use testkit::load;
use testkit::postgres::Postgres;
use testkit::proxy::Proxy;
use testkit::redis::Redis;
use testkit::service::Service;
use tokio::time::Instant;

use crate::deployment::Deployment;
use crate::restored::assert_held;

/// The URL of a schema behind a proxy, which leads to the primary of the day.
fn behind(postgres: &Postgres, proxy: &Proxy) -> String {
    postgres.url_by(proxy.port(), "promoted")
}

/// How soon a process continues after a release: with its next heartbeat, and a little later.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Waits until a service's log contains this.
pub(crate) async fn says(service: &Service, text: &str) {
    eventually(LIMIT, async || {
        let log = service.log();
        if log.contains(text) { Ok(()) } else { Err(format!("never {text:?}: {log}")) }
    })
    .await;
}

/// The answer to a document's request once its service issues again.
async fn answer(service: &Service, document: &str) -> (u16, String) {
    answer_of(service, "LOAD", document).await
}

/// The same for a document of another type.
pub(crate) async fn answer_of(service: &Service, kind: &str, document: &str) -> (u16, String) {
    let client = testkit::client();
    let url = format!("{}/api/v1/documents/{document}/generate-number", service.url);
    eventually(LIMIT, async || {
        let (status, body) = load::post(&client, &url, &serde_json::json!({ "type": kind })).await;
        if let Some(number) = body["document_number"].as_str() {
            return Ok((status, number.to_owned()));
        }
        // A session that ends during a request is reported as such.
        assert_eq!(body["retryable"], true, "{status} {body} {}", service.log());
        Err(format!("{status} {body} {}", service.log()))
    })
    .await
}

/// Numbers for several documents of a name, one after the other.
async fn numbers(service: &Service, name: &str, count: usize) -> Vec<String> {
    numbers_of(service, "LOAD", name, count).await
}

/// The same of documents of another type.
pub(crate) async fn numbers_of(
    service: &Service,
    kind: &str,
    name: &str,
    count: usize,
) -> Vec<String> {
    let mut numbers = Vec::new();
    for place in 0..count {
        let (status, number) = answer_of(service, kind, &format!("{name}-{place}")).await;
        assert_eq!(status, 201, "{number}");
        numbers.push(number);
    }
    numbers
}

/// How soon numbers continue after a promotion, automatically.
const GOES_ON_WITHIN: Duration = Duration::from_secs(10);

/// A primary, a standby that lags, and two services whose numbers the standby does not all get.
pub(crate) struct Lagging {
    primary: Postgres,
    proxy: Proxy,
    standby: Postgres,
    pub(crate) deployment: Deployment,
    /// Lost commits.
    pub(crate) one: Service,
    /// Lost none: it took none.
    pub(crate) other: Service,
    pub(crate) seen: Vec<String>,
}

impl Lagging {
    pub(crate) async fn start(redis: Option<&Redis>) -> Self {
        Self::start_with(redis.map(Redis::url).as_deref(), "").await
    }

    /// The same, if an operator has the database take the numbers.
    pub(crate) async fn start_in_database(redis: &Redis) -> Self {
        let begin = |deployment: &Deployment| drop(deployment.ok(&["fallback", "on"]));
        Self::start_after(Some(&redis.url()), "", begin).await
    }

    async fn start_with(redis_url: Option<&str>, settings: &str) -> Self {
        Self::start_after(redis_url, settings, |_| {}).await
    }

    async fn start_after(
        redis_url: Option<&str>,
        settings: &str,
        begin: impl FnOnce(&Deployment),
    ) -> Self {
        let primary = Postgres::start();
        let proxy = Proxy::start(primary.port());
        let mut deployment = Deployment::new(&behind(&primary, &proxy), redis_url);
        deployment.extra = settings.into();
        begin(&deployment);
        deployment.apply_load_series();
        let fresh = deployment.series_file("FRESH", "F-{SEQ:4}", "");
        deployment.apply(&[fresh]);
        let (one, other) = (deployment.serve(), deployment.serve());
        let mut seen = numbers(&one, "before", 3).await;
        let standby = primary.start_standby();
        standby.catch_up(&primary);
        standby.fall_behind();
        seen.extend(numbers(&one, "lost", 2).await);
        Lagging { primary, proxy, standby, deployment, one, other, seen }
    }

    /// The standby is the ledger.
    pub(crate) fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.promote();
        self.proxy.retarget(self.standby.port());
    }

    /// Its lost numbers are reported again, and nothing came twice.
    pub(crate) async fn assert_well(self) {
        let Lagging { standby, deployment, one, other, mut seen, .. } = self;
        for place in 0..2 {
            let told = answer(&other, &format!("lost-{place}")).await;
            assert_eq!(told, (200, seen[3 + place].clone()));
        }
        seen.extend(numbers(&other, "other", 3).await);
        seen.extend(numbers(&one, "after", 3).await);
        let all = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), all, "{seen:?}");
        assert!(one.terminate() && other.terminate());
        deployment.assert_clean();
        let journaled = standby.sql("select number from promoted.journal");
        let journaled: Vec<&str> = journaled.lines().collect();
        let is_there = |number: &String| journaled.contains(&&**number);
        assert!(seen.iter().all(is_there), "{seen:?} {journaled:?}");
    }
}

/// Goal: all that was confirmed is remembered by living processes, so no operator is needed, and no
/// number is skipped. Method: the standby lacks the last commits; no process died.
async fn it_goes_on_by_itself(redis: Option<&Redis>) {
    let mut lagging = Lagging::start(redis).await;
    lagging.fail_over();
    let promoted = Instant::now();
    let first = answer(&lagging.one, "first");
    let Ok((status, number)) = tokio::time::timeout(GOES_ON_WITHIN, first).await else {
        panic!("nothing after {GOES_ON_WITHIN:?}: {} {}", lagging.one.log(), lagging.other.log());
    };
    println!("{number} after {:?}", promoted.elapsed());
    assert_eq!((status, &*number), (201, "L-00000006"), "{:?}", lagging.seen);
    lagging.seen.push(number);
    let gaps = lagging.deployment.ok(&["gaps", "--json"]);
    assert!(!gaps.contains("first_value"), "{gaps}");
    lagging.assert_well().await;
}

#[tokio::test]
async fn a_standby_that_lags_is_promoted_and_numbers_go_on_by_themselves() {
    it_goes_on_by_itself(None).await;
}

#[tokio::test]
async fn the_same_under_redis_where_the_seed_of_a_counter_is_among_what_was_lost() {
    let redis = Redis::start();
    it_goes_on_by_itself(Some(&redis)).await;
}

/// How long an answer of Redis is under way: longer than a fail-over takes to be noticed.
const UNDER_WAY: Duration = Duration::from_secs(4);

/// The sum of all counters in Redis.
fn counted(redis: &Redis) -> u64 {
    let sum = "local sum = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
               if redis.call('TYPE', key).ok == 'hash' then \
               sum = sum + (redis.call('HGET', key, 'value') or 0) end end return sum";
    redis.cli(&["eval", sum, "0"]).parse().expect("a sum")
}

/// Goal: a number that arrives after the ledger went back under its taker is not handed out: the
/// ledger's users may agree on it without that number. Method: the answer of Redis is delayed.
#[tokio::test]
async fn a_number_that_arrives_after_the_ledger_went_back_is_handed_out_to_nobody() {
    let redis = Redis::start();
    let link = Proxy::start(redis.port());
    let patient = "command_timeout = \"30s\"\n";
    let mut lagging = Lagging::start_with(Some(&link.redis_url()), patient).await;
    let before = counted(&redis);
    link.delay(UNDER_WAY);
    let url = lagging.one.url.clone();
    let late = tokio::spawn(async move { load::take(&testkit::client(), &url, "late").await });
    eventually(
        LIMIT,
        async || {
            if counted(&redis) == before { Err(lagging.one.log()) } else { Ok(()) }
        },
    )
    .await;
    lagging.fail_over();
    says(&lagging.one, "THE LEDGER WENT BACK").await;
    assert!(!late.is_finished(), "it is under way for too short a time");
    let (status, told) = late.await.expect("an answer");
    assert_eq!((status, &told["number_taken"]), (503, &"maybe".into()), "{told}");
    link.forward();
    let (_, number) = answer(&lagging.one, "late").await;
    lagging.seen.push(number);
    lagging.assert_well().await;
}

/// Goal: a ledger that forgot a raise, or a whole counter, and nothing that any mark of it shows,
/// is found by the next record: none is set aside, none comes again, and numbers continue
/// automatically. Method: the rows are set back directly under a running service, whose counter is
/// in Redis.
#[tokio::test]
async fn a_ceiling_or_a_counter_that_the_ledger_forgot_is_found_by_the_next_record() {
    for forget in ["update counter set ceiling = taken", "delete from journal; delete from counter"]
    {
        let (redis, postgres) = (Redis::start(), Postgres::start());
        let deployment = Deployment::new(&postgres.url("forgot"), Some(&redis.url()));
        deployment.apply_load_series();
        let service = deployment.serve();
        let mut seen = numbers(&service, "before", 3).await;
        eventually(LIMIT, async || {
            let is_there = postgres.sql("select count(*) from forgot.journal") == "3";
            if is_there { Ok(()) } else { Err(service.log()) }
        })
        .await;
        let forget = testkit::forge::postgres(forget);
        postgres.sql(&format!("set search_path = forgot; {forget}"));
        seen.extend(numbers(&service, "next", 1).await);
        says(&service, "THE LEDGER WENT BACK").await;
        seen.extend(numbers(&service, "after", 2).await);
        let expected: Vec<String> = (1..=6).map(|value| format!("L-{value:08}")).collect();
        assert_eq!(seen, expected, "{forget}");
        assert!(service.terminate());
        assert_eq!(postgres.sql("select count(*) from forgot.journal"), "6", "{forget}");
        assert_eq!(postgres.sql("select count(*) from forgot.journal_rejected"), "0", "{forget}");
        deployment.assert_clean();
    }
}

/// Goal: what was confirmed to a process that died with the primary is unknown. Method: the one
/// that lost commits is killed with it.
#[tokio::test]
async fn a_primary_and_a_process_lost_together_wait_for_an_operator_and_his_margin() {
    let mut lagging = Lagging::start(None).await;
    // Found for a retry by the one that lives.
    let found = answer(&lagging.other, "lost-0").await;
    assert_eq!(found, (200, lagging.seen[3].clone()));
    lagging.one.kill();
    lagging.fail_over();
    assert_held(&lagging.other).await;
    says(&lagging.other, "waits for processes").await;
    let refused = lagging.deployment.run(&["reconcile", "--ledger-restored", "--apply"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("--margin"), "{says}");
    assert_held(&lagging.other).await;
    lagging.deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "2"]);
    // It has reported again what it found; the other number is skipped: its owner is unknown.
    assert_eq!(answer(&lagging.other, "lost-0").await, found);
    let (_, number) = answer(&lagging.other, "first").await;
    assert!(*number > *lagging.seen[4], "{number} {:?}", lagging.seen);
}

/// Goal: a process that came and took a number in the moment that is lost is missed, because
/// another process has met it. Method: none meets it while the other process is suspended.
#[tokio::test]
async fn a_process_takes_from_the_database_once_another_one_has_met_it() {
    let postgres = Postgres::start();
    let mut deployment = Deployment::new(&postgres.url("met"), None);
    deployment.extra = "[node]\nttl = \"20s\"\n".into();
    deployment.apply_load_series();
    let service = deployment.serve();
    numbers(&service, "before", 1).await;
    service.signal("STOP");
    let newcomer = deployment.launch();
    says(&newcomer, "no other process has met this one yet").await;
    assert_eq!(postgres.sql("select count(*) from met.journal"), "1");
    service.signal("CONT");
    numbers(&newcomer, "after", 1).await;
    assert!(service.terminate() && newcomer.terminate());
}

/// Goal: a dump restored while nothing ran is found by the first process that comes. Method:
/// numbers after the dump; the path has no witness but the ledger.
#[tokio::test]
async fn a_dump_put_back_while_nothing_ran_is_held_before_the_first_number() {
    let postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("dumped"), None);
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    postgres.dump("dumped");
    assert_eq!(next(), "L-00000003\n");
    postgres.put_back("dumped");
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    let arguments = ["reconcile", "--ledger-restored", "--apply", "--margin", "1"];
    deployment.ok(&arguments);
    assert_eq!(next(), "L-00000004\n");
}

/// Goal: files of the same timeline show nothing; what the last process left next to its data does.
#[tokio::test]
async fn files_put_back_while_nothing_ran_are_held_before_the_first_number() {
    let mut postgres = Postgres::start();
    let deployment = Deployment::new(&postgres.url("files"), None);
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    postgres.back_up();
    assert_eq!(next(), "L-00000003\n");
    postgres.restore();
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "1"]);
    assert_eq!(next(), "L-00000004\n");
}

/// Goal: if no disk outlives a process, Redis does: what was confirmed to it is recorded there.
/// Method: the gapless series never asks Redis; the witness in the data folder is deleted.
#[tokio::test]
async fn files_put_back_are_held_by_what_redis_was_told_where_no_disk_is_left() {
    let (mut postgres, redis) = (Postgres::start(), Redis::start());
    let deployment = Deployment::new(&postgres.url("told"), Some(&redis.url()));
    let file = deployment.series_file("STRICT", "S-{SEQ:4}", "policy = \"gapless\"");
    deployment.apply(&[file]);
    deployment.apply_load_series();
    let issue = async |deployment: &Deployment, name: &str| {
        let service = deployment.serve();
        numbers(&service, name, 1).await;
        let number = deployment.ok(&["next", "STRICT"]);
        assert!(service.terminate());
        number
    };
    assert_eq!(issue(&deployment, "first").await, "S-0001\n");
    postgres.back_up();
    assert_eq!(issue(&deployment, "second").await, "S-0002\n");
    postgres.restore();
    let witnesses = deployment.witnesses();
    assert_eq!(witnesses.len(), 1, "{witnesses:?}");
    std::fs::remove_file(&witnesses[0]).unwrap();
    let refused = deployment.run(&["next", "STRICT"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "1"]);
    assert_eq!(deployment.ok(&["next", "STRICT"]), "S-0003\n");
}

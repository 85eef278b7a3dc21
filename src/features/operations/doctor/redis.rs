//! Redis: whether it admits this deployment, belongs to it and to the other processes. Writes
//! nothing there: only the processes themselves show that it takes writes (`numerator status`).

use std::collections::BTreeMap;

use super::findings::{Findings, Grade};
use super::ledger::Known;
use crate::config::Settings;
use crate::ledger::{Owner, PartitionState};
use crate::redis::{CounterError, Keys, Redis, ServerTime, Survey};

const CHECK: &str = "redis";
const TO_DO: (&str, Grade) = (CHECK, Grade::SomethingToDo);

/// The first query waits for a connection, and a slow one gets a second attempt.
const TRIES: u32 = 2;

/// The state that Redis shows.
#[derive(Default)]
pub(super) struct Shown {
    /// Of each partition, as far as it answers.
    surveys: BTreeMap<u32, Survey>,
    /// The time by its masters' clocks.
    pub(super) times: Vec<ServerTime>,
}

/// Examines it.
pub(super) async fn examine(settings: &Settings, shown: &mut Shown, findings: &mut Findings) {
    let Some(redis) = &settings.redis else {
        return findings.well(CHECK, "redis.url is not set: the database takes the numbers");
    };
    let redis = match Redis::start(redis) {
        Ok(redis) => redis,
        Err(error) => return findings.add(TO_DO, error.to_string(), "correct redis.url"),
    };
    let keys = Keys::new(&settings.redis_prefix);
    for partition in 0..settings.partitions {
        match survey(&redis, &keys, partition).await {
            Ok(survey) => _ = shown.surveys.insert(partition, survey),
            Err(error) => {
                let cause = error.cause();
                let (grade, remedy) = (grade(&error, &cause), remedy(&cause));
                findings.add((CHECK, grade), cause, remedy);
                // Each of the others would take its whole time-out, with the same result.
                break;
            }
        }
    }
    if !shown.surveys.is_empty() {
        for checkup in redis.check_up().await {
            let server = &checkup.server;
            for hazard in &checkup.config_warnings {
                let says = format!("{server}: {hazard}");
                findings.add((CHECK, Grade::Hazard), says, hazard.cure());
            }
            for unchecked in &checkup.unchecked {
                let says = format!("{server}: not checked: {unchecked}");
                let remedy = "see the settings of that server";
                findings.add((CHECK, Grade::Hazard), says, remedy);
            }
        }
        shown.times = redis.times().await;
    }
    redis.stop().await;
}

async fn survey(redis: &Redis, keys: &Keys, partition: u32) -> Result<Survey, CounterError> {
    let mut tries = 1;
    loop {
        match redis.survey(keys, partition, &[]).await {
            Err(CounterError::Unknown(_)) if tries < TRIES => tries += 1,
            outcome => return outcome,
        }
    }
}

/// A refusal is something to do, in the settings or on the server; an unreachable server, or one
/// that does not answer in time, cannot be judged.
fn grade(error: &CounterError, cause: &str) -> Grade {
    let refusals = ["password", "refuses this user a command", "certificate", "speak TLS"];
    let is_refused = refusals.iter().any(|refusal| cause.contains(refusal));
    match error {
        CounterError::Unknown(_) if !is_refused => Grade::CannotTell,
        _ => Grade::SomethingToDo,
    }
}

/// The remedy for a failure, by its text.
fn remedy(cause: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    if has(&["password"]) {
        "correct user and password in redis.url"
    } else if has(&["refuses this user a command"]) {
        "give the user the rights of deploy/redis-users.acl"
    } else if has(&["certificate"]) {
        "name the authority by SSL_CERT_FILE, and the server as its certificate does"
    } else if has(&["TLS"]) {
        "correct redis.url: its port, and rediss or redis"
    } else {
        "start it, or correct host and port in redis.url"
    }
}

/// Compares the state in Redis with the ledger and with the other processes.
pub(super) fn compare(settings: &Settings, shown: &Shown, known: &Known, findings: &mut Findings) {
    let owned = known.partitions.iter().filter(|row| matches!(row.owner, Owner::Redis { .. }));
    let owned = owned.filter(|row| row.state == PartitionState::Open).count();
    if settings.redis.is_none() {
        if owned > 0 {
            let says = format!("redis.url is not set here, and redis owns {owned} partitions");
            let remedy = "set it; where Redis is gone for good, `numerator fallback on`";
            findings.add(TO_DO, says, remedy);
        }
        return;
    }
    let of = |is_so: &dyn Fn(u32, &Survey) -> bool| -> Vec<String> {
        let such = shown.surveys.iter().filter(|(partition, survey)| is_so(**partition, survey));
        such.map(|(partition, _)| partition.to_string()).collect()
    };
    let replicas = of(&|_: u32, survey: &Survey| !survey.is_master);
    if !replicas.is_empty() {
        let says = format!("the server is no master (partitions {})", replicas.join(", "));
        findings.add(TO_DO, says, "lead redis.url to the master");
    }
    if known.is_read {
        let mine = known.deployment.as_ref().map(|own| own.deployment_id.to_string());
        let is_anothers = |_: u32, survey: &Survey| {
            let owner = survey.owner.as_ref().map(|owner| &owner.deployment);
            owner.is_some_and(|owner| Some(owner) != mine.as_ref())
        };
        let others = of(&is_anothers);
        if !others.is_empty() {
            let says = format!(
                "the keys under {:?} are those of another ledger (partitions {}): this one's \
                 numbers are refused there",
                settings.redis_prefix,
                others.join(", ")
            );
            let remedy = "lead redis.url to this ledger's Redis or another database of it; \
                          redis.prefix is fixed once a ledger is set up";
            return findings.add(TO_DO, says, remedy);
        }
    }
    compare_data_sets(shown, known, findings);
    let servers = shown.surveys.len();
    if servers > 0 {
        let says = format!("answers in {servers} partitions, and no other ledger's keys are there");
        findings.well_unless_found(CHECK, says);
    }
}

/// Whether it is the Redis that owns partitions, and that the processes see.
fn compare_data_sets(shown: &Shown, known: &Known, findings: &mut Findings) {
    let (mut apart, mut changed) = (Vec::new(), Vec::new());
    for row in &known.partitions {
        let (Owner::Redis { incarnation }, PartitionState::Open) = (&row.owner, row.state) else {
            continue;
        };
        let Some(survey) = shown.surveys.get(&row.partition) else { continue };
        if survey.incarnation == *incarnation {
            continue;
        }
        let sees = |data_set: &String| {
            let mut sights = known.nodes.iter().filter_map(|node| node.sight.as_ref());
            sights.any(|sight| sight.get(data_set).is_some_and(|it| it.contains(&row.partition)))
        };
        let list =
            if sees(incarnation) && !sees(&survey.incarnation) { &mut apart } else { &mut changed };
        list.push(row.partition.to_string());
    }
    if !apart.is_empty() {
        let says = format!(
            "it is another Redis than the one that the other processes see (partitions {})",
            apart.join(", ")
        );
        findings.add(TO_DO, says, "lead redis.url to theirs");
    }
    if !changed.is_empty() {
        let says = format!(
            "it shows another data set than the ledger names (partitions {}): it was restarted, or \
             is another server",
            changed.join(", ")
        );
        let remedy = "nothing, where it is the right one: the next number brings a recovery";
        findings.add((CHECK, Grade::Hazard), says, remedy);
    }
}

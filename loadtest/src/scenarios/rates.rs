//! Rates: each compared item is asked for numbers as fast as its answers come, in turn.

use super::Bench;
use super::contest::{Contestant, LEAST, Run};
use crate::baselines::Baseline;
use crate::pace::Pace;
use crate::report::{Goal, Row, Section};
use crate::stage::{Path, Placement, Stage};
use crate::work::{Ask, Counters, Known, Numbers};

/// The baselines next to the service, and their names in the table.
const RIVALS: [(Baseline, &str); 3] = [
    (Baseline::Locked, "lock in Redis, optimistic update"),
    (Baseline::RowLock, "update … returning + insert"),
    (Baseline::IncrBehind, LEAST),
];

/// Documents of a list, the counters that it is spread over, and numbers of a range.
const LIST: usize = 100;
const LIST_COUNTERS: usize = 10;
const RANGE: u64 = 1_000;

/// Requests per second of the latencies of `once`.
const ONCE_RATE: f64 = 100.0;

/// The name of each pair of series, first without the question and then with it, the series, and
/// the rate that the first should reach.
const ONCE: [([&str; 2], [&str; 2], Option<Goal>); 2] = [
    (
        ["policy = \"fast\"", "policy = \"fast\"\nonce_per_document = true"],
        ["policy fast", "policy fast, once_per_document"],
        None,
    ),
    (
        ["policy = \"durable\"\nonce_per_document = false", "policy = \"durable\""],
        ["policy durable, not once_per_document", "policy durable"],
        Some(Goal::AtLeast(14_000.0)),
    ),
];

/// Settings of a service that identifies its callers, with limits that no load here reaches.
const KNOWN: [&str; 3] =
    ["auth.mode=on", "limits.user_per_minute=1000000", "limits.address_per_minute=1000000"];

/// One number per request from one counter, compared with a bare web server that gives the same
/// answer to the same request, and with the minimum that remembers every number.
pub(super) fn hot(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let mut contestants = vec![
        Contestant::baseline(&stage, Baseline::Echo),
        Contestant::baseline(&stage, Baseline::IncrBehind),
        Contestant::hot(&stage, Path::Redis, ""),
    ];
    contestants.extend(bench.before.clone().map(|build| {
        let served = stage.service_of(build, Path::Redis, "", &[]);
        Contestant::service(&stage, served, Numbers::hot(Ask::One))
    }));
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [bare, least, ours, before @ ..] = &contestants[..] else {
        unreachable!("as many as were entered");
    };
    let name = "one hot counter";
    section.rows.push(bare.row("bare echo"));
    section.rows.push(least.row_per(LEAST, bare, "echo"));
    section.rows.push(ours.row_per(name, least, LEAST).goal(Goal::AtLeast(0.75)));
    let of_echo = ours.ratio(bare, Run::rate);
    let least_of_echo = if bench.placement == Placement::Placed { 0.42 } else { 0.36 };
    let row = Row::new(name, ours.median(Run::rate), "/s").per(of_echo, "echo");
    section.rows.push(row.goal(Goal::AtLeast(least_of_echo)));
    let cost = ours.median(Run::cost);
    let row = Row::new(format!("{name}, CPU of all processes"), cost, "µs");
    section.rows.push(row.goal(Goal::AtMost(38.0)));
    if let [before] = before {
        section.rows.push(before.row("the build before"));
        section.rows.push(ours.row_per(name, before, "the build before"));
        let row = Row::new(format!("{name}, CPU of all processes"), cost, "µs");
        section.rows.push(row.per(ours.ratio(before, Run::cost), "the build before"));
    }
    section.rows.extend(ours.latencies(name));
}

/// The same number taken in other ways: what the service replaces.
pub(super) fn rivals(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let rivals = RIVALS.map(|(baseline, _)| Contestant::baseline(&stage, baseline));
    let mut contestants = Vec::from(rivals);
    contestants.push(Contestant::hot(&stage, Path::Redis, ""));
    contestants.push(Contestant::hot(&stage, Path::Postgres, ""));
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [locked, row_lock, behind, ours, alone] = &contestants[..] else {
        unreachable!("as many as were entered");
    };
    for (rival, (_, name)) in contestants.iter().zip(RIVALS) {
        section.rows.extend([rival.row(name), rival.latency(name, 99.0)]);
    }
    let hot = "one hot counter";
    let p99 = |run: &Run| run.measured.latencies.percentile_ms(99.0);
    section.rows.extend([
        ours.row_per(hot, locked, "lock in Redis").goal(Goal::AtLeast(22.0)),
        ours.latency(hot, 99.0)
            .per(ours.ratio(locked, p99), "lock in Redis")
            .goal(Goal::AtMost(1.0 / 50.0)),
        ours.row_per(hot, row_lock, "update … returning").goal(Goal::AtLeast(9.0)),
        ours.row_per(hot, behind, LEAST),
        alone
            .row_per("database path, one hot counter", row_lock, "update … returning")
            .goal(Goal::AtLeast(6.0)),
        // How far the minimum that remembers every number comes: no such service gets further.
        behind.row_per(LEAST, locked, "lock in Redis"),
        behind.row_per(LEAST, row_lock, "update … returning"),
    ]);
}

/// The cost of numbering a document once, forever: the journal is asked for each document that
/// Redis does not know, one question per flight, compared with the same series without it.
pub(super) fn once(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    for (series, names, goal) in ONCE {
        let enter = || series.map(|series| Contestant::hot(&stage, Path::Redis, series));
        let mut contestants = enter();
        bench.contest(&Pace::Closed, section, &mut contestants);
        let [without, with] = &contestants;
        let row = without.row(names[0]);
        section.rows.push(match goal {
            Some(goal) => row.goal(goal),
            None => row,
        });
        section.rows.push(with.row_per(names[1], without, "without"));

        let mut contestants = enter();
        bench.contest(&bench.open(ONCE_RATE), section, &mut contestants);
        for (contestant, name) in contestants.iter().zip(names) {
            let what = format!("{name}, 100 requests/s");
            section.rows.extend([50.0, 99.0].map(|percent| contestant.latency(&what, percent)));
        }
    }
}

/// The cost of identifying callers and counting their requests: one hot counter, used anonymously,
/// with a token that has a limit, and with one that asks for people who are limited.
pub(super) fn known(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let enter = |option: &str, known: fn(String) -> Known| {
        let served = stage.service(Path::Redis, "", &KNOWN);
        let token = served.deployment.ok(&["token", "create", "load", option]);
        let work = Numbers::hot(Ask::One).known(known(token.trim().to_owned()));
        Contestant::service(&stage, served, work)
    };
    let mut contestants = [
        Contestant::hot(&stage, Path::Redis, ""),
        enter("--requests-per-minute=60000000", Known::By),
        enter("--speaks-for-people", Known::ForPeople),
    ];
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [nobody, token, people] = &contestants;
    section.rows.push(nobody.row("nobody is known"));
    let row = token.row_per("a token with a limit", nobody, "nobody known");
    section.rows.push(row.goal(Goal::AtLeast(0.95)));
    section.rows.push(people.row_per("1,000 people, limited, by a token", nobody, "nobody known"));
}

/// Many numbers per request: lists of documents, and ranges of one counter.
pub(super) fn batches(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let lists = Numbers::new(Ask::List(LIST), Counters::in_turn(LIST_COUNTERS));
    let mut contestants = [lists, Numbers::hot(Ask::Range(RANGE))].map(|work| {
        let served = stage.service(Path::Redis, "", &[]);
        Contestant::service(&stage, served, work)
    });
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [lists, ranges] = &contestants;
    section.rows.push(lists.row("lists of 100 documents"));
    section.rows.push(ranges.row("ranges of 1,000").goal(Goal::AtLeast(5_000_000.0)));
}

/// The database path: no Redis, every number committed before it is answered.
pub(super) fn database(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let mut contestants =
        [Path::Postgres, Path::Sqlite].map(|path| Contestant::hot(&stage, path, ""));
    bench.contest(&Pace::Closed, section, &mut contestants);
    let [postgres, sqlite] = &contestants;
    let rows: [Row; 4] = [
        postgres.row("database path, PostgreSQL, one hot counter"),
        postgres.latency("database path, PostgreSQL", 99.0),
        sqlite
            .row("embedded SQLite, durable commit, one hot counter")
            .goal(Goal::AtLeast(10_000.0)),
        sqlite.latency("embedded SQLite", 99.0),
    ];
    section.rows.extend(rows);
}

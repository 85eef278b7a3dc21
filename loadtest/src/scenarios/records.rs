//! What an idempotency record costs Redis.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::Bench;
use crate::load::{Load, Shared};
use crate::pace::Pace;
use crate::report::{Reach, Row, Section};
use crate::stage::{Path, Stage};
use crate::work::Documents;

/// Records that are written, all of one partition: with fewer, what they share weighs more.
const RECORDS: usize = 400_000;

/// Documents of a list, and connections that send them.
const LIST: usize = 500;
const CONNECTIONS: usize = 8;

/// Memory that changes by less between two looks stands still.
const STILL_BYTES: u64 = 4_096;

/// Pause between two looks, and the longest wait.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
const STILL_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "", &[]);
    let records = bench.sized(RECORDS);
    let list = LIST.min(records);
    let work: Shared = Rc::new(RefCell::new(Documents::new(1, list)));
    // The counter, the outbox and the scripts are there before anything counts.
    write(&service.address, &work, 1, section);
    let before = memory(&stage);
    let lists = records / list;
    write(&service.address, &work, lists, section);
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
    let after = memory(&stage);
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let bytes = after.saturating_sub(before) as f64 / (lists * list) as f64;
    section.rows.push(
        Row::new("Redis, one idempotency record", bytes, "bytes")
            .reach(Reach::AtMost(100.0))
            .note(format!("used_memory of {} records", lists * list)),
    );
}

fn write(address: &std::net::SocketAddr, work: &Shared, lists: usize, section: &mut Section) {
    let load = Load {
        addresses: vec![*address],
        connections: CONNECTIONS,
        pace: Pace::once(lists),
        warm_up: Duration::ZERO,
        measured: Duration::ZERO,
    };
    let (measured, ()) = load.run(work, async {});
    section.judge(&measured);
}

/// Memory of Redis once it stands still: outboxes are trimmed, buffers given back.
fn memory(stage: &Stage) -> u64 {
    let used = || -> u64 {
        let info = stage.redis().cli(&["info", "memory"]);
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
        line.and_then(|value| value.trim().parse().ok()).expect("Redis tells its memory")
    };
    let deadline = Instant::now() + STILL_LIMIT;
    let mut before = used();
    loop {
        std::thread::park_timeout(LOOK_PERIOD);
        let now = used();
        if now.abs_diff(before) < STILL_BYTES || Instant::now() > deadline {
            return now;
        }
        before = now;
    }
}

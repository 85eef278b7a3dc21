//! What an idempotency record costs Redis.

use std::time::{Duration, Instant};

use super::{Bench, send};
use crate::load::shared;
use crate::report::{Reach, Row, Section};
use crate::stage::{Path, Stage, redis_bytes};
use crate::work::{Ask, Numbers};

/// Records that are written, all of one partition: with fewer, what they share weighs more.
const RECORDS: usize = 400_000;

/// Documents of a list, and connections that send them.
const LIST: usize = 500;
const CONNECTIONS: usize = 8;

/// Memory that changes by less between two looks stands still.
const STILL_BYTES: f64 = 4_096.0;

/// Pause between two looks, and the longest wait.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
const STILL_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let service = stage.service(Path::Redis, "", &[]);
    let records = bench.sized(RECORDS);
    let list = LIST.min(records);
    let work = shared(Numbers::hot(Ask::List(list)));
    // The counter, the outbox and the scripts are there before anything counts.
    send(section, &service, &work, CONNECTIONS, 1);
    let before = memory(&stage);
    let lists = records / list;
    send(section, &service, &work, CONNECTIONS, lists);
    section.breaches.extend(service.complaints(&stage, &*work.borrow()));
    let records = lists * list;
    #[expect(clippy::cast_precision_loss, reason = "less than a million")]
    let bytes = (memory(&stage) - before) / records as f64;
    section.rows.push(
        Row::new("Redis, one idempotency record", bytes, "bytes")
            .reach(Reach::AtMost(100.0))
            .note(format!("used_memory of {records} records")),
    );
}

/// Memory of Redis in bytes once it stands still: outboxes are trimmed, buffers given back.
fn memory(stage: &Stage) -> f64 {
    let used = || redis_bytes(&stage.redis().url()).expect("Redis tells its memory");
    let deadline = Instant::now() + STILL_LIMIT;
    let mut before = used();
    loop {
        std::thread::park_timeout(LOOK_PERIOD);
        let now = used();
        if (now - before).abs() < STILL_BYTES || Instant::now() > deadline {
            return now;
        }
        before = now;
    }
}

//! The database path: no Redis, every number committed before it is answered.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::Path;
use crate::work::{Counters, Single};

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = bench.stage();
    let services = [Path::Postgres, Path::Sqlite].map(|path| stage.service(path, "", &[]));
    let hot = || Single::new(Counters::in_turn(1), false);
    let mut contestants =
        services.each_ref().map(|service| Contestant::service(&stage, service, hot()));
    bench.contest(section, &mut contestants);
    let [postgres, sqlite] = contestants;
    section.rows.push(postgres.row("database path, PostgreSQL, one hot counter"));
    section.rows.extend(postgres.latencies("database path, PostgreSQL").nth(1));
    let row = sqlite.row("embedded SQLite, durable commit, one hot counter");
    section.rows.push(row.reach(Reach::AtLeast(10_000.0)));
    section.rows.extend(sqlite.latencies("embedded SQLite").nth(1));
}

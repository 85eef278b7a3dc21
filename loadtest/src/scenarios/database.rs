//! The database path: no Redis, every number committed before it is answered.

use super::Bench;
use super::contest::Contestant;
use crate::report::{Reach, Section};
use crate::stage::{Path, Served, Stage};
use crate::work::{Counters, Single};

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(&bench.program);
    let on_postgres = stage.service(Path::Postgres, "fast", &[]);
    let on_sqlite = stage.service(Path::Sqlite, "fast", &[]);
    let contestant = |service: &Served| {
        let work = Single::new(Counters::in_turn(1), false);
        Contestant::new(vec![service.address], stage.processes(service), work)
    };
    let mut contestants = [contestant(&on_postgres), contestant(&on_sqlite)];
    bench.contest(section, &mut contestants);
    let [postgres, sqlite] = contestants;
    section.rows.push(postgres.row("database path, PostgreSQL, one hot counter"));
    section.rows.extend(postgres.latencies("database path, PostgreSQL"));
    let row = sqlite.row("database path, SQLite, one hot counter, durable");
    section.rows.push(row.reach(Reach::AtLeast(10_000.0)));
    section.rows.extend(sqlite.latencies("database path, SQLite"));
}

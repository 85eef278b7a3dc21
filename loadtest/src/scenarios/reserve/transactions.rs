//! Reservations that callers confirm in transactions of their own, each of which saves a row of
//! theirs: their tables are in the ledger's database.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sqlx::{Connection as _, PgConnection};
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::super::Bench;
use super::{GAPLESS, SETTINGS, tell};
use crate::client::Connection;
use crate::figures::{Latencies, median};
use crate::load::Work as _;
use crate::report::{Row, Section, figure};
use crate::stage::{Path, Served, Stage, Usage};
use crate::work::{Reservations, Then};

/// Callers at once, at most: each has a connection to PostgreSQL, beside those of the service.
const CALLERS_MAX: usize = 32;

/// Pause of a caller whose reservation was refused for now.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);

/// Saves a document with the number of its reservation.
const CONFIRM: &str = "insert into own_document (reservation_id, number) \
    select $1, confirm($1::uuid) returning number";

/// What the callers share.
struct Course {
    address: SocketAddr,
    database_url: String,
    /// The time that counts.
    from: Instant,
    upto: Instant,
    reservations: RefCell<Reservations>,
    /// Of transactions, in all runs.
    transacting: RefCell<Latencies>,
    /// Pairs that were done in the time that counts.
    pairs: RefCell<u64>,
}

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let served = stage.service(Path::Postgres, GAPLESS, &SETTINGS);
    stage.postgres.sql(&format!(
        "create table {}.own_document (reservation_id text primary key, number text not null)",
        served.schema()
    ));
    let mut course = Course {
        address: served.address,
        database_url: served.deployment.database_url().to_owned(),
        from: Instant::now(),
        upto: Instant::now(),
        reservations: RefCell::new(Reservations::hot(Then::Wait)),
        transacting: RefCell::default(),
        pairs: RefCell::default(),
    };
    let mut runs = Vec::with_capacity(bench.runs);
    for _ in 0..bench.runs {
        let (done, run) = carry_out(course, bench, &stage, &served);
        course = done;
        match run {
            Ok(run) => runs.push(run),
            Err(complaint) => section.breaches.push(complaint),
        }
    }
    section.rows.push(row(&runs));
    let reservations = course.reservations.borrow();
    tell(section, "a reservation before a transaction", &reservations.reserving);
    tell(section, "the transaction that confirms", &course.transacting.borrow());
    section.breaches.extend(served.complaints(&stage, &*reservations));
}

/// The rate of a run, and the cost of a pair by process, in microseconds of the processor.
type PairRun = (f64, Vec<(&'static str, f64)>);

fn row(runs: &[PairRun]) -> Row {
    let names: Vec<&str> = runs
        .first()
        .map(|(_, costs)| costs.iter().map(|(name, _)| *name).collect())
        .unwrap_or_default();
    let cost = |index: usize| median(runs.iter().map(|(_, costs)| costs[index].1));
    let costs: Vec<String> = names
        .iter()
        .enumerate()
        .map(|(index, name)| format!("{name} {}", figure(cost(index))))
        .collect();
    let rate = median(runs.iter().map(|(rate, _)| *rate));
    let row = Row::new("reserved over HTTP, confirmed in a transaction, pairs", rate, "/s");
    row.note(format!("CPU µs: {}", costs.join(", ")))
}

/// One run: the callers, and what the processes use meanwhile.
fn carry_out(
    course: Course,
    bench: &Bench,
    stage: &Stage,
    served: &Served,
) -> (Course, Result<PairRun, String>) {
    let mut processes = stage.processes();
    processes.extend([("generator", std::process::id()), ("service", served.id())]);
    let from = Instant::now() + bench.warm_up;
    let course = Course { from, upto: from + bench.measured, pairs: RefCell::default(), ..course };
    let course = Rc::new(course);
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build().expect("a runtime for the load");
    let local = LocalSet::new();
    let callers = bench.connections.min(CALLERS_MAX);
    let (ends, before, after) = local.block_on(&runtime, async {
        let begin = |_| tokio::task::spawn_local(call(Rc::clone(&course)));
        let tasks: Vec<_> = (0..callers).map(begin).collect();
        sleep(bench.warm_up).await;
        let before = Usage::now(&processes);
        sleep(bench.measured).await;
        let after = Usage::now(&processes);
        let mut ends = Vec::with_capacity(tasks.len());
        for task in tasks {
            ends.push(task.await.expect("a caller does not panic"));
        }
        (ends, before, after)
    });
    let Some(course) = Rc::into_inner(course) else { unreachable!("all callers have ended") };
    let pairs = *course.pairs.borrow();
    let costs = after.since(&before, pairs).into_iter().collect();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
    let rate = pairs as f64 / bench.measured.as_secs_f64();
    let run = ends.into_iter().collect::<Result<Vec<()>, String>>().map(|_| (rate, costs));
    (course, run)
}

/// A caller: reserves, then saves its document with the number, until the time is over.
async fn call(course: Rc<Course>) -> Result<(), String> {
    let mut service = Connection::new(course.address);
    let database = PgConnection::connect(&course.database_url).await;
    let mut database = database.map_err(|error| error.to_string())?;
    let mut request = Vec::new();
    while Instant::now() < course.upto {
        let id = reserve(&course, &mut service, &mut request).await?;
        let begun = Instant::now();
        save(&mut database, &id).await.map_err(|error| error.to_string())?;
        course.transacting.borrow_mut().note(begun.elapsed());
        course.reservations.borrow_mut().note_confirmed();
        *course.pairs.borrow_mut() +=
            u64::from((course.from..course.upto).contains(&Instant::now()));
    }
    let _ = database.close().await;
    Ok(())
}

/// Reserves a number, asking again while that is refused for now; its reservation's id.
async fn reserve(
    course: &Course,
    service: &mut Connection,
    request: &mut Vec<u8>,
) -> Result<String, String> {
    let asked = course.reservations.borrow_mut().reserve(request);
    loop {
        let answer = service.exchange(request).await.map_err(|error| error.to_string())?;
        if matches!(answer.status, 200 | 201) {
            let mut reservations = course.reservations.borrow_mut();
            reservations.answered(asked, answer)?;
            // Between the answer and this nobody else runs.
            return reservations.next_waiting().ok_or_else(|| "no reservation waits".to_owned());
        }
        if !matches!(answer.status, 429 | 503) {
            return Err(String::from_utf8_lossy(answer.body).into_owned());
        }
        sleep(REFUSED_PAUSE).await;
    }
}

/// One transaction: the caller's row, with the number that it confirms.
async fn save(database: &mut PgConnection, id: &str) -> Result<(), sqlx::Error> {
    let mut transaction = database.begin().await?;
    let number = sqlx::query_scalar(CONFIRM).bind(id).fetch_one(&mut *transaction);
    let _: String = number.await?;
    transaction.commit().await
}

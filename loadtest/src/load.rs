//! A load: connections that send the requests of some work, at a pace, for a time.
//!
//! Runs on one thread, so that the generator takes one core at most and its connections share
//! everything without a lock. A request that is refused for now is repeated until it is answered,
//! past the end of the load if necessary: only then can the numbers be checked for holes.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::client::{Answer, Connection};
use crate::examples::Examples;
use crate::figures::Latencies;
use crate::pace::{Pace, Pacer};
use crate::tally::Tally;

/// Wait before a refused request is sent again.
const REFUSED_PAUSE: Duration = Duration::from_millis(5);

/// Longest time that a request is repeated before it is given up.
const INSIST_MAX: Duration = Duration::from_secs(60);

/// What is requested, and what the answers hold.
pub(crate) trait Work {
    /// Writes the next request over the last one, and returns the counter that it is for.
    fn next(&mut self, request: &mut Vec<u8>) -> usize;

    /// Reads the answer of a successful request: how many numbers it gives; `None` if a part of it
    /// was refused for now.
    ///
    /// # Errors
    /// What is wrong with it, as text for people.
    fn answered(&mut self, counter: usize, answer: Answer<'_>) -> Result<Option<u64>, String>;

    /// What was received, as it is recorded.
    fn tally(&self) -> Option<&Tally> {
        None
    }

    /// Numbers received so far.
    fn received(&self) -> u64 {
        self.tally().map_or(0, Tally::numbers)
    }

    /// What is wrong with all the numbers together: those that came twice, and holes between them.
    fn findings(&self) -> Vec<String> {
        self.tally().map(Tally::findings).unwrap_or_default()
    }
}

/// Work that the connections of a load share.
pub(crate) type Shared = Rc<RefCell<dyn Work>>;

/// Work to be shared.
pub(crate) fn shared(work: impl Work + 'static) -> Shared {
    Rc::new(RefCell::new(work))
}

/// How hard, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Where the server listens.
    pub(crate) address: SocketAddr,
    /// How many connections.
    pub(crate) connections: usize,
    /// When requests start.
    pub(crate) pace: Pace,
    /// Time before anything counts.
    pub(crate) warm_up: Duration,
    /// Time that counts.
    pub(crate) measured: Duration,
}

/// The result of a load in the time that counts. Failures are those of the whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    /// Requests that were due to start in it.
    pub(crate) asked: u64,
    /// Requests answered successfully: for an open load, of those that were due to start in it.
    pub(crate) requests: u64,
    /// Requests answered successfully in the whole run.
    pub(crate) answered: u64,
    /// Numbers in the answers that came in it.
    pub(crate) numbers: u64,
    /// Its length.
    pub(crate) elapsed: Duration,
    /// From the (intended) start of a request to its answer, including earlier refusals.
    pub(crate) latencies: Latencies,
    /// Refusals that asked for a retry, by status.
    pub(crate) refusals: BTreeMap<u16, u64>,
    /// Connections that broke before an answer came, in the whole run; the request was repeated.
    pub(crate) broken: u64,
    /// Errors.
    pub(crate) failures: Examples,
}

impl Measured {
    /// Numbers per second, as answers came.
    pub(crate) fn rate(&self) -> f64 {
        self.per_second(self.numbers)
    }

    /// Requests per second, as they were due to start.
    pub(crate) fn rate_asked(&self) -> f64 {
        self.per_second(self.asked)
    }

    fn per_second(&self, count: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
        let count = count as f64;
        count / self.elapsed.as_secs_f64()
    }

    /// Refusals of all kinds.
    pub(crate) fn refused(&self) -> u64 {
        self.refusals.values().sum()
    }

    /// What was repeated, as text.
    pub(crate) fn repeats(&self) -> String {
        repeats(self.refused(), self.broken)
    }
}

/// How often something was repeated and why, as text.
pub(crate) fn repeats(refused: u64, broken: u64) -> String {
    format!("{refused} refusals, {broken} broken connections")
}

/// What the connections of a load share.
struct Course {
    work: Shared,
    measured: Measured,
    /// The time that counts.
    from: Instant,
    upto: Instant,
}

impl Load {
    /// Carries the load out. `beside` runs on the same thread meanwhile, and should do little.
    ///
    /// # Panics
    /// When the machine gives no runtime.
    pub(crate) fn run<T: Future>(&self, work: &Shared, beside: T) -> (Measured, T::Output) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("a runtime for the load");
        let local = LocalSet::new();
        local.block_on(&runtime, async {
            let load = self.carry_out(Rc::clone(work));
            tokio::join!(load, beside)
        })
    }

    /// Carries it out alongside another one, on the thread of that one.
    pub(crate) async fn carry_out(&self, work: Shared) -> Measured {
        let begun = Instant::now();
        let from = begun + self.warm_up;
        let upto = from + self.measured;
        let measured = Measured { elapsed: self.measured, ..Measured::default() };
        let course = Rc::new(RefCell::new(Course { work, measured, from, upto }));
        let pacer = match &self.pace {
            Pace::Closed => None,
            Pace::Open(phases) => Some(Rc::new(Pacer::start(phases.clone(), begun))),
        };
        let mut tasks = Vec::new();
        for _ in 0..self.connections {
            let connection = Connection::new(self.address);
            let task = serve(Rc::clone(&course), connection, pacer.clone());
            tasks.push(tokio::task::spawn_local(task));
        }
        for task in tasks {
            task.await.expect("a connection's task does not panic");
        }
        let Ok(course) = Rc::try_unwrap(course) else { unreachable!("all tasks have ended") };
        course.into_inner().measured
    }
}

/// One connection, from the start of the load to the answer of its last request.
async fn serve(course: Rc<RefCell<Course>>, mut connection: Connection, pacer: Option<Rc<Pacer>>) {
    let (from, upto) = (course.borrow().from, course.borrow().upto);
    let counts = from..upto;
    let mut request = Vec::new();
    loop {
        let start = match &pacer {
            Some(pacer) => pacer.next().await,
            None => Some(Instant::now()).filter(|now| *now < upto),
        };
        let Some(start) = start else { return };
        course.borrow_mut().measured.asked += u64::from(counts.contains(&start));
        let counter = course.borrow().work.borrow_mut().next(&mut request);
        let numbers = insist(&course, &mut connection, &request, counter).await;
        let now = Instant::now();
        // For an open load, all that were due to start within the time, the late ones included.
        let is_counted = counts.contains(if pacer.is_some() { &start } else { &now });
        let mut course = course.borrow_mut();
        let measured = &mut course.measured;
        match numbers {
            Ok(numbers) => {
                measured.answered += 1;
                measured.numbers += if counts.contains(&now) { numbers } else { 0 };
                if is_counted {
                    measured.requests += 1;
                    measured.latencies.note(now - start);
                }
            }
            Err(failure) => measured.failures.note(|| failure),
        }
    }
}

/// Repeats a request until it is answered; returns how many numbers it gave.
async fn insist(
    course: &RefCell<Course>,
    connection: &mut Connection,
    request: &[u8],
    counter: usize,
) -> Result<u64, String> {
    let begun = Instant::now();
    loop {
        let failure = match connection.exchange(request).await {
            Ok(answer) => {
                let course = &mut *course.borrow_mut();
                let numbers = match answer.status {
                    200 | 201 => course.work.borrow_mut().answered(counter, answer)?,
                    503 | 429 => None,
                    status => {
                        let body = String::from_utf8_lossy(answer.body);
                        return Err(format!("status {status}: {body}"));
                    }
                };
                if let Some(numbers) = numbers {
                    return Ok(numbers);
                }
                if (course.from..course.upto).contains(&Instant::now()) {
                    *course.measured.refusals.entry(answer.status).or_default() += 1;
                }
                format!("refused with {}", answer.status)
            }
            // The server closes idle connections; whatever happened to the request, it is repeated.
            Err(error) => {
                course.borrow_mut().measured.broken += 1;
                error.to_string()
            }
        };
        if begun.elapsed() > INSIST_MAX {
            return Err(format!("no number in {} s: {failure}", INSIST_MAX.as_secs()));
        }
        sleep(REFUSED_PAUSE).await;
    }
}

//! One caller that asks for everything at once, next to a steady one: how much longer the steady
//! one waits, and how much memory the process takes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::Bench;
use crate::client::Connection;
use crate::load::{Measured, Shared, shared};
use crate::report::{Goal, Row, Section};
use crate::stage::{Path, Served, Stage, resident_peak_mb};
use crate::work::{Ask, Known, Numbers};

/// Requests per second of the steady caller.
const RATE: f64 = 200.0;

/// The most that its p99 may become, in p99 of when it is alone.
const P99_MOST: f64 = 2.0;

/// The most memory that the process may take, in MiB.
const MEMORY_MOST_MB: f64 = 512.0;

/// Multiple of the usual measuring time: a percentile of few requests means little.
const LONGER: u32 = 5;

/// Longest wait of one exchange of the crowd.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait until the crowd has come.
const GATHERING_MAX: Duration = Duration::from_secs(30);

/// Pause of a client that was answered, or disconnected.
const PAUSE: Duration = Duration::from_millis(50);

/// How much of each kind, at once; and the size if only the numbers are checked.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    /// Connections that send most of a batch and stop.
    bodies: usize,
    /// Connections that ask for lists and never read.
    deaf: usize,
    /// Connections that read from the ledger.
    readers: usize,
    /// Connections that send batches of wrong values.
    wrong: usize,
    /// Batches of numbers that exist to be read.
    rows: usize,
}

const WHOLE: Crowd = Crowd { bodies: 1_200, deaf: 60, readers: 300, wrong: 4, rows: 10 };
const SMALL: Crowd = Crowd { bodies: 20, deaf: 4, readers: 8, wrong: 1, rows: 1 };

/// Documents of a batch.
const DOCUMENTS: usize = 1_000;

pub(super) fn run(bench: &Bench, section: &mut Section) {
    let stage = Stage::start(bench.placement);
    let served = stage.service(Path::Redis, "", &["auth.mode=on"]);
    served.deployment.apply(&[series_of_values(&served)]);
    let token = |name| served.deployment.ok(&["token", "create", name]).trim().to_owned();
    let (steady, crowd) = (token("steady"), token("crowd"));
    let crowd = Caller { address: served.address, token: crowd };
    let size = if bench.is_smoke { SMALL } else { WHOLE };
    section.breaches.extend(crowd.take(size.rows).err());
    let work: Shared = shared(Numbers::hot(Ask::One).known(Known::By(steady)));
    let load = Bench { measured: bench.measured * LONGER, ..bench.clone() };
    let load = load.load(served.address, load.open(RATE));

    let (alone, ()) = load.run(&work, async {});
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, gathered) = mpsc::channel();
    let crowd = size.gather(crowd, &stop, sender);
    // The crowd is measured, not its arrival: its clients take a core while they connect.
    let until = Instant::now() + GATHERING_MAX;
    let mut came = 0;
    while came < size.connections()
        && gathered.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
    {
        came += 1;
    }
    let (beside, ()) = load.run(&work, async {});
    stop.store(true, Ordering::Relaxed);
    crowd.join().expect("the crowd does not panic");

    tell(section, "a steady caller alone", &alone);
    tell(section, "beside a crowd", &beside);
    let p99 = |measured: &Measured| measured.latencies.percentile_ms(99.0);
    let row = Row::new("p99 beside a crowd", p99(&beside), "ms");
    let row = row.per(p99(&beside) / p99(&alone), "alone");
    let note =
        format!("{came} of {} connections had come; {}", size.connections(), beside.repeats());
    section.rows.push(row.goal(Goal::AtMost(P99_MOST)).note(note));
    if let Some(peak) = resident_peak_mb(served.id()) {
        let row = Row::new("memory of the service, at most", peak, "MiB");
        section.rows.push(row.goal(Goal::AtMost(MEMORY_MOST_MB)));
    }
    let work = work.borrow();
    section.breaches.extend(work.findings());
    let numbers = work.received() + (size.rows * DOCUMENTS) as u64;
    section.breaches.extend(served.await_journal(&stage, numbers).err());
}

fn tell(section: &mut Section, what: &str, measured: &Measured) {
    section.judge(measured);
    section.rows.extend([50.0, 99.0].map(|percent| {
        let latency_ms = measured.latencies.percentile_ms(percent);
        Row::new(format!("{what}, p{percent}"), latency_ms, "ms")
    }));
}

/// A file with a series one variable of which has many values.
fn series_of_values(served: &Served) -> std::path::PathBuf {
    let values: Vec<String> = (0..1_000).map(|i| format!("\"{i:0>50}\"")).collect();
    let text = format!(
        "[[series]]\ncode = \"WIDE\"\nname = \"WIDE\"\ntemplate = \"WIDE-{{V}}-{{SEQ:6}}\"\n\
         serves = {{ types = [\"WIDE\"] }}\n[series.variables]\n\
         V = {{ required = true, values = [{}] }}\n[[series.serials]]\n\
         counter = [\"type\", \"V\"]\n",
        values.join(", ")
    );
    let file = served.deployment.path("wide.toml");
    std::fs::write(&file, text).expect("series file");
    file
}

impl Crowd {
    /// How many connections it has.
    fn connections(self) -> usize {
        self.bodies + self.deaf + self.readers + self.wrong
    }

    /// The crowd, on a thread of its own, until it is stopped; counts the connected clients.
    fn gather(self, one: Caller, stop: &Arc<AtomicBool>, came: Sender<()>) -> JoinHandle<()> {
        let stop = Arc::clone(stop);
        std::thread::spawn(move || {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let runtime = builder.enable_all().build().expect("a runtime for the crowd");
            let local = LocalSet::new();
            local.block_on(&runtime, async {
                // Similar to many values, equal to none.
                let wrong = Arc::new(one.batch("wrong", &"0".repeat(124)));
                let body = Arc::new(one.unfinished());
                for i in 0..self.bodies {
                    let again = TIMEOUT.mul_f64(1.0 + i as f64 / self.bodies as f64);
                    let came = came.clone();
                    tokio::task::spawn_local(hold(one.address, Arc::clone(&body), again, came));
                }
                for i in 0..self.deaf {
                    let list = ["configs", "configs/WIDE/versions", "numbers?user_id=crowd"][i % 3];
                    let asked = one.get(list).repeat(200);
                    let came = came.clone();
                    tokio::task::spawn_local(hold(one.address, Arc::new(asked), TIMEOUT, came));
                }
                for i in 0..self.readers {
                    let list = ["numbers?user_id=crowd&limit=1000", "numbers?service=crowd"][i % 2];
                    let (asked, came) = (Arc::new(one.get(list)), came.clone());
                    tokio::task::spawn_local(ask(one.address, asked, came));
                }
                for _ in 0..self.wrong {
                    let (asked, came) = (Arc::clone(&wrong), came.clone());
                    tokio::task::spawn_local(ask(one.address, asked, came));
                }
                while !stop.load(Ordering::Relaxed) {
                    sleep(PAUSE).await;
                }
            });
        })
    }
}

/// The caller that asks for everything.
struct Caller {
    address: SocketAddr,
    token: String,
}

impl Caller {
    fn get(&self, list: &str) -> Vec<u8> {
        let token = &self.token;
        format!(
            "GET /api/v1/document-numbering/{list} HTTP/1.1\r\nhost: localhost\r\n\
             authorization: Bearer {token}\r\n\r\n"
        )
        .into_bytes()
    }

    fn post(&self, length: usize, body: &str) -> Vec<u8> {
        let token = &self.token;
        format!(
            "POST /api/v1/document-numbering/batches HTTP/1.1\r\nhost: localhost\r\n\
             authorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    /// The greater part of a batch.
    fn unfinished(&self) -> Vec<u8> {
        self.post(1_040_000, &format!("{{\"documents\":[{}", " ".repeat(1_030_000)))
    }

    /// A batch whose documents have a value.
    fn batch(&self, name: &str, value: &str) -> Vec<u8> {
        let document = |i: usize| {
            format!(r#"{{"document_id":"{name}-{i}","type":"WIDE","context":{{"V":"{value}"}}}}"#)
        };
        let documents: Vec<String> = (0..DOCUMENTS).map(document).collect();
        let body = format!("{{\"documents\":[{}]}}", documents.join(","));
        self.post(body.len(), &body)
    }

    /// Takes the numbers of `batches` batches.
    fn take(&self, batches: usize) -> Result<(), String> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let mut connection = Connection::new(self.address);
            for batch in 0..batches {
                let request = self.batch(&format!("right-{batch}"), &format!("{batch:0>50}"));
                let answer = connection.exchange(&request).await.map_err(|e| e.to_string())?;
                if answer.status != 200 {
                    return Err(String::from_utf8_lossy(answer.body).into_owned());
                }
            }
            Ok(())
        })
    }
}

/// Sends as much as is accepted, and holds the connection; repeats after a pause if it is closed.
async fn hold(address: SocketAddr, bytes: Arc<Vec<u8>>, again: Duration, came: Sender<()>) {
    let mut has_come = false;
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            count_once(&mut has_come, &came);
            let _ = timeout(TIMEOUT, stream.write_all(&bytes)).await;
            let _ = timeout(TIMEOUT, stream.readable()).await;
            // The request is never read.
            sleep(again).await;
        }
        sleep(PAUSE).await;
    }
}

/// Sends requests again and again, and reads the answers.
async fn ask(address: SocketAddr, bytes: Arc<Vec<u8>>, came: Sender<()>) {
    let mut connection = Connection::new(address);
    let mut has_come = false;
    loop {
        let answered = timeout(TIMEOUT, connection.exchange(&bytes)).await;
        count_once(&mut has_come, &came);
        if !answered.is_ok_and(|answer| answer.is_ok()) {
            connection = Connection::new(address);
            sleep(PAUSE).await;
        }
    }
}

fn count_once(has_come: &mut bool, came: &Sender<()>) {
    if !std::mem::replace(has_come, true) {
        // Late clients are not waited for.
        let _ = came.send(());
    }
}

//! What a scenario runs on: a private Redis and PostgreSQL, and processes of the service and of the
//! baselines in front of them.
//!
//! Each scenario has servers of its own, so that none finds the tables and the dirty pages of the
//! previous one. Everything ends with the stage.

pub(crate) mod filling;
mod process;
mod served;
mod sizes;

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::postgres::Postgres;
use testkit::process::{Process, free_port, keep_to};
use testkit::redis::Redis;
use testkit::service::Deployment;

use crate::baselines::Baseline;
use crate::work::{LINE_DIGITS, SERIES_MAX};
use crate::{program_at, series};
pub(crate) use process::{Usage, redis_bytes, resident_mb, resident_peak_mb};
pub(crate) use served::{Served, metric};
pub(crate) use sizes::{Growth, Sizes};

/// Options of Redis: those that the service requires.
const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];

/// Longest wait for a baseline to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The servers of one scenario.
pub(crate) struct Stage {
    pub(crate) redis: Redis,
    pub(crate) postgres: Postgres,
    folder: tempfile::TempDir,
    /// Schemas so far, each of which is the prefix of its keys in Redis too.
    schemas: Cell<usize>,
    placement: Placement,
}

/// Which cores the processes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// All, as the kernel assigns them.
    Free,
    /// The first core is for what answers, the others are for the stores and the generator.
    Placed,
}

impl Placement {
    /// Reserves the first core for what answers; processes started from now on avoid it, too.
    pub(crate) fn begin(self) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if self == Placement::Placed && cores > 1 {
            keep_to(std::process::id(), &format!("1-{}", cores - 1));
        }
    }

    /// Gives the first core to a process that answers.
    fn give_core(self, id: u32) {
        if self == Placement::Placed {
            keep_to(id, "0");
        }
    }
}

/// Where a service keeps its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Redis takes them, PostgreSQL remembers them.
    Redis,
    /// PostgreSQL alone.
    Postgres,
    /// An SQLite file alone.
    Sqlite,
}

impl Stage {
    /// Starts stores.
    pub(crate) fn start(placement: Placement) -> Self {
        Stage {
            placement,
            redis: Redis::start_with(&REDIS_OPTIONS),
            postgres: Postgres::start_for_load(),
            folder: tempfile::tempdir().expect("temporary folder"),
            schemas: Cell::default(),
        }
    }

    /// A name of a schema, and of keys, that was not used before.
    fn new_schema(&self) -> String {
        let index = self.schemas.replace(self.schemas.get() + 1);
        format!("load_{index}")
    }

    /// A service with a ledger of its own and the series of loads, ready for requests. `series` are
    /// further lines of each series; the service's settings are `name=value`.
    pub(crate) fn service(&self, path: Path, series: &str, settings: &[&str]) -> Served {
        let this = std::env::current_exe().expect("the path of this executable");
        self.service_of(this, path, series, settings)
    }

    /// A service on Redis and PostgreSQL with one more series, whose numbers are gapless: it
    /// follows those that loads spread over.
    pub(crate) fn mixed_service(&self, settings: &[&str]) -> Served {
        let this = std::env::current_exe().expect("the path of this executable");
        let text = all_series("") + &series_of(SERIES_MAX, "policy = \"gapless\"");
        self.start_service(this, Path::Redis, &text, settings)
    }

    /// The same by another build of this executable.
    pub(crate) fn service_of(
        &self,
        build: PathBuf,
        path: Path,
        series: &str,
        settings: &[&str],
    ) -> Served {
        self.start_service(build, path, &all_series(series), settings)
    }

    /// A service of a build, on a ledger with the series of a file.
    fn start_service(&self, build: PathBuf, path: Path, series: &str, settings: &[&str]) -> Served {
        let schema = self.new_schema();
        let prefix = format!("redis.prefix={schema}");
        let program = program_at(build, &[settings, &[&prefix]].concat());
        let redis_url = (path == Path::Redis).then(|| self.redis.url());
        let mut deployment = match path {
            Path::Sqlite => Deployment::sqlite(program, None),
            _ => Deployment::new(program, &self.postgres.url(&schema), redis_url.as_deref()),
        };
        // Every request is logged, as is the default; the disk belongs to the stores.
        deployment.log = Some(PathBuf::from("/dev/null"));
        let file = deployment.path("series.toml");
        std::fs::write(&file, series).expect("series file");
        deployment.apply(&[file]);
        let schema = (path != Path::Sqlite).then_some(schema);
        let served = Served::start(deployment, schema);
        self.placement.give_core(served.id());
        served
    }

    /// Starts a baseline on the same stores: its process, and where that listens.
    pub(crate) fn baseline(&self, baseline: Baseline) -> (Process, SocketAddr) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let program = std::env::current_exe().expect("the path of this executable");
        let arguments = [
            "baseline",
            &baseline.name(),
            "--listen",
            &address.to_string(),
            "--redis-url",
            &self.redis.url(),
            "--database-url",
            &self.postgres.url(&self.new_schema()),
        ];
        let log = self.folder.path().join(baseline.name());
        let process = Process::start(&program, &arguments.map(str::to_owned), &log);
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect(address).is_err() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "{} does not start: {}", baseline.name(), said());
            std::thread::park_timeout(Duration::from_millis(10));
        }
        self.placement.give_core(process.id());
        (process, address)
    }

    /// The processes of the stores, by name.
    pub(crate) fn processes(&self) -> Vec<(&'static str, u32)> {
        vec![("Redis", self.redis.id()), ("PostgreSQL", self.postgres.id())]
    }
}

/// The series of loads, which differ only in their number, each with these settings.
fn all_series(settings: &str) -> String {
    (0..SERIES_MAX).map(|i| series_of(i, settings)).collect()
}

/// One of them.
fn series_of(i: usize, settings: &str) -> String {
    let template = format!("L{i}-{{LINE}}-{{SEQ:12}}");
    series(&format!("LOAD{i}"), &template, LINE_DIGITS, settings)
}

//! What a scenario runs on: a private Redis and PostgreSQL, and processes of the service and of the
//! baselines before them.
//!
//! Each scenario has servers of its own, so that none finds the tables and the dirty pages of the
//! one before. Everything ends with the stage.

mod process;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use harness::postgres::Postgres;
use harness::process::{Process, free_port};
use harness::redis::Redis;
use harness::service::{Deployment, Program, Service};

use crate::baselines::Baseline;
use crate::work::{LINE_DIGITS, SERIES_MAX};
pub(crate) use process::Usage;

/// Options of Redis: what the service asks for.
const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];

/// Longest wait for a baseline to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Settings of the service that stand in a list: `name=value`.
pub(crate) type Settings<'a> = &'a [&'a str];

/// The servers of one scenario.
pub(crate) struct Stage {
    program: Program,
    pub(crate) postgres: Postgres,
    pub(crate) redis: Redis,
    folder: tempfile::TempDir,
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

/// A service under load.
pub(crate) struct Served {
    _deployment: Deployment,
    service: Service,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

/// A baseline under load.
pub(crate) struct Measuring {
    process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Stage {
    /// Starts the stores.
    pub(crate) fn start(program: &Program) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let redis = Redis::start_with(&REDIS_OPTIONS);
        let program = program.clone();
        Stage { program, postgres: Postgres::start_for_load(), redis, folder }
    }

    /// A service with a ledger of its own, its series applied, ready to be asked.
    pub(crate) fn service(&self, path: Path, policy: &str, settings: Settings<'_>) -> Served {
        let deployment = self.deployment(path, policy, settings);
        let service = deployment.serve();
        let address = service.url.trim_start_matches("http://").parse().expect("an address");
        Served { _deployment: deployment, service, address }
    }

    /// A service's ledger and settings, with the series of loads in it.
    fn deployment(&self, path: Path, policy: &str, settings: Settings<'_>) -> Deployment {
        let mut program = self.program.clone();
        let flags = settings.iter().flat_map(|setting| ["--setting", setting]);
        program.arguments.extend(flags.map(str::to_owned));
        let redis_url = (path == Path::Redis).then(|| self.redis.url());
        let mut deployment = match path {
            Path::Sqlite => Deployment::sqlite(program, None),
            _ => Deployment::new(program, &self.postgres.url("ledger"), redis_url.as_deref()),
        };
        // Every request is logged, as it is by default; the disk belongs to the stores.
        deployment.log = Some(PathBuf::from("/dev/null"));
        let file = deployment.path("series.toml");
        std::fs::write(&file, series(policy)).expect("series file");
        deployment.apply(&[file]);
        deployment
    }

    /// A service and the stores, whose time is told by these names.
    pub(crate) fn processes(&self, service: &Served) -> Vec<(&'static str, u32)> {
        let stores = [("Redis", self.redis.id()), ("PostgreSQL", self.postgres.id())];
        [("server", service.service.id())].into_iter().chain(stores).collect()
    }

    /// Starts a baseline on the same stores.
    pub(crate) fn baseline(&self, baseline: Baseline) -> Measuring {
        let port = free_port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let program = std::env::current_exe().expect("the path of this executable");
        let arguments = [
            "baseline",
            baseline.name(),
            "--listen",
            &address.to_string(),
            "--redis-url",
            &self.redis.url(),
            "--database-url",
            &self.postgres.url(baseline.schema()),
        ];
        let log = self.folder.path().join(baseline.name());
        let process = Process::start(&program, &arguments.map(str::to_owned), &log);
        let deadline = Instant::now() + START_LIMIT;
        while TcpStream::connect(address).is_err() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(Instant::now() < deadline, "{} does not start: {}", baseline.name(), said());
            std::thread::park_timeout(Duration::from_millis(10));
        }
        Measuring { process, address }
    }
}

impl Measuring {
    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// The series of loads, which differ in their number alone.
fn series(policy: &str) -> String {
    let one = |i: usize| {
        format!(
            "[[series]]\ncode = \"LOAD{i}\"\nname = \"LOAD{i}\"\npolicy = \"{policy}\"\n\
             template = \"L{i}-{{LINE}}-{{SEQ:12}}\"\nserves = {{ types = [\"LOAD{i}\"] }}\n\
             [series.variables]\n\
             LINE = {{ required = true, alphabet = \"0-9\", width = {LINE_DIGITS} }}\n\
             [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n"
        )
    };
    (0..SERIES_MAX).map(one).collect()
}

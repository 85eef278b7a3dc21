//! What a scenario runs on: a private Redis and PostgreSQL, and processes of the service and of the
//! baselines before them.
//!
//! Each scenario has servers of its own, so that none finds the tables and the dirty pages of the
//! one before. Everything ends with the stage.

pub(crate) mod filling;
mod process;
mod served;

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use harness::postgres::Postgres;
use harness::process::{Process, free_port};
use harness::proxy::Proxy;
use harness::redis::Redis;
use harness::service::{Deployment, Program};

use crate::baselines::Baseline;
use crate::work::{LINE_DIGITS, SERIES_MAX};
pub(crate) use process::{Usage, resident_mb, resident_peak_mb};
pub(crate) use served::{Served, metric};

/// Options of Redis: what the service asks for.
const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];

/// Longest wait for a baseline to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The servers of one scenario.
pub(crate) struct Stage {
    program: Program,
    pub(crate) postgres: Postgres,
    pub(crate) redis: Redis,
    /// Before Redis and PostgreSQL, where a network is wanted between them and the others.
    links: Option<[Proxy; 2]>,
    folder: tempfile::TempDir,
    /// Ledgers so far: each has a schema and a prefix of its own.
    ledgers: Cell<usize>,
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

/// A baseline under load.
pub(crate) struct Measuring {
    process: Process,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Stage {
    /// Starts the stores; whatever is sent to or from them arrives so much later.
    pub(crate) fn start(program: &Program, latency: Duration) -> Self {
        let redis = Redis::start_with(&REDIS_OPTIONS);
        let postgres = Postgres::start_for_load();
        let links = (!latency.is_zero()).then(|| {
            let links = [Proxy::start(redis.port()), Proxy::start(postgres.port())];
            links.iter().for_each(|link| link.delay(latency));
            links
        });
        Stage {
            program: program.clone(),
            postgres,
            redis,
            links,
            folder: tempfile::tempdir().expect("temporary folder"),
            ledgers: Cell::new(0),
        }
    }

    /// A service with a ledger of its own, the series of loads in it, ready to be asked; its settings
    /// are `name=value`.
    pub(crate) fn service(&self, path: Path, policy: &str, settings: &[&str]) -> Served {
        let ledger = self.ledgers.replace(self.ledgers.get() + 1);
        let schema = format!("ledger_{ledger}");
        self.service_at(path, policy, settings, &self.database_url(&schema), schema)
    }

    /// The same, its ledger behind another address.
    pub(crate) fn service_at(
        &self,
        path: Path,
        policy: &str,
        settings: &[&str],
        database_url: &str,
        schema: String,
    ) -> Served {
        let mut program = self.program.clone();
        let prefix = format!("redis.prefix={schema}");
        let settings = settings.iter().copied().chain([prefix.as_str()]);
        let flags = settings.flat_map(|setting| ["--setting", setting]);
        program.arguments.extend(flags.map(str::to_owned));
        let redis_url = (path == Path::Redis).then(|| self.redis_url());
        let mut deployment = match path {
            Path::Sqlite => Deployment::sqlite(program, None),
            _ => Deployment::new(program, database_url, redis_url.as_deref()),
        };
        // Every request is logged, as it is by default; the disk belongs to the stores.
        deployment.log = Some(PathBuf::from("/dev/null"));
        let file = deployment.path("series.toml");
        std::fs::write(&file, series(policy)).expect("series file");
        deployment.apply(&[file]);
        let schema = (path != Path::Sqlite).then_some(schema);
        Served::start(Rc::new(deployment), schema)
    }

    /// Starts a baseline on the same stores.
    pub(crate) fn baseline(&self, baseline: Baseline) -> Measuring {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let program = std::env::current_exe().expect("the path of this executable");
        let arguments = [
            "baseline",
            baseline.name(),
            "--listen",
            &address.to_string(),
            "--redis-url",
            &self.redis_url(),
            "--database-url",
            &self.database_url(&baseline.name().replace('-', "_")),
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

    /// The processes of the stores, by name.
    pub(crate) fn stores(&self) -> Vec<(&'static str, u32)> {
        vec![("Redis", self.redis.id()), ("PostgreSQL", self.postgres.id())]
    }

    fn redis_url(&self) -> String {
        self.links.as_ref().map_or_else(|| self.redis.url(), |links| links[0].redis_url())
    }

    fn database_url(&self, schema: &str) -> String {
        let port =
            self.links.as_ref().map_or_else(|| self.postgres.port(), |links| links[1].port());
        self.postgres.url_by(port, schema)
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

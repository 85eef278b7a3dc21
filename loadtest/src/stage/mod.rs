//! What a scenario runs on: a private Redis and PostgreSQL, and processes of the service and of the
//! baselines before them.
//!
//! Each scenario has servers of its own, so that none finds the tables and the dirty pages of the
//! one before. Everything ends with the stage.

pub(crate) mod filling;
mod process;
mod served;
mod stores;

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use harness::postgres::Postgres;
use harness::process::{Process, free_port};
use harness::redis::Redis;
use harness::service::{Deployment, Program};

use crate::baselines::Baseline;
use crate::work::{LINE_DIGITS, SERIES_MAX};
pub(crate) use process::{Usage, resident_mb, resident_peak_mb};
pub(crate) use served::{Served, metric};
pub(crate) use stores::Given;
use stores::Stores;

/// Ledgers of this process so far: each has a name of its own, on whatever stores.
static LEDGERS: AtomicUsize = AtomicUsize::new(0);

/// Longest wait for a baseline to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The servers of one scenario.
pub(crate) struct Stage {
    program: Program,
    stores: Stores,
    folder: tempfile::TempDir,
    /// Schemas that were made, which are the prefixes of keys too.
    schemas: RefCell<Vec<String>>,
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
    /// Starts stores; whatever is sent to or from them arrives so much later.
    pub(crate) fn start(program: &Program, latency: Duration) -> Self {
        Self::on(program, Stores::start(latency))
    }

    /// On stores that were there before.
    pub(crate) fn on_given(program: &Program, given: Given) -> Self {
        Self::on(program, Stores::Given(given))
    }

    fn on(program: &Program, stores: Stores) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        Stage { program: program.clone(), stores, folder, schemas: RefCell::default() }
    }

    /// The stage's own PostgreSQL.
    ///
    /// # Panics
    /// On stores that were given: a scenario that asks for it does not run there.
    pub(crate) fn postgres(&self) -> &Postgres {
        let Stores::Own { postgres, .. } = &self.stores else { unreachable!("stores were given") };
        postgres
    }

    /// The stage's own Redis.
    ///
    /// # Panics
    /// On stores that were given: a scenario that asks for it does not run there.
    pub(crate) fn redis(&self) -> &Redis {
        let Stores::Own { redis, .. } = &self.stores else { unreachable!("stores were given") };
        redis
    }

    /// What a statement prints.
    pub(crate) fn sql(&self, statement: &str) -> String {
        self.stores.sql(statement)
    }

    /// A name of a schema, and of keys, that nobody had before.
    pub(crate) fn new_schema(&self) -> String {
        let index = LEDGERS.fetch_add(1, Ordering::Relaxed);
        let schema = format!("load_{}_{index}", std::process::id());
        self.schemas.borrow_mut().push(schema.clone());
        schema
    }

    /// A service with a ledger of its own, the series of loads in it, ready to be asked. `series`
    /// are lines that each series has besides; the service's settings are `name=value`.
    pub(crate) fn service(&self, path: Path, series: &str, settings: &[&str]) -> Served {
        let schema = self.new_schema();
        let database_url = self.stores.database_url(&schema);
        self.service_at(path, series, settings, &database_url, schema)
    }

    /// The same, its ledger behind another address.
    pub(crate) fn service_at(
        &self,
        path: Path,
        series: &str,
        settings: &[&str],
        database_url: &str,
        schema: String,
    ) -> Served {
        let mut program = self.program.clone();
        let prefix = format!("redis.prefix={schema}");
        let settings = settings.iter().copied().chain([prefix.as_str()]);
        let flags = settings.flat_map(|setting| ["--setting", setting]);
        program.arguments.extend(flags.map(str::to_owned));
        let redis_url = (path == Path::Redis).then(|| self.stores.redis_url());
        let mut deployment = match path {
            Path::Sqlite => Deployment::sqlite(program, None),
            _ => Deployment::new(program, database_url, redis_url.as_deref()),
        };
        // Every request is logged, as it is by default; the disk belongs to the stores.
        deployment.log = Some(PathBuf::from("/dev/null"));
        let file = deployment.path("series.toml");
        std::fs::write(&file, all_series(series)).expect("series file");
        deployment.apply(&[file]);
        let schema = (path != Path::Sqlite).then_some(schema);
        Served::start(Rc::new(deployment), schema)
    }

    /// Starts a baseline on the same stores.
    pub(crate) fn baseline(&self, baseline: Baseline) -> Measuring {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let program = std::env::current_exe().expect("the path of this executable");
        let schema = self.new_schema();
        let arguments = [
            "baseline",
            baseline.name(),
            "--listen",
            &address.to_string(),
            "--redis-url",
            &self.stores.redis_url(),
            "--database-url",
            &self.stores.database_url(&schema),
            "--prefix",
            &schema,
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

    /// The processes of the stage's own stores, by name.
    pub(crate) fn processes(&self) -> Vec<(&'static str, u32)> {
        match &self.stores {
            Stores::Own { postgres, redis, .. } => {
                vec![("Redis", redis.id()), ("PostgreSQL", postgres.id())]
            }
            Stores::Given(_) => Vec::new(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.schemas.borrow().iter().for_each(|schema| self.stores.forget(schema));
    }
}

impl Measuring {
    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

/// The series of loads, which differ in their number alone, each with these settings.
fn all_series(settings: &str) -> String {
    let one = |i: usize| {
        format!(
            "[[series]]\ncode = \"LOAD{i}\"\nname = \"LOAD{i}\"\n{settings}\n\
             template = \"L{i}-{{LINE}}-{{SEQ:12}}\"\nserves = {{ types = [\"LOAD{i}\"] }}\n\
             [series.variables]\n\
             LINE = {{ required = true, alphabet = \"0-9\", width = {LINE_DIGITS} }}\n\
             [[series.serials]]\ncounter = [\"type\", \"LINE\"]\n"
        )
    };
    (0..SERIES_MAX).map(one).collect()
}

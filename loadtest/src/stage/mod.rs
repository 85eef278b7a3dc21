//! What a scenario runs on: a private Redis and PostgreSQL, and processes of the service and of the
//! baselines before them.
//!
//! Each scenario has servers of its own, so that none finds the tables and the dirty pages of the
//! one before. Everything ends with the stage.

pub(crate) mod filling;
mod process;
mod served;

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use harness::postgres::{self, Postgres};
use harness::process::{Process, free_port};
use harness::proxy::Proxy;
use harness::redis::{self, Redis};
use harness::service::Deployment;

use crate::baselines::Baseline;
use crate::work::{LINE_DIGITS, SERIES_MAX};
use crate::{program, series};
pub(crate) use process::{Usage, redis_bytes, resident_mb, resident_peak_mb};
pub(crate) use served::{Served, metric};

/// Options of Redis: what the service asks for.
const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];

/// Keys removed in one call.
const KEYS_MAX: usize = 1_000;

/// Ledgers of this process so far: each has a name of its own, on whatever stores.
static LEDGERS: AtomicUsize = AtomicUsize::new(0);

/// Longest wait for a baseline to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The servers of one scenario.
pub(crate) struct Stage {
    /// Where services and baselines find the stores.
    at: Given,
    /// Stores that were started for it and go with it; none where they were given.
    own: Option<Own>,
    folder: tempfile::TempDir,
    /// Schemas that were made, which are the prefixes of keys too.
    schemas: RefCell<Vec<String>>,
}

/// Stores that were there before, and stay.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Where Redis is.
    pub(crate) redis_url: String,
    /// Where PostgreSQL is, with a database in which schemas may be made.
    pub(crate) database_url: String,
}

struct Own {
    postgres: Box<Postgres>,
    redis: Redis,
    /// Before both, where a network is wanted between them and the others.
    links: Option<[Proxy; 2]>,
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
    pub(crate) fn start(latency: Duration) -> Self {
        Self::on_own((!latency.is_zero()).then_some(latency))
    }

    /// The same with links before them in any case.
    pub(crate) fn start_linked(latency: Duration) -> Self {
        Self::on_own(Some(latency))
    }

    /// On stores that were there before.
    pub(crate) fn on_given(at: Given) -> Self {
        Self::on(at, None)
    }

    fn on(at: Given, own: Option<Own>) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        Stage { at, own, folder, schemas: RefCell::default() }
    }

    fn on_own(latency: Option<Duration>) -> Self {
        let redis = Redis::start_with(&REDIS_OPTIONS);
        let postgres = Box::new(Postgres::start_for_load());
        let links = latency.map(|latency| {
            let links = [redis.port(), postgres.port()].map(Proxy::start);
            links.iter().for_each(|link| link.delay(latency));
            links
        });
        let port = links.as_ref().map_or(postgres.port(), |[_, link]| link.port());
        let at = Given {
            redis_url: links.as_ref().map_or_else(|| redis.url(), |[link, _]| link.redis_url()),
            database_url: format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable"),
        };
        Self::on(at, Some(Own { postgres, redis, links }))
    }

    fn own(&self) -> &Own {
        self.own.as_ref().expect("stores were given: what needs its own does not run there")
    }

    /// The stage's own PostgreSQL.
    ///
    /// # Panics
    /// On stores that were given: a scenario that asks for it does not run there.
    pub(crate) fn postgres(&self) -> &Postgres {
        &self.own().postgres
    }

    /// The stage's own Redis.
    ///
    /// # Panics
    /// As for PostgreSQL.
    pub(crate) fn redis(&self) -> &Redis {
        &self.own().redis
    }

    /// The link before PostgreSQL.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn link_to_postgres(&self) -> &Proxy {
        let [_, link] = self.own().links.as_ref().expect("a stage with links");
        link
    }

    /// What a statement prints.
    pub(crate) fn sql(&self, statement: &str) -> String {
        match &self.own {
            Some(own) => own.postgres.sql(statement),
            None => postgres::sql_at(&self.at.database_url, statement),
        }
    }

    /// Makes a schema; the URL of it.
    fn database_url(&self, schema: &str) -> String {
        self.sql(&format!("create schema if not exists {schema}"));
        let url = &self.at.database_url;
        let joint = if url.contains('?') { '&' } else { '?' };
        format!("{url}{joint}options=-csearch_path={schema}")
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
        let prefix = format!("redis.prefix={schema}");
        let program = program(&[settings, &[&prefix]].concat());
        let redis_url = (path == Path::Redis).then_some(self.at.redis_url.as_str());
        let mut deployment = match path {
            Path::Sqlite => Deployment::sqlite(program, None),
            _ => Deployment::new(program, &self.database_url(&schema), redis_url),
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
            &baseline.name(),
            "--listen",
            &address.to_string(),
            "--redis-url",
            &self.at.redis_url,
            "--database-url",
            &self.database_url(&schema),
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
        let of = |own: &Own| vec![("Redis", own.redis.id()), ("PostgreSQL", own.postgres.id())];
        self.own.as_ref().map(of).unwrap_or_default()
    }
}

impl Drop for Stage {
    /// Removes schemas, and keys of their names, from stores that stay.
    fn drop(&mut self) {
        if self.own.is_some() {
            return;
        }
        for name in self.schemas.take() {
            self.sql(&format!("drop schema if exists {name} cascade"));
            let cli = |arguments: &[&str]| redis::cli_at(&self.at.redis_url, arguments);
            let keys = cli(&["--scan", "--pattern", &format!("{name}:*")]);
            let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
            for some in keys.chunks(KEYS_MAX) {
                cli(&[&["unlink"], some].concat());
            }
        }
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
        let template = format!("L{i}-{{LINE}}-{{SEQ:12}}");
        series(&format!("LOAD{i}"), &template, LINE_DIGITS, settings)
    };
    (0..SERIES_MAX).map(one).collect()
}

//! Redis and PostgreSQL under a stage: its own, or those that somebody has named.

use std::time::Duration;

use harness::postgres::{self, Postgres};
use harness::proxy::Proxy;
use harness::redis::{self, Redis};

/// Options of Redis: what the service asks for.
const REDIS_OPTIONS: [&str; 4] = ["--appendonly", "yes", "--maxmemory-policy", "noeviction"];

/// Keys removed in one call.
const KEYS_MAX: usize = 1_000;

/// Stores that were there before, and stay.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Where Redis is.
    pub(crate) redis_url: String,
    /// Where PostgreSQL is, with a database in which schemas may be made.
    pub(crate) database_url: String,
}

/// Stores of a stage.
pub(super) enum Stores {
    /// Started for it, gone with it.
    Own {
        postgres: Box<Postgres>,
        redis: Redis,
        /// Before Redis and PostgreSQL, where a network is wanted between them and the others.
        links: Option<[Proxy; 2]>,
    },
    Given(Given),
}

impl Stores {
    /// Starts stores; whatever is sent to or from them arrives so much later.
    pub(super) fn start(latency: Duration) -> Self {
        let redis = Redis::start_with(&REDIS_OPTIONS);
        let postgres = Box::new(Postgres::start_for_load());
        let links = (!latency.is_zero()).then(|| {
            let links = [Proxy::start(redis.port()), Proxy::start(postgres.port())];
            links.iter().for_each(|link| link.delay(latency));
            links
        });
        Stores::Own { postgres, redis, links }
    }

    pub(super) fn redis_url(&self) -> String {
        match self {
            Stores::Own { links: Some([link, _]), .. } => link.redis_url(),
            Stores::Own { redis, .. } => redis.url(),
            Stores::Given(given) => given.redis_url.clone(),
        }
    }

    /// Makes a schema; the URL of it.
    pub(super) fn database_url(&self, schema: &str) -> String {
        match self {
            Stores::Own { links: Some([_, link]), postgres, .. } => {
                postgres.url_by(link.port(), schema)
            }
            Stores::Own { postgres, .. } => postgres.url(schema),
            Stores::Given(Given { database_url, .. }) => {
                self.sql(&format!("create schema if not exists {schema}"));
                let joint = if database_url.contains('?') { '&' } else { '?' };
                format!("{database_url}{joint}options=-csearch_path={schema}")
            }
        }
    }

    /// What a statement prints.
    pub(super) fn sql(&self, statement: &str) -> String {
        match self {
            Stores::Own { postgres, .. } => postgres.sql(statement),
            Stores::Given(given) => postgres::sql_at(&given.database_url, statement),
        }
    }

    /// Removes a schema and the keys of its name from stores that stay.
    pub(super) fn forget(&self, name: &str) {
        let Stores::Given(Given { redis_url, .. }) = self else { return };
        self.sql(&format!("drop schema if exists {name} cascade"));
        let keys = redis::cli_at(redis_url, &["--scan", "--pattern", &format!("{name}:*")]);
        let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
        for some in keys.chunks(KEYS_MAX) {
            redis::cli_at(redis_url, &[&["unlink"], some].concat());
        }
    }
}

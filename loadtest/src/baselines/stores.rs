//! Redis and PostgreSQL of a baseline, and how its calls to them may fail.

use fred::interfaces::ClientLike as _;
use fred::prelude::{Client, Config};
use fred::types::{Builder, ClusterHash, CustomCommand, FromValue};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::BaselineArgs;
use super::incr::{self, Writer};

/// The tables: what such a service keeps, and no more.
const TABLES: &str = "
    create table if not exists counter (
        name text primary key, value bigint not null, version bigint not null default 0
    );
    create table if not exists journal (
        counter text not null, value bigint not null, number text not null unique,
        document_id text not null, type_code text not null, user_id text not null,
        ip_address text not null, issued_at timestamptz not null default now(),
        primary key (counter, value)
    );
    create index if not exists journal_document on journal (document_id)";

/// Both stores. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Stores {
    pub(super) redis: Client,
    pub(super) pool: PgPool,
    pub(super) writer: Writer,
}

/// Why there is no number: a store did not answer, or others were faster for too long.
pub(super) type TakeError = Box<dyn std::error::Error + Send + Sync>;

impl Stores {
    /// Connects to both, and makes the tables.
    pub(super) async fn connect(args: &BaselineArgs, pool: u32) -> Self {
        let config = Config::from_url(&args.redis_url).expect("a URL of Redis");
        let redis = Builder::from_config(config).build().expect("a client");
        redis.init().await.expect("Redis answers");
        let options = PgPoolOptions::new().max_connections(pool).min_connections(pool);
        let pool = options.connect(&args.database_url).await.expect("PostgreSQL answers");
        sqlx::raw_sql(TABLES).execute(&pool).await.expect("tables");
        let writer = incr::start_writer(pool.clone());
        Stores { redis, pool, writer }
    }

    /// One command on one key.
    pub(super) async fn command<T: FromValue>(
        &self,
        command: &'static str,
        arguments: Vec<String>,
    ) -> Result<T, TakeError> {
        let command = CustomCommand::new_static(command, ClusterHash::FirstKey, false);
        Ok(self.redis.custom(command, arguments).await?)
    }
}

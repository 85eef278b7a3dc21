//! Settings: file, then environment, then flags. Every limit has a name, a unit and a default.

use std::path::PathBuf;

use crate::allocator::AllocatorSettings;
use crate::counter::RedisSettings;

/// The settings of a process.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `http.listen`.
    pub http_listen: std::net::SocketAddr,
    /// `data.dir`.
    pub data_dir: PathBuf,
    /// `database.url`: `sqlite:<path>` or `postgres://…`.
    pub database_url: String,
    /// `database.connections_max`.
    pub database_connections_max: u32,
    /// `redis.*`; absent: no Redis.
    pub redis: Option<RedisSettings>,
    /// `redis.prefix`.
    pub redis_prefix: String,
    /// `partitions`.
    pub partitions: u32,
    /// Bounds and waits of issuing.
    pub allocator: AllocatorSettings,
}

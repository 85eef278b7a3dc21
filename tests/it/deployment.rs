//! Deployments of the program that cargo built beside these tests.

use std::ops::{Deref, DerefMut};

use harness::service::Program;

/// The harness' deployment of this build's program.
pub(crate) struct Deployment(harness::service::Deployment);

impl Deployment {
    /// On PostgreSQL and Redis.
    pub(crate) fn new(database_url: &str, redis_url: Option<&str>) -> Self {
        Deployment(harness::service::Deployment::new(program(), database_url, redis_url))
    }

    /// SQLite in a folder of its own.
    pub(crate) fn sqlite(redis_url: Option<&str>) -> Self {
        Deployment(harness::service::Deployment::sqlite(program(), redis_url))
    }

    /// Embedded: SQLite in a folder of its own, no Redis.
    pub(crate) fn embedded() -> Self {
        Self::sqlite(None)
    }
}

impl Deref for Deployment {
    type Target = harness::service::Deployment;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Deployment {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

fn program() -> Program {
    Program { path: env!("CARGO_BIN_EXE_numerator").into(), arguments: Vec::new() }
}

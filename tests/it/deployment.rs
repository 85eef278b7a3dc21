//! Deployments of the program that cargo built with these tests.

use std::ops::{Deref, DerefMut};

use testkit::service::Program;

/// The testkit's deployment of this build's program.
pub(crate) struct Deployment(testkit::service::Deployment);

impl Deployment {
    /// On PostgreSQL and Redis.
    pub(crate) fn new(database_url: &str, redis_url: Option<&str>) -> Self {
        Deployment(testkit::service::Deployment::new(program(), database_url, redis_url))
    }

    /// The same with a program started another way.
    pub(crate) fn of(program: Program, database_url: &str, redis_url: Option<&str>) -> Self {
        Deployment(testkit::service::Deployment::new(program, database_url, redis_url))
    }

    /// SQLite in a folder of its own.
    pub(crate) fn sqlite(redis_url: Option<&str>) -> Self {
        Self::sqlite_of(program(), redis_url)
    }

    /// The same with a program started another way.
    pub(crate) fn sqlite_of(program: Program, redis_url: Option<&str>) -> Self {
        Deployment(testkit::service::Deployment::sqlite(program, redis_url))
    }

    /// Embedded: SQLite in a folder of its own, no Redis.
    pub(crate) fn embedded() -> Self {
        Self::sqlite(None)
    }
}

impl Deref for Deployment {
    type Target = testkit::service::Deployment;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Deployment {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// The program.
pub(crate) fn program() -> Program {
    Program { path: env!("CARGO_BIN_EXE_numerator").into(), arguments: Vec::new() }
}

/// The program with further environment variables, `NAME=value`.
pub(crate) fn program_with(variables: &[String]) -> Program {
    let mut arguments = variables.to_vec();
    arguments.push(env!("CARGO_BIN_EXE_numerator").into());
    Program { path: "/usr/bin/env".into(), arguments }
}

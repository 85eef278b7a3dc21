//! How a list of named cases becomes tests of each engine.

use std::pin::Pin;

use testkit::postgres::{Database, Postgres};
use tokio::runtime::{Builder, Runtime};

use super::world::World;

/// A case that is ready to run.
pub(super) type Case = fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! ledger_contract {
    ($($group:ident { $($case:ident)* })*) => {
        mod sqlite {
            $(mod $group {
                $(#[test]
                fn $case() {
                    crate::ledger_contract::engines::run_on_sqlite(|world| {
                        Box::pin(crate::ledger_contract::$group::$case(world))
                    });
                })*
            })*
        }

        mod postgres {
            $(mod $group {
                $(#[test]
                fn $case() {
                    crate::ledger_contract::engines::run_on_postgres(|world| {
                        Box::pin(crate::ledger_contract::$group::$case(world))
                    });
                })*
            })*
        }
    };
}

/// Runs a case on a file of its own.
pub(super) fn run_on_sqlite(case: Case) {
    let folder = tempfile::tempdir().unwrap();
    run(case, &format!("sqlite:{}", folder.path().join("new/ledger.db").display()));
}

/// Runs a case on a database of its own.
pub(super) fn run_on_postgres(case: Case) {
    let database = Database::create();
    run(case, &database.url());
}

fn run(case: Case, url: &str) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { case(World::open(url).await).await });
}

#[test]
fn a_lost_postgres_is_worth_a_retry_and_found_again() {
    let mut server = Postgres::start();
    let runtime = Runtime::new().unwrap();
    let world = runtime.block_on(World::open(&server.url("comes_back")));
    server.kill();
    let error = runtime.block_on(world.ledger.partitions()).expect_err("nobody there");
    assert!(error.retry_useful(), "{error}");
    server.restart();
    assert_eq!(runtime.block_on(world.ledger.partitions()).unwrap().len(), 5);
}

//! How a list of named cases becomes tests of each engine.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;

use testkit::postgres::Postgres;

use super::world::World;

/// A case that is ready to run.
pub(super) type Case = fn(World) -> Pin<Box<dyn Future<Output = ()> + Send>>;

macro_rules! ledger_contract {
    ($($group:ident { $($case:ident)* })*) => {
        mod sqlite {
            $(mod $group {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let folder = tempfile::tempdir().unwrap();
                    let url = format!("sqlite:{}", folder.path().join("new/ledger.db").display());
                    let world = crate::ledger_contract::World::open(&url).await;
                    crate::ledger_contract::$group::$case(world).await;
                })*
            })*
        }

        mod postgres {
            $(#[test]
            fn $group() {
                crate::ledger_contract::engines::run_on_postgres(&[
                    $((stringify!($case), |world| {
                        Box::pin(crate::ledger_contract::$group::$case(world))
                    })),*
                ]);
            })*
        }
    };
}

/// Runs the cases of one group on a server of their own.
pub(super) fn run_on_postgres(cases: &[(&str, Case)]) {
    let server = Postgres::start();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut failed = Vec::new();
    for (index, (name, case)) in cases.iter().enumerate() {
        let url = server.url(&format!("case_{index}"));
        let run = || runtime.block_on(async { case(World::open(&url).await).await });
        if std::panic::catch_unwind(AssertUnwindSafe(run)).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "failed on PostgreSQL: {failed:?}");
}

#[test]
fn a_lost_postgres_is_worth_a_retry_and_found_again() {
    let mut server = Postgres::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::open(&server.url("comes_back")));
    server.kill();
    let error = runtime.block_on(world.ledger.partitions()).expect_err("nobody there");
    assert!(error.retry_useful(), "{error}");
    server.restart();
    assert_eq!(runtime.block_on(world.ledger.partitions()).unwrap().len(), 5);
}

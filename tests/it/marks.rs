//! The mark next to an embedded ledger's file: an older file, an empty one and a missing one are
//! distinguished from the ledger that numbers were taken from.

use crate::deployment::Deployment;
use crate::restored::{copy_ledger, put_in_place};

/// Goal: the embedded ledger has no server to ask, and its file may be copied by anyone. Method: an
/// older copy, then none at all.
#[tokio::test]
async fn an_older_file_put_back_while_nothing_ran_is_held_before_the_first_number() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    let next = || deployment.ok(&["next", "LOAD"]);
    let (file, copy) = (deployment.path("numerator.db"), deployment.path("copy.db"));
    assert_eq!((next(), next()), ("L-00000001\n".into(), "L-00000002\n".into()));
    copy_ledger(&deployment, &copy).await;
    assert_eq!(next(), "L-00000003\n");
    put_in_place(&copy, &file);
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("reconcile --ledger-restored"), "{says}");
    deployment.ok(&["reconcile", "--ledger-restored", "--apply", "--margin", "1"]);
    assert_eq!(next(), "L-00000004\n");

    std::fs::remove_file(&file).unwrap();
    let refused = deployment.run(&["next", "LOAD"]);
    let says = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && says.contains("numerator.db.mark"), "{says}");
    std::fs::remove_file(deployment.path("numerator.db.mark")).unwrap();
    deployment.apply_load_series();
    assert_eq!(next(), "L-00000001\n");
}

/// Goal: nothing starts anew where a ledger was. Method: an empty file replaces it, like one that a
/// client makes by opening it.
#[tokio::test]
async fn an_empty_file_beside_its_mark_is_as_good_as_gone() {
    let deployment = Deployment::embedded();
    deployment.apply_load_series();
    assert_eq!(deployment.ok(&["next", "LOAD"]), "L-00000001\n");
    let file = deployment.path("numerator.db");
    std::fs::write(&file, "").unwrap();
    for look in 0..3 {
        if look == 2 {
            // As left by a service that still has it open, and looks for the ledger there.
            let url = format!("sqlite:{}", file.display());
            let pool = sqlx::SqlitePool::connect(&url).await.unwrap();
            sqlx::query("pragma journal_mode = wal").execute(&pool).await.unwrap();
            pool.close().await;
            assert!(file.metadata().unwrap().len() > 0);
        }
        let refused = deployment.run(&["verify"]);
        let says = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && says.contains("numerator.db.mark"), "{says}");
    }
}

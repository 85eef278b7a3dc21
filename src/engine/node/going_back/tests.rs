//! Answers about one identity that come once another one has followed it.

use uuid::Uuid;

use super::*;
use crate::clock::{ManualClock, SharedClock};
use crate::engine::node::{LastSeenFile, ProcessSettings};
use crate::ledger::{Deployment, LedgerSettings};

/// A process on a new ledger, in this folder.
async fn process() -> (tempfile::TempDir, Arc<Membership>) {
    let folder = tempfile::tempdir().expect("a folder");
    let clock: SharedClock = Arc::new(ManualClock::at(1_764_633_600_000_000));
    let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
    let ledger = crate::ledger::open(&url, LedgerSettings::default(), Arc::clone(&clock));
    let ledger = ledger.await.expect("opens");
    let wanted = Deployment { deployment_id: Uuid::nil(), partitions: 1, prefix: "nbr".into() };
    ledger.deployment(&wanted).await.expect("set up");
    let last_seen_file = LastSeenFile::within(folder.path(), Uuid::nil());
    let bounds = ProcessSettings::default();
    let membership = Membership::join(ledger, clock, last_seen_file, &bounds).await.expect("joins");
    (folder, membership)
}

#[tokio::test]
async fn an_answer_about_an_identity_of_before_silences_none_of_now() {
    let (_folder, membership) = process().await;
    let before = membership.node();
    membership.alarm(before, FORGOTTEN);
    membership.ledger.hold_all(&[], FORGOTTEN).await.expect("held");
    let replayed = membership.ledger.one_incarnation().await.expect("agreed");
    membership.begin_anew(replayed).await.expect("registered");
    let now = membership.node();
    assert_ne!(now, before);
    membership.alarm(before, FORGOTTEN);
    assert!(membership.hand_out(before).is_none(), "the ledger went back under it");
    assert!(membership.hand_out(now).is_some(), "nobody asked about it");
    membership.begin_anew(replayed).await.expect("it has one there");
    assert_eq!(membership.node(), now);
}

/// Goal: what goes back under the next identity, before the first one's going back is over, is not
/// over with that.
#[tokio::test]
async fn what_went_back_since_is_not_over_with_what_went_back_before() {
    let (_folder, membership) = process().await;
    let before = membership.node();
    membership.alarm(before, FORGOTTEN);
    membership.ledger.hold_all(&[], FORGOTTEN).await.expect("held");
    membership.note_held(before, true);
    let replayed = membership.ledger.one_incarnation().await.expect("agreed");
    membership.begin_anew(replayed).await.expect("registered");
    let now = membership.node();
    membership.alarm(now, FORGOTTEN);
    membership.note_over(before);
    assert!(membership.ledger_went_back() && membership.hand_out(now).is_none());
    membership.note_over(now);
    assert!(!membership.ledger_went_back());
}

/// Goal: an answer about an identity that was barred counts, if the next one is of the same ledger.
#[tokio::test]
async fn what_was_forgotten_under_a_barred_identity_concerns_the_next_one_of_that_incarnation() {
    let (_folder, membership) = process().await;
    let barred = membership.node();
    membership.replace(barred).await.expect("registered");
    let now = membership.node();
    membership.alarm(barred, FORGOTTEN);
    assert!(membership.ledger_went_back() && membership.hand_out(now).is_none());
    assert!(membership.replace(now).await.is_err(), "it is to be held, and told");
}

#[tokio::test]
async fn nobody_takes_an_identity_in_an_incarnation_that_was_told_nothing() {
    let (_folder, membership) = process().await;
    let lost = membership.node();
    membership.ledger.hold_all(&[], "it shows an earlier epoch").await.expect("held");
    let replaced = membership.replace(lost).await;
    assert!(matches!(replaced, Err(LedgerError::WentBack(_))), "{replaced:?}");
    assert_eq!(membership.node(), lost);
}

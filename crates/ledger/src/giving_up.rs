//! Whether anybody still waits for a change of series. Ledger work is never cancelled; a search for
//! a proof, which holds no connection, ends once its caller is gone. What is given up is not saved.

use numbering::GiveUp;

tokio::task_local! {
    /// Ends the proofs of this task.
    static GIVE_UP: GiveUp;
}

/// Runs ledger work whose proofs end once `give_up` says so: then it answers
/// [`crate::LedgerError::GivenUp`].
pub async fn until_given_up<T>(give_up: GiveUp, work: impl Future<Output = T>) -> T {
    GIVE_UP.scope(give_up, work).await
}

/// Whether nobody waits any more for the work of this task.
#[must_use]
pub fn is_given_up() -> bool {
    GIVE_UP.try_with(GiveUp::is_given_up).unwrap_or(false)
}

/// Runs what searches for a proof on a thread of its own, until it ends or whoever waits is gone.
pub(crate) async fn search<T: Send + 'static>(
    proof: impl FnOnce(&GiveUp) -> T + Send + 'static,
) -> T {
    let give_up = GIVE_UP.try_with(GiveUp::clone).unwrap_or_default();
    let mut waiting = Waiting(Some(give_up.clone()));
    let searching = tokio::task::spawn_blocking(move || proof(&give_up));
    let found = searching.await.expect("the proof does not panic");
    waiting.0 = None;
    found
}

/// Ends a proof when it is dropped.
struct Waiting(Option<GiveUp>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(give_up) = &self.0 {
            give_up.give_up();
        }
    }
}

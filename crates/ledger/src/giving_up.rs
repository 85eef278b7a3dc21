//! Whether a caller still waits for a change of series. Ledger work is never cancelled; the search
//! for a proof holds no connection, and ends with its caller. Work that is given up is not saved.

use numbering::GiveUp;

tokio::task_local! {
    /// Ends the proofs of this task.
    static GIVE_UP: GiveUp;
}

/// Runs ledger work whose proofs end once `give_up` is set: then it answers
/// [`crate::LedgerError::GivenUp`].
pub async fn until_given_up<T>(give_up: GiveUp, work: impl Future<Output = T>) -> T {
    GIVE_UP.scope(give_up, work).await
}

/// Whether no caller waits any more for the work of this task.
#[must_use]
pub fn is_given_up() -> bool {
    GIVE_UP.try_with(GiveUp::is_given_up).unwrap_or(false)
}

/// Runs the search for a proof on its own thread, until it ends or its caller is gone.
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

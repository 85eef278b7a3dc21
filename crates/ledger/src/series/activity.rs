//! Series that are turned off and on, each time by a new version. Turning one off is never refused:
//! the requests that it took go to no other series before that one is proved for them, see
//! [`crate::RestingSeries`].

use crate::dialect::Conn;
use crate::series::proving::Saved;
use crate::series::saving::{
    Attempt, Findings, PROOFS_MAX, finish_save, lock_all, must_stand_at, overtaken, put_in_force,
    waits,
};
use crate::series::used::{is_used, start_anew};
use crate::series::versions::{self, by_id};
use crate::store::{Saving, Store};
use crate::{ActivityChange, LedgerError, Series, SeriesRefusal, SeriesVersion};

impl Series<'_> {
    /// Activates or deactivates a series by a new version; an activation passes the same checks as
    /// a save. A series already in that state is left as it is, unless it is active and waits for a
    /// proof ([`crate::RestingSeries`]).
    ///
    /// # Errors
    /// Like [`crate::Series::apply`].
    pub async fn set_activity(self, change: &ActivityChange) -> Result<SeriesVersion, LedgerError> {
        self.search(async |store| set(store, change, Saving::Save).await).await
    }

    /// The same as a dry run: answers, and refuses, as [`crate::Series::set_activity`] would, and
    /// writes nothing.
    pub async fn try_activity(self, change: &ActivityChange) -> Result<SeriesVersion, LedgerError> {
        self.search(async |store| set(store, change, Saving::DryRun).await).await
    }
}

async fn set(
    store: &Store,
    change: &ActivityChange,
    saving: Saving,
) -> Result<SeriesVersion, LedgerError> {
    let mut known = Findings::default();
    for _ in 0..=PROOFS_MAX {
        match attempt(store, change, saving, &known).await? {
            Attempt::Done(mut saved) => return Ok(saved.remove(0)),
            Attempt::Unproved(question) => known.proved = Some(question.prove().await?),
            Attempt::Uncompared(question) => known.unread = Some(question.compare().await?),
        }
    }
    Err(overtaken())
}

async fn attempt(
    store: &Store,
    change: &ActivityChange,
    saving: Saving,
    known: &Findings,
) -> Result<Attempt, LedgerError> {
    let mut tx = store.begin().await?;
    lock_all(&mut *tx).await?;
    let unknown = SeriesRefusal::Unknown { series_id: change.series_id };
    let before = by_id(&mut *tx, change.series_id).await?.ok_or(unknown)?;
    if let Some(expected) = change.expected {
        must_stand_at(&before, expected)?;
    }
    let resting = versions::all_resting(&mut *tx).await?;
    if before.active == change.active && !(change.active && waits(&before, &resting)) {
        return Ok(Attempt::Done(vec![before]));
    }
    // One that was narrowed while it rested leaves requests that no series was given since.
    let last = resting.iter().find(|one| one.last.series_id == before.series_id);
    let frees = last
        .filter(|one| !numbering::same_rules(&one.last.definition, &before.definition))
        .map(|one| one.last.definition.clone());
    let mut after = SeriesVersion {
        version: before.version + 1,
        active: change.active,
        saved_by: change.saved_by.clone(),
        saved_at_us: change.saved_at_us,
        reason: change.reason.clone(),
        is_new: true,
        ..before
    };
    if !change.active {
        begin_nothing(&mut *tx, &after).await?;
    }
    put_in_force(&mut *tx, &mut after).await?;
    let saved = Saved { version: after, asks: change.active, frees };
    finish_save(store, tx, vec![saved], saving, known).await
}

/// A node that does not know the change creates no counter by the former version: other series are
/// compared with the versions that have counters.
async fn begin_nothing(conn: &mut Conn, after: &SeriesVersion) -> Result<(), LedgerError> {
    if !is_used(conn, after.series_id).await? {
        start_anew(conn, after).await?;
    }
    Ok(())
}

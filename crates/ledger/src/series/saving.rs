//! Series with their versions. Every save takes one path: [`save`] and the change of activity write
//! the next version under one lock, and [`finish_save`] checks what is active afterwards before
//! anything is committed.

use numbering::{Policy, Series, SeriesDefinition, only_narrows, same_rules};
use serde_json::json;

use crate::columns::{small, to_json, unsigned_small};
use crate::dialect::{Conn, Transaction};
use crate::protocol::{chronology, keys};
use crate::query::{query, query_scalar};
use crate::series::project_room::{SavedFor, must_have_room};
use crate::series::proving::{ProofQuestion, Proved, Saved};
use crate::series::texts::{TextQuestion, Unread};
use crate::series::versions::{self, all_in_force, by_code, by_id};
use crate::series::{as_written, starts, used};
use crate::store::{self, Saving, Store};
use crate::{
    EVENT_KINDS, Expected, LedgerError, RestingSeries, SeriesChange, SeriesRefusal, SeriesVersion,
};

/// How often a change is proved anew because other series were saved meanwhile.
pub(crate) const PROOFS_MAX: usize = 5;

/// How an attempt to save ended.
pub(crate) enum Attempt {
    /// Everything is checked, and saved unless it is a dry run.
    Done(Vec<SeriesVersion>),
    /// Nothing is saved: this has to be proved first.
    Unproved(ProofQuestion),
    /// Nothing is saved: numbers that are kept as written have to be compared first.
    Uncompared(TextQuestion),
}

/// What was found out between the attempts of a save.
#[derive(Default)]
pub(crate) struct Findings {
    /// The last proof.
    pub(crate) proved: Option<Proved>,
    /// The numbers as written that were compared last.
    pub(crate) unread: Option<Unread>,
}

impl crate::Series<'_> {
    /// Saves each definition as a new version of its series, creating the series where it is new; a
    /// definition equal to the version in force changes nothing. Whether a series is active stays
    /// as it is. All or nothing, checked against everything that is active afterwards. Each change
    /// is an event.
    ///
    /// # Errors
    /// `Series` says what keeps a change from being saved ([`SeriesRefusal`]).
    pub async fn apply(self, changes: &[SeriesChange]) -> Result<Vec<SeriesVersion>, LedgerError> {
        let how = (Saving::Save, SavedFor::AllProjects);
        self.search(async |store| save(store, changes, how).await).await
    }

    /// The same as a dry run: answers, and refuses, as [`crate::Series::apply`] would, and
    /// writes nothing. The id of a series that would be new means nothing.
    pub async fn try_apply(
        self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        let how = (Saving::DryRun, SavedFor::AllProjects);
        self.search(async |store| save(store, changes, how).await).await
    }

    /// [`crate::Series::apply`] for a caller restricted to projects: none of them may take up more
    /// of the ledger than [`PROJECT_SERIES_MAX`] series and [`PROJECT_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// The same, and `Series` with `ProjectFull`.
    pub async fn apply_of_projects(
        self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        let how = (Saving::Save, SavedFor::SomeProjects);
        self.search(async |store| save(store, changes, how).await).await
    }

    /// The same as a dry run.
    pub async fn try_of_projects(
        self,
        changes: &[SeriesChange],
    ) -> Result<Vec<SeriesVersion>, LedgerError> {
        let how = (Saving::DryRun, SavedFor::SomeProjects);
        self.search(async |store| save(store, changes, how).await).await
    }
}

/// See [`crate::Series::apply`] and [`crate::Series::try_apply`].
pub(crate) async fn save(
    store: &Store,
    changes: &[SeriesChange],
    how: (Saving, SavedFor),
) -> Result<Vec<SeriesVersion>, LedgerError> {
    let mut known = Findings::default();
    for _ in 0..=PROOFS_MAX {
        match try_save(store, changes, how, &known).await? {
            Attempt::Done(saved) => return Ok(saved),
            Attempt::Unproved(question) => known.proved = Some(question.prove().await?),
            Attempt::Uncompared(question) => known.unread = Some(question.compare().await?),
        }
    }
    Err(overtaken())
}

/// Other callers keep saving series.
pub(crate) fn overtaken() -> LedgerError {
    LedgerError::Conflict("other series were saved at the same time, again and again".into())
}

async fn try_save(
    store: &Store,
    changes: &[SeriesChange],
    (saving, saved_for): (Saving, SavedFor),
    known: &Findings,
) -> Result<Attempt, LedgerError> {
    let mut tx = store.begin().await?;
    let partitions = lock_all(&mut *tx).await?;
    let before = saved_for.footprints(&mut *tx).await?;
    let mut saved = Vec::with_capacity(changes.len());
    for change in changes {
        saved.push(save_one(&mut *tx, change, partitions).await?);
    }
    must_have_room(&mut *tx, before).await?;
    finish_save(store, tx, saved, saving, known).await
}

/// Allows one change of series at a time, so that versions count up without a race and each change
/// is checked against all earlier ones. Nothing is reserved meanwhile: it waits for the
/// reservations that are being made, and no further one begins (L14). Returns the number of
/// partitions.
pub(crate) async fn lock_all(conn: &mut Conn) -> Result<u32, LedgerError> {
    conn.lock_own_name(keys::series_lock()).await?;
    let partitions: Option<i32> =
        query_scalar("select partitions from deployment").for_update().fetch_optional(conn).await?;
    let Some(partitions) = partitions else {
        let why = "deployment: the ledger has none yet; start a service on it first";
        return Err(LedgerError::Refused(why.into()));
    };
    unsigned_small(partitions, "partitions")
}

/// Ends a save: checks all that would be active, notes what has changed, and commits, or rolls a
/// dry run back. It also rolls back where what is known is of other series than these.
pub(crate) async fn finish_save(
    store: &Store,
    mut tx: Transaction,
    saved: Vec<Saved>,
    saving: Saving,
    known: &Findings,
) -> Result<Attempt, LedgerError> {
    let mut all = all_in_force(&mut *tx).await?;
    all.retain(|version| version.active);
    // Among thousands of series this takes long.
    let checking = tokio::task::spawn_blocking(move || {
        let definitions = all.iter().map(|version| &version.definition);
        numbering::check_rules(definitions).map(|()| all)
    });
    let all = checking.await.expect("the check does not panic").map_err(SeriesRefusal::from)?;
    let written = || saved.iter().filter(|saved| saved.version.is_new);
    let first = written().map(|saved| saved.version.stamp).min().unwrap_or_default();
    for Saved { version, .. } in written() {
        note(&mut *tx, version, first, "series-changed").await?;
    }
    // Also of one that is turned off: from then on every change of a table is compared with it.
    let rendering = written().filter(|saved| saved.version.active || saved.asks);
    let rendering = rendering.map(|saved| saved.version.definition.clone()).collect();
    let asked = as_written::asked_by_save(store, &mut *tx, rendering).await?;
    if let Some(question) = asked
        && let Some(question) = question.answer(known.unread.as_ref()).await?
    {
        tx.rollback().await?;
        return Ok(Attempt::Uncompared(question));
    }
    let question = ProofQuestion::of(&mut *tx, &all, &saved).await?;
    let saved: Vec<SeriesVersion> = saved.into_iter().map(|saved| saved.version).collect();
    if let Some(question) = question {
        let proved = known.proved.as_ref().filter(|proved| proved.answers(&question));
        let Some(proved) = proved else {
            let question = question.with_reference(&mut *tx).await?;
            tx.rollback().await?;
            return Ok(Attempt::Unproved(question));
        };
        proved.must_keep_texts_apart(&mut *tx).await?;
        proved.record(&mut *tx, &saved).await?;
    }
    store::end(store, tx, saving).await?;
    Ok(Attempt::Done(saved))
}

/// Writes the event of a change, kept if and only if the change is, with the `first` change of the
/// call. `kind`: the event's.
pub(crate) async fn note(
    conn: &mut Conn,
    changed: &SeriesVersion,
    first: i64,
    kind: &str,
) -> Result<(), LedgerError> {
    query("update series_version set saved_with = $2 where series_version_id = $1")
        .bind(changed.stamp)
        .bind(first)
        .execute(&mut *conn)
        .await?;
    let detail = json!({
        "config_id": changed.series_id,
        "code": changed.definition.code,
        "version": changed.version,
        "active": changed.active,
        "user": changed.saved_by,
        "reason": changed.reason,
    });
    debug_assert!(EVENT_KINDS.contains(&kind), "EVENT_KINDS lacks {kind}");
    query("insert into event (at_us, kind, detail) values ($1, $2, $3)")
        .bind(changed.saved_at_us)
        .bind(kind)
        .bind(detail.to_string())
        .execute(conn)
        .await?;
    Ok(())
}

async fn save_one(
    conn: &mut Conn,
    change: &SeriesChange,
    partitions: u32,
) -> Result<Saved, LedgerError> {
    let definition = &change.definition;
    let before = match change.expected {
        Expected::Version { series_id, .. } => {
            let unknown = SeriesRefusal::Unknown { series_id };
            Some(by_id(conn, series_id).await?.ok_or(unknown)?)
        }
        Expected::Anything | Expected::Nothing => by_code(conn, &definition.code).await?,
    };
    if let Some(before) = &before {
        must_be_expected(before, change)?;
        if before.definition == *definition {
            return Ok(Saved { version: before.clone(), asks: false, frees: None });
        }
    }
    change.must_close_plausibly(before.as_ref())?;
    let mut after = SeriesVersion {
        series_id: 0,
        version: 1,
        active: true,
        partition: versions::home(definition, partitions),
        definition: definition.clone(),
        saved_by: change.saved_by.clone(),
        saved_at_us: change.saved_at_us,
        reason: change.reason.clone(),
        is_new: true,
        stamp: 0,
    };
    let (mut asks, mut frees) = (true, None);
    if let Some(before) = before.as_ref().filter(|before| before.active) {
        if !same_rules(&before.definition, definition) {
            frees = Some(before.definition.clone());
        }
        // What it accepts, or others with it, is accepted while all of them are gapless.
        let is_gapless = |one: &SeriesDefinition| one.policy == Policy::Gapless;
        asks = before.definition.ambiguity_accepted.is_some()
            || definition.ambiguity_accepted.is_some()
            || is_gapless(&before.definition) != is_gapless(definition)
            || !only_narrows(&before.definition, definition)
            || waits(before, &versions::all_resting(conn).await?);
    }
    match before {
        None => create(conn, &mut after).await?,
        Some(before) => {
            after.series_id = before.series_id;
            after.version = before.version + 1;
            after.active = before.active;
            if used::is_used(conn, before.series_id).await? {
                must_repeat_nothing(conn, &before, &after).await?;
            } else {
                used::must_keep_home(conn, &before, &after).await?;
                used::start_anew(conn, &after).await?;
            }
            if before.definition.chronology != definition.chronology {
                chronology::forget(conn, before.series_id).await?;
            }
            put_in_force(conn, &mut after).await?;
        }
    }
    Ok(Saved { version: after, asks, frees })
}

/// Whether a series may be given requests, once it is saved, that others took before they were
/// deactivated: see [`crate::RestingSeries`].
pub(crate) fn waits(series: &SeriesVersion, resting: &[RestingSeries]) -> bool {
    resting.iter().any(|one| {
        one.since > series.stamp
            && numbering::may_come_before(&one.last.definition, &series.definition)
    })
}

/// Refuses a change that builds on something else than what is there.
fn must_be_expected(before: &SeriesVersion, change: &SeriesChange) -> Result<(), SeriesRefusal> {
    let code = before.definition.code.clone();
    match change.expected {
        Expected::Anything => Ok(()),
        Expected::Nothing => Err(SeriesRefusal::CodeTaken { code }),
        Expected::Version { version, .. } => {
            must_stand_at(before, version)?;
            let wanted = change.definition.code.clone();
            if wanted == code { Ok(()) } else { Err(SeriesRefusal::CodeChanged { code, wanted }) }
        }
    }
}

pub(crate) fn must_stand_at(before: &SeriesVersion, expected: u32) -> Result<(), SeriesRefusal> {
    let found = before.version;
    if found == expected {
        return Ok(());
    }
    let code = before.definition.code.clone();
    Err(SeriesRefusal::VersionConflict { code, expected, found })
}

/// Refuses to move a series that has counters, since two partitions would count one of them (F8),
/// and to change it so that it could render again what it has issued in any version.
async fn must_repeat_nothing(
    conn: &mut Conn,
    before: &SeriesVersion,
    after: &SeriesVersion,
) -> Result<(), LedgerError> {
    let code = || after.definition.code.clone();
    if before.partition != after.partition {
        return Err(SeriesRefusal::Policy { code: code() }.into());
    }
    let compile = |version: &SeriesVersion| {
        Series::restore(version.definition.clone()).map_err(|error| {
            let (code, version) = (&version.definition.code, version.version);
            LedgerError::Refused(format!("series {code} version {version}: {error}"))
        })
    };
    let next = compile(after)?;
    for earlier in versions::of_used(conn, after.series_id).await? {
        numbering::check_change(&compile(&earlier)?, &next).map_err(|why| {
            SeriesRefusal::Repeats { code: code(), version: earlier.version, why }
        })?;
    }
    starts::must_be_reached(conn, after, (&compile(before)?, &next)).await
}

/// Writes version 1 of a new series, and gives it its id.
async fn create(conn: &mut Conn, version: &mut SeriesVersion) -> Result<(), LedgerError> {
    versions::must_have_room(conn).await?;
    version.series_id = query_scalar(
        "insert into series (code, partition, active_version) values ($1, $2, 1)
         returning series_id",
    )
    .bind(&version.definition.code)
    .bind(small(version.partition, "partition")?)
    .fetch_one(&mut *conn)
    .await?;
    write(conn, version).await
}

/// Writes the next version of a series, which is the one in force from now on.
pub(crate) async fn put_in_force(
    conn: &mut Conn,
    version: &mut SeriesVersion,
) -> Result<(), LedgerError> {
    query("update series set active_version = $2 where series_id = $1")
        .bind(version.series_id)
        .bind(small(version.version, "version")?)
        .execute(&mut *conn)
        .await?;
    write(conn, version).await
}

async fn write(conn: &mut Conn, version: &mut SeriesVersion) -> Result<(), LedgerError> {
    version.stamp = query_scalar(
        "insert into series_version (series_id, version, active, definition, saved_by, reason,
         saved_at_us) values ($1, $2, $3, $4, $5, $6, $7) returning series_version_id",
    )
    .bind(version.series_id)
    .bind(small(version.version, "version")?)
    .bind(i32::from(version.active))
    .bind(to_json(&version.definition, "definition")?)
    .bind(&version.saved_by)
    .bind(&version.reason)
    .bind(version.saved_at_us)
    .fetch_one(conn)
    .await?;
    Ok(())
}

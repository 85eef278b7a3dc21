//! Series that accept an ambiguity (F43): the series saved although a caller may be answered before
//! the ledger is asked, and the series whose rows must stay in the journal, since only these rows
//! keep a text from coming twice.

use std::sync::Arc;

use numbering::{EarlierVersion, IssuedVersion, ProofError, Series, SeriesDefinition};
use sqlx_macros::FromRow;

use crate::connections::Share;
use crate::dialect::Conn;
use crate::protocol::keys;
use crate::query::{query, query_as};
use crate::reference::tables;
use crate::series::kept::{KeptSeries, KeptStamp, Unreserved};
use crate::series::succession::issued_beside;
use crate::series::versions::{self, all_in_force};
use crate::store::Store;
use crate::{LedgerError, SeriesVersion, giving_up};

/// What one series that accepts an ambiguity is compared with.
struct Comparison {
    series_id: i64,
    code: String,
    earlier: Vec<EarlierVersion>,
    issued: Vec<IssuedVersion>,
}

impl crate::Series<'_> {
    /// The active series that accept an ambiguity in which not every series is `gapless`, each with
    /// the reason: a save refuses them.
    ///
    /// # Errors
    /// A ledger that does not answer, a search that was given up.
    pub async fn hasty(self) -> Result<Vec<(i64, String)>, LedgerError> {
        self.search(async |store| hasty(store).await).await
    }

    /// Whether this process knows which series reserve nothing, as of a version and a change of
    /// reference data. Asks nobody; a reservation that finds something newer says
    /// [`crate::TakeOutcome::SeriesChanging`].
    #[must_use]
    pub fn knows_unreserved(self, version: i64, reference: i64) -> bool {
        !self.0.store(Share::Common).kept.is_due((version, reference))
    }

    /// Looks which series reserve nothing (L14), where [`crate::Series::knows_unreserved`] says
    /// no; one look at a time. It may compare the texts of all series, and must not be cancelled.
    /// Where it cannot be found out, reservations say so until a later look.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub async fn learn_unreserved(self, version: i64, reference: i64) -> Result<(), LedgerError> {
        let looks = Arc::clone(&self.0.store(Share::Common).kept);
        // Outside of the call: who waits for another's look is not late.
        let _turn = looks.turn.lock().await;
        if self.knows_unreserved(version, reference) {
            return Ok(());
        }
        match self.search(async |store| kept(store).await).await {
            Err(error) if !is_failed(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// See [`crate::Series::hasty`].
async fn hasty(store: &Store) -> Result<Vec<(i64, String)>, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    if !is_any_accepted(&mut *conn).await? {
        return Ok(Vec::new());
    }
    let mut active = all_in_force(&mut *conn).await?;
    active.retain(|version| version.active);
    let is_accepting = |version: &&SeriesVersion| version.definition.ambiguity_accepted.is_some();
    let stretches = versions::that_may_have_issued(&mut *conn).await?;
    let mut questions = Vec::new();
    for version in active.iter().filter(is_accepting) {
        questions.push(Comparison {
            series_id: version.series_id,
            code: version.definition.code.clone(),
            earlier: versions::before(&mut *conn, version).await?,
            issued: issued_beside(&mut *conn, version, stretches.iter(), i64::MAX).await?,
        });
    }
    if questions.is_empty() {
        return Ok(Vec::new());
    }
    let tables = Arc::new(tables::read(&mut *conn).await?);
    drop(conn);
    // What does not compile gives no numbers.
    let compiles = |definition: &SeriesDefinition| Series::restore(definition.clone()).is_ok();
    let definitions: Vec<SeriesDefinition> =
        active.into_iter().map(|version| version.definition).filter(compiles).collect();
    giving_up::search(move |give_up| {
        let mut found = Vec::new();
        for Comparison { series_id, code, earlier, issued } in questions {
            let asked = |series: &SeriesDefinition| series.code == code;
            let proved =
                numbering::prove_saved(&definitions, &tables, asked, &earlier, &issued, give_up);
            match proved {
                Ok(_) => {}
                Err(ProofError::GivenUp) => return Err(LedgerError::GivenUp),
                Err(why) => found.push((series_id, why.to_string())),
            }
        }
        Ok(found)
    })
    .await
}

/// Whether any series was ever saved with an accepted ambiguity.
async fn is_any_accepted(conn: &mut Conn) -> Result<bool, LedgerError> {
    let accepted = query(
        "select 1 from series_version where definition like '%\"ambiguity_accepted\":\"%' limit 1",
    );
    Ok(accepted.fetch_optional(conn).await?.is_some())
}

/// The series whose rows stay in the journal: those that accept an ambiguity in a version that may
/// have issued numbers, and each whose numbers may then be equal to one of theirs. Compares texts:
/// in no transaction.
pub(crate) async fn kept(store: &Store) -> Result<KeptSeries, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let stamp = newest(&mut *conn).await?;
    drop(conn);
    if let Some(Unreserved::Ids(ids)) = store.kept.of(stamp) {
        return Ok(KeptSeries { stamp, ids });
    }
    let found = find(store, stamp).await;
    match &found {
        Ok(kept) => store.kept.found(kept.clone()),
        Err(error) if is_failed(error) => {
            tracing::warn!(%error, "which series accept an ambiguity is not known");
            store.kept.failed(stamp, error.to_string());
        }
        Err(_) => {}
    }
    found
}

/// See [`kept`]. What is saved meanwhile has another stamp.
async fn find(store: &Store, stamp: KeptStamp) -> Result<KeptSeries, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    if !is_any_accepted(&mut *conn).await? {
        return Ok(KeptSeries { stamp, ids: Vec::new() });
    }
    let stretches = versions::that_may_have_issued(&mut *conn).await.map_err(unread)?;
    let tables = Arc::new(tables::read(&mut *conn).await?);
    drop(conn);
    let kept = giving_up::search(move |give_up| {
        let all: Vec<&SeriesDefinition> = stretches.iter().map(|one| &*one.definition).collect();
        let accepting = all.iter().copied().filter(|one| one.ambiguity_accepted.is_some());
        let accepting: Vec<&SeriesDefinition> = accepting.collect();
        let codes = numbering::concerned(&accepting, &all, &tables, give_up)?;
        let mut ids: Vec<i64> = stretches
            .iter()
            .filter(|one| codes.contains(&one.definition.code))
            .map(|one| one.series_id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        Some(KeptSeries { stamp, ids })
    });
    kept.await.ok_or(LedgerError::GivenUp)
}

/// Whether the next look at the same versions is likely to fail for the same reason.
fn is_failed(error: &LedgerError) -> bool {
    matches!(error, LedgerError::GivenUp | LedgerError::Refused(_) | LedgerError::Fault(_))
}

/// The ids of the same series as of now, by the last look of [`kept`]: neither a series nor
/// reference data are saved from here on until the transaction ends. Compares no texts and waits
/// for no save.
///
/// Who saves holds the lock of series alone from its begin to its end. So a version that accepts an
/// ambiguity is seen here, or is saved once this transaction has ended: a take by it then sees what
/// was reserved.
pub(crate) async fn keep(store: &Store, conn: &mut Conn) -> Result<Unreserved, LedgerError> {
    if !conn.try_share_own_name(keys::series_lock()).await? {
        return Ok(Unreserved::Changing);
    }
    // A statement of its own: it sees what was committed before that lock was free.
    let stamp = newest(&mut *conn).await?;
    if let Some(known) = store.kept.of(stamp) {
        return Ok(known);
    }
    if is_any_accepted(&mut *conn).await? {
        store.kept.outdate();
        return Ok(Unreserved::Changing);
    }
    store.kept.found(KeptSeries { stamp, ids: Vec::new() });
    Ok(Unreserved::Ids(Vec::new()))
}

/// The newest version and change of reference data, none of what was never changed.
#[derive(FromRow)]
struct StampRow {
    version: Option<i64>,
    saved_at_us: Option<i64>,
    reference: Option<i64>,
    changed_at_us: Option<i64>,
}

/// What a look of now is of.
pub(crate) async fn newest(conn: &mut Conn) -> Result<KeptStamp, LedgerError> {
    let row: StampRow = query_as(
        "select (select max(series_version_id) from series_version) as version,
         (select saved_at_us from series_version
          order by series_version_id desc limit 1) as saved_at_us,
         (select max(reference_change_id) from reference_change) as reference,
         (select changed_at_us from reference_change
          order by reference_change_id desc limit 1) as changed_at_us",
    )
    .fetch_one(conn)
    .await?;
    Ok(KeptStamp {
        version: row.version.unwrap_or_default(),
        saved_at_us: row.saved_at_us.unwrap_or_default(),
        reference: row.reference.unwrap_or_default(),
        changed_at_us: row.changed_at_us.unwrap_or_default(),
    })
}

/// The refusal of an archive where a version cannot be read.
fn unread(error: LedgerError) -> LedgerError {
    let explained = |why: String| {
        format!(
            "archive: a series was saved with `ambiguity_accepted`, and which rows have to stay \
             for it is not known: {why}"
        )
    };
    match error {
        LedgerError::Refused(why) => LedgerError::Refused(explained(why)),
        LedgerError::Fault(why) => LedgerError::Fault(explained(why)),
        other => other,
    }
}

/// Refuses an archive whose rows were chosen by a look that is outdated, where an ambiguity is
/// accepted.
pub(crate) async fn must_be_known(store: &Store, conn: &mut Conn) -> Result<(), LedgerError> {
    let stamp = newest(&mut *conn).await?;
    if store.kept.chosen() == Some(stamp) || !is_any_accepted(conn).await? {
        return Ok(());
    }
    store.kept.forget_chosen();
    let why = "a series was saved with `ambiguity_accepted`, and series or reference data have \
               changed meanwhile, so that other rows may have to stay; archive again";
    Err(LedgerError::Refused(format!("archive: {why}")))
}

/// Refuses a series that accepts an ambiguity where numbers of one that it concerns have moved to
/// files, or are about to.
pub(crate) async fn must_keep_texts_apart(
    conn: &mut Conn,
    codes: &[String],
) -> Result<(), LedgerError> {
    let refused = |why: &str| Err(LedgerError::Refused(format!("ambiguity_accepted: {why}")));
    if codes.is_empty() {
        return Ok(());
    }
    let under_way = query("select 1 from archive_file where ended_at_us is null");
    if under_way.fetch_optional(&mut *conn).await?.is_some() {
        return refused(
            "numbers are moving to an archive at this moment; save the series once `numerator \
             archive` has ended",
        );
    }
    if query("select 1 from archive_file limit 1").fetch_optional(&mut *conn).await?.is_none() {
        return Ok(());
    }
    // Segments have no index; the rows of a counter have one.
    conn.allow_long_search().await?;
    for code in codes {
        let segment = query(
            "select 1 from journal j where j.number is null and j.context is not null
             and j.counter_id in (select c.counter_id from counter c
             join series s on s.series_id = c.series_id where s.code = $1) limit 1",
        );
        if segment.bind(code).fetch_optional(&mut *conn).await?.is_some() {
            return refused(
                "numbers of the series that it concerns have moved to an archive, so that nothing \
                 would refuse a text of theirs; change the template until `numerator series \
                 check` proves it, and leave this out",
            );
        }
    }
    Ok(())
}

//! Series that accept an ambiguity (F43): the series saved although a caller may be answered before
//! the ledger is asked, and the series whose rows must stay in the journal, since only these rows
//! keep a text from coming twice.

use std::sync::Arc;

use numbering::{EarlierVersion, IssuedVersion, ProofError, Series, SeriesDefinition};

use crate::dialect::Conn;
use crate::query::{query, query_scalar};
use crate::series::kept::KeptSeries;
use crate::series::succession::issued_beside;
use crate::series::versions::{self, all_in_force};
use crate::store::Store;
use crate::{LedgerError, SeriesVersion, giving_up, reference};

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
    let tables = Arc::new(reference::read(&mut *conn).await?);
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
/// have issued numbers, and each whose numbers may then be equal to one of theirs.
pub(crate) async fn kept(store: &Store) -> Result<KeptSeries, LedgerError> {
    let mut conn = store.reader.acquire().await?;
    let stamp: Option<i64> = query_scalar("select max(series_version_id) from series_version")
        .fetch_one(&mut *conn)
        .await?;
    let stamp = stamp.unwrap_or_default();
    let known = store.kept.lock().expect("not poisoned").clone();
    if let Some(known) = known.filter(|known| known.stamp == stamp) {
        return Ok(known);
    }
    if !is_any_accepted(&mut *conn).await? {
        let none = KeptSeries { stamp, ids: Vec::new() };
        *store.kept.lock().expect("not poisoned") = Some(none.clone());
        return Ok(none);
    }
    let stretches = versions::that_may_have_issued(&mut *conn).await.map_err(unread)?;
    let tables = Arc::new(reference::read(&mut *conn).await?);
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
    let kept = kept.await.ok_or(LedgerError::GivenUp)?;
    *store.kept.lock().expect("not poisoned") = Some(kept.clone());
    Ok(kept)
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

/// Refuses an archive whose rows were chosen before an ambiguity was accepted.
pub(crate) async fn must_be_known(store: &Store, conn: &mut Conn) -> Result<(), LedgerError> {
    let known = store.kept.lock().expect("not poisoned").clone().unwrap_or_default();
    let newer = query(
        r#"select 1 from series_version where series_version_id > $1
         and definition like '%"ambiguity_accepted":"%' limit 1"#,
    );
    if newer.bind(known.stamp).fetch_optional(conn).await?.is_none() {
        return Ok(());
    }
    let why = "a series was saved with `ambiguity_accepted` meanwhile, so that other rows may have \
               to stay; archive again";
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

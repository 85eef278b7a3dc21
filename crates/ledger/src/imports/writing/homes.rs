//! The series that an import is for: their partitions, and the earlier versions that come along
//! with their counters.
//!
//! Never imports counters without the versions under which their numbers were issued: later saves
//! are proved against these, and against nothing else of the issued numbers.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use numbering::{IssuedVersion, SeriesDefinition};

use crate::columns::unsigned_small;
use crate::dialect::Conn;
use crate::protocol::lift::{self, Stand};
use crate::protocol::partitions;
use crate::query::query_as;
use crate::reference::tables;
use crate::series::{as_written, saving, versions};
use crate::store::Store;
use crate::{
    Counter, ImportedCounter, ImportedVersion, LedgerError, PartitionState, SeriesVersion,
    giving_up,
};

/// Why a version is in force that was so before.
const AGAIN: &str = "in force again, after the earlier versions of the ledger that its counters \
    come from";

/// The partitions of the series, which stay as they are until the transaction ends.
///
/// # Errors
/// `Refused` where a series has another version by now, since a counter of it may have another
/// name; and where its partition is held.
pub(super) async fn homes(
    conn: &mut Conn,
    counters: &[&ImportedCounter],
) -> Result<HashMap<i64, u32>, LedgerError> {
    let versions: BTreeSet<(i64, u32)> =
        counters.iter().map(|counter| (counter.series_id, counter.version)).collect();
    let mut homes = HashMap::with_capacity(versions.len());
    for (series_id, version) in versions {
        let row = query_as("select partition, active_version from series where series_id = $1")
            .for_share()
            .bind(series_id)
            .fetch_optional(&mut *conn)
            .await?;
        let none = || LedgerError::Refused(format!("there is no series {series_id}"));
        let (partition, active): (i32, i32) = row.ok_or_else(none)?;
        let active = unsigned_small(active, "series.active_version")?;
        if active != version {
            let why = "has just been changed; look at the report again";
            return Err(LedgerError::Refused(format!("series {series_id} {why}")));
        }
        let partition = unsigned_small(partition, "series.partition")?;
        // A ledger that went back may have forgotten exactly the counters that would be new.
        if partitions::read(conn, partition).await?.state == PartitionState::Held {
            return Err(LedgerError::Refused(lift::held(partition)));
        }
        homes.insert(series_id, partition);
    }
    Ok(homes)
}

/// Saves those earlier versions that their series does not have among its own, and then the one in
/// force again, so that it stays so. A repeated import adds none.
///
/// # Errors
/// `Refused` where another active series may give a text that one of them may have given, and where
/// the series waits for a proof: saved anew it would count as proved. Those of a save where one of
/// them could render a number that is kept as written.
pub(super) async fn bring_versions(
    store: &Store,
    conn: &mut Conn,
    earlier: &[ImportedVersion],
    now_us: i64,
) -> Result<(), LedgerError> {
    let series: BTreeSet<i64> = earlier.iter().map(|version| version.series_id).collect();
    for series_id in series {
        let known = versions::of_used(conn, series_id).await?;
        let is_new = |version: &&ImportedVersion| {
            version.series_id == series_id
                && known.iter().all(|known| known.definition != version.definition)
        };
        let new: Vec<&ImportedVersion> = earlier.iter().filter(is_new).collect();
        let (Some(in_force), Some(last)) = (versions::by_id(conn, series_id).await?, new.last())
        else {
            continue;
        };
        must_not_wait(conn, &in_force).await?;
        must_be_no_others(conn, &in_force, &new).await?;
        let brought = new.iter().map(|version| version.definition.clone()).collect();
        if let Some(question) = as_written::asked_by_save(store, conn, brought).await? {
            question.compare().await?;
        }
        let again = ImportedVersion {
            series_id,
            definition: in_force.definition.clone(),
            saved_by: last.saved_by.clone(),
            reason: AGAIN.into(),
        };
        let (mut next, mut first) = (in_force, None);
        for version in new.into_iter().chain([&again]) {
            let ImportedVersion { definition, saved_by, reason, .. } = version.clone();
            next = SeriesVersion {
                version: next.version + 1,
                definition,
                saved_by,
                saved_at_us: now_us,
                reason,
                is_new: true,
                ..next
            };
            saving::put_in_force(conn, &mut next).await?;
            let first = *first.get_or_insert(next.stamp);
            saving::note(conn, &next, first, "series-changed").await?;
        }
    }
    Ok(())
}

/// A series that is saved anew without a proof still waits for none: see [`crate::RestingSeries`].
async fn must_not_wait(conn: &mut Conn, in_force: &SeriesVersion) -> Result<(), LedgerError> {
    if in_force.active && saving::waits(in_force, &versions::all_resting(conn).await?) {
        let code = &in_force.definition.code;
        return Err(LedgerError::Refused(format!(
            "series {code} could show again what a series that was deactivated has shown: \
             `numerator series activate {code}` proves that it does not, then import again"
        )));
    }
    Ok(())
}

/// The other series here were saved before these versions were known, and may take here what these
/// took elsewhere.
async fn must_be_no_others(
    conn: &mut Conn,
    of: &SeriesVersion,
    earlier: &[&ImportedVersion],
) -> Result<(), LedgerError> {
    let reference = Arc::new(tables::read(conn).await?);
    let mut others = versions::all_in_force(conn).await?;
    others.retain(|other| other.active && other.series_id != of.series_id);
    let others: Vec<SeriesDefinition> = others.into_iter().map(|other| other.definition).collect();
    let numbered = std::iter::zip(of.version + 1.., earlier);
    let brought: Vec<(u32, Arc<SeriesDefinition>)> =
        numbered.map(|(version, one)| (version, Arc::new(one.definition.clone()))).collect();
    let beside = |other: &SeriesDefinition| {
        let subject = other.code.clone();
        let issued = brought.iter().map(move |(version, definition)| IssuedVersion {
            subject: subject.clone(),
            version: *version,
            definition: Arc::clone(definition),
            then: None,
        });
        issued.collect::<Vec<_>>()
    };
    let issued: Vec<IssuedVersion> = others.iter().flat_map(beside).collect();
    let proving = giving_up::search(move |give_up| {
        numbering::prove_issued(&others, &reference, &issued, give_up)
    });
    proving.await.map_err(|error| {
        let code = &of.definition.code;
        LedgerError::Refused(format!(
            "series {code} has issued numbers elsewhere, in earlier versions that are saved here \
             as version {} and later, and another series could show them again: {error}",
            of.version + 1
        ))
    })
}

/// Locks a counter that an import goes above; the value after which none was taken.
///
/// # Errors
/// `Refused` where Redis counts it, or its partition is held.
pub(super) async fn lock(
    conn: &mut Conn,
    counter_id: i64,
    now_us: i64,
) -> Result<i64, LedgerError> {
    match lift::lock(conn, counter_id, now_us).await? {
        Stand::AtRest { base, .. } => Ok(base),
        Stand::Held(partition) => Err(LedgerError::Refused(lift::held(partition))),
        Stand::InRedis(Counter { key, partition, .. }) => {
            let why = "import again, so that the database takes the partition over first";
            let text = format!("counter {key} of partition {partition} is counted by redis: {why}");
            Err(LedgerError::Refused(text))
        }
    }
}

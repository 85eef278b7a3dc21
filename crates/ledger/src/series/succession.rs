//! What others have issued, and may still issue, at the save of a series (F26): every version that
//! may have had counters, whatever became of its series.
//!
//! A version counts with all times at which it gave numbers, on any node: a node that does not know
//! a change goes on by what it knows, so a later save takes nothing away from an earlier version.

use std::sync::Arc;

use numbering::{IssuedVersion, SeriesDefinition, same_rules};

use crate::dialect::Conn;
use crate::series::versions::{self, Stretch};
use crate::{LedgerError, SeriesVersion};

/// Those of the versions that are of other series, as a series is compared with them. `first`: the
/// stamp of the first version of this save, which has issued nothing.
pub(crate) async fn issued_beside(
    conn: &mut Conn,
    subject: &SeriesVersion,
    stretches: impl Iterator<Item = &Stretch>,
    first: i64,
) -> Result<Vec<IssuedVersion>, LedgerError> {
    let is_other =
        |stretch: &&Stretch| stretch.series_id != subject.series_id && stretch.from < first;
    let others: Vec<&Stretch> = stretches.filter(is_other).collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let mut own = versions::history(conn, subject.series_id).await?;
    own.retain(|one| one.from < first);
    Ok(others.into_iter().flat_map(|other| during(other, subject, &own)).collect())
}

/// One entry for each state of the subject while another version gave numbers.
fn during<'s>(
    other: &'s Stretch,
    subject: &'s SeriesVersion,
    own: &[Stretch],
) -> impl Iterator<Item = IssuedVersion> + use<'s> {
    let taking = |one: &Stretch| one.active.then(|| Arc::clone(&one.definition));
    let mut states: Vec<Option<Arc<SeriesDefinition>>> = vec![None];
    // Numbers from elsewhere were issued regardless of what the subject took here.
    if !other.is_of_elsewhere() {
        states[0] = own.iter().rev().find(|one| one.from <= other.from).and_then(taking);
        let later = own
            .iter()
            .filter(|one| one.from > other.from && other.to.is_none_or(|to| one.from < to));
        // While it rests no other series gets what it took before.
        states.extend(later.filter_map(taking).map(Some));
    }
    states.dedup_by(|one, before| match (one, before) {
        (Some(one), Some(before)) => same_rules(one, before),
        (one, before) => one.is_none() && before.is_none(),
    });
    states.into_iter().map(|then| IssuedVersion {
        subject: subject.definition.code.clone(),
        version: other.version,
        definition: Arc::clone(&other.definition),
        then,
    })
}

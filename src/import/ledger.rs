//! Plans the move of counters out of another ledger of this program, as a change of `partitions`
//! needs it: each counter goes on above all that the old ledger cannot rule out to be handed out.
//! Numbers do not come along; a list of them may be imported beside it.
//!
//! Never plans below a value of the old ledger: what it has not accounted for is a refusal, or
//! counts up to the counter's ceiling.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::counters::needed;
use super::reading::Misfit;
use super::report::{Plan, ProblemKind};
use super::tables::{Record, Source};
use super::tally::{Tally, plan_tables};
use super::{Import, ImportError};
use crate::allocator::ServedSeries;
use crate::number::SeriesDefinition;

/// What must be known before counters can be read.
const FIRST: [&str; 6] =
    ["series", "series_version", "partition", "closed_epoch", "participant", "node"];

/// Reads the counters of another ledger, a PostgreSQL URL or a SQLite file, and says where they go
/// on here.
///
/// # Errors
/// A source that cannot be read or is no ledger, is held, or whose processes have not all left; a
/// ledger that does not answer.
pub async fn plan_ledger(import: &Import<'_>, source: &str) -> Result<Plan, ImportError> {
    let source = Source::of(source)?;
    let mut old = Old::default();
    let there = source
        .read(&FIRST, &mut |record| {
            old.note(&record);
            Ok(())
        })
        .await?;
    if there.len() < FIRST.len() {
        return Err(ImportError::form(source.name(), "there is no ledger of numerator"));
    }
    if old.present > 0 {
        let why = format!(
            "{} of its processes have not left: stop them with SIGTERM, and `numerator drain \
             --apply` for those that died",
            old.present
        );
        return Err(ImportError::form(source.name(), why));
    }
    if old.is_held {
        let why = "it is held, because it went back: release it first with `numerator reconcile \
                   --ledger-restored`";
        return Err(ImportError::form(source.name(), why));
    }
    let series = old.series(import);
    plan_tables(import, &source, &["counter"], |record, tally| old.counter(record, &series, tally))
        .await
}

/// What stands in the old ledger around its counters. Ids stay the texts that they are there.
#[derive(Default)]
struct Old {
    /// Code and active version of each series.
    series: HashMap<String, (String, String)>,
    /// Definition of each version of each series.
    definitions: HashMap<(String, String), String>,
    /// Each partition's epoch, and its last one that was closed at the ceiling.
    partitions: HashMap<String, [Option<u64>; 2]>,
    /// Whether a partition waits for an operator.
    is_held: bool,
    /// Partitions and epochs that were closed with everything accounted for.
    closed_exact: HashSet<(String, u64)>,
    /// Partitions and epochs with somebody who never accounted for what it had.
    silent: HashSet<(String, u64)>,
    /// Processes that have neither left nor been adopted.
    present: u64,
}

/// A series of the old ledger, as it is served here; or why it is not.
type Here<'i> = Result<&'i Arc<ServedSeries>, String>;

impl Old {
    fn note(&mut self, record: &Record) {
        let text = |column| record.get(column).unwrap_or_default().to_owned();
        let at = || Some((text("partition_id"), number(record, "epoch")?));
        match record.table {
            "series" => {
                let of = (text("code"), text("active_version"));
                self.series.insert(text("series_id"), of);
            }
            "series_version" => {
                let of = (text("series_id"), text("version"));
                self.definitions.insert(of, text("definition"));
            }
            "partition" => {
                let epochs = ["epoch", "last_ceiling_epoch"].map(|column| number(record, column));
                self.partitions.insert(text("partition_id"), epochs);
                self.is_held |= record.get("state") == Some("held");
            }
            "closed_epoch" if record.get("closing") == Some("exact") => {
                self.closed_exact.extend(at());
            }
            "participant" if record.get("state") == Some("joined") => self.silent.extend(at()),
            "node" => {
                let is_gone = ["left_at_us", "adopted_at_us"].map(|column| record.get(column));
                self.present += u64::from(is_gone == [None, None]);
            }
            _ => {}
        }
    }

    /// Each series of the old ledger with the one of its code here, which must be the same: under
    /// another definition the counters of its next numbers could have other names.
    fn series<'i>(&self, import: &'i Import<'_>) -> HashMap<&str, Here<'i>> {
        let here = |(id, (code, version)): (&String, &(String, String))| {
            let served = import.catalog.all().find(|s| s.version.definition.code == *code);
            let served = served.ok_or_else(|| {
                format!("series {code} is not here: `numerator series apply` its file first")
            })?;
            let text = self.definitions.get(&(id.clone(), version.clone()));
            let there = text.and_then(|text| serde_json::from_str::<SeriesDefinition>(text).ok());
            if there.as_ref() != Some(&served.version.definition) {
                return Err(format!(
                    "series {code} is another one here: apply what `numerator series show {code}` \
                     says there, and change it once its counters are moved"
                ));
            }
            Ok(served)
        };
        self.series.iter().map(|entry| (entry.0.as_str(), here(entry))).collect()
    }

    /// Notes how far a counter has counted; false where it has given out nothing.
    fn counter(
        &self,
        record: &Record,
        series: &HashMap<&str, Here<'_>>,
        tally: &mut Tally,
    ) -> Result<bool, Misfit> {
        let value = |column: &str| {
            let why = || Misfit::new(ProblemKind::Value, format!("column {column} is no value"));
            needed(record, column)?.parse::<i128>().map_err(|_| why())
        };
        let upto = value(if self.is_accounted_for(record) { "taken" } else { "ceiling" })?;
        if upto <= value("origin")? {
            return Ok(false);
        }
        let not_here = |why: String| Misfit::new(ProblemKind::NotMapped, why);
        let served = match series.get(needed(record, "series_id")?) {
            Some(Ok(served)) => *served,
            Some(Err(why)) => return Err(not_here(why.clone())),
            None => return Err(not_here("its series is not in that ledger".into())),
        };
        let name = needed(record, "serial")?;
        let serial = served.series.serials().iter().find(|serial| serial.name == name);
        let Some(serial) = serial else {
            // A serial that a later version dropped issues nothing any more.
            return Ok(false);
        };
        let distance = u64::try_from(upto).unwrap_or(u64::MAX).saturating_sub(serial.start);
        // What lies between two steps counts as the next: an earlier version counted otherwise.
        let place = distance.div_ceil(serial.step);
        tally.counted_upto(served, serial, record.get("key").unwrap_or_default(), place);
        Ok(true)
    }

    /// Whether nothing above `taken` can have been handed out, by the rule that closes an epoch:
    /// none was closed at the ceiling since the counter's own, and that one was closed exact, or is
    /// the present one, in which everybody has accounted for what it had.
    fn is_accounted_for(&self, record: &Record) -> bool {
        let partition = record.get("partition_id").unwrap_or_default();
        let (Some([Some(present), Some(ceiling)]), Some(epoch)) =
            (self.partitions.get(partition), number(record, "epoch"))
        else {
            return false;
        };
        let at = (partition.to_owned(), epoch);
        let is_settled = if epoch == *present {
            !self.silent.contains(&at)
        } else {
            self.closed_exact.contains(&at)
        };
        epoch > *ceiling && is_settled
    }
}

/// A column that counts something.
fn number(record: &Record, column: &str) -> Option<u64> {
    record.get(column)?.parse().ok()
}

//! Plans the move of counters out of another ledger of this program, as a change of `partitions`
//! needs it: each counter continues above every value that the old ledger cannot rule out as handed
//! out. Numbers are not moved; a list of them may be imported separately.
//!
//! Never plans below a value of the old ledger: unaccounted values are a refusal, or count up to
//! the counter's ceiling.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use numbering::{NUMBER_MAX, ReferenceData, Serial, SeriesDefinition};

use super::counters::needed;
use super::reading::Misfit;
use super::report::{Plan, Problem, ProblemKind, Report};
use super::tables::{Source, TableRow};
use super::tally::Tally;
use super::{Import, ImportError, apply_counters};
use crate::engine::allocator::ServedSeries;
use crate::ledger::{Imported, ImportedVersion};

/// The tables that are read, in one snapshot: `counter` last, because the others define the meaning
/// of its rows.
const TABLES: [&str; 8] = [
    "series",
    "series_version",
    "reference_code",
    "partition",
    "closed_epoch",
    "participant",
    "node",
    COUNTER,
];

const COUNTER: &str = "counter";

/// Reads the counters of another ledger, a PostgreSQL URL or a SQLite file, and plans where they
/// continue here.
///
/// # Errors
/// A source that cannot be read, is not a ledger or is held, or whose processes have not all left;
/// a ledger that does not answer.
pub async fn plan_ledger(import: &Import<'_>, source: &str) -> Result<Plan, ImportError> {
    let source = Source::of(source)?;
    let mut report = Report { source: source.name(), ..Report::default() };
    let mut tally = Tally::default();
    let (mut old, mut series) = (Old::default(), None);
    let there = source
        .read(&TABLES, &mut |table_row| {
            if table_row.table == COUNTER {
                let series = series.get_or_insert_with(|| old.series(import));
                let noted = old.counter(&table_row, series, &mut tally);
                report.note(&table_row, noted);
                (import.progress)(report.rows);
            } else {
                old.note(&table_row);
            }
            Ok(())
        })
        .await?;
    if there.len() < TABLES.len() {
        return Err(ImportError::form(source.name(), "there is no ledger of numerator"));
    }
    old.must_rest(&source)?;
    let stand = old.stand();
    for problem in old.strangers(import.catalog.reference()) {
        report.add(problem);
    }
    let mut plan = tally.plan(import, report).await?;
    let counted: BTreeSet<i64> = plan.counters.iter().map(|counter| counter.series_id).collect();
    for (id, here) in series.into_iter().flatten() {
        if let Ok(here) = here
            && counted.contains(&here.version.series_id)
        {
            plan.earlier.extend(old.earlier(&id, here, import)?);
        }
    }
    plan.stand = Some(stand);
    Ok(plan)
}

/// Makes the counters of another ledger as they were planned, with the earlier versions of their
/// series, all or none.
///
/// # Errors
/// `Form` if the plan has problems, or a process has worked in the other ledger since; anything
/// that prevents this one from importing.
pub async fn apply_ledger(
    import: &Import<'_>,
    source: &str,
    plan: &Plan,
) -> Result<Imported, ImportError> {
    let source = Source::of(source)?;
    let mut old = Old::default();
    let note = &mut |table_row: TableRow| {
        old.note(&table_row);
        Ok(())
    };
    source.read(&["partition", "node"], note).await?;
    old.must_rest(&source)?;
    if plan.stand != Some(old.stand()) {
        let why = "somebody has taken numbers there since it was read: keep every process away \
                   from it, and import again";
        return Err(ImportError::form(source.name(), why));
    }
    apply_counters(import, plan).await
}

/// The state of another ledger. Every process that takes numbers there registers first, and none is
/// ever removed; each epoch is recorded too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stand {
    nodes: u64,
    /// Of each partition.
    epochs: BTreeMap<String, [Option<u64>; 3]>,
}

/// The rows of the old ledger around its counters. Ids remain texts.
#[derive(Default)]
struct Old {
    series: HashMap<String, OldSeries>,
    /// Each partition's epoch, its last one that was closed at the ceiling, and up to which one
    /// counters were raised.
    partitions: BTreeMap<String, [Option<u64>; 3]>,
    /// Whether a partition waits for an operator.
    is_held: bool,
    /// Partitions and epochs that were closed with everything accounted for.
    closed_exact: HashSet<(String, u64)>,
    /// Partitions and epochs with a process that never accounted for its values.
    silent: HashSet<(String, u64)>,
    /// Processes that ever were.
    nodes: u64,
    /// Processes that have neither left nor been adopted.
    present: u64,
    /// The id of each code that a table has or had.
    references: BTreeMap<(String, String), String>,
}

/// A series of the old ledger.
#[derive(Default)]
struct OldSeries {
    code: String,
    active_version: u64,
    /// The first version that may have issued numbers.
    used_since: u64,
    versions: BTreeMap<u64, OldVersion>,
}

struct OldVersion {
    definition: String,
    saved_by: String,
    reason: String,
}

impl OldVersion {
    /// Its definition, if this program knows all of its fields.
    fn definition(&self) -> Option<SeriesDefinition> {
        serde_json::from_str(&self.definition).ok()
    }
}

/// The series here for one of the old ledger; or why there is none.
type Here<'i> = Result<&'i Arc<ServedSeries>, String>;

impl Old {
    fn note(&mut self, table_row: &TableRow) {
        let text = |column| table_row.get(column).unwrap_or_default().to_owned();
        let at = || Some((text("partition_id"), number(table_row, "epoch")?));
        match table_row.table {
            "series" => {
                let series = self.series.entry(text("series_id")).or_default();
                series.code = text("code");
                series.active_version = number(table_row, "active_version").unwrap_or(0);
                series.used_since = number(table_row, "used_since").unwrap_or(0);
            }
            "series_version" => {
                let series = self.series.entry(text("series_id")).or_default();
                let [definition, saved_by, reason] = ["definition", "saved_by", "reason"].map(text);
                let version = OldVersion { definition, saved_by, reason };
                series.versions.insert(number(table_row, "version").unwrap_or(0), version);
            }
            "reference_code" => {
                let of = (text("table_name"), text("code"));
                self.references.insert(of, text("reference_id"));
            }
            "partition" => {
                let epochs = ["epoch", "last_ceiling_epoch", "lifted_epoch"]
                    .map(|column| number(table_row, column));
                self.partitions.insert(text("partition_id"), epochs);
                self.is_held |= table_row.get("state") == Some("held");
            }
            "closed_epoch" if table_row.get("closing") == Some("exact") => {
                self.closed_exact.extend(at());
            }
            "participant" if table_row.get("state") == Some("joined") => self.silent.extend(at()),
            "node" => {
                let is_gone = ["left_at_us", "adopted_at_us"].map(|column| table_row.get(column));
                self.nodes += 1;
                self.present += u64::from(is_gone == [None, None]);
            }
            _ => {}
        }
    }

    fn stand(&self) -> Stand {
        Stand { nodes: self.nodes, epochs: self.partitions.clone() }
    }

    /// No process takes numbers there, and none may have numbers that the ledger does not know.
    fn must_rest(&self, source: &Source) -> Result<(), ImportError> {
        if self.present > 0 {
            let why = format!(
                "{} of its processes have not left: stop them with SIGTERM, and `numerator drain \
                 --apply` for those that died",
                self.present
            );
            return Err(ImportError::form(source.name(), why));
        }
        if self.is_held {
            let why = "it is held, because it went back: release it first with `numerator \
                       reconcile --ledger-restored`";
            return Err(ImportError::form(source.name(), why));
        }
        Ok(())
    }

    /// Codes with different meanings here and there. Counters are named by ids: one would continue
    /// as another row's. And a forgotten code could be given to another row, whose counter would
    /// show its numbers again.
    fn strangers(&self, here: &ReferenceData) -> Vec<Problem> {
        let mut problems = Vec::new();
        for ((table, code), id) in &self.references {
            let detail = match here.by_code(table, code) {
                Some(row) if row.id == *id => continue,
                Some(row) => format!(
                    "it is id {id} there and id {} here, and counters hold ids: set the new ledger \
                     up anew, with the ids of the other one",
                    row.id
                ),
                None => {
                    let here = here.by_id(table, id).map_or_else(
                        || format!("which is nothing here: import the row id {id}, code {code}"),
                        |row| {
                            let present = &row.code;
                            format!(
                                "which is {present} here and never was {code}: if they are one \
                                 thing, import it as {code}, and then again as {present}"
                            )
                        },
                    );
                    format!("it is id {id} there, {here} (`numerator reference import`)")
                }
            };
            let place = format!("{table} {code}");
            problems.push(Problem { place, number: None, kind: ProblemKind::NotMapped, detail });
        }
        problems
    }

    /// Each series of the old ledger with the one of its code here, which must be the same: under
    /// another definition the counters of its next numbers could have other names.
    fn series<'i>(&self, import: &'i Import<'_>) -> HashMap<String, Here<'i>> {
        let here = |series: &OldSeries| {
            let OldSeries { code, active_version, versions, .. } = series;
            let served = import.catalog.all().find(|s| s.version.definition.code == *code);
            let served = served.ok_or_else(|| {
                format!("series {code} is not here: `numerator series apply` its file first")
            })?;
            let there = versions.get(active_version).and_then(OldVersion::definition);
            if there.map(undated) != Some(undated(served.version.definition.clone())) {
                return Err(format!(
                    "series {code} is another one here: apply what `numerator series show {code}` \
                     says there, and change it once its counters are moved"
                ));
            }
            Ok(served)
        };
        self.series.iter().map(|(id, series)| (id.clone(), here(series))).collect()
    }

    /// Versions before the active one under which numbers may have been issued, each once: later
    /// versions here are proved against them.
    fn earlier(
        &self,
        id: &str,
        here: &ServedSeries,
        import: &Import<'_>,
    ) -> Result<Vec<ImportedVersion>, ImportError> {
        let OldSeries { code, active_version, used_since, versions } = &self.series[id];
        let mut earlier: Vec<ImportedVersion> = Vec::new();
        for (number, version) in versions.range(used_since..active_version) {
            let Some(definition) = version.definition() else {
                let place = format!("series {code} version {number}");
                let why = "is none that this version of numerator knows; import with a newer one";
                return Err(ImportError::form(place, why));
            };
            let is_known = earlier.iter().any(|known| known.definition == definition);
            if is_known || definition == here.version.definition {
                continue;
            }
            let OldVersion { saved_by, reason, .. } = version;
            earlier.push(ImportedVersion {
                series_id: here.version.series_id,
                definition,
                saved_by: import.choice.user_id.clone(),
                reason: format!("version {number} of another ledger, by {saved_by}: {reason}"),
            });
        }
        Ok(earlier)
    }

    /// Notes how far a counter has counted; false if it has issued nothing.
    fn counter(
        &self,
        table_row: &TableRow,
        series: &HashMap<String, Here<'_>>,
        tally: &mut Tally,
    ) -> Result<bool, Misfit> {
        let value = |column: &str| {
            let why = || Misfit::new(ProblemKind::Value, format!("column {column} is no value"));
            needed(table_row, column)?.parse::<i128>().map_err(|_| why())
        };
        let upto = value(if self.is_accounted_for(table_row) { "taken" } else { "ceiling" })?;
        let (origin, step) = (value("origin")?, value("step")?.max(1));
        if upto <= origin {
            return Ok(false);
        }
        let not_here = |why: String| Misfit::new(ProblemKind::NotMapped, why);
        let served = match series.get(needed(table_row, "series_id")?) {
            Some(Ok(served)) => *served,
            Some(Err(why)) => return Err(not_here(why.clone())),
            None => return Err(not_here("its series is not in that ledger".into())),
        };
        // With the counter's own step and beginning, which may be an earlier version's; also for a
        // serial that the active version lacks, because a later one may have it again.
        let first = origin + step;
        let first = if first < 0 { first.rem_euclid(step) } else { first };
        let whole = |value: i128| {
            let why =
                || Misfit::new(ProblemKind::Value, format!("{value} is no value of a counter"));
            u64::try_from(value).map_err(|_| why())
        };
        let name = needed(table_row, "serial")?.to_owned();
        let (start, step) = (whole(first)?, whole(step)?);
        let serial = Serial { name, start, step, max: NUMBER_MAX };
        // A value between two steps counts as the next.
        let place = whole(upto)?.saturating_sub(start).div_ceil(step);
        tally.counted_upto(served, &serial, table_row.get("key").unwrap_or_default(), place);
        Ok(true)
    }

    /// Whether nothing above `taken` can have been handed out, by the rule that closes an epoch:
    /// the counter was not raised, and its epoch was closed exact, or is the present one, in which
    /// every process has accounted for its values.
    fn is_accounted_for(&self, table_row: &TableRow) -> bool {
        let partition = table_row.get("partition_id").unwrap_or_default();
        let (Some([Some(present), _, Some(lifted)]), Some(epoch)) =
            (self.partitions.get(partition), number(table_row, "epoch"))
        else {
            return false;
        };
        let at = (partition.to_owned(), epoch);
        let is_settled = if epoch == *present {
            !self.silent.contains(&at)
        } else {
            self.closed_exact.contains(&at)
        };
        epoch > *lifted && is_settled
    }
}

/// A column that counts something.
fn number(table_row: &TableRow, column: &str) -> Option<u64> {
    table_row.get(column)?.parse().ok()
}

/// A definition but for the dates that it takes, which name no counter: a series that is applied
/// here has them, and one that an earlier release saved does not.
fn undated(definition: SeriesDefinition) -> SeriesDefinition {
    SeriesDefinition { document_date: None, dates: None, ..definition }
}

//! The data of a source for each counter, added up while it is read.

use std::collections::{BTreeMap, BTreeSet};

use numbering::{Range, Serial};

use super::reading::Misfit;
use super::report::{CounterReport, Plan, Problem, ProblemKind, Report};
use super::runs::Runs;
use super::tables::{Source, TableRow};
use super::{Import, ImportError};
use crate::engine::allocator::ServedSeries;
use crate::ledger::{
    AS_WRITTEN_SERIAL, Counter, Gap, GapFilter, GapReason, ImportedCounter, SharedLedger, Span,
};

/// Most runs of values that are held, over all counters: about 100 MB at worst.
const RUNS_MAX: usize = 1_000_000;
/// Counters that are listed; more are counted.
const COUNTERS_LISTED_MAX: usize = 1_000;
/// Gaps of one counter that are queried from the ledger.
const GAPS_ASKED: u32 = 10_000;
/// Holes that are listed of a counter; more are counted.
const HOLES_LISTED_MAX: usize = 10;

/// Plans the import of the counters in tables. `note` notes the content of a row, and returns
/// whether there is any; a row that it cannot map is a problem.
///
/// # Errors
/// A source that cannot be read or has no row of the tables; a ledger that does not answer.
pub(super) async fn plan_tables(
    import: &Import<'_>,
    source: &Source,
    tables: &[&'static str],
    note: impl Fn(&TableRow, &mut Tally) -> Result<bool, Misfit> + Sync,
) -> Result<Plan, ImportError> {
    let mut report = Report { source: source.name(), ..Report::default() };
    let mut tally = Tally::default();
    let there = source
        .read(tables, &mut |table_row| {
            let noted = note(&table_row, &mut tally);
            report.note(&table_row, noted);
            (import.progress)(report.rows);
            Ok(())
        })
        .await?;
    source.must_have_rows(tables, &there, report.rows)?;
    tally.plan(import, report).await
}

/// Counters by the code of their series, the name of their serial and their key.
#[derive(Default)]
pub(super) struct Tally {
    counters: BTreeMap<(String, String, String), Counted>,
    runs: usize,
}

struct Counted {
    series_id: i64,
    version: u32,
    start: u64,
    step: u64,
    /// Places of the values that come along.
    runs: Runs,
    /// Highest issued place, whether its number is imported or not.
    highest: u64,
    /// Whether the source says all that the counter has counted.
    is_told: bool,
    /// If numbers are imported into a series with chronology: the group that shares its last date.
    family: Option<String>,
}

impl Tally {
    /// Notes the values of a number, with the family of counters that its date counts for; returns
    /// one that the counter has already, if any.
    ///
    /// # Errors
    /// `Form` if the values are too scattered for the memory that an import may take.
    pub(super) fn number(
        &mut self,
        served: &ServedSeries,
        serial: &Serial,
        key: &str,
        values: Range,
        family: Option<&str>,
    ) -> Result<Option<u64>, ImportError> {
        let place_of = |value: u64| (value - serial.start) / serial.step;
        let counted = self.counter(served, serial, key);
        if counted.family.is_none() {
            counted.family = family.map(str::to_owned);
        }
        counted.highest = counted.highest.max(place_of(values.last));
        let before = counted.runs.len();
        let mut places = place_of(values.first)..=place_of(values.last);
        let met = places.find(|place| !counted.runs.insert(*place));
        let after = counted.runs.len();
        self.runs = self.runs + after - before;
        if self.runs > RUNS_MAX {
            let why = "the values have more than 1,000,000 holes; import fewer counters at a time";
            return Err(ImportError::form("the source", why));
        }
        Ok(met.map(|place| serial.start + place * serial.step))
    }

    /// Notes that a counter has counted up to a place of its step; its highest counts.
    pub(super) fn counted_upto(
        &mut self,
        served: &ServedSeries,
        serial: &Serial,
        key: &str,
        place: u64,
    ) {
        let counted = self.counter(served, serial, key);
        counted.highest = counted.highest.max(place);
    }

    /// Notes that the source says all that a counter has counted.
    pub(super) fn tell(&mut self, served: &ServedSeries, serial: &Serial, key: &str) {
        self.counter(served, serial, key).is_told = true;
    }

    /// The counters of which it does not say that, by series, serial and key.
    pub(super) fn untold(&self) -> Vec<(String, String, String)> {
        let untold = self.counters.iter().filter(|(_, counted)| !counted.is_told);
        untold.map(|(name, _)| name.clone()).collect()
    }

    fn counter(&mut self, served: &ServedSeries, serial: &Serial, key: &str) -> &mut Counted {
        let code = served.version.definition.code.clone();
        self.counters.entry((code, serial.name.clone(), key.to_owned())).or_insert_with(|| {
            Counted {
                series_id: served.version.series_id,
                version: served.version.version,
                start: serial.start,
                step: serial.step,
                runs: Runs::default(),
                highest: 0,
                is_told: false,
                family: None,
            }
        })
    }

    /// The plan: values that the counters here have passed are problems of it.
    pub(super) async fn plan(
        self,
        import: &Import<'_>,
        mut report: Report,
    ) -> Result<Plan, ImportError> {
        let mut counters = Vec::with_capacity(self.counters.len());
        let mut handed_over = BTreeSet::new();
        report.counters_total = self.counters.len() as u64;
        for ((series, serial, key), counted) in self.counters {
            let there = import.ledger.counters().get(counted.series_id, &serial, &key).await?;
            let stands_at = there.as_ref().map(|there| u64::try_from(there.taken).unwrap_or(0));
            if serial == AS_WRITTEN_SERIAL {
                report.counters_total -= 1;
                let numbers = (counted.value(counted.highest), stands_at.unwrap_or(0));
                if let Some(problem) = unkept(&series, numbers) {
                    report.add(problem);
                }
                continue;
            }
            if let (Some(there), Some(at)) = (&there, stands_at) {
                if counted.value(counted.highest) > at {
                    handed_over.insert(there.partition);
                }
                if !counted.fits(at, &open(import.ledger, there).await?) {
                    report.add(Problem {
                        place: format!("series {series}, counter {key}"),
                        number: None,
                        kind: ProblemKind::CounterPassed,
                        detail: format!(
                            "it stands at {at} here; up to there only numbers that an earlier \
                             import left out of it may be added: leave the others out, or import \
                             into a series of another code",
                        ),
                    });
                }
            }
            if report.counters.len() < COUNTERS_LISTED_MAX {
                report.counters.push(counted.report(&series, &serial, &key, stands_at));
            }
            counters.push(ImportedCounter {
                series_id: counted.series_id,
                serial,
                key,
                version: counted.version,
                start: counted.start,
                step: counted.step,
                highest: counted.value(counted.highest),
                family: counted.family,
            });
        }
        Ok(Plan { report, counters, earlier: Vec::new(), handed_over, stand: None })
    }
}

/// The problem of a counter of numbers that are kept as written, `there` and `here`: their texts do
/// not come along, and without them a series here could issue one again. None where there are as
/// many here.
fn unkept(series: &str, (there, here): (u64, u64)) -> Option<Problem> {
    let detail = format!(
        "{there} are kept there and {here} here: their texts do not come along with counters. \
         Those there are listed by `numerator find --path as-written`; register each here by \
         `numerator register … --as-written`, then import again"
    );
    let place = format!("series {series}, numbers as written");
    let problem = Problem { place, number: None, kind: ProblemKind::NotMapped, detail };
    (here < there).then_some(problem)
}

/// Values that an earlier import left open, as far as they can be listed.
async fn open(ledger: &SharedLedger, counter: &Counter) -> Result<Vec<Gap>, ImportError> {
    let filter = GapFilter {
        counter_id: Some(counter.counter_id),
        reason: Some(GapReason::BeforeImport),
        limit: GAPS_ASKED,
        ..GapFilter::default()
    };
    Ok(ledger.register().gaps(&filter).await?)
}

impl Counted {
    /// Whether all imported values are above the counter's present one, or are open. Beyond the
    /// queried gaps the ledger itself decides.
    fn fits(&self, stands_at: u64, open: &[Gap]) -> bool {
        if open.len() >= GAPS_ASKED as usize {
            return true;
        }
        let holds = |gap: &Gap, (first, last): (u64, u64)| {
            gap.step == self.step
                && gap.span.first <= self.value(first)
                && self.value(last) <= gap.span.last
        };
        let above = self.place_above(Some(stands_at));
        let mut below = self.runs.iter().filter(|(first, _)| *first < above);
        below.all(|(first, last)| {
            let run = (first, last.min(above - 1));
            open.iter().any(|gap| holds(gap, run))
        })
    }

    fn value(&self, place: u64) -> u64 {
        self.start + place * self.step
    }

    /// The first place above the counter's present one; for a new counter the first of all.
    fn place_above(&self, stands_at: Option<u64>) -> u64 {
        match stands_at.and_then(|at| at.checked_sub(self.start)) {
            Some(distance) => distance / self.step + 1,
            None => 0,
        }
    }

    fn report(
        &self,
        series: &str,
        serial: &str,
        key: &str,
        stands_at: Option<u64>,
    ) -> CounterReport {
        let span = |(first, last)| Span { first: self.value(first), last: self.value(last) };
        let above = self.place_above(stands_at);
        let holes = self.runs.holes(above).take(HOLES_LISTED_MAX).map(span).collect();
        let (first, _) = self.runs.ends().unwrap_or((0, 0));
        CounterReport {
            series: series.to_owned(),
            serial: serial.to_owned(),
            counter_key: key.to_owned(),
            stands_at,
            first: self.value(first),
            last: self.value(self.highest),
            numbers: self.runs.count(),
            missing: (self.highest + 1).saturating_sub(above) - self.runs.count_from(above),
            holes,
        }
    }
}

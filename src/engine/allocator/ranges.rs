//! Numbers within ranges and gaps. The journal has a range under its first number only, and the
//! register of gaps has values alone, so numbers are found there by the counter and the value that
//! they show: read by every version of a series, and looked up in each counter that the number may
//! have come from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use numbering::ParsedSerial;

use super::catalog::{Catalog, ServedSeries};
use crate::ledger::{
    COUNTERS_LOOKED_MAX, Gap, JournalRow, LedgerError, SeriesVersion, SharedLedger, ValueRuns,
};

/// Most counters that are asked for by their names in the search for one number.
const PROBES_MAX: usize = 1_000;

/// Most searches among the counters of a series, for one number.
const SEARCHES_MAX: usize = 8;

/// Where a number may be. In one order, so that the same is asked each time.
#[derive(Default)]
struct Probes {
    /// Counters by name, and the value that the number shows of each.
    counters: BTreeSet<Probe>,
    /// Serials one of whose counters it may be, with what the number shows of its key.
    searches: BTreeSet<Search>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Probe {
    series_id: i64,
    serial: String,
    key: String,
    value: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Search {
    series_id: i64,
    code: String,
    serial: String,
    shown: Vec<(String, String)>,
    value: u64,
}

/// Counters, each with a value that a range of it holds.
#[derive(Default)]
struct Places {
    /// By id and value.
    all: BTreeSet<(i64, u64)>,
    /// The error where not all were searched, the first reason of several.
    unsearched: Option<LedgerError>,
}

impl Places {
    fn leave_out(&mut self, why: String) {
        self.unsearched.get_or_insert(LedgerError::Unsearched(why));
    }
}

impl Catalog {
    /// The journal rows of the ranges that hold a number, one for each scope of uniqueness at most,
    /// as far as a version of a wanted series reads it; and `Unsearched` where there are more
    /// counters than are searched: it matters where nothing is found that the caller may see.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering.
    pub async fn find_ranges(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<(Vec<JournalRow>, Option<LedgerError>), LedgerError> {
        let (found, unsearched) = self.find_members(ledger, number, wanted).await?;
        Ok((found.into_iter().map(|(row, _)| row).collect(), unsearched))
    }

    /// The same, each with the value of the number within its range.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering.
    pub async fn find_members(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<(Vec<(JournalRow, u64)>, Option<LedgerError>), LedgerError> {
        let places = self.places(ledger, ValueRuns::Issued, number, wanted).await?;
        let Places { all, unsearched } = places;
        let mut found = Vec::new();
        for (counter_id, value) in all {
            let row = ledger.register().row_of(counter_id, value).await?;
            let row = row.filter(|row| row.entry.shows(value, number));
            found.extend(row.map(|row| (row, value)));
        }
        Ok((found, unsearched))
    }

    /// The archive files that hold a value which a version of a series renders as this number.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering. `Unsearched` where nothing is found and there are
    /// more counters than are searched.
    pub async fn find_archived(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
    ) -> Result<Vec<String>, LedgerError> {
        let places = self.places(ledger, ValueRuns::Issued, number, |_| true).await?;
        let Places { all, unsearched } = places;
        let mut files = Vec::new();
        for (counter_id, value) in all {
            let note = ledger.archive().of_value(counter_id, value).await?;
            files.extend(note.map(|note| note.file));
        }
        match unsearched.filter(|_| files.is_empty()) {
            Some(unsearched) => Err(unsearched),
            None => Ok(files),
        }
    }

    /// The gaps that have the value of a number, as far as a version of a wanted series reads it.
    /// Where there are more counters than are searched, those of the others are left out.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering.
    pub async fn find_gaps(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<Vec<(u64, Gap)>, LedgerError> {
        let Places { all, .. } = self.places(ledger, ValueRuns::Gaps, number, wanted).await?;
        let mut found = Vec::new();
        for (counter_id, value) in all {
            let gap = ledger.register().gap_of(counter_id, value).await?;
            found.extend(gap.map(|gap| (value, gap)));
        }
        Ok(found)
    }

    /// The counters of which a run holds a number.
    async fn places(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        runs: ValueRuns,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<Places, LedgerError> {
        self.know_earlier(ledger).await?;
        let (catalog, text) = (Arc::clone(self), number.to_owned());
        let probing = tokio::task::spawn_blocking(move || catalog.probes(&text, wanted));
        // The process ends.
        let ended = |error| LedgerError::Unreachable {
            cause: format!("the number was not read: {error}"),
            maybe_written: false,
        };
        let Probes { counters, searches } = probing.await.map_err(ended)?;
        let mut places = Places::default();
        ask_by_name(ledger, runs, counters, &mut places).await?;
        search(ledger, runs, searches, &mut places).await?;
        Ok(places)
    }

    /// Where a number may be, as each version of each wanted series reads it.
    fn probes(&self, number: &str, wanted: impl Fn(&SeriesVersion) -> bool) -> Probes {
        let mut probes = Probes::default();
        for served in self.all().filter(|served| wanted(&served.version)) {
            let earlier = self.earlier_of(served.version.series_id);
            for version in std::iter::once(served).chain(earlier) {
                let Some((of_version, search)) = probes_of(version, number) else { continue };
                probes.counters.extend(of_version);
                probes.searches.extend(search);
            }
        }
        probes
    }
}

/// Asks for counters by their names, those of one value together.
async fn ask_by_name(
    ledger: &SharedLedger,
    runs: ValueRuns,
    counters: BTreeSet<Probe>,
    places: &mut Places,
) -> Result<(), LedgerError> {
    if counters.len() > PROBES_MAX {
        places.leave_out(format!(
            "it may be within a range of more than {PROBES_MAX} counters, of which so many are \
             looked at: look for it with the code of its series, or for the range by its document, \
             or by project and time"
        ));
    }
    let mut by_value: BTreeMap<u64, Vec<Probe>> = BTreeMap::new();
    for probe in counters.into_iter().take(PROBES_MAX) {
        by_value.entry(probe.value).or_default().push(probe);
    }
    for (value, probes) in by_value {
        let names: Vec<(i64, &str, &str)> =
            probes.iter().map(|probe| (probe.series_id, &*probe.serial, &*probe.key)).collect();
        let holding = ledger.counters().named_holding(runs, &names, value).await?;
        places.all.extend(holding.counters.into_iter().map(|counter_id| (counter_id, value)));
        if !holding.is_whole {
            places.leave_out(format!(
                "more ranges hold {value} than are looked at, and it may be one of the others: \
                 look for it with the code of its series, or for the range by its document, or by \
                 project and time"
            ));
        }
    }
    Ok(())
}

/// Asks for counters of serials whose numbers do not show them.
async fn search(
    ledger: &SharedLedger,
    runs: ValueRuns,
    searches: BTreeSet<Search>,
    places: &mut Places,
) -> Result<(), LedgerError> {
    for (index, search) in searches.into_iter().enumerate() {
        let Search { series_id, code, serial, shown, value } = search;
        if index == SEARCHES_MAX {
            places.leave_out(format!(
                "it may be within a range of series {code} or of others behind it: of series whose \
                 numbers do not show their counter {SEARCHES_MAX} are searched; look for it with \
                 the code of its series"
            ));
            break;
        }
        let of_serial = (series_id, &*serial);
        let holding = ledger.counters().holding(runs, of_serial, &shown, value).await?;
        places.all.extend(holding.counters.into_iter().map(|counter_id| (counter_id, value)));
        if !holding.is_whole {
            places.leave_out(format!(
                "it may be within a range of series {code}, whose numbers do not show their \
                 counter: more than {COUNTERS_LOOKED_MAX} of them may have it, or more ranges hold \
                 {value} than are looked at; look for the range by its document, or by project and \
                 time"
            ));
        }
    }
    Ok(())
}

/// Where a number may be, as one version reads it: counters by name, and what to search for where
/// these may not be all.
fn probes_of(served: &ServedSeries, number: &str) -> Option<(Vec<Probe>, Option<Search>)> {
    let (version, series) = (&served.version, &served.series);
    let parsed = series.parse(number).ok()?;
    let ParsedSerial { name, value } = parsed.serials.first()?.clone();
    let series_id = version.series_id;
    let keys = series.origins(&parsed).into_iter().map(|key| key.to_string());
    let probe = |key| Probe { series_id, serial: name.clone(), key, value };
    let counters = keys.map(probe).collect();
    let search = (!series.tells_origin(&parsed)).then(|| Search {
        series_id,
        code: version.definition.code.clone(),
        serial: name.clone(),
        shown: series.shown_of_origin(&parsed),
        value,
    });
    Some((counters, search))
}

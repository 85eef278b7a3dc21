//! Numbers within ranges. A range stands in the journal under its first number only, so its other
//! numbers are found by the counter and the value that they show: read by every version of a
//! series, and asked of each counter that the number may have come from.

use std::collections::HashSet;
use std::sync::Arc;

use numbering::ParsedSerial;

use super::catalog::{Catalog, ServedSeries};
use crate::ledger::{COUNTERS_LOOKED_MAX, JournalRow, LedgerError, SeriesVersion, SharedLedger};

/// Most counters that are asked for by their names in the search for one number.
const PROBES_MAX: usize = 64;

/// Most searches among the counters of a series, for one number.
const SEARCHES_MAX: usize = 8;

/// Where a number may be.
#[derive(Default)]
struct Probes {
    /// Counters by name, and the value that the number shows of each.
    counters: Vec<Probe>,
    /// Serials one of whose counters it may be, with what the number shows of its key.
    searches: Vec<Search>,
}

#[derive(PartialEq, Eq, Hash)]
struct Probe {
    series_id: i64,
    serial: String,
    key: String,
    value: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Search {
    series_id: i64,
    code: String,
    serial: String,
    shown: Vec<(String, String)>,
    value: u64,
}

/// A counter that has a value.
struct Place {
    counter_id: i64,
    value: u64,
}

impl Catalog {
    /// The journal rows of the ranges that hold a number, one for each scope of uniqueness at most,
    /// as far as a version of a wanted series reads it.
    ///
    /// # Errors
    /// Whatever keeps the ledger from answering. `Unsearched` where nothing is found and there are
    /// more counters than are looked at.
    pub async fn find_ranges(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<Vec<JournalRow>, LedgerError> {
        let (places, unsearched) = self.places(ledger, number, wanted).await?;
        let mut found: Vec<JournalRow> = Vec::new();
        for Place { counter_id, value } in places {
            let row = ledger.row_of(counter_id, value).await?;
            found.extend(row.filter(|row| row.entry.shows(value, number)));
        }
        match unsearched.filter(|_| found.is_empty()) {
            Some(unsearched) => Err(unsearched),
            None => Ok(found),
        }
    }

    /// The archive files that hold a value which a version of a series renders as this number.
    ///
    /// # Errors
    /// As [`Catalog::find_ranges`].
    pub async fn find_archived(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
    ) -> Result<Vec<String>, LedgerError> {
        let (places, unsearched) = self.places(ledger, number, |_| true).await?;
        let mut files = Vec::new();
        for Place { counter_id, value } in places {
            let note = ledger.archived_value(counter_id, value).await?;
            files.extend(note.map(|note| note.file));
        }
        match unsearched.filter(|_| files.is_empty()) {
            Some(unsearched) => Err(unsearched),
            None => Ok(files),
        }
    }

    /// The counters that may hold a number, and what is said where not all were looked at.
    async fn places(
        self: &Arc<Self>,
        ledger: &SharedLedger,
        number: &str,
        wanted: impl Fn(&SeriesVersion) -> bool + Send + 'static,
    ) -> Result<(Vec<Place>, Option<LedgerError>), LedgerError> {
        self.know_earlier(ledger).await?;
        let (catalog, text) = (Arc::clone(self), number.to_owned());
        let probing = tokio::task::spawn_blocking(move || catalog.probes(&text, wanted));
        let Probes { counters, searches } = probing.await.expect("reading does not panic");
        let (mut places, mut met) = (Vec::new(), HashSet::new());
        for Probe { series_id, serial, key, value } in counters {
            let Some(counter) = ledger.counter(series_id, &serial, &key).await? else { continue };
            if met.insert((counter.counter_id, value)) {
                places.push(Place { counter_id: counter.counter_id, value });
            }
        }
        let mut unsearched = None;
        for (index, search) in searches.into_iter().enumerate() {
            let Search { series_id, code, serial, shown, value } = search;
            if index < SEARCHES_MAX {
                let asked = ledger.counters_holding((series_id, &serial), &shown, value).await?;
                let of_counter = |counter_id| Place { counter_id, value };
                let new = asked.counters.into_iter().filter(|id| met.insert((*id, value)));
                places.extend(new.map(of_counter));
                if asked.is_whole {
                    continue;
                }
            }
            let why = format!(
                "it may be within a range of series {code}, whose numbers do not show their \
                 counter and which has more than {COUNTERS_LOOKED_MAX} of them: look for the range \
                 by its document, or by project and time"
            );
            unsearched.get_or_insert(LedgerError::Unsearched(why));
        }
        Ok((places, unsearched))
    }

    /// Where a number may be, as each version of each wanted series reads it.
    fn probes(&self, number: &str, wanted: impl Fn(&SeriesVersion) -> bool) -> Probes {
        let mut probes = Probes::default();
        let (mut counters, mut searches) = (HashSet::new(), HashSet::new());
        for served in self.all().filter(|served| wanted(&served.version)) {
            let earlier = self.earlier_of(served.version.series_id);
            for version in std::iter::once(served).chain(earlier) {
                let Some((of_version, search)) = probes_of(version, number) else { continue };
                counters.extend(of_version);
                searches.extend(search);
            }
        }
        probes.counters.extend(counters.into_iter().take(PROBES_MAX));
        probes.searches.extend(searches);
        probes
    }
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

//! The time that a list is of. A day begins where the series of a number is: each series has its
//! time zone, so one day may be several periods.

use std::collections::BTreeMap;

use crate::engine::allocator::Catalog;
use crate::ledger::{JournalFilter, SeriesPeriod};
use crate::web::instant::zone_named;
use crate::web::problem::Problem;
use crate::web::query_time::QueryTime;

/// Bounds as they were asked for; the end is not included.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Period {
    /// Where it begins.
    pub(crate) from: Option<QueryTime>,
    /// Where it ends.
    pub(crate) until: Option<QueryTime>,
}

impl Period {
    /// Reads the two fields.
    ///
    /// # Errors
    /// A text that is no time; an end before the beginning.
    pub(crate) fn read(from: Option<&str>, until: Option<&str>) -> Result<Self, Problem> {
        let read =
            |field, text: Option<&str>| text.map(|text| QueryTime::read(field, text)).transpose();
        let period = Period { from: read("from", from)?, until: read("until", until)? };
        let is_backward = match (period.from, period.until) {
            (Some(QueryTime::Day(from)), Some(QueryTime::Day(until))) => until <= from,
            (Some(QueryTime::Instant(from)), Some(QueryTime::Instant(until))) => until <= from,
            // Where a day begins depends on the series.
            _ => false,
        };
        if is_backward {
            return Err(Problem::field("until", "must be later than where the period begins"));
        }
        Ok(period)
    }

    /// Bounds a filter: by the period of its series, or by that of each series.
    ///
    /// # Errors
    /// An end before the beginning.
    pub(crate) fn bound(
        self,
        filter: &mut JournalFilter,
        catalog: &Catalog,
    ) -> Result<(), Problem> {
        let mut zones: BTreeMap<Option<&str>, Vec<i64>> = BTreeMap::new();
        for (version, _) in catalog.known() {
            if filter.series_id.is_none_or(|series_id| series_id == version.series_id) {
                let zone = version.definition.timezone.as_deref();
                zones.entry(zone).or_default().push(version.series_id);
            }
        }
        // Without a series, a day is one of UTC.
        if zones.is_empty() {
            zones.insert(None, Vec::new());
        }
        let bounds = |zone: &Option<&str>| {
            let zone = zone_named(*zone);
            [self.from, self.until].map(|time| time.map(|time| time.begins_us(&zone)))
        };
        let all: Vec<_> = zones.keys().map(bounds).collect();
        filter.from_us = all.iter().filter_map(|[from, _]| *from).min();
        filter.until_us = all.iter().filter_map(|[_, until]| *until).max();
        if let (Some(from), Some(until)) = (filter.from_us, filter.until_us)
            && until <= from
        {
            return Err(Problem::field("until", "must be later than where the period begins"));
        }
        let narrower = |(series, [from_us, until_us]): (Vec<i64>, [Option<i64>; 2])| {
            let from_us = from_us.filter(|from| Some(*from) != filter.from_us);
            let until_us = until_us.filter(|until| Some(*until) != filter.until_us);
            let period = SeriesPeriod { series, from_us, until_us };
            (period.from_us.is_some() || period.until_us.is_some()).then_some(period)
        };
        filter.periods = zones.into_values().zip(all).filter_map(narrower).collect();
        Ok(())
    }
}

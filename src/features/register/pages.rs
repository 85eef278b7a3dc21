//! The register of numbers as `find` and `export` read it: the same filters, page by page.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::auth::{COUNT_MAX, Identity, LOCAL_USER};
use crate::config::Settings;
use crate::engine::allocator::Catalog;
use crate::engine::sealing::PublicKey;
use crate::features::archive::{self, Counted, Folder};
use crate::features::register::listing::{ListedRow, Listing, Page};
use crate::features::register::lookups::{archived_in, find_gaps, look_up};
use crate::features::register::query::{NumberQuery, next_of};
use crate::features::register::reserved::{reservations_of, why_not};
use crate::features::register::rows::FoundRow;
use crate::ledger::{
    ArchiveFile, Counter, JournalFilter, JournalRow, SEARCH_ROWS_MAX, SearchPace, SharedLedger,
};
use crate::terminal::session::{foresee_catalog, refusal};
use crate::web::{Problem, Slug};

/// A list of numbers that is being read.
pub(crate) struct Register {
    ledger: SharedLedger,
    listing: Listing,
    /// The series, which read a number that is searched for by its text.
    catalog: Arc<Catalog>,
    /// The `after` for the next page, if there may be one.
    pub(crate) next: Option<String>,
}

impl Register {
    /// Opens the ledger, and checks the filter.
    ///
    /// # Errors
    /// A ledger that cannot be reached; a filter that nothing can match, by its field.
    pub(crate) async fn open(
        settings: &Settings,
        query: NumberQuery,
        after: Option<String>,
    ) -> anyhow::Result<Self> {
        let asked = NumberQuery { after, ..query }.check().map_err(refusal)?;
        let (ledger, catalog) = foresee_catalog(settings).await?;
        let listing = asked.read(&ledger, &catalog).await.map_err(refusal)?;
        Ok(Register { ledger, listing, catalog: Arc::new(catalog), next: None })
    }

    /// The names of the variables that numbers of the list may have, of all versions of its series.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn variables(&self) -> anyhow::Result<BTreeSet<String>> {
        self.catalog.know_earlier(&self.ledger).await?;
        let of = self.listing.filter.series_id;
        let mut names = BTreeSet::new();
        for (version, _) in self.catalog.known() {
            if of.is_none_or(|series_id| series_id == version.series_id) {
                let earlier = self.catalog.earlier_of(version.series_id).iter();
                let earlier = earlier.map(|served| &served.version.definition);
                for definition in std::iter::once(&version.definition).chain(earlier) {
                    names.extend(definition.variables.keys().cloned());
                }
            }
        }
        Ok(names)
    }

    /// Counters of the series of the list after one by its id, and the id behind which there may be
    /// more.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn counters(&self, after: i64) -> anyhow::Result<(Vec<Counter>, Option<i64>)> {
        let of = self.listing.filter.series_id;
        let mut page = self.ledger.counters().page(after, SEARCH_ROWS_MAX).await?;
        let last = page.last().map(|last| last.counter_id);
        page.retain(|counter| of.is_none_or(|series_id| series_id == counter.series_id));
        Ok((page, last))
    }

    /// The code of a series.
    pub(crate) fn code(&self, series_id: i64) -> Option<&str> {
        let known = self.catalog.known().find(|(version, _)| version.series_id == series_id);
        known.map(|(version, _)| version.definition.code.as_str())
    }

    /// Archived numbers with what became of them since.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn with_lives(&self, rows: Vec<JournalRow>) -> anyhow::Result<Vec<FoundRow>> {
        Ok(FoundRow::with_lives(&self.ledger, rows).await?)
    }

    /// Rows of a page with every assigned number of their ranges.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn with_all_assigned(
        &self,
        rows: Vec<ListedRow>,
    ) -> anyhow::Result<Vec<ListedRow>> {
        let mut whole = Vec::with_capacity(rows.len());
        for row in rows {
            whole.push(match row {
                ListedRow::Number(found) => {
                    ListedRow::Number(found.with_all_assigned(&self.ledger).await?)
                }
                other => other,
            });
        }
        Ok(whole)
    }

    /// The time zone of a series, where it is not UTC.
    pub(crate) fn timezone(&self, series_id: i64) -> Option<String> {
        let known = self.catalog.known().find(|(version, _)| version.series_id == series_id);
        known.and_then(|(version, _)| version.definition.timezone.clone())
    }

    /// The files of an archive that count.
    ///
    /// # Errors
    /// A ledger or a folder that cannot be read.
    pub(crate) async fn counted(
        &self,
        folder: &Folder,
        trusted: &[PublicKey],
    ) -> anyhow::Result<Counted> {
        Counted::of(&self.ledger, folder, trusted).await
    }

    /// The filter alone, with this limit.
    pub(crate) fn filter(&self, limit: u32) -> JournalFilter {
        JournalFilter { limit, ..self.listing.filter.clone() }
    }

    /// How many archive files may hold further matches: all that have numbers of the requested
    /// time.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn archive_files(&self) -> anyhow::Result<usize> {
        let files = archive::files(&self.ledger).await?;
        let from_us = self.listing.filter.from_us.unwrap_or(i64::MIN);
        let may_have =
            |of: &&ArchiveFile| of.deleted_at_us.is_none() && of.file.last_issued_us >= from_us;
        Ok(files.iter().filter(may_have).count())
    }

    /// The next page, with this many rows unless the list ends with it.
    ///
    /// # Errors
    /// A ledger that cannot be reached; a number that nothing holds.
    pub(crate) async fn page(&mut self, rows_max: u32) -> anyhow::Result<Vec<ListedRow>> {
        let listing = Listing { filter: self.filter(rows_max), ..self.listing.clone() };
        let (ledger, catalog) = (Arc::clone(&self.ledger), Arc::clone(&self.catalog));
        // A task of its own: a caller that stops waiting interrupts no statement.
        let reading = tokio::spawn(async move {
            let Some(number) = &listing.filter.number else {
                return listing.page(&ledger, &catalog, SearchPace::Export).await;
            };
            let found = look_up(&ledger, &catalog, number, &listing.filter, |_| true).await?;
            let rows = found.seen(|_| true)?.into_iter().map(ListedRow::Number).collect();
            Ok(Page { rows, last: None })
        });
        let Page { rows, last } = reading.await??;
        let filter = &mut self.listing.filter;
        if rows.is_empty() && filter.after.is_none() {
            say_where_archived(&self.ledger, &self.catalog, filter).await?;
        }
        if let (Some(number), true) = (&filter.number, rows.is_empty()) {
            let gaps = find_gaps(&self.ledger, &self.catalog, number, filter.series_id).await?;
            let everybody = Identity::local(LOCAL_USER, COUNT_MAX);
            let held = reservations_of(&self.ledger, &everybody, number, filter.series_id).await?;
            let detail = match why_not(gaps.first(), held.first()) {
                Some(why) => format!("{number:?} is in no row of the journal: {why}"),
                None => {
                    format!("no number, range or revision that matches has the text {number:?}")
                }
            };
            return Err(refusal(Problem::new(Slug::NumberNotFound, detail)));
        }
        filter.after = last;
        self.next = last.map(|last| next_of(&self.listing, &last));
        Ok(rows)
    }
}

/// Reports which archive files have matches that the journal does not have.
async fn say_where_archived(
    ledger: &SharedLedger,
    catalog: &Arc<Catalog>,
    filter: &JournalFilter,
) -> anyhow::Result<()> {
    for file in archived_in(ledger, Some(catalog), filter).await? {
        crate::terminal::output::say(format_args!(
            "in the archive, file {file}: numerator find --archive DIR"
        ));
    }
    Ok(())
}

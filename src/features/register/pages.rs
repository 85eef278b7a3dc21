//! The register of numbers as `find` and `export` read it: the same filters, page by page.

use std::sync::Arc;

use crate::config::Settings;
use crate::engine::allocator::Catalog;
use crate::engine::sealing::PublicKey;
use crate::features::archive::{self, Counted, Folder};
use crate::features::register::lookups::{archived_in, look_up};
use crate::features::register::query::{NumberQuery, next_of};
use crate::features::register::rows::FoundRow;
use crate::ledger::{ArchiveFile, JournalFilter, Position, SharedLedger};
use crate::terminal::session::{foresee_catalog, open_ledger, refusal};
use crate::web::{Problem, Slug};

/// A list of numbers that is being read.
pub(crate) struct Register {
    ledger: SharedLedger,
    filter: JournalFilter,
    /// Further readings of a number that is searched for by its text.
    catalog: Option<Arc<Catalog>>,
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
        let (ledger, catalog) = if asked.is_of_number() {
            let (ledger, catalog) = foresee_catalog(settings).await?;
            (ledger, Some(Arc::new(catalog)))
        } else {
            (open_ledger(settings).await?, None)
        };
        let filter = asked.read(&ledger).await.map_err(refusal)?;
        Ok(Register { ledger, filter, catalog, next: None })
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
    pub(crate) fn filter(self, limit: u32) -> JournalFilter {
        JournalFilter { limit, ..self.filter }
    }

    /// How many archive files may hold further matches: all that have numbers of the requested
    /// time.
    ///
    /// # Errors
    /// A ledger that cannot be reached.
    pub(crate) async fn archive_files(&self) -> anyhow::Result<usize> {
        let files = archive::files(&self.ledger).await?;
        let from_us = self.filter.from_us.unwrap_or(i64::MIN);
        let may_have =
            |of: &&ArchiveFile| of.deleted_at_us.is_none() && of.file.last_issued_us >= from_us;
        Ok(files.iter().filter(may_have).count())
    }

    /// The next page, with this many rows unless the list ends with it.
    ///
    /// # Errors
    /// A ledger that cannot be reached; a number that nothing holds.
    pub(crate) async fn page(&mut self, rows_max: u32) -> anyhow::Result<Vec<FoundRow>> {
        let filter = JournalFilter { limit: rows_max, ..self.filter.clone() };
        let (ledger, catalog) = (Arc::clone(&self.ledger), self.catalog.clone());
        // A task of its own: a caller that stops waiting interrupts no statement.
        let reading = tokio::spawn(async move {
            match (&filter.number, catalog) {
                (Some(number), Some(catalog)) => {
                    look_up(&ledger, &catalog, number, &filter, |_| true).await?.seen(|_| true)
                }
                _ => {
                    let rows = ledger.register().export(&filter).await?;
                    Ok(rows.into_iter().map(FoundRow::of).collect())
                }
            }
        });
        let rows: Vec<FoundRow> = reading.await??;
        if rows.is_empty() && self.filter.after.is_none() {
            say_where_archived(&self.ledger, self.catalog.as_ref(), &self.filter).await?;
        }
        if let (Some(number), true) = (&self.filter.number, rows.is_empty()) {
            let detail =
                format!("no number, range or revision that matches has the text {number:?}");
            return Err(refusal(Problem::new(Slug::NumberNotFound, detail)));
        }
        let is_full = self.filter.number.is_none() && rows.len() == rows_max as usize;
        let last = rows.last().filter(|_| is_full).map(|found| &found.row);
        self.next = last.and_then(|last| next_of(&self.filter, last));
        self.filter.after = last.and_then(Position::of);
        Ok(rows)
    }
}

/// Reports which archive files have matches that the journal does not have.
async fn say_where_archived(
    ledger: &SharedLedger,
    catalog: Option<&Arc<Catalog>>,
    filter: &JournalFilter,
) -> anyhow::Result<()> {
    for file in archived_in(ledger, catalog, filter).await? {
        crate::terminal::output::say(format_args!(
            "in the archive, file {file}: numerator find --archive DIR"
        ));
    }
    Ok(())
}

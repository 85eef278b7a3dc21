//! The end of a comparison: what no checkpoint binds, whether segments account for what is missing,
//! and whether the schema is as expected. Reads only.

use std::collections::HashSet;

use super::report::Place;
use super::seals::{Ids, Incomplete, Seals};
use super::segments::{self, SegmentEvidence, Stands};
use super::verifying::{Course, FALSE_MAC, Table, WITHOUT_KEY, place_of};
use crate::engine::sealing::checkpoint::{Body, Part, TABLES};
use crate::ledger::{ArchiveFile, Bindable, Bound, MacCheck, SchemaDeviation};

/// Rows of a table looked at in one statement.
const PAGE_ROWS: u32 = 10_000;

/// Batches that no checkpoint binds yet.
#[derive(Default)]
struct Unbound {
    /// Rows written by a holder of the key.
    proven: Ids,
    /// Rows whose writer cannot be determined here.
    unknown: Ids,
}

/// Whether an id may be of a row written after the last checkpoint.
fn is_late(last: &Part, id: i64) -> bool {
    id > last.upto || last.is_open(id)
}

impl Course<'_> {
    /// Looks for what no checkpoint binds, for batches without rows, and whether segments account
    /// for as many rows as are missing. `ended` are files that had ended before the rows were read.
    pub(super) async fn end(
        &mut self,
        seals: &mut Seals,
        ended: &HashSet<String>,
    ) -> anyhow::Result<()> {
        let mut incomplete = seals.end(&mut self.found);
        let mut unbound = Unbound::default();
        for index in 0..TABLES.len() {
            self.look_for_added(index, seals, &mut incomplete, &mut unbound).await?;
        }
        let mut files = self.files().await?;
        for file in &mut files {
            file.is_ended &= ended.contains(&file.file.name);
        }
        let vouched = &self.tables[0].vouched;
        let voucher = |batch_id: i64| match () {
            () if !seals.sound.contains(batch_id) => SegmentEvidence::Unsound,
            () if vouched.contains(batch_id) || unbound.proven.contains(batch_id) => {
                SegmentEvidence::Good
            }
            () if unbound.unknown.contains(batch_id) => SegmentEvidence::NotYet,
            () => SegmentEvidence::None,
        };
        // Segments of batches that are not examined account for rows of the same files.
        let may_stay = self.trust.from > 1
            || self.ledger.audits().sizes().await?.revisions > 0
            || self.ledger.life().is_any_beside_segments().await?;
        let stands = segments::judge(&seals.segments, (&files, may_stay), voucher, &mut self.found);
        self.settle(incomplete, stands);
        for SchemaDeviation { name, digest } in self.ledger.audits().schema_deviations().await? {
            let why = match digest {
                None => format!("{name} is not there"),
                Some(_) => format!("{name} is not what the migrations make"),
            };
            self.found.add(Place::Schema, why);
        }
        let report = &mut self.report;
        report.rows = seals.rows;
        let counts = self.tables.each_ref().map(|table| table.count);
        [
            report.batches,
            report.events,
            report.versions,
            report.counters,
            report.series,
            report.acts,
        ] = counts;
        let mut found = std::mem::take(&mut self.found);
        found.listed.sort();
        found.listed.dedup();
        (report.findings, report.more) = (found.listed, found.more);
        Ok(())
    }

    /// As many rows must be missing as segments account for. Only the files show which batches
    /// those rows belong to.
    fn settle(&mut self, incomplete: Vec<Incomplete>, Stands { good, not_yet }: Stands) {
        let missing: u64 = incomplete.iter().map(|batch| batch.missing).sum();
        self.report.rows_beside_archive = incomplete.iter().map(|batch| batch.met).sum();
        let beside = incomplete.iter().filter(|batch| batch.met > 0).count();
        self.report.batches_beside_archive = beside as u64;
        if missing > good + not_yet {
            for Incomplete { batch_id, why, .. } in incomplete {
                self.found.add(Place::Batch(batch_id), why);
            }
            return;
        }
        if self.trust.from > 1 {
            // Batches that are not examined may lack the rows that segments account for.
            self.report.rows_not_told = missing;
            return;
        }
        if missing < good {
            let why = format!("segments stand for {good} rows, and {missing} are missing");
            self.found.add(Place::Archive, why);
        }
        self.report.rows_archived = missing;
        self.report.rows_not_bound_yet = missing.saturating_sub(good);
    }

    /// All files of archives that the ledger names.
    pub(super) async fn files(&self) -> anyhow::Result<Vec<ArchiveFile>> {
        let mut all: Vec<ArchiveFile> = Vec::new();
        loop {
            let after = all.last().map_or(i32::MIN, |file| file.archive_file_id);
            let page = self.ledger.archive().files(after, PAGE_ROWS).await?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    async fn look_for_added(
        &mut self,
        index: usize,
        seals: &Seals,
        incomplete: &mut Vec<Incomplete>,
        unbound: &mut Unbound,
    ) -> anyhow::Result<()> {
        let table = TABLES[index];
        let begun_at = self.begun_at(index).await?;
        let mut after = i64::MIN;
        loop {
            let rows = self
                .ledger
                .checkpoints()
                .bindable(None, table, (after, i64::MAX), PAGE_ROWS)
                .await?;
            let Some(last) = rows.last() else { return Ok(()) };
            // What was bound before the first examined checkpoint is skipped.
            after = if last.id < 1 { last.id } else { last.id.max(begun_at) };
            let mut without_rows = Vec::new();
            for row in rows.iter().filter(|row| row.id < 1 || row.id > begun_at) {
                if self.look_at((table, index), row, seals, unbound) && !seals.has_met(row.id) {
                    without_rows.push(row.id);
                }
            }
            for batch in self.ledger.checkpoints().batches_among(&without_rows).await? {
                let missing = u64::try_from(batch.line_count).unwrap_or(0);
                let why = "all its rows are gone".to_owned();
                if missing == 0 {
                    self.found.add(Place::Batch(batch.batch_id), why);
                } else {
                    let batch_id = batch.batch_id;
                    incomplete.push(Incomplete { batch_id, missing, met: 0, why });
                }
            }
        }
    }

    /// Examines a row of a table; returns whether it is a batch that had its rows when they were
    /// read: one that checkpoints bind, or that existed then.
    fn look_at(
        &mut self,
        (table, index): (Bindable, usize),
        row: &Bound,
        seals: &Seals,
        unbound: &mut Unbound,
    ) -> bool {
        let place = place_of(table, row.id);
        if row.id < 1 {
            self.found.add(place, "has an id below 1: no checkpoint binds such".into());
            return false;
        }
        let Table { bound, last, .. } = &self.tables[index];
        let is_bound = bound.contains(row.id);
        match table {
            _ if !is_bound && !is_late(last, row.id) => {
                let why = "was added, or its number lowered: no checkpoint binds it";
                self.found.add(place, why.into());
            }
            Bindable::Batches if !is_bound => {
                self.report.unbound_batches += 1;
                match row.standing {
                    MacCheck::Proven => _ = unbound.proven.insert(row.id),
                    MacCheck::Unknown => _ = unbound.unknown.insert(row.id),
                    MacCheck::Unproven if self.is_of_before_key(index, row.id) => {}
                    MacCheck::Unproven => self.found.add(place, WITHOUT_KEY.into()),
                    MacCheck::Forged => self.found.add(place, FALSE_MAC.into()),
                    MacCheck::Plain => {}
                }
                return seals.unbound.contains(row.id);
            }
            _ => return is_bound && table == Bindable::Batches,
        }
        false
    }

    /// Up to which row everything was bound before the first examined checkpoint.
    async fn begun_at(&self, index: usize) -> anyhow::Result<i64> {
        let before = self.trust.from.max(1) - 1;
        if before == 0 {
            return Ok(0);
        }
        let found = self.ledger.checkpoints().list(before - 1, 1).await?;
        let read = found.first().and_then(|signed| Body::read(signed).ok());
        Ok(read.map_or(0, |(body, _)| body.parts()[index].upto))
    }
}

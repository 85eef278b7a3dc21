//! Compares what the ledger holds with its checkpoints, and with those that were kept elsewhere.
//! Reads only; needs no service and no private key.

use std::io::BufRead;

use super::checkpoint::{Body, Entry, Part, name_of};
use super::kept::Kept;
use super::key::PublicKey;
use super::report::{AuditReport, Findings, Place};
use super::seals::{self, Archive, Ids, Incomplete, Seals};
use crate::ledger::{Bindable, Bound, SharedLedger, SignedCheckpoint, Vouched};
use numbering::hexadecimal;

/// Checkpoints read at once.
const PAGE_CHECKPOINTS: u32 = 20;

/// Rows of a table looked at in one statement.
const PAGE_ROWS: u32 = 10_000;

/// Whose signatures count, and where to begin.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Public keys.
    pub keys: Vec<PublicKey>,
    /// The first checkpoint to look at; what the ones before it bound is left alone.
    pub from: i64,
}

/// What checkpoints bind of one table.
#[derive(Debug, Default)]
struct Table {
    bound: Ids,
    count: u64,
    last: Part,
}

/// What was learned from the checkpoints so far.
struct Course<'a> {
    ledger: &'a SharedLedger,
    trust: &'a Trust,
    found: Findings,
    report: AuditReport,
    previous: Option<String>,
    tables: [Table; 3],
    unsealed: Option<(u64, String)>,
}

/// The tables, in the order of a checkpoint.
const TABLES: [Bindable; 3] = [Bindable::Batches, Bindable::Events, Bindable::Versions];

fn place_of(table: Bindable, id: i64) -> Place {
    match table {
        Bindable::Batches => Place::Batch(id),
        Bindable::Events => Place::Event(id),
        Bindable::Versions => Place::Version(id),
    }
}

/// Compares everything. `archive` gives the rows of archive files; without them, no more rows may
/// be missing than segments stand for.
///
/// # Errors
/// An archive that cannot be read; a ledger that cannot be reached; a kept line that is none. What
/// is not as it was is in the report.
pub async fn verify(
    ledger: &SharedLedger,
    trust: &Trust,
    mut kept: Option<Kept<impl BufRead>>,
    archive: Archive<'_>,
    progress: impl Fn(i64, i64) + Sync,
) -> anyhow::Result<AuditReport> {
    let mut course = Course {
        ledger,
        trust,
        found: Findings::default(),
        report: AuditReport::default(),
        previous: None,
        tables: Default::default(),
        unsealed: None,
    };
    let mut number = trust.from.max(1);
    course.begin_behind(number - 1).await?;
    let after = course.tables[0].last.upto;
    // Before the rows are read: what comes meanwhile is bound later.
    loop {
        let page = ledger.checkpoints(number - 1, PAGE_CHECKPOINTS).await?;
        let mut page = page.into_iter().peekable();
        let mut is_any = false;
        loop {
            let held = page.next_if(|one| one.number == number);
            let elsewhere = match &mut kept {
                Some(kept) => kept.of(number)?,
                None => None,
            };
            let Some(signed) = course.choose(number, held, elsewhere) else { break };
            course.take_in(&signed).await?;
            number += 1;
            is_any = true;
        }
        if !is_any {
            // One whose number is not the next, or kept ones behind the last that is held.
            let rest = page.next().map(|one| one.number);
            let later = kept.as_ref().and_then(Kept::next);
            if let Some(later) = rest.into_iter().chain(later).min() {
                course.missing(number, later);
                number = later;
                continue;
            }
            break;
        }
    }
    let mut seals = seals::compare(ledger, after, archive, &mut course.found, &progress).await?;
    course.end(&mut seals).await?;
    Ok(course.report)
}

impl Course<'_> {
    /// Begins behind a checkpoint, as if all up to it were sound.
    async fn begin_behind(&mut self, number: i64) -> anyhow::Result<()> {
        if number == 0 {
            return Ok(());
        }
        let found = self.ledger.checkpoints(number - 1, 1).await?;
        let Some(signed) = found.into_iter().find(|one| one.number == number) else {
            anyhow::bail!("--from {}: there is no checkpoint {number} before it", number + 1);
        };
        let (body, _) = Body::read(&signed)
            .map_err(|error| anyhow::anyhow!("--from: checkpoint {number}: {error}"))?;
        self.previous = Some(name_of(&signed));
        // Rows of before seals have no place: they are always compared.
        let first = self.ledger.checkpoints(0, 1).await?;
        if let Some((first, key)) = first.first().and_then(|first| Body::read(first).ok())
            && self.trust.keys.contains(&key)
        {
            self.unsealed = first.unsealed.map(|rows| (rows.rows, rows.digest));
        }
        for (table, part) in self.tables.iter_mut().zip([body.batches, body.events, body.versions])
        {
            table.last = part;
        }
        Ok(())
    }

    /// The checkpoint to go by: the one that was kept elsewhere, if there is one.
    fn choose(
        &mut self,
        number: i64,
        held: Option<SignedCheckpoint>,
        elsewhere: Option<SignedCheckpoint>,
    ) -> Option<SignedCheckpoint> {
        match (held, elsewhere) {
            (Some(held), Some(kept)) if held != kept => {
                let why = "is not the one that was kept elsewhere".to_owned();
                self.found.add(Place::Checkpoint(number), why);
                Some(kept)
            }
            (None, Some(kept)) => {
                let why = "was kept elsewhere, and the ledger does not have it".to_owned();
                self.found.add(Place::Checkpoint(number), why);
                Some(kept)
            }
            (held, _) => held,
        }
    }

    fn missing(&mut self, number: i64, next: i64) {
        let why = format!("is not there, and {next} is");
        self.found.add(Place::Checkpoint(number), why);
        self.previous = None;
    }

    /// Checks a checkpoint, and what it binds.
    async fn take_in(&mut self, signed: &SignedCheckpoint) -> anyhow::Result<()> {
        let place = Place::Checkpoint(signed.number);
        let (body, key) = match Body::read(signed) {
            Ok(read) => read,
            Err(error) => {
                self.found.add(place, error.to_string());
                self.previous = Some(name_of(signed));
                return Ok(());
            }
        };
        let is_trusted = self.trust.keys.contains(&key);
        if !is_trusted {
            self.found.add(place, format!("is signed by a key that is not trusted: {key}"));
        }
        let is_first = signed.number == 1;
        let is_next = body.previous.is_none() == is_first
            && (is_first || self.previous.is_none() || body.previous == self.previous);
        if !is_next {
            self.found.add(place, "does not follow the one before it".into());
        }
        self.previous = Some(name_of(signed));
        self.report.checkpoints += 1;
        (self.report.last, self.report.last_at) = (Some(signed.number), Some(body.at.clone()));
        if let (true, Some(before)) = (is_trusted, &body.unsealed) {
            self.unsealed = Some((before.rows, before.digest.clone()));
        }
        for (index, part) in [body.batches, body.events, body.versions].into_iter().enumerate() {
            // What nobody vouches for binds nothing.
            if is_trusted {
                self.take_in_part(signed.number, index, &part).await?;
                self.tables[index].last = part;
            }
        }
        Ok(())
    }

    async fn take_in_part(&mut self, number: i64, index: usize, part: &Part) -> anyhow::Result<()> {
        let table = TABLES[index];
        for entries in part.bound.chunks(PAGE_ROWS as usize) {
            let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
            let rows = self.ledger.bindable_among(table, &ids).await?;
            for entry in entries {
                self.take_in_entry(number, index, entry, &rows);
            }
        }
        Ok(())
    }

    fn take_in_entry(&mut self, number: i64, index: usize, entry: &Entry, rows: &[Bound]) {
        let place = place_of(TABLES[index], entry.id);
        self.tables[index].count += 1;
        if !self.tables[index].bound.insert(entry.id) {
            self.found.add(place, format!("is bound again by checkpoint {number}"));
        }
        let row = rows.binary_search_by_key(&entry.id, |row| row.id).map(|at| &rows[at]);
        match row {
            Err(_) => self.found.add(place, format!("is gone; checkpoint {number} binds it")),
            Ok(row) if !entry.is_of(row) => {
                self.found.add(place, format!("is not what checkpoint {number} binds"));
            }
            Ok(_) => {}
        }
        if entry.standing == Vouched::Forged {
            let why = "was there with a false proof when it was bound: written without the key";
            self.found.add(place, why.into());
        }
        // In the first checkpoint stand those of before the key.
        if entry.standing == Vouched::Unproven && number > 1 {
            let why = "was written by a process without the key, or by somebody else";
            self.found.add(place, why.into());
        }
    }

    /// Looks for what no checkpoint binds, and for batches without rows.
    async fn end(&mut self, seals: &mut Seals) -> anyhow::Result<()> {
        let bound = &self.tables[0].bound;
        let mut incomplete = seals.end(|id| bound.contains(id));
        for index in 0..TABLES.len() {
            self.look_for_added(index, seals, &mut incomplete).await?;
        }
        let missing = incomplete.iter().map(|batch| batch.missing).sum();
        if missing <= seals.unread {
            self.report.rows_archived = missing;
        } else {
            for Incomplete { batch_id, why, .. } in incomplete {
                self.found.add(Place::Batch(batch_id), why);
            }
        }
        self.compare_unsealed().await?;
        let report = &mut self.report;
        report.rows = seals.rows;
        report.rows_before_seals = seals.unsealed_rows;
        (report.batches, report.events, report.versions) =
            (self.tables[0].count, self.tables[1].count, self.tables[2].count);
        let mut found = std::mem::take(&mut self.found);
        found.listed.sort();
        found.listed.dedup();
        (report.findings, report.more) = (found.listed, found.more);
        Ok(())
    }

    async fn look_for_added(
        &mut self,
        index: usize,
        seals: &Seals,
        incomplete: &mut Vec<Incomplete>,
    ) -> anyhow::Result<()> {
        let table = TABLES[index];
        let mut after = self.begun_at(index).await?;
        loop {
            let rows = self.ledger.bindable(None, table, (after, i64::MAX), PAGE_ROWS).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = last.id;
            let mut without_rows = Vec::new();
            for row in &rows {
                let Table { bound, last, .. } = &self.tables[index];
                let is_late = row.id > last.upto || last.is_open(row.id);
                match (bound.contains(row.id), table) {
                    (true, Bindable::Batches)
                        if row.standing != Vouched::Unsealed && !seals.has_met(row.id) =>
                    {
                        without_rows.push(row.id);
                    }
                    (true, _) => {}
                    (false, Bindable::Batches) if is_late => self.report.unbound_batches += 1,
                    (false, _) if is_late => {}
                    (false, _) => {
                        let why = "was added, or its number lowered: no checkpoint binds it";
                        self.found.add(place_of(table, row.id), why.into());
                    }
                }
            }
            for batch in self.ledger.sealed_batches(&without_rows).await? {
                let missing = u64::try_from(batch.line_count).unwrap_or(0);
                let why = "all its rows are gone".to_owned();
                incomplete.push(Incomplete { batch_id: batch.batch_id, missing, why });
            }
        }
    }

    /// Up to which row all was bound before the first checkpoint that is looked at.
    async fn begun_at(&self, index: usize) -> anyhow::Result<i64> {
        let before = self.trust.from.max(1) - 1;
        if before == 0 {
            return Ok(0);
        }
        let found = self.ledger.checkpoints(before - 1, 1).await?;
        let read = found.first().and_then(|signed| Body::read(signed).ok());
        let upto = |body: &Body| [&body.batches, &body.events, &body.versions][index].upto;
        Ok(read.map_or(0, |(body, _)| upto(&body)))
    }

    async fn compare_unsealed(&mut self) -> anyhow::Result<()> {
        let Some((rows, digest)) = &self.unsealed else { return Ok(()) };
        let now = self.ledger.unsealed(None).await?;
        if now.rows != *rows || hexadecimal(&now.digest) != *digest {
            let why = format!("had {rows} rows and has {}, or they say something else", now.rows);
            self.found.add(Place::Before, why);
        }
        Ok(())
    }
}

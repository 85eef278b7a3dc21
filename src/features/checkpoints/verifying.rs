//! Compares the content of the ledger with its checkpoints, and with those that were kept
//! elsewhere. Reads only; needs no service and no private key.

use std::collections::HashSet;
use std::io::BufRead;

use super::kept::Kept;
use super::report::{AuditReport, Findings, Place};
use super::seals::{self, Archive, Ids};
use crate::engine::sealing::PublicKey;
use crate::engine::sealing::checkpoint::{Body, Entry, Part, TABLES, name_of};
use crate::ledger::{Bindable, Bound, MacCheck, SharedLedger, SignedCheckpoint};

/// Checkpoints read in one statement.
const PAGE_CHECKPOINTS: u32 = 20;

/// Rows of a table looked at in one statement.
const PAGE_ROWS: u32 = 10_000;

/// The accepted public keys, and the checkpoint of the start.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Public keys.
    pub keys: Vec<PublicKey>,
    /// The first checkpoint to examine; what the ones before it bound is skipped.
    pub from: i64,
}

/// The rows of one table that checkpoints bind.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) bound: Ids,
    /// Rows that a holder of the key wrote, or that existed before the key.
    pub(super) vouched: Ids,
    pub(super) count: u64,
    pub(super) last: Part,
}

/// The results of the checkpoints so far.
pub(super) struct Course<'a> {
    pub(super) ledger: &'a SharedLedger,
    pub(super) trust: &'a Trust,
    pub(super) found: Findings,
    pub(super) report: AuditReport,
    previous: Option<String>,
    pub(super) tables: [Table; TABLES.len()],
    /// The highest id that a batch from before the key may have.
    before_key: i64,
}

pub(super) const WITHOUT_KEY: &str =
    "was written by a process without the key, or by somebody else";
pub(super) const FALSE_MAC: &str =
    "was there with a false proof when it was bound: written without the key";

pub(super) fn place_of(table: Bindable, id: i64) -> Place {
    match table {
        Bindable::Batches => Place::Batch(id),
        Bindable::Events => Place::Event(id),
        Bindable::Versions => Place::Version(id),
        Bindable::Counters => Place::Counter(id),
        Bindable::Series => Place::Series(id),
        Bindable::Life => Place::Act(id),
    }
}

/// Compares everything. `archive` gives the rows of archive files; without them, no more rows may
/// be missing than segments account for.
///
/// # Errors
/// An archive that cannot be read; a ledger that cannot be reached; a kept line that is not a
/// checkpoint. Changes to the record are in the report.
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
        before_key: 0,
    };
    let mut number = trust.from.max(1);
    course.look_below().await?;
    course.begin_behind(number - 1).await?;
    let after = course.tables[0].last.upto;
    // Before the rows are read: later rows are bound later.
    loop {
        let page = ledger.checkpoints().list(number - 1, PAGE_CHECKPOINTS).await?;
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
            // A checkpoint whose number is not the next, or kept ones after the last of the ledger.
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
    // A file that has ended by now has all its segments in what is read.
    let ended = course.files().await?.into_iter().filter(|file| file.is_ended);
    let ended: HashSet<String> = ended.map(|file| file.file.name).collect();
    let whole = (after, &course.tables[0].last);
    let mut seals = seals::compare(ledger, whole, archive, &mut course.found, &progress).await?;
    course.end(&mut seals, &ended).await?;
    Ok(course.report)
}

impl Course<'_> {
    /// Checkpoints begin at 1.
    async fn look_below(&mut self) -> anyhow::Result<()> {
        let lowest = self.ledger.checkpoints().list(i64::MIN, 1).await?;
        for one in lowest.iter().filter(|one| one.number < 1) {
            let why = "has a number below 1: nobody follows such".to_owned();
            self.found.add(Place::Checkpoint(one.number), why);
        }
        Ok(())
    }

    /// Begins after a checkpoint, as if everything up to it were sound.
    async fn begin_behind(&mut self, number: i64) -> anyhow::Result<()> {
        if number == 0 {
            return Ok(());
        }
        let found = self.ledger.checkpoints().list(number - 1, 1).await?;
        let Some(signed) = found.into_iter().find(|one| one.number == number) else {
            anyhow::bail!("--from {}: there is no checkpoint {number} before it", number + 1);
        };
        let (body, _) = Body::read(&signed)
            .map_err(|error| anyhow::anyhow!("--from: checkpoint {number}: {error}"))?;
        self.previous = Some(name_of(&signed));
        let first = self.ledger.checkpoints().list(0, 1).await?;
        if let Some((first, key)) = first.first().and_then(|first| Body::read(first).ok())
            && self.trust.keys.contains(&key)
        {
            self.before_key = first.before_key();
        }
        for (table, part) in self.tables.iter_mut().zip(body.parts()) {
            table.last = part.clone();
        }
        Ok(())
    }

    /// The checkpoint to use: the one that was kept elsewhere, if there is one.
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
        if is_trusted && is_first {
            self.before_key = body.before_key();
        }
        // What nothing vouches for binds nothing.
        for index in (0..TABLES.len()).filter(|_| is_trusted) {
            self.take_in_part(&body, index).await?;
            self.tables[index].last = body.parts()[index].clone();
        }
        Ok(())
    }

    async fn take_in_part(&mut self, body: &Body, index: usize) -> anyhow::Result<()> {
        let table = TABLES[index];
        for entries in body.parts()[index].bound.chunks(PAGE_ROWS as usize) {
            let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
            let rows = self.ledger.checkpoints().bindable_among(table, &ids).await?;
            for entry in entries {
                self.take_in_entry(body, index, entry, &rows);
            }
        }
        Ok(())
    }

    fn take_in_entry(&mut self, body: &Body, index: usize, entry: &Entry, rows: &[Bound]) {
        let (number, place) = (body.checkpoint, place_of(TABLES[index], entry.id));
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
        if entry.standing == MacCheck::Forged {
            self.found.add(place, FALSE_MAC.into());
        }
        match entry.standing {
            MacCheck::Unproven if !self.is_of_before_key(index, entry.id) => {
                self.found.add(place, WITHOUT_KEY.into());
            }
            MacCheck::Unproven | MacCheck::Proven => {
                self.tables[index].vouched.insert(entry.id);
            }
            _ => {}
        }
    }

    /// Whether a row without a proof existed before the key, by the first checkpoint. A late row,
    /// whose id the checkpoint before left open, did not.
    pub(super) fn is_of_before_key(&self, index: usize, id: i64) -> bool {
        id > self.tables[index].last.upto && id <= self.before_key
    }
}

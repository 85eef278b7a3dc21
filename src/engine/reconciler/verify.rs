//! Proves from the ledger that no number was issued twice and none is missing, and compares Redis
//! with it where one is configured. Resolves what closed epochs left, and records numbers inside
//! ranges that occur twice; decides nothing else. Reads in pages, and writes nothing where nothing
//! changed.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::closed_epochs::{settle_counters, settle_slices};
use super::compare::Comparison;
use super::duplicate::Duplicate;
use super::reservations::reservation_findings;
use super::texts::{Misread, Texts};
use super::underway::Underway;
use super::{RedisReport, Stores, is_held, strays};
use crate::backoff::Backoff;
use crate::ledger::{
    Audited, Counter, LedgerError, Nobodys, Revision, SharedLedger, Span, StrayAct, Totals,
    UnrecordedToken, Unsettled, ValueOf,
};

/// Counters read at once.
const PAGE_COUNTERS: u32 = 500;

/// Rows of the ledger read in one query.
const PAGE_ROWS: u32 = 5_000;

/// Findings listed per counter and in all; more are counted, not listed.
pub(super) const FINDINGS_MAX: u32 = 100;

/// Least time for batches under way to be committed, however long the search has taken already.
const CATCH_UP: Duration = Duration::from_secs(1);

/// What `verify` found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Partitions that are held: the ledger went back, and what it shows is not the last word.
    pub held: Vec<u32>,
    /// Counters checked.
    pub counters: u64,
    /// Values of all counters, from their start to their highest.
    pub values: u64,
    /// Values before the start of the checked time, which were left alone.
    pub left_alone: u64,
    /// Sizes of journal, gap register, collisions and rejected rows.
    pub totals: Totals,
    /// Values that are neither journaled, nor reserved, nor in the gap register, nor on their way.
    pub missing: Vec<Finding>,
    /// Values that occur twice.
    pub twice: Vec<Finding>,
    /// Numbers that were issued twice, by any node or counter, inside ranges too, newest first,
    /// except those that an operator has explained.
    pub collisions: Vec<Duplicate>,
    /// Rows whose number is not what their column `mask` and their values render.
    pub misread: Vec<Misread>,
    /// Rows of counters that the ledger does not have: of each counter the first.
    pub counterless: Vec<ValueOf>,
    /// Rejected records of counters that the ledger does not have, but for those explained.
    pub nobodys: Vec<Nobodys>,
    /// Values of closed epochs that could not be settled, and rows that were deleted before.
    pub unsettled: Vec<Unsettled>,
    /// Revisions of numbers that the journal does not have, or whose text it does not hold.
    pub stray_revisions: Vec<Revision>,
    /// Acts upon numbers, such as voids, whose number the journal does not have.
    pub stray_acts: Vec<StrayAct>,
    /// Claims of rows that do not hold, other than their values, and missing keys.
    pub broken: Vec<String>,
    /// Tokens in force that are not what their last event left.
    pub untold_tokens: Vec<UnrecordedToken>,
    /// Whether their secrets were compared: not every database user may read the hashes.
    pub token_secrets_compared: bool,
    /// Numbers whose texts were read: those of archived rows are not among them.
    pub texts: u64,
    /// Rows that moved to an archive, by the segments.
    pub archived: u64,
    /// How Redis compares; absent where none is configured.
    pub redis: Option<RedisReport>,
}

/// A run of values of one counter.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The counter.
    pub counter_id: i64,
    /// Its series.
    pub series_id: i64,
    /// Its key.
    pub counter_key: String,
    /// The values.
    #[serde(flatten)]
    pub span: Span,
}

impl VerifyReport {
    /// Whether no number was issued twice, every value is accounted for, every row reads as it
    /// should, no collision is recorded and no record put aside without an explanation (a unique
    /// key alone proves nothing), Redis does not contradict the ledger, and the ledger is not held.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.held.is_empty()
            && self.missing.is_empty()
            && self.twice.is_empty()
            && self.totals.collisions == 0
            && self.totals.rejected == 0
            && self.misread.is_empty()
            && self.counterless.is_empty()
            && self.nobodys.is_empty()
            && self.unsettled.is_empty()
            && self.stray_revisions.is_empty()
            && self.stray_acts.is_empty()
            && self.broken.is_empty()
            && self.untold_tokens.is_empty()
            && self.redis.as_ref().is_none_or(RedisReport::is_clean)
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { journal, revisions, gaps, collisions, acknowledged, rejected, .. } =
            self.totals;
        writeln!(f, "counters    {}", self.counters)?;
        writeln!(f, "values      {}", self.values)?;
        writeln!(f, "journal     {journal} rows")?;
        writeln!(f, "revisions   {revisions}")?;
        writeln!(f, "gaps        {gaps} entries")?;
        writeln!(f, "rejected    {rejected} rows")?;
        writeln!(f, "collisions  {collisions}")?;
        if acknowledged > 0 {
            writeln!(f, "acknowledged {acknowledged} collisions")?;
        }
        if rejected > 0 {
            writeln!(
                f,
                "put aside: {rejected} issued records are not in the journal; see \
                 `reconcile --rejected`"
            )?;
        }
        self.fmt_rows(f)?;
        for (word, findings) in [("missing", &self.missing), ("twice", &self.twice)] {
            for Finding { counter_id, counter_key, span, .. } in findings {
                let Span { first, last } = span;
                writeln!(f, "{word}: counter {counter_id} ({counter_key}): {first} to {last}")?;
            }
        }
        for Duplicate { number, allocation_id, other_allocation_id } in &self.collisions {
            let other = other_allocation_id.as_deref().unwrap_or("unknown");
            writeln!(f, "duplicate: {number} of allocation {allocation_id}, first of {other}")?;
        }
        strays::write(f, &self.stray_revisions, &self.stray_acts)?;
        if let Some(redis) = &self.redis {
            write!(f, "{redis}")?;
        }
        if !self.held.is_empty() {
            let held = &self.held;
            writeln!(f, "held: partitions {held:?}; see `reconcile --ledger-restored`")?;
        }
        self.fmt_checked(f)?;
        match (self.is_clean(), self.archived) {
            (false, _) => f.write_str("NOT CLEAN"),
            (true, _) if self.left_alone > 0 => write!(
                f,
                "ok: every value once, of those since then; {} of before were left alone",
                self.left_alone
            ),
            (true, 0) => f.write_str("ok: every value once"),
            (true, archived) => write!(
                f,
                "ok: every value has one record; the texts of {archived} archived rows were not \
                 compared with others"
            ),
        }
    }
}

impl VerifyReport {
    /// What the texts of the whole journal show.
    fn tell_texts(&mut self, texts: Texts<'_>) {
        (self.misread, self.counterless) = (texts.misread, texts.counterless);
        (self.texts, self.archived) = (texts.claims.texts, texts.claims.archived);
        self.broken = texts.claims.broken;
    }

    /// What was compared with what: nothing with what was first written.
    fn fmt_checked(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "checked     the record with itself: each value, {} texts, the unique keys; `numerator \
             audit verify` compares it with what was sealed",
            self.texts
        )?;
        if !self.token_secrets_compared {
            let why = "the user of database.url may not read the hashes";
            writeln!(f, "            not the secrets of tokens with their events: {why}")?;
        }
        Ok(())
    }

    /// What is wrong with rows.
    fn fmt_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Misread { counter_id, value, number, allocation_id } in &self.misread {
            let place = format!("counter {counter_id} value {value}, allocation {allocation_id}");
            writeln!(f, "does not read as its mask: {number} of {place}")?;
        }
        for ValueOf { counter_id, value } in &self.counterless {
            writeln!(f, "no such counter: {counter_id}, from {value} on")?;
        }
        for broken in &self.broken {
            writeln!(f, "does not hold: {broken}")?;
        }
        for UnrecordedToken { name, why } in &self.untold_tokens {
            writeln!(f, "token that no event tells of: {name}: {why}")?;
        }
        for Nobodys { allocation_id, span: Span { first, last }, reason } in &self.nobodys {
            let which = format!("{first} to {last} of allocation {allocation_id}");
            writeln!(f, "rejected of no counter: {which}: {reason}")?;
        }
        for Unsettled { counter_id, epoch, left, gone } in &self.unsettled {
            if *left > 0 {
                writeln!(f, "counter {counter_id}: {left} values of epoch {epoch} unsettled")?;
            }
            if *gone > 0 {
                writeln!(f, "counter {counter_id}: {gone} values of epoch {epoch} are gone")?;
            }
        }
        Ok(())
    }
}

/// Checks every counter. What a running service has not journaled yet lies in its outbox, and is no
/// finding; what is in neither is checked again for up to `time_limit` before it is one. Memory is
/// bounded by the outboxes, whatever the size of the ledger.
///
/// # Errors
/// When the ledger cannot be read. A Redis that does not answer is a part of the report.
pub async fn verify(stores: &Stores, time_limit: Duration) -> Result<VerifyReport, LedgerError> {
    verify_from(stores, time_limit, None).await
}

/// The same for what was issued at or after a time: each counter from the first such value on, and
/// from its last row where there is none. What lies before is left alone, including rows of missing
/// counters and the claims of archive files; sizes are about right then.
///
/// # Errors
/// The same.
pub async fn verify_from(
    stores: &Stores,
    time_limit: Duration,
    from_us: Option<i64>,
) -> Result<VerifyReport, LedgerError> {
    let ledger = &stores.ledger;
    let mut comparison =
        stores.redis.as_ref().map(|redis| Comparison::new(stores, redis, time_limit));
    let deadline = Instant::now() + time_limit;
    let mut report = VerifyReport::default();
    settle_counters(ledger, None, true).await?;
    settle_slices(ledger).await?;
    report.unsettled = ledger.unsettled(FINDINGS_MAX).await?;
    let mut texts = Texts::new(ledger);
    texts.claims.begin().await?;
    let since = match from_us {
        Some(from_us) => Some(ledger.register().first_values_since(from_us).await?),
        None => None,
    };
    let mut after = 0;
    loop {
        let page = ledger.counters().page(after, PAGE_COUNTERS).await?;
        let Some(last) = page.last() else { break };
        after = last.counter_id;
        if let Some(comparison) = &mut comparison {
            comparison.page(&page).await?;
        }
        if since.is_none() {
            texts.read_upto(after, &page).await?;
        }
        for counter in page {
            let mut begins = counter.origin;
            if let Some(since) = &since {
                let (id, first) = (counter.counter_id, since.get(&counter.counter_id).copied());
                let before = ledger.register().value_before(id, first).await?.unwrap_or(begins);
                begins = before.min(counter.taken).max(begins);
                texts.read_behind(ValueOf { counter_id: id, value: begins }).await?;
            }
            let look = (&counter, begins, deadline);
            inspect(ledger, comparison.as_mut(), look, &mut report).await?;
        }
    }
    if since.is_none() {
        texts.read_upto(i64::MAX, &[]).await?;
    }
    texts.finish().await?;
    texts.claims.finish(since.is_none()).await?;
    report.tell_texts(texts);
    report.broken.extend(reservation_findings(ledger, FINDINGS_MAX).await?);
    if let Some(mut comparison) = comparison {
        comparison.outboxes().await?;
        report.redis = Some(comparison.report);
    }
    let collisions = ledger.register().collisions(FINDINGS_MAX).await?;
    report.collisions = collisions.into_iter().map(Duplicate::of).collect();
    report.nobodys = ledger.audits().nobodys(FINDINGS_MAX).await?;
    (report.stray_revisions, report.stray_acts) = strays::find(ledger, FINDINGS_MAX).await?;
    let told = ledger.tokens().untold().await?;
    (report.untold_tokens, report.token_secrets_compared) = (told.untold, told.with_secrets);
    // Counting every row takes as long as reading it.
    report.totals = if since.is_some() {
        ledger.audits().sizes().await?
    } else {
        ledger.register().totals().await?
    };
    let rows = ledger.partitions().await?;
    report.held = rows.iter().filter(|row| is_held(row)).map(|row| row.partition).collect();
    Ok(report)
}

async fn inspect(
    ledger: &SharedLedger,
    mut comparison: Option<&mut Comparison<'_>>,
    (counter, begins, deadline): (&Counter, i64, Instant),
    report: &mut VerifyReport,
) -> Result<(), LedgerError> {
    let id = counter.counter_id;
    let highest = counter.taken;
    let mut wait = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
    // Late counters too get their time: batches of several nodes commit in any order.
    let deadline = deadline.max(Instant::now() + CATCH_UP);
    let mut underway: Option<Underway> = None;
    let audited = loop {
        let found = audit(ledger, counter, (begins, highest), underway.as_ref()).await?;
        if found.holes.is_empty() || underway.is_some() && Instant::now() >= deadline {
            break found;
        }
        if underway.is_some() {
            wait.wait().await;
            // Its epoch may have been closed meanwhile.
            ledger.settle(id).await?;
            settle_slices(ledger).await?;
        }
        // Before the rows: what leaves an outbox is journaled.
        underway = Some(match comparison.as_deref_mut() {
            Some(comparison) => comparison.underway(counter.partition, id).await?,
            None => Underway::default(),
        });
    };
    let finding = |span: &Span| Finding {
        counter_id: id,
        series_id: counter.series_id,
        counter_key: counter.key.clone(),
        span: *span,
    };
    let Audited { holes, overlaps, .. } = audited;
    let room = |list: &Vec<Finding>| (FINDINGS_MAX as usize).saturating_sub(list.len());
    report.missing.extend(holes.iter().take(room(&report.missing)).map(finding));
    report.twice.extend(overlaps.iter().take(room(&report.twice)).map(finding));
    report.counters += 1;
    report.values += highest.abs_diff(begins) / counter.step;
    report.left_alone += begins.abs_diff(counter.origin) / counter.step;
    Ok(())
}

/// Checks all values of a counter behind one and up to another, page by page. What is on its way to
/// the journal is no hole.
async fn audit(
    ledger: &SharedLedger,
    counter: &Counter,
    (begins, highest): (i64, i64),
    underway: Option<&Underway>,
) -> Result<Audited, LedgerError> {
    let Counter { counter_id, step, .. } = *counter;
    let left = |hole: Span| match underway {
        Some(underway) => underway.left_of(counter_id, hole, step),
        None => vec![hole],
    };
    let mut all = Audited { upto: begins, ..Audited::default() };
    while all.upto < highest {
        let page = ledger.audits().values(counter_id, all.upto, highest, PAGE_ROWS).await?;
        all.upto = page.upto;
        let holes: Vec<Span> = page.holes.into_iter().flat_map(left).collect();
        for (found, more) in [(&mut all.holes, holes), (&mut all.overlaps, page.overlaps)] {
            let room = (FINDINGS_MAX as usize).saturating_sub(found.len());
            found.extend(more.into_iter().take(room));
        }
    }
    Ok(all)
}

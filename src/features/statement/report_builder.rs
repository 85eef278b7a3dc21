//! Creates the paper: reads the accounts and their seals from the ledger, and puts both into words.

use jiff::Timestamp;
use numbering::PartialNumber;

use super::bounds::{Bounds, Undrawn};
use super::by_hand::{AS_WRITTEN, BY_HAND};
use super::explanations::{
    AND_MORE, BY_ARITHMETIC, CHANGED, CHANGED_ALONE, COMPLETE, EMPTY, EXCEEDED, EXPLAINED,
    FURTHER_ENTRIES, GONE, IN_FILES, INCOMPLETE, INTERRUPTED, KEPT_ASIDE, PASSED_OVER, REGISTERED,
    RESERVATION, RESTORED, SO_FAR, UNEXPLAINED, UNHEARD, UNSETTLED, explanation,
};
use super::labels::Labels;
use super::messages::{ARCHIVED, IMPORTED, ISSUED, label, say};
use super::paper::{
    CountLine, EndAnswer, EntryAnswer, PartAnswer, RunAnswer, RunStatement, Statement, Verdict,
};
use super::partly::{BEYOND, OVER_ALL_TIME, PART_ARCHIVED, PART_ASIDE};
use super::period::{AskedPeriod, PeriodKeys, is_over_all_time, period_shown};
use super::sealing::seal;
use super::{by_hand, voids};
use crate::clock::SharedClock;
use crate::engine::sealing::Sealing;
use crate::features::register::gap_explanation::{Ending, GapExplanation};
use crate::language::Locale;
use crate::ledger::{
    ANSWERED_ALONE, AccountEnd, AccountEntry, AccountPart, AccountRequest, AccountTally, Accounted,
    At, Counter, CounterAccount, CounterFilter, DatedPart, EntryKind, EntryRow, GapReason,
    LedgerError, Run, SharedLedger,
};
use crate::terminal::words;

/// The request for a paper.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) language: Locale,
    /// The words for its counters.
    pub(crate) labels: Labels,
    /// As written on the paper.
    pub(crate) series: String,
    pub(crate) period: AskedPeriod,
    pub(crate) project: Option<String>,
    /// The same for the ledger: without the period.
    pub(crate) filter: CounterFilter,
    /// The keys of the period.
    pub(crate) keys: PeriodKeys,
}

/// Draws the paper up.
///
/// # Errors
/// A ledger that does not answer; more than the bounds.
pub(crate) async fn draw_up(
    ledger: &SharedLedger,
    clock: &SharedClock,
    asked: Asked,
    bounds: Bounds,
) -> Result<Statement, Undrawn> {
    // Read before the accounts, which are later and count what the checkpoint has not seen.
    let checkpoint = ledger.checkpoints().last(None).await?;
    let sealing = checkpoint.as_ref().map(Sealing::of);
    let seen = sealing.as_ref().and_then(|read| read.as_ref().ok()).map(|it| it.seen.clone());
    let drawn_up_at = moment(clock.now_us());
    let Bounds { counters_max, rows_max, entries_max } = bounds;
    let Asked { period, mut filter, keys, .. } = asked;
    filter.keys.push(keys.any);
    let order = AccountRequest { filter, counters_max, rows_max, entries_max, seen };
    let part = DatedPart { of: keys.beyond, days: period.days() };
    let accounts = match ledger.register().accounts_with_part(&order, Some(&part)).await? {
        Accounted::Whole(accounts) => accounts,
        Accounted::TooManyCounters => return Err(Undrawn::TooManyCounters(counters_max)),
        Accounted::TooManyRows => return Err(Undrawn::TooManyRows(rows_max)),
    };
    let (language, explanation) = (asked.language, GapExplanation::of(ledger));
    let labels = asked.labels;
    let mut writer = Writer { language, labels: &labels, ledger, explanation, days: part.days };
    let mut runs = Vec::with_capacity(accounts.len());
    for account in &accounts {
        runs.push(writer.run(account).await?);
    }
    let verdict = runs.iter().map(|run| run.verdict).max().unwrap_or(Verdict::Complete);
    let sentence = match verdict {
        Verdict::Complete if runs.iter().all(|run| run.values == 0) => EMPTY,
        Verdict::Complete => COMPLETE,
        Verdict::CompleteSoFar => SO_FAR,
        Verdict::NotComplete => INCOMPLETE,
    };
    Ok(Statement {
        language: asked.language,
        series: asked.series,
        period: period.to_string(),
        project: asked.project,
        era: labels.era(),
        drawn_up_at,
        verdict,
        sentence: asked.language.choose(sentence).to_owned(),
        seal: seal(asked.language, sealing, &accounts),
        runs,
    })
}

/// A time, in UTC.
pub(super) fn moment(at_us: i64) -> String {
    Timestamp::from_microsecond(at_us).map_or_else(|_| at_us.to_string(), |at| at.to_string())
}

/// Puts accounts into words.
struct Writer<'a> {
    language: Locale,
    labels: &'a Labels,
    ledger: &'a SharedLedger,
    explanation: GapExplanation<'a>,
    /// The first requested day, and the last.
    days: [String; 2],
}

impl Writer<'_> {
    async fn run(&mut self, account: &CounterAccount) -> Result<RunStatement, LedgerError> {
        let mut entries = Vec::with_capacity(account.entries.len());
        for entry in &account.entries {
            entries.push(self.entry(account, entry).await?);
        }
        voids::add_entries(self.language, &account.voids, &mut entries);
        by_hand::add_entries(self.language, account, &mut entries);
        let mut lines = lines(self.language, &account.tally);
        voids::add_lines(self.language, &account.voids, &mut lines);
        let verdict = match (account.is_sound(), account.is_settled()) {
            (true, true) => Verdict::Complete,
            (true, false) => Verdict::CompleteSoFar,
            (false, _) => Verdict::NotComplete,
        };
        let over_all_time = is_over_all_time(&account.counter.key);
        Ok(RunStatement {
            counter_id: account.counter.counter_id,
            serial: account.counter.serial.clone(),
            counter_key: account.counter.key.clone(),
            label: self.label(&account.counter),
            over_all_time,
            verdict,
            first: account.first.as_ref().map(end),
            last: account.last.as_ref().map(end),
            part: account.part.as_ref().map(|part| self.part(part)),
            revised: account.revised,
            stretches: account.stretches.iter().copied().map(run_answer).collect(),
            values: account.values(),
            lines,
            sum: account.tally.sum(),
            entries,
            further_entries: account.further_entries,
            notes: self.notes(account, over_all_time),
        })
    }

    /// The words for a counter.
    fn label(&self, counter: &Counter) -> String {
        let label = self.labels.label(&counter.key);
        if !counter.is_as_written() {
            return label;
        }
        let kind = self.language.choose(AS_WRITTEN);
        if label.is_empty() { kind.to_owned() } else { format!("{label} · {kind}") }
    }

    fn say(&self, message: crate::language::Message, places: &[(&str, &str)]) -> String {
        say(self.language, message, places)
    }

    /// The requested part of a run.
    fn part(&self, part: &AccountPart) -> PartAnswer {
        let AccountPart { values: count, ref first, ref last, kept_aside, archived } = *part;
        let [dated_from, dated_upto] = self.days.clone();
        let (first, last) = (first.as_ref().map(end), last.as_ref().map(end));
        PartAnswer { dated_from, dated_upto, count, first, last, kept_aside, archived }
    }

    fn notes(&self, account: &CounterAccount, over_all_time: bool) -> Vec<String> {
        let mut notes = Vec::new();
        if over_all_time {
            notes.push(self.say(OVER_ALL_TIME, &[]));
        } else if account.part.is_some() {
            let period = period_shown(&account.counter.key);
            notes.push(self.say(BEYOND, &[("period", period)]));
        }
        let part = account.part.as_ref();
        for (count, message) in [
            (part.map_or(0, |part| part.kept_aside), PART_ASIDE),
            (part.map_or(0, |part| part.archived), PART_ARCHIVED),
        ] {
            if count > 0 {
                notes.push(self.say(message, &[("count", &count.to_string())]));
            }
        }
        if account.is_unsettled {
            notes.push(self.say(UNSETTLED, &[]));
        }
        if account.gone > 0 {
            notes.push(self.say(GONE, &[("count", &account.gone.to_string())]));
        }
        if account.is_exceeded {
            notes.push(self.say(EXCEEDED, &[]));
        }
        if account.further_entries > 0 {
            let counter = account.counter.counter_id.to_string();
            let places = [("count", &*account.further_entries.to_string()), ("counter", &counter)];
            notes.push(self.say(FURTHER_ENTRIES, &places));
        }
        notes.extend(voids::further(self.language, &account.voids));
        notes.extend(by_hand::further(self.language, account));
        if !account.files.is_empty() {
            let mut files = account.files.join(", ");
            if account.further_files > 0 {
                let count = account.further_files.to_string();
                files += &self.say(AND_MORE, &[("count", &count)]);
            }
            notes.push(self.say(IN_FILES, &[("files", &files)]));
        }
        notes
    }

    async fn entry(
        &mut self,
        account: &CounterAccount,
        entry: &AccountEntry,
    ) -> Result<EntryAnswer, LedgerError> {
        let AccountEntry { kind, run, row } = entry;
        let partial = self.partial_number(account.counter.counter_id, *run).await?;
        let number = |value: i64| partial.as_ref()?.fill(&[u64::try_from(value).ok()?]).ok();
        let mut ending = self.ending(account, *kind, row.as_ref()).await?;
        if *kind == EntryKind::Gap(GapReason::Skipped) {
            let first = u64::try_from(run.first).unwrap_or(0);
            ending = self.explanation.skipped(account.counter.counter_id, first, ending).await?;
        }
        let explained = match &ending.change {
            Some(change) => {
                let id = change.change_id.to_string();
                self.say(PASSED_OVER, &[("id", &id), ("reason", &change.reason)])
            }
            None if ending.is_restored => self.say(RESTORED, &[]),
            None => match &ending.by_hand {
                Some(row) => by_hand::passed_over(self.language, row),
                None => self.say(explanation(*kind), &[]),
            },
        };
        Ok(EntryAnswer {
            what: word(*kind),
            label: self.language.choose(label(*kind)),
            run: run_answer(*run),
            first_number: number(run.first),
            last_number: number(run.last),
            explanation: explained,
            evidence: self.evidence(*kind, row.as_ref(), &ending),
            entry_id: row.as_ref().map(|row| row.id),
            noted_at: row.as_ref().map(|row| moment(row.noted_at_us)),
        })
    }

    /// How the numbers next to a run are written, if all in the same way.
    async fn partial_number(
        &self,
        counter_id: i64,
        run: Run,
    ) -> Result<Option<PartialNumber>, LedgerError> {
        let first = u64::try_from(run.first).unwrap_or(0);
        let mut masks = self.ledger.register().masks_beside(counter_id, first).await?;
        masks.dedup();
        Ok(match &masks[..] {
            [only] => PartialNumber::parse(only).ok(),
            _ => None,
        })
    }

    /// The interruption that left a gap.
    async fn ending(
        &mut self,
        account: &CounterAccount,
        kind: EntryKind,
        row: Option<&EntryRow>,
    ) -> Result<Ending, LedgerError> {
        match (kind, row) {
            (
                EntryKind::Gap(reason @ (GapReason::Discarded | GapReason::Unaccounted)),
                Some(row),
            ) => {
                let at = At { partition: account.counter.partition, epoch: row.epoch };
                self.explanation.ending(at, reason).await
            }
            _ => Ok(Ending::default()),
        }
    }

    fn evidence(&self, kind: EntryKind, row: Option<&EntryRow>, ending: &Ending) -> String {
        let Some(row) = row else { return self.say(BY_ARITHMETIC, &[]) };
        let (id, at) = (row.id.to_string(), moment(row.noted_at_us));
        let mut parts = Vec::new();
        match row.allocation_id.filter(|_| !matches!(kind, EntryKind::Gap(_))) {
            None => parts.push(self.say(REGISTERED, &[("id", &id), ("at", &at)])),
            Some(reservation) if kind == EntryKind::Reserved => {
                let places = [("allocation", &*reservation.to_string()), ("at", &at)];
                parts.push(self.say(RESERVATION, &places));
            }
            Some(allocation) => {
                let places = [("allocation", &*allocation.to_string()), ("at", &at)];
                parts.push(self.say(KEPT_ASIDE, &places));
                parts.push(match &row.explained {
                    Some((by, why)) => self.say(EXPLAINED, &[("by", by), ("reason", why)]),
                    None => self.say(UNEXPLAINED, &[]),
                });
            }
        }
        if let Some(closed) = &ending.closed {
            let places = [
                ("epoch", &*closed.at.epoch.to_string()),
                ("partition", &closed.at.partition.to_string()),
                ("at", &moment(closed.closed_at_us)),
            ];
            parts.push(self.say(INTERRUPTED, &places));
        }
        if let Some(change) = &ending.change {
            let places = [
                ("id", &*change.change_id.to_string()),
                ("asked", &change.requested_by),
                ("approved", change.decided_by.as_deref().unwrap_or_default()),
                ("reason", &change.reason),
            ];
            let alone = change.decided_by.as_deref() == Some(ANSWERED_ALONE);
            parts.push(self.say(if alone { CHANGED_ALONE } else { CHANGED }, &places));
        }
        if kind == EntryKind::Gap(GapReason::Unaccounted) {
            let names = ending.unheard().join(", ");
            if !names.is_empty() {
                parts.push(self.say(UNHEARD, &[("names", &names)]));
            }
        }
        parts.join("; ")
    }
}

fn end(end: &AccountEnd) -> EndAnswer {
    EndAnswer {
        value: end.value.to_string(),
        number: end.number.clone(),
        issued_at: moment(end.issued_at_us),
        file: end.file.clone(),
    }
}

fn run_answer(run: Run) -> RunAnswer {
    RunAnswer {
        first: run.first.to_string(),
        last: run.last.to_string(),
        step: run.step.to_string(),
        count: run.count(),
    }
}

/// The name of a kind in answers to programs.
fn word(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::Gap(reason) => words::reason(reason),
        EntryKind::Reserved => "reserved",
        EntryKind::Rejected => "kept-aside",
        EntryKind::Collision => "duplicate",
        EntryKind::Pending => "being-recorded",
        EntryKind::Unexamined => "not-looked-at",
        EntryKind::Missing => "missing",
        EntryKind::Twice => "twice",
    }
}

/// The arithmetic: lines that count nothing are left out, except those that must be zero.
fn lines(language: Locale, tally: &AccountTally) -> Vec<CountLine> {
    let line =
        |what, label, count, sign| CountLine { what, label: language.choose(label), count, sign };
    let of = |kind, count| line(word(kind), label(kind), count, 1);
    let gap = |reason| of(EntryKind::Gap(reason), tally.gaps[AccountTally::place(reason)]);
    let mut lines = vec![
        line("issued", ISSUED, tally.issued, 1),
        line("archived", ARCHIVED, tally.archived, 0),
        line("imported", IMPORTED, tally.imported, 1),
        line("registered", BY_HAND, tally.registered, 1),
        line("as-written", AS_WRITTEN, tally.as_written, 1),
        gap(GapReason::Discarded),
        gap(GapReason::Unaccounted),
        gap(GapReason::Collided),
        gap(GapReason::BeforeImport),
        gap(GapReason::Skipped),
        gap(GapReason::Returned),
        gap(GapReason::Cancelled),
        gap(GapReason::Expired),
        of(EntryKind::Reserved, tally.reserved),
        of(EntryKind::Rejected, tally.rejected),
        of(EntryKind::Collision, tally.collisions),
        of(EntryKind::Pending, tally.pending),
        of(EntryKind::Unexamined, tally.unexamined),
        of(EntryKind::Missing, tally.missing),
        line(word(EntryKind::Twice), label(EntryKind::Twice), tally.twice, -1),
    ];
    lines.retain(|line| line.count > 0 || matches!(line.what, "issued" | "missing" | "twice"));
    lines
}

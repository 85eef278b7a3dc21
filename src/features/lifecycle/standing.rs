//! What became of numbers, as look-ups, lists and exports show it beside the journal's rows.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::act_rows::{AssignedRow, CorrectionRow};
use super::naming::ROWS_MAX;
use crate::auth::Identity;
use crate::engine::node::Use;
use crate::ledger::{
    ACTS_PER_ROW_MAX, Entry, JournalFilter, JournalRow, LedgerError, LifeAct, LifeRow,
    RowVisibility, Run, SharedLedger, ValueOf,
};
use crate::web::App;
use crate::web::instant::instant;
use crate::web::middleware::Caller;

/// Longest wait for the status of an earlier number: its answer does not wait for a ledger that is
/// away.
const STATUS_WAIT_MAX: Duration = Duration::from_millis(250);

/// Void numbers of a range that its row names, and assigned ones, as many as the ledger reads with
/// a row; all are counted.
const NAMED_MAX: usize = ACTS_PER_ROW_MAX as usize;

/// What a number is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum NumberStanding {
    /// It is issued.
    #[default]
    Issued,
    /// It is void.
    Voided,
    /// It is void, and another number stands in its place.
    Replaced,
}

impl NumberStanding {
    /// Of a number that is void or not, and replaced or not: what is replaced is void.
    fn of(is_voided: bool, is_replaced: bool) -> Self {
        match (is_voided, is_replaced) {
            (_, true) => NumberStanding::Replaced,
            (true, false) => NumberStanding::Voided,
            (false, false) => NumberStanding::Issued,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            NumberStanding::Issued => "issued",
            NumberStanding::Voided => "voided",
            NumberStanding::Replaced => "replaced",
        }
    }
}

/// What a number of an earlier call is now; nothing where the ledger does not say in time, which
/// leaves the number with its document.
pub(crate) async fn status_of_earlier(
    app: &App,
    caller: &Caller,
    entry: &Entry,
) -> Option<NumberStanding> {
    // A ledger that is away is not waited for.
    if app.service.context.membership.availability().lacks(Use::Read) {
        return None;
    }
    let first = entry.taken.first()?;
    let value = i64::try_from(first.range.first).ok()?;
    let of = ValueOf { counter_id: first.counter_id, value };
    let looking = app.read(caller, |ledger| async move { ledger.life().standing_of(of).await });
    let standing = tokio::time::timeout(STATUS_WAIT_MAX, looking).await.ok()?.ok()?;
    Some(NumberStanding::of(standing.voided.is_some(), standing.replaced.is_some()))
}

/// What became of the numbers of a journal row.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowLife {
    /// The acts upon its numbers, oldest first.
    acts: Vec<LifeRow>,
    /// How many of them are void or assigned, where `acts` does not have them all.
    counts: ActCounts,
    /// The link from the number in whose place its number stands.
    replaces: Option<Box<LifeRow>>,
    /// The value that is meant, where it is not the row's first.
    value: Option<i64>,
    /// Whether all assigned numbers are named, and not the first ones alone.
    names_all: bool,
}

impl RowLife {
    /// The same with every assigned number of the row's range, for an export.
    pub(crate) async fn with_all_assigned(
        mut self,
        ledger: &SharedLedger,
        row: &JournalRow,
    ) -> Result<Self, LedgerError> {
        self.names_all = true;
        if let (Some((counter_id, run)), Some(_)) = (run_of(row), self.counts.assigned) {
            let all = ledger.life().all_once(counter_id, run, LifeAct::Assigned).await?;
            self.acts.retain(|act| act.act != LifeAct::Assigned);
            self.acts.extend(all);
        }
        Ok(self)
    }

    /// The same of a number within the row's range.
    pub(crate) async fn of_value(
        mut self,
        ledger: &SharedLedger,
        row: &JournalRow,
        value: u64,
    ) -> Result<Self, LedgerError> {
        self.value = i64::try_from(value).ok();
        let (Some((counter_id, run)), Some(value)) = (run_of(row), self.value) else {
            return Ok(self);
        };
        // It may be behind those that were read.
        let run = Run { first: value, last: value, ..run };
        let own = ledger.life().of_rows(&[(counter_id, run)]).await?;
        self.acts.retain(|act| act.of.value != value);
        self.acts.extend(own);
        self.acts.sort_unstable_by_key(|act| act.life_id);
        Ok(self)
    }

    /// The same without the texts of numbers that a caller does not see: what became of the row's
    /// number stays.
    pub(crate) async fn seen_by(
        mut self,
        ledger: &SharedLedger,
        identity: &Identity,
        row: &JournalRow,
    ) -> Result<Self, LedgerError> {
        if let Some(link) = &self.replaces {
            let value = u64::try_from(link.of.value).unwrap_or(u64::MAX);
            let replaced = ledger.register().row_of(link.of.counter_id, value).await?;
            if !replaced.is_some_and(|row| identity.sees_row(&row)) {
                self.replaces = None;
            }
        }
        let value = self.value.or(run_of(row).map(|(_, run)| run.first));
        for act in self.acts.iter_mut().filter(|act| act.act == LifeAct::Replaced) {
            let is_it = Some(act.of.value) == value;
            if !is_it || !sees_replacement(ledger, identity, act).await? {
                act.replacement = None;
            }
        }
        Ok(self)
    }

    /// What became of the number that is meant.
    pub(crate) fn standing(&self, row: &JournalRow) -> NumberStanding {
        StandingAnswer::of(self, row).status
    }
}

/// Whether a caller sees the number in the place of a void one. One whose record is on its way is
/// seen by those alone who see all numbers.
pub(crate) async fn sees_replacement(
    ledger: &SharedLedger,
    identity: &Identity,
    link: &LifeRow,
) -> Result<bool, LedgerError> {
    let Some(number) = &link.replacement else { return Ok(true) };
    let rows = rows_seen(ledger, identity, number).await?;
    let is_it = |row: &JournalRow| Some(row.entry.record.allocation_id) == link.other;
    Ok(rows.is_none_or(|rows| rows.iter().any(is_it)))
}

/// The rows with a text that a caller sees; `None`: it sees all numbers.
async fn rows_seen(
    ledger: &SharedLedger,
    identity: &Identity,
    number: &str,
) -> Result<Option<Vec<JournalRow>>, LedgerError> {
    let shown = identity.row_visibility();
    if matches!(shown, RowVisibility::Everything) {
        return Ok(None);
    }
    let number = Some(number.to_owned());
    let filter = JournalFilter { number, limit: ROWS_MAX, shown, ..JournalFilter::default() };
    let mut rows = ledger.register().find(&filter).await?;
    rows.retain(|row| identity.sees_row(row));
    Ok(Some(rows))
}

/// The numbers of a chain of replacements that a caller sees; none where that leaves one alone.
pub(crate) async fn chain_seen_by(
    ledger: &SharedLedger,
    identity: &Identity,
    chain: Vec<String>,
) -> Result<Vec<String>, LedgerError> {
    let mut seen = Vec::with_capacity(chain.len());
    for number in chain {
        let rows = rows_seen(ledger, identity, &number).await?;
        if rows.is_none_or(|rows| !rows.is_empty()) {
            seen.push(number);
        }
    }
    Ok(if seen.len() > 1 { seen } else { Vec::new() })
}

/// What became of the numbers of journal rows, in their order.
pub(crate) async fn lives_of(
    ledger: &SharedLedger,
    rows: &[impl Borrow<JournalRow>],
) -> Result<Vec<RowLife>, LedgerError> {
    let rows = || rows.iter().map(Borrow::borrow);
    // A list has a row once more for each of its revisions.
    let runs: BTreeMap<(i64, i64), Run> =
        rows().filter_map(run_of).map(|(counter_id, run)| ((counter_id, run.first), run)).collect();
    let runs: Vec<(i64, Run)> =
        runs.into_iter().map(|((counter_id, _), run)| (counter_id, run)).collect();
    let allocations: Vec<Uuid> = rows().map(|row| row.entry.record.allocation_id).collect();
    let mut acts: BTreeMap<(i64, i64), Vec<LifeRow>> = BTreeMap::new();
    for act in ledger.life().of_rows(&runs).await? {
        acts.entry((act.of.counter_id, act.of.value)).or_default().push(act);
    }
    let links =
        if runs.is_empty() { Vec::new() } else { ledger.life().replaced_by(&allocations).await? };
    let mut replaces: HashMap<Uuid, Box<LifeRow>> = HashMap::new();
    for link in links {
        if let Some(other) = link.other {
            replaces.insert(other, Box::new(link));
        }
    }
    let counts = act_counts(ledger, &runs, &acts).await?;
    let life = |row: &JournalRow| {
        let of_run = run_of(row).map(|(counter_id, run)| {
            let within = acts.range((counter_id, run.first)..=(counter_id, run.last));
            let mut acts: Vec<LifeRow> = within.flat_map(|(_, acts)| acts.clone()).collect();
            acts.sort_unstable_by_key(|act| act.life_id);
            acts
        });
        let replaces = replaces.get(&row.entry.record.allocation_id).cloned();
        let counts =
            run_of(row).and_then(|(counter_id, run)| counts.get(&(counter_id, run.first)).copied());
        let (acts, counts) = (of_run.unwrap_or_default(), counts.unwrap_or_default());
        RowLife { acts, counts, replaces, ..RowLife::default() }
    };
    Ok(rows().map(life).collect())
}

/// How many numbers of a run are void, and assigned; nothing where all such acts were read.
#[derive(Clone, Copy, Debug, Default)]
struct ActCounts {
    voided: Option<u64>,
    assigned: Option<u64>,
}

/// The same of the runs of which not all acts were read.
async fn act_counts(
    ledger: &SharedLedger,
    runs: &[(i64, Run)],
    acts: &BTreeMap<(i64, i64), Vec<LifeRow>>,
) -> Result<HashMap<(i64, i64), ActCounts>, LedgerError> {
    let mut counts: HashMap<(i64, i64), ActCounts> = HashMap::new();
    for (counter_id, run) in runs {
        let within = || acts.range((*counter_id, run.first)..=(*counter_id, run.last));
        for wanted in [LifeAct::Voided, LifeAct::Assigned] {
            let read = within().flat_map(|(_, acts)| acts).filter(|act| act.act == wanted);
            if read.count() < NAMED_MAX {
                continue;
            }
            let count = Some(ledger.life().count_once(*counter_id, *run, wanted).await?);
            let counts = counts.entry((*counter_id, run.first)).or_default();
            match wanted {
                LifeAct::Voided => counts.voided = count,
                _ => counts.assigned = count,
            }
        }
    }
    Ok(counts)
}

/// The counter and the values of a row's first serial.
fn run_of(row: &JournalRow) -> Option<(i64, Run)> {
    let taken = row.entry.taken.first()?;
    let value = |value: u64| i64::try_from(value).ok();
    let run = Run {
        first: value(taken.range.first)?,
        last: value(taken.range.last)?,
        step: value(taken.range.step)?,
    };
    Some((taken.counter_id, run))
}

/// The numbers of the chain of replacements that a row's number is part of, the oldest first; empty
/// where it replaces none and none replaces it.
pub(crate) async fn chain_of(
    ledger: &SharedLedger,
    row: &JournalRow,
    value: Option<u64>,
) -> Result<Vec<String>, LedgerError> {
    let Some(mut of) = ValueOf::number(row) else { return Ok(Vec::new()) };
    of.value = value.and_then(|value| i64::try_from(value).ok()).unwrap_or(of.value);
    let links = ledger.life().chain_of(of, row.entry.record.allocation_id).await?;
    let mut chain: Vec<String> = links.iter().take(1).filter_map(|l| l.number.clone()).collect();
    chain.extend(links.into_iter().filter_map(|link| link.replacement));
    Ok(chain)
}

/// What became of a number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StandingAnswer<'a> {
    /// `issued`, `voided`, or `replaced`: void, and another number stands in its place. Of a range,
    /// that of the number that was looked for, or of its first.
    pub(crate) status: NumberStanding,
    /// When it was voided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) voided_at: Option<String>,
    /// Who voided it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) voided_by: Option<&'a str>,
    /// Why it is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) void_reason: Option<&'a str>,
    /// The void number in whose place it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<&'a str>,
    /// The number that stands in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replaced_by: Option<&'a str>,
    /// What its variables should have been, the oldest correction first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) corrections: Vec<CorrectionRow<'a>>,
    /// Of a range with void numbers: how many they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) void_count: Option<u64>,
    /// Which ones, the first hundred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) void_numbers: Vec<&'a str>,
    /// Of a range: the document to which the number that was looked for is assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assigned: Option<AssignedRow<'a>>,
    /// Of a range with numbers that are assigned to documents: how many they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) assigned_count: Option<u64>,
    /// Which ones, the first hundred, each with its document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) assigned_numbers: Vec<AssignedRow<'a>>,
}

impl<'a> StandingAnswer<'a> {
    /// What it is, for people.
    pub(crate) fn shown(&self) -> String {
        match self.replaced_by {
            Some(number) => format!("replaced by {number}"),
            None => self.status.word().to_owned(),
        }
    }

    /// The answer for what became of a row's number.
    pub(crate) fn of(life: &'a RowLife, row: &JournalRow) -> Self {
        let run = run_of(row).map(|(_, run)| run);
        let value = life.value.or(run.map(|run| run.first));
        let is_it = |act: &&LifeRow| Some(act.of.value) == value;
        let of = |wanted: LifeAct| life.acts.iter().filter(move |act| act.act == wanted);
        let voided = of(LifeAct::Voided).find(is_it);
        let replaced = of(LifeAct::Replaced).find(is_it);
        let is_range = run.is_some_and(|run| run.first < run.last);
        let within = |wanted: LifeAct| of(wanted).filter(|_| is_range);
        let count = |wanted: LifeAct, counted: Option<u64>| {
            let read = || u64::try_from(within(wanted).count()).unwrap_or(u64::MAX);
            let count = counted.filter(|_| is_range).unwrap_or_else(read);
            (count > 0).then_some(count)
        };
        let assigned = || within(LifeAct::Assigned);
        let named_max = if life.names_all { usize::MAX } else { NAMED_MAX };
        StandingAnswer {
            status: NumberStanding::of(voided.is_some(), replaced.is_some()),
            voided_at: voided.map(|act| instant(act.at_us)),
            voided_by: voided.map(|act| act.user_id.as_str()),
            void_reason: voided.and_then(|act| act.reason.as_deref()),
            replaces: life.replaces.as_ref().and_then(|link| link.number.as_deref()),
            replaced_by: replaced.and_then(|act| act.replacement.as_deref()),
            corrections: of(LifeAct::Corrected).filter(is_it).map(CorrectionRow::of).collect(),
            void_count: count(LifeAct::Voided, life.counts.voided),
            void_numbers: within(LifeAct::Voided)
                .filter_map(|act| act.number.as_deref())
                .take(NAMED_MAX)
                .collect(),
            assigned: assigned().find(is_it).map(AssignedRow::of),
            assigned_count: count(LifeAct::Assigned, life.counts.assigned),
            assigned_numbers: assigned().map(AssignedRow::of).take(named_max).collect(),
        }
    }
}

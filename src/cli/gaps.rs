//! `numerator gaps`: lists the numbers that will not be issued any more, and explains them to an
//! auditor. Reads only, unless it is asked to settle what closed epochs left.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{Args, ValueEnum};
use numbering::PartialNumber;
use serde::Serialize;

use super::output::{print, print_json, say};
use super::session::open_ledger;
use super::words;
use crate::config::Settings;
use crate::ledger::{
    At, ClosedEpoch, Closing, Event, Gap, GapFilter, GapReason, LedgerError, Partition,
    SharedLedger, Unsettled,
};
use crate::reconciler::{settle_counters, settle_slices};

const EXAMPLES: &str = "Examples:
  numerator gaps --explain
  numerator gaps --series SPO --reason before-import --json";

/// Which gaps to list.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct GapsArgs {
    /// Only of this series
    #[arg(long, value_name = "CODE")]
    pub series: Option<String>,
    /// Only of the counter with this id (`verify` and `status` print ids)
    #[arg(long, value_name = "ID")]
    pub counter: Option<i64>,
    /// Only for this reason
    #[arg(long, value_enum)]
    pub reason: Option<Reason>,
    /// Say of each how it came about
    #[arg(long)]
    pub explain: bool,
    /// First register what untouched counters of closed epochs lost; else their next use does it
    #[arg(long)]
    pub settle: bool,
    /// List so many runs, the newest first
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Why numbers are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Reason {
    /// Taken by a flight whose result was never handed out.
    Discarded,
    /// Some of them may have been handed out, and their records lost.
    Unaccounted,
    /// Another allocation has the number.
    Collided,
    /// Below what was imported, and not among it.
    BeforeImport,
}

impl Reason {
    fn of_ledger(self) -> GapReason {
        match self {
            Reason::Discarded => GapReason::Discarded,
            Reason::Unaccounted => GapReason::Unaccounted,
            Reason::Collided => GapReason::Collided,
            Reason::BeforeImport => GapReason::BeforeImport,
        }
    }
}

/// A run of lost values.
#[derive(Debug, Serialize)]
struct GapAnswer {
    counter_id: i64,
    /// Code of its series; none where the series is not active any more.
    series: Option<String>,
    counter_key: String,
    first: u64,
    last: u64,
    /// How many values.
    count: u64,
    /// The first as a number, as the counter's neighbouring numbers are written; none where they
    /// differ or hold several serials.
    first_number: Option<String>,
    last_number: Option<String>,
    reason: &'static str,
    partition: u32,
    epoch: u64,
    noted_at: String,
    /// How it came about.
    explanation: Option<Explanation>,
}

impl GapAnswer {
    /// First and last as numbers, or else as values.
    fn ends(&self) -> (String, String) {
        let text =
            |number: &Option<String>, value: u64| number.clone().unwrap_or(value.to_string());
        (text(&self.first_number, self.first), text(&self.last_number, self.last))
    }
}

/// How a gap came about.
#[derive(Debug, Serialize)]
struct Explanation {
    /// The epoch whose closing lost the values, and how it was closed.
    closed_epoch: Option<u64>,
    closing: Option<&'static str>,
    closed_at: Option<String>,
    /// Why that epoch ended.
    cause: Option<String>,
    /// Nodes that were not heard of when it was closed, and did not turn up since.
    unheard: Vec<String>,
    /// For an auditor.
    sentence: String,
}

/// Prints the gaps.
///
/// # Errors
/// A ledger that cannot be reached, a series that is not there.
pub async fn run(settings: &Settings, args: &GapsArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let codes: BTreeMap<i64, String> = ledger
        .series()
        .await?
        .into_iter()
        .map(|version| (version.series_id, version.definition.code))
        .collect();
    let series_id = match &args.series {
        None => None,
        Some(code) => match codes.iter().find(|(_, known)| *known == code) {
            Some((id, _)) => Some(*id),
            None => bail!("series {code}: there is no such series; see `series list`"),
        },
    };
    if args.settle {
        settle_counters(&ledger, None, true).await?;
        settle_slices(&ledger).await?;
    }
    let filter = GapFilter {
        counter_id: args.counter,
        series_id,
        reason: args.reason.map(Reason::of_ledger),
        limit: args.limit,
    };
    let mut answers = Vec::new();
    let mut story = Story { ledger: &ledger, known: BTreeMap::new() };
    for gap in ledger.gaps(&filter).await? {
        let mut answer = describe(&ledger, &codes, &gap).await?;
        if args.explain {
            answer.explanation = Some(story.explain(&gap, &answer).await?);
        }
        answers.push(answer);
    }
    if args.json {
        print_json(&answers)?;
    } else {
        print(lines(&answers))?;
    }
    // Beside the list, whose form is one for all who read it.
    for Unsettled { counter_id, epoch, left, .. } in ledger.unsettled(args.limit).await? {
        if left > 0 && args.counter.is_none_or(|one| one == counter_id) {
            say(format_args!(
                "counter {counter_id}: {left} values of epoch {epoch} are not looked at yet and \
                 may be gaps; the service does that by itself, `gaps --settle` does it now"
            ));
        }
    }
    Ok(())
}

async fn describe(
    ledger: &SharedLedger,
    codes: &BTreeMap<i64, String>,
    gap: &Gap,
) -> Result<GapAnswer, LedgerError> {
    let partial = partial_number(ledger, gap).await?;
    let number = |value| partial.as_ref().and_then(|partial| partial.fill(&[value]).ok());
    Ok(GapAnswer {
        counter_id: gap.counter_id,
        series: codes.get(&gap.series_id).cloned(),
        counter_key: gap.key.clone(),
        first: gap.span.first,
        last: gap.span.last,
        count: (gap.span.last - gap.span.first) / gap.step + 1,
        first_number: number(gap.span.first),
        last_number: number(gap.span.last),
        reason: words::reason(gap.reason),
        partition: gap.at.partition,
        epoch: gap.at.epoch,
        noted_at: words::moment(gap.noted_at_us),
        explanation: None,
    })
}

/// How the numbers next to a gap are written, if all in the same way.
async fn partial_number(
    ledger: &SharedLedger,
    gap: &Gap,
) -> Result<Option<PartialNumber>, LedgerError> {
    let mut masks = ledger.masks_beside(gap.counter_id, gap.span.first).await?;
    masks.dedup();
    Ok(match &masks[..] {
        [only] => PartialNumber::parse(only).ok(),
        _ => None,
    })
}

/// Tells how gaps came about; asks for each epoch once.
struct Story<'a> {
    ledger: &'a SharedLedger,
    known: BTreeMap<(u32, u64, &'static str), Ending>,
}

/// The end of an epoch.
#[derive(Clone, Default)]
struct Ending {
    closed: Option<ClosedEpoch>,
    /// Why it ended.
    cause: Option<String>,
    /// Whether an operator ended it, for the ledger had gone back (F9).
    is_restored: bool,
}

impl Story<'_> {
    async fn explain(&mut self, gap: &Gap, answer: &GapAnswer) -> Result<Explanation, LedgerError> {
        let ending = self.ending(gap).await?;
        let unheard = ending.unheard();
        let closed = ending.closed.as_ref();
        Ok(Explanation {
            sentence: sentence(gap, answer, &ending, &unheard),
            closed_epoch: closed.map(|closed| closed.at.epoch),
            closing: closed.map(|closed| words::closing(closed.closing)),
            closed_at: closed.map(|closed| words::moment(closed.closed_at_us)),
            unheard,
            cause: ending.cause,
        })
    }

    /// The closing that lost the values: that of the counter's own epoch. Where that was exact,
    /// what is unaccounted for was lifted: it is put down to the first closing at the ceiling
    /// since, although a recovery may lie between it and the release that lifted it.
    async fn ending(&mut self, gap: &Gap) -> Result<Ending, LedgerError> {
        let wanted = match gap.reason {
            GapReason::Unaccounted => Some(Closing::Ceiling),
            GapReason::BeforeImport => return Ok(Ending::default()),
            GapReason::Discarded | GapReason::Collided => None,
        };
        let key = (gap.at.partition, gap.at.epoch, words::reason(gap.reason));
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let closed = self.ledger.closed_epoch(gap.at, wanted).await?;
        let mut ending = Ending { closed, ..Ending::default() };
        if let Some(next) = self.next_epoch(&ending).await? {
            let events = self.ledger.events_of(next).await?;
            ending.is_restored = events.iter().any(|event| event.kind == "ledger-restored");
            ending.cause = self.cause(next, events).await?;
        }
        self.known.insert(key, ending.clone());
        Ok(ending)
    }

    /// The epoch after a closed one: the next number, but for a ledger that went back.
    async fn next_epoch(&self, ending: &Ending) -> Result<Option<At>, LedgerError> {
        let Some(closed) = &ending.closed else { return Ok(None) };
        let next = At { epoch: closed.at.epoch + 1, ..closed.at };
        if let Some(closed) = self.ledger.closed_epoch(next, None).await? {
            return Ok(Some(closed.at));
        }
        let rows = self.ledger.partitions().await?;
        let row = rows.into_iter().find(|row| row.partition == next.partition);
        Ok(row.map(|row| At { epoch: row.epoch, ..next }))
    }

    /// Why an epoch began, and so why the one before it ended.
    async fn cause(&self, at: At, events: Vec<Event>) -> Result<Option<String>, LedgerError> {
        for event in events {
            let is_beginning =
                matches!(&*event.kind, "recovery" | "fallback" | "return" | "opening");
            if let Some(cause) = event.detail["cause"].as_str().filter(|_| is_beginning) {
                return Ok(Some(cause.to_owned()));
            }
        }
        // Its leader may have died before it could write the event.
        let rows = self.ledger.partitions().await?;
        let is_asked = |row: &Partition| (row.partition, row.epoch) == (at.partition, at.epoch);
        Ok(rows.into_iter().find(is_asked).map(|row| row.cause))
    }
}

impl Ending {
    /// Nodes that were not accounted for, as operators know them.
    fn unheard(&self) -> Vec<String> {
        if self.is_restored {
            return Vec::new();
        }
        let missing = self.closed.iter().flat_map(|closed| &closed.missing);
        missing
            .map(|(node, label)| if label.is_empty() { node.to_string() } else { label.clone() })
            .collect()
    }
}

/// What an auditor is shown.
fn sentence(gap: &Gap, answer: &GapAnswer, ending: &Ending, unheard: &[String]) -> String {
    let (first, last) = answer.ends();
    let (what, was, it) = match answer.count {
        1 => (first, "was", "it"),
        _ => (format!("{first} to {last}"), "were", "them"),
    };
    let epoch = ending.closed.as_ref().map_or(gap.at.epoch, |closed| closed.at.epoch);
    let why = ending.cause.as_ref().map_or(String::new(), |cause| format!(" ({cause})"));
    match gap.reason {
        GapReason::Discarded => format!(
            "{what} {was} taken by a flight whose answer never reached a caller; when epoch \
             {epoch} of partition {} ended{why}, every node had accounted for what it handed out, \
             so nobody holds {it}.",
            gap.at.partition
        ),
        GapReason::Unaccounted if ending.is_restored => format!(
            "{what} {was} left out when partition {} was released after its ledger had gone back \
             to an earlier state, epoch {epoch}: nobody remembers any of the numbers, some may \
             have been handed out and their records lost, and none of them is issued again.",
            gap.at.partition
        ),
        GapReason::Unaccounted => {
            let who = match unheard {
                [] => "a node that was heard of only later".to_owned(),
                names => names.join(", "),
            };
            format!(
                "{what} {was} below the ceiling at which epoch {epoch} of partition {} was \
                 closed{why}, because the outbox of {who} could not be read: some of the \
                 numbers may have been handed out and their records lost, and none of them is \
                 issued again.",
                gap.at.partition
            )
        }
        GapReason::Collided => format!(
            "{what} {was} not handed out, because another allocation has the same text already; \
             the value is spent."
        ),
        GapReason::BeforeImport => format!(
            "{what} {was} not among the numbers that were imported from another system, whose \
             highest lies above {it}: whether that system issued {it} is not known here, and \
             nothing below the highest is issued here."
        ),
    }
}

/// The gaps for people.
fn lines(answers: &[GapAnswer]) -> Vec<String> {
    let header = ["counter", "series", "key", "from", "to", "count", "reason", "epoch", "noted at"];
    let mut table = words::table(header);
    for row in answers {
        let (first, last) = row.ends();
        table.add_row([
            row.counter_id.to_string(),
            row.series.clone().unwrap_or_else(|| "-".into()),
            row.counter_key.clone(),
            first,
            last,
            row.count.to_string(),
            row.reason.into(),
            format!("{} of partition {}", row.epoch, row.partition),
            row.noted_at.clone(),
        ]);
    }
    let mut lines = vec![table.to_string()];
    let explained = answers.iter().filter_map(|row| row.explanation.as_ref());
    lines.extend(explained.map(|explanation| explanation.sentence.clone()));
    if answers.is_empty() {
        lines = vec!["no gaps".into()];
    }
    lines
}

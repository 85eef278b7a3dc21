//! `numerator gaps`: lists the numbers that will not be issued any more, and explains them to an
//! auditor. Reads only, unless it is requested to settle the leftovers of closed epochs.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{Args, ValueEnum};
use numbering::PartialNumber;
use serde::Serialize;

use crate::config::Settings;
use crate::engine::reconciler::{settle_counters, settle_slices};
use crate::features::register::gap_explanation::{Ending, GapExplanation};
use crate::ledger::{
    ANSWERED_ALONE, Gap, GapFilter, GapReason, LedgerError, SharedLedger, Unsettled,
};
use crate::terminal::output::{print, print_json, say};
use crate::terminal::session::open_ledger;
use crate::terminal::words;

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
    /// Passed over by a change that was asked for, with its reason.
    Skipped,
}

impl Reason {
    fn of_ledger(self) -> GapReason {
        match self {
            Reason::Discarded => GapReason::Discarded,
            Reason::Unaccounted => GapReason::Unaccounted,
            Reason::Collided => GapReason::Collided,
            Reason::BeforeImport => GapReason::BeforeImport,
            Reason::Skipped => GapReason::Skipped,
        }
    }
}

/// A run of lost values.
#[derive(Debug, Serialize)]
struct GapAnswer {
    counter_id: i64,
    /// Code of its series; none if the series is not active any more.
    series: Option<String>,
    counter_key: String,
    first: u64,
    last: u64,
    /// How many values.
    count: u64,
    /// The first as a number, in the form of the counter's neighbouring numbers; none if they
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
    /// Nodes that were silent when it was closed, and have not returned since.
    unheard: Vec<String>,
    /// For an auditor.
    sentence: String,
}

/// Prints the gaps.
///
/// # Errors
/// A ledger that cannot be reached, a series that does not exist.
pub async fn run(settings: &Settings, args: &GapsArgs) -> anyhow::Result<()> {
    let ledger = open_ledger(settings).await?;
    let codes: BTreeMap<i64, String> = ledger
        .series()
        .list()
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
    let mut explanation = GapExplanation::of(&ledger);
    for gap in ledger.register().gaps(&filter).await? {
        let mut answer = describe(&ledger, &codes, &gap).await?;
        if args.explain {
            answer.explanation = Some(explain(&mut explanation, &gap, &answer).await?);
        }
        answers.push(answer);
    }
    if args.json {
        print_json(&answers)?;
    } else {
        print(lines(&answers))?;
    }
    // Apart from the list, whose form is the same for all its readers.
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
    let mut masks = ledger.register().masks_beside(gap.counter_id, gap.span.first).await?;
    masks.dedup();
    Ok(match &masks[..] {
        [only] => PartialNumber::parse(only).ok(),
        _ => None,
    })
}

async fn explain(
    explanation: &mut GapExplanation<'_>,
    gap: &Gap,
    answer: &GapAnswer,
) -> Result<Explanation, LedgerError> {
    let mut ending = explanation.ending(gap.at, gap.reason).await?;
    if gap.reason == GapReason::Skipped {
        ending.change = explanation.change(gap.counter_id, gap.span.first).await?;
    }
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

/// The sentence for an auditor.
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
        GapReason::Skipped => {
            let by = ending.change.as_ref().map_or(String::new(), |change| {
                let approved_by = match change.decided_by.as_deref() {
                    Some(ANSWERED_ALONE) => "made by a command where nobody has a token".into(),
                    by => format!("approved by {}", by.unwrap_or("nobody")),
                };
                format!(
                    " by change request {} of {}, {approved_by} ({})",
                    change.change_id, change.requested_by, change.reason
                )
            });
            format!(
                "{what} {was} passed over{by}: this service has not issued {it}, and never does."
            )
        }
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

//! `numerator gaps`: lists the numbers that will not be issued any more, and explains them to an
//! auditor. Reads only, unless it is requested to settle the leftovers of closed epochs.

use std::collections::BTreeMap;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::config::Settings;
use crate::engine::reconciler::{settle_counters, settle_slices};
use crate::features::register::gap_description::{Explanation, GapTexts, count, explain};
use crate::features::register::gap_explanation::GapExplanation;
use crate::ledger::{Gap, GapFilter, GapReason, Unsettled};
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
    /// Reserved and given back before it was used: the next to be issued.
    Returned,
    /// Reserved and cancelled, where a series keeps its order of dates, or as a block.
    Cancelled,
    /// Reserved and never confirmed, where a series keeps its order of dates.
    Expired,
}

impl Reason {
    fn of_ledger(self) -> GapReason {
        match self {
            Reason::Discarded => GapReason::Discarded,
            Reason::Unaccounted => GapReason::Unaccounted,
            Reason::Collided => GapReason::Collided,
            Reason::BeforeImport => GapReason::BeforeImport,
            Reason::Skipped => GapReason::Skipped,
            Reason::Returned => GapReason::Returned,
            Reason::Cancelled => GapReason::Cancelled,
            Reason::Expired => GapReason::Expired,
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
    let mut causes = GapExplanation::of(&ledger);
    for gap in ledger.register().gaps(&filter).await? {
        let texts = GapTexts::of(&ledger, &gap).await?;
        let explanation = match args.explain {
            true => Some(explain(&mut causes, &gap, &texts).await?),
            false => None,
        };
        let ends = texts.ends(&gap);
        answers.push((answer(&codes, &gap, texts, explanation), ends));
    }
    if args.json {
        print_json(&answers.iter().map(|(answer, _)| answer).collect::<Vec<_>>())?;
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

fn answer(
    codes: &BTreeMap<i64, String>,
    gap: &Gap,
    texts: GapTexts,
    explanation: Option<Explanation>,
) -> GapAnswer {
    GapAnswer {
        counter_id: gap.counter_id,
        series: codes.get(&gap.series_id).cloned(),
        counter_key: gap.key.clone(),
        first: gap.span.first,
        last: gap.span.last,
        count: count(gap),
        first_number: texts.first,
        last_number: texts.last,
        reason: words::reason(gap.reason),
        partition: gap.at.partition,
        epoch: gap.at.epoch,
        noted_at: words::moment(gap.noted_at_us),
        explanation,
    }
}

/// The gaps for people.
fn lines(answers: &[(GapAnswer, (String, String))]) -> Vec<String> {
    let header = ["counter", "series", "key", "from", "to", "count", "reason", "epoch", "noted at"];
    let mut table = words::table(header);
    for (row, (first, last)) in answers {
        table.add_row([
            row.counter_id.to_string(),
            row.series.clone().unwrap_or_else(|| "-".into()),
            row.counter_key.clone(),
            first.clone(),
            last.clone(),
            row.count.to_string(),
            row.reason.into(),
            format!("{} of partition {}", row.epoch, row.partition),
            row.noted_at.clone(),
        ]);
    }
    let mut lines = vec![table.to_string()];
    let explained = answers.iter().filter_map(|(row, _)| row.explanation.as_ref());
    lines.extend(explained.map(|explanation| explanation.sentence.clone()));
    if answers.is_empty() {
        lines = vec!["no gaps".into()];
    }
    lines
}

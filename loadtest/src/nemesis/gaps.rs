//! The gap register at the end of a drill: what made each gap, by the faults that were injected.
//!
//! Reads the ledger with plain SQL, not through the code that wrote it.

use std::collections::{BTreeMap, HashMap};

use super::Outcome;
use super::breaches::Breaches;
use super::check::{Findings, parse};
use super::journal::Row;
use super::kinds::Mark;
use super::plan::Step;
use super::world::World;

/// Values that are the next to be issued, of reservations that ended: no fault made them.
pub(super) const RETURNED: &str = "returned";

/// A closed epoch.
pub(super) struct Closing {
    pub(super) is_ceiling: bool,
    pub(super) closed_at_us: i64,
}

/// Closed epochs, by partition and epoch.
pub(super) type Closings = BTreeMap<(i64, i64), Closing>;

/// An entry of the gap register.
pub(super) struct Gap {
    pub(super) counter_id: i64,
    pub(super) partition: i64,
    pub(super) epoch: i64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) step: u64,
    pub(super) reason: String,
    pub(super) noted_at_us: i64,
}

/// A gap in words, with the step that made it.
pub(super) fn tell_gap(gap: &Gap, step: Option<&Step>) -> String {
    let Gap { counter_id, partition, epoch, first, last, reason, .. } = gap;
    let during = step.map_or_else(|| "no fault".into(), ToString::to_string);
    format!(
        "{reason}: counter {counter_id}, {first} to {last}, partition {partition} epoch {epoch}, \
         during: {during}"
    )
}

/// Reads the closed epochs, and counts them by how they were closed.
pub(super) fn read_closings(world: &World, findings: &mut Findings) -> Closings {
    let mut closings = Closings::new();
    world.ledger.rows(
        "select partition_id, epoch, closing, closed_at_us from {}.closed_epoch where epoch > 0",
        |row| {
            *findings.closings.entry(row[2].to_owned()).or_default() += 1;
            let closing = Closing { is_ceiling: row[2] == "ceiling", closed_at_us: parse(row[3]) };
            closings.insert((parse(row[0]), parse(row[1])), closing);
        },
    );
    closings
}

/// Reads the register.
pub(super) fn read_gaps(world: &World) -> Vec<Gap> {
    let mut gaps = Vec::new();
    world.ledger.rows(
        "select g.counter_id, c.partition_id, g.epoch, g.first_value, g.last_value, g.step, \
         g.reason, g.noted_at_us from {}.gap g join {}.counter c using (counter_id)",
        |row| {
            gaps.push(Gap {
                counter_id: parse(row[0]),
                partition: parse(row[1]),
                epoch: parse(row[2]),
                first: parse(row[3]),
                last: parse(row[4]),
                step: parse(row[5]),
                reason: row[6].to_owned(),
                noted_at_us: parse(row[7]),
            });
        },
    );
    gaps
}

/// The step during which the epoch was closed whose closing made the gap; or in which a ledger that
/// had gone back learned how far the database path had taken a counter, which closes none.
pub(super) fn step_of<'a>(gap: &Gap, closings: &Closings, done: &'a [Outcome]) -> Option<&'a Step> {
    if gap.reason == "unaccounted" {
        let told = || step_at(gap.noted_at_us, done).filter(|step| step.any(Mark::LosesData));
        return steps_of(gap, closings, done).next().or_else(told);
    }
    step_at(closings.get(&(gap.partition, gap.epoch))?.closed_at_us, done)
}

/// The steps that made a gap `unaccounted`: a counter that was not touched between two of them has
/// one gap for both.
fn steps_of<'a>(
    gap: &Gap,
    closings: &Closings,
    done: &'a [Outcome],
) -> impl Iterator<Item = &'a Step> {
    let later = closings.range((gap.partition, gap.epoch)..=(gap.partition, i64::MAX));
    let ceilings = later.map(|(_, closing)| closing).filter(|closing| closing.is_ceiling);
    ceilings
        .take_while(|closing| closing.closed_at_us <= gap.noted_at_us)
        .filter_map(|closing| step_at(closing.closed_at_us, done))
}

/// The step that was the last to begin at that time.
fn step_at(at_us: i64, done: &[Outcome]) -> Option<&Step> {
    let is_before = |done: &&Outcome| done.injected_at_us <= at_us;
    done.iter().take_while(is_before).last().map(|done| &done.step)
}

/// Compares each gap with the fault that may explain it.
pub(super) fn judge_gaps(
    gaps: &[Gap],
    closings: &Closings,
    done: &[Outcome],
    findings: &mut Findings,
    breaches: &mut Breaches,
) {
    for gap in gaps.iter().filter(|gap| gap.reason != RETURNED) {
        let step = step_of(gap, closings, done);
        let example = || tell_gap(gap, step);
        let is_explained = match gap.reason.as_str() {
            "unaccounted" => step.is_some_and(|step| step.any(Mark::SilencesNode)),
            "discarded" => step.is_some(),
            _ => false,
        };
        if !is_explained {
            breaches.add("gap that nothing explains", example());
        } else if step.is_some_and(|step| step.all(Mark::NoGap)) {
            breaches.add("gap though all nodes were alive", example());
        }
        let kind = step.and_then(Step::kind);
        let values = findings.gaps.entry((kind, gap.reason.clone())).or_default();
        *values += (gap.last - gap.first) / gap.step + 1;
    }
}

/// What explains that a number is in no row of the journal.
pub(super) struct Losses<'a> {
    pub(super) gaps: &'a [Gap],
    pub(super) closings: &'a Closings,
    pub(super) done: &'a [Outcome],
    counter_ids: HashMap<u64, i64>,
}

impl<'a> Losses<'a> {
    /// Of the counters that the journal shows.
    pub(super) fn new(
        gaps: &'a [Gap],
        closings: &'a Closings,
        done: &'a [Outcome],
        journal: &[Row],
    ) -> Self {
        let id_of = |row: &Row| row.place().map(|(counter, _)| (counter, row.counter_id));
        let counter_ids = journal.iter().filter_map(id_of).collect();
        Losses { gaps, closings, done, counter_ids }
    }

    /// The gap `unaccounted` that has a value of a counter.
    pub(super) fn gap_of(&self, counter: u64, value: u64) -> Option<&'a Gap> {
        let counter_id = *self.counter_ids.get(&counter)?;
        self.gaps.iter().find(|gap| {
            gap.counter_id == counter_id
                && gap.reason == "unaccounted"
                && (gap.first..=gap.last).contains(&value)
        })
    }

    /// Whether a node and the data of a store were lost in one step that made the gap: then the
    /// record of a number may be lost.
    pub(super) fn is_of_double_failure(&self, gap: &Gap) -> bool {
        let loses = |step: &Step| step.any(Mark::EndsNode) && step.any(Mark::LosesData);
        steps_of(gap, self.closings, self.done).any(loses)
    }
}

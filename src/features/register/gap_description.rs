//! Gaps in words: the numbers that their values would have had, and how they came about.

use numbering::PartialNumber;
use serde::Serialize;

use crate::features::register::gap_explanation::{Ending, GapExplanation};
use crate::ledger::{
    ANSWERED_ALONE, ChangeRequest, Entry, Gap, GapReason, IssuePath, LedgerError, LifeRow,
    SharedLedger,
};
use crate::terminal::words;

/// How a gap came about.
#[derive(Debug, Serialize)]
pub(crate) struct Explanation {
    /// The epoch whose closing lost the values, and how it was closed.
    pub(crate) closed_epoch: Option<u64>,
    pub(crate) closing: Option<&'static str>,
    pub(crate) closed_at: Option<String>,
    /// Why that epoch ended.
    pub(crate) cause: Option<String>,
    /// Nodes that were silent when it was closed, and have not returned since.
    pub(crate) unheard: Vec<String>,
    /// For an auditor.
    pub(crate) sentence: String,
}

/// The first and the last value of a gap as numbers, in the form of the numbers next to it; none
/// where these differ in it, or have several serials.
#[derive(Clone, Debug, Default)]
pub(crate) struct GapTexts {
    /// The first.
    pub(crate) first: Option<String>,
    /// The last.
    pub(crate) last: Option<String>,
}

impl GapTexts {
    /// The texts of a gap.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub(crate) async fn of(ledger: &SharedLedger, gap: &Gap) -> Result<Self, LedgerError> {
        let partial = partial_number(ledger, gap).await?;
        let number = |value| partial.as_ref().and_then(|partial| partial.fill(&[value]).ok());
        Ok(GapTexts { first: number(gap.span.first), last: number(gap.span.last) })
    }

    /// The texts of a gap as a number next to it is written, if that has one serial.
    pub(crate) fn beside(entry: &Entry, gap: &Gap) -> Self {
        let partial = match &entry.taken[..] {
            [_] if entry.path != IssuePath::AsWritten => {
                PartialNumber::parse(&entry.record.mask).ok()
            }
            _ => None,
        };
        let number = |value| partial.as_ref().and_then(|partial| partial.fill(&[value]).ok());
        GapTexts { first: number(gap.span.first), last: number(gap.span.last) }
    }

    /// First and last as numbers, or else as values.
    pub(crate) fn ends(&self, gap: &Gap) -> (String, String) {
        let text =
            |number: &Option<String>, value: u64| number.clone().unwrap_or(value.to_string());
        (text(&self.first, gap.span.first), text(&self.last, gap.span.last))
    }
}

/// How many values a gap has.
pub(crate) fn count(gap: &Gap) -> u64 {
    (gap.span.last - gap.span.first) / gap.step + 1
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

/// How a gap came about.
///
/// # Errors
/// A ledger that does not answer.
pub(crate) async fn explain(
    explanation: &mut GapExplanation<'_>,
    gap: &Gap,
    texts: &GapTexts,
) -> Result<Explanation, LedgerError> {
    let mut ending = explanation.ending(gap.at, gap.reason).await?;
    if gap.reason == GapReason::Skipped {
        ending = explanation.skipped(gap.counter_id, gap.span.first, ending).await?;
    }
    let unheard = ending.unheard();
    let closed = ending.closed.as_ref();
    Ok(Explanation {
        sentence: sentence(gap, texts, &ending, &unheard),
        closed_epoch: closed.map(|closed| closed.at.epoch),
        closing: closed.map(|closed| words::closing(closed.closing)),
        closed_at: closed.map(|closed| words::moment(closed.closed_at_us)),
        unheard,
        cause: ending.cause,
    })
}

/// The sentence for an auditor.
fn sentence(gap: &Gap, texts: &GapTexts, ending: &Ending, unheard: &[String]) -> String {
    let (first, last) = texts.ends(gap);
    let (what, was, it) = match count(gap) {
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
        GapReason::Returned => format!(
            "{what} {was} given back by a document that did not use {it}, or passed over by a \
             number that was given by hand: a next document gets {it}."
        ),
        GapReason::Cancelled => format!(
            "{what} {was} reserved, and cancelled or not used, where the series keeps its order of \
             dates, or in a block that was given up, or that was not made because another \
             allocation has the text of one of its numbers: this service never issues {it} again."
        ),
        GapReason::Expired => format!(
            "{what} {was} reserved for a document, and not confirmed in time; the series keeps \
             its order of dates, and never issues {it} again."
        ),
        GapReason::Skipped => {
            let by_hand = ending.by_hand.as_ref().map_or(String::new(), by_number);
            let by = ending.change.as_ref().map_or(by_hand, by_change);
            format!(
                "{what} {was} passed over{by}: this service has not issued {it}, and never does."
            )
        }
    }
}

/// By which number they were passed over, that was given by hand, and why.
fn by_number(row: &LifeRow) -> String {
    format!(
        " by {}, which {} registered as given by hand ({})",
        row.number.as_deref().unwrap_or("a number"),
        row.user_id,
        row.reason.as_deref().unwrap_or_default()
    )
}

/// By whom values were passed over, and why.
fn by_change(change: &ChangeRequest) -> String {
    let approved_by = match change.decided_by.as_deref() {
        Some(ANSWERED_ALONE) => "made by a command where nobody has a token".into(),
        by => format!("approved by {}", by.unwrap_or("nobody")),
    };
    format!(
        " by change request {} of {}, {approved_by} ({})",
        change.change_id, change.requested_by, change.reason
    )
}

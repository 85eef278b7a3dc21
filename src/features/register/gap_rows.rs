//! A run of values that are never issued, as lists and exports show it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::allocator::Catalog;
use crate::features::numbers::answer::{CounterKeyAnswer, ValuesAnswer};
use crate::features::register::gap_description::{GapTexts, count, explain};
use crate::features::register::gap_explanation::GapExplanation;
use crate::features::register::kinds::RowKind;
use crate::ledger::{Counter, Gap, LedgerError};
use crate::terminal::words;
use crate::web::instant::instant_in;
use numbering::Range;

/// A gap to show.
#[derive(Debug)]
pub(crate) struct FoundGap {
    /// The gap.
    pub(crate) gap: Gap,
    /// First and last as numbers.
    pub(crate) texts: GapTexts,
    /// How it came about, in a sentence.
    pub(crate) explanation: String,
    /// Code of its series; empty where the series was removed.
    series: String,
    timezone: Option<String>,
}

impl FoundGap {
    /// A gap with what there is to say of it.
    ///
    /// # Errors
    /// A ledger that does not answer.
    pub(crate) async fn of(
        catalog: &Catalog,
        causes: &mut GapExplanation<'_>,
        texts: GapTexts,
        gap: Gap,
    ) -> Result<Self, LedgerError> {
        let explanation = explain(causes, &gap, &texts).await?.sentence;
        let of = catalog.known().find(|(version, _)| version.series_id == gap.series_id);
        let definition = of.map(|(version, _)| &version.definition);
        let series = definition.map(|of| of.code.clone()).unwrap_or_default();
        let timezone = definition.and_then(|of| of.timezone.clone());
        Ok(FoundGap { gap, texts, explanation, series, timezone })
    }
}

/// A run of values that are never issued.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GapRow<'a> {
    /// `gap`.
    #[schema(value_type = String)]
    pub(crate) kind: RowKind,
    /// The first value as a number, in the form of the numbers next to it; null where these differ
    /// in it, or have several serials.
    pub(crate) document_number: Option<&'a str>,
    /// When the gap was noted. RFC 3339, with the offset of the series' time zone.
    #[schema(format = DateTime)]
    pub(crate) noted_at: String,
    /// Everything else about it.
    #[serde(flatten)]
    pub(crate) about: GapAbout<'a>,
}

/// The same under the names of the audit trail.
#[derive(Debug, Serialize)]
pub(crate) struct ExportedGap<'a> {
    pub(crate) kind: RowKind,
    pub(crate) generated_number: Option<&'a str>,
    pub(crate) timestamp: String,
    #[serde(flatten)]
    pub(crate) about: GapAbout<'a>,
}

impl<'a> From<GapRow<'a>> for ExportedGap<'a> {
    fn from(GapRow { kind, document_number, noted_at, about }: GapRow<'a>) -> Self {
        ExportedGap { kind, generated_number: document_number, timestamp: noted_at, about }
    }
}

impl<'a> ExportedGap<'a> {
    /// The row of a counter of a series: what it may have counted; `None` where that is nothing.
    pub(crate) fn of_counter(counter: &'a Counter, series: &'a str, at: String) -> Option<Self> {
        let step = counter.step;
        let first = u64::try_from(counter.origin.checked_add_unsigned(step)?).ok()?;
        // No value above the ceiling was issued; up to there a record may be on its way.
        let last = u64::try_from(counter.taken.max(counter.ceiling)).ok()?;
        let distance = last.checked_sub(first)?;
        let range = Range { first, last: first + distance / step * step, step };
        let about = GapAbout {
            last_number: None,
            series,
            config_id: counter.series_id,
            counter_id: counter.counter_id,
            counter_key: CounterKeyAnswer::of(&counter.key),
            serial: &counter.serial,
            serials: [ValuesAnswer::of(range)],
            count: range.count().to_string(),
            reason: "",
            explanation: "",
        };
        Some(ExportedGap { kind: RowKind::Counter, generated_number: None, timestamp: at, about })
    }
}

/// What a gap's row says beside its number and its time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GapAbout<'a> {
    /// The last value as a number, likewise.
    pub(crate) last_number: Option<&'a str>,
    /// Code of the series; empty where it was removed.
    pub(crate) series: &'a str,
    /// The numbering configuration (series).
    pub(crate) config_id: i64,
    /// The counter's id, as in `counters`.
    pub(crate) counter_id: i64,
    /// The counter: dimensions and period with their values.
    #[schema(value_type = Object)]
    pub(crate) counter_key: CounterKeyAnswer<'a>,
    /// Name of the serial.
    pub(crate) serial: &'a str,
    /// Its values.
    pub(crate) serials: [ValuesAnswer; 1],
    /// How many values, a text as values are.
    pub(crate) count: String,
    /// Why: `discarded`, `unaccounted`, `collided`, `before-import`, `skipped`, `returned` (it is
    /// the next to be issued), `cancelled` or `expired`.
    pub(crate) reason: &'static str,
    /// How it came about, a sentence for auditors.
    pub(crate) explanation: &'a str,
}

impl<'a> GapRow<'a> {
    /// The answer for a gap.
    pub(crate) fn of(found: &'a FoundGap) -> Self {
        let FoundGap { gap, texts, explanation, series, timezone } = found;
        let range = Range { first: gap.span.first, last: gap.span.last, step: gap.step };
        let about = GapAbout {
            last_number: texts.last.as_deref(),
            series,
            config_id: gap.series_id,
            counter_id: gap.counter_id,
            counter_key: CounterKeyAnswer::of(&gap.key),
            serial: &gap.serial,
            serials: [ValuesAnswer::of(range)],
            count: count(gap).to_string(),
            reason: words::reason(gap.reason),
            explanation,
        };
        let noted_at = instant_in(gap.noted_at_us, timezone.as_deref());
        let document_number = texts.first.as_deref();
        GapRow { kind: RowKind::Gap, document_number, noted_at, about }
    }
}

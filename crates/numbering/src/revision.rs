//! Revisions: an issued number again, with another label.
//!
//! Takes no value and reads no clock. The original number is rendered again together with the new
//! one: only if that gives the very same text is everything known that the number was made of.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use thiserror::Error;

use super::draft::{ABSENT, Told};
use super::{InputError, Inputs, Series, Snowflake};

/// The variable that holds the label: it identifies no counter.
pub(super) const REVISION: &str = "REV";

/// An issued number, as the version of its series that issued it is to render it again.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    /// What was requested, with the document's civil date (`yyyy-mm-dd`); its phase is not used.
    pub inputs: &'a Inputs,
    /// One value per serial.
    pub values: &'a [u64],
    /// Its text.
    pub number: &'a str,
}

/// A number with another label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisedNumber {
    /// The label, in normal form.
    pub rev: String,
    /// The number; that of the original if the label is its own.
    pub number: String,
}

/// Why a number has no such revision. Nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RevisionError {
    /// The template shows no label (slug `unknown-variable`).
    #[error("series {series} shows no {{REV}}: its numbers have no revisions")]
    NotShown {
        /// Code of the series.
        series: String,
    },
    /// The label, or the number with it, is not allowed.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The number cannot be rendered from what the journal knows of it.
    #[error("{number} cannot be rendered again from its journal row: {reason}")]
    Departed {
        /// The number.
        number: String,
        /// What resulted instead, or why nothing did.
        reason: String,
    },
}

/// Checks the label, then the original, then renders.
pub(super) fn revise(
    series: &Series,
    original: &Original<'_>,
    rev: &str,
) -> Result<RevisedNumber, RevisionError> {
    let code = || series.definition.code.clone();
    let variable = series.variables.iter().find(|v| v.name == REVISION && v.shown);
    let variable = variable.ok_or_else(|| RevisionError::NotShown { series: code() })?;
    if rev.is_empty() {
        return Err(InputError::MissingVariable { field: "rev".into(), series: code() }.into());
    }
    let rev = variable.rule.check("rev", rev)?;
    // The label that it already has may be one of earlier values.
    if original.inputs.context.get(REVISION) != Some(&rev)
        && let Some(values) = &variable.values
    {
        values.check("rev", &rev, Told::InFull)?;
    }
    let shown = series.parse(original.number).unwrap_or_default();
    let mut inputs = Inputs {
        date: date(series, original, shown.time),
        phase: phase(series, shown.variables),
        ..original.inputs.clone()
    };
    let render = |inputs: &Inputs| render(series, inputs, original.values, shown.snowflake);
    match render(&inputs) {
        Ok(number) if number == original.number => {}
        other => {
            let reason = other.map_or_else(|error| error.to_string(), |text| format!("{text:?}"));
            return Err(RevisionError::Departed { number: original.number.into(), reason });
        }
    }
    inputs.context.insert(REVISION.into(), rev.clone());
    let number = render(&inputs)?;
    Ok(RevisedNumber { rev, number })
}

fn render(
    series: &Series,
    inputs: &Inputs,
    values: &[u64],
    shown: Option<Snowflake>,
) -> Result<String, InputError> {
    // The date is given, with its time of day where one is shown: the present plays no part.
    let (mut partial, place) = super::draft::partial_number(series, inputs, Timestamp::UNIX_EPOCH)?;
    if let (Some(place), Some(id)) = (place, shown) {
        place.put(&mut partial, id);
    }
    partial.fill(values)
}

/// The document's date; with the time of day that the number shows, if it shows one.
fn date(series: &Series, original: &Original<'_>, shown: Option<String>) -> Option<String> {
    let given = original.inputs.date.clone();
    if !series.time_needed {
        return given;
    }
    let moment = |date: &String| {
        // A time of the hour alone is written with its minutes; one that only a counter needs is
        // in no number.
        let time = match shown {
            Some(time) if time.len() > 2 => time,
            hour => format!("{}:00", hour.as_deref().unwrap_or("00")),
        };
        let civil = date.parse::<Date>().ok()?.to_datetime(time.parse::<Time>().ok()?);
        let zoned = series.zone.to_zoned(civil).ok()?;
        Some(zoned.timestamp().display_with_offset(zoned.offset()).to_string())
    };
    given.as_ref().and_then(moment).or(given)
}

/// The phase that the number shows. One that only a counter needs is in no number.
fn phase(series: &Series, mut shown: BTreeMap<String, String>) -> Option<String> {
    let phase = || shown.remove("PHASE").unwrap_or_else(|| ABSENT.into());
    series.phase_needed.then(phase)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{inputs, series};
    use super::super::{Reset, SeriesDefinition, VariableDefinition};
    use super::*;

    fn with_label(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
        series(|definition| {
            definition.template = "{CORR_TYPE}-{SEQ:4}-{REV}".into();
            let alphabet = Some("A-Z".to_owned());
            let variable =
                VariableDefinition { alphabet, width_max: Some(2), ..Default::default() };
            definition.variables.insert(REVISION.into(), variable);
            edit(definition);
        })
    }

    fn revised(series: &Series, request: &Inputs, rev: &str) -> Result<String, RevisionError> {
        let draft = series.draft(request, crate::testing::NOW).expect("draft");
        let number = draft.partial.fill(&[42]).expect("fits");
        // The journal knows no phase.
        let date = Some(draft.document_date);
        let issued = Inputs { date, phase: None, ..request.clone() };
        let original = Original { inputs: &issued, values: &[42], number: &number };
        series.revise(&original, rev).map(|revised| revised.number)
    }

    #[test]
    fn another_label_changes_nothing_but_itself() {
        let series = with_label(|_| ());
        let request = inputs("T", "", "2025-12-02", &[("REV", "A")]);
        assert_eq!(revised(&series, &request, "B"), Ok("T-0042-B".into()));
        assert_eq!(revised(&series, &request, "A"), Ok("T-0042-A".into()));
    }

    #[test]
    fn a_default_label_is_the_first_one() {
        let series = with_label(|definition| {
            let label = definition.variables.get_mut(REVISION).expect("declared");
            label.default = Some("A".into());
        });
        let request = inputs("T", "", "2025-12-02", &[]);
        assert_eq!(revised(&series, &request, "A"), Ok("T-0042-A".into()));
        assert_eq!(revised(&series, &request, "AB"), Ok("T-0042-AB".into()));
    }

    #[test]
    fn a_time_of_day_is_taken_from_the_number() {
        for (pattern, shown) in [("yyyyMMddHHmmss", "20251202090507"), ("yyyyMMddHH", "2025120209")]
        {
            let series = with_label(|definition| {
                definition.template = format!("{{DATE:{pattern}}}-{{SEQ:4}}-{{REV}}");
                definition.timezone = Some("Asia/Bangkok".into());
            });
            let request = inputs("T", "", "2025-12-02T09:05:07+07:00", &[("REV", "A")]);
            assert_eq!(revised(&series, &request, "B"), Ok(format!("{shown}-0042-B")));
        }
    }

    #[test]
    fn phase_and_time_are_those_of_the_number_or_of_no_number() {
        for (template, reset, number) in [
            ("{PHASE}/{SEQ:4}-{REV}", Reset::None, "P 2/0042-B"),
            ("{PHASE}/{SEQ:4}-{REV}", Reset::Phase, "P 2/0042-B"),
            ("{SEQ:4}-{REV}", Reset::Phase, "0042-B"),
            ("{DATE:HH}/{SEQ:4}-{REV}-{CHECK:mod37-36}", Reset::Hour, "09/0042-B-"),
            ("{SEQ:4}-{REV}", Reset::Second, "0042-B"),
        ] {
            let series = with_label(|definition| {
                definition.template = template.into();
                definition.serials[0].reset = reset;
            });
            let mut request = inputs("T", "", "2025-12-02T09:05:07Z", &[("REV", "A")]);
            request.phase = series.phase_needed.then(|| "P 2".into());
            let revised = revised(&series, &request, "B").expect("revised");
            assert!(revised.starts_with(number), "{template}: {revised}");
            assert!(series.parse(&revised).is_ok(), "{template}: {revised}");
        }
    }

    #[test]
    fn a_label_that_is_not_shown_or_not_allowed_is_refused() {
        let request = inputs("T", "", "2025-12-02", &[("REV", "A")]);
        let series = with_label(|_| ());
        for (rev, slug) in
            [("b", "wrong-alphabet"), ("ABC", "value-too-long"), ("", "missing-variable")]
        {
            match revised(&series, &request, rev) {
                Err(RevisionError::Input(error)) => {
                    assert_eq!((error.slug(), error.field().as_str()), (slug, "rev"));
                }
                other => panic!("{rev:?}: {other:?}"),
            }
        }
        let silent = with_label(|definition| definition.template = "{CORR_TYPE}-{SEQ:4}".into());
        let refused = revised(&silent, &request, "B");
        assert!(matches!(refused, Err(RevisionError::NotShown { .. })), "{refused:?}");
    }

    #[test]
    fn a_number_that_its_journal_row_does_not_give_is_not_guessed() {
        let series = with_label(|_| ());
        let request = inputs("T", "", "2025-12-02", &[("REV", "A")]);
        let original = Original { inputs: &request, values: &[42], number: "T-0043-A" };
        let refused = series.revise(&original, "B").expect_err("another number");
        assert!(refused.to_string().contains("T-0042-A"), "{refused}");
    }
}

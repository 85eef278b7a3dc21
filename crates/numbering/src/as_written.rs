//! Numbers that are kept as written: whether a series could render their text, their text as the
//! mask of a record, and which of their variables are corrected. Keeps none of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::parse::{ValueBounds, parse};
use super::template::Part;
use super::{CorrectionError, ParseError, PartialNumber, Series};

/// A series that reads values of any width. Made once for many texts.
#[derive(Clone, Debug)]
pub struct WidenedSeries(Series);

impl WidenedSeries {
    /// Whether the series could ever render a text: with any value, also one that is wider than its
    /// serials show, in any period, for any request. A text that can be read in more than one way,
    /// or whose readings are too many to be counted, counts as one that it could.
    #[must_use]
    pub fn could_render(&self, text: &str) -> bool {
        let read = parse(&self.0, text, ValueBounds::Any);
        matches!(read, Ok(_) | Err(ParseError::Ambiguous { .. }))
    }
}

impl Series {
    /// The same series for values of any width.
    #[must_use]
    pub fn widened(mut self) -> WidenedSeries {
        for part in &mut self.parts {
            if let Part::Serial { format, .. } = part {
                // A later version may let its values widen.
                format.widens = true;
            }
        }
        WidenedSeries(self)
    }

    /// [`Series::correct`] for a number that is kept as written, which shows no variable.
    ///
    /// # Errors
    /// The same, but for what the template shows.
    pub fn correct_as_written(
        &self,
        values: &BTreeMap<String, String>,
        projects_within: Option<Arc<[String]>>,
    ) -> Result<BTreeMap<String, String>, CorrectionError> {
        let mut unshown = self.clone();
        for variable in &mut unshown.variables {
            variable.shown = false;
        }
        unshown.correct(values, projects_within)
    }
}

impl PartialNumber {
    /// A text without a place for a value: any values render it as it is.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut partial = PartialNumber::with_room(0);
        partial.push_text(text);
        partial
    }
}

#[cfg(test)]
mod tests {
    use super::super::VariableDefinition;
    use super::super::testing::series;
    use super::*;

    #[test]
    fn a_series_could_render_what_any_value_any_width_and_any_period_give() {
        let series = series(|definition| definition.template = "INV-{YEAR}-{SEQ:4}".into());
        let series = series.widened();
        for text in ["INV-2026-0001", "INV-1999-9999", "INV-2026-12345"] {
            assert!(series.could_render(text), "{text}");
        }
        for text in ["INV-2026-001", "INV-2026-0001a", "inv-2026-0001", "INV/2026/0001", "", "INV"]
        {
            assert!(!series.could_render(text), "{text}");
        }
    }

    #[test]
    fn a_number_as_written_shows_no_variable_that_its_template_shows() {
        let series = series(|definition| {
            definition.template = "{A}-{SEQ:4}".into();
            let width_max = Some(4);
            let variable = VariableDefinition { width_max, ..VariableDefinition::default() };
            definition.variables.insert("A".into(), variable.clone());
            definition.variables.insert("B".into(), variable);
            definition.serials[0].counter = vec!["B".into()];
        });
        let values = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        assert!(series.correct(&values("A"), None).is_err());
        assert_eq!(series.correct_as_written(&values("A"), None).expect("free")["A"], "x");
        assert!(series.correct_as_written(&values("B"), None).is_err(), "its counter counts by it");
    }

    #[test]
    fn a_mask_of_text_renders_that_text_whatever_the_values() {
        for text in ["INV/17-a", "{0:4}", "a}{b", "ใบ {1}"] {
            let mask = PartialNumber::of_text(text).to_text();
            let read = PartialNumber::parse(&mask).expect("a mask");
            assert_eq!(read.fill(&[7]).expect("no place"), text, "{mask}");
        }
    }
}

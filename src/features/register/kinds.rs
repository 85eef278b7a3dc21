//! Kinds of the rows of a list: numbers, revisions, gaps.

use serde::Serialize;
use utoipa::ToSchema;

use crate::ledger::JournalFilter;
use crate::web::problem::Problem;

/// What a row of a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RowKind {
    /// A number, or a range of numbers.
    Number,
    /// A revision of a number.
    Revision,
    /// A run of values without a number.
    Gap,
    /// A counter, with all that it has counted; in exports alone.
    Counter,
}

/// The kinds that lists have.
const KINDS: [RowKind; 3] = [RowKind::Number, RowKind::Revision, RowKind::Gap];

impl RowKind {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RowKind::Number => "number",
            RowKind::Revision => "revision",
            RowKind::Gap => "gap",
            RowKind::Counter => "counter",
        }
    }
}

/// The kinds of rows that a list has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Numbers and ranges.
    pub(crate) numbers: bool,
    /// Revisions.
    pub(crate) revisions: bool,
    /// Gaps.
    pub(crate) gaps: bool,
}

impl Kinds {
    /// The kinds of a list that is filtered so: those named, parted by commas, else all that the
    /// filter can tell apart.
    ///
    /// # Errors
    /// A kind that is unknown; gaps, where the filter is by something that no gap has.
    pub(crate) fn read(text: Option<&str>, filter: &JournalFilter) -> Result<Self, Problem> {
        let lacking = lacking_in_gaps(filter);
        let Some(text) = text else {
            return Ok(Kinds { numbers: true, revisions: true, gaps: lacking.is_none() });
        };
        let mut kinds = Kinds { numbers: false, revisions: false, gaps: false };
        for word in text.split(',') {
            match KINDS.iter().find(|kind| kind.name() == word.trim()) {
                Some(RowKind::Number) => kinds.numbers = true,
                Some(RowKind::Revision) => kinds.revisions = true,
                Some(RowKind::Gap) => kinds.gaps = true,
                Some(RowKind::Counter) | None => {
                    let why = "must be some of number, revision, gap, with commas between them";
                    return Err(Problem::field("kinds", why));
                }
            }
        }
        match lacking {
            Some(field) if kinds.gaps => {
                let why = format!("must leave gap out with {field}: gaps have none");
                Err(Problem::field("kinds", why))
            }
            _ => Ok(kinds),
        }
    }

    /// The same for a caller that is not shown all numbers: a gap says something of the numbers
    /// beside it.
    ///
    /// # Errors
    /// Gaps that were asked for by name.
    pub(crate) fn of_some_numbers(self, text: Option<&str>) -> Result<Self, Problem> {
        if self.gaps && text.is_some() {
            let why = "must leave gap out: gaps are shown to callers that see all numbers";
            return Err(Problem::field("kinds", why));
        }
        Ok(Kinds { gaps: false, ..self })
    }

    /// The text of these kinds: it distinguishes two lists.
    pub(crate) fn text(self) -> String {
        let Kinds { numbers, revisions, gaps } = self;
        format!("{}{}{}", u8::from(numbers), u8::from(revisions), u8::from(gaps))
    }
}

/// The filter's field that no gap has, if there is one.
fn lacking_in_gaps(filter: &JournalFilter) -> Option<&'static str> {
    let is_dated = filter.dated_from.is_some() || filter.dated_until.is_some();
    let fields = [
        ("number", filter.number.is_some()),
        ("document_id", filter.document_id.is_some()),
        ("user_id", filter.user_id.is_some()),
        ("service", filter.service.is_some()),
        ("document_date_from or document_date_until", is_dated),
        ("status", filter.status.is_some()),
        ("path", filter.path.is_some()),
    ];
    fields.into_iter().find(|(_, is_given)| *is_given).map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_left_out_where_the_filter_is_by_what_they_lack() {
        let all = JournalFilter::default();
        let by_user = JournalFilter { user_id: Some("ann".into()), ..JournalFilter::default() };
        let gaps = |text, filter| Kinds::read(text, filter).ok().map(|kinds| kinds.gaps);
        assert_eq!(gaps(None, &all), Some(true));
        assert_eq!(gaps(None, &by_user), Some(false));
        assert_eq!(gaps(Some("number, gap"), &all), Some(true));
        assert_eq!(gaps(Some("number,revision"), &all), Some(false));
        for (text, filter) in [("gap", &by_user), ("numbers", &all), ("", &all)] {
            let refused = Kinds::read(Some(text), filter).expect_err(text);
            assert_eq!(refused.wrong_field(), Some("kinds"), "{text}");
        }
    }
}

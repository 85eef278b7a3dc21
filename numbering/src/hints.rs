//! What a refusal tells of what would have been right: which types are served, or for which projects
//! and on which days the one that was named is.

use super::Series;
use super::names::{LISTED_MAX, Names, listed};
use super::offer::{Misfit, Offer};

/// What is told instead of what is served.
pub(super) const IN_BRIEF: &str = "send the request alone to be told what is served";

/// Which document types some series serve, as refusals list them: found once for all of these.
#[derive(Clone, Debug)]
pub struct TypesServed(String);

impl TypesServed {
    /// Those of these series.
    #[must_use]
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Self {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return TypesServed::default();
        }
        let types = series.flat_map(|series| series.types_shown().iter().cloned());
        let types = Names::from(types.collect::<Vec<_>>());
        TypesServed(format!("served: {}", listed("type", &[&types])))
    }

    /// Which they are, in words.
    pub(super) fn listed(&self) -> &str {
        &self.0
    }

    /// What a caller may ask for instead of a type that is not numbered for the project, or on that
    /// day.
    pub(super) fn hint(&self, offer: &Offer<'_>) -> String {
        let misfits = offer.series().iter();
        let misfits = misfits.filter_map(|one| Some((*one, offer.fit(one).err()?)));
        let misfits: Vec<(&Series, Misfit)> = misfits.collect();
        let missing = |wanted: Misfit| {
            misfits.iter().filter(move |(_, misfit)| *misfit == wanted).map(|(one, _)| *one)
        };
        let days = missing(Misfit::Date).map(|one| {
            let (code, days) = (&one.definition.code, one.window);
            format!("series {code} numbers it for dates {days}")
        });
        let days: Vec<String> = days.take(LISTED_MAX).collect();
        if !days.is_empty() {
            return days.join(", ");
        }
        let missed = |wanted: Misfit, names: fn(&Series) -> &Names| {
            missing(wanted).map(names).collect::<Vec<&Names>>()
        };
        let kinds = [
            ("project", missed(Misfit::Project, |one| &one.served.projects)),
            ("originator", missed(Misfit::Originator, |one| &one.served.originators)),
            ("sub type", missed(Misfit::SubType, |one| &one.served.sub_types)),
        ];
        match kinds.into_iter().find(|(_, lists)| !lists.is_empty()) {
            Some((kind, lists)) => format!("it is numbered for {}", listed(kind, &lists)),
            None => self.0.clone(),
        }
    }
}

impl Default for TypesServed {
    /// Those of no series.
    fn default() -> Self {
        let none = "the ledger has no series; save some with `numerator series apply FILE`";
        TypesServed(none.into())
    }
}

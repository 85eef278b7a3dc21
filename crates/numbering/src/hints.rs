//! What a refusal says would have been right: which types are served, or for which projects and on
//! which days the named type is.

use super::Series;
use super::names::{LISTED_MAX, Names, listed};
use super::nearest::{Head, meant};
use super::offer::{Misfit, Offer};

/// What is named instead of what is served.
pub(super) const IN_BRIEF: &str = "send the request alone to be told what is served";

/// Which document types some series serve, as refusals list them: found once for all of these.
#[derive(Clone, Debug)]
pub struct TypesServed {
    listed: String,
    names: Vec<String>,
    /// From the names, by which the nearest to a mistyped one is found.
    heads: Vec<Head>,
}

impl TypesServed {
    /// Those of these series.
    #[must_use]
    pub fn of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Self {
        let mut series = series.into_iter().peekable();
        if series.peek().is_none() {
            return TypesServed::default();
        }
        let types = series.flat_map(|series| series.types_shown().iter().cloned());
        let mut names: Vec<String> = types.collect();
        names.sort_unstable();
        names.dedup();
        let heads = names.iter().map(|name| Head::of(name)).collect();
        let types = Names::from(names.clone());
        TypesServed { listed: format!("served: {}", listed("type", &[&types])), names, heads }
    }

    /// The types in words, first the one that a mistyped one probably means.
    pub(super) fn listed_beside(&self, mistyped: &str) -> String {
        match meant(&self.heads, mistyped) {
            Some(index) => format!("the nearest is {:?}; {}", self.names[index], self.listed),
            None => self.listed.clone(),
        }
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
            None => self.listed.clone(),
        }
    }
}

impl Default for TypesServed {
    /// Those of no series.
    fn default() -> Self {
        let none = "the ledger has no series; save some with `numerator series apply FILE`";
        TypesServed { listed: none.into(), names: Vec::new(), heads: Vec::new() }
    }
}

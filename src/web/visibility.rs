//! The part of the record that a caller is shown. Anything else looks as if it did not exist: a row
//! is left out, a series is unknown, a document has no number.

use numbering::{Beyond, SeriesDefinition};
use unicode_normalization::UnicodeNormalization as _;

use super::problem::{Problem, Slug};
use crate::auth::Shared;
use crate::auth::scope::Scope;
use crate::engine::allocator::Catalog;
use crate::ledger::{JournalRow, SeriesVersion};
use crate::web::middleware::Caller;

impl Caller {
    /// Whether it is shown a row of the journal.
    pub(crate) fn sees(&self, row: &JournalRow) -> bool {
        self.identity.sees_row(row)
    }

    /// Whether it is shown every number: then it may also learn what is elsewhere.
    pub(crate) fn sees_everything(&self) -> bool {
        self.identity.sees_everything()
    }

    /// Whether it is shown a series.
    pub(crate) fn sees_series(&self, version: &SeriesVersion) -> bool {
        let definition = &version.definition;
        self.scope().shows(&definition.code, &definition.serves.projects)
    }

    /// The same as a value that goes where its work goes.
    pub(crate) fn series_visibility(
        &self,
    ) -> impl Fn(&SeriesVersion) -> bool + Clone + Send + 'static {
        let caller = self.clone();
        move |version| caller.sees_series(version)
    }

    /// Refuses a question about a series that it does not see, in the words for one that does not
    /// exist.
    pub(crate) fn must_know(&self, catalog: &Catalog, code: Option<&str>) -> Result<(), Problem> {
        let Some(code) = code.filter(|_| !self.scope().is_everything()) else { return Ok(()) };
        let normal: String = code.nfc().collect();
        let is_it = |version: &SeriesVersion| {
            version.definition.code == normal && self.sees_series(version)
        };
        if catalog.known().any(|(version, _)| is_it(version)) {
            return Ok(());
        }
        Err(unknown_series(&normal))
    }

    /// Whether a question about that series, which it knows, and that project is within reach.
    ///
    /// # Errors
    /// A narrowed caller must name what it asks about.
    pub(crate) fn must_be_in_scope(
        &self,
        series: Option<&str>,
        project: Option<&str>,
    ) -> Result<bool, Problem> {
        let scope = self.scope();
        for (field, list, named) in
            [("project", scope.projects(), project), ("series", scope.series(), series)]
        {
            if !list.is_empty() && named.is_none() {
                let listed = list.join(", ");
                let why = format!("is missing: the token is narrowed; name one of {listed}");
                return Err(Problem::field(field, why));
            }
        }
        Ok(scope.has_project(project) && series.is_none_or(|code| scope.has_series(code)))
    }

    /// Refuses events beyond its reach: a narrowed caller may read those of a series that it names.
    /// Events of a project are recorded under its series.
    pub(crate) fn events_must_be_in_scope(&self, series: Option<&str>) -> Result<(), Problem> {
        let (scope, is_named) =
            (self.scope(), series.is_some_and(|code| self.scope().has_series(code)));
        if scope.is_everything() || (scope.projects().is_empty() && is_named) {
            return Ok(());
        }
        let why = "is not one within reach of the token; one that is narrowed to projects sees no \
                   events";
        Err(Problem::field("series", why))
    }

    /// Refuses a change of a series that is not wholly within reach: one that it does not see is
    /// treated as absent.
    pub(crate) fn must_hold(&self, version: &SeriesVersion) -> Result<(), Problem> {
        if !self.sees_series(version) {
            return Err(not_found(version.series_id));
        }
        self.must_hold_definition(&version.definition)
    }

    /// Refuses to save a definition that would not be wholly within reach.
    pub(crate) fn must_hold_definition(
        &self,
        definition: &SeriesDefinition,
    ) -> Result<(), Problem> {
        if self.scope().holds(&definition.code, &definition.serves.projects) {
            return Ok(());
        }
        let detail = format!(
            "{} changes series that serve its own projects alone ({}), each of them named in \
             `serves.projects`",
            self.user_id,
            self.scope().projects().join(", ")
        );
        Err(Problem::new(Slug::NotPermitted, detail))
    }

    /// For a narrowed caller, refuses to activate a series that reaches beyond its own projects: it
    /// affects others (F43). Sources and tables that the settings give to everything that the
    /// series serves are not beyond.
    pub(crate) fn must_be_in_scope_beyond(
        &self,
        shared: &Shared,
        definition: &SeriesDefinition,
    ) -> Result<(), Problem> {
        if self.scope().is_everything() {
            return Ok(());
        }
        let is_given =
            |beyond: &Beyond<'_>| beyond.names.is_some_and(|it| shared.has_given(it, definition));
        let beyond = definition.beyond_its_projects().into_iter().filter(|it| !is_given(it));
        let beyond: Vec<String> = beyond.map(|it| it.field).collect();
        let Some(first) = beyond.first() else { return Ok(()) };
        let detail = format!(
            "{} is narrowed, and what the series says by {} reaches beyond its projects: somebody \
             who is not narrowed has to save it, or turn it on",
            self.user_id,
            beyond.join(", ")
        );
        Err(Problem::new(Slug::NotPermitted, detail).of_field(first))
    }

    /// The limits of its identity.
    pub(crate) fn scope(&self) -> &Scope {
        &self.identity.scope
    }
}

/// The same refusal for a series that does not exist and for one that is not visible.
pub(crate) fn unknown_series(code: &str) -> Problem {
    Problem::field("series", format!("no series has the code {code:?}; `series list` shows them"))
}

/// The same refusal for a configuration that does not exist and for one that is not visible.
pub(crate) fn not_found(config_id: i64) -> Problem {
    let detail = format!("no numbering configuration has the id {config_id}");
    Problem::new(Slug::ConfigNotFound, detail)
}

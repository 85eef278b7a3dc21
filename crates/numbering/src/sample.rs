//! A request that a series accepts, for previews of series without requests.

use jiff::Timestamp;

use super::series::Variable;
use super::{Documents, Inputs, Series, SeriesDefinition};

/// The sample project if the series names none.
const PROJECT: &str = "PROJECT";

/// The sample phase.
const PHASE: &str = "1";

/// Characters that a sample value is made of, the first that its variable takes.
const CHARACTERS: std::ops::RangeInclusive<char> = 'A'..='\u{fffd}';

impl Series {
    /// A request of the first type and project that the series serves, today or on the nearest day
    /// that it serves, with the least that each variable needs. Values are the first of their
    /// tables, or made up; no proof that the series accepts them.
    #[must_use]
    pub fn sample(&self, now: Timestamp) -> Inputs {
        let SeriesDefinition { serves, references, documents, .. } = &self.definition;
        let listed = |table: Option<&String>| {
            let row = self.reference.rows(table?).find(|row| row.active)?;
            Some(row.code.clone())
        };
        // From the originator, if memberships count.
        let follows = references.membership && *documents == Documents::Series;
        let project = serves.projects.first().cloned();
        let project = project.or_else(|| {
            let made_up = || listed(references.project.as_ref()).unwrap_or(PROJECT.to_owned());
            (self.project_needed || references.membership).then(made_up)
        });
        let sourced = self.sourced();
        let needed = |variable: &&Variable| {
            let is_asked = sourced.is_none_or(|sourced| sourced.variable != variable.name);
            is_asked && variable.default.is_none() && (variable.required || variable.shown)
        };
        let value = |variable: &Variable| {
            let fits = |c: &char| variable.rule.takes(*c, true) && variable.rule.takes(*c, false);
            let digits = '0'..='9';
            let first = CHARACTERS.chain(digits).find(fits).unwrap_or('A');
            let made_up = || first.to_string().repeat(variable.rule.widths().0);
            let declared = variable.values.as_ref().map(|values| values.first().to_owned());
            let value = declared.or_else(|| listed(variable.reference.as_ref()));
            let value = value.unwrap_or_else(made_up);
            (variable.name.clone(), value)
        };
        Inputs {
            type_code: serves.types.first().cloned().unwrap_or_default(),
            project: project.filter(|_| !follows),
            date: self.nearest_date(now),
            phase: self.phase_needed.then(|| PHASE.to_owned()),
            context: self.variables.iter().filter(needed).map(value).collect(),
            ..Inputs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::NOW;
    use super::super::{Series, VariableDefinition, builtin_series};

    #[test]
    fn every_built_in_series_accepts_its_sample() {
        for definition in builtin_series() {
            let series = Series::compile(definition).expect("built in");
            let draft = series.draft(&series.sample(NOW), NOW);
            assert!(draft.is_ok(), "{}: {draft:?}", series.definition().code);
        }
    }

    #[test]
    fn a_sample_keeps_to_alphabet_and_width() {
        let series = super::super::testing::series(|definition| {
            definition.template = "{UNIT:3}-{SEQ}".into();
            let digits = VariableDefinition {
                alphabet: Some("1-9".into()),
                ..VariableDefinition::default()
            };
            definition.variables.insert("UNIT".into(), digits);
        });
        assert_eq!(series.sample(NOW).context["UNIT"], "111");
    }
}

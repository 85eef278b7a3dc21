//! Whether two series can have one uniqueness scope at all.

use super::super::Series;
use super::super::draft::ABSENT;
use super::super::series::Dimension;
use super::super::value::ValueRule;
use super::automaton::{Sets, automaton};
use super::language::Language;
use super::product::{EVERYTHING, Runs, Search};
use super::witness::{dimension_of, name_of, scope_names};

/// Whether some scope may be one of both. Other dimensions make other scopes, which have their
/// texts to themselves, the whole ledger among them: the unique key is text and scope. So do
/// dimensions that have no value in common.
pub(super) fn may_meet(a: &Series, b: &Series) -> bool {
    scope_names(a) == scope_names(b)
        && a.scope.iter().all(|dimension| {
            let other = dimension_of(b, name_of(a, *dimension));
            other.is_some_and(|other| may_be_equal((a, *dimension), (b, other)))
        })
}

/// Says so in doubt.
fn may_be_equal((a, of_a): (&Series, Dimension), (b, of_b): (&Series, Dimension)) -> bool {
    // A table has whatever codes it is given.
    if a.table_of(of_a).is_some() || b.table_of(of_b).is_some() {
        return true;
    }
    let others = languages(b, of_b);
    let pairs = languages(a, of_a)
        .into_iter()
        .flat_map(|one| others.iter().map(move |other| (one.clone(), other)));
    pairs.into_iter().any(|(one, other)| have_common_text(&one, other))
}

/// The values that a dimension can have.
fn languages(series: &Series, dimension: Dimension) -> Vec<Language> {
    let serves = &series.definition.serves;
    let listed = |codes: &[String]| vec![Language::OneOf(codes.to_vec())];
    match dimension {
        Dimension::Type => listed(&serves.types),
        Dimension::Project if serves.projects.is_empty() => {
            vec![Language::Value(ValueRule::printable())]
        }
        Dimension::Project => listed(&serves.projects),
        Dimension::Variable(index) => {
            let variable = &series.variables[index];
            let absent = !variable.required && !variable.shown;
            let absent = absent.then(|| ABSENT.to_owned());
            let otherwise = variable.default.clone().or(absent);
            let otherwise = otherwise.map(|text| Language::OneOf(vec![text]));
            otherwise.into_iter().chain([Language::Value(variable.rule.clone())]).collect()
        }
    }
}

fn have_common_text(one: &Language, other: &Language) -> bool {
    let mut sets = Sets::default();
    let first = automaton(std::slice::from_ref(one), &mut sets);
    let second = automaton(std::slice::from_ref(other), &mut sets);
    let runs = Runs {
        first: &first,
        second: &second,
        places: &[],
        marks: [&[], &[]],
        marked: 0,
        wanted: 0,
        same: &[],
    };
    !matches!(runs.search(&mut sets, EVERYTHING), Search::Never)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::series;
    use super::*;

    #[test]
    fn scopes_meet_where_they_name_the_same_dimensions_and_share_values() {
        let scoped = |names: &[&str], projects: &[&str]| {
            series(|definition| {
                let owned = |all: &[&str]| all.iter().map(ToString::to_string).collect();
                (definition.unique_within, definition.serves.projects) =
                    (owned(names), owned(projects));
            })
        };
        let meet = |a: (&[&str], &[&str]), b: (&[&str], &[&str])| {
            may_meet(&scoped(a.0, a.1), &scoped(b.0, b.1))
        };
        assert!(meet((&[], &["A"]), (&[], &["B"])));
        assert!(meet((&["project"], &["A", "B"]), (&["project"], &["B"])));
        assert!(!meet((&["project"], &["A"]), (&["project"], &["B"])));
        let [one, other] = [["project", "type"], ["type", "project"]];
        assert!(meet((&one, &["A"]), (&other, &["A"])), "in whatever order they are listed");
        // The ledger's key is text and scope: numbers of other dimensions may be equal.
        assert!(!meet((&[], &["A"]), (&["project"], &["A"])));
        assert!(!meet((&["project"], &["A"]), (&["project", "type"], &["A"])));
    }
}

//! What all projects share, sources and tables of reference data, as far as the settings grant it
//! to some of them: series of restricted identities may use only what is granted to them.

use std::collections::BTreeMap;

use numbering::{SeriesDefinition, SharedName};

use crate::auth::scope::Scope;

/// The grants of sources and tables. One that has no grant by name is used only in series that an
/// unrestricted identity saves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    sources: BTreeMap<String, Scope>,
    tables: BTreeMap<String, Scope>,
}

impl Shared {
    /// Sources and tables, each with the series and projects to which it is granted. One that is
    /// granted to everything is left out: it has no grant by name.
    #[must_use]
    pub fn of(sources: Vec<(String, Scope)>, tables: Vec<(String, Scope)>) -> Self {
        let given = |list: Vec<(String, Scope)>| {
            list.into_iter().filter(|(_, to)| !to.is_everything()).collect()
        };
        Shared { sources: given(sources), tables: given(tables) }
    }

    /// Whether what is named is given to everything that a series serves.
    #[must_use]
    pub fn has_given(&self, name: SharedName<'_>, definition: &SeriesDefinition) -> bool {
        let to = match name {
            SharedName::Source(name) => self.sources.get(name),
            SharedName::Table(name) => self.tables.get(name),
        };
        to.is_some_and(|to| to.holds(&definition.code, &definition.serves.projects))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_to_some_is_given_to_series_that_serve_no_others() {
        let list = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let to = |series: &[&str], projects: &[&str]| Scope::of(list(series), list(projects));
        let shared = Shared::of(
            vec![("erp".into(), to(&[], &["C1", "C2"])), ("crm".into(), to(&[], &[]))],
            vec![("sites".into(), to(&["OWN"], &[])), ("erp".into(), to(&["OWN"], &["C1"]))],
        );
        let has = |name: SharedName<'_>, code: &str, projects: &[&str]| {
            let json = serde_json::json!({
                "code": code, "name": "n", "template": "{SEQ:3}", "serials": [{}],
                "serves": { "types": ["T"], "projects": projects },
            });
            shared.has_given(name, &serde_json::from_value(json).expect("a definition"))
        };
        use SharedName::{Source, Table};
        for (name, code, projects, given) in [
            (Source("erp"), "S", &["C1"][..], true),
            (Source("erp"), "S", &["C1", "C2"], true),
            (Source("erp"), "S", &["C1", "C3"], false),
            (Source("erp"), "S", &[], false),
            (Source("crm"), "S", &["C1"], false),
            (Source("sites"), "OWN", &["C1"], false),
            (Table("sites"), "OWN", &["C9"], true),
            (Table("sites"), "S", &["C1"], false),
            (Table("erp"), "OWN", &["C1"], true),
            (Table("erp"), "OWN", &["C2"], false),
            (Table("erp"), "S", &["C1"], false),
        ] {
            assert_eq!(has(name, code, projects), given, "{name:?} {code} {projects:?}");
        }
    }
}

//! Whose documents the ids of a series name: the series', or those of one project each.

use serde::{Deserialize, Serialize};

use super::text::normal_code;
use super::{Inputs, Series};

/// Which requests name one document by one id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Documents {
    /// All of the series.
    #[default]
    Series,
    /// Those of one project; those without a project form one group, too.
    Project,
}

impl Documents {
    pub(super) fn are_of_the_series(&self) -> bool {
        *self == Documents::Series
    }
}

/// The owner of the document that an id names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum DocumentsOf {
    /// The series'.
    #[default]
    Series,
    /// That of requests without a project.
    NoProject,
    /// That of a project, by its code in normal form C.
    Project(String),
    /// That of a row of a table of projects, whatever its present code is.
    Row {
        /// The table.
        table: String,
        /// The row's id.
        id: String,
    },
}

impl DocumentsOf {
    /// The name of a document of theirs: no two of one series have the same. An id has no line
    /// break, so no id is the name of another owner's document.
    #[must_use]
    pub fn name(&self, document_id: &str) -> String {
        match self {
            DocumentsOf::Series => document_id.to_owned(),
            DocumentsOf::NoProject => format!("\n{document_id}"),
            DocumentsOf::Project(code) => format!("={code}\n{document_id}"),
            DocumentsOf::Row { table, id } => format!("#{table}/{id}\n{document_id}"),
        }
    }

    /// The project of a request as its row of the journal has it. The row of a project's document
    /// is found by that text.
    #[must_use]
    pub fn journaled(&self, project: Option<String>) -> Option<String> {
        match self {
            DocumentsOf::Project(code) => Some(code.clone()),
            _ => project,
        }
    }
}

impl Series {
    /// The owner of the document that a request's id names: the same for each form of a request,
    /// whatever was renamed or deactivated since. A code that its table does not have is refused
    /// with the request, and has no owner.
    #[must_use]
    pub fn documents_of(&self, inputs: &Inputs) -> DocumentsOf {
        if self.definition.documents.are_of_the_series() {
            return DocumentsOf::Series;
        }
        let code = inputs.project.as_deref().map(normal_code);
        let row = self.definition.references.project.as_deref().and_then(|table| {
            let by_id = inputs.project_id.as_deref().map(|id| self.reference.by_id(table, id));
            by_id.unwrap_or_else(|| self.reference.by_code(table, code.as_deref()?))
        });
        match (row, code) {
            (Some(row), _) => DocumentsOf::Row { table: row.table.clone(), id: row.id.clone() },
            (None, Some(code)) => DocumentsOf::Project(code.into_owned()),
            (None, None) => DocumentsOf::NoProject,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::super::testing::{NOW, inputs, member, reference, series};
    use super::super::{Inputs, ReferenceData, VariableDefinition};
    use super::*;

    #[test]
    fn a_project_owns_its_documents_under_every_code_and_its_id_and_no_other_does() {
        let mut renamed = reference("projects", "2", "LCBP3-C2", false);
        renamed.former_codes = vec!["C2".into()];
        let rows = [reference("projects", "1", "C1", true), renamed];
        let listed = series(|definition| {
            definition.documents = Documents::Project;
            definition.references.project = Some("projects".into());
        });
        let listed = listed.with_reference(Arc::new(ReferenceData::new(rows, [])));
        let by_code = |code: &str| listed.documents_of(&inputs("T", code, "", &[]));
        let by_id = Inputs { project_id: Some("2".into()), ..Inputs::default() };
        let row = |id: &str| DocumentsOf::Row { table: "projects".into(), id: id.into() };
        assert_eq!(["C2", "LCBP3-C2", "C1"].map(by_code), [row("2"), row("2"), row("1")]);
        assert_eq!(listed.documents_of(&by_id), row("2"));
        let free = series(|definition| definition.documents = Documents::Project);
        let decomposed = free.documents_of(&inputs("T", "e\u{301}", "", &[]));
        assert_eq!(decomposed, DocumentsOf::Project("é".into()));
        assert_eq!(decomposed.journaled(Some("e\u{301}".into())).as_deref(), Some("é"));
        assert_eq!(free.documents_of(&Inputs::default()), DocumentsOf::NoProject);
        let shared = series(|_| {});
        assert_eq!(shared.documents_of(&by_id), DocumentsOf::Series);
        let owners = [row("1"), row("2"), decomposed, DocumentsOf::NoProject, DocumentsOf::Series];
        let project = |code: &str| DocumentsOf::Project(code.into());
        let owners = owners.into_iter().chain(["projects/1", "#1", "d", "=d"].map(project));
        let names: Vec<String> = owners.map(|owner| owner.name("d")).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        assert_eq!(DocumentsOf::Series.name("d"), "d");
    }

    #[test]
    fn a_project_that_is_to_own_a_document_is_named_and_does_not_follow_from_memberships() {
        let rows = [reference("orgs", "1", "O", true), reference("projects", "2", "C2", true)];
        let belongs = member(("orgs", "1"), ("projects", "2"));
        let data = Arc::new(ReferenceData::new(rows, [belongs]));
        let draft = |documents: Documents, project: &str| {
            let series = series(|definition| {
                definition.documents = documents;
                definition.references.project = Some("projects".into());
                definition.references.membership = true;
                let reference = Some("orgs".into());
                let member = VariableDefinition { reference, ..VariableDefinition::default() };
                definition.variables.insert("ORIGINATOR".into(), member);
            });
            let series = series.with_reference(Arc::clone(&data));
            let request = inputs("T", project, "2025-01-01", &[("ORIGINATOR", "O")]);
            series.draft(&request, NOW).map(|draft| draft.resolved.and_then(|it| it.project))
        };
        assert_eq!(draft(Documents::Series, ""), Ok(Some("C2".into())));
        assert_eq!(draft(Documents::Project, "C2"), Ok(Some("C2".into())));
        let refused = draft(Documents::Project, "").unwrap_err();
        assert_eq!((refused.slug(), &*refused.field()), ("missing-variable", "project"));
    }
}

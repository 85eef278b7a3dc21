//! Projects whose rows answer for a document, in series that keep the documents of projects apart.

use crate::columns::hash64;

/// The projects under which a document has rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Projects {
    /// Under any: the document is the series'.
    Any,
    /// Under one of these codes; the empty code means no project.
    These(Vec<String>),
}

impl Projects {
    /// Whether a row of a project is one of theirs.
    pub(crate) fn have(&self, project: Option<&str>) -> bool {
        match self {
            Projects::Any => true,
            Projects::These(codes) => codes.iter().any(|code| code == project.unwrap_or_default()),
        }
    }

    /// The projects that a statement looks for, one after the other; `None`: rows of any.
    pub(crate) fn sought(&self) -> Vec<Option<&str>> {
        match self {
            Projects::Any => vec![None],
            Projects::These(codes) => codes.iter().map(|code| Some(code.as_str())).collect(),
        }
    }
}

/// The hash by which the project of an archived number is looked up; the empty code means none.
pub(crate) fn project_hash(code: &str) -> i64 {
    i64::from_be_bytes(hash64(&format!("project {code}")).to_be_bytes())
}

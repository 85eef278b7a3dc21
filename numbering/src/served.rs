//! What a series serves, as requests and numbers may show it: the codes that its definition names,
//! and where it refers to a table, every code that the same row has or had.
//!
//! Looks at a request only as far as the choice of a series needs; refuses nothing.

use std::borrow::Cow;

use super::text::normalise;
use super::{Inputs, ReferenceData, Series, SeriesDefinition};

/// The variables that name the originating organization, the older name last.
pub const ORIGINATORS: [&str; 2] = ["ORIGINATOR", "ORG_CODE"];

/// The variable that names the sub type.
pub(super) const SUB_TYPE: &str = "SUB_TYPE";

/// The variable that names the main recipient.
pub(super) const RECIPIENT: &str = "RECIPIENT";

/// The fields of `serves`, with all codes of what they name.
#[derive(Clone, Debug, Default)]
pub(super) struct Served {
    pub(super) types: Vec<String>,
    pub(super) projects: Vec<String>,
    pub(super) originators: Vec<String>,
    pub(super) sub_types: Vec<String>,
    /// Types that a number may show: `types`, and those that a default takes beyond them.
    pub(super) types_shown: Vec<String>,
    /// Whether it takes every type of its table that is not undetermined.
    pub(super) any_type: bool,
}

impl Served {
    /// Reads the tables that a definition refers to.
    pub(super) fn of(definition: &SeriesDefinition, reference: &ReferenceData) -> Self {
        let (serves, references) = (&definition.serves, &definition.references);
        let all = |codes: &[String], table: Option<&String>| match table {
            Some(table) => codes.iter().flat_map(|code| reference.codes_of(table, code)).collect(),
            None => codes.to_vec(),
        };
        let table_of = |name: &str| definition.variables.get(name)?.reference.as_ref();
        let originators = ORIGINATORS.iter().find_map(|name| table_of(name));
        let types: Vec<String> = all(&serves.types, references.type_code.as_ref());
        let mut types_shown = types.clone();
        let any_type = Series::takes_any_type(definition);
        if let Some(table) = references.type_code.as_ref().filter(|_| any_type) {
            let rows = reference.rows(table);
            types_shown.extend(rows.flat_map(|row| reference.codes_of(table, &row.code)));
            types_shown.retain(|code| !serves.undetermined_types.contains(code));
            types_shown.sort_unstable();
            types_shown.dedup();
        }
        Served {
            types,
            projects: all(&serves.projects, references.project.as_ref()),
            originators: all(&serves.originators, originators),
            sub_types: all(&serves.sub_types, table_of(SUB_TYPE)),
            types_shown,
            any_type,
        }
    }
}

/// What the choice of a series looks at in a request, in codes, as one series reads it. What its
/// tables do not know is left out here; whoever makes the draft refuses it. Each value is read when
/// it is asked for: every series of the ledger is asked for every request.
pub(super) struct Asked<'r> {
    pub(super) series: &'r Series,
    pub(super) inputs: &'r Inputs,
}

impl<'r> Asked<'r> {
    pub(super) fn type_code(&self) -> Option<Cow<'r, str>> {
        match &self.inputs.type_id {
            Some(id) => self.code(self.series.definition.references.type_code.as_deref(), id),
            None => Some(normalise(&self.inputs.type_code)),
        }
    }

    pub(super) fn project(&self) -> Option<Cow<'r, str>> {
        match (&self.inputs.project, &self.inputs.project_id) {
            (Some(project), _) => Some(normalise(project)),
            (None, Some(id)) => self.code(self.series.definition.references.project.as_deref(), id),
            (None, None) => match self.series.projects_of(self.originator().as_deref())[..] {
                [project] => Some(Cow::Borrowed(project)),
                _ => None,
            },
        }
    }

    pub(super) fn originator(&self) -> Option<Cow<'r, str>> {
        // Whatever each series calls it, all read the same organization in one request.
        let table = self.series.originator_table();
        ORIGINATORS.iter().find_map(|name| self.value(name, table))
    }

    pub(super) fn sub_type(&self) -> Option<Cow<'r, str>> {
        let declared = self.series.variables.iter().find(|variable| variable.name == SUB_TYPE);
        self.value(SUB_TYPE, declared.and_then(|variable| variable.reference.as_deref()))
    }

    /// The value of a variable, by its name or by its id.
    fn value(&self, name: &str, table: Option<&str>) -> Option<Cow<'r, str>> {
        if let Some(value) = self.inputs.context.get(name) {
            return Some(normalise(value));
        }
        let table = Some(table?);
        let id = id_names(name).find_map(|id_name| self.inputs.context.get(&id_name))?;
        self.code(table, id)
    }

    /// The code of an id.
    fn code(&self, table: Option<&str>, id: &str) -> Option<Cow<'r, str>> {
        let row = self.series.reference.by_id(table?, id)?;
        Some(Cow::Borrowed(row.code.as_str()))
    }
}

impl Series {
    /// Whether it refers to any table of the reference data.
    #[must_use]
    pub fn refers(&self) -> bool {
        let references = &self.definition.references;
        references.project.is_some()
            || references.type_code.is_some()
            || self.variables.iter().any(|variable| variable.reference.is_some())
    }

    /// Document types that its numbers may show, in codes.
    #[must_use]
    pub fn types_shown(&self) -> &[String] {
        &self.served.types_shown
    }

    /// Projects that it is for, in codes; empty: any.
    #[must_use]
    pub fn projects_shown(&self) -> &[String] {
        &self.served.projects
    }

    /// Whether it names the type of a request, whatever else it asks for.
    #[must_use]
    pub fn names_type_of(&self, inputs: &Inputs) -> bool {
        let type_code = Asked { series: self, inputs }.type_code();
        type_code.is_some_and(|wanted| self.served.types.iter().any(|code| *code == wanted))
    }

    /// Whether a definition may serve a request, by its type. Says so in doubt: it need not
    /// compile.
    #[must_use]
    pub fn may_serve(definition: &SeriesDefinition, inputs: &Inputs) -> bool {
        let is_named = definition.serves.types.contains(&inputs.type_code);
        is_named || inputs.type_code.is_empty() || definition.references.type_code.is_some()
    }

    /// Whether a definition takes every type of its table that is not undetermined: a new type of a
    /// deployment gets a number at once where there is such a default.
    pub(super) fn takes_any_type(definition: &SeriesDefinition) -> bool {
        definition.serves.default && definition.references.type_code.is_some()
    }

    /// The table of its originators.
    pub(super) fn originator_table(&self) -> Option<&str> {
        let table = |name: &&str| {
            let variable = self.variables.iter().find(|variable| variable.name == *name)?;
            variable.reference.as_deref()
        };
        ORIGINATORS.iter().find_map(table)
    }

    /// Codes of the active projects that an originator is a member of, where the series looks at
    /// memberships.
    pub(super) fn projects_of(&self, originator: Option<&str>) -> Vec<&str> {
        let references = &self.definition.references;
        let tables = (self.originator_table(), references.project.as_deref());
        let (Some(originator), (Some(members), Some(projects)), true) =
            (originator, tables, references.membership)
        else {
            return Vec::new();
        };
        let Some(member) = self.reference.by_code(members, originator) else { return Vec::new() };
        self.reference.groups(member, projects).into_iter().map(|row| row.code.as_str()).collect()
    }
}

/// The names under which a context may hold the id of a variable's value: `discipline_id` for
/// `DISCIPLINE`, and for `DISCIPLINE_CODE` too.
pub(super) fn id_names(variable: &str) -> impl Iterator<Item = String> {
    let stem = variable.strip_suffix("_CODE");
    [Some(variable), stem].into_iter().flatten().map(|name| format!("{}_id", name.to_lowercase()))
}

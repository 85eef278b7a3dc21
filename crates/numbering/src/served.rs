//! What a series serves, as requests and numbers may show it: the codes that its definition names,
//! and if it refers to a table, every code that the same row has or had.
//!
//! Reads a request only as far as the choice of a series requires; refuses nothing.

use std::borrow::Cow;

use super::names::Names;
use super::text::normal_code;
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
    pub(super) types: Names,
    pub(super) projects: Names,
    pub(super) originators: Names,
    pub(super) sub_types: Names,
    /// Types that are not determined yet, as the definition names them.
    pub(super) undetermined_types: Names,
    /// Types that a number may show: `types`, and those that a default takes beyond them.
    pub(super) types_shown: Names,
    /// Whether it takes every type of its table that is not undetermined.
    pub(super) any_type: bool,
}

impl Served {
    /// Reads the tables that a definition refers to.
    pub(super) fn of(definition: &SeriesDefinition, reference: &ReferenceData) -> Self {
        let (serves, references) = (&definition.serves, &definition.references);
        let all = |codes: &[String], table: Option<&String>| -> Vec<String> {
            match table {
                Some(table) => {
                    codes.iter().flat_map(|code| reference.codes_of(table, code)).collect()
                }
                None => codes.to_vec(),
            }
        };
        let table_of = |name: &str| definition.variables.get(name)?.reference.as_ref();
        let originators = ORIGINATORS.iter().find_map(|name| table_of(name));
        let types = all(&serves.types, references.type_code.as_ref());
        let undetermined_types = Names::from(serves.undetermined_types.clone());
        let mut types_shown = types.clone();
        let any_type = Series::takes_any_type(definition);
        if let Some(table) = references.type_code.as_ref().filter(|_| any_type) {
            let rows = reference.rows(table);
            types_shown.extend(rows.flat_map(|row| reference.codes_of(table, &row.code)));
            types_shown.retain(|code| !undetermined_types.has(code));
            types_shown.sort_unstable();
            types_shown.dedup();
        }
        Served {
            types: types.into(),
            projects: all(&serves.projects, references.project.as_ref()).into(),
            originators: all(&serves.originators, originators).into(),
            sub_types: all(&serves.sub_types, table_of(SUB_TYPE)).into(),
            undetermined_types,
            types_shown: types_shown.into(),
            any_type,
        }
    }
}

/// The parts of a request that the choice of a series reads, codes in normal form: normalised once,
/// however many series are asked.
pub(super) struct Said<'r> {
    inputs: &'r Inputs,
    type_code: Field<'r>,
    project: Field<'r>,
    /// By each name of it.
    originators: [Field<'r>; 2],
    sub_type: Field<'r>,
}

/// How a request names something: by its code, or else its id.
struct Field<'r> {
    code: Option<Cow<'r, str>>,
    id: Option<&'r str>,
}

impl<'r> Said<'r> {
    pub(super) fn of(inputs: &'r Inputs) -> Self {
        let of_variable = |name: &str| Field {
            code: inputs.context.get(name).map(|value| normal_code(value)),
            id: id_names(name).find_map(|id_name| inputs.context.get(&id_name)).map(String::as_str),
        };
        let type_id = inputs.type_id.as_deref();
        Said {
            inputs,
            type_code: Field {
                code: type_id.is_none().then(|| normal_code(&inputs.type_code)),
                id: type_id,
            },
            project: Field {
                code: inputs.project.as_deref().map(normal_code),
                id: inputs.project_id.as_deref(),
            },
            originators: ORIGINATORS.map(of_variable),
            sub_type: of_variable(SUB_TYPE),
        }
    }
}

/// The request in codes, as one series reads it. What its tables do not know is left out here; the
/// draft refuses it. Each value is read when it is needed: every series of the ledger is asked for
/// every request.
pub(super) struct Asked<'r> {
    pub(super) series: &'r Series,
    pub(super) said: &'r Said<'r>,
}

impl<'r> Asked<'r> {
    pub(super) fn type_code(&self) -> Option<&'r str> {
        self.code(&self.said.type_code, self.series.definition.references.type_code.as_deref())
    }

    pub(super) fn project(&self) -> Option<&'r str> {
        let Field { code, id } = &self.said.project;
        if code.is_some() || id.is_some() {
            let table = self.series.definition.references.project.as_deref();
            let project = self.code(&self.said.project, table);
            return project.filter(|code| id.is_none() || self.said.inputs.reaches(code));
        }
        let all = self.series.all_projects_of(self.originator());
        let reached = |code: &&String| self.said.inputs.reaches(code);
        let mut reached = all.iter().filter(reached);
        match (reached.next(), reached.next()) {
            (Some(project), None) => Some(project),
            _ => None,
        }
    }

    pub(super) fn originator(&self) -> Option<&'r str> {
        // Whatever name each series uses, all read the same organization in one request.
        let table = self.series.originator_table();
        self.said.originators.iter().find_map(|said| self.code(said, table))
    }

    pub(super) fn sub_type(&self) -> Option<&'r str> {
        let declared = self.series.variables.iter().find(|variable| variable.name == SUB_TYPE);
        let table = declared.and_then(|variable| variable.reference.as_deref());
        self.code(&self.said.sub_type, table)
    }

    /// The given code, or that of the id.
    fn code(&self, said: &'r Field<'r>, table: Option<&str>) -> Option<&'r str> {
        match &said.code {
            Some(code) => Some(code),
            None => {
                let row = self.series.reference.by_id(table?, said.id?)?;
                Some(row.code.as_str())
            }
        }
    }
}

/// The first of some series that names the type of a request, whatever else it asks for: its index
/// among them.
#[must_use]
pub fn naming_type_of<'s>(
    series: impl IntoIterator<Item = &'s Series>,
    inputs: &Inputs,
) -> Option<usize> {
    let said = Said::of(inputs);
    let names_it = |series: &Series| {
        let type_code = Asked { series, said: &said }.type_code();
        type_code.is_some_and(|wanted| series.served.types.has(wanted))
    };
    series.into_iter().position(names_it)
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

    /// Whether a definition may serve a request, by its type. True in doubt: it need not compile.
    #[must_use]
    pub fn may_serve(definition: &SeriesDefinition, inputs: &Inputs) -> bool {
        let is_named = definition.serves.types.contains(&inputs.type_code);
        is_named || inputs.type_code.is_empty() || definition.references.type_code.is_some()
    }

    /// Whether a definition takes every type of its table that is not undetermined: a new type of a
    /// deployment gets a number immediately if there is such a default.
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

    /// Codes of the active projects that an originator is a member of, in order, if the series uses
    /// memberships, as far as they exist for the caller.
    pub(super) fn projects_of<'s>(
        &'s self,
        originator: Option<&str>,
        inputs: &'s Inputs,
    ) -> Cow<'s, [String]> {
        let all = self.all_projects_of(originator);
        match &inputs.projects_within {
            None => Cow::Borrowed(all),
            Some(_) => all.iter().filter(|code| inputs.reaches(code)).cloned().collect(),
        }
    }

    fn all_projects_of(&self, originator: Option<&str>) -> &[String] {
        let references = &self.definition.references;
        let tables = (self.originator_table(), references.project.as_deref());
        let (Some(originator), (Some(members), Some(projects)), true) =
            (originator, tables, references.membership)
        else {
            return &[];
        };
        let member = self.reference.by_code(members, originator);
        member.map(|member| self.reference.group_codes(member, projects)).unwrap_or_default()
    }
}

/// The names under which a context may hold the id of a variable's value: `discipline_id` for
/// `DISCIPLINE`, and for `DISCIPLINE_CODE` too.
pub(super) fn id_names(variable: &str) -> impl Iterator<Item = String> {
    let stem = variable.strip_suffix("_CODE");
    [Some(variable), stem].into_iter().flatten().map(|name| format!("{}_id", name.to_lowercase()))
}

//! Converts a request into codes, as the series' tables have them now: ids become codes, former
//! codes present ones, recipients the value of `RECIPIENT`, and a missing project follows from the
//! originator's memberships. What a table does not have, or has as inactive, is refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::{ABSENT, missing, unknown};
use super::error::excerpt;
use super::names::LISTED_MAX;
use super::reference::ReferenceRow;
use super::series::Variable;
use super::served::{ORIGINATORS, RECIPIENT, id_names};
use super::text::normal_code;
use super::{Documents, InputError, Inputs, Series};

/// The kind of recipient that a number shows.
const MAIN_KIND: &str = "TO";

/// Most recipients of one request.
const RECIPIENTS_MAX: usize = 1_000;

/// The remedy for an originator that is not a member.
const MEMBER_REMEDY: &str = "have its membership imported (`numerator reference import --of`)";

/// A request, and the series that numbers it.
#[derive(Clone, Copy)]
struct Resolving<'r> {
    series: &'r Series,
    inputs: &'r Inputs,
}

/// The request in codes alone; `None` if it is that already and the series has no tables.
pub(super) fn resolve(series: &Series, inputs: &Inputs) -> Result<Option<Inputs>, InputError> {
    let in_codes = inputs.type_id.is_none() && inputs.project_id.is_none();
    if in_codes && inputs.recipients.is_empty() && !series.refers() {
        return Ok(None);
    }
    let references = &series.definition.references;
    let given = (!inputs.type_code.is_empty()).then_some(inputs.type_code.as_str());
    let table = references.type_code.as_deref();
    let asked = Resolving { series, inputs };
    let type_code = plain(asked, "type", table, given, inputs.type_id.as_deref())?;
    let context = context(asked)?;
    let table = references.project.as_deref();
    let (given, id) = (inputs.project.as_deref(), inputs.project_id.as_deref());
    let named = plain(asked, "project", table, given, id)?;
    let project =
        if references.membership { project_of_member(asked, named, &context)? } else { named };
    Ok(Some(Inputs {
        type_code: type_code.unwrap_or_default(),
        type_id: None,
        project,
        project_id: None,
        date: inputs.date.clone(),
        phase: inputs.phase.clone(),
        context,
        recipients: Vec::new(),
        projects_within: inputs.projects_within.clone(),
    }))
}

/// Values of variables in codes, as far as the caller's projects reach; nothing is added that
/// follows from other values.
pub(super) fn values_in_codes(
    series: &Series,
    values: &BTreeMap<String, String>,
    projects_within: Option<Arc<[String]>>,
) -> Result<BTreeMap<String, String>, InputError> {
    if !series.refers() {
        return Ok(values.clone());
    }
    let inputs = Inputs { context: values.clone(), projects_within, ..Inputs::default() };
    let mut codes = context(Resolving { series, inputs: &inputs })?;
    let is_given = |name: &str| {
        values.contains_key(name) || id_names(name).any(|id| values.contains_key(&*id))
    };
    codes.retain(|name, _| is_given(name));
    Ok(codes)
}

/// The type or the project: by its code, or by its id if the series has a table.
fn plain(
    asked: Resolving<'_>,
    field: &str,
    table: Option<&str>,
    code: Option<&str>,
    id: Option<&str>,
) -> Result<Option<String>, InputError> {
    let id_field = format!("{field}_id");
    match (table, code, id) {
        (_, Some(_), Some(_)) => Err(both(&id_field, field)),
        (None, None, Some(_)) => {
            let code = &asked.series.definition.code;
            let reason = format!("series {code} has no table of it; send `{field}`");
            Err(InputError::Form { field: id_field, reason })
        }
        (Some(table), None, Some(id)) => of_id(asked, &id_field, table, id).map(Some),
        // An empty value is refused with all others.
        (Some(table), Some(code), None) if !code.is_empty() => {
            of_code(asked, field, table, code).map(Some)
        }
        (_, code, None) => Ok(code.map(str::to_owned)),
    }
}

/// The context in codes, with the recipient.
fn context(asked: Resolving<'_>) -> Result<BTreeMap<String, String>, InputError> {
    let Resolving { series, inputs } = asked;
    let mut codes = BTreeMap::new();
    for (name, value) in &inputs.context {
        let field = format!("context.{name}");
        let of_id_name = |variable: &&Variable| {
            variable.reference.is_some() && id_names(&variable.name).any(|other| other == *name)
        };
        let by_id = series.variables.iter().find(of_id_name);
        let declared = || series.variables.iter().find(|variable| variable.name == *name);
        let (variable, code) = match by_id.or_else(declared) {
            Some(variable) => {
                let code = of_variable(asked, variable, &field, value, by_id.is_some())?;
                (&variable.name, code)
            }
            // Unknown names are refused with all others.
            None => (name, value.clone()),
        };
        if codes.insert(variable.clone(), code).is_some() {
            return Err(both(&field, &format!("context.{variable}")));
        }
    }
    if !inputs.recipients.is_empty() {
        let declared = series.variables.iter().find(|variable| variable.name == RECIPIENT);
        let Some(declared) = declared else { return Err(unknown(series, RECIPIENT)) };
        if codes.contains_key(RECIPIENT) {
            return Err(both("recipients", "context.RECIPIENT"));
        }
        if let Some(code) = main_recipient(asked, declared)? {
            codes.insert(RECIPIENT.into(), code);
        }
    }
    for variable in &series.variables {
        // A default that the table renamed is shown by its present code.
        if let (Some(table), Some(default)) = (&variable.reference, &variable.default)
            && default != ABSENT
            && !codes.contains_key(&variable.name)
        {
            let field = format!("context.{}", variable.name);
            let code = of_code(asked, &field, table, default)?;
            codes.insert(variable.name.clone(), code);
        }
    }
    Ok(codes)
}

/// The value of a variable that was sent by its name, or as an id.
fn of_variable(
    asked: Resolving<'_>,
    variable: &Variable,
    field: &str,
    value: &str,
    is_id: bool,
) -> Result<String, InputError> {
    match &variable.reference {
        // "None" is a value if the series can do without one.
        Some(_) if value == ABSENT && !variable.required => Ok(value.to_owned()),
        Some(table) if is_id => of_id(asked, field, table, value),
        // An empty value is refused with all others.
        Some(table) if !value.is_empty() => of_code(asked, field, table, value),
        _ => Ok(value.to_owned()),
    }
}

/// The first recipient of kind TO, by order; `None` if there is none and none is needed.
fn main_recipient(asked: Resolving<'_>, declared: &Variable) -> Result<Option<String>, InputError> {
    let Resolving { series, inputs } = asked;
    let recipients = &inputs.recipients;
    if recipients.len() > RECIPIENTS_MAX {
        let reason = format!("at most {RECIPIENTS_MAX} are read; send only those of kind TO");
        return Err(InputError::Form { field: "recipients".into(), reason });
    }
    let to = recipients.iter().enumerate().filter(|(_, one)| one.kind == MAIN_KIND);
    let Some((index, first)) = to.min_by_key(|(_, one)| one.order) else {
        let needed = declared.required || declared.shown && declared.default.is_none();
        let refused = || missing(series, format!("recipients[kind={MAIN_KIND}]"));
        return if needed { Err(refused()) } else { Ok(None) };
    };
    let field = format!("recipients[{index}]");
    let form = |reason: &str| InputError::Form { field: field.clone(), reason: reason.into() };
    let code = match (&declared.reference, &first.code, &first.id) {
        (Some(table), None, Some(id)) => of_id(asked, &format!("{field}.id"), table, id)?,
        (Some(table), Some(code), None) => of_code(asked, &format!("{field}.code"), table, code)?,
        (None, Some(code), None) => code.clone(),
        (None, None, Some(_)) => {
            return Err(form("the series has no table of recipients; send `code`"));
        }
        _ => return Err(form("send either `code` or `id`")),
    };
    Ok(Some(code))
}

/// The project of an originator: the one that was named, if it is a member there; else the only one
/// that it is a member of.
fn project_of_member(
    Resolving { series, inputs }: Resolving<'_>,
    named: Option<String>,
    context: &BTreeMap<String, String>,
) -> Result<Option<String>, InputError> {
    let originator = ORIGINATORS.iter().find_map(|name| Some((name, context.get(*name)?)));
    let Some((name, member)) = originator.filter(|(_, member)| *member != ABSENT) else {
        return Ok(named);
    };
    let projects = &*series.projects_of(Some(member), inputs);
    let listed = || {
        let shown = &projects[..projects.len().min(LISTED_MAX)];
        let more = if projects.len() > LISTED_MAX { ", …" } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    let not_a_member = |reason: String| {
        let (field, member) = (format!("context.{name}"), excerpt(member));
        Err(InputError::NotAMember { field, member, reason })
    };
    let is_one = |named: &str| projects.binary_search_by(|code| code.as_str().cmp(named)).is_ok();
    match (named, projects) {
        (Some(named), _) if is_one(&named) => Ok(Some(named)),
        (_, []) => not_a_member(format!("is a member of no active project; {MEMBER_REMEDY}")),
        (Some(named), _) => not_a_member(format!(
            "is no member of project {:?}, but of {}; name one of these, or {MEMBER_REMEDY}",
            excerpt(&named),
            listed()
        )),
        // A retry would be another's document once its originator is a member elsewhere.
        (None, _) if series.definition.documents == Documents::Project => {
            Err(missing(series, "project".into()))
        }
        (None, [project]) => {
            let served = &series.served.projects;
            if served.is_empty() || served.has(project) {
                return Ok(Some(project.clone()));
            }
            let follows = format!("it follows from {}", excerpt(member));
            let reason = format!("{follows} as {}, not served; name it", excerpt(project));
            Err(InputError::Form { field: "project".into(), reason })
        }
        (None, _) => {
            Err(InputError::ProjectAmbiguous { member: excerpt(member), projects: listed() })
        }
    }
}

/// The present code of a code.
fn of_code(
    asked: Resolving<'_>,
    field: &str,
    table: &str,
    code: &str,
) -> Result<String, InputError> {
    let row = asked.series.reference.by_code(table, &normal_code(code));
    usable(asked, field, table, code, row)
}

/// The present code of an id.
fn of_id(asked: Resolving<'_>, field: &str, table: &str, id: &str) -> Result<String, InputError> {
    usable(asked, field, table, id, asked.series.reference.by_id(table, id))
}

/// The code of a row that exists for the caller, and that new numbers may use.
fn usable(
    Resolving { series, inputs }: Resolving<'_>,
    field: &str,
    table: &str,
    value: &str,
    row: Option<&ReferenceRow>,
) -> Result<String, InputError> {
    let is_of_projects = series.definition.references.project.as_deref() == Some(table);
    let is_there = |row: &&ReferenceRow| !is_of_projects || inputs.reaches(&row.code);
    let (field, table_name, value) = (field.to_owned(), table.to_owned(), excerpt(value));
    match row.filter(is_there) {
        Some(row) if row.active => Ok(row.code.clone()),
        Some(row) => {
            let value = row.code.clone();
            Err(InputError::InactiveReference { field, table: table_name, value })
        }
        None => {
            let remedy = if series.reference.rows(table).any(|row| is_there(&row)) {
                "correct it, or have the row imported"
            } else {
                "the table is empty: fill it with `numerator reference import`"
            };
            Err(InputError::UnknownReference { field, table: table_name, value, remedy })
        }
    }
}

fn both(field: &str, other: &str) -> InputError {
    let reason = format!("stands beside `{other}`; send one of them");
    InputError::Form { field: field.into(), reason }
}

//! What a definition says beyond the projects that its series serves (F43): an administrator
//! limited to certain projects may not say it, because it affects others.
//!
//! Each field is destructured here by name, so that a new field does not compile before it is
//! classified.

use super::{References, SerialDefinition, SeriesDefinition, Serves, VariableDefinition};

/// The dimension that limits uniqueness to one project.
const PROJECT: &str = "project";

/// A field that reaches beyond the projects of its series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beyond<'d> {
    /// Its path.
    pub field: String,
    /// What it names that could be granted to some projects, if it names such a thing.
    pub names: Option<SharedName<'d>>,
}

/// The name of what all projects share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedName<'d> {
    /// Of a source.
    Source(&'d str),
    /// Of a table of reference data.
    Table(&'d str),
}

/// A field that names nothing of the kind.
fn alone(field: &str) -> Beyond<'static> {
    Beyond { field: field.to_owned(), names: None }
}

impl SeriesDefinition {
    /// The fields that reach beyond the series' own projects; none: a caller who reaches these may
    /// save.
    #[must_use]
    pub fn beyond_its_projects(&self) -> Vec<Beyond<'_>> {
        let SeriesDefinition {
            // Its own numbers, which are proved against all others before they are saved.
            code: _,
            prefix: _,
            template: _,
            timezone: _,
            fiscal_year_start: _,
            serials,
            // Which of its requests get a number, and what an answer waits for.
            policy: _,
            once_per_document: _,
            // It separates projects whose documents were shared.
            documents: _,
            chronology: _,
            by_hand: _,
            closed_before: _,
            document_date: _,
            dates: _,
            look_alikes: _,
            // Words for people.
            name: _,
            description: _,
            serves,
            unique_within,
            ambiguity_accepted,
            references,
            variables,
        } = self;
        for SerialDefinition {
            name: _,
            start: _,
            step: _,
            style: _,
            overflow: _,
            max: _,
            counter: _,
            reset: _,
        } in serials
        {}
        let mut beyond = serves.beyond_its_projects();
        // The whole ledger is the widest scope: uniqueness in it is proved.
        if !unique_within.is_empty() && !unique_within.iter().any(|name| name == PROJECT) {
            beyond.push(alone("unique_within"));
        }
        // A decision about other series' numbers.
        beyond.extend(ambiguity_accepted.as_ref().map(|_| alone("ambiguity_accepted")));
        beyond.extend(references.tables());
        for (name, variable) in variables {
            beyond.extend(variable.others(name));
        }
        beyond
    }
}

impl Serves {
    fn beyond_its_projects(&self) -> Vec<Beyond<'_>> {
        let Serves {
            // The administrator who saves the series reaches all its projects.
            projects: _,
            types: _,
            originators: _,
            sub_types: _,
            dated_from: _,
            dated_before: _,
            default: _,
            undetermined_types,
        } = self;
        // No project's default takes a type that one series declares undetermined.
        let is_said = !undetermined_types.is_empty();
        is_said.then(|| alone("serves.undetermined_types")).into_iter().collect()
    }
}

impl References {
    /// The fields that name tables, which all projects share.
    fn tables(&self) -> impl Iterator<Item = Beyond<'_>> {
        // Of no use without a table.
        let References { project, type_code, membership: _ } = self;
        let named = [("references.project", project), ("references.type", type_code)];
        named.into_iter().filter_map(|(field, table)| {
            let names = Some(SharedName::Table(table.as_deref()?));
            Some(Beyond { field: field.to_owned(), names })
        })
    }
}

impl VariableDefinition {
    /// The fields that name a table, or a source that is asked with credentials of the deployment.
    fn others(&self, variable: &str) -> impl Iterator<Item = Beyond<'_>> {
        let VariableDefinition {
            label: _,
            required: _,
            default: _,
            alphabet: _,
            excluded: _,
            values: _,
            width: _,
            width_max: _,
            reference,
            source,
        } = self;
        let table = reference.as_deref().map(|name| ("reference", SharedName::Table(name)));
        let source = source.as_deref().map(|name| ("source", SharedName::Source(name)));
        let named = [table, source].into_iter().flatten();
        named.map(move |(field, name)| Beyond {
            field: format!("variables.{variable}.{field}"),
            names: Some(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// Every field of a definition with a non-trivial value, and whether it reaches beyond the
    /// projects of its series.
    fn fields() -> Vec<(&'static str, Value, bool)> {
        vec![
            ("code", json!("S"), false),
            ("name", json!("Other"), false),
            ("description", json!("Other"), false),
            ("prefix", json!("P"), false),
            ("serves.types", json!(["U"]), false),
            ("serves.projects", json!(["C2"]), false),
            ("serves.originators", json!(["O"]), false),
            ("serves.sub_types", json!(["1"]), false),
            ("serves.undetermined_types", json!(["X"]), true),
            ("serves.dated_from", json!("2026-01-01"), false),
            ("serves.dated_before", json!("2027-01-01"), false),
            ("serves.default", json!(true), false),
            ("policy", json!("gapless"), false),
            ("once_per_document", json!(true), false),
            ("documents", json!("project"), false),
            ("chronology", json!(true), false),
            ("by_hand", json!(true), false),
            ("closed_before", json!("2025-01-01"), false),
            ("document_date", json!({ "past": "1y", "future": "1y" }), false),
            ("dates", json!({ "years_back": 50, "years_ahead": 1 }), false),
            ("look_alikes", json!("allow"), false),
            ("template", json!("{SEQ:4}"), false),
            ("timezone", json!("Asia/Bangkok"), false),
            ("fiscal_year_start", json!(10), false),
            ("unique_within", json!(["type", "V"]), true),
            ("ambiguity_accepted", json!("Agreed with the auditors."), true),
            ("references.project", json!("projects"), true),
            ("references.type", json!("types"), true),
            ("references.membership", json!(true), false),
            ("variables.V.label", json!("Word"), false),
            ("variables.V.required", json!(true), false),
            ("variables.V.default", json!("A"), false),
            ("variables.V.reference", json!("sites"), true),
            ("variables.V.source", json!("erp"), true),
            ("variables.V.alphabet", json!("A-Z"), false),
            ("variables.V.excluded", json!("-"), false),
            ("variables.V.values", json!(["A"]), false),
            ("variables.V.width", json!(1), false),
            ("variables.V.width_max", json!(2), false),
            ("serials.0.name", json!("RUN"), false),
            ("serials.0.start", json!(2), false),
            ("serials.0.step", json!(2), false),
            ("serials.0.style", json!("letters"), false),
            ("serials.0.overflow", json!("widen"), false),
            ("serials.0.max", json!(9), false),
            ("serials.0.counter", json!(["type"]), false),
            ("serials.0.reset", json!("year"), false),
        ]
    }

    /// What the value in the list above names, if that may be granted to some projects.
    fn named(path: &str) -> Option<SharedName<'static>> {
        Some(match path {
            "references.project" => SharedName::Table("projects"),
            "references.type" => SharedName::Table("types"),
            "variables.V.reference" => SharedName::Table("sites"),
            "variables.V.source" => SharedName::Source("erp"),
            _ => return None,
        })
    }

    fn put(definition: &mut Value, path: &str, value: Value) {
        let mut place = definition;
        for part in path.split('.') {
            place = match part.parse::<usize>() {
                Ok(index) => &mut place[index],
                Err(_) => &mut place[part],
            };
        }
        *place = value;
    }

    fn least() -> Value {
        json!({
            "code": "S", "name": "n", "template": "{SEQ:3}", "serves": { "types": ["T"] },
            "references": {}, "variables": { "V": {} }, "serials": [{}],
        })
    }

    /// The paths of all values of a definition in which every field is set.
    fn leaves(prefix: &str, value: &Value, found: &mut BTreeSet<String>) {
        let is_leaf = ["document_date", "dates"].contains(&prefix);
        let join = |name: &str| {
            if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
        };
        match value {
            Value::Object(fields) if !is_leaf => {
                fields.iter().for_each(|(name, value)| leaves(&join(name), value, found));
            }
            Value::Array(items) if items.first().is_some_and(Value::is_object) => {
                items.iter().enumerate().for_each(|(index, item)| {
                    leaves(&join(&index.to_string()), item, found);
                });
            }
            _ => {
                found.insert(prefix.to_owned());
            }
        }
    }

    #[test]
    fn each_field_of_a_definition_says_whether_it_reaches_beyond_its_projects() {
        let mut whole = least();
        for (path, value, beyond) in fields() {
            put(&mut whole, path, value.clone());
            let mut definition = least();
            put(&mut definition, path, value);
            let definition: SeriesDefinition = serde_json::from_value(definition).expect(path);
            let expected = beyond.then(|| Beyond { field: path.to_owned(), names: named(path) });
            let expected: Vec<Beyond<'_>> = expected.into_iter().collect();
            assert_eq!(definition.beyond_its_projects(), expected, "{path}");
        }
        // Every field that a definition can have is in the list above.
        let whole: SeriesDefinition = serde_json::from_value(whole).expect("all fields at once");
        let mut said = BTreeSet::new();
        leaves("", &serde_json::to_value(&whole).expect("JSON"), &mut said);
        let listed: BTreeSet<String> =
            fields().into_iter().map(|(path, ..)| path.to_owned()).collect();
        assert_eq!(said, listed);
        let beyond = whole.beyond_its_projects().into_iter().map(|it| it.field);
        let beyond: BTreeSet<String> = beyond.collect();
        let expected = fields().into_iter().filter(|(.., beyond)| *beyond);
        assert_eq!(beyond, expected.map(|(path, ..)| path.to_owned()).collect());
    }

    #[test]
    fn what_is_unique_within_projects_or_in_the_whole_ledger_is_the_series_own() {
        for (within, beyond) in [
            (json!([]), false),
            (json!(["project"]), false),
            (json!(["type", "V", "project"]), false),
            (json!(["V"]), true),
        ] {
            let mut definition = least();
            put(&mut definition, "unique_within", within.clone());
            let definition: SeriesDefinition = serde_json::from_value(definition).expect("one");
            assert_eq!(!definition.beyond_its_projects().is_empty(), beyond, "{within}");
        }
    }
}

//! Whether a value is what a schema of an OpenAPI document says, and no more: a field that it does
//! not have is an error, too. As much of JSON Schema as the service's own document uses.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// A document, by which values are judged.
pub(super) struct Schemas<'d>(pub(super) &'d Value);

impl<'d> Schemas<'d> {
    /// What a reference leads to; anything else is itself.
    pub(super) fn follow(&self, value: &'d Value) -> &'d Value {
        match value["$ref"].as_str() {
            Some(reference) => {
                let found = self.0.pointer(reference.trim_start_matches('#'));
                self.follow(found.unwrap_or_else(|| panic!("{reference} leads nowhere")))
            }
            None => value,
        }
    }

    /// What is wrong with a value, each with its place.
    pub(super) fn faults(&self, schema: &'d Value, value: &Value, at: &str) -> Vec<String> {
        let schema = self.follow(schema);
        for choices in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[choices].as_array() {
                let all: Vec<Vec<String>> =
                    choices.iter().map(|choice| self.faults(choice, value, at)).collect();
                let fits = all.iter().any(Vec::is_empty);
                return if fits { Vec::new() } else { vec![format!("{at}: none of {all:?}")] };
            }
        }
        let mut faults = Vec::new();
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            faults.push(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        if !is_of_type(schema, value) {
            faults.push(format!("{at}: {value} is no {}", schema["type"]));
        }
        if let Some(text) = value.as_str().filter(|_| schema["format"] == "date-time")
            && text.parse::<jiff::Timestamp>().is_err()
        {
            faults.push(format!("{at}: {text} is no time"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if schema["items"].is_object() {
                faults.extend(self.faults(&schema["items"], item, &format!("{at}[{index}]")));
            }
        }
        let (mut fields, mut required) = (BTreeMap::new(), BTreeSet::new());
        self.fields(schema, &mut fields, &mut required);
        if let (Some(object), false) = (value.as_object(), fields.is_empty()) {
            for (name, value) in object {
                let at = format!("{at}.{name}");
                match fields.get(name.as_str()) {
                    Some(schema) => faults.extend(self.faults(schema, value, &at)),
                    None => faults.push(format!("{at} is not described")),
                }
            }
            let missing = required.into_iter().filter(|name| !object.contains_key(*name));
            faults.extend(missing.map(|name| format!("{at}.{name} is missing")));
        }
        faults
    }

    /// All fields of an object, of all its parts.
    fn fields(
        &self,
        schema: &'d Value,
        fields: &mut BTreeMap<&'d str, &'d Value>,
        required: &mut BTreeSet<&'d str>,
    ) {
        let schema = self.follow(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fields(part, fields, required);
        }
        let own = schema["properties"].as_object().into_iter().flatten();
        fields.extend(own.map(|(name, schema)| (name.as_str(), schema)));
        required
            .extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
    }
}

fn is_of_type(schema: &Value, value: &Value) -> bool {
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    }
}

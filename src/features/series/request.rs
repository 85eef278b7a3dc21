//! The request of an administrator to change a series.

use clap::Args;
use numbering::{Expression, Inputs, Notation, SERIES_FORMS, SeriesDefinition, read_written};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::web::body::BODY_FORMS;
use crate::web::problem::Problem;

/// A definition to save: the fields of a series file, with the reason and a request. If an
/// `expression` replaces template and serials, the definition has none until
/// [`ConfigRequest::define`] has read it.
#[derive(Clone, Debug)]
pub(crate) struct ConfigRequest {
    /// The series.
    definition: SeriesDefinition,
    /// Whether it was read from the ledger: then it keeps its meaning from there.
    is_stored: bool,
    /// The rule expression that replaces template and serials, as JSON.
    expression: Option<String>,
    /// Why.
    pub(crate) reason: String,
    /// The request to preview; without it, one is made up.
    pub(crate) example: Option<ExampleRequest>,
}

/// The fields next to those of a series.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OrderBeside {
    reason: String,
    example: Option<ExampleRequest>,
}

impl<'de> Deserialize<'de> for ConfigRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Map::deserialize(deserializer)?;
        let mut own = |name: &str| fields.remove(name).filter(|value| !value.is_null());
        let beside = ["reason", "example"].map(|name| (name.to_owned(), own(name)));
        let expression = own("expression");
        let beside = beside.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let OrderBeside { reason, example } = read_written(&Value::Object(beside.collect()))
            .map_err(|misfit| D::Error::custom(misfit.say(BODY_FORMS, Notation::Json)))?;
        // A series file holds an expression as a string, a program as the array that it is.
        let expression = expression.map(|expression| match expression {
            Value::String(text) => text,
            array => array.to_string(),
        });
        if expression.is_some() {
            fields.entry("template").or_insert_with(|| Value::String(String::new()));
        }
        let definition = read_written(&Value::Object(fields))
            .map_err(|misfit| D::Error::custom(misfit.say(SERIES_FORMS, Notation::Json)))?;
        Ok(ConfigRequest { definition, is_stored: false, expression, reason, example })
    }
}

impl ConfigRequest {
    /// The order of an existing definition, for a reason.
    pub(crate) fn of(definition: SeriesDefinition, reason: String) -> Self {
        ConfigRequest { definition, is_stored: true, expression: None, reason, example: None }
    }

    /// The definition, from its rule expression if it has one.
    pub(crate) fn define(&self) -> Result<SeriesDefinition, Problem> {
        let definition = self.definition.clone();
        if self.is_stored {
            return Ok(definition);
        }
        let definition = definition.says_its_dates();
        let Some(expression) = &self.expression else { return Ok(definition) };
        let says = [
            ("template", !definition.template.is_empty()),
            ("serials", !definition.serials.is_empty()),
        ];
        if let Some((field, _)) = says.iter().find(|(_, beside)| *beside) {
            let reason = format!("`expression` says the {field}; send one of the two");
            return Err(Problem::field(*field, reason));
        }
        let said = Expression::parse(expression).and_then(|said| said.narrow(definition));
        said.map_err(|error| Problem::field(error.path(), error.to_string()))
    }
}

/// A request to preview a series with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExampleRequest {
    /// Document type; the first that the series serves without one.
    #[serde(rename = "type")]
    type_code: Option<String>,
    /// Project.
    project: Option<String>,
    /// Document date; now without one.
    date: Option<String>,
    /// Phase, if a counter restarts with each.
    phase: Option<String>,
    /// Values of the series' variables.
    #[serde(default)]
    context: std::collections::BTreeMap<String, String>,
}

impl ExampleRequest {
    /// The request, the rest of it from a sample.
    pub(crate) fn inputs(self, sample: Inputs) -> Inputs {
        Inputs {
            type_code: self.type_code.unwrap_or(sample.type_code),
            project: self.project.or(sample.project),
            date: self.date,
            phase: self.phase.or(sample.phase),
            context: self.context,
            ..Inputs::default()
        }
    }
}

/// To which version a series goes back, and why.
#[derive(Clone, Debug, Args, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The version whose definition is saved again.
    #[arg(long = "to", value_name = "N", help = "The version whose definition is saved again")]
    pub version: u32,
    /// Why.
    #[arg(long, help = "Why, for the history of the series")]
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_body_is_a_definition_with_a_reason() {
        let body = json!({
            "code": "S", "name": "n", "serves": { "types": ["T"] }, "template": "{SEQ:3}",
            "serials": [{}], "reason": "new", "example": { "context": { "A": "1" } },
        });
        let order = ConfigRequest::deserialize(body.clone()).expect("order");
        assert_eq!((&*order.definition.code, &*order.reason), ("S", "new"));
        let written = order.definition.clone().says_its_dates();
        assert_eq!(order.define().ok(), Some(written));
        let stored = ConfigRequest::of(order.definition.clone(), "back".into());
        assert_eq!(stored.define().ok().as_ref(), Some(&order.definition));
        assert_eq!(order.example.expect("example").context["A"], "1");
        for (field, value, says) in [
            ("reason", Value::Null, "`reason` is missing; write \"reason\": "),
            ("template", Value::Null, "`template` must be text in quotes, not null"),
            ("tempalte", json!("x"), "unknown field `tempalte`; did you mean `template`?"),
            ("once_per_document", json!("ever"), "`once_per_document` must be true or false"),
        ] {
            let mut wrong = body.clone();
            wrong[field] = value;
            let error = ConfigRequest::deserialize(wrong).expect_err(field).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn an_expression_stands_for_template_and_serials_as_an_array_or_as_text() {
        let elements = json!([
            { "key": "const", "label": "常量", "value": "HT" },
            { "key": "variable", "label": "变量", "value": "单位" },
            { "key": "serial", "label": "流水号", "value": "1(6)" },
        ]);
        let body = |expression: Value| {
            json!({
                "code": "S", "name": "n", "serves": { "types": ["T"] }, "reason": "new",
                "expression": expression, "variables": { "单位": { "alphabet": "A-Z" } },
            })
        };
        let define = |body: Value| ConfigRequest::deserialize(body).expect("order").define();
        for expression in [elements.clone(), Value::String(elements.to_string())] {
            let definition = define(body(expression)).expect("definition");
            assert_eq!(definition.template, "HT{单位}{SEQ:6}");
            assert_eq!(definition.serials[0].counter, ["单位"]);
            let variable = &definition.variables["单位"];
            assert_eq!((variable.alphabet.as_deref(), variable.required), (Some("A-Z"), true));
        }
        let mut wrong = elements.clone();
        wrong[2]["value"] = json!("x");
        let refused = |body: Value| define(body).expect_err("refused").to_string();
        let told = refused(body(wrong));
        assert!(told.contains("expression[2].value") && told.contains("1(6)"), "{told}");
        assert!(refused(body(json!({}))).contains("write an array of 1 to"));
        let mut both = body(elements);
        both["template"] = json!("{SEQ:3}");
        assert!(refused(both).contains("`expression` says the template"));
    }
}

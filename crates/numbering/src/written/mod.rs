//! Reads what people have written: settings, series files, bodies and queries of requests. An error
//! names the place of what cannot be read and how it is written there, never in the words of the
//! program's own types.
//!
//! A struct defines the names of its fields; a [`Form`] defines how each is written. Tests walk
//! through all fields of all types read here, so that none is without one.

mod reading;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::excerpt;
use super::nearest::{Head, meant};
use reading::At;

/// How a field is written: `Struct.field`, or the field alone if it is the same in all structs;
/// what it is, or nothing if its type says it; an example, as TOML writes it.
pub type Form = (&'static str, &'static str, &'static str);

/// The medium of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// A file.
    Toml,
    /// A body.
    Json,
    /// A query of a URL.
    Query,
}

/// What is expected, or found, to have fields, and to have items.
const TABLE: &str = "a table";
const LIST: &str = "a list";

/// A step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field, and the struct that has it.
    Field(&'static str, String),
    /// An entry whose name people choose.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

/// A value that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The way to it, its last step first.
    steps: Vec<Step>,
    flaw: Flaw,
}

/// What is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flaw {
    /// It is of another kind.
    Kind { found: String, wanted: String },
    /// A struct lacks a field.
    Missing { of: &'static str, field: &'static str },
    /// A struct has no such field.
    Unknown { field: String, known: &'static [&'static str] },
    /// What its own rule reports.
    Said(String),
}

/// Reads a value.
///
/// # Errors
/// The first thing in it that cannot be read.
pub fn read_written<T: DeserializeOwned>(value: &Value) -> Result<T, Misfit> {
    T::deserialize(At(value))
}

/// A TOML value as the JSON one: a bare date is its text.
#[must_use]
pub fn json_of_toml(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => {
            let read = serde_json::Number::from_f64(number);
            read.map_or_else(|| Value::String(number.to_string()), Value::Number)
        }
        toml::Value::Boolean(is) => Value::Bool(is),
        toml::Value::Datetime(date) => Value::String(date.to_string()),
        toml::Value::Array(items) => items.into_iter().map(json_of_toml).collect(),
        toml::Value::Table(table) => {
            table.into_iter().map(|(name, value)| (name, json_of_toml(value))).collect()
        }
    }
}

impl Misfit {
    fn of(flaw: Flaw) -> Self {
        Misfit { steps: Vec::new(), flaw }
    }

    fn below(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The way to the error, from the whole on; not to a field that is missing or unknown, but to
    /// what lacks it.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().rev()
    }

    /// The unknown field, if that is the error.
    #[must_use]
    pub fn unknown_field(&self) -> Option<&str> {
        match &self.flaw {
            Flaw::Unknown { field, .. } => Some(field),
            _ => None,
        }
    }

    /// Whether the only error is that something is missing.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.flaw, Flaw::Missing { .. })
    }

    /// Its place, such as `serials[0].step`; empty for the whole.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Field(_, field) | Step::Key(field) => join(&mut path, field),
                Step::Item(index) => path += &format!("[{index}]"),
            }
        }
        match &self.flaw {
            Flaw::Missing { field, .. } => join(&mut path, field),
            Flaw::Unknown { field, .. } => join(&mut path, field),
            Flaw::Kind { .. } | Flaw::Said(_) => {}
        }
        path
    }

    /// What is wrong, and how it is written.
    #[must_use]
    pub fn reason(&self, forms: &[Form], notation: Notation) -> String {
        let (of, name) = self.owner();
        let form = form_of(forms, of, name);
        let instead = form.map(|(.., example)| written(name, example, notation));
        self.told(form.map_or("", |(_, is, _)| is), &instead.unwrap_or_default(), notation)
    }

    /// The same, if others describe the field and the correct form; both may be empty.
    #[must_use]
    pub fn told(&self, is: &str, instead: &str, notation: Notation) -> String {
        let write = |how: &str| match instead {
            "" => String::new(),
            _ => format!("; write {how}{instead}"),
        };
        match &self.flaw {
            Flaw::Kind { found, wanted } => {
                let is_its_own = matches!(self.steps.first(), Some(Step::Field(..)));
                let is = match is {
                    _ if !is_its_own => in_words(wanted, notation),
                    "" => in_words(wanted, notation),
                    said => said.into(),
                };
                let one = in_words(TABLE, notation).replacen('a', "one", 1);
                let remedy = match (&**wanted, &**found) {
                    (LIST, one) if ![TABLE, "null"].contains(&one) => {
                        format!("; write a list: [{one}]")
                    }
                    (TABLE, LIST) => {
                        write(&format!("{one} without the brackets of a list around it: "))
                    }
                    _ => write(""),
                };
                format!("must be {is}, not {}{remedy}", in_words(found, notation))
            }
            Flaw::Missing { .. } => format!("is missing{}", write("")),
            Flaw::Unknown { field, known } => {
                let field = excerpt(field);
                let heads: Vec<Head> = known.iter().map(|name| Head::of(name)).collect();
                match meant(&heads, &field).map(|index| known[index]) {
                    Some(name) => format!("unknown field `{field}`; did you mean `{name}`?"),
                    None => format!("unknown field `{field}`; known are {}", known.join(", ")),
                }
            }
            Flaw::Said(reason) => reason.clone(),
        }
    }

    /// The same, with its place before it.
    #[must_use]
    pub fn say(&self, forms: &[Form], notation: Notation) -> String {
        let (path, reason) = (self.path(), self.reason(forms, notation));
        match &self.flaw {
            Flaw::Unknown { .. } if self.steps.is_empty() => reason,
            Flaw::Kind { .. } | Flaw::Missing { .. } if !path.is_empty() => {
                format!("`{path}` {reason}")
            }
            // Some rules name their field themselves.
            _ if path.is_empty() || reason.starts_with('`') => reason,
            _ => format!("`{path}`: {reason}"),
        }
    }

    /// The field that is, or holds, the error, and its struct; `None` for the whole.
    #[must_use]
    pub fn owner(&self) -> (&str, &str) {
        match &self.flaw {
            Flaw::Missing { of, field } => (*of, *field),
            _ => match self.steps.iter().find(|step| matches!(step, Step::Field(..))) {
                Some(Step::Field(of, field)) => (*of, field.as_str()),
                _ => ("", ""),
            },
        }
    }
}

/// The form of a field.
#[must_use]
pub fn form_of(forms: &[Form], of: &str, field: &str) -> Option<Form> {
    let named = |name: &str| forms.iter().copied().find(|(known, ..)| *known == name);
    named(&format!("{of}.{field}")).or_else(|| named(field))
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

/// A field with its example.
fn written(name: &str, example: &str, notation: Notation) -> String {
    match notation {
        // The head of a section.
        _ if example.starts_with("[[") => example.into(),
        Notation::Toml => format!("{name} = {example}"),
        Notation::Json => format!("\"{name}\": {}", as_json(example)),
        Notation::Query => format!("{name}={}", example.trim_matches('"')),
    }
}

/// An example as JSON writes it: its names in quotation marks, and a colon after each.
fn as_json(example: &str) -> String {
    let mut json = String::new();
    let mut parts = example.split(" = ").peekable();
    while let Some(part) = parts.next() {
        match (parts.peek(), part.rfind(' ')) {
            (Some(_), Some(at)) => json += &format!("{} \"{}\": ", &part[..at], &part[at + 1..]),
            _ => json += part,
        }
    }
    json
}

/// A kind of value in words.
fn in_words(kind: &str, notation: Notation) -> String {
    match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on".into(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".into(),
        "a string" | "path string" => "text in quotes".into(),
        "a boolean" => "true or false".into(),
        TABLE if notation != Notation::Toml => "an object".into(),
        other => other.into(),
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.say(&[], Notation::Json))
    }
}

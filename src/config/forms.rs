//! The form of each setting: the message about one that holds something else. The example is the
//! setting's default, or is next to it in its declaration.

use numbering::{Form, Misfit, Notation, Step, form_of};
use serde_json::Value;

use super::external::WrittenSource;
use super::layer::Layer;
use super::shared::WrittenTable;

/// Of lists and tables whose entries are no section.
const FORMS: &[Form] = &[
    ("Layer.external", "sources by name", "[external.NAME], and its settings below it"),
    ("WrittenToken.name", "", "\"billing\""),
    ("WrittenToken.sha256", "64 hexadecimal digits in quotes", "\"9f86d081…\""),
    ("WrittenToken.roles", "a list of roles", "[\"caller\"]"),
    ("WrittenToken.series", "a list of codes", "[\"INV\"]"),
    ("WrittenToken.projects", "a list of projects", "[\"P1\"]"),
    ("WrittenToken.expires", "a date in quotes", "\"2027-12-31\""),
    ("WrittenToken.count_max", "", "1000"),
    ("WrittenToken.requests_per_minute", "", "600"),
    ("WrittenToken.speaks_for_people", "", "true"),
];

/// Settings whose default shows nothing, or that are more than their type shows.
fn form(of: &str, name: &str) -> Option<Form> {
    form_of(&[FORMS, &Layer::forms()].concat(), of, name)
}

/// The setting of an error; a section within a section is one.
pub(super) fn setting_of(misfit: &Misfit) -> String {
    let path = misfit.path();
    let names = path.split(['.', '[']).take(2).collect::<Vec<_>>().join(".");
    if names.is_empty() { "settings".into() } else { names }
}

/// The error of a setting, and its form.
pub(super) fn reason_of(setting: &str, misfit: &Misfit) -> String {
    let (of, name) = misfit.owner();
    let is = form(of, name).map_or("", |(_, is, _)| is);
    let example = example_of(of, name, misfit).unwrap_or_default();
    let instead = match example.as_str() {
        "" => String::new(),
        head if is_head(head) => head.into(),
        example => format!("{name} = {example}"),
    };
    let (path, reason) = (misfit.path(), misfit.told(is, &instead, Notation::Toml));
    if path == setting || path.is_empty() { reason } else { format!("`{path}` {reason}") }
}

/// Whether an example is the head of a section.
fn is_head(example: &str) -> bool {
    let name = example.trim_start_matches('[');
    name.len() < example.len() && name.starts_with(|sign: char| sign.is_ascii_lowercase())
}

/// An example of a field: as a form has it, or else its default.
fn example_of(of: &str, name: &str, misfit: &Misfit) -> Option<String> {
    if let Some((.., example)) = form(of, name) {
        return Some(example.to_owned());
    }
    let names = misfit.steps().map_while(|step| match step {
        Step::Field(_, name) => Some(name.as_str()),
        Step::Key(_) => Some(SOURCE),
        Step::Item(_) => None,
    });
    default_of(names)
}

/// The source, or the table, that represents all of them.
const SOURCE: &str = "x";

/// A default as TOML writes it; the head of a section for a section.
fn default_of<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let external = [(SOURCE.to_owned(), WrittenSource::default())].into();
    let reference = [(SOURCE.to_owned(), WrittenTable::default())].into();
    let all = Layer { external, reference, ..Layer::default() };
    let mut default = serde_json::to_value(all).ok()?;
    let mut path = Vec::new();
    for name in names {
        default = default.get_mut(name)?.take();
        path.push(name);
    }
    match default {
        Value::Null => None,
        Value::Object(_) => Some(format!("[{}], and its settings below it", path.join("."))),
        // Texts, numbers and lists of texts are written in the same way in both.
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::load;
    use super::*;
    use crate::shape::every_field_is_told;

    #[test]
    fn every_setting_says_how_it_is_written() {
        let example = |of: &str, name: &str, path: &str| {
            let written = form(of, name).map(|(.., example)| example.to_owned());
            written.or_else(|| default_of(path.split('.')))
        };
        let say = |misfit: &Misfit| reason_of("", misfit);
        let settings = every_field_is_told::<Layer>(example, say);
        assert!(settings > 80, "only {settings} fields were looked at");
    }

    #[test]
    fn a_setting_of_another_kind_is_told_as_it_is_written() {
        for (text, says) in [
            (
                "[http]\nlisten = 8080\n",
                "must be an IP address and a port, such as \"127.0.0.1:8080\", not 8080; \
                 write listen = \"127.0.0.1:8080\"",
            ),
            (
                "[http]\nhosts = \"a.example\"\n",
                "must be a list of names, not \"a.example\"; write a list: [\"a.example\"]",
            ),
            (
                "[node]\nttl = 3\n",
                "must be a duration with its unit, such as \"250ms\" or \"24h\", not 3; write \
                 ttl = \"3s\"",
            ),
            (
                "partitions = \"many\"\n",
                "must be a whole number from 0 on, not \"many\"; write partitions = 8",
            ),
            ("http = 1\n", "must be a table, not 1; write [http], and its settings below it"),
            ("external = 1\n", "must be sources by name, not 1; write [external.NAME]"),
            (
                "[external.erp]\nattempts_max = \"3\"\n",
                "`external.erp.attempts_max` must be a whole number from 0 on, not \"3\"; \
                 write attempts_max = 3",
            ),
            (
                "[[auth.tokens]]\nname = 7\n",
                "`auth.tokens[0].name` must be text in quotes, not 7; write name = \"billing\"",
            ),
            (
                "[[auth.tokens]]\nname = \"a\"\n",
                "`auth.tokens[0].sha256` is missing; write sha256 = ",
            ),
            (
                "[auth.tokens]\nname = \"a\"\n",
                "must be a list, not a table; write [[auth.tokens]], in two brackets",
            ),
            (
                "[auth]\nmode = \"maybe\"\n",
                "must be one of `auto`, `on`, `off`, not \"maybe\"; write mode = \"auto\"",
            ),
            (
                "[redis]\nallow_plaintext = \"yes\"\n",
                "must be true or false, not \"yes\"; write allow_plaintext = false",
            ),
            ("[http]\nlistn = 1\n", "unknown field `listn`; did you mean `listen`?"),
        ] {
            let refusal = load(text, &[]).err().unwrap_or_else(|| panic!("{text} is taken"));
            assert!(refusal.contains(says), "{text}: {refusal}");
        }
        // A bare date of TOML is that date.
        let token = format!(
            "[[auth.tokens]]\nname = \"a\"\nsha256 = \"{}\"\nexpires = 2099-12-31\n",
            "0f".repeat(32)
        );
        assert!(load(&token, &[]).is_ok());
    }
}

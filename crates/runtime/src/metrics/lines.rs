//! Lines of Prometheus's text format, for metrics whose labels come and go: a recorder never
//! forgets one.

use std::fmt::Write as _;

use super::definitions::Definition;

/// Begins a metric: what it is, and of which kind.
pub(super) fn head(text: &mut String, definition: &Definition) {
    let Definition { name, kind, help, .. } = definition;
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
}

/// A value of it, under these values of its labels.
pub(super) fn line(text: &mut String, definition: &Definition, values: &[&str], value: f64) {
    let labels = definition.labels.iter().zip(values);
    let labels: Vec<String> =
        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let value = if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() };
    let _ = writeln!(text, "{}{{{}}} {value}", definition.name, labels.join(","));
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

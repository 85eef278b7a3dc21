//! Lines of Prometheus's text format, for metrics whose labels come and go: a recorder never
//! forgets a label.

use std::fmt::Write as _;

use super::definitions::Definition;

/// Begins a metric: its help text and kind.
pub(super) fn head(text: &mut String, definition: &Definition) {
    let Definition { name, kind, help, .. } = definition;
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.word());
}

/// One value, under these values of the labels.
pub(super) fn line(text: &mut String, definition: &Definition, values: &[&str], value: f64) {
    let labels = definition.labels.iter().zip(values);
    let labels: Vec<String> =
        labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    let value = if value.is_infinite() { "+Inf".to_owned() } else { value.to_string() };
    let _ = writeln!(text, "{}{{{}}} {value}", definition.name, labels.join(","));
}

/// A label's value, escaped as the format requires.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

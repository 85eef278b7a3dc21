//! From a series back to an expression. The result is defined again and compared, so that an
//! expression never represents other numbers or other counters than the series it was made of.

use std::collections::BTreeMap;

use super::super::pattern::DateField;
use super::super::serial_format::SerialFormat;
use super::super::template::Part;
use super::super::{SerialDefinition, Series, Style, VariableDefinition};
use super::{Element, Expression, Inexpressible, Key};

/// The expression of a series.
pub(super) fn describe(series: &Series) -> Result<Expression, Inexpressible> {
    let mut elements: Vec<Element> = Vec::new();
    for part in &series.parts {
        let element = element(series, part)?;
        match elements.last_mut() {
            // `yyyy` and `MM` are one pattern; a letter must not be followed by the same letter.
            Some(last) if continues(last, &element) => last.value.push_str(&element.value),
            _ => elements.push(element),
        }
    }
    let hidden_dimensions = hidden_dimensions(series);
    let expression = Expression { elements, hidden_dimensions, variables: narrowed(series) };
    let again = expression.define(series.definition.clone());
    // An expression counts by the finest period that it shows: some have no such reset.
    let again = again.map_err(|error| cannot("serials[0].reset", &error.to_string()))?;
    let again =
        Series::compile(again).map_err(|error| cannot(error.field(), &error.to_string()))?;
    compare_variables(series, &again)?;
    compare_serials(series, &again)?;
    if series.parts != again.parts {
        return Err(cannot("serials", "serials that are listed in another order than shown"));
    }
    Ok(expression)
}

/// What the first serial counts by and the number does not show.
fn hidden_dimensions(series: &Series) -> Vec<String> {
    let is_shown =
        |name: &String| series.variables.iter().any(|other| other.shown && other.name == *name);
    let counter = series.definition.serials.first().map_or(&[][..], |serial| &serial.counter);
    counter.iter().filter(|name| !is_shown(name)).cloned().collect()
}

/// The variables that say more than an element does. A label is in the element.
fn narrowed(series: &Series) -> BTreeMap<String, VariableDefinition> {
    let declared = series.variables.iter().zip(&series.definition.variables);
    let beside = declared.filter_map(|(variable, (name, declared))| {
        let mut said = declared.clone();
        if variable.shown {
            said.label = None;
            // For a shown variable, an element says it.
            said.required = false;
        }
        (!variable.shown || said != VariableDefinition::default()).then(|| (name.clone(), said))
    });
    beside.collect()
}

/// What no expression can hold.
fn cannot(field: &str, what: &str) -> Inexpressible {
    Inexpressible { field: field.into(), what: what.into() }
}

/// One part of the number as an element.
fn element(series: &Series, part: &Part) -> Result<Element, Inexpressible> {
    match part {
        Part::Literal(text) => Ok(Element::new(Key::Const, text.as_str())),
        Part::Date(DateField::FiscalYear(..) | DateField::FiscalStart(..)) => {
            Err(cannot("template", "the token {FY}"))
        }
        Part::Date(field) => match field.letters() {
            Some(letters) => Ok(Element::new(Key::Time, letters)),
            None => Err(cannot("template", "years of another era than A.D.")),
        },
        Part::Variable(index) => {
            let name = &series.variables[*index].name;
            let mut element = Element::new(Key::Variable, name.as_str());
            let declared = series.definition.variables.get(name);
            if let Some(label) = declared.and_then(|declared| declared.label.as_ref()) {
                element.label.clone_from(label);
            }
            Ok(element)
        }
        Part::Serial {
            serial,
            format: SerialFormat { style: Style::Digits, width, widens: false },
        } => {
            let start = series.serials[*serial].start;
            Ok(Element::new(Key::Serial, format!("{start}({width})")))
        }
        Part::Serial { .. } => {
            Err(cannot("template", "a serial without a width, one that widens, or one in letters"))
        }
        Part::Phase => Err(cannot("template", "the token {PHASE}")),
        Part::Snowflake => Err(cannot("template", "the token {SNOWFLAKE}")),
        Part::Check(_) => Err(cannot("template", "the token {CHECK}")),
        Part::Project => Err(cannot("template", "the token {PROJECT}")),
        Part::Type(name) => Err(cannot("template", &format!("the token {{{name}}}"))),
    }
}

/// Whether an element is the rest of the pattern before it.
fn continues(last: &Element, next: &Element) -> bool {
    let is_time = last.key == Key::Time && next.key == Key::Time;
    is_time && last.value.chars().next_back() != next.value.chars().next()
}

/// The width of a variable is outside the elements, never in a token.
fn compare_variables(series: &Series, again: &Series) -> Result<(), Inexpressible> {
    for variable in &series.variables {
        let same = again.variables.iter().find(|other| other.name == variable.name);
        if same.map(|other| other.rule.widths()) != Some(variable.rule.widths()) {
            let field = format!("variables.{}", variable.name);
            return Err(cannot(&field, "the width of a token; declare it as the variable's"));
        }
    }
    Ok(())
}

/// A serial of an expression counts by what is shown, then by what is not, in steps of 1, up to
/// what its digits hold.
fn compare_serials(series: &Series, again: &Series) -> Result<(), Inexpressible> {
    let pairs = series.definition.serials.iter().zip(&again.definition.serials);
    for (index, (given, said)) in pairs.enumerate() {
        let field = |name: &str| format!("serials[{index}].{name}");
        if given.counter != said.counter {
            let said = said.counter.join(", ");
            let said = if said.is_empty() { "nothing".into() } else { said };
            let what = format!(
                "a counter by less than the variables shown, in another order, or other ones than \
                 those of the first serial: {said}"
            );
            return Err(cannot(&field("counter"), &what));
        }
        if given.reset != said.reset {
            let what = "a reset by anything but the finest part of the date that is shown";
            return Err(cannot(&field("reset"), what));
        }
        if given.name != said.name {
            let what = format!("a serial of another name than {}: its counters bear it", said.name);
            return Err(cannot(&field("name"), &what));
        }
        let rest = SerialDefinition { max: said.max, ..given.clone() };
        let compiled = |of: &Series| of.serials[index].max;
        if rest != *said || compiled(series) != compiled(again) {
            let what = "anything of a serial but its start and its digits";
            return Err(cannot(&format!("serials[{index}]"), what));
        }
    }
    Ok(())
}

//! From a series back to an expression. What comes out is defined again and compared, so that an
//! expression never stands for other numbers or other counters than the series it was made of.

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
            // `yyyy` and `MM` are one pattern; a letter must not run on into the same letter.
            Some(last) if continues(last, &element) => last.value.push_str(&element.value),
            _ => elements.push(element),
        }
    }
    let expression = Expression { elements };
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

/// A variable of an expression takes any value, must be given, and is shown.
fn compare_variables(series: &Series, again: &Series) -> Result<(), Inexpressible> {
    let plain = VariableDefinition::default();
    for (variable, (name, declared)) in series.variables.iter().zip(&series.definition.variables) {
        let field = format!("variables.{name}");
        if !variable.shown {
            return Err(cannot(&field, "a variable that the number does not show"));
        }
        let unlabelled = VariableDefinition { required: false, label: None, ..declared.clone() };
        let same = again.variables.iter().find(|other| other.name == *name);
        let widths = same.map(|other| other.rule.widths());
        if unlabelled != plain || widths != Some(variable.rule.widths()) {
            return Err(cannot(&field, "a variable's default, values, alphabet or width"));
        }
    }
    Ok(())
}

/// A serial of an expression counts by what is shown, in steps of 1, up to what its digits hold.
fn compare_serials(series: &Series, again: &Series) -> Result<(), Inexpressible> {
    let pairs = series.definition.serials.iter().zip(&again.definition.serials);
    for (index, (given, said)) in pairs.enumerate() {
        let field = |name: &str| format!("serials[{index}].{name}");
        if given.counter != said.counter {
            let shown = said.counter.join(", ");
            let shown = if shown.is_empty() { "nothing".into() } else { shown };
            let what = format!("a counter by anything but the variables shown, in order: {shown}");
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

//! A concrete request for a number: made from a reading of its text, and completed by whatever the
//! text leaves open.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::DateTime;

use super::super::draft::ABSENT;
use super::super::series::Dimension;
use super::super::served::{ORIGINATORS, SUB_TYPE, id_names};
use super::super::{Inputs, ReferenceData, Series, Snowflake};
use super::ambiguity::CollidingRequest;
use super::charset::CharSet;
use super::grid::Grid;
use super::language::{Shows, serial_value, shows};
use super::moments;

/// The name of the phase among the values that are known. No variable has it.
pub(super) const PHASE: &str = "phase";

/// A type that nobody names, where a default takes whatever its table has.
pub(super) const ANY_TYPE: &str = "TYPE-1";

/// A project that nobody names.
pub(super) const ANY_PROJECT: &str = "PROJECT-1";

/// A request on its way to an example.
#[derive(Clone, Debug)]
pub(super) struct Asked<'s> {
    pub(super) series: &'s Series,
    /// Values of dimensions and variables, by name: `project`, `type`, `phase` or the variable's.
    pub(super) known: BTreeMap<String, String>,
    /// Codes that their rows had before, by the same names: what `serves` lists, where a number
    /// shows another code of the row.
    pub(super) before: BTreeMap<String, String>,
    /// Whether it names rows by their ids, as far as the choice of a series looks at them.
    pub(super) by_id: bool,
    /// Whether it leaves the project to the memberships of its originator.
    pub(super) derives: bool,
    /// The document's civil time.
    pub(super) at: DateTime,
    /// One value per serial.
    pub(super) values: Vec<u64>,
    /// The id that is drawn, where the number shows one.
    pub(super) snowflake: Option<Snowflake>,
    /// The values that each can have.
    pub(super) grids: &'s [Grid],
}

/// The name of a dimension, as counter keys hold it.
pub(super) fn name_of(series: &Series, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Project => "project",
        Dimension::Type => "type",
        Dimension::Variable(index) => &series.variables[index].name,
    }
}

/// The names of the dimensions of a series' uniqueness scope, in their order.
pub(super) fn scope_names(series: &Series) -> Vec<&str> {
    let mut names: Vec<&str> =
        series.scope.iter().map(|dimension| name_of(series, *dimension)).collect();
    // Whoever lists dimensions gives them no order: the same ones are the same scope.
    names.sort_unstable();
    names
}

/// Whether a dimension can have more than one value. Says so in doubt.
pub(super) fn varies(series: &Series, dimension: Dimension) -> bool {
    match dimension {
        Dimension::Type => series.served.any_type || listed(series, dimension).len() > 1,
        Dimension::Project => listed(series, dimension).len() != 1,
        Dimension::Variable(index) => {
            let rule = &series.variables[index].rule;
            let ((least, most), (allowed, excluded)) = (rule.widths(), rule.ranges());
            let any = CharSet::without(allowed, excluded);
            least < most || any.common(&any).len() > 1 || values(series, dimension).len() > 1
        }
    }
}

/// The types or the projects that `serves` lists, one code of each row.
fn listed(series: &Series, dimension: Dimension) -> Vec<String> {
    let serves = &series.definition.serves;
    let codes = if dimension == Dimension::Type { &serves.types } else { &serves.projects };
    let Some(table) = series.table_of(dimension) else { return codes.clone() };
    let mut rows = BTreeSet::new();
    // Codes that no row has yet may become those of several.
    let is_new = |code: &&String| {
        let row = series.reference.by_code(table, code);
        row.is_none_or(|row| rows.insert(row.id.as_str()))
    };
    codes.iter().filter(is_new).cloned().collect()
}

/// Values that a dimension can have: two or more, if that is easily done.
pub(super) fn values(series: &Series, dimension: Dimension) -> Vec<String> {
    match dimension {
        Dimension::Type if series.served.any_type => {
            listed(series, dimension).into_iter().chain([ANY_TYPE.into()]).collect()
        }
        Dimension::Project if series.definition.serves.projects.is_empty() => {
            vec![ANY_PROJECT.into(), "PROJECT-2".into()]
        }
        Dimension::Type | Dimension::Project => listed(series, dimension),
        Dimension::Variable(index) => {
            let variable = &series.variables[index];
            let mut values: Vec<String> = variable.default.iter().cloned().collect();
            let (least, most) = variable.rule.widths();
            let (allowed, excluded) = variable.rule.ranges();
            let any = CharSet::without(allowed, excluded).without_blank().at_the_beginning();
            let characters = any.common(&any);
            let of = |width: usize| characters.iter().map(move |c| c.to_string().repeat(width));
            values.extend(of(least).take(2));
            values.extend(of(most.min(least + 1)).take(1));
            if !variable.required && variable.default.is_none() && !variable.shown {
                values.push(ABSENT.into());
            }
            values.sort();
            values.dedup();
            values
        }
    }
}

impl<'s> Asked<'s> {
    /// The request that one reading of a text shows; `None` where its parts contradict each other.
    pub(super) fn read(
        series: &'s Series,
        grids: &'s [Grid],
        text: &[char],
        parts: &[usize],
    ) -> Option<Self> {
        let mut shown: BTreeMap<usize, String> = BTreeMap::new();
        for (character, part) in text.iter().zip(parts) {
            shown.entry(*part).or_default().push(*character);
        }
        let mut asked = Asked::first(series, grids, moments::first());
        let Asked { known, values, snowflake, .. } = &mut asked;
        let mut fields = Vec::new();
        for (part, text) in shown {
            match shows(&series.parts[part]) {
                Shows::Id => {
                    *snowflake = Some(Snowflake::read(&text.chars().collect::<Vec<_>>())?);
                }
                Shows::Nothing => {}
                Shows::Serial(serial) => values[serial] = serial_value(&series.parts[part], &text)?,
                Shows::Phase => {
                    let other = known.insert(PHASE.to_owned(), text.clone());
                    if other.is_some_and(|other| other != text) {
                        return None;
                    }
                }
                Shows::Date(field) => {
                    let value: i64 = text.parse().ok()?;
                    if fields.iter().any(|(known, other)| *known == field && *other != value) {
                        return None;
                    }
                    fields.push((field, value));
                }
                Shows::Dimension(dimension) => {
                    let name = name_of(series, dimension).to_owned();
                    if known.get(&name).is_some_and(|other| *other != text) {
                        return None;
                    }
                    known.insert(name, text);
                }
            }
        }
        Some(Asked { at: moments::find(&fields)?, ..asked })
    }

    /// A request of a series with its first values and nothing known yet.
    pub(super) fn first(series: &'s Series, grids: &'s [Grid], at: DateTime) -> Self {
        let values = series.serials.iter().map(|serial| serial.start).collect();
        let (known, before) = Default::default();
        let (by_id, derives, snowflake) = (false, false, None);
        Asked { series, known, before, by_id, derives, at, values, snowflake, grids }
    }

    /// Whether the choice of a series looks at a value: then the request may name it by its id.
    pub(super) fn is_asked_by_id(&self, name: &str) -> bool {
        ["type", "project", SUB_TYPE].into_iter().chain(ORIGINATORS).any(|other| other == name)
    }

    /// Takes a value that `serves` lists: what the request shows, or a code that its row had
    /// before. False where what it shows cannot be of that row.
    pub(super) fn takes(&mut self, name: &str, listed: &str, tabled: bool) -> bool {
        match self.known.get(name) {
            None => {
                let other = self.other_code(name, listed).filter(|_| tabled);
                if other.is_some() {
                    self.before.insert(name.to_owned(), listed.to_owned());
                }
                self.known.insert(name.to_owned(), other.unwrap_or_else(|| listed.to_owned()));
            }
            Some(shown) if shown == listed => {}
            Some(_) if tabled => {
                self.before.insert(name.to_owned(), listed.to_owned());
            }
            Some(_) => return false,
        }
        true
    }

    /// Takes a value, or another code of its row, where none is known yet.
    fn is_of(&mut self, name: &str, value: &str) {
        if !self.known.contains_key(name) {
            let other = self.other_code(name, value);
            self.known.insert(name.to_owned(), other.unwrap_or_else(|| value.to_owned()));
        }
    }

    /// A code for the row of one that its variable does not take: one that the row has or had, or
    /// a new one.
    fn other_code(&self, name: &str, code: &str) -> Option<String> {
        let series = self.series;
        let index = series.variables.iter().position(|variable| variable.name == name)?;
        let variable = &series.variables[index];
        let table = variable.reference.as_deref()?;
        variable.rule.check(name, code).err()?;
        let row = |code: &str| series.reference.by_code(table, code).map(|row| row.id.as_str());
        let own = series.reference.codes_of(table, code).into_iter().rev();
        let made_up = values(series, Dimension::Variable(index)).into_iter().rev();
        let mut others = own.chain(made_up.filter(|value| value != ABSENT && row(value).is_none()));
        others.find(|value| variable.rule.check(name, value).is_ok())
    }

    /// Sees that types and projects are rows that the series lists, as far as it lists any; `turn`
    /// says which.
    pub(super) fn takes_listed(&mut self, turn: usize) {
        let Series { definition, served, .. } = self.series;
        let (serves, references) = (&definition.serves, &definition.references);
        let types = (!served.any_type).then_some(&serves.types);
        for (name, table, listed, codes) in [
            ("type", &references.type_code, types, &served.types),
            ("project", &references.project, Some(&serves.projects), &served.projects),
        ] {
            let (Some(_), Some(listed)) = (table, listed) else { continue };
            let is_listed = |shown: &String| codes.contains(shown);
            if self.known.get(name).is_some_and(is_listed) || !self.known.contains_key(name) {
                continue;
            }
            if let Some(code) = listed.get(turn % listed.len().max(1)) {
                self.takes(name, code, true);
            }
        }
    }

    /// The request as a caller would write it, with these tables.
    pub(super) fn inputs(&self, tables: &ReferenceData) -> Option<Inputs> {
        let of = |name: &str| self.known.get(name).cloned();
        let id = |name: &str, table: Option<&str>| {
            let row = tables.by_code(table?, self.known.get(name)?)?;
            (self.by_id && self.is_asked_by_id(name)).then(|| row.id.clone())
        };
        let mut context = BTreeMap::new();
        for variable in &self.series.variables {
            let Some(value) = of(&variable.name) else { continue };
            let id = id(&variable.name, variable.reference.as_deref());
            let by_id = id.and_then(|id| Some((id_names(&variable.name).next()?, id)));
            context.extend([by_id.unwrap_or_else(|| (variable.name.clone(), value))]);
        }
        let date = if self.series.time_needed {
            let at = self.at.to_zoned(self.series.zone.clone()).ok()?;
            // A moment that a change of clocks leaves out is none.
            let at = Some(at).filter(|at| at.datetime() == self.at)?;
            at.strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
        } else {
            self.at.date().to_string()
        };
        let references = &self.series.definition.references;
        let type_id = id("type", references.type_code.as_deref());
        let is_named = !self.derives;
        let project_id = id("project", references.project.as_deref()).filter(|_| is_named);
        Some(Inputs {
            type_code: of("type").filter(|_| type_id.is_none()).unwrap_or_default(),
            type_id,
            project: of("project").filter(|_| is_named && project_id.is_none()),
            project_id,
            date: Some(date),
            phase: of(PHASE),
            context,
            ..Inputs::default()
        })
    }

    /// The request as it is told.
    pub(super) fn told(&self, inputs: Inputs) -> Box<CollidingRequest> {
        let series = self.series.definition.code.clone();
        let serials = self.series.serials.iter().enumerate();
        let shown = serials.filter(|(index, _)| self.shows_serial(*index));
        let values = shown.map(|(index, serial)| (serial.name.clone(), self.values[index]));
        let (values, snowflake) = (values.collect(), self.snowflake);
        let project_of_member = self.known.get("project").filter(|_| self.derives).cloned();
        Box::new(CollidingRequest { series, inputs, project_of_member, values, snowflake })
    }

    /// Whether the number shows a serial: all but the one that counts ids.
    pub(super) fn shows_serial(&self, serial: usize) -> bool {
        self.series.parts.iter().any(|part| shows(part) == Shows::Serial(serial))
    }

    /// Whether each value is one that its counter reaches.
    pub(super) fn reached(&self) -> bool {
        let serials = self.series.serials.iter().zip(self.grids);
        serials
            .zip(&self.values)
            .all(|((serial, grid), value)| *value <= serial.max && grid.has(*value))
    }
}

/// What the texts leave open: dimensions of the scope become equal, others differ where they can.
pub(super) fn settle(a: &mut Asked<'_>, b: &mut Asked<'_>) {
    for name in scope_names(a.series) {
        let value = match (a.known.get(name), b.known.get(name)) {
            (Some(value), _) | (None, Some(value)) => value.clone(),
            (None, None) => {
                let of = |asked: &Asked<'_>| {
                    dimension_of(asked.series, name).map(|found| values(asked.series, found))
                };
                let (for_a, for_b) = (of(a).unwrap_or_default(), of(b).unwrap_or_default());
                let both = for_a.iter().find(|value| for_b.contains(value));
                both.or(for_a.first()).cloned().unwrap_or_default()
            }
        };
        a.is_of(name, &value);
        b.is_of(name, &value);
    }
    let none = BTreeMap::new();
    complete(a, &none);
    let taken = if a.series.definition.code == b.series.definition.code { &a.known } else { &none };
    complete(b, taken);
}

/// Gives whatever the request needs; other values than those taken where there are some.
fn complete(asked: &mut Asked<'_>, taken: &BTreeMap<String, String>) {
    let series = asked.series;
    if series.phase_needed && !asked.known.contains_key(PHASE) {
        let other = taken.get(PHASE).is_some_and(|phase| phase == "PHASE-1");
        let phase = if other { "PHASE-2" } else { "PHASE-1" };
        asked.known.insert(PHASE.to_owned(), phase.to_owned());
    }
    let variables = series.variables.iter().enumerate();
    let variables = variables.map(|(index, _)| Dimension::Variable(index));
    for dimension in [Dimension::Type, Dimension::Project].into_iter().chain(variables) {
        let counted = series.counters.iter().any(|rule| rule.dimensions.contains(&dimension));
        let needed = match dimension {
            Dimension::Type => true,
            Dimension::Project => {
                // An originator must be a member of some project, shown or not.
                series.project_needed
                    || series.definition.references.membership
                    || !series.definition.serves.projects.is_empty()
            }
            Dimension::Variable(index) => {
                let variable = &series.variables[index];
                counted || variable.required || variable.shown
            }
        };
        let name = name_of(series, dimension);
        if !needed || asked.known.contains_key(name) {
            continue;
        }
        let mut choices = values(series, dimension).into_iter();
        let first = choices.next();
        let other = |first: &String| counted && taken.get(name) == Some(first);
        let value =
            if first.as_ref().is_some_and(other) { choices.next().or(first) } else { first };
        asked.known.extend(value.map(|value| (name.to_owned(), value)));
    }
}

/// The dimension of a scope that has that name.
pub(super) fn dimension_of(series: &Series, name: &str) -> Option<Dimension> {
    let mut scope = series.scope.iter().copied();
    scope.find(|dimension| name_of(series, *dimension) == name)
}

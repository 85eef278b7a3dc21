//! What is shown when a series is refused: a text with its two readings, or two whole requests if
//! the text does not show what distinguishes their counters; and the remedy.

use std::fmt;

use jiff::civil::DateTime;
use thiserror::Error;

use super::super::draft::ABSENT;
use super::super::series::Dimension;
use super::super::template::Part;
use super::super::{Reset, Series};
use super::automaton::characters;
use super::language::{Shows, name_of, part_name, rule_of, shows, written};
use super::pairing::{Hidden, Identity, MARKS_MAX, Pairing};
use super::periods;
use super::requests::{Requests, axis_of, without_row};
use super::search::{STATES_MAX, Step};
use super::{PROOF_STEPS_MAX, Party};

/// Most codes that a refusal lists.
const LISTED_MAX: usize = 12;

/// A series whose numbers are not proved to be different.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Ambiguity {
    /// Two requests of different counters that begin with the same text.
    #[error("{first} and {second} would both get {text:?} {scope}; {remedy}")]
    Collision {
        /// One request.
        first: Box<Reading>,
        /// The other.
        second: Box<Reading>,
        /// The number that both would get.
        text: String,
        /// The uniqueness scope that both are in, in words.
        scope: String,
        /// Why, and what to do.
        remedy: String,
    },
    /// A text that two numbers may show. Steps, check characters and non-existent days are not
    /// followed: it may be that no two requests get it.
    #[error("{text:?} can be read in two ways, as {first} and as {second}; {remedy}")]
    Readings {
        /// The text.
        text: String,
        /// One reading.
        first: Box<Reading>,
        /// The other.
        second: Box<Reading>,
        /// Why, and what to do.
        remedy: String,
    },
    /// The search ended before all was examined.
    #[error(
        "{subject} cannot be proved to be free of collisions: more than {STATES_MAX} states, \
         {PROOF_STEPS_MAX} steps or {MARKS_MAX} marks; show fewer parts twice, give parts a fixed \
         width or separate them by a sign that they exclude, and begin with a prefix of its own"
    )]
    Unproven {
        /// The series, or the two, in words.
        subject: String,
    },
}

/// A number, by its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Code of its series.
    pub series: String,
    /// The version of the series, if it is not the one that is saved.
    pub version: Option<u32>,
    /// What the number or its request holds: names and values.
    pub values: Vec<(String, String)>,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.series)?;
        if let Some(version) = self.version {
            write!(f, " version {version}")?;
        }
        let values = self.values.iter().map(|(name, value)| format!("{name} {value:?}"));
        write!(f, " ({})", values.collect::<Vec<_>>().join(", "))
    }
}

/// A refusal because a search was too large.
pub(super) fn unproven(parties: [&Party<'_>; 2]) -> Ambiguity {
    let [one, other] = parties.map(|Party { series, version, .. }| match version {
        Some(version) => format!("version {version} of series {}", series.definition.code),
        None => format!("series {}", series.definition.code),
    });
    let subject = if one == other { one } else { format!("{one} beside {other}") };
    Ambiguity::Unproven { subject }
}

/// A text that both parties can show.
pub(super) struct Shared<'a> {
    pub(super) parties: [&'a Party<'a>; 2],
    pub(super) requests: [&'a Requests<'a>; 2],
    pub(super) pairing: &'a Pairing<'a>,
    /// The text, with the parts of both readings.
    pub(super) steps: &'a [Step],
}

impl Shared<'_> {
    /// The refusal for this text.
    pub(super) fn refusal(&self) -> Ambiguity {
        let Pairing { is_one_series, identities, .. } = self.pairing;
        let is_hidden = identities.iter().all(|identity| !identity.hidden.is_empty());
        // Counters of an earlier version may have begun elsewhere.
        let is_one_version = *is_one_series && self.parties[0].version.is_none();
        if is_one_version && is_hidden && self.is_read_alike() {
            return self.collision();
        }
        let text = self.steps.iter().map(|step| step.character).collect();
        let [first, second] = [0, 1].map(|side| Box::new(self.reading(side)));
        Ambiguity::Readings { text, first, second, remedy: self.remedy() }
    }

    /// Whether both runs are at one place throughout, or where nothing is shown.
    fn is_read_alike(&self) -> bool {
        let shows_nothing = |(party, part): (&&Party<'_>, usize)| {
            shows(&party.series.parts[part]) == Shows::Nothing
        };
        self.steps.iter().all(|Step { parts, .. }| {
            self.pairing.places[parts[0]] == Some(parts[1])
                || std::iter::zip(&self.parties, *parts).all(shows_nothing)
        })
    }

    /// The text of a part in one reading.
    fn part(&self, side: usize, part: usize) -> String {
        let steps = self.steps.iter().filter(|step| step.parts[side] == part);
        steps.map(|step| step.character).collect()
    }

    /// A reading of the text.
    fn reading(&self, side: usize) -> Reading {
        let Party { series, version, .. } = *self.parties[side];
        let mut values = self.values(side, true);
        if !values.iter().any(|(name, _)| name == "type") {
            values.insert(0, ("type".to_owned(), self.samples(side, Dimension::Type).remove(0)));
        }
        Reading { series: series.definition.code.clone(), version, values }
    }

    /// What a reading shows, its date only if that is wanted.
    fn values(&self, side: usize, is_dated: bool) -> Vec<(String, String)> {
        let series = self.parties[side].series;
        let mut values = Vec::new();
        for (index, part) in series.parts.iter().enumerate() {
            let name = match part {
                Part::Literal(_) | Part::Check(_) => continue,
                Part::Date(_) if !is_dated => continue,
                Part::Date(field) => field.letters().unwrap_or("year").to_owned(),
                Part::Serial { serial, .. } => series.serials[*serial].name.clone(),
                Part::Project => "project".into(),
                Part::Type(_) => "type".into(),
                Part::Phase => "phase".into(),
                _ => part_name(series, part).trim_matches(['{', '}']).to_owned(),
            };
            values.push((name, self.part(side, index)));
        }
        values
    }

    /// Two requests of one series whose texts are read alike and do not show what distinguishes
    /// their counters: both get the first value of each serial.
    fn collision(&self) -> Ambiguity {
        let series = self.parties[0].series;
        let moments = self.hidden().filter_map(|hidden| match hidden {
            Hidden::Period(moments) => Some(*moments),
            _ => None,
        });
        let apart = moments.max_by_key(|[early, late]| early.duration_until(*late).abs());
        let moments = apart.unwrap_or([periods::first(); 2]);
        let (mut text, mut steps) = (String::new(), Vec::new());
        for (index, part) in series.parts.iter().enumerate() {
            let from = text.len();
            match part {
                Part::Date(field) => match field.value(moments[0]) {
                    Some(value) => text += &format!("{value:0width$}", width = field.width()),
                    None => text += &self.part(0, index),
                },
                Part::Check(check) => check.push(&mut text),
                Part::Serial { serial, format } => {
                    text += &written(*format, series.serials[*serial].start);
                }
                _ => text += &self.part(0, index),
            }
            let parts = [index; 2];
            steps.extend(text[from..].chars().map(|character| Step { character, parts }));
        }
        let shared = Shared { steps: &steps, ..*self };
        let [first, second] = [0, 1].map(|side| Box::new(shared.request(side, moments[side])));
        let scope = series.scope.iter().map(|dimension| {
            let name = name_of(series, *dimension);
            let value = first.values.iter().find(|(known, _)| known == name);
            format!("{name}={}", value.map_or(ABSENT, |(_, value)| value))
        });
        let scope = match scope.collect::<Vec<_>>().join(";") {
            scope if scope.is_empty() => "in the whole ledger".into(),
            scope => format!("within {scope}"),
        };
        Ambiguity::Collision { first, second, text, scope, remedy: self.hidden_remedy() }
    }

    /// What the text does not show, of all that both count alike.
    fn hidden(&self) -> impl Iterator<Item = &Hidden<'_>> {
        self.pairing.identities.iter().flat_map(|identity| &identity.hidden)
    }

    /// What the number shows, except its date, and what else a request brings. The second request
    /// differs from the first in all that is hidden.
    fn request(&self, side: usize, at: DateTime) -> Reading {
        let series = self.parties[side].series;
        let mut values = self.values(side, false);
        let variables = (0..series.variables.len()).map(Dimension::Variable);
        for dimension in [Dimension::Type, Dimension::Project].into_iter().chain(variables) {
            let is_used = match dimension {
                Dimension::Variable(index) => {
                    let counted =
                        series.counters.iter().any(|rule| rule.dimensions.contains(&dimension));
                    counted || series.scope.contains(&dimension) || series.variables[index].required
                }
                Dimension::Type => true,
                Dimension::Project => series.project_needed,
            };
            let name = name_of(series, dimension);
            if is_used && !values.iter().any(|(known, _)| known == name) {
                values.push((name.to_owned(), self.unshown(side, dimension)));
            }
        }
        values.sort_by_key(|(name, _)| name != "type");
        if series.phase_needed && !series.parts.contains(&Part::Phase) {
            values.push(("phase".into(), format!("PHASE-{}", side + 1)));
        }
        let date = if series.time_needed { at.to_string() } else { at.date().to_string() };
        values.push(("date".into(), date));
        Reading { series: series.definition.code.clone(), version: None, values }
    }

    /// A value that the text does not show: another one than the first request has, if that makes
    /// another counter.
    fn unshown(&self, side: usize, dimension: Dimension) -> String {
        let name = name_of(self.parties[0].series, dimension);
        let is_hidden = self.hidden().any(|hidden| *hidden == Hidden::Dimension(name));
        let (first, mut samples) = (self.samples(0, dimension), self.samples(side, dimension));
        let fits = |sample: &String| side == 0 || (*sample != first[0]) == is_hidden;
        let at = samples.iter().position(fits).unwrap_or(0);
        samples.swap_remove(at)
    }

    /// Values that a dimension can have in the requests that were searched: one or more, two if
    /// that is easy.
    fn samples(&self, side: usize, dimension: Dimension) -> Vec<String> {
        let series = self.parties[side].series;
        let codes = axis_of(series, dimension).map(|axis| self.requests[side].listed(series, axis));
        let mut samples = codes.unwrap_or_default();
        match dimension {
            Dimension::Type if Series::takes_any_type(&series.definition) => {
                samples.push("TYPE-1".into());
            }
            Dimension::Project if samples.is_empty() => {
                samples.extend(["PROJECT-1".into(), "PROJECT-2".into()]);
            }
            Dimension::Variable(index) if samples.is_empty() => {
                let (rule, variable) = (rule_of(series, dimension), &series.variables[index]);
                let (least, most) = rule.widths();
                samples.extend(variable.default.clone());
                let characters = characters(&rule).some(2).into_iter().map(String::from);
                let both = |c: String| [c.repeat(least), c.repeat(most.min(least + 1))];
                samples.extend(characters.flat_map(both));
                if !variable.required && variable.default.is_none() {
                    samples.push(ABSENT.into());
                }
            }
            _ => {}
        }
        if samples.is_empty() {
            samples.push("?".into());
        }
        samples
    }

    /// Why, and what to do.
    fn remedy(&self) -> String {
        let [Party { series: one, version, .. }, Party { series: other, version: its, .. }] =
            self.parties;
        if self.pairing.is_one_series {
            return version.map_or_else(|| self.misreading(), of_version);
        }
        let (code, its_code) = (&one.definition.code, &other.definition.code);
        if let Some(version) = its {
            return format!(
                "the number of series {its_code} is one of its version {version}, which may be out \
                 already: begin the template of {code} with other text (a new `prefix`, for \
                 example), or go on with series {its_code}, whose counters are above it"
            );
        }
        let is_shared = |own: &Dimension| {
            let named = (name_of(one, *own), one.table_of(*own));
            other.scope.iter().any(|its| named == (name_of(other, *its), other.table_of(*its)))
        };
        if let Some(dimension) = one.scope.iter().find(|dimension| !is_shared(dimension)) {
            let name = name_of(one, *dimension);
            return format!(
                "series {code} and {its_code} can show the same text within one {name}, which one \
                 of them knows by its code and the other by an id, or by ids of another table: \
                 refer to the same table in both, or give one of them other literal text, such as \
                 a prefix"
            );
        }
        let mut codes: Vec<&str> =
            [one, other].into_iter().flat_map(|series| without_row(series)).collect();
        codes.sort_unstable();
        codes.dedup();
        let more = if codes.len() > LISTED_MAX { ", …" } else { "" };
        codes.truncate(LISTED_MAX);
        let import = match &*codes.join(", ") {
            "" => String::new(),
            codes => format!(
                "; or import the codes {codes}{more} first (`numerator reference import`): a code \
                 that has a row keeps it"
            ),
        };
        format!(
            "series {code} and {its_code} can show the same text: give one of them other literal \
             text, such as a prefix, or name what tells them apart in `unique_within` of \
             both{import}"
        )
    }

    /// Where two readings of a text diverge, in words.
    fn misreading(&self) -> String {
        let series = self.parties[0].series;
        let Some(step) = self.steps.iter().find(|step| step.parts[0] != step.parts[1]) else {
            return self.hidden_remedy();
        };
        let [first, second] = step.parts;
        let part = &series.parts[first.min(second)];
        let remedy = match part {
            Part::Variable(_) => {
                "separate them by a sign that the first excludes, or give the first a fixed width"
            }
            Part::Serial { .. } => {
                "separate them by a sign that no value has, or give the first a width that it \
                 keeps (`{SEQ:n}` without `overflow = \"widen\"`)"
            }
            _ => {
                "the first may hold any sign, so let all that follows it have a fixed width, or \
                 exclude the sign that stands before it"
            }
        };
        let next = part_name(series, &series.parts[first.max(second)]);
        let told = format!("{} may go on where {next} begins: {remedy}", part_name(series, part));
        match shows(part) {
            Shows::Dimension(dimension @ (Dimension::Project | Dimension::Type))
                if series.table_of(dimension).is_none() =>
            {
                format!("{told}; or name `{}` in `unique_within`", name_of(series, dimension))
            }
            _ => told,
        }
    }

    /// The remedy if the text does not show what distinguishes two counters.
    fn hidden_remedy(&self) -> String {
        let mut reasons: Vec<String> = Vec::new();
        for Identity { serial, reset, hidden, .. } in &self.pairing.identities {
            let (Some(serial), Some(hidden)) = (serial, hidden.first()) else { continue };
            let period = match reset {
                Reset::FiscalYear => "fiscal year".into(),
                other => format!("{other:?}").to_lowercase(),
            };
            reasons.push(match hidden {
                Hidden::Value => format!("serial {serial} is not shown: show it"),
                Hidden::Dimension(dimension) => format!(
                    "serial {serial} counts by {dimension}, which the number does not show: show \
                     it, take it out of the serial's `counter`, or name it in `unique_within`"
                ),
                Hidden::Phase | Hidden::Period(_) => format!(
                    "serial {serial} begins anew each {period}, which the number does not show: \
                     show the {period}, or set `reset` to what is shown"
                ),
            });
        }
        reasons.join("; ")
    }
}

/// Why two numbers of two versions are shown, and what to do.
fn of_version(version: u32) -> String {
    format!(
        "the first is a number of version {version}, which may be out already: begin the template \
         with other text (a new `prefix`, for example), or show what that version shows"
    )
}

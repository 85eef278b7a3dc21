//! What was measured, compared with the goals.

pub(crate) mod machine;
mod page;
mod table;

pub(crate) use table::figure;
use table::table;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use crate::load::Measured;
use crate::say;
use machine::Circumstances;

/// One figure of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// How much.
    pub(crate) value: f64,
    /// Of what: `/s`, `ms`, `MiB`.
    pub(crate) unit: &'static str,
    /// Its ratio to another figure of the same run, and to which.
    pub(crate) ratio: Option<(f64, &'static str)>,
    /// The goal, for the ratio if there is one.
    pub(crate) goal: Option<Goal>,
    /// Notes for the reader.
    pub(crate) note: String,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Row {
    /// A figure without a goal.
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Row { what: what.into(), value, unit, ratio: None, goal: None, note: String::new() }
    }

    /// Its ratio to another figure.
    pub(crate) fn per(self, value: f64, to: &'static str) -> Self {
        Row { ratio: Some((value, to)), ..self }
    }

    /// The goal, for the ratio if there is one, else for the figure.
    pub(crate) fn goal(self, goal: Goal) -> Self {
        Row { goal: Some(goal), ..self }
    }

    /// A note for the reader.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Row { note: note.into(), ..self }
    }

    /// Whether the goal is reached; `None` if there is none.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let judged = self.ratio.map_or(self.value, |(quotient, _)| quotient);
        self.goal.map(|goal| match goal {
            Goal::AtLeast(least) => judged >= least,
            Goal::AtMost(most) => judged <= most,
        })
    }

    /// That the goal is not reached, as text; `None` if it is.
    pub(crate) fn miss(&self) -> Option<String> {
        let [what, measured, ratio, goal, ..] = table::cells(self);
        let judged = if ratio.is_empty() { measured } else { ratio };
        (self.is_met() == Some(false)).then(|| format!("{what}: {judged}, wanted {goal}"))
    }
}

/// A part of the report: one scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The scenario's name.
    pub(crate) name: &'static str,
    /// Its figures.
    pub(crate) rows: Vec<Row>,
    /// Promises that were broken while it ran: then its figures mean nothing.
    pub(crate) breaches: Vec<String>,
    /// Whether a figure that misses its goal counts as a breach too.
    pub(crate) is_judged: bool,
}

impl Section {
    /// Adds the errors of a load.
    pub(crate) fn judge(&mut self, measured: &Measured) {
        self.breaches.extend(measured.failures.told("failures"));
        if measured.answered == 0 {
            self.breaches.push("no request was answered".to_owned());
        }
    }

    /// Figures that miss their goals, if each of them counts.
    fn misses(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter(|_| self.is_judged).filter_map(Row::miss)
    }
}

/// Prints what was measured, and writes it into a page; the exit code.
pub(crate) fn conclude(
    circumstances: &Circumstances,
    sections: &[Section],
    page: Option<&Path>,
) -> ExitCode {
    let mut out = io::stdout();
    let Circumstances { machine, occasion } = circumstances;
    let figures = table(sections.iter().flat_map(|section| &section.rows));
    let _ = write!(out, "{machine}\n{occasion}\n\n{figures}");
    let mut code = ExitCode::SUCCESS;
    for section in sections {
        for breach in section.breaches.iter().cloned().chain(section.misses()) {
            code = ExitCode::FAILURE;
            let _ = writeln!(out, "BREACH: {}: {breach}", section.name);
        }
    }
    // Growth is reported on the page; an error leaves nothing to report.
    let is_sound = sections.iter().all(|section| section.breaches.is_empty());
    if let Some(page) = page.filter(|_| is_sound)
        && let Err(complaint) = page::write(page, circumstances, sections)
    {
        say(&complaint);
        code = ExitCode::FAILURE;
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_reached_becomes_a_breach() {
        let most = |value| Row::new("memory", value, "MiB").goal(Goal::AtMost(100.0));
        let grown = Row::new("memory", 90.0, "MiB").per(1.5, "at the half");
        let rows = vec![
            Row::new("rate", 1.0, "/s"),
            most(99.0),
            most(101.0),
            grown.goal(Goal::AtMost(1.2)),
        ];
        let mut section = Section { rows, ..Section::default() };
        assert_eq!(section.misses().count(), 0);
        section.is_judged = true;
        let wanted =
            ["memory: 101 MiB, wanted ≤ 100 MiB", "memory: 1.5 × at the half, wanted ≤ 1.2 ×"];
        assert_eq!(section.misses().collect::<Vec<_>>(), wanted);
    }
}

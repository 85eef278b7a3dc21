//! What was measured, against what was to be reached.

pub(crate) mod machine;
pub(crate) mod page;
mod svg;
mod table;

pub(crate) use table::{figure, table};

use crate::load::Measured;

/// One figure of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What was measured.
    pub(crate) what: String,
    /// How much.
    pub(crate) value: f64,
    /// Of what: `/s`, `ms`, `MiB`.
    pub(crate) unit: &'static str,
    /// Beside what it stands.
    pub(crate) ratio: Option<Ratio>,
    /// What is wanted, of the ratio where there is one.
    pub(crate) reach: Option<Reach>,
    /// Whatever else a reader should know.
    pub(crate) note: String,
}

/// A figure divided by another of the same run.
#[derive(Clone, Debug)]
pub(crate) struct Ratio {
    /// The quotient.
    pub(crate) value: f64,
    /// What it was divided by.
    pub(crate) to: &'static str,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// So much or more.
    AtLeast(f64),
    /// So much or less.
    AtMost(f64),
}

impl Row {
    /// A figure that is only told.
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Row { what: what.into(), value, unit, ratio: None, reach: None, note: String::new() }
    }

    /// Its quotient to another figure.
    pub(crate) fn per(self, value: f64, to: &'static str) -> Self {
        Row { ratio: Some(Ratio { value, to }), ..self }
    }

    /// What is to be reached, by the ratio where there is one, else by the figure.
    pub(crate) fn reach(self, reach: Reach) -> Self {
        Row { reach: Some(reach), ..self }
    }

    /// What else to know.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Row { note: note.into(), ..self }
    }

    /// Whether what is to be reached is; nothing where nothing is.
    pub(crate) fn is_met(&self) -> Option<bool> {
        let judged = self.ratio.as_ref().map_or(self.value, |ratio| ratio.value);
        self.reach.map(|reach| match reach {
            Reach::AtLeast(least) => judged >= least,
            Reach::AtMost(most) => judged <= most,
        })
    }

    /// That what is to be reached is not, for a person; nothing where it is.
    pub(crate) fn miss(&self) -> Option<String> {
        let [what, measured, ratio, reach, ..] = table::cells(self);
        let judged = if ratio.is_empty() { measured } else { ratio };
        (self.is_met() == Some(false)).then(|| format!("{what}: {judged}, wanted {reach}"))
    }
}

/// A plot of some lines.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Its file's name, without the ending.
    pub(crate) file: &'static str,
    /// What it shows.
    pub(crate) title: &'static str,
    /// What its axes show.
    pub(crate) x: &'static str,
    pub(crate) y: &'static str,
    /// Whether the distance between x is their quotient.
    pub(crate) is_x_log: bool,
    /// Lines by name.
    pub(crate) lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// A part of the report: one scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// The scenario's name.
    pub(crate) name: &'static str,
    /// Its figures.
    pub(crate) rows: Vec<Row>,
    /// Its plots.
    pub(crate) plots: Vec<Plot>,
    /// Promises that were broken while it ran.
    pub(crate) breaches: Vec<String>,
}

impl Section {
    /// Takes over what went wrong in a load.
    pub(crate) fn judge(&mut self, measured: &Measured) {
        self.breaches.extend(measured.failures.iter().cloned());
        if measured.answered == 0 {
            self.breaches.push("no request was answered".to_owned());
        }
    }

    /// Has every figure count that does not reach what it should: each is a breach.
    pub(crate) fn insist(&mut self) {
        self.breaches.extend(self.rows.iter().filter_map(Row::miss));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_reached_becomes_a_breach() {
        let most = |value| Row::new("memory", value, "MiB").reach(Reach::AtMost(100.0));
        let grown = Row::new("memory", 90.0, "MiB").per(1.5, "at the half");
        let rows = vec![
            Row::new("rate", 1.0, "/s"),
            most(99.0),
            most(101.0),
            grown.reach(Reach::AtMost(1.2)),
        ];
        let mut section = Section { rows, ..Section::default() };
        section.insist();
        let wanted =
            ["memory: 101 MiB, wanted ≤ 100 MiB", "memory: 1.5 × at the half, wanted ≤ 1.2 ×"];
        assert_eq!(section.breaches, wanted);
    }
}

//! The paper as comma-separated values, a row for each fact: for spreadsheets and programs.

use std::borrow::Cow;

use super::paper::{RunStatement, Statement};
use crate::features::register::cells::inert;

/// The columns. `row` is the kind of a row: `paper`, `seal`, `run`, `part`, `stretch`, `line`,
/// `entry` or `note`; columns without a meaning for a row are empty.
const COLUMNS: [&str; 17] = [
    "row",
    "counter_id",
    "serial",
    "counter_key",
    "what",
    "label",
    "first",
    "last",
    "step",
    "count",
    "first_number",
    "last_number",
    "first_issued_at",
    "last_issued_at",
    "noted_at",
    "explanation",
    "evidence",
];

/// A row that is being filled.
#[derive(Default)]
struct Cells<'a>([Cow<'a, str>; COLUMNS.len()]);

impl<'a> Cells<'a> {
    fn of(row: &'static str) -> Self {
        Cells::default().with("row", row)
    }

    fn with(mut self, column: &str, value: impl Into<Cow<'a, str>>) -> Self {
        if let Some(place) = COLUMNS.iter().position(|known| *known == column) {
            self.0[place] = value.into();
        }
        self
    }
}

impl Statement {
    /// The paper as CSV.
    ///
    /// # Panics
    /// Never: it is written to memory.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut rows = vec![self.head_cells(), self.seal_cells()];
        for run in &self.runs {
            run.push_rows(&mut rows);
        }
        let mut csv = csv::Writer::from_writer(Vec::new());
        let written = csv.write_record(COLUMNS).and_then(|()| {
            rows.iter().try_for_each(|Cells(cells)| {
                csv.write_record(cells.iter().map(|cell| inert(cell).into_owned()))
            })
        });
        // To memory alone.
        written.expect("every row has all columns");
        let bytes = csv.into_inner().expect("memory takes what it is given");
        String::from_utf8(bytes).expect("texts are UTF-8")
    }

    fn head_cells(&self) -> Cells<'_> {
        let label = match &self.project {
            Some(project) => format!("{} {} {project}", self.series, self.period),
            None => format!("{} {}", self.series, self.period),
        };
        Cells::of("paper")
            .with("what", verdict(self.verdict))
            .with("label", label)
            .with("noted_at", &*self.drawn_up_at)
            .with("explanation", &*self.sentence)
    }

    fn seal_cells(&self) -> Cells<'_> {
        let seal = &self.seal;
        let number = seal.checkpoint.map(|number| number.to_string()).unwrap_or_default();
        let names = [&seal.sha256, &seal.public_key].map(|name| name.as_deref().unwrap_or(""));
        Cells::of("seal")
            .with("what", if seal.sealed { "sealed" } else { "not-sealed" })
            .with("label", number)
            .with("count", seal.records_sealed.to_string())
            .with("noted_at", seal.made_at.as_deref().unwrap_or(""))
            .with("explanation", seal.sentences.join(" "))
            .with("evidence", names.join(" ").trim().to_owned())
    }
}

impl RunStatement {
    fn push_rows<'a>(&'a self, rows: &mut Vec<Cells<'a>>) {
        let of = |row| {
            Cells::of(row)
                .with("counter_id", self.counter_id.to_string())
                .with("serial", &*self.serial)
                .with("counter_key", &*self.counter_key)
        };
        let mut head = of("run").with("what", verdict(self.verdict)).with("label", &*self.label);
        head = head.with("count", self.values.to_string());
        for (end, value, number, at) in [
            (&self.first, "first", "first_number", "first_issued_at"),
            (&self.last, "last", "last_number", "last_issued_at"),
        ] {
            if let Some(end) = end {
                head = head.with(value, &*end.value).with(at, &*end.issued_at);
                head = head.with(number, end.number.as_deref().unwrap_or(""));
            }
        }
        rows.push(head);
        if let Some(part) = &self.part {
            let mut row = of("part").with("what", "dated").with("count", part.count.to_string());
            row = row.with("label", format!("{} – {}", part.dated_from, part.dated_upto));
            for (end, value, number) in
                [(&part.first, "first", "first_number"), (&part.last, "last", "last_number")]
            {
                if let Some(end) = end {
                    row = row.with(value, &*end.value);
                    row = row.with(number, end.number.as_deref().unwrap_or(""));
                }
            }
            rows.push(row);
        }
        for stretch in &self.stretches {
            let row = of("stretch").with("first", &*stretch.first).with("last", &*stretch.last);
            rows.push(row.with("step", &*stretch.step).with("count", stretch.count.to_string()));
        }
        for line in &self.lines {
            let row = of("line").with("what", line.what).with("label", line.label);
            rows.push(row.with("count", line.count.to_string()));
        }
        for entry in &self.entries {
            let numbers = [&entry.first_number, &entry.last_number];
            let [first, last] = numbers.map(|number| number.as_deref().unwrap_or(""));
            let row = of("entry").with("what", entry.what).with("label", entry.label);
            let row = row.with("first", &*entry.run.first).with("last", &*entry.run.last);
            let row = row.with("step", &*entry.run.step).with("count", entry.run.count.to_string());
            let row = row.with("first_number", first).with("last_number", last);
            let row = row.with("noted_at", entry.noted_at.as_deref().unwrap_or(""));
            rows.push(
                row.with("explanation", &*entry.explanation).with("evidence", &*entry.evidence),
            );
        }
        rows.extend(self.notes.iter().map(|note| of("note").with("explanation", &**note)));
    }
}

fn verdict(verdict: super::Verdict) -> &'static str {
    match verdict {
        super::Verdict::Complete => "complete",
        super::Verdict::CompleteSoFar => "complete-so-far",
        super::Verdict::NotComplete => "not-complete",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for cell in ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "'=1"] {
            assert_eq!(inert(cell), format!("'{cell}"));
        }
        for cell in ["", "A=1", "'1", "{}", "1-2"] {
            assert_eq!(inert(cell), cell);
        }
    }
}

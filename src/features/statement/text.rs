//! The paper as text.

use super::messages::{
    CHECKPOINT, COUNTED, COUNTER, DATE, DRAWN_UP, ERA, EVIDENCE, FIRST, LAST, MADE_AT, NONE, NOTES,
    PERIOD, PROJECT, PUBLIC_KEY, RESULT, REVISED, SEAL, SERIES, SHA256, SIGNATURES, STRETCH, SUM,
    TITLE, say,
};
use super::paper::{CountLine, EndAnswer, EntryAnswer, PartAnswer, RunStatement, Statement};
use super::partly::DATED;
use crate::language::{Locale, Message};

/// The place for a signature or a date.
const BLANK: &str = "____________________";

/// A name and its value.
pub(super) type Fact = (String, String);

impl Statement {
    /// The paper as lines of text.
    #[must_use]
    pub fn text(&self) -> Vec<String> {
        let language = self.language;
        let mut lines = vec![language.choose(TITLE).to_owned(), String::new()];
        lines.extend(self.head().into_iter().map(fact));
        for run in &self.runs {
            lines.push(String::new());
            lines.extend(run.text(language));
        }
        lines.extend([String::new(), language.choose(SEAL).to_owned()]);
        lines.extend(self.seal.sentences.iter().map(|sentence| format!("  {sentence}")));
        lines.extend(self.seal_facts().into_iter().map(|told| format!("  {}", fact(told))));
        let date = language.choose(DATE);
        for signature in SIGNATURES {
            let name = language.choose(signature);
            lines.extend([String::new(), format!("{name}: {BLANK}  {date}: {BLANK}")]);
        }
        lines
    }

    /// The facts above all runs.
    pub(super) fn head(&self) -> Vec<Fact> {
        let told =
            |name: Message, value: &str| (self.language.choose(name).to_owned(), value.to_owned());
        let mut facts = vec![told(SERIES, &self.series), told(PERIOD, &self.period)];
        facts.extend(self.project.as_deref().map(|project| told(PROJECT, project)));
        facts.extend(self.era.map(|era| told(ERA, era)));
        facts.push(told(DRAWN_UP, &self.drawn_up_at));
        facts.push(told(RESULT, &self.sentence));
        facts
    }

    /// The facts that identify the checkpoint.
    pub(super) fn seal_facts(&self) -> Vec<Fact> {
        let seal = &self.seal;
        let number = seal.checkpoint.map(|number| number.to_string());
        let named = [
            (CHECKPOINT, number.as_ref()),
            (MADE_AT, seal.made_at.as_ref()),
            (SHA256, seal.sha256.as_ref()),
            (PUBLIC_KEY, seal.public_key.as_ref()),
        ];
        let told = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
        told.map(|(name, value)| (self.language.choose(name).to_owned(), value.clone())).collect()
    }
}

impl RunStatement {
    fn text(&self, language: Locale) -> Vec<String> {
        let mut lines = vec![format!("{}: {}", language.choose(COUNTED), self.label)];
        lines.extend(self.head(language).into_iter().map(|told| format!("  {}", fact(told))));
        let rows = self.arithmetic(language);
        let width = rows.iter().map(|(count, _)| count.len()).max().unwrap_or(0);
        lines.extend(rows.iter().map(|(count, what)| format!("  {count:>width$}  {what}")));
        for entry in &self.entries {
            lines.push(format!("  * {} ({}): {}", entry.shown(), entry.run.count, entry.label));
            lines.push(format!("    {}", entry.explanation));
            lines.push(format!("    {}: {}", language.choose(EVIDENCE), entry.evidence));
        }
        if !self.notes.is_empty() {
            lines.push(format!("  {}:", language.choose(NOTES)));
            lines.extend(self.notes.iter().map(|note| format!("    {note}")));
        }
        lines
    }

    /// Serial and key.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.serial, self.counter_key).trim_end().to_owned()
    }

    /// The facts above the arithmetic.
    pub(super) fn head(&self, language: Locale) -> Vec<Fact> {
        let shown = |end: &Option<EndAnswer>| match end {
            None => language.choose(NONE).to_owned(),
            Some(end) => {
                let file = end.file.as_ref().map_or(String::new(), |file| format!(", {file}"));
                format!("{} ({}{file})", end.shown(), end.issued_at)
            }
        };
        let told = |name: Message, value: String| (language.choose(name).to_owned(), value);
        let mut facts = vec![told(COUNTER, self.name())];
        facts.extend([told(FIRST, shown(&self.first)), told(LAST, shown(&self.last))]);
        facts.extend(self.part.as_ref().map(|part| part.fact(language)));
        if self.revised > 0 {
            facts.push(told(REVISED, self.revised.to_string()));
        }
        facts
    }

    /// The arithmetic: how many values there are, the outcomes, and their sum.
    pub(super) fn arithmetic(&self, language: Locale) -> Vec<(String, String)> {
        let mut rows = Vec::new();
        let mut rest = self.values;
        for stretch in &self.stretches {
            let places =
                [("first", &*stretch.first), ("last", &stretch.last), ("step", &stretch.step)];
            rows.push((stretch.count.to_string(), say(language, STRETCH, &places)));
            rest = rest.saturating_sub(stretch.count);
        }
        if rest > 0 {
            let further = language.choose(super::messages::FURTHER_STRETCHES);
            rows.push((rest.to_string(), further.to_owned()));
        }
        rows.extend(self.lines.iter().map(CountLine::shown));
        rows.push((format!("= {}", self.sum), language.choose(SUM).to_owned()));
        rows
    }
}

impl PartAnswer {
    /// How many numbers, and which.
    fn fact(&self, language: Locale) -> Fact {
        let places = [("from", &*self.dated_from), ("upto", &*self.dated_upto)];
        let ends = self.first.iter().zip(&self.last);
        let mut shown = ends.map(|(first, last)| match (first.shown(), last.shown()) {
            (first, last) if first == last => format!(" ({first})"),
            (first, last) => format!(" ({first} – {last})"),
        });
        let shown = shown.next().unwrap_or_default();
        (say(language, DATED, &places), format!("{}{shown}", self.count))
    }
}

impl CountLine {
    fn shown(&self) -> (String, String) {
        let count = match self.sign {
            1 => format!("+ {}", self.count),
            0 => format!("({})", self.count),
            _ => format!("− {}", self.count),
        };
        (count, self.label.to_owned())
    }
}

impl EntryAnswer {
    /// Its cells in a table.
    pub(super) fn cells(&self) -> [String; 5] {
        [
            self.shown(),
            self.run.count.to_string(),
            self.label.to_owned(),
            self.explanation.clone(),
            self.evidence.clone(),
        ]
    }
}

fn fact((name, value): Fact) -> String {
    format!("{name}: {value}")
}

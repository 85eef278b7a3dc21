//! The findings of `doctor`: each with its remedy, the gravest first.

use std::process::ExitCode;

use serde::Serialize;

/// The grade of a finding. The later one prevails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Grade {
    /// It is as it should be.
    Well,
    /// Dangerous, or not known; a deployment may run with it.
    Hazard,
    /// Something is to be done.
    SomethingToDo,
    /// Something important could not be checked.
    CannotTell,
}

impl Grade {
    /// The word of the list.
    fn word(self) -> &'static str {
        match self {
            Grade::Well => "well",
            Grade::Hazard => "hazard",
            Grade::SomethingToDo => "to do",
            Grade::CannotTell => "cannot tell",
        }
    }
}

/// Something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Diagnosis {
    /// What was checked, in one word.
    pub(super) check: &'static str,
    pub(super) verdict: Grade,
    /// The finding.
    pub(super) says: String,
    /// Its remedy; absent if nothing is wrong.
    pub(super) remedy: Option<String>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Diagnosis>);

/// The answer of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    verdict: &'static str,
    summary: String,
    findings: &'a [Diagnosis],
}

impl Findings {
    /// Something is as it should be.
    pub(super) fn well(&mut self, check: &'static str, says: impl Into<String>) {
        let (verdict, says) = (Grade::Well, says.into());
        self.0.push(Diagnosis { check, verdict, says, remedy: None });
    }

    /// Something is not.
    pub(super) fn add(
        &mut self,
        (check, verdict): (&'static str, Grade),
        says: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let (says, remedy) = (says.into(), Some(remedy.into()));
        let finding = Diagnosis { check, verdict, says, remedy };
        // Several ways may lead to the same one.
        if !self.0.contains(&finding) {
            self.0.push(finding);
        }
    }

    /// Reports a check as well if it has no other finding.
    pub(super) fn well_unless_found(&mut self, check: &'static str, says: impl Into<String>) {
        if self.0.iter().all(|finding| finding.check != check) {
            self.well(check, says);
        }
    }

    /// Those of another look as well.
    pub(super) fn extend(&mut self, others: Findings) {
        self.0.extend(others.0);
    }

    /// The gravest first; equal ones in the order of their checks.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    }

    fn verdict(&self) -> Grade {
        self.0.iter().map(|finding| finding.verdict).max().unwrap_or(Grade::Well)
    }

    /// The exit code: as `status` has them.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.verdict() {
            Grade::Well | Grade::Hazard => 0,
            Grade::SomethingToDo => 1,
            Grade::CannotTell => 2,
        })
    }

    /// The whole in a sentence.
    fn summary(&self) -> String {
        let counted = |verdict, one: &str, many: &str| {
            let count = self.0.iter().filter(|finding| finding.verdict == verdict).count();
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
        };
        let parts = [
            counted(Grade::CannotTell, "that nobody can tell", "that nobody can tell"),
            counted(Grade::SomethingToDo, "thing to do", "things to do"),
            counted(Grade::Hazard, "hazard", "hazards"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let is_well = self.verdict() < Grade::SomethingToDo;
        match (is_well, parts.is_empty()) {
            (_, true) => "all is well".to_owned(),
            (true, false) => format!("all is well, with {}", parts.join(", ")),
            (false, false) => parts.join(", "),
        }
    }

    /// The output of `--json`.
    pub(super) fn answer(&self) -> Answer<'_> {
        let verdict = match self.verdict() {
            Grade::Well | Grade::Hazard => "well",
            Grade::SomethingToDo => "something-to-do",
            Grade::CannotTell => "cannot-tell",
        };
        Answer { verdict, summary: self.summary(), findings: &self.0 }
    }

    /// The list for people: a line each.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |finding: &Diagnosis| {
            let Diagnosis { check, verdict, says, remedy } = finding;
            let remedy = remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}"));
            format!("{:<12} {check:<12} {says}{remedy}", verdict.word()).replace('\n', " ")
        };
        std::iter::once(self.summary()).chain(self.0.iter().map(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gravest_comes_first_and_says_what_ends_it() {
        let mut findings = Findings::default();
        assert_eq!(findings.lines(), ["all is well"]);
        findings.well("settings", "read");
        findings.add(("ntp", Grade::Hazard), "not kept", "run chrony");
        assert_eq!(findings.summary(), "all is well, with 1 hazard");
        assert_eq!(findings.answer().verdict, "well");
        for _ in 0..2 {
            findings.add(("redis", Grade::SomethingToDo), "refuses\nthe password", "write it");
        }
        findings.add(("ledger", Grade::CannotTell), "away", "start it");
        findings.well_unless_found("ledger", "there");
        findings.sort();
        let lines = findings.lines();
        assert_eq!(
            lines,
            [
                "1 that nobody can tell, 1 thing to do, 1 hazard",
                "cannot tell  ledger       away; start it",
                "to do        redis        refuses the password; write it",
                "hazard       ntp          not kept; run chrony",
                "well         settings     read",
            ]
        );
        assert_eq!(findings.answer().verdict, "cannot-tell");
    }
}

//! Numbers of other series that a series would read back as its own.
//!
//! Examines samples: what is proved never to be equal is proved elsewhere, and refused. This is for
//! what a proof leaves open, numbers of another scope and texts that were imported. Refuses
//! nothing, takes nothing.

use std::fmt;

use numbering::Series;

use super::Ledger;

/// Counters of each other series whose newest number is examined.
const SAMPLED_COUNTERS: u32 = 20;
/// Most numbers that are reported.
const TOLD_MAX: usize = 5;

/// A number in the journal that a series would read as one of its own.
struct Lookalike<'a> {
    /// The series that it was issued by.
    series_code: &'a str,
    number: &'a str,
}

impl fmt::Display for Lookalike<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lookalike { series_code, number } = self;
        write!(
            f,
            "{number:?} of series {series_code} reads like a number of this series: whoever looks \
             such a text up is shown both"
        )
    }
}

/// The numbers of other series that each series would read back, as sentences for the user who
/// saves them: one number of each other series that the user may see, at most five, of the newest
/// numbers of 20 counters of each. A failed look is reported in their place: it refuses nothing.
pub async fn warnings(
    ledger: &Ledger,
    saved: &[Series],
    may_see: impl Fn(&str) -> bool,
) -> Vec<Vec<String>> {
    match ledger.audits().newest_numbers(SAMPLED_COUNTERS).await {
        Ok(mut numbers) => {
            numbers.retain(|(code, _)| may_see(code));
            saved.iter().map(|series| lookalikes(series, &numbers)).collect()
        }
        Err(error) => {
            let why = format!("the numbers of other series were not looked at: {error}");
            vec![vec![why]; saved.len()]
        }
    }
}

fn lookalikes(series: &Series, numbers: &[(String, String)]) -> Vec<String> {
    let code = &series.definition().code;
    let mut found: Vec<Lookalike<'_>> = Vec::new();
    for (series_code, number) in numbers.iter().filter(|(other, _)| other != code) {
        let is_recorded = found.iter().any(|told| told.series_code == series_code);
        if !is_recorded && found.len() < TOLD_MAX && series.read(number).is_ok() {
            found.push(Lookalike { series_code, number });
        }
    }
    found.iter().map(ToString::to_string).collect()
}

//! Numbers of other series that a series would read back as its own.
//!
//! Looks at samples: what is proved never to be equal is proved elsewhere, and refused. This is for
//! what a proof leaves alone, numbers of another scope and texts that were imported. Refuses
//! nothing, takes nothing.

use std::fmt;

use numbering::Series;

use super::{Ledger, LedgerError};

/// Counters of each other series whose newest number is looked at.
const SAMPLED_COUNTERS: u32 = 20;
/// Most numbers that are told.
const TOLD_MAX: usize = 5;

/// A number in the journal that a series would read as one of its own.
struct Lookalike {
    /// The series that it was issued by.
    series_code: String,
    number: String,
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lookalike { series_code, number } = self;
        write!(
            f,
            "{number:?} of series {series_code} reads like a number of this series: whoever looks \
             such a text up is shown both"
        )
    }
}

/// The same as sentences, for whoever saves a series. A look that fails is told in their place: it
/// refuses nothing.
pub async fn warnings(ledger: &dyn Ledger, series: &Series) -> Vec<String> {
    match lookalikes(ledger, series).await {
        Ok(found) => found.iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("the numbers of other series were not looked at: {error}")],
    }
}

/// What of other series a series would read back, one number of each, at most five: of the newest
/// numbers of 20 counters of each.
async fn lookalikes(ledger: &dyn Ledger, series: &Series) -> Result<Vec<Lookalike>, LedgerError> {
    let code = &series.definition().code;
    let mut found: Vec<Lookalike> = Vec::new();
    for (series_code, number) in ledger.newest_numbers(code, SAMPLED_COUNTERS).await? {
        let is_told = found.iter().any(|told| told.series_code == series_code);
        if !is_told && found.len() < TOLD_MAX && series.parse(&number).is_ok() {
            found.push(Lookalike { series_code, number });
        }
    }
    Ok(found)
}

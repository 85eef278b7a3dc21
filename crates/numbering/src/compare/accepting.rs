//! What may be accepted: an ambiguity whose series are all `gapless`, because only then the ledger
//! records one number before it answers the other (F43); and whose numbers that concerns.

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

use super::super::{Policy, ReferenceData, Series, SeriesDefinition};
use super::effort::{Effort, GiveUp};
use super::saving::{Starts, compile};
use super::{Ambiguity, compare};

/// An ambiguity accepted although a request may be answered before the ledger was asked (F43).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "ambiguity_accepted: series {code} accepts what no ledger would refuse in time: {ambiguity}. \
     Only where every series of the pair is `gapless` does the ledger see one number before it \
     answers the other: set `policy = \"gapless\"` in each of them, or change the template until \
     `numerator series check` proves it, and leave `ambiguity_accepted` out"
)]
pub struct Hasty {
    /// Code of the series that accepts it.
    pub code: String,
    /// What it accepts.
    pub ambiguity: Ambiguity,
}

/// Which pairs of a series are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// All of them.
    All,
    /// Those whose numbers only the ledger takes: it refuses the second of two equal ones before
    /// any request is answered.
    Gapless,
    /// The others.
    Hasty,
}

impl Pairs {
    /// Whether this is the pair of a series with another, or with itself.
    pub(super) fn have(self, subject: &Series, other: &SeriesDefinition) -> bool {
        let is_gapless =
            subject.definition.policy == Policy::Gapless && other.policy == Policy::Gapless;
        match self {
            Pairs::All => true,
            Pairs::Gapless => is_gapless,
            Pairs::Hasty => !is_gapless,
        }
    }
}

/// Codes of the series whose numbers may equal a number of those that accept an ambiguity, these
/// among them, in any of their versions: more of them, in doubt. `None` if the check was given up.
#[must_use]
pub fn concerned(
    accepting: &[&SeriesDefinition],
    all: &[&SeriesDefinition],
    reference: &Arc<ReferenceData>,
    give_up: &GiveUp,
) -> Option<BTreeSet<String>> {
    let mut codes: BTreeSet<String> = accepting.iter().map(|one| one.code.clone()).collect();
    for one in accepting {
        let effort = Effort::whole(give_up);
        let Ok(one) = compile(one, reference) else { continue };
        for other in all {
            if codes.contains(&other.code) {
                continue;
            }
            let is_apart = compile(other, reference).is_ok_and(|other| {
                let parties = [&one, &other].map(|it| Starts::Unknown.party(it, None, None));
                compare(&parties[0], &parties[1], &effort).is_ok()
            });
            if give_up.is_given_up() {
                return None;
            }
            if !is_apart {
                codes.insert(other.code.clone());
            }
        }
    }
    Some(codes)
}

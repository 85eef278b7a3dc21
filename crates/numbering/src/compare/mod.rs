//! Whether two numbers can have one text: one question, [`compare`], asked of a series with itself,
//! with its earlier versions, and with every version of another that may have issued numbers.
//!
//! Each part of a series is an automaton. Two numbers of one text are two runs over it: a path
//! through the product of two automata, from both starts to both ends. Marks along the path record
//! where the runs read something different; two allocations differ in every identity that they have
//! in common, so that a path counts only if each of these is read differently.
//!
//! What is not followed only adds texts, and a bound that is reached refuses: a refusal may be too
//! careful. Steps, check characters, and non-existent days are not followed. The tests in
//! `brute_force` look for a proof that does not hold.

mod accepting;
mod automaton;
mod chars;
mod effort;
mod language;
mod pairing;
mod periods;
mod refusal;
mod requests;
mod saving;
mod search;
#[cfg(test)]
mod tests;

pub use accepting::{Hasty, concerned};
pub use effort::{GiveUp, PROOF_STEPS_MAX};
pub use refusal::{Ambiguity, Reading};
pub use saving::{
    Accepted, EarlierVersion, IssuedVersion, ProofError, only_narrows, prove_issued, prove_saved,
    same_numbers, same_rules,
};

use super::Series;
use super::series::Dimension;
use automaton::Automaton;
use chars::CharSets;
use effort::Effort;
use language::{dimension, fragment, name_of};
use pairing::Pairing;
use refusal::Shared;
use requests::{Requests, axis_of, requests};
use search::{Found, Product};

/// One version of a series, and what it may number.
#[derive(Clone, Debug)]
pub(super) struct Party<'s> {
    /// The series as that version has it.
    pub(super) series: &'s Series,
    /// Which version, if it is not the one that is saved or in force: then its rival is what took
    /// requests at that time.
    pub(super) version: Option<u32>,
    /// The least value that each serial may still give, or may have given: counters continue from
    /// their value when a later version has another start.
    pub(super) least: Vec<u64>,
    /// The other series, if it takes requests before this one.
    pub(super) rival: Option<&'s Series>,
}

/// Proves that no number of one party has the text of another number of the other, in one scope.
///
/// # Errors
/// A text that both can show, or a search that was too large.
fn compare(one: &Party<'_>, other: &Party<'_>, effort: &Effort<'_>) -> Result<(), Ambiguity> {
    let series = [one.series, other.series];
    let is_one_series = series[0].definition.code == series[1].definition.code;
    let scope = shared_scope(series);
    if differ_at_an_end(series) || !is_one_series && scope.is_none() {
        return Ok(());
    }
    let (scope, parties) = (scope.unwrap_or_default(), [one, other]);
    let mut seen = Vec::new();
    let others = requests(other);
    for first in requests(one) {
        for second in &others {
            let mut both = [first.clone(), second.clone()];
            let codes = both.each_ref().map(Requests::codes_total).iter().sum::<usize>();
            effort.spend(1 + codes * (1 + seen.len()));
            if !may_share(series, &scope, &mut both, effort) || seen.contains(&both) {
                continue;
            }
            search(parties, &scope, both.each_ref(), effort)?;
            seen.push(both);
        }
    }
    if effort.is_spent() { Err(refusal::unproven(parties)) } else { Ok(()) }
}

/// Looks for a text that both parties can show in these requests.
fn search(
    parties: [&Party<'_>; 2],
    scope: &[[Dimension; 2]],
    requests: [&Requests<'_>; 2],
    effort: &Effort<'_>,
) -> Result<(), Ambiguity> {
    if effort.is_spent() {
        return Err(refusal::unproven(parties));
    }
    let pairing = Pairing::of(parties.map(|party| party.series), scope, effort);
    let Some(pairing) = pairing.and_then(|pairing| pairing.within(requests)) else {
        return Err(refusal::unproven(parties));
    };
    let mut sets = CharSets::default();
    let runs = [0, 1].map(|side| {
        let Party { series, least, .. } = parties[side];
        let parts = series.parts.iter().map(|part| fragment(series, part, least, requests[side]));
        Automaton::of(&parts.collect::<Vec<_>>(), &mut sets)
    });
    match (Product { runs: runs.each_ref(), pairing: &pairing }).search(&mut sets, effort) {
        Found::Nothing => Ok(()),
        Found::TooMuch => Err(refusal::unproven(parties)),
        Found::Text(steps) => {
            Err(Shared { parties, requests, pairing: &pairing, steps: &steps }.refusal())
        }
    }
}

/// Whether the literal texts that both begin or end with differ. Most series are distinguished by
/// their prefix: no search is needed.
fn differ_at_an_end([one, other]: [&Series; 2]) -> bool {
    let ([head, tail], [its_head, its_tail]) = (one.ends(), other.ends());
    let differs = |(x, y)| x != y;
    std::iter::zip(head.chars(), its_head.chars()).any(differs)
        || std::iter::zip(tail.chars().rev(), its_tail.chars().rev()).any(differs)
}

/// The dimensions that are equal in two numbers of one scope, as each series has them; none if
/// their scopes name different dimensions, in any order: the unique key is text and scope.
fn shared_scope([one, other]: [&Series; 2]) -> Option<Vec<[Dimension; 2]>> {
    if one.scope.len() != other.scope.len() {
        return None;
    }
    let its = |name: &str| other.scope.iter().find(|dimension| name_of(other, **dimension) == name);
    let pairs = one.scope.iter().map(|own| Some([*own, *its(name_of(one, *own))?]));
    let pairs: Vec<[Dimension; 2]> = pairs.collect::<Option<_>>()?;
    Some(pairs.into_iter().filter(|[a, b]| one.table_of(*a) == other.table_of(*b)).collect())
}

/// Whether two numbers of these requests may be in one scope; reduces the requests to what both
/// have there.
fn may_share(
    series: [&Series; 2],
    scope: &[[Dimension; 2]],
    [first, second]: &mut [Requests<'_>; 2],
    effort: &Effort<'_>,
) -> bool {
    scope.iter().all(|dimensions| {
        let axes = [0, 1].map(|side| axis_of(series[side], dimensions[side]));
        let is_tabled = series[0].table_of(dimensions[0]).is_some();
        if let [Some(axis), its] = axes
            && its == Some(axis)
        {
            if first.are_apart(second, axis) {
                return false;
            }
            if !is_tabled {
                first.cut(second, axis);
            }
        }
        let values = |side: usize, requests: &Requests<'_>| {
            let values = dimension(series[side], dimensions[side], requests);
            values.or_absent(may_be_absent(series[side], dimensions[side]))
        };
        is_tabled || values(0, first).meets(&values(1, second), effort)
    })
}

/// Whether a request may do without a value of a dimension of the scope.
fn may_be_absent(series: &Series, dimension: Dimension) -> bool {
    let Dimension::Variable(index) = dimension else { return false };
    let variable = &series.variables[index];
    !variable.required && !variable.shown && variable.default.is_none()
}

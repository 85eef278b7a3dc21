//! The ambiguity proof (R2.7): no two numbers of one uniqueness scope may have one text.
//!
//! Two numbers of a series have different values, or values of different counters, of *each* of its
//! serials. So they can have one text only if for each serial something that tells its value or its
//! counter is not shown, or is read elsewhere in the text by one of them. The first is seen from
//! the definition; for the second, two runs of the series over one text are searched in full. The
//! search follows a little more than can happen and never less: where it finds nothing, there is
//! nothing. Where it finds something, two requests are made of it and rendered. Where none of
//! them collide, all lengths of the parts are gone through, and after that a second search
//! remembers what was read. A series is refused with such a pair, or because neither proof nor pair
//! was found within the bounds.
//!
//! Never says that a series is sound because a search ended early.

mod alone;
mod ambiguity;
mod automaton;
mod between;
mod charset;
mod classes;
mod collision;
mod comparison;
mod days;
mod earlier;
mod grid;
mod issued;
mod judging;
mod language;
mod lengths;
mod meeting;
mod memory;
mod moments;
mod offers;
mod product;
mod reading;
mod refined;
mod saving;
mod scope;
mod shapes;
#[cfg(test)]
mod tests;
mod texts;
mod witness;
mod world;

pub use ambiguity::{Ambiguity, CollidingRequest, Limit, TableChange};
pub use issued::IssuedVersion;
pub use saving::{Accepted, EarlierVersion, ProofError, prove_issued, prove_saved};

use alone::alone;
use between::between;
use grid::grids;

use super::Series;

/// Proves that no number of a series can have the text of another of its uniqueness scope: neither
/// of its own nor of the other active series. `active` may hold the series itself; it is told by
/// its code. `earlier` holds the versions before of all of them, as far as they may have counters.
///
/// # Errors
/// [`Ambiguity`]: two requests that collide, or that neither proof nor collision was found.
pub fn prove(
    subject: &Series,
    active: &[&Series],
    earlier: &[EarlierVersion],
) -> Result<(), Ambiguity> {
    alone(subject, &grids(subject, earlier))?;
    let others = active.iter().filter(|other| other.definition.code != subject.definition.code);
    let mut all: Vec<&Series> = others.copied().collect();
    all.push(subject);
    for other in &all[..all.len() - 1] {
        between(subject, other, [&all; 2], earlier, None)?;
    }
    Ok(())
}

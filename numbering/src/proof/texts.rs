//! What may stand at each place of a text that two runs read: which characters, and which places
//! surely show the same one.

use super::super::TEXT_CHARS_MAX;
use super::shapes::Signs;

/// What may stand at each place of the text.
#[derive(Clone)]
pub(super) struct Texts {
    /// The first place that surely shows the same character.
    same: [u8; TEXT_CHARS_MAX],
    /// The characters of these.
    signs: [Signs; TEXT_CHARS_MAX],
}

impl Texts {
    /// Anything anywhere.
    pub(super) fn new() -> Self {
        let same = std::array::from_fn(|place| u8::try_from(place).unwrap_or(u8::MAX));
        Texts { same, signs: [Signs::MAX; TEXT_CHARS_MAX] }
    }

    /// The first place that shows the same character.
    pub(super) fn first(&self, place: usize) -> usize {
        self.same[place].into()
    }

    /// The characters that may stand at a place.
    pub(super) fn at(&self, place: usize) -> Signs {
        self.signs[self.first(place)]
    }

    /// Leaves some of them; false where none are left.
    pub(super) fn restrict(&mut self, place: usize, signs: Signs) -> bool {
        let first = self.first(place);
        let known = &mut self.signs[first];
        *known &= signs;
        *known != 0
    }

    /// Two places show the same; false where they cannot.
    pub(super) fn join(&mut self, one: usize, other: usize) -> bool {
        let (one, other) = (self.same[one], self.same[other]);
        let (first, second) = (one.min(other), one.max(other));
        if first == second {
            return true;
        }
        // No place comes before the first one of its like.
        for same in &mut self.same[usize::from(second)..] {
            if *same == second {
                *same = first;
            }
        }
        let signs = self.signs[usize::from(second)];
        self.restrict(usize::from(first), signs)
    }
}

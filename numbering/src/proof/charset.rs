//! Sets of characters as ranges: what a part may show at one place. Exact about which sets meet,
//! since a meeting that is missed would be a proof that is none.

use super::super::text::{is_printable, may_begin};

/// Most characters that a meeting of two sets offers.
const PICKS_MAX: usize = 24;

/// Offered first where they fit: plain, and easy to tell apart.
pub(super) const PREFERRED: &str = "AB01CXZ23456789abcxz-./_#+ ";

/// Every character.
const EVERYTHING: (char, char) = ('\0', char::MAX);

/// The characters that may stand at one place of a part.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CharSet {
    ranges: Vec<(char, char)>,
    /// Whether the place is a part's first, where marks that combine cannot stand.
    begins: bool,
}

impl CharSet {
    /// One character.
    pub(super) fn of(character: char) -> Self {
        CharSet { ranges: vec![(character, character)], begins: false }
    }

    /// All characters of some ranges, or all there are, but for some.
    pub(super) fn without(allowed: Option<&[(char, char)]>, excluded: &[(char, char)]) -> Self {
        let mut ranges = allowed.unwrap_or(&[EVERYTHING]).to_vec();
        for hole in excluded {
            ranges = ranges.into_iter().flat_map(|range| cut(range, *hole)).collect();
        }
        CharSet { ranges, begins: false }
    }

    /// The characters of both, at a place that is no part's first.
    pub(super) fn and(&self, other: &CharSet) -> Self {
        let ranges = self.ranges.iter().chain(&other.ranges).copied().collect();
        CharSet { ranges, begins: false }
    }

    /// The same characters without the blank.
    pub(super) fn without_blank(&self) -> Self {
        CharSet::without(Some(&self.ranges), &[(' ', ' ')])
    }

    /// The same set at the first place of a part.
    pub(super) fn at_the_beginning(self) -> Self {
        CharSet { begins: true, ..self }
    }

    /// Whether the set has the character.
    pub(super) fn has(&self, character: char) -> bool {
        self.fits(character)
            && self.ranges.iter().any(|(first, last)| (*first..=*last).contains(&character))
    }

    /// Where its ranges begin, and where they are over.
    pub(super) fn bounds(&self) -> impl Iterator<Item = u32> {
        self.ranges.iter().flat_map(|(first, last)| [u32::from(*first), u32::from(*last) + 1])
    }

    /// Some characters that both sets have: all of them where there are fewer than two.
    pub(super) fn common(&self, other: &CharSet) -> Vec<char> {
        let both = |c: char| self.has(c) && other.has(c);
        let mut picks: Vec<char> = PREFERRED.chars().filter(|c| both(*c)).collect();
        let overlap = |(first, last): (char, char)| {
            let clip = move |(a, b): &(char, char)| (first.max(*a), last.min(*b));
            other.ranges.iter().map(clip).filter(|(first, last)| first <= last)
        };
        let overlaps: Vec<_> = self.ranges.iter().copied().flat_map(overlap).collect();
        for plain in [true, false] {
            if picks.len() < 2 {
                let all = overlaps.iter().flat_map(|(first, last)| *first..=*last);
                let fits = all.filter(|c| both(*c) && (!plain || may_begin(*c)));
                picks.extend(fits.take(PICKS_MAX));
                picks.dedup();
            }
        }
        picks
    }

    fn fits(&self, character: char) -> bool {
        if self.begins { may_begin(character) } else { is_printable(character) }
    }
}

/// What is left of a range without a hole.
fn cut((first, last): (char, char), (from, to): (char, char)) -> Vec<(char, char)> {
    if to < first || from > last {
        return vec![(first, last)];
    }
    let before = (first..from).next_back().map(|end| (first, end));
    let behind = (to..=last).nth(1).map(|begin| (begin, last));
    before.into_iter().chain(behind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(allowed: Option<(char, char)>, excluded: &[(char, char)]) -> CharSet {
        CharSet::without(allowed.as_ref().map(std::slice::from_ref), excluded)
    }

    #[test]
    fn sets_meet_where_both_have_a_character() {
        let digits = set(Some(('0', '9')), &[]);
        let any_but_digits = set(None, &[('0', '9')]);
        assert!(digits.common(&any_but_digits).is_empty());
        assert!(!digits.common(&set(None, &[('1', '9')])).is_empty());
        assert_eq!(digits.common(&CharSet::of('7')), ['7']);
        assert_eq!(set(None, &[('\0', 'ม'), ('ร', char::MAX)]).common(&set(None, &[])), ['ย']);
        let holes = set(Some(('a', 'e')), &[('b', 'b'), ('d', 'z')]);
        assert_eq!(holes.ranges, [('a', 'a'), ('c', 'c')]);
    }

    #[test]
    fn a_mark_that_combines_does_not_begin_a_part() {
        let marks = set(Some(('\u{e34}', '\u{e37}')), &[]);
        assert!(!marks.common(&set(None, &[])).is_empty());
        assert!(marks.common(&set(None, &[]).at_the_beginning()).is_empty());
    }

    #[test]
    fn characters_that_no_number_holds_are_no_meeting() {
        let control = set(Some(('\0', '\u{1f}')), &[]);
        assert!(control.common(&control).is_empty());
        let blank = set(Some((' ', ' ')), &[]);
        assert!(blank.without_blank().common(&blank).is_empty());
        assert!(set(Some((' ', '!')), &[]).without_blank().has('!'));
    }

    #[test]
    fn a_character_behind_many_that_no_number_holds_is_found() {
        // Behind a blank that no number holds and 33 signs that are none.
        let late = set(Some(('\u{7f}', '\u{a1}')), &[]);
        assert_eq!(late.common(&late), ['\u{a1}']);
    }
}

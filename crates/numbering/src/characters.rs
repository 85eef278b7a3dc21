//! Characters as ranges, both ends included, in order and disjoint: the form of a parsed alphabet,
//! in which no notation costs more than another.

use std::sync::LazyLock;

use super::text::is_printable;

/// A range of characters, both ends included.
pub(super) type CharRange = (char, char);

/// Every character.
pub(super) const ANY: &[CharRange] = &[('\0', char::MAX)];

/// Every printable character. Found once: an alphabet may be a million code points wide.
static PRINTABLE: LazyLock<Vec<CharRange>> = LazyLock::new(|| {
    let printable = ('\0'..=char::MAX).filter(|character| is_printable(*character));
    merged(printable.map(|character| (character, character)))
});

/// The same characters in order, no two ranges overlapping or next to each other.
pub(super) fn merged(ranges: impl IntoIterator<Item = CharRange>) -> Vec<CharRange> {
    let mut ranges: Vec<CharRange> = ranges.into_iter().collect();
    ranges.sort_unstable();
    let mut merged: Vec<CharRange> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= *end || Some(first) == after(*end) => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The characters of some ranges without those of others. Both are in order and disjoint.
pub(super) fn without(ranges: &[CharRange], holes: &[CharRange]) -> Vec<CharRange> {
    let mut left = Vec::new();
    for (first, last) in ranges {
        let mut from = Some(*first);
        let next = holes.partition_point(|(_, end)| end < first);
        for (hole, end) in holes[next..].iter().take_while(|(hole, _)| hole <= last) {
            let Some(begin) = from else { break };
            left.extend(before(*hole).filter(|end| begin <= *end).map(|end| (begin, end)));
            from = after(*end);
        }
        left.extend(from.filter(|from| from <= last).map(|from| (from, *last)));
    }
    left
}

/// The characters that are in both. Both are in order and disjoint.
pub(super) fn common<'r>(
    ranges: &'r [CharRange],
    others: &'r [CharRange],
) -> impl Iterator<Item = CharRange> + use<'r> {
    ranges.iter().flat_map(|(first, last)| {
        let next = others.partition_point(|(_, end)| end < first);
        let both = others[next..].iter().take_while(|(from, _)| from <= last);
        both.map(|(from, to)| (*first.max(from), *last.min(to)))
    })
}

/// Whether the character is among them.
pub(super) fn has(ranges: &[CharRange], character: char) -> bool {
    let next = ranges.partition_point(|(_, last)| *last < character);
    ranges.get(next).is_some_and(|(first, _)| *first <= character)
}

/// Those of them that a text may hold.
pub(super) fn printable(ranges: &[CharRange]) -> impl Iterator<Item = CharRange> + use<'_> {
    common(ranges, &PRINTABLE)
}

/// The next character, skipping the surrogates.
fn after(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

/// The character before.
fn before(character: char) -> Option<char> {
    ('\0'..character).next_back()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn() -> impl Strategy<Value = Vec<CharRange>> {
        let range = (b'a'..=b'p', 0..5_u8)
            .prop_map(|(first, more)| (char::from(first), char::from(first + more)));
        prop::collection::vec(range, 0..6)
    }

    proptest! {
        #[test]
        fn ranges_hold_what_they_are_made_of((one, other) in (drawn(), drawn())) {
            let is_in =
                |ranges: &[CharRange], c| ranges.iter().any(|(a, z)| (*a..=*z).contains(&c));
            let (first, second) = (merged(one.clone()), merged(other.clone()));
            let (left, both) = (without(&first, &second), common(&first, &second));
            let both: Vec<CharRange> = both.collect();
            for ranges in [&first, &second, &left] {
                let apart = |pair: &[CharRange]| after(pair[0].1).is_some_and(|c| c < pair[1].0);
                prop_assert!(ranges.windows(2).all(apart), "{:?}", ranges);
            }
            for c in 'a'..='z' {
                let (here, there) = (is_in(&one, c), is_in(&other, c));
                prop_assert_eq!((has(&first, c), has(&second, c)), (here, there));
                prop_assert_eq!(has(&left, c), here && !there);
                prop_assert_eq!(is_in(&both, c), here && there);
            }
        }
    }

    #[test]
    fn ranges_meet_over_the_gap_of_the_surrogates() {
        assert_eq!(merged([('\u{e000}', '\u{e001}'), ('a', '\u{d7ff}')]), [('a', '\u{e001}')]);
        assert_eq!(without(ANY, &[('\0', char::MAX)]), []);
        assert_eq!(without(ANY, &[('b', char::MAX)]), [('\0', 'a')]);
        assert!(printable(&[('\0', '\u{1f}')]).next().is_none());
        assert_eq!(printable(&[('\0', '!')]).collect::<Vec<_>>(), [(' ', '!')]);
    }
}

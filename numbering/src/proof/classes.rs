//! Characters that the search need not tell apart: those that stand in the same sets. A few of each
//! stand for all of them, and texts that are equal stay equal when each character is replaced by
//! the one that stands for it.

use std::collections::BTreeSet;

use super::super::text::may_begin;
use super::charset::{CharSet, PREFERRED};

/// Characters that stand for all: at most `most` of each class, all of it where it has no more; and
/// those of them that stand for themselves alone. Those of `alone` are classes by themselves.
pub(super) fn representatives(
    sets: &[CharSet],
    alone: &str,
    most: usize,
) -> (Vec<char>, BTreeSet<char>) {
    let mut classes: Vec<(Vec<bool>, Vec<char>)> = Vec::new();
    let mut place = |character: char| {
        let mut sign: Vec<bool> = sets.iter().map(|set| set.has(character)).collect();
        if !sign.contains(&true) {
            return;
        }
        sign.extend(alone.chars().map(|other| other == character));
        match classes.iter_mut().find(|(known, _)| *known == sign) {
            None => classes.push((sign, vec![character])),
            // One more than are wanted, to know whether there are more.
            Some((_, some)) if some.len() <= most && !some.contains(&character) => {
                some.push(character);
            }
            Some(_) => {}
        }
    };
    PREFERRED.chars().chain(alone.chars()).for_each(&mut place);
    // Between two bounds a class differs only by whether a part may begin with the character.
    let bounds: BTreeSet<u32> = sets.iter().flat_map(CharSet::bounds).collect();
    let bounds: Vec<u32> = bounds.into_iter().collect();
    for range in bounds.windows(2) {
        let all = (range[0]..range[1]).filter_map(char::from_u32);
        let visible = all.filter(|character| super::super::text::is_printable(*character));
        // Alone ones and preferred ones are in no other's way.
        let enough = 1 + most + alone.len() + PREFERRED.len();
        for begins in [true, false] {
            let some = visible.clone().filter(|character| may_begin(*character) == begins);
            some.take(enough).for_each(&mut place);
        }
    }
    let whole = classes.iter().filter(|(_, some)| some.len() <= most);
    let exact = whole.flat_map(|(_, some)| some.iter().copied()).collect();
    let some = classes.iter().flat_map(|(_, some)| some.iter().take(most).copied()).collect();
    (some, exact)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(char, char)]) -> CharSet {
        CharSet::without(Some(ranges), &[])
    }

    #[test]
    fn each_class_has_a_character_that_stands_for_it() {
        let sets = [set(&[('a', 'c')]), set(&[('c', 'e')]), set(&[('0', '9')])];
        let found = |alone: &str, most: usize| {
            let (mut found, exact) = representatives(&sets, alone, most);
            found.sort_unstable();
            (found.into_iter().collect::<String>(), exact.into_iter().collect::<String>())
        };
        let pair = |found: &str, exact: &str| (found.to_owned(), exact.to_owned());
        assert_eq!(found("", 1), pair("0acd", "c"));
        assert_eq!(found("", 2), pair("01abcde", "abcde"));
        assert_eq!(found("07", 1), pair("017acd", "07c"));
    }

    #[test]
    fn marks_that_combine_and_what_no_part_has_are_told_apart() {
        let any = CharSet::without(None, &[('x', 'x')]);
        let (found, _) = representatives(&[any.clone().at_the_beginning(), any], "", 1);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|character| !may_begin(*character)));
        assert!(!found.contains(&'x'));
    }

    #[test]
    fn a_class_is_found_wherever_its_characters_are() {
        // Before the second bound, and a sign that is to stand for itself behind many of its class.
        let (mut found, _) = representatives(&[set(&[('m', 'p')]), set(&[('n', 'n')])], "", 1);
        found.sort_unstable();
        assert_eq!(found, ['m', 'n']);
        let (found, exact) = representatives(&[CharSet::without(None, &[])], "Y", 1);
        assert!(found.contains(&'Y') && exact.contains(&'Y'), "{found:?}");
        assert!(found.len() > exact.len(), "the others stand for many");
    }
}

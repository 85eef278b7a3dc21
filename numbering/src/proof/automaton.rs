//! A series as an automaton: which characters may follow which, and in which part each stands.
//!
//! It knows for each state how far into its part the run is: two runs over one text are in the same
//! place of the same part exactly if they came into it together.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::super::figure::Figure;
use super::super::value::ValueRule;
use super::charset::CharSet;
use super::language::Language;

/// Index of a state.
pub(super) type StateId = u32;

/// Index of a set of characters.
pub(super) type SetId = u32;

/// A place within a part.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The part, or the number of parts at the end.
    pub(super) part: usize,
    /// Characters of the part before it.
    pub(super) offset: usize,
    /// What may follow, and where it leads; several ways for one character are possible.
    pub(super) edges: Vec<(SetId, StateId)>,
}

/// A series, or what is looked at of it.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    /// The states; the end is the last one.
    pub(super) states: Vec<State>,
    /// Where numbers begin.
    pub(super) starts: Vec<StateId>,
}

impl Automaton {
    /// The end of every number.
    pub(super) fn end(&self) -> StateId {
        id(self.states.len() - 1)
    }
}

/// Sets of characters, each once, and where they meet.
#[derive(Debug, Default)]
pub(super) struct Sets {
    ids: HashMap<CharSet, SetId>,
    sets: Vec<CharSet>,
    common: HashMap<(SetId, SetId), Vec<char>>,
}

impl Sets {
    fn intern(&mut self, set: &CharSet) -> SetId {
        if let Some(known) = self.ids.get(set) {
            return *known;
        }
        let new = id(self.sets.len());
        self.sets.push(set.clone());
        self.ids.insert(set.clone(), new);
        new
    }

    /// All sets.
    pub(super) fn all(&self) -> &[CharSet] {
        &self.sets
    }

    /// Whether a set has the character.
    pub(super) fn has(&self, set: SetId, character: char) -> bool {
        self.sets[set as usize].has(character)
    }

    /// Some characters that both sets have; none only if there are none.
    pub(super) fn common(&mut self, a: SetId, b: SetId) -> &[char] {
        let (sets, pair) = (&self.sets, (a.min(b), a.max(b)));
        let meet = || sets[pair.0 as usize].common(&sets[pair.1 as usize]);
        self.common.entry(pair).or_insert_with(meet)
    }
}

/// An index; automata are bounded far below the limit.
pub(super) fn id(index: usize) -> u32 {
    u32::try_from(index).expect("fewer states than a u32 counts")
}

/// A node of one part's language.
#[derive(Clone, Debug, Default)]
struct Node {
    offset: usize,
    /// Whether the part may end here.
    last: bool,
    edges: Vec<(CharSet, usize)>,
}

/// The automaton of a series whose parts have these languages.
pub(super) fn automaton(languages: &[Language], sets: &mut Sets) -> Automaton {
    let fragments: Vec<Vec<Node>> = languages.iter().map(fragment).collect();
    // Where the states of each part begin.
    let mut bases = vec![0];
    for fragment in &fragments {
        bases.push(bases[bases.len() - 1] + fragment.len());
    }
    // Where one may be behind the parts before: at the next, or past one that may be empty.
    let mut entries: Vec<Vec<usize>> = vec![vec![bases[fragments.len()]]];
    for (part, fragment) in fragments.iter().enumerate().rev() {
        let mut entry = vec![bases[part]];
        if fragment[0].last {
            entry.extend_from_slice(&entries[entries.len() - 1]);
        }
        entries.push(entry);
    }
    entries.reverse();
    let mut states = Vec::new();
    for (part, fragment) in fragments.iter().enumerate() {
        for Node { offset, edges, .. } in fragment {
            let mut ways = Vec::new();
            for (set, to) in edges {
                let set = sets.intern(set);
                if !fragment[*to].edges.is_empty() {
                    ways.push((set, id(bases[part] + to)));
                }
                if fragment[*to].last {
                    ways.extend(entries[part + 1].iter().map(|entry| (set, id(*entry))));
                }
            }
            states.push(State { part, offset: *offset, edges: ways });
        }
    }
    states.push(State { part: languages.len(), offset: 0, edges: Vec::new() });
    Automaton { states, starts: entries[0].iter().copied().map(id).collect() }
}

/// The nodes of one language; the first is its beginning.
fn fragment(language: &Language) -> Vec<Node> {
    match language {
        Language::OneOf(texts) => tree(texts),
        Language::Value(rule) => value(rule),
        Language::Number { least, most, width } => number(*least, *most, *width),
        Language::Letters { least, most } => letters(*least, *most),
    }
}

/// Texts with common beginnings share their nodes: one text is one way.
fn tree(texts: &[String]) -> Vec<Node> {
    let mut nodes = vec![Node::default()];
    let mut known: HashMap<(usize, char), usize> = HashMap::new();
    for text in texts {
        let mut at = 0;
        for character in text.chars() {
            at = *known.entry((at, character)).or_insert_with(|| {
                let (new, offset) = (nodes.len(), nodes[at].offset + 1);
                nodes.push(Node { offset, ..Node::default() });
                nodes[at].edges.push((CharSet::of(character), new));
                new
            });
        }
        nodes[at].last = true;
    }
    nodes
}

/// Two nodes for each length: behind a character that may be the last, and behind a blank.
fn value(rule: &ValueRule) -> Vec<Node> {
    let (least, most) = rule.widths();
    let (allowed, excluded) = rule.ranges();
    let any = CharSet::without(allowed, excluded);
    let visible = any.without_blank();
    let blank = any.has(' ').then(|| CharSet::of(' '));
    let node = |index: usize| {
        let (offset, behind_blank) = (index / 2, index % 2 == 1);
        let mut edges = Vec::new();
        if offset == 0 {
            edges.push((visible.clone().at_the_beginning(), 2));
        } else if offset < most {
            edges.push((visible.clone(), index / 2 * 2 + 2));
            edges.extend(blank.clone().map(|blank| (blank, index / 2 * 2 + 3)));
        }
        Node { offset, last: offset >= least && !behind_blank, edges }
    };
    (0..2 * (most + 1)).map(node).collect()
}

/// As many letters as there may be.
fn letters(least: usize, most: usize) -> Vec<Node> {
    let letter = CharSet::without(Some(&[('A', 'Z')]), &[]);
    let node = |offset: usize| {
        let edges = if offset < most { vec![(letter.clone(), offset + 1)] } else { Vec::new() };
        Node { offset, last: offset >= least, edges }
    };
    (0..=most).map(node).collect()
}

/// How far a number has been read, as far as it matters for what may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Reading {
    offset: usize,
    /// It began with a zero: then it has exactly its width.
    padded: bool,
    /// Against the digits of the smallest, as many as the width has.
    above: Ordering,
    /// Against the digits of the largest.
    against: Ordering,
}

/// Digits from left to right, told apart by whether the smallest number is reached and the largest
/// one passed.
fn number(least: u64, most: u64, width: usize) -> Vec<Node> {
    let longest = width.max(Figure::PLAIN.chars(most));
    let digits = |value: u64, width: usize| -> Vec<u32> {
        format!("{value:0width$}").chars().filter_map(|c| c.to_digit(10)).collect()
    };
    let (limit, from) = (digits(most, longest), digits(least, width));
    assert!(from.len() <= width, "a number of fewer digits than the smallest is padded");
    let (above, against) = (Ordering::Equal, Ordering::Equal);
    let first = Reading { offset: 0, padded: false, above, against };
    let mut known = HashMap::from([(first, 0)]);
    let mut readings = vec![first];
    let mut nodes: Vec<Node> = Vec::new();
    while let Some(&at) = readings.get(nodes.len()) {
        let mut edges: Vec<(CharSet, usize)> = Vec::new();
        let length = if at.padded { width } else { longest };
        for digit in 0..=9 {
            if at.offset == length {
                break;
            }
            let next = Reading {
                offset: at.offset + 1,
                padded: at.padded || (at.offset == 0 && digit == 0),
                above: match from.get(at.offset).map(|other| at.above.then(digit.cmp(other))) {
                    Some(above) if above.is_lt() || at.offset + 1 < from.len() => above,
                    // Not smaller, or longer than the width.
                    _ => Ordering::Greater,
                },
                against: at.against.then(digit.cmp(&limit[at.offset])),
            };
            let to = *known.entry(next).or_insert_with(|| {
                readings.push(next);
                readings.len() - 1
            });
            let digit = char::from_digit(digit, 10).expect("one digit");
            edges.push((CharSet::of(digit), to));
        }
        // A shorter number than the largest is smaller, whatever its digits.
        let fits = at.offset < longest || at.against.is_le();
        let complete = at.offset >= width && (!at.padded || at.offset == width);
        let last = complete && fits && at.above.is_ge();
        nodes.push(Node { offset: at.offset, last, edges: joined(edges) });
    }
    nodes
}

/// One edge for neighbouring digits that lead to one node.
fn joined(edges: Vec<(CharSet, usize)>) -> Vec<(CharSet, usize)> {
    let mut joined: Vec<(CharSet, usize)> = Vec::new();
    for (set, to) in edges {
        match joined.iter_mut().find(|(_, known)| *known == to) {
            Some((whole, _)) => *whole = whole.and(&set),
            None => joined.push((set, to)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::super::super::VariableDefinition;
    use super::*;

    /// Whether the automaton of one part reads the text.
    fn reads(language: &Language, text: &str) -> bool {
        let mut sets = Sets::default();
        let automaton = automaton(std::slice::from_ref(language), &mut sets);
        let mut at = automaton.starts.clone();
        for character in text.chars() {
            let states = at.iter().map(|state| &automaton.states[*state as usize]);
            let ways = states.flat_map(|state| &state.edges);
            at = ways
                .filter(|(set, _)| sets.sets[*set as usize].has(character))
                .map(|(_, to)| *to)
                .collect();
        }
        at.contains(&automaton.end())
    }

    #[test]
    fn a_number_is_read_as_it_is_written() {
        let padded = |least, most, width| Language::Number { least, most, width };
        for (language, yes, no) in [
            (padded(1, 120, 3), vec!["001", "099", "120"], vec!["000", "121", "1", "0001"]),
            (padded(1, 120, 1), vec!["1", "99", "120"], vec!["0", "01", "121", "1000"]),
            (padded(1, 1200, 3), vec!["001", "999", "1000", "1200"], vec!["0100", "1201"]),
            (padded(1, 20, 4), vec!["0001", "0020"], vec!["0021", "20", "0000"]),
            (padded(0, 59, 2), vec!["00", "59", "07"], vec!["60", "7"]),
            (padded(207, 2500, 3), vec!["207", "300", "1000"], vec!["206", "099", "2501", "0300"]),
        ] {
            for text in yes {
                assert!(reads(&language, text), "{language:?} {text}");
            }
            for text in no {
                assert!(!reads(&language, text), "{language:?} {text}");
            }
        }
    }

    #[test]
    fn a_value_is_read_by_its_rule() {
        let declared = VariableDefinition {
            excluded: Some("-".into()),
            width_max: Some(3),
            ..VariableDefinition::default()
        };
        let language = Language::Value(ValueRule::compile("V", &declared).expect("a sound rule"));
        for text in ["A", "a b", "ก่ำ", "abc"] {
            assert!(reads(&language, text), "{text}");
        }
        for text in ["", "a ", " a", "a-b", "abcd", "\u{e48}ก", "a\nb"] {
            assert!(!reads(&language, text), "{text:?}");
        }
    }

    #[test]
    fn letters_are_read_by_their_number() {
        let language = Language::Letters { least: 2, most: 3 };
        for (text, expected) in [("A", false), ("AA", true), ("ZZZ", true), ("AAAA", false)] {
            assert_eq!(reads(&language, text), expected, "{text}");
        }
        assert!(!reads(&language, "A1") && !reads(&language, "aa"));
    }

    #[test]
    fn a_list_is_read_entry_by_entry() {
        let language = Language::OneOf(["AB", "A", "B-C"].map(String::from).into());
        for (text, expected) in [("A", true), ("AB", true), ("B-C", true), ("B", false)] {
            assert_eq!(reads(&language, text), expected, "{text}");
        }
    }
}

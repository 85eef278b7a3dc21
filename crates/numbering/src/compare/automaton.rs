//! A series as an automaton: which characters may follow each other, and to which part each state
//! belongs. Reads at least every text that the series can show.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::super::draft::ABSENT;
use super::super::value::{VALUE_CHARS_MAX, ValueRule};
use super::chars::{CharSet, CharSets, SetId};
use super::effort::Effort;

/// Index of a state.
pub(super) type StateId = u32;

/// A place within a part.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// The part, or the number of parts at the end.
    pub(super) part: usize,
    /// What may follow, and where it leads; several ways for one character are possible. A way into
    /// another part leads from this part to the start of the next.
    pub(super) edges: Vec<(SetId, StateId)>,
}

/// The parts of a series, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    /// The end of every number is the last one.
    pub(super) states: Vec<State>,
    pub(super) start: StateId,
}

impl Automaton {
    /// Concatenated parts; none of them reads the empty text.
    pub(super) fn of(parts: &[Fragment], sets: &mut CharSets) -> Self {
        let id = |index: usize| StateId::try_from(index).expect("few states");
        let mut bases = vec![0];
        for part in parts {
            bases.push(bases[bases.len() - 1] + part.nodes.len());
        }
        let end = bases[parts.len()];
        let start_of = |part: usize| id(parts.get(part).map_or(end, |p| bases[part] + p.start));
        let mut states = Vec::with_capacity(end + 1);
        for (part, fragment) in parts.iter().enumerate() {
            for node in &fragment.nodes {
                let mut edges = Vec::with_capacity(node.edges.len());
                for (set, to) in &node.edges {
                    let set = sets.id(set);
                    if !fragment.nodes[*to].edges.is_empty() {
                        edges.push((set, id(bases[part] + to)));
                    }
                    if fragment.nodes[*to].may_end {
                        edges.push((set, start_of(part + 1)));
                    }
                }
                states.push(State { part, edges });
            }
        }
        states.push(State { part: parts.len(), edges: Vec::new() });
        Automaton { states, start: start_of(0) }
    }

    /// The end of every number.
    pub(super) fn end(&self) -> StateId {
        StateId::try_from(self.states.len() - 1).expect("few states")
    }
}

/// A state of one part alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    /// Whether the part may end here.
    may_end: bool,
    edges: Vec<(Rc<CharSet>, usize)>,
}

/// The automaton of one part.
#[derive(Clone, Debug)]
pub(super) struct Fragment {
    nodes: Vec<Node>,
    start: usize,
}

impl Fragment {
    /// Some texts; common beginnings share their states.
    pub(super) fn tree<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut nodes = vec![Node::default()];
        let mut known: HashMap<(usize, char), usize> = HashMap::new();
        for text in texts {
            let mut at = 0;
            for character in text.chars() {
                at = *known.entry((at, character)).or_insert_with(|| {
                    nodes.push(Node::default());
                    let new = nodes.len() - 1;
                    nodes[at].edges.push((Rc::new(CharSet::of(character)), new));
                    new
                });
            }
            nodes[at].may_end = true;
        }
        Fragment { nodes, start: 0 }
    }

    /// `width` characters of a set.
    pub(super) fn chain(set: CharSet, width: usize) -> Self {
        let set = Rc::new(set);
        let node = |at: usize| {
            let edges = if at < width { vec![(Rc::clone(&set), at + 1)] } else { Vec::new() };
            Node { may_end: at == width, edges }
        };
        Fragment { nodes: (0..=width).map(node).collect(), start: 0 }
    }

    /// Every value of a rule: no blank at either end. Without a declared width it has any length.
    pub(super) fn value(rule: &ValueRule) -> Self {
        let any = characters(rule);
        let blank = any.has(' ').then(|| Rc::new(CharSet::of(' ')));
        let visible = Rc::new(any.without(' '));
        let (least, most) = rule.widths();
        let loops = (least, most) == (1, VALUE_CHARS_MAX);
        let longest = if loops { 1 } else { most };
        // After each length two states: after a visible character, and after a blank.
        let mut nodes = vec![Node { may_end: false, edges: vec![(Rc::clone(&visible), 1)] }];
        for chars in 1..=longest {
            let next = if loops { 1 } else { 2 * chars + 1 };
            let mut edges = Vec::new();
            if loops || chars < longest {
                edges.push((Rc::clone(&visible), next));
                edges.extend(blank.iter().map(|blank| (Rc::clone(blank), next + 1)));
            }
            nodes.push(Node { may_end: chars >= least, edges: edges.clone() });
            nodes.push(Node { may_end: false, edges });
        }
        Fragment { nodes, start: 0 }
    }

    /// The same texts, and the replacement of a value if it may be absent.
    pub(super) fn or_absent(mut self, may_be_absent: bool) -> Self {
        if may_be_absent {
            let end = self.nodes.len();
            self.nodes.push(Node { may_end: true, edges: Vec::new() });
            let absent = ABSENT.chars().map(|sign| (Rc::new(CharSet::of(sign)), end));
            self.nodes[self.start].edges.extend(absent);
        }
        self
    }

    /// Whether some text is in both. True if the effort does not suffice to find out.
    pub(super) fn meets(&self, other: &Self, effort: &Effort<'_>) -> bool {
        let mut queue = vec![[self.start, other.start]];
        let mut known = HashSet::from([queue[0]]);
        while let Some([one, its]) = queue.pop() {
            let (node, its_node) = (&self.nodes[one], &other.nodes[its]);
            let pairs = 1 + node.edges.len() * its_node.edges.len();
            if node.may_end && its_node.may_end || !effort.spend(pairs) {
                return true;
            }
            for (set, to) in &node.edges {
                for (its_set, its_to) in &its_node.edges {
                    let pair = [*to, *its_to];
                    if !known.contains(&pair) && set.common(its_set).is_some() {
                        known.insert(pair);
                        queue.push(pair);
                    }
                }
            }
        }
        false
    }

    /// Texts of signs in order, from the `least` to the `greatest`, by their lengths and then by
    /// their signs. A text longer than `width` does not begin with a zero.
    pub(super) fn between(signs: (char, char), least: &str, greatest: &str, width: usize) -> Self {
        let bounds = [least, greatest].map(|text| text.chars().collect::<Vec<char>>());
        let mut known = vec![Progress { chars: 0, to_bounds: [Ordering::Equal; 2], zero: false }];
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(at) = known.get(nodes.len()).copied() {
            let mut edges: BTreeMap<usize, Vec<(char, char)>> = BTreeMap::new();
            let may_go_on = at.chars < bounds[1].len() && !(at.zero && at.chars >= width);
            for sign in (signs.0..=signs.1).filter(|_| may_go_on) {
                let next = at.behind(sign, &bounds);
                let to = known.iter().position(|known| *known == next).unwrap_or(known.len());
                if to == known.len() {
                    known.push(next);
                }
                edges.entry(to).or_default().push((sign, sign));
            }
            let edges = edges.into_iter().map(|(to, signs)| (Rc::new(CharSet::within(&signs)), to));
            nodes.push(Node { may_end: at.is_within(&bounds), edges: edges.collect() });
        }
        Fragment { nodes, start: 0 }
    }
}

/// The characters of a rule.
pub(super) fn characters(rule: &ValueRule) -> CharSet {
    CharSet::within(rule.ranges())
}

/// The progress of a text, compared with the same length of the least and of the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress {
    chars: usize,
    to_bounds: [Ordering; 2],
    /// Whether it began with a zero.
    zero: bool,
}

impl Progress {
    /// One sign further. Of two texts the longer one is greater.
    fn behind(self, sign: char, bounds: &[Vec<char>; 2]) -> Self {
        let to_bounds = [0, 1].map(|bound| match bounds[bound].get(self.chars) {
            Some(other) => self.to_bounds[bound].then(sign.cmp(other)),
            None => Ordering::Greater,
        });
        let zero = if self.chars == 0 { sign == '0' } else { self.zero };
        Progress { chars: self.chars + 1, to_bounds, zero }
    }

    /// Whether the text may end: it is neither below the least nor above the greatest.
    fn is_within(self, bounds: &[Vec<char>; 2]) -> bool {
        let to = |bound: usize| self.chars.cmp(&bounds[bound].len()).then(self.to_bounds[bound]);
        to(0) != Ordering::Less && to(1) != Ordering::Greater
    }
}

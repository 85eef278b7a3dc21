//! What two numbers have in common before any text is examined: the places that show the same, and
//! the identities in which two allocations differ.
//!
//! An allocation takes a new value of every serial, and no id is drawn twice. So two allocations
//! that have an identity in common differ in at least one of its components. A value from a source
//! is such an identity, too: if the source repeats it, the ledger refuses the second number of that
//! text before it is handed out, and the template is not at fault for texts that differ only in it.

use jiff::civil::DateTime;

use super::super::draft::ABSENT;
use super::super::pattern::DateField;
use super::super::series::Dimension;
use super::super::template::Part;
use super::super::{Reset, Series, Style};
use super::automaton::characters;
use super::effort::Effort;
use super::language::{Shows, name_of, rule_of, shows};
use super::periods;
use super::requests::{Requests, axis_of, listed};

/// Most lengths that are compared: each makes the search many times as large.
pub(super) const LENGTHS_MAX: usize = 3;

/// Most marks.
pub(super) const MARKS_MAX: u32 = 64;

/// A part of the first number and a part of the second that show the same.
type Place = [usize; 2];

/// Something in which two numbers may differ and that their texts do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hidden<'s> {
    /// The value of a serial.
    Value,
    /// A dimension that its counter counts by.
    Dimension(&'s str),
    /// The phase that its counter belongs to.
    Phase,
    /// The period that its counter belongs to, at two moments that show the same.
    Period([DateTime; 2]),
}

/// Values in which two allocations differ: an id, or a value and its counter.
#[derive(Clone, Debug)]
pub(super) struct Identity<'s> {
    /// Name of the serial; none: it is not a serial.
    pub(super) serial: Option<&'s str>,
    pub(super) reset: Reset,
    /// If something is hidden, any two texts may differ in it.
    pub(super) hidden: Vec<Hidden<'s>>,
    /// Otherwise it differs if all marks of one of these are set.
    pub(super) marks: Vec<u64>,
}

/// Lengths that are equal at the end.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    /// What a character of each part adds to the difference, in the first run and in the second.
    pub(super) weights: [Vec<i16>; 2],
    /// No difference on the way to equal lengths is larger.
    pub(super) most: i16,
    /// The last parts that count.
    pub(super) last: Place,
}

/// Two versions compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Pairing<'s> {
    series: [&'s Series; 2],
    pub(super) is_one_series: bool,
    /// For each part of the first, the part of the second that is the same place.
    pub(super) places: Vec<Option<usize>>,
    /// Whether a place has one value in both numbers, because the scope has it.
    pub(super) is_same: Vec<bool>,
    /// The marks that the parts of each run set if they are read differently.
    pub(super) marks: [Vec<u64>; 2],
    marks_used: u32,
    pub(super) identities: Vec<Identity<'s>>,
    pub(super) lengths: Vec<Lengths>,
}

impl<'s> Pairing<'s> {
    /// Two versions, with the dimensions that are equal in a scope of both. None if there are more
    /// marks than are kept, or the effort is spent.
    pub(super) fn of(
        series: [&'s Series; 2],
        scope: &[[Dimension; 2]],
        effort: &Effort<'_>,
    ) -> Option<Self> {
        let parts = series.map(|series| series.parts.len());
        let mut pairing = Pairing {
            series,
            is_one_series: series[0].definition.code == series[1].definition.code,
            places: vec![None; parts[0]],
            is_same: vec![false; parts[0]],
            marks: parts.map(|parts| vec![0; parts]),
            marks_used: 0,
            identities: Vec::new(),
            lengths: Vec::new(),
        };
        pairing.pair(scope);
        pairing.identify(scope, effort);
        pairing.measure();
        (pairing.marks_used <= MARKS_MAX && !effort.is_spent()).then_some(pairing)
    }

    /// The same for these requests: a place whose values are never shared is read differently.
    pub(super) fn within(&self, requests: [&Requests<'_>; 2]) -> Option<Self> {
        let mut pairing = self.clone();
        for (index, place) in self.places.iter().enumerate() {
            let Some(place) = *place else { continue };
            let axis = |side: usize, part: usize| match shows(&self.series[side].parts[part]) {
                Shows::Dimension(dimension) => axis_of(self.series[side], dimension),
                _ => None,
            };
            if let (Some(axis), its) = (axis(0, index), axis(1, place))
                && its == Some(axis)
                && requests[0].are_apart(requests[1], axis)
            {
                let places = vec![(vec![[index, place]], Hidden::Value)];
                pairing.identify_by(None, Reset::None, places, Vec::new());
            }
        }
        (pairing.marks_used <= MARKS_MAX).then_some(pairing)
    }

    /// For each part of the first the next one of the second that shows the same.
    fn pair(&mut self, scope: &[[Dimension; 2]]) {
        let [one, other] = self.series;
        let mut free = vec![true; other.parts.len()];
        for (index, part) in one.parts.iter().enumerate() {
            let fits = |at: &usize| free[*at] && self.show_the_same(part, &other.parts[*at]);
            let Some(place) = (0..other.parts.len()).find(fits) else { continue };
            free[place] = false;
            self.places[index] = Some(place);
            // A row of a table may have been renamed.
            let in_scope = |wanted| scope.iter().any(|[dimension, _]| *dimension == wanted);
            self.is_same[index] = matches!(shows(part), Shows::Dimension(dimension)
                if one.table_of(dimension).is_none() && in_scope(dimension));
        }
    }

    fn show_the_same(&self, part: &Part, its: &Part) -> bool {
        let [one, other] = self.series;
        match (part, its) {
            (Part::Snowflake, Part::Snowflake) => true,
            (Part::Serial { serial, format }, Part::Serial { serial: its, format: its_format }) => {
                // Letters are read by width: `AA` is 1 with two letters, and 27 without a width.
                let is_read_alike = format.style == its_format.style
                    && (format.style == Style::Digits || format.width == its_format.width);
                let is_one = one.serials[*serial].name == other.serials[*its].name;
                self.is_one_series && is_one && is_read_alike
            }
            (Part::Phase, Part::Phase) => self.is_one_series,
            (Part::Date(field), Part::Date(its)) => self.is_one_series && field == its,
            _ => match (shows(part), shows(its)) {
                (Shows::Dimension(a), Shows::Dimension(b)) => self.are_one(a, b),
                _ => false,
            },
        }
    }

    /// Whether two dimensions are one: of one name and of one table.
    fn are_one(&self, a: Dimension, b: Dimension) -> bool {
        let [one, other] = self.series;
        name_of(one, a) == name_of(other, b) && one.table_of(a) == other.table_of(b)
    }

    /// The places that show something of the first series.
    fn showing(&self, wanted: Shows) -> Vec<Place> {
        let parts = self.series[0].parts.iter().enumerate();
        let shown = parts.filter(|(_, part)| shows(part) == wanted);
        shown.filter_map(|(index, _)| Some([index, self.places[index]?])).collect()
    }

    /// The identities that both have: the id, what one source gives both, and serials of the same
    /// counters.
    fn identify(&mut self, scope: &[[Dimension; 2]], effort: &Effort<'_>) {
        let ids = self.showing(Shows::Id);
        if !ids.is_empty() {
            self.identify_by(None, Reset::None, vec![(ids, Hidden::Value)], Vec::new());
        }
        let given = self.given();
        if !given.is_empty() {
            self.identify_by(None, Reset::None, vec![(given, Hidden::Value)], Vec::new());
        }
        let serials = self.series.map(|series| series.serials.len());
        for at in (0..serials[0]).flat_map(|one| (0..serials[1]).map(move |other| [one, other])) {
            if self.is_one_series && self.counts_alike(at) {
                self.identify_serial(at, scope, effort);
            }
        }
    }

    /// The places that show what one source gives to both. Another series may be given the same
    /// values: whether a source distinguishes series is not known.
    fn given(&self) -> Vec<Place> {
        let sourced = self.series.map(Series::sourced);
        let (true, Some(one)) = (self.is_one_series && sourced[0] == sourced[1], sourced[0]) else {
            return Vec::new();
        };
        let mut variables = self.series[0].variables.iter();
        let index = variables.position(|variable| variable.name == one.variable);
        index.map_or_else(Vec::new, |index| {
            self.showing(Shows::Dimension(Dimension::Variable(index)))
        })
    }

    /// Whether two serials take their values from the same counters.
    fn counts_alike(&self, at: Place) -> bool {
        let [one, other] = [0, 1].map(|side| &self.series[side].counters[at[side]]);
        let names = [0, 1].map(|side| &self.series[side].serials[at[side]].name);
        let mut pairs = std::iter::zip(&one.dimensions, &other.dimensions);
        (names[0], one.reset, one.dimensions.len())
            == (names[1], other.reset, other.dimensions.len())
            && pairs.all(|(a, b)| self.are_one(*a, *b))
    }

    /// A serial that both count alike: its value, and all that its counter counts by.
    fn identify_serial(&mut self, at: Place, scope: &[[Dimension; 2]], effort: &Effort<'_>) {
        let [one, other] = self.series;
        let (rule, its) = (&one.counters[at[0]], &other.counters[at[1]]);
        let mut components = vec![(self.showing(Shows::Serial(at[0])), Hidden::Value)];
        for (a, b) in std::iter::zip(&rule.dimensions, &its.dimensions) {
            let constant = constant(one, *a);
            let is_one = constant.is_some() && constant == self::constant(other, *b);
            if !is_one && !scope.contains(&[*a, *b]) {
                let hidden = Hidden::Dimension(name_of(one, *a));
                components.push((self.showing(Shows::Dimension(*a)), hidden));
            }
        }
        if rule.reset == Reset::Phase {
            components.push((self.showing(Shows::Phase), Hidden::Phase));
        }
        let mut dates: Vec<DateField> = Vec::new();
        for (part, place) in std::iter::zip(&one.parts, &self.places) {
            if let (Part::Date(field), Some(_)) = (part, place)
                && !dates.contains(field)
            {
                dates.push(*field);
            }
        }
        let mut hidden = Vec::new();
        match periods::determining(rule.reset, [one.fiscal, other.fiscal], &dates, effort) {
            Ok(fields) => components.extend(
                fields.into_iter().map(|field| (self.showing(Shows::Date(field)), Hidden::Value)),
            ),
            Err(moments) => hidden.push(Hidden::Period(moments)),
        }
        self.identify_by(Some(&one.serials[at[0]].name), rule.reset, components, hidden);
    }

    /// An identity of components, each shown at some places or hidden. A component with several
    /// places differs only if all of them are read differently.
    fn identify_by(
        &mut self,
        serial: Option<&'s str>,
        reset: Reset,
        components: Vec<(Vec<Place>, Hidden<'s>)>,
        mut hidden: Vec<Hidden<'s>>,
    ) {
        let (mut single, mut marks) = (Vec::new(), Vec::new());
        for (places, is_hidden) in components {
            match places[..] {
                [] => hidden.push(is_hidden),
                [only] => single.push(only),
                _ => marks.push(places.iter().fold(0, |all, place| all | self.mark(&[*place]))),
            }
        }
        if !single.is_empty() {
            marks.push(self.mark(&single));
        }
        self.identities.push(Identity { serial, reset, hidden, marks });
    }

    /// A new mark that these places set.
    fn mark(&mut self, places: &[Place]) -> u64 {
        let mark = 1_u64.checked_shl(self.marks_used).unwrap_or(0);
        self.marks_used += 1;
        for [one, other] in places {
            self.marks[0][*one] |= mark;
            self.marks[1][*other] |= mark;
        }
        mark
    }

    /// What the length determines: a value of the scope is as long in both numbers, and one that is
    /// shown several times is as long each time.
    fn measure(&mut self) {
        let [one, other] = self.series;
        let mut first: Vec<(Dimension, Place)> = Vec::new();
        for (index, part) in one.parts.iter().enumerate() {
            let Shows::Dimension(dimension) = shows(part) else { continue };
            let Some(place) = self.places[index] else { continue };
            let Shows::Dimension(its) = shows(&other.parts[place]) else { continue };
            let [(least, most), (_, its_most)] =
                [rule_of(one, dimension), rule_of(other, its)].map(|rule| rule.widths());
            let before =
                first.iter().find(|(known, _)| *known == dimension).map(|(_, place)| *place);
            first.push((dimension, [index, place]));
            let places = match before {
                _ if least == most || self.lengths.len() == LENGTHS_MAX => continue,
                _ if self.is_same[index] => vec![([index, place], 1)],
                Some(before) => vec![(before, 1), ([index, place], -1)],
                None => continue,
            };
            let mut weights = self.series.map(|series| vec![0; series.parts.len()]);
            for ([part, its], weight) in &places {
                weights[0][*part] += weight;
                weights[1][*its] -= weight;
            }
            let last =
                [0, 1].map(|side| places.iter().map(|(place, _)| place[side]).max().unwrap_or(0));
            let most = i16::try_from(2 * most.max(its_most)).unwrap_or(i16::MAX);
            self.lengths.push(Lengths { weights, most, last });
        }
    }
}

/// The one value that a dimension has in every number, if it has only one.
fn constant(series: &Series, dimension: Dimension) -> Option<String> {
    if dimension == Dimension::Type && Series::takes_any_type(&series.definition) {
        return None;
    }
    match (axis_of(series, dimension).map(|axis| listed(series, axis)), dimension) {
        (Some([only]), _) => Some(only.clone()),
        (Some([]) | None, Dimension::Variable(index)) => {
            let variable = &series.variables[index];
            let ((least, most), characters) =
                (variable.rule.widths(), characters(&variable.rule).some(2));
            let [only] = characters[..] else { return None };
            let text = only.to_string().repeat(least);
            let has_value = variable.required || variable.shown || variable.default.is_some();
            (least == most && (has_value || text == ABSENT)).then_some(text)
        }
        _ => None,
    }
}

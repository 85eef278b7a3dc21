//! The days that the fields of one number's date can show together, by what its places may show.
//!
//! Years that are far apart are told from each other only where the fields do so: in the place of
//! one stands another that has the same days.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::Series;
use super::super::pattern::DateField;
use super::super::template::Part;
use super::moments;
use super::shapes::{Alphabet, Signs};
use super::texts::Texts;

/// Most dates that are looked at.
const LOOKED_MAX: usize = 400_000;

/// Most dates of two runs of which one is looked for that makes a difference.
const DATES_MAX: usize = 2_000;

/// The values of the fields of both runs.
pub(super) type Date = [Vec<i64>; 2];

/// Dates of two runs.
pub(super) struct Dates {
    pub(super) some: Vec<Date>,
    /// Whether there are no others.
    pub(super) are_all: bool,
    /// One of each kind that there is; none where more than its kind matters of a date.
    pub(super) kinds: Option<Vec<Date>>,
}

/// What is known of the places that show dates, the first place of each kind by its order; and
/// whether no other parts show these.
type Known = (Vec<(usize, Signs)>, bool);

/// Dates that were found.
#[derive(Default)]
struct Found {
    some: Vec<Date>,
    is_cut: bool,
    /// Whether one of each kind is looked for: of which fields are equal.
    by_kind: bool,
    kinds: Vec<Date>,
    known: HashSet<Vec<bool>>,
}

impl Found {
    /// False where enough is found.
    fn add(&mut self, date: &Date) -> bool {
        let [first, second] = date;
        let pairs = first.iter().flat_map(|one| second.iter().map(move |other| one == other));
        if self.by_kind && self.known.insert(pairs.collect()) {
            self.kinds.push(date.clone());
        }
        self.is_cut = self.some.len() == DATES_MAX;
        if !self.is_cut {
            self.some.push(date.clone());
        }
        self.by_kind || !self.is_cut
    }
}

/// The fields of both runs, and the dates found so far.
pub(super) struct Calendar {
    days: [Days; 2],
    /// By what is known of the places that show them.
    dates: HashMap<Known, Rc<Dates>>,
    looked: usize,
}

impl Calendar {
    pub(super) fn of(series: [&Series; 2]) -> Self {
        Calendar { days: series.map(Days::of), dates: HashMap::new(), looked: 0 }
    }

    /// Whether what a part shows is judged here.
    pub(super) fn judges(&self, side: usize, part: usize) -> bool {
        self.days[side].fields.iter().any(|(other, _)| *other == part)
    }

    /// The dates that both runs can show; `starts`: where their parts begin.
    pub(super) fn dates(
        &mut self,
        alphabet: &Alphabet,
        starts: &[Vec<usize>; 2],
        texts: &Texts,
    ) -> Rc<Dates> {
        // Whatever else the lengths are: the same dates fit where the same is known of them.
        let mut firsts: Vec<usize> = Vec::new();
        let places = [0, 1].map(|side| {
            let fields = self.days[side].fields.iter();
            let places = fields.map(|(part, _)| starts[side][*part]..starts[side][*part + 1]);
            places.flatten().collect::<Vec<usize>>()
        });
        let known = places.iter().flatten().map(|place| {
            let place = *place;
            let first = texts.first(place);
            let known = firsts.iter().position(|other| *other == first);
            let index = known.unwrap_or_else(|| {
                firsts.push(first);
                firsts.len() - 1
            });
            (index, texts.at(place))
        });
        let known: Vec<(usize, Signs)> = known.collect();
        // Where digits of dates stand for digits of dates alone, all that the dates tell of other
        // parts is which fields are equal, but for check characters.
        let is_date = |place| places.iter().all(|places| places.contains(&place));
        let mut all = 0..starts[0].last().copied().unwrap_or(0);
        let by_kind = all.all(|place| !firsts.contains(&texts.first(place)) || is_date(place));
        let key = (known, by_kind);
        if let Some(dates) = self.dates.get(&key) {
            return Rc::clone(dates);
        }
        let mut found = Found { by_kind, ..Found::default() };
        let is_through = self.read(alphabet, starts, texts, &mut Date::default(), &mut found);
        let Found { some, is_cut, kinds, .. } = found;
        let kinds = (by_kind && is_through).then_some(kinds);
        let dates = Rc::new(Dates { some, are_all: is_through && !is_cut, kinds });
        self.dates.insert(key, Rc::clone(&dates));
        dates
    }

    /// Writes a date that fits.
    pub(super) fn write(
        &self,
        alphabet: &Alphabet,
        starts: &[Vec<usize>; 2],
        texts: &mut Texts,
        date: &Date,
    ) {
        for side in [0, 1] {
            for ((part, field), value) in std::iter::zip(&self.days[side].fields, &date[side]) {
                show(alphabet, texts, starts[side][*part], (*field, *value));
            }
        }
    }

    /// Reads each field in turn in every way; false where there are more than are wanted. `read`:
    /// the fields before.
    fn read(
        &mut self,
        alphabet: &Alphabet,
        starts: &[Vec<usize>; 2],
        texts: &Texts,
        read: &mut Date,
        found: &mut Found,
    ) -> bool {
        let next = (0..2).find_map(|side| Some((side, self.days[side].field(read[side].len())?)));
        let Some((side, (part, field))) = next else {
            return found.add(read);
        };
        let start = starts[side][part];
        let digits = |place: usize| {
            let known = texts.at(start + place);
            (0..10).filter(move |digit| known & alphabet.digit(*digit) != 0)
        };
        for value in self.days[side].values(&read[side], field, digits) {
            if self.looked == LOOKED_MAX {
                return false;
            }
            self.looked += 1;
            let mut next = texts.clone();
            if !show(alphabet, &mut next, start, (field, value)) {
                continue;
            }
            read[side].push(value);
            let are_all = !self.days[side].have(&read[side])
                || self.read(alphabet, starts, &next, read, found);
            read[side].pop();
            if !are_all {
                return false;
            }
        }
        true
    }
}

/// Writes a field of the date; false where it cannot stand there.
fn show(
    alphabet: &Alphabet,
    texts: &mut Texts,
    start: usize,
    (field, value): (DateField, i64),
) -> bool {
    let shown = format!("{value:0width$}", width = field.width());
    let mut signs = shown.chars().map(|digit| alphabet.one(digit)).enumerate();
    signs.all(|(place, signs)| texts.restrict(start + place, signs))
}

/// The fields of a day that a series shows, where they can contradict each other.
struct Days {
    /// By their parts; years first.
    fields: Vec<(usize, DateField)>,
    /// Whether a day shows these values of the first fields.
    known: RefCell<HashMap<Vec<i64>, bool>>,
}

impl Days {
    fn of(series: &Series) -> Self {
        let field = |(index, part): (usize, &Part)| match part {
            Part::Date(field) if !field.is_time() => Some((index, *field)),
            _ => None,
        };
        let mut fields: Vec<_> = series.parts.iter().enumerate().filter_map(field).collect();
        fields.sort_by_key(|(_, field)| !moments::names_year(*field));
        if fields.len() < 2 {
            fields.clear();
        }
        Days { fields, known: RefCell::default() }
    }

    /// A field, and the part that shows it.
    fn field(&self, index: usize) -> Option<(usize, DateField)> {
        self.fields.get(index).copied()
    }

    /// The values that the next field may have behind others; `digits`: what its places may show.
    fn values<D: Iterator<Item = u8>>(
        &self,
        read: &[i64],
        field: DateField,
        digits: impl Fn(usize) -> D,
    ) -> Vec<i64> {
        let (least, most) = field.bounds();
        let (mut least, mut most) = (least, most);
        if let Some(year) = self.year(read)
            && let Some(ahead) = moments::year_of(field, 1).map(|of_first| 1 - of_first)
        {
            // All years of a day are beside its calendar year.
            (least, most) = (least.max(year + ahead - 2), most.min(year + ahead + 2));
        }
        let mut values = vec![0];
        for place in 0..field.width() {
            let digits: Vec<u8> = digits(place).collect();
            let with = |value: i64| digits.iter().map(move |digit| 10 * value + i64::from(*digit));
            values = values.into_iter().flat_map(with).collect();
        }
        values.retain(|value| (least..=most).contains(value));
        // Years near the present first.
        if let Some(near) = moments::near(field) {
            values.sort_by_key(|value| value.abs_diff(near));
        }
        values
    }

    /// The year that the first of these values tells of.
    fn year(&self, read: &[i64]) -> Option<i64> {
        let (_, field) = self.fields.first()?;
        moments::year_of(*field, *read.first()?)
    }

    /// Whether a day shows these values of the first fields.
    fn have(&self, read: &[i64]) -> bool {
        let fields = || self.fields.iter().map(|(_, field)| *field);
        let further = match (fields().next(), read.first()) {
            // Before the first year there are no days.
            (Some(field), Some(value)) if self.year(read).is_none_or(|year| year > 1) => {
                moments::like(field, *value) - value
            }
            _ => 0,
        };
        let like = |(field, value): (DateField, &i64)| {
            if moments::names_year(field) { value + further } else { *value }
        };
        let like: Vec<i64> = std::iter::zip(fields(), read).map(like).collect();
        let shown = || std::iter::zip(fields(), like.iter().copied()).collect::<Vec<_>>();
        if let Some(known) = self.known.borrow().get(&like) {
            return *known;
        }
        let is_shown = moments::find(&shown()).is_some();
        self.known.borrow_mut().insert(like, is_shown);
        is_shown
    }
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan;
    use jiff::civil::date;
    use proptest::prelude::*;

    use super::super::super::testing::series;
    use super::*;

    const TEMPLATES: [&str; 4] = [
        "{YEAR:B.E.}{FY}{DATE:MMdd}",
        "{DATE:YYYYww}{FY:start}{DATE:ddMM}",
        "{DATE:Q}{YEAR}{FY:ROC}",
        "{DATE:DDDyy}{YEAR}",
    ];

    fn days(template: &str) -> Days {
        Days::of(&series(|definition| {
            definition.template = format!("{template}{{SEQ:1}}");
            definition.fiscal_year_start = Some(4);
        }))
    }

    proptest! {
        /// Goal: no day is missed. Method: what a day shows is offered field by field.
        #[test]
        fn what_a_day_shows_is_found(
            template in prop::sample::select(TEMPLATES.to_vec()),
            further in prop_oneof![0..800_i32, 730_000..3_652_000_i32],
        ) {
            let days = days(template);
            let at = date(1, 1, 2).saturating_add(further.days()).at(12, 0, 0, 0);
            let shown = days.fields.iter().map(|(_, field)| field.value(at));
            let Some(shown) = shown.collect::<Option<Vec<i64>>>() else { return Ok(()) };
            for (index, value) in shown.iter().enumerate() {
                let (_, field) = days.field(index).expect("a field for each value");
                let values = days.values(&shown[..index], field, |_| 0..10);
                prop_assert!(values.contains(value), "{} {:?}", template, shown);
                prop_assert!(days.have(&shown[..=index]), "{} {:?}", template, shown);
            }
        }

        /// Goal: a year stands for another only where both have the same days. Method: every
        /// combination is looked for by itself.
        #[test]
        fn what_no_day_shows_is_not_found(
            (year, beside) in (2..9_900_i64, 0..2_i64),
            (month, day) in (1..13_i64, 1..32_i64),
        ) {
            let days = days("{YEAR}{FY}{DATE:MMdd}");
            let read = [year, year + beside, month, day];
            let fields = days.fields.iter().map(|(_, field)| *field);
            let exact: Vec<_> = std::iter::zip(fields, read).collect();
            prop_assert_eq!(days.have(&read), moments::find(&exact).is_some(), "{:?}", read);
        }
    }
}

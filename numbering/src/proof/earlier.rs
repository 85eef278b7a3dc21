//! An earlier version of a series beside the one that is to follow it (R2.7, R4.3): numbers that
//! may be out, and numbers to come.
//!
//! Serials that both versions take from the same counters go on: no value of such a counter is
//! taken twice. So a common text is harmless where both versions read it alike, and it tells the
//! counter and the value of one of these serials.

use jiff::civil::DateTime;

use super::super::pattern::DateField;
use super::super::series::Dimension;
use super::super::template::Part;
use super::super::{Reset, Series, Style};
use super::EarlierVersion;
use super::ambiguity::Ambiguity;
use super::collision::told;
use super::comparison::Comparison;
use super::grid::grids;
use super::language::{Shows, head, shows};
use super::memory::Counted;
use super::moments;
use super::product::Walk;
use super::scope::may_meet;
use super::witness::{Asked, name_of, scope_names, values, varies};

/// Proves that a version can give no text that an earlier one gave to another value. `versions` are
/// all that may have counters, this one among them.
///
/// # Errors
/// [`Ambiguity`]; the first request is the earlier version's.
pub(super) fn beside_earlier(
    earlier: &Series,
    version: u32,
    next: &Series,
    versions: &[EarlierVersion],
) -> Result<(), Ambiguity> {
    if !std::iter::zip(head(earlier).chars(), head(next).chars()).all(|(x, y)| x == y) {
        return Ok(());
    }
    let pair = Versions { both: [earlier, next], one_scope: same_scope(earlier, next) };
    let [mut types, mut next_types] =
        pair.both.map(|series| series.definition.serves.types.clone());
    // With a table, further types come without a new version.
    let listed = pair.both.iter().all(|series| series.table_of(Dimension::Type).is_none());
    if listed && pair.one_scope && next.scope.contains(&Dimension::Type) {
        types.retain(|name| next_types.contains(name));
        next_types.clone_from(&types);
        if types.is_empty() {
            return Ok(());
        }
    }
    if pair.one_scope && !may_meet(earlier, next) {
        return Ok(());
    }
    let (places, serials) = (pair.places(), pair.serials());
    // One id of a table may be shown by two codes, before and after it was renamed.
    let is_code = |dimension| pair.is_scope(0, dimension) && earlier.table_of(dimension).is_none();
    let scoped = |(index, place): (usize, &Option<usize>)| {
        place.filter(|_| matches!(shows(&earlier.parts[index]), Shows::Dimension(d) if is_code(d)))
    };
    let same: Vec<Option<usize>> = places.iter().enumerate().map(scoped).collect();
    let marks = [0, 1].map(|side| pair.marks(side, &serials));
    let grids = [earlier, next].map(|series| grids(series, versions));
    let comparison = Comparison {
        series: pair.both,
        types: [&types, &next_types],
        places: &places,
        marks: [&marks[0], &marks[1]],
        marked: bits(&serials, |serial| !serial.is_told),
        wanted: bits(&serials, |_| true),
        same: &same,
        grids: [&grids[0], &grids[1]],
        counted: &serials.iter().filter_map(|serial| pair.counted(serial)).collect::<Vec<_>>(),
    };
    // Pairs where the next value is lower take a request that was checked before the change.
    let (mut lower, mut lowered, mut turn) = (None, 0, 0);
    let found = |walk: &Walk| {
        let mut first = Asked::read(earlier, &grids[0], &walk.text, &walk.first)?;
        let mut second = Asked::read(next, &grids[1], &walk.text, &walk.second)?;
        turn += 1;
        first.takes_listed(turn);
        second.takes_listed(turn / 2);
        second.at = pair.apart(&serials, &first, second.at);
        let ambiguity = told(first, second, || remedy(version), |_| true)?;
        lowered += usize::from(lowers(&ambiguity));
        if lowers(&ambiguity) && lowered < LOWERED_MAX {
            lower.get_or_insert(ambiguity);
            return None;
        }
        Some(ambiguity)
    };
    comparison.decide(|| false, found).map_err(|ambiguity| match (ambiguity, lower) {
        (Ambiguity::Unproven { .. }, Some(lower)) => lower,
        (Ambiguity::Unproven { subject, limit }, None) => {
            let subject = format!("{subject}, beside its own version {version},");
            Ambiguity::Unproven { subject, limit }
        }
        (collision @ Ambiguity::Collision { .. }, _) => collision,
    })
}

/// Why two numbers of two versions are told, and what to do.
fn remedy(version: u32) -> String {
    format!(
        "the first is a number of version {version}, which may be out already: begin the template \
         with other text (a new `prefix`, for example), or show what that version shows"
    )
}

/// After so many pairs where the next value is lower one of them is told.
const LOWERED_MAX: usize = 100;

/// Whether the second number has a lower value of some serial than the first.
fn lowers(ambiguity: &Ambiguity) -> bool {
    let Ambiguity::Collision { first, second, .. } = ambiguity else { return false };
    let mut pairs = first.values.iter().flat_map(|before| {
        second.values.iter().filter(|after| after.0 == before.0).map(move |after| (before, after))
    });
    pairs.any(|(before, after)| after.1 < before.1)
}

/// Whether the same names, of the same tables, make the scopes of both.
fn same_scope(earlier: &Series, next: &Series) -> bool {
    let tables = |series: &Series| {
        let mut tables: Vec<_> = series.scope.iter().map(|d| table(series, *d)).collect();
        tables.sort_unstable();
        tables
    };
    scope_names(earlier) == scope_names(next) && tables(earlier) == tables(next)
}

/// A dimension and the table whose ids it counts by; none: it counts by what is sent.
fn table(series: &Series, dimension: Dimension) -> (String, Option<String>) {
    let table = series.table_of(dimension).map(ToString::to_string);
    (name_of(series, dimension).to_owned(), table)
}

/// A serial whose counters go on from the one version to the other, or the id where both show one:
/// no two numbers share an id.
struct Serial {
    /// The place of the serial in each version; none: the id.
    at: Option<[usize; 2]>,
    /// Whether what is read alike tells counter and value.
    is_told: bool,
    /// Whether it does but for the period.
    is_told_but_when: bool,
    /// The fields of the date that tell its period in each version.
    keys: [Vec<DateField>; 2],
}

/// A mark for each serial of which something holds.
fn bits(serials: &[Serial], holds: impl Fn(&Serial) -> bool) -> u8 {
    let marks = serials.iter().enumerate().map(|(index, serial)| u8::from(holds(serial)) << index);
    marks.fold(0, |marks, mark| marks | mark)
}

/// What a part shows, by the names that both versions give it.
#[derive(PartialEq, Eq)]
enum Named<'s> {
    /// Letters are read by their width: `AA` is 1 of two, and 27 of as many as it takes.
    Serial(&'s str, Style, Option<usize>),
    Dimension(&'s str),
    Phase,
    Id,
    Date(DateField),
}

/// An earlier version, and the next.
struct Versions<'s> {
    both: [&'s Series; 2],
    one_scope: bool,
}

impl<'s> Versions<'s> {
    fn named(&self, side: usize, part: &Part) -> Option<Named<'s>> {
        let series = self.both[side];
        Some(match (shows(part), part) {
            (Shows::Serial(serial), Part::Serial { figure, .. }) => {
                let width = (figure.style == Style::Letters).then_some(figure.width);
                Named::Serial(&series.serials[serial].name, figure.style, width)
            }
            (Shows::Dimension(dimension), _) => Named::Dimension(name_of(series, dimension)),
            (Shows::Phase, _) => Named::Phase,
            (Shows::Id, _) => Named::Id,
            (Shows::Date(field), _) => Named::Date(field),
            (Shows::Nothing | Shows::Serial(_), _) => return None,
        })
    }

    /// For each part of the earlier version the one of the next that shows the same, each once.
    fn places(&self) -> Vec<Option<usize>> {
        let mut free: Vec<bool> = vec![true; self.both[1].parts.len()];
        let place = |part: &Part| {
            let name = self.named(0, part)?;
            let mut others = self.both[1].parts.iter().enumerate();
            let (place, _) = others.find(|(index, other)| {
                free[*index] && self.named(1, other).as_ref() == Some(&name)
            })?;
            free[place] = false;
            Some(place)
        };
        self.both[0].parts.iter().map(place).collect()
    }

    /// The serials that both versions take from the same counters.
    fn serials(&self) -> Vec<Serial> {
        let [earlier, next] = self.both;
        let has_id = |series: &Series| series.parts.iter().any(|part| shows(part) == Shows::Id);
        if has_id(earlier) && has_id(next) {
            let keys = [Vec::new(), Vec::new()];
            return vec![Serial { at: None, is_told: true, is_told_but_when: false, keys }];
        }
        let counts_alike = |one: usize, other: usize| {
            let of = |series: &'s Series, at: usize| {
                let rule = &series.counters[at];
                let tables = rule.dimensions.iter().map(|d| table(series, *d));
                (series.serials[at].name.as_str(), rule.reset, tables.collect::<Vec<_>>())
            };
            of(earlier, one) == of(next, other)
        };
        let pairs = (0..earlier.serials.len())
            .flat_map(|one| (0..next.serials.len()).map(move |other| [one, other]));
        pairs.filter(|at| counts_alike(at[0], at[1])).map(|at| self.serial(at)).collect()
    }

    fn serial(&self, at: [usize; 2]) -> Serial {
        let [earlier, next] = self.both;
        let rules = [&earlier.counters[at[0]], &next.counters[at[1]]];
        let is_shown = |name: &Named<'_>| {
            let shown = |side: usize| {
                let mut parts = self.both[side].parts.iter();
                parts.any(|part| self.named(side, part).as_ref() == Some(name))
            };
            shown(0) && shown(1)
        };
        let is_told = |(one, other): (&Dimension, &Dimension)| {
            let sets = [values(earlier, *one), values(next, *other)];
            self.is_scope(0, *one)
                || is_shown(&Named::Dimension(name_of(earlier, *one)))
                || (!varies(earlier, *one) && !varies(next, *other) && sets[0] == sets[1])
        };
        let dimensions = std::iter::zip(&rules[0].dimensions, &rules[1].dimensions).all(is_told);
        let phase = rules[0].reset != Reset::Phase || is_shown(&Named::Phase);
        let years = rules[0].reset != Reset::FiscalYear || earlier.fiscal == next.fiscal;
        let keys = [0, 1].map(|side| moments::keys(self.both[side], at[side]));
        let period = keys.iter().all(Option::is_some) && years;
        let keys = keys.map(Option::unwrap_or_default);
        let is_told_but_when = dimensions && phase && !period;
        Serial { at: Some(at), is_told: dimensions && phase && period, is_told_but_when, keys }
    }

    /// A moment like `at` in other periods than a request of the earlier version, of the serials
    /// whose counters differ by that alone; `at` itself where there is none.
    fn apart(&self, serials: &[Serial], asked: &Asked<'_>, at: DateTime) -> DateTime {
        let open = serials.iter().filter(|serial| serial.is_told_but_when);
        let open: Vec<[usize; 2]> = open.filter_map(|serial| serial.at).collect();
        if open.is_empty() {
            return at;
        }
        let [earlier, next] = self.both;
        let differs = |at| {
            open.iter().all(|[one, other]| {
                moments::period(earlier, *one, asked.at) != moments::period(next, *other, at)
            })
        };
        moments::other(next, at, differs).unwrap_or(at)
    }

    /// The parts that tell a serial and its counter in both versions; `None` where not all is told.
    fn counted(&self, serial: &Serial) -> Option<Counted> {
        let part = |side: usize, shown: Shows| {
            self.both[side].parts.iter().position(|part| shows(part) == shown)
        };
        let Some(at) = serial.at else {
            return Some(Counted { parts: vec![[part(0, Shows::Id)?, part(1, Shows::Id)?]] });
        };
        if !serial.is_told {
            return None;
        }
        let rules = [0, 1].map(|side| &self.both[side].counters[at[side]]);
        let mut parts = vec![[part(0, Shows::Serial(at[0]))?, part(1, Shows::Serial(at[1]))?]];
        for (one, other) in std::iter::zip(&rules[0].dimensions, &rules[1].dimensions) {
            let shown = [part(0, Shows::Dimension(*one)), part(1, Shows::Dimension(*other))];
            // What is not shown in both is the same anyway.
            if let ([Some(first), Some(second)], false) = (shown, self.is_scope(0, *one)) {
                parts.push([first, second]);
            }
        }
        if rules[0].reset == Reset::Phase {
            parts.push([part(0, Shows::Phase)?, part(1, Shows::Phase)?]);
        }
        // Fields that tell the period in one version tell it in the other, where it shows them.
        let dates = serial.keys.iter().find_map(|keys| {
            let both = |field: &DateField| {
                Some([part(0, Shows::Date(*field))?, part(1, Shows::Date(*field))?])
            };
            keys.iter().map(both).collect::<Option<Vec<_>>>()
        });
        parts.extend(dates?);
        Some(Counted { parts })
    }

    /// Whether both numbers have the same value of a dimension anyway.
    fn is_scope(&self, side: usize, dimension: Dimension) -> bool {
        self.one_scope && self.both[side].scope.contains(&dimension)
    }

    /// What each part of a version tells about the serials.
    fn marks(&self, side: usize, serials: &[Serial]) -> Vec<u8> {
        let series = self.both[side];
        let tells = |part, serial: &Serial| {
            let Some(at) = serial.at else { return shows(part) == Shows::Id };
            let rule = &series.counters[at[side]];
            match shows(part) {
                Shows::Nothing | Shows::Id => false,
                Shows::Serial(shown) => shown == at[side],
                Shows::Dimension(dimension) => {
                    !self.is_scope(side, dimension) && rule.dimensions.contains(&dimension)
                }
                Shows::Phase => rule.reset == Reset::Phase,
                Shows::Date(field) => serial.keys[side].contains(&field),
            }
        };
        series.parts.iter().map(|part| bits(serials, |serial| tells(part, serial))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::series;
    use super::super::super::{SeriesDefinition, VariableDefinition};
    use super::*;

    /// The parts of the template below.
    const A: usize = 0;
    const PHASE: usize = 2;
    const FISCAL: usize = 4;
    const SEQ: usize = 6;

    fn of(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
        series(|definition| {
            definition.template = "{A}-{PHASE}-{FY}-{SEQ:3}".into();
            for name in ["A", "B"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
            }
            definition.fiscal_year_start = Some(4);
            definition.serials[0].counter = vec!["A".into()];
            definition.serials[0].reset = Reset::FiscalYear;
            edit(definition);
        })
    }

    fn pair<'s>(earlier: &'s Series, next: &'s Series) -> Versions<'s> {
        Versions { both: [earlier, next], one_scope: same_scope(earlier, next) }
    }

    /// Of each serial that goes on, whether counter and value are told.
    fn told(earlier: &Series, next: &Series) -> Vec<bool> {
        pair(earlier, next).serials().iter().map(|serial| serial.is_told).collect()
    }

    /// The parts that are compared for the one serial.
    fn compared(earlier: &Series, next: &Series) -> Option<Vec<[usize; 2]>> {
        let pair = pair(earlier, next);
        pair.counted(&pair.serials()[0]).map(|counted| counted.parts)
    }

    #[test]
    fn a_serial_goes_on_where_all_of_its_counters_key_is_the_same() {
        let base = of(|_| ());
        assert_eq!(told(&base, &base), [true]);
        let edits: [&dyn Fn(&mut SeriesDefinition); 6] = [
            &|definition| {
                definition.template = definition.template.replace("{SEQ:3}", "{SEQ:3:LOT}");
                definition.serials[0].name = "LOT".into();
            },
            &|definition| definition.serials[0].counter.clear(),
            &|definition| definition.serials[0].counter[0] = "B".into(),
            &|definition| definition.serials[0].counter.push("B".into()),
            &|definition| definition.serials[0].reset = Reset::Year,
            &|definition| {
                let a = definition.variables.get_mut("A").expect("declared");
                a.reference = Some("table".into());
            },
        ];
        for (index, edit) in edits.into_iter().enumerate() {
            let other = of(edit);
            assert!(told(&base, &other).is_empty() && told(&other, &base).is_empty(), "{index}");
        }
    }

    #[test]
    fn a_counter_is_told_where_both_versions_show_all_that_it_counts_by() {
        let without = |part: &str| {
            of(|definition| definition.template = definition.template.replace(part, "X"))
        };
        let (base, early) = (of(|_| ()), of(|definition| definition.fiscal_year_start = Some(1)));
        for other in [&without("{A}"), &without("{FY}"), &early] {
            assert_eq!((told(&base, other), told(other, &base)), (vec![false], vec![false]));
            assert_eq!(compared(&base, other), None, "nothing tells that two are one");
        }
        assert_eq!(told(&base, &without("{PHASE}")), [true]);
        let phases = |series: Series| {
            let mut definition = series.definition().clone();
            definition.serials[0].reset = Reset::Phase;
            Series::compile(definition).expect("compiles")
        };
        assert_eq!(told(&phases(of(|_| ())), &phases(without("{PHASE}"))), [false]);
        assert_eq!(told(&phases(without("{PHASE}")), &phases(of(|_| ()))), [false]);
        // A type that is not shown is one and the same, or it is not.
        let types = |codes: &[&str]| {
            of(|definition| {
                definition.serves.types = codes.iter().map(ToString::to_string).collect();
                definition.serials[0].counter = vec!["type".into()];
            })
        };
        for (before, after, expected) in [
            (&["T"][..], &["T"][..], true),
            (&["T"], &["U"], false),
            (&["T"], &["T", "U"], false),
            (&["T", "U"], &["T"], false),
            (&["T", "U"], &["T", "U"], false),
        ] {
            assert_eq!(told(&types(before), &types(after)), [expected], "{before:?} {after:?}");
        }
    }

    #[test]
    fn a_number_is_the_same_by_its_value_and_all_that_its_counter_counts_by() {
        let base = of(|_| ());
        let turned = of(|definition| definition.template = "{SEQ:3}-{FY}-{A}".into());
        assert_eq!(compared(&base, &base), Some(vec![[SEQ, SEQ], [A, A], [FISCAL, FISCAL]]));
        assert_eq!(compared(&base, &turned), Some(vec![[SEQ, 0], [A, 4], [FISCAL, 2]]));
        let by_phase = |definition: &mut SeriesDefinition| {
            definition.serials[0].reset = Reset::Phase;
        };
        let phases = of(by_phase);
        assert_eq!(compared(&phases, &phases), Some(vec![[SEQ, SEQ], [A, A], [PHASE, PHASE]]));
        let scoped = of(|definition| definition.unique_within = vec!["A".into()]);
        assert_eq!(compared(&scoped, &scoped), Some(vec![[SEQ, SEQ], [FISCAL, FISCAL]]));
        // Of two scopes neither tells.
        let all = Some(vec![[SEQ, SEQ], [A, A], [FISCAL, FISCAL]]);
        assert_eq!((compared(&scoped, &base), compared(&base, &scoped)), (all.clone(), all));
    }

    #[test]
    fn a_part_is_marked_for_each_serial_that_it_tells_of() {
        let marks = |series: &Series| {
            let pair = pair(series, series);
            [0, 1].map(|side| pair.marks(side, &pair.serials()))
        };
        assert_eq!(marks(&of(|_| ())), [[1, 0, 0, 0, 1, 0, 1], [1, 0, 0, 0, 1, 0, 1]]);
        let phases = of(|definition| definition.serials[0].reset = Reset::Phase);
        assert_eq!(marks(&phases), [[1, 0, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0, 1]]);
        let ids = of(|definition| definition.template = "{A}{SNOWFLAKE}-{SEQ:3}".into());
        assert_eq!(marks(&ids), [[0, 1, 0, 0], [0, 1, 0, 0]], "no two share one");
    }
}

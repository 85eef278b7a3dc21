//! The numbers of one series among themselves.

use jiff::civil::DateTime;

use super::super::pattern::DateField;
use super::super::series::Dimension;
use super::super::{Reset, Series};
use super::ambiguity::Ambiguity;
use super::collision::told;
use super::comparison::Comparison;
use super::grid::Grid;
use super::language::{self, Shows, shows};
use super::memory::Counted;
use super::moments;
use super::product::Walk;
use super::witness::{Asked, PHASE, name_of, values, varies};

/// Proves that no number of a series can have the text of another one of it.
///
/// # Errors
/// [`Ambiguity`]: two requests that collide, or that neither proof nor collision was found.
pub(super) fn alone(series: &Series, grids: &[Grid]) -> Result<(), Ambiguity> {
    let told_by = Alone::of(series);
    let has_id = told_by.id.is_some();
    if !has_id && (0..series.serials.len()).all(|serial| told_by.is_open(serial)) {
        unshown(series, grids, &told_by.hidden)?;
    }
    let mut turn = 0;
    let found = |walk: &Walk| {
        let mut first = Asked::read(series, grids, &walk.text, &walk.first)?;
        let mut second = Asked::read(series, grids, &walk.text, &walk.second)?;
        turn += 1;
        first.takes_listed(turn);
        second.takes_listed(turn / 2);
        second.at = told_by.apart(&first, second.at);
        told(first, second, || misreading(series, walk), |_| true)
    };
    told_by.compared(grids, |comparison| comparison.decide(|| false, found))
}

/// Whether the search by lengths, asked first and alone, finds that no two numbers collide.
#[cfg(test)]
pub(super) fn never_by_lengths(series: &Series) -> bool {
    let grids = super::grid::grids(series, &[]);
    let mut chance = super::product::Chance::new();
    Alone::of(series).compared(&grids, |comparison| comparison.never_by_lengths(&mut chance))
}

/// What tells two numbers of a series apart: each of its serials, or in their place the id that it
/// shows, in which any two numbers differ.
struct Alone<'s> {
    series: &'s Series,
    /// The part that shows an id.
    id: Option<usize>,
    /// Of each serial, something that it counts by and that no text and no scope tells.
    hidden: Vec<Option<&'s str>>,
    /// Of each serial, fields of the date that tell its period.
    keys: Vec<Option<Vec<DateField>>>,
}

impl<'s> Alone<'s> {
    fn of(series: &'s Series) -> Self {
        let serials = 0..series.serials.len();
        Alone {
            series,
            id: series.parts.iter().position(|part| shows(part) == Shows::Id),
            hidden: serials.clone().map(|serial| hidden(series, serial)).collect(),
            keys: serials.map(|serial| moments::keys(series, serial)).collect(),
        }
    }

    /// Looks at two runs of the series.
    fn compared<T>(&self, grids: &[Grid], look: impl FnOnce(&Comparison<'_>) -> T) -> T {
        let Alone { series, .. } = *self;
        let has_id = self.id.is_some();
        let marks: Vec<u8> = series.parts.iter().map(|part| self.mark(shows(part))).collect();
        // One id of a table may be shown by two codes, before and after it was renamed.
        let in_scope = |part| {
            matches!(shows(part), Shows::Dimension(d)
                if series.scope.contains(&d) && series.table_of(d).is_none())
        };
        let same = series.parts.iter().enumerate();
        let same: Vec<_> = same.map(|(index, part)| in_scope(part).then_some(index)).collect();
        let types = &series.definition.serves.types;
        look(&Comparison {
            series: [series, series],
            types: [types, types],
            places: &(0..series.parts.len()).map(Some).collect::<Vec<_>>(),
            marks: [&marks, &marks],
            marked: if has_id { 0 } else { self.marks(|serial| self.is_open(serial)) },
            wanted: if has_id { 1 } else { self.marks(|_| true) },
            same: &same,
            grids: [grids, grids],
            counted: &self.counted(),
        })
    }

    /// Whether what the number shows leaves open which counter a serial is taken from.
    fn is_open(&self, serial: usize) -> bool {
        self.hidden[serial].is_some() || self.keys[serial].is_none()
    }

    /// A moment like `at` in other periods than a request, of the serials whose counters differ by
    /// that alone; `at` itself where there is none.
    fn apart(&self, asked: &Asked<'_>, at: DateTime) -> DateTime {
        let serials = (0..self.series.serials.len())
            .filter(|serial| self.hidden[*serial].is_none() && self.keys[*serial].is_none());
        let serials: Vec<usize> = serials.collect();
        if serials.is_empty() {
            return at;
        }
        let period = |serial: usize, at| moments::period(self.series, serial, at);
        let differs = |at| serials.iter().all(|s| period(*s, at) != period(*s, asked.at));
        moments::other(self.series, at, differs).unwrap_or(at)
    }

    /// A mark for each serial of which something holds.
    fn marks(&self, holds: impl Fn(usize) -> bool) -> u8 {
        let serials = (0..self.series.serials.len()).filter(|serial| holds(*serial));
        serials.fold(0, |marks, serial| marks | 1 << serial)
    }

    /// The serials that something shown tells of.
    fn mark(&self, shown: Shows) -> u8 {
        if self.id.is_some() {
            return u8::from(shown == Shows::Id);
        }
        self.marks(|serial| match shown {
            Shows::Nothing | Shows::Id => false,
            Shows::Serial(of) => of == serial,
            Shows::Dimension(dimension) => {
                !self.series.scope.contains(&dimension)
                    && self.series.counters[serial].dimensions.contains(&dimension)
                    && varies(self.series, dimension)
            }
            Shows::Phase => self.series.counters[serial].reset == Reset::Phase,
            Shows::Date(field) => {
                self.keys[serial].as_ref().is_some_and(|keys| keys.contains(&field))
            }
        })
    }

    /// The id, and the serials whose value and counter are told.
    fn counted(&self) -> Vec<Counted> {
        let part = |shown: Shows| {
            let part = self.series.parts.iter().position(|part| shows(part) == shown)?;
            Some([part, part])
        };
        let counted = |serial: usize| {
            let rule = &self.series.counters[serial];
            let tells = |dimension: &&Dimension| {
                !self.series.scope.contains(*dimension) && varies(self.series, **dimension)
            };
            let dimensions = rule.dimensions.iter().filter(tells);
            let dimensions = dimensions.map(|dimension| Shows::Dimension(*dimension));
            let phase = (rule.reset == Reset::Phase).then_some(Shows::Phase);
            let dates = self.keys[serial].iter().flatten().map(|field| Shows::Date(*field));
            let counter = dimensions.chain(phase).chain(dates).filter_map(part);
            let value = part(Shows::Serial(serial))?;
            Some(Counted { parts: [value].into_iter().chain(counter).collect() })
        };
        let told = (0..self.series.serials.len()).filter(|serial| !self.is_open(*serial));
        let id = self.id.map(|part| Counted { parts: vec![[part, part]] });
        id.into_iter().chain(told.filter_map(counted)).collect()
    }
}

/// The name of something by which a serial's counter counts, and that no text and no scope tells.
fn hidden(series: &Series, serial: usize) -> Option<&str> {
    let shown = |wanted: Shows| series.parts.iter().any(|part| shows(part) == wanted);
    let rule = &series.counters[serial];
    let untold = |dimension: &Dimension| {
        !series.scope.contains(dimension)
            && !shown(Shows::Dimension(*dimension))
            && varies(series, *dimension)
    };
    let dimension = rule.dimensions.iter().copied().find(untold);
    let phase = rule.reset == Reset::Phase && !shown(Shows::Phase);
    dimension.map(|dimension| name_of(series, dimension)).or(phase.then_some(PHASE))
}

/// Two requests whose texts are read alike and do not show what tells their counters apart.
fn unshown(series: &Series, grids: &[Grid], hidden: &[Option<&str>]) -> Result<(), Ambiguity> {
    let by_period: Vec<usize> = (0..hidden.len()).filter(|s| hidden[*s].is_none()).collect();
    let pair = match by_period[..] {
        [] => Some((moments::first(), moments::first())),
        _ => moments::apart(series, &by_period, &moments::fields(series)),
    };
    let Some((early, late)) = pair else { return Ok(()) };
    let (mut first, mut second) =
        (Asked::first(series, grids, early), Asked::first(series, grids, late));
    for part in &series.parts {
        let (name, value) = match shows(part) {
            Shows::Dimension(dimension) => {
                let value = values(series, dimension).into_iter().next();
                (name_of(series, dimension), value.unwrap_or_default())
            }
            Shows::Phase => (PHASE, "PHASE-1".into()),
            Shows::Nothing | Shows::Id | Shows::Serial(_) | Shows::Date(_) => continue,
        };
        for asked in [&mut first, &mut second] {
            asked.known.insert(name.to_owned(), value.clone());
        }
    }
    let reasons = hidden.iter().enumerate().map(|(serial, hidden)| {
        let name = &series.serials[serial].name;
        match hidden {
            Some(PHASE) => format!(
                "serial {name} begins anew with each phase, which the number does not show: show \
                 {{PHASE}}, or set another `reset`"
            ),
            Some(dimension) => format!(
                "serial {name} counts by {dimension}, which the number does not show: show it, \
                 take it out of the serial's `counter`, or name it in `unique_within`"
            ),
            None => {
                let period = period_word(series.counters[serial].reset);
                format!(
                    "serial {name} begins anew each {period}, which the number does not show: show \
                     the {period}, or set `reset` to what is shown"
                )
            }
        }
    });
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    told(first, second, || reasons, |_| true).map_or(Ok(()), Err)
}

/// A period in a sentence.
fn period_word(reset: Reset) -> &'static str {
    match reset {
        Reset::None => "time",
        Reset::Second => "second",
        Reset::Minute => "minute",
        Reset::Hour => "hour",
        Reset::Day => "day",
        Reset::Week => "week",
        Reset::Month => "month",
        Reset::Quarter => "quarter",
        Reset::Year => "year",
        Reset::FiscalYear => "fiscal year",
        Reset::Phase => "phase",
    }
}

/// Where two readings of a text part, in words.
fn misreading(series: &Series, walk: &Walk) -> String {
    let Some((a, b)) = walk.first.iter().zip(&walk.second).find(|(a, b)| a != b) else {
        return "the number does not show what tells their counters apart: show it".into();
    };
    let name = |part: usize| language::name(series, &series.parts[part]);
    format!(
        "the number can be read in two ways, since {} may go on where {} begins: separate them by \
         a sign that the first excludes, or give the first a fixed width",
        name(*a.min(b)),
        name(*a.max(b)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{serial, series};
    use super::super::super::{SeriesDefinition, VariableDefinition};
    use super::*;

    /// The parts of the template below.
    const A: usize = 0;
    const PHASE_SHOWN: usize = 2;
    const YEAR: usize = 4;
    const MONTH: usize = 5;
    const SEQ: usize = 7;

    fn of(edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
        series(|definition| {
            definition.template = "{A}-{PHASE}-{DATE:yyyyMM}-{SEQ:3}".into();
            for name in ["A", "B"] {
                definition.variables.insert(name.into(), VariableDefinition::default());
            }
            definition.serials[0].counter = vec!["A".into()];
            definition.serials[0].reset = Reset::Month;
            edit(definition);
        })
    }

    /// The parts that are compared for each serial that is.
    fn compared(series: &Series) -> Vec<Vec<usize>> {
        let counted = Alone::of(series).counted().into_iter();
        counted.map(|one| one.parts.iter().map(|[first, _]| *first).collect()).collect()
    }

    #[test]
    fn a_number_is_the_same_by_its_value_and_all_that_its_counter_counts_by() {
        assert_eq!(compared(&of(|_| ())), [[SEQ, A, YEAR, MONTH]]);
        let phases = of(|definition| definition.serials[0].reset = Reset::Phase);
        assert_eq!(compared(&phases), [[SEQ, A, PHASE_SHOWN]]);
        let scoped = of(|definition| definition.unique_within = vec!["A".into()]);
        assert_eq!(compared(&scoped), [[SEQ, YEAR, MONTH]], "the scope tells A");
    }

    #[test]
    fn a_serial_whose_counter_is_not_shown_is_never_the_same() {
        let hidden = |definition: &mut SeriesDefinition| {
            definition.serials[0].counter = vec!["A".into(), "B".into()];
        };
        assert_eq!(compared(&of(hidden)), Vec::<Vec<usize>>::new());
        for reset in [Reset::Day, Reset::Week, Reset::Hour] {
            let by_time = of(|definition| definition.serials[0].reset = reset);
            assert!(Alone::of(&by_time).is_open(0) && compared(&by_time).is_empty(), "{reset:?}");
        }
        let two = of(|definition| {
            hidden(definition);
            definition.template.push_str("{SEQ:2:LOT}");
            definition.serials.push(serial("LOT"));
        });
        assert_eq!(compared(&two), [[SEQ + 1]], "the other one is told");
    }

    #[test]
    fn a_part_is_marked_for_each_serial_that_it_tells_of() {
        let marks = |series: &Series| -> Vec<u8> {
            let told = Alone::of(series);
            series.parts.iter().map(|part| told.mark(shows(part))).collect()
        };
        assert_eq!(marks(&of(|_| ())), [1, 0, 0, 0, 1, 1, 0, 1]);
        let two = of(|definition| {
            definition.template.push_str("{SEQ:2:LOT}");
            definition.serials.push(serial("LOT"));
            definition.serials[1].reset = Reset::Phase;
        });
        assert_eq!(marks(&two), [1, 0, 2, 0, 1, 1, 0, 1, 2]);
        let ids = of(|definition| definition.template.push_str("{SNOWFLAKE}"));
        assert_eq!(marks(&ids), [0, 0, 0, 0, 0, 0, 0, 0, 1], "no two share one");
    }
}

//! What a run has read of a number so far, as far as that decides whether there is such a number:
//! values off their grid, check characters that do not follow, days that no calendar has.
//!
//! Judges what one run reads by itself; what two runs read is compared in `refined.rs`.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::HashMap;

use super::super::check::{Check, Running};
use super::super::figure::Figure;
use super::super::pattern::DateField;
use super::super::template::Part;
use super::super::{Series, Style};
use super::grid::Grid;
use super::moments;
use super::refined::Detail;

/// A place of a run: the part, and its characters before.
pub(super) type At = (usize, usize);

/// How a character is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// It is the last one of its part.
    pub(super) ends: bool,
    /// What is kept of it, where the text of its part is needed.
    pub(super) keep: Option<char>,
    /// A field of the date is compared with others.
    pub(super) dated: bool,
}

/// Judges the numbers of one series.
pub(super) struct Reader<'s> {
    series: &'s Series,
    /// For each part that shows a serial whose values leave something out, what they are.
    counted: Vec<Option<Counted>>,
    check: Option<(usize, Check)>,
    /// The last part that shows a field of the date; none where they cannot contradict each other.
    last_field: Option<usize>,
    /// The part that shows a year of any kind, where there is one alone.
    only_year: Option<usize>,
    /// Years near the present in the place of others.
    likes: RefCell<HashMap<i64, i64>>,
    /// Whether fields of the date were found to go together.
    together: RefCell<HashMap<Vec<(usize, i64)>, bool>>,
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Reading {
    /// The characters of the part so far, where they are needed.
    pub(super) open: Vec<char>,
    count: Option<Count>,
    /// Fields of the date by their parts.
    fields: Vec<(usize, i64)>,
    check: Option<Running>,
}

/// A value so far, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Count {
    /// Its place among the texts of its length, modulo the step.
    place: u64,
    /// Against the smallest and against the largest.
    against: [Ordering; 2],
}

/// The values of a serial.
struct Counted {
    grid: Grid,
    figure: Figure,
    /// The smallest and the largest as they are written.
    ends: [Vec<char>; 2],
}

impl Counted {
    /// `None` where the automaton knows the values exactly.
    fn of(series: &Series, grids: &[Grid], part: &Part) -> Option<Self> {
        let Part::Serial { serial, figure } = part else { return None };
        let (grid, max) = (grids[*serial], series.serials[*serial].max);
        if grid.least == 1 && grid.step == 1 && figure.style == Style::Digits {
            return None;
        }
        let written = |value: u64| {
            let mut text = String::new();
            figure.push(&mut text, value);
            text.chars().collect()
        };
        Some(Counted { grid, figure: *figure, ends: [written(grid.least), written(max)] })
    }

    fn base(&self) -> (u64, u32) {
        match self.figure.style {
            Style::Digits => (10, u32::from('0')),
            Style::Letters => (26, u32::from('A')),
        }
    }

    fn read(&self, count: Option<Count>, offset: usize, character: char) -> Count {
        let before = count.unwrap_or(Count { place: 0, against: [Ordering::Equal; 2] });
        let (base, zero) = self.base();
        let sign = u64::from(u32::from(character) - zero);
        let place = u128::from(before.place) * u128::from(base) + u128::from(sign);
        let place = u64::try_from(place % u128::from(self.grid.step)).expect("below the step");
        let against = [0, 1].map(|end| match self.ends[end].get(offset) {
            Some(limit) => before.against[end].then(character.cmp(limit)),
            // One of other length is smaller or larger, whatever its characters.
            None => Ordering::Equal,
        });
        Count { place, against }
    }

    /// Whether a value that ends here is one of them.
    fn has(&self, count: Count, chars: usize) -> bool {
        let [least, most] = [0, 1].map(|end| chars.cmp(&self.ends[end].len()));
        if least.then(count.against[0]).is_lt() || most.then(count.against[1]).is_gt() {
            return false;
        }
        let step = u128::from(self.grid.step);
        let (base, _) = self.base();
        // Letters: all texts of fewer letters come first, and places count from 0.
        let shorter = match self.figure.style {
            Style::Digits => 0,
            Style::Letters => (self.figure.width..chars).fold(1, |sum, width| {
                sum + u128::from(base).pow(u32::try_from(width).unwrap_or(99))
            }),
        };
        (u128::from(count.place) + shorter) % step == u128::from(self.grid.least) % step
    }
}

impl<'s> Reader<'s> {
    /// What `detail` asks for is judged.
    pub(super) fn of(series: &'s Series, grids: &[Grid], detail: Detail) -> Self {
        let Detail { texts, signs, .. } = detail;
        let dates = texts && signs;
        let parts = series.parts.iter();
        let check = |(index, part): (usize, &Part)| match part {
            Part::Check(check) if signs => Some((index, *check)),
            _ => None,
        };
        let mut fields = parts.clone().enumerate().filter(|(_, part)| is_field(part));
        let last_field = match (fields.next(), fields.next_back()) {
            (Some(_), Some((last, _))) if dates => Some(last),
            _ => None,
        };
        let counted = |part| Counted::of(series, grids, part).filter(|_| signs);
        let mut years = parts.clone().enumerate().filter(|(_, part)| is_year(part));
        let only_year = years.next().map(|(index, _)| index);
        Reader {
            series,
            counted: parts.clone().map(counted).collect(),
            check: parts.enumerate().find_map(check),
            last_field,
            only_year: only_year.filter(|_| years.next().is_none()),
            likes: RefCell::default(),
            together: RefCell::default(),
        }
    }

    /// Whether digits, or digits and letters, must each be known.
    pub(super) fn tells(&self) -> (bool, bool) {
        let letters = |counted: &Counted| counted.figure.style == Style::Letters;
        let by_check = self.check.is_some_and(|(_, check)| check.reads_letters());
        let by_letters = self.counted.iter().flatten().any(letters);
        let digits = !self.counted.iter().flatten().all(letters);
        (digits || self.check.is_some() || self.last_field.is_some(), by_check || by_letters)
    }

    /// Before the first character.
    pub(super) fn begin(&self) -> Reading {
        let check = self.check.map(|(_, check)| Running::of(check));
        Reading { check, ..Reading::default() }
    }

    /// Reads one character; false where no number goes on like this.
    pub(super) fn read(&self, reading: &mut Reading, at: At, character: char, how: How) -> bool {
        let ((part, offset), How { ends, keep, dated }) = (at, how);
        let is_field = dated && self.last_field.is_some() && is_field(&self.series.parts[part]);
        reading.open.extend(keep.or(is_field.then_some(character)));
        if let Some(counted) = &self.counted[part] {
            let count = counted.read(reading.count, offset, character);
            reading.count = (!ends).then_some(count);
            if ends && !counted.has(count, offset + 1) {
                return false;
            }
        }
        if is_field && ends && !self.goes_together(reading, part) {
            return false;
        }
        if ends && self.last_field == Some(part) {
            reading.fields.clear();
        }
        // The next fields do not tell years of one calendar apart.
        if is_field
            && ends
            && self.only_year == Some(part)
            && let Part::Date(year) = &self.series.parts[part]
            && let Some((_, value)) = reading.fields.last_mut()
        {
            *value = self.like(*year, *value);
        }
        self.checks(reading, (part, offset), character, ends)
    }

    /// See [`moments::like`].
    fn like(&self, year: DateField, value: i64) -> i64 {
        *self.likes.borrow_mut().entry(value).or_insert_with(|| moments::like(year, value))
    }

    fn goes_together(&self, reading: &mut Reading, part: usize) -> bool {
        let shown: String = reading.open.iter().collect();
        let Ok(value) = shown.parse() else { return false };
        reading.fields.push((part, value));
        let field = |(part, value): &(usize, i64)| match self.series.parts[*part] {
            Part::Date(field) => (field, *value),
            _ => unreachable!("only fields are kept as fields"),
        };
        let mut together = self.together.borrow_mut();
        if let Some(known) = together.get(&reading.fields) {
            return *known;
        }
        let fields: Vec<(DateField, i64)> = reading.fields.iter().map(field).collect();
        let possible = moments::find(&fields).is_some();
        together.insert(reading.fields.clone(), possible);
        possible
    }

    fn checks(
        &self,
        reading: &mut Reading,
        (part, offset): At,
        character: char,
        ends: bool,
    ) -> bool {
        let Some((at, _)) = self.check.filter(|_| reading.check.is_some()) else { return true };
        let running = reading.check.as_mut().expect("asked for above");
        if part < at {
            running.read(character);
            return true;
        }
        let (characters, _) = running.characters();
        if ends {
            reading.check = None;
        }
        characters[offset] == character
    }
}

fn is_year(part: &Part) -> bool {
    matches!(part, Part::Date(field) if moments::names_year(*field))
}

fn is_field(part: &Part) -> bool {
    matches!(part, Part::Date(_))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::testing::series;
    use super::*;

    /// A series of a template whose serial begins at its step.
    fn of(template: &str, step: u64, style: Style) -> Series {
        series(|definition| {
            definition.template = template.into();
            definition.fiscal_year_start = Some(4);
            definition.serials[0].style = style;
            (definition.serials[0].start, definition.serials[0].step) = (step, step);
        })
    }

    /// Whether a number may show these texts of its parts.
    fn reads(reader: &Reader<'_>, texts: &[&str]) -> bool {
        let mut reading = reader.begin();
        texts.iter().enumerate().all(|(part, text)| {
            let last = text.chars().count() - 1;
            let is_read = text.chars().enumerate().all(|(offset, character)| {
                let how = How { ends: offset == last, keep: None, dated: true };
                reader.read(&mut reading, (part, offset), character, how)
            });
            reading.open.clear();
            is_read
        })
    }

    fn grids_of(series: &Series) -> Vec<Grid> {
        series.serials.iter().map(|s| Grid { least: s.start, step: s.step }).collect()
    }

    #[test]
    fn what_decides_is_told_character_by_character() {
        for (template, step, style, expected) in [
            ("{SEQ:3}", 2, Style::Digits, (true, false)),
            ("{SEQ:3}", 2, Style::Letters, (false, true)),
            ("{SEQ:3}{DATE:yyyyMMdd}", 2, Style::Letters, (true, true)),
            ("{SEQ:3}{DATE:yyyyMMdd}", 1, Style::Letters, (true, true)),
            ("{SEQ:3}{CHECK:luhn}", 1, Style::Digits, (true, false)),
            ("{SEQ:3}{CHECK:mod97-10}", 1, Style::Digits, (true, true)),
            ("{SEQ:3}{CHECK:mod37-36}", 2, Style::Letters, (true, true)),
        ] {
            let series = of(template, step, style);
            let reader = Reader::of(&series, &grids_of(&series), Detail::SIGNS);
            let needed = reader.tells();
            assert!(needed.0 >= expected.0 && needed.1 >= expected.1, "{template}: {needed:?}");
        }
    }

    #[test]
    fn a_day_of_any_year_is_read_and_none_that_no_calendar_has() {
        let series = of("{DATE:yyyyMMdd}{SEQ:3}", 1, Style::Digits);
        let reader = Reader::of(&series, &grids_of(&series), Detail::SIGNS);
        // One reader judges them all: what it knows of one is not what it knows of another.
        for (texts, is_day) in [
            (["2025", "02", "29"], false),
            (["2024", "02", "29"], true),
            (["1900", "02", "29"], false),
            (["2000", "02", "29"], true),
            (["2023", "02", "29"], false),
            (["0004", "02", "29"], true),
            (["9999", "12", "31"], true),
            (["2025", "04", "31"], false),
            (["2025", "05", "31"], true),
            (["2025", "04", "30"], true),
        ] {
            assert_eq!(reads(&reader, &texts), is_day, "{texts:?}");
        }
        let eras = of("{DATE:yyyy}{YEAR:B.E.}{DATE:DDD}{SEQ:3}", 1, Style::Digits);
        let reader = Reader::of(&eras, &grids_of(&eras), Detail::SIGNS);
        for (texts, is_day) in [
            (["1900", "2443", "365"], true),
            (["1900", "2443", "366"], false),
            (["1896", "2439", "366"], true),
            (["1896", "2440", "001"], false),
        ] {
            assert_eq!(reads(&reader, &texts), is_day, "{texts:?}");
        }
    }

    #[test]
    fn each_serial_is_judged_by_itself() {
        let two = series(|definition| {
            definition.template = "{SEQ:2}{SEQ:2:Y}".into();
            (definition.serials[0].start, definition.serials[0].step) = (3, 7);
            let mut other = definition.serials[0].clone();
            other.name = "Y".into();
            definition.serials.push(other);
        });
        let reader = Reader::of(&two, &grids_of(&two), Detail::SIGNS);
        for (texts, is_number) in [
            (["03", "10"], true),
            (["10", "03"], true),
            (["94", "94"], true),
            (["03", "11"], false),
            (["04", "10"], false),
        ] {
            assert_eq!(reads(&reader, &texts), is_number, "{texts:?}");
        }
    }

    proptest! {
        /// Goal: exactly the values of a grid are read. Method: every value up to a limit, written
        /// as numbers show it.
        #[test]
        fn exactly_the_values_of_the_grid_are_read(
            (least, step) in (1..90_u64, 1..60_u64),
            further in 0..1_500_u64,
            (letters, width) in (any::<bool>(), 1..=3_usize),
        ) {
            let style = if letters { Style::Letters } else { Style::Digits };
            let (grid, figure) = (Grid { least, step }, Figure { style, width, widens: true });
            let max = least + further;
            let written = |value: u64| -> Vec<char> {
                let mut text = String::new();
                assert!(figure.push(&mut text, value), "it widens");
                text.chars().collect()
            };
            let ends = [written(least), written(max)];
            let counted = Counted { grid, figure, ends };
            for value in 1..max + 3 * step {
                let text = written(value);
                let count = text.iter().enumerate().fold(None, |count, (offset, character)| {
                    Some(counted.read(count, offset, *character))
                });
                let has = counted.has(count.expect("no value is empty"), text.len());
                prop_assert_eq!(has, value <= max && grid.has(value), "{}", value);
            }
        }
    }
}

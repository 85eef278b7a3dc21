//! Judges texts of which the lengths of all parts are known: whether there are any, and whether one
//! that is tried is a collision.
//!
//! Never says that there are none because not all were looked at.

use super::super::Style;
use super::super::check::Check;
use super::super::template::Part;
use super::days::Date;
use super::lengths::{Lengths, Placed};
use super::memory::Counted;
use super::product::{Runs, Walk};
use super::texts::Texts;

/// Texts of the same lengths that are tried.
const TRIED: usize = 4;

/// Of so many lengths each is tried; of twice as many, every second, and so on.
const EACH: usize = 32;

/// Most characters that are read before check characters, where several may stand.
const CHECKED_MAX: usize = 100_000;

/// How many characters are mostly chosen among: with few, values are equal by chance.
const FEW: usize = 2;

/// What became of texts of known lengths.
enum Judged {
    /// There are none.
    Never,
    /// None that was tried is a collision.
    Perhaps,
    /// A collision was found.
    Ends,
}

impl Lengths<'_> {
    /// Judges texts of known lengths; false where the search is to end.
    pub(super) fn judge(&mut self, placed: &Placed) -> bool {
        if self.marks(placed) != self.runs.wanted || self.is_one(placed, &placed.texts) {
            return true;
        }
        let dates = self.calendar.dates(&self.alphabet, &placed.starts, &placed.texts);
        let kinds = dates.kinds.as_deref();
        let are_one = |kinds: &[Date]| {
            kinds.iter().all(|date| self.is_one(placed, &self.dated(placed, date)))
        };
        if kinds.is_some_and(are_one) {
            return true;
        }
        let (some, are_all) = match kinds {
            Some(kinds) if self.checks(placed) == [None, None] => (kinds, true),
            _ => (&dates.some[..], dates.are_all),
        };
        for date in some {
            match self.check(placed, &self.dated(placed, date)) {
                Judged::Never => {}
                Judged::Perhaps => return true,
                Judged::Ends => return false,
            }
        }
        self.never &= are_all;
        true
    }

    /// Texts with a date that fits.
    fn dated(&self, placed: &Placed, date: &Date) -> Texts {
        let mut texts = placed.texts.clone();
        self.calendar.write(&self.alphabet, &placed.starts, &mut texts, date);
        texts
    }

    /// Where the check characters of each run stand.
    fn checks(&self, placed: &Placed) -> [Option<(usize, Check)>; 2] {
        [0, 1].map(|side| {
            let mut parts = self.series[side].parts.iter().enumerate();
            parts.find_map(|(part, shown)| match shown {
                Part::Check(check) => Some((placed.starts[side][part], *check)),
                _ => None,
            })
        })
    }

    /// Reads what stands before check characters in every way, and tries what they leave.
    fn check(&mut self, placed: &Placed, texts: &Texts) -> Judged {
        let checks = self.checks(placed);
        let last = checks.iter().flatten().map(|(start, _)| *start).max().unwrap_or(0);
        if let Some(open) = (0..last).find(|place| texts.at(*place).count_ones() > 1) {
            for character in self.alphabet.characters(texts.at(open)).collect::<Vec<_>>() {
                if self.checked == CHECKED_MAX {
                    self.never = false;
                    return Judged::Perhaps;
                }
                self.checked += 1;
                let mut next = texts.clone();
                next.restrict(open, self.alphabet.one(character));
                match self.check(placed, &next) {
                    Judged::Never => {}
                    judged => return judged,
                }
            }
            return Judged::Never;
        }
        let mut texts = texts.clone();
        for (start, check) in checks.into_iter().flatten() {
            let before = (0..start).filter_map(|at| self.alphabet.characters(texts.at(at)).next());
            let (characters, width) = check.characters(before);
            let mut shown = characters[..width].iter().enumerate();
            if !shown.all(|(at, sign)| texts.restrict(start + at, self.alphabet.one(*sign))) {
                return Judged::Never;
            }
        }
        if self.is_one(placed, &texts) {
            return Judged::Never;
        }
        self.never = false;
        self.try_some(placed, &texts)
    }

    /// What differs by the places that both runs are at.
    fn marks(&self, placed: &Placed) -> u8 {
        let places = |side: usize| {
            placed.starts[side].windows(2).enumerate().flat_map(|(part, bounds)| {
                (0..bounds[1] - bounds[0]).map(move |offset| (part, offset))
            })
        };
        let Runs { places: like, marks, marked, .. } = self.runs;
        let mark = |side: usize, part: usize| marks[side].get(part).copied().unwrap_or(0);
        std::iter::zip(places(0), places(1)).fold(*marked, |known, (first, second)| {
            let like = like.get(first.0).copied().flatten();
            let is_alike = like == Some(second.0) && first.1 == second.1;
            known | if is_alike { 0 } else { mark(0, first.0) | mark(1, second.0) }
        })
    }

    /// Whether a value of one counter would surely be taken twice.
    fn is_one(&self, placed: &Placed, texts: &Texts) -> bool {
        let is_one = |counted: &Counted| {
            counted.parts.iter().all(|parts| self.is_equal(placed, texts, *parts))
        };
        self.counted.iter().any(is_one)
    }

    /// Tries some texts: near lengths have texts that are alike.
    fn try_some(&mut self, placed: &Placed, texts: &Texts) -> Judged {
        self.left += 1;
        let every = (self.left / EACH + 1).next_power_of_two();
        let tried = if self.left.is_multiple_of(every) { TRIED } else { 0 };
        for _ in 0..tried {
            let walk = self.walk(placed, texts);
            self.told = (self.found)(&walk);
            if self.told.is_some() {
                return Judged::Ends;
            }
        }
        Judged::Perhaps
    }

    /// Whether two parts surely show one value.
    fn is_equal(&self, placed: &Placed, texts: &Texts, parts: [usize; 2]) -> bool {
        let shown = [0, 1].map(|side| {
            let starts = &placed.starts[side];
            starts[parts[side]]..starts[parts[side] + 1]
        });
        let means_one = match [0, 1].map(|side| &self.series[side].parts[parts[side]]) {
            [Part::Serial { figure: one, .. }, Part::Serial { figure: other, .. }] => {
                let is_digits = one.style == Style::Digits;
                one.style == other.style && (is_digits || one.width == other.width)
            }
            _ => true,
        };
        let [first, second] = shown;
        means_one
            && first.len() == second.len()
            && std::iter::zip(first, second).all(|(one, other)| {
                let (signs, others) = (texts.at(one), texts.at(other));
                texts.first(one) == texts.first(other)
                    || signs == others && self.alphabet.is_known(signs)
            })
    }

    /// One text of these.
    fn walk(&mut self, placed: &Placed, texts: &Texts) -> Walk {
        let mut walk = Walk::default();
        let parts_of = |side: usize| -> Vec<usize> {
            let bounds = placed.starts[side].windows(2).enumerate();
            bounds.flat_map(|(part, at)| std::iter::repeat_n(part, at[1] - at[0])).collect()
        };
        (walk.first, walk.second) = (parts_of(0), parts_of(1));
        for place in 0..walk.first.len() {
            let character = match walk.text.get(texts.first(place)) {
                Some(known) => *known,
                None => {
                    let all: Vec<char> = self.alphabet.characters(texts.at(place)).collect();
                    let many = if self.chance.one_in(4) { all.len() } else { all.len().min(FEW) };
                    *self.chance.pick(&all[..many]).expect("a place has characters")
                }
            };
            walk.text.push(character);
        }
        walk
    }
}

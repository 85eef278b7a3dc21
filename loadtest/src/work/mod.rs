//! What loads ask for, and whether the answers are right: numbers are read from them and recorded.

mod look_ups;
mod numbers;
mod reservations;

use std::fmt;

pub(crate) use look_ups::LookUps;
pub(crate) use numbers::{Ask, Known, Numbers};
pub(crate) use reservations::{Reservations, Then};

use crate::client::Answer;

/// Series that a load may spread over, so that their counters are in several partitions.
pub(crate) const SERIES_MAX: usize = 8;

/// Digits of a line, the variable that names a counter of a series.
pub(crate) const LINE_DIGITS: usize = 7;

/// The counters of a load: this many lines in each of some series.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    count: usize,
    /// The first of the series.
    first: usize,
    /// The next one in turn; `None`: at random.
    turn: Option<usize>,
    random: fastrand::Rng,
}

impl Counters {
    /// This many counters, asked for in turn.
    pub(crate) fn in_turn(count: usize) -> Self {
        let random = fastrand::Rng::with_seed(count as u64);
        Counters { count, first: 0, turn: Some(0), random }
    }

    /// This many counters, asked for at random with equal probability.
    pub(crate) fn at_random(count: usize) -> Self {
        Counters { turn: None, ..Self::in_turn(count) }
    }

    /// The counter of the gapless series, if a service has one.
    pub(crate) fn gapless() -> Self {
        Counters { first: SERIES_MAX, ..Self::in_turn(1) }
    }

    fn pick(&mut self) -> Place {
        let counter = match &mut self.turn {
            Some(turn) => std::mem::replace(turn, (*turn + 1) % self.count),
            None => self.random.usize(..self.count),
        };
        self.place(counter)
    }

    fn place(&self, counter: usize) -> Place {
        let series = self.count.min(SERIES_MAX);
        Place { counter, series: self.first + counter % series, line: counter / series }
    }
}

/// A counter, and how a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    counter: usize,
    series: usize,
    line: usize,
}

impl Place {
    /// The value after `L0-0000000-`, if the number is of this counter.
    fn value_of(self, number: &str) -> Option<u64> {
        let (series, rest) = number.strip_prefix('L')?.split_once('-')?;
        let (line, value) = rest.split_once('-')?;
        let is_its = series.parse() == Ok(self.series)
            && line.parse() == Ok(self.line)
            && line.len() == LINE_DIGITS;
        value.parse().ok().filter(|value| is_its && *value > 0)
    }
}

impl fmt::Display for Place {
    /// The JSON of what all requests name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { series, line, .. } = self;
        write!(f, r#""type":"LOAD{series}","context":{{"LINE":"{line:0LINE_DIGITS$}"}}"#)
    }
}

/// A field that an answer must have.
fn text_of<'a>(answer: &Answer<'a>, name: &str) -> Result<&'a str, String> {
    let missing = || format!("no {name} in {}", String::from_utf8_lossy(answer.body));
    answer.text(name).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_dealt_out_over_the_series() {
        let mut counters = Counters::in_turn(20);
        let places: Vec<Place> = (0..21).map(|_| counters.pick()).collect();
        assert_eq!(places[0], Place { counter: 0, series: 0, line: 0 });
        assert_eq!(places[9], Place { counter: 9, series: 1, line: 1 });
        assert_eq!(places[20], places[0]);
        assert_eq!(Counters::gapless().pick(), Place { counter: 0, series: SERIES_MAX, line: 0 });
        let mut hot = Counters::at_random(1);
        assert_eq!(hot.pick(), Place { counter: 0, series: 0, line: 0 });
    }

    #[test]
    fn a_number_of_another_counter_is_not_taken_for_ours() {
        let place = Place { counter: 13, series: 5, line: 1 };
        assert_eq!(place.value_of("L5-0000001-000000000042"), Some(42));
        for other in ["L4-0000001-1", "L5-0000002-1", "L5-0000001-x", "L5-0000001-0", "X"] {
            assert_eq!(place.value_of(other), None, "{other}");
        }
    }
}

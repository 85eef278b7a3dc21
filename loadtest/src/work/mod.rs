//! What loads ask for: requests built in place, and numbers read out of their answers.

mod documents;
mod look_ups;
mod range;
mod single;

pub(crate) use documents::Documents;
pub(crate) use look_ups::LookUps;
pub(crate) use range::Ranges;
pub(crate) use single::Single;

use crate::client::Answer;
use crate::tally::Tally;

/// Series that a load may spread over, so that their counters are in several partitions.
pub(crate) const SERIES_MAX: usize = 8;

/// Digits of a line, the variable that names a counter of a series.
pub(crate) const LINE_DIGITS: usize = 7;

/// Digits of a running number in a document's id.
const DOCUMENT_DIGITS: usize = 12;

/// The counters of a load: so many lines in each of some series.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    series: usize,
    count: usize,
    /// The next one in turn; none: at random.
    turn: Option<usize>,
    random: fastrand::Rng,
}

impl Counters {
    /// So many counters, asked for in turn.
    pub(crate) fn in_turn(count: usize) -> Self {
        let random = fastrand::Rng::with_seed(count as u64);
        Counters { series: count.min(SERIES_MAX), count, turn: Some(0), random }
    }

    /// So many counters, asked for at random, each as likely as the others.
    pub(crate) fn at_random(count: usize) -> Self {
        Counters { turn: None, ..Self::in_turn(count) }
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    fn pick(&mut self) -> Place {
        let counter = match &mut self.turn {
            Some(turn) => {
                let counter = *turn;
                *turn = (counter + 1) % self.count;
                counter
            }
            None => self.random.usize(..self.count),
        };
        self.place(counter)
    }

    fn place(&self, counter: usize) -> Place {
        Place { counter, series: counter % self.series, line: counter / self.series }
    }
}

/// A counter, and how a request names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    counter: usize,
    series: usize,
    line: usize,
}

/// Writes a number into its place, with zeros in front.
fn digits(place: &mut [u8], mut number: u64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + u8::try_from(number % 10).expect("a digit");
        number /= 10;
    }
}

/// The JSON of what all requests name: `{"type":"LOAD0","context":{"LINE":"0000000"}` and no more,
/// with the places of series and line in it.
struct Naming;

impl Naming {
    const TEXT: &str = r#""type":"LOAD0","context":{"LINE":"0000000"}"#;
    const SERIES_AT: usize = r#""type":"LOAD"#.len();
    const LINE_AT: usize = r#""type":"LOAD0","context":{"LINE":""#.len();

    /// Writes series and line into such a text.
    fn fill(text: &mut [u8], place: Place) {
        digits(&mut text[Self::SERIES_AT..=Self::SERIES_AT], place.series as u64);
        digits(&mut text[Self::LINE_AT..Self::LINE_AT + LINE_DIGITS], place.line as u64);
    }
}

/// Reads a number's text, and notes its value.
fn note(text: &str, place: Place, tally: &mut Tally) -> Result<(), String> {
    let value = value_of(text, place).ok_or_else(|| format!("{text} for {place:?}"))?;
    tally.take(place.counter, value, value);
    Ok(())
}

/// The value behind `L0-0000000-`, where the number is of that counter.
fn value_of(text: &str, place: Place) -> Option<u64> {
    let (series, rest) = text.strip_prefix('L')?.split_once('-')?;
    let (line, value) = rest.split_once('-')?;
    let is_its =
        series.parse() == Ok(place.series) && line.parse() == Ok(place.line) && line.len() == 7;
    value.parse().ok().filter(|value| is_its && *value > 0)
}

/// A POST request whose body is `body`, with more header lines.
fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let bytes = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: numerator\r\ncontent-type: application/json\r\n\
         {headers}content-length: {bytes}\r\n\r\n{body}"
    )
    .into_bytes()
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
        let mut hot = Counters::at_random(1);
        assert_eq!(hot.pick(), Place { counter: 0, series: 0, line: 0 });
    }

    #[test]
    fn a_number_of_another_counter_is_not_taken_for_ours() {
        let place = Place { counter: 13, series: 5, line: 1 };
        assert_eq!(value_of("L5-0000001-000000000042", place), Some(42));
        for other in ["L4-0000001-1", "L5-0000002-1", "L5-0000001-x", "L5-0000001-0", "X"] {
            assert_eq!(value_of(other, place), None, "{other}");
        }
    }
}

//! The requested period of a paper: which counters may have numbers of it, and which of those
//! continue beyond it, so that only a part of their numbers belongs to it. Counters of a year are
//! never left out because a month is requested.

use std::fmt;

use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::{SignedDuration, Span};
use numbering::{Reset, period_of};

use crate::ledger::{KeyCondition, KeyPart};

/// Names of the periods that a counter key may have.
const PERIODS: [&str; 9] =
    ["year", "fiscal-year", "quarter", "month", "week", "day", "hour", "minute", "second"];

/// The resets that depend on time, from the longest period to the shortest.
const RESETS: [Reset; 9] = [
    Reset::Year,
    Reset::FiscalYear,
    Reset::Quarter,
    Reset::Month,
    Reset::Week,
    Reset::Day,
    Reset::Hour,
    Reset::Minute,
    Reset::Second,
];

/// The key's name of a fiscal year.
const FISCAL_YEAR: &str = "fiscal-year";

/// Years A.D. that are accepted: 2568 belongs to another era.
const YEAR_MAX: i16 = 2399;

/// Digits of a year.
const YEAR_DIGITS: usize = 4;

/// The last second of a day.
const LAST_SECOND: Time = Time::constant(23, 59, 59, 0);

/// A second.
const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// A requested period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AskedPeriod {
    text: String,
    reset: Reset,
    /// Its first second and its last.
    first: DateTime,
    last: DateTime,
}

/// The counters of a series that may have numbers of a period.
#[derive(Clone, Debug)]
pub(crate) struct PeriodKeys {
    /// All of them.
    pub(crate) any: KeyCondition,
    /// Those that also have other numbers.
    pub(crate) beyond: KeyCondition,
}

impl fmt::Display for AskedPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AskedPeriod {
    /// Reads a period A.D. as counter keys name it: `2026`, `2026-Q1`, `2026-01`, `2026-W05`,
    /// `2026-01-22`, or a time of such a day; `None` if the text names no period.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let year: i16 = text.get(..YEAR_DIGITS).filter(|year| is_number(year))?.parse().ok()?;
        let rest = &text[YEAR_DIGITS..];
        let whole_days = |reset, first: Date, last: Date| {
            let (first, last) =
                (first.to_datetime(Time::midnight()), last.to_datetime(LAST_SECOND));
            Some(AskedPeriod { text: text.to_owned(), reset, first, last })
        };
        let months = |reset, from: i8, to: i8| {
            let (first, last) = (Date::new(year, from, 1).ok()?, Date::new(year, to, 1).ok()?);
            whole_days(reset, first, last.last_of_month())
        };
        let asked = match (rest.len(), rest.as_bytes()) {
            (0, _) => months(Reset::Year, 1, 12),
            (3, [b'-', b'Q', digit @ b'1'..=b'4']) => {
                let quarter = i8::try_from(digit - b'0').ok()?;
                months(Reset::Quarter, 3 * quarter - 2, 3 * quarter)
            }
            (4, [b'-', b'W', ..]) => {
                let week = number(&rest[2..])?;
                let day = |weekday| ISOWeekDate::new(year, week, weekday).ok();
                let (first, last) = (day(Weekday::Monday)?, day(Weekday::Sunday)?);
                whole_days(Reset::Week, first.date(), last.date())
            }
            (3, [b'-', ..]) => {
                let month = number(&rest[1..])?;
                months(Reset::Month, month, month)
            }
            (6, _) => {
                let day: Date = text.parse().ok()?;
                whole_days(Reset::Day, day, day)
            }
            // A time of a day, written out to its seconds.
            (9 | 12 | 15, _) => {
                let at: DateTime =
                    format!("{text}{}", &":00:00"[..15 - rest.len()]).parse().ok()?;
                let (reset, length) = match rest.len() {
                    9 => (Reset::Hour, Span::new().hours(1)),
                    12 => (Reset::Minute, Span::new().minutes(1)),
                    _ => (Reset::Second, Span::new().seconds(1)),
                };
                let last = at.checked_add(length).ok()?.checked_sub(SECOND).ok()?;
                Some(AskedPeriod { text: text.to_owned(), reset, first: at, last })
            }
            _ => None,
        };
        let asked = asked.filter(|_| (1..=YEAR_MAX).contains(&year))?;
        // A text that differs from the form in keys is not a name of it.
        (period_of(asked.reset, asked.first, None)?.1 == text).then_some(asked)
    }

    /// The first and the last day on which documents of it are dated.
    pub(crate) fn days(&self) -> [String; 2] {
        [self.first, self.last].map(|at| at.date().to_string())
    }

    /// The keys of counters that may have numbers of it, in a series whose fiscal year begins, or
    /// began in an earlier version, in one of those months. A counter without reset may. A key goes
    /// beyond the period if it does by any of the months.
    pub(crate) fn keys(&self, series_id: i64, fiscal_year_starts: &[Option<u8>]) -> PeriodKeys {
        let (mut within, mut beyond) = (Vec::new(), Vec::new());
        let starts_of = |reset| match reset {
            Reset::FiscalYear => fiscal_year_starts,
            _ => &[None],
        };
        let begun = RESETS.into_iter().flat_map(|it| starts_of(it).iter().map(move |at| (it, *at)));
        for (reset, fiscal_year_start) in begun {
            let name = |at: DateTime| period_of(reset, at, fiscal_year_start);
            let outside = [self.first.checked_sub(SECOND), self.last.checked_add(SECOND)];
            let outside = outside.map(|at| at.ok().and_then(name));
            for at in [self.first, self.last].into_iter().chain(self.weeks(reset)) {
                let Some((name, value)) = name(at) else { continue };
                // The year of the name, whenever it begins.
                let is_named = reset == Reset::FiscalYear && value == self.text;
                let goes_beyond = outside.contains(&Some((name, value.clone()))) && !is_named;
                let list = if goes_beyond { &mut beyond } else { &mut within };
                list.push(part(name, value, false));
            }
        }
        if self.reset == Reset::Year {
            within.push(part(FISCAL_YEAR, self.text.clone(), false));
        }
        within.extend(self.finer());
        let without = |parts| KeyCondition {
            parts,
            absent: PERIODS.to_vec(),
            series_without: vec![series_id],
        };
        within.extend(beyond.iter().cloned());
        PeriodKeys { any: without(within), beyond: without(beyond) }
    }

    /// A day of each week of it, if it has several; for no other reset.
    fn weeks(&self, reset: Reset) -> impl Iterator<Item = DateTime> {
        let is_wanted = reset == Reset::Week && matches!(self.reset, Reset::Quarter | Reset::Month);
        let (first, last) = (self.first, self.last);
        let weeks =
            first.date().series(Span::new().days(7)).map(|day| day.to_datetime(Time::midnight()));
        weeks.take_while(move |at| is_wanted && *at <= last)
    }

    /// The prefixes of the names of shorter periods within it, and the days of a week.
    fn finer(&self) -> Vec<KeyPart> {
        let days = || self.first.date().series(Span::new().days(1)).take(7);
        let stems: Vec<String> = match self.reset {
            Reset::Quarter => {
                let months = self.first.date().series(Span::new().months(1)).take(3);
                months.map(|month| month.strftime("%Y-%m-").to_string()).collect()
            }
            Reset::Week => days().map(|day| format!("{day}T")).collect(),
            Reset::Day => vec![format!("{}T", self.text)],
            Reset::Hour | Reset::Minute => vec![format!("{}:", self.text)],
            Reset::Second => Vec::new(),
            _ => vec![format!("{}-", self.text)],
        };
        // These are named one by one.
        let named: &[&str] = match self.reset {
            Reset::Year => &[FISCAL_YEAR],
            Reset::Quarter => &["month", "week"],
            Reset::Month => &["week"],
            Reset::Week => &["day"],
            _ => &[],
        };
        let shorter = RESETS.iter().zip(PERIODS).skip_while(|(reset, _)| **reset != self.reset);
        let shorter = shorter.skip(1).map(|(_, name)| name).filter(|name| !named.contains(name));
        let mut parts: Vec<KeyPart> = shorter
            .flat_map(|name| stems.iter().map(move |stem| part(name, stem.clone(), true)))
            .collect();
        if self.reset == Reset::Quarter {
            let months = stems.iter().map(|stem| stem.trim_end_matches('-').to_owned());
            parts.extend(months.map(|month| part("month", month, false)));
        }
        if self.reset == Reset::Week {
            parts.extend(days().map(|day| part("day", day.to_string(), false)));
        }
        parts
    }
}

/// The period of a key; empty if it has none.
pub(super) fn period_shown(key: &str) -> &str {
    let mut parts = key.split(';').filter_map(|part| part.split_once('='));
    parts.find(|(name, _)| PERIODS.contains(name)).map_or("", |(_, period)| period)
}

/// Whether a key has no period.
pub(super) fn is_over_all_time(key: &str) -> bool {
    let mut names = key.split(';').filter_map(|part| Some(part.split_once('=')?.0));
    !names.any(|name| PERIODS.contains(&name))
}

fn part(name: &str, value: String, is_beginning: bool) -> KeyPart {
    KeyPart { name: name.into(), value, is_beginning, series: None }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number(text: &str) -> Option<i8> {
    Some(text).filter(|it| is_number(it))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_one_that_counters_may_have() {
        for (text, first, last) in [
            ("2026", "2026-01-01", "2026-12-31"),
            ("2026-Q1", "2026-01-01", "2026-03-31"),
            ("2026-02", "2026-02-01", "2026-02-28"),
            ("2026-W53", "2026-12-28", "2027-01-03"),
            ("2026-01-22", "2026-01-22", "2026-01-22"),
            ("2026-01-22T09", "2026-01-22", "2026-01-22"),
            ("2026-01-22T09:05", "2026-01-22", "2026-01-22"),
            ("2026-01-22T23:59:59", "2026-01-22", "2026-01-22"),
        ] {
            let asked = AskedPeriod::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(asked.days(), [first, last].map(str::to_owned), "{text}");
        }
        for text in [
            "",
            "26",
            "2569",
            "0000",
            "+026",
            "2026-",
            "2026-Q5",
            "2026-13",
            "2026-W54",
            "2025-W53",
            "2026-W1",
            "2026-02-30",
            "2026-01-22T",
            "2026-01-22T25",
            "2026-01-22 09",
            "20260122",
            "ปี 1",
            "2026-1",
            "2026-+1",
            "2026-0１",
        ] {
            assert_eq!(AskedPeriod::read(text), None, "{text}");
        }
    }

    fn told(condition: &KeyCondition, name: &str) -> Vec<String> {
        let of_name = condition.parts.iter().filter(|part| part.name == name);
        let shown =
            |part: &KeyPart| format!("{}{}", part.value, if part.is_beginning { "…" } else { "" });
        let mut told: Vec<String> = of_name.map(shown).collect();
        told.sort_unstable();
        told.dedup();
        told
    }

    #[test]
    fn a_year_has_all_periods_that_begin_with_it() {
        let PeriodKeys { any, beyond } = AskedPeriod::read("2026").unwrap().keys(7, &[Some(4)]);
        assert_eq!(told(&any, "fiscal-year"), ["2026", "2027"]);
        assert_eq!(told(&beyond, "fiscal-year"), ["2027"]);
        assert_eq!(told(&any, "month"), ["2026-01", "2026-12", "2026-…"]);
        assert_eq!(told(&beyond, "week"), ["2026-W01", "2026-W53"]);
        assert_eq!((any.absent.len(), any.series_without), (PERIODS.len(), vec![7]));
    }

    #[test]
    fn a_fiscal_year_is_named_by_each_month_in_which_it_ever_began() {
        for (text, starts, any, beyond) in [
            // With April it is of 2027, with October of 2026.
            ("2026-05", &[Some(4), Some(10)][..], "2026 2027", "2026 2027"),
            ("2026-Q2", &[None, Some(4)], "2026 2027", "2026 2027"),
            // The year of that name, and those that begin or end within the calendar's.
            ("2026", &[None, Some(10)], "2026 2027", "2027"),
        ] {
            let keys = AskedPeriod::read(text).unwrap().keys(7, starts);
            let told = [&keys.any, &keys.beyond].map(|it| told(it, "fiscal-year").join(" "));
            assert_eq!(told, [any, beyond], "{text}");
        }
    }

    #[test]
    fn a_shorter_period_names_the_longer_ones_that_it_lies_in() {
        for (text, year, quarter, month, week, day) in [
            ("2026-Q1", "2026", "", "", "2026-W01 2026-W14", ""),
            ("2026-01", "2026", "2026-Q1", "", "2026-W01 2026-W05", ""),
            ("2026-W05", "2026", "2026-Q1", "2026-01 2026-02", "", ""),
            ("2026-W01", "2025 2026", "2025-Q4 2026-Q1", "2025-12 2026-01", "", ""),
            ("2026-01-05", "2026", "2026-Q1", "2026-01", "2026-W02", ""),
            ("2026-01-05T09", "2026", "2026-Q1", "2026-01", "2026-W02", "2026-01-05"),
        ] {
            let PeriodKeys { beyond, .. } = AskedPeriod::read(text).unwrap().keys(7, &[None]);
            for (name, wanted) in [
                ("year", year),
                ("quarter", quarter),
                ("month", month),
                ("week", week),
                ("day", day),
            ] {
                assert_eq!(told(&beyond, name).join(" "), wanted, "{text}: {name}");
            }
        }
    }

    #[test]
    fn a_longer_period_has_the_shorter_ones_in_it() {
        let any = |text: &str| AskedPeriod::read(text).unwrap().keys(7, &[None]).any;
        assert_eq!(told(&any("2026-Q1"), "month"), ["2026-01", "2026-02", "2026-03"]);
        let weeks = told(&any("2026-Q1"), "week");
        assert_eq!((weeks.len(), &*weeks[0], &*weeks[13]), (14, "2026-W01", "2026-W14"));
        assert_eq!(told(&any("2026-01"), "day"), ["2026-01-01", "2026-01-31", "2026-01-…"]);
        let days = told(&any("2026-W05"), "day");
        assert!(days.contains(&"2026-01-29".to_owned()) && days.len() == 7, "{days:?}");
        assert_eq!(told(&any("2026-01-05T09"), "minute").last().unwrap(), "2026-01-05T09:…");
    }
}

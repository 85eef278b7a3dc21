//! Date fields and the patterns that are made of them: the numeric letters of LDML (Java).
//!
//! Every field has a fixed width, so a date never makes a number ambiguous by its length.

use jiff::civil::DateTime;

use super::error::excerpt;
use super::period::FiscalYear;
use super::template_error::TokenFlaw;

/// The century that `yy` shows; other years have no such field, or two years would show the same.
const CENTURY: i64 = 2000;

/// How a calendar counts its years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// `A.D.`
    Common,
    /// `B.E.`, 543 years ahead.
    Buddhist,
    /// `ROC`, 1911 years behind, three digits.
    Minguo,
}

impl Era {
    /// The era of a `{YEAR:era}` or `{FY:era}`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "A.D." => Era::Common,
            "B.E." => Era::Buddhist,
            "ROC" => Era::Minguo,
            _ => return None,
        })
    }

    /// Digits of its years.
    fn width(self) -> usize {
        if self == Era::Minguo { 3 } else { 4 }
    }

    /// What is added to the common year.
    #[must_use]
    pub fn offset(self) -> i64 {
        match self {
            Era::Common => 0,
            Era::Buddhist => 543,
            Era::Minguo => -1911,
        }
    }
}

/// A part of a date that a number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DateField {
    /// `yyyy`, `{YEAR}`.
    Year(Era),
    /// `yy`: shows 2000 to 2099.
    YearOfCentury,
    /// `MM`.
    Month,
    /// `dd`.
    Day,
    /// `DDD`.
    DayOfYear,
    /// `HH`.
    Hour,
    /// `mm`.
    Minute,
    /// `ss`.
    Second,
    /// `SSS`.
    Millisecond,
    /// `YYYY`: the year that the ISO week belongs to.
    WeekYear,
    /// `ww`: the ISO week.
    Week,
    /// `Q`.
    Quarter,
    /// `{FY}`: the year in which the fiscal year ends.
    FiscalYear(Era, FiscalYear),
    /// `{FY:start}`: the year in which it begins.
    FiscalStart(Era, FiscalYear),
}

/// The letters of each field.
const LETTERS: [(&str, DateField); 12] = [
    ("yyyy", DateField::Year(Era::Common)),
    ("yy", DateField::YearOfCentury),
    ("MM", DateField::Month),
    ("dd", DateField::Day),
    ("DDD", DateField::DayOfYear),
    ("HH", DateField::Hour),
    ("mm", DateField::Minute),
    ("ss", DateField::Second),
    ("SSS", DateField::Millisecond),
    ("YYYY", DateField::WeekYear),
    ("ww", DateField::Week),
    ("Q", DateField::Quarter),
];

impl DateField {
    /// The era of its years, if it shows one.
    pub(super) fn era(self) -> Option<Era> {
        match self {
            DateField::Year(era)
            | DateField::FiscalYear(era, _)
            | DateField::FiscalStart(era, _) => Some(era),
            DateField::WeekYear => Some(Era::Common),
            _ => None,
        }
    }

    /// Its letters; none for a year of another era.
    pub(super) fn letters(self) -> Option<&'static str> {
        LETTERS.iter().find(|(_, field)| *field == self).map(|(letters, _)| *letters)
    }

    /// Its width in digits.
    pub(super) fn width(self) -> usize {
        use DateField as F;
        match self {
            F::Year(era) | F::FiscalYear(era, _) | F::FiscalStart(era, _) => era.width(),
            F::WeekYear => 4,
            F::DayOfYear | F::Millisecond => 3,
            F::Quarter => 1,
            _ => 2,
        }
    }

    /// The values it can show.
    pub(super) fn bounds(self) -> (i64, i64) {
        use DateField as F;
        match self {
            F::Year(Era::Minguo)
            | F::FiscalYear(Era::Minguo, _)
            | F::FiscalStart(Era::Minguo, _) => (1, 999),
            F::Year(_) | F::FiscalYear(..) | F::FiscalStart(..) | F::WeekYear => (1, 9999),
            DateField::YearOfCentury => (0, 99),
            DateField::Month => (1, 12),
            DateField::Day => (1, 31),
            DateField::DayOfYear => (1, 366),
            DateField::Hour => (0, 23),
            DateField::Minute | DateField::Second => (0, 59),
            DateField::Millisecond => (0, 999),
            DateField::Week => (1, 53),
            DateField::Quarter => (1, 4),
        }
    }

    /// Whether it shows a time of day.
    pub(super) fn is_time(self) -> bool {
        use DateField::{Hour, Millisecond, Minute, Second};
        matches!(self, Hour | Minute | Second | Millisecond)
    }

    /// Its value at a time; `None` if it cannot show that (a year before its era, or for `yy` of
    /// another century).
    pub(super) fn value(self, at: DateTime) -> Option<i64> {
        let date = at.date();
        let value = match self {
            DateField::Year(era) => i64::from(at.year()) + era.offset(),
            DateField::YearOfCentury => i64::from(at.year()) - CENTURY,
            DateField::Month => at.month().into(),
            DateField::Day => at.day().into(),
            DateField::DayOfYear => date.day_of_year().into(),
            DateField::Hour => at.hour().into(),
            DateField::Minute => at.minute().into(),
            DateField::Second => at.second().into(),
            DateField::Millisecond => at.millisecond().into(),
            DateField::WeekYear => date.iso_week_date().year().into(),
            DateField::Week => date.iso_week_date().week().into(),
            DateField::Quarter => i64::from((at.month() - 1) / 3 + 1),
            DateField::FiscalYear(era, fiscal) => {
                i64::from(fiscal.of(at.year(), at.month())) + era.offset()
            }
            DateField::FiscalStart(era, fiscal) => {
                i64::from(fiscal.of(at.year(), at.month()) - fiscal.years_before()) + era.offset()
            }
        };
        let (least, most) = self.bounds();
        (least..=most).contains(&value).then_some(value)
    }

    /// The fiscal year that contains the shown part, and the common year in which it ends.
    pub(super) fn fiscal_year(self, shown: i64) -> Option<(FiscalYear, i16)> {
        let (fiscal, year) = match self {
            DateField::FiscalYear(era, fiscal) => (fiscal, shown - era.offset()),
            DateField::FiscalStart(era, fiscal) => {
                (fiscal, shown - era.offset() + i64::from(fiscal.years_before()))
            }
            _ => return None,
        };
        Some((fiscal, i16::try_from(year).ok()?))
    }

    /// The common year of a shown year.
    pub(super) fn common_year(self, shown: i64) -> Option<i64> {
        match self {
            DateField::Year(era) => Some(shown - era.offset()),
            DateField::YearOfCentury => Some(CENTURY + shown),
            _ => None,
        }
    }
}

/// A piece of a date pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternPiece {
    /// Text between the fields.
    Literal(String),
    /// A field.
    Field(DateField),
}

/// Reads a pattern: runs of one letter are fields, `'…'` is literal text, `''` a quote, and any
/// character that is not an ASCII letter represents itself.
pub(super) fn parse_pattern(pattern: &str) -> Result<Vec<PatternPiece>, TokenFlaw> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (piece, taken) = if first == '\'' {
            quoted(rest)?
        } else if first.is_ascii_alphabetic() {
            let run = rest.find(|c| c != first).unwrap_or(rest.len());
            (PatternPiece::Field(field(&rest[..run])?), run)
        } else {
            let end = |c: char| c == '\'' || c.is_ascii_alphabetic();
            let run = rest.find(end).unwrap_or(rest.len());
            (PatternPiece::Literal(rest[..run].into()), run)
        };
        pieces.push(piece);
        rest = &rest[taken..];
    }
    if pieces.iter().any(|piece| matches!(piece, PatternPiece::Field(_))) {
        return Ok(pieces);
    }
    Err(flaw(pattern, "it shows no date; write letters such as yyyyMMdd"))
}

/// The quoted text that begins a pattern, and how many bytes it takes.
fn quoted(rest: &str) -> Result<(PatternPiece, usize), TokenFlaw> {
    if rest.starts_with("''") {
        return Ok((PatternPiece::Literal("'".into()), 2));
    }
    let end = rest[1..].find('\'').ok_or_else(|| flaw(rest, "the quote is not closed"))?;
    Ok((PatternPiece::Literal(rest[1..=end].into()), end + 2))
}

/// The field of a run of letters.
fn field(letters: &str) -> Result<DateField, TokenFlaw> {
    if let Some((_, field)) = LETTERS.iter().find(|(known, _)| *known == letters) {
        return Ok(*field);
    }
    Err(flaw(
        letters,
        match letters.chars().next() {
            Some('D') => "the day of the month is dd; DDD is the day of the year",
            Some('Y') => "the year is yyyy; YYYY is the year of the ISO week ww",
            Some('y' | 'u') => "years have four or two digits: yyyy or yy",
            Some('M' | 'L') => "the month is MM, two digits",
            Some('d') => "the day of the month is dd, two digits",
            Some('h' | 'H' | 'k' | 'K') => "the hour is HH, 00 to 23",
            Some('m') => "the month is MM; minutes are mm",
            Some('s') => "seconds are ss, two digits",
            Some('S') => "milliseconds are SSS, three digits",
            Some('w') => "the ISO week is ww, two digits",
            Some('Q' | 'q') => "the quarter is Q, one digit",
            _ => "known are yyyy yy MM dd DDD HH mm ss SSS YYYY ww Q; quote other letters: 'T'",
        },
    ))
}

/// Refuses fields that together mean something else than they seem to: the classic mistakes.
pub(super) fn check_together(fields: &[DateField]) -> Result<(), (DateField, TokenFlaw)> {
    let has = |field: DateField| fields.contains(&field);
    let calendar_year = has(DateField::Year(Era::Common)) || has(DateField::YearOfCentury);
    let refuse = |field, letters, remedy| Err((field, flaw(letters, remedy)));
    if has(DateField::WeekYear) && !has(DateField::Week) {
        let remedy = "it is the year of the ISO week and differs from the date's around New Year; \
                      write yyyy, or add ww";
        return refuse(DateField::WeekYear, "YYYY", remedy);
    }
    if has(DateField::Week) && calendar_year && !has(DateField::WeekYear) {
        let remedy = "an ISO week around New Year may belong to another year; write YYYY with it";
        return refuse(DateField::Week, "ww", remedy);
    }
    if has(DateField::Minute) && !has(DateField::Hour) {
        let remedy = "these are minutes, and no hour HH is shown; the month is MM";
        return refuse(DateField::Minute, "mm", remedy);
    }
    Ok(())
}

fn flaw(letters: &str, remedy: &'static str) -> TokenFlaw {
    TokenFlaw::DatePattern { letters: excerpt(letters), remedy }
}

#[cfg(test)]
mod tests {
    use jiff::civil::datetime;

    use super::*;

    fn shown(pattern: &str, at: DateTime) -> String {
        let show = |piece: PatternPiece| match piece {
            PatternPiece::Literal(text) => text,
            PatternPiece::Field(f) => format!("{:0w$}", f.value(at).unwrap(), w = f.width()),
        };
        parse_pattern(pattern).unwrap().into_iter().map(show).collect()
    }

    #[test]
    fn each_field_shows_its_part_of_the_date() {
        let at = datetime(2024, 12, 30, 9, 8, 7, 6_000_000);
        for (pattern, expected) in [
            ("yyyyMMdd", "20241230"),
            ("yyMM", "2412"),
            ("yyyyDDD", "2024365"),
            ("yyyyMMddHHmmssSSS", "20241230090807006"),
            ("YYYY-'W'ww", "2025-W01"),
            ("yyyy'Q'Q", "2024Q4"),
            ("dd.MM.yyyy", "30.12.2024"),
            ("HH''mm", "09'08"),
            ("yyyy年MM月", "2024年12月"),
        ] {
            assert_eq!(shown(pattern, at), expected, "{pattern}");
        }
    }

    #[test]
    fn the_three_eras_count_from_their_own_beginning() {
        let at = datetime(2025, 12, 2, 0, 0, 0, 0);
        for (name, year) in [("A.D.", 2025), ("B.E.", 2568), ("ROC", 114)] {
            let field = DateField::Year(Era::named(name).unwrap());
            assert_eq!(field.value(at), Some(year), "{name}");
            assert_eq!(field.common_year(year), Some(2025), "{name}");
        }
        let before = datetime(1911, 1, 1, 0, 0, 0, 0);
        assert_eq!(DateField::Year(Era::Minguo).value(before), None);
        let late = datetime(9900, 1, 1, 0, 0, 0, 0);
        assert_eq!(DateField::Year(Era::Buddhist).value(late), None);
    }

    #[test]
    fn letters_that_are_no_field_are_refused_with_what_to_write() {
        for (pattern, letters, hint) in [
            ("yyyyMMDD", "DD", "dd"),
            ("YYMM", "YY", "yyyy"),
            ("yyyyMd", "M", "MM"),
            ("hhmm", "hh", "HH"),
            ("yyyy'T", "'T", "closed"),
            ("yyyyT", "T", "quote"),
            ("'x'", "'x'", "no date"),
            ("", "", "no date"),
            ("S", "S", "SSS"),
        ] {
            match parse_pattern(pattern) {
                Err(TokenFlaw::DatePattern { letters: found, remedy }) => {
                    assert_eq!(found, letters, "{pattern}");
                    assert!(remedy.contains(hint), "{pattern}: {remedy}");
                }
                other => panic!("{pattern}: {other:?}"),
            }
        }
    }

    #[test]
    fn fields_that_mislead_together_are_refused() {
        let fields = |pattern: &str| -> Vec<DateField> {
            let field = |piece| match piece {
                PatternPiece::Field(field) => Some(field),
                PatternPiece::Literal(_) => None,
            };
            parse_pattern(pattern).unwrap().into_iter().filter_map(field).collect()
        };
        for (pattern, culprit) in [
            ("YYYYMMdd", DateField::WeekYear),
            ("yyyyww", DateField::Week),
            ("yyyymmdd", DateField::Minute),
        ] {
            assert_eq!(check_together(&fields(pattern)).unwrap_err().0, culprit, "{pattern}");
        }
        for pattern in ["YYYYww", "yyyyMMdd", "HHmm", "ww"] {
            assert_eq!(check_together(&fields(pattern)), Ok(()), "{pattern}");
        }
    }
}

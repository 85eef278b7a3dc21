//! Periods: when a new counter begins (R3.4). A reset is a new counter, never an overwrite.

use jiff::civil::Date;

use super::Reset;
use super::mask::push_padded;

/// A day as `yyyy-mm-dd`. Every draft has one: written digit by digit, which is several times as
/// fast as the formatting machinery.
pub(super) fn day_text(date: Date) -> String {
    let mut text = String::with_capacity("yyyy-mm-dd".len());
    push_padded(&mut text, u64::from(date.year().unsigned_abs()), 4);
    for part in [date.month(), date.day()] {
        text.push('-');
        push_padded(&mut text, u64::from(part.unsigned_abs()), 2);
    }
    text
}

impl Reset {
    /// Name and value of the period that a date lies in, as the last part of the counter key;
    /// `None` for a counter that never resets. Always the common calendar, whatever era is shown.
    pub(super) fn period(self, date: Date) -> Option<(&'static str, String)> {
        let (year, month) = (date.year(), date.month());
        match self {
            Reset::None => None,
            Reset::Day => Some(("day", day_text(date))),
            Reset::Month => Some(("month", format!("{year:04}-{month:02}"))),
            Reset::Year => Some(("year", format!("{year:04}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_period_is_named_by_its_date() {
        let at = date(2024, 2, 29);
        assert_eq!(Reset::None.period(at), None);
        for (reset, name, value) in [
            (Reset::Day, "day", "2024-02-29"),
            (Reset::Month, "month", "2024-02"),
            (Reset::Year, "year", "2024"),
        ] {
            assert_eq!(reset.period(at), Some((name, value.to_owned())));
        }
    }
}

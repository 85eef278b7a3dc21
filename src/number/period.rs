//! Periods: when a new counter begins (R3.4). A reset is a new counter, never an overwrite.

use jiff::civil::Date;

use super::Reset;

impl Reset {
    /// Name and value of the period that a date lies in, as the last part of the counter key;
    /// `None` for a counter that never resets. Always the common calendar, whatever era is shown.
    pub(super) fn period(self, date: Date) -> Option<(&'static str, String)> {
        let (year, month, day) = (date.year(), date.month(), date.day());
        match self {
            Reset::None => None,
            Reset::Day => Some(("day", format!("{year:04}-{month:02}-{day:02}"))),
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

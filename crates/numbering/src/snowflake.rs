//! The id that `{SNOWFLAKE}` shows: a millisecond, the number of the node that drew it, and a
//! serial within both. Layout and text only: the right to draw, and that no id is drawn twice, are
//! decided where node numbers are leased. Never a counter's value, never a JSON number.

use std::fmt;

use jiff::Timestamp;

use super::partial_number::PartialNumber;

/// The first millisecond of ids: 2020-01-01T00:00:00Z, in milliseconds of UTC since 1970. The last
/// one is 2089-09-06T15:47:35.551Z.
const EPOCH_MS: i64 = 1_577_836_800_000;

const TIME_BITS: u32 = 41;
const NODE_BITS: u32 = 10;
const SERIAL_BITS: u32 = 12;

/// How many node numbers there are.
pub const NODE_NUMBERS: u16 = 1 << NODE_BITS;

/// Ids of one node number within a millisecond.
pub const SNOWFLAKES_PER_MS: u16 = 1 << SERIAL_BITS;

/// Digits of an id: those of 2^63 - 1, so that ids in the order of their texts are in the order of
/// time.
pub(super) const SNOWFLAKE_DIGITS: usize = 19;

/// A time-ordered id of 63 bits: 41 of milliseconds since 2020, 10 of the node number, 12 of the
/// serial. Shown as 19 decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Snowflake(u64);

impl Snowflake {
    /// The id of a millisecond of UTC since 1970, a node number below [`NODE_NUMBERS`] and a serial
    /// below [`SNOWFLAKES_PER_MS`]; `None` outside the years that ids can name.
    #[must_use]
    pub fn at(time_ms: i64, node_number: u16, serial: u16) -> Option<Self> {
        assert!(node_number < NODE_NUMBERS && serial < SNOWFLAKES_PER_MS, "ids have fixed fields");
        let since = u64::try_from(time_ms.checked_sub(EPOCH_MS)?).ok()?;
        let place = u64::from(node_number) << SERIAL_BITS | u64::from(serial);
        (since >> TIME_BITS == 0).then_some(Snowflake(since << (NODE_BITS + SERIAL_BITS) | place))
    }

    /// An id of that time for previews, with the node number 0: it is never drawn for a number.
    #[must_use]
    pub fn sample(now: Timestamp, serial: u16) -> Self {
        Self::at(now.as_millisecond(), 0, serial).unwrap_or(Snowflake(serial.into()))
    }

    /// Its millisecond of UTC since 1970.
    #[must_use]
    pub fn time_ms(self) -> i64 {
        let since = self.0 >> (NODE_BITS + SERIAL_BITS);
        EPOCH_MS + i64::try_from(since).expect("41 bits")
    }

    /// Its time.
    #[must_use]
    pub fn time(self) -> Timestamp {
        Timestamp::from_millisecond(self.time_ms()).expect("41 bits of milliseconds since 2020")
    }

    /// The number of the node that drew it.
    #[must_use]
    pub fn node_number(self) -> u16 {
        field(self.0 >> SERIAL_BITS, NODE_BITS)
    }

    /// Its serial among the ids of that node number and millisecond.
    #[must_use]
    pub fn serial(self) -> u16 {
        field(self.0, SERIAL_BITS)
    }

    /// Reads its digits back, all of them.
    pub(super) fn read(digits: &[char]) -> Option<Self> {
        if digits.len() != SNOWFLAKE_DIGITS || !digits.iter().all(char::is_ascii_digit) {
            return None;
        }
        let id: u64 = digits.iter().collect::<String>().parse().ok()?;
        i64::try_from(id).is_ok().then_some(Snowflake(id))
    }
}

/// The lowest bits of a number.
fn field(value: u64, bits: u32) -> u16 {
    u16::try_from(value & ((1 << bits) - 1)).expect("fewer than 16 bits")
}

impl fmt::Display for Snowflake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0width$}", self.0, width = SNOWFLAKE_DIGITS)
    }
}

/// Where a partially rendered number shows an id: a sample, until the drawn id replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnowflakePlace {
    /// Bytes of literal text before it.
    offset: usize,
}

impl SnowflakePlace {
    /// Appends a sample to a partially rendered number.
    pub(super) fn push(partial: &mut PartialNumber, sample: Snowflake) -> Self {
        let offset = partial.literal_len();
        partial.push_text(&sample.to_string());
        SnowflakePlace { offset }
    }

    /// Puts an id there. `partial` must be the number that the place belongs to.
    pub fn put(self, partial: &mut PartialNumber, id: Snowflake) {
        partial.replace_text(self.offset, &id.to_string());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Option<Snowflake> {
        Snowflake::read(&text.chars().collect::<Vec<_>>())
    }

    #[test]
    fn an_id_has_19_digits_whatever_its_time() {
        for (time_ms, text) in [
            (EPOCH_MS, "0000000000000012288"),
            (EPOCH_MS + 1, "0000000000004206592"),
            (1_764_633_600_000, "0783482565427212288"),
            (EPOCH_MS + (1 << TIME_BITS) - 1, "9223372036850593792"),
        ] {
            let id = Snowflake::at(time_ms, 3, 0).expect("in time");
            assert_eq!(id.to_string(), text);
            assert_eq!((read(text), id.time_ms()), (Some(id), time_ms));
        }
        assert_eq!(Snowflake::at(EPOCH_MS - 1, 0, 0), None);
        assert_eq!(Snowflake::at(EPOCH_MS + (1 << TIME_BITS), 0, 0), None);
        let last = Snowflake::at(EPOCH_MS + (1 << TIME_BITS) - 1, 1023, 4095).expect("the last");
        assert_eq!(last.to_string(), i64::MAX.to_string());
        assert_eq!(last.time().to_string(), "2089-09-06T15:47:35.551Z");
    }

    #[test]
    fn text_that_no_id_has_is_not_read() {
        for text in
            ["", "123", "9223372036854775808", "00000000000000012288", "000000000000001228๘"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_id_keeps_its_fields_and_ids_are_in_the_order_of_their_texts(
            a in (0..1_i64 << TIME_BITS, 0..NODE_NUMBERS, 0..SNOWFLAKES_PER_MS),
            b in (0..1_i64 << TIME_BITS, 0..NODE_NUMBERS, 0..SNOWFLAKES_PER_MS),
        ) {
            let id = |(since, node, serial)| Snowflake::at(EPOCH_MS + since, node, serial).unwrap();
            let (one, other) = (id(a), id(b));
            prop_assert_eq!((one.time_ms() - EPOCH_MS, one.node_number(), one.serial()), a);
            prop_assert_eq!(read(&one.to_string()), Some(one));
            prop_assert_eq!(a.cmp(&b), one.to_string().cmp(&other.to_string()));
        }
    }
}

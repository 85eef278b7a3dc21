//! A length of time as settings write it: a whole number and a unit. Never a bare number, so that
//! no setting's name has to carry a unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A duration such as `250ms`, `1s`, `5m`, `24h` or `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationText(pub Duration);

/// Units from the largest down, with their length in milliseconds.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl FromStr for DurationText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "{text:?} is not a duration; write a whole number and a unit (ms, s, m, h, d), \
                     such as \"250ms\" or \"24h\""
            )
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wanted())?;
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wanted)?;
        let ms = number.checked_mul(*unit_ms).ok_or_else(|| format!("{text:?} is too long"))?;
        Ok(DurationText(Duration::from_millis(ms)))
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        for (unit, unit_ms) in UNITS {
            if ms >= u128::from(unit_ms) && ms.is_multiple_of(u128::from(unit_ms)) {
                return write!(f, "{}{unit}", ms / u128::from(unit_ms));
            }
        }
        write!(f, "{ms}ms")
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl de::Visitor<'_> for Text {
            type Value = DurationText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"250ms\" or \"24h\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<DurationText, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_read_and_shown_again() {
        for (text, ms) in
            [("250ms", 250), ("1s", 1_000), ("5m", 300_000), ("24h", 86_400_000), ("0ms", 0)]
        {
            let read: DurationText = text.parse().expect(text);
            assert_eq!(read.0, Duration::from_millis(ms), "{text}");
            assert_eq!(read.to_string().parse::<DurationText>().expect("shown"), read);
        }
        assert_eq!("1500ms".parse::<DurationText>().expect("read").to_string(), "1500ms");
        assert_eq!("48h".parse::<DurationText>().expect("read").to_string(), "2d");
    }

    #[test]
    fn a_duration_without_a_number_or_a_known_unit_is_refused() {
        for text in ["", "5", "s", "-1s", "1.5s", "1 s", "1S", "5min", "99999999999999999999s"] {
            let refusal = text.parse::<DurationText>().expect_err(text);
            assert!(refusal.contains("250ms"), "{refusal}");
        }
        let refusal = "999999999999999999d".parse::<DurationText>().expect_err("too long");
        assert!(refusal.contains("too long"), "{refusal}");
    }
}

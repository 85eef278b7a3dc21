//! The name of one counter. Its text form goes into every store, so it must stay injective.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Reset, Series};

/// The dimension values and the period that name one counter, in the order in which the serial
/// lists them, the period last. Independent of what the template shows.
///
/// Its text form is injective (`name=value` joined by `;`, with `\`, `;` and `=` escaped by `\`)
/// and is compared byte for byte in every store (F24). The key without parts is the empty text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CounterKey {
    /// `(dimension, value)` pairs.
    pub parts: Vec<(String, String)>,
}

impl fmt::Display for CounterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.parts.iter().enumerate() {
            if index > 0 {
                f.write_str(";")?;
            }
            escape(name, f)?;
            f.write_str("=")?;
            escape(value, f)?;
        }
        Ok(())
    }
}

/// Writes text with the signs of the form escaped.
fn escape(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', ';', '=']) {
        f.write_str(&rest[..at])?;
        f.write_str("\\")?;
        f.write_str(&rest[at..=at])?;
        rest = &rest[at + 1..];
    }
    f.write_str(rest)
}

impl CounterKey {
    /// Reads the text form back; `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let own = |(name, value): (Cow<str>, Cow<str>)| (name.into_owned(), value.into_owned());
        Some(CounterKey { parts: Self::parts(text)?.into_iter().map(own).collect() })
    }

    /// The parts of a text form as written, copied only if signs are escaped; `None` if the text is
    /// not one.
    #[must_use]
    pub fn parts(text: &str) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
        let mut parts = Vec::new();
        if text.is_empty() {
            return Some(parts);
        }
        let mut rest = text;
        loop {
            let (name, after) = unescape(rest)?;
            let (value, after) = unescape(after.strip_prefix('=')?)?;
            parts.push((name, value));
            match after.strip_prefix(';') {
                Some(next) => rest = next,
                None => return after.is_empty().then_some(parts),
            }
        }
    }
}

/// Reads a name or a value, and returns what follows it; `None` if a character other than a sign of
/// the form is escaped.
fn unescape(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (mut read, mut rest) = (Cow::Borrowed(""), text);
    loop {
        let at = rest.find(['\\', ';', '=']).unwrap_or(rest.len());
        let plain;
        (plain, rest) = rest.split_at(at);
        read += plain;
        let Some(escaped) = rest.strip_prefix('\\') else { return Some((read, rest)) };
        let sign = escaped.get(..1).filter(|sign| matches!(*sign, "\\" | ";" | "="))?;
        read += sign;
        rest = &escaped[1..];
    }
}

impl Series {
    /// Whether a key may be one of a serial's counters: its parts have the names that it counts by.
    #[must_use]
    pub fn may_count_by(&self, serial: &str, key: &str) -> bool {
        let place = self.serials.iter().position(|one| one.name == serial);
        let Some(rule) = place.and_then(|place| self.counters.get(place)) else { return false };
        let Some(parts) = CounterKey::parts(key) else { return false };
        // A period has the same name at all times.
        let at = self.zone.to_datetime(Timestamp::UNIX_EPOCH);
        let period = match rule.reset {
            Reset::Phase => Some("phase"),
            reset => reset.period(at, self.fiscal).map(|(name, _)| name),
        };
        let names = rule.dimensions.iter().map(|dimension| self.key_name(*dimension));
        let names = names.chain(period.map(str::to_owned));
        names.eq(parts.into_iter().map(|(name, _)| name.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(parts: &[(&str, &str)]) -> CounterKey {
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        CounterKey { parts: parts.iter().map(own).collect() }
    }

    #[test]
    fn the_text_form_is_readable_and_escapes_its_own_signs() {
        let plain = key(&[("project", "LCBP3-C2"), ("type", "RFA"), ("year", "2025")]);
        assert_eq!(plain.to_string(), "project=LCBP3-C2;type=RFA;year=2025");
        assert_eq!(key(&[("A", r"x;y=z\")]).to_string(), r"A=x\;y\=z\\");
        assert_eq!(key(&[]).to_string(), "");
    }

    #[test]
    fn text_that_no_key_has_is_not_read() {
        for text in ["A", "A=1;", ";A=1", "A=1=2", r"A=\x", r"A=\", "A=1;B"] {
            assert_eq!(CounterKey::parse(text), None, "{text}");
        }
    }

    /// Few letters, so that escapes and separators meet often.
    fn any_key() -> impl Strategy<Value = CounterKey> {
        let text = || "[a;=\\\\ก]{0,3}";
        prop::collection::vec((text(), text()), 0..4).prop_map(|parts| CounterKey { parts })
    }

    proptest! {
        #[test]
        fn a_key_survives_its_text(key in any_key()) {
            prop_assert_eq!(CounterKey::parse(&key.to_string()), Some(key));
        }

        #[test]
        fn different_keys_have_different_texts(a in any_key(), b in any_key()) {
            prop_assert_eq!(a == b, a.to_string() == b.to_string());
        }

        #[test]
        fn only_one_text_reads_as_a_key(text in "[a;=\\\\]{0,8}") {
            if let Some(key) = CounterKey::parse(&text) {
                prop_assert_eq!(key.to_string(), text);
            }
        }
    }
}

//! What differs between two services whatever they hold: times, ids that are drawn, and checks over
//! them.

use jiff::Timestamp;
use jiff::civil::Date;
use uuid::Uuid;

use super::place::Ids;

/// Digits of a time in microseconds, and of the check of a place.
const TIME_DIGITS: usize = 16;
/// Digits of the hash of a list.
const HASH_DIGITS: usize = 32;

/// Fields that show by which way a number came, and how far ahead its counter was raised: of its
/// moment, too.
const OF_MOMENT: [&str; 3] = ["\"ceiling\":", "\"path\":", "\"retry_count\":"];

/// A text without what is of its moment.
pub(super) fn masked(text: &str) -> String {
    // What follows from a time, as the hash of a list that shows some, is of its moment, too.
    let is_of_moment = text.contains("_at\":\"") || text.contains("timestamp\":\"");
    let mut text = text.to_owned();
    for field in OF_MOMENT {
        let mut parts = text.split(field);
        let mut bare = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            bare += field;
            bare += part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '"');
        }
        text = bare;
    }
    let mut whole = String::with_capacity(text.len());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-_.:".contains(c);
    let mut rest = text.as_str();
    while let Some(from) = rest.find(is_part) {
        whole.push_str(&rest[..from]);
        rest = &rest[from..];
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        whole.push_str(&word(&rest[..end], is_of_moment));
        rest = &rest[end..];
    }
    whole + rest
}

fn word(word: &str, is_of_moment: bool) -> String {
    let bare = word.trim_end_matches(['.', ':']);
    let tail = &word[bare.len()..];
    let is_hash = is_of_moment && bare.len() == HASH_DIGITS && is_hexadecimal(bare);
    let known = match bare {
        _ if Uuid::parse_str(bare).is_ok() && bare.contains('-') => Some("UUID"),
        _ if bare.parse::<Timestamp>().is_ok() => Some("TIME"),
        _ if bare.len() == "2026-01-02".len() && bare.parse::<Date>().is_ok() => Some("DATE"),
        _ if is_hash => Some("HASH"),
        _ => None,
    };
    if let Some(known) = known {
        return format!("{known}{tail}");
    }
    // The parts of a place in a list: one of them in some thousand checks has digits alone.
    let part = |(index, part): (usize, &str)| match part {
        _ if part.len() != TIME_DIGITS => part.to_owned(),
        _ if index > 0 && is_hexadecimal(part) => "CHECK".to_owned(),
        _ if part.bytes().all(|byte| byte.is_ascii_digit()) => "MICROS".to_owned(),
        _ => part.to_owned(),
    };
    word.split('.').enumerate().map(part).collect::<Vec<_>>().join(".")
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A text about what is hidden as one about what does not exist.
pub(super) fn replaced(text: &str, ids: &Ids) -> String {
    let mut text = text.to_owned();
    for (hidden, nowhere) in [("HID", "HIE"), ("P2", "P9"), ("secret", "nowhere")] {
        text = text.replace(hidden, nowhere);
    }
    // What remains of a number after what was read of it.
    text = text.replace("\\\"2-0001\\\"", "\\\"9-0001\\\"");
    for (hidden, nowhere) in
        [(ids.hidden, Ids::UNKNOWN.hidden), (ids.counter, Ids::UNKNOWN.counter)]
    {
        text = text.replace(&format!(" {hidden} "), &format!(" {nowhere} "));
        text = text.replace(&format!(" {hidden}\""), &format!(" {nowhere}\""));
    }
    text
}

#[test]
fn what_is_of_a_moment_is_masked_and_nothing_else() {
    let text = "{\"at\":\"2026-11-27T08:02:19.5Z\",\"id\":\"0197c5a0-5b1a-7cc2-8e8b-0d7b8e3f0a11\",\
                \"next\":\"1764230539500000.7.42.0123456789abcdef\",\"number\":\"ONE-P1-0042\",\
                \"path\":\"redis\",\"ceiling\":\"42\"} 2026-11-27.";
    let expected = "{\"at\":\"TIME\",\"id\":\"UUID\",\"next\":\"MICROS.7.42.CHECK\",\
                    \"number\":\"ONE-P1-0042\",\"path\":,\"ceiling\":} DATE.";
    assert_eq!(masked(text), expected);
    assert_eq!(masked("1764230539500000.7.42.1764230539500001"), "MICROS.7.42.CHECK");
}

//! No reader of this room takes quadratic time: twice the text is at most about twice the work.
//!
//! Measures the processor time of this thread, not the elapsed time: a busy machine changes little.

use super::super::testing::{definition, inputs};
use super::super::*;

/// A text of twice the length may take this many times the work: linear is 2, quadratic is 4.
const RATIO_MAX: f64 = 3.0;

/// Work that is too small to compare, in nanoseconds: quadratic work on 64 KiB is far above it.
const TRIFLE_NS: u64 = 20_000_000;

/// How often a ratio is taken before it counts: one run of several may be disturbed.
const TRIES: usize = 5;

/// Nanoseconds that this thread has run on a processor.
fn work_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

/// The least work of three runs on a text of this many bytes.
fn work(of: &dyn Fn(usize) -> String, read: &dyn Fn(&str), bytes: usize) -> u64 {
    let text = of(bytes);
    let once = |_| {
        let before = work_ns();
        read(&text);
        work_ns() - before
    };
    (0..3).map(once).min().expect("three runs")
}

/// A text that repeats a word up to this many bytes, between two others.
fn repeated(head: &str, word: &str, tail: &str) -> impl Fn(usize) -> String + use<> {
    let (head, word, tail) = (head.to_owned(), word.to_owned(), tail.to_owned());
    move |bytes| format!("{head}{}{tail}", word.repeat(bytes / word.len()))
}

/// How much more work twice the text is; none if the work is negligible.
fn ratio(of: &dyn Fn(usize) -> String, read: &dyn Fn(&str)) -> Option<f64> {
    let (half, whole) = (work(of, read, 32 * 1024), work(of, read, 64 * 1024));
    (whole >= TRIFLE_NS).then_some(whole as f64 / half.max(1) as f64)
}

fn check(what: &str, of: impl Fn(usize) -> String, read: impl Fn(&str)) {
    let is_fine = |_| ratio(&of, &read).is_none_or(|ratio| ratio < RATIO_MAX);
    assert!((0..TRIES).any(is_fine), "{what}: twice the text is over {RATIO_MAX} times the work");
}

#[test]
fn a_quadratic_reader_is_found() {
    let read = |text: &str| {
        // Each byte is read, so that nothing is optimised away when the test is built.
        for from in 0..text.len() {
            for byte in text.as_bytes()[from..].iter().step_by(16) {
                std::hint::black_box(byte);
            }
        }
    };
    let found = |_| ratio(&repeated("", "x", ""), &read).is_some_and(|ratio| ratio > RATIO_MAX);
    assert!((0..TRIES).any(found));
}

#[test]
fn twice_the_template_is_at_most_twice_the_work() {
    for word in ["{SEQ:3}", "{{", "ก", "{DATE:yyyy}", "{A", "é\u{301}"] {
        check(word, repeated("{SEQ:3}", word, ""), |template| {
            let template = template.to_owned();
            let _ = Series::compile(SeriesDefinition { template, ..definition() });
        });
    }
}

#[test]
fn twice_the_number_is_at_most_twice_the_work() {
    let series: Vec<Series> =
        builtin_series().into_iter().map(|d| Series::compile(d).expect("sound")).collect();
    for word in ["SPO-20240122-001", "1", "-", "e\u{301}", "\u{1161}"] {
        check(word, repeated("", word, ""), |number| {
            for series in &series {
                let _ = series.parse(number);
            }
            for kind in ExchangeKind::ALL {
                let _ = ExchangeSerial::parse(kind, number);
            }
        });
    }
    let formats: Vec<RuleFormats> =
        series.iter().map(|series| RuleFormats::of(series).expect("compiles")).collect();
    for word in ["%s", "%%", "1", "BX20240115"] {
        check(word, repeated("", word, ""), |text| {
            for formats in &formats {
                let _ = formats.counter_key(text);
            }
        });
    }
}

#[test]
fn twice_the_request_is_at_most_twice_the_work() {
    let series = builtin_series().into_iter().find(|d| d.code == "LETTER").expect("built in");
    let series = Series::compile(series).expect("sound");
    for word in ["x", "e\u{301}", " ", "9"] {
        check(word, repeated("", word, ""), |value| {
            let context = [("ORIGINATOR", value), ("RECIPIENT", value)];
            for request in [inputs("LETTER", value, value, &context), inputs(value, "", "", &[])] {
                let _ = series.draft(&request, testing::NOW);
                let _ = choose([&series], &request, testing::NOW);
            }
        });
    }
}

#[test]
fn twice_the_expression_is_at_most_twice_the_work() {
    let serial = r#"{"key":"serial","value":"1(3)"}"#;
    for (head, word, tail) in [
        ("[", "[", ""),
        ("[{\"key\":\"const\",\"value\":\"", "e\u{301}", "\"}]"),
        ("[{\"key\":\"time\",\"value\":\"", "y", "\"}]"),
        ("[{", "\"k\":1,", "\"key\":\"const\"}]"),
        (&format!("[{serial}"), &format!(",{serial}"), "]"),
        ("[", " ", "]"),
    ] {
        check(word, repeated(head, word, tail), |json| {
            let _ = Expression::parse(json).and_then(|e| e.define(definition()));
        });
    }
}

#[test]
fn twice_the_stored_text_is_at_most_twice_the_work() {
    for word in ["a=b;", "\\;", "=", "ก", "{0:3}", "{{"] {
        check(word, repeated("", word, ""), |text| {
            let _ = CounterKey::parse(text).map(|key| key.to_string());
            let _ = PartialNumber::parse(text);
        });
    }
    for (head, word, tail) in [
        ("", "[[series]]\n", ""),
        ("", "# ก\n", ""),
        ("[[series]]\ncode = \"A\"\nname = \"", "x", "\""),
        ("[[series]]\ncode = \"A\"\nname = \"A\"\nserves = { types = [", "\"T\", ", "\"T\"] }"),
    ] {
        check(word, repeated(head, word, tail), |toml| {
            let _ = read_series(toml);
        });
    }
}

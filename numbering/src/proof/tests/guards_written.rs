//! What each check of the proof must not let pass of how a part is written: each text that it may
//! show collides with that text as a literal, and no other one does.

use std::collections::BTreeSet;

use super::super::super::testing::serial;
use super::super::super::{
    Ambiguity, EarlierVersion, Inputs, Series, SeriesDefinition, Style, prove,
};
use super::guards::{assert_collides, shifted};
use super::traps::{compile, strings};

/// A series of a code with one value.
fn one(code: &str, template: &str, value: u64, edit: impl FnOnce(&mut SeriesDefinition)) -> Series {
    shifted(template, |definition| {
        definition.code = code.into();
        definition.serves.types = strings(&[code]);
        (definition.serials[0].start, definition.serials[0].max) = (value, Some(value));
        edit(definition);
    })
}

#[test]
fn a_field_of_the_date_shows_each_of_its_values_and_nothing_else() {
    for (pattern, shown, never) in [
        ("yyyy", &["0001", "2025", "9999"][..], &["0000", "999"][..]),
        ("yy", &["00", "99"], &["9", "100"]),
        ("MM", &["01", "12"], &["00", "13"]),
        ("dd", &["01", "31"], &["00", "32"]),
        ("DDD", &["001", "366"], &["000", "367"]),
        ("Q", &["1", "4"], &["0", "5"]),
        ("YYYY-ww", &["2025-01", "2026-53"], &["2025-00", "2026-54", "2025-53"]),
        ("HH:mm:ss.SSS", &["00:00:00.000", "23:59:59.999"], &["24:00:00.000", "23:60:00.000"]),
        ("MM-dd", &["02-29", "12-31"], &["02-30", "04-31"]),
        ("yyyy-MM-dd", &["2024-02-29", "2025-12-31"], &["2025-02-29", "1900-02-29"]),
        ("yyyy-DDD", &["2024-366", "2025-365"], &["2025-366", "2100-366"]),
    ] {
        let dated = one("a", &format!("{{DATE:{pattern}}}-{{SEQ:1}}"), 1, |_| ());
        for text in shown {
            let literal = one("b", &format!("{text}-{{SEQ:1}}"), 1, |_| ());
            let refused = prove(&dated, &[&literal], &[]);
            assert!(matches!(refused, Err(Ambiguity::Collision { .. })), "{text}: {refused:?}");
        }
        for text in never {
            let literal = one("b", &format!("{text}-{{SEQ:1}}"), 1, |_| ());
            assert_eq!(prove(&dated, &[&literal], &[]), Ok(()), "{pattern} {text}");
        }
    }
}

#[test]
fn a_check_shows_each_of_its_characters_where_it_follows_and_no_other() {
    for check in ["luhn", "damm", "mod97-10", "mod37-36"] {
        let checked = compile(|definition| {
            definition.template = format!("{{SEQ:2}}{{CHECK:{check}}}");
            definition.serves.types = strings(&["checked"]);
        });
        let request = Inputs { type_code: "checked".into(), ..Inputs::default() };
        let draft = checked.draft(&request, jiff::Timestamp::UNIX_EPOCH).expect("sound");
        let texts: Vec<String> = (1..=99).map(|v| draft.mask.fill(&[v]).expect("fits")).collect();
        // Each of its characters once, as far as there are few.
        let mut seen = BTreeSet::new();
        let new = |(_, text): &(u64, &String)| seen.insert(text[2..].to_owned());
        let some: Vec<_> = std::iter::zip(1.., &texts).filter(new).take(14).collect();
        for (value, text) in some {
            let with = |end: &str| one("b", &format!("{{SEQ:2}}{end}"), value, |_| ());
            assert_collides(&checked, &[&with(&text[2..])]);
            // The check of another value.
            let mut others = texts.iter().map(|other| &other[2..]);
            let other = others.find(|other| *other != &text[2..]).expect("they change");
            assert_eq!(prove(&checked, &[&with(other)], &[]), Ok(()), "{check} {value} {other}");
        }
    }
}

#[test]
fn each_code_that_a_series_serves_is_shown() {
    let codes = ["C", "AB", "A-C"];
    let of = |template: &str, edit: &dyn Fn(&mut SeriesDefinition)| one("a", template, 1, edit);
    let typed = of("{CORR_TYPE}-{SEQ:1}", &|series| series.serves.types = strings(&codes));
    let projects = of("{PROJECT}-{SEQ:1}", &|series| series.serves.projects = strings(&codes));
    for series in [typed, projects] {
        for code in codes {
            assert_collides(&series, &[&one("b", &format!("{code}-{{SEQ:1}}"), 1, |_| ())]);
        }
        for code in ["B", "A", "A-", "ABC"] {
            let other = one("b", &format!("{code}-{{SEQ:1}}"), 1, |_| ());
            assert_eq!(prove(&series, &[&other], &[]), Ok(()), "{code}");
        }
    }
}

#[test]
fn a_serial_shows_each_value_up_to_its_largest() {
    let of = |template: &str, max: u64| {
        shifted(template, |definition| definition.serials[0].max = Some(max))
    };
    let template_of = |text: &str| format!("{}{{SEQ:1}}", &text[..text.len() - 1]);
    for (template, max, shown, never) in [
        ("{SEQ:3}", 120, &["001", "119", "117"][..], &["121", "0001"][..]),
        ("{SEQ}", 1_205, &["1", "9", "99", "999", "1199", "1205"], &["1206", "01", "12001"]),
    ] {
        let series = of(template, max);
        // The last digit is another serial's.
        for (texts, meets) in [(shown, true), (never, false)] {
            for text in texts {
                let last = u64::from(text.as_bytes()[text.len() - 1] - b'0');
                let other = one("b", &template_of(text), last, |_| ());
                let proved = prove(&series, &[&other], &[]);
                assert_eq!(proved.is_err(), meets, "{template} {text}: {proved:?}");
            }
        }
    }
    // The largest alone.
    let twenty = one("b", "{SEQ:1}20", 1, |_| ());
    assert_collides(&of("{SEQ:3}", 120), &[&twenty]);
    assert_eq!(prove(&of("{SEQ:3}", 119), &[&twenty], &[]), Ok(()));
}

#[test]
fn any_text_that_a_request_names_is_shown() {
    for (template, text) in
        [("{PHASE}-{SEQ:1}", "X"), ("{PROJECT}-{SEQ:1}", "a-b"), ("{N}-1{SEQ:1}", "98")]
    {
        let literal = one(
            "b",
            &template.replace("{PHASE}", text).replace("{PROJECT}", text).replace("{N}", text),
            1,
            |_| (),
        );
        assert_collides(&one("a", template, 1, |_| ()), &[&literal]);
    }
}

#[test]
fn letters_below_the_start_were_given_by_versions_before() {
    let of = |code: &str, start: u64, max: u64| {
        one(code, "{SEQ}", start, |definition| {
            definition.serials[0].style = Style::Letters;
            definition.serials[0].max = Some(max);
        })
    };
    let (late, first) = (of("late", 27, 700), of("first", 1, 1));
    assert_eq!(prove(&late, &[&first], &[]), Ok(()), "AA and A");
    let before = EarlierVersion { version: 1, definition: of("late", 1, 700).definition().clone() };
    let earlier = [before];
    assert!(prove(&late, &[&first], &earlier).is_err());
}

#[test]
fn an_id_is_of_any_time() {
    let ids = shifted("{SNOWFLAKE}", |definition| {
        definition.code = "ids".into();
        definition.serves.types = strings(&["ids"]);
        definition.serials.clear();
    });
    // Before 2025, and at the end of what an id can name.
    for begins in [1, 599, 700, 922] {
        let digits = one("digits", "{SEQ:4}{SEQ:15:OTHER}", 1, |definition| {
            definition.serials.push(serial("OTHER"));
            (definition.serials[0].start, definition.serials[0].max) =
                (begins * 10, Some(begins * 10));
        });
        assert!(prove(&ids, &[&digits], &[]).is_err(), "{begins}");
        assert!(prove(&digits, &[&ids], &[]).is_err(), "{begins}");
    }
}

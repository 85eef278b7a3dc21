//! The sentence that a user may be shown, in the user's language.

mod sentences;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, HeaderName, VARY};

use super::header_lists::text_entries;
use super::problem::Slug;
pub(crate) use crate::language::Locale;
use crate::language::Message as Sentence;
use sentences::sentence;

/// The most wanted supported language of `Accept-Language`; English without one.
pub(crate) fn spoken(headers: &HeaderMap) -> Locale {
    Locale::wanted(headers.get_all(ACCEPT_LANGUAGE).iter().flat_map(text_entries))
}

/// The headers by which an answer states its language, for clients and for caches.
pub(crate) fn headers(language: Locale) -> [(HeaderName, &'static str); 2] {
    [(CONTENT_LANGUAGE, language.tag()), (VARY, "Accept-Language")]
}

/// The user's text for a problem: its meaning for them, and what they can do.
pub(crate) fn user_message(slug: Slug, language: Locale) -> &'static str {
    language.choose(sentence(slug))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn language(header: &'static str) -> Locale {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(header));
        spoken(&headers)
    }

    #[test]
    fn the_most_wanted_language_that_we_speak_is_chosen() {
        assert_eq!(language("th-TH,th;q=0.9,en;q=0.8"), Locale::Thai);
        assert_eq!(language("en;q=0.5, zh-Hant-TW;q=0.75"), Locale::TraditionalChinese);
        assert_eq!(language("fr, zh;q=0.1"), Locale::Chinese);
        assert_eq!(language("TH"), Locale::Thai);
        assert_eq!(language("en, th"), Locale::English);
    }

    #[test]
    fn the_characters_are_those_of_the_script_or_else_of_the_region() {
        for traditional in ["zh-TW", "zh-HK", "zh-mo", "zh-Hant", "zh-Hant-CN", "ZH-HANT-tw"] {
            assert_eq!(language(traditional), Locale::TraditionalChinese, "{traditional}");
        }
        for simplified in ["zh", "zh-CN", "zh-SG", "zh-Hans", "zh-Hans-HK", "zh-Hans-TW"] {
            assert_eq!(language(simplified), Locale::Chinese, "{simplified}");
        }
        // Characters that only one of both scripts has.
        let simplified = "统请单编变发错误联员无处该设检并录传输时数据过类项个选择务状态实属达贰";
        for slug in Slug::ALL.iter().copied() {
            let told = user_message(slug, Locale::TraditionalChinese);
            assert!(!told.contains(|sign| simplified.contains(sign)), "{}: {told}", slug.name());
            assert_ne!(told, user_message(slug, Locale::Chinese), "{}", slug.name());
        }
    }

    #[test]
    fn english_is_spoken_to_everybody_else() {
        assert_eq!(spoken(&HeaderMap::new()), Locale::English);
        for header in ["fr", "*", "", ";;q=", "th;q=0", "th;q=x.y;q"] {
            let spoken = language(header);
            let expected = if header == "th;q=x.y;q" { Locale::Thai } else { Locale::English };
            assert_eq!(spoken, expected, "{header}");
        }
    }

    /// The established sentences: those of a wait that ends, of a conflict and of a bug. All others
    /// of a wait begin with the first and name what is waited for.
    #[test]
    fn the_sentences_of_503_409_and_500_are_those_that_users_know() {
        let thai = |slug| user_message(slug, Locale::Thai);
        let busy = "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง";
        assert_eq!(thai(Slug::LockTimeout), busy);
        assert_eq!(thai(Slug::VersionConflict), "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่");
        assert_eq!(thai(Slug::Internal), "เกิดข้อผิดพลาดในระบบ กรุณาติดต่อผู้ดูแลระบบ");
        for slug in Slug::ALL.iter().copied() {
            for language in Locale::ALL {
                let begins = user_message(Slug::LockTimeout, language).trim_end_matches('.');
                let is_busy = user_message(slug, language).starts_with(begins);
                let wanted = slug.status().as_u16() == 503;
                assert_eq!(is_busy, wanted, "{} in {}", slug.name(), language.tag());
            }
        }
    }

    #[test]
    fn no_two_problems_have_one_sentence_in_any_language() {
        for language in Locale::ALL {
            let mut told = std::collections::BTreeMap::new();
            for slug in Slug::ALL.iter().copied() {
                let sentence = user_message(slug, language);
                assert!(sentence.chars().count() > 4, "{}: {sentence}", slug.name());
                assert_eq!(sentence.trim(), sentence, "{}", slug.name());
                let other = told.insert(sentence, slug.name());
                let tag = language.tag();
                assert_eq!(other, None, "{} says the same in {tag}: {sentence}", slug.name());
            }
        }
    }

    #[test]
    fn only_where_a_retry_may_help_is_the_user_told_to_try_again() {
        let told = |slug| user_message(slug, Locale::English);
        assert_eq!(told(Slug::LockTimeout), "The system is busy. Please try again later.");
        for slug in Slug::ALL.iter().copied() {
            let mends = matches!(slug.status().as_u16(), 408 | 429 | 503)
                || matches!(slug, Slug::VersionConflict | Slug::DocumentNotNumbered);
            assert_eq!(told(slug).contains("try again"), mends, "{}: {}", slug.name(), told(slug));
        }
    }
}

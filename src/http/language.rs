//! The sentence that a user may be shown, in the user's language (R6.6).

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;

use super::problem::Slug;

/// A language of `user_message`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Language {
    Thai,
    Chinese,
    #[default]
    English,
}

impl Language {
    /// The most wanted language of `Accept-Language` that we speak; English without one.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let wanted =
            headers.get_all(ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
        let mut best = (0, Language::English);
        for range in wanted.flat_map(|value| value.split(',')) {
            let mut parts = range.split(';');
            let tag = parts.next().unwrap_or_default().trim();
            let quality = parts.find_map(quality_permille).unwrap_or(1_000);
            if let Some(language) = Self::of_tag(tag)
                && quality > best.0
            {
                best = (quality, language);
            }
        }
        best.1
    }

    fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        match primary.to_ascii_lowercase().as_str() {
            "th" => Some(Language::Thai),
            "zh" => Some(Language::Chinese),
            "en" => Some(Language::English),
            _ => None,
        }
    }
}

/// `q=0.8` in thousandths, so that it can be compared exactly.
fn quality_permille(parameter: &str) -> Option<u32> {
    let value = parameter.trim().strip_prefix("q=")?;
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let thousandths: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((whole.parse::<u32>().ok()?.min(1)) * 1_000 + thousandths.parse::<u32>().ok()?)
}

/// What the user may be told about a problem, where there is something to tell.
pub(super) fn user_message(slug: Slug, language: Language) -> Option<&'static str> {
    let [thai, chinese, english] = of_slug(slug).or_else(|| of_status(slug.status().as_u16()))?;
    Some(match language {
        Language::Thai => thai,
        Language::Chinese => chinese,
        Language::English => english,
    })
}

/// Problems for which the sentence of their status would be wrong: trying again mends neither.
fn of_slug(slug: Slug) -> Option<[&'static str; 3]> {
    Some(match slug {
        Slug::SequenceExhausted => [
            "เลขที่เอกสารของชุดนี้เหลือไม่พอ กรุณาติดต่อผู้ดูแลระบบ",
            "该系列的单据编号已不够用，请联系系统管理员",
            "This series has too few document numbers left. Please contact the administrator.",
        ],
        Slug::DocumentAlreadyNumbered => [
            "เอกสารนี้มีเลขที่แล้วจากข้อมูลอื่น กรุณาตรวจสอบข้อมูลเอกสาร",
            "该单据已按其他内容编号，请核对单据内容",
            "The document already has a number for other details. Please check its details.",
        ],
        _ => return None,
    })
}

/// The sentences of R6.6, in Thai, Chinese, English.
fn of_status(status: u16) -> Option<[&'static str; 3]> {
    Some(match status {
        409 => [
            "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่",
            "单据编号已变更，请重试",
            "The document number has changed. Please try again.",
        ],
        500 => [
            "เกิดข้อผิดพลาดในระบบ กรุณาติดต่อผู้ดูแลระบบ",
            "系统发生错误，请联系系统管理员",
            "A system error occurred. Please contact the administrator.",
        ],
        503 => [
            "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง",
            "系统繁忙，请稍后重试",
            "The system is busy. Please try again later.",
        ],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn language(header: &'static str) -> Language {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(header));
        Language::of(&headers)
    }

    #[test]
    fn the_most_wanted_language_that_we_speak_is_chosen() {
        assert_eq!(language("th-TH,th;q=0.9,en;q=0.8"), Language::Thai);
        assert_eq!(language("en;q=0.5, zh-Hant-TW;q=0.75"), Language::Chinese);
        assert_eq!(language("fr, zh;q=0.1"), Language::Chinese);
        assert_eq!(language("TH"), Language::Thai);
        assert_eq!(language("en, th"), Language::English);
    }

    #[test]
    fn english_is_spoken_to_everybody_else() {
        assert_eq!(Language::of(&HeaderMap::new()), Language::English);
        for header in ["fr", "*", "", ";;q=", "th;q=0", "th;q=x.y;q"] {
            let spoken = language(header);
            let expected = if header == "th;q=x.y;q" { Language::Thai } else { Language::English };
            assert_eq!(spoken, expected, "{header}");
        }
    }

    #[test]
    fn only_where_a_retry_may_help_is_the_user_told_to_try_again() {
        let told = |slug| user_message(slug, Language::English).expect("a sentence");
        assert_eq!(told(Slug::LockTimeout), "The system is busy. Please try again later.");
        for slug in [Slug::SequenceExhausted, Slug::DocumentAlreadyNumbered] {
            assert!(!told(slug).contains("again"), "{}", told(slug));
        }
        let [thai, _, english] = of_status(409).expect("version conflicts");
        assert_eq!(thai, "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่");
        assert!(english.contains("try again"));
        assert_eq!(user_message(Slug::UnknownType, Language::Thai), None);
    }
}

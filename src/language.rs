//! The languages in which the service addresses users and auditors, who do not know its internals.
//! Owns which languages exist and how one is chosen, no sentence.

/// A language of sentences for users and auditors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locale {
    /// Thai.
    Thai,
    /// Chinese in simplified characters.
    Chinese,
    /// Chinese in traditional characters.
    TraditionalChinese,
    /// English.
    #[default]
    English,
}

/// In Thai, Chinese with simplified and with traditional characters, English.
pub(crate) type Message = [&'static str; 4];

impl Locale {
    /// All of them.
    pub const ALL: [Locale; 4] =
        [Locale::Thai, Locale::Chinese, Locale::TraditionalChinese, Locale::English];

    /// The most wanted language of ranges such as `th, en;q=0.5` that is supported; English without
    /// one.
    pub(crate) fn wanted<'a>(ranges: impl Iterator<Item = &'a str>) -> Self {
        let mut best = (0, Locale::English);
        for range in ranges.flat_map(|value| value.split(',')) {
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

    /// The language of a tag such as `zh-Hant-TW`, if it is supported.
    #[must_use]
    pub fn of_tag(tag: &str) -> Option<Self> {
        let tag = tag.to_ascii_lowercase();
        let mut parts = tag.split('-');
        match parts.next().unwrap_or_default() {
            "th" => Some(Locale::Thai),
            "zh" => Some(Self::of_chinese(&parts.collect::<Vec<_>>())),
            "en" => Some(Locale::English),
            _ => None,
        }
    }

    /// The language of a locale such as `zh_TW.UTF-8`, if it is supported.
    #[must_use]
    pub fn of_locale(locale: &str) -> Option<Self> {
        let name = locale.split(['.', '@']).next().unwrap_or_default();
        Self::of_tag(&name.replace('_', "-"))
    }

    /// The characters: from the script, or else from the region.
    fn of_chinese(subtags: &[&str]) -> Self {
        let names = |wanted: &[&str]| subtags.iter().any(|subtag| wanted.contains(subtag));
        if names(&["hant"]) || !names(&["hans"]) && names(&["tw", "hk", "mo"]) {
            Locale::TraditionalChinese
        } else {
            Locale::Chinese
        }
    }

    /// Its tag.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Locale::Thai => "th",
            Locale::Chinese => "zh-Hans",
            Locale::TraditionalChinese => "zh-Hant",
            Locale::English => "en",
        }
    }

    /// The text of a phrase in it.
    pub(crate) fn choose(self, [thai, chinese, traditional, english]: Message) -> &'static str {
        match self {
            Locale::Thai => thai,
            Locale::Chinese => chinese,
            Locale::TraditionalChinese => traditional,
            Locale::English => english,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_names_a_language() {
        for (locale, expected) in [
            ("th_TH.UTF-8", Some(Locale::Thai)),
            ("zh_TW", Some(Locale::TraditionalChinese)),
            ("zh_CN.GB18030", Some(Locale::Chinese)),
            ("en_US.utf8@euro", Some(Locale::English)),
            ("C.UTF-8", None),
            ("", None),
        ] {
            assert_eq!(Locale::of_locale(locale), expected, "{locale}");
        }
        for language in Locale::ALL {
            assert_eq!(Locale::of_tag(language.tag()), Some(language));
        }
    }
}

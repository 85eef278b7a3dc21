//! The sentence that a user may be shown, in the user's language (R6.6).

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, HeaderName, VARY};

use super::header_lists::text_entries;
use super::problem::Slug;
pub(super) use crate::language::Language;
use crate::language::Phrase as Sentence;

/// The most wanted language of `Accept-Language` that we speak; English without one.
pub(super) fn spoken(headers: &HeaderMap) -> Language {
    Language::wanted(headers.get_all(ACCEPT_LANGUAGE).iter().flat_map(text_entries))
}

/// What an answer in a language says of it, to clients and to caches.
pub(super) fn headers(language: Language) -> [(HeaderName, &'static str); 2] {
    [(CONTENT_LANGUAGE, language.tag()), (VARY, "Accept-Language")]
}

/// What the user may read about a problem: what it means for them, and what they can do.
pub(super) fn user_message(slug: Slug, language: Language) -> &'static str {
    language.choose(sentence(slug))
}

/// For 503 (R6.6).
const BUSY: Sentence = [
    "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง",
    "系统繁忙，请稍后重试",
    "系統忙碌中，請稍後再試",
    "The system is busy. Please try again later.",
];

/// For a conflict that another try may mend (R6.6).
const CHANGED: Sentence = [
    "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่",
    "单据编号已变更，请重试",
    "單據編號已變更，請重試",
    "The document number has changed. Please try again.",
];

/// For 500 (R6.6).
const BROKEN: Sentence = [
    "เกิดข้อผิดพลาดในระบบ กรุณาติดต่อผู้ดูแลระบบ",
    "系统发生错误，请联系系统管理员",
    "系統發生錯誤，請聯絡系統管理員",
    "A system error occurred. Please contact the administrator.",
];

/// For a request that the program in between has made wrong.
const UNREADABLE: Sentence = [
    "ระบบไม่สามารถอ่านคำขอนี้ได้ กรุณาติดต่อผู้ดูแลระบบ",
    "系统无法处理该请求，请联系系统管理员",
    "系統無法處理此請求，請聯絡系統管理員",
    "The request could not be read. Please contact the administrator.",
];

/// For details that the user has written.
const WRONG_DETAILS: Sentence = [
    "ข้อมูลเอกสารไม่ถูกต้อง กรุณาตรวจสอบและแก้ไข",
    "单据内容有误，请检查并修改",
    "單據內容有誤，請檢查並修改",
    "Details of the document are wrong. Please check and correct them.",
];

/// For series that an administrator has to mend.
const UNFIT_SERIES: Sentence = [
    "การตั้งค่าเลขที่เอกสารไม่ถูกต้อง กรุณาติดต่อผู้ดูแลระบบ",
    "单据编号设置有误，请联系系统管理员",
    "單據編號設定有誤，請聯絡系統管理員",
    "The numbering is not set up correctly. Please contact the administrator.",
];

/// More was asked for than one may ask for.
const HASTY: Sentence = [
    "ส่งคำขอถี่เกินไป กรุณารอสักครู่แล้วลองใหม่",
    "请求过于频繁，请稍后重试",
    "請求過於頻繁，請稍後再試",
    "You ask too often. Please wait a moment and try again.",
];

/// The sentence of a problem. Whoever adds a slug decides what users read.
fn sentence(slug: Slug) -> Sentence {
    match slug {
        Slug::LockTimeout
        | Slug::DatabaseConnection
        | Slug::CeilingReached
        | Slug::OutboxFull
        | Slug::QueueFull
        | Slug::ChecksFull
        | Slug::SeriesChanged
        | Slug::RedisUnavailable
        | Slug::PartitionHeld
        | Slug::ClockBehind
        | Slug::NumberNotJournaled
        | Slug::NodeNumbersHeld
        | Slug::NotReady
        | Slug::ExternalUnavailable
        | Slug::Stopping => BUSY,
        Slug::VersionConflict => CHANGED,
        Slug::TooManyRequests => HASTY,
        Slug::Internal => BROKEN,
        Slug::MalformedJson
        | Slug::InvalidHost
        | Slug::HostNotAllowed
        | Slug::CrossSite
        | Slug::RouteNotFound
        | Slug::TokenNotFound
        | Slug::TableNotFound
        | Slug::TokenNameTaken
        | Slug::TokenRevoked
        | Slug::ChangeNotFound
        | Slug::ChangeAnswered
        | Slug::OwnChange
        | Slug::BelowLeastAllowed
        | Slug::MethodNotAllowed
        | Slug::UnsupportedMediaType
        | Slug::UnknownTransferCoding
        | Slug::PreconditionRequired
        | Slug::IdempotencyKeyReused => UNREADABLE,
        Slug::InvalidField
        | Slug::UnknownVariable
        | Slug::MissingVariable
        | Slug::ValueTooLong
        | Slug::WrongAlphabet
        | Slug::UnknownValue
        | Slug::InvalidDate
        | Slug::PeriodClosed
        | Slug::DateBeforeLast
        | Slug::TimeRequired
        | Slug::UnknownReference
        | Slug::InactiveReference => WRONG_DETAILS,
        Slug::SeriesAmbiguous | Slug::TemplateAmbiguous | Slug::SeriesInUse | Slug::CodeTaken => {
            UNFIT_SERIES
        }
        other => of_one_slug(other),
    }
}

/// Sentences that fit one problem only.
fn of_one_slug(slug: Slug) -> Sentence {
    match slug {
        Slug::Unauthenticated => {
            ["กรุณาเข้าสู่ระบบใหม่อีกครั้ง", "请重新登录", "請重新登入", "Please sign in again."]
        }
        Slug::NotPermitted => [
            "คุณไม่มีสิทธิ์ดำเนินการนี้ กรุณาติดต่อผู้ดูแลระบบ",
            "您没有执行此操作的权限，请联系系统管理员",
            "您沒有執行此操作的權限，請聯絡系統管理員",
            "You may not do this. Please contact the administrator.",
        ],
        Slug::ConfigNotFound => [
            "ไม่พบการตั้งค่าเลขที่เอกสารนี้",
            "未找到该单据编号设置",
            "找不到此單據編號設定",
            "There is no such numbering configuration.",
        ],
        Slug::NumberNotFound => [
            "ไม่พบเลขที่เอกสารนี้",
            "未找到该单据编号",
            "找不到此單據編號",
            "There is no such document number.",
        ],
        Slug::DocumentNotNumbered => [
            "เอกสารนี้ยังไม่มีเลขที่ กรุณาลองใหม่ภายหลัง",
            "该单据尚无编号，请稍后重试",
            "此單據尚無編號，請稍後再試",
            "The document has no number yet. Please try again later.",
        ],
        Slug::RevisionsExhausted => [
            "เอกสารนี้มีการแก้ไขครบจำนวนแล้ว กรุณาติดต่อผู้ดูแลระบบ",
            "该单据的修订次数已达上限，请联系系统管理员",
            "此單據的修訂次數已達上限，請聯絡系統管理員",
            "The document has as many revisions as it may have. Please contact the administrator.",
        ],
        Slug::BodyTimeout => [
            "การส่งข้อมูลใช้เวลานานเกินไป กรุณาลองใหม่",
            "数据传输超时，请重试",
            "資料傳輸逾時，請重試",
            "Sending the data took too long. Please try again.",
        ],
        Slug::BodyTooLarge => [
            "ข้อมูลที่ส่งมีขนาดใหญ่เกินไป กรุณาแบ่งส่งทีละส่วน",
            "提交的数据过大，请分批提交",
            "提交的資料過大，請分批提交",
            "That is too much at once. Please send less.",
        ],
        Slug::SequenceExhausted => [
            "เลขที่เอกสารของชุดนี้เหลือไม่พอ กรุณาติดต่อผู้ดูแลระบบ",
            "该系列的单据编号已不够用，请联系系统管理员",
            "此系列的單據編號已不敷使用，請聯絡系統管理員",
            "This series has too few document numbers left. Please contact the administrator.",
        ],
        Slug::DocumentAlreadyNumbered => [
            "เอกสารนี้มีเลขที่แล้วจากข้อมูลอื่น กรุณาตรวจสอบข้อมูลเอกสาร",
            "该单据已按其他内容编号，请核对单据内容",
            "此單據已依其他內容編號，請核對單據內容",
            "The document already has a number for other details. Please check its details.",
        ],
        Slug::DocumentArchived => [
            "เอกสารนี้มีเลขที่แล้ว และข้อมูลถูกย้ายไปคลังเก็บ กรุณาติดต่อผู้ดูแลระบบ",
            "该单据已有编号，记录已归档，请联系管理员",
            "此單據已有編號，紀錄已封存，請聯絡管理員",
            "The document has a number, which is archived. Please contact the administrator.",
        ],
        other => of_one_request(other),
    }
}

/// Sentences on what a document is, and where it belongs.
fn of_one_request(slug: Slug) -> Sentence {
    match slug {
        Slug::UnknownType => [
            "ไม่รู้จักประเภทเอกสารนี้ กรุณาตรวจสอบ",
            "未知的单据类型，请检查",
            "未知的單據類型，請檢查",
            "This type of document is not known. Please check it.",
        ],
        Slug::TypeNotConfigured => [
            "เอกสารประเภทนี้ยังไม่ได้ตั้งค่าเลขที่ กรุณาติดต่อผู้ดูแลระบบ",
            "该单据类型尚未设置编号，请联系系统管理员",
            "此單據類型尚未設定編號，請聯絡系統管理員",
            "Documents of this type are not numbered yet. Please contact the administrator.",
        ],
        Slug::NotAMember => [
            "หน่วยงานผู้ส่งไม่ได้อยู่ในโครงการนี้ กรุณาตรวจสอบ",
            "发文单位不属于该项目，请检查",
            "發文單位不屬於此專案，請檢查",
            "The sending organization does not belong to the project. Please check both.",
        ],
        Slug::ProjectAmbiguous => [
            "หน่วยงานผู้ส่งอยู่ในหลายโครงการ กรุณาเลือกโครงการ",
            "发文单位属于多个项目，请选择项目",
            "發文單位屬於多個專案，請選擇專案",
            "The sending organization belongs to several projects. Please choose one.",
        ],
        Slug::ExternalRefused | Slug::ExternalInvalid | Slug::ExternalNumberTaken => [
            "ระบบที่ออกเลขที่เอกสารนี้ไม่ได้ให้เลขที่ที่ใช้ได้ กรุณาติดต่อผู้ดูแลระบบ",
            "提供该编号的外部系统未给出可用的编号，请联系系统管理员",
            "提供此編號的外部系統未給出可用的編號，請聯絡系統管理員",
            "The system that gives these numbers gave none. Please contact the administrator.",
        ],
        other => of_one_serial(other),
    }
}

/// Sentences on exchange serials; what nobody has a sentence for is a bug.
fn of_one_serial(slug: Slug) -> Sentence {
    match slug {
        Slug::InterfaceSerialRepeated => [
            "ระบบได้รับรายการนี้แล้ว ไม่ต้องส่งซ้ำ",
            "该请求已收到，请勿重复提交",
            "已收到此請求，請勿重複提交",
            "This request has been received already. Do not send it again.",
        ],
        Slug::AlreadyProcessed => [
            "รายการนี้ดำเนินการเสร็จแล้ว",
            "该交易已处理成功",
            "此交易已處理成功",
            "This transaction has been processed already.",
        ],
        Slug::StateUnknown => [
            "รายการนี้กำลังดำเนินการหรือยังไม่ทราบผล กรุณาตรวจสอบสถานะ",
            "该交易正在处理中或结果未知，请核实交易状态",
            "此交易正在處理中或結果未知，請核實交易狀態",
            "This transaction is in progress, or its result is not known. Please check its state.",
        ],
        Slug::AttemptNotCurrent => [
            "สถานะของรายการนี้เปลี่ยนไปแล้ว กรุณาติดต่อผู้ดูแลระบบ",
            "该交易的状态已变更，请联系系统管理员",
            "此交易的狀態已變更，請聯絡系統管理員",
            "The state of this transaction has changed. Please contact the administrator.",
        ],
        Slug::StepNotFound => {
            ["ไม่พบรายการนี้", "未找到该交易", "找不到此交易", "There is no such transaction."]
        }
        _ => BROKEN,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn language(header: &'static str) -> Language {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static(header));
        spoken(&headers)
    }

    #[test]
    fn the_most_wanted_language_that_we_speak_is_chosen() {
        assert_eq!(language("th-TH,th;q=0.9,en;q=0.8"), Language::Thai);
        assert_eq!(language("en;q=0.5, zh-Hant-TW;q=0.75"), Language::TraditionalChinese);
        assert_eq!(language("fr, zh;q=0.1"), Language::Chinese);
        assert_eq!(language("TH"), Language::Thai);
        assert_eq!(language("en, th"), Language::English);
    }

    #[test]
    fn the_characters_are_those_of_the_script_or_else_of_the_region() {
        for traditional in ["zh-TW", "zh-HK", "zh-mo", "zh-Hant", "zh-Hant-CN", "ZH-HANT-tw"] {
            assert_eq!(language(traditional), Language::TraditionalChinese, "{traditional}");
        }
        for simplified in ["zh", "zh-CN", "zh-SG", "zh-Hans", "zh-Hans-HK", "zh-Hans-TW"] {
            assert_eq!(language(simplified), Language::Chinese, "{simplified}");
        }
        // Characters that only one of both scripts has.
        let simplified = "统请单编变发错误联员无处该设检并录传输时数据过类项个选择务状态实属达贰";
        for slug in Slug::ALL.iter().copied() {
            let told = user_message(slug, Language::TraditionalChinese);
            assert!(!told.contains(|sign| simplified.contains(sign)), "{}: {told}", slug.name());
            assert_ne!(told, user_message(slug, Language::Chinese), "{}", slug.name());
        }
    }

    #[test]
    fn english_is_spoken_to_everybody_else() {
        assert_eq!(spoken(&HeaderMap::new()), Language::English);
        for header in ["fr", "*", "", ";;q=", "th;q=0", "th;q=x.y;q"] {
            let spoken = language(header);
            let expected = if header == "th;q=x.y;q" { Language::Thai } else { Language::English };
            assert_eq!(spoken, expected, "{header}");
        }
    }

    #[test]
    fn the_sentences_of_503_409_and_500_are_those_that_users_know() {
        for slug in Slug::ALL.iter().copied() {
            let thai = match (slug, slug.status().as_u16()) {
                (Slug::SequenceExhausted | Slug::DocumentAlreadyNumbered, _) => continue,
                (Slug::InterfaceSerialRepeated | Slug::StateUnknown, _) => continue,
                (Slug::AlreadyProcessed | Slug::AttemptNotCurrent, _) => continue,
                (Slug::RevisionsExhausted | Slug::DocumentArchived, _) => continue,
                (Slug::CodeTaken | Slug::SeriesInUse, _) => continue,
                (Slug::TokenNameTaken | Slug::TokenRevoked, _) => continue,
                (Slug::ChangeAnswered | Slug::BelowLeastAllowed, _) => continue,
                (_, 503) => "ระบบกำลังยุ่ง กรุณาลองใหม่ภายหลัง",
                (_, 409) => "เลขที่เอกสารถูกเปลี่ยน กรุณาลองใหม่",
                (_, 500) => "เกิดข้อผิดพลาดในระบบ กรุณาติดต่อผู้ดูแลระบบ",
                _ => continue,
            };
            assert_eq!(user_message(slug, Language::Thai), thai, "{}", slug.name());
        }
    }

    #[test]
    fn a_sentence_is_there_for_every_problem_in_every_language_and_none_reads_of_another_status() {
        for slug in Slug::ALL.iter().copied() {
            let status = slug.status().as_u16();
            let sentence = sentence(slug);
            assert_eq!(sentence == BROKEN, status == 500, "{}", slug.name());
            assert_eq!(sentence == BUSY, status == 503, "{}", slug.name());
            assert!(sentence.iter().all(|text| !text.is_empty()));
        }
    }

    #[test]
    fn only_where_a_retry_may_help_is_the_user_told_to_try_again() {
        let told = |slug| user_message(slug, Language::English);
        assert_eq!(told(Slug::LockTimeout), "The system is busy. Please try again later.");
        for slug in Slug::ALL.iter().copied() {
            let mends = matches!(slug.status().as_u16(), 408 | 429 | 503)
                || matches!(slug, Slug::VersionConflict | Slug::DocumentNotNumbered);
            assert_eq!(told(slug).contains("try again"), mends, "{}: {}", slug.name(), told(slug));
        }
    }
}

//! What a counter counts, in the words of people: "project LCBP3-C2, from คคง. to สคฉ.3, year
//! 2568". Years are in the era that the numbers show.

use std::sync::Arc;

use numbering::{CounterKey, Era, ReferenceData, SeriesDefinition};

use super::messages::say;
use crate::language::{Locale, Message};

/// What follows the name of a part whose value is the id of a row.
const ID_SUFFIX: &str = "_id";

/// The parts of keys, each with its words.
const PARTS: [(&str, Message); 18] = [
    ("project", ["โครงการ {of}", "项目 {of}", "專案 {of}", "project {of}"]),
    ("type", ["ประเภท {of}", "类型 {of}", "類型 {of}", "type {of}"]),
    ("phase", ["ระยะ {of}", "阶段 {of}", "階段 {of}", "phase {of}"]),
    ("ORIGINATOR", FROM),
    ("ORG_CODE", FROM),
    ("RECIPIENT", ["ถึง {of}", "致 {of}", "致 {of}", "to {of}"]),
    ("DISCIPLINE", ["สาขางาน {of}", "专业 {of}", "專業 {of}", "discipline {of}"]),
    ("SUB_TYPE", ["ประเภทย่อย {of}", "子类型 {of}", "子類型 {of}", "sub type {of}"]),
    ("RFA_TYPE", ["ประเภท RFA {of}", "RFA 类型 {of}", "RFA 類型 {of}", "RFA type {of}"]),
    ("year", ["ปี {of}", "{of} 年", "{of} 年", "year {of}"]),
    ("fiscal-year", ["ปีงบประมาณ {of}", "{of} 财政年度", "{of} 會計年度", "fiscal year {of}"]),
    ("quarter", ["ไตรมาส {of}", "季度 {of}", "季度 {of}", "quarter {of}"]),
    ("month", ["เดือน {of}", "月份 {of}", "月份 {of}", "month {of}"]),
    ("week", ["สัปดาห์ {of}", "第 {of} 周", "第 {of} 週", "week {of}"]),
    ("day", ["วันที่ {of}", "日期 {of}", "日期 {of}", "day {of}"]),
    ("hour", ["ชั่วโมง {of}", "小时 {of}", "小時 {of}", "hour {of}"]),
    ("minute", ["นาที {of}", "分钟 {of}", "分鐘 {of}", "minute {of}"]),
    ("second", ["วินาที {of}", "秒 {of}", "秒 {of}", "second {of}"]),
];

const FROM: Message = ["จาก {of}", "发自 {of}", "發自 {of}", "from {of}"];

/// The parts that are periods, whose names begin with a year A.D. A week's year is its own.
const PERIODS: [&str; 8] =
    ["year", "fiscal-year", "quarter", "month", "day", "hour", "minute", "second"];

/// What is between two parts.
const BETWEEN: Message = [" ", "，", "，", ", "];

/// The label of a counter that counts nothing apart.
const ALL: Message = ["ทุกเลขที่", "全部编号", "全部編號", "all numbers"];

/// The eras of years, as the head of the paper names them.
pub(super) fn era_name(era: Era) -> Message {
    match era {
        Era::Common => ["คริสต์ศักราช (ค.ศ.)", "公元", "西元", "Common Era (A.D.)"],
        Era::Buddhist => ["พุทธศักราช (พ.ศ.)", "佛历 (B.E.)", "佛曆 (B.E.)", "Buddhist Era (B.E.)"],
        Era::Minguo => ["ปีสาธารณรัฐจีน (ROC)", "民国", "民國", "Republic of China (ROC)"],
    }
}

/// Puts keys of one series into words.
#[derive(Clone, Debug)]
pub(crate) struct Labels {
    language: Locale,
    /// The era of years, where numbers show one alone.
    era: Option<Era>,
    definition: SeriesDefinition,
    /// The rows that ids in keys mean.
    reference: Arc<ReferenceData>,
}

impl Labels {
    /// The labels of a series whose numbers show years of these eras.
    pub(crate) fn of(
        language: Locale,
        eras: &[Era],
        definition: SeriesDefinition,
        reference: Arc<ReferenceData>,
    ) -> Self {
        let era = match eras {
            [era] => Some(*era),
            _ => None,
        };
        Labels { language, era, definition, reference }
    }

    /// The name of the era, where numbers show years of one.
    pub(super) fn era(&self) -> Option<&'static str> {
        self.era.map(|era| self.language.choose(era_name(era)))
    }

    /// The words of a key; the key itself where it cannot be read.
    pub(super) fn label(&self, key: &str) -> String {
        let Some(parts) = CounterKey::parts(key) else { return key.to_owned() };
        let mut label = String::new();
        let mut is_from = false;
        for (name, value) in &parts {
            let (name, value) = self.resolved(name, value);
            let known = PARTS.iter().find(|(known, _)| *known == name);
            let words = match known {
                Some((_, message)) => {
                    let shown = self.dated(name, &value);
                    say(self.language, *message, &[("of", &*shown)])
                }
                None => format!("{name} {value}"),
            };
            if !label.is_empty() {
                // "from A to B" is one phrase.
                let is_phrase = is_from && name == "RECIPIENT";
                label += if is_phrase { " " } else { self.language.choose(BETWEEN) };
            }
            label += &words;
            is_from = matches!(name, "ORIGINATOR" | "ORG_CODE");
        }
        if label.is_empty() { self.language.choose(ALL).to_owned() } else { label }
    }

    /// A part without its id, as the tables of the series name it now.
    fn resolved<'n>(&self, name: &'n str, value: &str) -> (&'n str, String) {
        let Some(plain) = name.strip_suffix(ID_SUFFIX) else { return (name, value.to_owned()) };
        let table = match plain {
            "project" => self.definition.references.project.as_deref(),
            "type" => self.definition.references.type_code.as_deref(),
            name => self.definition.variables.get(name).and_then(|it| it.reference.as_deref()),
        };
        match table.and_then(|table| self.reference.by_id(table, value)) {
            Some(row) => (plain, row.code.clone()),
            None => (name, value.to_owned()),
        }
    }

    /// A period with its year in the era of the series.
    fn dated(&self, name: &str, value: &str) -> String {
        let shifted = || {
            let year: i64 = value.get(..4)?.parse().ok()?;
            Some(format!("{}{}", year + self.era?.offset(), value.get(4..)?))
        };
        let is_period = PERIODS.contains(&name);
        let shown = if is_period { shifted() } else { None };
        shown.unwrap_or_else(|| value.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(language: Locale, eras: &[Era]) -> Labels {
        let definition = serde_json::json!({
            "code": "L", "name": "L", "template": "{SEQ:4}", "serials": [{}],
            "serves": { "types": ["L"] },
        });
        let definition = serde_json::from_value(definition).expect("a definition");
        Labels::of(language, eras, definition, Arc::default())
    }

    #[test]
    fn a_counter_is_named_in_the_words_of_people() {
        let key = "project=LCBP3-C2;ORIGINATOR=คคง.;RECIPIENT=สคฉ.3;year=2025";
        for (language, label) in [
            (Locale::Thai, "โครงการ LCBP3-C2 จาก คคง. ถึง สคฉ.3 ปี 2568"),
            (Locale::Chinese, "项目 LCBP3-C2，发自 คคง. 致 สคฉ.3，2568 年"),
            (Locale::TraditionalChinese, "專案 LCBP3-C2，發自 คคง. 致 สคฉ.3，2568 年"),
            (Locale::English, "project LCBP3-C2, from คคง. to สคฉ.3, year 2568"),
        ] {
            assert_eq!(labels(language, &[Era::Buddhist]).label(key), label);
        }
    }

    #[test]
    fn years_are_of_the_era_that_the_numbers_show() {
        let of = |eras: &[Era], key| labels(Locale::English, eras).label(key);
        assert_eq!(of(&[Era::Minguo], "month=2025-01"), "month 114-01");
        assert_eq!(of(&[Era::Common], "day=2025-01-22"), "day 2025-01-22");
        assert_eq!(of(&[Era::Buddhist], "week=2025-W05"), "week 2025-W05");
        // Of two eras, neither is the one.
        assert_eq!(of(&[Era::Common, Era::Buddhist], "year=2025"), "year 2025");
        assert_eq!(of(&[], "DISCIPLINE=TER;ZONE=9"), "discipline TER, ZONE 9");
        assert_eq!(of(&[], ""), "all numbers");
        assert_eq!(of(&[], "no key"), "no key");
    }
}

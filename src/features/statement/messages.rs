//! The phrases of the paper, in every language. Plain words: readers know documents and numbers,
//! and nothing of the service's internals.

use crate::language::{Locale, Message};
use crate::ledger::{EntryKind, GapReason};

/// A phrase with its places filled: `{name}` is replaced by the text of that name.
pub(super) fn say(language: Locale, message: Message, places: &[(&str, &str)]) -> String {
    let text = language.choose(message);
    let mut said = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        said.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        let place = places.iter().find(|(known, _)| *known == name);
        said.push_str(place.map_or("", |(_, value)| value));
        rest = after;
    }
    said.push_str(rest);
    said
}

pub(super) const TITLE: Message = [
    "รายงานตรวจสอบเลขที่เอกสาร",
    "单据编号核对表",
    "單據編號核對表",
    "Statement of document numbers",
];
pub(super) const SERIES: Message = ["ชุดเลขที่เอกสาร", "编号系列", "編號系列", "Series"];
pub(super) const PERIOD: Message = ["งวด", "期间", "期間", "Period"];
pub(super) const PROJECT: Message = ["โครงการ", "项目", "專案", "Project"];
pub(super) const ERA: Message = ["ศักราช", "纪年", "紀年", "Years"];
pub(super) const COUNTER: Message = ["ตัวนับ", "计数器", "計數器", "Counter"];
/// The places for signatures.
pub(super) const SIGNATURES: [Message; 3] = [
    ["ผู้จัดทำ", "制表人", "製表人", "Drawn up by"],
    ["ผู้ตรวจสอบ", "复核人", "覆核人", "Checked by"],
    ["ผู้อนุมัติ", "批准人", "核准人", "Approved by"],
];
pub(super) const DATE: Message = ["วันที่", "日期", "日期", "Date"];
pub(super) const DRAWN_UP: Message = ["จัดทำเมื่อ", "制表时间", "製表時間", "Drawn up at"];
pub(super) const RESULT: Message = ["ผลการตรวจสอบ", "结论", "結論", "Result"];
pub(super) const SEAL: Message = ["ตราผนึก", "封存", "封存", "Seal"];
pub(super) const NOTES: Message = ["หมายเหตุ", "说明", "說明", "Notes"];
pub(super) const COUNTED: Message = ["ลำดับเลข", "编号序列", "編號序列", "Run of numbers"];
pub(super) const FIRST: Message = ["เลขที่แรก", "首个编号", "首個編號", "First number"];
pub(super) const LAST: Message = ["เลขที่สุดท้าย", "末个编号", "末個編號", "Last number"];
pub(super) const NONE: Message = ["ไม่มี", "无", "無", "none"];
pub(super) const REVISED: Message =
    ["เลขที่ที่มีฉบับแก้ไข", "其中有修订版的编号", "其中有修訂版的編號", "Numbers that have a revision"];
pub(super) const NUMBERS: Message = ["เลขที่", "编号", "編號", "Numbers"];
pub(super) const COUNT: Message = ["จำนวน", "数量", "數量", "Count"];
pub(super) const WHAT: Message = ["รายการ", "项目", "項目", "What became of them"];
pub(super) const EXPLANATION: Message = ["คำอธิบาย", "解释", "解釋", "Explanation"];
pub(super) const EVIDENCE: Message = ["หลักฐาน", "证据", "證據", "Evidence"];
pub(super) const CHECKPOINT: Message = ["จุดตรวจสอบที่", "检查点编号", "檢查點編號", "Checkpoint"];
pub(super) const MADE_AT: Message = ["ลงนามเมื่อ", "签署时间", "簽署時間", "Signed at"];
pub(super) const SHA256: Message =
    ["SHA-256 ของข้อความ", "正文 SHA-256", "本文 SHA-256", "SHA-256 of its body"];
pub(super) const PUBLIC_KEY: Message = ["กุญแจสาธารณะ", "公钥", "公鑰", "Public key"];

/// The number of values from one to another.
pub(super) const STRETCH: Message = [
    "ค่า {first} ถึง {last} ห่างกันค่าละ {step}",
    "从 {first} 到 {last}，间隔 {step}",
    "從 {first} 到 {last}，間隔 {step}",
    "Values from {first} to {last}, in steps of {step}",
];
pub(super) const FURTHER_STRETCHES: Message =
    ["ค่าอื่น ๆ", "其他数值", "其他數值", "Values of further stretches"];
pub(super) const SUM: Message = ["รวม", "合计", "合計", "Sum"];
pub(super) const ISSUED: Message =
    ["ออกเลขที่แล้ว", "已发出", "已發出", "Issued, with a record of each"];
pub(super) const ARCHIVED: Message =
    ["ในจำนวนนั้นอยู่ในคลังข้อมูลถาวร", "其中已归档", "其中已歸檔", "of these, in the archive"];
pub(super) const IMPORTED: Message = [
    "นำเข้าจากระบบเดิม",
    "由原系统发出并导入",
    "由原系統發出並匯入",
    "Issued by another system and brought in",
];

/// The name of a kind of entry in the arithmetic.
pub(super) fn label(kind: EntryKind) -> Message {
    match kind {
        EntryKind::Gap(GapReason::Discarded) => [
            "เว้นว่าง: ไม่เคยส่งให้ผู้ใด",
            "空号：从未交给任何人",
            "空號：從未交給任何人",
            "Left empty: never given to anybody",
        ],
        EntryKind::Gap(GapReason::Unaccounted) => [
            "เว้นว่าง: บันทึกอาจสูญหาย",
            "空号：记录可能已丢失",
            "空號：記錄可能已遺失",
            "Left empty: a record may have been lost",
        ],
        EntryKind::Gap(GapReason::Collided) => [
            "เว้นว่าง: เลขที่ซ้ำกับเอกสารอื่น",
            "空号：与其他单据编号相同",
            "空號：與其他單據編號相同",
            "Left empty: another document has that number",
        ],
        EntryKind::Gap(GapReason::BeforeImport) => [
            "ไม่อยู่ในรายการของระบบเดิม",
            "不在原系统的清单中",
            "不在原系統的清單中",
            "Not in the list of the former system",
        ],
        EntryKind::Gap(GapReason::Skipped) => {
            ["ข้ามไปตามคำขอ", "按申请跳过", "按申請略過", "Passed over on request"]
        }
        EntryKind::Gap(GapReason::Returned) => [
            "ยังไม่ได้ใช้: จะออกเป็นลำดับถัดไป",
            "尚未使用：将最先发出",
            "尚未使用：將最先發出",
            "Not used yet: the next to be issued",
        ],
        EntryKind::Gap(GapReason::Cancelled) => {
            ["จองแล้วยกเลิก", "预留后取消", "預留後取消", "Reserved and cancelled"]
        }
        EntryKind::Gap(GapReason::Expired) => {
            ["จองแล้วหมดอายุ", "预留后过期", "預留後過期", "Reserved and never confirmed"]
        }
        EntryKind::Reserved => [
            "จองไว้สำหรับเอกสารที่ยังไม่เสร็จ",
            "为未定稿的单据预留",
            "為未定稿的單據預留",
            "Reserved for documents that are not final",
        ],
        EntryKind::Rejected => [
            "บันทึกที่เก็บแยกไว้ตรวจสอบ",
            "另行保存待查的记录",
            "另行保存待查的記錄",
            "Records kept aside to be looked into",
        ],
        EntryKind::Collision => [
            "เลขที่ที่ออกซ้ำ",
            "重复发出的编号",
            "重複發出的編號",
            "Numbers that another document has too",
        ],
        EntryKind::Pending => ["กำลังบันทึก", "正在登记", "正在登記", "Being recorded at this moment"],
        EntryKind::Unexamined => [
            "ยังไม่ได้ตรวจหลังการหยุดชะงัก",
            "中断后尚未核查",
            "中斷後尚未核查",
            "Not looked at yet after an interruption",
        ],
        EntryKind::Missing => ["ไม่มีบันทึกใด ๆ", "没有任何记录", "沒有任何記錄", "WITHOUT ANY RECORD"],
        EntryKind::Twice => ["มีบันทึกซ้ำ", "重复登记", "重複登記", "RECORDED TWICE"],
    }
}

#[cfg(test)]
mod tests {
    use super::super::explanations::{UNHEARD, explanation};
    use super::*;

    const REASONS: [GapReason; 8] = [
        GapReason::Discarded,
        GapReason::Unaccounted,
        GapReason::Collided,
        GapReason::BeforeImport,
        GapReason::Skipped,
        GapReason::Returned,
        GapReason::Cancelled,
        GapReason::Expired,
    ];

    #[test]
    fn nobody_is_told_of_the_inside() {
        let kinds = REASONS.map(EntryKind::Gap).into_iter().chain([
            EntryKind::Rejected,
            EntryKind::Collision,
            EntryKind::Reserved,
            EntryKind::Pending,
            EntryKind::Unexamined,
            EntryKind::Missing,
            EntryKind::Twice,
        ]);
        let inside =
            ["epoch", "flight", "outbox", "fence", "partition", "redis", "ceiling", "trim"];
        for message in kinds.flat_map(|kind| [label(kind), explanation(kind)]) {
            let english = Locale::English.choose(message).to_lowercase();
            assert!(!inside.iter().any(|word| english.contains(word)), "{english}");
            for (index, text) in message.iter().enumerate() {
                assert!(!message[index + 1..].contains(text), "one language twice: {text}");
            }
        }
    }

    #[test]
    fn places_are_filled_and_what_fills_them_is_not_read() {
        let said = say(Locale::English, UNHEARD, &[("names", "a{at}")]);
        assert_eq!(said, "machines that could not be asked: a{at}");
    }
}

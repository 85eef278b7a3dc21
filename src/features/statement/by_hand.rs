//! The numbers of a run on the paper that were given by hand, or are kept as written: how many
//! there are, and each with its reason.

use super::messages::say;
use super::paper::{EntryAnswer, RunAnswer};
use super::report_builder::moment;
use crate::language::{Locale, Message};
use crate::ledger::{AccountByHand, CounterAccount, LifeRow};

/// The line of the arithmetic.
pub(super) const BY_HAND: Message =
    ["ออกด้วยมือและลงทะเบียน", "手工给出并登记", "手工給出並登記", "Given by hand, and registered"];
/// The line of the arithmetic of those that are kept as written.
pub(super) const AS_WRITTEN: Message =
    ["เก็บไว้ตามที่เขียน", "按书写原样保存", "按書寫原樣保存", "Kept as written"];
const NUMBER: Message = ["ออกด้วยมือ", "手工给出", "手工給出", "Given by hand"];
const WHY: Message = [
    "ออกเลขที่ด้วยมือแล้วลงทะเบียนไว้ เหตุผล: {reason}",
    "手工给出后登记。原因：{reason}",
    "手工給出後登記。原因：{reason}",
    "Given by hand, and registered afterwards: {reason}",
];
const WHY_AS_WRITTEN: Message = [
    "เลขที่ในรูปแบบที่ไม่มีแม่แบบใดอ่านได้ เก็บไว้ตามที่เขียน เหตุผล: {reason}",
    "其形式无模板可读，按书写原样保存。原因：{reason}",
    "其形式無範本可讀，按書寫原樣保存。原因：{reason}",
    "In a form that no template reads, and kept as written: {reason}",
];
const EVIDENCE: Message = [
    "รายการลงทะเบียนที่ {id} โดย {by} เมื่อ {at}",
    "登记第 {id} 项，由 {by} 于 {at} 登记",
    "登記第 {id} 項，由 {by} 於 {at} 登記",
    "Registration {id}, by {by} at {at}",
];
const FURTHER: Message = [
    "เลขที่ที่ออกด้วยมืออีก {count} เลขที่นับรวมแล้วแต่ไม่ได้แสดง ดูได้จาก numerator \
     find --path registered",
    "另有 {count} 个手工给出的编号已计入但未列出，可用 numerator find --path registered 查看。",
    "另有 {count} 個手工給出的編號已計入但未列出，可用 numerator find --path registered 查看。",
    "{count} further numbers that were given by hand are counted and not listed; \
     numerator find --path registered lists them.",
];

const FURTHER_AS_WRITTEN: Message = [
    "เลขที่ที่เก็บไว้ตามที่เขียนอีก {count} เลขที่นับรวมแล้วแต่ไม่ได้แสดง ดูได้จาก numerator \
     find --path as-written",
    "另有 {count} 个按书写原样保存的编号已计入但未列出，可用 numerator find --path as-written 查看。",
    "另有 {count} 個按書寫原樣保存的編號已計入但未列出，可用 numerator find --path as-written 查看。",
    "{count} further numbers that are kept as written are counted and not listed; \
     numerator find --path as-written lists them.",
];

const PASSED_OVER: Message = [
    "เลขที่ {number} ซึ่งออกด้วยมือข้ามเลขที่เหล่านี้ไป เหตุผล: {reason}",
    "手工给出的编号 {number} 越过了这些编号。原因：{reason}",
    "手工給出的編號 {number} 越過了這些編號。原因：{reason}",
    "{number}, which was given by hand, passed over these: {reason}",
];

/// By which number values were passed over, and why.
pub(super) fn passed_over(language: Locale, row: &LifeRow) -> String {
    let number = row.number.as_deref().unwrap_or_default();
    let reason = row.reason.as_deref().unwrap_or_default();
    say(language, PASSED_OVER, &[("number", number), ("reason", reason)])
}

/// Adds the entries of these numbers, in the order of their values.
pub(super) fn add_entries(
    language: Locale,
    account: &CounterAccount,
    entries: &mut Vec<EntryAnswer>,
) {
    let words = Words::of(account);
    entries.extend(account.by_hand.iter().map(|one| entry(language, &words, one)));
    entries.sort_by_key(|entry| entry.run.first.parse::<i64>().unwrap_or(i64::MAX));
}

/// The note on such numbers that are not listed.
pub(super) fn further(language: Locale, account: &CounterAccount) -> Option<String> {
    let (count, words) = (account.further_by_hand, Words::of(account));
    (count > 0).then(|| say(language, words.further, &[("count", &count.to_string())]))
}

/// How the numbers of one run are named.
struct Words {
    what: &'static str,
    label: Message,
    why: Message,
    further: Message,
}

impl Words {
    /// A counter of numbers as written has no others.
    fn of(account: &CounterAccount) -> Self {
        if account.counter.is_as_written() {
            return Words {
                what: "as-written",
                label: AS_WRITTEN,
                why: WHY_AS_WRITTEN,
                further: FURTHER_AS_WRITTEN,
            };
        }
        Words { what: "registered", label: NUMBER, why: WHY, further: FURTHER }
    }
}

fn entry(language: Locale, words: &Words, one: &AccountByHand) -> EntryAnswer {
    let (id, at) = (one.life_id.to_string(), moment(one.registered_at_us));
    let (value, number) = (one.value.to_string(), Some(one.number.clone()));
    let places = [("id", &*id), ("by", &one.registered_by), ("at", &at)];
    EntryAnswer {
        what: words.what,
        label: language.choose(words.label),
        run: RunAnswer { first: value.clone(), last: value, step: "1".into(), count: 1 },
        first_number: number.clone(),
        last_number: number,
        explanation: say(language, words.why, &[("reason", &one.reason)]),
        evidence: say(language, EVIDENCE, &places),
        entry_id: Some(one.life_id),
        noted_at: Some(at),
    }
}

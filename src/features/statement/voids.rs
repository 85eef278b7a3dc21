//! The void numbers of a run on the paper: how many there are, and each with its reason and what
//! stands in its place.

use super::messages::say;
use super::paper::{CountLine, EntryAnswer, RunAnswer};
use super::report_builder::moment;
use crate::language::{Locale, Message};
use crate::ledger::{AccountVoid, AccountVoids};

const VOIDED: Message = ["ในจำนวนนั้นยกเลิกแล้ว", "其中已作废", "其中已作廢", "of these, void"];
const REPLACED: Message = [
    "ในจำนวนที่ยกเลิก มีเลขที่แทนแล้ว",
    "已作废中另有替代编号的",
    "已作廢中另有替代編號的",
    "of the void ones, replaced by another number",
];
const VOID_NUMBER: Message = ["ยกเลิก", "作废", "作廢", "Void"];
const REPLACED_NUMBER: Message =
    ["ยกเลิกและออกเลขที่แทน", "作废并已替代", "作廢並已替代", "Void, and replaced"];
const WHY: Message = [
    "ออกแล้วและยกเลิกภายหลัง เหตุผล: {reason}",
    "已发出，其后作废。原因：{reason}",
    "已發出，其後作廢。原因：{reason}",
    "Issued, and voided later: {reason}",
];
const EVIDENCE: Message = [
    "รายการที่ {id} ในทะเบียนการยกเลิก โดย {by} เมื่อ {at}",
    "作废登记第 {id} 项，由 {by} 于 {at} 登记",
    "作廢登記第 {id} 項，由 {by} 於 {at} 登記",
    "Entry {id} of the register of voids, by {by} at {at}",
];
const IN_ITS_PLACE: Message =
    ["เลขที่แทน: {number}", "替代编号：{number}", "替代編號：{number}", "in its place: {number}"];
const FURTHER: Message = [
    "เลขที่ที่ยกเลิกอีก {count} เลขที่นับรวมแล้วแต่ไม่ได้แสดง ดูได้จาก numerator \
     find --status voided และ --status replaced",
    "另有 {count} 个作废编号已计入但未列出，可用 numerator find --status voided 和 --status replaced 查看。",
    "另有 {count} 個作廢編號已計入但未列出，可用 numerator find --status voided 和 --status replaced 查看。",
    "{count} further void numbers are counted and not listed; numerator find --status voided \
     and --status replaced list them, those of ranges with their range.",
];

/// Adds the lines of void numbers behind those of issued ones.
pub(super) fn add_lines(language: Locale, voids: &AccountVoids, lines: &mut Vec<CountLine>) {
    let is_issued = |line: &&CountLine| {
        matches!(line.what, "issued" | "archived" | "imported" | "registered" | "as-written")
    };
    let at = lines.iter().take_while(is_issued).count();
    let counts = [("voided", VOIDED, voids.voided), ("replaced", REPLACED, voids.replaced)];
    let counts = counts.into_iter().filter(|(.., count)| *count > 0);
    let line = |(what, label, count)| {
        let label = language.choose(label);
        CountLine { what, label, count, sign: 0 }
    };
    drop(lines.splice(at..at, counts.map(line)));
}

/// Adds the entries of void numbers, in the order of their values.
pub(super) fn add_entries(language: Locale, voids: &AccountVoids, entries: &mut Vec<EntryAnswer>) {
    entries.extend(voids.listed.iter().map(|void| entry(language, void)));
    entries.sort_by_key(|entry| entry.run.first.parse::<i64>().unwrap_or(i64::MAX));
}

/// The note on void numbers that are not listed.
pub(super) fn further(language: Locale, voids: &AccountVoids) -> Option<String> {
    let count = voids.voided.saturating_sub(voids.listed.len() as u64);
    (count > 0).then(|| say(language, FURTHER, &[("count", &count.to_string())]))
}

fn entry(language: Locale, void: &AccountVoid) -> EntryAnswer {
    let (id, at, value) = (void.life_id.to_string(), moment(void.voided_at_us), void.value);
    let (what, label) = match void.replaced_by {
        None => ("voided", VOID_NUMBER),
        Some(_) => ("replaced", REPLACED_NUMBER),
    };
    let places = [("id", &*id), ("by", &void.voided_by), ("at", &at)];
    let mut evidence = vec![say(language, EVIDENCE, &places)];
    if let Some(number) = &void.replaced_by {
        evidence.push(say(language, IN_ITS_PLACE, &[("number", number)]));
    }
    let number = Some(void.number.clone());
    EntryAnswer {
        what,
        label: language.choose(label),
        run: RunAnswer {
            first: value.to_string(),
            last: value.to_string(),
            step: "1".into(),
            count: 1,
        },
        first_number: number.clone(),
        last_number: number,
        explanation: say(language, WHY, &[("reason", &void.reason)]),
        evidence: evidence.join("; "),
        entry_id: Some(void.life_id),
        noted_at: Some(at),
    }
}

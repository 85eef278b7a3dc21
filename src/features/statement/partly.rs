//! The sentences of the paper about a run of numbers that continues beyond the requested period, in
//! every language.

use crate::language::Message;

/// Precedes the numbers of the run whose documents are dated in the period.
pub(super) const DATED: Message = [
    "ในจำนวนนี้เอกสารลงวันที่ {from} ถึง {upto}",
    "其中单据日期为 {from} 至 {upto}",
    "其中單據日期為 {from} 至 {upto}",
    "Of these, documents dated from {from} to {upto}",
];
pub(super) const OVER_ALL_TIME: Message = [
    "ลำดับเลขนี้ไม่เริ่มใหม่ตามงวด จึงแสดงตั้งแต่เริ่มต้นทั้งหมด",
    "该序列不按期间重新开始，因此列示其全部时间。",
    "該序列不按期間重新開始，因此列示其全部時間。",
    "This run never begins anew with a period, and is shown over all time.",
];
/// The same for a run that restarts with a longer period.
pub(super) const BEYOND: Message = [
    "ลำดับเลขนี้นับต่อเนื่องตลอดงวด {period} ซึ่งยาวกว่างวดที่ขอ จึงแสดงทั้งงวดนั้น",
    "该序列在整个期间 {period} 内连续编号，超出所查期间，因此列示其全部。",
    "該序列在整個期間 {period} 內連續編號，超出所查期間，因此列示其全部。",
    "This run counts through {period}, which goes on beyond the period asked for, and is shown as \
     a whole.",
];
pub(super) const PART_ARCHIVED: Message = [
    "อีก {count} เลขที่อยู่ในคลังข้อมูลถาวรและอาจเป็นของงวดนี้ วันที่ของเอกสารอยู่ในไฟล์",
    "另有 {count} 个已归档的编号可能属于该期间，其单据日期见归档文件。",
    "另有 {count} 個已歸檔的編號可能屬於該期間，其單據日期見歸檔檔案。",
    "{count} further numbers in the archive may be of this period; its files have the dates of \
     their documents.",
];
pub(super) const PART_ASIDE: Message = [
    "อีก {count} เลขเป็นของงวดนี้หรืออาจเป็นของงวดนี้ บันทึกของเลขเหล่านี้เก็บแยกไว้ตรวจสอบ \
     หรือเอกสารอื่นมีเลขที่เดียวกัน",
    "另有 {count} 个编号属于或可能属于该期间：其记录另行保存待查，或另一份单据有相同编号。",
    "另有 {count} 個編號屬於或可能屬於該期間：其記錄另行保存待查，或另一份單據有相同編號。",
    "{count} further numbers are of this period, or may be: their records are kept aside to be \
     looked into, or another document has the same number.",
];

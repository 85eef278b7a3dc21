//! The sentences of the paper, in every language: why numbers are unused, what proves it, whether
//! the record is complete, what is sealed. Plain words, as in `messages`.

use crate::language::Message;
use crate::ledger::{EntryKind, GapReason};

/// How it came about, for an auditor.
pub(super) fn explanation(kind: EntryKind) -> Message {
    match kind {
        EntryKind::Gap(reason) => of_gap(reason),
        EntryKind::Rejected => [
            "บันทึกของเลขที่เหล่านี้ไม่เข้ากับข้อมูลที่มีอยู่ จึงเก็บไว้ตามที่ได้รับเพื่อให้ผู้ดู\
             แลตรวจสอบ",
            "这些编号的记录与已有记录不符，已原样另存，由管理员核查。",
            "這些編號的記錄與既有記錄不符，已原樣另存，由管理員核查。",
            "The record of these does not fit what is there already. It is kept as it came, for \
             an administrator to look into.",
        ],
        EntryKind::Collision => [
            "พบว่าเลขที่นี้เป็นของเอกสารอื่นอยู่แล้ว ผู้ดูแลต้องตรวจสอบว่าเอกสารใดใช้เลขที่นี้",
            "该编号已属于另一份单据，须由管理员查明哪份单据使用它。",
            "該編號已屬於另一份單據，須由管理員查明哪份單據使用它。",
            "Another document has this number already. An administrator has to find out which of \
             them keeps it.",
        ],
        EntryKind::Reserved => [
            "เอกสารที่ยังไม่เสร็จถือเลขที่นี้ไว้ เมื่อยืนยันแล้วจึงออกเลขที่ มิฉะนั้นจะคืน",
            "尚未定稿的单据持有该编号；确认后才发出，否则退回。",
            "尚未定稿的單據持有該編號；確認後才發出，否則退回。",
            "A document that is not final holds this number. It is issued once that is confirmed, \
             and comes back otherwise.",
        ],
        EntryKind::Pending => [
            "เพิ่งออกหรือกำลังออก บันทึกยังมาไม่ถึง",
            "刚刚发出或正在发出，记录尚未到达。",
            "剛剛發出或正在發出，記錄尚未到達。",
            "Taken a moment ago; the record is on its way.",
        ],
        EntryKind::Unexamined => [
            "ระบบหยุดชะงัก และยังไม่ได้ตรวจว่าเลขที่เหล่านี้ออกไปแล้วหรือไม่ ระบบจะตรวจเองในภายห\
             ลัง",
            "系统曾经中断，尚未核查这些编号是否已发出；系统稍后会自行核查。",
            "系統曾經中斷，尚未核查這些編號是否已發出；系統稍後會自行核查。",
            "The service was interrupted, and has not looked yet whether these were given out. \
             It does so by itself.",
        ],
        EntryKind::Missing => [
            "ไม่มีบันทึกว่าเลขที่เหล่านี้ออกไปหรือเว้นไว้ บันทึกอาจถูกลบ",
            "没有任何记录说明这些编号已发出或空置，记录可能已被删除。",
            "沒有任何記錄說明這些編號已發出或空置，記錄可能已被刪除。",
            "No record says that these were issued or left empty. Records may have been removed.",
        ],
        EntryKind::Twice => [
            "เลขที่เดียวกันมีบันทึกมากกว่าหนึ่งรายการ บันทึกอาจถูกเพิ่มหรือแก้ไข",
            "同一编号有不止一条记录，记录可能被添加或更改。",
            "同一編號有不只一筆記錄，記錄可能被新增或變更。",
            "More than one record stands for the same number. Records may have been added or \
             changed.",
        ],
    }
}

fn of_gap(reason: GapReason) -> Message {
    match reason {
        GapReason::Discarded => [
            "ระบบหยุดชะงักก่อนส่งเลขที่เหล่านี้ให้ผู้ใด เครื่องทุกเครื่องแจ้งครบแล้วว่าส่งเลขที่ใ\
             ดออกไปบ้าง จึงไม่มีเอกสารใดใช้เลขที่เหล่านี้ และจะไม่ออกอีก",
            "系统在交出这些编号之前中断。所有机器都已报明各自交出的编号，因此没有单据使用这些编号，今后也不会再发出。",
            "系統在交出這些編號之前中斷。所有機器都已報明各自交出的編號，因此沒有單據使用這些編號，今後也不會再發出。",
            "The service was interrupted before these were given to anybody. Every machine has \
             said which numbers it gave out, so no document has them, and they are never issued \
             again.",
        ],
        GapReason::Unaccounted => [
            "ระบบขัดข้องพร้อมกับเครื่องที่ยังไม่ได้แจ้งเลขที่ที่ส่งออกไป เลขที่บางส่วนอาจถูกใช้ใน\
             เอกสารแล้วโดยไม่มีบันทึก จึงไม่ออกเลขที่เหล่านี้อีก",
            "系统故障时，有机器未能报明已交出的编号。其中个别编号可能已用于单据而没有记录，因此这些编号均不再发出。",
            "系統故障時，有機器未能報明已交出的編號。其中個別編號可能已用於單據而沒有記錄，因此這些編號均不再發出。",
            "The service failed together with a machine that could no longer say what it had \
             given out. Some of these may stand on documents although no record is left, so none \
             of them is issued again.",
        ],
        GapReason::Collided => [
            "มีเอกสารอื่นใช้เลขที่นี้อยู่แล้ว จึงไม่ส่งให้ผู้ใดซ้ำอีก",
            "该编号已属于另一份单据，因此没有再次交出。",
            "該編號已屬於另一份單據，因此沒有再次交出。",
            "Another document had this number already, so it was not given out a second time.",
        ],
        GapReason::BeforeImport => [
            "เลขที่ก่อนย้ายระบบซึ่งไม่อยู่ในรายการที่นำเข้า ต้องสอบถามจากระบบเดิมว่าได้ออกไปแล้วห\
             รือไม่ ระบบนี้ไม่ออกเลขที่เหล่านี้",
            "迁移之前的编号，不在导入的清单中。是否曾经发出须由原系统说明；本系统不会发出这些编号。",
            "遷移之前的編號，不在匯入的清單中。是否曾經發出須由原系統說明；本系統不會發出這些編號。",
            "From before the move, and not in the list that was brought in. Whether they were \
             ever issued is for the former system to say; this one does not issue them.",
        ],
        GapReason::Skipped => [
            "ข้ามไปตามคำขอ ระบบนี้ไม่ได้ออกเลขที่เหล่านี้และจะไม่ออก",
            "按申请跳过。本系统没有发出这些编号，今后也不会发出。",
            "按申請略過。本系統沒有發出這些編號，今後也不會發出。",
            "Passed over on request. This service has not issued these, and never does.",
        ],
        GapReason::Returned => [
            "จองเลขที่นี้ไว้แต่ไม่ได้ใช้ หรือเลขที่ที่ออกด้วยมือข้ามเลขที่นี้ไป \
             จะออกให้เอกสารถัดไป",
            "该编号曾被预留而未使用，或手工给出的编号越过了它；将发给下一份单据。",
            "該編號曾被預留而未使用，或手工給出的編號越過了它；將發給下一份單據。",
            "This number was reserved and not used, or a number given by hand passed over it. The \
             next document gets it.",
        ],
        GapReason::Cancelled => [
            "เอกสารที่ถือเลขที่นี้ไว้ถูกยกเลิกก่อนใช้งานในลำดับที่เรียงตามวันที่ \
             หรือชุดเลขที่ที่จองไว้ถูกยกเลิกโดยไม่ทราบว่าเลขที่ใดใช้ไปแล้ว จึงไม่ออกเลขที่นี้อีก",
            "持有该编号的单据在使用前取消，而该序列按日期排列；或预留的一段编号被放弃，不知其中哪些已使用。因此不再发出。",
            "持有該編號的單據在使用前取消，而該序列按日期排列；或預留的一段編號被放棄，不知其中哪些已使用。因此不再發出。",
            "The document that held this number was given up before it was used, in a run that \
             follows the order of dates; or its block was given up, and it is not known which of \
             the numbers were used. It is not issued again.",
        ],
        GapReason::Expired => [
            "เอกสารที่ถือเลขที่นี้ไว้ไม่ได้ยืนยันทันเวลา \
             ลำดับเลขนี้เรียงตามวันที่ จึงไม่ออกเลขที่นี้อีก",
            "持有该编号的单据未按时确认。该序列按日期排列，因此不再发出。",
            "持有該編號的單據未按時確認。該序列按日期排列，因此不再發出。",
            "The document that held this number was not confirmed in time. The numbers of this \
             run follow the order of dates, so it is not issued again.",
        ],
    }
}

/// Numbers that are left out since the record was put back to an earlier state.
pub(super) const RESTORED: Message = [
    "ฐานข้อมูลถูกกู้คืนจากสำเนาเก่า จึงไม่ทราบว่าเลขที่ใดออกไปแล้ว เลขที่บางส่วนอาจอยู่บนเอกสารแ\
     ล้ว จึงข้ามเลขที่เหล่านี้ทั้งหมดและไม่ออกอีก",
    "数据库曾从较早的备份恢复，无法得知哪些编号已发出。其中个别编号可能已用于单据，因此全部跳过，不再发出。",
    "資料庫曾從較早的備份還原，無法得知哪些編號已發出。其中個別編號可能已用於單據，因此全部略過，不再發出。",
    "The database was put back to an earlier copy, which does not know what had been issued \
     since. Some of these may stand on documents, so all of them were skipped and none is issued \
     again.",
];

/// The same with the request: its author may have used the numbers elsewhere.
pub(super) const PASSED_OVER: Message = [
    "ข้ามไปตามคำขอที่ {id}: {reason} ระบบนี้ไม่ได้ออกเลขที่เหล่านี้และจะไม่ออก",
    "按第 {id} 号申请跳过：{reason}。本系统没有发出这些编号，今后也不会发出。",
    "按第 {id} 號申請略過：{reason}。本系統沒有發出這些編號，今後也不會發出。",
    "Passed over by request {id}: {reason}. This service has not issued these, and never does.",
];

/// The entry in the register of gaps.
pub(super) const REGISTERED: Message = [
    "รายการที่ {id} ในทะเบียนเลขที่เว้นว่าง บันทึกเมื่อ {at}",
    "空号登记簿第 {id} 项，登记时间 {at}",
    "空號登記簿第 {id} 項，登記時間 {at}",
    "Entry {id} of the register of gaps, noted at {at}",
];
pub(super) const INTERRUPTED: Message = [
    "การหยุดชะงักครั้งที่ {epoch} ของส่วนที่ {partition} สิ้นสุดเมื่อ {at}",
    "第 {partition} 部分第 {epoch} 次中断，结束于 {at}",
    "第 {partition} 部分第 {epoch} 次中斷，結束於 {at}",
    "interruption {epoch} of part {partition}, over at {at}",
];
pub(super) const UNHEARD: Message = [
    "เครื่องที่ไม่ได้แจ้ง: {names}",
    "未报明的机器：{names}",
    "未報明的機器：{names}",
    "machines that could not be asked: {names}",
];
pub(super) const CHANGED: Message = [
    "คำขอที่ {id} โดย {asked} อนุมัติโดย {approved}: {reason}",
    "第 {id} 号申请，申请人 {asked}，批准人 {approved}：{reason}",
    "第 {id} 號申請，申請人 {asked}，核准人 {approved}：{reason}",
    "request {id} of {asked}, approved by {approved}: {reason}",
];
/// The same for a change by one person, in a deployment without tokens.
pub(super) const CHANGED_ALONE: Message = [
    "คำขอที่ {id} โดย {asked} ผ่านคำสั่งบนเครื่อง (ไม่มีผู้ใดมีโทเค็น): {reason}",
    "第 {id} 号申请，由 {asked} 以命令执行（无人持有令牌）：{reason}",
    "第 {id} 號申請，由 {asked} 以命令執行（無人持有權杖）：{reason}",
    "request {id} of {asked}, made by a command where nobody has a token: {reason}",
];
pub(super) const KEPT_ASIDE: Message = [
    "บันทึก {allocation} เก็บไว้เมื่อ {at}",
    "记录 {allocation}，保存时间 {at}",
    "記錄 {allocation}，保存時間 {at}",
    "Record {allocation}, kept since {at}",
];
/// Of a number that a document holds.
pub(super) const RESERVATION: Message = [
    "การจอง {allocation} เมื่อ {at}",
    "预留 {allocation}，时间 {at}",
    "預留 {allocation}，時間 {at}",
    "Reservation {allocation}, made at {at}",
];
pub(super) const EXPLAINED: Message = [
    "อธิบายโดย {by}: {reason}",
    "由 {by} 说明：{reason}",
    "由 {by} 說明：{reason}",
    "explained by {by}: {reason}",
];
pub(super) const UNEXPLAINED: Message =
    ["ยังไม่มีผู้อธิบาย", "尚无人说明", "尚無人說明", "not explained by anybody yet"];
pub(super) const BY_ARITHMETIC: Message = [
    "จากการเปรียบเทียบบันทึกทุกรายการของลำดับเลขนี้",
    "由逐条比对该序列的全部记录得出",
    "由逐筆比對該序列的全部記錄得出",
    "From comparing all records of this run with each other",
];

pub(super) const COMPLETE: Message = [
    "ครบถ้วน: ทุกค่าตั้งแต่ค่าแรกถึงค่าสุดท้ายมีบันทึกหรือคำอธิบายหนึ่งรายการพอดี",
    "完整：从首个到末个数值，每个数值恰有一条记录或一项解释。",
    "完整：從首個到末個數值，每個數值恰有一筆記錄或一項解釋。",
    "Complete: each value from the first to the last has exactly one record or one explanation.",
];
pub(super) const SO_FAR: Message = [
    "ครบถ้วนจนถึงขณะนี้: บางค่ากำลังบันทึกหรือยังไม่ได้ตรวจ โปรดจัดทำรายงานอีกครั้งภายหลัง",
    "目前完整：部分数值正在登记或尚未核查，请稍后重新制表。",
    "目前完整：部分數值正在登記或尚未核查，請稍後重新製表。",
    "Complete so far: some values are being recorded or not looked at yet; draw this paper up \
     again later.",
];
pub(super) const INCOMPLETE: Message = [
    "ไม่ครบถ้วน: มีค่าที่ไม่มีบันทึก มีบันทึกซ้ำ หรือยังไม่มีคำอธิบาย ดูรายละเอียดด้านล่าง",
    "不完整：有数值没有记录、重复登记或未经说明，详见下文。",
    "不完整：有數值沒有記錄、重複登記或未經說明，詳見下文。",
    "NOT COMPLETE: values have no record, stand twice, or are not explained; see below.",
];
pub(super) const EMPTY: Message = [
    "ไม่มีการออกเลขที่ในงวดนี้",
    "本期间没有发出编号。",
    "本期間沒有發出編號。",
    "No number was taken in this period.",
];
pub(super) const GONE: Message = [
    "{count} ค่าเคยมีบันทึกแต่บันทึกหายไป",
    "有 {count} 个数值曾有记录，现已不存在。",
    "有 {count} 個數值曾有記錄，現已不存在。",
    "{count} values had a record once, and have none any more.",
];
pub(super) const EXCEEDED: Message = [
    "มีบันทึกของค่าที่สูงกว่าค่าสุดท้ายที่ตัวนับรู้จัก",
    "有记录的数值高于计数器所知的末值。",
    "有記錄的數值高於計數器所知的末值。",
    "There are records of values above the last one that the counter knows.",
];
pub(super) const UNSETTLED: Message = [
    "ลำดับเลขนี้หยุดชะงักและยังไม่ได้ตรวจส่วนท้าย ค่าที่สูงกว่านี้อาจเว้นว่าง",
    "该序列曾中断，末尾尚未核查，更高的数值可能成为空号。",
    "該序列曾中斷，末尾尚未核查，更高的數值可能成為空號。",
    "This run was interrupted and its end is not looked at yet: higher values may turn out to be \
     left empty.",
];
pub(super) const FURTHER_ENTRIES: Message = [
    "อีก {count} ช่วงนับรวมแล้วแต่ไม่ได้แสดง ดูได้จาก numerator gaps --counter {counter}",
    "另有 {count} 段已计入但未列出，可用 numerator gaps --counter {counter} 查看。",
    "另有 {count} 段已計入但未列出，可用 numerator gaps --counter {counter} 查看。",
    "{count} further runs are counted and not listed; numerator gaps --counter {counter} lists \
     them.",
];
pub(super) const IN_FILES: Message = [
    "ไฟล์ในคลังข้อมูลถาวร: {files}",
    "归档文件：{files}",
    "歸檔檔案：{files}",
    "Files of the archive: {files}",
];
pub(super) const AND_MORE: Message =
    [" และอีก {count}", " 等，另有 {count} 个", " 等，另有 {count} 個", " and {count} more"];

pub(super) const SEALED: Message = [
    "บันทึกทั้งหมดในรายงานนี้ผนึกด้วยจุดตรวจสอบต่อไปนี้",
    "本表的全部记录均由以下检查点封存。",
    "本表的全部記錄均由以下檢查點封存。",
    "All records on this paper are sealed by this checkpoint.",
];
pub(super) const PARTLY_SEALED: Message = [
    "จุดตรวจสอบนี้ผนึกบันทึก {bound} รายการ ยังไม่ผนึก {later} รายการซึ่งเขียนหลังจากนั้น",
    "该检查点封存 {bound} 条记录；另有 {later} 条在其后写入，尚未封存。",
    "該檢查點封存 {bound} 筆記錄；另有 {later} 筆在其後寫入，尚未封存。",
    "This checkpoint seals {bound} records; {later} were written later and are not sealed yet.",
];
pub(super) const WITHOUT_KEY: Message = [
    "บันทึก {keyless} รายการเขียนโดยไม่มีกุญแจ หรือเขียนโดยผู้อื่น จึงไม่ได้ผนึก",
    "{keyless} 条记录是在没有密钥的情况下写入的，或由他人写入，未封存。",
    "{keyless} 筆記錄是在沒有金鑰的情況下寫入的，或由他人寫入，未封存。",
    "{keyless} records were written without the key, or by somebody else: they are not sealed.",
];
pub(super) const NOT_SEALED: Message = [
    "ไม่ได้ผนึก: ยังไม่มีจุดตรวจสอบที่ลงนาม",
    "未封存：还没有签署的检查点。",
    "未封存：還沒有簽署的檢查點。",
    "Not sealed: there is no signed checkpoint.",
];
pub(super) const WRONG_SEAL: Message = [
    "ไม่ได้ผนึก: จุดตรวจสอบล่าสุดใช้ไม่ได้ โปรดตรวจด้วย numerator audit verify",
    "未封存：最新的检查点无效，请用 numerator audit verify 核查。",
    "未封存：最新的檢查點無效，請用 numerator audit verify 核查。",
    "Not sealed: the newest checkpoint is not valid; look into it with numerator audit verify.",
];
pub(super) const HOW_TO_CHECK: Message = [
    "ตราผนึกครอบคลุมเลขที่ที่ออกแล้ว ไม่ครอบคลุมทะเบียนเลขที่เว้นว่าง ตรวจตราผนึกได้ด้วย numerato\
     r audit verify --public-key ตามด้วยกุญแจสาธารณะที่ได้รับจากแหล่งอื่น",
    "封存涵盖已发出的编号，不涵盖空号登记簿。可用 numerator audit verify --public-key 及另行取得的公钥核对封存。",
    "封存涵蓋已發出的編號，不涵蓋空號登記簿。可用 numerator audit verify --public-key 及另行取得的公鑰核對封存。",
    "Seals cover issued numbers, not the register of gaps. Compare them with numerator audit \
     verify --public-key and the key as you have it from elsewhere.",
];

//! The columns of an export: what each shows of a number, a revision and a gap, and its head in the
//! languages of auditors.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::bail;

use crate::features::numbers::answer::ValuesAnswer;
use crate::features::register::gap_rows::ExportedGap;
use crate::features::register::kinds::RowKind;
use crate::features::register::rows::ExportedRow;
use crate::language::{Locale, Message};

/// The value of a cell. CSV writes each as a text; a workbook keeps what it is.
#[derive(Debug)]
pub(super) enum Cell<'r> {
    /// A text, empty where there is none.
    Text(Cow<'r, str>),
    /// A whole number, at most 2^53.
    Whole(u64),
    /// A civil date, `2024-01-22`.
    Day(&'r str),
    /// A time with an offset, RFC 3339.
    Time(&'r str),
}

impl Cell<'_> {
    /// The text of CSV.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Text(text) => Cow::Borrowed(text),
            Cell::Whole(value) => Cow::Owned(value.to_string()),
            Cell::Day(text) | Cell::Time(text) => Cow::Borrowed(text),
        }
    }
}

/// What a column shows of a row.
type OfNumber = for<'r> fn(&'r ExportedRow<'_>) -> anyhow::Result<Cell<'r>>;
type OfGap = for<'r> fn(&'r ExportedGap<'_>) -> anyhow::Result<Cell<'r>>;

/// A column that every export may have.
pub(super) struct Column {
    /// Its name, by which it is chosen.
    name: &'static str,
    heads: Message,
    number: OfNumber,
    gap: OfGap,
}

/// A column of this export.
pub(super) enum Chosen {
    /// One that every export may have.
    Fixed(&'static Column),
    /// A variable, by its name.
    Variable(String),
}

impl Chosen {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Chosen::Fixed(column) => column.name,
            Chosen::Variable(name) => name,
        }
    }

    /// Its head: the name where no language is wanted. A variable has its name in every language.
    pub(super) fn head(&self, language: Option<Locale>) -> &str {
        match (self, language) {
            (Chosen::Fixed(column), Some(language)) => language.choose(column.heads),
            _ => self.name(),
        }
    }

    /// Its cell in the row of a number or a revision.
    pub(super) fn of_number<'r>(&self, row: &'r ExportedRow<'_>) -> anyhow::Result<Cell<'r>> {
        match self {
            Chosen::Fixed(column) => (column.number)(row),
            Chosen::Variable(name) => Ok(text(row.about.context.get(name).map(String::as_str))),
        }
    }

    /// Its cell in the row of a gap. Variables that its counter counts by are in its key.
    pub(super) fn of_gap<'r>(&self, gap: &'r ExportedGap<'_>) -> anyhow::Result<Cell<'r>> {
        match self {
            Chosen::Fixed(column) => (column.gap)(gap),
            Chosen::Variable(_) => Ok(text(None)),
        }
    }
}

/// The columns of an export: those named, in their order, else all, with one for each variable
/// whose name is not a column's.
///
/// # Errors
/// A name that is none of them, or is named twice.
pub(super) fn chosen(
    named: Option<&[String]>,
    variables: BTreeSet<String>,
) -> anyhow::Result<Vec<Chosen>> {
    let fixed = |name: &str| COLUMNS.iter().find(|column| column.name == name);
    let variables: BTreeSet<String> =
        variables.into_iter().filter(|name| fixed(name).is_none()).collect();
    let Some(named) = named else {
        let all = COLUMNS.iter().map(Chosen::Fixed);
        return Ok(all.chain(variables.into_iter().map(Chosen::Variable)).collect());
    };
    let mut columns: Vec<Chosen> = Vec::with_capacity(named.len());
    for name in named.iter().map(|name| name.trim()) {
        if columns.iter().any(|column| column.name() == name) {
            bail!("--columns: {name} appears twice");
        }
        columns.push(match fixed(name) {
            Some(column) => Chosen::Fixed(column),
            None if variables.contains(name) => Chosen::Variable(name.to_owned()),
            None => {
                let known: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
                let known = known.into_iter().chain(variables.iter().map(String::as_str));
                let known = known.collect::<Vec<_>>().join(", ");
                bail!("--columns: there is no column {name:?}; there are {known}");
            }
        });
    }
    Ok(columns)
}

macro_rules! column {
    ($name:literal $heads:expr, $number:expr, $gap:expr) => {
        Column { name: $name, heads: $heads, number: $number, gap: $gap }
    };
}

/// All but the variables: those of the audit trail under its names, then the rest.
const COLUMNS: &[Column] = &[
    column!("document_id" ["เอกสาร", "文件", "文件", "Document"],
        |row| Ok(text(row.about.document_id)), |_| Ok(text(None))),
    column!("generated_number" ["เลขที่", "编号", "編號", "Number"],
        |row| Ok(text(Some(row.generated_number))), |gap| Ok(text(gap.generated_number))),
    column!("counter_key" ["ตัวนับ", "计数器", "計數器", "Counter"],
        |row| json(&row.about.source.counter_key), |gap| json(&gap.about.counter_key)),
    column!("template_used" ["รูปแบบ", "模板", "範本", "Template"],
        |row| Ok(text(Some(row.about.template_used))), |_| Ok(text(None))),
    column!("user_id" ["ผู้ขอ", "申请人", "申請人", "User"],
        |row| Ok(text(Some(row.about.user_id))), |_| Ok(text(None))),
    column!("ip_address" ["ที่อยู่ IP", "IP 地址", "IP 位址", "IP address"],
        |row| Ok(text(row.about.ip_address)), |_| Ok(text(None))),
    column!("timestamp" ["เวลาออกเลข", "发号时间", "發號時間", "Issued at"],
        |row| Ok(Cell::Time(&row.timestamp)), |gap| Ok(Cell::Time(&gap.timestamp))),
    column!("retry_count" ["จำนวนครั้งที่ลองใหม่", "重试次数", "重試次數", "Retries"],
        |row| Ok(Cell::Whole(row.about.retry_count.into())), |_| Ok(text(None))),
    column!("series" ["ชุดเลข", "编号系列", "編號系列", "Series"],
        |row| Ok(text(Some(row.about.source.series))), |gap| Ok(text(Some(gap.about.series)))),
    column!("config_version" ["รุ่นของชุดเลข", "系列版本", "系列版本", "Version of the series"],
        |row| Ok(Cell::Whole(row.about.source.config_version.into())), |_| Ok(text(None))),
    column!("type" ["ประเภทเอกสาร", "文件类型", "文件類型", "Document type"],
        |row| Ok(text(Some(row.about.source.type_code))), |_| Ok(text(None))),
    column!("project" ["โครงการ", "项目", "專案", "Project"],
        |row| Ok(text(row.about.source.project)), |_| Ok(text(None))),
    column!("document_date" ["วันที่เอกสาร", "文件日期", "文件日期", "Document date"],
        |row| Ok(Cell::Day(row.about.document_date)), |_| Ok(text(None))),
    column!("first" ["ค่าแรก", "起始值", "起始值", "First value"],
        |row| Ok(value(&row.about.serials, |values| values.first)),
        |gap| Ok(value(&gap.about.serials, |values| values.first))),
    column!("last" ["ค่าสุดท้าย", "结束值", "結束值", "Last value"],
        |row| Ok(value(&row.about.serials, |values| values.last)),
        |gap| Ok(value(&gap.about.serials, |values| values.last))),
    column!("serials" ["ค่าของลำดับ", "序号值", "序號值", "Values"],
        |row| json(&row.about.serials), |gap| json(&gap.about.serials)),
    column!("path" ["เส้นทาง", "途径", "途徑", "Path"],
        |row| Ok(text(Some(row.about.path.name()))), |_| Ok(text(None))),
    column!("idempotency_key" ["คีย์ของคำขอ", "请求标识", "請求識別碼", "Key of the request"],
        |row| Ok(text(row.about.idempotency_key)), |_| Ok(text(None))),
    column!("allocation_id" ["รหัสการออกเลข", "发号标识", "發號識別碼", "Allocation"],
        |row| Ok(Cell::Text(row.about.allocation_id.to_string().into())), |_| Ok(text(None))),
    column!("journaled_at" ["บันทึกเมื่อ", "记录时间", "記錄時間", "Recorded at"],
        |row| Ok(Cell::Time(&row.about.journaled_at)), |_| Ok(text(None))),
    column!("service" ["ระบบที่ขอ", "申请系统", "申請系統", "Service"],
        |row| Ok(text(row.about.service)), |_| Ok(text(None))),
    column!("kind" ["ชนิดรายการ", "记录类别", "記錄類別", "Kind"],
        |row| Ok(kind(row.kind)), |gap| Ok(kind(gap.kind))),
    column!("last_number" ["เลขที่สุดท้าย", "末号", "末號", "Last number"],
        |row| Ok(text(row.about.last_number.as_deref())), |gap| Ok(text(gap.about.last_number))),
    column!("revision_of" ["ฉบับแก้ไขของ", "修订自", "修訂自", "Revision of"],
        |row| Ok(text(row.about.revision_of)), |_| Ok(text(None))),
    column!("rev" ["ฉบับแก้ไขที่", "版次", "版次", "Revision"],
        |row| Ok(text(row.about.rev)), |_| Ok(text(None))),
    column!("status" ["สถานะ", "状态", "狀態", "Status"],
        |row| Ok(text(Some(row.about.standing.status.word()))), |_| Ok(text(None))),
    column!("voided_at" ["ยกเลิกเมื่อ", "作废时间", "作廢時間", "Voided at"],
        |row| Ok(time(row.about.standing.voided_at.as_deref())), |_| Ok(text(None))),
    column!("voided_by" ["ผู้ยกเลิก", "作废人", "作廢人", "Voided by"],
        |row| Ok(text(row.about.standing.voided_by)), |_| Ok(text(None))),
    column!("void_reason" ["เหตุผลที่ยกเลิก", "作废原因", "作廢原因", "Reason of the void"],
        |row| Ok(text(row.about.standing.void_reason)), |_| Ok(text(None))),
    column!("replaces" ["แทนเลขที่", "替代", "取代", "Replaces"],
        |row| Ok(text(row.about.standing.replaces)), |_| Ok(text(None))),
    column!("replaced_by" ["ถูกแทนด้วย", "被替代为", "被取代為", "Replaced by"],
        |row| Ok(text(row.about.standing.replaced_by)), |_| Ok(text(None))),
    column!("void_count" ["จำนวนที่ยกเลิกในช่วง", "范围内作废数量", "範圍內作廢數量", "Count of void"],
        |row| Ok(count(row.about.standing.void_count)), |_| Ok(text(None))),
    column!("void_numbers" ["เลขที่ที่ยกเลิกในช่วง", "范围内作废编号", "範圍內作廢編號", "Void in the range"],
        |row| void_numbers(row), |_| Ok(text(None))),
    column!("assigned_count" ["จำนวนที่มีเอกสาร", "已指定数量", "已指定數量", "Count of assigned"],
        |row| Ok(count(row.about.standing.assigned_count)), |_| Ok(text(None))),
    column!("assigned_numbers" ["เลขที่ที่มีเอกสาร", "已指定编号", "已指定編號", "Assigned"],
        |row| assigned_numbers(row), |_| Ok(text(None))),
    column!("corrections" ["การแก้ไขข้อมูล", "更正", "更正", "Corrections"],
        |row| corrections(row), |_| Ok(text(None))),
    column!("serial" ["ลำดับ", "序号", "序號", "Serial"],
        |_| Ok(text(None)), |gap| Ok(text(Some(gap.about.serial)))),
    column!("reason" ["เหตุผล", "原因", "原因", "Reason"],
        |row| Ok(text(row.about.reason)), |gap| Ok(text(Some(gap.about.reason)))),
    column!("explanation" ["คำอธิบาย", "说明", "說明", "Explanation"],
        |_| Ok(text(None)), |gap| Ok(text(Some(gap.about.explanation)))),
    column!("utc_offset" ["เขตเวลา", "时区", "時區", "Time zone"],
        |row| Ok(offset(&row.timestamp)), |gap| Ok(offset(&gap.timestamp))),
    column!("context" ["ตัวแปร", "变量", "變數", "Variables"],
        |row| json(row.about.context), |_| Ok(text(None))),
];

fn text(text: Option<&str>) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text.unwrap_or_default()))
}

fn json<'r>(value: &impl serde::Serialize) -> anyhow::Result<Cell<'r>> {
    Ok(Cell::Text(serde_json::to_string(value)?.into()))
}

fn kind<'r>(kind: RowKind) -> Cell<'r> {
    text(Some(kind.name()))
}

/// A time, where there is one.
fn time(time: Option<&str>) -> Cell<'_> {
    time.map_or_else(|| text(None), Cell::Time)
}

fn count<'r>(count: Option<u64>) -> Cell<'r> {
    count.map_or_else(|| text(None), Cell::Whole)
}

/// The void numbers of a range as JSON; empty where there are none.
fn void_numbers<'r>(row: &ExportedRow<'_>) -> anyhow::Result<Cell<'r>> {
    let numbers = &row.about.standing.void_numbers;
    if numbers.is_empty() { Ok(text(None)) } else { json(numbers) }
}

/// The numbers of a range that are documents', as JSON; empty where there are none.
fn assigned_numbers<'r>(row: &ExportedRow<'_>) -> anyhow::Result<Cell<'r>> {
    let numbers = &row.about.standing.assigned_numbers;
    if numbers.is_empty() { Ok(text(None)) } else { json(numbers) }
}

/// The corrections as JSON; empty where there are none.
fn corrections<'r>(row: &ExportedRow<'_>) -> anyhow::Result<Cell<'r>> {
    let corrections = &row.about.standing.corrections;
    if corrections.is_empty() { Ok(text(None)) } else { json(corrections) }
}

/// A value of the first serial.
fn value<'r>(serials: &[ValuesAnswer], of: impl Fn(&ValuesAnswer) -> u64) -> Cell<'r> {
    serials.first().map_or_else(|| text(None), |values| Cell::Whole(of(values)))
}

/// The offset of a time, which a date of a spreadsheet does not have.
fn offset<'r>(time: &str) -> Cell<'r> {
    let offset = time.get(CIVIL_CHARS..).filter(|offset| *offset != "Z").unwrap_or_default();
    Cell::Text(format!("UTC{offset}").into())
}

/// Characters of a time before its offset, `2024-01-22T09:00:00.123456`.
const CIVIL_CHARS: usize = 26;

//! Files that `numerator export` wrote, as lists: what their columns mean, and what stands in their
//! cells.
//!
//! A row of a number is one as any list has it; of a range, it is imported as the range. Rows of a
//! gap and of a counter say up to which value the counter has counted: what may have been issued
//! before is not issued again, be it archived, put aside or lost. So each counter of an export
//! needs its row, and each row says what it is and which values it has. A row of a revision has no
//! meaning here.

use std::collections::BTreeMap;
use std::fmt;

use numbering::{CounterKey, Range, Serial};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::reading::{Misfit, misfit};
use super::report::ProblemKind;
use crate::features::register::cells::is_marked;

/// The column by which such a file is known.
pub(super) const GENERATED_NUMBER: &str = "generated_number";

/// The content of a column that other lists do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExportColumn {
    /// What the row is.
    Kind,
    /// Code of the series.
    Series,
    /// The service through which a person asked.
    Service,
    /// Variables, JSON.
    Context,
    /// Values of the serials, JSON.
    Serials,
    /// Of a gap and of a counter, the name of its serial.
    Serial,
    /// The key of the counter, JSON.
    CounterKey,
    /// Of a range, how many of its numbers are documents'.
    AssignedCount,
}

/// Columns without which a row cannot be told from one of another kind, or from a part of a range.
pub(super) const NEEDED: [(&str, ExportColumn); 4] = [
    ("kind", ExportColumn::Kind),
    ("series", ExportColumn::Series),
    ("counter_key", ExportColumn::CounterKey),
    ("serials", ExportColumn::Serials),
];

/// Columns that another service cannot take over: they say how this record came about.
const IGNORED: [&str; 25] = [
    "template_used",
    "ip_address",
    "retry_count",
    "config_version",
    "first",
    "last",
    "path",
    "idempotency_key",
    "allocation_id",
    "journaled_at",
    "last_number",
    "revision_of",
    "rev",
    "status",
    "voided_at",
    "voided_by",
    "void_reason",
    "replaces",
    "replaced_by",
    "void_count",
    "void_numbers",
    "assigned_numbers",
    "corrections",
    "reason",
    "explanation",
];

/// What a column of an export is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfExport {
    /// The same as a column of any list that has this name.
    Known(&'static str),
    /// One of its own.
    Own(ExportColumn),
    /// One that is not imported.
    Ignored,
}

/// The meaning of a column's name; `None` for a variable's, or an unknown one.
pub(super) fn of_export(name: &str) -> Option<OfExport> {
    Some(match name {
        GENERATED_NUMBER => OfExport::Known("number"),
        "timestamp" => OfExport::Known("issued_at"),
        "document_date" => OfExport::Known("date"),
        "user_id" => OfExport::Known("user"),
        "kind" => OfExport::Own(ExportColumn::Kind),
        "series" => OfExport::Own(ExportColumn::Series),
        "service" => OfExport::Own(ExportColumn::Service),
        "context" => OfExport::Own(ExportColumn::Context),
        "serials" => OfExport::Own(ExportColumn::Serials),
        "serial" => OfExport::Own(ExportColumn::Serial),
        "counter_key" => OfExport::Own(ExportColumn::CounterKey),
        "assigned_count" => OfExport::Own(ExportColumn::AssignedCount),
        "utc_offset" => OfExport::Ignored,
        name if IGNORED.contains(&name) => OfExport::Ignored,
        _ => return None,
    })
}

/// What a row of an export says beside the columns of any list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extra {
    pub(super) kind: String,
    pub(super) series: Option<String>,
    pub(super) service: Option<String>,
    pub(super) context: BTreeMap<String, String>,
    /// The values of each serial.
    pub(super) ranges: Vec<Range>,
    pub(super) serial: Option<String>,
    pub(super) counter_key: Option<String>,
    /// Numbers of the range that were documents': no import brings their assignments.
    pub(super) assigned: u64,
}

impl Extra {
    /// Takes over a cell.
    ///
    /// # Errors
    /// The flaw of a text that is none of its column's.
    pub(super) fn set(&mut self, column: ExportColumn, text: String) -> Result<(), String> {
        let wrong = |name: &str| format!("column {name} does not hold what an export writes there");
        match column {
            ExportColumn::Kind => self.kind = text,
            ExportColumn::Series => self.series = Some(text),
            ExportColumn::Service => self.service = Some(text),
            ExportColumn::Serial => self.serial = Some(text),
            ExportColumn::Context => {
                self.context = serde_json::from_str(&text).map_err(|_| wrong("context"))?;
            }
            ExportColumn::Serials => {
                let ranges: Vec<WrittenRange> =
                    serde_json::from_str(&text).map_err(|_| wrong("serials"))?;
                let ranges = ranges.iter().map(WrittenRange::read).collect::<Option<_>>();
                self.ranges = ranges.ok_or_else(|| wrong("serials"))?;
            }
            ExportColumn::CounterKey => {
                let WrittenKey(parts) =
                    serde_json::from_str(&text).map_err(|_| wrong("counter_key"))?;
                self.counter_key = Some(CounterKey { parts }.to_string());
            }
            ExportColumn::AssignedCount => {
                self.assigned = text.parse().map_err(|_| wrong("assigned_count"))?;
            }
        }
        Ok(())
    }

    /// The ranges of the row, if they are more than its number: each from the number's value on, in
    /// the steps of its serial, up to a value that this can have, and all of one length.
    pub(super) fn ranges_from(
        &self,
        values: &[u64],
        serials: &[Serial],
    ) -> Result<Option<Vec<Range>>, Misfit> {
        let said = &self.ranges;
        if said.iter().all(|range| range.first == range.last) {
            return Ok(None);
        }
        let fits = |((range, value), serial): ((&Range, &u64), &Serial)| {
            range.first == *value
                && range.step == serial.step
                && range.last <= serial.max
                && (range.last - range.first).is_multiple_of(range.step)
        };
        let is_one = said.windows(2).all(|pair| pair[0].count() == pair[1].count());
        let mut pairs = said.iter().zip(values).zip(serials);
        if said.len() == values.len() && is_one && pairs.all(fits) {
            return Ok(Some(said.clone()));
        }
        misfit(ProblemKind::Contradiction, "column serials does not go on from the number's values")
    }

    /// Whether the row says up to which value a counter has counted.
    pub(super) fn is_of_counter(&self) -> bool {
        self.kind == "gap" || self.is_whole()
    }

    /// Whether that is all that the counter has counted.
    pub(super) fn is_whole(&self) -> bool {
        self.kind == "counter"
    }

    /// Whether the row has nothing to import.
    pub(super) fn is_skipped(&self) -> bool {
        self.kind == "revision"
    }
}

/// A cell as it was before an export kept spreadsheets from reading it as a formula.
pub(super) fn restored(cell: &str) -> &str {
    if is_marked(cell) { &cell[1..] } else { cell }
}

/// Values, which an export writes as texts.
#[derive(Deserialize)]
struct WrittenRange {
    first: String,
    last: String,
    step: String,
}

impl WrittenRange {
    fn read(&self) -> Option<Range> {
        let [first, last, step] = [&self.first, &self.last, &self.step].map(|text| text.parse());
        let range = Range { first: first.ok()?, last: last.ok()?, step: step.ok()? };
        (range.step > 0 && range.first <= range.last).then_some(range)
    }
}

/// A counter key, in the order of its parts.
struct WrittenKey(Vec<(String, String)>);

impl<'de> Deserialize<'de> for WrittenKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = WrittenKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the parts of a counter key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WrittenKey, A::Error> {
                let mut parts = Vec::new();
                while let Some(part) = map.next_entry()? {
                    parts.push(part);
                }
                Ok(WrittenKey(parts))
            }
        }
        deserializer.deserialize_map(Parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::register::cells::inert;

    #[test]
    fn a_cell_comes_back_as_it_was() {
        for text in ["A-1", "=1+1", "-x", "'=x", "''@", "'", "'quoted'", "", "+66"] {
            assert_eq!(restored(&inert(text)), text);
        }
    }

    #[test]
    fn a_row_says_what_a_list_does_not() {
        let mut extra = Extra::default();
        let serials = r#"[{"first":"148","last":"157","step":"1"}]"#;
        extra.set(ExportColumn::Serials, serials.into()).expect("values");
        assert_eq!(extra.ranges, [Range { first: 148, last: 157, step: 1 }]);
        let key = r#"{"type":"SPO","day":"2024-01-22"}"#;
        extra.set(ExportColumn::CounterKey, key.into()).expect("a key");
        assert_eq!(extra.counter_key.as_deref(), Some("type=SPO;day=2024-01-22"));
        extra.set(ExportColumn::AssignedCount, "3".into()).expect("a count");
        assert_eq!(extra.assigned, 3);
        for (column, text) in [
            (ExportColumn::Serials, r#"[{"first":"2","last":"1","step":"1"}]"#),
            (ExportColumn::Serials, "1-2"),
            (ExportColumn::Context, "a"),
            (ExportColumn::CounterKey, "day"),
            (ExportColumn::AssignedCount, "-1"),
        ] {
            assert!(extra.set(column, text.into()).is_err(), "{text}");
        }
    }
}

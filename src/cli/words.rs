//! Words and lists that several commands print.

use comfy_table::Table;
use comfy_table::presets;

use crate::ledger::{Closing, GapReason, Owner, Partition, PartitionState, Wanted};

/// A table without lines.
pub(super) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// A partition's state.
pub(super) fn state(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Open => "open",
        PartitionState::Recovering => "recovering",
        PartitionState::Opening => "opening",
        PartitionState::Held => "held",
    }
}

/// A partition's owner.
pub(super) fn owner(owner: &Owner) -> &'static str {
    match owner {
        Owner::None => "none",
        Owner::Redis { .. } => "redis",
        Owner::Database => "database",
    }
}

/// Who should own a partition as it stands.
pub(super) fn wanted_of(row: &Partition) -> &'static str {
    if row.is_lent && row.wanted == Wanted::Auto { "lent" } else { wanted(row.wanted) }
}

/// Who should own a partition, by an operator's word.
pub(super) fn wanted(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Auto => "auto",
        Wanted::Database => "database",
    }
}

/// How an epoch was closed.
pub(super) fn closing(closing: Closing) -> &'static str {
    match closing {
        Closing::Exact => "exact",
        Closing::Ceiling => "ceiling",
    }
}

/// Why values are lost.
pub(super) fn reason(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Discarded => "discarded",
        GapReason::Unaccounted => "unaccounted",
        GapReason::Collided => "collided",
        GapReason::BeforeImport => "before-import",
        GapReason::Skipped => "skipped",
    }
}

/// A moment, in UTC.
pub(super) fn moment(at_us: i64) -> String {
    jiff::Timestamp::from_microsecond(at_us).map_or_else(|_| at_us.to_string(), |at| at.to_string())
}

//! Words and lists that several commands print.

use comfy_table::Table;
use comfy_table::presets;

use crate::ledger::{Closing, GapReason, Owner, Partition, PartitionState, Wanted};

/// A table without lines.
pub(crate) fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// A partition's state.
pub(crate) fn state(state: PartitionState) -> &'static str {
    match state {
        PartitionState::Open => "open",
        PartitionState::Recovering => "recovering",
        PartitionState::Opening => "opening",
        PartitionState::Held => "held",
    }
}

/// A partition's owner.
pub(crate) fn owner(owner: &Owner) -> &'static str {
    match owner {
        Owner::None => "none",
        Owner::Redis { .. } => "redis",
        Owner::Database => "database",
    }
}

/// The wanted owner of a partition of the ledger.
pub(crate) fn wanted_of(row: &Partition) -> &'static str {
    if row.is_lent && row.wanted == Wanted::Auto { "lent" } else { wanted(row.wanted) }
}

/// The wanted owner of a partition, by the word of an operator.
pub(crate) fn wanted(wanted: Wanted) -> &'static str {
    match wanted {
        Wanted::Auto => "auto",
        Wanted::Database => "database",
    }
}

/// How an epoch was closed.
pub(crate) fn closing(closing: Closing) -> &'static str {
    match closing {
        Closing::Exact => "exact",
        Closing::Ceiling => "ceiling",
    }
}

/// Why values are lost.
pub(crate) fn reason(reason: GapReason) -> &'static str {
    match reason {
        GapReason::Discarded => "discarded",
        GapReason::Unaccounted => "unaccounted",
        GapReason::Collided => "collided",
        GapReason::BeforeImport => "before-import",
        GapReason::Skipped => "skipped",
        GapReason::Returned => "returned",
        GapReason::Cancelled => "cancelled",
        GapReason::Expired => "expired",
    }
}

/// A moment, in UTC.
pub(crate) fn moment(at_us: i64) -> String {
    jiff::Timestamp::from_microsecond(at_us).map_or_else(|_| at_us.to_string(), |at| at.to_string())
}

//! Counters as people look them up: by their series and by parts of their keys.

use crate::Counter;

/// Which counters to list; all that is given must match.
#[derive(Clone, Debug, Default)]
pub struct CounterFilter {
    /// Of one series.
    pub series_id: Option<i64>,
    /// What their keys hold.
    pub keys: Vec<KeyCondition>,
    /// After this counter in the list, by its id.
    pub after: Option<i64>,
    /// At most so many (default 100, at most 10,000).
    pub limit: u32,
}

/// What a key must hold: one of these parts, or, of some series, none of these dimensions.
#[derive(Clone, Debug, Default)]
pub struct KeyCondition {
    /// One of these.
    pub parts: Vec<KeyPart>,
    /// Dimensions that a key has none of
    pub absent: Vec<&'static str>,
    /// where its counter is of one of these series, whose numbers match all the same.
    pub series_without: Vec<i64>,
}

/// A part of a counter key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    /// Dimension or period.
    pub name: String,
    /// Its value, or what this begins with.
    pub value: String,
    /// Whether the value may go on.
    pub is_beginning: bool,
    /// Of counters of these series alone: others mean something else by it.
    pub series: Option<Vec<i64>>,
}

/// A counter in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedCounter {
    /// Its row.
    pub counter: Counter,
    /// When the highest of its values that the journal has was issued; none where it has none.
    pub last_used_at_us: Option<i64>,
}

/// Counters of a serial that are looked at for one value: each costs a look into an index.
pub const COUNTERS_LOOKED_MAX: u32 = 100_000;

/// Which runs of values a search for the holders of a value looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueRuns {
    /// Ranges that were issued: in the journal, in the archive, or of a record that is put aside.
    Issued,
    /// Gaps.
    Gaps,
}

/// Counters of which a run holds a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holding {
    /// Their ids, the lowest of them where they are very many.
    pub counters: Vec<i64>,
    /// Whether the list is complete: false where more than [`COUNTERS_LOOKED_MAX`] may hold the
    /// value, and where more hold it than the list may have.
    pub is_whole: bool,
}

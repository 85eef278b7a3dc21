//! The protocol: how numbers are taken, epochs begin and end, records come into the journal, and a
//! ledger that went back is held. Each file owns one part of it.

pub(crate) mod adopt;
pub(crate) mod append;
pub(crate) mod aside_again;
pub(crate) mod blame;
pub(crate) mod chronology;
pub(crate) mod clocks;
pub(crate) mod confirmed_takes;
pub(crate) mod entries;
pub(crate) mod fitness;
pub(crate) mod holding;
pub(crate) mod incarnation;
pub(crate) mod journaling;
pub(crate) mod keys;
pub(crate) mod known;
pub(crate) mod lift;
pub(crate) mod lineage;
pub(crate) mod loans;
pub(crate) mod named_counters;
pub(crate) mod partitions;
pub(crate) mod planned;
pub(crate) mod put_aside;
pub(crate) mod quorum_check;
pub(crate) mod raise;
pub(crate) mod recovery;
pub(crate) mod restored;
pub(crate) mod rows;
pub(crate) mod safety;
pub(crate) mod seed;
pub(crate) mod setup;
pub(crate) mod stamps;
pub(crate) mod sweeping;
pub(crate) mod take;
pub(crate) mod tall;
pub(crate) mod undated;
pub(crate) mod unsettled;

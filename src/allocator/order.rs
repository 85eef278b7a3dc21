//! What a caller asks for and what it gets.

use crate::ledger::Entry;
use crate::number::{Inputs, Serial};

/// A request for a number, or for a range of one counter.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the numbering language reads.
    pub inputs: Inputs,
    /// The document to number; a range may have none.
    pub document_id: Option<String>,
    /// How many numbers, 1 to 1,000,000; more than one is a contiguous range of one counter.
    pub count: u64,
    /// Give a document that has a number already another one.
    pub again: bool,
    /// The caller's key for safe retries, at most 255 characters (R1.8).
    pub idempotency_key: Option<String>,
    /// Who asks.
    pub user_id: String,
    /// From where.
    pub ip_address: Option<String>,
}

/// A number handed out.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The allocation; `entry.number` is the (first) number.
    pub entry: Entry,
    /// Text of the last number of a range; `None` for a single number.
    pub last_number: Option<String>,
    /// Code of the series.
    pub series_code: String,
    /// The serials of the series, in the order of `entry.taken`.
    pub serials: Vec<Serial>,
    /// Whether an earlier allocation answered.
    pub replayed: bool,
}

/// What a number would look like.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The text with the next value that the ledger knows of; another request may take it first.
    pub number: String,
    /// Code of the series.
    pub series_code: String,
    /// Its id and version.
    pub series_id: i64,
    /// Its version.
    pub version: u32,
    /// Counter keys, one per serial.
    pub counter_keys: Vec<String>,
    /// Name and expected value of each serial.
    pub serials: Vec<(String, u64)>,
}

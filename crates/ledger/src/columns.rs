//! The form of values in columns: words for states, bytes for identities, signed 64-bit integers.
//! Owns no statement; the same for every engine.

use std::sync::Arc;

use numbering::TakenRange;
use numerator_runtime::node::NodeId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{
    At, ChangeState, Closing, Entry, GapReason, IssuePath, LedgerError, Owner, PartitionState,
    Record, ReservationEnd, ReservationState, StepState, Wanted,
};

/// How a series code becomes a partition. Written into the ledger: nodes that hash differently
/// would give one counter two owners (F8).
pub(super) const HASH: &str = "sha256-64";

/// The values of a further serial of a number, as the first serial's row carries them.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FurtherSerial {
    /// Its name.
    pub(super) serial: String,
    /// What was taken.
    pub(super) taken: TakenRange,
    /// The counter key's text.
    pub(super) key: String,
}

/// A state whose column holds a word.
pub(super) trait Word: Sized + Copy + 'static {
    /// The column, for messages.
    const COLUMN: &'static str;
    /// Each state with its word.
    const WORDS: &'static [(Self, &'static str)];

    /// The word of a state.
    fn word(self) -> &'static str
    where
        Self: PartialEq,
    {
        let found = Self::WORDS.iter().find(|(state, _)| *state == self);
        found.expect("every state has a word").1
    }

    /// The state of a word.
    fn read(word: &str) -> Result<Self, LedgerError> {
        let found = Self::WORDS.iter().find(|(_, text)| *text == word);
        found.map(|(state, _)| *state).ok_or_else(|| unreadable(Self::COLUMN, word))
    }
}

impl Word for PartitionState {
    const COLUMN: &'static str = "partition.state";
    const WORDS: &'static [(Self, &'static str)] = &[
        (PartitionState::Open, "open"),
        (PartitionState::Recovering, "recovering"),
        (PartitionState::Opening, "opening"),
        (PartitionState::Held, "held"),
    ];
}

impl Word for Closing {
    const COLUMN: &'static str = "closing";
    const WORDS: &'static [(Self, &'static str)] =
        &[(Closing::Exact, "exact"), (Closing::Ceiling, "ceiling")];
}

impl Word for Wanted {
    const COLUMN: &'static str = "partition.wanted";
    const WORDS: &'static [(Self, &'static str)] =
        &[(Wanted::Auto, "auto"), (Wanted::Database, "database")];
}

impl Word for GapReason {
    const COLUMN: &'static str = "gap.reason";
    const WORDS: &'static [(Self, &'static str)] = &[
        (GapReason::Discarded, "discarded"),
        (GapReason::Unaccounted, "unaccounted"),
        (GapReason::Collided, "collided"),
        (GapReason::BeforeImport, "before-import"),
        (GapReason::Skipped, "skipped"),
        (GapReason::Returned, "returned"),
        (GapReason::Cancelled, "cancelled"),
        (GapReason::Expired, "expired"),
    ];
}

impl Word for ChangeState {
    const COLUMN: &'static str = "change_request.state";
    const WORDS: &'static [(Self, &'static str)] = &[
        (ChangeState::Pending, "pending"),
        (ChangeState::Approved, "approved"),
        (ChangeState::Rejected, "rejected"),
    ];
}

impl Word for IssuePath {
    const COLUMN: &'static str = "journal.path";
    const WORDS: &'static [(Self, &'static str)] = &[
        (IssuePath::Redis, "redis"),
        (IssuePath::Database, "database"),
        (IssuePath::Imported, "imported"),
        (IssuePath::Registered, "registered"),
        (IssuePath::AsWritten, "as-written"),
    ];
}

impl Word for ReservationState {
    const COLUMN: &'static str = "reservation.state";
    const WORDS: &'static [(Self, &'static str)] = &[
        (ReservationState::Reserved, "reserved"),
        (ReservationState::Confirmed, "confirmed"),
        (ReservationState::Cancelled, "cancelled"),
    ];
}

impl Word for ReservationEnd {
    const COLUMN: &'static str = "life.act";
    const WORDS: &'static [(Self, &'static str)] = &[
        (ReservationEnd::Cancelled, "cancelled"),
        (ReservationEnd::Expired, "expired"),
        (ReservationEnd::Lost, "lost"),
        (ReservationEnd::HandedBack, "handed-back"),
    ];
}

impl Word for StepState {
    const COLUMN: &'static str = "system_step.state";
    const WORDS: &'static [(Self, &'static str)] = &[
        (StepState::InProgress, "in-progress"),
        (StepState::Succeeded, "succeeded"),
        (StepState::Failed, "failed"),
    ];
}

/// The columns `owner` and `incarnation`.
pub(super) fn owner_columns(owner: &Owner) -> (&'static str, Option<&str>) {
    match owner {
        Owner::None => ("none", None),
        Owner::Redis { incarnation } => ("redis", Some(incarnation)),
        Owner::Database => ("database", None),
    }
}

/// Reads the columns `owner` and `incarnation` back.
pub(super) fn read_owner(word: &str, incarnation: Option<String>) -> Result<Owner, LedgerError> {
    match (word, incarnation) {
        ("none", None) => Ok(Owner::None),
        ("redis", Some(incarnation)) => Ok(Owner::Redis { incarnation }),
        ("database", None) => Ok(Owner::Database),
        _ => Err(unreadable("partition.owner", word)),
    }
}

/// A column that holds what this binary never wrote.
pub(super) fn unreadable(column: &str, content: &str) -> LedgerError {
    LedgerError::Fault(format!(
        "{column} holds `{content}`, unknown to this version; run the version that wrote it"
    ))
}

/// A count or value on its way into a column.
pub(super) fn signed(value: u64, field: &str) -> Result<i64, LedgerError> {
    i64::try_from(value).map_err(|_| too_large(field, value))
}

/// A step for a column: at least 1, or a counter would not advance.
pub(super) fn step(value: u64) -> Result<i64, LedgerError> {
    if value == 0 {
        return Err(LedgerError::Refused("step is 0; use at least 1".into()));
    }
    signed(value, "step")
}

/// A small number on its way into a column.
pub(super) fn small(value: u32, field: &str) -> Result<i32, LedgerError> {
    i32::try_from(value).map_err(|_| too_large(field, value.into()))
}

fn too_large(field: &str, value: u64) -> LedgerError {
    LedgerError::Refused(format!("{field} is {value}, more than a column holds; use a smaller one"))
}

/// A column that is never negative, coming out.
pub(super) fn unsigned(value: i64, column: &str) -> Result<u64, LedgerError> {
    u64::try_from(value).map_err(|_| unreadable(column, &value.to_string()))
}

/// A small column that is never negative, coming out.
pub(super) fn unsigned_small(value: i32, column: &str) -> Result<u32, LedgerError> {
    u32::try_from(value).map_err(|_| unreadable(column, &value.to_string()))
}

/// An identity's sixteen bytes.
pub(super) fn read_uuid(bytes: &[u8], column: &str) -> Result<Uuid, LedgerError> {
    Uuid::from_slice(bytes).map_err(|_| unreadable(column, &format!("{} bytes", bytes.len())))
}

/// The bytes of a digest in hexadecimal; `None` where there is none.
///
/// # Errors
/// `Refused` where it is no digest: any other text could not be given back as it was.
pub(super) fn digest_bytes(text: &str) -> Result<Option<Vec<u8>>, LedgerError> {
    if text.is_empty() {
        return Ok(None);
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
    let refused = || LedgerError::Refused(format!("payload_digest: `{text}` is not hexadecimal"));
    bytes.map(Some).ok_or_else(refused)
}

/// The sixteen bytes of a node's identity.
pub(crate) fn bytes(node: &NodeId) -> &[u8] {
    node.0.as_bytes().as_slice()
}

/// A node's sixteen bytes.
pub(super) fn read_node(bytes: &[u8], column: &str) -> Result<NodeId, LedgerError> {
    read_uuid(bytes, column).map(NodeId)
}

/// JSON on its way into a text column.
pub(super) fn to_json<T: Serialize>(value: &T, field: &str) -> Result<String, LedgerError> {
    serde_json::to_string(value).map_err(|e| LedgerError::Refused(format!("{field}: {e}")))
}

/// JSON coming out of a text column.
pub(super) fn from_json<'a, T: Deserialize<'a>>(
    text: &'a str,
    column: &str,
) -> Result<T, LedgerError> {
    serde_json::from_str(text).map_err(|e| LedgerError::Fault(format!("{column}: {e}")))
}

/// What [`raw`] writes.
#[derive(Deserialize)]
struct Raw {
    record: Record,
    taken: Vec<TakenRange>,
    number: String,
    partition: u32,
    epoch: u64,
    retry_count: u32,
    path: IssuePath,
}

/// The entry that [`raw`] has written.
pub(super) fn read_raw(text: &str) -> Result<Entry, LedgerError> {
    let Raw { record, taken, number, partition, epoch, retry_count, path } =
        from_json(text, "journal_rejected.raw")?;
    let at = At { partition, epoch };
    Ok(Entry { record: Arc::new(record), taken, number, at, retry_count, path })
}

/// A whole entry as JSON, for rows that keep what the journal could not. Escapes every control
/// character, so that a text column takes it with any entry.
pub(super) fn raw(entry: &Entry) -> String {
    json!({
        "record": entry.record,
        "taken": entry.taken,
        "number": entry.number,
        "partition": entry.at.partition,
        "epoch": entry.at.epoch,
        "retry_count": entry.retry_count,
        "path": entry.path,
    })
    .to_string()
}

/// The first eight bytes of a SHA-256, for partitions and lock names.
pub(super) fn hash64(text: &str) -> u64 {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(text.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(head)
}

/// The partition of a series.
pub(super) fn partition_of(code: &str, partitions: u32) -> u32 {
    let place = hash64(code) % u64::from(partitions.max(1));
    u32::try_from(place).expect("a remainder of a u32 fits")
}

/// The columns of an ownership.
pub(crate) fn ownership(at: At) -> Result<(i32, i64), LedgerError> {
    Ok((small(at.partition, "partition")?, signed(at.epoch, "epoch")?))
}

//! Reads what a server holds of a held partition, key by key, without an ownership check (F9).
//!
//! For the one case in which the ledger cannot be trusted to know its own counters. Must never be
//! used to issue: what is read here is an upper bound and a memory, not a state.

use fred::types::Value;
use numbering::TakenRange;
use numerator_runtime::node::NodeId;

use super::call::{Call, Verb};
use super::reply::{Parts, answer, expect, garbled, parse_taken};
use super::{CounterError, Keys, Redis};

/// Keys that one step of a scan looks at, approximately, if all of them are read: a bucket has up
/// to a hundred records.
pub const SCAN_KEYS: u32 = 100;

/// One page of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Whether the server is a master.
    pub is_master: bool,
    /// The ledger that the owner record belongs to; `None` if there is no record.
    pub deployment: Option<String>,
    /// The highest epoch that the owner record names.
    pub epoch: Option<u64>,
    /// The epoch in which the server last took numbers.
    pub taking_epoch: Option<u64>,
    /// Since which epoch this data set has owned every one up to that; `None`: unknown.
    pub run_since: Option<u64>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<String>,
    /// Some of the partition's keys; over all pages every key, some more than once.
    pub keys: Vec<HeldKey>,
}

/// A key of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldKey {
    /// A counter, by its name within the partition.
    Counter(String),
    /// A bucket of idempotency records.
    Bucket(u32),
    /// A node's outbox.
    Outbox(NodeId),
}

/// The content of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revealed {
    /// A counter: no number above this one was or can be taken.
    Counter {
        /// The highest of its value, its copy and its ceiling.
        highest: i64,
    },
    /// The allocations in idempotency records that are kept whole.
    Bucket(Vec<Remembered>),
    /// Gone meanwhile, or nothing that the scripts write.
    Nothing,
}

/// An allocation that an idempotency record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// The epoch that took it.
    pub epoch: u64,
    /// Its values.
    pub taken: Vec<TakenRange>,
    /// Its record.
    pub record: String,
}

/// Outcome of a seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frozen {
    /// No number of the partition can be taken from this server any more.
    Frozen,
    /// The owner record belongs to another ledger.
    Foreign {
        /// Its deployment id.
        deployment: String,
    },
    /// The server is not a master, or knows a higher epoch.
    Unfit {
        /// What it showed.
        reason: String,
    },
}

impl Redis {
    /// Reads the owner record and one page of a partition's keys, from a cursor on (`None` first),
    /// looking at about `keys_max` of the server's keys.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn scan(
        &self,
        keys: &Keys,
        partition: u32,
        cursor: Option<&str>,
        keys_max: u32,
    ) -> Result<Scanned, CounterError> {
        let cursor = cursor.unwrap_or("0").to_owned();
        let echo = format!("scan {partition} {cursor}");
        let args = vec![cursor, keys.pattern(partition), keys_max.to_string()];
        let call = Call::new(Verb::Scan, echo, vec![keys.owner(partition)], args);
        self.ask(&call, |call, value| {
            let mut parts = expect(call, value)?;
            let is_master = parts.text()? == "master";
            let deployment = Some(parts.text()?).filter(|deployment| !deployment.is_empty());
            let epoch: Option<u64> = parts.text()?.parse().ok();
            let sealed: Option<u64> = parts.text()?.parse().ok();
            let run_since: Option<u64> = parts.text()?.parse().ok();
            let next = Some(parts.text()?).filter(|cursor| cursor != "0");
            let names = parts.list(|key| key.into_string().ok_or_else(|| garbled("a key")))?;
            parts.end()?;
            let keys = names.iter().filter_map(|key| held_key(keys, partition, key)).collect();
            let taking_epoch = sealed.or(epoch);
            Ok(Scanned { is_master, deployment, epoch, taking_epoch, run_since, next, keys })
        })
        .await
    }

    /// Reads counters and idempotency records of one partition; one answer per key.
    ///
    /// # Errors
    /// See [`CounterError`].
    pub async fn reveal(
        &self,
        keys: &Keys,
        partition: u32,
        held: &[HeldKey],
    ) -> Result<Vec<Revealed>, CounterError> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let name = |key: &HeldKey| match key {
            HeldKey::Counter(name) => keys.counter(partition, name),
            HeldKey::Bucket(bucket) => keys.bucket(partition, *bucket),
            HeldKey::Outbox(node) => keys.outbox(partition, *node),
        };
        let kind = |key: &HeldKey| match key {
            HeldKey::Counter(_) => "counter",
            HeldKey::Bucket(_) => "bucket",
            HeldKey::Outbox(_) => "outbox",
        };
        let names: Vec<String> = held.iter().map(name).collect();
        let echo = format!("reveal {partition} {}", names.len());
        let call = Call::new(Verb::Reveal, echo, names, held.iter().map(kind).collect());
        self.ask(&call, |call, value| {
            let mut parts = expect(call, value)?;
            let answers = parts.list(read_revealed)?;
            parts.end()?;
            if answers.len() == held.len() { Ok(answers) } else { Err(garbled("one per key")) }
        })
        .await
    }

    /// Prevents any take of a partition's numbers here, until a higher epoch is opened.
    ///
    /// # Errors
    /// See [`CounterError`]; safe to repeat with a higher epoch.
    pub async fn freeze(
        &self,
        keys: &Keys,
        partition: u32,
        deployment: &str,
        epoch: u64,
    ) -> Result<Frozen, CounterError> {
        let echo = format!("seal {partition} {epoch}");
        let args = vec![deployment.to_owned(), epoch.to_string()];
        let call = Call::new(Verb::Seal, echo, vec![keys.owner(partition)], args);
        self.ask(&call, |call, value| {
            let (word, mut parts) = answer(call, value)?;
            let sealed = match word.as_str() {
                "sealed" => Frozen::Frozen,
                "foreign" => Frozen::Foreign { deployment: parts.text()? },
                "unfit" => Frozen::Unfit { reason: parts.text()? },
                other => return Err(garbled(&format!("unexpected word {other:?}"))),
            };
            parts.end()?;
            Ok(sealed)
        })
        .await
    }
}

/// What a key is; `None` for the owner record, probes and foreign keys.
fn held_key(keys: &Keys, partition: u32, key: &str) -> Option<HeldKey> {
    let rest = key.strip_prefix(&keys.of_partition(partition))?;
    let (kind, name) = rest.split_once(':')?;
    match kind {
        "c" => Some(HeldKey::Counter(name.to_owned())),
        "records" => Some(HeldKey::Bucket(name.parse().ok()?)),
        "outbox" => Some(HeldKey::Outbox(NodeId(name.parse().ok()?))),
        _ => None,
    }
}

fn read_revealed(value: Value) -> Result<Revealed, CounterError> {
    let mut parts = Parts::of(value)?;
    let revealed = match parts.text()?.as_str() {
        "counter" => {
            let texts = [parts.text()?, parts.text()?, parts.text()?];
            let highest = texts.iter().filter_map(|text| text.parse().ok()).max();
            highest.map_or(Revealed::Nothing, |highest| Revealed::Counter { highest })
        }
        "bucket" => {
            let texts = parts.list(|text| text.into_string().ok_or_else(|| garbled("a text")))?;
            Revealed::Bucket(texts.chunks(3).filter_map(remembered).collect())
        }
        "other" => Revealed::Nothing,
        other => return Err(garbled(&format!("unexpected answer {other:?}"))),
    };
    parts.end()?;
    Ok(revealed)
}

/// Reads an idempotency record's epoch, values and allocation record.
fn remembered(texts: &[String]) -> Option<Remembered> {
    let [epoch, taken, record] = texts else { return None };
    let (epoch, taken) = (epoch.parse().ok()?, parse_taken(taken)?);
    Some(Remembered { epoch, taken, record: record.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_apart_by_their_names() {
        let keys = Keys::new("nbr");
        let node = NodeId::random();
        let of = |key: &str| held_key(&keys, 7, key);
        let counter = HeldKey::Counter("3:SEQ:type=A:B".into());
        assert_eq!(of(&keys.counter(7, "3:SEQ:type=A:B")), Some(counter));
        assert_eq!(of(&keys.bucket(7, 131_071)), Some(HeldKey::Bucket(131_071)));
        assert_eq!(of(&keys.outbox(7, node)), Some(HeldKey::Outbox(node)));
        for other in [
            keys.owner(7),
            keys.probe(7),
            keys.limit(7, "00"),
            keys.records(7),
            keys.counter(8, "3:SEQ:x"),
            "c:x".into(),
        ] {
            assert_eq!(of(&other), None, "{other}");
        }
    }

    #[test]
    fn what_a_record_holds_is_read_with_blanks_in_it() {
        let texts = |texts: [&str; 3]| texts.map(str::to_owned);
        let found = remembered(&texts(["12", "7:5:5:1", "{\"a\": \"b c\"}"])).expect("a record");
        let Remembered { epoch, taken, record } = found;
        assert_eq!((epoch, taken.len(), &*record), (12, 1, "{\"a\": \"b c\"}"));
        assert_eq!(remembered(&texts(["x", "7:5:5:1", "{}"])), None);
        assert_eq!(remembered(&texts(["12", "7:5", "{}"])), None);
        assert_eq!(remembered(&["12".to_owned()]), None);
    }
}

//! The content of a checkpoint, and the part of it that is signed. Its form is part of the record:
//! see `docs/record.md`.

use numbering::hexadecimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::key::{AuditKey, PublicKey, read_hexadecimal};
use crate::ledger::{Bindable, Bound, MacCheck, SeenBatches, SignedCheckpoint};

/// The tables that checkpoints bind, in the order of their parts.
pub(crate) const TABLES: [Bindable; 6] = [
    Bindable::Batches,
    Bindable::Events,
    Bindable::Versions,
    Bindable::Counters,
    Bindable::Series,
    Bindable::Life,
];

/// Runs of ids without rows that are checked again; past it, the oldest are given up.
const OPEN_MAX: usize = 200;

/// How long a transaction may take to bring the rows of ids that it drew.
const OPEN_FOR_US: i64 = 3_600_000_000;

/// Bytes of a digest that an entry shows: none can be made to fit.
const SHOWN_BYTES: usize = 16;

/// Why a checkpoint cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// Its text is none of this version.
    #[error("its text cannot be read: {0}")]
    Unreadable(String),
    /// Its number is not the one of its text.
    #[error("its text is of checkpoint {0}")]
    Misnumbered(i64),
    /// Its signature is not over its text.
    #[error("its signature is not of its text and key")]
    Unsigned,
}

/// The form of this version.
pub(crate) const FORM: u32 = 1;

/// The text of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// Its number.
    pub(crate) checkpoint: i64,
    /// Its form.
    pub(crate) form: u32,
    /// When it was made.
    pub(crate) at: String,
    /// By which node.
    pub(crate) node: String,
    /// SHA-256 of the text before it; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) previous: Option<String>,
    pub(crate) batches: Part,
    pub(crate) events: Part,
    pub(crate) versions: Part,
    pub(crate) counters: Part,
    pub(crate) series: Part,
    /// Left out where there is nothing: earlier texts lack it.
    #[serde(default, skip_serializing_if = "Part::is_empty")]
    pub(crate) life: Part,
    /// The highest id of a batch that was there; in the first alone, where that binds not all of
    /// them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) before_key: Option<i64>,
}

/// What is bound of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// The highest id that was seen.
    pub(crate) upto: i64,
    /// Ids up to there without rows yet: first, last, and when that was seen first. What took them
    /// may have been taken back, or is not committed yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) open: Vec<(i64, i64, i64)>,
    /// The rows that are bound here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) bound: Vec<Entry>,
}

/// A row that is bound: id, state, and the beginning of its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Entry {
    pub(crate) id: i64,
    pub(crate) standing: MacCheck,
    digest: Vec<u8>,
}

/// The letter of each state.
const LETTERS: [(MacCheck, &str); 4] = [
    (MacCheck::Proven, "p"),
    (MacCheck::Unproven, "u"),
    (MacCheck::Forged, "f"),
    (MacCheck::Plain, "r"),
];

impl Entry {
    fn of(row: &Bound) -> Self {
        let digest = row.digest[..SHOWN_BYTES].to_vec();
        // A process that makes checkpoints has the key.
        let standing = match row.standing {
            MacCheck::Unknown => MacCheck::Unproven,
            standing => standing,
        };
        Entry { id: row.id, standing, digest }
    }

    /// Whether a row is the one that a checkpoint bound. Its signature is not compared: that needs
    /// the key.
    pub(crate) fn is_of(&self, row: &Bound) -> bool {
        self.id == row.id && self.digest == row.digest[..SHOWN_BYTES]
    }
}

impl From<Entry> for String {
    fn from(Entry { id, standing, digest }: Entry) -> String {
        let letter = LETTERS.iter().find(|(of, _)| *of == standing).map_or("", |(_, it)| *it);
        format!("{id}{letter}{}", hexadecimal(&digest))
    }
}

impl TryFrom<String> for Entry {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (at, _) = text.char_indices().find(|(_, one)| one.is_ascii_alphabetic())?;
            let (id, rest) = text.split_at(at);
            let (letter, digest) = rest.split_at(1);
            let (standing, _) = LETTERS.iter().find(|(_, of)| *of == letter)?;
            let digest = read_hexadecimal(digest).filter(|it| it.len() == SHOWN_BYTES)?;
            Some(Entry { id: id.parse().ok()?, standing: *standing, digest })
        };
        read().ok_or_else(|| format!("{text:?} is no entry"))
    }
}

impl Part {
    /// The next rows: those behind the highest id, in their order, and late ones.
    pub(crate) fn next(&self, late: &[Bound], rows: &[Bound], now_us: i64) -> Part {
        let mut open: Vec<(i64, i64, i64)> = Vec::new();
        for (first, last, since_us) in &self.open {
            let mut from = *first;
            for row in late.iter().filter(|row| (*first..=*last).contains(&row.id)) {
                open.push((from, row.id - 1, *since_us));
                from = row.id + 1;
            }
            open.push((from, *last, *since_us));
        }
        let mut upto = self.upto;
        for row in rows {
            open.push((upto + 1, row.id - 1, now_us));
            upto = row.id;
        }
        open.retain(|(first, last, since_us)| {
            first <= last && now_us.saturating_sub(*since_us) < OPEN_FOR_US
        });
        let surplus = open.len().saturating_sub(OPEN_MAX);
        open.drain(..surplus);
        Part { upto, open, bound: late.iter().chain(rows).map(Entry::of).collect() }
    }

    /// The runs of ids whose rows, if there are any, are not bound yet.
    pub(crate) fn unbound(&self) -> Vec<(i64, i64)> {
        let open = self.open.iter().map(|(first, last, _)| (*first, *last));
        open.chain([(self.upto.saturating_add(1), i64::MAX)]).collect()
    }

    /// Whether no row was ever seen.
    fn is_empty(&self) -> bool {
        *self == Part::default()
    }

    /// Whether an id may still get a row.
    pub(crate) fn is_open(&self, id: i64) -> bool {
        self.open.iter().any(|(first, last, _)| (*first..=*last).contains(&id))
    }
}

impl Body {
    /// Up to which id batches may precede the key: as the first checkpoint shows.
    pub(crate) fn before_key(&self) -> i64 {
        self.before_key.unwrap_or(self.batches.upto)
    }

    /// Its parts, in the order of the tables.
    pub(crate) fn parts(&self) -> [&Part; TABLES.len()] {
        [&self.batches, &self.events, &self.versions, &self.counters, &self.series, &self.life]
    }

    /// Signs it.
    pub(crate) fn sign(&self, key: &AuditKey) -> SignedCheckpoint {
        let body = serde_json::to_string(self).expect("plain data is JSON");
        let signature = key.sign(&body);
        let public_key = key.public().bytes().to_vec();
        SignedCheckpoint { number: self.checkpoint, body, public_key, signature }
    }

    /// The content of a checkpoint, and the key that signed it.
    pub(crate) fn read(signed: &SignedCheckpoint) -> Result<(Body, PublicKey), CheckpointError> {
        let key = PublicKey::of(&signed.public_key)
            .filter(|key| key.has_signed(&signed.body, &signed.signature))
            .ok_or(CheckpointError::Unsigned)?;
        let body: Body = serde_json::from_str(&signed.body)
            .map_err(|error| CheckpointError::Unreadable(error.to_string()))?;
        if body.form != FORM {
            let why = format!("its form is {}, and this version knows {FORM}", body.form);
            return Err(CheckpointError::Unreadable(why));
        }
        if body.checkpoint != signed.number {
            return Err(CheckpointError::Misnumbered(body.checkpoint));
        }
        Ok((body, key))
    }
}

/// The SHA-256 by which the next checkpoint names one.
pub(crate) fn name_of(signed: &SignedCheckpoint) -> String {
    hexadecimal(&Sha256::digest(signed.body.as_bytes()))
}

/// What a checkpoint seals, as papers name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealing {
    /// Its number.
    pub number: i64,
    /// When it was made.
    pub at: String,
    /// The SHA-256 of its text, hexadecimal.
    pub sha256: String,
    /// The key that signed it.
    pub public_key: PublicKey,
    /// The batches that it and those before it bind.
    pub seen: SeenBatches,
}

impl Sealing {
    /// What a checkpoint seals, if its signature is of its text and key. The reader decides whether
    /// the key is to be trusted.
    ///
    /// # Errors
    /// Why it seals nothing.
    pub fn of(signed: &SignedCheckpoint) -> Result<Self, CheckpointError> {
        let (body, public_key) = Body::read(signed)?;
        let open = body.batches.open.iter().map(|(first, last, _)| (*first, *last)).collect();
        Ok(Sealing {
            number: signed.number,
            at: body.at,
            sha256: name_of(signed),
            public_key,
            seen: SeenBatches { upto: body.batches.upto, open },
        })
    }
}

/// A checkpoint as a line of JSON, to be kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Its number.
    pub checkpoint: i64,
    /// The text that is signed.
    pub body: String,
    /// The public key, hexadecimal.
    pub public_key: String,
    /// The signature, hexadecimal.
    pub signature: String,
}

impl Line {
    /// The line of a checkpoint.
    #[must_use]
    pub fn of(signed: &SignedCheckpoint) -> Self {
        Line {
            checkpoint: signed.number,
            body: signed.body.clone(),
            public_key: hexadecimal(&signed.public_key),
            signature: hexadecimal(&signed.signature),
        }
    }

    /// The checkpoint of a line.
    pub(crate) fn signed(self) -> Option<SignedCheckpoint> {
        Some(SignedCheckpoint {
            number: self.checkpoint,
            body: self.body,
            public_key: read_hexadecimal(&self.public_key)?,
            signature: read_hexadecimal(&self.signature)?,
        })
    }
}

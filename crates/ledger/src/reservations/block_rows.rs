//! Blocks as callers hand them back, and what became of that. Plain data, no SQL.

use numbering::{DocumentsOf, hexadecimal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::columns::from_json;
use crate::{EndedReservation, Entry, LedgerError, ReservationStanding};

/// Fewest numbers of a block.
pub const BLOCK_MIN: u64 = 2;

/// Most numbers of a block.
pub const BLOCK_MAX: u64 = 1_000;

/// A number of a block that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedNumber {
    /// The number.
    pub number: String,
    /// The document that has it.
    pub document_id: String,
}

/// What a holder hands back.
#[derive(Clone, Debug)]
pub struct HandBack {
    /// The block.
    pub id: Uuid,
    /// The numbers that were used, at most [`BLOCK_MAX`]; all others were not.
    pub used: Vec<UsedNumber>,
    /// Whose documents these are.
    pub documents: DocumentsOf,
    /// Who hands it back, for the record.
    pub by: String,
}

/// What became of the numbers of a block that was handed back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedBack {
    /// Of the numbers that were used and their documents: a repeated request has the same.
    pub digest: String,
    /// How many were used, and are issued.
    pub used: u64,
    /// How many came back, and are the next to be issued.
    pub returned: u64,
    /// How many never come.
    pub spent: u64,
}

impl HandedBack {
    /// Its field in the detail of a row of `life`.
    pub(crate) const FIELD: &'static str = "handed_back";

    /// As the detail of a row has it.
    pub(crate) fn to_json(&self) -> Value {
        let HandedBack { digest, used, returned, spent } = self;
        serde_json::json!({ "digest": digest, "used": used, "returned": returned, "spent": spent })
    }

    /// Reads the detail of a row of `life`.
    pub(crate) fn read(detail: &str) -> Result<Self, LedgerError> {
        /// The field of the detail that is read.
        #[derive(Deserialize)]
        struct Detail {
            handed_back: HandedBack,
        }
        let Detail { handed_back } = from_json(detail, "life.detail")?;
        Ok(handed_back)
    }
}

impl HandBack {
    /// The digest of what is handed back: the order of the list does not matter.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut used: Vec<(&str, &str)> =
            self.used.iter().map(|used| (&*used.number, &*used.document_id)).collect();
        used.sort_unstable();
        let mut hash = Sha256::new();
        // Each with its length: no two lists of texts read alike.
        for text in used.into_iter().flat_map(|(number, document)| [number, document]) {
            hash.update(text.len().to_be_bytes());
            hash.update(text.as_bytes());
        }
        hexadecimal(&hash.finalize())
    }
}

/// What is wrong with a number that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsedFlaw {
    /// The block has no such number.
    Outside {
        /// The first number of the block.
        first: String,
        /// The last one.
        last: String,
    },
    /// The number stands at an earlier place of the list.
    NumberTwice {
        /// That place, from 0 on.
        earlier: usize,
    },
    /// The document stands at an earlier place of the list.
    DocumentTwice {
        /// That place, from 0 on.
        earlier: usize,
    },
    /// The document has a number of the series.
    Numbered,
    /// The document holds a number of the series.
    DocumentReserved,
    /// The document's number is in an archive.
    DocumentArchived {
        /// The file.
        file: String,
    },
    /// Another allocation has the number or its value.
    Collided,
}

/// What became of a hand-back.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockOutcome {
    /// Done now.
    Done {
        /// The block, which has ended.
        ended: EndedReservation,
        /// The numbers that were used, as the journal has them.
        entries: Vec<Entry>,
    },
    /// Done before, by the same request.
    Repeated {
        /// The block, as it ended then.
        ended: EndedReservation,
        /// The numbers that were used, as the journal has them: those that moved to an archive
        /// since are missing.
        entries: Vec<Entry>,
    },
    /// Nothing was done: a number that was used is wrong.
    Flawed {
        /// Its place in the list, from 0 on.
        place: usize,
        /// What is wrong.
        flaw: UsedFlaw,
    },
    /// Nothing was done: it is no live block, or was handed back otherwise.
    Refused(ReservationStanding),
    /// Nothing was done: the partition is held until an operator acts. Worth a retry.
    Held,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(used: &[(&str, &str)]) -> HandBack {
        let used = used.iter().map(|(number, document)| UsedNumber {
            number: (*number).to_owned(),
            document_id: (*document).to_owned(),
        });
        let documents = DocumentsOf::Series;
        HandBack { id: Uuid::nil(), used: used.collect(), documents, by: "u".to_owned() }
    }

    #[test]
    fn a_list_in_another_order_is_the_same_and_another_list_is_not() {
        let one = order(&[("A-1", "a"), ("A-2", "b")]).digest();
        assert_eq!(order(&[("A-2", "b"), ("A-1", "a")]).digest(), one);
        for other in [&[("A-1", "b"), ("A-2", "a")][..], &[("A-1", "a")], &[("A-1a", "A-2b")]] {
            assert_ne!(order(other).digest(), one, "{other:?}");
        }
    }

    #[test]
    fn what_was_handed_back_is_read_as_it_was_written() {
        let handed_back = HandedBack { digest: "aa".to_owned(), used: 2, returned: 1, spent: 0 };
        let mut detail = serde_json::json!({ "ended_by": "u" });
        detail[HandedBack::FIELD] = handed_back.to_json();
        assert_eq!(HandedBack::read(&detail.to_string()).ok(), Some(handed_back));
    }
}

//! Invoices of an application that reserves its numbers: whatever is killed between a reservation
//! and its confirmation, each invoice has its number alone, and no number is missing.
//!
//! `NUMERATOR_SEED` draws the same invoices and the same blows again; their moments still differ.

mod blows;
mod books;
mod own_transaction;
mod pending;

use fastrand::Rng;
use serde_json::{Value, json};
use testkit::load;

use crate::load::is_long;
use blows::Address;

const RESERVATIONS: &str = "/api/v1/document-numbering/reservations";

/// Invoices of a test, and of its long form.
const INVOICES: [i64; 2] = [120, 10_000];

/// Invoices that are made at once.
const WORKERS: usize = 8;

/// For how long an invoice that is given up holds its number.
const BRIEF: &str = "2s";

/// The same of those that are kept: some are over before a restart is.
const TTLS: [&str; 4] = ["1s", "3s", "10s", "60s"];

/// What becomes of an invoice.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    /// It is saved with its number.
    Kept,
    /// It is given up after its number was shown, by a rollback or a cancellation.
    GivenUp,
    /// Nothing more is done.
    Forgotten,
}

/// An invoice that the application is to make.
#[derive(Clone, Copy, Debug)]
struct Invoice {
    id: i64,
    fate: Fate,
    ttl: &'static str,
}

impl Invoice {
    /// The first `count` of them: a tenth is given up, another tenth forgotten.
    fn drawn(count: i64, random: &mut Rng) -> Vec<Self> {
        let one = |id| match random.u8(..10) {
            0 => Invoice { id, fate: Fate::GivenUp, ttl: BRIEF },
            1 => Invoice { id, fate: Fate::Forgotten, ttl: BRIEF },
            _ => Invoice { id, fate: Fate::Kept, ttl: TTLS[random.usize(..TTLS.len())] },
        };
        (1..=count).map(one).collect()
    }

    /// What every call names it by.
    fn document(self) -> String {
        document(self.id)
    }
}

fn document(id: i64) -> String {
    format!("shop/invoice-{id}")
}

/// The invoices of a test.
fn wanted() -> i64 {
    INVOICES[usize::from(is_long())]
}

fn seeded() -> Rng {
    let seed = std::env::var("NUMERATOR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("NUMERATOR_SEED={seed}");
    Rng::with_seed(seed)
}

/// A reservation as its caller knows it.
#[derive(Clone, Debug)]
struct Held {
    id: String,
    number: String,
    /// Whether the number is confirmed already.
    is_issued: bool,
}

/// Reserves a number for an invoice. The same call again finds the same reservation while it lives.
///
/// # Errors
/// No answer, or one that is worth a retry.
async fn reserve(
    client: &reqwest::Client,
    address: &Address,
    invoice: Invoice,
) -> Result<Held, String> {
    let body = json!({
        "type": "INV", "date": "2024-01-22", "document_id": invoice.document(), "ttl": invoice.ttl,
    });
    let (status, answer) = load::post(client, &address.of(RESERVATIONS), &body).await;
    match status {
        200 | 201 if !answer.is_null() => Ok(Held {
            id: word(&answer, "reservation_id"),
            number: word(&answer, "document_number"),
            is_issued: answer["status"] == "issued",
        }),
        _ => Err(retryable(status, &answer)),
    }
}

/// Why a call is made again.
///
/// # Panics
/// For a refusal that a retry would not change.
fn retryable(status: u16, answer: &Value) -> String {
    let is_no_answer = status == 0 || answer.is_null();
    assert!(is_no_answer || answer["retryable"] == true, "{status}: {answer}");
    format!("{status}: {answer}")
}

fn word(answer: &Value, name: &str) -> String {
    let word = answer[name].as_str();
    word.unwrap_or_else(|| panic!("no {name}: {answer}")).to_owned()
}
